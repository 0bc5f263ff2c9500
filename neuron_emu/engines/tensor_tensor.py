"""Two tensors in, one out: 0x41, 0x51, 0x9D, 0x9E, and the predicated copies 0x72 and 0x99.

Sources: dve-tensor-scalar.md 9.2 and 9.5; 4.1 for the two stages and their reverse bits.
"""

from __future__ import annotations

import numpy as np

from neuron_emu.engines import alu
from neuron_emu.engines.alu_bitvec import apply_bits, apply_words
from neuron_emu.engines.core import EngineState, Problem
from neuron_emu.engines.streaming import (
    Elementwise,
    Float32s,
    PreparedStream,
    Stored,
    as_floats,
    converted,
    prepare_stream,
    resolve_two_sources,
    typed_scalar,
)
from neuron_emu.isa.alu_ops import GENERAL_BITVEC_OPS, UNARY_OPS, general_arith_ops, op_name
from neuron_emu.isa.enums import AccumulatorCommand, AluOp, ReverseOperands
from neuron_emu.isa.families.scalar_tensor_tensor import (
    SCALAR_TENSOR_TENSOR_BITVEC,
    ScalarTensorTensor,
)
from neuron_emu.isa.families.tensor_tensor import (
    COPY_PREDICATED,
    TENSOR_TENSOR_BITVEC,
    TensorTensor,
)
from neuron_emu.memory import Bits
from neuron_emu.policy import Policy

__all__ = [
    "arith_problem",
    "bitvec_problem",
    "float_stage",
    "prepare_predicated",
    "prepare_scalar_tensor_tensor",
    "prepare_tensor_tensor",
    "reverses",
]


def arith_problem(op: int, state: EngineState) -> Problem | None:
    """Return why the fp32 path of the DVE does not have an operation."""
    missing = alu.unsupported(op, state.generation)
    if missing is not None or op in general_arith_ops(state.generation):
        return missing
    reason = "works on bits or integers, which this word does not"
    return Problem("no_model", f"{op_name(op)} {reason}")


def bitvec_problem(op: int, state: EngineState) -> Problem | None:
    """Return why the bit path of the DVE does not have an operation."""
    missing = alu.unsupported(op, state.generation)
    if missing is not None or op in GENERAL_BITVEC_OPS:
        return missing
    return Problem("no_model", f"{op_name(op)} is no operation on bits")


def reverses(code: int) -> tuple[bool, bool] | Problem:
    """Split reverse_operands into its two bits."""
    if code > ReverseOperands.BOTH:
        return Problem("no_model", f"reverse_operands must be 0 to 3, not {code}")
    return bool(code & 1), bool(code & 2)


def float_stage(
    op: int, stream: Float32s, other: Float32s, is_reversed: bool, policy: Policy
) -> Float32s:
    """Return one stage; BYPASS and operations of one operand take the stream's in any order."""
    if is_reversed and op != AluOp.BYPASS and op not in UNARY_OPS:
        return alu.apply(op, other, stream, policy)
    return alu.apply(op, stream, other, policy)


def prepare_tensor_tensor(word: TensorTensor, state: EngineState) -> PreparedStream | Problem:
    """Make TENSOR_TENSOR ready: dst = src0 op src1 in fp32, or on raw bits."""
    found = resolve_two_sources(word, state)
    if isinstance(found, Problem):
        return found
    first, second, destination = found
    is_bitvec = word.header.opcode == TENSOR_TENSOR_BITVEC
    problem = (bitvec_problem if is_bitvec else arith_problem)(word.op, state)
    problem = problem or (same_width(found) if is_bitvec else None)
    if problem is not None:
        return problem

    def in_floats(columns: list[Bits]) -> Bits:
        a, b = as_floats(columns[0], first, state), as_floats(columns[1], second, state)
        return converted(alu.apply(word.op, a, b, state.policy), destination, state)

    def in_bits(columns: list[Bits]) -> Bits:
        return apply_bits(word.op, columns[0], columns[1], state.policy)

    return prepare_stream(
        state,
        lambda: Elementwise(in_bits if is_bitvec else in_floats),
        (first, second),
        destination,
        details={"op": op_name(word.op)},
    )


