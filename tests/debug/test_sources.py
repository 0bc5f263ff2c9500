"""`who` of words that take more than one element: reductions, scans, sums, transpositions."""

from __future__ import annotations

import numpy as np

from neuron_emu.debug.records import Untouched
from neuron_emu.debug.text import text_of
from tests.debug.streams import POISONED, ran

FOUR = {"sbuf:0+0x100:fp32[1,4]": np.array([[1, 2, 3, 4]], np.float32)}


def _named(sources) -> list[tuple[str, str, str]]:
    """Return role, elements, and the word or note of each source."""
    return [
        (s.role, s.group, s.note if isinstance(s, Untouched) else str(s.place)) for s in sources
    ]


def test_a_reduction_has_its_run_as_source():
    """Element 2 of four was overwritten by the first word, the others were loaded."""
    made = ran(POISONED, FOUR)
    who = made.who(0x200, 9)

    expected = [("src", "0-1, 3", "loaded before the run"), ("src", "2", "dve[0]")]
    assert _named(who.sources) == expected
    assert "src elements 0-1, 3 from sbuf:0+0x100: loaded before the run" in text_of(who)


def test_a_reduction_leaves_other_runs_out():
    """Two runs of two: the second one holds elements 2 and 3."""
    made = ran(
        "TENSOR_REDUCE op=ADD src=fp32@0x100[1,2][2,2] dst=fp32@0x200[1][2] channels=1 op_dim=X",
        FOUR,
    )
    assert [s.group for s in made.who(0x204).sources] == ["2-3"]


def test_a_scan_has_its_prefix_as_source():
    """Elements 0 and 1 precede the NaN at 2, elements 2 and 3 have it."""
    made = ran(POISONED, FOUR)
    loaded = "loaded before the run"
    assert _named(made.who(0x300).sources) == [("src", "", loaded)]
    assert _named(made.who(0x304).sources) == [("src", "0-1", loaded)]
    assert _named(made.who(0x308).sources) == [("src", "0-1", loaded), ("src", "2", "dve[0]")]
    assert _named(made.who(0x30C, 9).sources)[1] == ("src", "2", "dve[0]")


def test_a_cumulative_begins_anew_in_each_run():
    """Runs of two of five pairs: element 3 has 2 and 3."""
    made = ran(
        "TENSOR_CUMULATIVE op=ADD src=fp32@0x100[1,2][2,2] dst=fp32@0x200[1,2][2,2] channels=1"
        " op_dim=X",
        FOUR,
    )
    assert [s.group for s in made.who(0x20C).sources] == ["2-3"]
    assert [s.group for s in made.who(0x208).sources] == [""]


def test_a_two_tensor_scan_has_both_prefixes_and_the_start():
    """r = (src0 * r) + src1: three sources, the start among them."""
    made = ran(
        "TENSOR_TENSOR_SCAN src0=fp32@0x100[1,1][4,1] src1=fp32@0x180[1,1][4,1]"
        " dst=fp32@0x200[1,1][4,1] ops=MULTIPLY,ADD channels=1 imm=[fp32@0x1c0]",
        FOUR
        | {
            "sbuf:0+0x180:fp32[1,4]": np.zeros((1, 4), np.float32),
            "sbuf:0+0x1c0:fp32[1,1]": np.ones((1, 1), np.float32),
        },
    )
    named = [(s.role, s.group) for s in made.who(0x208).sources]
    assert sorted(named) == [("imm", ""), ("src0", "0-2"), ("src1", "0-2")]


def test_a_sum_has_all_that_it_took_since_it_began():
    """The drain's sum went through dve[3] and began at dve[2], which took the NaN of dve[0]."""
    made = ran(POISONED, FOUR)
    (taken,) = made.who(0x400, 9).sources
    assert (taken.what, str(taken.place)) == ("dve.acc[0]", "dve[3]")
    source, begun = taken.sources
    assert (source.role, source.group, str(source.place)) == ("src", "0-1", "dve[2]")
    assert (begun.role, str(begun.place)) == ("accumulator", "dve[2]")
    assert _named(begun.sources)[1] == ("src", "2", "dve[0]")
    assert "MEMSET" in text_of(made.who(0x400, 9))


def test_an_element_beside_a_sum_is_not_made_from_the_sum():
    """CACHE_REDUCE writes (x op0 s0); only the accumulator has the others."""
    made = ran(POISONED, FOUR)
    assert [s.role for s in made.who(0x384).sources] == ["src"]


def test_a_transposition_takes_from_another_lane():
    """y[3][7] = x[7][3] in a tile of 32 by 32."""
    made = ran(
        "STREAM_TRANSPOSE src=fp32@0x1000[1][32] dst=fp32@0x2000[1][32] channels=32",
        {"sbuf:0+0x1000:fp32[32,32]": np.arange(1024, dtype=np.float32).reshape(32, 32)},
    )
    (source,) = made.who("sbuf:3+0x201c").sources
    assert source.what == "sbuf:7+0x100c"


def test_long_sums_are_cut_with_a_note():
    """Of 100 words that accumulate 64 are listed."""
    word = (
        "TENSOR_SCALAR_CACHE_REDUCE src=fp32@0x100[1,1,1][2,1,1] dst=fp32@0x380[1,1,1][2,1,1]"
        " channels=1 ops=BYPASS,ADD imm0=fp32@0.0 accumulator_cmd="
    )
    lines = [word + "ZERO_ACCUMULATE", *[word + "ACCUMULATE"] * 99]
    found = ran("\n".join(lines), FOUR).who("acc[0]", 2).sources
    assert len(found) == 66
    assert found[-1].note == "words before step 35 are not listed"


def _inputs(why) -> dict[int, dict[str, object]]:
    return {s.detail.get("element", 0): s.detail for s in why.stations if s.name == "input"}


def test_why_shows_the_input_that_first_brought_a_nan():
    """Element 2 of the run, of the prefix that holds it, and of none that ends before."""
    made = ran(POISONED, FOUR)
    for place in (0x200, 0x30C):
        inputs = _inputs(made.why(place))
        assert [e for e, detail in inputs.items() if detail.get("first_not_finite")] == [2]
        assert (len(inputs), inputs[2]["address"]) == (4, "0x108")
    assert not any("first_not_finite" in d for d in _inputs(made.why(0x304)).values())


def test_why_of_a_long_run_shows_its_ends_and_the_first_infinity():
    """Of 100 elements the first and last two, and element 40; 60 comes later."""
    values = np.ones((1, 100), np.float32)
    values[0, 40], values[0, 60] = np.inf, np.nan
    made = ran(
        "TENSOR_REDUCE op=ADD src=fp32@0x1000[1][100] dst=fp32@0x200[1][1] channels=1 op_dim=X",
        {"sbuf:0+0x1000:fp32[1,100]": values},
    )
    inputs = _inputs(made.why(0x200))
    assert sorted(inputs) == [0, 1, 40, 98, 99]
    assert inputs[40]["first_not_finite"] is True


def test_inputs_of_a_scan_over_its_own_results():
    """dst one element past src: each element is read after the ones before it were written.

    x = 1, 2, 3, 4: the first result 1 replaces 2, the sum 1 + 1 = 2 replaces 3, 2 + 2 = 4 the 4.
    """
    made = ran(
        "TENSOR_CUMULATIVE op=ADD src=fp32@0x100[1][4] dst=fp32@0x104[1][4] channels=1 op_dim=X",
        FOUR,
    )
    why = made.why(0x110)
    values = [s.value for s in why.stations if s.name == "input"]
    assert (values, why.value) == ([1, 1, 2, 4], 8)
