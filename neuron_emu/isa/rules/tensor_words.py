"""Rules of S3S3D3_TT, S4D4_TR and S2S2D2_STT: operations, counts, commands.

Source: dve-tensor-scalar.md 9.2, 9.3, 9.5, 5.4. Operands and dtypes: `dve_operands`.
"""

from __future__ import annotations

from typing import Any

from neuron_emu.isa.alu_ops import (
    BITVEC_OPS,
    GENERAL_BITVEC_OPS,
    INTEGER_OPS,
    arith_ops,
    general_arith_ops,
    op_name,
)
from neuron_emu.isa.enums import AccumulatorCommand, AluOp
from neuron_emu.isa.families import scalar_tensor_tensor, tensor_reduce, tensor_tensor
from neuron_emu.isa.families.tensor_reduce import TensorSubdimension
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.rules.core import Example, Review, Truth, rule
from neuron_emu.isa.rules.dve_slots import BITVEC, SLOTS, dtype_of
from neuron_emu.isa.rules.predicates import implies, operand_of

__all__ = ["equal_counts"]

TT, TR = tensor_tensor.FAMILY.opcodes, tensor_reduce.FAMILY.opcodes
STT = scalar_tensor_tensor.FAMILY.opcodes
_FOLDED = frozenset((2, 3, 4, 5))
REDUCING = frozenset((0x42, 0x52, 0x83, 0x84))
CUMULATIVE = frozenset((0x4E, 0x5E))
MOVING = frozenset(TR) - REDUCING - CUMULATIVE
TRANSPOSING = frozenset((0x6B, 0x83, 0x84))
PREDICATED = frozenset((0x72, 0x99))
WIDE_DTYPES = frozenset((0x01, 0x08, 0x09, 0x0C))
"""Integers of 4 and 8 bytes."""


def _legal_ops(r: Review) -> dict[str, frozenset[int]]:
    """Return the operations that each ALU field of an opcode takes."""
    general = general_arith_ops(r.generation)
    bypass = frozenset((int(AluOp.BYPASS),))
    if r.opcode in MOVING or r.opcode in PREDICATED:
        return {"op": bypass}
    if r.opcode == 0x41:
        return {"op": general | {AluOp.POW} | (INTEGER_OPS & r.generation.alu_ops)}
    if r.opcode in (0x51, 0x5E):
        return {"op": GENERAL_BITVEC_OPS}
    if r.opcode in (0x52, 0x84):
        return {"op": BITVEC_OPS}
    if r.opcode in REDUCING:
        return {"op": general}
    if r.opcode == 0x4E:
        return {"op": arith_ops(r.generation) - {AluOp.DIVIDE, AluOp.POW, AluOp.MOD}}
    if r.opcode == 0xEA:
        return {"op0": bypass, "op1": frozenset((int(AluOp.MAX),))}
    both = GENERAL_BITVEC_OPS if r.opcode in BITVEC else general
    return {"op0": both, "op1": both}


@rule(
    "NE0611",
    "has_valid_op",
    opcodes=frozenset((*TT, *TR, *STT)) - {0x65},
    source="dve-tensor-scalar.md 9.2, 9.3, 9.5, 5.4",
    tag="observed; which operations reduce inferred",
    examples=(
        Example(path="op", good=AluOp.POW, bad=AluOp.BITWISE_AND, opcode=0x41),
        Example(path="op", good=AluOp.BITWISE_XOR, bad=AluOp.ADD, opcode=0x51),
        Example(path="op", good=0, bad=AluOp.ADD, opcode=0x46),
        Example(path="op", good=AluOp.MAX, bad=AluOp.MAX_INT, opcode=0x42),
        Example(path="op", good=AluOp.ADD, bad=AluOp.MOD, opcode=0x4E),
        Example(path="op1", good=AluOp.ADD, bad=AluOp.SQUARE, opcode=0x9D, generation="cayman"),
        Example(path="op1", good=AluOp.MAX, bad=AluOp.ADD, opcode=0xEA),
    ),
)
def dve_ops(r: Review) -> None:
    """Each operation must be one that the opcode takes.

    Copies, casts, reciprocals, moves and predicated copies compute nothing: BYPASS. Words on raw
    bits take the general bit operations. Others take general arithmetic: TENSOR_TENSOR also POW
    and the integer band, which other engines compute, TENSOR_CUMULATIVE all arithmetic but
    DIVIDE, POW and MOD. SELECT_REDUCE has BYPASS and MAX.
    """
    for name, legal in _legal_ops(r).items():
        code = r[name]
        r.require(
            r.one_of(code, legal),
            name,
            f"one of {' '.join(op_name(op) for op in sorted(legal))}",
            context=f"in {opcode_name(r.opcode)}",
            actual=lambda code=code: op_name(int(code)),
        )


