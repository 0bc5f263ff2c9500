"""CTRL_ES and CTRL_ER: words that only wait for, set and clear semaphores and events.

Sources: isa-encoding.md 2.4 (EVENTS_EXTENDED) and 9 (CTRL_ER) [observed]. The text `setter=0` of
the public sample has no known seat: it is printed while all other bytes are zero, and read as 0.
"""

from __future__ import annotations

from enum import IntEnum

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import UpdateMode, WaitMode
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import Events, Header
from neuron_emu.isa.text import Inexpressible, Operands, enum_text, events_text, parse_event

__all__ = [
    "EVENT_SEMAPHORE",
    "EVENT_SEMAPHORE_RANGE_CLEAR",
    "FAMILIES",
    "ClearMode",
    "EventSemaphore",
    "ExtendedEvents",
    "RangeClear",
]

EVENT_SEMAPHORE = 0xA0
EVENT_SEMAPHORE_RANGE_CLEAR = 0xB0
MASK_BYTES = 32
"""The mask of CTRL_ER reaches the end of the word: one bit for each of 256 numbers [inferred]."""


class ClearMode(IntEnum):
    """Byte 12 of CTRL_ER (isa-encoding.md 9)."""

    RANGE = 1
    MASK = 2


@frozen(kw_only=True)
class ExtendedEvents:
    """EVENTS_EXTENDED: a second wait and an update, each with its own value."""

    wait_mode: int = values("u8", 0, "second condition to issue", enum=WaitMode)
    wait_idx: int = values("u8", 1, "semaphore or event to wait for")
    update_mode: int = values("u8", 2, "second action", enum=UpdateMode)
    update_idx: int = values("u8", 3, "semaphore or event to update")
    wait_value: int = values("u32", 4, "operand of the second wait")
    update_value: int = values("u32", 8, "operand of the second update")


@frozen(kw_only=True)
class EventSemaphore:
    """CTRL_ES: issues when both waits are met, then does both updates."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    reserved0: bytes = raw(12, 20, "zero")
    extended: ExtendedEvents = struct(32, ExtendedEvents, "second wait and update")
    reserved1: bytes = raw(44, 20, "zero")


@frozen(kw_only=True)
class RangeClear:
    """CTRL_ER: clears the semaphores and events of a range, or of a bit mask."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    mode: int = values("u8", 12, "what names the numbers", enum=ClearMode)
    first: int = values("u8", 13, "first number of the range")
    last: int = values("u8", 14, "last number of the range, included")
    reserved0: bytes = raw(15, 17, "zero")
    mask: bytes = raw(32, MASK_BYTES, "bit i of byte k stands for number 8 k + i")


def _half(*, wait: tuple[int, int] = (0, 0), update: tuple[int, int] = (0, 0), value: int) -> str:
    """Return the token of one wait or update alone."""
    (token,) = events_text(
        Events(
            wait_mode=wait[0],
            wait_idx=wait[1],
            update_mode=update[0],
            update_idx=update[1],
            semaphore_value=value,
        )
    )
    return token


def _to_text(word: EventSemaphore) -> list[str]:
    if any(word.reserved0 + word.reserved1):
        raise Inexpressible("a reserved byte is not zero")
    second = word.extended
    tokens = []
    if second.wait_mode:
        wait = (second.wait_mode, second.wait_idx)
        tokens.append(f"wait2={_half(wait=wait, value=second.wait_value)}")
    if second.update_mode:
        update = (second.update_mode, second.update_idx)
        tokens.append(f"update2={_half(update=update, value=second.update_value)}")
    return [*tokens, "setter=0"]


def _second(operands: Operands, key: str, *, is_wait: bool) -> tuple[int, int, int]:
    """Take mode, index and value of `wait2=` or `update2=`."""
    text = operands.pairs.pop(key, None)
    if text is None:
        return 0, 0, 0
    event = parse_event(text)
    if event is None or event.is_wait is not is_wait:
        example = "S[4]>=292" if is_wait else "S[4]++@complete"
        raise InputError(f"{key} must be like {example}, not {text!r}")
    return event.mode, event.index, event.value or 0


def _from_text(opcode: int, operands: Operands) -> EventSemaphore:
    wait = _second(operands, "wait2", is_wait=True)
    update = _second(operands, "update2", is_wait=False)
    operands.integer("setter", 0, 0, default=0)
    return EventSemaphore(
        header=header_of(opcode),
        events=operands.take_events(),
        reserved0=bytes(20),
        extended=ExtendedEvents(
            wait_mode=wait[0],
            wait_idx=wait[1],
            update_mode=update[0],
            update_idx=update[1],
            wait_value=wait[2],
            update_value=update[2],
        ),
        reserved1=bytes(20),
    )


def _clear_to_text(word: RangeClear) -> list[str]:
    if any(word.reserved0):
        raise Inexpressible("a reserved byte is not zero")
    tokens = [f"mode={enum_text(ClearMode, word.mode)}"]
    if word.mode == ClearMode.MASK:
        return [*tokens, f"mask=0x{word.mask.hex()}"]
    return [*tokens, f"first={word.first}", f"last={word.last}"]


def _clear_from_text(opcode: int, operands: Operands) -> RangeClear:
    mode = operands.name("mode", ClearMode, ClearMode.RANGE)
    mask = bytes(MASK_BYTES)
    first = last = 0
    if mode == ClearMode.MASK:
        mask = _mask(operands.take("mask", "0x" + "00" * MASK_BYTES))
    else:
        first, last = operands.integer("first", 0, 255), operands.integer("last", 0, 255)
    return RangeClear(
        header=header_of(opcode),
        events=operands.take_events(),
        mode=mode,
        first=first,
        last=last,
        reserved0=bytes(17),
        mask=mask,
    )


def _mask(text: str) -> bytes:
    """Read the 32 bytes of a mask in file order."""
    digits = text.removeprefix("0x")
    if len(digits) == 2 * MASK_BYTES and all(c in "0123456789abcdefABCDEF" for c in digits):
        return bytes.fromhex(digits)
    raise InputError(f"mask must be 0x and {2 * MASK_BYTES} hex digits, not {text!r}")


FAMILIES = (
    Family(
        name="CTRL_ES",
        record=EventSemaphore,
        opcodes=(EVENT_SEMAPHORE,),
        to_text=_to_text,
        from_text=_from_text,
    ),
    Family(
        name="CTRL_ER",
        record=RangeClear,
        opcodes=(EVENT_SEMAPHORE_RANGE_CLEAR,),
        to_text=_clear_to_text,
        from_text=_clear_from_text,
    ),
)
