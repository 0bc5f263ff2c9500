"""The machine: engines over one core's memories and semaphores, and the only writer of state.

`Machine.step` issues one word, `Machine.run` all of them. A fault is a result: it stops the run
and leaves the state as it was before the word (design.md 5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from neuron_emu.engines.accumulator import Accumulator
from neuron_emu.engines.core import Effects, EngineState, Prepared, Problem
from neuron_emu.engines.kernels import Kernel, find_kernel, route_stations
from neuron_emu.engines.resident import TableLibrary
from neuron_emu.engines.sequencer import (
    SyncState,
    apply_update,
    apply_wait,
    is_ready,
    wait_sentence,
)
from neuron_emu.errors import InputError
from neuron_emu.events import Event, Fault, Notice
from neuron_emu.generation import Generation, generation_named
from neuron_emu.isa.assembly import disassemble_word
from neuron_emu.isa.codec import decode
from neuron_emu.isa.diagnostics import Finding
from neuron_emu.isa.enums import Engine, WaitMode
from neuron_emu.isa.program import Program, Stream
from neuron_emu.isa.records import Events
from neuron_emu.isa.validate import findings_of_word
from neuron_emu.memory import Memory
from neuron_emu.numerics import NumberFormats
from neuron_emu.policy import Policy
from neuron_emu.tensor_spec import TensorSpec, dump, load

__all__ = ["Machine", "RunResult"]

MAX_STEPS = 10_000_000
"""Words after which a run stops (design.md 5)."""
_NO_EVENTS = Events(wait_mode=0, wait_idx=0, update_mode=0, update_idx=0, semaphore_value=0)


@frozen(kw_only=True)
class RunResult:
    """How a run ended: words executed, the fault that stopped it, all warnings."""

    steps: int
    fault: Fault | None
    warnings: tuple[Notice, ...]

    @property
    def is_clean(self) -> bool:
        """True without a fault; warnings alone are clean."""
        return self.fault is None


@define(eq=False)
class _Issued:
    """What is known of one word on one engine: decoded and judged once, prepared when it runs."""

    record: Any
    events: Events | None
    findings: tuple[Finding, ...]
    kernel: Kernel | Problem
    prepared: Prepared | None = None
    register_values: tuple[int, ...] = ()
    reads_checked: bool = False


@define(eq=False)
class _Queue:
    """The stream of one engine and how far it has come."""

    stream: Stream
    state: EngineState
    position: int = 0
    ended: bool = False
    issued: dict[bytes, _Issued] = field(factory=dict)

    @property
    def is_finished(self) -> bool:
        return self.ended or self.position >= len(self.stream)


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
    ) -> None:
        """Make a machine; `tables` is a directory of profiles to use instead of the shipped ones.

        With `sanitize` each read of bytes that were never written warns, else only the first.
        """
        if isinstance(generation, str):
            generation = generation_named(generation)
        self.generation = generation
        self.policy = policy or Policy()
        self.formats = NumberFormats.of(generation, self.policy)
        self.memory = Memory(generation, self.policy)
        self.sync = SyncState.at_start(generation)
        self.library = TableLibrary(Path(tables) if tables is not None else None)
        self.sanitize = sanitize
        self.steps = 0
        self.warnings: list[Notice] = []
        self.listeners: list[Callable[[Event], None]] = []
        self._random = self.formats.new_generator()
        self._engines: dict[Engine, EngineState] = {}
        self._queues: list[_Queue] = []
        self._turn = 0
        self._warned_uninitialised = False

    # --- state that users see ---------------------------------------------------------------

    def engine(self, engine: Engine) -> EngineState:
        """Return the state of an engine: registers, accumulator, resident tables."""
        if engine not in self._engines:
            self._engines[engine] = EngineState(
                engine=engine,
                generation=self.generation,
                policy=self.policy,
                formats=self.formats,
                memory=self.memory,
                random=self._random,
                registers=[0] * self.generation.num_address_registers,
                accumulator=Accumulator.at_power_on(self.generation),
                library=self.library,
            )
        return self._engines[engine]

    def write(self, spec: str | TensorSpec, array: npt.ArrayLike) -> None:
        """Store an array in memory by its SPEC (design.md 4)."""
        load(self.memory, _spec(spec), np.asarray(array))

    def read(self, spec: str | TensorSpec) -> npt.NDArray[Any]:
        """Return the values at a SPEC: floats as float32, integers as themselves, or bits."""
        return dump(self.memory, _spec(spec))

    def preload(
        self, selector: int | str, engines: Iterable[Engine] = (Engine.DVE, Engine.ACT)
    ) -> None:
        """Make a function set resident before the run; InputError for an unknown set."""
        tables = self.library.install(selector)
        if tables is None:
            raise InputError(f"function set {selector!r} is unknown", place="--preload")
        for engine in engines:
            self.engine(engine).tables = tables

    # --- running ----------------------------------------------------------------------------

    def load(self, program: Program) -> None:
        """Give streams to their engines, which start at the first word."""
        self._queues = [
            _Queue(stream, self.engine(engine))
            for engine, stream in program.one_per_engine().items()
        ]
        self._turn = 0

    def run(self, program: Program | None = None, *, max_steps: int = MAX_STEPS) -> RunResult:
        """Run until every stream has ended, a word faults, or `max_steps` words have run."""
        if program is not None:
            self.load(program)
        first = self.steps
        fault: Fault | None = None
        while fault is None and not self.is_finished:
            if self.steps - first >= max_steps:
                queue = self._queues[self._turn % len(self._queues)]
                message = f"stopped after {max_steps} words (--max-steps)"
                fault = self._fault(queue, Problem("max_steps", message))
                break
            fault = self.step()
        return RunResult(steps=self.steps - first, fault=fault, warnings=tuple(self.warnings))

    @property
    def is_finished(self) -> bool:
        """True when no stream has a word left."""
        return all(queue.is_finished for queue in self._queues)

    def position(self, engine: Engine) -> int:
        """Return the index of the next word of an engine's stream."""
        return next((q.position for q in self._queues if q.state.engine is engine), 0)

    def step(self) -> Fault | None:
        """Issue one word of the next engine whose wait is satisfied, in turn.

        Returns the fault that stopped it, None when it ran or when nothing is left.
        """
        waiting: list[tuple[_Queue, Events]] = []
        for offset in range(len(self._queues)):
            number = (self._turn + offset) % len(self._queues)
            queue = self._queues[number]
            if queue.is_finished:
                continue
            word = queue.stream[queue.position]
            issued = queue.issued.get(word) or self._issue(queue, word)
            if issued.events is None or is_ready(issued.events, self.sync, queue.state.registers):
                self._turn = (number + 1) % len(self._queues)
                return self._execute(queue, word, issued)
            waiting.append((queue, issued.events))
        return self._deadlock(waiting) if waiting else None

    def _issue(self, queue: _Queue, word: bytes) -> _Issued:
        record = decode(word, self.generation)
        events = getattr(record, "events", None)
        engine = queue.state.engine
        issued = _Issued(
            record=record,
            events=None if events == _NO_EVENTS else events,
            findings=findings_of_word(word, self.generation, engine, self.policy),
            kernel=find_kernel(word[0], engine, self.generation),
        )
        queue.issued[word] = issued
        return issued

    def _execute(self, queue: _Queue, word: bytes, issued: _Issued) -> Fault | None:
        if self.listeners:
            self._emit(queue, "issue", None, {"text": disassemble_word(word, self.generation)})
        problem = self._refusal(queue, issued)
        prepared = problem or self._prepare(queue, issued)
        if isinstance(prepared, Problem):
            return self._fault(queue, prepared, issued.findings)
        if not issued.reads_checked:
            self._check_reads(queue, issued, prepared)
        if prepared.uses_accumulator:
            self._check_accumulator(queue, prepared.uses_accumulator)
        effects = prepared.execute()
        if isinstance(effects, Problem):
            return self._fault(queue, effects)
        if self.listeners:
            self._emit_stations(queue, word, issued, prepared, effects)
        self._apply(queue, issued.events, effects)
        return None

    def _refusal(self, queue: _Queue, issued: _Issued) -> Problem | None:
        """Return why a word is not executed at all; findings are only told under invalid=warn."""
        errors = [f for f in issued.findings if f.severity == "error"]
        kernel = issued.kernel
        if errors and self.policy.invalid == "refuse":
            message = "; ".join(dict.fromkeys(f.message for f in errors))
            if isinstance(kernel, Problem) and kernel.name == "opcode":
                message = f"{message}; {kernel.message}"
            return Problem(errors[0].name, message)
        for finding in errors:
            self._warn(queue, finding.name, finding.message)
        return kernel if isinstance(kernel, Problem) else None

    def _prepare(self, queue: _Queue, issued: _Issued) -> Prepared | Problem:
        """Return the prepared word, made anew when a register it uses has changed."""
        state = queue.state
        prepared = issued.prepared
        if prepared is not None and (
            not prepared.registers or issued.register_values == _register_values(state, prepared)
        ):
            return prepared
        kernel = issued.kernel
        if isinstance(kernel, Problem):
            return kernel
        if kernel.function is not None and state.tables is None:
            self._load_tables(queue, kernel.function)
        made = kernel.prepare(issued.record, state)
        if isinstance(made, Problem):
            return made
        if made.is_reusable:
            issued.prepared = made
            issued.register_values = _register_values(state, made)
        issued.reads_checked = False
        return made

    def _load_tables(self, queue: _Queue, function: str) -> None:
        """Follow policy `tables` for an engine that holds no set."""
        tables = self.library.lowest_with(function) if self.policy.tables == "auto" else None
        if tables is not None:
            queue.state.tables = tables
            self._warn(
                queue,
                "no_tables_loaded",
                f"no function set was loaded; installed {tables.set.name} (index"
                f" {tables.set.index}), the lowest that holds {function}",
            )

    def _check_reads(self, queue: _Queue, issued: _Issued, prepared: Prepared) -> None:
        """Warn of the first byte read before anything wrote it: once a run, or each time."""
        if self._warned_uninitialised and not self.sanitize:
            return
        addresses = prepared.unwritten_reads()
        for address in addresses if self.sanitize else addresses[:1]:
            self._warned_uninitialised = True
            self._warn(
                queue,
                "uninitialised_read",
                f"reads bytes that nothing wrote, first at {address:#x}; their value is policy"
                f" uninitialised={self.policy.uninitialised}",
            )
        issued.reads_checked = not addresses and issued.prepared is prepared

    def _check_accumulator(self, queue: _Queue, channels: int) -> None:
        accumulator = queue.state.accumulator
        lane = accumulator.first_use_of_undefined(channels)
        if lane is None:
            return
        accumulator.warned = True
        value = float(accumulator.values[lane])
        self._warn(
            queue,
            "undefined_accumulator",
            f"uses the {queue.state.engine.name} accumulator, which is undefined (power-on or"
            f" after IDLE): what is drained, from {value:.9g} in lane {lane} on, is not to be"
            " relied on",
        )

    def _apply(self, queue: _Queue, events: Events | None, effects: Effects) -> None:
        """Write the effects of one word, fire its wait and update, and move on."""
        if events is not None:
            apply_wait(events, self.sync)
        for operand, bits in effects.writes:
            operand.write(bits)
        state = queue.state
        if effects.accumulator is not None:
            state.accumulator = effects.accumulator
        if effects.tables is not None:
            state.tables = effects.tables
            queue.issued.clear()
        if events is not None:
            changed = apply_update(events, self.sync, state.registers)
            if changed and self.listeners:
                self._emit(queue, "station", "update", {"changed": changed})
        queue.position += 1
        queue.ended = effects.ends
        self.steps += 1

    # --- reports ----------------------------------------------------------------------------

    def _fault(self, queue: _Queue, problem: Problem, findings: tuple[Finding, ...] = ()) -> Fault:
        fault = Fault(
            engine=queue.state.engine,
            index=queue.position,
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

    def _deadlock(self, waiting: list[tuple[_Queue, Events]]) -> Fault:
        sentences = [
            f"{queue.state.engine.name.lower()} at word {queue.position}"
            f" {wait_sentence(events, self.sync, queue.state.registers)}"
            for queue, events in waiting
            if events.wait_mode != WaitMode.NONE
        ]
        return self._fault(waiting[0][0], Problem("deadlock", "; ".join(sentences)))

    def _warn(self, queue: _Queue, name: str, message: str) -> None:
        self.warnings.append(
            Notice(engine=queue.state.engine, index=queue.position, name=name, message=message)
        )
        if self.listeners:
            self._emit(queue, "warning", None, {"name": name, "message": message})

    def _emit_stations(
        self, queue: _Queue, word: bytes, issued: _Issued, prepared: Prepared, effects: Effects
    ) -> None:
        kernel = issued.kernel
        if isinstance(kernel, Problem):
            return
        stations = route_stations(word[0], kernel, queue.state.engine, self.generation)
        for name, detail in [*stations, *prepared.stations(effects)]:
            self._emit(queue, "station", name, detail)

    def _emit(self, queue: _Queue, kind: str, station: str | None, detail: dict[str, Any]) -> None:
        event = Event(
            step=self.steps,
            engine=queue.state.engine,
            index=queue.position,
            kind=kind,
            station=station,
            detail=detail,
        )
        for listener in self.listeners:
            listener(event)


def _spec(spec: str | TensorSpec) -> TensorSpec:
    return TensorSpec.parse(spec) if isinstance(spec, str) else spec


def _register_values(state: EngineState, prepared: Prepared) -> tuple[int, ...]:
    registers = state.registers
    return tuple(registers[number % len(registers)] for number in prepared.registers)
