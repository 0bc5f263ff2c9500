"""What a user asks for that is not there is said, not passed over."""

from __future__ import annotations

import pytest

from neuron_emu.debug.text import text_of
from neuron_emu.errors import InputError
from tests.debug.streams import debugger


def test_goto_past_the_end_says_where_it_stopped():
    """Seven words run; there is no step 999999, from the start or from the end."""
    made = debugger()
    for _ in range(2):
        stop = made.goto(999999)
        assert (stop.reason, stop.step) == ("end", 7)
        assert stop.message == "stopped at the end, step 7: there is no step 999999"


def test_diff_of_more_words_than_ran_says_how_many():
    """Of 99 words seven were compared; of seven, all, and nothing is said."""
    made = debugger()
    made.cont()
    assert text_of(made.diff(99)).startswith("steps 0 to 7 (7 words, not 99):\n")
    assert text_of(made.diff(7)).startswith("steps 0 to 7:\n")
    made.goto(0)
    assert text_of(made.diff(1)) == "steps 0 to 0 (0 words, not 1): nothing changed"


@pytest.mark.parametrize("word", ["fp32", "bf16", "EXPONENTIAL", "5", "IDLE"])
def test_watch_of_a_constant_is_refused(word):
    """It would never stop."""
    with pytest.raises(InputError, match="watch must be of a region such as"):
        debugger().watch(word)


def test_watch_of_state_is_taken():
    """Memory, a register and a field change."""
    made = debugger()
    for text in ("1 + fp32@0x2000", "R[3]", "index", "act.R[0] == 5"):
        assert made.watch(text).number


@pytest.mark.parametrize("name", ["nosuch", "src.nosuch", "R", "act.nosuch"])
def test_conditions_with_unknown_names_are_refused_when_given(name):
    """For breakpoints, watchpoints and later conditions, in the words of print."""
    made = debugger()
    with pytest.raises(InputError, match="is no name here"):
        made.breakpoint(f"1 if {name} > 3")
    with pytest.raises(InputError, match="is no name here"):
        made.watch(f"R[3] if index > 2 && {name} > 3")
    number = made.breakpoint("1").number
    with pytest.raises(InputError, match="is no name here"):
        made.condition(number, f"{name} == 1")
    assert [p.condition for p in made.points] == [None]


def test_conditions_may_name_fields_of_words_to_come():
    """ACT_TABLE_LOAD, which is next, has no src, no accumulator and no dtypes."""
    made = debugger()
    for text in (
        "src.num[0] > 3",
        "accumulator_cmd == ZERO_ACCUMULATE",
        "in_dtype == FP32",
        "act.acc[3] < S[2] + dve.index",
        "fp32@0x2000 == 1 || isnan(acc[0])",
    ):
        assert made.breakpoint(f"EXPONENTIAL if {text}").condition.text == text
