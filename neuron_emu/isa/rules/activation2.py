"""Rules of ACTIVATE2 alone: operations, reduction and scalars (activation-tables.md 2.6)."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

from neuron_emu.isa.alu_ops import op_name
from neuron_emu.isa.enums import AluOp, DType, ImmediateSource, ReverseOperands
from neuron_emu.isa.families.activation2 import ACTIVATE2, ReduceCommand
from neuron_emu.isa.rules import quadrants
from neuron_emu.isa.rules.activation import QUADRANT_1
from neuron_emu.isa.rules.core import Example, Review, rule
from neuron_emu.isa.rules.dtypes import INPUT_DTYPES, describe_dtype, dtype_list
from neuron_emu.isa.rules.predicates import Place, implies, operand_of
from neuron_emu.isa.rules.scalars import check_scalar

__all__ = ["OP_PAIRS"]

OP_PAIRS = (
    (AluOp.MULT, AluOp.ADD),
    (AluOp.MULT, AluOp.SUBTRACT),
    (AluOp.MULT, AluOp.BYPASS),
    (AluOp.ADD, AluOp.BYPASS),
    (AluOp.SUBTRACT, AluOp.BYPASS),
    (AluOp.BYPASS, AluOp.BYPASS),
)
REDUCE_OPS = frozenset((AluOp.ADD, AluOp.MAX, AluOp.MIN, AluOp.ABS_MAX, AluOp.ABS_MIN))
SCALARS = ("imm0", "imm1", "relu_param")


@rule(
    "NE0508",
    "activate2_ops",
    opcodes=(ACTIVATE2,),
    source="activation-tables.md 2.6",
    tag="observed; the range of reverse_operands inferred",
    examples=(
        Example(path="op1", good=AluOp.SUBTRACT, bad=AluOp.MULT),
        Example(path="op0", good=AluOp.MULT, bad=AluOp.ADD, given={"op1": AluOp.ADD}),
        Example(path="reverse_operands", good=3, bad=4),
    ),
)
def activate2_ops(r: Review) -> None:
    """(op0, op1) must be one of six pairs: a multiplication and an offset, or part of it.

    MULT with ADD, SUBTRACT or BYPASS; ADD, SUBTRACT or BYPASS with BYPASS.
    """
    op0, op1 = r["op0"], r["op1"]
    truth: Any = op0 != op0
    for first, second in OP_PAIRS:
        truth = truth | ((op0 == first) & (op1 == second))
    pairs = " ".join(f"({first.name},{second.name})" for first, second in OP_PAIRS)
    r.require(
        truth,
        "op1",
        f"one of {pairs}",
        subject="(op0,op1)",
        actual=lambda: f"({op_name(op0)},{op_name(op1)})",
    )
    r.require(
        r["reverse_operands"] <= ReverseOperands.BOTH,
        "reverse_operands",
        "NONE, FIRST, SECOND or BOTH",
    )


@rule(
    "NE0509",
    "activate2_reduce",
    opcodes=(ACTIVATE2,),
    source="activation-tables.md 2.6, 3.3",
    tag="observed",
    examples=(
        Example(path="reduce_op", good=0, bad=AluOp.ADD),
        Example(path="reduce_op", good=AluOp.ABS_MIN, bad=AluOp.MULT, given={"reduce_cmd": 2}),
        Example(path="reduce_cmd", good=3, bad=4, given={"reduce_op": AluOp.MAX}),
    ),
)
def activate2_reduce(r: Review) -> None:
    """A reducing word must name its operation, and a word that does not reduce must name none.

    The operations are ADD, MAX, MIN, ABS_MAX and ABS_MIN. LOAD_REDUCE (4) is a command of DVE
    operations and none of ACTIVATE2.
    """
    command, op = r["reduce_cmd"], r["reduce_op"]
    known = r.require(
        command <= ReduceCommand.RESET_REDUCE, "reduce_cmd", "IDLE, RESET, REDUCE or RESET_REDUCE"
    )
    idle = command == ReduceCommand.IDLE
    r.require(
        implies(idle, op == AluOp.BYPASS),
        "reduce_op",
        "BYPASS",
        context="with IDLE",
        actual=lambda: op_name(op),
    )
    r.require(
        idle | r.one_of(op, REDUCE_OPS),
        "reduce_op",
        "ADD, MAX, MIN, ABS_MAX or ABS_MIN",
        context=lambda: f"with {ReduceCommand(command).name}",
        actual=lambda: op_name(op),
        after=known,
    )


@rule(
    "NE0510",
    "activate2_immediates",
    opcodes=(ACTIVATE2,),
    source="activation-tables.md 2.6",
    tag="observed; alignment inferred",
    examples=(
        Example(path="imm_dtype", good=DType.BFLOAT16, bad=DType.FP32R),
        Example(path="imm0_src", good=0, bad=3, given={"imm0.word": 0}),
        Example(path="imm1.word", good=0x104, bad=0x102, given={"imm1_src": 1}),
        Example(path="relu_param.word", good=63, bad=64, given={"relu_param_src": 2}),
    ),
)
def activate2_immediates(r: Review) -> None:
    """imm0, imm1 and relu_param must fit their sources; imm_dtype, which they share, is not FP32R.

    A pointer is aligned to imm_dtype and starts on a partition that suits the channel count.
    """
    dtype = r["imm_dtype"]
    dtype_ok = r.require(
        r.one_of(dtype, INPUT_DTYPES),
        "imm_dtype",
        f"one of {dtype_list(INPUT_DTYPES)}",
        actual=lambda: describe_dtype(r, "imm_dtype"),
    )
    for name in SCALARS:
        check_scalar(r, name, f"{name}_src", dtype, dtype_ok)


@rule(
    "NE0511",
    "activate2_immediate_quadrants",
    opcodes=(ACTIVATE2,),
    source="activation-tables.md 2.6 (erratum 3071); isa-encoding.md 3.4",
    tag="observed; inferred for an indirect source and for registers",
    requires=("NE0510",),
    examples=(
        Example(
            path="imm0.word",
            good=0x100,
            bad=QUADRANT_1 + 0x100,
            given={"imm0_src": 1, "num_active_channels": 32},
        ),
        Example(path="imm0.word", good=0x100, bad=0x2000100, given={"imm0_src": 1}),
        Example(
            path="relu_param.word",
            good=0x100,
            bad=QUADRANT_1 + 0x100,
            given={
                "src.start.partition_offset": 0x2000000,
                "imm1_src": 1,
                "imm1.word": 0x100,
                "relu_param_src": 1,
                "num_active_channels": 32,
            },
        ),
    ),
)
def activate2_immediate_quadrants(r: Review) -> None:
    """Pointers to scalars must share one SBUF quadrant, that of the source if it is in SBUF.

    With the source in PSUM the scalars are values in the word or all in one quadrant of SBUF
    (erratum 3071). The data address of an indirect source counts. Addresses from registers pass.
    """
    source = operand_of(r, "src")
    anchor, known = source.start, source.plain
    if source.has_indirect:
        address = r.where(source.indirect, source.data.address, source.start.address)
        anchor = Place(r, address)
        known = known | (source.indirect & source.unflagged)
    places = {name: Place(r, r[f"{name}.word"]) for name in SCALARS}
    is_pointer = {name: r[f"{name}_src"] == ImmediateSource.POINTER for name in SCALARS}
    known = known & anchor.in_memory
    for name, place in places.items():
        applies = known & is_pointer[name]
        r.require(
            implies(applies, place.in_sbuf),
            f"{name}.word",
            "in SBUF",
            subject=f"{name} pointer",
            actual=partial("{:#x} in PSUM".format, place.address),
            leaf="addresses_in_same_sbuf_quadrant",
        )
        quadrants.same_quadrant(
            r,
            applies & (anchor.in_psum ^ True),
            f"{name}.word",
            (f"{name} pointer", place),
            ("src", anchor),
        )
    for first, second in combinations(SCALARS, 2):
        quadrants.same_quadrant(
            r,
            known & anchor.in_psum & is_pointer[first] & is_pointer[second],
            f"{second}.word",
            (f"{second} pointer", places[second]),
            (first, places[first]),
        )


@rule(
    "NE0512",
    "activate2_unused_fields",
    opcodes=(ACTIVATE2,),
    source="activation-tables.md 2.6",
    tag="unknown: bytes 61 to 63",
    examples=(Example(path="reserved0", good=0, bad=0x10000),),
)
def activate2_unused_fields(r: Review) -> None:
    """Bytes 61 to 63 must be zero, as every sibling structure zeroes its tail."""
    r.require(r.is_zero("reserved0"), "reserved0", "zero", subject="reserved0 (bytes 61 to 63)")
