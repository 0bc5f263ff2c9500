"""`neuron-emu dis`: a stream as text that `asm` turns back into the same bytes."""

from __future__ import annotations

import click

from neuron_emu.cli.common import ENGINE_OPTION, GENERATION_OPTION, warn_of_streams
from neuron_emu.generation import MARIANA, Generation
from neuron_emu.isa.assembly import listing
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import read_streams

__all__ = ["command"]


@click.command("dis")
@GENERATION_OPTION
@ENGINE_OPTION
@click.option("--bytes", "show_bytes", is_flag=True, help="Add offset and bytes as a comment.")
@click.argument("program")
def command(generation: Generation | None, engine: Engine, show_bytes: bool, program: str) -> None:
    """Print PROGRAM, one instruction a line; the streams of a NEFF follow one another.

    What the notation cannot say, unknown opcodes too, is a .word line with the bytes in hex.
    The exit status is 0 whatever the words are.

    \b
    Example:
      neuron-emu dis --bytes dve.bin
    """
    streams = read_streams(program, engine)
    warn_of_streams(streams)
    for stream in streams:
        if len(streams) > 1 or stream.is_member:
            name = "".join(c if c.isprintable() else "?" for c in stream.name)
            click.echo(f"# {name} ({stream.engine.name.lower()})")
        for line in listing(stream, generation or MARIANA, show_bytes=show_bytes):
            click.echo(line)
