"""The structures that instruction words are made of, each one table of field rows.

Sources: isa-encoding.md 1.2 (HEADER), 2 (EVENTS), 3.1 (ADDR4), 4.1 to 4.3 (patterns), 7.1
(IMM_VAL), 7.2 (DTYPE_PAIR), all [observed].
"""

from __future__ import annotations

import struct as packing
from typing import Any

from attrs import frozen

from neuron_emu.isa.enums import (
    AddressMarker,
    DebugCommand,
    DType,
    UpdateMode,
    WaitMode,
    member,
)
from neuron_emu.isa.layout import bit_group, bits, check_cover, raw, struct, union, values

__all__ = [
    "INSTRUCTION_WORD_LENGTH",
    "WORD_BYTES",
    "Address",
    "DTypePair",
    "EventlessWord",
    "Events",
    "Header",
    "Immediate",
    "Indirect12B",
    "Indirect16B",
    "Indirect20B",
    "IndirectPattern",
    "Pattern",
    "RawWord",
    "Tensor1D",
    "Tensor2D",
    "Tensor3D",
    "Tensor4D",
    "TensorPattern",
    "memory_pattern",
]

WORD_BYTES = 64
"""Bytes of one instruction, and the stride of a stream (isa-encoding.md 1.1)."""
INSTRUCTION_WORD_LENGTH = 0x10
"""`inst_word_len` of a 64-byte record, in 32-bit words (isa-encoding.md 1.2)."""


@frozen(kw_only=True)
class Header:
    """HEADER, bytes 0 to 3 (isa-encoding.md 1.2). On v5 byte 3 is `inst_flags` (1.3)."""

    opcode: int = values("u8", 0, "operation")
    inst_word_len: int = values("u8", 1, "length in 32-bit words, 0x10")
    debug_cmd: int = values("u8", 2, "trace level", enum=DebugCommand)
    debug_hint: int = values("u8", 3, "free software trace byte; inst_flags on v5")


@frozen(kw_only=True)
class Events:
    """EVENTS, record bytes 4 to 11 (isa-encoding.md 2)."""

    wait_mode: int = values("u8", 0, "condition to issue", enum=WaitMode)
    wait_idx: int = values("u8", 1, "semaphore or event to wait for")
    update_mode: int = values("u8", 2, "action after the reads or on completion", enum=UpdateMode)
    update_idx: int = values("u8", 3, "semaphore or event to update")
    semaphore_value: int = values("u32", 4, "operand of the wait and of the update")


@bit_group
@frozen(kw_only=True)
class Address:
    """ADDR4: a local address with three flag bits (isa-encoding.md 3.1).

    With the ADDR_REG flag the low byte is a register number instead.
    """

    partition_offset: int = bits(0, 29, "local address")
    marker: int = bits(29, 3, "INDIRECT, SHAPE_REG and ADDR_REG flags")

    @classmethod
    def of(cls, word: int) -> Address:
        """Split a 32-bit word into its fields."""
        return cls(partition_offset=word & 0x1FFFFFFF, marker=word >> 29)

    @property
    def word(self) -> int:
        """The 32-bit word."""
        return self.marker << 29 | self.partition_offset

    @property
    def kind(self) -> AddressMarker | None:
        """The marker, or None for the two that are not legal (0x60 and 0xE0)."""
        return member(AddressMarker, self.marker << 5)

    @property
    def is_indirect(self) -> bool:
        """`indirect_pattern`: the slot holds an INDIRECT descriptor."""
        return self.marker in (1, 5)

    @property
    def is_register(self) -> bool:
        """The address, or the index address of a descriptor, comes from a register."""
        return self.marker & 4 != 0

    @property
    def has_shape_register(self) -> bool:
        """`shape_from_register`: the shape of the pattern comes from registers."""
        return self.marker in (2, 6)

    @property
    def register(self) -> int:
        """Register number of the register forms: byte 0."""
        return self.partition_offset & 0xFF


@frozen(kw_only=True)
class TensorPattern:
    """What TENSOR1D to TENSOR4D share: steps and counts in elements, innermost first."""

    start: Address
    step: Any
    num: Any

    @property
    def steps(self) -> tuple[int, ...]:
        """Signed steps in elements, X first."""
        return self.step if isinstance(self.step, tuple) else (self.step,)

    @property
    def counts(self) -> tuple[int, ...]:
        """Counts, X first."""
        return self.num if isinstance(self.num, tuple) else (self.num,)

    @property
    def element_count(self) -> int:
        """Elements in one partition: the product of the counts."""
        product = 1
        for count in self.counts:
            product *= count
        return product

    @staticmethod
    def select(container: Any, has_indirect: bool) -> int:
        """Pick the member of a MEM_PATTERN union: 1 (INDIRECT) when the marker says so."""
        return int(has_indirect and container["start"]["marker"] in (1, 5))


