"""D4_MR: words with a destination alone (dve-tensor-scalar.md 9.4 [observed])."""

from __future__ import annotations

from attrs import frozen

from neuron_emu.isa.enums import DType
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import Events, Header, Indirect20B, Pattern, Tensor4D, memory_pattern
from neuron_emu.isa.text import Inexpressible, Operands, pattern_text

__all__ = ["DVE_READ_INDICES", "FAMILY", "MEMSET", "REG_STORE", "RNG", "Memset"]

MEMSET = 0x49
REG_STORE = 0x4B
RNG = 0x4D
DVE_READ_INDICES = 0xE9


@frozen(kw_only=True)
class Memset:
    """D4_MR: MEMSET, and three more that write what they do not read from memory."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    reserved0: bytes = raw(12, 16, "zero")
    dst_element_count: int = values("u32", 28, "elements of dst in a partition")
    dtype: int = values("u8", 32, "dtype of the destination", enum=DType)
    reserved1: bytes = raw(33, 1, "zero")
    num_active_channels: int = values("u8", 34, "partitions that take part")
    reserved2: bytes = raw(35, 1, "zero")
    serialization_mode: int = values("u8", 36, "0, serial")
    reserved3: bytes = raw(37, 3, "zero")
    set_value: int = values("u32", 40, "element to write, in the encoding of dst; else zero")
    dst: Pattern = memory_pattern(44, 4, "destination")


def _to_text(word: Memset) -> list[str]:
    if any(word.reserved0 + word.reserved1 + word.reserved2 + word.reserved3):
        raise Inexpressible("a reserved byte is not zero")
    tokens = [
        f"dst={pattern_text(word.dst, word.dtype)}",
        f"channels={word.num_active_channels}",
    ]
    if word.set_value or word.header.opcode == MEMSET:
        tokens.append(f"set_value={word.set_value:#x}")
    if word.dst_element_count != word.dst.element_count:
        tokens.append(f"dst_element_count={word.dst_element_count}")
    if word.serialization_mode:
        tokens.append(f"serialization_mode={word.serialization_mode}")
    return tokens


def _from_text(opcode: int, operands: Operands) -> Memset:
    dtype, dst = operands.pattern("dst", Tensor4D, Indirect20B)
    return Memset(
        header=header_of(opcode),
        events=operands.take_events(),
        reserved0=bytes(16),
        dst_element_count=operands.integer(
            "dst_element_count", 0, 0xFFFFFFFF, default=dst.element_count
        ),
        dtype=dtype,
        reserved1=bytes(1),
        num_active_channels=operands.integer("channels", 0, 255),
        reserved2=bytes(1),
        serialization_mode=operands.integer("serialization_mode", 0, 255, default=0),
        reserved3=bytes(3),
        set_value=operands.integer("set_value", 0, 0xFFFFFFFF, default=0),
        dst=dst,
    )


FAMILY = Family(
    name="D4_MR",
    record=Memset,
    opcodes=(MEMSET, REG_STORE, RNG, DVE_READ_INDICES),
    to_text=_to_text,
    from_text=_from_text,
)
