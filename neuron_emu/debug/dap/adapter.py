"""One session of the protocol: its state, the registry of requests, and what they share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from neuron_emu.debug import probe
from neuron_emu.debug.dap.breakpoints import Breakpoints
from neuron_emu.debug.dap.sources import (
    StreamSource,
)
from neuron_emu.debug.dap.variables import Variables
from neuron_emu.debug.debugger import Debugger
from neuron_emu.debug.records import Stop, StopReason
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine

__all__ = [
    "HANDLERS",
    "Adapter",
    "Arguments",
    "Reply",
    "objects_of",
    "request",
    "source_of",
    "word_of",
    "words_of",
]

Arguments = dict[str, Any]


@frozen
class Reply:
    """The body of a response, and what to do once it is sent: run words, report a stop."""

    body: dict[str, Any] = field(factory=dict)
    then: Callable[[], None] | None = None


@define(eq=False)
class Adapter:
    """One session: the debugger when a program is launched, and what the editor was told."""

    event: Callable[..., None]
    loaded: Debugger | None = None
    breakpoints: Breakpoints | None = None
    variables: Variables | None = None
    sources: dict[Engine, StreamSource] = field(factory=dict)
    first_line: int = 1
    stops_on_entry: bool = True
    debugs: bool = True
    is_configured: bool = False
    has_launched: bool = False
    is_over: bool = False

    @property
    def debugger(self) -> Debugger:
        """The debugger; InputError before a launch."""
        if self.loaded is None:
            raise InputError("a program must be launched first")
        return self.loaded

    def interrupt(self) -> None:
        """Ask a run to end; called from the reading thread."""
        if self.loaded is not None:
            self.loaded.interrupted = True

    def engine_of(self, arguments: Arguments, key: str = "threadId") -> Engine:
        """Return the engine of a thread or frame: its number less one."""
        number = arguments.get(key)
        engines = probe.streams(self.debugger.machine)
        if not isinstance(number, int) or number - 1 not in [int(e) for e in engines]:
            raise InputError(f"{key} must be of an engine with a stream, not {number!r}")
        return Engine(number - 1)

    def moving(self, move: Callable[[], Stop]) -> None:
        """Move the machine and report where it stopped."""
        if self.variables is not None:
            self.variables.forget()
        self.report(move())

    def report(self, stop: Stop) -> None:
        """Send the event of a stop."""
        body: dict[str, Any] = {
            "reason": self._reason(stop),
            "allThreadsStopped": True,
            "threadId": int(stop.place.engine if stop.place else self.debugger.engine) + 1,
            "preserveFocusHint": False,
        }
        if stop.message:
            body["description"] = body["text"] = stop.message
        if stop.ids:
            body["hitBreakpointIds"] = list(stop.ids)
        if stop.reason == StopReason.END and not self.debugs:
            self.finished()
            return
        self.event("stopped", body)

    def _reason(self, stop: Stop) -> str:
        if stop.ids and self.breakpoints is not None:
            return self.breakpoints.reason_of(stop.ids)
        return {
            StopReason.FAULT: "exception",
            StopReason.INTERRUPT: "pause",
            StopReason.LIMIT: "pause",
            StopReason.GOTO: "goto",
            StopReason.START: "entry",
            StopReason.END: "end of program",
        }.get(stop.reason, "step")

    def finished(self) -> None:
        """Tell the editor that the program is over."""
        status = 1 if self.debugger.last_stop.reason == StopReason.FAULT else 0
        self.event("exited", {"exitCode": status})
        self.event("terminated")


HANDLERS: dict[str, Callable[[Adapter, Arguments], Reply]] = {}


def request(
    *names: str,
) -> Callable[[Callable[[Adapter, Arguments], Reply]], Callable[[Adapter, Arguments], Reply]]:
    """Register the handler of a request."""

    def register(
        handler: Callable[[Adapter, Arguments], Reply],
    ) -> Callable[[Adapter, Arguments], Reply]:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register


def words_of(arguments: Arguments, key: str) -> tuple[str, ...]:
    """Return a text or a list of texts."""
    value = arguments.get(key)
    words = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(words, list) or not all(isinstance(w, str) for w in words):
        raise InputError(f"{key} must be text or a list of texts, not {value!r}")
    return tuple(words)


def word_of(arguments: Arguments, key: str) -> str | None:
    """Return a text, None when it is not given."""
    words = words_of(arguments, key)
    return words[0] if words else None


def objects_of(arguments: Arguments, key: str) -> list[dict[str, Any]]:
    """Return a list of objects, empty when it is not given."""
    value = arguments.get(key) or []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InputError(f"{key} must be a list of objects, not {value!r}")
    return value


def source_of(adapter: Adapter, source: dict[str, Any]) -> StreamSource | None:
    """Return the stream that a Source of the protocol names."""
    reference, path = source.get("sourceReference"), source.get("path")
    for found in adapter.sources.values():
        if reference and found.path is None and reference == int(found.engine) + 1:
            return found
        if reference or found.path is None or not isinstance(path, str):
            continue
        if os.path.realpath(path) == os.path.realpath(found.path):
            return found
    return None
