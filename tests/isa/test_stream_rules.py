"""Rules across words, and the pass that shows them the words."""

from __future__ import annotations

import random

import pytest

from neuron_emu.errors import InputError
from neuron_emu.generation import MARIANA
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.bulk import BLOCK_WORDS
from neuron_emu.isa.diagnostics import WARNING
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program
from neuron_emu.isa.rules import RULES
from neuron_emu.isa.rules.examples import standard_word
from neuron_emu.isa.rules.stream import STREAM_RULES, StreamRule
from neuron_emu.isa.stream_pass import allowed_names, findings_of_stream
from neuron_emu.isa.validate import Judge, validate

EXP = "EXPONENTIAL src=fp32@0x1000[1][8] dst=fp32@0x2000[1][8] channels=128"
LOAD = "ACT_TABLE_LOAD table_sel=0"
DRAIN = "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=128"
EXIT = "PSEUDO_INST kind=EXIT"
ZERO = f".word {'00' * 64}"


def told(*lines: str, engine: Engine = Engine.DVE) -> list[tuple[str, int | None]]:
    """Return names and words of the findings of a listing."""
    found = validate(Program.from_text("\n".join(lines), engine))
    return [(f.name, f.index) for f in found]


@pytest.mark.parametrize("rule", STREAM_RULES, ids=lambda r: r.name)
class TestEveryRule:
    def test_examples(self, rule: type[StreamRule]) -> None:
        """The good listing is clean; the bad one has this warning alone, where it should be."""
        (found,) = validate(Program.from_text(rule.bad))

        assert validate(Program.from_text(rule.good)) == []
        assert (found.code, found.name, found.index) == (rule.code, rule.name, rule.bad_index)
        assert found.severity == WARNING

    def test_allow(self, rule: type[StreamRule]) -> None:
        """The name, with hyphens too, and the code leave the rule out."""
        program = Program.from_text(rule.bad)

        for name in (rule.name, rule.name.replace("_", "-"), rule.code):
            assert validate(program, allow=[name]) == []

    def test_page(self, rule: type[StreamRule]) -> None:
        """A rule has a page, a source and a tag, and a code of its own."""
        assert (rule.__doc__ or "").strip().splitlines()[0].endswith((".", ","))
        assert ".md " in rule.source
        assert rule.tag
        assert rule.code not in RULES


def test_allow_names_what_exists() -> None:
    """An unknown name is refused with the names that exist."""
    with pytest.raises(InputError, match=r"must name a stream rule \(undefined_accumulator, .*'x'"):
        allowed_names(["x"])


class TestAccumulator:
    def test_idle_leaves_it_undefined(self) -> None:
        """Case 4: the warning stands at the ACCUMULATE word, and once."""
        found = validate(
            Program.from_text(
                "\n".join(
                    [
                        LOAD,
                        f"{EXP} accumulator_cmd=ZERO_ACCUMULATE",
                        EXP,
                        f"{EXP} accumulator_cmd=ACCUMULATE",
                        DRAIN,
                    ]
                )
            )
        )

        assert [(f.name, f.index) for f in found] == [("undefined_accumulator", 3)]
        assert "the IDLE word 2 has left it so" in found[0].message

    def test_drain_of_nothing(self) -> None:
        """Reading an accumulator that nothing defined is told at the read."""
        assert told(DRAIN) == [("undefined_accumulator", 0)]

    def test_overwritten_seeds(self) -> None:
        """Two equal LOAD_ACCUMULATE words in a row: the first seed is lost."""
        load = f"{EXP} accumulator_cmd=LOAD_ACCUMULATE reduce_init=fp32@1.0"

        assert told(LOAD, load, load, DRAIN) == [("undrained_accumulator", 1)]

    def test_tensor_scalar_idle_keeps_it(self) -> None:
        """0x43 does not touch the accumulator."""
        scale = "TENSOR_SCALAR src=fp32@0x1000[1][8] dst=fp32@0x2000[1][8] channels=128 ops=ADD"
        zero = f"{EXP} accumulator_cmd=ZERO_ACCUMULATE"

        assert told(LOAD, zero, scale, DRAIN) == []


class TestEnd:
    def test_zero_words_behind_exit_are_padding(self) -> None:
        """Behind EXIT or HALT they are a warning; elsewhere each is an error as well."""
        error = "has_valid_neuron_header"

        assert told("NOP", EXIT, ZERO, ZERO) == [("zero_padding", 2)]
        assert told("HALT", ZERO) == [("zero_padding", 1)]
        assert told("NOP", ZERO) == [(error, 1), ("zero_padding", 1)]
        assert told("NOP", EXIT, ZERO, "NOP") == [(error, 2), ("words_after_exit", 1)]

    def test_count_of_words_after_exit(self) -> None:
        """Zero padding is not counted."""
        (after, padding) = validate(Program.from_text("\n".join([EXIT, "NOP", "NOP", ZERO])))

        assert after.message == "2 words after EXIT will never execute"
        assert padding.name == "zero_padding"


def test_invalid_words_are_not_seen() -> None:
    """A word with an error does not execute, so it loads no table and defines nothing."""
    bad_load = assemble(LOAD)[:35] + b"\x63" + assemble(LOAD)[36:]
    program = Program.of(bad_load + standard_word(0x30))

    assert [f.code for f in validate(program)] == ["NE0401", "NE0903"]


def test_case_29() -> None:
    """The same invalid word 100,000 times is one finding a word."""
    word = standard_word(0x30)[:36] + b"\x04" + standard_word(0x30)[37:]
    found = validate(Program.of(word * 100_000))

    assert len(found) == 100_000
    assert [found[i].index for i in (0, 1, 99_999)] == [0, 1, 99_999]
    assert found[99_999].offset == 99_999 * 64
    assert {f.name for f in found} == {"has_valid_exponential_ops"}


def test_pass_is_word_by_word_across_blocks() -> None:
    """Warnings do not depend on where the blocks of the pass end."""
    rng = random.Random(5)
    lines = [
        LOAD,
        EXP,
        *(f"{EXP} accumulator_cmd={c}ACCUMULATE" for c in ("", "ZERO_", "LOAD_")),
        DRAIN,
    ]
    choices = [assemble(line) for line in lines]
    words = [rng.choice(choices) for _ in range(BLOCK_WORDS + 2000)]
    whole = findings_of_stream(Program.of(b"".join(words)).streams[0], Judge(MARIANA, Engine.DVE))
    slow = _word_by_word(words)

    assert sorted((f.index, f.code) for f in whole) == sorted(slow)


def _word_by_word(words: list[bytes]) -> list[tuple[int, str]]:
    """Repeat rules NE0901 to NE0903 in the plainest way, from the command bytes."""
    found: list[tuple[int, str]] = []
    is_defined, has_table, seeded = False, False, None
    for index, word in enumerate(words):
        if word[0] == 0x23:
            has_table = True
        elif word[0] == 0x9B:
            if not is_defined:
                found.append((index, "NE0901"))
            is_defined, seeded = True, None
        else:
            if not has_table:
                found.append((index, "NE0903"))
                has_table = True
            command = word[12]
            if command == 2 and not is_defined:
                found.append((index, "NE0901"))
            if command != 2 and seeded is not None:
                found.append((seeded, "NE0902"))
            if command != 2:
                seeded = index if command == 4 else None
            is_defined = command != 0
    return found + ([(seeded, "NE0902")] if seeded is not None else [])
