"""The catalog and the roster of sets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from neuron_emu.errors import InputError
from neuron_emu.pwp import exact
from neuron_emu.pwp.functions import (
    FUNCTION_SETS,
    FUNCTIONS,
    RESIDENTS,
    Symmetry,
    function_named,
    function_set,
)
from neuron_emu.pwp.profile import float_value
from neuron_emu.pwp.store import load_profile, shipped_profiles


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


# pwp-golden.json `integers`, field lut_size: observed, and the four derived from set sizes.
PUBLISHED_SIZES = {
    "exp_400p": 777,
    "sigmoid_40p": 796,
    "tanh_4p": 104,
    "softplus_40p": 828,
    "sqrt_65536p": 1113,
    "reciprocal_sqrt_40000p": 1202,
    "abs_reciprocal_sqrt_40000p": 1202,
    "erf_4p": 66,
    "sin_4p": 55,
    "arctan_4p": 168,
    "gelu_4p": 504,
    "mish_4p": 1099,
    "gelu_apprx_tanh_40p": 945,
    "gelu_apprx_sigmoid_40p": 1042,
    "derivative_gelu_apprx_sigmoid_4096p": 1283,
    "derivative_gelu_40p": 115,
    "reciprocal_400p": 1016,
    "silu_32p": 908,
    "derivative_silu_32p": 1008,
    "ln_4p_0mp": 775,
    "ln_4p_1mp": 832,
    "derivative_erf_400p": 466,
    "derivative_erf_40p": 1182,
    "ln_40p": 1219,
    "ln_400p": 513,
    "derivative_sigmoid_40p": 797,
    "derivative_tanh_400p": 397,
}
DERIVED = {"ln_40p", "ln_400p", "derivative_sigmoid_40p", "derivative_tanh_400p"}
VARIANTS = {n: v for f in FUNCTIONS for n, v in zip(f.profiles, f.variants, strict=True)}


def test_forty_profiles_with_their_published_sizes():
    """pwp-model.md 7: 40 profiles, 13 of them without sections."""
    assert len(VARIANTS) == 40
    stored = {name: v.lut_size for name, v in VARIANTS.items() if v.lut_size}
    assert stored == PUBLISHED_SIZES
    assert {name for name, v in VARIANTS.items() if v.source == "derived"} == DERIVED


def test_published_octaves_are_the_sets_control_entries():
    """activation-tables.md 4 and 5: declared octaves add up to the control entries of every set."""
    for selected in FUNCTION_SETS:
        assert sum(VARIANTS[n].octaves for n in selected.members) == selected.control_entries


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_the_shipped_table_beside_the_published_one(name):
    """`generated` is the size of the file; the octaves are the published ones throughout."""
    variant = VARIANTS[name]
    if variant.generated is None:
        assert name not in shipped_profiles()
        return
    profile = load_profile(name)
    assert profile.lut_size == variant.generated
    assert profile.max_diff == variant.tolerance
    if variant.octaves is not None:
        declared = len(profile.pos_exponents) + len(profile.neg_exponents)
        assert declared == variant.octaves


FOLDS = {
    Symmetry.NONE: (False, False, False, 0),
    Symmetry.ODD: (True, True, False, 0),
    Symmetry.EVEN: (True, False, False, 0),
    Symmetry.ABOUT_HALF_NEGATIVE: (True, True, True, 0x3F800000),
    Symmetry.ABOUT_HALF_POSITIVE: (True, True, False, 0x3F800000),
}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_the_catalog_agrees_with_the_tables(function):
    """Codes, folds, special results and ranges are those of the shipped profiles."""
    profile = load_profile(function.name)
    fold = (
        profile.symmetry_en,
        profile.symmetry_invert_sign_opt,
        profile.symmetry_opt_use_neg_region,
        profile.symmetry_point,
    )
    results = function.results

    assert (profile.name, profile.sunda_id) == (function.name, function.code)
    assert fold == FOLDS[function.symmetry]
    assert (profile.zero_result, profile.nan_result) == (results.zero, results.nan)
    assert profile.pinf_result == results.positive_infinity
    assert profile.ninf_result == results.negative_infinity
    assert profile.lower_bound == function.valid_range.lower
    assert profile.upper_bound == function.valid_range.upper
    assert function.closed_form


def test_observed_folds():
    """pwp-golden.json `symmetry`: the four that are printed."""
    printed = {name: function_named(name).symmetry for name in ("exp", "sigmoid", "tanh")}

    assert list(printed.values()) == [
        Symmetry.NONE,
        Symmetry.ABOUT_HALF_NEGATIVE,
        Symmetry.ODD,
    ]
    assert function_named("reciprocal").symmetry == Symmetry.ODD
    assert all(function_named(n).symmetry_source == "observed" for n in (*printed, "reciprocal"))


def test_official_ranges():
    """pwp-golden.json `valid_ranges`: the six that are documented."""
    assert _range("ln") == (2.0**-64, 2.0**64)
    assert _range("sqrt") == (2.0**-116, 2.0**118)
    assert _range("reciprocal_sqrt") == (2.0**-87, 2.0**97)
    assert _range("reciprocal") == (-(2.0**42), 2.0**42)
    assert _range("sin") == pytest.approx((-math.pi, math.pi), abs=1e-6)
    assert _range("arctan") == pytest.approx((-math.pi / 2, math.pi / 2), abs=1e-6)
    official = {f.name for f in FUNCTIONS if f.valid_range.official}
    assert official == {"ln", "sqrt", "reciprocal_sqrt", "reciprocal", "sin", "arctan"}


def _range(name):
    found = function_named(name).valid_range
    return float_value(found.lower), float_value(found.upper)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_special_results_are_limits(function):
    """pwp-model.md 7.3: the closed form's own values, but for the stored zero of reciprocal."""
    if function.name in ("parametric_relu", "reciprocal"):
        return
    inputs = np.array([0.0, np.inf, -np.inf], np.float32)
    limits = exact.evaluate(function.name, inputs).view(np.uint32)
    results = function.results
    stored = [results.zero, results.positive_infinity, results.negative_infinity]

    # A stored zero is positive.
    assert stored == [0 if word == 0x80000000 else word for word in limits.tolist()]


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
    """The message has the simulator's text (pwp-model.md 5.4) and lists the functions."""
    text = "Unsupported activation function Simulator::simulation: expo"
    with pytest.raises(InputError, match=rf"^'expo' is no activation function \({text}\); .*exp"):
        function_named("expo")
