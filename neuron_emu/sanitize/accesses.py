"""Tables of footprints with the word that made each: found again by the bytes they touch."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
import numpy.typing as npt

from neuron_emu.sanitize.footprint import Footprint
from neuron_emu.sanitize.report import Word

__all__ = ["MOST_ROWS", "AccessTable", "Row"]

MOST_ROWS = 1 << 14
"""Rows that a table keeps; then the older half is dropped."""
_FIRST_CAPACITY, _FEW_ROWS = 64, 12
_FIRST, _LAST, _LOW, _END, _TIME = range(5)
Row = tuple[Footprint, Word, int]
"""What was touched, the word that did it, and when."""


class AccessTable:
    """The latest access to each footprint of one memory, in growing arrays of boxes.

    Attributes
    ----------
    latest: the time of the newest row.
    dropped: rows that were dropped because there were too many.
    """

    def __init__(self) -> None:
        self.latest = -1
        self.dropped = 0
        self._rows: list[Row] = []
        self._number_of: dict[Hashable, int] = {}
        self._boxes: npt.NDArray[np.int64] = np.empty((5, _FIRST_CAPACITY), np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @property
    def is_filling(self) -> bool:
        """True when the next new row needs more room."""
        return bool(len(self._rows) == self._boxes.shape[1])

    def add(self, footprint: Footprint, word: Word, time: int) -> None:
        """Put in an access; it takes the place of an older one to the very same bytes."""
        number = self._number_of.get(footprint.key)
        if number is None:
            number = self._new_row()
            self._number_of[footprint.key] = number
            self._rows.append((footprint, word, time))
            self._boxes[:_TIME, number] = footprint.box
        else:
            self._rows[number] = (footprint, word, time)
        self._boxes[_TIME, number] = time
        self.latest = time

    def _new_row(self) -> int:
        if len(self._rows) >= MOST_ROWS:
            times = self._boxes[_TIME, : len(self._rows)]
            before = len(self._rows)
            self.keep_after(int(np.median(times)))
            self.dropped += before - len(self._rows)
        number = len(self._rows)
        if self.is_filling:
            self._boxes = np.concatenate([self._boxes, np.empty_like(self._boxes)], axis=1)
        return number

    def near(self, footprint: Footprint, after: int = -1) -> list[Row]:
        """Return the accesses later than `after` whose box meets that of a footprint."""
        if self.latest <= after:
            return []
        first, last, low, end = footprint.box
        if len(self._rows) <= _FEW_ROWS:
            return [
                row
                for row in self._rows
                if row[2] > after
                and row[0].box[2] < end
                and row[0].box[3] > low
                and row[0].box[0] < last
                and row[0].box[1] > first
            ]
        boxes = self._boxes[:, : len(self._rows)]
        hits = (
            (boxes[_TIME] > after)
            & (boxes[_LOW] < end)
            & (boxes[_END] > low)
            & (boxes[_FIRST] < last)
            & (boxes[_LAST] > first)
        )
        return [self._rows[number] for number in np.flatnonzero(hits)]

    def discard(self, footprint: Footprint) -> None:
        """Drop the access to exactly these bytes, if there is one."""
        number = self._number_of.pop(footprint.key, None)
        if number is None:
            return
        last = len(self._rows) - 1
        moved = self._rows.pop()
        if number != last:
            self._rows[number] = moved
            self._number_of[moved[0].key] = number
            self._boxes[:, number] = self._boxes[:, last]

    def keep_after(self, time: int) -> None:
        """Drop all accesses up to `time`."""
        kept = np.flatnonzero(self._boxes[_TIME, : len(self._rows)] > time)
        if len(kept) == len(self._rows):
            return
        self._boxes[:, : len(kept)] = self._boxes[:, kept]
        self._rows = [self._rows[number] for number in kept]
        self._number_of = {row[0].key: number for number, row in enumerate(self._rows)}
