"""The protocol server, spoken to by a client in another process."""

from __future__ import annotations

import base64
import struct

import pytest

from tests.command import ROOT
from tests.debug.dap_client import DapClient, DapError

DVE = 4  # threads are engines, numbered from 1
ENDLESS = "NOP\nCOMPARE_BRANCH op=ALWAYS target=-64\n"


def test_a_session_from_launch_to_disconnect():
    """Entry, breakpoints of each kind, frames, scopes, variables, expressions, both ways."""
    with DapClient() as client:
        client.ask("initialize", adapterID="neuron-emu")
        client.ask("launch", program="programs/flash.toml")
        client.event("initialized")
        made = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "EXPONENTIAL bf16"}])
        assert made["breakpoints"][0]["verified"]
        client.ask("setExceptionBreakpoints", filters=["nan", "finding"])
        client.ask("configurationDone")
        assert client.event("stopped")["reason"] == "entry"
        assert client.ask("threads")["threads"] == [{"id": DVE, "name": "dve"}]

        stop = client.move("continue")
        assert stop["reason"] == "function breakpoint"
        assert stop["hitBreakpointIds"] == [made["breakpoints"][0]["id"]]
        (frame,) = client.ask("stackTrace", threadId=DVE)["stackFrames"]
        assert frame["name"].startswith("dve[1] EXPONENTIAL")
        scopes = client.ask("scopes", frameId=frame["id"])["scopes"]
        assert [s["name"] for s in scopes] == [
            *("Fields", "Registers", "Accumulators", "Semaphores", "Memory"),
        ]
        trees = {
            s["name"]: client.ask("variables", variablesReference=s["variablesReference"])
            for s in scopes
        }
        fields = {v["name"]: v["value"] for v in trees["Fields"]["variables"]}
        assert fields["num_active_channels"] == "64 (0x40)"
        assert len(trees["Registers"]["variables"]) == 64
        assert len(trees["Accumulators"]["variables"]) == 128
        (src, imm0, dst) = trees["Memory"]["variables"]
        assert (src["name"], src["value"], src["memoryReference"]) == (
            *("src", "fp32[64,2]", "0x2000000"),
        )
        lanes = client.ask("variables", variablesReference=src["variablesReference"], count=2)
        assert [v["value"] for v in lanes["variables"]] == ["1.0 2.0", "1.0 2.0"]
        lane = lanes["variables"][0]["variablesReference"]
        elements = client.ask("variables", variablesReference=lane)["variables"]
        assert [e["value"] for e in elements] == ["1.0 (0x3f800000)", "2.0 (0x40000000)"]
        assert (imm0["value"], dst["value"]) == ("fp32[64,1]", "bf16[64,2]")

        assert client.ask("evaluate", expression="src.num[0] + 1", frameId=DVE)["result"] == "3"
        stop = client.move("next")
        with pytest.raises(DapError, match="must be of this stop"):
            client.ask("variables", variablesReference=lane)
        assert stop["reason"] == "step"
        told = client.ask("evaluate", expression="who 0x2000", context="repl")
        assert "written at step 1" in told["result"]
        tile = client.ask("evaluate", expression="bf16@0x2000[1][2] channels=2", context="watch")
        assert tile["variablesReference"] > 0
        assert client.move("stepBack")["reason"] == "step"
        assert client.ask("evaluate", expression="step")["result"] == "1"
        assert client.move("stepIn")["reason"] == "step"
        assert client.move("reverseContinue")["reason"] == "function breakpoint"
        assert client.move("reverseContinue")["reason"] == "entry"


def test_the_listing_is_the_source_and_holds_breakpoints():
    """A stream that came from a .asm file is shown in that file; lines move to the next word."""
    path = str(ROOT / "programs" / "flash.asm")
    with DapClient() as client:
        wanted = {"source": {"path": path}, "breakpoints": [{"line": 5}, {"line": 99}]}
        stop = client.launch("programs/flash.toml", ("setBreakpoints", wanted), stopOnEntry=False)
        assert stop["reason"] == "breakpoint"
        (frame,) = client.ask("stackTrace", threadId=DVE)["stackFrames"]
        assert (frame["source"]["path"], frame["line"]) == (path, 5)
        text = client.ask("source", source={"path": path}, sourceReference=0)["content"]
        assert text.splitlines()[4].startswith("DVE_READ_ACCUMULATOR dst=fp32@0xd000")
        moved = client.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": 1}])
        assert moved["breakpoints"][0]["line"] == 3
        other = client.ask("setBreakpoints", source={"path": "/x.asm"}, breakpoints=[{"line": 1}])
        assert not other["breakpoints"][0]["verified"]


