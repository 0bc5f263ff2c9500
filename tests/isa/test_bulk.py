"""The bulk path finds what the single word finds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from neuron_emu.generation import GENERATIONS, MARIANA, Generation
from neuron_emu.isa.bulk import BLOCK_WORDS, BlockJudge
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.rules import RULES
from neuron_emu.isa.rules.examples import bad_word, good_word, opcode_of, standard_word
from neuron_emu.isa.validate import Judge
from neuron_emu.policy import Policy
from tests.isa.mutated import mutated_words

TENSOR_SCALAR = (0x30, 0x43, 0x53, 0x44, 0x54, 0x93, 0x9A, 0xE6)
EXAMPLES = [
    word
    for rule in RULES.values()
    for example in rule.examples
    if opcode_of(rule, example)
    for word in (good_word(rule, example), bad_word(rule, example))
]


def suspects(words: list[bytes], judge: BlockJudge) -> list[int]:
    """Return the words that are not proven clean, judged block by block."""
    data = np.frombuffer(b"".join(words), dtype=np.uint8).reshape(-1, 64)
    blocks = range(0, len(words), BLOCK_WORDS)
    clean = [judge.clean(data[first : first + BLOCK_WORDS]).copy() for first in blocks]
    return np.flatnonzero(~np.concatenate(clean)).tolist()


def compare(words: list[bytes], generation: Generation, engine: Engine | None, upper: str) -> None:
    policy = Policy(exp_upper_dim=upper)
    single = Judge(generation, engine, policy)
    found = suspects(words, BlockJudge(generation, engine, policy))

    assert found == [i for i, word in enumerate(words) if single.findings(word)]


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=str)
@pytest.mark.parametrize("upper", ["packed_even", "product_even"])
def test_words_near_the_border(generation: Generation, upper: str) -> None:
    """Mixed opcodes with a few fields changed: the same words are suspect."""
    words = [w for op in TENSOR_SCALAR for w in mutated_words(op, 250, seed=op + len(upper))]
    random.Random(1).shuffle(words)

    compare(words, generation, None, upper)


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=str)
def test_examples(generation: Generation) -> None:
    """The good and the bad word of every rule, on every generation."""
    compare(EXAMPLES, generation, Engine.DVE, "packed_even")


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=str)
def test_random_words(generation: Generation) -> None:
    """Random bytes, and random payloads behind good headers, of every opcode."""
    rng = random.Random(2)
    words = [rng.randbytes(64) for _ in range(500)]
    words += [bytes([i % 256, 0x10]) + bytes(10) + rng.randbytes(52) for i in range(1024)]

    compare(words, generation, Engine.ACT, "off")


def test_table_of_clean_words() -> None:
    """Repeated words, collisions of slots and blocks of new words do not change the answer."""
    clean, bad = standard_word(0x30), standard_word(0x30)[:36] + b"\x04" + bytes(27)
    seeds = np.arange(3 * BLOCK_WORDS, dtype="<u4").tobytes()
    distinct = [clean[:40] + seeds[4 * i : 4 * i + 4] + clean[44:] for i in range(3 * BLOCK_WORDS)]
    stream = [clean] * BLOCK_WORDS + distinct + [bad] + [clean] * 9 * BLOCK_WORDS + [bad, bytes(64)]
    judge = BlockJudge(MARIANA, Engine.DVE, Policy())

    assert suspects(stream, judge) == [4 * BLOCK_WORDS, len(stream) - 2, len(stream) - 1]
