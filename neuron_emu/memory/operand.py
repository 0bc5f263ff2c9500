"""Operands: an access pattern over a number of lanes, prepared once and then read or written.

Element order is X fastest (isa-encoding.md 4.1). Values travel as unsigned little-endian integers
of the element's width; what they mean is the business of `numerics`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.memory.bounds import INDEX_BYTES, Dims, reach
from neuron_emu.memory.space import Space

__all__ = ["Bits", "DirectOperand", "IndirectOperand", "Operand", "SavedCells", "read_index"]

Bits = npt.NDArray[np.unsignedinteger[Any]]
"""Elements as bits: unsigned integers of the element's width."""


_DTYPES: dict[int, np.dtype[Any]] = {size: np.dtype(f"<u{size}") for size in (1, 2, 4, 8)}
_ALL_WRITTEN = {
    size: dtype.type(int.from_bytes(b"\x01" * size, "little")) for size, dtype in _DTYPES.items()
}
"""What a cell whose bytes were all written reads as in a view of the flags, by its size."""


@frozen(eq=False)
class SavedCells:
    """What a write may change: the cells' bytes and their written flags, as they were."""

    data: Bits
    written: Bits


class Operand(ABC):
    """Elements of one memory, [channels, num_elements] in stream order, all of them in bounds.

    Attributes
    ----------
    space, first_partition, channels, num_elements, item_bytes: what it covers.
    low, end: the first byte offset of a partition that it touches, and the first one past it.
    dtype: unsigned little-endian numpy type of an element.
    is_dense: no byte between `low` and `end` is left out, nor visited twice.
    """

    is_dense = False

    def __init__(
        self,
        space: Space,
        first_partition: int,
        channels: int,
        num_elements: int,
        item_bytes: int,
        byte_range: tuple[int, int],
    ) -> None:
        self.space = space
        self.first_partition = first_partition
        self.channels = channels
        self.num_elements = num_elements
        self.item_bytes = item_bytes
        self.low, self.end = byte_range
        self.dtype: np.dtype[Any] = _DTYPES[item_bytes]
        self._all_written = _ALL_WRITTEN[item_bytes]
        self._written_in_epoch = -1

    @abstractmethod
    def read(self) -> Bits:
        """Return the elements, unsigned [channels, num_elements] in stream order.

        The result may alias the memory: treat it as read-only, and as gone after the next write.
        """

    @abstractmethod
    def _store(self, values: Bits) -> None:
        """Put `values` in stream order; the last of repeated destinations stays."""

    @abstractmethod
    def read_element(self, element: int) -> Bits:
        """Return a copy of one element of every lane, unsigned [channels]."""

    @abstractmethod
    def write_element(self, element: int, values: Bits) -> None:
        """Write one element of every lane, unsigned [channels]; `written` is marked as well."""

    @abstractmethod
    def offsets_of_lane(self, lane: int) -> npt.NDArray[np.int64]:
        """Return where each element of a lane starts in its partition: bytes, in stream order."""

    @abstractmethod
    def save(self) -> SavedCells:
        """Return a copy of exactly what `write` may change, for `restore`."""

    @abstractmethod
    def restore(self, saved: SavedCells) -> None:
        """Put back bytes and written flags that `save` of this operand returned."""

    @abstractmethod
    def is_written(self) -> bool:
        """Return whether every data byte was written.

        An access pattern's operand looks only until the answer is True (see `Space.epoch`).
        """

    @abstractmethod
    def first_unwritten(self, *, index_only: bool = False) -> int | None:
        """Return the local address of the first byte read before anything wrote it, or None.

        First means in stream order, lanes innermost; an indirect operand's index, which is read
        before all data, comes first. `index_only` leaves the data out: a destination's is not read.
        """

    @abstractmethod
    def _mark(self) -> None:
        """Set the written flags of every data byte."""

    def write(self, values: Bits) -> None:
        """Write unsigned `values` [channels, num_elements] in stream order and mark them written.

        Where a pattern visits a place more than once, the last element in stream order stays, as
        in sequential execution (isa-encoding.md 4.3). The values may be a `read` of any operand.
        """
        if values.shape != (self.channels, self.num_elements) or values.dtype != self.dtype:
            raise ValueError(
                f"values must be {self.dtype.name} of shape ({self.channels}, "
                f"{self.num_elements}), not {values.dtype.name} of shape {values.shape}"
            )
        self._store(values)
        if self._written_in_epoch != self.space.epoch:
            if not self._is_known_written():
                self._mark()
                self._know_written()
            self._written_in_epoch = self.space.epoch

    def _is_known_written(self) -> bool:
        return self.space.is_known_written(self.first_partition, self.channels, self.low, self.end)

    def _know_written(self) -> None:
        """Remember that all bytes were written, where the elements leave none out."""
        if self.is_dense:
            self.space.know_written(self.first_partition, self.channels, self.low, self.end)

    def overlaps(self, other: Operand) -> bool:
        """Return whether the byte ranges of both meet in some partition.

        Ranges, not bytes: two interleaved patterns overlap by this test.
        """
        return (
            self.space is other.space
            and self.low < other.end
            and other.low < self.end
            and self.first_partition < other.first_partition + other.channels
            and other.first_partition < self.first_partition + self.channels
        )

    def _address_of_unwritten(self, flags: Bits, lane: int, cell: int, offset: int) -> int:
        """Return the address of the first byte without a flag in the cell at byte `offset`."""
        raw = int(flags[lane, cell]).to_bytes(self.item_bytes, "little")
        return self.space.address(self.first_partition + lane, offset + raw.index(0))


