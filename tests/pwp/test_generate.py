"""The generator's rule against every number that is published, and the shipped files against it."""

from __future__ import annotations

import sys

import mpmath
import numpy as np
import pytest

from neuron_emu.errors import InputError
from neuron_emu.pwp import generate as generator
from neuron_emu.pwp.generate import generate, round_to_float32
from neuron_emu.pwp.profile import Octave, float_value
from neuron_emu.pwp.rules import HARDWIRED, RULES
from neuron_emu.pwp.store import encode_data, load_profile, shipped_profiles
from tests.pwp.golden import DERIVED_WORDS, LAYOUTS, OBSERVED_WORDS

SHIPPED = set(shipped_profiles())


def _word(profile, place, field):
    if place == "profile":
        return getattr(profile, field)
    if isinstance(place, str):
        return getattr(profile.clamp(place).section, field)
    side, exponent, index = place
    octaves = profile.pos_exponents if side == "pos" else profile.neg_exponents
    octave = next(o for o in octaves if o.exponent == exponent)
    return getattr(octave.sections[index], field)


@pytest.mark.parametrize(
    ("name", "place", "field", "bits"),
    [row for row in OBSERVED_WORDS + DERIVED_WORDS if row[0] in SHIPPED],
)
def test_published_word(name, place, field, bits):
    """pwp-golden.json: each word, bit for bit."""
    assert _word(load_profile(name), place, field) == bits


def _counts(text):
    for item in text.split():
        count, _, repeat = item.partition("*")
        yield from [int(count)] * int(repeat or 1)


@pytest.mark.parametrize(
    ("name", "side", "high", "lowest", "counts"), [row for row in LAYOUTS if row[0] in SHIPPED]
)
def test_layout(name, side, high, lowest, counts):
    """pwp-model.md 8.4: sections of each octave and the high threshold."""
    profile = load_profile(name)
    octaves = profile.pos_exponents if side == "pos" else profile.neg_exponents
    clamp = profile.pos_high if side == "pos" else profile.neg_high

    assert (clamp.sat_point, clamp.mantissa_point) == high
    assert [o.exponent for o in octaves] == list(range(lowest, lowest + len(octaves)))
    assert [len(o.sections) for o in octaves] == list(_counts(counts))


def test_exp_integers():
    """pwp-golden.json `integers`, all of exp_400p, and pwp-model.md 2.1."""
    exp = load_profile("exp_400p")

    assert exp.lut_size == 777
    assert sum(len(o.sections) for o in exp.pos_exponents) == 371
    assert sum(len(o.sections) for o in exp.neg_exponents) == 406
    assert len(exp.pos_exponents) == len(exp.neg_exponents) == 26
    assert exp.exponent_offset == -19
    assert exp.pos_low.sat_point == 108
    assert exp.pos_low.mantissa_point == exp.neg_low.mantissa_point == 0
    top, bottom = exp.pos_exponents[-1], exp.neg_exponents[-1]
    assert (top.num_sections, len(top.sections), len(bottom.sections)) == (256, 99, 134)
    assert (exp.neuron_id, exp.sunda_id, exp.tonga_id, exp.max_diff) == (7, 7, 7, 400)


