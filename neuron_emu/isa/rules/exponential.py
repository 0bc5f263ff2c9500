"""Rules of EXPONENTIAL alone: rows 3 and 7 to 10 of isa-encoding.md 6.1."""

from __future__ import annotations

from functools import partial

from neuron_emu.isa.enums import AccumulatorCommand, AluOp, DType, ReverseOperands
from neuron_emu.isa.families.tensor_scalar import EXPONENTIAL
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.rules.core import Example, Review, Truth, rule
from neuron_emu.isa.rules.dtypes import dtype_is_valid
from neuron_emu.isa.rules.immediates import check_seed
from neuron_emu.isa.rules.predicates import operand_of

__all__ = ["COMMANDS", "WIRED"]

WIRED = ("mariana", "mariana_plus", "maverick")
"""The generations that bind 0x30 to a validator (isa-encoding.md 5.2)."""
IDLE = AccumulatorCommand.IDLE
COMMANDS = frozenset(AccumulatorCommand) - {AccumulatorCommand.ZERO}
UNPACKED = frozenset((DType.FP32, DType.UINT32, DType.INT32))
"""Dtypes that are not processed in pairs (isa-encoding.md 6.5)."""
ODD_BFLOAT16: dict[str, int] = {
    "in_dtype": DType.BFLOAT16,
    "accumulator_cmd": AccumulatorCommand.ZERO_ACCUMULATE,
    "src.num[0]": 3,
    "dst.num[0]": 3,
}


@rule(
    "NE0103",
    "has_exponential_opcode",
    opcodes=(EXPONENTIAL,),
    generations=WIRED,
    source="isa-encoding.md 6.1 row 3",
    tag="observed",
    examples=(Example(path="header.opcode", good=0x30, bad=0x43),),
)
def has_exponential_opcode(r: Review) -> None:
    """The validator of EXPONENTIAL must be asked about opcode 0x30.

    It can fail only when that validator judges another word by name, since a word's own opcode
    picks its validator.
    """
    opcode = r["header.opcode"]
    r.require(
        opcode == EXPONENTIAL,
        "header.opcode",
        f"EXPONENTIAL ({EXPONENTIAL:#04x})",
        subject="opcode",
        actual=lambda: f"{opcode_name(opcode)} ({opcode:#04x})",
    )


@rule(
    "NE0107",
    "has_valid_exponential_accum_cmd",
    opcodes=(EXPONENTIAL,),
    generations=WIRED,
    source="isa-encoding.md 6.4",
    tag="observed",
    examples=(
        Example(path="accumulator_cmd", good=0, bad=1),
        Example(path="imm1.word", good=0, bad=0x3F000000, given={"accumulator_cmd": 2}),
        Example(path="accumulator_cmd", good=4, bad=2, given={"imm1.word": 0x3F000000}),
    ),
)
def has_valid_exponential_accum_cmd(r: Review) -> None:
    """The accumulator command must be one of four, and only LOAD_ACCUMULATE has a seed.

    IDLE, ACCUMULATE and ZERO_ACCUMULATE need imm1_src INSTRUCTION and imm1 zero; LOAD_ACCUMULATE
    takes its seed from imm1. ZERO alone is refused.
    """
    command = r["accumulator_cmd"]
    known = r.require(
        r.one_of(command, COMMANDS),
        "accumulator_cmd",
        "IDLE, ACCUMULATE, ZERO_ACCUMULATE or LOAD_ACCUMULATE",
    )
    check_seed(r, known)


