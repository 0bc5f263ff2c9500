"""Classes of ALU operations: the predicates that validators and engines share, as sets of codes.

Sources: dve-tensor-scalar.md 5.1, 5.2 and 5.4 [observed unless a comment says otherwise];
isa-encoding.md 7.3. A set that depends on the generation is a function of it.
"""

from __future__ import annotations

from functools import cache

from neuron_emu.generation import Generation
from neuron_emu.isa.enums import AluOp, member

__all__ = [
    "BITVEC_OPS",
    "CACHE_REDUCE_OPS",
    "GENERAL_BITVEC_OPS",
    "INTEGER_BAND",
    "INTEGER_OPS",
    "SHIFT_OPS",
    "UNARY_OPS",
    "arith_ops",
    "dve_integer_ops",
    "general_arith_ops",
    "op_name",
]

GENERAL_BITVEC_OPS = frozenset(
    (
        AluOp.BYPASS,
        AluOp.BITWISE_NOT,
        AluOp.ARITH_SHIFT_LEFT,
        AluOp.ARITH_SHIFT_RIGHT,
        AluOp.BITWISE_AND,
        AluOp.BITWISE_OR,
        AluOp.BITWISE_XOR,
        AluOp.LOGICAL_SHIFT_LEFT,
        AluOp.LOGICAL_SHIFT_RIGHT,
    )
)
"""`is_general_bitvec_op`: what two-tensor bitvec opcodes (0x51, 0x9E) accept; nine."""

BITVEC_OPS = GENERAL_BITVEC_OPS | {AluOp.CRC32}
"""`is_bitvec_op`: what 0x53 accepts; CRC32 passes although the DVE cannot do it."""

SHIFT_OPS = frozenset(
    (
        AluOp.ARITH_SHIFT_LEFT,
        AluOp.ARITH_SHIFT_RIGHT,
        AluOp.LOGICAL_SHIFT_LEFT,
        AluOp.LOGICAL_SHIFT_RIGHT,
    )
)

UNARY_OPS = frozenset(
    (
        AluOp.BITWISE_NOT,
        AluOp.ABS_VALUE,
        AluOp.RSQRT,
        AluOp.RELU,
        AluOp.SQUARE,
        AluOp.ABS_VALUE_INT,
    )
)
"""Operations of one operand, the stream's; BYPASS, which ignores a scalar too, is not listed."""

CACHE_REDUCE_OPS = frozenset((AluOp.ADD, AluOp.SUBTRACT, AluOp.MULT, AluOp.MAX, AluOp.MIN))
"""What folds into the accumulator as op1 of 0x9A and 0xE6 (4.5)."""

INTEGER_BAND = frozenset(range(AluOp.ADD_INT, AluOp.AMIN_UINT + 1))
"""Codes 0xC4 to 0xE1: operations on integers that never pass through fp32 (5.2)."""

INTEGER_OPS = frozenset(range(AluOp.ADD_INT, AluOp.MOD_UINT + 1)) - {AluOp.ABS_VALUE_INT} | {
    AluOp.MOD
}
"""`is_valid_int_aluop`: without the arg-max group; twenty-six."""

_GENERAL_ARITH = frozenset(
    (
        AluOp.BYPASS,
        *(AluOp.ADD, AluOp.SUBTRACT, AluOp.MULT, AluOp.MAX, AluOp.MIN),
        *(AluOp.LOGICAL_AND, AluOp.LOGICAL_OR, AluOp.LOGICAL_XOR),
        *(AluOp.IS_EQUAL, AluOp.IS_GT, AluOp.IS_GE, AluOp.IS_LE, AluOp.IS_LT),
        *(AluOp.ABS_DIFF, AluOp.IS_NE, AluOp.ABS_VALUE),
        *(AluOp.ABS_MAX, AluOp.ABS_MIN, AluOp.RELU, AluOp.SQUARE),
        # [unknown: chosen because its row is classed arithmetic]
        AluOp.SYMMETRIC_CLAMP,
    )
)
_OTHER_ARITH = frozenset(
    (
        *(AluOp.DIVIDE, AluOp.POW, AluOp.MOD, AluOp.RSQRT),
        *(AluOp.ADD_INT, AluOp.MULT_INT, AluOp.SUBTRACT_INT, AluOp.DIVIDE_INT, AluOp.MOD_INT),
    )
)
_DVE_INTEGER = frozenset(
    (
        AluOp.BYPASS,
        *(AluOp.ADD_INT, AluOp.MULT_INT, AluOp.SUBTRACT_INT),
        *(AluOp.IS_EQUAL_INT, AluOp.IS_NE_INT),
        *(AluOp.ABS_MAX_INT, AluOp.ABS_MIN_INT, AluOp.ABS_DIFF_INT),
        *(AluOp.MAX_INT, AluOp.MIN_INT),
        *(AluOp.IS_GT_INT, AluOp.IS_GE_INT, AluOp.IS_LE_INT, AluOp.IS_LT_INT),
    )
)


@cache
def general_arith_ops(generation: Generation) -> frozenset[int]:
    """Return `is_general_arith_op`: 17 operations, 21 from MARIANA on, 22 on MAVERICK."""
    return _GENERAL_ARITH & generation.alu_ops


@cache
def arith_ops(generation: Generation) -> frozenset[int]:
    """Return `is_arith_op`: the general ones, those of other engines, and ADD_INT to MOD_INT."""
    return (_GENERAL_ARITH | _OTHER_ARITH) & generation.alu_ops


@cache
def dve_integer_ops(generation: Generation) -> frozenset[int]:
    """Return `is_valid_int_aluop_dve`: fifteen with BYPASS on MAVERICK, none before."""
    return _DVE_INTEGER if generation.core_version >= 5 else frozenset()


def op_name(op: int) -> str:
    """Return the name of an operation for a message, or its number."""
    known = member(AluOp, op)
    return f"ALU operation {op:#04x}" if known is None else known.name
