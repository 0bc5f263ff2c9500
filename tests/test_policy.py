"""Policy rows: reading them, and the page that lists them."""

from __future__ import annotations

import pytest

from neuron_emu.errors import InputError
from neuron_emu.policy import Policy, policy_page, policy_rows
from tests.command import ROOT

PAGE = ROOT / "docs" / "policy.md"


def test_page_lists_every_row():
    """docs/policy.md is written by `policy_page`; write it anew when a row changes."""
    assert PAGE.read_text() == policy_page()


def test_defaults_are_the_first_choices():
    """The contract: default first."""
    for row in policy_rows():
        if row.choices:
            assert getattr(Policy(), row.name) == row.choices[0]
        assert row.reason
        assert row.source


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["evaluator=silicon"], "evaluator", "silicon"),
        (["acc_source=after"], "acc_source", "after_conversion"),
        (["seed=7"], "seed", 7),
        (["nan=profile", "nan=fallthrough"], "nan", "fallthrough"),
    ],
)
def test_parse(words, name, value):
    """KEY=VALUE words, shortened values too; the last one counts."""
    assert getattr(Policy.parse(words), name) == value


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("evaluator", r"^--policy: policy must be KEY=VALUE, not 'evaluator'$"),
        ("evaluator=", r"evaluator must be one of pwp, silicon, exact, not ''"),
        ("evaluator=x", r"evaluator must be one of pwp, silicon, exact, not 'x'"),
        ("seed=-1", r"seed must be a whole number, not '-1'"),
        ("who=me", r"'who' is no policy; the keys are evaluator, "),
    ],
)
def test_bad_words(word, message):
    """What would be accepted is named."""
    with pytest.raises(InputError, match=message):
        Policy.parse([word])
