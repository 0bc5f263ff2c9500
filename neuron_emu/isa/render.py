"""Findings as text for people and tools: full, concise, json, sarif and github.

JSON has one object for each finding and word. The other forms gather findings that say the same
thing about the same field and give the number of words, so that a fault of an emitter that is in
a hundred thousand words is told once.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
from attrs import define, field

from neuron_emu import __version__
from neuron_emu.generation import Generation
from neuron_emu.isa.assembly import disassemble_word
from neuron_emu.isa.diagnostics import ERROR, WARNING, Finding
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.program import Stream
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.isa.rules import RULES
from neuron_emu.isa.rules.stream import STREAM_RULES

__all__ = [
    "FORMATS",
    "Group",
    "StreamReport",
    "concise",
    "full",
    "github",
    "json_pieces",
    "matrix",
    "sarif",
    "summary",
]

FORMATS = ("full", "concise", "json", "sarif", "github")
GROUP_LIMIT = 1000
"""Groups kept for a stream; findings beyond them are counted by rule."""
PLACES_SHOWN = 5
_COLOURS = {ERROR: "red", WARNING: "yellow"}


@define(eq=False)
class Group:
    """Findings that say the same: the first of them, how many, and the first few places."""

    first: Finding
    count: int = 0
    places: list[int] = field(factory=list)

    def add(self, finding: Finding) -> None:
        """Count one more."""
        self.count += 1
        if len(self.places) <= PLACES_SHOWN:
            self.places.append(finding.index or 0)

    def others_text(self) -> str:
        """Say in which other words the same holds; empty when there is none."""
        if self.count < 2:
            return ""
        shown = ", ".join(map(str, self.places[1:]))
        more = "" if self.count <= len(self.places) else ", ..."
        return f"{self.count - 1:,} more word{'s' * (self.count > 2)}: {shown}{more}"


@define(eq=False)
class StreamReport:
    """What was found in one stream on one generation, gathered."""

    stream: Stream
    generation: Generation
    groups: dict[tuple[str, ...], Group] = field(factory=dict)
    severities: Counter[str] = field(factory=Counter)
    beyond: Counter[str] = field(factory=Counter)
    """Findings beyond the limit of groups, by code."""

    def add(self, finding: Finding) -> None:
        """Gather one finding."""
        self.severities[finding.severity] += 1
        key = (finding.code, finding.field, finding.actual, finding.expected, finding.message)
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) >= GROUP_LIMIT:
                self.beyond[finding.code] += 1
                return
            group = self.groups[key] = Group(finding)
        group.add(finding)


# --- text -------------------------------------------------------------------------------------


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def summary(report: StreamReport) -> str:
    """Return the closing line of a stream."""
    found = [
        _plural(n, severity) for severity in (ERROR, WARNING) if (n := report.severities[severity])
    ]
    told = " and ".join(found) or "no finding"
    words = _plural(len(report.stream), "word")
    return f"{report.stream.name}: {told} in {words} ({report.generation.name})"


def concise(report: StreamReport) -> Iterator[str]:
    """Yield one line for each group."""
    for group in report.groups.values():
        f = group.first
        label = click.style(f.severity, fg=_COLOURS.get(f.severity), bold=True)
        others = f" (and {group.others_text()})" if group.count > 1 else ""
        yield f"{f.file}:{f.index}: {label}[{f.code}] {f.name}: {f.message}{others}"
    yield from _beyond_lines(report)


def full(report: StreamReport) -> Iterator[str]:
    """Yield the lines of each group with the annotated bytes of its first word, then a summary."""
    for group in report.groups.values():
        yield from _full_group(report, group)
        yield ""
    yield from _beyond_lines(report)
    yield summary(report)


def _beyond_lines(report: StreamReport) -> Iterator[str]:
    for code, count in sorted(report.beyond.items()):
        yield f"{report.stream.name}: {_plural(count, 'further finding')} of {code}, not listed"


def _full_group(report: StreamReport, group: Group) -> Iterator[str]:
    f = group.first
    colour = _COLOURS.get(f.severity)
    label = click.style(f"{f.severity}[{f.code}]", fg=colour, bold=True)
    word = report.stream[f.index or 0]
    engine = report.stream.engine.name.lower()
    bar = click.style("   |", fg="blue")
    yield f"{label} {f.name}: {click.style(f.message, bold=True)}"
    yield (
        f"{click.style('  -->', fg='blue')} {f.file}: word {f.index} at {f.offset or 0:#x}"
        f" ({opcode_name(f.opcode)}, {engine}, {f.generation})"
    )
    yield f"{bar} {disassemble_word(word, report.generation)}"
    yield from (f"{bar} {line}" for line in _annotated(word, f, colour))
    yield f"   = legal: {f.expected}"
    if group.count > 1:
        yield f"   = also in {group.others_text()}"
    yield f"   = page: neuron-emu explain {f.code}"


def _annotated(word: bytes, finding: Finding, colour: str | None) -> Iterator[str]:
    """Yield four rows of sixteen bytes, and under the field's bytes what they are."""
    first, last = finding.span
    for start in range(0, WORD_BYTES, 16):
        cells = [f"{byte:02x}" for byte in word[start : start + 16]]
        yield f"{start:02x}: " + "  ".join(" ".join(cells[i : i + 4]) for i in range(0, 16, 4))
        low, high = max(first, start), min(last, start + 15)
        if low > high:
            continue
        marks = " " * (4 + _column(low - start)) + "^" * (
            _column(high - start) - _column(low - start) + 2
        )
        note = f" {_field_note(finding)}" if high == last else ""
        yield click.style(marks, fg=colour, bold=True) + note


