"""Moving forward and back: any way to a step gives the state of a fresh run to it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from neuron_emu import Machine, Program
from neuron_emu.debug import Debugger
from neuron_emu.debug import timeline as timeline_module
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine
from tests.debug.streams import (
    PROGRAMS,
    debugger,
    machine_with_inputs,
    random_program,
    scenario_machine,
    two_engines,
)


def _states(machine: Machine, program: Program, every: int = 1) -> tuple[dict[int, bytes], bytes]:
    """Return snapshots of a plain run without any debugger: by step, and at its very end."""
    machine.load(program)
    states = {0: machine.snapshot()}
    while not machine.is_finished and machine.step() is None:
        if machine.steps % every == 0:
            states[machine.steps] = machine.snapshot()
    return states, machine.snapshot()


@pytest.mark.parametrize("seed", range(3))
def test_any_mix_of_moves_equals_a_fresh_run(seed):
    """Steps, gotos and reverse steps in any order: state equal to the byte at each stop."""
    source = random.Random(seed)
    program = random_program(source, 18)
    states, _ = _states(machine_with_inputs(), program)
    moving = Debugger(machine_with_inputs(), program)

    for _ in range(16):
        move = source.choice(("step", "step", "back", "goto", "far"))
        if move == "step":
            moving.step(source.randrange(1, 6))
        elif move == "back":
            moving.reverse_step(source.randrange(1, 8))
        elif move == "goto":
            moving.goto(source.randrange(len(states)))
        else:
            moving.goto(source.choice((0, len(states) - 1)))
        assert moving.machine.snapshot() == states[moving.machine.steps]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_shipped_programs_go_back_to_every_step(path):
    """From the end of each shipped program back word by word, and forward again."""
    program = Program.load(path)
    states, end = _states(scenario_machine(path), program, every=8)
    moving = Debugger(scenario_machine(path), program)
    moving.cont()

    for step in reversed(range(moving.machine.steps)):
        moving.reverse_step()
        assert moving.machine.steps == step
        if step in states:
            assert moving.machine.snapshot() == states[step]
    moving.cont()
    assert moving.machine.snapshot() == end


def test_going_back_past_the_undo_log_uses_checkpoints(monkeypatch):
    """With room for a few words only, older steps are reached through checkpoints."""
    monkeypatch.setattr(timeline_module, "_FIRST_SPACING", 16)
    program = random_program(random.Random(7), 300)
    asked = (290, 150, 149, 17, 16, 0, 299, 3)
    states, _ = _states(machine_with_inputs(), program, every=300)
    fresh = machine_with_inputs()
    fresh.load(program)
    for step in range(300):
        if step in (*asked, 60):
            states[step] = fresh.snapshot()
        fresh.step()
    moving = Debugger(machine_with_inputs(), program)
    moving.timeline.limit_bytes = 20_000
    moving.timeline.set_recording(True)
    moving.cont()
    assert moving.machine.undo_depth < 100

    for step in asked:
        moving.goto(step)
        assert moving.machine.snapshot() == states[step]
    moving.goto(120)
    for step in range(119, 59, -1):
        moving.reverse_step()
        assert moving.machine.steps == step
    assert moving.machine.snapshot() == states[60]


def test_step_follows_the_scheduler_and_next_one_engine():
    """Engines take turns; `next` lets the other one run in between."""
    moving = debugger()

    order = [moving.step().place for _ in range(4)]
    assert [str(place) for place in order] == ["act[0]", "dve[1]", "act[1]", "dve[2]"]
    moving.goto(0)
    moving.select(Engine.ACT)
    stop = moving.next(2)
    assert moving.machine.position(Engine.ACT) == 2
    assert stop.step == moving.machine.steps == 4


def test_finish_until_and_end():
    """`until` stops at a word of an engine, `finish` at the end of its stream."""
    moving = debugger()

    assert str(moving.until("act:2").place) == "act[2]"
    moving.select(Engine.ACT)
    moving.finish()
    assert moving.machine.position(Engine.ACT) == 3
    stop = moving.cont()
    assert (stop.reason, stop.place) == ("end", None)
    assert moving.step().reason == "end"


def test_fault_leaves_the_state_and_names_the_word():
    """A word that is refused stops the run before it, and can be left backwards."""
    moving = Debugger(Machine(), Program.from_text("NOP\n.word ff" + "00" * 63))

    stop = moving.cont()
    assert (stop.reason, stop.place.index, stop.step) == ("fault", 1, 1)
    assert moving.cont().reason == "fault"
    assert moving.reverse_step().place.index == 0


def test_deadlock_is_a_fault_that_says_who_waits():
    """Waits that nobody satisfies end as a fault with the semaphore's value."""
    stop = Debugger(Machine(), Program.from_text("NOP S[4]>=2")).cont()

    assert stop.reason == "fault"
    assert "waits for semaphore 4 >= 2, and it is 0" in stop.message
    assert stop.place.index == 0


def test_going_back_needs_recording():
    """Without recording the past is refused with a hint."""
    moving = Debugger(Machine(), Program.from_text("NOP\nNOP"), records=False)
    moving.step()

    with pytest.raises(InputError, match="record on"):
        moving.reverse_step()
    with pytest.raises(InputError, match="record on"):
        moving.goto(0)


def test_at_shows_the_past_and_comes_back():
    """`timeline.at` leaves the present as it was, listeners included."""
    moving = debugger()
    moving.cont()
    present, heard = moving.machine.snapshot(), []
    moving.machine.listeners.append(heard.append)

    with moving.timeline.at(2) as machine:
        assert machine.steps == 2
        assert np.isnan(machine.read("sbuf:0+0x2000:fp32[4,4]")).sum() == 0
    assert moving.machine.snapshot() == present
    assert heard == []
    assert len(moving.history.entries) == moving.machine.steps


def test_an_interrupt_stops_between_words():
    """The flag that Ctrl-C sets ends a run with a word not half done."""
    loop = Program.from_text("\n".join(["NOP"] * 2000))
    moving = Debugger(Machine(), loop)

    def interrupt(event):
        moving.interrupted = event.step >= 700

    moving.machine.listeners.append(interrupt)
    stop = moving.cont()
    assert stop.reason == "interrupt"
    assert 700 <= stop.step < 2000


def test_two_engines_program_is_sound():
    """The shared program has the numbers that its words say: exp, its square, and their sum."""
    moving = Debugger(machine_with_inputs(), two_engines())
    moving.cont()

    x = np.array([0, -1, -2, -3]) - np.arange(4)[:, None]
    squares = np.exp(2.0 * x)
    sums = np.exp(x).sum(axis=1) + np.exp(squares - 2).sum(axis=1)
    found = moving.machine.read("sbuf:0+0x5000:fp32[4,1]")[:, 0]
    np.testing.assert_allclose(found, sums, rtol=2e-4)
