"""From the words of a command line, or of a launch request, to a debugger."""

from __future__ import annotations

from pathlib import Path

from neuron_emu.debug.debugger import Debugger
from neuron_emu.errors import InputError
from neuron_emu.generation import MARIANA, Generation, generation_named
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program, split_argument
from neuron_emu.machine import Machine
from neuron_emu.policy import Policy
from neuron_emu.scenario import Scenario
from neuron_emu.tensor_spec import TensorSpec, read_npy

__all__ = ["load_debugger"]


def load_debugger(
    programs: tuple[str, ...],
    *,
    generation: Generation | None = None,
    engine: Engine = Engine.DVE,
    loads: tuple[str, ...] = (),
    preload: str | None = None,
    tables: str | None = None,
    policies: tuple[str, ...] = (),
    interleave: int | None = None,
    sanitize: bool = False,
    records: bool = True,
) -> Debugger:
    """Make a machine as `run` does, with the scenarios' memory, and put it under a debugger."""
    paths = (split_argument(program, engine)[1] for program in programs)
    scenarios = [Scenario.read(Path(path)) for path in paths if path.endswith(".toml")]
    machine = Machine(
        _generation(generation, scenarios),
        Policy.parse([*(word for s in scenarios for word in s.policy), *policies]),
        tables=tables,
        interleave=interleave,
        sanitize=sanitize,
    )
    program = Program.load(*programs, engine=engine)
    for scenario in scenarios:
        scenario.prepare(machine)
    for word in loads:
        text, equals, path = word.partition("=")
        if not equals or not path:
            raise InputError(f"must be SPEC=FILE, not {word!r}", place="--load")
        machine.write(TensorSpec.parse(text), read_npy(path))
    if preload is not None:
        machine.preload(preload)
    debugger = Debugger(machine, program, records=records)
    debugger.scenarios = tuple(scenarios)
    return debugger


def _generation(given: Generation | None, scenarios: list[Scenario]) -> Generation:
    if given is not None:
        return given
    names = {s.generation for s in scenarios if s.generation is not None}
    if len(names) > 1:
        raise InputError(f"scenarios must agree on a generation, not {', '.join(sorted(names))}")
    return generation_named(names.pop()) if names else MARIANA
