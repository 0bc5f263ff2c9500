"""Control words and the table load: what they do to the engine that executes them.

Sources: activation-tables.md 2.4 and 9 (0x23), isa-encoding.md 2.4, 8.3, 8.4, 9 and 10. Execution
in order makes DRAIN and INSTRUCTION_FLUSH complete at once, NOTIFY has no reader, and a prefetch
hint changes no result. Waits and updates are the sequencer's, so EVENT_SEMAPHORE does nothing more.
"""

from __future__ import annotations

from typing import Any

from attrs import define

from neuron_emu.engines.core import Effects, EngineState, Operands, Problem
from neuron_emu.engines.sequencer import SyncChange
from neuron_emu.isa.families.control import HALT, Control, PseudoInstruction, PseudoKind
from neuron_emu.isa.families.event_semaphore import ClearMode, RangeClear
from neuron_emu.isa.opcodes import OPCODES, opcode_name

__all__ = [
    "PreparedEffects",
    "prepare_control",
    "prepare_loader_mark",
    "prepare_pseudo",
    "prepare_range_clear",
    "prepare_table_load",
    "prepare_unpublished",
]


@define(eq=False)
class PreparedEffects:
    """A word whose effects never change: it reads nothing."""

    effects: Effects
    station: tuple[str, dict[str, Any]]
    uses_accumulator: int = 0
    registers: tuple[int, ...] = ()
    is_reusable: bool = True

    def unwritten_reads(self) -> list[int]:
        """Return nothing: no memory is read."""
        return []

    def operands(self) -> Operands:
        """Return nothing: no memory is read or written."""
        return Operands()

    def execute(self) -> Effects:
        """Return the effects."""
        return self.effects

    def stations(self, effects: Effects) -> list[tuple[str, dict[str, Any]]]:
        """Return the one thing that happened."""
        return [self.station]


def prepare_control(word: Any, state: EngineState) -> PreparedEffects:
    """Make a word ready that does nothing but wait and update; HALT also ends the stream."""
    ends = word.header.opcode == HALT
    return PreparedEffects(Effects(ends=ends), ("control", {"ends": ends}))


def prepare_pseudo(word: PseudoInstruction, state: EngineState) -> PreparedEffects | Problem:
    """Make EXIT ready; other marks are resolved by the loader and never executed."""
    if word.kind != PseudoKind.EXIT:
        return Problem("no_model", f"PSEUDO_INST kind {word.kind} is resolved by the loader")
    return PreparedEffects(Effects(ends=True), ("control", {"ends": True}))


def prepare_loader_mark(word: Any, state: EngineState) -> Problem:
    """Refuse a pseudo word: a loader replaces it before anything executes."""
    opcode = word.header.opcode
    return Problem(
        "no_model", f"{opcode_name(opcode)} (opcode {opcode:#04x}) is resolved by the loader"
    )


def prepare_unpublished(word: Any, state: EngineState) -> Problem:
    """Refuse a word whose fields no page gives."""
    opcode = word.header.opcode
    row = OPCODES[opcode]
    struct = f" of {row.struct}" if row.struct != "?" else ""
    return Problem(
        "no_model",
        f"{row.name} (opcode {opcode:#04x}) is not executed: the layout{struct} is not published",
    )


def prepare_table_load(word: Control, state: EngineState) -> PreparedEffects | Problem:
    """Make ACTIVATION_TABLE_LOAD ready: it installs set `act_tbl_sel`, the accumulator stays."""
    tables = state.library.install(word.act_tbl_sel)
    if tables is None:
        return Problem("tables", f"act_tbl_sel must name a function set, not {word.act_tbl_sel}")
    station = ("tables", {"set": tables.set.name, "index": tables.set.index})
    return PreparedEffects(Effects(tables=tables), station)


def prepare_range_clear(word: RangeClear, state: EngineState) -> PreparedEffects | Problem:
    """Make EVENT_SEMAPHORE_RANGE_CLEAR ready; policy `range_clear` says what it clears."""
    if word.mode == ClearMode.RANGE:
        numbers = list(range(word.first, word.last + 1))
    elif word.mode == ClearMode.MASK:
        mask = int.from_bytes(word.mask, "little")
        numbers = [n for n in range(8 * len(word.mask)) if mask >> n & 1]
    else:
        return Problem("no_model", f"clear mode {word.mode} is not published")
    kinds = {"both": "SE", "semaphores": "S", "events": "E"}[state.policy.range_clear]
    changes = tuple(SyncChange(kind, number, 0) for kind in kinds for number in numbers)
    station = ("control", {"cleared": len(numbers), "kinds": kinds})
    return PreparedEffects(Effects(sync=changes), station)
