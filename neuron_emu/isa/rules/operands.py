"""Rules of the two operands: addresses, counts, channels and quadrants.

Rows 11 to 17 of isa-encoding.md 6.1, which the whole S3D3_TS family shares.
"""

from __future__ import annotations

from typing import Any

from neuron_emu.isa.enums import AddressMarker, DType
from neuron_emu.isa.families import tensor_scalar
from neuron_emu.isa.rules.addresses import check_place, check_register, start_partition
from neuron_emu.isa.rules.core import Example, Review, Truth, rule
from neuron_emu.isa.rules.dtypes import dtype_is_valid
from neuron_emu.isa.rules.predicates import (
    Operand,
    channels_in_range,
    counts_of,
    implies,
    marker_text,
    operand_of,
)

__all__ = ["GATHER", "INDIRECT_GENERATIONS", "OPCODES", "SCATTER", "check_operand"]

OPCODES = tensor_scalar.FAMILY.opcodes
PLAIN_GENERATIONS = ("sunda", "cayman")
TENSOR_NAMES = dict.fromkeys(PLAIN_GENERATIONS, "tensor3d_valid")
INDIRECT_GENERATIONS = ("mariana", "mariana_plus", "maverick")

GATHER: dict[str, int] = {
    "src.index.marker": AddressMarker.INDIRECT_IMM >> 5,
    "src.index.partition_offset": 0x4000,
    "src.data.partition_offset": 0x1000,
    "src.data.marker": 0,
    "src.num_elem": 8,
    "src.reserved": 0,
}
"""Turns the source of a standard word into a gather of eight elements."""
SCATTER = {path.replace("src.", "dst."): value for path, value in GATHER.items()}


# --- row 11 -----------------------------------------------------------------------------------


@rule(
    "NE0111",
    "tensor_scalar_tensor_chk",
    opcodes=OPCODES,
    source="isa-encoding.md 6.8",
    tag="observed for plain pairs, inferred for mixed ones",
    requires=("NE0001",),
    examples=(
        Example(path="dst.num[0]", good=8, bad=7),
        Example(path="dst.num_elem", good=8, bad=9, given=SCATTER),
    ),
)
def tensor_scalar_tensor_chk(r: Review) -> None:
    """Source and destination must have the same number of elements in a partition.

    A plain pattern counts the product of its counts, an indirect one its num_elem (leaf
    same_element_count_m3d). The predicate also repeats mem3d_valid of both operands, which
    is reported once, under NE0114 and NE0115. Its bound on the size of an indirect destination is
    printed nowhere and is read as none.
    """
    source, destination = operand_of(r, "src"), operand_of(r, "dst")
    wanted, found = source.element_count, destination.element_count
    sound = source.legal & source.counts_nonzero
    sound = sound & destination.legal & destination.counts_nonzero
    r.require(
        wanted == found,
        lambda: "dst.num_elem" if destination.indirect else "dst.num",
        lambda: f"{wanted}",
        subject="dst element count",
        context="as in src",
        actual=lambda: f"{found}",
        leaf="same_element_count_m3d",
        after=sound,
    )


# --- row 12 -----------------------------------------------------------------------------------


@rule(
    "NE0112",
    "has_valid_active_channel_range",
    names={"maverick": "has_valid_active_channel_range_with_tile"},
    opcodes=(*OPCODES, 0x24, 0x9B),
    source="isa-encoding.md 6.9",
    tag="observed; the tile test of maverick unknown",
    requires=("NE0001",),
    examples=(
        Example(path="num_active_channels", good=128, bad=129),
        Example(path="num_active_channels", good=1, bad=0, generation="maverick"),
    ),
)
def has_valid_active_channel_range(r: Review) -> None:
    """1 to 128 channels must take part.

    maverick also passes a tile id from byte 3 of the header. Its bits are published nowhere, so
    every word is read as tile 0, for which the rule is the older one.
    """
    last = r.generation.num_channels
    r.require(
        channels_in_range(r),
        "num_active_channels",
        f"1 to {last}",
        nearest=lambda: str(min(max(r["num_active_channels"], 1), last)),
    )


