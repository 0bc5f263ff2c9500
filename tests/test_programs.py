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


@pytest.mark.parametrize(
    "path",
    [path for path in PROGRAMS if path.stem[:2] in {"c1", "c2", "c3", "c5", "c6"}],
    ids=lambda path: path.stem,
)
def test_any_order_of_the_engines(path):
    """A synchronised program writes the same bytes under a hundred drawn orders."""
    scenario, program = Scenario.read(path), Program.load(path)

    def final_bytes(seed):
        machine = Machine("mariana", Policy.parse(scenario.policy), interleave=seed)
        scenario.prepare(machine)
        assert machine.run(program).is_clean
        return machine.read("sbuf:0+0:uint32[128,5120]").tobytes()

    wanted = final_bytes(None)
    assert all(final_bytes(seed) == wanted for seed in range(100))


def test_every_listing_has_a_scenario():
    """No .asm lies about that nothing runs."""
    used = "".join(path.read_text() for path in PROGRAMS)

    unused = [p.name for p in (ROOT / "programs").glob("*.asm") if f'"{p.name}"' not in used]
    assert unused == []
