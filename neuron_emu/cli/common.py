"""Options that several commands share, and output files that appear whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import click

from neuron_emu.errors import InputError
from neuron_emu.generation import GENERATIONS, generation_named
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Stream, engine_named, split_argument

__all__ = [
    "ENGINE_OPTION",
    "GENERATION_OPTION",
    "PROGRAMS",
    "TABLES_OPTION",
    "atomic_output",
    "keep_apart",
    "keep_files_apart",
    "warn",
    "warn_of_streams",
]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def _generation(ctx: click.Context, option: click.Parameter, value: str | None) -> Any:
    return None if value is None else generation_named(value)


def _engine(ctx: click.Context, option: click.Parameter, value: str) -> Engine:
    return engine_named(value)


GENERATION_OPTION = click.option(
    "--gen",
    "generation",
    metavar="NAME",
    callback=_generation,
    help=f"Hardware generation: {', '.join(GENERATIONS)} (default mariana).",
)
ENGINE_OPTION = click.option(
    "--engine",
    metavar="NAME",
    default="dve",
    callback=_engine,
    help="Engine of streams that name none: pe act pool dve sp (default dve).",
)
PROGRAMS = click.argument("programs", nargs=-1, required=True, metavar="PROGRAM...")


def warn(message: str) -> None:
    """Print a warning to standard error."""
    click.echo(f"{click.style('warning', fg='yellow', bold=True)}: {message}", err=True)


def warn_of_streams(streams: Iterable[Stream]) -> None:
    """Print what was odd in the files that held the streams, once each."""
    for message in dict.fromkeys(m for stream in streams for m in stream.warnings):
        warn(message)


@contextmanager
def atomic_output(path: str) -> Iterator[IO[bytes]]:
    """Write a file beside its final place and move it there at the end; `-` is standard output.

    A link is followed. Nothing is left behind when the body raises. InputError when the place
    cannot be written.
    """
    if path == "-":
        yield sys.stdout.buffer
        return
    try:
        target = Path(path)
        if target.exists() and not target.is_file():
            # A device or a pipe cannot be replaced by a file.
            with target.open("wb") as stream:
                yield stream
        else:
            with _replacing(target.resolve()) as stream:
                yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", place=path) from None


@contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _tables(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value == "":
        raise InputError("must name a directory, not be empty", place="--tables")
    return value


TABLES_OPTION = click.option(
    "--tables",
    "directory",
    metavar="DIR",
    callback=_tables,
    help="A compiler's directory of profile JSON files or packed sets.",
)


def keep_apart(inputs: Iterable[str], outputs: Iterable[str], directory: str | None = None) -> None:
    """Refuse an output that is an input, a file of a directory that is read, or another output."""
    outputs = list(outputs)
    for path in outputs:
        if directory is not None and path != "-" and _is_file_of(directory, path):
            raise InputError("output must not replace a file of --tables", place=path)
    known = [(path, "an input") for path in inputs]
    for path in outputs:
        for other, what in known:
            if _is_same_file(path, other):
                raise InputError(f"output must not be {what} as well", place=path)
        known.append((path, "another output"))


def keep_files_apart(
    programs: Iterable[str],
    loads: Iterable[str],
    dumps: Iterable[str],
    trace: str | None,
    directory: str | None,
) -> None:
    """Refuse outputs of a run that would replace an input or each other."""
    inputs = [split_argument(program, Engine.DVE)[1] for program in programs]
    inputs += [word.partition("=")[2] for word in loads]
    outputs = [word.partition("=")[2] for word in dumps]
    keep_apart(inputs, [path for path in (*outputs, trace) if path], directory)


def _is_file_of(directory: str, path: str) -> bool:
    try:
        target = Path(path).resolve()
        return target.exists() and target.parent == Path(directory).resolve()
    except OSError:
        return False


def _is_same_file(first: str, second: str) -> bool:
    if "-" in (first, second):
        return False
    one, two = Path(first), Path(second)
    try:
        if one.exists() and two.exists():
            return one.is_file() and one.samefile(two)
        return one.resolve() == two.resolve()
    except OSError:
        return False


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
