"""Rules that the everyday DVE opcodes share: dtypes, channels, addresses, unused fields.

Source: dve-tensor-scalar.md 9; isa-encoding.md 6.9 to 6.14. Names are those of the header where a
page prints them, plain ones elsewhere.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.enums import DType
from neuron_emu.isa.families import tensor_reduce
from neuron_emu.isa.layout import rows_of
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.rules import quadrants
from neuron_emu.isa.rules.addresses import check_place, check_register, start_partition
from neuron_emu.isa.rules.core import Example, Review, Truth, rule
from neuron_emu.isa.rules.dtypes import describe_dtype, dtype_list
from neuron_emu.isa.rules.dve_slots import (
    BITVEC,
    OPCODES,
    SLOTS,
    TILED,
    TWO_INPUTS,
    Slot,
    dtype_of,
    dtype_ok,
    legal_dtypes,
)
from neuron_emu.isa.rules.operands import GATHER, INDIRECT_GENERATIONS, SCATTER, check_operand
from neuron_emu.isa.rules.predicates import (
    ADDR_REG,
    ADDRESS_MASK,
    IMM,
    Place,
    channels_in_range,
    counts_of,
    implies,
    marker_text,
    operand_of,
)
from neuron_emu.isa.rules.scalars import check_scalar

__all__: list[str] = []

MASK_OPCODE = 0x69
SCALARS = frozenset((0x9D, 0x9E, 0xE5, 0xEA))
QUADRANT_1 = 32 * 0x40000
PSUM = 0x2000000


@rule(
    "NE0601",
    "is_valid_dtype",
    opcodes=OPCODES,
    source="dve-tensor-scalar.md 6.2, 9.2 to 9.7",
    tag="observed; inferred for SCALAR_TENSOR_TENSOR_BITVEC and batch norm",
    examples=(
        Example(path="in_dtype", good=0xAA, bad=0xBA, opcode=0x41),
        Example(path="in_dtype", good=DType.FP32, bad=DType.FP32R, opcode=0x42),
        Example(path="out_dtype", good=DType.FP32R, bad=DType.INT64, opcode=0x48),
        Example(path="in_dtype", good=0xA3, bad=0xA6, opcode=0x72),
        Example(path="in_dtype", good=0xA3, bad=0x83, opcode=0xEA),
        Example(path="out_dtype", good=DType.UINT16, bad=DType.INT16, opcode=0x6E),
        Example(path="dtype", good=DType.FP16, bad=DType.FP32R, opcode=0x49),
    ),
)
def dve_dtypes(r: Review) -> None:
    """Each operand must have a dtype that its opcode takes.

    In general that is what NE0104 and NE0105 list. Words on raw bits take integers, predicates
    too; the data of SELECT_REDUCE are no 32-bit integers; indices are UINT16 or UINT32;
    statistics are written as FP32, BFLOAT16 or FP16; MATCH_REPLACE8 takes seven dtypes, and
    reductions also 64-bit integers.
    """
    slots = SLOTS[r.opcode]
    for number, slot in enumerate(slots):
        if slot.dtype_path in [earlier.dtype_path for earlier in slots[:number]]:
            continue  # One field for source and destination is judged once, as the source's.
        legal = legal_dtypes(r.opcode, slot)
        r.require(
            r.one_of(dtype_of(r, slot), legal),
            slot.dtype_path,
            f"one of {dtype_list(legal)}",
            subject=f"{slot.name} dtype",
            context=f"in {opcode_name(r.opcode)}",
            actual=partial(describe_dtype, r, slot.dtype_path),
        )


_SAME: dict[int, tuple[int, ...]] = {
    **dict.fromkeys((0x46, 0x6A, 0x6B, 0x52, 0x84, 0x5E), (0, 1)),
    0x72: (1, 2),
    0x51: (0, 2),
    0x9E: (0, 1, 2),
}
"""Numbers of the operands that must have one dtype."""


@rule(
    "NE0602",
    "same_src_dst_type",
    opcodes=_SAME,
    source="dve-tensor-scalar.md 9.2, 9.3",
    tag="observed; inferred for SCALAR_TENSOR_TENSOR_BITVEC",
    requires=("NE0601",),
    examples=(
        Example(path="out_dtype", good=DType.FP32, bad=DType.BFLOAT16, opcode=0x46),
        Example(path="out_dtype", good=DType.FP32, bad=DType.FP16, opcode=0x72),
        Example(path="in_dtype", good=0x55, bad=0x45, opcode=0x51),
        Example(path="out_dtype", good=DType.UINT16, bad=DType.UINT8, opcode=0x9E),
    ),
)
def dve_same_dtypes(r: Review) -> None:
    """A copy and a word on raw bits convert nothing: their operands must have one dtype.

    In TENSOR_TENSOR_BITVEC a shift of 64-bit integers takes its count as UINT32.
    """
    slots = SLOTS[r.opcode]
    first, *others = (slots[number] for number in _SAME[r.opcode])
    for slot in others:
        _require_same(r, slot, first)
    if r.opcode == 0x51:
        is_wide = r.one_of(dtype_of(r, slots[0]), frozenset((DType.UINT64, DType.INT64)))
        shifts = frozenset((0x02, 0x03, 0x10, 0x11))
        counted = is_wide & r.one_of(r["op"], shifts) & (dtype_of(r, slots[1]) == DType.UINT32)
        _require_same(r, slots[1], slots[0], counted)


def _require_same(r: Review, slot: Slot, first: Slot, is_exempt: Truth = False) -> None:
    wanted, found = dtype_of(r, first), dtype_of(r, slot)
    r.require(
        (found == wanted) | is_exempt,
        slot.dtype_path,
        lambda: DType(wanted).name,
        subject=f"{slot.name} dtype",
        context=f"as {first.name}",
    )


@rule(
    "NE0603",
    "has_valid_active_channel_range",
    names={"maverick": "has_valid_active_channel_range_with_tile"},
    opcodes=OPCODES,
    source="isa-encoding.md 6.9; dve-tensor-scalar.md 9.3",
    tag="observed; the tile test of maverick unknown",
    examples=(
        Example(path="num_active_channels", good=128, bad=129, opcode=0x41),
        Example(path="num_active_channels", good=32, bad=31, opcode=0x6B),
    ),
)
def dve_channels(r: Review) -> None:
    """1 to 128 channels must take part; words that move across lanes take whole quadrants.

    STREAM_SHUFFLE, STREAM_TRANSPOSE and the transposing words need 32, 64, 96 or 128
    (leaf has_multiple_32_channels).
    """
    channels = r["num_active_channels"]
    last = r.generation.num_channels
    known = r.require(channels_in_range(r), "num_active_channels", f"1 to {last}")
    if r.opcode in TILED:
        r.require(
            channels % 32 == 0,
            "num_active_channels",
            "32, 64, 96 or 128",
            context=f"in {opcode_name(r.opcode)}",
            leaf="has_multiple_32_channels",
            after=known,
        )


@rule(
    "NE0604",
    "start_addr_active_channels",
    opcodes=OPCODES,
    source="isa-encoding.md 6.10",
    tag="observed rule of the vendor; inferred for the predicate",
    requires=("NE0603",),
    examples=(
        Example(
            path="num_active_channels",
            good=32,
            bad=33,
            opcode=0x46,
            given={
                "src.start.partition_offset": QUADRANT_1,
                "dst.start.partition_offset": QUADRANT_1 + 0x1000,
            },
        ),
        Example(
            path="src.start.partition_offset",
            good=2 * QUADRANT_1,
            bad=QUADRANT_1,
            opcode=0x6D,
            given={"num_active_channels": 64},
        ),
    ),
)
def dve_start_partitions(r: Review) -> None:
    """Each operand must start on a partition that suits the channel count, see NE0113."""
    for slot in SLOTS[r.opcode]:
        word = r[f"{slot.name}.start"]
        path = f"{slot.name}.start.partition_offset"
        place = Place(r, word & ADDRESS_MASK)
        subject = f"{slot.name} start partition"
        if slot.is_plain:
            start_partition(r, path, place, word >> 29 == IMM, subject)
            continue
        operand = operand_of(r, slot.name)
        start_partition(r, path, operand.start, operand.plain, subject)
        if operand.has_indirect:
            _indirect_starts(r, slot.name)


def _indirect_starts(r: Review, name: str) -> None:
    operand = operand_of(r, name)
    index, data = f"{name}.index.partition_offset", f"{name}.data.partition_offset"
    start_partition(r, index, operand.start, operand.index_immediate, f"{name} index start")
    applies = operand.indirect & operand.unflagged
    start_partition(r, data, operand.data, applies, f"{name} data start")


@rule(
    "NE0605",
    "tensor_valid",
    opcodes=OPCODES,
    source="isa-encoding.md 6.11, 6.12",
    tag="observed; that search and batch norm have no indirect operands inferred",
    examples=(
        Example(path="src0.start.partition_offset", good=0x1000, bad=0x1002, opcode=0x41),
        Example(path="dst.num[3]", good=1, bad=0, opcode=0x46),
        Example(path="src.start.marker", good=0, bad=2, opcode=0x42),
        Example(path="src.start.marker", good=0, bad=1, opcode=0x6C),
        Example(
            path="dst.start.partition_offset",
            good=0x3000,
            bad=PSUM,
            opcode=0x6E,
            given={"out_dtype": DType.UINT16},
        ),
    ),
)
def dve_operands(r: Review) -> None:
    """Each operand must be readable or writable: see NE0114 and NE0115.

    Operands of the searches, of batch norm and of RANGE_SELECT are plain tensors on every
    generation; the others may be indirect from mariana on.
    """
    for slot in SLOTS[r.opcode]:
        dtype, ok = dtype_of(r, slot), dtype_ok(r, slot)
        if slot.is_plain:
            _check_tensor(r, slot, dtype, ok)
        else:
            check_operand(r, slot.name, dtype, ok, writes=slot.writes)


def _check_tensor(r: Review, slot: Slot, dtype: Any, ok: Any) -> None:
    """State `tensor2d_valid` or `tensor4d_valid` of an operand that is never indirect."""
    name, word = slot.name, r[f"{slot.name}.start"]
    marker = word >> 29
    legal = r.require(
        (marker == IMM) | (marker == ADDR_REG),
        f"{name}.start.marker",
        "IMM or ADDR_REG",
        subject=f"{name} address marker",
        actual=lambda: marker_text(word),
    )
    for path, letter in zip(counts_of(r.record, name), "XYZW", strict=False):
        subject = f"{name} count {letter}"
        r.require(r[path] != 0, path, "at least 1", subject=subject, after=legal)
    check_register(r, f"{name}.start", word, marker == ADDR_REG, name)
    check_place(
        r,
        f"{name}.start",
        Place(r, word & ADDRESS_MASK),
        marker == IMM,
        name,
        dtype,
        ok,
        writes=slot.writes,
    )


@rule(
    "NE0606",
    "tt_valid_partitions",
    opcodes=TWO_INPUTS,
    source="isa-encoding.md 6.14",
    tag="observed",
    requires=("NE0603", "NE0604", "NE0605"),
    examples=(
        Example(
            path="src1.start.partition_offset",
            good=0x1100,
            bad=PSUM + 0x100,
            opcode=0x41,
            given={"src0.start.partition_offset": PSUM},
        ),
        Example(
            path="src1.start.partition_offset",
            good=0x1100,
            bad=QUADRANT_1,
            opcode=0x9D,
            given={"num_active_channels": 32},
        ),
    ),
)
def tt_valid_partitions(r: Review) -> None:
    """At most one of the two sources may be in PSUM, and two in SBUF must start on one quadrant.

    An address from a register passes.
    """
    first, second = operand_of(r, "src0"), operand_of(r, "src1")
    applies = first.plain & second.plain & first.start.in_memory & second.start.in_memory
    path = "src1.start.partition_offset"
    both = first.start.in_psum & second.start.in_psum
    r.require(
        implies(applies, both ^ True),
        path,
        "in SBUF",
        subject="src1 address",
        context="when src0 is in PSUM",
        actual=lambda: f"{second.start.address:#x}",
    )
    neither = (first.start.in_psum | second.start.in_psum) ^ True
    quadrant = r.generation.quadrant_partitions
    wanted, found = first.start.partition // quadrant, second.start.partition // quadrant
    r.require(
        implies(applies & neither, wanted == found),
        path,
        lambda: f"on quadrant {wanted}",
        subject="src1 start",
        context="as src0",
        actual=lambda: f"on quadrant {found}",
    )


@rule(
    "NE0607",
    "has_valid_s2s2d2_stt_immediate",
    opcodes=SCALARS,
    source="dve-tensor-scalar.md 9.5; isa-encoding.md 6.3",
    tag="observed; the dtype of an inline value inferred from NKI",
    examples=(
        Example(path="imm0_src", good=0, bad=3, opcode=0x9D),
        Example(path="imm0.word", good=0x2000, bad=0x2002, opcode=0x9D, given={"imm0_src": 1}),
        Example(path="imm0.word", good=63, bad=64, opcode=0xE5, given={"imm0_src": 2}),
        Example(path="imm0_dtype", good=DType.FP32, bad=DType.BFLOAT16, opcode=0xEA),
        Example(path="imm0_dtype", good=DType.UINT16, bad=DType.INVALID, opcode=0x9E),
    ),
)
def stt_immediate(r: Review) -> None:
    """The scalar must fit its source, see NE0106; a pointer is aligned to imm0_dtype.

    An inline scalar of an arithmetic word is fp32.
    """
    code = r["imm0_dtype"]
    legal = legal_dtypes(0x47, Slot("src", "imm0_dtype"))
    known = r.require(
        r.one_of(code, legal),
        "imm0_dtype",
        f"one of {dtype_list(legal)}",
        actual=lambda: describe_dtype(r, "imm0_dtype"),
    )
    check_scalar(r, "imm0", "imm0_src", code, known)
    if r.opcode not in BITVEC:
        r.require(
            implies(r["imm0_src"] == 0, code == DType.FP32),
            "imm0_dtype",
            "FP32",
            context="with an inline scalar",
            after=known,
        )


@rule(
    "NE0609",
    "indirect_quadrant_check",
    opcodes=tensor_reduce.FAMILY.opcodes,
    generations=INDIRECT_GENERATIONS,
    source="isa-encoding.md 6.13, 3.4, 4.3",
    tag="inferred for S4D4_TR",
    requires=("NE0603", "NE0604", "NE0605"),
    examples=(
        Example(
            path="src.data.partition_offset",
            good=0x1000,
            bad=QUADRANT_1 + 0x1000,
            opcode=0x46,
            given={**GATHER, "src.num_elem": 32, "num_active_channels": 32},
        ),
        Example(
            path="dst.index.partition_offset",
            good=0x4000,
            bad=QUADRANT_1 + 0x4000,
            opcode=0x46,
            given={**SCATTER, "dst.num_elem": 32, "num_active_channels": 32},
        ),
    ),
)
def dve_quadrants(r: Review) -> None:
    """Index, data and source of an indirect copy or fold must start on one quadrant.

    As NE0116 and NE0117 state it for S3D3_TS.
    """
    quadrants.indirect_quadrant_check_src3d(r)
    quadrants.indirect_quadrant_check_src3d_dst3d(r)


def _reserved(opcode: int) -> tuple[str, ...]:
    rows = rows_of(record_type_of(opcode))
    return tuple(row.name for row in rows if row.name.startswith("reserved"))


_WITH_RESERVED = frozenset(op for op in (*OPCODES, MASK_OPCODE) if _reserved(op))


@rule(
    "NE0608",
    "reserved_zero",
    opcodes=_WITH_RESERVED,
    source="dve-tensor-scalar.md 9.3 to 9.7",
    tag="observed",
    examples=(
        Example(path="reserved1", good=0, bad=1, opcode=0x42),
        Example(path="reserved", good=0, bad=1, opcode=0x9D),
        Example(path="reserved3", good=0, bad=1, opcode=0x49),
        Example(path="reserved0", good=0, bad=1, opcode=0x6F),
        Example(path="reserved0", good=0, bad=1, opcode=MASK_OPCODE),
    ),
)
def dve_reserved_zero(r: Review) -> None:
    """Reserved bytes must be zero."""
    for name in _reserved(r.opcode):
        r.require(r.is_zero(name), name, "zero")
