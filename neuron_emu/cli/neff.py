"""`neuron-emu neff`: what a NEFF file holds, and its files in a folder."""

from __future__ import annotations

import json
from typing import Any

import click

from neuron_emu.cli.common import warn
from neuron_emu.neff import Contents, Limits, Member, extract, read_contents
from neuron_emu.neff.header import printable

__all__ = ["command"]

_LIMIT_OPTION = click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    default=Limits().total_bytes,
    show_default=True,
    help="Refuse an archive that unpacks to more.",
)


@click.group("neff")
def command() -> None:
    """List and unpack NEFF files.

    \b
    Example:
      neuron-emu neff list model.neff
    """


@command.command("list")
@_LIMIT_OPTION
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("file")
def list_command(max_bytes: int, as_json: bool, file: str) -> None:
    """Print the header and the members of FILE, a NEFF or an unpacked folder (- reads a NEFF).

    Each member has its size in bytes, its number of 64-byte words and its engine, or a dash. A
    hash that does not fit the data is a warning.

    \b
    Example:
      neuron-emu neff list model.neff
    """
    contents = read_contents(file, Limits(total_bytes=max_bytes))
    if as_json:
        click.echo(json.dumps(_as_json(file, contents), indent=2))
    else:
        for line in _as_text(contents):
            click.echo(line)
    _warn(file, contents)


@command.command("extract")
@_LIMIT_OPTION
@click.option("-o", "--output", required=True, metavar="DIR", help="A new or an empty folder.")
@click.argument("file")
def extract_command(max_bytes: int, output: str, file: str) -> None:
    """Unpack the files of a NEFF (- is standard input) into DIR, all of them or none.

    \b
    Example:
      neuron-emu neff extract model.neff -o model
    """
    contents = extract(file, output, Limits(total_bytes=max_bytes))
    _warn(file, contents)
    files = "1 file" if len(contents.members) == 1 else f"{len(contents.members)} files"
    click.echo(f"neuron-emu: unpacked {files} into {output}", err=True)


def _warn(file: str, contents: Contents) -> None:
    for message in contents.warnings:
        warn(f"{file}: {printable(message)}")


def _as_text(contents: Contents) -> list[str]:
    """Return one line for each header field, set list and member; the name comes last."""
    lines: list[str] = []
    if contents.header is not None:
        rows = contents.header.rows()
        lines += [f"{name:<20} {value}".rstrip() for name, value in rows.items()]
    for subgraph, sets in contents.function_sets.items():
        lines.append(f"{f'{subgraph} function sets':<20} {' '.join(sets)}".rstrip())
    lines.append(f"{'bytes':>12} {'words':>9} {'engine':<6} name")
    return lines + [_member_line(member) for member in contents.members]


def _member_line(member: Member) -> str:
    words = "-" if member.num_words is None else str(member.num_words)
    engine = "-" if member.engine is None else member.engine.name.lower()
    return f"{member.size:>12} {words:>9} {engine:<6} {printable(member.name)}"


def _as_json(file: str, contents: Contents) -> dict[str, Any]:
    return {
        "file": file,
        "header": None if contents.header is None else contents.header.rows(),
        "activation_function_sets": contents.function_sets,
        "members": [
            {
                "name": member.name,
                "size": member.size,
                "words": member.num_words,
                "engine": None if member.engine is None else member.engine.name.lower(),
                "subgraph": member.subgraph,
            }
            for member in contents.members
        ],
        "warnings": list(contents.warnings),
    }
