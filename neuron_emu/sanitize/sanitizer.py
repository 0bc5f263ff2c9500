"""The observer that runs all sanitizers over a machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from weakref import WeakKeyDictionary

from attrs import frozen

from neuron_emu.engines.core import Effects, Operands, Prepared
from neuron_emu.engines.sequencer import SyncState, Update
from neuron_emu.isa.enums import Engine
from neuron_emu.issue import Issued, Queue
from neuron_emu.memory import Memory, Operand
from neuron_emu.sanitize.footprint import Footprint, footprint_of, index_footprint_of
from neuron_emu.sanitize.nonfinite import NonFinite
from neuron_emu.sanitize.order import Orders, condition_of
from neuron_emu.sanitize.races import Races
from neuron_emu.sanitize.report import Report, Word
from neuron_emu.sanitize.stuck import stuck_words
from neuron_emu.sanitize.uses import Uses, unwritten_output

__all__ = ["MOST_REPORTS", "Sanitizer"]

MOST_REPORTS = 1000
"""Reports of one kind that are told one by one; the rest is counted."""


@frozen(eq=False)
class _Reads:
    """What a prepared word reads, and the bytes of that, index tensors included.

    `takes_part` is False when results come from nothing but the word itself.
    """

    operands: Operands
    footprints: tuple[Footprint, ...]
    takes_part: bool


class Sanitizer:
    """Watches a machine; see `neuron_emu.sanitize`.

    Attributes
    ----------
    reports: what was found so far, in order.
    """

    def __init__(
        self, memory: Memory, sync: SyncState, tell: Callable[[Report], None] | None = None
    ) -> None:
        """Watch the words that run over `memory` and `sync`; `tell` gets each report at once."""
        self.memory = memory
        self.sync = sync
        self.reports: list[Report] = []
        self._tell = tell
        self._untold: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._group_size = max(1, memory.generation.indirect_group_partitions)
        self._reads: WeakKeyDictionary[Prepared, _Reads | None] = WeakKeyDictionary()
        self._footprints: WeakKeyDictionary[Operand, tuple[Footprint, ...]] = WeakKeyDictionary()
        self._queues: tuple[Queue, ...] = ()
        self._forget()

    def _forget(self) -> None:
        live = {int(queue.state.engine): queue for queue in self._queues}
        self.orders = Orders(tuple(live), lambda engine: not live[engine].is_finished)
        self._races = Races(self.orders, self.memory.generation, self._report)
        self._uses = Uses()
        self._non_finite = NonFinite(self._report)
        self._count = dict.fromkeys(live, 0)
        self._words: dict[tuple[Engine, int], Word] = {}

    # --- what the machine tells -----------------------------------------------------------------

    def started(self, queues: Sequence[Queue]) -> None:
        """Begin anew with a program: whatever ran before comes before it."""
        self._queues = tuple(queues)
        self._forget()

    def rewound(self) -> None:
        """Forget accesses and orders: what races with words of before goes unseen from now on."""
        self._forget()

    def begun(self, queue: Queue, issued: Issued, prepared: Prepared, effects: Effects) -> None:
        """Take over what the waits order, look at reads and results, pass on READ updates."""
        engine = int(queue.state.engine)
        if issued.waits:
            self._wait(queue, issued, engine)
        self._count[engine] += 1
        moment = 2 * self._count[engine] - 1
        self.orders.advance(engine, moment)
        known = self._reads_of(prepared)
        if known is None:
            self._uses.lose_track()
        elif known.takes_part or effects.writes:
            self._look_at_reads(queue, issued, known, effects, moment)
            if known.takes_part:
                word = self._word(queue, issued)
                self._non_finite.check(word, issued, prepared, known.operands, effects, queue.state)
        for update in issued.read_updates:
            self._update(queue, engine, update)

    def _look_at_reads(
        self, queue: Queue, issued: Issued, known: _Reads, effects: Effects, moment: int
    ) -> None:
        footprints = known.footprints
        for operand, _ in effects.writes:
            footprints += self._footprints_of(operand)[1:]
        word = self._word(queue, issued)
        for footprint in footprints:
            self._races.read(word, footprint, moment)
            self._uses.read(footprint)

    def finishing(self, queue: Queue, issued: Issued, effects: Effects) -> None:
        """Look at writes and pass on what the word does to semaphores and events."""
        engine = int(queue.state.engine)
        moment = 2 * self._count[engine]
        self.orders.advance(engine, moment)
        for operand, _ in effects.writes:
            word = self._word(queue, issued)
            footprint = self._footprints_of(operand)[0]
            self._races.write(word, footprint, moment)
            self._uses.write(word, footprint, _accumulates(effects))
        for change in effects.sync:
            old = self.sync.of_kind(change.kind)[change.index]
            self.orders.put(change.kind, change.index, old, change.value, engine)
        for update in issued.complete_updates:
            self._update(queue, engine, update)

    def _word(self, queue: Queue, issued: Issued) -> Word:
        state = queue.state
        key = (state.engine, state.position)
        word = self._words.get(key)
        if word is None:
            word = self._words[key] = Word(*key, issued.word)
        return word

    # --- orders ---------------------------------------------------------------------------------

    def _wait(self, queue: Queue, issued: Issued, engine: int) -> None:
        conditions = [condition_of(wait, queue.state.registers) for wait in issued.waits]
        # What one wait teaches may say more about another: both are met now.
        for condition in conditions * len(conditions):
            value = self.sync.of_kind(condition.kind)[condition.index]
            self.orders.wait(engine, condition, value)
        for wait in issued.waits:
            change = wait.change()
            if change is not None:
                old = self.sync.of_kind(change.kind)[change.index]
                self.orders.put(change.kind, change.index, old, change.value, engine)

    def _update(self, queue: Queue, engine: int, update: Update) -> None:
        change = update.change(self.sync, queue.state.registers)
        old = self.sync.of_kind(change.kind)[change.index]
        if change.kind == "E" or "_WR_" in update.mode.name:
            self.orders.put(change.kind, change.index, old, change.value, engine)
        else:
            self.orders.add(change.kind, change.index, old, change.value - old, engine)

    # --- operands -------------------------------------------------------------------------------

    def _reads_of(self, prepared: Prepared) -> _Reads | None:
        """Return what a word reads; None for a handler that does not tell."""
        if prepared in self._reads:
            return self._reads[prepared]
        told = getattr(prepared, "operands", None)
        known = None
        if told is not None:
            operands = told()
            reads = (read.operand for read in operands.read if read.operand is not None)
            found = [one for operand in reads for one in self._footprints_of(operand)]
            takes_part = bool(operands.read or prepared.uses_accumulator)
            known = _Reads(operands, tuple(found), takes_part)
        self._reads[prepared] = known
        return known

    def _footprints_of(self, operand: Operand) -> tuple[Footprint, ...]:
        """Return the bytes of an operand and, for an indirect one, those of its index."""
        found = self._footprints.get(operand)
        if found is None:
            index = index_footprint_of(operand, self.memory.sbuf, self._group_size)
            own = footprint_of(operand, self._group_size)
            found = self._footprints[operand] = (own,) if index is None else (own, index)
        return found

    # --- reports --------------------------------------------------------------------------------

    def finish(self, outputs: Iterable[tuple[str, Operand]] = ()) -> list[Report]:
        """Return what only the end of a run shows; `outputs` are regions that are dumped, by name.

        After a complete run these are destinations that nothing read or dumped and outputs that
        nothing wrote; after a deadlock, races of the words that wait for ever. A run that was
        stopped otherwise shows neither. Reports that were not told one by one are counted.
        """
        before = len(self.reports)
        tell, self._tell = self._tell, None
        if all(queue.is_finished for queue in self._queues):
            self._look_at_outputs(list(outputs))
        else:
            self._look_at_stuck_words()
        self._tell = tell
        found = self.reports[before:]
        found += [
            Report(name=name, message=f"{count} more reports like these were not told")
            for name, count in self._untold.items()
        ]
        self._untold.clear()
        return found

    def _look_at_outputs(self, outputs: list[tuple[str, Operand]]) -> None:
        for name, operand in outputs:
            report = unwritten_output(name, operand)
            if report is not None:
                self._add(report)
        for report in self._uses.unread([self._footprints_of(o)[0] for _, o in outputs]):
            self._add(report)

    def _look_at_stuck_words(self) -> None:
        for stuck in stuck_words(self._queues, self.sync):
            reads = (read.operand for read in stuck.reads if read.operand is not None)
            self._races.would(
                stuck.word,
                [footprint for operand in reads for footprint in self._footprints_of(operand)],
                [self._footprints_of(operand)[0] for operand in stuck.written],
                self.orders.clock_if_met(stuck.word.engine, stuck.conditions),
                stuck.why,
            )

    def _report(self, report: Report) -> None:
        if self._add(report) and self._tell is not None:
            self._tell(report)

    def _add(self, report: Report) -> bool:
        """Keep a report; False when there are too many of its kind."""
        if self._told[report.name] >= MOST_REPORTS:
            self._untold[report.name] += 1
            return False
        self._told[report.name] += 1
        self.reports.append(report)
        return True


def _accumulates(effects: Effects) -> bool:
    """Return whether a word leaves a value in the accumulator."""
    after = effects.accumulator
    return after is not None and not bool(after.undefined.all())
