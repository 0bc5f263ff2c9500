"""The sessions in the documents, replayed: at a pseudo-terminal and through the protocol.

A block that is marked `neuron` is a session at the prompt, one marked `dap` an exchange of the
protocol; each must give what the page shows, to the letter.
"""

from __future__ import annotations

import json
import shlex

import pytest

from neuron_emu.debug.commands import COMMANDS
from tests.command import ROOT, neuron_emu
from tests.debug.dap_client import DapClient
from tests.debug.terminal import PROMPT, Terminal, blocks_of

PAGE = ROOT / "docs" / "debugger.md"
EDITOR_PAGE = ROOT / "docs" / "vscode.md"
SESSIONS = blocks_of(PAGE, "neuron")
EXCHANGES = blocks_of(EDITOR_PAGE, "dap")


@pytest.fixture
def tanh_as_exp(tmp_path):
    """A directory in which the profile of tanh goes by the name of exp's."""
    built = neuron_emu("tables", "build", "tanh_4p", "-o", tmp_path / "exp_400p.json")
    assert built.status == 0
    return tmp_path


@pytest.mark.parametrize("session", SESSIONS, ids=lambda s: s.splitlines()[0].split("/")[-1])
def test_session_at_the_terminal(session, tanh_as_exp):
    """Typed line by line, the screen shows the page; each bug is found in fewer than ten."""
    first, _, rest = session.partition("\n")
    words = shlex.split(first.removeprefix("$ neuron-emu ").replace("OUT", str(tanh_as_exp)))
    greeting, *parts = rest.split(PROMPT)
    lines = [part.partition("\n") for part in parts]
    with Terminal(*words) as terminal:
        assert terminal.until(PROMPT) == greeting
        for line, _, expected in lines[:-1]:
            assert terminal.say(line) == expected, line
        terminal.type(lines[-1][0] + "\n")
        assert terminal.leave() == 0
    assert len(lines) < 10


@pytest.mark.parametrize("exchange", EXCHANGES, ids=["exchange"])
def test_exchange_of_the_protocol(exchange):
    """`->` lines are sent, `<-` lines are the bodies of the answers and events, in order."""
    with DapClient() as client:
        for line in exchange.splitlines():
            direction, name, body = (*line.split(" ", 2), "{}")[:3]
            if direction == "->" and name == "disconnect":
                break  # closing the client sends it
            if direction == "->":
                answered = client.ask(name, **json.loads(body))
            elif direction == "event":
                assert client.event(name) == json.loads(body), line
            else:
                assert answered == json.loads(body), line


def _says(client: DapClient, text: str) -> str:
    return client.ask("evaluate", expression=text, context="repl")["result"]


def test_wrong_pointer_is_found_through_the_protocol():
    """One request to stop at the end, one to see the values, one to ask why: the pointer."""
    with DapClient() as client:
        client.launch("programs/bugs/pointer.toml")
        client.move("continue")
        tile = client.ask("evaluate", expression="bf16@0x2000[1][4]", context="watch")
        assert "2.71875" in tile["result"]
        why = _says(client, "why 0x2004")
        assert "operand=imm0 address=0xc000 bits=0x40000000" in why
        assert "max_value=0x40000000" in why
        assert "fp32@0xc000" in why
        assert "2.0 3.0" in _says(client, "x fp32@0xc000[1][2]")
        assert len(client.sent) < 10


def test_missing_wait_is_found_through_the_protocol():
    """The exception filter stops before the read that comes too early."""
    filters = ("setExceptionBreakpoints", {"filters": ["uninitialised"]})
    with DapClient() as client:
        stop = client.launch("programs/bugs/wait.toml", filters, stopOnEntry=False)
        assert (stop["reason"], stop["threadId"]) == ("exception", 2)
        assert "nothing wrote, first at 0x2000" in stop["text"]
        client.move("continue")
        who = _says(client, "who 0x3000")
        assert "nothing had written it yet: dve[2] does so at step 4" in who
        assert len(client.sent) < 10


def test_wrong_table_is_found_through_the_protocol(tanh_as_exp):
    """The result station is millions of ulp away, and its section folds as tanh's does."""
    with DapClient() as client:
        client.launch("programs/bugs/table.toml", tables=str(tanh_as_exp), stopOnEntry=False)
        why = _says(client, "why 0x2004")
        assert "fold " in why
        assert "e+07 ulp]" in why
        assert "0.0 ulp" not in why
        assert len(client.sent) < 10


def test_the_page_lists_every_command():
    """The tables of the page are the registry: names, what they do, an example."""
    text = PAGE.read_text().replace("\\|", "|")
    for command in COMMANDS.values():
        also = ", ".join(f"`{name}`" for name in command.names[1:])
        row = f"| `{command.name}` | {also} | {command.summary} | `{command.example}` |"
        assert row in text
