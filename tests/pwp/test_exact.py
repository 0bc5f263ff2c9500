"""The closed forms: correctly rounded, by mpmath with functions written for the tests."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from neuron_emu.errors import InputError
from neuron_emu.pwp import exact
from neuron_emu.pwp.decimals import PRECISE
from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.functions import FUNCTIONS
from neuron_emu.pwp.store import load_profile
from neuron_emu.pwp.truth import round_to_float32
from tests.pwp import truth
from tests.pwp.inputs import normal_bits, random_bits

POSITIVE_ONLY = {"ln", "sqrt", "reciprocal_sqrt"}
TRANSCENDENTAL = sorted(truth.FUNCTIONS)
# Where a function has a zero, an extreme, or leaves the range of float32.
PLACES = {
    "derivative_silu": [-1.2784645],
    "derivative_gelu": [-0.7517916, 1.4142135],
    "derivative_gelu_apprx_sigmoid": [-0.7511542],
    "sin": [3.1415927, 6.2831855, 355.0, 1.6367e7, 3.4e38],
    "gelu": [-14.41, -8.0, -0.7517916],
    "gelu_apprx_tanh": [-10.6, -7.2],
    "ln": [1.0, 0.99999994, 1e-44],
    "erf": [3.9],
    "derivative_erf": [10.1, 9.3],
    "mish": [-108.6, -1.1924],
    "softplus": [-103.97, 88.0],
    "silu": [-108.6, -1.2784645],
}


def _inputs(name):
    exponents = np.arange(0x2F800000, 0x43000000, 0x00134567, dtype=np.uint32)
    places = np.array(PLACES.get(name, [0.5]), np.float32).view(np.uint32)
    near = (places[:, None].astype(np.int64) + np.arange(-6, 7)).reshape(-1).astype(np.uint32)
    tail = np.arange(0x42AE0000, 0x42D20000, 0x4001, dtype=np.uint32)
    words = np.concatenate([exponents, near, tail, tail | 0x80000000, random_bits(150, len(name))])
    words = np.concatenate([words, exponents | np.uint32(0x80000000), normal_bits(200, len(name))])
    values = words.view(np.float32)
    values = values[np.isfinite(values) & (values != 0)]
    return np.abs(values) if name in POSITIVE_ONLY else values


def _expected(name, values):
    words = []
    with mpmath.workprec(200):
        for x in values.tolist():
            # No function here leaves its limit again, and mpmath is slow on large exponents.
            far = name != "sin" and abs(x) > 1e4 and name not in _UNLIMITED
            words.append(round_to_float32(truth.value(name, np.clip(x, -300, 300) if far else x)))
    return np.array(words, np.uint32)


_UNLIMITED = {"ln", "sqrt", "reciprocal", "reciprocal_sqrt", "abs_reciprocal_sqrt", "arctan"}
_LINEAR = {"silu", "mish", "gelu", "gelu_apprx_tanh", "gelu_apprx_sigmoid", "softplus"}


@pytest.mark.parametrize("name", TRANSCENDENTAL)
def test_correctly_rounded(name):
    """Denormal results, overflow, zeros, extremes and random inputs against 200-bit arithmetic."""
    values = _inputs(name)
    if name in _LINEAR:
        values = values[np.abs(values) < 1e4]

    got = exact.evaluate(name, values).view(np.uint32)
    expected = _expected(name, values)

    assert len(values) > 500
    different = np.flatnonzero(got != expected)
    assert not different.size, [
        (float(values[i]), hex(got[i]), hex(expected[i])) for i in different[:5]
    ]


@pytest.mark.parametrize("name", sorted(PRECISE))
def test_decimals_have_fifty_digits(name):
    """The slow form itself, at large, small and cancelling arguments."""
    points = [0.3, 5.25, 1e-6, 0.02, *PLACES.get(name, [])]
    if name not in POSITIVE_ONLY:
        points += [-0.3, -5.25, -1e-6, -12.5]
    with mpmath.workdps(120):
        for point in points:
            if abs(point) > 100 and name != "sin":
                continue
            single = float(np.float32(point))
            with localcontext(Context(prec=60)):
                got = mpmath.mpf(str(PRECISE[name](Decimal(single))))
            wanted = truth.value(name, single)
            assert abs(got - wanted) <= abs(wanted) * mpmath.mpf(10) ** -50


@pytest.mark.parametrize("name", sorted(PRECISE))
def test_the_bound_of_float64_has_room(name):
    """A fifteenth of the bound that the module allows is never reached."""
    form = exact.CLOSED_FORMS[name]
    values = _inputs(name)[::3]
    values = values[(np.abs(values) < 100) | (name == "sin")]
    with np.errstate(all="ignore"):
        wide, scale = form.approximate(values.astype(np.float64))
    with localcontext(Context(prec=80)):
        for x, got, size in zip(values.tolist(), wide.tolist(), scale.tolist(), strict=True):
            if abs(got) < 1e-60:
                continue
            error = abs(Decimal(got) - form.precise(Decimal(x)))
            assert error * 15 <= Decimal(abs(size)) * Decimal(2) ** -46, x


@pytest.mark.parametrize("name", sorted(PRECISE))
def test_hard_cases_are_decided_in_decimal(name, monkeypatch):
    """Make many elements doubtful: the decimal branch gives the same bits."""
    values = normal_bits(200).view(np.float32)
    values = values[(np.abs(values) < 80) & (np.abs(values) > 0)]
    if name in POSITIVE_ONLY:
        values = np.abs(values)
    expected = exact.evaluate(name, values).view(np.uint32)
    decided = []
    decide = exact._decide
    monkeypatch.setattr(exact, "_decide", lambda *a: decided.append(decide(*a)) or decided[-1])
    monkeypatch.setattr(exact, "_BOUND", 2.0**-25)

    got = exact.evaluate(name, values).view(np.uint32)

    assert len(decided) > 20
    assert np.array_equal(got, expected)


def test_deciding_at_the_ends_of_the_range():
    """Overflow is 2^128 less half a step; the smallest denormal begins above its half."""
    one = np.float32(1.0)
    largest = Decimal(2) ** 128 - Decimal(2) ** 104
    step = Decimal(2) ** 103

    def decide(value):
        with localcontext(Context(prec=400)):
            return exact._decide(lambda _: value, one)

    with localcontext(Context(prec=400)):
        tiny = Decimal(2) ** -150
        assert decide(largest + step * Decimal("0.999")) == np.finfo(np.float32).max
        assert np.isinf(decide(largest + step * Decimal("1.001")))
        assert decide(tiny * Decimal("1.001")).view(np.uint32) == 1
        assert decide(-tiny * Decimal("1.001")).view(np.uint32) == 0x80000001
        assert decide(tiny * Decimal("0.999")) == 0
        assert decide(1 + Decimal(2) ** -24 + tiny) == np.nextafter(one, np.float32(2))
        assert decide(1 + Decimal(2) ** -24 - tiny) == 1


def test_forms_without_a_bound_are_right():
    """Square root, reciprocal and the slope of a hundredth, by integers and fractions."""
    words = np.concatenate([random_bits(3000, 5) & 0x7FFFFFFF, np.arange(1, 400, 7, np.uint32)])
    values = words.astype(np.uint32).view(np.float32)
    values = values[np.isfinite(values) & (values > 0)]
    for name, rational in (
        ("reciprocal", lambda x: 1 / x),
        ("leaky_relu", lambda x: -x / 100),
    ):
        got = exact.evaluate(name, values if name == "reciprocal" else -values)
        for x, y in zip(values.tolist(), got.tolist(), strict=True):
            assert _is_nearest(y, rational(Fraction(x))), (name, x)
    roots = exact.evaluate("sqrt", values)
    for x, y in zip(values.tolist(), roots.tolist(), strict=True):
        below, above = _middles(y)
        assert below**2 <= Fraction(x) <= above**2


def _middles(y):
    step = [float(np.nextafter(np.float32(y), np.float32(end))) for end in (-np.inf, np.inf)]
    lower, upper = (Fraction(s) if np.isfinite(s) else Fraction(2) ** 128 for s in step)
    return (lower + Fraction(y)) / 2, (Fraction(y) + upper) / 2


def _is_nearest(y, wanted):
    if np.isinf(y):
        return abs(wanted) >= Fraction(2) ** 128 - Fraction(2) ** 103
    below, above = _middles(y)
    even = int(np.float32(y).view(np.uint32)) % 2 == 0
    return below <= wanted <= above if even else below < wanted < above


# Results for +0, -0, +inf, -inf and a NaN; the limits of IEEE and of the mathematical function.
SPECIAL = {
    "exp": "3f800000 3f800000 7f800000 00000000 ffc00001",
    "tanh": "00000000 80000000 3f800000 bf800000 ffc00001",
    "identity": "00000000 80000000 7f800000 ff800000 ffc00001",
    "is_finite": "3f800000 3f800000 00000000 00000000 00000000",
    "memset_zero": "00000000 00000000 00000000 00000000 00000000",
    "sigmoid": "3f000000 3f000000 3f800000 00000000 ffc00001",
    "derivative_sigmoid": "3e800000 3e800000 00000000 00000000 ffc00001",
    "derivative_tanh": "3f800000 3f800000 00000000 00000000 ffc00001",
    "softplus": "3f317218 3f317218 7f800000 00000000 ffc00001",
    "ln": "ff800000 ff800000 7f800000 7fc00000 ffc00001",
    "sqrt": "00000000 80000000 7f800000 7fc00000 ffc00001",
    "reciprocal": "7f800000 ff800000 00000000 80000000 ffc00001",
    "reciprocal_sqrt": "7f800000 ff800000 00000000 7fc00000 ffc00001",
    "abs_reciprocal_sqrt": "7f800000 7f800000 00000000 00000000 ffc00001",
    "sin": "00000000 80000000 7fc00000 7fc00000 ffc00001",
    "arctan": "00000000 80000000 3fc90fdb bfc90fdb ffc00001",
    "erf": "00000000 80000000 3f800000 bf800000 ffc00001",
    "derivative_erf": "3f906ebb 3f906ebb 00000000 00000000 ffc00001",
    "silu": "00000000 80000000 7f800000 80000000 ffc00001",
    "gelu": "00000000 80000000 7f800000 80000000 ffc00001",
    "mish": "00000000 80000000 7f800000 80000000 ffc00001",
    "gelu_apprx_tanh": "00000000 80000000 7f800000 80000000 ffc00001",
    "gelu_apprx_sigmoid": "00000000 80000000 7f800000 80000000 ffc00001",
    "derivative_silu": "3f000000 3f000000 3f800000 80000000 ffc00001",
    "derivative_gelu": "3f000000 3f000000 3f800000 80000000 ffc00001",
    "derivative_gelu_apprx_sigmoid": "3f000000 3f000000 3f800000 80000000 ffc00001",
}


@pytest.mark.parametrize(("name", "results"), SPECIAL.items())
def test_special_values(name, results):
    """IEEE and limits; a NaN stays, quieted; one that is made is the default one."""
    words = np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0xFF800001], np.uint32)

    got = exact.evaluate(name, words.view(np.float32)).view(np.uint32)

    assert " ".join(f"{word:08x}" for word in got.tolist()) == results


@pytest.mark.parametrize(
    ("name", "results"),
    [
        ("relu", [0.0, 3.0]),
        ("leaky_relu", [np.float32(-0.02), 3.0]),
        ("abs", [2.0, 3.0]),
        ("square", [4.0, 9.0]),
        ("sign", [-1.0, 1.0]),
        ("derivative_relu", [0.0, 1.0]),
        ("derivative_leaky_relu", [np.float32(0.01), 1.0]),
        ("derivative_identity", [1.0, 1.0]),
        ("copy", [-2.0, 3.0]),
    ],
)
def test_hardwired_forms(name, results):
    """pwp-model.md 5.4 at -2 and 3, through a profile too."""
    values = np.array([-2.0, 3.0], np.float32)

    assert exact.evaluate(name, values).tolist() == [float(r) for r in results]
    assert exact.evaluate(f"{name}_1p", values).tolist() == [float(r) for r in results]
    through = compile_profile(load_profile(name)).evaluate(values, evaluator="exact")
    assert through.tolist() == [float(r) for r in results]


def test_every_function_has_a_form():
    """All but parametric ReLU, whose slope comes with the instruction."""
    assert {f.name for f in FUNCTIONS} - set(exact.CLOSED_FORMS) == {"parametric_relu"}


def test_the_enclosure_holds_the_result():
    """Both ends are equal for nearly all elements, and never miss."""
    values = normal_bits(20_000, 3).view(np.float32)
    for name in ("exp", "gelu", "derivative_silu", "sqrt"):
        of_name = np.abs(values) if name == "sqrt" else values
        lower, upper = exact.enclose(name, of_name)
        result = exact.evaluate(name, of_name)

        assert ((lower <= result) & (result <= upper)).all()
        assert (lower != upper).sum() < 5


def test_no_closed_form():
    """The simulator's text (pwp-model.md 5.4), and the list of those that there are."""
    with pytest.raises(
        InputError,
        match=r"^Unsupported activation function Simulator::simulation: foo .*has abs, .*exp",
    ):
        exact.evaluate("foo", np.zeros(1, np.float32))
