"""The function unit of ACT: affine stages, a table function, conversion and reduction.

What ACTIVATE, ACTIVATE_QUANTIZE and ACTIVATE2 have in common (activation-tables.md 3). Every stage
rounds to float32 by itself; the accumulator takes the result before the conversion (policy
`acc_source`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.engines import alu
from neuron_emu.engines.accumulator import Accumulator
from neuron_emu.engines.core import EngineState, Problem, Read, problem_of, resolve_scalar
from neuron_emu.engines.result_tables import ResultTable
from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.isa.records import Immediate
from neuron_emu.memory import AccessPattern, Bits, MemoryFault, Operand
from neuron_emu.numerics import (
    NumberFormats,
    add,
    from_float32,
    multiply,
    storage_dtype,
    to_float32,
)
from neuron_emu.policy import Policy
from neuron_emu.pwp.evaluate import CompiledProfile

__all__ = [
    "IDENTITIES",
    "STAGE_OPS",
    "FunctionUnit",
    "Parameter",
    "Reduction",
    "Scalars",
    "Stage",
    "parameter",
    "reduced",
]

Float32s = npt.NDArray[np.float32]

STAGE_OPS = frozenset((AluOp.BYPASS, AluOp.ADD, AluOp.SUBTRACT, AluOp.MULT))
"""What the two stages in front of the function can do (activation-tables.md 2.6)."""
IDENTITIES = {
    AluOp.ADD: np.float32(0),
    AluOp.MAX: np.float32(-np.inf),
    AluOp.MIN: np.float32(np.inf),
    AluOp.ABS_MAX: np.float32(0),
    AluOp.ABS_MIN: np.float32(np.inf),
}
"""Reductions of ACT and what RESET sets the registers to (3.3; the values are [unknown])."""


@frozen(eq=False)
class Parameter:
    """A scalar operand of a word: one value in the word, or one in each partition by a pointer."""

    name: str
    inline: Float32s
    operand: Operand | None
    dtype: DType
    formats: NumberFormats

    def floats(self) -> Float32s:
        """Return the value as float32 [1] for one value, [channels] behind a pointer.

        Read once an instruction, before anything is written.
        """
        if self.operand is None:
            return self.inline
        return to_float32(self.operand.read()[:, 0].copy(), self.dtype, self.formats)

    def as_read(self) -> Read:
        """Return the scalar as something read; one in the word as fp32."""
        if self.operand is None:
            return Read(DType.FP32, None, self.inline.view(np.uint32))
        return Read(self.dtype, self.operand)

    def first_unwritten(self) -> int | None:
        """Return the first byte behind the pointer that nothing wrote."""
        return None if self.operand is None else self.operand.first_unwritten()


def parameter(
    state: EngineState,
    name: str,
    source: int,
    immediate: Immediate,
    channels: int,
    dtype: DType = DType.FP32,
) -> Parameter | Problem:
    """Prepare a scalar by its IMM_SRC; a value in the word is the low bytes of `dtype`."""
    address = resolve_scalar(source, immediate, state.registers)
    if isinstance(address, Problem):
        return address
    size = dtype.size_bytes
    word = np.array([immediate.word & (1 << 8 * size) - 1], storage_dtype(dtype))
    inline = to_float32(word, dtype, state.formats)
    if address is None:
        return Parameter(name, inline, None, dtype, state.formats)
    pattern = AccessPattern(start=address, step=(1,), num=(1,))
    operand = state.memory.operand(pattern, size, channels, max_elements=1)
    if isinstance(operand, MemoryFault):
        return problem_of(operand)
    return Parameter(name, inline, operand, dtype, state.formats)


@frozen
class Stage:
    """One operation in front of the function: `x op scalar`, or `scalar op x` when reversed."""

    op: AluOp
    is_reversed: bool = False

    def apply(self, x: Float32s, scalar: Float32s, policy: Policy) -> Float32s:
        """Return the stage's result; BYPASS skips it whatever is reversed."""
        if self.op == AluOp.BYPASS:
            return x
        first, second = (scalar, x) if self.is_reversed else (x, scalar)
        return alu.apply(self.op, first, second, policy)