def test_raw_words_are_shown_as_disassembly(tmp_path):
    """A stream without a text is shown as its disassembly under a source reference."""
    stream = tmp_path / "x.bin"
    stream.write_bytes((bytes.fromhex("a4100000") + bytes(60)) * 3)
    with DapClient() as client:
        client.launch(str(stream))
        (source,) = client.ask("loadedSources")["sources"]
        assert client.ask("source", **source)["content"] == "NOP\nNOP\nNOP\n"
        made = client.ask(
            "setBreakpoints", source=source, breakpoints=[{"line": 3, "condition": "step == 2"}]
        )
        (point,) = made["breakpoints"]
        assert (point["verified"], point["line"]) == (True, 3)
        assert client.move("continue")["reason"] == "breakpoint"
        assert client.ask("evaluate", expression="index")["result"] == "2"


def test_instructions_and_memory():
    """disassemble answers exactly what was asked for; readMemory tells what it could not read."""
    with DapClient() as client:
        client.launch("programs/flash.toml")
        (frame,) = client.ask("stackTrace", threadId=DVE)["stackFrames"]
        reference = frame["instructionPointerReference"]
        found = client.ask(
            "disassemble", memoryReference=reference, instructionOffset=-1, instructionCount=3
        )["instructions"]
        assert [i.get("presentationHint") for i in found] == ["invalid", None, None]
        assert found[1]["instruction"] == "ACT_TABLE_LOAD table_sel=0"
        assert found[1]["instructionBytes"].startswith("23100000 00000000")
        made = client.ask(
            "setInstructionBreakpoints",
            breakpoints=[
                {"instructionReference": found[2]["address"]},
                {"instructionReference": "5"},
            ],
        )["breakpoints"]
        assert [b["verified"] for b in made] == [True, False]
        assert client.move("continue")["reason"] == "instruction breakpoint"

        memory = client.ask("readMemory", memoryReference="0xc000", count=8)
        assert struct.unpack("<2f", base64.b64decode(memory["data"])) == (2.0, 3.0)
        edge = client.ask("readMemory", memoryReference="0x3fffc", count=8)
        assert (len(base64.b64decode(edge["data"])), edge["unreadableBytes"]) == (4, 4)
        nowhere = client.ask("readMemory", memoryReference="0x3ffffff", offset=1, count=4)
        assert nowhere["unreadableBytes"] == 4


def test_data_breakpoints_and_exceptions(tmp_path):
    """A watched region stops on its change; a fault is an exception with its name."""
    program = tmp_path / "x.asm"
    program.write_text("NOP S[4]++@complete\nNOP\nNOP S[5]>=1\n")
    with DapClient() as client:
        client.launch(str(program))
        info = client.ask("dataBreakpointInfo", name="S[4]")
        assert client.ask("dataBreakpointInfo", name="Fields")["dataId"] is None
        made = client.ask("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"]}])
        assert made["breakpoints"][0]["verified"]
        stop = client.move("continue")
        assert (stop["reason"], stop["hitBreakpointIds"]) == ("data breakpoint", [1])
        stop = client.move("continue")
        assert stop["reason"] == "exception"
        info = client.ask("exceptionInfo", threadId=DVE)
        assert (info["exceptionId"], info["breakMode"]) == ("deadlock", "always")
        assert client.move("stepBack")["reason"] == "step"
        client.ask("restart")
        assert client.event("stopped")["reason"] == "goto"


def test_the_end_can_be_left_backwards_and_then_terminates():
    """The end is a stop; going on from there ends the program with its status."""
    with DapClient() as client:
        client.launch("programs/exp.toml")
        assert client.move("continue")["reason"] == "end of program"
        assert client.move("stepBack")["reason"] == "step"
        assert client.move("stepOut")["reason"] == "end of program"
        client.ask("continue", threadId=DVE)
        assert client.event("exited") == {"exitCode": 0}
        client.event("terminated")


def test_pause_interrupts_a_run(tmp_path):
    """An endless loop answers a pause between two words, and goes on afterwards."""
    program = tmp_path / "x.asm"
    program.write_text(ENDLESS)
    with DapClient() as client:
        client.launch(str(program))
        for _ in range(2):
            client.ask("continue", threadId=DVE)
            pause = client.send("pause", threadId=DVE)
            assert client.event("stopped")["reason"] == "pause"
            client.answer(pause)
        client.ask("continue", threadId=DVE)


