"""Programs of several engines as plain data, and who races with whom by walking all states.

A step is what one word does: the bytes it reads and writes in partition 0 of SBUF, its wait and
its update. `Walk` visits every state that the engines can reach, moment by moment, and looks
whether one access can be done while another is not. It knows no clocks.
"""

from __future__ import annotations

import random
from collections import defaultdict
from functools import cache

from attrs import field, frozen

from neuron_emu import Machine, Program
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import Engine, UpdateMode, WaitMode

ENGINES = (Engine.DVE, Engine.ACT, Engine.POOL, Engine.SP)
BASE, CELL_BYTES = 0x1000, 4
WRITE_ONLY = "MEMSET dst=fp32@{dst:#x}[1][{n}] channels=1 set_value=0x3f800000"
COPIES = {
    Engine.DVE: (
        "COPY src=fp32@{src:#x}[1][{n}] dst=fp32@{dst:#x}[1][{n}] channels=1",
        "EXPONENTIAL src=fp32@{src:#x}[1][{n}] dst=fp32@{dst:#x}[1][{n}] channels=1"
        " max_value=fp32@0.0 accumulator_cmd=IDLE",
    ),
    Engine.ACT: (
        "ACTIVATE COPY src=fp32@{src:#x}[1][{n}] dst=fp32@{dst:#x}[1][{n}] channels=1"
        " accumulator_cmd=IDLE",
        "COPY src=fp32@{src:#x}[1][{n}] dst=fp32@{dst:#x}[1][{n}] channels=1",
    ),
    Engine.POOL: ("COPY src=fp32@{src:#x}[1][{n}] dst=fp32@{dst:#x}[1][{n}] channels=1",),
    Engine.SP: ("COPY src=fp32@{src:#x}[1][{n}] dst=fp32@{dst:#x}[1][{n}] channels=1",),
}


assembled = cache(assemble)


@frozen
class Step:
    """One word: cells read and written, [first, end), a wait and an update as (mode, index)."""

    reads: tuple[int, int] | None = None
    writes: tuple[int, int] | None = None
    wait: tuple[str, int] | None = None
    update: tuple[str, int] | None = None
    value: int = 0
    style: int = 0


@frozen
class Streams:
    """The steps of each engine, and semaphores that are not 0 at the start."""

    steps: tuple[tuple[Step, ...], ...]
    start: dict[int, int] = field(factory=dict)

    def word(self, engine: Engine, step: Step) -> bytes:
        """Return the instruction word of a step."""
        text = "NOP"
        if step.writes is not None:
            first, end = step.writes
            places = {"dst": BASE + CELL_BYTES * first, "n": end - first}
            if step.reads is None:
                text = WRITE_ONLY.format(**places)
            else:
                forms = COPIES[engine]
                places["src"] = BASE + CELL_BYTES * step.reads[0]
                text = forms[step.style % len(forms)].format(**places)
        data = bytearray(assembled(text))
        if step.wait is not None:
            data[4:6] = WaitMode[step.wait[0]], step.wait[1]
        if step.update is not None:
            data[6:8] = UpdateMode[step.update[0]], step.update[1]
        data[8:12] = step.value.to_bytes(4, "little")
        return bytes(data)

    def program(self) -> Program:
        """Return the program of all streams."""
        return Program(
            streams=tuple(
                stream
                for engine, steps in zip(ENGINES, self.steps, strict=False)
                for stream in self._stream(engine, steps)
            )
        )

    def _stream(self, engine, steps):
        data = b"".join(self.word(engine, step) for step in steps)
        return Program.of(data, engine=engine).streams if data else ()


def machine_for(streams, **options):
    """Return a machine with all cells written, tables loaded and semaphores set."""
    machine = Machine(**{"sanitize": True, **options})
    machine.preload("exp_and_others")
    machine.write(f"sbuf:0+{BASE:#x}:fp32[1,64]", [[0.5] * 64])
    for index, value in streams.start.items():
        machine.sync.semaphores[index] = value
    return machine


def run(streams, **options):
    """Run streams under the sanitizer; return the result and the pairs of words that race."""
    machine = machine_for(streams, **options)
    result = machine.run(streams.program())
    return result, pairs_of(machine.sanitizer.reports), machine


def pairs_of(reports):
    """Return the races of some reports: pairs of (engine, index), in the order of engines."""
    return {
        tuple(sorted((ENGINES.index(word.engine), word.index) for word in report.words))
        for report in reports
        if report.name == "race"
    }


# --- who races with whom --------------------------------------------------------------------