@rule(
    "NE0612",
    "shift_check",
    opcodes=BITVEC,
    source="dve-tensor-scalar.md 5.1",
    tag="observed; inferred for these opcodes",
    requires=("NE0601", "NE0611"),
    examples=(
        Example(
            path="op", good=AluOp.LOGICAL_SHIFT_RIGHT, bad=AluOp.ARITH_SHIFT_RIGHT, opcode=0x51
        ),
        Example(path="op1", good=AluOp.BITWISE_OR, bad=AluOp.ARITH_SHIFT_RIGHT, opcode=0x9E),
    ),
)
def dve_shift_check(r: Review) -> None:
    """ARITH_SHIFT_RIGHT needs 4-byte elements or wider: a narrower one has no sign to fill."""
    wide = r.one_of(dtype_of(r, SLOTS[r.opcode][0]), WIDE_DTYPES)
    for name in _legal_ops(r):
        r.require(
            implies(r[name] == AluOp.ARITH_SHIFT_RIGHT, wide),
            name,
            "another operation than ARITH_SHIFT_RIGHT",
            context="with elements below 4 bytes",
        )


# --- counts -----------------------------------------------------------------------------------


def equal_counts(r: Review, first: str, second: str, *, leaf: str) -> None:
    """State that two operands have the same number of elements in a partition."""
    source, destination = operand_of(r, first), operand_of(r, second)
    wanted, found = source.element_count, destination.element_count
    sound = source.legal & source.counts_nonzero & destination.legal & destination.counts_nonzero
    r.require(
        wanted == found,
        _count_path(second, destination),
        lambda: str(wanted),
        subject=f"{second} element count",
        context=f"as in {first}",
        actual=lambda: str(found),
        leaf=leaf,
        after=sound,
    )


def _count_path(name: str, operand: Any) -> Any:
    return lambda: f"{name}.num_elem" if operand.indirect else f"{name}.num"


@rule(
    "NE0613",
    "same_element_count",
    opcodes=frozenset((*TT, *STT)),
    source="dve-tensor-scalar.md 9.2, 9.5",
    tag="observed",
    examples=(
        Example(path="src1.num[0]", good=8, bad=7, opcode=0x41),
        Example(path="dst.num[0]", good=8, bad=9, opcode=0x9D),
    ),
)
def two_inputs_counts(r: Review) -> None:
    """Both sources and the destination must have the same number of elements in a partition."""
    equal_counts(r, "src0", "src1", leaf="src_element_cnt_check")
    equal_counts(r, "src0", "dst", leaf="dst_element_cnt_check")


def _covered(r: Review) -> Any:
    """Return the elements that op_dim covers; an indirect source has X alone."""
    source = operand_of(r, "src")
    total = r.wide(r["op_dim"]) * 0 + 1
    for dimension, count in enumerate(source.counts):
        takes = r["op_dim"] >= TensorSubdimension.X + dimension
        total = total * r.where(takes, r.wide(count), total * 0 + 1)
    return r.where(source.indirect, source.element_count, total) if source.has_indirect else total


@rule(
    "NE0614",
    "s4d4_tr_element_count",
    opcodes=TR,
    source="dve-tensor-scalar.md 9.3, 4.4",
    tag="observed",
    examples=(
        Example(path="dst.num[0]", good=32, bad=31, opcode=0x46),
        Example(path="dst.num[0]", good=4, bad=8, opcode=0x42),
        Example(path="dst.num[0]", good=33, bad=65, opcode=0x6B),
        Example(path="src.num[0]", good=16, bad=17, opcode=0x6B),
    ),
)
def s4d4_tr_element_count(r: Review) -> None:
    """The destination must have as many elements as the word writes.

    Copies, scans and shuffles write as many as they read; a reduction the dimensions that op_dim
    leaves; STREAM_TRANSPOSE at most as many. A transpose reads a multiple of 32.
    """
    if r.opcode in TRANSPOSING:
        source = operand_of(r, "src")
        r.require(
            source.element_count % 32 == 0,
            _count_path("src", source),
            "a multiple of 32",
            subject="src element count",
            context="to transpose",
            actual=lambda: str(source.element_count),
            leaf="has_transpose_src_element_count_t4d",
            after=source.legal & source.counts_nonzero,
        )
    if r.opcode in REDUCING:
        _reduced_count(r)
    elif r.opcode == 0x6B:
        _fewer_or_same(r)
    else:
        equal_counts(r, "src", "dst", leaf="s4d4_tr_same_src_dst_count")


def _sound(r: Review) -> Truth:
    source, destination = operand_of(r, "src"), operand_of(r, "dst")
    legal = source.legal & destination.legal
    return legal & source.counts_nonzero & destination.counts_nonzero


def _reduced_count(r: Review) -> None:
    source, destination = operand_of(r, "src"), operand_of(r, "dst")
    # With a zero count this division would fail; the condition is quiet then.
    covered = _covered(r)
    wanted = source.element_count // r.where(covered == 0, covered * 0 + 1, covered)
    r.require(
        wanted == destination.element_count,
        _count_path("dst", destination),
        lambda: str(wanted),
        subject="dst element count",
        context="(what op_dim leaves of src)",
        actual=lambda: str(destination.element_count),
        after=_sound(r) & r.one_of(r["op_dim"], _FOLDED),
    )


