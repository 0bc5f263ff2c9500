"""Races: two engines touch the same bytes, one of them writes, and nothing orders the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from neuron_emu.generation import Generation
from neuron_emu.sanitize.accesses import AccessTable
from neuron_emu.sanitize.footprint import Footprint, Shared
from neuron_emu.sanitize.order import Orders
from neuron_emu.sanitize.report import Report, Word

__all__ = ["Races"]

_READ, _WRITE = "reads", "writes"
_HALF_KNOWN = " (what it waits for tells only that the reads are done)"


class Races:
    """The accesses of all engines that something may still race with, and what was told."""

    def __init__(
        self, orders: Orders, generation: Generation, report: Callable[[Report], None]
    ) -> None:
        self._orders = orders
        self._generation = generation
        self._report = report
        self._tables: dict[tuple[str, int, str], AccessTable] = {}
        self._told: set[tuple[str, str, str, str]] = set()

    def read(self, word: Word, footprint: Footprint, time: int) -> None:
        """Note a read and report the writes of other engines that it races with."""
        self._look(word, _READ, footprint, self._orders.clocks[word.engine])
        self._note(word, _READ, footprint, time)

    def write(self, word: Word, footprint: Footprint, time: int) -> None:
        """Note a write and report the accesses of other engines that it races with."""
        self._look(word, _WRITE, footprint, self._orders.clocks[word.engine])
        self._note(word, _WRITE, footprint, time)

    def would(
        self,
        word: Word,
        reads: Iterable[Footprint],
        writes: Iterable[Footprint],
        clock: Sequence[int],
        why: str,
    ) -> None:
        """Report what a word would race with that cannot run, and say why it cannot."""
        for footprint in reads:
            self._look(word, _READ, footprint, clock, why)
        for footprint in writes:
            self._look(word, _WRITE, footprint, clock, why)

    def _look(
        self, word: Word, verb: str, footprint: Footprint, clock: Sequence[int], why: str = ""
    ) -> None:
        space, engine = footprint.space.name, int(word.engine)
        against = (_WRITE,) if verb == _READ else (_WRITE, _READ)
        for other in self._orders.engines:
            if other == engine:
                continue
            for other_verb in against:
                table = self._tables.get((space, other, other_verb))
                if table is None:
                    continue
                for theirs, earlier, moment in table.near(footprint, clock[other]):
                    shared = theirs.shared(footprint)
                    if shared is not None:
                        is_half_known = other_verb == _WRITE and clock[other] == moment - 1
                        reason = why or (_HALF_KNOWN if is_half_known else "")
                        self._tell((earlier, other_verb), (word, verb), shared, reason)

    def _note(self, word: Word, verb: str, footprint: Footprint, time: int) -> None:
        """Put an access in its table, after those that come before all that follows are gone."""
        engine = int(word.engine)
        if len(self._orders.engines) < 2:
            return
        key = (footprint.space.name, engine, verb)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = AccessTable()
        if table.is_filling:
            table.keep_after(self._orders.known_to_all(engine))
        table.add(footprint, word, time)

    def _tell(
        self, first: tuple[Word, str], second: tuple[Word, str], shared: Shared, reason: str
    ) -> None:
        (earlier, earlier_verb), (later, verb) = first, second
        key = (earlier.place, earlier_verb, later.place, verb)
        if key in self._told:
            return
        self._told.add(key)
        address, count = shared
        update = "a COMPLETE update" if earlier_verb == _WRITE else "an update"
        # A read that came first may have been meant to come second: both ways are named.
        is_open = earlier_verb == _READ and not reason
        other_way = (
            f", or {earlier.place}, if it is to read that, for a COMPLETE update of {later.place}"
            if is_open
            else ""
        )
        first_text, text = (word.text(self._generation) for word in (earlier, later))
        message = (
            f"{verb} {count} bytes, first at {address:#x}, that {earlier.place} {earlier_verb}, and"
            f" nothing orders the two{reason}; {later.place} must wait for {update} of"
            f" {earlier.place} or an update of a later {earlier.engine.name.lower()} word"
            f"{other_way}; {earlier.place} is {first_text}; {later.place} is {text}"
        )
        self._report(
            Report(
                name="race",
                message=message,
                words=(earlier, later),
                address=address,
                num_bytes=count,
            )
        )
