"""The one place that looks inside a machine: which word is next, and what each word did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import define, field

from neuron_emu.debug.history import Executed, History
from neuron_emu.engines.core import Effects, EngineState, Prepared, Problem
from neuron_emu.engines.kernels import find_kernel
from neuron_emu.isa.enums import DType, Engine
from neuron_emu.isa.program import Stream
from neuron_emu.issue import Issued, Queue
from neuron_emu.machine import Machine
from neuron_emu.memory import Operand
from neuron_emu.observer import Observer

__all__ = [
    "Recorder",
    "hold_up",
    "is_order_drawn",
    "is_over",
    "next_engine",
    "prepare_word",
    "reads_state",
    "streams",
    "writes_state",
    "written_dtypes",
]


def streams(machine: Machine) -> dict[Engine, Stream]:
    """Return the stream of each engine that has one."""
    return {queue.state.engine: queue.stream for queue in machine._scheduler.queues}


def _queue(machine: Machine, engine: Engine) -> Queue | None:
    return next((q for q in machine._scheduler.queues if q.state.engine is engine), None)


def is_over(machine: Machine, engine: Engine) -> bool:
    """Tell whether an engine has no word left."""
    queue = _queue(machine, engine)
    return queue is None or queue.is_finished


def hold_up(machine: Machine, engine: Engine) -> tuple[tuple[str, int, str], ...]:
    """Return kind, number and sentence of each wait that the next word of an engine lacks."""
    queue = _queue(machine, engine)
    if queue is None or queue.is_finished:
        return ()
    registers = queue.state.registers
    return tuple(
        ("E" if wait.mode.name.startswith("EVT") else "S", wait.index, sentence)
        for wait in machine._issuer.issued(queue).waits
        if not wait.is_met(machine.sync, registers)
        for sentence in (wait.sentence(machine.sync, registers),)
    )


def is_order_drawn(machine: Machine) -> bool:
    """Tell whether the order of the engines is drawn from a seed."""
    return machine._scheduler.draw is not None


def next_engine(machine: Machine) -> Engine | None:
    """Return the engine whose word the next step takes up; None when nothing can run."""
    scheduler = machine._scheduler
    turn, draw = scheduler.turn, scheduler.draw
    queue: Queue | None
    if draw is None:
        found = scheduler.in_turn()
        queue = None if found is None else found[0]
    else:
        queue = scheduler.drawn()
    scheduler.turn, scheduler.draw = turn, draw
    return None if queue is None else queue.state.engine


def prepare_word(state: EngineState, word: bytes, record: Any) -> Prepared | Problem:
    """Make a word ready apart from the machine: what it would read and write at this moment."""
    kernel = find_kernel(word[0], state.engine, state.generation)
    return kernel if isinstance(kernel, Problem) else kernel.prepare(record, state)


@define(eq=False)
class Recorder:
    """The observer that notes each word in a history; it passes everything on to `behind`."""

    machine: Machine
    history: History
    behind: Observer | None = None
    _in_flight: dict[int, tuple[int, Prepared]] = field(factory=dict)

    @classmethod
    def watch(cls, machine: Machine, history: History) -> None:
        """Note each word that a machine executes from now on."""
        machine.observer = cls(machine, history, machine.observer)

    def started(self, queues: Sequence[Queue]) -> None:
        """Forget the program before."""
        self.history.entries.clear()
        if self.behind is not None:
            self.behind.started(queues)

    def begun(self, queue: Queue, issued: Issued, prepared: Prepared, effects: Effects) -> None:
        """Keep the prepared word until it finishes."""
        self._in_flight[id(queue)] = self.machine.steps, prepared
        if self.behind is not None:
            self.behind.begun(queue, issued, prepared, effects)

    def finishing(self, queue: Queue, issued: Issued, effects: Effects) -> None:
        """Note the word."""
        state = queue.state
        begun, prepared = self._in_flight[id(queue)]
        self.history.entries.append(
            Executed(
                self.machine.steps,
                begun,
                state.engine,
                state.position,
                issued,
                prepared,
                tuple([operand for operand, _ in effects.writes]),
                effects.accumulator is not None,
                effects.tables is not None,
                effects.registers,
                effects.sync,
            )
        )
        if self.behind is not None:
            self.behind.finishing(queue, issued, effects)

    def rewound(self) -> None:
        """Forget the words that were taken back."""
        self.history.forget_from(self.machine.steps)
        if self.behind is not None:
            self.behind.rewound()


def written_dtypes(entry: Executed) -> Iterator[tuple[DType, Operand]]:
    """Yield the operands that a word wrote with the dtype of their elements."""
    dtype = entry.prepared.operands().written
    for operand in entry.written:
        if dtype is not None and dtype.size_bytes == operand.item_bytes:
            yield dtype, operand


def writes_state(entry: Executed, kind: str, engine: Engine, number: int) -> bool:
    """Tell whether a word wrote a register, semaphore, event or accumulator lane."""
    issued = entry.issued
    if kind == "R":
        return entry.engine is engine and any(n == number for n, _ in entry.registers)
    if kind == "acc":
        lanes = getattr(issued.record, "num_active_channels", number + 1)
        return entry.engine is engine and entry.accumulator and number < lanes
    updates = (*issued.read_updates, *issued.complete_updates)
    return any(
        u.index == number and u.mode.name.startswith("EVT" if kind == "E" else "SEM")
        for u in updates
    ) or any(change.kind == kind and change.index == number for change in entry.sync)


def reads_state(entry: Executed, kind: str, engine: Engine, number: int) -> bool:
    """Tell whether a word read a register, semaphore, event or accumulator lane."""
    issued, prepared = entry.issued, entry.prepared
    if kind == "R":
        return entry.engine is engine and number in getattr(prepared, "registers", ())
    if kind == "acc":
        return entry.engine is engine and number < getattr(prepared, "uses_accumulator", 0)
    prefix = "EVT" if kind == "E" else "SEM"
    return any(w.index == number and w.mode.name.startswith(prefix) for w in issued.waits)
