"""Rules of the Tensor-Scalar opcodes of S3D3_TS, but EXPONENTIAL.

Source: dve-tensor-scalar.md 4.2 to 4.6 and 5.4. Operands, dtypes, scalars and channels are shared
with EXPONENTIAL (NE0104 to NE0106 and NE0111 to NE0117). No page prints the names of the
conjuncts, so all but the two ALU predicates have plain ones.
"""

from __future__ import annotations

from neuron_emu.isa.alu_ops import (
    BITVEC_OPS,
    CACHE_REDUCE_OPS,
    dve_integer_ops,
    general_arith_ops,
)
from neuron_emu.isa.enums import AccumulatorCommand, AluOp, DType, member
from neuron_emu.isa.families import tensor_scalar
from neuron_emu.isa.families.tensor_scalar import BITVEC_OPCODES, EXPONENTIAL
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.rules.core import Example, Review, Text, Truth, rule
from neuron_emu.isa.rules.dtypes import dtype_is_valid, dtype_list
from neuron_emu.isa.rules.immediates import check_seed
from neuron_emu.isa.rules.predicates import FOUR_BYTE_DTYPES, implies, operand_of

__all__ = ["CACHE_INPUTS", "CACHE_OPCODES", "INTEGER_DTYPES"]

OPCODES = frozenset(tensor_scalar.FAMILY.opcodes) - {EXPONENTIAL}
CACHE_OPCODES = frozenset((0x9A, 0xE6))
TWO_STAGE_OPCODES = OPCODES - CACHE_OPCODES
ARITH_OPCODES = OPCODES - BITVEC_OPCODES
TRANSPOSE = 0x93

NEVER_OPS = frozenset((AluOp.DIVIDE, AluOp.POW, AluOp.MOD))
LEFT_SHIFTS = frozenset((AluOp.ARITH_SHIFT_LEFT, AluOp.LOGICAL_SHIFT_LEFT))
RIGHT_SHIFTS = frozenset((AluOp.ARITH_SHIFT_RIGHT, AluOp.LOGICAL_SHIFT_RIGHT))
INTEGER_DTYPES = frozenset((*range(DType.INT8, DType.UINT16 + 1), DType.INT32, DType.UINT32))
CACHE_INPUTS = frozenset((0x0D, 0x0E, 0x0F, 0x07, 0x06, 0x0A, 0x02, 0x03, 0x04, 0x05))
CACHE_COMMANDS = frozenset((2, 3, 4))


def _op_name(code: int) -> str:
    known = member(AluOp, code)
    return known.name if known is not None else f"{code:#04x}"


def _op_list(ops: frozenset[int]) -> str:
    return " ".join(_op_name(code) for code in sorted(ops))


@rule(
    "NE0201",
    "tensor_scalar_unused_fields",
    opcodes=OPCODES,
    source="dve-tensor-scalar.md 4.2 rule 2",
    tag="observed; inferred for the deprecated and the cache opcodes",
    examples=(Example(path="reserved0", good=0, bad=0x10000, opcode=0x43),),
)
def tensor_scalar_unused_fields(r: Review) -> None:
    """Bytes 13 to 15 must be zero."""
    r.require(r.is_zero("reserved0"), "reserved0", "zero", subject="reserved0 (bytes 13 to 15)")


@rule(
    "NE0202",
    "tensor_scalar_accum_cmd",
    opcodes=TWO_STAGE_OPCODES,
    source="dve-tensor-scalar.md 4.2 rule 3",
    tag="observed; inferred for the deprecated opcodes",
    examples=(Example(path="accumulator_cmd", good=0, bad=2, opcode=0x43),),
)
def tensor_scalar_accum_cmd(r: Review) -> None:
    """A two-stage word does not accumulate: its command must be IDLE.

    TENSOR_SCALAR_CACHE_REDUCE is the accumulating form.
    """
    r.require(r["accumulator_cmd"] == AccumulatorCommand.IDLE, "accumulator_cmd", "IDLE")


@rule(
    "NE0203",
    "tensor_scalar_ops_in_enum",
    opcodes=OPCODES,
    source="dve-tensor-scalar.md 4.2 rule 4, 5.1, 5.2",
    tag="observed",
    examples=(
        Example(path="op0", good=AluOp.MULT, bad=0x1E, opcode=0x43),
        Example(path="op1", good=AluOp.ADD, bad=AluOp.SQUARE, opcode=0x43, generation="cayman"),
    ),
)
def tensor_scalar_ops_in_enum(r: Review) -> None:
    """Both operations must be in the ALU enum of the generation."""
    for name in ("op0", "op1"):
        r.require(
            r.one_of(r[name], r.generation.alu_ops), name, f"an ALU operation of {r.generation}"
        )