def same_width(stored: list[Stored]) -> Problem | None:
    """Return the problem of a word on raw bits whose operands differ in dtype."""
    if len({one.dtype for one in stored}) == 1:
        return None
    words = ", ".join(one.dtype.word for one in stored)
    return Problem("no_model", f"a word on raw bits converts nothing: {words} must be one dtype")


def prepare_predicated(word: TensorTensor, state: EngineState) -> PreparedStream | Problem:
    """Make COPY_PREDICATED or CAST_PREDICATED ready: where src0 is not 0, dst = src1.

    Elsewhere dst keeps what it holds, which still counts as written.
    """
    found = resolve_two_sources(word, state)
    if isinstance(found, Problem):
        return found
    predicate, data, destination = found
    if predicate.dtype.is_float:
        return Problem("no_model", f"the predicate must be integers, not {predicate.dtype.word}")
    is_copy = word.header.opcode == COPY_PREDICATED
    problem = same_width([data, destination]) if is_copy else None
    if problem is not None:
        return problem

    def step(columns: list[Bits]) -> Bits:
        bits = columns[1]
        if not is_copy:
            bits = converted(as_floats(bits, data, state), destination, state)
        return np.where(columns[0] != 0, bits, columns[2])

    return prepare_stream(
        state,
        lambda: Elementwise(step),
        (predicate, data),
        destination,
        kept=(destination,),
    )


def _bit_stage(op: int, stream: Bits, other: Bits, is_reversed: bool, policy: Policy) -> Bits:
    """Return one stage on raw bits, cut to the element's width by policy `bitvec_stage_mask`."""
    a, b = stream, other
    if is_reversed and op != AluOp.BYPASS and op not in UNARY_OPS:
        a, b = np.broadcast_arrays(other, stream)
    if policy.bitvec_stage_mask == "stage":
        return apply_bits(op, a, b, policy)
    return apply_words(op, a.astype(np.uint32), b.astype(np.uint32), policy)


def _idle_problem(word: ScalarTensorTensor) -> Problem | None:
    if word.accumulator_cmd == AccumulatorCommand.IDLE:
        return None
    return Problem("no_model", "what this word accumulates is not published: only IDLE executes")


def prepare_scalar_tensor_tensor(
    word: ScalarTensorTensor, state: EngineState
) -> PreparedStream | Problem:
    """Make SCALAR_TENSOR_TENSOR ready: dst = (src0 op0 imm0) op1 src1."""
    channels = word.num_active_channels
    found = resolve_two_sources(word, state)
    if isinstance(found, Problem):
        return found
    is_bitvec = word.header.opcode == SCALAR_TENSOR_TENSOR_BITVEC
    check = bitvec_problem if is_bitvec else arith_problem
    problem = check(word.op0, state) or check(word.op1, state) or _idle_problem(word)
    problem = problem or (same_width(found) if is_bitvec else None)
    if problem is not None:
        return problem
    swapped = reverses(word.reverse_operands)
    if isinstance(swapped, Problem):
        return swapped
    code = found[0].dtype if is_bitvec else word.imm0_dtype
    scalar = typed_scalar(state, word.imm0_src, word.imm0, code, channels)
    if isinstance(scalar, Problem):
        return scalar
    *sources, destination = found

    def in_floats(columns: list[Bits], value: Float32s) -> Bits:
        a, b = (as_floats(c, s, state) for c, s in zip(columns, sources, strict=True))
        first = float_stage(word.op0, a, value, swapped[0], state.policy)
        second = float_stage(word.op1, first, b, swapped[1], state.policy)
        return converted(second, destination, state)

    def in_bits(columns: list[Bits], value: Bits) -> Bits:
        first = _bit_stage(word.op0, columns[0], value, swapped[0], state.policy)
        second = _bit_stage(word.op1, first, columns[1], swapped[1], state.policy)
        return second.astype(columns[0].dtype)

    def begin() -> Elementwise:
        # The scalar is latched before anything is written (dve-tensor-scalar.md 3.2 rule 7).
        if is_bitvec:
            bits = scalar.bits()
            return Elementwise(lambda columns: in_bits(columns, bits))
        floats = scalar.floats()
        return Elementwise(lambda columns: in_floats(columns, floats))

    return prepare_stream(
        state,
        begin,
        sources,
        destination,
        scalars=(scalar,),
        immediates=((word.imm0_src, word.imm0),),
        details={"ops": f"{op_name(word.op0)},{op_name(word.op1)}"},
    )