@frozen(kw_only=True)
class Tensor1D(TensorPattern):
    """TENSOR1D (isa-encoding.md 4.1)."""

    start: Address = struct(0, Address, "first element")
    step: int = values("i16", 4, "step in elements")
    num: int = values("u16", 6, "count")


@frozen(kw_only=True)
class Tensor2D(TensorPattern):
    """TENSOR2D (isa-encoding.md 4.1)."""

    start: Address = struct(0, Address, "first element")
    step: tuple[int, ...] = values("i16", 4, "steps in elements, X first", count=2)
    num: tuple[int, ...] = values("u16", 8, "counts, X first", count=2)


@frozen(kw_only=True)
class Tensor3D(TensorPattern):
    """TENSOR3D (isa-encoding.md 4.1)."""

    start: Address = struct(0, Address, "first element")
    step: tuple[int, ...] = values("i16", 4, "steps in elements, X first", count=3)
    num: tuple[int, ...] = values("u16", 10, "counts, X first", count=3)


@frozen(kw_only=True)
class Tensor4D(TensorPattern):
    """TENSOR4D (isa-encoding.md 4.1)."""

    start: Address = struct(0, Address, "first element")
    step: tuple[int, ...] = values("i16", 4, "steps in elements, X first", count=4)
    num: tuple[int, ...] = values("u16", 12, "counts, X first", count=4)


@frozen(kw_only=True)
class IndirectPattern:
    """INDIRECT (isa-encoding.md 4.3): offsets from an index tensor pick the elements."""

    index: Address = struct(0, Address, "address of the index tensor; its marker flags the slot")
    data: Address = struct(4, Address, "address that the offsets count from")
    num_elem: int = values("u16", 8, "offsets, which are the elements in one partition")
    reserved: int = values("u16", 10, "zero")

    @property
    def start(self) -> Address:
        """The first word of the slot, whose marker tells the form."""
        return self.index

    @property
    def element_count(self) -> int:
        """Elements in one partition."""
        return self.num_elem


@frozen(kw_only=True)
class Indirect12B(IndirectPattern):
    """INDIRECT12B, the member of MEM_PATTERN2D: no padding."""


@frozen(kw_only=True)
class Indirect16B(IndirectPattern):
    """INDIRECT16B, the member of MEM_PATTERN3D."""

    padding: bytes = raw(12, 4, "zero")


@frozen(kw_only=True)
class Indirect20B(IndirectPattern):
    """INDIRECT20B, the member of MEM_PATTERN4D."""

    padding: bytes = raw(12, 8, "zero")


Pattern = TensorPattern | IndirectPattern
"""What a MEM_PATTERN slot may hold."""

_UNIONS: dict[int, tuple[type[Any], ...]] = {
    2: (Tensor2D, Indirect12B),
    3: (Tensor3D, Indirect16B),
    4: (Tensor4D, Indirect20B),
}


def memory_pattern(at: int, dimensions: int, doc: str) -> Any:
    """Declare a MEM_PATTERNnD slot at byte `at` (isa-encoding.md 4.2)."""
    return union(at, _UNIONS[dimensions], doc)


@frozen(kw_only=True)
class Immediate:
    """IMM_VAL_INST_FIELD: four bytes read as fp32, pointer, register or bits (7.1)."""

    word: int = values("u32", 0, "fp32, PARTITION_OFFSET, IMM_REG or bits, by source and opcode")

    @classmethod
    def of_float(cls, value: float) -> Immediate:
        """Hold a float32 value."""
        return cls(word=packing.unpack("<I", packing.pack("<f", value))[0])

    @property
    def register(self) -> int:
        """Register number of an IMM_REG: byte 0."""
        return self.word & 0xFF

    @property
    def register_reserved(self) -> int:
        """The three reserved bytes of an IMM_REG; zero in a legal word."""
        return self.word >> 8


@bit_group
@frozen(kw_only=True)
class DTypePair:
    """DTYPE_PAIR: two dtype codes in one byte (isa-encoding.md 7.2)."""

    first: int = bits(0, 4, "dtype of operand 0", enum=DType)
    second: int = bits(4, 4, "dtype of operand 1", enum=DType)


@frozen(kw_only=True)
class RawWord:
    """A word whose opcode has no family: header, events and an opaque payload."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    payload: bytes = raw(12, 52, "payload of a layout that is not described")


@frozen(kw_only=True)
class EventlessWord:
    """A word of the two v5 opcodes without an EVENTS block (isa-encoding.md 1.1)."""

    header: Header = struct(0, Header, "header")
    payload: bytes = raw(4, 60, "payload of a layout that is not described")


for _record, _size in (
    (Header, 4),
    (Events, 8),
    (Address, 4),
    (Tensor1D, 8),
    (Tensor2D, 12),
    (Tensor3D, 16),
    (Tensor4D, 20),
    (Indirect12B, 12),
    (Indirect16B, 16),
    (Indirect20B, 20),
    (Immediate, 4),
    (DTypePair, 1),
    (RawWord, WORD_BYTES),
    (EventlessWord, WORD_BYTES),
):
    check_cover(_record, _size)
