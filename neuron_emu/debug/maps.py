"""Maps: how full the memories are, and where one word reads and writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.debug.operands import operand_of, word_operands
from neuron_emu.debug.records import Place
from neuron_emu.errors import InputError
from neuron_emu.isa.codec import decode
from neuron_emu.machine import Machine
from neuron_emu.memory import Space

__all__ = ["AccessMap", "Occupancy", "OperandMap", "access_map", "occupancy"]

_ROWS, _COLUMNS = 16, 64


@frozen(eq=False)
class Occupancy:
    """How much of a memory was ever written: the share of each cell, rows of partitions.

    `shares` is float [rows, columns]; a row covers `partitions_per_row`, a column `bytes_per_cell`
    of each partition.
    """

    space: str
    shares: npt.NDArray[np.float64]
    partitions_per_row: int
    bytes_per_cell: int
    written_bytes: int
    total_bytes: int


@frozen(eq=False)
class OperandMap:
    """Where one operand lies: lanes, and the byte offset of each element in stream order.

    `offsets` is that of the first lane; `is_same_in_lanes` is False for an indirect operand.
    """

    role: str
    dtype: str
    is_written: bool
    space: str
    first_partition: int
    channels: int
    item_bytes: int
    offsets: npt.NDArray[np.int64]
    is_same_in_lanes: bool


@frozen
class AccessMap:
    """The operands of a word as it would access them now."""

    place: Place
    operands: tuple[OperandMap, ...]


def occupancy(space: Space) -> Occupancy:
    """Count the written bytes of a memory in a grid."""
    written = space.written
    partitions, size = written.shape
    rows, columns = partitions // _ROWS, size // _COLUMNS
    cells = written.reshape(_ROWS, rows, _COLUMNS, columns)
    shares = cells.mean(axis=(1, 3))
    return Occupancy(space.name, shares, rows, columns, int(written.sum()), written.size)


def access_map(machine: Machine, place: Place, word: bytes) -> AccessMap:
    """Resolve the operands of a word; InputError when it has none that can be."""
    record: Any = decode(word, machine.generation)
    registers = machine.engine(place.engine).registers
    found = []
    for named in word_operands(record):
        operand = operand_of(named, record, machine.memory, registers)
        if operand is None or named.dtype is None:
            continue
        offsets = operand.offsets_of_lane(0)
        last = operand.offsets_of_lane(operand.channels - 1)
        found.append(
            OperandMap(
                role=named.role,
                dtype=named.dtype.word,
                is_written=named.is_written,
                space=operand.space.name,
                first_partition=operand.first_partition,
                channels=operand.channels,
                item_bytes=operand.item_bytes,
                offsets=offsets,
                is_same_in_lanes=bool((offsets == last).all()),
            )
        )
    if not found:
        raise InputError(f"{place} must access memory to be mapped: {place.text}")
    return AccessMap(place, tuple(found))
