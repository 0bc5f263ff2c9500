"""The stations of one input."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.profile import float_value
from neuron_emu.pwp.reference import scalar
from neuron_emu.pwp.store import load_profile
from neuron_emu.pwp.tables import install
from tests.pwp.inputs import random_bits, special_bits


def test_the_published_path_of_one_half():
    """activation-tables.md 15: control 44, extract size 1, bucket 424, x and d0, the result."""
    station = install(0).compiled(0).station(0.5)

    assert (station.where, station.exponent, station.section_index) == ("octave", -1, 0)
    assert station.control_index == 44
    assert station.control_word >> 16 == 1
    assert station.control_word & 0x7FF == station.bucket == 424
    assert (station.section.x, station.section.d0) == (0x3F1FFFFF, 0x3FEF22AE)
    assert station.result == 0x3FD308B1
    assert [name for name, _ in station.as_events()] == ["control", "bucket", "cubic"]
    assert dict(station.as_events())["control"] == {
        "exponent": -1,
        "index": 44,
        "word": "0x0001b1a8",
    }


@pytest.mark.parametrize(
    ("value", "where", "special"),
    [
        (0.0, None, "zero"),
        (-0.0, None, "zero"),
        (np.inf, None, "+inf"),
        (-np.inf, None, "-inf"),
        (100.0, "pos_high", None),
        (-100.0, "neg_high", None),
        (2.0**-19, "pos_low", None),
        (-1e-30, "neg_low", None),
        (np.nan, "pos_high", None),
    ],
)
def test_clamps_and_special_values(value, where, special):
    """pwp-model.md 4.1, 4.3: which clamp, or which stored result; NaN falls to the high clamp."""
    station = install(0).compiled(0).station(value)

    assert (station.where, station.special) == (where, special)
    assert station.control_index is None
    assert not any(
        "nan" in str(v) and v != "nan" for _, d in station.as_events() for v in d.values()
    )


@pytest.mark.parametrize("name", ["exp", "tanh", "square", "relu"])
def test_sums_lead_to_the_result(name):
    """The partial sums of each station, put together by hand, give the oracle's bits."""
    profile = load_profile(name)
    compiled = compile_profile(profile)
    for bits in [*special_bits()[:60].tolist(), *random_bits(300).tolist()]:
        station = compiled.station(np.uint32(bits).view(np.float32))

        assert (station.input, station.result) == (bits, scalar(profile, bits))
        if station.total is not None and not np.isnan(station.total) and not station.reflected:
            total = station.cube_term + (float_value(station.low) + station.square_term)
            with np.errstate(over="ignore", under="ignore"):
                assert int(np.float32(total).view(np.uint32)) == station.result


def test_the_fold_is_shown():
    """tanh(-0.5) is evaluated at 0.5 and negated."""
    station = compile_profile(load_profile("tanh")).station(-0.5)

    assert (station.folded, station.reflected) == (0x3F000000, True)
    assert station.as_events()[0] == ("fold", {"point": "0x3f000000"})
    assert station.result >> 31 == 1
