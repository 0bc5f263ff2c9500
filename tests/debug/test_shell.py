"""The prompt as a person uses it, and scripts as a bug report carries them."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from neuron_emu.cli.group import run_command
from neuron_emu.debug.commands import COMMANDS, run_line
from neuron_emu.debug.records import plain
from neuron_emu.debug.text import text_of
from neuron_emu.errors import InputError
from tests.command import ROOT, neuron_emu
from tests.debug.streams import debugger
from tests.debug.terminal import PROMPT, Terminal

FLASH = "programs/flash.toml"


def test_a_person_at_the_prompt():
    """Steps, an empty line that repeats, abbreviations, completion, history, and leaving."""
    with Terminal("debug", FLASH) as terminal:
        assert "step 0  dve[0] ACT_TABLE_LOAD" in terminal.until(PROMPT)
        assert terminal.say("s").startswith("step 1  dve[1]")
        assert terminal.say("").startswith("step 2  dve[2]")
        assert terminal.say("rs").startswith("step 1")
        assert terminal.say("p src.num[0]") == "2\n"
        assert terminal.say("") == ""  # print does not repeat
        assert "command must be one that" in terminal.say("fly")
        assert "command 're' must be one of" in terminal.say("re")
        terminal.type("expl\t")
        terminal.until("explain")
        assert "NE0107" in terminal.say("")
        terminal.type("\x10")  # Ctrl-P: the line before
        terminal.until("explain")
        assert "NE0107" in terminal.say("")
        terminal.type("break EXPO\t")
        terminal.until("EXPONENTIAL")
        assert terminal.say("").startswith("breakpoint 1: EXPONENTIAL")
        terminal.type("q\n")
        assert terminal.leave() == 0


def test_control_c_stops_the_run_and_control_d_leaves(tmp_path):
    """An endless loop ends between two words; at the prompt Ctrl-C gives a new one."""
    program = tmp_path / "x.asm"
    program.write_text("NOP\nCOMPARE_BRANCH op=ALWAYS target=-64\n")
    with Terminal("debug", program) as terminal:
        terminal.until(PROMPT)
        for _ in range(2):
            terminal.type("c\n")
            terminal.until("c\n")
            time.sleep(0.3)  # the loop is on its way
            terminal.type("\x03")
            assert "interrupted\nstep " in terminal.until(PROMPT)
        # Python looks at a signal when its prompt waits for keys, so the key comes once it does.
        terminal.type("half a li")
        terminal.until("half a li")
        time.sleep(0.3)
        terminal.type("\x03")
        terminal.until(PROMPT)
        assert terminal.say("print 1") == "1\n"
        terminal.type("\x04")
        assert terminal.leave() == 0


def test_long_output_pages_on_a_terminal_only(capsys):
    """More lines than the terminal has go through the pager; a pipe gets them as they are."""
    with Terminal("debug", FLASH, rows=10) as terminal:
        terminal.until(PROMPT)
        assert "help COMMAND shows usage" in terminal.say("help")
    assert run_command(["debug", "--batch", "-c", "help", f"{ROOT}/{FLASH}"]) == 0
    assert capsys.readouterr().out.count("\n") > 30


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["-c", "c"], 0, "end: every stream has ended"),
        (["-c", "c; expect step == 6"], 0, "as expected: step == 6"),
        (["-c", "c; expect step == 5; print 7"], 1, "error: expected step == 5\n7"),
        (["-c", "print nothing; print 7"], 2, "is no name here"),
        (["-c", "quit; print 7"], 0, ""),
        (["-c", "bogus"], 2, "command must be one that `help` lists"),
        (["-c", "# a remark; ; step"], 0, "step 1"),
    ],
)
def test_batch_status(words, status, said, capsys):
    """0 is clean, 1 a failed expectation or fault, 2 a command that could not be done."""
    assert run_command(["debug", "--batch", *words, f"{ROOT}/{FLASH}"]) == status
    out = capsys.readouterr().out
    assert said in out
    assert ("\n7\n" in out) == ("7" in said)


def test_a_fault_gives_status_1_and_a_missing_file_2(tmp_path, capsys):
    """As `run` does."""
    refused = f"{ROOT}/programs/refused.toml"
    assert run_command(["debug", "--batch", "-c", "c", refused]) == 1
    capsys.readouterr()
    for words in (["-x", f"{tmp_path}/none", refused], ["-x", str(tmp_path), refused], []):
        assert run_command(["debug", "--batch", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "cannot be read" in said.err


def test_an_endless_loop_ends_at_max_steps(tmp_path, capsys):
    """As in `run`: a clear stop and status 1, with and without breakpoints, and in `goto`."""
    program = tmp_path / "x.asm"
    program.write_text("NOP\nCOMPARE_BRANCH op=ALWAYS target=-64\n")
    for commands in ("c", "break 0 if step > 9999; c", "finish"):
        words = ["debug", "--batch", "--max-steps", "1000", "-c", commands, str(program)]
        assert run_command(words) == 1
        said = capsys.readouterr().out
        assert "limit: stopped at the limit of 1000 words (--max-steps)\nstep 1000" in said


def test_dumps_and_traces_are_written_at_the_end(tmp_path, capsys):
    """Both appear whole, whatever the session did last."""
    out, trace = tmp_path / "y.npy", tmp_path / "t.jsonl"
    words = ["--dump", f"sbuf:0+0x2000:fp32[2,8]={out}", "--trace", str(trace)]
    status = run_command(
        ["debug", "--batch", *words, "-c", "c; info expectations", f"{ROOT}/programs/exp.toml"]
    )
    assert status == 0
    assert capsys.readouterr().out.count(": ok\n") == 2
    assert np.load(out)[0, 0] == 1.0
    assert json.loads(trace.read_text().splitlines()[0])["kind"] == "issue"


def test_scripts_from_files_and_pipes(tmp_path):
    """-x runs a file, then -c; without a terminal the rest comes from standard input."""
    script = tmp_path / "script"
    script.write_text("# a bug report\nbreak EXPONENTIAL\n\ncontinue\n")
    answer = neuron_emu("debug", "-x", script, "-c", "p index", FLASH, stdin=b"next\np index\n")
    assert answer.status == 0
    lines = answer.out.splitlines()
    assert lines[0] == "breakpoint 1: EXPONENTIAL, 0 hits"
    assert (lines[3], lines[-1]) == ("1", "2")


def test_every_command_speaks_json(capsys):
    """One object a line: the command with its record, or with its error."""
    lines = "break 1; c; x fp32@0xc000[1][2]; info acc; why 0x2000"
    status = run_command(["debug", "--batch", "--json", "-c", lines, f"{ROOT}/{FLASH}"])
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [entry["command"] for entry in said][:3] == ["break 1", "c", "x fp32@0xc000[1][2]"]
    assert said[1]["result"]["place"]["engine"] == "dve"
    assert said[2]["result"]["values"] == [[2.0, 3.0]]
    assert "no word wrote it" in said[4]["error"]
    assert status == 2


@pytest.fixture
def in_tmp(tmp_path, monkeypatch):
    """A directory of its own with the file that an example names."""
    monkeypatch.chdir(tmp_path)
    np.save("good.npy", np.zeros((4, 8), np.float32))
    return tmp_path


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_an_example_that_runs(name, in_tmp):
    """The example of `help` does what it says on a program of two engines; its record is JSON."""
    made = debugger()
    made.breakpoint("act:1")
    made.breakpoint("act:2")
    made.goto(3)
    found = COMMANDS[name]
    assert found.summary.endswith(".")
    assert found.example.split()[0].partition("/")[0] in found.names
    result = run_line(made, found.example)
    json.dumps(plain(result))
    assert isinstance(text_of(result), str)


def test_map_and_dump_write_whole_files(in_tmp):
    """PNG and .npy files appear whole, and nothing appears when the command is refused."""
    made = debugger()
    made.cont()
    run_line(made, "map a.png")
    run_line(made, "map word dve:1 b.png")
    run_line(made, "dump sbuf:0+0x1000:fp32[4,4] c.npy")
    assert all((in_tmp / f"{n}.png").read_bytes().startswith(b"\x89PNG") for n in "ab")
    assert np.load("c.npy")[1, 2] == -3
    for line in ("map word act:0 d.png", "map nowhere e.png", "dump sbuf:0+0:fp32[1] f.npy"):
        with pytest.raises(InputError):
            run_line(made, line)
    assert sorted(p.name for p in in_tmp.iterdir()) == ["a.png", "b.png", "c.npy", "good.npy"]


def test_texts_of_what_commands_show():
    """The main views, worked out by hand from the shared program."""
    made = debugger()
    made.goto(4)

    def show(line):
        return text_of(run_line(made, line))

    assert show("info semaphores").splitlines() == ["S[2] = 1", "S[3] = 1"]
    assert show("x fp32@0x1000[1][2] channels=4").splitlines()[1:] == [
        "       0: 0.0 -1.0",
        "       1: -1.0 -2.0",
        "       2: -2.0 -3.0",
        "       3: -3.0 -4.0",
    ]
    assert show("x/x fp32@0x5000").splitlines()[1] == "       0: 00000000?"
    assert show("info writes 1") == "step 3  act[1] ACTIVATE: sbuf:0-3+0x3000..0x300f, S[3]"
    assert show("map word dve:1").splitlines()[1:3] == [
        "  src reads 4 fp32 in sbuf partitions 0-3, bytes 0x1000..0x100f",
        "    0 1 2 3",
    ]
    assert show("diff 1").splitlines()[:3] == [
        "steps 3 to 4:",
        "  S[3]                         0 -> 1",
        "  act.index                    1 -> 2",
    ]
    assert "sbuf: 192 of" in show("map sbuf")
    assert show("info engines").splitlines()[0].startswith("=> dve[2] of 4      ready")
    assert show("print/x 255") == "0xff"
    assert show("print fp32@0x1004") == "-1.0 (0xbf800000)"
