"""`neuron-emu asm`: text to a stream of 64-byte words."""

from __future__ import annotations

import click

from neuron_emu.cli.common import atomic_output, keep_apart
from neuron_emu.errors import InputError
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.program import read_text

__all__ = ["command"]


@click.command("asm")
@click.argument("file")
@click.option("-o", "--output", required=True, metavar="OUT.bin", help="File to write, - too.")
def command(file: str, output: str) -> None:
    """Assemble FILE (- is standard input) into raw words.

    \b
    Example:
      neuron-emu asm exp.asm -o exp.bin
    """
    keep_apart([file], [output])
    place = "<stdin>" if file == "-" else file
    words = assemble(read_text(file), place=place)
    if not words:
        raise InputError("holds no words", place=place)
    with atomic_output(output) as stream:
        stream.write(words)
