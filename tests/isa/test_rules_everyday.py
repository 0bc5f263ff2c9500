"""The rules of the everyday DVE opcodes against an independent validator."""

from __future__ import annotations

import random

import numpy as np
import pytest

from neuron_emu.generation import GENERATIONS
from neuron_emu.isa.bulk import BlockJudge
from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.families import tensor_reduce
from neuron_emu.isa.fields import write_field
from neuron_emu.isa.layout import spans_of
from neuron_emu.isa.rules.everyday_examples import EVERYDAY_LINES
from neuron_emu.isa.rules.examples import standard_word
from neuron_emu.isa.validate import findings_of_word
from neuron_emu.policy import Policy
from tests.isa.mutated import _indirect, _value
from tests.isa.reference_everyday import is_valid

OPCODES = sorted(EVERYDAY_LINES)
INDIRECT = tensor_reduce.FAMILY.opcodes
"""Opcodes of one source and one destination that may be indirect."""


def mutated(opcode: int, count: int, seed: int) -> list[bytes]:
    """Return legal words with up to three fields changed to telling values."""
    rng = random.Random(seed)
    record = record_type_of(opcode)
    paths = [p for p in spans_of(record) if _is_leaf(record, p)]
    words = []
    for _ in range(count):
        word = standard_word(opcode)
        if rng.random() < 0.25:
            word = write_field(word, record, "num_active_channels", 32) if opcode != 0x69 else word
        if opcode in INDIRECT and rng.random() < 0.3:
            word = _indirect(word, rng)
        for path in rng.choices(paths, k=rng.randrange(4)):
            word = write_field(word, record, path, _value(path, rng))
        words.append(word)
    return words


def _is_leaf(record: type, path: str) -> bool:
    inner = any(p.startswith((path + ".", path + "[")) for p in spans_of(record))
    return not inner and not path.startswith(("header.opcode", "header.debug", "events.sem"))


@pytest.mark.parametrize("opcode", OPCODES, ids=hex)
def test_verdict(opcode):
    """On words near the border the verdict is that of the plain validator, on every generation."""
    legal = 0
    for generation in GENERATIONS.values():
        words = mutated(opcode, 120, seed=opcode + len(generation.name))
        for word in words:
            found = findings_of_word(word, generation)
            legal += not found

            assert (not found) == is_valid(word, generation.name), (word.hex(), found)
        _blocks_agree(words, generation)
    assert legal > 40


def _blocks_agree(words, generation):
    """The rules over columns find the same words clean."""
    data = np.frombuffer(b"".join(words), np.uint8).reshape(-1, 64)
    clean = BlockJudge(generation, None, Policy()).clean(data)

    assert clean.tolist() == [not findings_of_word(word, generation) for word in words]


def test_every_word_of_dve_has_rules():
    """A standard word stands for each opcode, and it is legal where the opcode exists."""
    for opcode in OPCODES:
        for generation in GENERATIONS.values():
            found = findings_of_word(standard_word(opcode), generation)

            assert (not found) == (opcode in generation.opcodes), (hex(opcode), found)


@pytest.mark.parametrize("dtype", [0x00, 0x0B, 0x0C, 0xFF])
def test_a_shared_dtype_is_told_once(dtype):
    """A field that types both source and destination gives one finding, about the source."""
    word = write_field(standard_word(0x98), record_type_of(0x98), "dtype", dtype)

    assert [(f.code, f.field, f.message[:10]) for f in findings_of_word(word)] == [
        ("NE0601", "dtype", "src0 dtype")
    ]
