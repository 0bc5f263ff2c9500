"""Which bytes an operand touches, and which of them two operands share."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neuron_emu.memory import DirectOperand, IndirectOperand, Operand
from neuron_emu.memory.bounds import INDEX_BYTES
from neuron_emu.memory.space import Space

__all__ = ["Footprint", "Shared", "footprint_of", "index_footprint_of"]

Shared = tuple[int, int]
"""The first address that two footprints share, and how many bytes they share."""


class _Part:
    """The same bytes in each of some partitions: offsets `low` to `end`, all or some of them.

    `starts` are where items of `item_bytes` start; None when every byte is touched.
    """

    def __init__(
        self,
        partitions: tuple[int, int],
        low: int,
        end: int,
        starts: npt.NDArray[np.int64] | None = None,
        item_bytes: int = 1,
    ) -> None:
        self.first, self.last = partitions
        self.low, self.end = low, end
        self._starts, self._item_bytes = starts, item_bytes

    @cached_property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Which bytes from `low` on are touched."""
        if self._starts is None:
            return np.ones(self.end - self.low, np.bool_)
        touched = np.zeros(self.end - self.low, np.bool_)
        for byte in range(self._item_bytes):
            touched[self._starts - self.low + byte] = True
        return touched

    def shared(self, other: _Part) -> tuple[int, int, int] | None:
        """Return partition and offset of the first shared byte, and the number of bytes."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        low, end = max(self.low, other.low), min(self.end, other.end)
        if first >= last or low >= end:
            return None
        both = (
            self.mask[low - self.low : end - self.low]
            & other.mask[low - other.low : end - other.low]
        )
        count = int(np.count_nonzero(both))
        if not count:
            return None
        return first, low + int(both.argmax()), count * (last - first)


class Footprint:
    """The bytes of one memory that an operand touches.

    Attributes
    ----------
    box: first partition, the one past the last, lowest offset, and the one past the highest.
    key: equal for footprints that are known to be the same bytes.
    """

    def __init__(self, space: Space, parts: tuple[_Part, ...], key: Hashable) -> None:
        self.space = space
        self.parts = parts
        self.key = key
        self.box = (
            min(part.first for part in parts),
            max(part.last for part in parts),
            min(part.low for part in parts),
            max(part.end for part in parts),
        )

    @cached_property
    def num_bytes(self) -> int:
        """The number of bytes; a byte that is visited twice counts once."""
        return sum(
            int(np.count_nonzero(part.mask)) * (part.last - part.first) for part in self.parts
        )

    def shared(self, other: Footprint) -> Shared | None:
        """Return what both touch, byte for byte; None when they share nothing."""
        if self.space is not other.space:
            return None
        found = [
            shared for a in self.parts for b in other.parts if (shared := a.shared(b)) is not None
        ]
        if not found:
            return None
        partition, offset, _ = min(found)
        return self.space.address(partition, offset), sum(count for _, _, count in found)

    def covers(self, other: Footprint) -> bool:
        """Return whether every byte of `other` is touched here."""
        if self.key == other.key:
            return True
        shared = self.shared(other)
        return shared is not None and shared[1] == other.num_bytes


def footprint_of(operand: Operand, group_size: int) -> Footprint:
    """Return the bytes of an operand; `group_size` partitions share an index list."""
    first = operand.first_partition
    if isinstance(operand, DirectOperand):
        key = (operand.space.name, first, operand.channels, operand.offset, *operand.dims)
        part = _direct_part(operand)
        return Footprint(operand.space, (part,), (*key, operand.item_bytes))
    parts = []
    for lane in range(0, operand.channels, group_size):
        starts = operand.offsets_of_lane(lane)
        low, end = int(starts.min()), int(starts.max()) + operand.item_bytes
        partitions = (first + lane, first + min(lane + group_size, operand.channels))
        parts.append(_Part(partitions, low, end, starts, operand.item_bytes))
    return Footprint(operand.space, tuple(parts), object())


def _direct_part(operand: DirectOperand) -> _Part:
    partitions = (operand.first_partition, operand.first_partition + operand.channels)
    solid = operand.num_elements * operand.item_bytes == operand.end - operand.low
    if solid and operand.is_injective:
        return _Part(partitions, operand.low, operand.end)
    starts = operand.byte_offsets()
    return _Part(partitions, operand.low, operand.end, starts, operand.item_bytes)


def index_footprint_of(operand: Operand, sbuf: Space, group_size: int) -> Footprint | None:
    """Return the bytes of the index tensor that an indirect operand has read, else None.

    Offset i of a group lies in partition `i mod 16`, column `i div 16` (isa-encoding.md 4.3).
    """
    if not isinstance(operand, IndirectOperand):
        return None
    partition, offset = operand.index_place
    columns, rest = divmod(operand.num_elements, group_size)
    parts = []
    for first in range(partition, partition + operand.channels, group_size):
        end = offset + columns * INDEX_BYTES
        if columns:
            parts.append(_Part((first, first + group_size), offset, end))
        if rest:
            parts.append(_Part((first, first + rest), end, end + INDEX_BYTES))
    return Footprint(sbuf, tuple(parts), object())
