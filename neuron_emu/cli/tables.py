"""`neuron-emu tables`: list, show, evaluate, build and pack activation tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
from attrs import evolve

from neuron_emu.cli.common import TABLES_OPTION, atomic_output, keep_apart
from neuron_emu.errors import InputError
from neuron_emu.pwp.act_info import ACT_INFO, act_info_text
from neuron_emu.pwp.evaluate import CompiledProfile, compile_profile
from neuron_emu.pwp.functions import function_of_profile
from neuron_emu.pwp.library import TableLibrary
from neuron_emu.pwp.pages import function_table, profile_page, set_table
from neuron_emu.pwp.profile import Profile, differences
from neuron_emu.pwp.profile_json import dump_profile, read_profile
from neuron_emu.pwp.store import load_profile, shipped_profiles
from neuron_emu.tensor_spec import is_exact_in_float32, read_npy

__all__ = ["command"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_FILE = click.option("--profile", "path", metavar="P.json", help="Take the table of this file.")


@click.group("tables")
def command() -> None:
    """Look at activation tables, evaluate them, write them.

    F is a function (exp) or a profile (exp_400p), SET the name or index of a function set.

    \b
    Example:
      neuron-emu tables show exp
    """


@command.command("list")
@TABLES_OPTION
def list_command(directory: str | None) -> None:
    """List the functions with their codes and profiles, and the function sets.

    \b
    Example:
      neuron-emu tables list
    """
    library = library_of(directory)
    click.echo(function_table(library))
    click.echo(set_table(library.sets, library.profile_names))


@command.command("show")
@_FILE
@TABLES_OPTION
@click.argument("function", metavar="F")
def show(path: str | None, directory: str | None, function: str) -> None:
    """Show octaves, sections and clamps of a table, and its special results.

    \b
    Example:
      neuron-emu tables show exp
    """
    click.echo(profile_page(*table_of(function, path, directory)))


@command.command("eval")
@click.option("--input", "source", required=True, metavar="X.npy", help="Numbers to evaluate.")
@click.option("--output", required=True, metavar="Y.npy", help="File to write, - too.")
@click.option(
    "--evaluator", type=click.Choice(["pwp", "silicon", "exact"]), default="pwp", show_default=True
)
@click.option("--nan", type=click.Choice(["fallthrough", "profile"]), default="fallthrough")
@click.option("--fma", type=click.Choice(["off", "on"]), default="off")
@click.option("--slope", type=float, help="Slope of parametric_relu.")
@_FILE
@TABLES_OPTION
@click.argument("function", metavar="F")
def evaluate(
    source: str,
    output: str,
    evaluator: str,
    nan: str,
    fma: str,
    slope: float | None,
    path: str | None,
    directory: str | None,
    function: str,
) -> None:
    """Evaluate a table on the numbers of X.npy; Y.npy is float32 of the same shape.

    \b
    Example:
      neuron-emu tables eval exp --input x.npy --output y.npy
    """
    keep_apart([source, *([path] if path else [])], [output], directory)
    compiled = _compiled(function, path, directory)
    values = _as_float32(read_npy(source), source)
    with np.errstate(over="ignore"):
        kwargs: dict[str, Any] = {} if slope is None else {"slope": np.float32(slope)}
    result = compiled.evaluate(values, evaluator=evaluator, nan=nan, fma=fma, **kwargs)
    with atomic_output(output) as stream:
        np.save(stream, result, allow_pickle=False)


@command.command("build")
@click.option("-o", "--output", required=True, metavar="P.json", help="File to write, - too.")
@click.option("--regenerate", is_flag=True, help="Make the table anew by its rule (needs mpmath).")
@click.argument("function", metavar="F")
def build(output: str, regenerate: bool, function: str) -> None:
    """Write a table as profile JSON: the shipped one, or the same made anew by its rule.

    \b
    Example:
      neuron-emu tables build exp -o exp_400p.json
    """
    name = library_of(None).profile_name(function)
    if regenerate:
        from neuron_emu.pwp.generate import generate

        profile = generate(name)
    else:
        profile = load_profile(name)
    with atomic_output(output) as stream:
        stream.write(dump_profile(profile).encode())


@command.command("blobs")
@click.option("-o", "--output", required=True, metavar="DIR", help="Folder to write.")
@TABLES_OPTION
@click.argument("selector", metavar="SET")
def blobs(output: str, directory: str | None, selector: str) -> None:
    """Write a packed set: SET.json, SET_bkt.bin and SET_ctrl.bin.

    SET may be all: then every set is written, and act_info.json, which says their order.

    \b
    Example:
      neuron-emu tables blobs exp_and_others -o blobs
    """
    from neuron_emu.pwp.blobs import blob_files

    library = library_of(directory)
    sets = library.sets if selector == "all" else (library.function_set(selector),)
    files = {ACT_INFO: act_info_text(sets).encode()} if selector == "all" else {}
    for tables in map(library.packed, sets):
        if tables.missing:
            missing = ", ".join(tables.missing)
            click.echo(f"{tables.set.name} is without a table for {missing}", err=True)
        files |= blob_files(tables.packed)
    folder = Path(output)
    keep_apart([], [str(folder / name) for name in files], directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", place=output) from None
    for name, data in files.items():
        with atomic_output(str(folder / name)) as stream:
            stream.write(data)
    click.echo("\n".join(str(folder / name) for name in files))


def library_of(directory: str | None) -> TableLibrary:
    """Return the shipped tables, or those of a compiler's directory."""
    return TableLibrary(None if directory is None else Path(directory))


