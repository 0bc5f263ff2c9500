"""The fast evaluators against the oracle, its twin and hand-worked values."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from attrs import evolve

from neuron_emu.errors import InputError
from neuron_emu.numerics import subtract
from neuron_emu.pwp.arithmetic import cubic_silicon
from neuron_emu.pwp.evaluate import CompiledProfile, compile_profile
from neuron_emu.pwp.lookup import from_profile
from neuron_emu.pwp.profile import Clamp, Octave, Profile, Section
from neuron_emu.pwp.reference import scalar, twin
from neuron_emu.pwp.store import load_profile, shipped_profiles
from tests.pwp.inputs import all_kinds, random_bits, special_bits

FOLDED = (0x3F800000, 0x00000000, 0x80000000, 0xBF000000)


def _evaluate(profile, words, **choices):
    return compile_profile(profile).evaluate(words.view(np.float32), **choices).view(np.uint32)


def _fresh(profile):
    """Return an evaluator that has its cells."""
    compiled = CompiledProfile(from_profile(profile))
    compiled.evaluate(np.zeros(1 << 15, np.float32))
    return compiled


@pytest.mark.parametrize("seed", range(8))
def test_exp_equals_the_scalar_oracle(seed):
    """More than 10^6 inputs of every kind in eight parts, bit for bit."""
    exp = load_profile("exp")
    words = all_kinds(exp, 130_000, seed=100 + seed)

    expected = [scalar(exp, bits) for bits in words.tolist()]

    assert np.array_equal(_evaluate(exp, words), np.array(expected, np.uint32))


@pytest.mark.parametrize("nan", ["fallthrough", "profile"])
def test_exp_equals_the_twin(nan):
    """More than 10^6 inputs, bit for bit; the twin is shown equal to the oracle elsewhere."""
    exp = load_profile("exp")
    words = all_kinds(exp, 1_500_000, seed=4)

    assert np.array_equal(_evaluate(exp, words, nan=nan), twin(exp, words, nan))


@pytest.mark.parametrize("name", [n for n in shipped_profiles() if n != "parametric_relu_1p"])
def test_every_function_equals_the_twin(name):
    """One code path for all of them: 10^5 inputs each."""
    profile = load_profile(name)
    words = all_kinds(profile, 100_000, seed=5)

    assert np.array_equal(_evaluate(profile, words), twin(profile, words))


# Inputs and d3 for which libm's cube times d3 rounds to another float32 than the exact cube's,
# found by search on glibc: (t, d3, by the exact cube, by libm).
CUBE_MATTERS = (
    (0x3FA08661, 0x3FBE3AD7, 0x403B9B11, 0x403B9B12),
    (0x3FDFEC40, 0x3FB5FBB8, 0x40F393CA, 0x40F393CB),
    (0x3FEA7BD8, 0x3F9437F9, 0x40E3CC79, 0x40E3CC78),
    (0x3FC9EEBC, 0x3FDF8060, 0x40DB62E5, 0x40DB62E4),
    (0x3FC5841F, 0x3FBBF329, 0x40ACA5B0, 0x40ACA5AF),
    (0x3FB3D865, 0x3F9A3AF7, 0x4055E5F0, 0x4055E5EF),
)


@pytest.mark.parametrize(("t", "d3", "exact", "libm"), CUBE_MATTERS)
@pytest.mark.parametrize("extract_size", [0, 5])
def test_the_guard_where_the_cube_matters(t, d3, exact, libm, extract_size):
    """The result is libm's, on the fast way (fine cells) and on the general one (a wide cell)."""
    section = Section(d3=d3)
    profile = Profile(
        name="cube",
        zero_result=0,
        pinf_result=0,
        ninf_result=0,
        pos_exponents=(Octave(0, extract_size, (section,) * (1 << extract_size)),),
        pos_low=Clamp(127),
        pos_high=Clamp(128),
    )
    compiled = _fresh(profile)
    values = np.full(1000, t, np.uint32).view(np.float32)
    plain = ~np.isnan(compiled._cells.view(np.float32)[t >> (23 - extract_size), 0])

    assert bool(plain) == (extract_size == 5)
    # The host's libm decides; where it is glibc's, the search's numbers hold.
    wide = float(values[0])
    by_libm = int(
        np.float32(math.pow(wide, 3.0) * float(np.uint32(d3).view(np.float32))).view("u4")
    )
    assert by_libm in (exact, libm)
    assert set(compiled.evaluate(values).view(np.uint32).tolist()) == {by_libm}
    assert scalar(profile, t) == by_libm


