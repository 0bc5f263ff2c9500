"""Streams as sources: the text file that a stream came from, else its disassembly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen

from neuron_emu.debug import probe
from neuron_emu.debug.debugger import Debugger
from neuron_emu.errors import InputError
from neuron_emu.isa.assembly import assemble_line, disassemble_word
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Stream, read_text
from neuron_emu.isa.records import WORD_BYTES

__all__ = ["StreamSource", "instruction_at", "instruction_reference", "stream_sources"]

_ENGINE_SHIFT = 32
"""Instruction references are numbers past every local address: engine + 1, then byte offset."""


@frozen(eq=False)
class StreamSource:
    """One stream as an editor shows it; `lines` is the line of each word, from 1."""

    engine: Engine
    name: str
    path: str | None
    text: str
    lines: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the protocol's Source."""
        if self.path is not None:
            return {"name": self.name, "path": self.path}
        return {
            "name": self.name,
            "sourceReference": int(self.engine) + 1,
            "presentationHint": "normal",
            "origin": "disassembly",
        }

    def word_at(self, line: int) -> int | None:
        """Return the first word at or after a line."""
        return next((index for index, at in enumerate(self.lines) if at >= line), None)


def stream_sources(debugger: Debugger) -> dict[Engine, StreamSource]:
    """Return the source of each stream."""
    found = {}
    for engine, stream in probe.streams(debugger.machine).items():
        found[engine] = _from_file(engine, stream) or _disassembly(debugger, engine, stream)
    return found


def _from_file(engine: Engine, stream: Stream) -> StreamSource | None:
    """Return the listing that a stream was assembled from, if it still gives the same words."""
    if not stream.name.endswith(".asm"):
        return None
    try:
        text = read_text(stream.name)
        lines, words = [], []
        for number, line in enumerate(text.splitlines(), start=1):
            word = assemble_line(line)
            if word is not None:
                lines.append(number)
                words.append(word)
    except InputError:
        return None
    if b"".join(words) != bytes(stream.data):
        return None
    path = str(Path(stream.name).resolve())
    return StreamSource(engine, Path(stream.name).name, path, text, tuple(lines))


def _disassembly(debugger: Debugger, engine: Engine, stream: Stream) -> StreamSource:
    lines = [disassemble_word(word, debugger.machine.generation) for word in stream]
    name = f"{engine.name.lower()}.asm"
    return StreamSource(
        engine, name, None, "\n".join(lines) + "\n", tuple(range(1, len(lines) + 1))
    )


def instruction_reference(engine: Engine, index: int) -> str:
    """Return the number by which the protocol names a word."""
    return f"{(int(engine) + 1 << _ENGINE_SHIFT) + index * WORD_BYTES:#x}"


def instruction_at(reference: int) -> tuple[Engine, int] | None:
    """Return engine and byte offset of an instruction reference; None for a data address."""
    engine, offset = divmod(reference, 1 << _ENGINE_SHIFT)
    if not 1 <= engine <= len(Engine):
        return None
    return Engine(engine - 1), offset
