"""The packed tables: every published index and word, and evaluation through them."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from neuron_emu.errors import InputError
from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.functions import FUNCTION_SETS, FUNCTIONS, function_set
from neuron_emu.pwp.profile import Octave
from neuron_emu.pwp.reference import twin
from neuron_emu.pwp.store import load_profile, shipped_profiles
from neuron_emu.pwp.tables import compile_tables, install
from tests.pwp.golden import CONTROL_WORDS
from tests.pwp.inputs import all_kinds

# activation-tables.md 6.6, set order and indices of exp_and_others.
BUCKET_STARTS = {
    "exp": 0,
    "identity": 781,
    "copy": 785,
    "leaky_relu": 789,
    "parametric_relu": 793,
    "abs": 797,
    "sign": 801,
    "memset_zero": 805,
    "relu": 809,
    "tanh": 813,
    "derivative_relu": 921,
    "derivative_leaky_relu": 925,
    "derivative_identity": 929,
    "is_finite": 933,
    "square": 937,
}
CONTROL_STARTS = {
    "exp": 0,
    "identity": 52,
    "copy": 54,
    "leaky_relu": 56,
    "parametric_relu": 58,
    "abs": 58,
    "sign": 60,
    "memset_zero": 61,
    "relu": 62,
    "tanh": 64,
    "derivative_relu": 81,
    "derivative_leaky_relu": 83,
    "derivative_identity": 85,
    "is_finite": 87,
    "square": 88,
}


@pytest.fixture(scope="module")
def tables():
    return install(0)


def _bucket(tables, index):
    return np.frombuffer(tables.bucket, "<u4").reshape(2048, 8)[index].tolist()


def test_set_zero_is_whole(tables):
    """Sizes of activation-tables.md 5, starts of 6.6, nothing missing."""
    assert tables.missing == ()
    assert len(tables.packed.buckets) == function_set(0).bucket_entries == 941
    assert len(tables.packed.controls) == function_set(0).control_entries == 89
    assert tables.packed.bucket_starts == BUCKET_STARTS
    assert list(tables.packed.bucket_starts) == list(BUCKET_STARTS)
    assert tables.packed.control_starts == CONTROL_STARTS


@pytest.mark.parametrize(("index", "word"), CONTROL_WORDS.items())
def test_control_words(tables, index, word):
    """Seven control words, read from the image."""
    assert tables.control_word(index) == word


def test_index_lists(tables):
    """pwp-model.md 10: func_exp_to_bkt_start_idx and func_exp_to_ctl_start_idx."""
    buckets, controls = tables.packed.exponent_buckets, tables.packed.exponent_controls

    assert {e: buckets["exp"][e] for e in (-19, -1, 0, 6)} == {
        -19: (0, 406),
        -1: (18, 424),
        0: (20, 426),
        6: (272, 678),
    }
    assert {e: controls["exp"][e] for e in (-19, -1, 0, 6)} == {
        -19: (0, 26),
        -1: (18, 44),
        0: (19, 45),
        6: (25, 51),
    }
    assert (buckets["tanh"][-14], buckets["tanh"][-13]) == ((813,), (814,))
    assert (controls["tanh"][-14], controls["tanh"][-13]) == ((64,), (65,))
    assert controls["parametric_relu"] == {}


def test_bucket_records(tables):
    """activation-tables.md 6.6: the first record and exp's four saturation entries."""
    assert _bucket(tables, 0) == [
        0x3F7FFFD0,
        0x3F7FFFD0,
        0x3EFFFFD0,
        0x3E2AAA8B,
        0xB63FFFFF,
        0,
        0,
        0,
    ]
    low = [0x3F800000, 0x3F800000, 0x3F000000, 0x3E2AAAAB, 0, 0, 0, 0]
    assert _bucket(tables, 777) == _bucket(tables, 778) == low
    assert _bucket(tables, 779) == [0x7F800000, 0, 0, 0, 0, 0, 0, 0]
    assert _bucket(tables, 780) == [0] * 8
    assert _bucket(tables, 424)[:1] + _bucket(tables, 424)[4:5] == [0x3FEF22AE, 0x3F1FFFFF]


def test_exp_slot(tables):
    """activation-tables.md 6.6 and 4.1: thresholds, bases, results."""
    entry = tables.slot(tables.slot_of("exp"))

    assert (entry.func_name, entry.func_id, entry.exp_offset) == ("exp_400p", 7, -19)
    assert (entry.pwl_control_base_neg, entry.pwl_control_base_pos) == (0, 26)
    assert (entry.small_pos_signal_exp_threshold, entry.large_pos_signal_exp_threshold) == (
        108,
        133,
    )
    assert entry.large_pos_signal_mantissa_threshold == 3240472
    assert entry.large_neg_signal_mantissa_threshold == 4362891
    assert (entry.pos_small_signal_pwl_control, entry.neg_large_signal_pwl_control) == (777, 780)
    assert (entry.fzero_result, entry.fpinf_result) == (0x3F800000, 0x7F800000)
    assert (entry.fninf_result, entry.fnan_result) == (0, 0x7FC00000)


