"""The generators of words: valid ones run, broken ones break their rule and are refused."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from neuron_emu import Machine, Program
from neuron_emu.errors import InputError, NeuronEmuError
from neuron_emu.generation import CAYMAN, GENERATIONS, MARIANA, Generation
from neuron_emu.isa.bulk import BlockJudge
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.rules import RULES
from neuron_emu.isa.validate import Judge
from neuron_emu.policy import Policy
from neuron_emu.testing import (
    OPCODES,
    BrokenWord,
    Shape,
    breakable_codes,
    broken_word,
    broken_words,
    valid_word,
    valid_words,
)

ALL = GENERATIONS.values()


def wired(generation: Generation) -> list[int]:
    return [o for o in OPCODES if o != 0x30 or generation.has_exponential]


def engine_of(opcode: int) -> Engine:
    return Engine.ACT if opcode == 0x24 else Engine.DVE


class TestValidWords:
    @pytest.mark.parametrize("generation", ALL, ids=str)
    def test_no_finding(self, generation: Generation) -> None:
        """Ten thousand seeded words over all opcodes have no error on their generation."""
        rng = random.Random(11)
        opcodes = wired(generation)
        words = [valid_word(rng, opcodes[i % len(opcodes)], generation) for i in range(10_000)]
        data = np.frombuffer(b"".join(words), dtype=np.uint8).reshape(-1, 64)
        judge = Judge(generation)
        clean = BlockJudge(generation, None, Policy()).clean(data)

        assert [judge.findings(words[i]) for i in np.flatnonzero(~clean)[:1]] == []
        assert all(not judge.findings(word) for word in words[:300])

    def test_all_forms_are_drawn(self) -> None:
        """Registers, gathers, scatters, PSUM, every command and selector occur."""
        rng = random.Random(12)
        words = [valid_word(rng, 0x30) for _ in range(2000)]

        assert {w[19] >> 5 for w in words} == {0, 1, 4, 5}
        assert {w[51] >> 5 for w in words} == {0, 1, 4, 5}
        assert {w[12] for w in words} == {0, 2, 3, 4}
        assert {w[35] for w in words} == {0, 1, 2}
        assert any(w[19] == 0x02 for w in words)

    @pytest.mark.parametrize("generation", ALL, ids=str)
    def test_words_of_dve_families_execute(self, generation: Generation) -> None:
        """Each runs without a fault on a machine of its generation."""
        rng = random.Random(13)
        for opcode in wired(generation):
            engine = engine_of(opcode)
            for _ in range(6):
                word = valid_word(rng, opcode, generation, Shape(executable=True))
                machine = Machine(generation.name)
                result = machine.run(Program.of(word, engine))

                assert result.fault is None, (word.hex(), result.fault)

    @given(valid_words(0x30))
    @settings(max_examples=200, deadline=None)
    def test_strategy(self, word: bytes) -> None:
        """The strategy draws valid words."""
        assert not Judge(MARIANA).findings(word)

    def test_refusals(self) -> None:
        """An opcode that is not made, or not wired, is refused with a sentence."""
        with pytest.raises(InputError, match=r"^opcode must be one of 0x30 .*, not 0x41$"):
            valid_word(random.Random(), 0x41)
        with pytest.raises(InputError, match=r"must be wired, and is not on cayman$"):
            valid_word(random.Random(), 0x30, CAYMAN)


class TestBrokenWords:
    def test_every_rule_has_a_breaker(self) -> None:
        """All rules of the made opcodes can be broken but NE0103, which is about another word."""
        codes = {r.code for r in RULES.values() if r.opcodes.intersection(OPCODES)}
        breakable = {code for g in ALL for code in breakable_codes(g)}

        assert codes - breakable == {"NE0103"}

    @pytest.mark.parametrize("generation", ALL, ids=str)
    def test_exactly_the_named_rule(self, generation: Generation) -> None:
        """A broken word breaks its rule and no other."""
        rng = random.Random(14)
        for code in breakable_codes(generation):
            for _ in range(25):
                broken = broken_word(rng, code, generation)
                found = Judge(generation, broken.engine).findings(broken.word)

                assert {f.code for f in found} == {code}, (broken.word.hex(), found)

    @pytest.mark.parametrize("generation", [GENERATIONS["cayman"], MARIANA], ids=str)
    def test_execution_refuses_it(self, generation: Generation) -> None:
        """The machine faults at the word, naming the rule, and writes nothing."""
        rng = random.Random(15)
        for code in breakable_codes(generation):
            broken = broken_word(rng, code, generation, executable=True)
            machine = Machine(generation.name)
            engine = broken.engine or engine_of(broken.word[0])
            result = machine.run(Program.of(broken.word, engine))

            assert result.fault is not None, (code, broken.word.hex())
            assert RULES[code].name_on(generation) in result.fault.names, result.fault
            assert not machine.read("sbuf:0+0:uint8[128,64]").any()

    @given(broken_words("NE0107"))
    @settings(max_examples=50, deadline=None)
    def test_strategy(self, broken: BrokenWord) -> None:
        """The strategy draws words that break the rule."""
        assert {f.code for f in Judge(MARIANA).findings(broken.word)} == {"NE0107"}

    def test_refusals(self) -> None:
        """A rule without a breaker on the generation is refused with those that have one."""
        with pytest.raises(InputError, match=r"^code must be one of NE0002 .* on mariana, not"):
            broken_word(random.Random(), "NE0103")
        with pytest.raises(InputError, match=r"on cayman, not 'NE0116'$"):
            broken_word(random.Random(), "NE0116", CAYMAN)


def test_without_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The strategies say what is missing; the generators do not need it."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)

    assert len(valid_word(random.Random(1), 0x30)) == 64
    with pytest.raises(NeuronEmuError, match=r"^strategies need hypothesis, which is not"):
        valid_words(0x30)
