"""Every program of `programs/` runs and meets its expectations, which were worked out by hand."""

from __future__ import annotations

import pytest

from neuron_emu.generation import generation_named
from neuron_emu.isa.program import Program
from neuron_emu.machine import Machine
from neuron_emu.policy import Policy
from neuron_emu.scenario import Scenario
from tests.command import ROOT

PROGRAMS = sorted((ROOT / "programs").glob("*.toml"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path):
    """All expectations hold; a program without a [fault] runs clean."""
    scenario = Scenario.read(path)
    machine = Machine(
        generation_named(scenario.generation or "mariana"), Policy.parse(scenario.policy)
    )
    scenario.prepare(machine)
    result = machine.run(Program.load(path))

    assert scenario.expectations or scenario.fault
    assert [(what, bad) for what, bad in scenario.check(machine, result.fault) if bad] == []
    assert result.is_clean == (scenario.fault is None)


def test_every_listing_has_a_scenario():
    """No .asm lies about that nothing runs."""
    used = "".join(path.read_text() for path in PROGRAMS)

    unused = [p.name for p in (ROOT / "programs").glob("*.asm") if f'"{p.name}"' not in used]
    assert unused == []
