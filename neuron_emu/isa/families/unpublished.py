"""Control words whose payload layout no page gives: header, events and opaque bytes.

Source: isa-encoding.md 8.2 and 8.3 (names and structs). A word with a zero payload has a text of
its name and events; what another payload says cannot be told, so it is a `.word` line.
"""

from __future__ import annotations

from attrs import frozen

from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct
from neuron_emu.isa.records import Events, Header
from neuron_emu.isa.text import Inexpressible, Operands

__all__ = [
    "BRANCH_PREFETCH_HINT",
    "ENGINE_NOP",
    "FAMILIES",
    "MOVE_SHAPE",
    "POLL_SEM",
    "SET_ORDERING_MODE",
    "TEST_EVENT_SEM",
    "WRITE",
    "Unpublished",
    "unpublished_from_text",
    "unpublished_to_text",
]

ENGINE_NOP = 0x9F
WRITE = 0xA5
SET_ORDERING_MODE = 0xB1
MOVE_SHAPE = 0xB2
POLL_SEM = 0xB3
TEST_EVENT_SEM = 0xB4
BRANCH_PREFETCH_HINT = 0xB5


@frozen(kw_only=True)
class Unpublished:
    """A control word of which only header and events are known."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    payload: bytes = raw(12, 52, "layout not published")


def unpublished_to_text(word: Unpublished) -> list[str]:
    """Return no operands; Inexpressible when the payload is not zero."""
    if any(word.payload):
        raise Inexpressible("the layout of its payload is not published")
    return []


def unpublished_from_text(opcode: int, operands: Operands) -> Unpublished:
    """Build a word with a zero payload."""
    return Unpublished(header=header_of(opcode), events=operands.take_events(), payload=bytes(52))


def _family(name: str, *opcodes: int) -> Family:
    return Family(
        name=name,
        record=Unpublished,
        opcodes=opcodes,
        to_text=unpublished_to_text,
        from_text=unpublished_from_text,
    )


FAMILIES = (
    _family("CTRL_IM", ENGINE_NOP),
    _family("CTRL_WR", WRITE),
    _family("CTRL_MS", MOVE_SHAPE),
    _family("CTRL_POLL_SEM", POLL_SEM),
    _family("CTRL_TEST_ES", TEST_EVENT_SEM),
    _family("?", SET_ORDERING_MODE, BRANCH_PREFETCH_HINT),
)
