"""The sequencer: what gates a word and what it signals (isa-encoding.md 2 [observed]).

Semaphores are 32-bit counters with wrap-around; thresholds are compared as signed numbers. A wait
has no side effect but that of the two THEN forms of events. An update of the READ family fires
after the reads of its word and one of the COMPLETE family after its writes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attrs import define, field, frozen

from neuron_emu.generation import Generation
from neuron_emu.isa.enums import UpdateMode, WaitMode, member

__all__ = [
    "SyncChange",
    "SyncState",
    "Update",
    "Wait",
    "missing_register",
    "updates_of",
    "waits_of",
]

_WORD_MASK = 0xFFFFFFFF
_REGISTER_FORM = 0x80
"""The bit of a mode that makes its operand a register (isa-encoding.md 2.1, 2.2)."""
_COMPARE: dict[str, tuple[str, Callable[[int, int], bool]]] = {
    "EQ": ("==", operator.eq),
    "LT": ("<", operator.lt),
    "LE": ("<=", operator.le),
    "GT": (">", operator.gt),
    "GE": (">=", operator.ge),
}
_ACTION: dict[str, Callable[[int, int], int]] = {
    "INC": lambda old, _: old + 1,
    "DEC": lambda old, _: old - 1,
    "ADD": operator.add,
    "SUB": operator.sub,
    "WR": lambda _, operand: operand,
}


@frozen
class SyncChange:
    """A new value of a semaphore (`kind` S) or of an event (`kind` E)."""

    kind: str
    index: int
    value: int

    def __str__(self) -> str:
        return f"{self.kind}[{self.index}]={self.value}"


@define
class SyncState:
    """The semaphores and one-bit events of a core."""

    semaphores: list[int]
    events: list[int] = field(factory=list)

    @classmethod
    def at_start(cls, generation: Generation) -> SyncState:
        """Return all semaphores and events at 0 (design.md 4)."""
        count = generation.num_semaphores
        return cls([0] * count, [0] * count)

    def of_kind(self, kind: str) -> list[int]:
        """Return the semaphores for S, the events for E."""
        return self.semaphores if kind == "S" else self.events


def _signed(value: int) -> int:
    return value - (1 << 32) if value & 0x80000000 else value


@frozen
class Wait:
    """One gate of a word: its mode, the semaphore or event, and the threshold or its register."""

    mode: WaitMode
    index: int
    value: int
    _compare: Callable[[int, int], bool] | None = field(init=False, repr=False)

    @_compare.default
    def _compare_of_mode(self) -> Callable[[int, int], bool] | None:
        kind, comparison, *_ = self.mode.name.split("_")
        return _COMPARE[comparison][1] if kind == "SEM" else None

    def is_met(self, sync: SyncState, registers: Sequence[int]) -> bool:
        """Tell whether the word may issue as far as this wait goes."""
        compare = self._compare
        if compare is None:
            is_set = self.mode in (WaitMode.EVT_SET, WaitMode.EVT_SET_THEN_CLEAR)
            return sync.events[self.index] == is_set
        return compare(_signed(sync.semaphores[self.index]), self.threshold(registers))

    def threshold(self, registers: Sequence[int]) -> int:
        """Return the signed number that the semaphore is compared with."""
        return _signed(_operand(self.mode, self.value, registers))

    def change(self) -> SyncChange | None:
        """Return what a wait that was met does: the two THEN forms of events flip their event."""
        if self.mode is WaitMode.EVT_SET_THEN_CLEAR:
            return SyncChange("E", self.index, 0)
        if self.mode is WaitMode.EVT_CLEAR_THEN_SET:
            return SyncChange("E", self.index, 1)
        return None

    def sentence(self, sync: SyncState, registers: Sequence[int]) -> str:
        """Say what the wait waits for and what is there instead."""
        kind, comparison, *_ = self.mode.name.split("_")
        if kind == "EVT":
            wanted, found = int(comparison == "SET"), sync.events[self.index]
            return f"waits for event {self.index} to be {wanted}, and it is {found}"
        threshold = self.threshold(registers)
        found = _signed(sync.semaphores[self.index])
        symbol = _COMPARE[comparison][0]
        return f"waits for semaphore {self.index} {symbol} {threshold}, and it is {found}"


@frozen
class Update:
    """One signal of a word: its mode, the semaphore or event, and the operand or its register."""

    mode: UpdateMode
    index: int
    value: int

    @property
    def is_after_reads(self) -> bool:
        """True in the READ family, which does not wait for the writes of its word."""
        return self.mode.name.endswith("_READ")

    def change(self, sync: SyncState, registers: Sequence[int]) -> SyncChange:
        """Return what the update makes of the state as it is now."""
        kind, action, *_ = self.mode.name.split("_")
        if kind == "EVT":
            return SyncChange("E", self.index, int(action == "SET"))
        operand = _operand(self.mode, self.value, registers)
        new = _ACTION[action](sync.semaphores[self.index], operand)
        return SyncChange("S", self.index, new & _WORD_MASK)


def _operand(mode: int, value: int, registers: Sequence[int]) -> int:
    """Return the value of a word, or of the register that it names in the register forms."""
    return registers[value] if mode & _REGISTER_FORM else value


def missing_register(signals: Iterable[Wait | Update], num_registers: int) -> str | None:
    """Return why a wait or an update cannot be done whose register does not exist.

    isa-encoding.md 7.1: registers are 0 to 63; 128 and 129, the program counter, are modelled as
    operands of instructions only.
    """
    for signal in signals:
        if signal.mode & _REGISTER_FORM and signal.value >= num_registers:
            return f"semaphore register must be 0 to {num_registers - 1}, not {signal.value}"
    return None


def waits_of(record: Any) -> tuple[Wait, ...]:
    """Return the waits of a decoded word, both of EVENT_SEMAPHORE; unknown modes wait for nothing.

    Source: isa-encoding.md 2.1 and 2.4.
    """
    found = []
    events, extended = getattr(record, "events", None), getattr(record, "extended", None)
    if events is not None:
        found.append((events.wait_mode, events.wait_idx, events.semaphore_value))
    if extended is not None:
        found.append((extended.wait_mode, extended.wait_idx, extended.wait_value))
    modes = [(member(WaitMode, code), index, value) for code, index, value in found]
    return tuple(Wait(mode, index, value) for mode, index, value in modes if mode)


def updates_of(record: Any) -> tuple[Update, ...]:
    """Return the updates of a decoded word, both of EVENT_SEMAPHORE; unknown modes do nothing.

    Source: isa-encoding.md 2.2 and 2.4.
    """
    found = []
    events, extended = getattr(record, "events", None), getattr(record, "extended", None)
    if events is not None:
        found.append((events.update_mode, events.update_idx, events.semaphore_value))
    if extended is not None:
        found.append((extended.update_mode, extended.update_idx, extended.update_value))
    modes = [(member(UpdateMode, code), index, value) for code, index, value in found]
    return tuple(Update(mode, index, value) for mode, index, value in modes if mode)
