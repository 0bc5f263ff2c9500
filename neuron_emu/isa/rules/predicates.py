"""The leaf predicates that several conjuncts share, for one word and for columns alike.

Sources: isa-encoding.md 3.1 (ADDR4), 3.3 (address map), 3.4 (quadrants), 6.9, 6.10 and 6.12.
"""

from __future__ import annotations

from functools import cache, cached_property, reduce
from math import prod
from operator import and_
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from neuron_emu.generation import Generation
from neuron_emu.isa.enums import AddressMarker, DType, member
from neuron_emu.isa.layout import spans_of
from neuron_emu.isa.records import Address
from neuron_emu.isa.rules.core import Review, Truth

__all__ = [
    "ADDRESS_MASK",
    "ADDR_REG",
    "ALIGNMENT_MASK",
    "FOUR_BYTE_DTYPES",
    "IMM",
    "Operand",
    "Place",
    "alignment_of",
    "channels_in_range",
    "counts_of",
    "implies",
    "legal_starts",
    "marker_text",
    "nearest_of",
    "operand_of",
    "window_text",
]

ADDRESS_MASK = 0x1FFFFFFF
"""Bits 0 to 28 of ADDR4 (isa-encoding.md 3.1)."""
IMM = AddressMarker.IMM >> 5
ADDR_REG = AddressMarker.ADDR_REG >> 5
INDIRECT_IMM = AddressMarker.INDIRECT_IMM >> 5
INDIRECT_REG = AddressMarker.INDIRECT_REG >> 5
_NO_MARKER = 8
"""What no three bits hold."""


def implies(condition: Truth, truth: Truth) -> Truth:
    """Return `truth` where the condition holds, True elsewhere."""
    return (condition ^ True) | truth


def alignment_of(dtype: int) -> int:
    """Return the alignment of `addr_aligned_dtype` in bytes, 1 for a dtype without one."""
    known = member(DType, dtype)
    return (known.size_bytes if known is not None else 0) or 1


ALIGNMENT_MASK: npt.NDArray[np.uint32] = np.array(
    [alignment_of(code) - 1 for code in range(256)], dtype=np.uint32
)
FOUR_BYTE_DTYPES = frozenset((DType.INT32, DType.UINT32, DType.FP32, DType.FP32R))
"""What PSUM may be written with (isa-encoding.md 6.12)."""


# --- spaces and partitions --------------------------------------------------------------------


class Place:
    """A local address (flag bits removed) and what its place is, each worked out once."""

    def __init__(self, review: Review, address: Any) -> None:
        self.review = review
        self.address = address

    @cached_property
    def in_sbuf(self) -> Truth:
        """`addr_in_sbuf`: the whole window, inactive bytes included."""
        return self.address < self.review.generation.sbuf.end

    @cached_property
    def in_psum(self) -> Truth:
        """`addr_in_psum`: the whole window; never true on a generation without PSUM."""
        psum = self.review.generation.psum
        if psum is None:
            return self.address < 0
        return (self.address >= psum.base) & (self.address < psum.end)

    @cached_property
    def in_memory(self) -> Truth:
        """The address lies in one of the two windows."""
        return self.in_sbuf | self.in_psum

    @cached_property
    def partition(self) -> Any:
        """The partition of an address inside a window."""
        sbuf, psum = self.review.generation.sbuf, self.review.generation.psum
        plain = self.address // sbuf.partition_stride
        if psum is None or not self.review.any(self.in_psum):
            return plain
        other = (self.address - psum.base) // psum.partition_stride
        return self.review.where(self.in_psum, other, plain)

    @cached_property
    def start_allowed(self) -> Truth:
        """`start_addr_active_channels`: the start partition suits the channel count (6.10)."""
        generation = self.review.generation
        masks = _start_masks(generation.num_channels, generation.quadrant_partitions)
        return (self.partition & masks[self.review["num_active_channels"]]) == 0

    def moved_to(self, partition: int) -> int:
        """Return the address of the same offset in another partition; for one word only."""
        psum = self.review.generation.psum
        geometry = psum if psum is not None and self.in_psum else self.review.generation.sbuf
        return int(self.address) + (partition - int(self.partition)) * geometry.partition_stride


def window_text(generation: Generation, *, psum: bool = True) -> str:
    """Say where a local address may lie."""
    windows = [f"in SBUF ({generation.sbuf.base:#x}..{generation.sbuf.end - 1:#x})"]
    if psum and generation.psum is not None:
        windows.append(f"in PSUM ({generation.psum.base:#x}..{generation.psum.end - 1:#x})")
    return " or ".join(windows)


