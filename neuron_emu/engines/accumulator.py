"""The accumulator of one engine: one fp32 register per lane beside a flag.

Sources: dve-tensor-scalar.md 7, activation-tables.md 3.3, design.md 2 (the undefined flag).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from attrs import define, field

from neuron_emu.generation import Generation
from neuron_emu.isa.enums import AccumulatorCommand
from neuron_emu.policy import Policy

__all__ = ["CANONICAL_NAN", "Accumulator", "after_accumulating", "after_idle", "start_values"]

CANONICAL_NAN = np.uint32(0x7FC00000).view(np.float32)
Float32s = npt.NDArray[np.float32]


@define
class Accumulator:
    """Values float32[lanes] and `undefined` bool[lanes]; 0 and undefined at power-on."""

    values: Float32s
    undefined: npt.NDArray[np.bool_]
    warned: bool = field(default=False)

    @classmethod
    def at_power_on(cls, generation: Generation) -> Accumulator:
        """Return the state after power-on: the value 0 [unknown], flagged undefined."""
        lanes = generation.num_channels
        return cls(np.zeros(lanes, np.float32), np.ones(lanes, np.bool_))

    def copy(self) -> Accumulator:
        """Return an independent copy."""
        return Accumulator(self.values.copy(), self.undefined.copy(), self.warned)

    def first_use_of_undefined(self, channels: int) -> int | None:
        """Return the first undefined lane below `channels`, once; None after that warning."""
        if self.warned or not self.undefined[:channels].any():
            return None
        return int(self.undefined[:channels].argmax())


def start_values(
    state: Accumulator, command: int, channels: int, identity: float, seed: Float32s | None
) -> Float32s:
    """Return what an accumulating word starts from, float32[channels].

    ACCUMULATE goes on, ZERO_ACCUMULATE takes the operation's `identity`, LOAD_ACCUMULATE the
    `seed`, float32[channels] or [1] (dve-tensor-scalar.md 7).
    """
    if command == AccumulatorCommand.ACCUMULATE:
        return state.values[:channels].copy()
    start = np.full(channels, identity, np.float32)
    if command == AccumulatorCommand.LOAD_ACCUMULATE and seed is not None:
        start[...] = seed
    return start


def after_accumulating(
    state: Accumulator, command: int, channels: int, values: Float32s
) -> Accumulator:
    """Return the state with new `values`, float32[channels]; lanes past the active ones stay.

    What was undefined becomes defined, unless the word only went on from it.
    """
    after = state.copy()
    after.values[:channels] = values
    if command != AccumulatorCommand.ACCUMULATE:
        after.undefined[:channels] = False
    return after


def after_idle(state: Accumulator, channels: int, policy: Policy) -> Accumulator | None:
    """Return the state after an accumulating opcode of the DVE under IDLE; None if unchanged.

    The active lanes are undefined: their value is kept, or becomes NaN, by policy `acc_idle`.
    """
    if policy.acc_idle == "keep" and np.count_nonzero(state.undefined[:channels]) == channels:
        return None
    after = state.copy()
    after.undefined[:channels], after.warned = True, False
    if policy.acc_idle == "nan":
        after.values[:channels] = CANONICAL_NAN
    return after