@rule(
    "NE0204",
    "tensor_scalar_ops_supported",
    opcodes=TWO_STAGE_OPCODES,
    source="dve-tensor-scalar.md 4.2 rule 5",
    tag="observed",
    examples=(
        Example(path="op0", good=AluOp.MULT, bad=AluOp.DIVIDE, opcode=0x43),
        Example(path="op1", good=AluOp.BITWISE_OR, bad=AluOp.MOD, opcode=0x53),
    ),
)
def tensor_scalar_ops_supported(r: Review) -> None:
    """Neither operation may be DIVIDE, POW or MOD, which no DVE word of the family takes."""
    for name in ("op0", "op1"):
        others = "another operation than DIVIDE, POW and MOD"
        r.require(r.one_of(r[name], NEVER_OPS) ^ True, name, others)


@rule(
    "NE0205",
    "tensor_scalar_op_order",
    opcodes=TWO_STAGE_OPCODES,
    source="dve-tensor-scalar.md 4.2 rule 6",
    tag="observed",
    examples=(Example(path="op0", good=AluOp.MULT, bad=AluOp.BYPASS, opcode=0x43),),
)
def tensor_scalar_op_order(r: Review) -> None:
    """A single operation stands in op0: BYPASS there needs BYPASS in op1 too."""
    r.require(
        (r["op0"] != AluOp.BYPASS) | (r["op1"] == AluOp.BYPASS),
        "op0",
        lambda: f"the operation ({_op_name(r['op1'])})",
        context="with BYPASS in op1",
    )


def _known(r: Review, name: str) -> Truth:
    """Tell whether an operation passes NE0203 and, where that applies, NE0204."""
    never = NEVER_OPS if r.opcode in TWO_STAGE_OPCODES else frozenset()
    return r.one_of(r[name], r.generation.alu_ops - never)


@rule(
    "NE0206",
    "is_bitvec_op",
    opcodes=BITVEC_OPCODES,
    source="dve-tensor-scalar.md 4.2 rule 7, 5.4",
    tag="observed",
    examples=(Example(path="op1", good=AluOp.BITWISE_OR, bad=AluOp.ADD, opcode=0x53),),
)
def both_are_bitvec_ops(r: Review) -> None:
    """Both operations of a bit word must be bit operations.

    CRC32 passes, though only other engines compute it.
    """
    for name in ("op0", "op1"):
        legal = f"one of {_op_list(BITVEC_OPS)}"
        r.require(r.one_of(r[name], BITVEC_OPS), name, legal, after=_known(r, name))


@rule(
    "NE0207",
    "is_general_arith_op",
    opcodes=ARITH_OPCODES,
    source="dve-tensor-scalar.md 4.2 rules 8 and 9, 4.5, 5.4",
    tag="observed; SYMMETRIC_CLAMP of maverick unknown",
    examples=(
        Example(path="op0", good=AluOp.MULT, bad=AluOp.BITWISE_AND, opcode=0x43),
        Example(path="op1", good=AluOp.BYPASS, bad=AluOp.ADD, opcode=0x43,
                given={"op0": AluOp.RSQRT, "imm0.word": 0, "imm1.word": 0}),
        Example(path="op1", good=AluOp.ADD_INT, bad=AluOp.ADD, opcode=0x43,
                given={"op0": AluOp.MULT_INT}, generation="maverick"),
        Example(path="op0", good=AluOp.ADD, bad=AluOp.ADD_INT, opcode=0x9A, generation="maverick"),
    ),
)  # fmt: skip
def both_are_general_arith_ops(r: Review) -> None:
    """Operations of an arithmetic word must be general arithmetic.

    TENSOR_SCALAR forms also take RSQRT alone: in op0, with BYPASS in op1, both scalars inline
    and zero; only other engines compute it. On maverick they take two operations of the integer
    set instead, not a mixture. In a cache word op0 is tested, without these exceptions; for op1
    see NE0213.
    """
    general = general_arith_ops(r.generation)
    integer = frozenset() if r.opcode in CACHE_OPCODES else dve_integer_ops(r.generation)
    names = ("op0",) if r.opcode in CACHE_OPCODES else ("op0", "op1")
    rsqrt = _rsqrt_exception(r)
    listed = True
    for name in names:
        listed = listed & r.require(
            r.one_of(r[name], general | integer) | rsqrt,
            name,
            f"one of {_op_list(general | integer)}",
            actual=lambda name=name: _refused_op(r, name),
            after=_known(r, name),
        )
    if integer:
        both_general = r.one_of(r["op0"], general) & r.one_of(r["op1"], general)
        both_integer = r.one_of(r["op0"], integer) & r.one_of(r["op1"], integer)
        r.require(
            both_general | both_integer | rsqrt,
            "op1",
            lambda: f"an integer operation too, or neither (op0 is {_op_name(r['op0'])})",
            after=listed & _known(r, "op0") & _known(r, "op1"),
        )