def table_of(function: str, path: str | None, directory: str | None) -> tuple[str, Profile]:
    """Return a profile with its name: that of a file, of a directory, or the shipped one."""
    if path is not None and directory is not None:
        raise click.UsageError("--profile and --tables name two sources of one table")
    library = library_of(directory)
    name = library.profile_name(function)
    if path is None:
        return name, library.profile(name)
    # F says which function it is, however the file spells its name.
    return name, evolve(read_profile(path), name=function_of_profile(name))


def _compiled(function: str, path: str | None, directory: str | None) -> CompiledProfile:
    name, profile = table_of(function, path, directory)
    if path is not None and name in shipped_profiles():
        changed = differences(profile, load_profile(name))
        if changed:
            click.echo(f"{path} differs from the shipped {name} in {', '.join(changed)}", err=True)
    return compile_profile(profile)


def _as_float32(values: Any, place: str) -> Any:
    """Return numbers as float32; an integer that float32 does not hold is refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        singles = values.astype(np.float32)
    if values.dtype.kind in "iu" and not is_exact_in_float32(values).all():
        raise InputError("integers must be exact in float32", place=place)
    return singles


@command.command("certify")
@click.option("-o", "--output", metavar="CERT.json", help="File to write, F.certificate.json else.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True)
@_FILE
@TABLES_OPTION
@click.argument("function", metavar="F")
def certify_command(
    output: str | None, jobs: int, path: str | None, directory: str | None, function: str
) -> int:
    """Sweep all 2^32 inputs of a table and write what its error is.

    Finished parts are kept in CERT.json.part, so that a sweep can be stopped and goes on.
    The exit status is 1 when the evaluator differs from its plain twin anywhere.

    \b
    Example:
      neuron-emu tables certify exp --jobs 2
    """
    from neuron_emu.pwp.certify import certify
    from neuron_emu.pwp.pages import certificate_page

    name, profile = table_of(function, path, directory)
    target = output or f"{name}.certificate.json"
    state = Path(f"{name}.certificate.json.part" if target == "-" else f"{target}.part")
    keep_apart([path] if path else [], [target, str(state)], directory)
    if Path(target).is_dir() or not state.parent.is_dir():
        raise InputError("must be a file that can be written", place=target)
    with sweep_progress(f"certify {name}") as progress:
        certificate = certify(name, profile, state, jobs=jobs, progress=progress)
    with atomic_output(target) as stream:
        stream.write(certificate.as_json().encode())
    state.unlink(missing_ok=True)
    click.echo(certificate_page(certificate), err=target == "-")
    return 1 if certificate.twin_differences else 0


@contextmanager
def sweep_progress(title: str) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error while it is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    from neuron_emu.pwp.certify import BLOCKS

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=BLOCKS)
        yield lambda done: bar.update(task, completed=done)


@command.command("plot")
@click.option("-o", "--output", required=True, metavar="F.png", help="Picture to write.")
@_FILE
@TABLES_OPTION
@click.argument("function", metavar="F")
def plot(output: str, path: str | None, directory: str | None, function: str) -> None:
    """Draw the error of a table in ULP over its octaves, with the section grid.

    \b
    Example:
      neuron-emu tables plot exp -o exp.png
    """
    from neuron_emu.pwp.plot import plot_error

    keep_apart([path] if path else [], [output], directory)
    name, profile = table_of(function, path, directory)
    with atomic_output(output) as stream:
        plot_error(name, profile, stream)
