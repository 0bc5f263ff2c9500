"""The five formats."""

from __future__ import annotations

import json
import re

import pytest

from neuron_emu.generation import GENERATIONS, MARIANA
from neuron_emu.isa import render
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.families.tensor_scalar import TensorScalar
from neuron_emu.isa.fields import write_field
from neuron_emu.isa.program import Program
from neuron_emu.isa.rules import RULES
from neuron_emu.isa.rules.examples import bad_word, standard_word
from neuron_emu.isa.rules.stream import STREAM_RULES
from neuron_emu.isa.stream_pass import findings_of_stream
from neuron_emu.isa.validate import Judge

BAD = write_field(standard_word(0x30), TensorScalar, "num_active_channels", 64)
BAD = write_field(BAD, TensorScalar, "src.start.partition_offset", 32 * 0x40000)


def report(data: bytes, name: str = "x y.bin") -> render.StreamReport:
    """Gather the findings of one DVE stream on mariana."""
    (stream,) = Program.of(data, Engine.DVE, name).streams
    gathered = render.StreamReport(stream, MARIANA)
    for finding in findings_of_stream(stream, Judge(MARIANA, Engine.DVE)):
        gathered.add(finding)
    return gathered


def plain(lines: object) -> list[str]:
    """Remove colours."""
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]  # type: ignore[attr-defined]


def test_full() -> None:
    """The text alone is enough: place, value, legal values, bytes, page."""
    lines = plain(render.full(report(standard_word(0x23) + BAD)))

    assert lines == [
        "error[NE0113] check_m3d_active_channels: src start partition must be 0 or 64 for 64"
        " channels, not 32 (start_addr_active_channels)",
        "  --> x y.bin: word 1 at 0x40 (EXPONENTIAL, dve, mariana)",
        "   | EXPONENTIAL src=fp32@0x800000[1,8,8][8,1,1] dst=fp32@0x2000[1,8,8][8,1,1] channels=64"
        " max_value=fp32@0.000000 accumulator_cmd=IDLE",
        "   | 00: 30 10 00 00  00 00 00 00  00 00 00 00  00 00 00 00",
        "   | 10: 00 00 80 00  01 00 08 00  08 00 08 00  01 00 01 00",
        "   |     ^^^^^^^^^^^ src.start.partition_offset (bits 0 to 28): 32",
        "   | 20: 0a 0a 40 00  00 00 00 00  00 00 00 00  00 00 00 00",
        "   | 30: 00 20 00 00  01 00 08 00  08 00 08 00  01 00 01 00",
        "   = legal: 0 or 64; nearest: 0 (address 0x0)",
        "   = page: neuron-emu explain NE0113",
        "",
        "x y.bin: 1 error in 2 words (mariana)",
    ]


def test_marks_cover_the_bytes() -> None:
    """The marks stand under the bytes of the span, on every row that it touches."""
    word = standard_word(0xA4)[:44] + bytes([1]) * 20
    lines = plain(render.full(report(word)))
    rows = [line[9:] for line in lines if re.match(r"   \| [0-3]0: ", line)]
    marks = [line[9:] for line in lines if line.startswith("   |     ")]

    assert marks[0] == " " * 39 + "^" * 11
    assert marks[1].startswith("^" * len(rows[3]) + " reserved2: 0x0101")


def test_repeated_word_is_told_once() -> None:
    """Case 29: a summary with a count in the text forms."""
    gathered = report(standard_word(0x23) + BAD * 100_000)
    (line,) = plain(render.concise(gathered))
    full = plain(render.full(gathered))

    assert line.endswith("(and 99,999 more words: 2, 3, 4, 5, 6, ...)")
    assert line.startswith("x y.bin:1: error[NE0113] check_m3d_active_channels: src start")
    assert "   = also in 99,999 more words: 2, 3, 4, 5, 6, ..." in full
    assert full[-1] == "x y.bin: 100,000 errors in 100,001 words (mariana)"


def test_groups_are_bounded() -> None:
    """A stream of ever new faults keeps a thousand groups and counts the rest."""
    words = [
        write_field(standard_word(0x30), TensorScalar, "src.start.partition_offset", 4 * i + 1)
        for i in range(1500)
    ]
    gathered = report(standard_word(0x23) + b"".join(words))

    assert len(gathered.groups) == render.GROUP_LIMIT
    assert "x y.bin: 500 further findings of NE0114, not listed" in plain(render.concise(gathered))


