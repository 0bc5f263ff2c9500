"""Recurrences along the stream: TENSOR_CUMULATIVE 0x4E and 0x5E, TENSOR_TENSOR_SCAN 0xE5.

Sources: dve-tensor-scalar.md 9.3 (cumulative), 9.5 (scan); the carry is fp32, never out_dtype.
"""

from __future__ import annotations

import numpy as np

from neuron_emu.engines import alu
from neuron_emu.engines.alu_bitvec import apply_bits
from neuron_emu.engines.core import EngineState, Problem
from neuron_emu.engines.streaming import (
    Float32s,
    Pass,
    PreparedStream,
    Stored,
    as_floats,
    converted,
    prepare_stream,
    resolve_one_source,
    resolve_two_sources,
    typed_scalar,
)
from neuron_emu.engines.tensor_reduce import covered, is_bitvec, op_problem
from neuron_emu.engines.tensor_tensor import arith_problem, float_stage, reverses
from neuron_emu.isa.alu_ops import op_name
from neuron_emu.isa.enums import AccumulatorCommand
from neuron_emu.isa.families.scalar_tensor_tensor import ScalarTensorTensor
from neuron_emu.isa.families.tensor_reduce import TensorReduce
from neuron_emu.memory import Bits

__all__ = ["prepare_cumulative", "prepare_tensor_tensor_scan"]


class _Cumulative(Pass):
    """out[0] = x[0], out[i] = out[i-1] op x[i], anew in each run of `length` elements."""

    def __init__(
        self, op: int, length: int, stored: tuple[Stored, Stored], state: EngineState
    ) -> None:
        self._op, self._length, self._state = op, length, state
        self._source, self._destination = stored
        self._position = 0
        self._carry: Float32s | None = None

    def step(self, columns: list[Bits]) -> Bits:
        values = as_floats(columns[0], self._source, self._state)
        if values.shape[1] % self._length == 0 and self._position % self._length == 0:
            running = self._runs(values)
        else:
            running = self._one_by_one(values)
        return converted(running, self._destination, self._state)

    def _runs(self, values: Float32s) -> Float32s:
        if self._length == 1:
            return values
        rows = values.reshape(-1, self._length)
        running = np.empty_like(rows)
        running[:, 0] = rows[:, 0]
        running[:, 1:] = alu.scan(
            self._op, rows[:, 0], rows[:, 1:], self._state.policy, value_first=False
        )
        return running.reshape(values.shape)

    def _one_by_one(self, values: Float32s) -> Float32s:
        running = np.empty_like(values)
        for column in range(values.shape[1]):
            value = values[:, column]
            if self._carry is not None and self._position % self._length:
                value = alu.apply(self._op, self._carry, value, self._state.policy)
            self._carry = running[:, column] = value
            self._position += 1
        return running


class _BitCumulative(Pass):
    """The same on raw bits."""

    def __init__(self, op: int, length: int, state: EngineState) -> None:
        self._op, self._length, self._state = op, length, state
        self._position = 0
        self._carry: Bits | None = None

    def step(self, columns: list[Bits]) -> Bits:
        running = columns[0].copy()
        for column in range(running.shape[1]):
            if self._carry is not None and self._position % self._length:
                running[:, column] = apply_bits(
                    self._op, self._carry, running[:, column], self._state.policy
                )
            self._carry = running[:, column].copy()
            self._position += 1
        return running


def prepare_cumulative(word: TensorReduce, state: EngineState) -> PreparedStream | Problem:
    """Make TENSOR_CUMULATIVE ready: op_dim covers the dimensions that one run goes through."""
    found = resolve_one_source(word, state)
    if isinstance(found, Problem):
        return found
    source, destination = found
    problem = op_problem(word, found, state)
    if problem is not None:
        return problem
    length = covered(word)
    if isinstance(length, Problem):
        return length

    def begin() -> Pass:
        if is_bitvec(word):
            return _BitCumulative(word.op, length, state)
        return _Cumulative(word.op, length, (source, destination), state)

    details = {"op": op_name(word.op), "run": length}
    return prepare_stream(state, begin, (source,), destination, details=details)


class _Scan(Pass):
    """r = (src0 op0 r) op1 src1, the first r being the scalar."""

    def __init__(
        self,
        word: ScalarTensorTensor,
        swapped: tuple[bool, bool],
        stored: list[Stored],
        initial: Float32s,
        state: EngineState,
    ) -> None:
        self._word, self._swapped, self._state = word, swapped, state
        self._first, self._second, self._destination = stored
        self._carry = np.broadcast_to(initial[:, 0], (stored[0].operand.channels,)).copy()

    def step(self, columns: list[Bits]) -> Bits:
        word, state, policy = self._word, self._state, self._state.policy
        a = as_floats(columns[0], self._first, state)
        b = as_floats(columns[1], self._second, state)
        running = np.empty(a.shape, np.float32)
        for column in range(a.shape[1]):
            carried = float_stage(word.op0, a[:, column], self._carry, self._swapped[0], policy)
            self._carry = float_stage(word.op1, carried, b[:, column], self._swapped[1], policy)
            running[:, column] = self._carry
        return converted(running, self._destination, state)


def prepare_tensor_tensor_scan(
    word: ScalarTensorTensor, state: EngineState
) -> PreparedStream | Problem:
    """Make TENSOR_TENSOR_SCAN ready: the first element sees imm0 where later ones see r."""
    channels = word.num_active_channels
    found = resolve_two_sources(word, state)
    if isinstance(found, Problem):
        return found
    problem = arith_problem(word.op0, state) or arith_problem(word.op1, state)
    if problem is None and word.accumulator_cmd != AccumulatorCommand.IDLE:
        problem = Problem("no_model", "a scan does not accumulate: the command must be IDLE")
    if problem is not None:
        return problem
    swapped = reverses(word.reverse_operands)
    if isinstance(swapped, Problem):
        return swapped
    scalar = typed_scalar(state, word.imm0_src, word.imm0, word.imm0_dtype, channels)
    if isinstance(scalar, Problem):
        return scalar
    return prepare_stream(
        state,
        lambda: _Scan(word, swapped, found, scalar.floats(), state),
        found[:2],
        found[2],
        scalars=(scalar,),
        immediates=((word.imm0_src, word.imm0),),
        details={"ops": f"{op_name(word.op0)},{op_name(word.op1)}"},
    )
