"""The on-chip memories of one core, and the door through which operands are made."""

from __future__ import annotations

from neuron_emu.generation import Generation
from neuron_emu.memory.address import (
    AccessPattern,
    IndirectPattern,
    Location,
    MemoryFault,
    Pattern,
    geometry_of,
    locate,
)
from neuron_emu.memory.bounds import INDEX_BYTES, direct_fault, index_fault, indirect_data_fault
from neuron_emu.memory.operand import (
    DirectOperand,
    IndirectOperand,
    Operand,
    read_index,
)
from neuron_emu.memory.space import Space
from neuron_emu.policy import Policy

__all__ = ["Memory"]

_ITEM_BYTES = (1, 2, 4, 8)


class Memory:
    """SBUF and PSUM of a core; `psum` is None on a generation without one.

    Power-on contents follow policy `uninitialised`; nothing is marked as written.
    """

    def __init__(self, generation: Generation, policy: Policy | None = None) -> None:
        self.generation = generation
        self.policy = policy or Policy()
        self.sbuf = Space("sbuf", generation.sbuf, self.policy)
        psum = generation.psum
        self.psum = Space("psum", psum, self.policy) if psum is not None else None
        self._spaces = {space.name: space for space in self.spaces}

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The memories that exist, SBUF first."""
        return (self.sbuf,) if self.psum is None else (self.sbuf, self.psum)

    def space_named(self, name: str) -> Space:
        """Return the memory called `name`; raise InputError naming those that exist."""
        geometry_of(self.generation, name)
        return self._spaces[name]

    def operand(
        self, pattern: Pattern, item_bytes: int, channels: int, *, max_elements: int
    ) -> Operand | MemoryFault:
        """Prepare the elements of `pattern` in `channels` lanes of `item_bytes` each.

        Returns a fault instead when a byte lies outside the memory (the first one in stream
        order), a count is zero, or more than `max_elements` would be visited in a partition. The
        cost for an access pattern does not depend on its counts. An operand of an access pattern
        may be kept; one of an indirect pattern has read its index and serves one execution.
        """
        start = pattern.start if isinstance(pattern, AccessPattern) else pattern.index_address
        problem = _count_problem(pattern, item_bytes, channels)
        if problem is not None:
            return MemoryFault(problem, start, 0, 0)
        if isinstance(pattern, IndirectPattern):
            return self._indirect(pattern, item_bytes, channels, max_elements)
        location = locate(self.generation, start)
        if location is None:
            return self._nowhere("address", start)
        space = self._spaces[location.space]
        dims = [
            (step * item_bytes, num) for step, num in zip(pattern.step, pattern.num, strict=True)
        ]
        fault = direct_fault(location, space.geometry, dims, item_bytes, channels)
        fault = fault or _too_many(pattern.num_elements, max_elements, start)
        if fault is not None:
            return fault
        return DirectOperand(space, location.partition, location.offset, channels, dims, item_bytes)

    def _indirect(
        self, pattern: IndirectPattern, item_bytes: int, channels: int, max_elements: int
    ) -> Operand | MemoryFault:
        num_elements = pattern.num_elements
        index = self._index_location(pattern.index_address)
        if isinstance(index, MemoryFault):
            return index
        fault = _too_many(num_elements, max_elements, pattern.index_address)
        if fault is not None:
            return fault
        data = locate(self.generation, pattern.data_address)
        if data is None:
            return self._nowhere("data address", pattern.data_address)
        group_size = self.generation.indirect_group_partitions
        groups = -(-channels // group_size)
        fault = index_fault(index, self.sbuf.geometry, num_elements, groups, group_size)
        if fault is not None:
            return fault
        offsets, unwritten = read_index(
            self.sbuf, index.partition, index.offset, num_elements, groups, group_size
        )
        space = self._spaces[data.space]
        fault = indirect_data_fault(data, space.geometry, offsets, item_bytes, channels, group_size)
        if fault is not None:
            return fault
        return IndirectOperand(
            space,
            data.partition,
            channels,
            item_bytes,
            data.offset,
            offsets,
            group_size,
            unwritten,
            (index.partition, index.offset),
        )

    def _index_location(self, address: int) -> Location | MemoryFault:
        """Return where an index tensor starts: in SBUF, at a multiple of 4 (isa-encoding 4.3)."""
        location = locate(self.generation, address)
        if location is None or location.space != "sbuf":
            last = self.generation.sbuf.end - 1
            reason = f"index address must be in sbuf (0x0 to {last:#x}), not {address:#x}"
            return MemoryFault(reason, address, 0, 0)
        if address % INDEX_BYTES:
            reason = f"index address must be a multiple of {INDEX_BYTES}, not {address:#x}"
            return MemoryFault(reason, address, 0, 0)
        return location

    def _nowhere(self, what: str, address: int) -> MemoryFault:
        windows = " or ".join(
            f"{space.name} ({space.geometry.base:#x} to {space.geometry.end - 1:#x})"
            for space in self.spaces
        )
        return MemoryFault(f"{what} must be in {windows}, not {address:#x}", address, 0, 0)


def _count_problem(pattern: Pattern, item_bytes: int, channels: int) -> str | None:
    """Say which count of an operand makes it empty or meaningless, or None."""
    if item_bytes not in _ITEM_BYTES:
        return f"element size must be 1, 2, 4 or 8 bytes, not {item_bytes}"
    if channels < 1:
        return f"channels must be at least 1, not {channels}"
    counts = pattern.num if isinstance(pattern, AccessPattern) else (pattern.num_elements,)
    for count in counts:
        if count < 1:
            return f"num_elem must be at least 1, not {count}"
    return None


def _too_many(num_elements: int, max_elements: int, start: int) -> MemoryFault | None:
    if num_elements <= max_elements:
        return None
    reason = (
        f"elements in a partition must be at most {max_elements} (policy max_elements),"
        f" not {num_elements}"
    )
    return MemoryFault(reason, start, max_elements, 0)
