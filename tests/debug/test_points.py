"""Breakpoints, watchpoints and catchpoints, forward and back."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_emu import Machine, Program
from neuron_emu.debug import Debugger
from neuron_emu.debug.labels import labels_in
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine
from tests.debug.streams import debugger, machine_with_inputs, two_engines

EXP = "EXPONENTIAL src={src} dst={dst} channels={channels} max_value=fp32@0.000000 accumulator_cmd={cmd}"  # noqa: E501


def _exp(src="fp32@0x1000[1,1,1][4,1,1]", dst="fp32@0x2000[1,1,1][4,1,1]", channels=4, cmd="IDLE"):
    return EXP.format(src=src, dst=dst, channels=channels, cmd=cmd)


def _stops(made: Debugger) -> list[str]:
    """Return where each `continue` stops until the end."""
    found = []
    while (stop := made.cont()).reason not in ("end", "fault"):
        found.append(str(stop.place))
    return found


@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("act:2", ["act[2]"]),
        ("dve:2", ["dve[2]"]),
        ("EXPONENTIAL", ["dve[1]", "dve[2]"]),
        ("EXPONENTIAL bf16", ["dve[2]"]),
        ("EXPONENTIAL fp16", []),
        ("act", ["act[0]", "act[1]", "act[2]"]),
        ("if S[2] == 1 && engine == act", ["act[1]", "act[2]"]),
        ("EXPONENTIAL if accumulator_cmd == ACCUMULATE", ["dve[2]"]),
    ],
)
def test_breakpoint(words, places):
    """Each form of a location stops at the words it names and at no other."""
    made = debugger()
    made.breakpoint(words)

    assert _stops(made) == places


def test_reverse_continue_stops_where_a_forward_run_does():
    """The same breakpoints, met from behind."""
    made = debugger()
    made.breakpoint("EXPONENTIAL")
    forward = _stops(made)
    back = []
    while (stop := made.reverse_continue()).reason != "start":
        back.append(str(stop.place))

    assert back == forward[::-1]


@pytest.mark.parametrize("seed", range(3))
def test_breakpoints_under_a_drawn_order(seed):
    """Every word but the first of each engine is met once, forward and back."""
    made = Debugger(machine_with_inputs(interleave=seed), two_engines())
    made.breakpoint("act:1")
    made.breakpoint("EXPONENTIAL")
    places = []
    while (stop := made.cont()).reason == "breakpoint":
        places.append(stop.message.split(": ")[1])
    back = []
    while (stop := made.reverse_continue()).reason == "breakpoint":
        back.append(stop.message.split(": ")[1])

    assert sorted(places) == ["EXPONENTIAL", "EXPONENTIAL", "act:1"]
    assert sorted(back) == sorted(places)


def test_temporary_ignored_disabled_and_deleted():
    """A temporary point stops once; ignored hits pass; a disabled or deleted one never stops."""
    made = debugger()
    made.breakpoint("act", temporary=True)
    ignoring = made.breakpoint("dve", ignore=2)
    assert str(made.cont().place) == "act[0]"
    assert [p.number for p in made.points] == [ignoring.number]
    assert str(made.cont().place) == "dve[3]"
    made.goto(0)
    ignoring.enabled = False
    assert _stops(made) == []
    assert made.delete(ignoring.number) == 1
    with pytest.raises(InputError, match="number must be of"):
        made.delete(ignoring.number)


def test_labels_name_words():
    """A label names the word on its line or the next one; opcode names are no labels."""
    text = "start: NOP\n# comment\nloop:\n  NOP\nNOP: \n"
    assert labels_in(text, 3) == {"start": 0, "loop": 1}
    made = Debugger(Machine(), Program.from_text(text), labels={Engine.DVE: labels_in(text, 3)})
    made.breakpoint("loop")
    stop = made.cont()
    assert (stop.place.index, stop.place.label) == (1, "loop")
    with pytest.raises(InputError, match="labels here: loop, start"):
        made.breakpoint("end")


@pytest.mark.parametrize(
    ("target", "kind", "steps"),
    [
        # dve: 0 load, 2 exp; act: 1 load, 3 square, 5 nop; dve: 4 exp, 6 read accumulator
        ("sbuf:0+0x2000:fp32[4,4]", "change", [3]),
        ("sbuf:2+0x2004:fp32[1,1]", "write", [3]),
        ("sbuf:2+0x2004:fp32[1,1]", "read", [4]),
        ("sbuf:2+0x2004:fp32[1,1]", "access", [3, 4]),
        ("fp32@0x2000[1][4] channels=4", "write", [3]),
        ("fp32@0x2010", "write", []),
        ("S[2]", "change", [3]),
        ("S[2]", "read", [4]),
        ("S[3]", "access", [4, 5]),
        ("dve.acc[0]", "change", [3, 5]),
        ("dve.acc[0]", "write", [3, 5]),
        ("dve.acc[0]", "read", [5, 7]),
        ("act.acc[0]", "access", []),
        ("dve.acc[3] > 0", "change", [3]),
    ],
)
def test_watchpoint(target, kind, steps):
    """Watchpoints stop after the words that touch their target; worked out by hand."""
    made = debugger()
    made.watch(target, kind)

    found = []
    while (stop := made.cont()).reason not in ("end", "fault"):
        found.append(stop.step)
    assert found == steps


def test_watchpoint_at_the_last_word_still_stops():
    """The drain is the last word of all, and is reported before the end."""
    made = debugger()
    made.watch("sbuf:0+0x5000:fp32[4,1]")
    stop = made.cont()
    assert (stop.reason, stop.step) == ("watchpoint", 7)
    assert "changed" in stop.message
    assert made.cont().reason == "end"
    back = made.reverse_continue()
    assert (back.reason, back.step) == ("watchpoint", 6)
    assert back.detail["new"] == stop.detail["new"] != 0


def test_catch_nan_names_the_element():
    """-inf minus -inf makes a NaN in one element of 16; the stop tells which (cases: 12)."""
    machine = Machine()
    values = np.zeros((4, 4), np.float32)
    values[2, 1] = np.nan
    machine.write("sbuf:0+0x1000:fp32[4,4]", values)
    made = Debugger(machine, Program.from_text(f"NOP\n{_exp()}\nNOP"))
    made.catch("nan")

    stop = made.cont()
    assert (stop.reason, stop.step) == ("nonfinite", 2)
    assert (stop.detail["lane"], stop.detail["element"]) == (2, 1)
    assert stop.detail["address"] == f"{2 * 0x40000 + 0x2004:#x}"


def test_catch_infinity_only_when_asked():
    """exp(100) overflows fp32: no NaN."""
    machine = Machine()
    machine.write("sbuf:0+0x1000:fp32[4,4]", np.full((4, 4), 100, np.float32))
    for what, reason in (("nan", "end"), ("nonfinite", "nonfinite")):
        made = Debugger(machine, Program.from_text(_exp()))
        made.catch(what)
        assert made.cont().reason == reason


def test_catch_uninitialised_stops_before_the_read():
    """The first byte nobody wrote, before the word runs."""
    made = Debugger(Machine(), Program.from_text(f"ACT_TABLE_LOAD table_sel=0\n{_exp()}"))
    made.catch("uninit")

    stop = made.cont()
    assert (stop.reason, stop.step, stop.detail) == ("uninitialised", 1, {"address": "0x1000"})


def test_catch_finding_stops_before_the_word():
    """A word that breaks a rule is shown with the rule's name."""
    bad = _exp(channels=36, src="fp32@0xc01000[1,1,1][4,1,1]")
    made = Debugger(Machine(), Program.from_text(f"NOP\n{bad}"))
    made.catch("finding")

    stop = made.cont()
    assert (stop.reason, stop.step) == ("finding", 1)
    assert "check_m3d_active_channels" in stop.detail["names"]


