"""The debugger: a machine that can be stopped anywhere, looked at, and taken back.

`Debugger` moves and stops; `looking`, `why` and `maps` look. Everything is plain Python that
returns plain records and prints nothing; the prompt and the protocol server are skins over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve

from neuron_emu.debug import probe
from neuron_emu.debug.expression import Number, parse_expression
from neuron_emu.debug.history import Executed
from neuron_emu.debug.labels import labels_of
from neuron_emu.debug.looking import Looking
from neuron_emu.debug.points import Hit, Point
from neuron_emu.debug.records import Place, Stop, StopReason
from neuron_emu.debug.requests import PointRequests
from neuron_emu.debug.state import Moment
from neuron_emu.debug.timeline import Timeline
from neuron_emu.debug.why import Asking
from neuron_emu.errors import InputError
from neuron_emu.events import Fault
from neuron_emu.generation import generation_named
from neuron_emu.isa.assembly import disassemble_word
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program
from neuron_emu.machine import MAX_STEPS, Machine
from neuron_emu.policy import Policy
from neuron_emu.scenario import Scenario

__all__ = ["Debugger"]

_BURST = 256
"""Words between two looks at the interrupt flag when nothing else can stop a run."""


class Debugger(PointRequests, Looking, Asking):
    """A machine under a debugger.

    >>> from neuron_emu import Machine, Program
    >>> debugger = Debugger(Machine(), Program.from_text("NOP\\nNOP\\nHALT"))
    >>> debugger.step().place.index
    1
    >>> debugger.reverse_step().place.index
    0
    """

    def __init__(
        self,
        machine: Machine,
        program: Program,
        *,
        records: bool = True,
        labels: dict[Engine, dict[str, int]] | None = None,
    ) -> None:
        """Load a program into a machine whose memory and registers are prepared.

        Without `records` nothing can be taken back, and a run costs less.
        """
        self.machine = machine
        self.program = program
        machine.load(program)
        self.timeline = Timeline(machine, records=records)
        self.history = self.timeline.history
        self.points: list[Point] = []
        self.labels = labels if labels is not None else labels_of(program)
        self.max_steps = MAX_STEPS
        """Words after which one movement stops (design.md 5)."""
        self.scenarios: tuple[Scenario, ...] = ()
        """The scenarios that the machine was prepared from, for their expectations."""
        self.interrupted = False
        """Set it, from another thread or a signal handler, to stop a run between two words."""
        self.last_stop = Stop(reason=StopReason.START, step=machine.steps, place=None)
        self._next_number = 1
        self._selected: Engine | None = None
        self.last_stop = self._stop(StopReason.START)

    @classmethod
    def of_scenario(cls, path: str | Path, **options: Any) -> Debugger:
        """Make a debugger for a scenario file, with its memory, registers and policy."""
        scenario = Scenario.read(Path(path))
        machine = Machine(
            generation_named(scenario.generation or "mariana"), Policy.parse(scenario.policy)
        )
        scenario.prepare(machine)
        made = cls(machine, Program.load(path), **options)
        made.scenarios = (scenario,)
        return made

    # --- where it stands --------------------------------------------------------------------

    @property
    def engine(self) -> Engine:
        """The engine that commands are about: the selected one, else the one that goes on."""
        if self._selected is not None:
            return self._selected
        going = probe.next_engine(self.machine)
        if going is not None:
            return going
        loaded = probe.streams(self.machine)
        unfinished = (e for e in loaded if not probe.is_over(self.machine, e))
        return next(unfinished, next(iter(loaded), Engine.DVE))

    def select(self, engine: Engine | None) -> None:
        """Choose the engine that commands are about; None follows the one that goes on."""
        if engine is not None and engine not in probe.streams(self.machine):
            loaded = ", ".join(e.name.lower() for e in probe.streams(self.machine))
            raise InputError(f"engine must have a stream ({loaded}), not {engine.name.lower()}")
        self._selected = engine

    @property
    def moment(self) -> Moment:
        """The next word of the engine that commands are about, with the state around it."""
        return Moment.of(self.machine, self.engine)

    def place(self, engine: Engine, index: int) -> Place | None:
        """Return a word of a stream; None when there is none."""
        stream = probe.streams(self.machine).get(engine)
        if stream is None or not 0 <= index < len(stream):
            return None
        text = disassemble_word(stream[index], self.machine.generation)
        label = next((n for n, i in self.labels.get(engine, {}).items() if i == index), None)
        return Place(engine, index, text, label)

    def where(self) -> Stop:
        """Return where the machine stands and why it stopped there."""
        return self.last_stop

    def evaluate(self, text: str) -> Number:
        """Return the value of an expression (`debug.state` lists the names)."""
        return parse_expression(text).value(self.moment)

    def _stop(self, reason: str, message: str = "", **more: Any) -> Stop:
        machine = self.machine
        engine = probe.next_engine(machine)
        if self._selected is not None and not probe.is_over(machine, self._selected):
            engine = engine if reason != StopReason.STEP else self._selected
        place = None if engine is None else self.place(engine, machine.position(engine))
        if place is None and not machine.is_finished:
            place = self.place(self.engine, machine.position(self.engine))
        self.last_stop = Stop(
            reason=reason, step=machine.steps, place=place, message=message, **more
        )
        return self.last_stop

    # --- moving forward ---------------------------------------------------------------------

    def step(self, count: int = 1) -> Stop:
        """Execute words of the scheduler's choice, one after the other."""
        return self._run(lambda: False, words=count)

    def next(self, count: int = 1, engine: Engine | None = None) -> Stop:
        """Execute until one engine has executed words; the others go on in between."""
        of = engine or self.engine
        if probe.is_over(self.machine, of):
            return self._stop(StopReason.END, f"the {of.name.lower()} stream has ended")
        left = count

        def goal() -> bool:
            nonlocal left
            left -= self.history.entries[-1].engine is of
            return left == 0 or probe.is_over(self.machine, of)

        return self._run(goal)

    def cont(self, count: int = 1) -> Stop:
        """Run until something stops it, `count - 1` times over."""
        stop = self._run(None)
        for _ in range(count - 1):
            if stop.reason in (StopReason.END, StopReason.FAULT, StopReason.INTERRUPT):
                break
            stop = self._run(None)
        return stop

    def until(self, location: str | None = None) -> Stop:
        """Run to a word (`5`, `act:3`, a label), or past the present word: out of a loop."""
        if location is None:
            engine, index = self.engine, self.machine.position(self.engine)

            def goal() -> bool:
                is_over = probe.is_over(self.machine, engine)
                return is_over or self.machine.position(engine) > index
        else:
            engine, index = self.location(location)

            def goal() -> bool:
                at = self.machine.position(engine) == index
                return at and probe.next_engine(self.machine) is engine

        return self._run(goal)

    def finish(self) -> Stop:
        """Run until the stream of the engine has ended."""
        engine = self.engine
        return self._run(lambda: probe.is_over(self.machine, engine))

    def goto(self, step: int) -> Stop:
        """Go to the moment at which `step` words have run, back or forward, past every point."""
        fault = self.timeline.to(step, lambda: self.interrupted)
        self._prime()
        if fault is not None:
            return self._at_fault(fault)
        if self.interrupted:
            return self._at_interrupt()
        if self.timeline.step < step:
            sentence = f"stopped at the end, step {self.timeline.step}: there is no step {step}"
            return self._stop(StopReason.END, sentence)
        return self._stop(StopReason.GOTO)

    def _run(self, goal: Callable[[], bool] | None, words: int | None = None) -> Stop:
        """Run until a point stops it, `goal` is met after a word, or `words` have run."""
        self._prime()
        active = [p for p in self.points if p.enabled]
        if not active and goal is None:
            return self._run_freely()
        arriving = [p for p in active if type(p).arrived is not Point.arrived]
        after = [p for p in active if p.looks_after]
        left = -1 if words is None else words
        last = self.machine.steps + self.max_steps
        while not self.machine.is_finished:
            if self.interrupted:
                return self._at_interrupt()
            fault = self.timeline.forward()
            if fault is not None:
                return self._at_fault(fault)
            left -= 1
            hits = self._ran(after)
            if not self.machine.is_finished:
                hits += self._arrived(arriving, self.history.entries[-1].engine)
            if hits:
                return self._at_points(hits)
            if left == 0 or (goal is not None and goal()):
                return self._at_goal()
            if self.machine.steps >= last and not self.machine.is_finished:
                return self._at_limit()
        return self._at_goal()

    def _run_freely(self) -> Stop:
        last = self.machine.steps + self.max_steps
        while not self.machine.is_finished:
            if self.machine.steps >= last:
                return self._at_limit()
            fault = self.timeline.forward_many(min(_BURST, last - self.machine.steps))
            if fault is not None:
                return self._at_fault(fault)
            if self.interrupted:
                return self._at_interrupt()
        return self._at_goal()

    def _at_limit(self) -> Stop:
        sentence = f"stopped at the limit of {self.max_steps} words (--max-steps)"
        return self._stop(StopReason.LIMIT, sentence)

    def _at_interrupt(self) -> Stop:
        self.interrupted = False
        return self._stop(StopReason.INTERRUPT, "interrupted")

    def _at_goal(self) -> Stop:
        if self.machine.is_finished:
            return self._stop(StopReason.END, "every stream has ended")
        return self._stop(StopReason.STEP)

    def _at_fault(self, fault: Fault) -> Stop:
        detail: dict[str, Any] = {"name": fault.name, "engine": fault.engine.name.lower()}
        detail["index"] = fault.index
        if fault.address is not None:
            detail["address"] = f"{fault.address:#x}"
        stop = self._stop(StopReason.FAULT, str(fault), detail=detail)
        if stop.place is None or stop.place.engine is not fault.engine:
            place = self.place(fault.engine, fault.index)
            self.last_stop = evolve(stop, place=place)
        return self.last_stop

    # --- moving back ------------------------------------------------------------------------

    def reverse_step(self, count: int = 1) -> Stop:
        """Take words back, whatever engine they ran on."""
        for _ in range(count):
            if not self.timeline.back():
                return self._at_start()
        self._prime()
        return self._stop(StopReason.STEP)

    def reverse_next(self, count: int = 1, engine: Engine | None = None) -> Stop:
        """Take back until one engine's words were taken back."""
        of = engine or self.engine
        while count:
            last = self.history.entries[-1] if self.history.entries else None
            if not self.timeline.back():
                return self._at_start()
            count -= last is None or last.engine is of
        self._prime()
        return self._stop(StopReason.STEP)

    def reverse_continue(self) -> Stop:
        """Take words back until a point stops it, at the word that a forward run stops at."""
        self._prime()
        active = [p for p in self.points if p.enabled]
        arriving = [p for p in active if type(p).arrived is not Point.arrived]
        after = [p for p in active if p.looks_after]
        if not active:
            self.timeline.to(self.timeline.start)
            return self._at_start()
        while not self.interrupted:
            last = self.history.entries[-1].engine if self.history.entries else None
            hits = self._undone(after)
            if hits is None:
                return self._at_start()
            hits += self._arrived(arriving, last)
            if hits:
                return self._at_points(hits)
        return self._at_interrupt()

    def _undone(self, points: list[Point]) -> list[tuple[Point, Hit]] | None:
        """Take one word back; return the hits of what it had done, None at the start."""
        machine, entries = self.machine, self.history.entries
        hits = self._asked(points, partial(_ran, machine, entries[-1])) if entries else []
        if not self.timeline.back():
            return None
        return hits + self._asked(points, partial(_moved, machine, True))

    def _at_start(self) -> Stop:
        self._prime()
        return self._stop(StopReason.START, "at the start of the recorded run")

    # --- points -----------------------------------------------------------------------------

    def _prime(self) -> None:
        for point in self.points:
            if point.enabled:
                point.prime(self.machine)

    def _ran(self, points: list[Point]) -> list[tuple[Point, Hit]]:
        if not points:
            return []
        hits = self._asked(points, partial(_ran, self.machine, self.history.entries[-1]))
        return hits + self._asked(points, partial(_moved, self.machine, False))

    def _arrived(self, points: list[Point], moved: Engine | None) -> list[tuple[Point, Hit]]:
        """Ask points about the word that is next; `moved` is the engine that has just moved.

        Where the order is drawn, any word may begin next: then a word is met when its engine
        comes to stand at it.
        """
        if not points:
            return []
        engine = moved if probe.is_order_drawn(self.machine) else probe.next_engine(self.machine)
        if engine is None or probe.is_over(self.machine, engine):
            return []
        moment = Moment.of(self.machine, engine)
        return self._asked(points, partial(_arrived, moment), moment)

    def _asked(
        self,
        points: Iterable[Point],
        ask: Callable[[Point], Hit | None],
        moment: Moment | None = None,
    ) -> list[tuple[Point, Hit]]:
        """Return the hits whose conditions hold; a condition that has no value stops too."""
        found = []
        for point in points:
            hit = ask(point)
            if hit is None:
                continue
            if point.condition is not None:
                try:
                    if not point.condition.is_true(moment or self.moment):
                        continue
                except InputError as error:
                    hit.message += f" (its condition has no value: {error})"
            if point.ignore:
                point.ignore -= 1
                continue
            point.hits += 1
            found.append((point, hit))
        return found

    def _at_points(self, hits: list[tuple[Point, Hit]]) -> Stop:
        first = hits[0][1]
        for point, _ in hits:
            if point.is_temporary and point in self.points:
                self.points.remove(point)
        return self._stop(
            first.reason,
            "; ".join(dict.fromkeys(hit.message for _, hit in hits)),
            ids=tuple(point.number for point, _ in hits),
            detail=first.detail,
        )


def _arrived(moment: Moment, point: Point) -> Hit | None:
    return point.arrived(moment)


def _ran(machine: Machine, entry: Executed, point: Point) -> Hit | None:
    return point.ran(machine, entry)


def _moved(machine: Machine, back: bool, point: Point) -> Hit | None:
    return point.moved(machine, back=back)
