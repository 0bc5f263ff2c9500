"""Control words and the table load: what they do to the engine that executes them.

Sources: activation-tables.md 2.4 and 9 (0x23), isa-encoding.md 8.3, 8.4 and 10 (ends of a stream).
In-order execution makes DRAIN and INSTRUCTION_FLUSH complete at once, and NOTIFY has no reader.
"""

from __future__ import annotations

from typing import Any

from attrs import define

from neuron_emu.engines.core import Effects, EngineState, Problem
from neuron_emu.isa.families.control import HALT, Control, PseudoInstruction, PseudoKind

__all__ = ["PreparedEffects", "prepare_control", "prepare_pseudo", "prepare_table_load"]


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

    def execute(self) -> Effects:
        """Return the effects."""
        return self.effects

    def stations(self, effects: Effects) -> list[tuple[str, dict[str, Any]]]:
        """Return the one thing that happened."""
        return [self.station]


def prepare_control(word: Control, state: EngineState) -> PreparedEffects:
    """Make NOP, DRAIN, INSTRUCTION_FLUSH, NOTIFY or HALT ready."""
    ends = word.header.opcode == HALT
    return PreparedEffects(Effects(ends=ends), ("control", {"ends": ends}))


def prepare_pseudo(word: PseudoInstruction, state: EngineState) -> PreparedEffects | Problem:
    """Make EXIT ready; other marks are resolved by the loader and never executed."""
    if word.kind != PseudoKind.EXIT:
        return Problem("no_model", f"PSEUDO_INST kind {word.kind} is resolved by the loader")
    return PreparedEffects(Effects(ends=True), ("control", {"ends": True}))


def prepare_table_load(word: Control, state: EngineState) -> PreparedEffects | Problem:
    """Make ACTIVATION_TABLE_LOAD ready: it installs set `act_tbl_sel`, the accumulator stays."""
    tables = state.library.install(word.act_tbl_sel)
    if tables is None:
        return Problem("tables", f"act_tbl_sel must name a function set, not {word.act_tbl_sel}")
    station = ("tables", {"set": tables.set.name, "index": tables.set.index})
    return PreparedEffects(Effects(tables=tables), station)
