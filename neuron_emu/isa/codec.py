"""Words to records and back: any 64 bytes decode, and encode to the same 64 bytes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from neuron_emu.errors import InputError
from neuron_emu.generation import MARIANA, Generation
from neuron_emu.isa.families import FAMILY_OF_OPCODE
from neuron_emu.isa.layout import build, parse
from neuron_emu.isa.records import WORD_BYTES, EventlessWord, RawWord

__all__ = ["decode", "encode", "record_type_of"]

EVENTLESS_OPCODES = frozenset((0xB6, 0xBA))
"""COMPACT_CONTROL_INST and DMA_IMMEDIATE have no EVENTS block (isa-encoding.md 1.1)."""


def record_type_of(opcode: int) -> type[Any]:
    """Return the record class that words of `opcode` decode to."""
    family = FAMILY_OF_OPCODE.get(opcode)
    if family is not None:
        return family.record
    return EventlessWord if opcode in EVENTLESS_OPCODES else RawWord


def decode(word: bytes, generation: Generation = MARIANA) -> Any:
    """Decode one 64-byte word into the frozen record of its family.

    Never judges: unknown values pass through, and a word whose opcode has no family becomes a
    `RawWord`. The generation decides whether a pattern may be indirect (isa-encoding.md 4.2).
    Raises InputError when `word` is not 64 bytes.

    >>> decode(bytes.fromhex("a4100000") + bytes(60)).header.opcode
    164
    """
    data = bytes(word)
    if len(data) != WORD_BYTES:
        raise InputError(f"a word must be {WORD_BYTES} bytes, not {len(data)}")
    return _decode(data, generation.has_indirect)


@lru_cache(maxsize=65536)
def _decode(word: bytes, has_indirect: bool) -> Any:
    return parse(record_type_of(word[0]), word, has_indirect=has_indirect)


def encode(record: Any) -> bytes:
    """Encode a record into its 64 bytes; LayoutError when a value does not fit its field."""
    return build(record)