def test_profile_image(tables):
    """activation-tables.md 7.3: the anchors, bit by bit, in the 128-byte record of tanh."""
    slot = tables.slot_of("tanh_4p")
    record = int.from_bytes(tables.profile[slot * 128 : slot * 128 + 128], "little")

    def field(first, last):
        return record >> first & ((1 << (last - first + 1)) - 1)

    assert field(33, 34) == 1
    assert field(37, 38) == 1
    assert field(72, 79) == 0xF2  # -14
    assert field(112, 119) == 64
    assert field(592, 623) == 0
    assert field(624, 655) == 0x7FC00000
    assert field(656, 687) == 0x3F800000
    assert field(688, 719) == 0xBF800000
    assert field(755, 1023) == 0


def test_cam(tables):
    """activation-tables.md 7.2: byte 1 the code, byte 5 its mask, bit 64 valid; any opcode."""
    slot = tables.search(0x21, 128)

    assert tables.named[slot].func_name == "copy_1p"
    assert tables.search(0x30, 7) == 0
    assert tables.search(0x21, 0) is None
    assert tables.cam[slot * 32 : slot * 32 + 12] == bytes([0, 128, 0, 0, 0, 255, 0, 0, 1, 0, 0, 0])
    unknown = tables.slot_of("derivative_relu")
    assert not any(tables.cam[unknown * 32 : unknown * 32 + 32])
    assert [len(i) for i in (tables.cam, tables.profile)] == [0x1000, 0x2000]
    assert [len(i) for i in (tables.control, tables.bucket)] == [0x2000, 0x10000]


@pytest.mark.parametrize("name", function_set(0).members)
@pytest.mark.parametrize(
    "choices",
    [{}, {"nan": "profile"}, {"evaluator": "silicon"}, {"evaluator": "silicon", "fma": "on"}],
    ids=str,
)
def test_both_routes_agree(tables, name, choices):
    """Through CONTROL and BUCKET as through the profile, bit for bit."""
    profile = load_profile(name)
    values = all_kinds(profile, 40_000, seed=8).view(np.float32)
    through = tables.compiled(tables.slot_of(name))

    got = through.evaluate(values, slope=0.25, **choices).view(np.uint32)
    expected = compile_profile(profile).evaluate(values, slope=0.25, **choices).view(np.uint32)

    assert np.array_equal(got, expected)
    if not choices and not profile.takes_slope:
        assert np.array_equal(got, twin(profile, values.view(np.uint32)))


def test_the_images_are_what_is_evaluated(tables):
    """A changed record of the bucket image changes the result, so the route goes through it."""
    bucket = bytearray(tables.bucket)
    bucket[424 * 32 : 424 * 32 + 4] = (0x40000000).to_bytes(4, "little")
    changed = evolve(tables, bucket=bytes(bucket))
    half = np.array([0.5], np.float32)

    assert tables.compiled(0).evaluate(half).view(np.uint32)[0] == 0x3FD308B1
    assert changed.compiled(0).evaluate(half).view(np.uint32)[0] != 0x3FD308B1


@pytest.mark.parametrize("selected", FUNCTION_SETS, ids=lambda s: s.name)
def test_every_set_installs_or_says_what_is_missing(selected):
    """A set without any table of its own is refused by name; another lists what it lacks."""
    absent = [name for name in selected.members if name not in shipped_profiles()]
    if selected.tables and set(selected.tables) <= set(absent):
        with pytest.raises(InputError, match=f"{selected.name} must have a table for {absent[0]}"):
            install(selected.index)
        return
    tables = install(selected.name)

    assert list(tables.missing) == absent
    assert install(selected.index).set is selected
    # Published sizes of activation-tables.md 5; a generated table may be larger or smaller.
    if not absent:
        variants = {n: v for f in FUNCTIONS for n, v in zip(f.profiles, f.variants, strict=True)}
        more = sum(variants[n].generated - variants[n].lut_size for n in selected.members)
        assert len(tables.packed.buckets) == selected.bucket_entries + more < 2048
        assert len(tables.packed.controls) == selected.control_entries <= 256


def test_a_hole_between_octaves_is_an_empty_octave():
    """The control index counts exponents, so a word stands for what is missing: no section."""
    exp = load_profile("exp")
    holed = evolve(exp, pos_exponents=exp.pos_exponents[:5] + exp.pos_exponents[6:])
    tables = compile_tables(function_set(0), {"exp_400p": holed})
    hole = np.float32([2.0 ** exp.pos_exponents[5].exponent])

    assert len(tables.packed.controls) == 52
    with pytest.raises(InputError, match="Unhandled section in simulation"):
        tables.compiled(0).evaluate(hole)


def test_too_many_buckets_are_refused():
    """Eleven bits address 2048 buckets."""
    exp = load_profile("exp")
    wide = evolve(
        exp,
        pos_exponents=tuple(
            Octave(o.exponent, 10, o.sections[:1] * 1024) for o in exp.pos_exponents[:2]
        ),
        lut_size=406 + 2048,
    )

    with pytest.raises(InputError, match="must fit into 2048 buckets"):
        compile_tables(function_set(0), {"exp_400p": wide})
