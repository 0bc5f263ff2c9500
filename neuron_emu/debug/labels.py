"""Labels: the `NAME:` that may stand before a word in a listing, by engine and word index.

The assembler reads labels and drops them, so they are read again from the file that a stream came
from. A stream without a text has none.
"""

from __future__ import annotations

import re
from pathlib import Path

from neuron_emu.errors import InputError
from neuron_emu.isa.assembly import assemble_line
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.opcodes import OPCODE_BY_NAME
from neuron_emu.isa.program import Program, read_scenario, read_text

__all__ = ["labels_in", "labels_of"]

_LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*):(?=\s|$)")


def labels_of(program: Program) -> dict[Engine, dict[str, int]]:
    """Return the labels of each stream that came from a text file or a scenario's text."""
    found = {}
    for stream in program.streams:
        text = _text_of(stream.name)
        if text is not None:
            found[stream.engine] = labels_in(text, len(stream))
    return found


def _text_of(name: str) -> str | None:
    try:
        if name.endswith(".asm"):
            return read_text(name)
        path, _, member = name.rpartition(" ")
        if path.endswith(".toml") and member.startswith("streams."):
            table = read_scenario(Path(path)).get("streams")
            text = table.get(member.removeprefix("streams.")) if isinstance(table, dict) else None
            return text if isinstance(text, str) else None
    except InputError:
        pass  # the file has gone since: a program without labels is still a program
    return None


def labels_in(text: str, num_words: int) -> dict[str, int]:
    """Return the labels of a listing; a label alone on its line names the next word."""
    labels: dict[str, int] = {}
    waiting: list[str] = []
    index = 0
    for line in text.splitlines():
        match = _LABEL.match(line)
        if match is not None and match[1] not in OPCODE_BY_NAME:
            waiting.append(match[1])
        try:
            word = assemble_line(line)
        except InputError:
            return {}
        if word is None:
            continue
        labels.update((name, index) for name in waiting if index < num_words)
        waiting.clear()
        index += 1
    return labels
