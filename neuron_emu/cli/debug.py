"""`neuron-emu debug`: step through streams, look inside, go back, ask why."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO

import click
import numpy as np

from neuron_emu.cli.common import (
    ENGINE_OPTION,
    GENERATION_OPTION,
    TABLES_OPTION,
    atomic_output,
    keep_files_apart,
)
from neuron_emu.debug import Debugger
from neuron_emu.debug.loading import load_debugger
from neuron_emu.debug.shell import Prompt, Session
from neuron_emu.debug.text import text_of
from neuron_emu.errors import InputError
from neuron_emu.generation import Generation
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import read_text
from neuron_emu.machine import MAX_STEPS
from neuron_emu.tensor_spec import TensorSpec
from neuron_emu.trace import json_line, text_line

__all__ = ["command"]


@click.command("debug")
@GENERATION_OPTION
@ENGINE_OPTION
@click.option("--load", "loads", multiple=True, metavar="SPEC=FILE.npy", help="Fill memory.")
@click.option("--preload", metavar="SET", help="Function set resident at the start.")
@TABLES_OPTION
@click.option("--policy", "policies", multiple=True, metavar="KEY=VALUE", help="Open question.")
@click.option("--dump", "dumps", multiple=True, metavar="SPEC=FILE.npy", help="Write at the end.")
@click.option("--trace", metavar="FILE.jsonl|FILE", help="Write each station of each word.")
@click.option("--sanitize", is_flag=True, help="Warn of races, unwritten reads, NaNs made.")
@click.option("--max-steps", type=click.IntRange(min=1), default=MAX_STEPS, show_default=True)
@click.option("--interleave", type=int, metavar="SEED", help="Draw the order of engines.")
@click.option("-x", "files", multiple=True, metavar="FILE", help="Run the commands of a file.")
@click.option("-c", "lines", multiple=True, metavar="COMMANDS", help="Run commands split by ;.")
@click.option("--batch", is_flag=True, help="Leave after the commands; no prompt.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a command.")
@click.option("--no-record", is_flag=True, help="Do not record what going back needs.")
@click.option("--dap", is_flag=True, help="Serve the Debug Adapter Protocol on stdio.")
@click.argument("programs", nargs=-1, metavar="PROGRAM...")
def command(
    generation: Generation | None,
    engine: Engine,
    loads: tuple[str, ...],
    preload: str | None,
    directory: str | None,
    policies: tuple[str, ...],
    dumps: tuple[str, ...],
    trace: str | None,
    sanitize: bool,
    max_steps: int,
    interleave: int | None,
    files: tuple[str, ...],
    lines: tuple[str, ...],
    batch: bool,
    as_json: bool,
    no_record: bool,
    dap: bool,
    programs: tuple[str, ...],
) -> int:
    """Debug PROGRAMs: .bin, .asm or .toml, one stream an engine. `help` at the prompt lists all.

    With --batch the exit status is 1 after a fault or an `expect` that fails, 2 after a command
    that cannot be done.

    \b
    Example:
      neuron-emu debug --batch -c "break EXPONENTIAL; continue; list" programs/exp.toml
    """
    if dap:
        from neuron_emu.debug.dap.server import serve

        return serve(sys.stdin.buffer, sys.stdout.buffer)
    if not programs:
        raise InputError("a program must be given, for instance programs/exp.toml", place="debug")
    keep_files_apart(programs, loads, dumps, trace, directory)
    debugger = load_debugger(
        programs,
        generation=generation,
        engine=engine,
        loads=loads,
        preload=preload,
        tables=directory,
        policies=policies,
        interleave=interleave,
        sanitize=sanitize,
        records=not no_record,
    )
    debugger.max_steps = max_steps
    session = Session(debugger, as_json=as_json)
    with ExitStack() as files_written:
        _open_outputs(files_written, debugger, dumps, trace)
        return _converse(session, _script(files, lines), batch=batch)


def _open_outputs(
    files: ExitStack, debugger: Debugger, dumps: tuple[str, ...], trace: str | None
) -> None:
    """Open a trace and the dumps, which are written when the session has ended."""
    if trace is not None:
        line = json_line if trace.endswith(".jsonl") else text_line
        traced = files.enter_context(atomic_output(trace))
        debugger.machine.listeners.append(lambda event: _write(traced, line(event)))
    for word in dumps:
        text, equals, path = word.partition("=")
        if not equals or not path:
            raise InputError(f"must be SPEC=FILE, not {word!r}", place="--dump")
        spec = TensorSpec.parse(text)
        spec.check(debugger.machine.generation)
        stream = files.enter_context(atomic_output(path))
        files.callback(partial(_dump, debugger, spec, stream))


def _write(stream: IO[bytes], line: str) -> None:
    stream.write(line.encode())


def _dump(debugger: Debugger, spec: TensorSpec, stream: IO[bytes]) -> None:
    np.save(stream, debugger.machine.read(spec), allow_pickle=False)


def _converse(session: Session, script: list[str], *, batch: bool) -> int:
    """Run the script, then what is typed or piped; return the exit status."""
    is_interactive = not batch and sys.stdin.isatty()
    session.pages = is_interactive and sys.stdout.isatty() and not session.as_json
    session.run_all(script)
    if batch or session.has_quit or (session.status == 2 and not is_interactive):
        return session.status
    if is_interactive:
        if not session.as_json:
            click.echo(text_of(session.debugger.where()))
        Prompt(session).loop()
        return 0
    for line in sys.stdin:
        session.run(line)
        if session.has_quit:
            break
    return session.status


def _script(files: tuple[str, ...], lines: tuple[str, ...]) -> list[str]:
    """Return the lines of all files, then those of -c; `;` separates commands in the latter."""
    script: list[str] = []
    for name in files:
        if Path(name).is_dir():
            raise InputError("must be a file of commands, not a directory", place=name)
        script += read_text(name).splitlines()
    for line in lines:
        script += [part.strip() for part in line.split(";")]
    return script
