"""Words that wait for ever: what they would race with if they did not wait."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from attrs import evolve, frozen

from neuron_emu.engines.core import Read
from neuron_emu.engines.kernels import find_kernel
from neuron_emu.engines.sequencer import (
    SyncState,
    Update,
    Wait,
    missing_register,
    updates_of,
    waits_of,
)
from neuron_emu.isa.codec import decode
from neuron_emu.issue import Queue
from neuron_emu.memory import Operand
from neuron_emu.sanitize.order import Condition, condition_of
from neuron_emu.sanitize.report import Word
from neuron_emu.sanitize.trial import tried

__all__ = ["StuckWord", "stuck_words"]

_MOST_WORDS = 64
"""Words from a wait on that are looked at to find the first that touches memory."""


@frozen(eq=False)
class StuckWord:
    """The first word at or behind a wait that touches memory, with all waits up to it."""

    word: Word
    reads: tuple[Read, ...]
    written: tuple[Operand, ...]
    conditions: tuple[Condition, ...]
    why: str


def stuck_words(queues: Sequence[Queue], sync: SyncState) -> list[StuckWord]:
    """Return what is held up when every stream that is left waits for ever, else nothing."""
    left = [queue for queue in queues if not queue.is_finished]
    unmet = [_unmet(queue, sync) for queue in left]
    if not all(unmet):
        return []
    found = (_first_access(queue, wait[0], sync) for queue, wait in zip(left, unmet, strict=True))
    return [stuck for stuck in found if stuck is not None]


def _records(queue: Queue) -> Iterator[tuple[int, bytes, Any]]:
    """Decode the words from the next one on, up to one that faults because of a register."""
    """Yield the words from the next one on: index, bytes and fields."""
    first = queue.state.position
    for index in range(first, min(first + _MOST_WORDS, len(queue.stream))):
        word = queue.stream[index]
        record = decode(word, queue.state.generation)
        signals: tuple[Wait | Update, ...] = (*waits_of(record), *updates_of(record))
        if missing_register(signals, len(queue.state.registers)) is not None:
            return
        yield index, word, record


def _unmet(queue: Queue, sync: SyncState) -> list[Wait]:
    """Return the waits that hold up the next word of a queue."""
    if queue.pending is not None:
        return []
    waits = [wait for _, _, record in islice(_records(queue), 1) for wait in waits_of(record)]
    return [wait for wait in waits if not wait.is_met(sync, queue.state.registers)]


def _first_access(queue: Queue, wait: Wait, sync: SyncState) -> StuckWord | None:
    # A copy of the engine: looking at a word draws no random numbers from the real one.
    state = evolve(queue.state, random=copy.deepcopy(queue.state.random))
    conditions: list[Condition] = []
    for index, data, record in _records(queue):
        conditions += [condition_of(wait, state.registers) for wait in waits_of(record)]
        kernel = find_kernel(data[0], state.engine, state.generation)
        done = tried(kernel, record, state)
        if done is None:
            return None
        prepared, effects = done
        reads = prepared.operands().read
        if effects.writes or any(read.operand is not None for read in reads):
            why = (
                f" ({queue.state.engine.name.lower()}[{queue.state.position}]"
                f" {wait.sentence(sync, state.registers)})"
            )
            written = tuple([operand for operand, _ in effects.writes])
            word = Word(state.engine, index, data)
            return StuckWord(word, reads, written, tuple(conditions), why)
    return None
