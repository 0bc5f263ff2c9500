"""Destinations that nothing reads or dumps, and regions that are dumped but never written."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from neuron_emu.memory import Operand
from neuron_emu.sanitize.accesses import AccessTable
from neuron_emu.sanitize.footprint import Footprint
from neuron_emu.sanitize.report import Report, Word

__all__ = ["Uses", "unwritten_output"]


class Uses:
    """What words wrote and nothing has read yet.

    A word counts as used as soon as one byte of one of its executions was read or dumped.
    """

    def __init__(self) -> None:
        self._unread: dict[str, AccessTable] = {}
        self._written: dict[str, tuple[Word, Footprint, bool]] = {}
        self._used: set[str] = set()
        self._is_certain = True
        self._time = 0

    def lose_track(self) -> None:
        """Note that a word may have read anything: nothing can be called unread any more."""
        self._is_certain = False

    def read(self, footprint: Footprint) -> None:
        """Note that a word or a dump reads bytes."""
        table = self._unread.get(footprint.space.name)
        if table is None or not len(table):
            return
        for written, word, _ in table.near(footprint):
            if written.shared(footprint) is not None:
                self._used.add(word.place)
                table.discard(written)

    def write(self, word: Word, footprint: Footprint, also_accumulates: bool) -> None:
        """Note that a word writes bytes: what it covers cannot be read any more."""
        name = footprint.space.name
        table = self._unread.get(name)
        if table is None:
            table = self._unread[name] = AccessTable()
        if len(table):
            for written, _, _ in table.near(footprint):
                if footprint.covers(written):
                    table.discard(written)
        if word.place in self._used:
            return
        if word.place not in self._written:
            self._written[word.place] = (word, footprint, also_accumulates)
        self._time += 1
        table.add(footprint, word, self._time)

    def unread(self, dumped: Iterable[Footprint]) -> list[Report]:
        """Return the words of which nothing was used, now that the run has ended."""
        for footprint in dumped:
            self.read(footprint)
        if not self._is_certain or any(table.dropped for table in self._unread.values()):
            return []
        return [
            self._report(*entry)
            for place, entry in self._written.items()
            if place not in self._used
        ]

    def _report(self, word: Word, footprint: Footprint, also_accumulates: bool) -> Report:
        first, _, low, _ = footprint.box
        address = footprint.space.address(first, low)
        also = "; only the accumulator may count" if also_accumulates else ""
        return Report(
            name="unread_destination",
            message=(
                f"writes {footprint.num_bytes} bytes, first at {address:#x}, that no later word"
                f" reads and nothing dumps{also}"
            ),
            words=(word,),
            address=address,
            num_bytes=footprint.num_bytes,
        )


def unwritten_output(name: str, operand: Operand) -> Report | None:
    """Return the report of a region that is dumped with bytes that nothing wrote."""
    address = operand.first_unwritten()
    if address is None:
        return None
    rows = slice(operand.first_partition, operand.first_partition + operand.channels)
    written = operand.space.written[rows, operand.low : operand.end]
    count = int(np.count_nonzero(~written))
    return Report(
        name="unwritten_output",
        message=(
            f"{name} is dumped, and nothing wrote {count} of its {written.size} bytes, first"
            f" {address:#x}"
        ),
        address=address,
        num_bytes=count,
    )