# --- row 13 -----------------------------------------------------------------------------------


@rule(
    "NE0113",
    "check_m3d_active_channels",
    names=dict.fromkeys(PLAIN_GENERATIONS, "start_addr_active_channels"),
    opcodes=OPCODES,
    source="isa-encoding.md 6.10",
    tag="observed rule of the vendor; inferred for the predicate",
    requires=("NE0001", "NE0112"),
    examples=(
        Example(
            path="num_active_channels",
            good=32,
            bad=64,
            given={"src.start.partition_offset": 32 * 0x40000},
        ),
        Example(
            path="dst.start.partition_offset",
            good=64 * 0x40000,
            bad=32 * 0x40000,
            given={"num_active_channels": 64},
        ),
        Example(
            path="src.data.partition_offset",
            good=0x1000,
            bad=16 * 0x40000 + 0x1000,
            given={
                **GATHER,
                "num_active_channels": 16,
                "src.index.marker": 5,
                "src.index.partition_offset": 3,
            },
        ),
    ),
)
def check_m3d_active_channels(r: Review) -> None:
    """Each operand must start on a partition that suits the channel count.

    Rounded up to a multiple of 32, 32 channels may start at 0, 32, 64 or 96; 64 at 0 or 64; 96
    and 128 at 0 only (leaf start_addr_active_channels). An address from a register passes. Of an
    indirect operand both the index and the data address are tested.
    """
    for name in ("src", "dst"):
        operand = operand_of(r, name)
        direct = f"{name}.start.partition_offset"
        start_partition(r, direct, operand.start, operand.plain, f"{name} start partition")
        if not operand.has_indirect:
            continue
        index = f"{name}.index.partition_offset"
        subject = f"{name} index start partition"
        start_partition(r, index, operand.start, operand.index_immediate, subject)
        data = f"{name}.data.partition_offset"
        subject = f"{name} data start partition"
        start_partition(r, data, operand.data, operand.indirect & operand.unflagged, subject)


# --- rows 14 and 15 ---------------------------------------------------------------------------


@rule(
    "NE0114",
    "mem3d_valid",
    names=TENSOR_NAMES,
    opcodes=OPCODES,
    source="isa-encoding.md 6.11, 6.12",
    tag="observed; shape registers a conflict, reserved bytes by policy indirect_reserved",
    requires=("NE0001",),
    examples=(
        Example(path="src.start.partition_offset", good=0x1004, bad=0x1002),
        Example(path="src.start.partition_offset", good=0x2000000, bad=0x2400000),
        Example(path="src.num[2]", good=8, bad=0, given={"src.num[0]": 1}),
        Example(path="src.start.marker", good=0, bad=2),
        Example(path="src.num_elem", good=8, bad=0, given=GATHER),
        Example(path="src.index.partition_offset", good=0x4000, bad=0x2000000, given=GATHER),
        Example(path="src.data.marker", good=0, bad=4, given=GATHER),
    ),
)
def source_is_valid(r: Review) -> None:
    """The source pattern must be readable: legal address form, place, alignment and counts.

    - The marker is IMM or ADDR_REG, or from mariana on INDIRECT_IMM or INDIRECT_REG. A shape from
      registers is refused: which registers hold it is published nowhere.
    - A register number is below 64 and its reserved bytes are zero; nothing else is tested then.
    - An immediate address lies in the SBUF or PSUM window and is aligned to its dtype. Windows
      cover whole partitions; no rule tests the far end of a pattern.
    - No count is zero.
    - The index of an indirect operand is an SBUF tensor of uint32; its data address has no flags.
    """
    check_operand(r, "src", r["in_dtype"], dtype_is_valid(r, "in_dtype"), writes=False)


