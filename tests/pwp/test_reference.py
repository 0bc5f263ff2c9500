"""The oracle against published results, and its numpy twin against the oracle."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from attrs import evolve

from neuron_emu.errors import InputError
from neuron_emu.pwp.profile import Octave, float_value
from neuron_emu.pwp.reference import scalar, twin
from neuron_emu.pwp.store import load_profile, shipped_profiles
from tests.pwp.inputs import all_kinds, normal_bits, random_bits, special_bits

# pwp-model.md 4.7, pwp-golden.json `evaluations`, cases/users.md 1, activation-tables.md 15.
WORKED = {
    0x3F000000: 0x3FD308B1,
    0x36000000: 0x3F800010,
    0xB6000000: 0x3F7FFFE0,
    0x363FFFFF: 0x3F800018,
    0x42B17218: 0x7F800000,
    0xC2C2928B: 0x00000000,
    0x00000000: 0x3F800000,
    0x80000000: 0x3F800000,
    0xBF800000: 0x3EBC5A40,
    0xC0000000: 0x3E0A9501,
    0xC0400000: 0x3D4BED0B,
    0xC0800000: 0x3C960A53,
    0xC0A00000: 0x3BDCC97A,
    0xC0C00000: 0x3B22722D,
    0xC0E00000: 0x3A6F0ACC,
    0x7F800000: 0x7F800000,
    0xFF800000: 0x00000000,
}


@pytest.mark.parametrize(("bits", "result"), WORKED.items())
def test_worked_results_of_exp(bits, result):
    """The table of worked results, and the first row of the user cases."""
    assert scalar(load_profile("exp"), bits) == result


# pwp-model.md 4.6 and 4.7, cases/users.md 7, activation-tables.md 15.
KNOWN = [
    ("sigmoid", 0x40000000, 0x3F617BEB),  # 0.8807971, not 0.119202934
    ("sigmoid", 0xC0000000, 0x3DF420AB),  # 0.119202934
    ("sin", 0x40490FDB, 0xB3BBBD2E),
    ("sin", 0x40800000, 0xBF40C3AE),
    ("sin", 0x41100000, 0x41DD3883),  # 27.652594
    ("sin", 0xC1100000, 0xC1DD3883),
    ("sqrt", 0xBF800000, 0x7FC00000),
    ("sqrt", 0x80000001, 0x7FC00000),
    ("ln", 0xC2000000, 0x7FC00000),
    ("reciprocal_sqrt", 0xBF800000, 0x7FC00000),
    ("gelu", 0xC1700000, 0x00000000),
    ("gelu", 0x42C80000, 0x42C80000),
    ("erf", 0xC1200000, 0xBF800000),
    ("arctan", 0x4F000000, 0x3FC90FDB),
    ("derivative_erf", 0xC2C80000, 0x00000000),
    ("is_finite", 0x7F800000, 0x00000000),
    ("is_finite", 0xFF7FFFFF, 0x3F800000),
]


@pytest.mark.parametrize(("name", "bits", "result"), KNOWN)
def test_known_answers(name, bits, result):
    """Official and hand-worked results: reconstruction, extrapolation, clamps, absent sides."""
    assert scalar(load_profile(name), bits) == result


def test_reciprocal_of_minus_four():
    """pwp-model.md 4.7: about -0.25, by the odd fold."""
    got = float_value(scalar(load_profile("reciprocal"), 0xC0800000))

    assert got == pytest.approx(-0.25, rel=400 * 2.0**-24)


@pytest.mark.parametrize(
    ("bits", "kept"),
    [
        (0x7FC00000, 0x7FC00000),
        (0xFFC00000, 0xFFC00000),
        (0x7F800001, 0x7FC00001),
        (0xFFA12345, 0xFFE12345),
    ],
)
def test_a_nan_stays_quieted(bits, kept):
    """design.md 3: payload and sign are kept, bit 22 is set; or the profile's NaN by policy."""
    exp = load_profile("exp")

    assert scalar(exp, bits) == kept
    assert scalar(exp, bits, nan="profile") == 0x7FC00000