def test_tanh_and_hardwired_integers():
    """pwp-golden.json `integers`: offsets and sizes; the id of abs on the first generation."""
    assert load_profile("tanh").lut_size == 104
    assert load_profile("tanh").exponent_offset == -14
    assert load_profile("parametric_relu").exponent_offset == 128
    assert load_profile("relu").exponent_offset == -127
    assert (load_profile("abs").sunda_id, load_profile("abs").tonga_id) == (33, 22)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_invariants(name):
    """pwp-model.md 11.7: sizes agree, the grid centres of 8.1, the coefficients are finite."""
    profile = load_profile(name)
    stored = 0
    for sign, side in ((0, profile.pos_exponents), (1, profile.neg_exponents)):
        for octave in side:
            stored += len(octave.sections)
            if octave.sections:
                assert octave.num_sections == 1 << octave.extract_size
                assert octave.extract_lsb == 23 - octave.extract_size
            for index, section in enumerate(octave.sections):
                first = (octave.exponent + 127) << 23 | index << (23 - octave.extract_size)
                last = first + (1 << (23 - octave.extract_size)) - 1
                assert section.x == ((first + last) >> 1 | sign << 31)
                assert np.isfinite([float_value(w) for w in (section.d0, section.d3)]).all()

    assert profile.lut_size == stored


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.function)
def test_shipped_coefficients_are_the_functions_taylor_coefficients(rule):
    """Each stored section anew, by derivatives written out here rather than by the generator."""
    derivatives = {
        "exp": lambda x: [mpmath.exp(x)] * 4,
        "tanh": lambda x: (
            lambda y: [y, 1 - y**2, -2 * y * (1 - y**2), (1 - y**2) * (6 * y**2 - 2)]
        )(mpmath.tanh(x)),
    }[rule.function]
    profile = load_profile(rule.function)
    octaves = (*profile.pos_exponents, *profile.neg_exponents)

    with mpmath.workprec(160):
        for section in (section for octave in octaves for section in octave.sections):
            values = derivatives(mpmath.mpf(float_value(section.x)))
            taylor = [v / f for v, f in zip(values, (1, 1, 2, 6), strict=True)]
            stored = (section.d0, section.d1, section.d2, section.d3)
            assert tuple(map(round_to_float32, taylor)) == stored


def test_some_octaves_made_anew():
    """The whole rule, every float tested, on one octave of each kind; the rest takes a minute."""
    exp, tanh = load_profile("exp"), load_profile("tanh")
    with mpmath.workprec(200):
        make = generator._Generator(RULES[0])
        threshold = make.threshold(RULES[0].negative, 0x80000000)
        assert threshold == exp.neg_high.magnitude
        assert make.octave(6, 0x80000000, threshold) == exp.neg_exponents[-1]
        make = generator._Generator(RULES[1])
        threshold = make.threshold(RULES[1].positive, 0)
        assert threshold == tanh.pos_high.magnitude
        assert make.octave(-1, 0, threshold) == tanh.pos_exponents[-4]
        assert make.octave(3, 0, threshold) == Octave(3)


@pytest.mark.parametrize("name", sorted(HARDWIRED))
def test_hardwired_files_are_made_to_the_same_bytes(name):
    """What the command writes is what is shipped."""
    assert encode_data(generate(name)) == encode_data(load_profile(name))


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        ("1", 0x3F800000),
        ("-0.1", 0xBDCCCCCD),
        ("16777217", 0x4B800000),  # 2^24 + 1: a tie, to even
        ("16777219", 0x4B800002),
        ("16777217.0000001", 0x4B800001),
        ("340282356779733661637539395458142568447", 0x7F7FFFFF),
        ("340282356779733661637539395458142568448", 0x7F800000),
        ("1e60", 0x7F800000),
        ("-1e-60", 0x80000000),
        ("0", 0x00000000),
    ],
)
def test_rounding_to_float32(value, bits):
    """Hand-worked: ties, the largest float's boundary, underflow with its sign."""
    with mpmath.workprec(200):
        assert round_to_float32(mpmath.mpf(value)) == bits


def test_rounding_to_denormals():
    """Multiples and halves of 2^-149."""
    with mpmath.workprec(200):
        unit = mpmath.mpf(2) ** -149
        assert round_to_float32(unit) == 1
        assert round_to_float32(unit / 2) == 0
        assert round_to_float32(unit * 3 / 2) == 2
        assert round_to_float32(unit * 0.5000001) == 1
        assert round_to_float32(unit * ((1 << 23) - 0.5)) == 0x00800000


def test_no_rule_and_no_mpmath(monkeypatch):
    """Both answers say what is missing; neither is a traceback."""
    with pytest.raises(InputError, match=r"no rule to generate 'gelu_4p'; there is one for exp_"):
        generate("gelu_4p")
    monkeypatch.setitem(sys.modules, "mpmath", None)
    with pytest.raises(InputError, match="needs mpmath"):
        generate("exp_400p")
