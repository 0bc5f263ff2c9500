"""What the everyday DVE opcodes have in common, as tables: operands, their dtypes, their counts.

Source: dve-tensor-scalar.md 9.1 to 9.7 [observed unless a comment says otherwise].
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from neuron_emu.isa.enums import DType
from neuron_emu.isa.families import (
    memset,
    range_select,
    scalar_select,
    scalar_tensor_tensor,
    search,
    tensor_reduce,
    tensor_tensor,
)
from neuron_emu.isa.rules.core import Review, Truth
from neuron_emu.isa.rules.dtypes import INPUT_DTYPES, OUTPUT_DTYPES

__all__ = [
    "BITVEC",
    "FLOAT_STATS",
    "INDEX_DTYPES",
    "INTEGERS",
    "OPCODES",
    "SLOTS",
    "TILED",
    "TWO_INPUTS",
    "Slot",
    "dtype_of",
    "dtype_ok",
    "legal_dtypes",
]

INTEGERS = frozenset((*range(DType.INT8, DType.UINT16 + 1), DType.INT32, DType.UINT32))
"""`is_valid_int_dtype_datapath`: the integer datapath set (6.2)."""
WIDE_INTEGERS = frozenset((DType.UINT64, DType.INT64))
INDEX_DTYPES = frozenset((DType.UINT16, DType.UINT32))
FLOAT_STATS = frozenset((DType.FP32, DType.BFLOAT16, DType.FP16))
REPLACED = FLOAT_STATS | {DType.UINT8, DType.UINT16, DType.UINT32, DType.INT32}
BITVEC = frozenset((0x51, 0x52, 0x5E, 0x84, 0x9E))
TILED = frozenset((0x6A, 0x6B, 0x82, 0x83, 0x84))
"""Opcodes that take 32, 64, 96 or 128 channels."""
TWO_INPUTS = frozenset((*tensor_tensor.FAMILY.opcodes, *scalar_tensor_tensor.FAMILY.opcodes))


@frozen
class Slot:
    """One operand: its field, the field of its dtype, and what is done with it.

    `part` is `first` or `second` where the dtype is half of a pair. `is_plain` tells that the
    slot holds a TENSOR on every generation, never an INDIRECT descriptor.
    """

    name: str
    dtype: str
    part: str = ""
    writes: bool = False
    is_plain: bool = False

    @property
    def dtype_path(self) -> str:
        """The path of the dtype for a finding."""
        return f"{self.dtype}.{self.part}" if self.part else self.dtype


_TWO_AND_ONE = (
    Slot("src0", "in_dtype", "first"),
    Slot("src1", "in_dtype", "second"),
    Slot("dst", "out_dtype", writes=True),
)
_ONE_AND_ONE = (Slot("src", "in_dtype"), Slot("dst", "out_dtype", writes=True))
_PLAIN = (
    Slot("src", "in_dtype", is_plain=True),
    Slot("dst", "out_dtype", writes=True, is_plain=True),
)
_RANGE = (
    Slot("src", "in_out_dtype", "first", is_plain=True),
    Slot("dst", "in_out_dtype", "second", writes=True, is_plain=True),
)
_ONE_DTYPE = (Slot("src0", "dtype"), Slot("dst", "dtype", writes=True))
SLOTS: dict[int, tuple[Slot, ...]] = {
    **dict.fromkeys(sorted(TWO_INPUTS), _TWO_AND_ONE),
    **dict.fromkeys(tensor_reduce.FAMILY.opcodes, _ONE_AND_ONE),
    **dict.fromkeys(memset.FAMILY.opcodes, (Slot("dst", "dtype", writes=True),)),
    **dict.fromkeys(range_select.FAMILY.opcodes, _RANGE),
    **dict.fromkeys(scalar_select.FAMILY.opcodes, _ONE_DTYPE),
    **dict.fromkeys(search.BN_FAMILY.opcodes, _PLAIN),
    **dict.fromkeys(search.REPLACE_FAMILY.opcodes, _PLAIN),
    **dict.fromkeys(search.KEY_FAMILY.opcodes, (Slot("src", "dtype", is_plain=True),)),
}
"""The operands of each opcode, sources first."""
OPCODES = frozenset(SLOTS)


def _special_dtypes() -> dict[tuple[int, str], frozenset[int]]:
    """Return the legal dtypes of an operand where they are not the general ones."""
    wide_in, wide_out = INPUT_DTYPES | WIDE_INTEGERS, OUTPUT_DTYPES | WIDE_INTEGERS
    cumulative = INTEGERS - {DType.INT8, DType.INT16}
    found: dict[tuple[int, str], frozenset[int]] = {
        **{(op, "src"): wide_in for op in (0x42, 0x83)},
        **{(op, "dst"): wide_out for op in (0x42, 0x83)},
        **{(op, side): INTEGERS | WIDE_INTEGERS for op in (0x52, 0x84) for side in ("src", "dst")},
        **{(0x51, side): INTEGERS | WIDE_INTEGERS for side in ("src0", "src1", "dst")},
        **{(0x9E, side): INTEGERS for side in ("src0", "src1", "dst")},
        **{(0x5E, side): cumulative for side in ("src", "dst")},
        **{(op, "src0"): INTEGERS for op in (0x72, 0x99, 0xEA)},
        (0xEA, "src1"): INPUT_DTYPES - {DType.INT32, DType.UINT32},
        (0x49, "dst"): INPUT_DTYPES,
        (0x4D, "dst"): INTEGERS,
        (0xE9, "dst"): INDEX_DTYPES,
        (0x6E, "dst"): INDEX_DTYPES,
        **{(op, "dst"): FLOAT_STATS for op in (0x60, 0x61, 0x82)},
        **{(0x6F, side): REPLACED for side in ("src", "dst")},
    }
    return found


_SPECIAL = _special_dtypes()


def legal_dtypes(opcode: int, slot: Slot) -> frozenset[int]:
    """Return the dtypes that an operand of an opcode may have."""
    general = OUTPUT_DTYPES if slot.writes else INPUT_DTYPES
    return _SPECIAL.get((opcode, slot.name), general)


def dtype_of(r: Review, slot: Slot) -> Any:
    """Return the dtype code of an operand."""
    value = r[slot.dtype]
    if not slot.part:
        return value
    return value & 0xF if slot.part == "first" else value >> 4


def dtype_ok(r: Review, slot: Slot) -> Truth:
    """Tell whether the dtype of an operand passes its own rule."""
    return r.one_of(dtype_of(r, slot), legal_dtypes(r.opcode, slot))