def test_a_folded_nan_changes_its_sign_twice():
    """tanh folds to the positive side and inverts: the sign of a NaN comes back."""
    tanh = load_profile("tanh")

    assert scalar(tanh, 0xFFC00007) == 0xFFC00007
    assert scalar(tanh, 0x7FC00007) == 0x7FC00007


def test_odd_functions_are_odd():
    """The reconstruction of the folded side, on its plainest consequence."""
    tanh = load_profile("tanh")

    for bits in random_bits(2000).tolist():
        if bits & 0x7FFFFFFF not in (0, 0x7F800000):
            assert scalar(tanh, bits ^ 0x80000000) == scalar(tanh, bits) ^ 0x80000000


def test_sigmoid_is_reconstructed_on_its_positive_side():
    """pwp-model.md 4.6: a negative half stored, so that the reflected inputs are the positive ones.

    A stand-in for the table: the negative half as a line. f(-0.5) = 0.5 - 0.25*0.5 and, reflected,
    f(0.5) = 1 - f(-0.5).
    """
    identity = load_profile("identity")
    line = evolve(identity.pos_high.section, d0=0x3F000000, d1=0x3E800000)
    clamp = evolve(identity.pos_high, section=line)
    profile = evolve(
        identity,
        symmetry_en=True,
        symmetry_invert_sign_opt=True,
        symmetry_opt_use_neg_region=True,
        symmetry_point=0x3F800000,
        neg_high=clamp,
        neg_low=clamp,
    )

    assert scalar(profile, 0xBF000000) == 0x3EC00000
    assert scalar(profile, 0x3F000000) == 0x3F200000


def test_missing_sections_fail_with_the_simulators_text():
    """pwp-model.md 4.4, 6.3: bounds are the stored sections, whatever num_sections says."""
    exp = load_profile("exp")
    top = exp.pos_exponents[-1]
    for octave in (
        Octave(6),
        Octave(6, 8, top.sections[:50], num_sections=256),
        Octave(6, 8, top.sections[:50], num_sections=1 << 30),
    ):
        short = evolve(exp, pos_exponents=(*exp.pos_exponents[:-1], octave))
        with pytest.raises(InputError, match="Unhandled section in simulation"):
            scalar(short, 0x42A00000)
        with pytest.raises(InputError, match="Unhandled section in simulation"):
            twin(short, np.array([0x42A00000], np.uint32))


@pytest.mark.parametrize("name", shipped_profiles())
def test_twin_equals_scalar(name):
    """The twin stands for the oracle in sweeps: same bits on inputs of every kind."""
    profile = load_profile(name)
    count = 200_000 if name == "exp_400p" else 4_000
    words = all_kinds(profile, count)[:count]

    expected = [scalar(profile, bits) for bits in words.tolist()]

    assert np.array_equal(twin(profile, words), np.array(expected, np.uint32))


def test_float_power_is_libms_pow():
    """The twin's cube is the oracle's: `np.float_power` calls libm for each element."""
    t = np.concatenate([normal_bits(150_000), random_bits(50_000), special_bits()])
    wide = t.view(np.float32)
    wide = wide[np.isfinite(wide)].astype(np.float64)

    expected = [math.pow(value, 3.0) for value in wide.tolist()]

    assert np.array_equal(np.float_power(wide, 3.0), np.array(expected))


def test_exp_is_within_its_certified_error():
    """400 ULP of the mathematical value, and increasing where it matters."""
    exp = load_profile("exp")
    points = [k / 16 for k in range(-1300, 1400)]
    values = [float_value(scalar(exp, int(np.float32(p).view(np.uint32)))) for p in points]

    for point, value in zip(points, values, strict=True):
        assert math.isclose(value, math.exp(point), rel_tol=400 * 2.0**-23)
    assert all(first < second for first, second in pairwise(values))