@pytest.mark.parametrize("seed", range(40))
def test_random_tables_equal_the_oracle(seed):
    """Tables no generator would make: any coefficients, NaNs and infinities in them, all folds."""
    profile = _random_profile(np.random.default_rng(seed))
    words = np.concatenate(
        [special_bits()[:300], all_kinds(profile, 0)[::7], random_bits(500, seed)]
    )
    expected = np.array([scalar(profile, bits) for bits in words.tolist()], np.uint32)

    compiled = _fresh(profile)
    slow = CompiledProfile(from_profile(profile))

    assert np.array_equal(compiled.evaluate(words.view(np.float32)).view(np.uint32), expected)
    assert np.array_equal(slow.evaluate(words.view(np.float32)).view(np.uint32), expected)
    for fma in ("off", "on"):
        by_cells = compiled.evaluate(words.view(np.float32), evaluator="silicon", fma=fma)
        plain = slow.evaluate(words.view(np.float32), evaluator="silicon", fma=fma)
        assert np.array_equal(by_cells.view(np.uint32), plain.view(np.uint32))


def _random_profile(generator):
    def word():
        kind = generator.integers(0, 8)
        if kind == 0:
            return int(generator.choice(special_bits()[:26]))
        if kind == 1:
            return int(generator.integers(0, 1 << 32))
        return int(generator.standard_normal(1).astype(np.float32).view(np.uint32)[0])

    def section(x=None):
        return Section(word() if x is None else x, word(), word(), word(), word())

    def octave(exponent, sign):
        size = int(generator.integers(0, 4))
        first = (exponent + 127) << 23 | sign
        centres = [first | i << (23 - size) | 1 << (22 - size) for i in range(1 << size)]
        return Octave(exponent, size, tuple(section(x) for x in centres))

    def clamp(exponent):
        return Clamp(exponent + 127, int(generator.integers(0, 1 << 23)), section())

    return Profile(
        name="random",
        symmetry_en=bool(generator.integers(0, 2)),
        symmetry_invert_sign_opt=bool(generator.integers(0, 2)),
        symmetry_opt_use_neg_region=bool(generator.integers(0, 2)),
        symmetry_point=int(generator.choice([*FOLDED, word()])),
        zero_result=word(),
        nan_result=word(),
        pinf_result=word(),
        ninf_result=word(),
        pos_exponents=tuple(octave(e, 0) for e in range(-4, 4)),
        neg_exponents=tuple(octave(e, 0x80000000) for e in range(-4, 4)),
        pos_low=clamp(-4),
        neg_low=clamp(-4),
        pos_high=clamp(3),
        neg_high=clamp(3),
    )


def test_shape_order_and_input_are_kept():
    """Any layout of memory, any length, the input unchanged."""
    exp = compile_profile(load_profile("exp"))
    whole = random_bits(3 * 5 * 7 * 2000).view(np.float32).reshape(3, 5, -1)
    before = whole.copy()
    expected = exp.evaluate(whole.reshape(-1)).view(np.uint32).reshape(whole.shape)

    assert np.array_equal(exp.evaluate(whole).view(np.uint32), expected)
    assert np.array_equal(exp.evaluate(whole[:, ::-2, ::3]).view(np.uint32), expected[:, ::-2, ::3])
    assert np.array_equal(exp.evaluate(whole.T).view(np.uint32), expected.T)
    for count in (0, 1, 127, 32767, 32768, 32769, 70000):
        part = whole.reshape(-1)[:count]
        assert np.array_equal(exp.evaluate(part).view(np.uint32), expected.reshape(-1)[:count])
    assert exp.evaluate(np.array(0.5, np.float32)).shape == ()
    assert np.array_equal(whole.view(np.uint32), before.view(np.uint32))