ISSUE, READ, COMPLETE = 1, 2, 3
"""The three moments of a word."""


class Walk:
    """Every state that streams can reach: moments passed by each engine, semaphores, events."""

    def __init__(self, streams: Streams) -> None:
        self.steps = streams.steps
        start = ((0,) * len(self.steps), tuple(sorted(streams.start.items())), ())
        self.reached = set()
        todo, seen = [start], {start}
        while todo:
            state = todo.pop()
            self.reached.add(state[0])
            for engine in range(len(self.steps)):
                after = self._after(state, engine)
                if after is not None and after not in seen:
                    seen.add(after)
                    todo.append(after)

    def _after(self, state, engine):
        places, semaphores, events = state
        number, moment = divmod(places[engine], 3)
        if number >= len(self.steps[engine]):
            return None
        step = self.steps[engine][number]
        semaphores, events = dict(semaphores), dict(events)
        if moment == 0 and not self._may_issue(step, semaphores, events):
            return None
        if moment == 1 and step.update and step.update[0].endswith("READ"):
            self._update(step, semaphores, events)
        if moment == 2 and step.update and step.update[0].endswith("COMPLETE"):
            self._update(step, semaphores, events)
        places = tuple(p + (e == engine) for e, p in enumerate(places))
        return places, tuple(sorted(semaphores.items())), tuple(sorted(events.items()))

    @staticmethod
    def _may_issue(step, semaphores, events):
        if step.wait is None:
            return True
        mode, index = step.wait
        value = semaphores.get(index, 0)
        if mode == "SEM_GE_IMM":
            return value >= step.value
        if mode == "SEM_EQ_IMM":
            return value == step.value
        wanted = 1 if mode.startswith("EVT_SET") else 0
        if events.get(index, 0) != wanted:
            return False
        if "THEN" in mode:
            events[index] = 1 - wanted
        return True

    @staticmethod
    def _update(step, semaphores, events):
        mode, index = step.update
        if mode.startswith("SEM_INC"):
            semaphores[index] = semaphores.get(index, 0) + 1
        elif mode.startswith("SEM_DEC"):
            semaphores[index] = semaphores.get(index, 0) - 1
        elif mode.startswith("SEM_WR"):
            semaphores[index] = step.value
        else:
            events[index] = int(mode.startswith("EVT_SET"))

    def accesses(self):
        """Yield engine, number, cells, whether it writes, and the moment when it is done."""
        for engine, steps in enumerate(self.steps):
            for number, step in enumerate(steps):
                if step.reads is not None:
                    yield engine, number, step.reads, False, 3 * number + READ
                if step.writes is not None:
                    yield engine, number, step.writes, True, 3 * number + COMPLETE

    def _can_overtake(self, first, second):
        """Tell whether `second` can be done while `first` is not."""
        a, _, _, _, done = first
        b, _, _, _, other = second
        return any(places[b] >= other and places[a] < done for places in self.reached)

    def races(self):
        """Return the pairs of words with accesses that can be done in either order."""
        every = list(self.accesses())
        found = set()
        for i, first in enumerate(every):
            for second in every[i + 1 :]:
                if first[0] == second[0] or not (first[3] or second[3]):
                    continue
                (a, b), (c, d) = first[2], second[2]
                if max(a, c) >= min(b, d):
                    continue
                if self._can_overtake(first, second) and self._can_overtake(second, first):
                    found.add(tuple(sorted((first[:2], second[:2]))))
        return found

    def twins(self, word):
        """Return the words of the same engine that touch the very same cells in the same way."""
        engine, number = word
        mine = self.steps[engine][number]
        return {
            (engine, other)
            for other, step in enumerate(self.steps[engine])
            if (mine.reads and step.reads == mine.reads)
            or (mine.writes and step.writes == mine.writes)
        }

    def explains(self, found, missing):
        """Tell whether a race was told of words that touch the very same cells."""
        first, second = missing
        return any(
            tuple(sorted((a, b))) in found for a in self.twins(first) for b in self.twins(second)
        )


# --- generated programs ---------------------------------------------------------------------


def cells(generator, most=8):
    first = generator.randrange(most)
    return first, generator.randint(first + 1, min(most, first + 3))


def memory_step(generator, most=8):
    """Return a step that writes, and reads as many cells in two of three cases."""
    first, end = cells(generator, most)
    reads = None
    if generator.random() < 2 / 3:
        start = generator.randrange(most - (end - first) + 1)
        reads = (start, start + end - first)
    return Step(reads=reads, writes=(first, end), style=generator.randrange(2))


