"""Every everyday DVE opcode against its plain loops, byte for byte after each word.

`NEURON_EMU_WORDS=100000 pytest tests/engines/test_everyday_oracle.py` is the long run.
"""

from __future__ import annotations

import os
import random

import pytest

from neuron_emu.engines.everyday import HANDLERS
from neuron_emu.isa.codec import encode
from neuron_emu.isa.validate import findings_of_word
from neuron_emu.policy import Policy
from tests.engines.everyday_words import Generator, compare

NUMBERS = {
    **dict.fromkeys((0x41, 0x51, 0x72, 0x99, 0x42, 0x52, 0x46, 0x47, 0x48, 0x4E, 0x5E), 1000),
    **dict.fromkeys((0x49, 0xE9, 0x69, 0x6A, 0x9D, 0x9E, 0xE5, 0xEA, 0xBC, 0x98, 0x6D, 0x62), 1000),
    **dict.fromkeys((0x60, 0x61, 0x6B, 0x6C, 0x6E, 0x6F), 1000),
    0x84: 400,
    0x83: 100,
    0x82: 10,
}
"""Words of each opcode in an ordinary run; tiles of 32 lanes in exact fractions are slow."""
UNPUBLISHED = frozenset((0x64, 0x65, 0x70, 0x71, 0x4B, 0x4D))
"""Opcodes whose handler only says why it does not execute them."""
SWITCHED = [
    (0x41, "nan_max_min=second"),
    (0x42, "nan_max_min=propagate"),
    (0x9E, "bitvec_stage_mask=word"),
    (0x51, "shift_count_wide=mask5"),
    (0xEA, "acc_source=after_conversion"),
    (0xBC, "acc_source=after_conversion"),
    (0x47, "fp8_profile=ieee"),
    (0x6C, "search_order=header"),
    (0x6E, "search_order=header"),
    (0x6F, "search_order=header"),
    (0xE9, "search_order=header"),
]


def words(opcode: int, number: int) -> int:
    """Return how many words to run: the ordinary number, or that of a long run."""
    return int(os.environ.get("NEURON_EMU_WORDS", number))


@pytest.mark.parametrize("opcode", NUMBERS, ids=hex)
def test_against_plain_loops(opcode):
    """Overlaps, negative and zero steps, all dtypes, registers, gathers, legal starts and lanes."""
    compare(opcode, words(opcode, NUMBERS[opcode]))


@pytest.mark.parametrize(("opcode", "row"), SWITCHED, ids=lambda value: str(value))
def test_under_other_policies(opcode, row):
    """The switches that these words read change both sides alike."""
    compare(opcode, words(opcode, 120), policy=Policy.parse([row]), seed=1)


def test_every_handler_has_an_oracle():
    """No opcode is executed without a plain twin."""
    assert set(NUMBERS) == set(HANDLERS) - UNPUBLISHED


@pytest.mark.parametrize("opcode", NUMBERS, ids=hex)
def test_generated_words_are_legal(opcode):
    """The validator has nothing to say about the words that the comparison uses."""
    generator = Generator(opcode, random.Random(opcode))
    for _ in range(40):
        record = generator.record()

        assert findings_of_word(encode(record)) == ()
