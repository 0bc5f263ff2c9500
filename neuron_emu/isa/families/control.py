"""CTRL_NO: control words that hold little more than header and events.

Source: activation-tables.md 2.4 [observed]: everything past the events is zero, but for byte 35
of ACTIVATION_TABLE_LOAD (act_tbl_sel) and the DRAIN count at 0x28 (isa-encoding.md 9).
PSEUDO_INST (isa-encoding.md 8.4) has its kind in byte 12.
"""

from __future__ import annotations

from enum import IntEnum

from attrs import frozen

from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import Events, Header
from neuron_emu.isa.text import Inexpressible, Operands, enum_text

__all__ = [
    "ACTIVATION_TABLE_LOAD",
    "DRAIN",
    "FAMILY",
    "HALT",
    "INSTRUCTION_FLUSH",
    "NOP",
    "NOTIFY",
    "PSEUDO_FAMILY",
    "PSEUDO_INST",
    "Control",
    "PseudoInstruction",
    "PseudoKind",
]

ACTIVATION_TABLE_LOAD = 0x23
HALT = 0xA1
DRAIN = 0xA2
INSTRUCTION_FLUSH = 0xA3
NOP = 0xA4
NOTIFY = 0xA6
PSEUDO_INST = 0xDF


class PseudoKind(IntEnum):
    """Byte 12 of PSEUDO_INST (isa-encoding.md 8.4)."""

    EXIT = 1
    LIBRARY_RELOAD = 2


@frozen(kw_only=True)
class Control:
    """CTRL_NO with the two bytes that some of its opcodes use."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    reserved0: bytes = raw(12, 23, "zero")
    act_tbl_sel: int = values("u8", 35, "set index of ACTIVATION_TABLE_LOAD, else zero")
    reserved1: bytes = raw(36, 4, "zero")
    count: int = values("u32", 40, "count of DRAIN, else zero")
    reserved2: bytes = raw(44, 20, "zero")


@frozen(kw_only=True)
class PseudoInstruction:
    """PSEUDO_INST: the loader's marks, of which EXIT ends a program."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    kind: int = values("u8", 12, "kind of mark", enum=PseudoKind)
    payload: bytes = raw(13, 51, "layout not published")


def _to_text(word: Control) -> list[str]:
    if any(word.reserved0 + word.reserved1 + word.reserved2):
        raise Inexpressible("a reserved byte is not zero")
    opcode = word.header.opcode
    tokens = []
    if opcode == ACTIVATION_TABLE_LOAD:
        tokens.append(f"table_sel={word.act_tbl_sel}")
    elif word.act_tbl_sel:
        raise Inexpressible("byte 35 is not zero")
    if word.count and opcode != DRAIN:
        raise Inexpressible("a reserved byte is not zero")
    return [*tokens, f"count={word.count}"] if word.count else tokens


def _from_text(opcode: int, operands: Operands) -> Control:
    is_load = opcode == ACTIVATION_TABLE_LOAD
    return Control(
        header=header_of(opcode),
        events=operands.take_events(),
        reserved0=bytes(23),
        act_tbl_sel=operands.integer("table_sel", 0, 255) if is_load else 0,
        reserved1=bytes(4),
        count=operands.integer("count", 0, 0xFFFFFFFF, default=0) if opcode == DRAIN else 0,
        reserved2=bytes(20),
    )


def _pseudo_to_text(word: PseudoInstruction) -> list[str]:
    if any(word.payload):
        raise Inexpressible("the payload is not zero")
    return [f"kind={enum_text(PseudoKind, word.kind)}"]


def _pseudo_from_text(opcode: int, operands: Operands) -> PseudoInstruction:
    return PseudoInstruction(
        header=header_of(opcode),
        events=operands.take_events(),
        kind=operands.name("kind", PseudoKind, PseudoKind.EXIT),
        payload=bytes(51),
    )


FAMILY = Family(
    name="CTRL_NO",
    record=Control,
    opcodes=(ACTIVATION_TABLE_LOAD, HALT, DRAIN, INSTRUCTION_FLUSH, NOP, NOTIFY),
    to_text=_to_text,
    from_text=_from_text,
)
PSEUDO_FAMILY = Family(
    name="PSEUDO",
    record=PseudoInstruction,
    opcodes=(PSEUDO_INST,),
    to_text=_pseudo_to_text,
    from_text=_pseudo_from_text,
)
