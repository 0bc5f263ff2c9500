"""Selections with a running maximum: SELECT_REDUCE 0xEA and RANGE_SELECT 0xBC.

Sources: dve-tensor-scalar.md 9.5 and 9.6, 7 for the accumulator: ZERO_ACCUMULATE starts from -inf,
IDLE leaves it undefined. What it takes is the selected value, by policy `acc_source`.
"""

from __future__ import annotations

import numpy as np

from neuron_emu.engines import alu
from neuron_emu.engines.accumulator import (
    Accumulator,
    after_accumulating,
    after_idle,
    start_values,
)
from neuron_emu.engines.core import EngineState, Problem
from neuron_emu.engines.streaming import (
    Float32s,
    Pass,
    PreparedStream,
    Stored,
    as_floats,
    converted,
    prepare_stream,
    resolve,
    resolve_two_sources,
    typed_scalar,
)
from neuron_emu.isa.alu_ops import op_name
from neuron_emu.isa.enums import AccumulatorCommand, AluOp, DType, ReverseOperands
from neuron_emu.isa.families.range_select import RangeSelect
from neuron_emu.isa.families.scalar_tensor_tensor import ScalarTensorTensor
from neuron_emu.memory import Bits
from neuron_emu.numerics import add

__all__ = ["COMPARISONS", "prepare_range_select", "prepare_select_reduce"]

COMPARISONS = frozenset((AluOp.IS_EQUAL, AluOp.IS_GT, AluOp.IS_GE, AluOp.IS_LE, AluOp.IS_LT))
"""What RANGE_SELECT compares with (dve-tensor-scalar.md 9.6)."""
_COMMANDS = (
    AccumulatorCommand.IDLE,
    AccumulatorCommand.ACCUMULATE,
    AccumulatorCommand.ZERO_ACCUMULATE,
)


def command_problem(command: int, op: int) -> Problem | None:
    """Return why a selecting word does not accumulate that way."""
    if command not in _COMMANDS:
        names = ", ".join(c.name for c in _COMMANDS)
        return Problem("no_model", f"the accumulator command must be one of {names}, not {command}")
    if op != AluOp.MAX:
        return Problem("no_model", f"a selection reduces by MAX, not by {op_name(op)}")
    return None


class _Selection(Pass):
    """What both words share: the destination, and the running maximum of what goes there."""

    def __init__(self, command: int, destination: Stored, state: EngineState) -> None:
        self._command, self._destination, self._state = command, destination, state
        self._channels = destination.operand.channels
        self._largest = start_values(
            state.accumulator, command, self._channels, float(alu.identity(AluOp.MAX)), None
        )

    def _store(self, selected: Float32s) -> Bits:
        state, destination = self._state, self._destination
        bits = converted(selected, destination, state)
        if self._command != AccumulatorCommand.IDLE:
            taken = selected
            if state.policy.acc_source == "after_conversion":
                taken = as_floats(bits, destination, state)
            self._largest = alu.fold(AluOp.MAX, self._largest, taken, state.policy)
        return bits

    def accumulator(self) -> Accumulator | None:
        state, channels = self._state, self._channels
        if self._command == AccumulatorCommand.IDLE:
            return after_idle(state.accumulator, channels, state.policy)
        return after_accumulating(state.accumulator, self._command, channels, self._largest)


class _SelectReduce(_Selection):
    """dst = src1 where src0 is not 0 (with FIRST: is 0), else the scalar."""

    def __init__(
        self,
        word: ScalarTensorTensor,
        data: Stored,
        destination: Stored,
        otherwise: Float32s,
        state: EngineState,
    ) -> None:
        super().__init__(word.accumulator_cmd, destination, state)
        self._data, self._otherwise = data, otherwise
        self._is_reversed = word.reverse_operands == ReverseOperands.FIRST

    def step(self, columns: list[Bits]) -> Bits:
        is_true = (columns[0] != 0) != self._is_reversed
        values = as_floats(columns[1], self._data, self._state)
        return self._store(np.where(is_true, values, self._otherwise))


