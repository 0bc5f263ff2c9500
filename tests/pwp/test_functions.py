"""The catalog and the roster of sets."""

from __future__ import annotations

import pytest

from neuron_emu.errors import InputError
from neuron_emu.pwp.functions import (
    FUNCTION_SETS,
    FUNCTIONS,
    RESIDENTS,
    function_named,
    function_set,
)


def test_thirty_six_functions_thirteen_of_them_hardwired():
    """pwp-model.md 7: 36 functions, 13 without sections."""
    assert len(FUNCTIONS) == 36
    assert {f.profiles[0] for f in FUNCTIONS if f.is_hardwired} == set(RESIDENTS)
    assert len(RESIDENTS) == 13


def test_codes_follow_the_compilers_ordinals():
    """activation-tables.md 4: the table from ordinal to wire byte, 30 entries."""
    printed = "1,30,2,3,4,5,6,7,9,8,29,10,21,19,28,31,23,24,25,26,38,32,22,128,33,129,34,36,37,35"

    by_ordinal = sorted((f.ordinal, f.code) for f in FUNCTIONS if f.ordinal is not None)

    assert [code for _, code in by_ordinal] == [int(code) for code in printed.split(",")]
    assert [ordinal for ordinal, _ in by_ordinal] == list(range(30))


def test_five_codes_are_not_published():
    """activation-tables.md 4: five rows print no code, and none is guessed."""
    assert {f.name for f in FUNCTIONS if f.code is None} == {
        "derivative_relu",
        "derivative_leaky_relu",
        "derivative_identity",
        "derivative_sigmoid",
        "derivative_tanh",
    }


def _sections(name):
    function = function_named(name)
    return dict(zip(function.profiles, function.variants, strict=True))[name].lut_size


@pytest.mark.parametrize("number", range(21))
def test_published_set_sizes_follow_from_the_members(number):
    """activation-tables.md 5: entries = sum of lut_size + 4 over the members."""
    selected = function_set(number)

    assert sum(_sections(name) + 4 for name in selected.members) == selected.bucket_entries


def test_a_set_is_found_by_index_and_by_name():
    """Users write either; the index may come as text from a command line."""
    assert len(FUNCTION_SETS) == 21
    assert function_set(0) is function_set("exp_and_others") is function_set("0")
    assert function_set(0).holds("exp")
    assert function_set(0).holds("tanh_4p")
    assert not function_set(5).holds("ln_400p")


@pytest.mark.parametrize("selector", [21, -1, "exp", "", True + 20])
def test_an_unknown_set_is_refused(selector):
    """The message says what would be accepted."""
    with pytest.raises(InputError, match=r"must be 0 to 20 or one of exp_and_others"):
        function_set(selector)


def test_an_unknown_function_is_refused():
    """The message lists the functions."""
    with pytest.raises(InputError, match=r"'expo' is no activation function; .*exp"):
        function_named("expo")
