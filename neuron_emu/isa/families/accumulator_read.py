"""D1_RD: the accumulator reads (isa-encoding.md 5.4, activation-tables.md 2.5 [observed])."""

from __future__ import annotations

from attrs import frozen

from neuron_emu.isa.enums import DType
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import Events, Header, Tensor1D
from neuron_emu.isa.text import Inexpressible, Operands, pattern_text

__all__ = [
    "ACTIVATION_READ_ACCUMULATOR",
    "DVE_READ_ACCUMULATOR",
    "FAMILY",
    "AccumulatorRead",
]

ACTIVATION_READ_ACCUMULATOR = 0x24
DVE_READ_ACCUMULATOR = 0x9B


@frozen(kw_only=True)
class AccumulatorRead:
    """D1_RD: write one accumulator value per lane."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    reserved0: bytes = raw(12, 16, "zero")
    dst_element_count: int = values("u32", 28, "1")
    dtype: int = values("u8", 32, "dtype of the destination", enum=DType)
    negated: int = values("u8", 33, "1 writes the negated value")
    num_active_channels: int = values("u8", 34, "partitions that take part")
    reserved1: bytes = raw(35, 9, "zero")
    dst: Tensor1D = struct(44, Tensor1D, "destination")
    reserved2: bytes = raw(52, 12, "zero")


def _to_text(word: AccumulatorRead) -> list[str]:
    if any(word.reserved0 + word.reserved1 + word.reserved2):
        raise Inexpressible("a reserved byte is not zero")
    tokens = [
        f"dst={pattern_text(word.dst, word.dtype)}",
        f"channels={word.num_active_channels}",
    ]
    if word.negated:
        tokens.append(f"negated={word.negated}")
    if word.dst_element_count != 1:
        tokens.append(f"dst_element_count={word.dst_element_count}")
    return tokens


def _from_text(opcode: int, operands: Operands) -> AccumulatorRead:
    dtype, dst = operands.pattern("dst", Tensor1D)
    return AccumulatorRead(
        header=header_of(opcode),
        events=operands.take_events(),
        reserved0=bytes(16),
        dst_element_count=operands.integer("dst_element_count", 0, 0xFFFFFFFF, default=1),
        dtype=dtype,
        negated=operands.integer("negated", 0, 255, default=0),
        num_active_channels=operands.integer("channels", 0, 255),
        reserved1=bytes(9),
        dst=dst,
        reserved2=bytes(12),
    )


FAMILY = Family(
    name="D1_RD",
    record=AccumulatorRead,
    opcodes=(ACTIVATION_READ_ACCUMULATOR, DVE_READ_ACCUMULATOR),
    to_text=_to_text,
    from_text=_from_text,
)