def _fewer_or_same(r: Review) -> None:
    source, destination = operand_of(r, "src"), operand_of(r, "dst")
    r.require(
        destination.element_count <= source.element_count,
        _count_path("dst", destination),
        lambda: f"at most {source.element_count}",
        subject="dst element count",
        context="as in src",
        actual=lambda: str(destination.element_count),
        leaf="s4d4_tr_transpose_src_dst_count",
        after=_sound(r),
    )


# --- single fields ----------------------------------------------------------------------------


@rule(
    "NE0615",
    "is_valid_subdim",
    opcodes=TR,
    source="dve-tensor-scalar.md 9.3",
    tag="observed",
    examples=(
        Example(path="op_dim", good=2, bad=1, opcode=0x42),
        Example(path="op_dim", good=5, bad=0, opcode=0x4E),
        Example(path="op_dim", good=2, bad=3, opcode=0x46),
    ),
)
def s4d4_tr_subdimension(r: Review) -> None:
    """A fold needs op_dim X, XY, XYZ or XYZW; a word that folds nothing has UNUSED or X."""
    folds = r.opcode in REDUCING or r.opcode in CUMULATIVE
    legal = _FOLDED if folds else frozenset((0, 2))
    names = "X, XY, XYZ or XYZW" if folds else "UNUSED or X"
    r.require(r.one_of(r["op_dim"], legal), "op_dim", names)


@rule(
    "NE0616",
    "has_zero_negated_field",
    opcodes=TR,
    source="dve-tensor-scalar.md 9.3",
    tag="observed",
    examples=(
        Example(path="negated", good=1, bad=2, opcode=0x42),
        Example(path="negated", good=0, bad=1, opcode=0x52),
        Example(path="negated", good=0, bad=1, opcode=0x48),
    ),
)
def s4d4_tr_negated(r: Review) -> None:
    """Only an arithmetic reduction can be negated: 0 or 1 there, 0 elsewhere."""
    largest = int(r.opcode in (0x42, 0x83))
    r.require(r["negated"] <= largest, "negated", "0 or 1" if largest else "0")


@rule(
    "NE0617",
    "mask_enable_zero",
    opcodes=TR,
    source="dve-tensor-scalar.md 9.3",
    tag="observed",
    examples=(
        Example(path="mask_enable", good=1, bad=2, opcode=0x6B),
        Example(path="mask_enable", good=0, bad=1, opcode=0x46),
    ),
)
def s4d4_tr_mask_enable(r: Review) -> None:
    """Only STREAM_TRANSPOSE may mask a partial tile: 0 or 1 there, 0 elsewhere."""
    largest = int(r.opcode == 0x6B)
    r.require(r["mask_enable"] <= largest, "mask_enable", "0 or 1" if largest else "0")


_COMMANDS = {
    0x9D: frozenset((0, 2, 3)),
    0x9E: frozenset((0,)),
    0xE5: frozenset((0,)),
    0xEA: frozenset((0, 2, 3)),
}


@rule(
    "NE0618",
    "has_valid_s2s2d2_accum_cmd",
    opcodes=STT,
    source="dve-tensor-scalar.md 9.5, 7",
    tag="observed; inferred for SCALAR_TENSOR_TENSOR",
    examples=(
        Example(path="accumulator_cmd", good=3, bad=4, opcode=0xEA),
        Example(path="accumulator_cmd", good=0, bad=2, opcode=0xE5),
    ),
)
def stt_accumulator_command(r: Review) -> None:
    """SELECT_REDUCE and SCALAR_TENSOR_TENSOR take IDLE, ACCUMULATE and ZERO_ACCUMULATE.

    The others take IDLE. What SCALAR_TENSOR_TENSOR accumulates is not published.
    """
    legal = _COMMANDS[r.opcode]
    names = [AccumulatorCommand(code).name for code in sorted(legal)]
    r.require(
        r.one_of(r["accumulator_cmd"], legal),
        "accumulator_cmd",
        " or ".join(names),
        context=f"in {opcode_name(r.opcode)}",
    )


@rule(
    "NE0619",
    "has_valid_rev_ops",
    opcodes=STT,
    source="dve-tensor-scalar.md 9.5",
    tag="observed; inferred for SELECT_REDUCE",
    examples=(
        Example(path="reverse_operands", good=3, bad=4, opcode=0x9D),
        Example(path="reverse_operands", good=1, bad=2, opcode=0xEA),
    ),
)
def stt_reverse_operands(r: Review) -> None:
    """Operands may be reversed; SELECT_REDUCE can only reverse its predicate, by FIRST."""
    largest = 1 if r.opcode == 0xEA else 3
    names = "NONE or FIRST" if largest == 1 else "NONE, FIRST, SECOND or BOTH"
    r.require(r["reverse_operands"] <= largest, "reverse_operands", names)
