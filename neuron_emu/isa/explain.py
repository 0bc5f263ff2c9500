"""Pages about rules and opcodes, for `neuron-emu explain` and for docs/rules.md.

`python -m neuron_emu.isa.explain` prints the chapter that docs/rules.md holds. A page is written
from the rule itself, and its examples are judged while it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import dedent, indent

from neuron_emu.generation import GENERATIONS, MARIANA, Generation, generation_named
from neuron_emu.isa.assembly import disassemble_word
from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.families import FAMILY_OF_OPCODE
from neuron_emu.isa.fields import field_text
from neuron_emu.isa.layout import rows_of
from neuron_emu.isa.opcodes import OPCODE_BY_NAME, OPCODES, engines_of, opcode_name
from neuron_emu.isa.program import Program
from neuron_emu.isa.rules import RULES, Rule, has_own_rules, rules_for
from neuron_emu.isa.rules.core import COMMON_OPCODES, Example
from neuron_emu.isa.rules.examples import bad_word, good_word, opcode_of
from neuron_emu.isa.rules.header import FIRST_WIRED
from neuron_emu.isa.rules.stream import STREAM_RULES, StreamRule
from neuron_emu.isa.validate import Judge, validate
from neuron_emu.policy import policy_rows

__all__ = ["opcode_page", "page_of", "rule_page", "rules_document", "stream_rule_page"]


def page_of(topic: str) -> str | None:
    """Return the page of a rule (code or name) or of an opcode (name or number), else None."""
    wanted = topic.replace("-", "_")
    pages = [
        rule_page(rule)
        for rule in RULES.values()
        if wanted.upper() == rule.code or wanted in rule.names.values()
    ]
    pages += [
        stream_rule_page(r) for r in STREAM_RULES if wanted.upper() == r.code or wanted == r.name
    ]
    if pages:
        return "\n".join(pages)
    opcode = _opcode(topic)
    return None if opcode is None else opcode_page(opcode)


def _opcode(topic: str) -> int | None:
    if topic in OPCODE_BY_NAME:
        return OPCODE_BY_NAME[topic]
    try:
        number = int(topic, 0)
    except ValueError:
        return None
    return number if number in OPCODES else None


# --- rules ------------------------------------------------------------------------------------


def rule_page(rule: Rule) -> str:
    """Return the page of a rule in Markdown."""
    other = {g: name for g, name in rule.names.items() if g is not None}
    lines = [f"## {rule.code} {rule.names[None]}", "", dedent("    " + rule.page).strip(), ""]
    if other:
        lines.append("- name elsewhere: " + ", ".join(f"{n} on {g}" for g, n in other.items()))
    lines.append(f"- opcodes: {_opcode_list(rule.opcodes)}")
    lines.append(f"- generations: {_generation_list(rule.generations)}")
    lines.append(f"- source: {rule.source} [{rule.tag}]")
    lines.extend(_policy_lines(rule.policy))
    if rule.requires:
        lines.append(f"- quiet while one of these has a finding: {', '.join(rule.requires)}")
    for example in rule.examples:
        lines.extend(["", *_example_lines(rule, example)])
    return "\n".join(lines) + "\n"


def _opcode_list(opcodes: frozenset[int]) -> str:
    if len(opcodes) >= COMMON_OPCODES:
        return "all"
    return ", ".join(f"{opcode_name(o)} ({o:#04x})" for o in sorted(opcodes))


def _generation_list(generations: frozenset[str]) -> str:
    if len(generations) == len(GENERATIONS):
        return "all"
    return ", ".join(name for name in GENERATIONS if name in generations)


def _policy_lines(names: tuple[str, ...]) -> Iterator[str]:
    for row in policy_rows():
        if row.name in names:
            yield f"- policy `{row.name}` ({', '.join(row.choices)}): {row.reason}"


def _example_lines(rule: Rule, example: Example) -> Iterator[str]:
    generation = generation_named(example.generation)
    engine = f" in a {example.engine.name.lower()} stream" if example.engine is not None else ""
    good, bad = good_word(rule, example), bad_word(rule, example)
    record = record_type_of(opcode_of(rule, example))
    yield f"Passes on {generation.name}{engine}:"
    yield ""
    yield f"    {disassemble_word(good, generation)}"
    yield ""
    values = [field_text(word, record, example.path) for word in (bad, good)]
    yield f"Fails with `{example.path}` {values[0]} instead of {values[1]}:"
    yield ""
    judge = Judge(generation, example.engine, example.policy)
    for finding in judge.findings_as(bad, _validator(rule, bad)):
        yield f"    {finding.severity}[{finding.code}] {finding.name}: {finding.message}"


def _validator(rule: Rule, word: bytes) -> int:
    """Return the opcode whose validator judges an example: the word's own if the rule has it."""
    return word[0] if word[0] in rule.opcodes else min(rule.opcodes)


