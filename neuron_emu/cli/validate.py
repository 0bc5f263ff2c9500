"""`neuron-emu validate`: say whether each word is legal, and why not."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from neuron_emu.cli.common import ENGINE_OPTION, PROGRAMS, warn_of_streams
from neuron_emu.errors import InputError
from neuron_emu.generation import GENERATIONS, MARIANA, Generation, generation_named
from neuron_emu.isa import render
from neuron_emu.isa.diagnostics import ERROR, Finding
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.program import Stream, read_streams
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.isa.rules import has_own_rules
from neuron_emu.isa.stream_pass import allowed_names, findings_of_stream
from neuron_emu.isa.validate import Judge
from neuron_emu.policy import Policy

__all__ = ["command"]

CONFIG_NAME = "neuron-emu.toml"
CONFIG_KEYS = ("allow", "gen", "policy")
PROGRESS_WORDS = 500_000
"""Streams from this size on show a progress bar on a terminal."""


def _generations(ctx: click.Context, option: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    if value == "all":
        return tuple(GENERATIONS.values())
    if value not in GENERATIONS:
        raise InputError(
            f"generation must be one of {', '.join(GENERATIONS)} or all, not {value!r}"
        )
    return (generation_named(value),)


@click.command("validate")
@click.option(
    "--gen",
    "generations",
    metavar="NAME|all",
    callback=_generations,
    help=f"Hardware generation: {', '.join(GENERATIONS)} (default mariana), or all side by side.",
)
@ENGINE_OPTION
@click.option(
    "--format",
    "form",
    type=click.Choice(render.FORMATS),
    default="full",
    help="full for people, concise for one line each, the others for tools.",
)
@click.option(
    "--allow", "allow", multiple=True, metavar="NAME", help="Leave out a stream rule; may repeat."
)
@click.option(
    "--policy", "policy", multiple=True, metavar="KEY=VALUE", help="Decide an open question."
)
@PROGRAMS
def command(
    generations: tuple[Generation, ...] | None,
    engine: Engine,
    form: str,
    allow: tuple[str, ...],
    policy: tuple[str, ...],
    programs: tuple[str, ...],
) -> int:
    """Judge every word of PROGRAM... and list all rules that are broken.

    Exit status 0: no error (warnings alone are clean); 1: an error; 2: the job could not be done.
    With --gen all: 0 when each stream is legal on at least one generation.

    Stream rules are warnings; --allow leaves one out, here or as `allow = [...]` in
    neuron-emu.toml or in the section [tool.neuron-emu] of pyproject.toml.

    \b
    Example:
      neuron-emu validate --gen mariana dve.bin act:act.bin
    """
    config = _read_config(Path.cwd())
    if generations is None:
        generations = _generations(None, None, config.get("gen")) or (MARIANA,)  # type: ignore[arg-type]
    allowed = allowed_names((*config.get("allow", ()), *allow))
    chosen = Policy.parse((*config.get("policy", ()), *policy))
    streams = [stream for program in programs for stream in read_streams(program, engine)]
    warn_of_streams(streams)
    judged = _Judged(streams, generations, chosen, allowed)
    _print(judged, form)
    legal = [any(not errors for errors in row) for row in judged.errors]
    return 0 if all(legal) else 1


class _Judged:
    """The findings of every stream on every generation, made while they are printed.

    `errors` has a row a stream and a flag a generation.
    """

    def __init__(
        self,
        streams: list[Stream],
        generations: tuple[Generation, ...],
        policy: Policy,
        allowed: frozenset[str],
    ) -> None:
        self.streams = streams
        self.generations = generations
        self.policy = policy
        self.allowed = allowed
        self.errors = [[False] * len(generations) for _ in streams]
        self.progress: Callable[[int], None] | None = None

    def findings(self, row: int, column: int) -> Iterator[Finding]:
        """Yield the findings of a stream on a generation."""
        stream, generation = self.streams[row], self.generations[column]
        judge = Judge(generation, stream.engine, self.policy)
        for finding in findings_of_stream(stream, judge, self.allowed, self.progress):
            if finding.severity == ERROR:
                self.errors[row][column] = True
            yield finding

    def all_findings(self) -> Iterator[Finding]:
        """Yield the findings of all streams."""
        for row in range(len(self.streams)):
            for column in range(len(self.generations)):
                yield from self.findings(row, column)

    def report(self, row: int, column: int) -> render.StreamReport:
        """Gather the findings of a stream on a generation."""
        report = render.StreamReport(self.streams[row], self.generations[column])
        for finding in self.findings(row, column):
            report.add(finding)
        return report

    def reports(self) -> list[list[render.StreamReport]]:
        """Return a row of reports for each stream."""
        columns = range(len(self.generations))
        return [[self.report(row, c) for c in columns] for row in range(len(self.streams))]

    @contextmanager
    def showing_progress(self, *, is_shown: bool) -> Iterator[None]:
        """Show a bar on standard error for large jobs, when it is a terminal."""
        total = sum(map(len, self.streams)) * len(self.generations)
        if not is_shown or total < PROGRESS_WORDS or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console
        from rich.progress import Progress

        # Results go to standard output as they are, never through the bar's console.
        console = Console(stderr=True)
        with Progress(
            console=console, transient=True, redirect_stdout=False, redirect_stderr=False
        ) as bar:
            task = bar.add_task("judging words", total=total)
            self.progress = partial(bar.advance, task)
            yield


def _print(judged: _Judged, form: str) -> None:
    if form == "json":
        # Objects are written as they are found, so a bar may not share their terminal.
        with judged.showing_progress(is_shown=not sys.stdout.isatty()):
            for piece in render.json_pieces(judged.all_findings()):
                sys.stdout.write(piece)
        return
    with judged.showing_progress(is_shown=True):
        rows = judged.reports()
    if form == "sarif":
        sys.stdout.write(render.sarif(report for row in rows for report in row))
        return
    colour = False if os.environ.get("NO_COLOR") else None
    for line in _lines(rows, form):
        click.echo(line, color=colour)


def _lines(rows: list[list[render.StreamReport]], form: str) -> Iterator[str]:
    if form == "github":
        yield from render.github(report for row in rows for report in row)
    elif rows and len(rows[0]) > 1:
        yield from render.matrix(rows)
    else:
        for (report,) in rows:
            yield from render.TEXT_FORMS[form](report)
            if form == "full":
                yield from _uncovered(report.stream)


def _uncovered(stream: Stream) -> Iterator[str]:
    """Say which words were judged by the common rules alone."""
    opcodes = np.frombuffer(stream.data, dtype=np.uint8)[::WORD_BYTES]
    counts = np.bincount(opcodes, minlength=256)
    plain = [code for code in np.flatnonzero(counts).tolist() if not has_own_rules(code)]
    if plain:
        names = ", ".join(opcode_name(code) for code in plain)
        words = int(counts[plain].sum())
        yield f"  {words:,} of them judged by opcode, engine, header and events alone: {names}"


# --- configuration ----------------------------------------------------------------------------


def _read_config(directory: Path) -> dict[str, Any]:
    """Return the nearest configuration at or above a directory; InputError when it is wrong."""
    for place in (directory, *directory.parents):
        own, project = place / CONFIG_NAME, place / "pyproject.toml"
        if own.is_file():
            return _checked(_read_toml(own), own)
        if project.is_file():
            section = _read_toml(project).get("tool", {}).get("neuron-emu")
            if section is not None:
                return _checked(section, project)
    return {}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", place=str(path)) from None


def _checked(section: Any, path: Path) -> dict[str, Any]:
    if not isinstance(section, dict):
        raise InputError("[tool.neuron-emu] must be a table", place=str(path))
    for key, value in section.items():
        if key not in CONFIG_KEYS:
            accepted = ", ".join(CONFIG_KEYS)
            raise InputError(f"keys must be of {accepted}, not {key!r}", place=str(path))
        is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if not (isinstance(value, str) if key == "gen" else is_list):
            kind = "a string" if key == "gen" else "a list of strings"
            raise InputError(f"{key} must be {kind}, not {value!r}", place=str(path))
    return section