def test_json() -> None:
    """One list with an object a finding and word; `[]` if there is none."""
    (stream,) = Program.of(standard_word(0x23) + BAD * 3, Engine.DVE, "x.bin").streams
    findings = list(findings_of_stream(stream, Judge(MARIANA, Engine.DVE)))
    read = json.loads("".join(render.json_pieces(findings)))

    assert "".join(render.json_pieces([])) == "[]\n"
    assert [item["index"] for item in read] == [1, 2, 3]
    assert read[0] == {
        "file": "x.bin",
        "engine": "dve",
        "index": 1,
        "offset": 64,
        "opcode": 48,
        "generation": "mariana",
        "code": "NE0113",
        "name": "check_m3d_active_channels",
        "severity": "error",
        "field": "src.start.partition_offset",
        "span": [16, 19],
        "bits": [0, 28],
        "actual": "32",
        "expected": "0 or 64; nearest: 0 (address 0x0)",
        "message": "src start partition must be 0 or 64 for 64 channels, not 32"
        " (start_addr_active_channels)",
    }


def test_github() -> None:
    """A workflow command a group, with the escapes of properties and of text."""
    lines = list(render.github([report(standard_word(0x30) + BAD, "a:b,c%.bin")]))

    assert lines[1].startswith(
        "::error file=a%3Ab%2Cc%25.bin,title=NE0113 check_m3d_active_channels::word 1 at 0x40"
        " (EXPONENTIAL, mariana): src start partition must be"
    )
    assert lines[0].startswith("::warning file=")


class TestSarif:
    """SARIF 2.1.0, checked against the properties that the standard requires."""

    log = json.loads(render.sarif([report(standard_word(0x30) + BAD * 3)]))

    def test_log(self) -> None:
        """sarifLog needs version and runs; run needs tool.driver.name (3.13, 3.14, 3.18, 3.19)."""
        (run,) = self.log["runs"]

        assert self.log["version"] == "2.1.0"
        assert run["tool"]["driver"]["name"] == "neuron-emu"
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", run["tool"]["driver"]["semanticVersion"])

    def test_rules(self) -> None:
        """Every rule is described, with a unique id and texts (3.49)."""
        rules = self.log["runs"][0]["tool"]["driver"]["rules"]

        assert [r["id"] for r in rules] == sorted([*RULES, *(s.code for s in STREAM_RULES)])
        for r in rules:
            assert r["shortDescription"]["text"]
            assert r["fullDescription"]["text"]
            assert r["defaultConfiguration"]["level"] in ("error", "warning")

    def test_results(self) -> None:
        """A result names its rule by id and index, has a message, level and location (3.27)."""
        run = self.log["runs"][0]
        rules = run["tool"]["driver"]["rules"]

        for result in run["results"]:
            (location,) = result["locations"]
            region = location["physicalLocation"]["region"]

            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
            assert result["level"] in ("none", "note", "warning", "error")
            assert result["message"]["text"]
            assert location["physicalLocation"]["artifactLocation"]["uri"] == "x%20y.bin"
            assert (region["byteOffset"], region["byteLength"]) == (
                64 * (result["ruleId"] == "NE0113"),
                64,
            )
        assert [r["occurrenceCount"] for r in run["results"]] == [1, 3]


def test_matrix() -> None:
    """Streams by generations, then what blocks which stream where."""
    (stream,) = Program.of(standard_word(0x30), Engine.DVE, "x.bin").streams
    row = []
    for generation in GENERATIONS.values():
        gathered = render.StreamReport(stream, generation)
        for finding in findings_of_stream(stream, Judge(generation, Engine.DVE)):
            gathered.add(finding)
        row.append(gathered)
    lines = plain(render.matrix([row]))

    assert lines[0].split() == list(GENERATIONS)
    assert lines[1].split() == ["x.bin", "1", "error", "1", "error", "legal", "legal", "legal"]
    assert "x.bin on sunda:" in lines
    assert "x.bin on mariana:" not in lines


@pytest.mark.parametrize("code", [code for code in RULES if code != "NE0103"])
def test_every_finding_is_rendered(code: str) -> None:
    """Every rule's bad word goes through every format; NE0103 needs another opcode's word."""
    (example, *_) = RULES[code].examples
    word = bad_word(RULES[code], example)
    (stream,) = Program.of(word, example.engine or Engine.DVE).streams
    judge = Judge(GENERATIONS[example.generation], stream.engine, example.policy)
    gathered = render.StreamReport(stream, judge.generation)
    for finding in findings_of_stream(stream, judge):
        gathered.add(finding)

    assert list(render.full(gathered))
    assert list(render.concise(gathered))
    assert list(render.github([gathered]))
    assert json.loads(render.sarif([gathered]))