def prepare_select_reduce(word: ScalarTensorTensor, state: EngineState) -> PreparedStream | Problem:
    """Make SELECT_REDUCE ready.

    src0 is the predicate as in the predicated copies, and FIRST reverses it
    [inferred from NKI's operand order and its `reverse_pred`].
    """
    channels = word.num_active_channels
    found = resolve_two_sources(word, state)
    if isinstance(found, Problem):
        return found
    predicate, data, destination = found
    problem = command_problem(word.accumulator_cmd, word.op1) or _select_problem(word, predicate)
    if problem is not None:
        return problem
    scalar = typed_scalar(state, word.imm0_src, word.imm0, word.imm0_dtype, channels)
    if isinstance(scalar, Problem):
        return scalar
    goes_on = word.accumulator_cmd == AccumulatorCommand.ACCUMULATE
    return prepare_stream(
        state,
        lambda: _SelectReduce(word, data, destination, scalar.floats(), state),
        (predicate, data),
        destination,
        scalars=(scalar,),
        immediates=((word.imm0_src, word.imm0),),
        uses_accumulator=channels if goes_on else 0,
    )


def _select_problem(word: ScalarTensorTensor, predicate: Stored) -> Problem | None:
    if word.op0 != AluOp.BYPASS:
        return Problem("no_model", f"a selection copies: op0 must be BYPASS, not {word.op0:#04x}")
    if word.reverse_operands > ReverseOperands.FIRST:
        return Problem("no_model", "reverse_operands of a selection must be NONE or FIRST")
    if predicate.dtype.is_float:
        return Problem("no_model", f"the predicate must be integers, not {predicate.dtype.word}")
    return None


class _RangeSelect(_Selection):
    """dst = src where base + index lies within both bounds, else the fill value."""

    def __init__(
        self,
        word: RangeSelect,
        stored: tuple[Stored, Stored],
        bounds: tuple[Float32s, Float32s],
        state: EngineState,
    ) -> None:
        super().__init__(word.reduce_cmd, stored[1], state)
        self._word, self._source, self._bounds = word, stored[0], bounds
        self._base, self._fill = np.array([word.base, word.fill_val], np.uint32).view(np.float32)
        self._position = 0

    def step(self, columns: list[Bits]) -> Bits:
        word, policy = self._word, self._state.policy
        count = columns[0].shape[1]
        places = np.arange(self._position, self._position + count).astype(np.float32)
        self._position += count
        index = add(np.full(1, self._base), places)[None, :]
        low, high = self._bounds
        is_inside = alu.apply(word.comp_op0, index, low, policy) != 0
        is_inside = is_inside & (alu.apply(word.comp_op1, index, high, policy) != 0)
        values = as_floats(columns[0], self._source, self._state)
        return self._store(np.where(is_inside, values, self._fill))


def prepare_range_select(word: RangeSelect, state: EngineState) -> PreparedStream | Problem:
    """Make RANGE_SELECT ready; the index counts the elements of a lane from 0."""
    channels = word.num_active_channels
    dtypes = word.in_out_dtype
    found = resolve(state, channels, (word.src, dtypes.first), (word.dst, dtypes.second))
    if isinstance(found, Problem):
        return found
    source, destination = found
    problem = command_problem(word.reduce_cmd, word.reduce_op)
    for op in (word.comp_op0, word.comp_op1):
        if problem is None and op not in COMPARISONS:
            problem = Problem("no_model", f"{op_name(op)} is no comparison of RANGE_SELECT")
    if problem is not None:
        return problem
    low = typed_scalar(state, word.bound0_src, word.bound0, DType.FP32, channels)
    if isinstance(low, Problem):
        return low
    high = typed_scalar(state, word.bound1_src, word.bound1, DType.FP32, channels)
    if isinstance(high, Problem):
        return high
    goes_on = word.reduce_cmd == AccumulatorCommand.ACCUMULATE
    return prepare_stream(
        state,
        lambda: _RangeSelect(word, (source, destination), (low.floats(), high.floats()), state),
        (source,),
        destination,
        scalars=(low, high),
        constants=(word.fill_val,),
        immediates=((word.bound0_src, word.bound0), (word.bound1_src, word.bound1)),
        uses_accumulator=channels if goes_on else 0,
    )
