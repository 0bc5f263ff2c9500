"""`who` and `why`: writers, sources, and every element recomputed to the bytes that were stored."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_emu import Machine, Program
from neuron_emu.debug import Debugger
from neuron_emu.debug.element import compute_alone
from neuron_emu.debug.records import Untouched
from neuron_emu.errors import InputError
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Stream
from neuron_emu.policy import Policy
from tests.debug.streams import PROGRAMS, debugger, machine_with_inputs, scenario_machine
from tests.debug.test_points import _exp

EVALUATORS = ("evaluator=pwp", "evaluator=silicon", "evaluator=exact")


@pytest.mark.parametrize("policy", [*EVALUATORS, "fma=on"])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_why_agrees_with_every_element_of_the_shipped_programs(path, policy):
    """Each element that any word writes, computed alone, has the bits that the word stores.

    Lanes of equal inputs are common in the programs, so four lanes of each word are taken; the
    elements are all taken.
    """
    words = ("evaluator=silicon", policy) if policy == "fma=on" else (policy,)
    machine = scenario_machine(path, *words)
    made = Debugger(machine, Program.load(path))
    while made.step().reason == "step" or made.machine.is_finished:
        entry = made.history.entries[-1]
        stored = [operand.read().copy() for operand in entry.written]
        with made.timeline.at(entry.begun):
            for number, operand in enumerate(entry.written):
                lanes = sorted({0, 1, operand.channels // 2, operand.channels - 1})
                for lane in (lane for lane in lanes if lane < operand.channels):
                    for element in range(operand.num_elements):
                        state = machine.engine(entry.engine)
                        alone = compute_alone(entry, number, lane, element, state)
                        assert alone.bits == stored[number][lane, element]
        if made.machine.is_finished:
            break


def test_why_shows_the_published_way_of_exp_of_minus_one():
    """The stations of exp(-1) through exp_400p: the words of pwp-model.md 8 and design.md 3.

    The section's midpoint 0xbf8fffff, t = 0.125 less one step, the result 0x3ebc5a40, which is
    114 float32 steps from the float32 nearest e^-1 (0x3ebc5ab2).
    """
    made = Debugger.of_scenario(PROGRAMS[0].parent / "exp.toml")
    made.cont()
    why = made.why("sbuf:5+0x2004")
    stations = {station.name: station for station in why.stations}

    assert (why.bits, why.stored, why.agrees) == (0x3EBC5A40, 0x3EBC5A40, True)
    assert stations["input"].detail["bits"] == "0xbf800000"
    assert stations["affine"].detail["v"] == "0xbf800000"
    assert stations["cam"].detail == {"armed": True, "slot": "0x2d0"}
    assert stations["bucket"].detail["x"] == "0xbf8fffff"
    assert stations["cubic"].detail["t"] == "0x3dfffff0"
    assert stations["result"].detail["y"] == "0x3ebc5a40"
    assert round(stations["result"].loss_ulp) == 0x3EBC5AB2 - 0x3EBC5A40
    assert why.exact.startswith("0.36787944117144232160")
    assert why.total_ulp == stations["result"].loss_ulp


@pytest.mark.parametrize("policy", EVALUATORS)
def test_why_agrees_for_every_shipped_function(policy):
    """ACTIVATE of each function of set 0 on numbers, zeros, infinities and NaN."""
    values = np.array([0, -0.0, 0.75, -0.75, 3, -90, np.inf, -np.inf, np.nan], np.float32)
    functions = ("EXP", "TANH", "RELU", "SQUARE", "ABS", "SIGN", "IDENTITY", "COPY", "IS_FINITE")
    machine = Machine(policy=Policy.parse([policy]))
    machine.write("sbuf:0+0x1000:fp32[1,9]", values[None, :])
    lines = ["ACT_TABLE_LOAD table_sel=0"]
    for number, function in enumerate(functions):
        lines.append(
            f"ACTIVATE {function} src=fp32@0x1000[1,1,1][9,1,1] scale=1.500000"
            f" dst=bf16@{0x2000 + 64 * number:#x}[1,1,1][9,1,1] channels=1 accumulator_cmd=IDLE"
        )
    made = Debugger(machine, Program.from_text("\n".join(lines), Engine.ACT))
    assert made.cont().reason == "end"

    for number, function in enumerate(functions):
        for element in range(9):
            why = made.why(0x2000 + 64 * number + 2 * element)
            assert why.agrees, (function, element)
            assert why.exact is not None or element in (1, 5, 6, 7, 8) or function == "IS_FINITE"


def test_why_splits_the_loss_between_table_and_output():
    """bf16: the table loses 114 float32 steps, the rounding a third of a bf16 step."""
    machine = Machine()
    machine.write("sbuf:0+0x1000:fp32[4,4]", -np.ones((4, 4), np.float32))
    made = Debugger(machine, Program.from_text(_exp(dst="bf16@0x2000[1,1,1][4,1,1]")))
    made.cont()
    why = made.why(0x2002)
    convert = why.stations[-1]

    assert (convert.name, why.bits) == ("convert", 0x3EBC)
    # 0x3ebc5a40 lies 0x5a40 / 0x10000 of a bf16 step above 0x3ebc0000.
    assert convert.loss_ulp == pytest.approx(0x5A40 / 0x10000)
    assert why.writer.element == 1


def test_why_says_that_the_subtraction_made_a_nan():
    """-inf with a maximum of -inf (cases: 12): v is the canonical NaN, nothing is exact."""
    machine = Machine()
    machine.write("sbuf:0+0x1000:fp32[4,4]", np.full((4, 4), -np.inf, np.float32))
    machine.write("sbuf:0+0xc000:fp32[4,1]", np.full((4, 1), -np.inf, np.float32))
    word = _exp().replace("max_value=fp32@0.000000", "max_value=[fp32@0xc000]")
    made = Debugger(machine, Program.from_text(word))
    made.cont()
    why = made.why("sbuf:3+0x2000")
    affine = next(s for s in why.stations if s.name == "affine")

    assert affine.detail | {"input": ""} == {
        "input": "",
        "x": "0xff800000",
        "max_value": "0xff800000",
        "v": "0x7fc00000",
    }
    assert (why.bits, why.exact) == (0x7FC00000, None)


def test_why_of_an_overlapping_word_sees_what_earlier_elements_wrote():
    """dst one element past src: element i reads what element i - 1 wrote."""
    machine = Machine()
    machine.write("sbuf:0+0x1000:fp32[4,1]", np.zeros((4, 1), np.float32))
    made = Debugger(machine, Program.from_text(_exp(dst="fp32@0x1004[1,1,1][4,1,1]")))
    made.cont()

    for element in range(4):
        why = made.why(0x1004 + 4 * element)
        assert why.agrees
        before = 0 if element == 0 else made.why(0x1000 + 4 * element).bits
        source = next(s for s in why.stations if s.name == "input")
        assert int(source.detail["bits"], 16) == before


def test_why_under_stochastic_rounding_uses_the_same_draw():
    """The drawn result is reproduced, and asking does not disturb later draws."""
    policy = {"rounding": "stochastic"}
    asked, plain = debugger(**policy), debugger(**policy)
    asked.cont()
    plain.cont()
    state = plain.machine.snapshot()
    assert all(asked.why(0x4000 + 2 * i).agrees for i in range(4))
    assert asked.machine.snapshot() == state


@pytest.mark.parametrize("seed", range(4))
def test_why_under_a_drawn_order_uses_what_the_word_read(seed):
    """Other engines run between the reads of a word and its writes; the reads decide."""
    machine = machine_with_inputs(interleave=seed)
    racing = Program(
        streams=(
            Stream(engine=Engine.DVE, data=assemble("\n".join([_exp()] * 6)), name="dve"),
            Stream(engine=Engine.ACT, data=assemble(_square()), name="act"),
        )
    )
    made = Debugger(machine, racing)
    states = [machine.snapshot()]
    while made.step().reason == "step":
        states.append(machine.snapshot())
    states.append(machine.snapshot())
    assert made.why(0x1000).agrees
    assert made.why(0x2000).agrees
    for step in (7, 4, 1, 5, 0):
        made.goto(step)
        assert machine.snapshot() == states[step]


def _square() -> str:
    """Return a table load and a square in place of what DVE reads."""
    pattern = "fp32@0x1000[1,1,1][4,1,1]"
    return f"ACTIVATE SQUARE src={pattern} dst={pattern} channels=4 accumulator_cmd=IDLE"


def test_who_follows_the_chain_to_what_was_loaded():
    """The drained sum comes from ACCUMULATE, that from the square, that from the exp, of x."""
    made = debugger()
    made.cont()
    drain = made.who("sbuf:2+0x5000", 4)

    assert (str(drain.place), drain.step, drain.lane) == ("dve[3]", 6, 2)
    (accumulate,) = drain.sources
    assert (accumulate.what, str(accumulate.place)) == ("dve.acc[2]", "dve[2]")
    source, earlier = accumulate.sources
    assert (source.role, str(source.place)) == ("src", "act[1]")
    assert str(earlier.place) == "dve[1]"
    assert str(source.sources[0].place) == "dve[1]"
    (loaded,) = source.sources[0].sources
    assert isinstance(loaded, Untouched)
    assert (loaded.what, loaded.note) == ("sbuf:2+0x1000", "loaded before the run")


def test_who_of_untouched_bytes():
    """Bytes that nothing wrote are told from bytes that were loaded."""
    made = debugger()
    made.cont()
    assert made.who(0x9000).note == "nothing ever wrote it"
    assert made.who("act.acc[0]").note == "no recorded word changed this accumulator lane"
    with pytest.raises(InputError, match="no word wrote it"):
        made.why(0x1000)


def test_who_finds_the_last_of_repeated_destinations():
    """A zero step writes one place four times: the last element stays."""
    machine = Machine()
    machine.write("sbuf:0+0x1000:fp32[4,4]", np.tile(np.arange(4, dtype=np.float32), (4, 1)))
    made = Debugger(machine, Program.from_text(_exp(dst="fp32@0x2000[0,1,1][4,1,1]")))
    made.cont()
    why = made.why(0x2002)
    assert (why.writer.element, why.writer.byte, why.agrees) == (3, 2, True)


@pytest.mark.parametrize(
    "place", ["0x40000000", "sbuf:128+0", "sbuf:0+0x40000", "acc[128]", "x", ""]
)
def test_places_that_are_none(place):
    """A place outside every memory is refused with the forms or the limits."""
    with pytest.raises(InputError, match=r"must be"):
        debugger().who(place)


def test_asking_leaves_the_machine_as_it_was():
    """who, why and diff go back in time and return exactly."""
    made = debugger()
    made.cont()
    state, heard = made.machine.snapshot(), len(made.history.entries)
    made.why(0x2000)
    made.who(0x5000, 5)
    made.diff(5)
    assert made.machine.snapshot() == state
    assert len(made.history.entries) == heard


def test_why_names_the_set_that_was_installed_for_the_word():
    """Without a table load the machine installs the lowest set with exp when the word issues."""
    machine = Machine()
    machine.write("sbuf:0+0x1000:fp32[4,4]", -np.ones((4, 4), np.float32))
    word = _exp().partition("EXPONENTIAL")
    made = Debugger(machine, Program.from_text(word[1] + word[2]))
    made.cont()
    profile = next(s for s in made.why(0x2000).stations if s.name == "profile")
    assert profile.detail == {
        "function": "exp",
        "set": made.machine.engine(Engine.DVE).tables.set.name,
    }
    assert profile.detail["set"] == "exp_and_others"
