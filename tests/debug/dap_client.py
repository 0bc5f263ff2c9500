"""A client of the protocol, written from its published schema, over a server in its own process.

It shares no code with the server: framing, sequence numbers and the required members of every
answer are its own. (The one client library on PyPI, dap-python 0.5.0, refuses every answer with
an empty body, `launch` first of all, so it cannot hold a session.)
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from typing import Any

from attrs import define, field

from tests.command import ROOT

__all__ = ["DapClient", "DapError"]

BREAKPOINTS = {"breakpoints": [{"verified": bool}]}
REQUIRED: dict[str, Any] = {
    "setBreakpoints": BREAKPOINTS,
    "setFunctionBreakpoints": BREAKPOINTS,
    "setInstructionBreakpoints": BREAKPOINTS,
    "setExceptionBreakpoints": BREAKPOINTS,
    "setDataBreakpoints": BREAKPOINTS,
    "dataBreakpointInfo": {"description": str},
    "threads": {"threads": [{"id": int, "name": str}]},
    "stackTrace": {"stackFrames": [{"id": int, "name": str, "line": int, "column": int}]},
    "scopes": {"scopes": [{"name": str, "variablesReference": int, "expensive": bool}]},
    "variables": {"variables": [{"name": str, "value": str, "variablesReference": int}]},
    "source": {"content": str},
    "loadedSources": {"sources": [{"name": str}]},
    "evaluate": {"result": str, "variablesReference": int},
    "exceptionInfo": {"exceptionId": str, "breakMode": str},
    "readMemory": {"address": str},
    "disassemble": {"instructions": [{"address": str, "instruction": str}]},
    "completions": {"targets": [{"label": str}]},
    "stopped": {"reason": str, "threadId": int, "allThreadsStopped": bool},
    "exited": {"exitCode": int},
    "output": {"output": str},
}
"""Required members of answers and events (debugAdapterProtocol.json 1.68)."""


class DapError(Exception):
    """An answer with `success` false; its text is the message."""


def _check(value: Any, wanted: Any, where: str) -> None:
    if isinstance(wanted, dict):
        assert isinstance(value, dict), where
        for key, inner in wanted.items():
            assert key in value, f"{where}.{key}"
            _check(value[key], inner, f"{where}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(value, list), where
        for one in value:
            _check(one, wanted[0], f"{where}[]")
    else:
        assert type(value) is wanted, f"{where} is {value!r}"


@define(eq=False)
class DapClient:
    """One session; every wait ends in an error after some seconds."""

    timeout: float = 20.0
    sent: list[str] = field(factory=list)
    log: list[tuple[str, dict[str, Any]]] = field(factory=list)
    events: list[dict[str, Any]] = field(factory=list)
    _messages: queue.Queue[Any] = field(factory=queue.Queue)
    _server_seq: int = 0
    _seq: int = 0
    process: Any = None

    def __attrs_post_init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from neuron_emu.cli import main; main()", "debug", "--dap"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> DapClient:
        return self

    def __exit__(self, kind: Any, *ignored: Any) -> None:
        if kind is None:
            self.close()
            return
        self.process.kill()
        self.process.wait()
        self._close_streams()

    def _read(self) -> None:
        data = b""
        while chunk := os.read(self.process.stdout.fileno(), 65536):
            data += chunk
            while b"\r\n\r\n" in data:
                header, _, rest = data.partition(b"\r\n\r\n")
                name, _, length = header.partition(b": ")
                assert name == b"Content-Length", header
                if len(rest) < int(length):
                    break
                self._messages.put(json.loads(rest[: int(length)]))
                data = rest[int(length) :]
        self._messages.put(None)

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        message = self._messages.get(timeout=self.timeout)
        assert message is not None, "the server has ended"
        self._server_seq += 1
        assert message["seq"] == self._server_seq
        self.log.append(("<-", message))
        return message

    def send(self, command: str, **arguments: Any) -> int:
        """Send a request without waiting for its answer; return its number."""
        self._seq += 1
        request = {"seq": self._seq, "type": "request", "command": command}
        request |= {"arguments": arguments} if arguments else {}
        self.log.append(("->", request))
        self.sent.append(command)
        body = json.dumps(request).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self._seq

    def answer(self, number: int) -> dict[str, Any]:
        """Return the body of the answer to a request; DapError when it was refused."""
        while True:
            message = self._next()
            if message["type"] == "event":
                self.events.append(message)
                continue
            assert message["type"] == "response"
            assert message["request_seq"] == number
            if not message["success"]:
                assert message["body"]["error"]["format"]
                raise DapError(message["message"])
            _check(message["body"], REQUIRED.get(message["command"], {}), message["command"])
            return message["body"]

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the body of its answer."""
        return self.answer(self.send(command, **arguments))

    def event(self, name: str) -> dict[str, Any]:
        """Return the body of the next event of a name, waiting for it."""
        while True:
            for number, event in enumerate(self.events):
                if event["event"] == name:
                    _check(event["body"], REQUIRED.get(name, {}), name)
                    return self.events.pop(number)["body"]
            message = self._next()
            assert message["type"] == "event", message
            self.events.append(message)

    def launch(self, program: str, *breakpoints: tuple[str, dict[str, Any]], **more: Any) -> Any:
        """Initialize, launch, set breakpoints, and return the first stop."""
        self.ask("initialize", adapterID="neuron-emu", linesStartAt1=True)
        self.ask("launch", program=program, **more)
        self.event("initialized")
        for command, arguments in breakpoints:
            self.ask(command, **arguments)
        self.ask("configurationDone")
        return self.event("stopped")

    def move(self, command: str, thread: int = 4) -> dict[str, Any]:
        """Send a request that moves the machine and return the stop that follows."""
        self.ask(command, threadId=thread)
        return self.event("stopped")

    def close(self) -> None:
        """Disconnect; the server must leave with status 0 and without a word on stderr."""
        if self.process.poll() is None:
            self.ask("disconnect")
        self.process.wait(timeout=self.timeout)
        assert self.process.stderr.read() == b""
        assert self.process.returncode == 0
        self._close_streams()

    def _close_streams(self) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