def random_streams(generator, engines, length, *, one_producer=True):
    """Return streams with waits and updates that mean nothing in particular.

    With `one_producer` each semaphore is counted up by one engine only.
    """
    streams = []
    for engine in range(engines):
        steps = []
        for _ in range(length):
            step = memory_step(generator)
            wait = update = None
            value = generator.randint(1, 2)
            if generator.random() < 0.4:
                wait = ("SEM_GE_IMM", generator.randrange(engines))
            if generator.random() < 0.5:
                index = engine if one_producer else generator.randrange(engines)
                update = (generator.choice(["SEM_INC_READ", "SEM_INC_COMPLETE"]), index)
            steps.append(Step(step.reads, step.writes, wait, update, value, generator.randrange(2)))
        streams.append(tuple(steps))
    return Streams(tuple(streams))


def conflict(first, second):
    """Return READ or COMPLETE, the moment of `first` that `second` must come after, or None."""

    def meets(a, b):
        return a is not None and b is not None and max(a[0], b[0]) < min(a[1], b[1])

    if meets(first.writes, second.reads) or meets(first.writes, second.writes):
        return "COMPLETE"
    return "READ" if meets(first.reads, second.writes) else None


def synchronised_streams(seed, engines=2, words=6):
    """Return streams in which every conflict is ordered, with a few orders that nobody needs.

    Words are dealt to engines in one order. Each waits for the last word of every other engine
    that it conflicts with, by a semaphore of each pair of engines that counts up.
    """
    generator = random.Random(seed)
    dealt = [(generator.randrange(engines), memory_step(generator)) for _ in range(words)]
    signals = defaultdict(dict)  # (from, to) -> number of the word dealt -> moment
    waits = defaultdict(set)  # number of the word dealt -> (from, to, number of the word dealt)
    for number, (engine, step) in enumerate(dealt):
        for other in range(engines):
            if other == engine:
                continue
            for earlier in reversed(range(number)):
                whose, before = dealt[earlier]
                moment = conflict(before, step) if whose == other else None
                if whose == other and moment is None and generator.random() < 0.1:
                    moment = "COMPLETE"
                if moment is not None:
                    known = signals[other, engine].get(earlier)
                    is_complete = "COMPLETE" in (moment, known)
                    signals[other, engine][earlier] = "COMPLETE" if is_complete else "READ"
                    waits[number].add((other, engine, earlier))
                    if moment == "COMPLETE":
                        break
    return _laid_out(dealt, signals, waits, engines)


def _laid_out(dealt, signals, waits, engines):
    """Put the first wait and update of a word into it, and more of them into words around it."""
    streams = [[] for _ in range(engines)]
    for number, (engine, step) in enumerate(dealt):
        before = []
        for other, _, earlier in sorted(waits[number]):
            pair = other * engines + engine
            threshold = sum(n <= earlier for n in signals[other, engine])
            before.append((("SEM_GE_IMM", pair), threshold))
        after = [
            (f"SEM_INC_{told[number]}", a * engines + b)
            for (a, b), told in sorted(signals.items())
            if a == engine and number in told
        ]
        for wait, value in before[1:]:
            streams[engine].append(Step(wait=wait, value=value))
        wait, value = before[0] if before else (None, 0)
        update = after[0] if after else None
        streams[engine].append(Step(step.reads, step.writes, wait, update, value, step.style))
        # A word of its own comes after the reads and the writes alike.
        for extra in after[1:]:
            streams[engine].append(Step(update=extra))
    return Streams(tuple(tuple(steps) for steps in streams))


def mixed_streams(generator, engines, length):
    """Return streams with every kind of wait and update, which mean nothing in particular."""
    waits = ("SEM_GE_IMM", "SEM_EQ_IMM", "EVT_SET", "EVT_SET_THEN_CLEAR", "EVT_CLEAR_THEN_SET")
    actions = ("SEM_INC", "SEM_DEC", "SEM_WR_IMM", "EVT_SET", "EVT_CLR")
    streams = []
    for _ in range(engines):
        steps = []
        for _ in range(length):
            step = memory_step(generator, 5)
            wait = update = None
            if generator.random() < 0.4:
                wait = (generator.choice(waits), generator.randrange(2))
            if generator.random() < 0.7:
                action = generator.choice(actions)
                moment = generator.choice(["READ", "COMPLETE"])
                update = (f"{action}_{moment}", generator.randrange(2))
            steps.append(
                Step(step.reads, step.writes, wait, update, generator.randint(0, 2), step.style)
            )
        streams.append(tuple(steps))
    return Streams(tuple(streams))
