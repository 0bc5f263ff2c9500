"""Rules of D1_RD: ACTIVATION_READ_ACCUMULATOR and DVE_READ_ACCUMULATOR.

No page prints the conjunct names of these two validators; leaf names are used where a leaf is
known and plain names elsewhere. The channel rule is NE0112.
"""

from __future__ import annotations

from neuron_emu.isa.enums import DType
from neuron_emu.isa.families import accumulator_read
from neuron_emu.isa.families.accumulator_read import (
    ACTIVATION_READ_ACCUMULATOR,
    DVE_READ_ACCUMULATOR,
)
from neuron_emu.isa.rules.addresses import check_place, check_register, start_partition
from neuron_emu.isa.rules.core import Example, Review, rule
from neuron_emu.isa.rules.dtypes import describe_dtype, dtype_list
from neuron_emu.isa.rules.predicates import ADDR_REG, ADDRESS_MASK, IMM, Place, marker_text

__all__ = ["DTYPES"]

OPCODES = accumulator_read.FAMILY.opcodes
_WIDE = frozenset((DType.BFLOAT16, DType.FP16, DType.FP32, DType.FP32R))
DTYPES = {
    ACTIVATION_READ_ACCUMULATOR: _WIDE,
    DVE_READ_ACCUMULATOR: _WIDE | {DType.FP8_EXP3, DType.FP8_EXP4, DType.FP8_EXP5},
}
"""Destination dtypes by opcode (activation-tables.md 2.5, dve-tensor-scalar.md 7.1)."""


@rule(
    "NE0301",
    "read_accumulator_dtype",
    opcodes=OPCODES,
    source="activation-tables.md 2.5; dve-tensor-scalar.md 7.1",
    tag="observed",
    examples=(
        Example(path="dtype", good=DType.FP32R, bad=DType.INT32, opcode=DVE_READ_ACCUMULATOR),
        Example(
            path="dtype", good=DType.FP16, bad=DType.FP8_EXP4, opcode=ACTIVATION_READ_ACCUMULATOR
        ),
    ),
)
def read_accumulator_dtype(r: Review) -> None:
    """The accumulator must be written as a float: FP16, BFLOAT16, FP32 or FP32R.

    DVE_READ_ACCUMULATOR also writes the three fp8 kinds.
    """
    legal = DTYPES[r.opcode]
    r.require(
        r.one_of(r["dtype"], legal),
        "dtype",
        f"one of {dtype_list(legal)}",
        actual=lambda: describe_dtype(r, "dtype"),
    )


@rule(
    "NE0302",
    "read_accumulator_negated",
    opcodes=OPCODES,
    source="activation-tables.md 2.5",
    tag="observed",
    examples=(
        Example(path="negated", good=0, bad=1, opcode=ACTIVATION_READ_ACCUMULATOR),
        Example(path="negated", good=1, bad=2, opcode=DVE_READ_ACCUMULATOR),
    ),
)
def read_accumulator_negated(r: Review) -> None:
    """`negated` must be 0 for ACTIVATION_READ_ACCUMULATOR, and 0 or 1 for DVE_READ_ACCUMULATOR."""
    is_dve = r.opcode == DVE_READ_ACCUMULATOR
    r.require(r["negated"] <= int(is_dve), "negated", "0 or 1" if is_dve else "0")


@rule(
    "NE0303",
    "read_accumulator_element_count",
    opcodes=OPCODES,
    source="isa-encoding.md 5.4; activation-tables.md 2.5",
    tag="observed",
    examples=(
        Example(path="dst_element_count", good=1, bad=2, opcode=DVE_READ_ACCUMULATOR),
        Example(path="dst.num", good=1, bad=0, opcode=DVE_READ_ACCUMULATOR),
    ),
)
def read_accumulator_element_count(r: Review) -> None:
    """One element a lane is written: dst_element_count and the count of dst must be 1."""
    r.require(r["dst_element_count"] == 1, "dst_element_count", "1", nearest="1")
    r.require(r["dst.num"] == 1, "dst.num", "1", subject="dst count", nearest="1")


@rule(
    "NE0304",
    "read_accumulator_unused_fields",
    opcodes=OPCODES,
    source="isa-encoding.md 5.4; dve-tensor-scalar.md 7.1",
    tag="observed",
    examples=(
        Example(path="reserved0", good=0, bad=1, opcode=DVE_READ_ACCUMULATOR),
        Example(path="reserved1", good=0, bad=1, opcode=ACTIVATION_READ_ACCUMULATOR),
        Example(path="reserved2", good=0, bad=1, opcode=DVE_READ_ACCUMULATOR),
    ),
)
def read_accumulator_unused_fields(r: Review) -> None:
    """Bytes 12 to 27, 35 to 43 and 52 to 63 must be zero."""
    for name in ("reserved0", "reserved1", "reserved2"):
        r.require(r.is_zero(name), name, "zero")


@rule(
    "NE0305",
    "start_addr_active_channels",
    opcodes=OPCODES,
    source="isa-encoding.md 6.10",
    tag="inferred",
    requires=("NE0112",),
    examples=(
        Example(
            path="dst.start.partition_offset",
            good=64 * 0x40000,
            bad=32 * 0x40000,
            opcode=DVE_READ_ACCUMULATOR,
            given={"num_active_channels": 64},
        ),
    ),
)
def read_accumulator_start(r: Review) -> None:
    """The destination must start on a partition that suits the channel count, see NE0113."""
    word = r["dst.start"]
    start_partition(
        r,
        "dst.start.partition_offset",
        Place(r, word & ADDRESS_MASK),
        word >> 29 == IMM,
        "dst start partition",
    )


@rule(
    "NE0306",
    "tensor_start_addr_valid",
    opcodes=OPCODES,
    source="isa-encoding.md 6.12; activation-tables.md 2.5",
    tag="observed; PSUM write rule inferred from the family's predicate",
    examples=(
        Example(path="dst.start.partition_offset", good=4, bad=2, opcode=DVE_READ_ACCUMULATOR),
        Example(path="dst.start.marker", good=0, bad=1, opcode=ACTIVATION_READ_ACCUMULATOR),
        Example(
            path="dtype",
            good=DType.FP32,
            bad=DType.FP16,
            opcode=ACTIVATION_READ_ACCUMULATOR,
            given={"dst.start.partition_offset": 0x2000000},
        ),
    ),
)
def read_accumulator_destination(r: Review) -> None:
    """The destination must be writable: IMM or ADDR_REG, in SBUF or PSUM, aligned to its dtype.

    No indirect pattern and no shape from registers. PSUM takes 4-byte elements only.
    """
    word = r["dst.start"]
    marker = word >> 29
    r.require(
        (marker == IMM) | (marker == ADDR_REG),
        "dst.start.marker",
        "IMM or ADDR_REG",
        subject="dst address marker",
        actual=lambda: marker_text(word),
    )
    check_register(r, "dst.start", word, marker == ADDR_REG, "dst")
    check_place(
        r,
        "dst.start",
        Place(r, word & ADDRESS_MASK),
        marker == IMM,
        "dst",
        r["dtype"],
        r.one_of(r["dtype"], DTYPES[r.opcode]),
        writes=True,
    )