class DirectOperand(Operand):
    """Elements of an access pattern, as numpy views of the memory.

    `view` is the pattern itself, [channels, *reversed(num)]. It may be kept and used for as long
    as the memory exists; writing to it does not mark bytes as written.
    """

    def __init__(
        self,
        space: Space,
        first_partition: int,
        offset: int,
        channels: int,
        dims: Dims,
        item_bytes: int,
    ) -> None:
        num_elements = 1
        for _, num in dims:
            num_elements *= num
        low, high = reach(dims)
        byte_range = (offset + low, offset + high + item_bytes)
        super().__init__(space, first_partition, channels, num_elements, item_bytes, byte_range)
        self.offset = offset
        self.dims = _merged(dims)
        self._pattern_dims = dims
        # One run per lane needs no copy to become [channels, num_elements].
        self._run: Bits | None = None
        if len(self.dims) <= 1:
            stride = self.dims[0][0] if self.dims else item_bytes
            self._target = self._strided(space.data, [(stride, num_elements)])
            self._run = self._target.view()
            self._run.flags.writeable = False
        else:
            self._target = self.view
        self.is_injective = _is_injective(self.dims)
        self.is_dense = self.is_injective and self.end - self.low == num_elements * item_bytes

    def _strided(self, array: npt.NDArray[Any], dims: Dims) -> Bits:
        row_bytes = self.space.data.shape[1]
        shape, strides = [self.channels], [row_bytes]
        for stride, num in reversed(dims):
            shape.append(num)
            strides.append(stride)
        start = self.first_partition * row_bytes + self.offset
        return np.ndarray(shape, self.dtype, array, start, strides)

    @cached_property
    def view(self) -> Bits:
        """The pattern as numpy sees it."""
        return self._strided(self.space.data, self._pattern_dims)

    def read(self) -> Bits:
        if self._run is not None:
            return self._run
        return self.view.reshape(self.channels, self.num_elements)

    def _store(self, values: Bits) -> None:
        if self.is_injective:
            self._target[...] = values.reshape(self._target.shape)
        else:
            columns, keep = self._last_writers
            self._window[:, columns] = values[:, keep]

    @cached_property
    def _last_writers(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        return last_writers((self.byte_offsets() - self.low) // self.item_bytes)

    @cached_property
    def _window(self) -> Bits:
        return window(self.space.data, self, self.low)

    # Cells are the places of a pattern without its repeats by zero steps: what saving, restoring
    # and written flags are about. The first visit of a cell has index 0 in every zero step.

    @cached_property
    def _cell_dims(self) -> Dims:
        return [(stride, num) for stride, num in self.dims if stride]

    @cached_property
    def _cells(self) -> Bits:
        return self._strided(self.space.data, self._cell_dims)

    @cached_property
    def _cell_flags(self) -> Bits:
        return self._strided(self.space.written, self._cell_dims)

    def _mark(self) -> None:
        self._cell_flags[...] = self._all_written

    def is_written(self) -> bool:
        epoch = self.space.epoch
        if self._written_in_epoch == epoch:
            return True
        if not self._is_known_written():
            if not bool((self._cell_flags == self._all_written).all()):
                return False
            self._know_written()
        self._written_in_epoch = epoch
        return True

    def first_unwritten(self, *, index_only: bool = False) -> int | None:
        if index_only or self.is_written():
            return None
        flags = self._cell_flags.reshape(self.channels, -1)
        lane, cell = first_in_stream(flags != self._all_written)
        offset = _offset_of(self.offset, self._cell_dims, cell)
        return self._address_of_unwritten(flags, lane, cell, offset)

    def save(self) -> SavedCells:
        return SavedCells(self._cells.copy(), self._cell_flags.copy())

    def restore(self, saved: SavedCells) -> None:
        self._cells[...] = saved.data
        self._cell_flags[...] = saved.written
        self.space.flags_cleared()

    def byte_offsets(self) -> npt.NDArray[np.int64]:
        """Return where each element starts in its partition, int64 [num_elements]."""
        offsets = np.array([self.offset], dtype=np.int64)
        for stride, num in self.dims:
            offsets = (np.arange(num, dtype=np.int64)[:, None] * stride + offsets).ravel()
        return offsets

    def offsets_of_lane(self, lane: int) -> npt.NDArray[np.int64]:
        return self.byte_offsets()

    def _column(self, array: npt.NDArray[Any], element: int) -> Bits:
        row_bytes = self.space.data.shape[1]
        offset = _offset_of(self.offset, self.dims, element)
        start = self.first_partition * row_bytes + offset
        shape = (self.channels,)
        return np.ndarray(shape, self.dtype, array, start, (row_bytes,))

    def read_element(self, element: int) -> Bits:
        return self._column(self.space.data, element).copy()

    def write_element(self, element: int, values: Bits) -> None:
        self._column(self.space.data, element)[...] = values
        self._column(self.space.written, element)[...] = self._all_written


class IndirectOperand(Operand):
    """Elements at listed offsets; each group of partitions has a list (isa-encoding.md 4.3).

    It holds the offsets that the index tensor had when it was made, so it serves one execution.
    `index_place` is the partition and the byte offset at which the index tensor starts, in SBUF.
    """

    def __init__(
        self,
        space: Space,
        first_partition: int,
        channels: int,
        item_bytes: int,
        data_offset: int,
        offsets: npt.NDArray[np.int64],
        group_size: int,
        index_unwritten: int | None,
        index_place: tuple[int, int],
    ) -> None:
        lowest = int(offsets.min())
        low = data_offset + lowest * item_bytes
        end = data_offset + (int(offsets.max()) + 1) * item_bytes
        num_elements = offsets.shape[1]
        super().__init__(space, first_partition, channels, num_elements, item_bytes, (low, end))
        self._columns = offsets - lowest
        self._groups = [
            (slice(group * group_size, min((group + 1) * group_size, channels)), columns)
            for group, columns in enumerate(self._columns)
        ]
        self._lanes = np.arange(channels)
        self._group_of_lane = self._lanes // group_size
        self._index_unwritten = index_unwritten
        self.index_place = index_place
        self._data = window(space.data, self, low)
        self._flags = window(space.written, self, low)

    def _gather(self, cells: Bits) -> Bits:
        gathered: Bits = np.empty((self.channels, self.num_elements), self.dtype)
        for rows, columns in self._groups:
            gathered[rows] = cells[rows, columns]
        return gathered

    def read(self) -> Bits:
        return self._gather(self._data)

    def _store(self, values: Bits) -> None:
        if np.may_share_memory(values, self._data):
            # A group's rows may be the source of a later group.
            values = values.copy()
        for rows, columns in self._groups:
            places, keep = last_writers(columns)
            self._data[rows, places] = values[rows, keep]

    def _mark(self) -> None:
        for rows, columns in self._groups:
            self._flags[rows, columns] = self._all_written

    def is_written(self) -> bool:
        return bool((self._gather(self._flags) == self._all_written).all())

    def first_unwritten(self, *, index_only: bool = False) -> int | None:
        if index_only or self._index_unwritten is not None:
            return self._index_unwritten
        flags = self._gather(self._flags)
        bad = flags != self._all_written
        if not bad.any():
            return None
        lane, element = first_in_stream(bad)
        column = int(self._columns[self._group_of_lane[lane], element])
        offset = self.low + column * self.item_bytes
        return self._address_of_unwritten(flags, lane, element, offset)

    def offsets_of_lane(self, lane: int) -> npt.NDArray[np.int64]:
        places: npt.NDArray[np.int64] = self._columns[self._group_of_lane[lane]]
        return self.low + places * self.item_bytes

    def save(self) -> SavedCells:
        return SavedCells(self._gather(self._data), self._gather(self._flags))

    def restore(self, saved: SavedCells) -> None:
        # Repeated places were saved with equal values, so their order does not matter.
        for rows, columns in self._groups:
            self._data[rows, columns] = saved.data[rows]
            self._flags[rows, columns] = saved.written[rows]
        self.space.flags_cleared()

    def read_element(self, element: int) -> Bits:
        values: Bits = self._data[self._lanes, self._columns[self._group_of_lane, element]]
        return values

    def write_element(self, element: int, values: Bits) -> None:
        columns = self._columns[self._group_of_lane, element]
        self._data[self._lanes, columns] = values
        self._flags[self._lanes, columns] = self._all_written


def window(array: npt.NDArray[Any], operand: Operand, low: int) -> Bits:
    """Return whole elements side by side from byte `low` to the operand's end, for its lanes."""
    row_bytes = array.shape[1]
    return np.ndarray(
        (operand.channels, (operand.end - low) // operand.item_bytes),
        operand.dtype,
        array,
        operand.first_partition * row_bytes + low,
        (row_bytes, operand.item_bytes),
    )


def last_writers(
    places: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the distinct places and, for each, the last element that goes there.

    numpy promises no order for assignments to repeated places, so only one is left of each.
    """
    distinct, first_from_the_end = np.unique(places[::-1], return_index=True)
    return distinct.astype(np.intp), len(places) - 1 - first_from_the_end


def read_index(
    space: Space, partition: int, offset: int, num_elements: int, groups: int, group_size: int
) -> tuple[npt.NDArray[np.int64], int | None]:
    """Return the offsets [groups, num_elements] and the address of the first unwritten byte.

    offset_i of group g is the u32 at partition `16 g + i mod 16`, column `i div 16` of the index
    tensor (isa-encoding.md 4.3), whose first element lies at `partition`, `offset`.
    """
    element = np.arange(num_elements)
    rows = group_size * np.arange(groups)[:, None] + element % group_size + partition
    # The index is aligned, so whole words of the memory are the offsets.
    columns = offset // INDEX_BYTES + element // group_size
    offsets = space.data.view("<u4")[rows, columns].astype(np.int64)
    flags = space.written.view("<u4")[rows, columns]
    unwritten = flags != _ALL_WRITTEN[INDEX_BYTES]
    if not unwritten.any():
        return offsets, None
    group, first = first_in_stream(unwritten)
    byte = int(flags[group, first]).to_bytes(INDEX_BYTES, "little").index(0)
    column_byte = int(columns[first]) * INDEX_BYTES + byte
    return offsets, space.address(int(rows[group, first]), column_byte)


def first_in_stream(bad: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return lane and element of the first True of `bad` [lanes, elements], lanes innermost."""
    element = int(bad.any(axis=0).argmax())
    return int(bad[:, element].argmax()), element


def _offset_of(offset: int, dims: Dims, element: int) -> int:
    for stride, num in dims:
        element, index = divmod(element, num)
        offset += index * stride
    return offset


def _merged(dims: Dims) -> list[tuple[int, int]]:
    """Join dimensions that continue each other: the same walk in as few of them as possible."""
    merged: list[tuple[int, int]] = []
    for stride, num in dims:
        if num == 1:
            continue
        if merged and stride == merged[-1][0] * merged[-1][1]:
            stride, num = merged[-1][0], merged.pop()[1] * num
        merged.append((stride, num))
    return merged


def _is_injective(dims: Dims) -> bool:
    """Return True when no two elements can share a place; False where that is not obvious."""
    covered = 0
    for stride, num in sorted((abs(stride), num) for stride, num in dims):
        if stride <= covered:
            return False
        covered += stride * (num - 1)
    return True
