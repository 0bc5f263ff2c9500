"""The accumulator of one engine: one fp32 register per lane beside a flag.

Sources: dve-tensor-scalar.md 7, activation-tables.md 3.3, design.md 2 (the undefined flag).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from attrs import define, field

from neuron_emu.generation import Generation
from neuron_emu.isa.enums import AccumulatorCommand
from neuron_emu.numerics import accumulate
from neuron_emu.policy import Policy

__all__ = ["CANONICAL_NAN", "Accumulator", "accumulated"]

CANONICAL_NAN = np.uint32(0x7FC00000).view(np.float32)


@define
class Accumulator:
    """Values float32[lanes] and `undefined` bool[lanes]; 0 and undefined at power-on."""

    values: npt.NDArray[np.float32]
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


def accumulated(
    state: Accumulator,
    command: int,
    channels: int,
    values: npt.NDArray[np.float32] | None,
    seed: npt.NDArray[np.float32] | None,
    policy: Policy,
) -> Accumulator | None:
    """Return the state after an accumulating DVE word whose operation is add; None if unchanged.

    `values` is float32[channels, n] in stream order, None under IDLE; `seed` is imm1 under
    LOAD_ACCUMULATE, float32[channels] or [1]. Lanes past the active channels stay. After IDLE the
    active lanes are undefined: their value is kept, or becomes NaN, by policy `acc_idle`.
    """
    if command == AccumulatorCommand.IDLE or values is None:
        if policy.acc_idle == "keep" and state.undefined[:channels].all():
            return None
        after = state.copy()
        after.undefined[:channels], after.warned = True, False
        if policy.acc_idle == "nan":
            after.values[:channels] = CANONICAL_NAN
        return after
    after = state.copy()
    start = after.values[:channels]
    if command != AccumulatorCommand.ACCUMULATE:
        start[...] = np.float32(0) if seed is None else seed
        after.undefined[:channels] = False
    start[...] = accumulate(start, values, order=policy.acc_order)
    return after