@rule(
    "NE0115",
    "mem3d_valid",
    names=TENSOR_NAMES,
    opcodes=OPCODES,
    source="isa-encoding.md 6.11, 6.12",
    tag="observed; shape registers a conflict, reserved bytes by policy indirect_reserved",
    requires=("NE0001",),
    examples=(
        Example(
            path="out_dtype",
            good=DType.FP32,
            bad=DType.BFLOAT16,
            given={"dst.start.partition_offset": 0x2000000},
        ),
        Example(path="dst.start.partition_offset", good=0x2000, bad=0x2001),
        Example(path="dst.start.marker", good=0, bad=3),
        Example(path="dst.start.partition_offset", good=63, bad=64, given={"dst.start.marker": 4}),
        Example(path="dst.data.partition_offset", good=0x2001000, bad=0x2001002, given=SCATTER),
    ),
)
def destination_is_valid(r: Review) -> None:
    """The destination pattern must be writable: as NE0114, and PSUM takes 4-byte elements only.

    The PSUM rule follows the predicate; the vendor's documentation lists PSUM beside narrower
    dtypes without this restriction.
    """
    check_operand(r, "dst", r["out_dtype"], dtype_is_valid(r, "out_dtype"), writes=True)


def check_operand(r: Review, name: str, dtype: Any, dtype_ok: Truth, *, writes: bool) -> None:
    """State `mem3d_valid` of an operand; `dtype_ok` quiets what needs a legal dtype."""
    operand = operand_of(r, name)
    _check_marker(r, operand)
    _check_counts(r, operand)
    check_register(r, f"{name}.start", operand.word, operand.register, name)
    check_place(
        r,
        f"{name}.start",
        operand.start,
        operand.plain,
        name,
        dtype,
        dtype_ok,
        writes=writes,
    )
    if operand.has_indirect:
        _check_descriptor(r, operand, dtype, dtype_ok, writes=writes)


def _check_marker(r: Review, operand: Operand) -> None:
    path = f"{operand.name}.start.marker"
    legal = "IMM, ADDR_REG, INDIRECT_IMM or INDIRECT_REG"
    r.require(
        operand.legal,
        path,
        legal if r.generation.has_indirect else "IMM or ADDR_REG",
        subject=f"{operand.name} address marker",
        context="" if r.generation.has_indirect else f"on {r.generation.name}",
        actual=lambda: marker_text(operand.word),
    )


def _check_counts(r: Review, operand: Operand) -> None:
    for path, letter in zip(counts_of(r.record, operand.name), "XYZW", strict=False):
        r.require(
            operand.indirect | (r[path] != 0),
            path,
            "at least 1",
            subject=f"{operand.name} count {letter}",
            after=operand.legal,
        )


def _check_descriptor(
    r: Review, operand: Operand, dtype: Any, dtype_ok: Any, *, writes: bool
) -> None:
    name = operand.name
    r.require(
        implies(operand.indirect, r[f"{name}.num_elem"] != 0),
        f"{name}.num_elem",
        "at least 1",
        subject=f"{name} num_elem",
    )
    r.require(
        implies(
            operand.indirect & (r.policy.indirect_reserved == "refuse"),
            r[f"{name}.reserved"] == 0,
        ),
        f"{name}.reserved",
        "0",
        subject=f"{name} reserved half-word",
    )
    _check_index(r, operand)
    r.require(
        implies(operand.indirect, operand.unflagged),
        f"{name}.data.marker",
        "IMM",
        subject=f"{name} data address marker",
        actual=lambda: marker_text(r[f"{name}.data"]),
    )
    check_place(
        r,
        f"{name}.data",
        operand.data,
        operand.indirect & operand.unflagged,
        f"{name} data",
        dtype,
        dtype_ok,
        writes=writes,
    )


def _check_index(r: Review, operand: Operand) -> None:
    """The index is an SBUF tensor of uint32, or its address is in a register."""
    path, subject = f"{operand.name}.index", f"{operand.name} index"
    word, register = operand.word, operand.index_register
    index = operand.index_immediate
    check_place(r, path, operand.start, index, subject, DType.UINT32, True, psum=False)
    check_register(r, path, word, register, subject)
    r.require(
        implies(register, word & 0x10000000 == 0),
        f"{path}.partition_offset",
        "a register with address bit 28 zero",
        subject=subject,
        actual=lambda: f"{word:#010x}",
    )