@rule(
    "NE0108",
    "has_valid_exponential_num_elements",
    opcodes=(EXPONENTIAL,),
    generations=WIRED,
    source="isa-encoding.md 6.5",
    tag="observed; exp_upper_src_dim_even unknown",
    policy=("exp_upper_dim",),
    examples=(
        Example(path="src.step[0]", good=2, bad=1, given=ODD_BFLOAT16),
        Example(
            path="accumulator_cmd", good=0, bad=3, given={**ODD_BFLOAT16, "accumulator_cmd": 0}
        ),
        Example(
            path="in_dtype",
            good=DType.FP32,
            bad=DType.FP16,
            given={"accumulator_cmd": 3, "src.num[1]": 3, "dst.num[1]": 3},
        ),
    ),
)
def has_valid_exponential_num_elements(r: Review) -> None:
    """An accumulating word whose source is packed must have even counts.

    Dtypes other than FP32, UINT32 and INT32 are processed in pairs when the inner step is 1, so
    an accumulating word needs an even inner count (leaf exp_x_even_or_unpacked). IDLE words and
    words with an indirect operand are free.
    The leaf exp_upper_src_dim_even restricts the upper counts; its expression is printed nowhere.
    Policy `exp_upper_dim` decides: packed_even (default) needs each upper count of a packed
    source to be 1 or even, product_even needs an even product for every dtype, off needs nothing.
    """
    source, destination = operand_of(r, "src"), operand_of(r, "dst")
    command = r["accumulator_cmd"]
    free = (command == IDLE) | source.indirect | destination.indirect
    judged = r.one_of(command, COMMANDS) & dtype_is_valid(r, "in_dtype")
    judged = judged & source.legal & source.counts_nonzero
    unpacked = r.one_of(r["in_dtype"], UNPACKED) | (r["src.step[0]"] != 1)
    r.require(
        free | unpacked | (r["src.num[0]"] & 1 == 0),
        "src.num[0]",
        "even",
        subject="inner source count",
        context=lambda: f"to accumulate packed {DType(r['in_dtype']).name}",
        nearest=lambda: _nearest_even(r["src.num[0]"]),
        leaf="exp_x_even_or_unpacked",
        after=judged,
    )
    if r.policy.exp_upper_dim == "packed_even":
        _upper_counts_one_or_even(r, free | unpacked, judged)
    elif r.policy.exp_upper_dim == "product_even":
        even = (r["src.num[1]"] & 1 == 0) | (r["src.num[2]"] & 1 == 0)
        r.require(
            free | even,
            "src.num[1]",
            "even in their product",
            subject="upper source counts",
            actual=lambda: f"{r['src.num[1]']} and {r['src.num[2]']}",
            leaf="exp_upper_src_dim_even",
            after=judged,
        )


def _nearest_even(count: int) -> str:
    return str(min(count + 1, 0xFFFE))


def _upper_counts_one_or_even(r: Review, free: Truth, judged: Truth) -> None:
    for dimension, letter in ((1, "Y"), (2, "Z")):
        count = r[f"src.num[{dimension}]"]
        r.require(
            free | (count == 1) | (count & 1 == 0),
            f"src.num[{dimension}]",
            "1 or even",
            subject=f"source count {letter}",
            context=lambda: f"to accumulate packed {DType(r['in_dtype']).name}",
            nearest=partial(_nearest_even, count),
            leaf="exp_upper_src_dim_even",
            after=judged,
        )


@rule(
    "NE0109",
    "has_valid_exponential_ops",
    opcodes=(EXPONENTIAL,),
    generations=WIRED,
    source="isa-encoding.md 6.6",
    tag="observed",
    examples=(
        Example(path="op0", good=0, bad=AluOp.ADD),
        Example(path="op1", good=0, bad=AluOp.MULT),
        Example(path="reverse_operands", good=0, bad=1),
    ),
)
def has_valid_exponential_ops(r: Review) -> None:
    """Both ALU operations must be BYPASS and no operands may be reversed.

    The exponential is the function of the word itself; it is not composed from ALU operations.
    """
    r.require(r["op0"] == AluOp.BYPASS, "op0", "BYPASS")
    r.require(r["op1"] == AluOp.BYPASS, "op1", "BYPASS")
    r.require(r["reverse_operands"] == ReverseOperands.NONE, "reverse_operands", "NONE")


@rule(
    "NE0110",
    "s3d3_ts_exponential_unused_fields",
    opcodes=(EXPONENTIAL,),
    generations=WIRED,
    source="isa-encoding.md 6.7",
    tag="unknown: bytes 13 to 15",
    examples=(Example(path="reserved0", good=0, bad=1),),
)
def s3d3_ts_exponential_unused_fields(r: Review) -> None:
    """Bytes 13 to 15 must be zero.

    Only the name of the predicate is known. These are the only bytes of the word that nothing
    else binds.
    """
    r.require(r.is_zero("reserved0"), "reserved0", "zero", subject="reserved0 (bytes 13 to 15)")
