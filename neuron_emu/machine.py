"""The machine: engines over one core's memories and semaphores, and the only writer of state.

`Machine.step` executes one word, `Machine.run` all of them. A fault is a result: it stops the run
and leaves the state as it was before the word (design.md 5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from neuron_emu.engines.accumulator import Accumulator
from neuron_emu.engines.core import Effects, EngineState, Prepared, Problem
from neuron_emu.engines.kernels import route_stations
from neuron_emu.engines.sequencer import SyncChange, SyncState
from neuron_emu.errors import InputError
from neuron_emu.events import Event, Fault, Notice
from neuron_emu.generation import Generation, generation_named
from neuron_emu.isa.assembly import disassemble_word
from neuron_emu.isa.diagnostics import Finding
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program
from neuron_emu.issue import Issued, Issuer, Queue
from neuron_emu.memory import Memory
from neuron_emu.numerics import NumberFormats
from neuron_emu.observer import Observer
from neuron_emu.policy import Policy
from neuron_emu.pwp.library import ResidentTables, TableLibrary
from neuron_emu.sanitize import Report, Sanitizer
from neuron_emu.scheduler import Scheduler
from neuron_emu.snapshot import Checkpoint, digest, engine_frame, put_engine_back
from neuron_emu.tensor_spec import TensorSpec, dump, load
from neuron_emu.undo import DEFAULT_LIMIT_BYTES, UndoLog

__all__ = ["Machine", "RunResult"]

MAX_STEPS = 10_000_000
"""Words after which a run stops (design.md 5)."""


@frozen(kw_only=True)
class RunResult:
    """How a run ended: words executed, the fault that stopped it, all warnings, sets loaded."""

    steps: int
    fault: Fault | None
    warnings: tuple[Notice, ...]
    table_loads: int = 0

    @property
    def is_clean(self) -> bool:
        """True without a fault; warnings alone are clean."""
        return self.fault is None


class Machine:
    """A core of one generation under one policy.

    >>> from neuron_emu import Machine, Program
    >>> machine = Machine("mariana")
    >>> machine.run(Program.from_text("NOP")).steps
    1
    """

    def __init__(
        self,
        generation: Generation | str = "mariana",
        policy: Policy | None = None,
        *,
        tables: str | Path | None = None,
        sanitize: bool = False,
        interleave: int | None = None,
    ) -> None:
        """Make a machine; `tables` is a directory of profiles to use instead of the shipped ones.

        With `sanitize` a `Sanitizer` looks on, and each read of bytes that were never written
        warns, else only the first.
        Engines take turns, a word each; with `interleave`, a seed, their order is drawn, and
        other engines may run between the reads of a word and its writes.
        """
        if isinstance(generation, str):
            generation = generation_named(generation)
        self.library = TableLibrary(Path(tables) if tables is not None else None)
        # A word's set index is checked against the sets of the tables that are used.
        num_sets = len(self.library.sets)
        if num_sets != generation.num_function_sets:
            generation = evolve(generation, num_function_sets=num_sets)
        self.generation = generation
        self.policy = policy or Policy()
        self.formats = NumberFormats.of(generation, self.policy)
        self.memory = Memory(generation, self.policy)
        self.sync = SyncState.at_start(generation)
        self.observer: Observer | None = None
        self.sanitizer: Sanitizer | None = None
        self.steps = 0
        self.table_loads = 0
        self.warnings: list[Notice] = []
        self.listeners: list[Callable[[Event], None]] = []
        self._engines: dict[Engine, EngineState] = {}
        self._issuer = Issuer(generation, self.policy, self.library, self._warn, sanitize=sanitize)
        self._scheduler = Scheduler(self._issuer, self.sync, interleave)
        self._log: UndoLog | None = None
        if sanitize:
            self.start_sanitizer()

    # --- state that users see ---------------------------------------------------------------

    def engine(self, engine: Engine) -> EngineState:
        """Return the state of an engine: registers, accumulator, resident tables, position."""
        if engine not in self._engines:
            self._engines[engine] = EngineState(
                engine=engine,
                generation=self.generation,
                policy=self.policy,
                formats=self.formats,
                memory=self.memory,
                random=self.formats.new_generator(),
                registers=[0] * self.generation.num_address_registers,
                accumulator=Accumulator.at_power_on(self.generation),
                library=self.library,
            )
        return self._engines[engine]

    def write(self, spec: str | TensorSpec, array: npt.ArrayLike) -> None:
        """Store an array in memory by its SPEC (design.md 4).

        While undo is recorded, a write between two words is undone together with the first one.
        """
        spec = _spec(spec)
        if self._log is not None:
            self._log.note_memory(spec.operand(self.memory))
        load(self.memory, spec, np.asarray(array))

    def read(self, spec: str | TensorSpec) -> npt.NDArray[Any]:
        """Return the values at a SPEC: floats as float32, integers as themselves, or bits."""
        return dump(self.memory, _spec(spec))

    def preload(
        self, selector: int | str, engines: Iterable[Engine] = (Engine.DVE, Engine.ACT)
    ) -> None:
        """Make a function set resident before the run; InputError for an unknown set."""
        tables = ResidentTables(self.library.function_set(selector), self.library)
        for engine in engines:
            self.engine(engine).tables = tables

    # --- running ----------------------------------------------------------------------------

    def load(self, program: Program) -> None:
        """Give streams to their engines, which start at the first word; undo starts anew."""
        queues = [
            Queue(stream, self.engine(engine))
            for engine, stream in program.one_per_engine().items()
        ]
        self._scheduler.start(queues)
        if self.observer is not None:
            self.observer.started(queues)
        if self._log is not None:
            self._log.clear()

    def run(self, program: Program | None = None, *, max_steps: int = MAX_STEPS) -> RunResult:
        """Run until every stream has ended, a word faults, or `max_steps` words have run."""
        if program is not None:
            self.load(program)
        first, loads = self.steps, self.table_loads
        fault: Fault | None = None
        last = first + max_steps
        step = self.step
        while fault is None:
            before = self.steps
            if before >= last:
                if not self._scheduler.is_finished:
                    message = f"stopped at the limit of {max_steps} words (--max-steps)"
                    fault = self._fault(self._scheduler.first, Problem("max_steps", message))
                break
            fault = step()
            if self.steps == before:
                break
        return RunResult(
            steps=self.steps - first,
            fault=fault,
            warnings=tuple(self.warnings),
            table_loads=self.table_loads - loads,
        )

    @property
    def is_finished(self) -> bool:
        """True when no stream has a word left."""
        return self._scheduler.is_finished

    def start_sanitizer(self) -> Sanitizer:
        """Look on from here: races with words that have run before stay unseen."""
        sanitizer = Sanitizer(self.memory, self.sync, self._tell)
        sanitizer.started(self._scheduler.queues)
        self.observer = self.sanitizer = sanitizer
        self._issuer.sanitize = True
        return sanitizer

    def position(self, engine: Engine) -> int:
        """Return the index of the next word of an engine's stream."""
        return self.engine(engine).position

    def step(self) -> Fault | None:
        """Execute one word of the next engine whose waits are met.

        Under `interleave` this goes on until some word has completed; others may be left between
        their reads and their writes. Returns the fault that stopped it, None when a word ran or
        when nothing is left.
        """
        log = self._log
        if log is None:
            return self._advance()
        if self._scheduler.is_finished:
            return None
        log.begin(self._frame([queue.state for queue in self._scheduler.queues]))
        fault = self._advance()
        log.commit(is_complete=fault is None)
        return fault

    def _advance(self) -> Fault | None:
        if self._scheduler.draw is not None:
            return self._advance_drawn()
        found = self._scheduler.in_turn()
        if found is None:
            return self._deadlock()
        queue, issued = found
        effects = self._begin(queue, issued)
        if isinstance(effects, Fault):
            return effects
        self._finish(queue, issued, effects)
        return None

    def _advance_drawn(self) -> Fault | None:
        while True:
            queue = self._scheduler.drawn()
            if queue is None:
                return self._deadlock()
            if queue.pending is not None:
                (issued, effects), queue.pending = queue.pending, None
                self._finish(queue, issued, effects)
                return None
            issued = self._issuer.issued(queue)
            begun = self._begin(queue, issued)
            if isinstance(begun, Fault):
                return begun
            # The bits may be views of memory, which other engines change before they are stored.
            held = tuple((operand, bits.copy()) for operand, bits in begun.writes)
            queue.pending = issued, begun._replace(writes=held)

    def _begin(self, queue: Queue, issued: Issued) -> Effects | Fault:
        """Do the first moment of a word: its reads, the flips of its waits, its READ updates."""
        if self.listeners:
            text = disassemble_word(issued.word, self.generation)
            self._emit(queue, "issue", None, {"text": text})
        tables = queue.state.tables
        prepared = self._issuer.prepared(queue, issued)
        self.table_loads += queue.state.tables is not tables
        if isinstance(prepared, Problem):
            return self._fault(queue, prepared, issued.findings)
        try:
            effects = prepared.execute()
        except InputError as error:
            # A table that does not cover its input says so when it meets it.
            effects = Problem("tables", str(error))
        if isinstance(effects, Problem):
            return self._fault(queue, effects)
        if self.listeners:
            self._emit_stations(queue, issued, prepared, effects)
        if self.observer is not None:
            self.observer.begun(queue, issued, prepared, effects)
        for wait in issued.waits:
            change = wait.change()
            if change is not None:
                self._set(change)
        if issued.read_updates:
            self._update(queue, issued.read_updates)
        return effects

    def _finish(self, queue: Queue, issued: Issued, effects: Effects) -> None:
        """Do the second moment of a word: its writes, its COMPLETE updates; then move on."""
        log = self._log
        if self.observer is not None:
            self.observer.finishing(queue, issued, effects)
        for operand, bits in effects.writes:
            if log is not None:
                log.note_memory(operand)
            operand.write(bits)
        state = queue.state
        if effects.accumulator is not None:
            state.accumulator = effects.accumulator
        if effects.tables is not None:
            state.tables = effects.tables
            self.table_loads += 1
        if effects.registers:
            self._set_items(state.registers, effects.registers)
        if effects.latches:
            self._set_items(state.latches, effects.latches)
        for change in effects.sync:
            self._set(change)
        if issued.complete_updates:
            self._update(queue, issued.complete_updates)
        state.position = state.position + 1 if effects.target is None else effects.target
        queue.ended = effects.ends
        self.steps += 1

    def _update(self, queue: Queue, updates: Iterable[Any]) -> None:
        for update in updates:
            change = update.change(self.sync, queue.state.registers)
            self._set(change)
            if self.listeners:
                self._emit(queue, "station", "update", {"changed": str(change)})

    def _set(self, change: SyncChange) -> None:
        self._set_items(self.sync.of_kind(change.kind), ((change.index, change.value),))

    def _set_items(self, container: Any, items: Iterable[tuple[Any, Any]]) -> None:
        for key, value in items:
            if self._log is not None:
                self._log.note_item(container, key)
            container[key] = value

    # --- going back -------------------------------------------------------------------------

    def record_undo(self, is_on: bool = True, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        """Begin or end recording what each word overwrites, in about `limit_bytes` of memory.

        Steps before this call cannot be undone. When the limit is reached the oldest steps are
        dropped; `undo_depth` tells how many are left, and a `checkpoint` made earlier leads
        further back.
        """
        self._log = UndoLog(limit_bytes) if is_on else None

    @property
    def undo_depth(self) -> int:
        """The number of steps that `undo` can take back now."""
        return 0 if self._log is None else len(self._log)

    def undo(self) -> bool:
        """Take the last step back, exactly; False when none is recorded (any more).

        Warnings and faults since then are forgotten; events that listeners got are not.
        """
        frame = None if self._log is None else self._log.undo()
        if frame is None:
            return False
        self._put_back(frame)
        self._has_gone_back()
        return True

    def _has_gone_back(self) -> None:
        self._issuer.forget_reads()
        if self.observer is not None:
            self.observer.rewound()

    def snapshot(self) -> bytes:
        """Return a digest of the whole state: equal digests mean equal states."""
        return digest(self, self._private())

    def checkpoint(self) -> Checkpoint:
        """Return a copy of the whole state, which `restore` puts back; it holds written pages."""
        states = [self.engine(engine) for engine in Engine]
        return Checkpoint.of(self, self._frame(states))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Put back the state of a checkpoint of this machine's program; undo starts anew."""
        self._put_back(checkpoint.frame)
        checkpoint.put_back(self)
        self._has_gone_back()
        if self._log is not None:
            self._log.clear()

    def _private(self) -> tuple[Any, ...]:
        """Return the state that is not of an engine or a memory."""
        scheduler = self._scheduler
        queues = [
            (queue.state.engine, queue.ended, queue.pending and queue.pending[1])
            for queue in scheduler.queues
        ]
        return (
            self.steps,
            self.table_loads,
            self.warnings,
            self._issuer.warned_uninitialised,
            scheduler.turn,
            scheduler.draw,
            queues,
        )

    def _frame(self, states: Iterable[EngineState]) -> tuple[Any, ...]:
        """Return all state that is kept by reference, as it is now, for `_put_back`."""
        scheduler = self._scheduler
        return (
            (self.steps, self.table_loads, len(self.warnings)),
            (self._issuer.warned_uninitialised, scheduler.turn, scheduler.draw),
            [(queue, queue.ended, queue.pending) for queue in scheduler.queues],
            [engine_frame(state) for state in states],
        )

    def _put_back(self, frame: tuple[Any, ...]) -> None:
        counts, order, queues, engines = frame
        scheduler = self._scheduler
        self.steps, self.table_loads, num_warnings = counts
        del self.warnings[num_warnings:]
        self._issuer.warned_uninitialised, scheduler.turn, scheduler.draw = order
        for queue, ended, pending in queues:
            queue.ended, queue.pending = ended, pending
        for engine in engines:
            put_engine_back(engine)

    # --- reports ----------------------------------------------------------------------------

    def _fault(self, queue: Queue, problem: Problem, findings: tuple[Finding, ...] = ()) -> Fault:
        fault = Fault(
            engine=queue.state.engine,
            index=queue.state.position,
            name=problem.name,
            message=problem.message,
            address=problem.address,
            names=tuple(dict.fromkeys(f.name for f in findings if f.severity == "error")),
        )
        if self.listeners:
            detail: dict[str, Any] = {"name": fault.name, "message": fault.message}
            if fault.address is not None:
                detail["address"] = f"{fault.address:#x}"
            self._emit(queue, "fault", None, detail)
        return fault

    def _deadlock(self) -> Fault | None:
        found = self._scheduler.deadlock()
        return None if found is None else self._fault(*found)

    def _warn(self, queue: Queue, name: str, message: str) -> None:
        state = queue.state
        self.warnings.append(
            Notice(engine=state.engine, index=state.position, name=name, message=message)
        )
        if self.listeners:
            self._emit(queue, "warning", None, {"name": name, "message": message})

    def _tell(self, report: Report) -> None:
        """Make a report of the sanitizer a warning of the word that it is about."""
        engine = report.words[-1].engine
        queue = next(q for q in self._scheduler.queues if q.state.engine is engine)
        self._warn(queue, report.name, report.message)

    def _emit_stations(
        self, queue: Queue, issued: Issued, prepared: Prepared, effects: Effects
    ) -> None:
        kernel = issued.kernel
        if isinstance(kernel, Problem):
            return
        stations = route_stations(issued.word[0], kernel, queue.state.engine, self.generation)
        for name, detail in [*stations, *prepared.stations(effects)]:
            self._emit(queue, "station", name, detail)

    def _emit(self, queue: Queue, kind: str, station: str | None, detail: dict[str, Any]) -> None:
        event = Event(
            step=self.steps,
            engine=queue.state.engine,
            index=queue.state.position,
            kind=kind,
            station=station,
            detail=detail,
        )
        for listener in self.listeners:
            listener(event)


def _spec(spec: str | TensorSpec) -> TensorSpec:
    return TensorSpec.parse(spec) if isinstance(spec, str) else spec