# --- channels and start partitions ------------------------------------------------------------


def channels_in_range(review: Review) -> Truth:
    """`has_valid_active_channel_range`: 1 to 128 (isa-encoding.md 6.9)."""
    channels = review["num_active_channels"]
    return (channels >= 1) & (channels <= review.generation.num_channels)


@cache
def _start_masks(num_channels: int, quadrant: int) -> npt.NDArray[np.uint32]:
    """Return, by channel count, the partition bits that must be zero in a start partition.

    32 channels start on a quadrant, 64 on two, 96 and 128 at 0 (isa-encoding.md 6.10).
    """
    masks = []
    for channels in range(256):
        block = quadrant
        while block < min(channels, num_channels):
            block *= 2
        masks.append(block - 1)
    return np.array(masks, dtype=np.uint32)


def legal_starts(generation: Generation, channels: int) -> tuple[int, ...]:
    """Return the legal start partitions of a channel count."""
    mask = _start_masks(generation.num_channels, generation.quadrant_partitions)[channels]
    return tuple(range(0, generation.num_channels, int(mask) + 1))


def nearest_of(value: int, legal: tuple[int, ...]) -> int:
    """Return the legal value next to `value`."""
    return min(legal, key=lambda candidate: abs(candidate - value))


# --- address words ----------------------------------------------------------------------------


def marker_text(word: int) -> str:
    """Name the marker of an ADDR4 word."""
    address = Address.of(word)
    return address.kind.name if address.kind is not None else f"{address.marker << 5:#04x}"


class Operand:
    """The address words of a MEM_PATTERNnD operand as a rule needs them.

    `plain` is an immediate address, `register` the ADDR_REG form, `indirect` either INDIRECT form.
    A generation without indirect patterns has only the first two (isa-encoding.md 4.2).
    """

    def __init__(self, review: Review, name: str) -> None:
        self.review = review
        self.name = name
        self.word = review[f"{name}.start"]
        marker = self.word >> 29
        self.plain = marker == IMM
        self.register = marker == ADDR_REG
        indirect = review.generation.has_indirect
        self.index_immediate = marker == (INDIRECT_IMM if indirect else _NO_MARKER)
        self.index_register = marker == (INDIRECT_REG if indirect else _NO_MARKER)
        self.indirect = self.index_immediate | self.index_register
        self.has_indirect = review.any(self.indirect)
        self.legal = self.plain | self.register | self.indirect
        self.start = Place(review, self.word & ADDRESS_MASK)

    @cached_property
    def counts(self) -> tuple[Any, ...]:
        """The counts of a tensor, X first."""
        paths = counts_of(self.review.record, self.name)
        return tuple(self.review[path] for path in paths)

    @cached_property
    def data(self) -> Place:
        """The data address of an indirect pattern."""
        return Place(self.review, self.review[f"{self.name}.data"] & ADDRESS_MASK)

    @cached_property
    def unflagged(self) -> Truth:
        """The data address of an indirect pattern has no flag bits."""
        return self.review[f"{self.name}.data"] >> 29 == 0

    @cached_property
    def counts_nonzero(self) -> Truth:
        """Every count of a tensor, or the one of an indirect pattern, is not zero."""
        truth = reduce(and_, (count != 0 for count in self.counts))
        if not self.has_indirect:
            return truth
        return self.review.where(self.indirect, self.review[f"{self.name}.num_elem"] != 0, truth)

    @cached_property
    def element_count(self) -> Any:
        """Elements in one partition."""
        total = prod((self.review.wide(count) for count in self.counts), start=1)
        if not self.has_indirect:
            return total
        elements = self.review.wide(self.review[f"{self.name}.num_elem"])
        return self.review.where(self.indirect, elements, total)


_COUNTS: dict[tuple[type[Any], str], tuple[str, ...]] = {}


def counts_of(record: type[Any], name: str) -> tuple[str, ...]:
    """Return the paths of the counts of an operand, X first."""
    paths = _COUNTS.get((record, name))
    if paths is None:
        found = (path for path in spans_of(record) if path.startswith(f"{name}.num["))
        paths = _COUNTS[record, name] = tuple(found)
    return paths


def operand_of(review: Review, name: str) -> Operand:
    """Return the operand `name` of a review, the same one for every rule."""
    known = review.operands.get(name)
    if known is None:
        known = review.operands[name] = Operand(review, name)
    return cast(Operand, known)
