"""Rules of D4_MR, S4D2_BN, S2_BN, S4D4_MR, S2D2_RS and the shuffle mask.

Source: dve-tensor-scalar.md 7.1, 9.1, 9.4, 9.6, 9.7. Operands and dtypes: `dve_operands`.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from neuron_emu.isa.alu_ops import op_name
from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.isa.families import memset, search
from neuron_emu.isa.families.mask_select import LOAD_MASK_SELECT, MASK_BYTES
from neuron_emu.isa.families.range_select import FILL_VALUE, RANGE_SELECT
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.rules.core import Example, Review, Truth, rule
from neuron_emu.isa.rules.predicates import counts_of, implies, operand_of
from neuron_emu.isa.rules.scalars import check_scalar
from neuron_emu.isa.text import float_text

__all__: list[str] = []

MEMSET, DVE_READ_INDICES = memset.MEMSET, memset.DVE_READ_INDICES
STATS = frozenset((0x60, 0x61, 0x82))
BN = search.BN_FAMILY.opcodes
COMPARISONS = frozenset(range(AluOp.IS_EQUAL, AluOp.IS_LT + 1))
LARGEST_INDEX = float(1 << 24)


def _count(r: Review, name: str) -> tuple[Any, Truth]:
    """Return the elements of a plain operand in a partition, and whether no count is zero."""
    counts = [r[path] for path in counts_of(r.record, name)]
    total = r.wide(counts[0])
    for count in counts[1:]:
        total = total * r.wide(count)
    return total, reduce(and_, (count != 0 for count in counts))


def _require_count(r: Review, name: str, truth: Any, legal: str, leaf: str = "") -> None:
    total, sound = _count(r, name)
    r.require(
        truth(total),
        f"{name}.num",
        legal,
        subject=f"{name} element count",
        context=f"in {opcode_name(r.opcode)}",
        actual=lambda: str(total),
        leaf=leaf,
        after=sound,
    )


# --- D4_MR ------------------------------------------------------------------------------------


@rule(
    "NE0621",
    "d4_mr_dst_element_count",
    opcodes=memset.FAMILY.opcodes,
    source="dve-tensor-scalar.md 9.4, 7.1",
    tag="observed",
    examples=(
        Example(path="dst_element_count", good=8, bad=7, opcode=MEMSET),
        Example(path="dst_element_count", good=8, bad=9, opcode=DVE_READ_INDICES),
    ),
)
def d4_mr_dst_element_count(r: Review) -> None:
    """dst_element_count repeats the elements of dst; DVE_READ_INDICES writes 8."""
    destination = operand_of(r, "dst")
    wanted = destination.element_count
    counted = destination.legal & destination.counts_nonzero
    r.require(
        r.wide(r["dst_element_count"]) == wanted,
        "dst_element_count",
        lambda: str(wanted),
        context="as in dst",
        after=counted,
    )
    if r.opcode == DVE_READ_INDICES:
        r.require(
            wanted == 8,
            lambda: "dst.num_elem" if destination.indirect else "dst.num",
            "8",
            subject="dst element count",
            actual=lambda: str(wanted),
            leaf="dve_read_indices_elem_count_8",
            after=counted & (r.wide(r["dst_element_count"]) == wanted),
        )


_WIDTHS = np.full(256, 0xFFFFFFFF, np.uint32)
for _dtype in DType:
    if 0 < _dtype.size_bytes < 4:
        _WIDTHS[_dtype] = (1 << 8 * _dtype.size_bytes) - 1


@rule(
    "NE0622",
    "d4_mr_set_value",
    opcodes=(MEMSET, DVE_READ_INDICES),
    source="dve-tensor-scalar.md 9.4, 7.1",
    tag="observed",
    requires=("NE0601",),
    examples=(
        Example(
            path="set_value",
            good=0xFFFF,
            bad=0x10000,
            opcode=MEMSET,
            given={"dtype": DType.BFLOAT16},
        ),
        Example(path="set_value", good=0, bad=1, opcode=DVE_READ_INDICES),
    ),
)
def d4_mr_set_value(r: Review) -> None:
    """The value must fit an element of dst, in whose encoding it is; without use it is zero."""
    if r.opcode == DVE_READ_INDICES:
        r.require(r["set_value"] == 0, "set_value", "0")
        return
    largest = _WIDTHS[r["dtype"]]
    r.require(
        r["set_value"] <= largest,
        "set_value",
        lambda: f"at most {int(largest):#x}",
        context="to fit dst",
        actual=lambda: f"{r['set_value']:#x}",
    )


@rule(
    "NE0623",
    "d4_mr_zero_serialization",
    opcodes=memset.FAMILY.opcodes,
    source="dve-tensor-scalar.md 9.4",
    tag="observed; that 0 is Serial inferred",
    examples=(Example(path="serialization_mode", good=0, bad=1, opcode=MEMSET),),
)
def d4_mr_serialization(r: Review) -> None:
    """The serialization mode must be Serial, which is read as 0."""
    r.require(r["serialization_mode"] == 0, "serialization_mode", "0 (Serial)")


# --- S4D2_BN ----------------------------------------------------------------------------------


@rule(
    "NE0631",
    "s4d2_bn_element_counts",
    opcodes=BN,
    source="dve-tensor-scalar.md 9.7",
    tag="observed; three elements of BN_STATS inferred",
    examples=(
        Example(path="dst.num[0]", good=8, bad=7, opcode=0x6C),
        Example(path="src.num[0]", good=8, bad=7, opcode=0x6E),
        Example(path="src.num[0]", good=512, bad=513, opcode=0x61),
        Example(path="src.num[0]", good=6, bad=7, opcode=0x62),
    ),
)
def s4d2_bn_element_counts(r: Review) -> None:
    """Counts must suit the word.

    MAX8 and FIND_INDEX8 read 8 to 16384 elements and write 8. BN_STATS2 reads up to 512 and writes
    6, TRANSPOSE_BN_STATS2 also a multiple of 32; BN_STATS writes 6 or, as one set, 3.
    BN_AGGREGATE reads triples and writes 2.
    """
    if r.opcode in (0x6C, 0x6E):
        _require_count(r, "src", lambda n: (n >= 8) & (n <= 16384), "8 to 16384")
        _require_count(r, "dst", lambda n: n == 8, "8")
    elif r.opcode == 0x62:
        _require_count(r, "src", lambda n: n % 3 == 0, "a multiple of 3")
        _require_count(r, "dst", lambda n: n == 2, "2")
    else:
        _stats_counts(r)


def _stats_counts(r: Review) -> None:
    if r.opcode == 0x82:
        leaf = "has_transpose_src_element_count_t4d"
        legal = "a multiple of 32 up to 512"
        _require_count(r, "src", lambda n: (n <= 512) & (n % 32 == 0), legal, leaf)
    else:
        _require_count(r, "src", lambda n: n <= 512, "at most 512")
    if r.opcode == 0x60:
        _require_count(r, "dst", lambda n: (n == 3) | (n == 6), "3 or 6")
    else:
        _require_count(r, "dst", lambda n: n == 6, "6")


@rule(
    "NE0632",
    "s4d2_bn_zero_counts",
    opcodes=BN,
    source="dve-tensor-scalar.md 9.7",
    tag="observed; inferred from the shared structure",
    examples=(
        Example(path="even_count", good=0, bad=0x3F800000, opcode=0x6C),
        Example(path="odd_count", good=0x40400000, bad=0x7F800000, opcode=0x61),
    ),
)
def s4d2_bn_zero_counts(r: Review) -> None:
    """even_count and odd_count must be finite in statistics, whose result repeats them, else 0."""
    for name in ("even_count", "odd_count"):
        bits = r[name]
        if r.opcode in STATS:
            r.require(
                bits & 0x7F800000 != 0x7F800000,
                name,
                "a finite float",
                actual=lambda bits=bits: float_text(int(bits)),
            )
        else:
            r.require(bits == 0, name, "0", actual=lambda bits=bits: float_text(int(bits)))


# --- keys, replacement, mask ------------------------------------------------------------------


@rule(
    "NE0641",
    "match_value_load_src_element_cnt",
    opcodes=(search.MATCH_VALUE_LOAD,),
    source="dve-tensor-scalar.md 9.7",
    tag="observed",
    examples=(
        Example(path="src.num[0]", good=8, bad=7, opcode=0x6D),
        Example(path="imm0.word", good=0, bad=1, opcode=0x6D),
        Example(path="imm0_src", good=0, bad=1, opcode=0x6D),
        Example(path="imm1.word", good=0, bad=1, opcode=0x6D),
    ),
)
def match_value_load_fields(r: Review) -> None:
    """Eight keys are loaded, and the immediates of the structure are zero."""
    _require_count(r, "src", lambda n: n == 8, "8")
    for path in ("imm0.word", "imm0_src", "imm1.word"):
        r.require(r[path] == 0, path, "0")


@rule(
    "NE0642",
    "match_replace8_element_cnt",
    opcodes=(search.MATCH_REPLACE8,),
    source="dve-tensor-scalar.md 9.7",
    tag="observed; the largest count inferred from its siblings",
    examples=(Example(path="dst.num[0]", good=8, bad=7, opcode=0x6F),),
)
def match_replace_counts(r: Review) -> None:
    """As many elements are written as are read, at most 16384."""
    _require_count(r, "src", lambda n: n <= 16384, "at most 16384")
    _same_counts(r)


def _same_counts(r: Review) -> None:
    (wanted, sound), (found, also) = _count(r, "src"), _count(r, "dst")
    r.require(
        wanted == found,
        "dst.num",
        lambda: str(wanted),
        subject="dst element count",
        context="as in src",
        actual=lambda: str(found),
        after=sound & also,
    )


@rule(
    "NE0643",
    "load_mask_select_bytes",
    opcodes=(LOAD_MASK_SELECT,),
    source="dve-tensor-scalar.md 9.1",
    tag="observed",
    examples=(
        Example(path="mask[0]", good=63, bad=64, opcode=LOAD_MASK_SELECT),
        Example(path="mask[31]", good=255, bad=254, opcode=LOAD_MASK_SELECT),
    ),
)
def load_mask_bytes(r: Review) -> None:
    """Each byte of the mask must be below 64, or 255 for a partition that stays as it is."""
    for number in range(MASK_BYTES):
        byte = r[f"mask[{number}]"]
        r.require((byte < 64) | (byte == 255), f"mask[{number}]", "below 64, or 255")


# --- RANGE_SELECT -----------------------------------------------------------------------------


@rule(
    "NE0651",
    "range_select_ops",
    opcodes=(RANGE_SELECT,),
    source="dve-tensor-scalar.md 9.6, 7",
    tag="observed",
    examples=(
        Example(path="comp_op0", good=AluOp.IS_LT, bad=AluOp.IS_NE, opcode=RANGE_SELECT),
        Example(path="reduce_op", good=AluOp.MAX, bad=AluOp.MIN, opcode=RANGE_SELECT),
        Example(path="reduce_cmd", good=3, bad=4, opcode=RANGE_SELECT),
    ),
)
def range_select_ops(r: Review) -> None:
    """Both comparisons must be ordered ones, the reduction MAX, without a seed.

    The comparisons are IS_EQUAL, IS_GT, IS_GE, IS_LE and IS_LT; the accumulator takes IDLE,
    ACCUMULATE and ZERO_ACCUMULATE.
    """
    names = " ".join(op_name(op) for op in sorted(COMPARISONS))
    for path in ("comp_op0", "comp_op1"):
        r.require(r.one_of(r[path], COMPARISONS), path, f"one of {names}")
    r.require(r["reduce_op"] == AluOp.MAX, "reduce_op", "MAX")
    commands = frozenset((0, 2, 3))
    legal = "IDLE, ACCUMULATE or ZERO_ACCUMULATE"
    r.require(r.one_of(r["reduce_cmd"], commands), "reduce_cmd", legal)


@rule(
    "NE0652",
    "range_select_bounds",
    opcodes=(RANGE_SELECT,),
    source="dve-tensor-scalar.md 9.6; isa-encoding.md 6.3",
    tag="observed",
    examples=(
        Example(path="bound0_src", good=0, bad=3, opcode=RANGE_SELECT),
        Example(
            path="bound1.word",
            good=0x2000,
            bad=0x2002,
            opcode=RANGE_SELECT,
            given={"bound1_src": 1},
        ),
        Example(path="fill_val", good=FILL_VALUE, bad=0xFF800000, opcode=RANGE_SELECT),
    ),
)
def range_select_bounds(r: Review) -> None:
    """Each bound must fit its source, see NE0106; the fill value is the lowest finite float32."""
    for name in ("bound0", "bound1"):
        check_scalar(r, name, f"{name}_src")
    r.require(
        r["fill_val"] == FILL_VALUE,
        "fill_val",
        float_text(FILL_VALUE),
        actual=lambda: float_text(int(r["fill_val"])),
    )


@rule(
    "NE0653",
    "range_select_counts",
    opcodes=(RANGE_SELECT,),
    source="dve-tensor-scalar.md 9.6",
    tag="observed",
    examples=(
        Example(path="dst.num[0]", good=8, bad=7, opcode=RANGE_SELECT),
        Example(path="base", good=0x4B7FFFF8, bad=0x4B7FFFF9, opcode=RANGE_SELECT),
    ),
)
def range_select_counts(r: Review) -> None:
    """As many elements are written as are read, and every index must be exact in fp32.

    base + count is at most 2^24, and base no NaN.
    """
    _same_counts(r)
    total, sound = _count(r, "src")
    with np.errstate(all="ignore"):
        base = np.asarray(r["base"], np.uint32).view(np.float32).astype(np.float64)
        last = base + np.asarray(total, np.float64)
        fits = last <= LARGEST_INDEX
    r.require(
        implies(sound, fits),
        "base",
        "at most 2^24 minus the element count",
        actual=lambda: float_text(int(r["base"])),
    )