def stream_rule_page(rule: type[StreamRule]) -> str:
    """Return the page of a stream rule in Markdown."""
    lines = [
        f"## {rule.code} {rule.name}",
        "",
        dedent("    " + (rule.__doc__ or "")).strip(),
        "",
        f"- a warning about a stream; `--allow {rule.name.replace('_', '-')}` leaves it out",
        f"- source: {rule.source} [{rule.tag}]",
        "",
        "Passes:",
        "",
        indent(rule.good, "    "),
        "",
        "Warns:",
        "",
        indent(rule.bad, "    "),
        "",
    ]
    for f in validate(Program.from_text(rule.bad)):
        lines.append(f"    word {f.index}: {f.severity}[{f.code}] {f.name}: {f.message}")
    return "\n".join(lines) + "\n"


# --- opcodes ----------------------------------------------------------------------------------


def opcode_page(opcode: int) -> str:
    """Return the page of an opcode in Markdown: where it exists, its layout, its rules."""
    info = OPCODES[opcode]
    members = frozenset(g.name for g in GENERATIONS.values() if opcode in g.opcodes)
    lines = [f"## {info.name} ({opcode:#04x})", ""]
    if info.aliases:
        lines.append(f"- also called: {', '.join(info.aliases)}")
    lines.append(f"- struct: {'not published' if info.struct == '?' else info.struct}")
    lines.append(f"- in the opcode enum of: {_generation_list(members)}")
    if opcode in FIRST_WIRED:
        wired = [g.name for g in GENERATIONS.values() if g.core_version >= FIRST_WIRED[opcode]]
        lines.append(f"- wired to a validator on: {', '.join(wired)}")
    lines.append(f"- engines: {_engines_text(opcode, info.engines != ())}")
    lines.extend(["", *_layout_lines(opcode), "", *_rule_lines(opcode)])
    return "\n".join(lines) + "\n"


def _engines_text(opcode: int, is_named: bool) -> str:
    if not is_named:
        return "no source names one; accepted on all"
    by_text: dict[str, list[str]] = {}
    for generation in GENERATIONS.values():
        if opcode not in generation.opcodes:
            continue
        engines = sorted(engines_of(opcode, generation.core_version))
        text = " ".join(e.name.lower() for e in engines) or "none"
        by_text.setdefault(text, []).append(generation.name)
    if len(by_text) == 1:
        return next(iter(by_text))
    return "; ".join(f"{text} on {', '.join(names)}" for text, names in by_text.items())


def _layout_lines(opcode: int) -> Iterator[str]:
    if opcode not in FAMILY_OF_OPCODE:
        yield "The layout behind header and events is not described."
        return
    yield "| bytes | field | what |"
    yield "|---|---|---|"
    for row in rows_of(record_type_of(opcode)):
        last = row.offset + row.size - 1
        place = str(row.offset) if row.size == 1 else f"{row.offset} to {last}"
        yield f"| {place} | {row.name} | {row.doc} |"


def _rule_lines(opcode: int) -> Iterator[str]:
    if not has_own_rules(opcode):
        yield "Judged by opcode, engine, header and events alone."
        return
    newest = [g for g in GENERATIONS.values() if rules_for(opcode, g.name)]
    generation: Generation = MARIANA if MARIANA in newest else newest[-1]
    yield f"Rules on {generation.name}, each with a page:"
    yield ""
    for rule in rules_for(opcode, generation.name):
        yield f"- {rule.code} {rule.name_on(generation)}"


# --- the chapter ------------------------------------------------------------------------------

_INTRODUCTION = """\
# Rules

Each rule is one conjunct of a validator, or a plain rule that no header names.
`neuron-emu explain CODE` prints a page of this chapter.
A word is legal when it breaks no rule; rules about streams are warnings.

What is covered: the opcodes below have rules of their own.
All other words are judged by opcode, engine, header and events (NE0001, NE0002, NE0101, NE0102),
and `validate` names them.
"""


def _coverage() -> Iterator[str]:
    yield "| opcode | " + " | ".join(GENERATIONS) + " |"
    yield "|---" * (len(GENERATIONS) + 1) + "|"
    for opcode in sorted(OPCODES):
        if not has_own_rules(opcode):
            continue
        cells = [_cell(opcode, generation) for generation in GENERATIONS.values()]
        yield f"| {opcode_name(opcode)} ({opcode:#04x}) | " + " | ".join(cells) + " |"


def _cell(opcode: int, generation: Generation) -> str:
    if opcode not in generation.opcodes:
        return "no opcode"
    if generation.core_version < FIRST_WIRED.get(opcode, 0):
        return "not wired"
    return f"{len(rules_for(opcode, generation.name))} rules"


def rules_document() -> str:
    """Return the chapter about all rules in Markdown."""
    pages: Iterable[str] = [rule_page(RULES[code]) for code in sorted(RULES)]
    stream_pages = [stream_rule_page(rule) for rule in STREAM_RULES]
    coverage = "\n".join(_coverage()) + "\n"
    return "\n".join([_INTRODUCTION, coverage, *pages, *stream_pages])


if __name__ == "__main__":
    print(rules_document(), end="")