def _rsqrt_exception(r: Review) -> Truth:
    if r.opcode in CACHE_OPCODES:
        return False
    alone = (r["op0"] == AluOp.RSQRT) & (r["op1"] == AluOp.BYPASS)
    inline = (r["imm0_src"] == 0) & (r["imm1_src"] == 0)
    return alone & inline & (r["imm0.word"] == 0) & (r["imm1.word"] == 0)


def _refused_op(r: Review, name: str) -> str:
    if r[name] != AluOp.RSQRT or r.opcode in CACHE_OPCODES:
        return _op_name(r[name])
    return "RSQRT, which stands alone in op0 with both scalars inline and zero"


@rule(
    "NE0208",
    "tensor_scalar_bitvec_dtypes",
    opcodes=BITVEC_OPCODES,
    source="dve-tensor-scalar.md 4.2 rule 10",
    tag="observed",
    requires=("NE0104", "NE0105"),
    examples=(
        Example(path="out_dtype", good=DType.UINT16, bad=DType.INT16, opcode=0x53),
        Example(path="in_dtype", good=DType.UINT16, bad=DType.BFLOAT16, opcode=0x53),
    ),
)
def tensor_scalar_bitvec_dtypes(r: Review) -> None:
    """A bit word must read and write the same integer dtype, since it converts nothing."""
    integer = r.require(
        r.one_of(r["in_dtype"], INTEGER_DTYPES),
        "in_dtype",
        f"one of {dtype_list(INTEGER_DTYPES)}",
        context=f"in {opcode_name(r.opcode)}",
    )
    r.require(
        r["in_dtype"] == r["out_dtype"],
        "out_dtype",
        lambda: DType(r["in_dtype"]).name,
        context="as in_dtype",
        after=integer,
    )


@rule(
    "NE0209",
    "tensor_scalar_shift_check",
    opcodes=BITVEC_OPCODES,
    source="dve-tensor-scalar.md 4.2 rule 12",
    tag="observed",
    requires=("NE0104", "NE0105", "NE0208"),
    examples=(
        Example(path="op0", good=AluOp.LOGICAL_SHIFT_RIGHT, bad=AluOp.ARITH_SHIFT_RIGHT,
                opcode=0x53),
        Example(path="op1", good=AluOp.LOGICAL_SHIFT_LEFT, bad=AluOp.LOGICAL_SHIFT_RIGHT,
                opcode=0x53, given={"op0": AluOp.LOGICAL_SHIFT_LEFT}),
    ),
)  # fmt: skip
def tensor_scalar_shift_check(r: Review) -> None:
    """Two kinds of shift need a 4-byte dtype.

    Any ARITH_SHIFT_RIGHT, and a left shift in op0 that is followed by a right shift in op1: a
    narrower element is held in more bits than it has.
    """
    wide = r.one_of(r["in_dtype"], FOUR_BYTE_DTYPES)
    for name in ("op0", "op1"):
        arithmetic = r[name] == AluOp.ARITH_SHIFT_RIGHT
        _require_wide(r, implies(arithmetic, wide), f"for ARITH_SHIFT_RIGHT in {name}", True)
    both = r.one_of(r["op0"], LEFT_SHIFTS) & r.one_of(r["op1"], RIGHT_SHIFTS)
    told = r["op1"] == AluOp.ARITH_SHIFT_RIGHT
    context = "for a left shift followed by a right shift"
    _require_wide(r, implies(both, wide), context, told ^ True)


def _require_wide(r: Review, truth: Truth, context: Text, after: Truth) -> None:
    r.require(truth, "in_dtype", "INT32 or UINT32", context=context, after=after)


