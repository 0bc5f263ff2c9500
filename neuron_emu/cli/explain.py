"""`neuron-emu explain`: a page about a rule, an opcode or a function."""

from __future__ import annotations

from pathlib import Path

import click

from neuron_emu.cli.common import TABLES_OPTION
from neuron_emu.errors import InputError
from neuron_emu.isa.explain import page_of
from neuron_emu.isa.text import parse_float

__all__ = ["command"]


@click.command("explain", context_settings={"ignore_unknown_options": True})
@click.argument("topic", metavar="RULE|OPCODE|FUNCTION")
@click.argument("x", required=False)
@TABLES_OPTION
def command(topic: str, x: str | None, directory: str | None) -> None:
    """Explain a rule by code or name, an opcode by name or number, or a function.

    With X, a number or the bits of a float32 as 0x3f000000, walk through the function's table.

    \b
    Example:
      neuron-emu explain NE0107
      neuron-emu explain has_valid_exponential_accum_cmd
      neuron-emu explain EXPONENTIAL
      neuron-emu explain exp -1
    """
    page = page_of(topic)
    if page is None:
        page = function_page(topic, x, directory)
    elif x is not None or directory is not None:
        what = "--tables" if x is None else "X"
        raise InputError(f"{what} goes with a function such as exp, not with {topic!r}")
    click.echo(page, nl=False)


def function_page(topic: str, x: str | None, directory: str | None = None) -> str:
    """Return the page of an activation function, or of one number on its way through it."""
    from neuron_emu.pwp.evaluate import compile_profile
    from neuron_emu.pwp.library import TableLibrary
    from neuron_emu.pwp.pages import profile_page, walk_page

    library = TableLibrary(None if directory is None else Path(directory))
    try:
        name = library.profile_name(topic)
    except InputError:
        raise InputError(
            "topic must be a rule (code such as NE0107, or name), an opcode (name such as"
            f" EXPONENTIAL, or number such as 0x30) or a function (such as exp), not {topic!r}"
        ) from None
    profile = library.profile(name)
    if x is None:
        return profile_page(name, profile) + "\n"
    if profile.takes_slope:
        raise InputError(f"{name} takes its slope from the instruction; see tables eval --slope")
    # X is a decimal, inf, nan, or the bits of a float32 as 0x and hex digits.
    bits = parse_float(x, "X")
    return walk_page(name, compile_profile(profile), bits) + "\n"
