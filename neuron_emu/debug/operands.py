"""The operands of a decoded word by the names of its fields: patterns, pointers and their dtypes.

The field names of every family follow one convention (isa-encoding.md 5): a destination `dst` has
`out_dtype` or `dtype`, sources `src`, `src0` and `src1` have `in_dtype` or a pair of dtypes, and a
scalar `x` is accompanied by its source `x_src`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.engines.core import Problem, resolve_pattern, resolve_scalar
from neuron_emu.isa.enums import DType, ImmediateSource, member
from neuron_emu.isa.layout import rows_of
from neuron_emu.isa.records import (
    DTypePair,
    Immediate,
    IndirectPattern,
    TensorPattern,
)
from neuron_emu.memory import AccessPattern, DirectOperand, Memory, MemoryFault, Operand

__all__ = [
    "WordOperand",
    "active_channels",
    "element_at",
    "elements_at",
    "operand_of",
    "overlap_mask",
    "word_operands",
]


@frozen
class WordOperand:
    """One operand as the word names it.

    `dtype` is None when its code is none; `is_written` tells a destination from a source. `pattern`
    is set for a tensor, `pointer` for a scalar behind a per-partition pointer.
    """

    role: str
    dtype: DType | None
    is_written: bool
    pattern: Any = None
    source: int = 0
    pointer: Immediate | None = None


def active_channels(record: Any) -> int:
    """Return the lanes that take part; 0 for a word without operands."""
    return int(getattr(record, "num_active_channels", 0))


def word_operands(record: Any) -> tuple[WordOperand, ...]:
    """Return the operands of a decoded word in the order of its fields."""
    found = []
    for row in rows_of(type(record)):
        value = getattr(record, row.name)
        if isinstance(value, (TensorPattern, IndirectPattern)):
            written = row.name.startswith("dst")
            dtype = _dtype_of(record, row.name, written)
            found.append(WordOperand(row.name, dtype, written, pattern=value))
        elif isinstance(value, Immediate):
            source = getattr(record, f"{row.name}_src", None)
            if source in (ImmediateSource.POINTER, ImmediateSource.REG_PTR):
                found.append(WordOperand(row.name, DType.FP32, False, source=source, pointer=value))
    return tuple(found)


def _dtype_of(record: Any, role: str, written: bool) -> DType | None:
    names = ("out_dtype", "dtype") if written else ("in_dtype", "in_bias_dtype", "dtype")
    for name in (f"{role}_dtype", *names):
        code = getattr(record, name, None)
        if isinstance(code, DTypePair):
            code = code.second if role.endswith("1") else code.first
        if code is not None:
            return member(DType, int(code))
    return None


def operand_of(
    operand: WordOperand, record: Any, memory: Memory, registers: list[int]
) -> Operand | None:
    """Resolve an operand as the engine would at this moment; None when that is not possible."""
    channels = active_channels(record)
    if operand.dtype is None or operand.dtype.size_bytes == 0 or channels < 1:
        return None
    if operand.pointer is not None:
        address = resolve_scalar(operand.source, operand.pointer, registers)
        if not isinstance(address, int):
            return None
        pattern: Any = AccessPattern(address, (1,), (1,))
    else:
        pattern = resolve_pattern(operand.pattern, registers)
        if isinstance(pattern, Problem):
            return None
    made = memory.operand(
        pattern, operand.dtype.size_bytes, channels, max_elements=memory.policy.max_elements
    )
    return None if isinstance(made, MemoryFault) else made


def element_at(operand: Operand, space: str, partition: int, offset: int) -> tuple[int, int] | None:
    """Return (lane, last element in stream order) that covers a byte, None when none does."""
    lane = partition - operand.first_partition
    if operand.space.name != space or not 0 <= lane < operand.channels:
        return None
    if not operand.low <= offset < operand.end:
        return None
    starts = operand.offsets_of_lane(lane)
    hits = np.flatnonzero((starts <= offset) & (offset < starts + operand.item_bytes))
    return (lane, int(hits[-1])) if hits.size else None


def elements_at(
    operand: Operand, space: str, partition: int, offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the last element in stream order that covers each byte, -1 where none does."""
    lane = partition - operand.first_partition
    found = np.full(len(offsets), -1, np.int64)
    if operand.space.name != space or not 0 <= lane < operand.channels:
        return found
    if not ((offsets >= operand.low) & (offsets < operand.end)).any():
        return found
    starts = operand.offsets_of_lane(lane)
    order = np.argsort(starts, kind="stable")  # of equal places the last element comes last
    nearest = np.searchsorted(starts[order], offsets, side="right") - 1
    elements = order[nearest]
    covers = (nearest >= 0) & (offsets < starts[elements] + operand.item_bytes)
    found[covers] = elements[covers]
    return found


def overlap_mask(operand: Operand, region: Operand) -> npt.NDArray[np.bool_] | None:
    """Return which elements of `region` [lanes, elements] the bytes of `operand` touch.

    None when they do not meet. `region` must be a direct operand.
    """
    if not operand.overlaps(region):
        return None
    mask = np.zeros((region.channels, region.num_elements), np.bool_)
    starts = region.offsets_of_lane(0)
    low, end = region.low, region.end
    for lane in range(region.channels):
        theirs = region.first_partition + lane - operand.first_partition
        if not 0 <= theirs < operand.channels:
            continue
        if lane and isinstance(operand, DirectOperand) and mask[lane - 1].any():
            mask[lane] = mask[lane - 1]  # a direct pattern is the same in each lane
            continue
        touched = np.zeros(end - low, np.bool_)
        places = operand.offsets_of_lane(theirs)
        for byte in range(operand.item_bytes):
            inside = places + byte - low
            touched[inside[(inside >= 0) & (inside < end - low)]] = True
        for byte in range(region.item_bytes):
            mask[lane] |= touched[starts - low + byte]
    return mask if mask.any() else None
