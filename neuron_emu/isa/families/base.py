"""What an instruction family declares: its structure, its opcodes and its text form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from neuron_emu.isa.records import (
    INSTRUCTION_WORD_LENGTH,
    Header,
)
from neuron_emu.isa.text import Operands

__all__ = ["Family", "header_of"]


@frozen(kw_only=True)
class Family:
    """One struct of the ISA with the opcodes that use it.

    `to_text` turns a record into operand tokens and raises Inexpressible for what the notation
    cannot say. `from_text` builds the record of an opcode from operands.
    """

    name: str
    record: type[Any]
    opcodes: tuple[int, ...]
    to_text: Callable[[Any], list[str]]
    from_text: Callable[[int, Operands], Any]


def header_of(opcode: int) -> Header:
    """Return the header that a compiler writes: length 0x10, debug bytes zero."""
    return Header(opcode=opcode, inst_word_len=INSTRUCTION_WORD_LENGTH, debug_cmd=0, debug_hint=0)
