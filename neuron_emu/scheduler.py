"""Which engine goes on: in turn by default, or in an order drawn from a seed.

Every word has two moments: its reads, and its writes. In turn, both happen at once. Under a seed
any engine that can go on may be chosen at each moment, so that other engines run between the
reads of a word and its writes, as they may in the hardware (isa-encoding.md 2).
"""

from __future__ import annotations

from collections.abc import Iterable

from neuron_emu.engines.core import Problem
from neuron_emu.engines.sequencer import SyncState
from neuron_emu.issue import Issued, Issuer, Queue

__all__ = ["Scheduler"]

_MULTIPLIER, _INCREMENT, _MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1
"""Knuth's 64-bit congruential generator: its whole state is one number, which undo can keep."""


class Scheduler:
    """The queues of a machine and whose turn it is.

    Attributes
    ----------
    turn: number of the queue that is looked at first.
    draw: state of the generator of a seeded order, None for the order in turn.
    """

    def __init__(self, issuer: Issuer, sync: SyncState, seed: int | None) -> None:
        self.issuer = issuer
        self.sync = sync
        self.queues: list[Queue] = []
        self.turn = 0
        self.draw = None if seed is None else seed & _MASK

    def start(self, queues: Iterable[Queue]) -> None:
        """Take the queues of a program."""
        self.queues = list(queues)
        self.turn = 0

    @property
    def is_finished(self) -> bool:
        """True when no queue has a word left."""
        return all(queue.is_finished for queue in self.queues)

    @property
    def first(self) -> Queue:
        """The queue whose turn it is."""
        return self.queues[self.turn]

    def in_turn(self) -> tuple[Queue, Issued] | None:
        """Return the next queue whose word may issue, with the word; None when there is none."""
        queues = self.queues
        count = len(queues)
        number = self.turn
        for _ in range(count):
            queue = queues[number]
            number = number + 1 if number + 1 < count else 0
            if queue.is_finished:
                continue
            issued = queue.issued[queue.state.position] or self.issuer.issued(queue)
            if not issued.waits or self._is_ready(queue, issued):
                self.turn = number
                return queue, issued
        return None

    def drawn(self) -> Queue | None:
        """Return a queue drawn from all that can do their next moment; None when none can."""
        able = [
            queue
            for queue in self.queues
            if queue.pending is not None
            or (not queue.is_finished and self._is_ready(queue, self.issuer.issued(queue)))
        ]
        if not able or self.draw is None:
            return None
        self.draw = (self.draw * _MULTIPLIER + _INCREMENT) & _MASK
        return able[(self.draw >> 33) % len(able)]

    def _is_ready(self, queue: Queue, issued: Issued) -> bool:
        registers = queue.state.registers
        return all(wait.is_met(self.sync, registers) for wait in issued.waits)

    def deadlock(self) -> tuple[Queue, Problem] | None:
        """Return who waits for what, and the first of them; None when nobody waits."""
        waiting = [queue for queue in self.queues if not queue.is_finished]
        sentences = [
            f"{queue.state.engine.name.lower()} at word {queue.state.position}"
            f" {wait.sentence(self.sync, queue.state.registers)}"
            for queue in waiting
            for wait in self.issuer.issued(queue).waits
            if not wait.is_met(self.sync, queue.state.registers)
        ]
        return (waiting[0], Problem("deadlock", "; ".join(sentences))) if waiting else None
