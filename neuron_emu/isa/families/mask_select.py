"""CTRL_IM of LOAD_MASK_SELECT: 32 mask bytes (dve-tensor-scalar.md 9.1 [observed]).

That the mask fills bytes 32 to 63 comes from the compiler's encoder and validator, as the public
reference "DVE Search & Datamove Encoding" reads them [observed].
"""

from __future__ import annotations

import re

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import Events, Header
from neuron_emu.isa.text import Inexpressible, Operands, parse_integer

__all__ = ["FAMILY", "LOAD_MASK_SELECT", "MASK_BYTES", "MaskSelect"]

LOAD_MASK_SELECT = 0x69
MASK_BYTES = 32


@frozen(kw_only=True)
class MaskSelect:
    """CTRL_IM: one byte for each partition of a quadrant, for the next STREAM_SHUFFLE."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    reserved0: bytes = raw(12, 20, "zero")
    mask: tuple[int, ...] = values(
        "u8", 32, "partition to read for each partition of a quadrant, or 255", count=MASK_BYTES
    )


def _to_text(word: MaskSelect) -> list[str]:
    if any(word.reserved0):
        raise Inexpressible("a reserved byte is not zero")
    return [f"mask=[{','.join(map(str, word.mask))}]"]


def _from_text(opcode: int, operands: Operands) -> MaskSelect:
    text = operands.take("mask", "[0,1,2,3,...]")
    match = re.fullmatch(r"\[([\d,]+)\]", text)
    items = match[1].split(",") if match else []
    if len(items) != MASK_BYTES:
        raise InputError(f"mask must be [{MASK_BYTES} numbers], not {text!r}")
    return MaskSelect(
        header=header_of(opcode),
        events=operands.take_events(),
        reserved0=bytes(20),
        mask=tuple(parse_integer(item, "mask", 0, 255) for item in items),
    )


FAMILY = Family(
    name="CTRL_IM",
    record=MaskSelect,
    opcodes=(LOAD_MASK_SELECT,),
    to_text=_to_text,
    from_text=_from_text,
)