def test_threads_do_not_share_buffers():
    """The same evaluator from several threads at once."""
    exp = _fresh(load_profile("exp"))
    inputs = [random_bits(200_000, seed).view(np.float32) for seed in range(4)]
    expected = [exp.evaluate(values).view(np.uint32) for values in inputs]
    results = [None] * len(inputs)

    def work(index):
        results[index] = [exp.evaluate(inputs[index]).view(np.uint32) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for got, want in zip(results, expected, strict=True):
        assert all(np.array_equal(one, want) for one in got)


def test_missing_sections_fail_with_the_simulators_text():
    """pwp-model.md 6.3: also when the cells are there and one element of many is affected."""
    exp = load_profile("exp")
    top = exp.pos_exponents[-1]
    short = evolve(exp, pos_exponents=(*exp.pos_exponents[:-1], Octave(6, 8, top.sections[:50])))
    values = np.zeros(100_000, np.float32)
    assert (_fresh(short).evaluate(values) == 1).all()
    values[77_777] = 80.5
    for compiled in (CompiledProfile(from_profile(short)), _fresh(short)):
        with pytest.raises(InputError, match=r"^Unhandled section in simulation: exp .*0x42a10000"):
            compiled.evaluate(values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"evaluator": "hardware"}, "evaluator must be pwp .* not 'hardware'"),
        ({"nan": "x"}, "nan 'x'"),
        ({"evaluator": "silicon", "fma": "yes"}, "fma 'yes'"),
    ],
)
def test_unknown_choices_are_refused(arguments, message):
    """The message says what would be accepted."""
    with pytest.raises(InputError, match=message):
        compile_profile(load_profile("exp")).evaluate(np.zeros(3, np.float32), **arguments)


def test_other_dtypes_are_refused():
    """A float64 array would be rounded silently."""
    with pytest.raises(InputError, match="values must be float32, not float64"):
        compile_profile(load_profile("exp")).evaluate(np.zeros(3))


def test_parametric_relu():
    """x <= 0 ? slope*x : x, with the slope of each element, by every evaluator."""
    compiled = compile_profile(load_profile("parametric_relu"))
    values = np.array([[-2.0, 3.0, -0.0], [-4.0, np.inf, -np.inf]], np.float32)

    got = compiled.evaluate(values, slope=np.array([[0.5], [0.25]], np.float32))

    assert got.tolist() == [[-1.0, 3.0, 0.0], [-1.0, np.inf, -np.inf]]
    assert np.signbit(got[0, 2])
    made = compiled.evaluate(np.array([-np.inf, -1.0], np.float32), slope=0.0)
    assert made.view(np.uint32).tolist() == [0x7FC00000, 0x80000000]
    with pytest.raises(InputError, match="parametric_relu must be given a slope"):
        compiled.evaluate(values)


def _fused_by_fractions(a, b, c):
    """Round a*b + c once to float32, by integers."""
    from fractions import Fraction

    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return None
    unit = Fraction(1, 1 << 149)
    size = abs(exact)
    while size / unit >= 1 << 24:
        unit *= 2
    steps = round(size / unit)
    return float(np.sign(float(exact)) * float(steps * unit))


