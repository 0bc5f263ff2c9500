"""Accumulator reads 0x9B and 0x24: each engine drains its own registers (design.md 2).

Sources: dve-tensor-scalar.md 7.1, activation-tables.md 2.5 and 3.3. The registers stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define

from neuron_emu.engines.core import Effects, EngineState, Operands, Problem, registers_of
from neuron_emu.isa.families.accumulator_read import AccumulatorRead
from neuron_emu.memory import Operand
from neuron_emu.numerics import from_float32

__all__ = ["PreparedAccumulatorRead", "prepare"]


@define(eq=False)
class PreparedAccumulatorRead:
    """One D1_RD word with its destination."""

    word: AccumulatorRead
    state: EngineState
    destination: Operand
    dtype: Any
    uses_accumulator: int
    registers: tuple[int, ...]
    is_reusable: bool = True

    def unwritten_reads(self) -> list[int]:
        """Return nothing: no memory is read."""
        return []

    def operands(self) -> Operands:
        """Return what is written; the accumulator is no memory."""
        return Operands(written=self.dtype)

    def execute(self) -> Effects:
        """Convert the accumulator, negated if the word says so; a NaN keeps its sign."""
        state = self.state
        values = state.accumulator.values[: self.word.num_active_channels, None]
        if self.word.negated:
            values = np.where(np.isnan(values), values, -values)
        bits = from_float32(values, self.dtype, state.formats, random=state.random)
        return Effects(((self.destination, bits.copy()),))

    def stations(self, effects: Effects) -> list[tuple[str, dict[str, Any]]]:
        """Return the write."""
        (_, bits), *_ = effects.writes
        detail = {"dtype": self.dtype.word, "bits": f"{bits[0, 0]:#x}", "elements": len(bits)}
        return [("write", detail)]


def prepare(word: AccumulatorRead, state: EngineState) -> PreparedAccumulatorRead | Problem:
    """Make an accumulator read ready: resolve its destination."""
    dtype = state.dtype(word.dtype)
    if isinstance(dtype, Problem):
        return dtype
    destination = state.operand(word.dst, dtype, word.num_active_channels)
    if isinstance(destination, Problem):
        return destination
    if destination.num_elements != 1:
        return Problem(
            "address", f"dst must have one element in a lane, not {destination.num_elements}"
        )
    return PreparedAccumulatorRead(
        word, state, destination, dtype, word.num_active_channels, registers_of(word.dst)
    )