@pytest.mark.parametrize(
    ("tolerance", "step"), [("", 2), (" rel 1e-3", 3), (" abs 1.5", 0), (" ulp 400", 3)]
)
def test_reference_finds_the_first_wrong_word(tmp_path, tolerance, step):
    """The table is within 400 ulp of e^x; the second word overwrites one row with e^0."""
    machine = Machine()
    machine.write("sbuf:0+0x1000:fp32[4,4]", -np.ones((4, 4), np.float32))
    machine.write("sbuf:0+0x1800:fp32[4,4]", np.zeros((4, 4), np.float32))
    wrong = _exp(src="fp32@0x1800[1,1,1][4,1,1]", channels=1)
    program = Program.from_text(f"NOP\n{_exp()}\n{wrong}\nNOP")
    np.save(tmp_path / "good.npy", np.exp(-np.ones((4, 4))).astype(np.float32))
    made = Debugger(machine, program)
    made.reference(f"sbuf:0+0x2000:fp32[4,4]={tmp_path}/good.npy{tolerance}")

    stop = made.cont()
    assert (stop.reason, stop.step) == (("reference", step) if step else ("end", 4))
    if step == 3:
        assert (stop.detail["elements"], stop.detail["found"]) == (4, 1.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda d: d.breakpoint("99"), "index in the dve stream must be a number from 0 to 3"),
        (lambda d: d.breakpoint("nowhere"), "there are no labels here"),
        (lambda d: d.breakpoint("pool:0"), "must be a number from"),
        (lambda d: d.breakpoint("EXPONENTIAL int4"), "dtype must be one of"),
        (lambda d: d.breakpoint("1 if ("), "a value, not the end"),
        (lambda d: d.watch("R[99]"), "index from 0 to 63"),
        (lambda d: d.watch("fp32@0x1000[1][4,4] channels=4"), "steps and sizes"),
        (lambda d: d.watch("sbuf:0+0:fp99[1,1]"), "dtype must be one of"),
        (lambda d: d.watch("step", "write"), "write must be of a region"),
        (lambda d: d.catch("everything"), "catch must be one of"),
        (lambda d: d.reference("x"), "reference must be SPEC=FILE.npy"),
        (lambda d: d.reference("sbuf:0+0:fp32[1,1]=/none.npy"), "cannot be read"),
    ],
)
def test_refused_points(call, said):
    """A point that cannot be is refused with what would be accepted, and none is left."""
    made = debugger()
    with pytest.raises(InputError) as raised:
        call(made)
    assert said in str(raised.value)
    assert made.points == []


def test_a_condition_without_a_value_stops_and_says_so():
    """A field that the next word does not have is told, not passed over."""
    made = debugger()
    made.breakpoint("act if src.num[0] > 2")
    stop = made.cont()
    assert str(stop.place) == "act[0]"
    assert "condition has no value" in stop.message
