"""Bounds of an operand: a pattern's reach is compared, elements are never visited one by one.

No page says what the hardware does past a partition's active bytes; the emulator faults
(isa-encoding.md 3.3 [unknown]) at the first bad byte in stream order, lanes innermost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neuron_emu.generation import MemoryGeometry
from neuron_emu.memory.address import Location, MemoryFault

__all__ = ["INDEX_BYTES", "direct_fault", "index_fault", "indirect_data_fault", "reach"]

INDEX_BYTES = 4
"""Bytes of one offset of an index tensor: u32 (isa-encoding.md 4.3 [inferred])."""

Dims = Sequence[tuple[int, int]]
"""Stride in bytes and count of each dimension, innermost first."""


def reach(dims: Dims) -> tuple[int, int]:
    """Return the lowest and the highest element start, relative to the first element, in bytes."""
    low = high = 0
    for stride, num in dims:
        span = stride * (num - 1)
        if span < 0:
            low += span
        else:
            high += span
    return low, high


def direct_fault(
    location: Location,
    geometry: MemoryGeometry,
    dims: Dims,
    item_bytes: int,
    channels: int,
) -> MemoryFault | None:
    """Return the first bad byte of a direct pattern that starts at `location`, or None."""
    limit = geometry.active_bytes - item_bytes
    low, high = reach(dims)
    in_partition = location.offset + low >= 0 and location.offset + high <= limit
    lanes = geometry.num_partitions - location.partition
    if in_partition and channels <= lanes:
        return None
    first_is_good = 0 <= location.offset <= limit
    if channels > lanes and first_is_good:
        # Every lane visits element 0 before any lane visits element 1.
        return _bad_byte(location, geometry, location.offset, element=0, lane=lanes)
    element, offset = _first_outside(location.offset, dims, limit)
    return _bad_byte(location, geometry, offset, element=element, lane=0)


def _first_outside(offset: int, dims: Dims, limit: int) -> tuple[int, int]:
    """Return the index and the offset of the first element that starts outside 0..limit.

    There must be one. Outermost dimension first: the smallest index with a bad element below it.
    """
    element = 0
    for position in reversed(range(len(dims))):
        stride, num = dims[position]
        low, high = reach(dims[:position])
        index = 0
        if offset + low >= 0 and offset + high <= limit:
            room = limit - (offset + high) if stride > 0 else offset + low
            index = room // abs(stride) + 1
        element = element * num + index
        offset += index * stride
    return element, offset


def index_fault(
    location: Location, geometry: MemoryGeometry, num_elements: int, groups: int, group_size: int
) -> MemoryFault | None:
    """Return the first bad byte of an index tensor that starts at `location`, or None.

    Offset i of group g lies in partition `group_size * g + i % group_size`, column
    `i // group_size`; the lane of the fault is the first one of its group.
    """
    good_columns = max(0, (geometry.active_bytes - location.offset) // INDEX_BYTES)
    past_column = good_columns * group_size
    partitions_left = geometry.num_partitions - location.partition
    # The last group is the first one to leave the memory as i % group_size grows.
    past_partition = max(0, partitions_left - group_size * (groups - 1))
    if past_partition >= min(num_elements, group_size):
        past_partition = num_elements
    element = min(past_column, past_partition)
    if element >= num_elements:
        return None
    row = element % group_size
    group = 0
    if past_partition < past_column:
        group = max(0, -(-(partitions_left - row) // group_size))
    offset = location.offset + INDEX_BYTES * (element // group_size)
    at = Location(location.space, location.partition + row, location.offset)
    return _bad_byte(at, geometry, offset, element=element, lane=group * group_size)


def indirect_data_fault(
    location: Location,
    geometry: MemoryGeometry,
    offsets: npt.NDArray[np.int64],
    item_bytes: int,
    channels: int,
    group_size: int,
) -> MemoryFault | None:
    """Return the first bad byte that `offsets` [groups, n] (in elements) lead to, or None."""
    largest_good = (geometry.active_bytes - item_bytes - location.offset) // item_bytes
    bad = offsets > largest_good
    lanes = geometry.num_partitions - location.partition
    candidates = [(0, lanes)] if channels > lanes else []
    if bad.any():
        first = int(bad.any(axis=0).argmax())
        candidates.append((first, int(bad[:, first].argmax()) * group_size))
    if not candidates:
        return None
    element, lane = min(candidates)
    offset = location.offset + int(offsets[lane // group_size, element]) * item_bytes
    return _bad_byte(location, geometry, offset, element=element, lane=lane)


def _bad_byte(
    location: Location, geometry: MemoryGeometry, offset: int, *, element: int, lane: int
) -> MemoryFault:
    """Describe the first bad byte of the element that starts at `offset` in lane `lane`."""
    partition = location.partition + lane
    where = f"in {location.space} partition {partition}"
    if partition >= geometry.num_partitions:
        what = (
            f"{location.space} partition must be below {geometry.num_partitions}, not {partition}"
        )
    elif offset < 0:
        what = f"offset {where} must be 0x0 or above, not {offset:#x}"
    else:
        offset = max(offset, geometry.active_bytes)
        what = f"offset {where} must be below {geometry.active_bytes:#x}, not {offset:#x}"
    address = geometry.base + partition * geometry.partition_stride + offset
    reason = f"{what} (address {address:#x}, element {element}, lane {lane})"
    return MemoryFault(reason, address, element, lane)
