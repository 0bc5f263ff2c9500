"""Every rule: its examples, its page, its source."""

from __future__ import annotations

import pytest

from neuron_emu.generation import generation_named
from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.layout import spans_of
from neuron_emu.isa.rules import RULES, Rule
from neuron_emu.isa.rules.core import Example
from neuron_emu.isa.rules.examples import bad_word, good_word, opcode_of
from neuron_emu.isa.validate import Judge

PAIRS = [
    pytest.param(rule, example, id=f"{rule.code}-{example.path}-{number}")
    for rule in RULES.values()
    for number, example in enumerate(rule.examples)
]


@pytest.mark.parametrize(("rule", "example"), PAIRS)
def test_good_and_bad_word(rule: Rule, example: Example) -> None:
    """The good word has no finding; the bad one, one field away, breaks this rule alone."""
    judge = Judge(generation_named(example.generation), example.engine, example.policy)
    good, bad = good_word(rule, example), bad_word(rule, example)
    span = spans_of(record_type_of(opcode_of(rule, example)))[example.path]
    validator = opcode_of(rule, example) if rule.code == "NE0103" else bad[0]

    assert judge.findings(good) == ()
    assert {f.code for f in judge.findings_as(bad, validator)} == {rule.code}
    differing = [i for i in range(64) if good[i] != bad[i]]
    assert all(span.first_byte <= i <= span.last_byte for i in differing)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rule_is_documented(rule: Rule) -> None:
    """A rule has an example, a page that starts with a sentence, a source with a tag."""
    first = rule.page.strip().splitlines()[0]

    assert rule.examples
    assert first.endswith((".", ","))
    assert ".md " in rule.source
    assert rule.tag.split()[0].rstrip(";,:") in ("observed", "inferred", "unknown")
    assert set(rule.requires) <= set(RULES)