@rule(
    "NE0210",
    "tensor_scalar_reverse_operands",
    opcodes=OPCODES,
    source="dve-tensor-scalar.md 4.2 rule 15, 4.5",
    tag="observed",
    examples=(
        Example(path="reverse_operands", good=3, bad=4, opcode=0x43),
        Example(path="reverse_operands", good=0, bad=1, opcode=0xE6),
    ),
)
def tensor_scalar_reverse_operands(r: Review) -> None:
    """Operands may be reversed in a two-stage word; a cache word must have NONE."""
    cache = r.opcode in CACHE_OPCODES
    r.require(
        r["reverse_operands"] <= (0 if cache else 3),
        "reverse_operands",
        "NONE" if cache else "NONE, FIRST, SECOND or BOTH",
    )


@rule(
    "NE0211",
    "tensor_scalar_transpose_shape",
    opcodes=(TRANSPOSE,),
    source="dve-tensor-scalar.md 4.2 rule 18",
    tag="observed",
    requires=("NE0112",),
    examples=(
        Example(path="num_active_channels", good=96, bad=48, opcode=TRANSPOSE),
        Example(path="header.opcode", good=0x43, bad=TRANSPOSE, opcode=0x43),
    ),
)
def tensor_scalar_transpose_shape(r: Review) -> None:
    """A transposing word works on tiles of 32 channels by 32 elements.

    The source must hold a multiple of 32 elements, and 32, 64, 96 or 128 channels take part.
    """
    channels = r["num_active_channels"]
    r.require(
        channels % 32 == 0,
        "num_active_channels",
        "32, 64, 96 or 128",
        context="to transpose",
        nearest=lambda: str(-(-channels // 32) * 32),
    )
    source = operand_of(r, "src")
    total = source.element_count
    r.require(
        total % 32 == 0,
        lambda: "src.num_elem" if source.indirect else "src.num",
        "a multiple of 32",
        subject="src element count",
        context="to transpose",
        actual=lambda: str(total),
        nearest=lambda: str(-(-total // 32) * 32),
        after=source.legal,
    )


@rule(
    "NE0212",
    "tensor_scalar_cache_accum_cmd",
    opcodes=CACHE_OPCODES,
    source="dve-tensor-scalar.md 4.5",
    tag="observed",
    examples=(
        Example(path="accumulator_cmd", good=3, bad=0, opcode=0x9A),
        Example(path="imm1.word", good=0, bad=0x41200000, opcode=0xE6),
        Example(path="accumulator_cmd", good=4, bad=2, opcode=0x9A, given={"imm1_src": 2}),
    ),
)
def tensor_scalar_cache_accum_cmd(r: Review) -> None:
    """A cache word must accumulate, and only LOAD_ACCUMULATE has a seed.

    ACCUMULATE and ZERO_ACCUMULATE need imm1_src INSTRUCTION and imm1 zero.
    """
    command = r["accumulator_cmd"]
    known = r.require(
        r.one_of(command, CACHE_COMMANDS),
        "accumulator_cmd",
        "ACCUMULATE, ZERO_ACCUMULATE or LOAD_ACCUMULATE",
        context=f"in {opcode_name(r.opcode)}",
    )
    check_seed(r, known)


@rule(
    "NE0213",
    "tensor_scalar_cache_reduce_op",
    opcodes=CACHE_OPCODES,
    source="dve-tensor-scalar.md 4.5",
    tag="observed",
    requires=("NE0203",),
    examples=(Example(path="op1", good=AluOp.MAX, bad=AluOp.BYPASS, opcode=0x9A),),
)
def tensor_scalar_cache_reduce_op(r: Review) -> None:
    """op1 of a cache word folds the results: it must be ADD, SUBTRACT, MULT, MAX or MIN."""
    r.require(r.one_of(r["op1"], CACHE_REDUCE_OPS), "op1", f"one of {_op_list(CACHE_REDUCE_OPS)}")


@rule(
    "NE0214",
    "tensor_scalar_cache_dtypes",
    opcodes=CACHE_OPCODES,
    source="dve-tensor-scalar.md 4.5",
    tag="observed",
    examples=(
        Example(path="in_dtype", good=DType.FP32, bad=DType.INT32, opcode=0x9A),
        Example(path="out_dtype", good=DType.FP32R, bad=DType.UINT32, opcode=0xE6),
    ),
)
def tensor_scalar_cache_dtypes(r: Review) -> None:
    """A cache word takes floats and integers of 8 or 16 bits; the destination also FP32R."""
    for name, legal in (("in_dtype", CACHE_INPUTS), ("out_dtype", CACHE_INPUTS | {DType.FP32R})):
        r.require(
            r.one_of(r[name], legal),
            name,
            f"one of {dtype_list(legal)}",
            context=f"in {opcode_name(r.opcode)}",
            after=dtype_is_valid(r, name),
        )
