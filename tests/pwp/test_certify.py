"""The sweep's measures against a plain count, its state file, and the shipped certificates."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from neuron_emu.errors import InputError
from neuron_emu.pwp import certify as certifying
from neuron_emu.pwp.certificate import Certificate, shipped_certificate, table_hash
from neuron_emu.pwp.certify import certify, measure
from neuron_emu.pwp.functions import FUNCTIONS
from neuron_emu.pwp.reference import scalar
from neuron_emu.pwp.store import load_profile, shipped_profiles
from tests.command import ROOT

# Parametric ReLU has no table: its slope comes with the instruction.
CERTIFIED = [name for name in shipped_profiles() if name != "parametric_relu_1p"]


def plain_measure(first, count):
    """Count distances to e^x with mpmath and the scalar oracle, one input after the other."""
    mpmath = pytest.importorskip("mpmath")
    profile = load_profile("exp")
    distances = []
    for bits in range(first, first + count):
        value = mpmath.mpf(float(np.array(bits, np.uint32).view(np.float32)))
        exact = int(np.float32(float(mpmath.exp(value))).view(np.uint32))
        distances.append(abs(scalar(profile, bits) - exact))
    return max(distances), sum(distances), first + distances.index(max(distances))


@pytest.mark.parametrize("first", [0x3F000000, 0xBF7FFF00, 0x41234500])
def test_distances(first):
    """Maximum, sum and place of the error on a few hundred inputs."""
    octave = measure(load_profile("exp"), first, 256)

    assert (octave.max_ulp, octave.sum_ulp, octave.at) == plain_measure(first, 256)
    assert (octave.inputs, octave.unbounded, octave.twin_differences) == (256, 0, 0)


def test_jump_into_a_section():
    """At 0.5 the table passes from one section to the next; the step is measured there."""
    profile = load_profile("exp")
    before, after = (scalar(profile, bits) for bits in (0x3EFFFFFF, 0x3F000000))
    octave = measure(profile, 0x3F000000, 4096)

    # e^x steps by one or two float32 steps there.
    assert octave.jump_at == 0x3F000000
    assert abs(octave.max_jump - abs(after - before)) <= 2


def test_infinities_and_nans_have_no_distance():
    """Only the twin is compared there."""
    octave = measure(load_profile("exp"), 0x7F800000, 4096)

    assert (octave.inputs, octave.max_ulp, octave.twin_differences) == (0, 0, 0)


def test_clamps_are_measured_for_themselves():
    """exp's negative clamp begins at 0xc2c2928b; there its error is 400, before it far less."""
    profile = load_profile("exp")
    pieces = list(certifying._pieces(profile, 0xC2C29280, 64))
    before, after = (measure(profile, *piece) for piece in pieces)

    assert pieces == [(0xC2C29280, 11), (0xC2C2928B, 53)]
    assert (before.clamped, after.clamped) == (False, True)
    assert before.max_ulp < after.max_ulp == 400
    assert list(certifying._pieces(profile, 0x35FFFFF0, 64)) == [(0x35FFFFF0, 17), (0x36000001, 47)]


class TestSweep:
    @pytest.fixture
    def small(self, monkeypatch):
        """Two blocks of few inputs instead of sixty-four of many."""
        monkeypatch.setattr(certifying, "BLOCKS", 2)
        monkeypatch.setattr(certifying, "BLOCK_INPUTS", 4096)
        monkeypatch.setattr(certifying, "_CHUNK_INPUTS", 2048)

    def test_goes_on_where_it_ended(self, small, tmp_path):
        """A torn state line is forgotten, finished blocks are not measured again."""
        state = tmp_path / "state"
        exp = load_profile("exp")
        first = certify("exp", exp, state)
        text = state.read_text()
        state.write_text(text[: len(text) - 40])
        seen = []
        second = certify("exp", exp, state, progress=seen.append)

        assert seen == [1, 2]
        assert first.octaves == second.octaves

    def test_state_of_another_table(self, small, tmp_path):
        """The state names its table."""
        state = tmp_path / "state"
        certify("exp", load_profile("exp"), state)

        with pytest.raises(InputError, match=r"belongs to another table or version"):
            certify("tanh", load_profile("tanh"), state)

    def test_no_table(self, tmp_path):
        """Parametric ReLU has no section and no slope of its own."""
        with pytest.raises(InputError, match="takes its slope from the instruction"):
            certify("parametric_relu_1p", load_profile("parametric_relu"), tmp_path / "state")

    def test_file(self, small, tmp_path):
        """The certificate is JSON with an octave a line, and reads back."""
        certificate = certify("exp_400p", load_profile("exp_400p"), tmp_path / "state")
        text = certificate.as_json()

        assert json.loads(text)["profile"] == "exp_400p"
        assert Certificate.from_json(text) == certificate


# ln beside 1, gelu in its tail, derivative_silu and derivative_gelu at their zero: they are outside
# their tolerance, as docs/tables-generator.md says.
OUTSIDE = {"ln_40p", "ln_400p", "gelu_4p", "derivative_silu_32p", "derivative_gelu_40p"}


@pytest.mark.parametrize("name", CERTIFIED)
def test_shipped_certificate(name):
    """It belongs to the table that is shipped, the twin agreed everywhere, a sample holds."""
    profile = load_profile(name)
    certificate = shipped_certificate(name, profile)
    assert certificate is not None
    assert (certificate.profile, certificate.table_sha256) == (name, table_hash(profile))
    assert (certificate.inputs, certificate.twin_differences) == (1 << 32, 0)
    assert sum(octave.twin_differences for octave in certificate.octaves) == 0

    stored = [o for o in certificate.octaves if not o.clamped] or certificate.octaves
    worst = max(stored, key=lambda octave: octave.max_ulp)
    first, count = worst.at & ~0xFFF, 4096
    piece = next(p for p in certifying._pieces(profile, first, count) if worst.at < sum(p))
    assert measure(profile, *piece).max_ulp == worst.max_ulp == certificate.max_ulp
    assert (certificate.max_ulp <= int(profile.max_diff or 0)) == (name not in OUTSIDE)


def test_numbers_of_the_page():
    """docs/tables-generator.md: published and own sizes by the catalog, errors by certificate."""
    page = (ROOT / "docs" / "tables-generator.md").read_text()
    rows = re.findall(r"^\| (\w+_\d+p) \| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) \|", page, re.M)
    expected = []
    for function in FUNCTIONS:
        for name, variant in zip(function.profiles, function.variants, strict=True):
            if name not in CERTIFIED or not variant.lut_size:
                continue
            found = shipped_certificate(name, load_profile(name))
            assert found is not None
            sizes = (str(variant.lut_size), str(variant.generated))
            expected.append((name, *sizes, str(found.max_ulp), f"{found.mean_ulp:.3f}"))

    assert sorted(rows) == sorted(expected)
    assert len(rows) == 25
