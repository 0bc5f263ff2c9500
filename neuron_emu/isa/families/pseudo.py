"""Pseudo words 0xC1 to 0xDE: marks that a loader replaces and no engine executes.

Source: isa-encoding.md 8.4 (names) [observed]. Three have fields that are known:
TRIGGER_COLLECTIVE and DMA_TRIGGER from operand-text.md 2, one sample each [inferred], and
LOAD_ACT_FUNC_SET from activation-tables.md 2.4 [observed]. PSEUDO_INST 0xDF is in `control`.
"""

from __future__ import annotations

import re
from enum import IntEnum

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.families.unpublished import (
    Unpublished,
    unpublished_from_text,
    unpublished_to_text,
)
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import Events, Header
from neuron_emu.isa.text import (
    DTYPE_CODES,
    Inexpressible,
    Operands,
    alu_op_text,
    dtype_text,
    enum_text,
)

__all__ = [
    "DMA_TRIGGER",
    "FAMILIES",
    "LOAD_ACT_FUNC_SET",
    "PSEUDO_OPCODES",
    "TRIGGER_COLLECTIVE",
    "CollectiveType",
    "NamedMark",
    "SetMark",
    "TriggerCollective",
]

DMA_TRIGGER = 0xC1
LOAD_ACT_FUNC_SET = 0xC6
TRIGGER_COLLECTIVE = 0xC8
PSEUDO_OPCODES = frozenset(range(0xC1, 0xE0))
"""The whole band (isa-encoding.md 8.4)."""
NAME_BYTES = 52
SET_NAME_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9_.\-/]+")


class CollectiveType(IntEnum):
    """ctype of TRIGGER_COLLECTIVE; the one value that a sample shows."""

    ALL_REDUCE = 1


@frozen(kw_only=True)
class TriggerCollective:
    """PSEUDO_TRIGGER_COLLECTIVE; `group_id` of its text has no known seat."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    op: int = values("u8", 12, "operation of the reduction", enum=AluOp)
    dtype: int = values("u8", 13, "dtype of the elements", enum=DType)
    reserved0: bytes = raw(14, 2, "zero")
    input_tensor_id: int = values("u32", 16, "tensor to send")
    output_tensor_id: int = values("u32", 20, "tensor to receive")
    num_elements: int = values("u32", 24, "elements")
    reserved1: bytes = raw(28, 4, "zero")
    ctype: int = values("u8", 32, "kind of collective", enum=CollectiveType)
    reserved2: bytes = raw(33, 31, "layout not published")


@frozen(kw_only=True)
class NamedMark:
    """PSEUDO_DMA_TRIGGER: the queue's name; `block_id` of its text has no known seat."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    queue: bytes = raw(12, NAME_BYTES, "zero-terminated name, then unknown")


@frozen(kw_only=True)
class SetMark:
    """PSEUDO_LOAD_ACT_FUNC_SET: the name of a function set."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    act_set_name: bytes = raw(12, SET_NAME_BYTES, "zero-terminated name of the set")
    reserved0: bytes = raw(44, 20, "zero")


def _name_text(field: bytes) -> str:
    """Return a zero-terminated name; the bytes after it must be zero."""
    name, _, rest = field.partition(b"\0")
    text = name.decode("latin-1")
    if any(rest) or len(name) == len(field) or not _NAME.fullmatch(text):
        raise Inexpressible(f"the name {text!r} or what follows it cannot be said")
    return text


def _name_field(text: str, size: int, what: str) -> bytes:
    if not _NAME.fullmatch(text) or len(text) >= size:
        raise InputError(f"{what} must be a name of 1 to {size - 1} characters, not {text!r}")
    return text.encode("ascii").ljust(size, b"\0")


def _collective_to_text(word: TriggerCollective) -> list[str]:
    if any(word.reserved0 + word.reserved1 + word.reserved2):
        raise Inexpressible("a byte without a known meaning is not zero")
    return [
        f"ctype={enum_text(CollectiveType, word.ctype)}",
        f"input_tensor_id={word.input_tensor_id}",
        f"output_tensor_id={word.output_tensor_id}",
        f"num_elements={word.num_elements}",
        f"dtype={dtype_text(word.dtype)}",
        f"op={alu_op_text(word.op)}",
        "group_id=0",
    ]


def _collective_from_text(opcode: int, operands: Operands) -> TriggerCollective:
    (op,) = operands.alu_ops("op", 1)
    dtype = operands.take("dtype", "fp32")
    if dtype not in DTYPE_CODES:
        raise InputError(f"dtype must be one of {', '.join(DTYPE_CODES)}, not {dtype!r}")
    operands.integer("group_id", 0, 0, default=0)
    return TriggerCollective(
        header=header_of(opcode),
        events=operands.take_events(),
        op=op,
        dtype=DTYPE_CODES[dtype],
        reserved0=bytes(2),
        input_tensor_id=operands.integer("input_tensor_id", 0, 0xFFFFFFFF),
        output_tensor_id=operands.integer("output_tensor_id", 0, 0xFFFFFFFF),
        num_elements=operands.integer("num_elements", 0, 0xFFFFFFFF),
        reserved1=bytes(4),
        ctype=operands.name("ctype", CollectiveType, CollectiveType.ALL_REDUCE),
        reserved2=bytes(31),
    )


def _trigger_to_text(word: NamedMark) -> list[str]:
    return [_name_text(word.queue), "block_id=0"]


def _trigger_from_text(opcode: int, operands: Operands) -> NamedMark:
    if not operands.words:
        raise InputError("the name of the queue is missing")
    name = operands.words.pop(0)
    operands.integer("block_id", 0, 0, default=0)
    return NamedMark(
        header=header_of(opcode),
        events=operands.take_events(),
        queue=_name_field(name, NAME_BYTES, "queue"),
    )


def _set_to_text(word: SetMark) -> list[str]:
    if any(word.reserved0):
        raise Inexpressible("a reserved byte is not zero")
    return [f"act_set_name={_name_text(word.act_set_name)}"]


def _set_from_text(opcode: int, operands: Operands) -> SetMark:
    name = operands.take("act_set_name", "exp_and_others")
    return SetMark(
        header=header_of(opcode),
        events=operands.take_events(),
        act_set_name=_name_field(name, SET_NAME_BYTES, "act_set_name"),
        reserved0=bytes(20),
    )


_DESCRIBED = (DMA_TRIGGER, LOAD_ACT_FUNC_SET, TRIGGER_COLLECTIVE, 0xDF)

FAMILIES = (
    Family(
        name="?",
        record=NamedMark,
        opcodes=(DMA_TRIGGER,),
        to_text=_trigger_to_text,
        from_text=_trigger_from_text,
    ),
    Family(
        name="?",
        record=SetMark,
        opcodes=(LOAD_ACT_FUNC_SET,),
        to_text=_set_to_text,
        from_text=_set_from_text,
    ),
    Family(
        name="?",
        record=TriggerCollective,
        opcodes=(TRIGGER_COLLECTIVE,),
        to_text=_collective_to_text,
        from_text=_collective_from_text,
    ),
    Family(
        name="?",
        record=Unpublished,
        opcodes=tuple(sorted(PSEUDO_OPCODES - set(_DESCRIBED))),
        to_text=unpublished_to_text,
        from_text=unpublished_from_text,
    ),
)