def _column(byte: int) -> int:
    return 3 * byte + byte // 4


def _field_note(f: Finding) -> str:
    bits = "" if f.bits is None else f" (bits {f.bits[0]} to {f.bits[1]})"
    return f"{f.field}{bits}: {f.actual}"


# --- tools ------------------------------------------------------------------------------------


def json_pieces(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the pieces of one JSON list, an object a line."""
    opening = "["
    for finding in findings:
        yield f"{opening}\n{json.dumps(finding.as_dict())}"
        opening = ","
    yield "[]\n" if opening == "[" else "\n]\n"


def github(reports: Iterable[StreamReport]) -> Iterator[str]:
    """Yield a workflow command for each group; GitHub shows it beside the file."""
    for report in reports:
        for group in report.groups.values():
            f = group.first
            command = {ERROR: "error", WARNING: "warning"}.get(f.severity, "notice")
            others = f" (and {group.others_text()})" if group.count > 1 else ""
            place = (
                f"word {f.index} at {f.offset or 0:#x} ({opcode_name(f.opcode)}, {f.generation})"
            )
            title = _github_property(f"{f.code} {f.name}")
            text = _github_text(f"{place}: {f.message}{others}")
            yield f"::{command} file={_github_property(f.file or '')},title={title}::{text}"


def _github_text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _github_property(text: str) -> str:
    return _github_text(text).replace(":", "%3A").replace(",", "%2C")


def sarif(reports: Iterable[StreamReport]) -> str:
    """Return a SARIF 2.1.0 log with one result for each group and its number of words."""
    listed = list(reports)
    rules = _sarif_rules()
    numbers = {rule["id"]: number for number, rule in enumerate(rules)}
    driver = {"name": "neuron-emu", "semanticVersion": __version__, "rules": rules}
    results = [
        _sarif_result(group, report.stream, numbers)
        for report in listed
        for group in report.groups.values()
    ]
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=2) + "\n"


def _sarif_rules() -> list[dict[str, Any]]:
    entries: list[tuple[str, str, str, str, str]] = [
        (r.code, r.names[None], r.page, f"{r.source} [{r.tag}]", "error") for r in RULES.values()
    ]
    entries += [
        (s.code, s.name, s.__doc__ or "", f"{s.source} [{s.tag}]", "warning") for s in STREAM_RULES
    ]
    return [
        {
            "id": code,
            "name": name,
            "shortDescription": {"text": page.strip().splitlines()[0]},
            "fullDescription": {"text": " ".join(page.split())},
            "defaultConfiguration": {"level": level},
            "properties": {"source": source},
        }
        for code, name, page, source, level in sorted(entries)
    ]


def _sarif_result(group: Group, stream: Stream, numbers: dict[str, int]) -> dict[str, Any]:
    f = group.first
    region = {"byteOffset": f.offset, "byteLength": WORD_BYTES}
    uri = quote(os.fsencode(Path(stream.name).as_posix()))
    return {
        "ruleId": f.code,
        "ruleIndex": numbers[f.code],
        "level": f.severity,
        "message": {"text": f.message},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}},
        ],
        "occurrenceCount": group.count,
        "properties": {
            "name": f.name,
            "engine": stream.engine.name.lower(),
            "index": f.index,
            "opcode": f.opcode,
            "generation": f.generation,
            "field": f.field,
            "actual": f.actual,
            "expected": f.expected,
        },
    }


# --- generations side by side -----------------------------------------------------------------


def matrix(reports: list[list[StreamReport]]) -> Iterator[str]:
    """Yield a table, stream by generation, then what blocks each stream where.

    `reports` has a row for each stream with a report for each generation.
    """
    generations = [report.generation.name for report in reports[0]]
    names = [row[0].stream.name for row in reports]
    width = max(map(len, names))
    yield "  ".join([" " * width, *(f"{name:12}" for name in generations)]).rstrip()
    for name, row in zip(names, reports, strict=True):
        cells = [_cell(report) for report in row]
        yield "  ".join([f"{name:{width}}", *cells]).rstrip()
    for row in reports:
        for report in row:
            yield from _blockers(report)


def _cell(report: StreamReport) -> str:
    errors = report.severities[ERROR]
    text = f"{_plural(errors, 'error') if errors else 'legal':12}"
    return click.style(text, fg="red" if errors else "green")


def _blockers(report: StreamReport) -> Iterator[str]:
    counts: Counter[str] = Counter(report.beyond)
    firsts: dict[str, Finding] = {}
    for group in report.groups.values():
        if group.first.severity == ERROR:
            counts[group.first.code] += group.count
            firsts.setdefault(group.first.code, group.first)
    if firsts:
        yield ""
        yield f"{report.stream.name} on {report.generation.name}:"
    for code, f in firsts.items():
        more = f", {counts[code]:,} findings" if counts[code] > 1 else ""
        yield f"  {code} {f.name} (first at word {f.index}{more}): {f.message}"


TEXT_FORMS: dict[str, Callable[[StreamReport], Iterator[str]]] = {"full": full, "concise": concise}
