"""The closed forms: correctly rounded, by mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from neuron_emu.errors import InputError
from neuron_emu.pwp import exact
from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.generate import round_to_float32
from neuron_emu.pwp.store import load_profile
from tests.pwp.inputs import normal_bits, random_bits


def _inputs():
    near_one = np.arange(0x33700000, 0x33900000, 0x1000, dtype=np.uint32)
    tail = np.arange(0xC2AE0000, 0xC2D20000, 0x400, dtype=np.uint32)
    top = np.arange(0x42B17000, 0x42B17400, dtype=np.uint32)
    random = random_bits(3000)
    parts = [near_one, near_one | np.uint32(0x80000000), tail, top, random, normal_bits(4000)]
    words = np.concatenate(parts)
    # 2^-24 and its neighbours, where exp lies closest to a tie.
    return np.concatenate([words, np.arange(0x337FFFE0, 0x33800020, dtype=np.uint32)])


@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_correctly_rounded(name):
    """Denormal results, overflow, near-ties and random inputs against 200-bit arithmetic."""
    words = _inputs()
    values = words.view(np.float32)
    finite = np.isfinite(values)
    values = values[finite]

    got = exact.evaluate(name, values).view(np.uint32)

    with mpmath.workprec(200):
        function = getattr(mpmath, name)
        expected = [round_to_float32(function(mpmath.mpf(float(v)))) for v in values]
    # mpmath has no negative zero.
    nonzero = values != 0
    assert np.array_equal(got[nonzero], np.array(expected, np.uint32)[nonzero])


@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_hard_cases_are_decided_in_decimal(name, monkeypatch):
    """Make many elements doubtful: the decimal branch gives the same bits."""
    values = normal_bits(300).view(np.float32)
    values = values[np.abs(values) < 80]
    expected = exact.evaluate(name, values).view(np.uint32)
    decided = []
    decide = exact._decide
    monkeypatch.setattr(exact, "_decide", lambda *a: decided.append(decide(*a)) or decided[-1])
    monkeypatch.setattr(exact, "_RELATIVE_BOUND", 2.0**-26)

    got = exact.evaluate(name, values).view(np.uint32)

    assert len(decided) > 30
    assert np.array_equal(got, expected)


def test_special_values():
    """IEEE for infinities and zeros; a NaN stays, quieted."""
    words = np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0xFF800001], np.uint32)
    values = words.view(np.float32)

    def bits(name):
        return exact.evaluate(name, values).view(np.uint32).tolist()

    assert bits("exp") == [0x3F800000, 0x3F800000, 0x7F800000, 0, 0xFFC00001]
    assert bits("tanh") == [0, 0x80000000, 0x3F800000, 0xBF800000, 0xFFC00001]
    assert bits("identity") == [0, 0x80000000, 0x7F800000, 0xFF800000, 0xFFC00001]
    assert bits("is_finite") == [0x3F800000, 0x3F800000, 0, 0, 0]
    assert bits("memset_zero") == [0] * 5


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


def test_no_closed_form():
    """The message lists those that there are."""
    with pytest.raises(InputError, match=r"no closed form of 'foo'; it has abs, .*exp"):
        exact.evaluate("foo", np.zeros(1, np.float32))
