"""The sequencer: gates a word on its wait and fires its update (isa-encoding.md 2 [observed]).

Semaphores are 32-bit counters with wrap-around; thresholds are compared as signed numbers. An
update of the READ family fires after the reads and one of the COMPLETE family after the write; a
word that runs whole makes both moments one.
"""

from __future__ import annotations

from typing import Any

from attrs import define, field

from neuron_emu.generation import Generation
from neuron_emu.isa.enums import UpdateMode, WaitMode, member
from neuron_emu.isa.records import Events

__all__ = ["SyncState", "apply_update", "apply_wait", "is_ready", "wait_sentence"]

_WORD_MASK = 0xFFFFFFFF
_COMPARE: dict[str, Any] = {
    "EQ": lambda a, b: a == b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}
_SYMBOL = {"EQ": "==", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


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


def _signed(value: int) -> int:
    return value - (1 << 32) if value & 0x80000000 else value


def _operand(mode_name: str, events: Events, registers: list[int]) -> int:
    if "_REG" in mode_name:
        return registers[events.semaphore_value % len(registers)]
    return events.semaphore_value


def is_ready(events: Events, sync: SyncState, registers: list[int]) -> bool:
    """Tell whether the wait of a word is satisfied. An unknown mode waits for nothing."""
    mode = member(WaitMode, events.wait_mode)
    if mode is None or mode is WaitMode.NONE:
        return True
    kind, *rest = mode.name.split("_")
    if kind == "EVT":
        return sync.events[events.wait_idx] == int(rest[0] == "SET")
    threshold = _operand(mode.name, events, registers)
    value = sync.semaphores[events.wait_idx]
    return bool(_COMPARE[rest[0]](_signed(value), _signed(threshold)))


def apply_wait(events: Events, sync: SyncState) -> None:
    """Do what a satisfied wait does: the two THEN forms of events flip their event."""
    if events.wait_mode == WaitMode.EVT_SET_THEN_CLEAR:
        sync.events[events.wait_idx] = 0
    elif events.wait_mode == WaitMode.EVT_CLEAR_THEN_SET:
        sync.events[events.wait_idx] = 1


def apply_update(events: Events, sync: SyncState, registers: list[int]) -> str | None:
    """Do the update of a word; return what changed, or None when there is none."""
    mode = member(UpdateMode, events.update_mode)
    if mode is None or mode is UpdateMode.NONE:
        return None
    kind, action, *_ = mode.name.split("_")
    index = events.update_idx
    if kind == "EVT":
        sync.events[index] = int(action == "SET")
        return f"E[{index}]={sync.events[index]}"
    operand = _operand(mode.name, events, registers)
    old = sync.semaphores[index]
    new = {
        "INC": old + 1,
        "DEC": old - 1,
        "ADD": old + operand,
        "SUB": old - operand,
        "WR": operand,
    }[action]
    sync.semaphores[index] = new & _WORD_MASK
    return f"S[{index}]={sync.semaphores[index]}"


def wait_sentence(events: Events, sync: SyncState, registers: list[int]) -> str:
    """Say what an unsatisfied wait waits for and what is there instead."""
    mode = WaitMode(events.wait_mode)
    kind, comparison, *_ = mode.name.split("_")
    index = events.wait_idx
    if kind == "EVT":
        wanted = int(comparison == "SET")
        return f"waits for event {index} to be {wanted}, and it is {sync.events[index]}"
    threshold = _signed(_operand(mode.name, events, registers))
    value = _signed(sync.semaphores[index])
    return f"waits for semaphore {index} {_SYMBOL[comparison]} {threshold}, and it is {value}"
