"""Local addresses, access patterns with resolved addresses, and what a bad access reports.

Sources: isa-encoding.md 3.3 (address map), 4.1 (TENSORnD), 4.3 (INDIRECT) [observed].
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from attrs import Attribute, field, frozen

from neuron_emu.errors import InputError
from neuron_emu.generation import Generation, MemoryGeometry

__all__ = [
    "AccessPattern",
    "IndirectPattern",
    "Location",
    "MemoryFault",
    "Pattern",
    "geometry_of",
    "local_address",
    "locate",
]


@frozen
class Location:
    """A place in a memory: `offset` is in bytes and may lie past the active ones of `partition`."""

    space: str
    partition: int
    offset: int


def _geometries(generation: Generation) -> Iterator[tuple[str, MemoryGeometry]]:
    yield "sbuf", generation.sbuf
    if generation.psum is not None:
        yield "psum", generation.psum


def geometry_of(generation: Generation, space: str) -> MemoryGeometry:
    """Return the geometry of `space`; raise InputError naming those that the generation has."""
    geometries = dict(_geometries(generation))
    if space not in geometries:
        accepted = " or ".join(geometries)
        raise InputError(f"space must be {accepted} on {generation.name}, not {space!r}")
    return geometries[space]


def locate(generation: Generation, address: int) -> Location | None:
    """Return where a local address lies, or None when no memory's window holds it.

    The window is stride times partitions (isa-encoding.md 3.3), so the offset may lie in the
    hole past a partition's active bytes. Flag bits of the address word are not stripped here.
    """
    for name, geometry in _geometries(generation):
        if geometry.base <= address < geometry.end:
            partition, offset = divmod(address - geometry.base, geometry.partition_stride)
            return Location(name, partition, offset)
    return None


def local_address(generation: Generation, space: str, partition: int, offset: int) -> int:
    """Return the local address of a byte; raise InputError for a space that does not exist.

    Partition and offset are not checked: a fault names addresses outside the memory as well, and
    the address of a byte before SBUF's first is negative.
    """
    geometry = geometry_of(generation, space)
    return geometry.base + partition * geometry.partition_stride + offset


def _one_to_four(instance: AccessPattern, attribute: Attribute[Any], step: tuple[int, ...]) -> None:
    if not 1 <= len(step) <= 4 or len(step) != len(instance.num):
        raise ValueError(
            f"a pattern must have 1 to 4 steps and as many counts, not {len(step)} steps"
            f" and {len(instance.num)} counts"
        )


@frozen
class AccessPattern:
    """A strided walk in one partition, repeated in every lane (isa-encoding.md 4.1).

    `start` is a local address; steps and counts are in elements, innermost first, 1 to 4 of each.
    """

    start: int
    step: tuple[int, ...] = field(validator=_one_to_four)
    num: tuple[int, ...]

    @property
    def num_elements(self) -> int:
        """Elements that one lane visits."""
        return prod(self.num)


@frozen
class IndirectPattern:
    """A gather or scatter through a list of offsets (isa-encoding.md 4.3).

    Both addresses are local addresses: of the u32 offsets, and of offset 0 of the data.
    """

    index_address: int
    data_address: int
    num_elements: int


Pattern = AccessPattern | IndirectPattern


@frozen
class MemoryFault:
    """An access that cannot be done. It is a result: the machine turns it into a fault.

    Attributes
    ----------
    reason: one sentence with the bad value and what would be accepted.
    address: local address of the first bad byte in stream order (element by element, lanes
        innermost, bytes upwards). It need not be an address that exists.
    element, lane: position of the element that holds it.
    """

    reason: str
    address: int
    element: int
    lane: int
