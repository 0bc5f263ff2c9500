"""The server: reads messages in a thread, answers them in order, and reports stops.

A run occupies the answering thread; a `pause`, `terminate` or `disconnect` that comes meanwhile
sets the debugger's flag, which ends the run between two words. Nothing that a client sends ends
the server but `disconnect` and the end of its input.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import IO, Any

from attrs import define, field

from neuron_emu.debug.dap import inspection, session
from neuron_emu.debug.dap.adapter import HANDLERS, Adapter, Reply
from neuron_emu.debug.dap.framing import MalformedError, read_message, write_message
from neuron_emu.errors import InputError, NeuronEmuError

__all__ = ["inspection", "serve", "session"]

_INTERRUPTING = ("pause", "terminate", "disconnect", "restart")


@define(eq=False)
class _Wire:
    """The output with its sequence numbers."""

    stream: IO[bytes]
    sequence: int = 0
    is_open: bool = True

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; a client that has gone ends the session at the next read."""
        self.sequence += 1
        if not self.is_open:
            return
        try:
            write_message(self.stream, {"seq": self.sequence, **message})
        except (BrokenPipeError, ValueError):
            self.is_open = False

    def event(self, name: str, body: dict[str, Any] | None = None) -> None:
        """Send an event."""
        self.send({"type": "event", "event": name, "body": body or {}})


@define(eq=False)
class _Reader:
    """The thread that reads, so that a run can be interrupted."""

    stream: IO[bytes]
    adapter: Adapter
    messages: queue.Queue[dict[str, Any] | MalformedError | None] = field(factory=queue.Queue)

    def run(self) -> None:
        while True:
            message: dict[str, Any] | MalformedError | None
            try:
                message = read_message(self.stream)
            except MalformedError as error:
                message = error
            except (OSError, ValueError):
                message = None
            if message is None or (
                isinstance(message, dict) and message.get("command") in _INTERRUPTING
            ):
                self.adapter.interrupt()
            self.messages.put(message)
            # After a disconnect nothing more is read: a thread that waits in a read of standard
            # input cannot be ended with the process.
            if message is None or (
                isinstance(message, dict) and message.get("command") == "disconnect"
            ):
                return


def serve(source: IO[bytes], sink: IO[bytes]) -> int:
    """Serve one session on two streams; return the exit status, 0."""
    wire = _Wire(sink)
    adapter = Adapter(wire.event)
    reader = _Reader(source, adapter)
    threading.Thread(target=reader.run, daemon=True).start()
    while not adapter.is_over:
        message = reader.messages.get()
        if message is None:
            break
        if isinstance(message, MalformedError):
            _tell(wire, str(message))
        elif message.get("type") == "request":
            _answer(adapter, wire, message)
        elif message.get("type") != "response":
            _tell(wire, f"type must be request, not {message.get('type')!r}")
    return 0


def _tell(wire: _Wire, sentence: str) -> None:
    wire.event("output", {"category": "stderr", "output": f"neuron-emu: {sentence}\n"})


def _answer(adapter: Adapter, wire: _Wire, request: dict[str, Any]) -> None:
    command, number = request.get("command"), request.get("seq")
    if not isinstance(command, str) or not isinstance(number, int):
        _tell(wire, "a request must have a seq and a command")
        return
    response = {"type": "response", "request_seq": number, "command": command}
    try:
        reply = _reply(adapter, command, request.get("arguments"))
    except NeuronEmuError as error:
        body = {"error": {"id": 1, "format": _escaped(str(error)), "showUser": True}}
        wire.send({**response, "success": False, "message": str(error), "body": body})
        return
    wire.send({**response, "success": True, "body": reply.body})
    if reply.then is not None:
        _then(wire, reply.then)


def _reply(adapter: Adapter, command: str, arguments: Any) -> Reply:
    handler = HANDLERS.get(command)
    if handler is None:
        raise InputError(f"request {command!r} is not supported")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise InputError(f"arguments must be an object, not {arguments!r}")
    try:
        return handler(adapter, arguments)
    except NeuronEmuError:
        raise
    except Exception as error:  # an editor must not lose its session to one bad request
        raise InputError(
            f"{command} failed: {type(error).__name__}: {error} (a defect, or arguments of a"
            " shape that the protocol does not have)"
        ) from error


def _then(wire: _Wire, action: Callable[[], None]) -> None:
    try:
        action()
    except Exception as error:  # as above: told, and the session goes on
        _tell(wire, f"{type(error).__name__}: {error}")


def _escaped(text: str) -> str:
    """Keep braces from being taken as places of variables."""
    return text.replace("{", "(").replace("}", ")")
