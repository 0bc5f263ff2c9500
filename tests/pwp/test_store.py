"""The shipped data files."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from neuron_emu.errors import InputError
from neuron_emu.pwp.store import (
    decode_data,
    encode_data,
    load_profile,
    shipped_profiles,
    write_data_file,
)


@pytest.mark.parametrize("name", shipped_profiles())
def test_round_trip(name, tmp_path):
    """Decoded and encoded again, the same bytes."""
    profile = load_profile(name)
    path = write_data_file(name, profile, tmp_path)

    assert path.name == f"{name}.pwp"
    assert decode_data(path.read_bytes()) == profile
    assert encode_data(decode_data(path.read_bytes())) == path.read_bytes()


def test_names():
    """A function's name means its first variant; an absent table is told from an unknown name."""
    assert load_profile("exp") is load_profile("exp") == load_profile("exp_400p")
    with pytest.raises(
        InputError, match=r"no table for 'ln_4p_0mp' yet; the tables are .*exp_400p"
    ):
        load_profile("ln_4p_0mp")
    with pytest.raises(InputError, match=r"'exp_401p' is no activation function"):
        load_profile("exp_401p")


def test_any_change_of_a_file_is_noticed():
    """1,000 mutations: the hash answers for every byte."""
    data = encode_data(load_profile("tanh"))
    chance = random.Random(0)
    for _ in range(1000):
        changed = bytearray(data)
        place = chance.randrange(len(changed))
        kind = chance.randrange(3)
        if kind == 0:
            changed[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del changed[place]
        else:
            del changed[place:]
        with pytest.raises(InputError, match="must be an intact table file"):
            decode_data(bytes(changed))


def test_loading_needs_no_generator():
    """Start-up generates nothing: neither mpmath nor the generator is imported."""
    script = (
        "import sys\n"
        "from neuron_emu.pwp.tables import install\n"
        "install(0)\n"
        "bad = {'mpmath', 'neuron_emu.pwp.generate', 'neuron_emu.pwp.rules'} & set(sys.modules)\n"
        "sys.exit(str(bad) if bad else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
