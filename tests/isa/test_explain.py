"""Pages of rules and opcodes, and the chapter that is made of them."""

from __future__ import annotations

import pytest

from neuron_emu.cli.group import run_command
from neuron_emu.isa.explain import page_of, rules_document
from neuron_emu.isa.opcodes import OPCODES
from neuron_emu.isa.rules import RULES
from neuron_emu.isa.rules.stream import STREAM_RULES
from tests.command import ROOT


@pytest.mark.parametrize("code", [*RULES, *(r.code for r in STREAM_RULES)])
def test_every_rule_has_a_page(code: str) -> None:
    """By code: what and why, source, an example that passes and one that fails, as judged."""
    page = page_of(code)

    assert page is not None
    assert page.startswith(f"## {code} ")
    assert "- source: " in page
    assert "Passes" in page
    assert f"[{code}] " in page.partition("Passes")[2]


def test_names_and_spellings() -> None:
    """Names give all rules of that name, hyphens and other generations' names included."""
    both = page_of("mem3d-valid")

    assert both is not None
    assert [f"## {code} mem3d_valid\n" in both for code in ("NE0114", "NE0115")] == [True, True]
    assert "## NE0114 mem3d_valid\n" in (page_of("tensor3d_valid") or "")
    assert page_of("ne0107") == page_of("NE0107") == page_of("has_valid_exponential_accum_cmd")
    assert page_of("nothing") is None


@pytest.mark.parametrize("opcode", OPCODES, ids=hex)
def test_every_opcode_has_a_page(opcode: int) -> None:
    """By name and by number."""
    page = page_of(hex(opcode))

    assert page == page_of(OPCODES[opcode].name)
    assert page is not None
    assert page.startswith(f"## {OPCODES[opcode].name} ({opcode:#04x})")


def test_exponential() -> None:
    """The page says where it is wired, its layout and its seventeen rows."""
    page = page_of("EXPONENTIAL") or ""

    assert "- wired to a validator on: mariana, mariana_plus, maverick" in page
    assert "| 40 to 43 | imm0 | first scalar; max_value of EXPONENTIAL |" in page
    assert all(f"- NE01{row:02} " in page for row in range(1, 18))


def test_chapter() -> None:
    """docs/rules.md is what `python -m neuron_emu.isa.explain` prints."""
    assert (ROOT / "docs" / "rules.md").read_text() == rules_document(), (
        "write it again: python -m neuron_emu.isa.explain > docs/rules.md"
    )


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the page, or what may be asked and exit 2."""
    assert run_command(["explain", "NE0112"]) == 0
    assert capsys.readouterr().out == page_of("NE0112")
    assert run_command(["explain", "NE9999"]) == 2
    assert "topic must be a rule" in capsys.readouterr().err
