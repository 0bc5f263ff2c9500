"""The validator's doors: any bytes, records, programs, engines, memory of seen words."""

from __future__ import annotations

import random

import pytest

from neuron_emu.errors import InputError
from neuron_emu.generation import GENERATIONS, MARIANA, MAVERICK, SUNDA
from neuron_emu.isa.codec import decode, record_type_of
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.layout import spans_of
from neuron_emu.isa.program import Program
from neuron_emu.isa.rules.examples import standard_word
from neuron_emu.isa.validate import Judge, findings_of_word, validate
from neuron_emu.policy import Policy


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=str)
def test_any_bytes_are_judged(generation: object) -> None:
    """Random words, of every opcode, never raise; every finding points into its word."""
    rng = random.Random(4)
    for number in range(2048):
        opcode = number % 256
        word = bytes([opcode]) + rng.randbytes(63)
        for finding in findings_of_word(word, generation, Engine.DVE):  # type: ignore[arg-type]
            span = spans_of(record_type_of(opcode))[finding.field]

            assert finding.span == (span.first_byte, span.last_byte)
            assert finding.message
            assert finding.actual
            assert finding.expected


def test_wrong_length() -> None:
    """A word is 64 bytes."""
    with pytest.raises(InputError, match=r"^a word must be 64 bytes, not 63$"):
        findings_of_word(bytes(63))


def test_generation_by_name() -> None:
    """As Machine takes it."""
    word = standard_word(0x30)

    assert validate(word, "mariana") == []
    assert [f.name for f in validate(word, "sunda")] == ["opcode_wired"]


def test_invalid_opcode() -> None:
    """0xff is a member of the enum and no instruction."""
    word = bytes([0xFF, 0x10]) + bytes(62)

    assert [f.name for f in findings_of_word(word)] == ["has_valid_neuron_header"]


def test_opcodes_by_generation() -> None:
    """0x87 was retired after sunda, 0xf4 came with maverick."""
    words = {opcode: bytes([opcode, 0x10]) + bytes(62) for opcode in (0x87, 0xF4)}

    assert not findings_of_word(words[0x87], SUNDA)
    assert findings_of_word(words[0x87], MARIANA)
    assert findings_of_word(words[0xF4], MARIANA)
    assert not findings_of_word(words[0xF4], MAVERICK)


def test_words_without_events() -> None:
    """COMPACT_CONTROL_INST of maverick has neither a length byte nor events."""
    word = bytes([0xB6, 0x00]) + bytes([0x77]) * 62

    assert not findings_of_word(word, MAVERICK)


def test_record_and_program() -> None:
    """A decoded record is judged as its bytes; a program's findings know their place."""
    bad = standard_word(0x30)[:36] + b"\x04" + standard_word(0x30)[37:]
    program = Program.of(standard_word(0xA4) + bad, Engine.DVE, "x.bin")
    (alone,), (placed,) = validate(decode(bad)), validate(program)

    assert alone.index is None
    assert (placed.file, placed.engine, placed.index, placed.offset) == ("x.bin", Engine.DVE, 1, 64)
    assert placed.message == alone.message


def test_engine() -> None:
    """EXPONENTIAL belongs to the DVE; the table opcodes to ACT and DVE, by policy."""
    refuse = Policy(dve_act_ops="refuse")
    load = standard_word(0x23)

    assert [f.name for f in findings_of_word(standard_word(0x30), MARIANA, Engine.ACT)] == [
        "opcode_on_engine"
    ]
    assert not findings_of_word(load, MARIANA, Engine.DVE)
    assert findings_of_word(load, MARIANA, Engine.DVE, refuse)
    assert not findings_of_word(load, MARIANA, Engine.ACT, refuse)
    assert not findings_of_word(load, MAVERICK, Engine.DVE, refuse)
    assert findings_of_word(load, MARIANA, Engine.PE)


def test_seen_word_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time a word is judged nothing runs."""
    judge = Judge(MARIANA)
    word = standard_word(0x30)[:36] + b"\x04" + standard_word(0x30)[37:]
    first = judge.findings(word)
    monkeypatch.setattr(Judge, "findings_as", None)

    assert judge.findings(bytes(word)) is first


def test_keys_of_the_contract() -> None:
    """The JSON object has exactly the published keys, in order."""
    word = standard_word(0x30)[:34] + b"\x00" + standard_word(0x30)[35:]
    (finding,) = findings_of_word(word)

    assert list(finding.as_dict()) == [
        "file",
        "engine",
        "index",
        "offset",
        "opcode",
        "generation",
        "code",
        "name",
        "severity",
        "field",
        "span",
        "bits",
        "actual",
        "expected",
        "message",
    ]
    assert finding.as_dict()["span"] == [34, 34]
    assert finding.as_dict()["opcode"] == 0x30


# Words with two faults, each of a rule of its own: fixing one must not be how the other shows.
TWO_FAULTS = [
    (
        "9d100000000000000000000000100000010001000800010000300000010001000800010006040003aa0a810a"
        "0000000000200000010001000800010000000000",
        ["NE0603", "NE0607"],
    ),
    (
        "49100000000000000000000000000000000000000000000000000000010000000a0080000000000078563412"
        "0120000001000100010001000800010001000100",
        ["NE0605", "NE0621"],
    ),
    (
        "46100000000000000000000000100000010001000100010008000100010001000a0a80000001000000000000"
        "0020000001000100010001000400010001000100",
        ["NE0614", "NE0615"],
    ),
]


@pytest.mark.parametrize(("word", "codes"), TWO_FAULTS)
def test_independent_faults_are_both_listed(word: str, codes: list[str]) -> None:
    """design.md 5: validate lists all."""
    findings = findings_of_word(bytes.fromhex(word))

    assert sorted({finding.code for finding in findings}) == codes
