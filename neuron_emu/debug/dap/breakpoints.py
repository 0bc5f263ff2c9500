"""Breakpoints of the protocol, kind by kind: each request replaces those of its kind."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from neuron_emu.debug.dap.sources import StreamSource, instruction_at, instruction_reference
from neuron_emu.debug.debugger import Debugger
from neuron_emu.debug.points import Point
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.isa.text import parse_integer

__all__ = ["FILTERS", "Breakpoints"]

FILTERS = (
    ("nan", "NaN produced"),
    ("nonfinite", "NaN or infinity produced"),
    ("uninitialised", "Uninitialised read"),
    ("finding", "A word that breaks a rule"),
)
_ACCESS = {"read": "read", "write": "change", "readWrite": "access"}


@define(eq=False)
class Breakpoints:
    """The points that an editor asked for, by kind."""

    debugger: Debugger
    sources: dict[Engine, StreamSource]
    by_kind: dict[str, list[Point]] = field(factory=dict)

    def reason_of(self, ids: tuple[int, ...]) -> str:
        """Return the protocol's reason for stopping at points."""
        for kind, points in self.by_kind.items():
            if any(point.number in ids for point in points):
                return {"function": "function breakpoint", "instruction": "instruction breakpoint",
                        "data": "data breakpoint", "exception": "exception"}.get(
                            kind, "breakpoint")  # fmt: skip
        return "breakpoint"

    def _clear(self, kind: str) -> None:
        for point in self.by_kind.pop(kind, []):
            if point in self.debugger.points:
                self.debugger.points.remove(point)

    def _made(self, kind: str, words: str, wanted: dict[str, Any]) -> dict[str, Any]:
        """Make one breakpoint; what is wrong with it is its message."""
        try:
            condition = _text(wanted, "condition")
            ignore = _text(wanted, "hitCondition")
            point = self.debugger.breakpoint(
                f"{words} if {condition}" if condition else words,
                ignore=parse_integer(ignore, "hit condition", 1, 1 << 30) - 1 if ignore else 0,
            )
        except InputError as error:
            return {"verified": False, "message": str(error)}
        self.by_kind.setdefault(kind, []).append(point)
        return {"verified": True, "id": point.number}

    def set_source(
        self, source: StreamSource, wanted: list[dict[str, Any]], first_line: int
    ) -> list[dict[str, Any]]:
        """Set the breakpoints of one source; lines without a word move to the next one."""
        kind = f"source {source.engine}"
        self._clear(kind)
        found = []
        for one in wanted:
            line = one.get("line")
            index = source.word_at(line + 1 - first_line) if isinstance(line, int) else None
            if index is None:
                found.append({"verified": False, "message": f"no word at or after line {line}"})
                continue
            made = self._made(kind, f"{source.engine.name.lower()}:{index}", one)
            made["line"] = source.lines[index] - 1 + first_line
            made["instructionReference"] = instruction_reference(source.engine, index)
            found.append(made)
        return found

    def set_functions(self, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Set breakpoints by opcode (`EXPONENTIAL bf16`), label or engine."""
        self._clear("function")
        return [self._made("function", _text(one, "name") or "?", one) for one in wanted]

    def set_instructions(self, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Set breakpoints by instruction reference."""
        self._clear("instruction")
        found = []
        for one in wanted:
            reference = _number(one.get("instructionReference")) + int(one.get("offset") or 0)
            at = instruction_at(reference)
            if at is None or at[1] % WORD_BYTES:
                found.append({"verified": False, "message": "no word has this address"})
                continue
            words = f"{at[0].name.lower()}:{at[1] // WORD_BYTES}"
            found.append(self._made("instruction", words, one))
        return found

    def set_exceptions(self, filters: list[str]) -> list[dict[str, Any]]:
        """Set the catchpoints of the named filters."""
        self._clear("exception")
        found: list[dict[str, Any]] = []
        for name in filters:
            try:
                point = self.debugger.catch(name)
            except InputError as error:
                found.append({"verified": False, "message": str(error)})
                continue
            self.by_kind.setdefault("exception", []).append(point)
            found.append({"verified": True, "id": point.number})
        return found

    def set_data(self, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Set watchpoints by the data ids of dataBreakpointInfo: targets as text."""
        self._clear("data")
        found: list[dict[str, Any]] = []
        for one in wanted:
            condition = _text(one, "condition")
            target = _text(one, "dataId") or "?"
            try:
                point = self.debugger.watch(
                    f"{target} if {condition}" if condition else target,
                    _ACCESS.get(str(one.get("accessType")), "change"),
                )
            except InputError as error:
                found.append({"verified": False, "message": str(error)})
                continue
            self.by_kind.setdefault("data", []).append(point)
            found.append({"verified": True, "id": point.number})
        return found


def _text(wanted: dict[str, Any], key: str) -> str | None:
    value = wanted.get(key)
    if value is None or isinstance(value, str):
        return value
    raise InputError(f"{key} must be text, not {value!r}")


def _number(value: Any) -> int:
    return parse_integer(value if isinstance(value, str) else "", "reference", 0, 1 << 40)