def test_fused_steps_are_rounded_once():
    """Near-ties, cancellations and denormals, against exact rational arithmetic."""
    generator = np.random.default_rng(9)
    a, b = generator.standard_normal((2, 3000)).astype(np.float32)
    tiny = (generator.standard_normal(3000) * 2.0**-48).astype(np.float32)
    c = np.where(generator.integers(0, 2, 3000) == 1, -(a * b), tiny).astype(np.float32)
    a[:500] *= np.float32(2.0**-70)
    b[:500] *= np.float32(2.0**-72)
    c[:500] *= np.float32(2.0**-90)
    # With d3 = d2 = 0 and x = 0 the chain is the one step d1*t + d0.
    rows = np.zeros((3000, 5), np.uint32)
    rows[:, 1], rows[:, 2] = c.view(np.uint32), b.view(np.uint32)

    got = cubic_silicon(a, rows, fma=True).view(np.float32)

    for values in zip(a, b, c, got, strict=True):
        expected = _fused_by_fractions(*values[:3])
        if expected is not None:
            assert float(values[3]) == expected, values


def test_silicon_is_a_float32_horner_chain():
    """exp(0.5) step by step in float32 scalars; NaN gives the profile's NaN."""
    exp = load_profile("exp")
    section = exp.pos_exponents[18].sections[0]
    x, d0, d1, d2, d3 = (
        np.array([w], np.uint32).view(np.float32)[0]
        for w in (section.x, section.d0, section.d1, section.d2, section.d3)
    )
    t = np.float32(0.5) - x
    expected = ((d3 * t + d2) * t + d1) * t + d0
    values = np.array([0.5, np.nan, 0.0, np.inf, -np.inf], np.float32)
    values.view(np.uint32)[1] = 0xFFC00123

    got = compile_profile(exp).evaluate(values, evaluator="silicon")

    assert got[0] == expected
    assert got.view(np.uint32)[1:].tolist() == [0x7FC00000, 0x3F800000, 0x7F800000, 0]


def test_a_made_nan_is_the_default_one():
    """design.md 3: inf - inf gives 0x7fc00000 on every host; sqrt's negative side keeps its own."""
    line = Section(x=0x7F800000, d1=0x3F800000)
    stored = Section(d0=0x7FC00ABC)
    high = Clamp(0, 0, line)
    profile = Profile(
        name="made",
        zero_result=0,
        pinf_result=0,
        ninf_result=0,
        pos_high=high,
        pos_low=high,
        neg_high=evolve(high, section=stored),
        neg_low=evolve(high, section=stored),
    )
    words = np.array([0x3F800000, 0xBF800000, 0xFF800001], np.uint32)
    made = evolve(profile, pos_high=evolve(high, section=Section(d0=0x7F800000, d1=0xFF800000)))

    assert _evaluate(profile, words).tolist() == [0x7FC00000, 0x7FC00ABC, 0xFFC00001]
    assert _evaluate(made, words)[0] == 0x7FC00000


@pytest.mark.parametrize("shape", [(1, 1), (128, 1), (7, 5000), (2, 70_000)])
@pytest.mark.parametrize("lanes", [1, None])
@pytest.mark.parametrize("nan", ["fallthrough", "profile"])
def test_a_difference_is_subtracted_first(shape, lanes, nan):
    """Infinities, NaN and numbers on both sides, with and without room for the result."""
    exp = load_profile("exp")
    words = random_bits(shape[0] * shape[1], seed=6).reshape(shape)
    words[:, ::3] = words[:, ::3] & np.uint32(0x007FFFFF) | np.uint32(0xBF800000)
    words[0, 0] = 0x7F800000
    values = words.view(np.float32)
    minus = np.resize(np.float32([0.5, np.inf, -np.inf, 0, -3.25]), (lanes or shape[0], 1))
    difference = np.ascontiguousarray(subtract(values, minus)).view(np.uint32)
    expected = twin(exp, difference.reshape(-1), nan).reshape(shape)

    compiled, room = _fresh(exp), np.empty(shape, np.float32)
    got = compiled.evaluate(values, minus=minus, nan=nan)
    compiled.evaluate(values, minus=minus, nan=nan, out=room)
    assert np.array_equal(got.view(np.uint32), expected)
    assert np.array_equal(room.view(np.uint32), expected)