def test_commands_of_the_prompt_work_in_the_console():
    """A command that moves the machine reports its stop as well."""
    with DapClient() as client:
        client.launch("programs/exp.toml")
        client.ask("evaluate", expression="until 1", context="repl")
        assert client.event("stopped")["reason"] == "step"
        why = client.ask("evaluate", expression="help why", context="repl")
        assert "For example: why" in why["result"]
        labels = [
            t["label"] for t in client.ask("completions", text="reverse", column=8)["targets"]
        ]
        assert labels == ["reverse-step", "reverse-next", "reverse-continue"]


def test_refused_before_a_launch():
    """A request that cannot be done is answered with a sentence, and the session goes on."""
    refusals = (
        ("threads", {}, "must be launched first"),
        ("setBreakpoints", {"source": {}}, "must be launched before"),
        ("launch", {}, "launch must name a program"),
        ("launch", {"program": "/none.asm"}, "cannot be read"),
        ("launch", {"program": 5}, "must be text or a list"),
        ("launch", {"program": "programs/exp.toml", "engine": "gpu"}, "engine must be one of"),
        ("launch", {"program": "programs/exp.toml", "policy": ["x"]}, "policy must be KEY=VALUE"),
        ("launch", {"program": "x.asm", "cwd": "/none"}, "cwd cannot be entered"),
        ("attach", {}, "nothing to attach to"),
        ("flyAway", {}, "is not supported"),
    )
    with DapClient() as client:
        for command, arguments, said in refusals:
            with pytest.raises(DapError, match=said):
                client.ask(command, **arguments)
        assert client.ask("initialize", adapterID="x")["supportsStepBack"]


def test_refused_after_a_launch():
    """Wrong references, threads, places and shapes of arguments."""
    refusals = (
        ("stackTrace", {"threadId": 77}, "threadId must be of an engine"),
        ("scopes", {"frameId": "x"}, "frameId must be"),
        ("variables", {"variablesReference": 10_000}, "must be of this stop"),
        ("evaluate", {"expression": "1 +"}, "a value, not the end"),
        ("readMemory", {"memoryReference": "x", "count": 4}, "memoryReference must be"),
        ("readMemory", {"memoryReference": "0", "count": -1}, "count must be"),
        ("disassemble", {"memoryReference": "0x10", "instructionCount": 1}, "must be of a word"),
        ("setFunctionBreakpoints", {"breakpoints": 5}, "must be a list of objects"),
        ("setFunctionBreakpoints", {"breakpoints": [{"name": 5}]}, "name must be text"),
        ("readMemory", {"memoryReference": "0", "count": "many"}, "readMemory failed"),
        ("source", {"sourceReference": 99}, "no stream of the program"),
    )
    with DapClient() as client:
        client.launch("programs/exp.toml")
        for command, arguments, said in refusals:
            with pytest.raises(DapError, match=said):
                client.ask(command, **arguments)
        unverified = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "NOWHERE"}])
        assert "location must be" in unverified["breakpoints"][0]["message"]
        assert client.move("stepIn")["reason"] == "step"


def _framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


MALFORMED = (
    b"hello\r\n\r\n",
    b"Content-Length: x\r\n\r\n",
    b"Content-Length: 99999999999\r\n\r\n",
    _framed(b"{,}"),
    _framed(b"[]"),
    _framed(b"{}"),
    _framed(b"[" * 100_000),
    _framed(b'{"type":"request"}'),
    _framed(b"\xff\xfe"),
    _framed(b'{"type":"request","seq":1,"command":[]}'),
    _framed(b'{"type":"request","seq":"one","command":"threads"}'),
)


def test_malformed_messages_are_told_and_passed_over():
    """The server says what was wrong in an output event and answers the next request."""
    with DapClient() as client:
        for data in MALFORMED:
            client.write(data)
            told = client.event("output")
            assert told["category"] == "stderr"
            assert told["output"].startswith("neuron-emu: ")
        assert client.ask("initialize", adapterID="x")["supportsReadMemoryRequest"]
        client.write(_framed(b'{"type":"request","seq":9,"command":"threads","arguments":[1]}'))
        with pytest.raises(DapError, match="arguments must be an object"):
            client.answer(9)


def test_the_end_of_the_input_ends_the_server():
    """A client that goes away without a word leaves no process behind."""
    client = DapClient()
    client.ask("initialize", adapterID="x")
    client.process.stdin.close()
    assert client.process.wait(timeout=20) == 0
    client.process.stdout.close()
    client.process.stderr.close()
