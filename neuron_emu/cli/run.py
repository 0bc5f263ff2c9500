"""`neuron-emu run`: execute streams over modelled memory and dump numbers."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import click
import numpy as np
from attrs import frozen

from neuron_emu.cli.common import (
    ENGINE_OPTION,
    GENERATION_OPTION,
    PROGRAMS,
    TABLES_OPTION,
    atomic_output,
    keep_files_apart,
    warn_of_streams,
)
from neuron_emu.errors import InputError
from neuron_emu.events import Event
from neuron_emu.generation import MARIANA, Generation, generation_named
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program, split_argument
from neuron_emu.machine import MAX_STEPS, Machine, RunResult
from neuron_emu.policy import Policy
from neuron_emu.sanitize import Report
from neuron_emu.scenario import Scenario
from neuron_emu.tensor_spec import TensorSpec, read_npy
from neuron_emu.tensor_spec import text as tensor_text
from neuron_emu.trace import json_line, text_line

__all__ = ["command"]


@frozen(kw_only=True)
class _Job:
    """Everything that is read before the first word runs."""

    machine: Machine
    program: Program
    scenarios: tuple[Scenario, ...]
    dumps: tuple[tuple[TensorSpec, str], ...]


@click.command("run")
@GENERATION_OPTION
@ENGINE_OPTION
@click.option("--load", "loads", multiple=True, metavar="SPEC=FILE.npy", help="Fill memory.")
@click.option("--dump", "dumps", multiple=True, metavar="SPEC=FILE.npy|-", help="Write memory.")
@click.option("--preload", metavar="SET", help="Function set resident at the start.")
@TABLES_OPTION
@click.option("--policy", "policies", multiple=True, metavar="KEY=VALUE", help="Open question.")
@click.option("--trace", metavar="FILE.jsonl|FILE|-", help="Write each station of each word.")
@click.option("--sanitize", is_flag=True, help="Report races, unwritten reads, NaNs made.")
@click.option("--interleave", type=int, metavar="SEED", help="Draw the order of engines.")
@click.option("--max-steps", type=click.IntRange(min=1), default=MAX_STEPS, show_default=True)
@PROGRAMS
def command(
    generation: Generation | None,
    engine: Engine,
    loads: tuple[str, ...],
    dumps: tuple[str, ...],
    preload: str | None,
    directory: str | None,
    policies: tuple[str, ...],
    trace: str | None,
    sanitize: bool,
    interleave: int | None,
    max_steps: int,
    programs: tuple[str, ...],
) -> int:
    """Run PROGRAMs, a stream an engine: raw words (.bin), text (.asm), a scenario (.toml), a NEFF.

    X.neff:sg01 is one subgraph of a NEFF, dve:X.neff the stream of one of its engines.
    SPEC is SPACE:PARTITION+OFFSET:DTYPE[CHANNELS,N...]. Dumps to - are text, a line a partition.
    The exit status is 1 after a fault or a broken expectation, and dumps are written all the same.

    \b
    Example:
      neuron-emu run --load sbuf:0+0x1000:fp32[128,8]=x.npy --dump sbuf:0+0x2000:fp32[128,8]=- e.bin
    """
    keep_files_apart(programs, loads, dumps, trace, directory)
    scenarios = _scenarios(programs, engine)
    machine = Machine(
        _generation(generation, scenarios),
        Policy.parse([*(word for s in scenarios for word in s.policy), *policies]),
        tables=directory,
        sanitize=sanitize,
        interleave=interleave,
    )
    job = _Job(
        machine=machine,
        program=Program.load(*programs, engine=engine),
        scenarios=scenarios,
        dumps=tuple(_checked(word, machine) for word in dumps),
    )
    warn_of_streams(job.program.streams)
    for scenario in scenarios:
        scenario.prepare(machine)
    for word in loads:
        spec, path = _checked(word, machine)
        machine.write(spec, read_npy(path))
    if preload is not None:
        machine.preload(preload)
    return _run(job, trace, max_steps)


def _run(job: _Job, trace: str | None, max_steps: int) -> int:
    with ExitStack() as files:
        # Every output opens before the first word runs, and appears when all are complete.
        outputs = [(spec, path, _opened(files, path)) for spec, path in job.dumps]
        if trace is not None:
            job.machine.listeners.append(_tracer(files.enter_context(atomic_output(trace)), trace))
        result = job.machine.run(job.program, max_steps=max_steps)
        for spec, _, stream in outputs:
            if stream is not None:
                np.save(stream, job.machine.read(spec), allow_pickle=False)
    # Text comes last: a reader that leaves early must not cost a file.
    for spec, _, stream in outputs:
        if stream is None:
            click.echo(tensor_text(job.machine.read(spec)))
    return _report(job, result)


def _opened(files: ExitStack, path: str) -> IO[bytes] | None:
    return None if path == "-" else files.enter_context(atomic_output(path))


def _tracer(stream: IO[bytes], name: str) -> Any:
    line = json_line if name.endswith(".jsonl") else text_line

    def write(event: Event) -> None:
        stream.write(line(event).encode())

    return write


def _report(job: _Job, result: RunResult) -> int:
    """Print warnings, the fault and broken expectations to standard error; return the status."""
    for warning in (*result.warnings, *_found_at_the_end(job)):
        _say("warning", str(warning), "yellow")
    if result.fault is not None:
        _say("fault", str(result.fault), "red")
    broken = 0
    for scenario in job.scenarios:
        for what, problem in scenario.check(job.machine, result.fault):
            if problem is None:
                click.echo(f"expect {what}: ok")
            else:
                broken += 1
                click.echo(f"expect {what}: {problem}")
    if result.is_clean:
        words = "1 word" if result.steps == 1 else f"{result.steps} words"
        loads = f", {result.table_loads} table loads" if result.table_loads > 1 else ""
        click.echo(f"neuron-emu: ran {words} on {job.machine.generation}{loads}", err=True)
    return 1 if broken or not result.is_clean else 0


def _found_at_the_end(job: _Job) -> list[Report]:
    """Return what the sanitizer finds at the end; what is dumped or expected counts as read."""
    sanitizer = job.machine.sanitizer
    if sanitizer is None:
        return []
    dumped = [spec for spec, _ in job.dumps]
    dumped += [expected.spec for s in job.scenarios for expected in s.expectations]
    return sanitizer.finish([(str(spec), spec.operand(job.machine.memory)) for spec in dumped])


def _say(kind: str, message: str, colour: str) -> None:
    click.echo(f"{click.style(kind, fg=colour, bold=True)}: {message}", err=True)


def _scenarios(programs: tuple[str, ...], engine: Engine) -> tuple[Scenario, ...]:
    paths = (split_argument(program, engine)[1] for program in programs)
    return tuple(Scenario.read(Path(path)) for path in paths if path.endswith(".toml"))


def _generation(given: Generation | None, scenarios: tuple[Scenario, ...]) -> Generation:
    """Return the generation of the option, else the one that the scenarios agree on."""
    if given is not None:
        return given
    names = {s.generation for s in scenarios if s.generation is not None}
    if len(names) > 1:
        raise InputError(f"scenarios must agree on a generation, not {', '.join(sorted(names))}")
    return generation_named(names.pop()) if names else MARIANA


def _checked(word: str, machine: Machine) -> tuple[TensorSpec, str]:
    """Split SPEC=FILE and check that the region exists on this generation."""
    text, equals, path = word.partition("=")
    if not equals or not path:
        raise InputError(f"must be SPEC=FILE, not {word!r}", place="--load and --dump")
    spec = TensorSpec.parse(text)
    spec.check(machine.generation)
    return spec, path
