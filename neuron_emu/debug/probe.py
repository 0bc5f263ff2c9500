"""The one place that looks inside a machine: which word is next, and what each word did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuron_emu.debug.history import Executed, History
from neuron_emu.debug.operands import word_operands
from neuron_emu.engines.core import Effects, EngineState, Prepared, Problem
from neuron_emu.engines.kernels import find_kernel
from neuron_emu.isa.enums import DType, Engine
from neuron_emu.isa.program import Stream
from neuron_emu.issue import Issued, Queue
from neuron_emu.machine import Machine
from neuron_emu.memory import Operand

__all__ = [
    "hold_up",
    "is_over",
    "next_engine",
    "prepare_word",
    "reads_state",
    "record",
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


def record(machine: Machine, history: History) -> None:
    """Note each word that a machine executes, from now on."""
    entries = history.entries
    finish, prepare = machine._finish, machine._issuer.prepared
    in_flight: dict[int, Prepared | Problem] = {}

    def noted_prepare(queue: Queue, issued: Issued) -> Prepared | Problem:
        in_flight[id(queue)] = prepared = prepare(queue, issued)
        return prepared

    def noted_finish(queue: Queue, issued: Issued, effects: Effects) -> None:
        state = queue.state
        entries.append(
            Executed(
                machine.steps,
                state.engine,
                state.position,
                issued,
                in_flight[id(queue)],
                tuple([operand for operand, _ in effects.writes]),
                effects.accumulator is not None,
                effects.tables is not None,
                effects.registers,
                effects.sync,
            )
        )
        finish(queue, issued, effects)

    machine._issuer.prepared = noted_prepare  # type: ignore[method-assign]
    machine._finish = noted_finish  # type: ignore[method-assign]


def written_dtypes(machine: Machine, entry: Executed) -> Iterator[tuple[DType, Operand]]:
    """Yield the operands that a word wrote with the dtype that the word gives them."""
    dtypes = [o.dtype for o in word_operands(entry.issued.record) if o.is_written and o.dtype]
    for number, operand in enumerate(entry.written):
        dtype = dtypes[min(number, len(dtypes) - 1)] if dtypes else None
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
