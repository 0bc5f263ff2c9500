"""One on-chip memory: its bytes and, for each byte, whether anything ever wrote it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_emu.generation import MemoryGeometry
from neuron_emu.policy import Policy

__all__ = ["Space"]

_LEAST_KNOWN_BYTES, _MOST_KNOWN_AREAS = 1 << 14, 8


class Space:
    """The active bytes of SBUF or PSUM.

    Attributes
    ----------
    name: `sbuf` or `psum`.
    data: uint8 [partitions, active bytes], C order; operands are views of it, never replaced.
    written: bool of the same shape, True once a byte was written.
    epoch: counts the events that may have cleared `written` flags. Operands remember the epoch in
        which their bytes were all written, so that a repeated word need not look again.
    """

    def __init__(self, name: str, geometry: MemoryGeometry, policy: Policy) -> None:
        self.name = name
        self.geometry = geometry
        self.data = _initial_bytes(name, geometry, policy)
        self.written: npt.NDArray[np.bool_] = np.zeros(self.data.shape, dtype=np.bool_)
        self.epoch = 0
        self._known_written: list[tuple[int, int, int, int]] = []

    def flags_cleared(self) -> None:
        """Say that `written` flags may have been cleared; whoever clears some must call this."""
        self.epoch += 1
        self._known_written.clear()

    def is_known_written(self, first: int, channels: int, low: int, end: int) -> bool:
        """Tell whether bytes `low` to `end` of partitions are in an area known to be written.

        True is certain, False is not: the flags of large areas take longer to look at than this.
        """
        last = first + channels
        for from_partition, to_partition, from_byte, to_byte in self._known_written:
            if (
                from_partition <= first
                and last <= to_partition
                and from_byte <= low
                and end <= to_byte
            ):
                return True
        return False

    def know_written(self, first: int, channels: int, low: int, end: int) -> None:
        """Remember an area in which every byte was written, if it is large."""
        if channels * (end - low) < _LEAST_KNOWN_BYTES:
            return
        if len(self._known_written) == _MOST_KNOWN_AREAS:
            del self._known_written[0]
        self._known_written.append((first, first + channels, low, end))

    def address(self, partition: int, offset: int) -> int:
        """Return the local address of a byte."""
        return self.geometry.base + partition * self.geometry.partition_stride + offset

    def __repr__(self) -> str:
        return f"Space({self.name!r}, {self.data.shape[0]} x {self.data.shape[1]:#x} bytes)"


def _initial_bytes(name: str, geometry: MemoryGeometry, policy: Policy) -> npt.NDArray[np.uint8]:
    """Return what a memory holds at power-on: policy `uninitialised`."""
    shape = (geometry.num_partitions, geometry.active_bytes)
    if policy.uninitialised == "nan":
        return np.full(shape, 0xFF, dtype=np.uint8)
    if policy.uninitialised == "random":
        # The name takes part, so that SBUF and PSUM do not hold the same bytes.
        generator = np.random.default_rng([policy.seed, *name.encode()])
        return generator.integers(0, 256, size=shape, dtype=np.uint8)
    return np.zeros(shape, dtype=np.uint8)