class Scalars(NamedTuple):
    """The values of one execution: one array a stage and the slope; [1] or [channels] each."""

    stages: tuple[Float32s, ...]
    slope: Float32s | None

    def key(self) -> tuple[bytes, ...] | None:
        """Return what identifies the values when each is one for all lanes, else None."""
        every = [*self.stages, *([] if self.slope is None else [self.slope])]
        return tuple(v.tobytes() for v in every) if all(len(v) == 1 for v in every) else None


@frozen(eq=False)
class FunctionUnit:
    """convert(f(stages(x))), with a scale and an offset before the conversion when requantising."""

    state: EngineState
    profile: CompiledProfile
    in_dtype: DType
    out_dtype: DType
    stages: tuple[Stage, ...]
    requantise: tuple[Float32s, Float32s] | None = None

    def compute(self, bits: Bits, scalars: Scalars) -> tuple[Bits, Float32s]:
        """Return output bits and the values that an accumulator takes, both [channels, n].

        `bits` are [channels, n]. Raises InputError where the profile has no section or the
        evaluator no closed form.
        """
        table = self._table(bits, scalars)
        if table is not None:
            staging = self.state.staging
            return table.look_up(bits, staging), table.look_up_taken(bits, staging)
        return self.compute_directly(bits, scalars)

    def compute_directly(self, bits: Bits, scalars: Scalars) -> tuple[Bits, Float32s]:
        """Do what `compute` does without result tables."""
        state = self.state
        results = self.function(self.argument(bits, scalars), scalars.slope)
        stored = self.requantised(results)
        out = from_float32(stored, self.out_dtype, state.formats, random=state.random)
        if state.policy.acc_source == "after_conversion":
            results = to_float32(out, self.out_dtype, state.formats)
        return out, results

    def argument(self, bits: Bits, scalars: Scalars) -> Float32s:
        """Return what the function is applied to."""
        x = to_float32(bits, self.in_dtype, self.state.formats)
        for stage, scalar in zip(self.stages, scalars.stages, strict=True):
            x = stage.apply(x, scalar[:, None], self.state.policy)
        return x

    def function(self, v: Float32s, slope: Float32s | None) -> Float32s:
        """Evaluate the profile under the run's policy."""
        policy = self.state.policy
        return self.profile.evaluate(
            v,
            evaluator=policy.evaluator,
            nan=policy.nan,
            fma=policy.fma,
            slope=None if slope is None else slope[:, None],
        )

    def requantised(self, results: Float32s) -> Float32s:
        """Return `scale * results + zero`, two roundings, when the word requantises."""
        if self.requantise is None:
            return results
        scale, zero = self.requantise
        return add(multiply(scale, results), zero)

    def _table(self, bits: Bits, scalars: Scalars) -> ResultTable | None:
        state, values = self.state, scalars.key()
        if values is None or state.formats.rounding == "stochastic":
            return None
        after = None if self.requantise is None else tuple(v.tobytes() for v in self.requantise)
        key = (self.profile, self.in_dtype, self.out_dtype, self.stages, values, after)
        return state.result_tables.find(
            key,
            bits.dtype.itemsize,
            bits.size,
            lambda every_input: self.compute_directly(every_input, scalars),
        )

    def table_stations(self, v: Float32s) -> list[tuple[str, dict[str, Any]]]:
        """Return the stations inside the tables of one input [1]."""
        if self.state.policy.evaluator == "exact":
            return []
        return list(self.profile.station(v[0]).as_events())


@frozen(eq=False)
class Reduction:
    """What a word does to the accumulator: set it to the identity or a seed, fold into it."""

    op: AluOp
    resets: bool = False
    folds: bool = False
    seed: Parameter | None = None

    @property
    def needs_value(self) -> bool:
        """True when the value of before takes part."""
        return self.folds and not self.resets and self.seed is None


def reduced(
    before: Accumulator, reduction: Reduction, channels: int, results: Float32s, policy: Policy
) -> Accumulator | None:
    """Return the accumulator after a word whose results are float32 [channels, n].

    None when it stays as it is: IDLE does not disturb the ACT registers. Lanes past the active
    channels stay.
    """
    seed = reduction.seed
    if not (reduction.resets or reduction.folds):
        return None
    after = before.copy()
    start = after.values[:channels]
    if reduction.resets or seed is not None:
        start[...] = IDENTITIES[reduction.op] if seed is None else seed.floats()
        after.undefined[:channels] = False
    if reduction.folds:
        start[...] = alu.fold(
            reduction.op, start.copy(), results, policy, value_first=False, order=policy.acc_order
        )
    return after
