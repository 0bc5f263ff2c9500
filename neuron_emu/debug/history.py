"""Who wrote what: one small entry per executed word, and the search for the last writer.

An entry names the operands of the word, not their bytes: operands of a repeated word are shared,
so an entry is a tuple. The values of the past come from the machine's undo (`Debugger.at`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt
from attrs import define, field

from neuron_emu.debug.operands import element_at, elements_at
from neuron_emu.engines.core import EngineState, Prepared
from neuron_emu.engines.sequencer import SyncChange
from neuron_emu.isa.enums import Engine
from neuron_emu.issue import Issued
from neuron_emu.memory import Operand

__all__ = ["Executed", "History", "Written", "read_operands"]

Integers = npt.NDArray[np.int64]

_DEEPEST = 3
_ROLES = {
    "source": "src",
    "first": "imm0",
    "second": "imm1",
    "sources0": "src0",
    "sources1": "src1",
    "scalar": "imm",
}
"""What users know the operands of the handlers by."""
MAX_ENTRIES = 1 << 18
"""Words that are remembered; the oldest are forgotten first."""


class Executed(NamedTuple):
    """One word that ran: when, where, its prepared form and what it changed.

    `begun` is the step in which it read its sources; under `interleave` other words may have
    written between that and `step`, in which it wrote.
    """

    step: int
    begun: int
    engine: Engine
    position: int
    issued: Issued
    prepared: Prepared
    written: tuple[Operand, ...]
    accumulator: bool
    tables: bool
    registers: tuple[tuple[int, int], ...]
    sync: tuple[SyncChange, ...]


class Written(NamedTuple):
    """Bytes of a group that one word wrote: their numbers in the group, and the elements."""

    entry: Executed
    operand: Operand
    lane: int
    numbers: Integers
    elements: Integers


@define(eq=False)
class History:
    """The words that ran, oldest first."""

    entries: deque[Executed] = field(factory=lambda: deque(maxlen=MAX_ENTRIES))

    def forget_from(self, step: int) -> None:
        """Drop the words that ran at or after a step: the machine went back before them."""
        entries = self.entries
        while entries and entries[-1].step >= step:
            entries.pop()

    @property
    def first_step(self) -> int | None:
        """The oldest step that is remembered."""
        return self.entries[0].step if self.entries else None

    def before(self, step: int | None = None) -> Iterator[Executed]:
        """Yield the words that ran before a step, newest first; all of them without one."""
        return (e for e in reversed(self.entries) if step is None or e.step < step)

    def last_writer(
        self, space: str, partition: int, offset: int, before: int | None = None
    ) -> tuple[Executed, Operand, int, int] | None:
        """Return the last word that wrote a byte, with operand, lane and element."""
        for entry in self.before(before):
            for operand in entry.written:
                found = element_at(operand, space, partition, offset)
                if found is not None:
                    return entry, operand, *found
        return None

    def last_writers(
        self, space: str, partition: int, offsets: Integers, before: int
    ) -> tuple[list[Written], Integers]:
        """Return the last writers of bytes of a partition, and the numbers of those without."""
        return _writers(self.before(before), space, partition, offsets)

    def first_writers(
        self, space: str, partition: int, offsets: Integers, after: int
    ) -> tuple[list[Written], Integers]:
        """Return the first writers of bytes from a step on, and the numbers of those without."""
        later = (entry for entry in self.entries if entry.step >= after)
        return _writers(later, space, partition, offsets)

    def last_accumulation(
        self, engine: Engine, lane: int, before: int | None = None
    ) -> Executed | None:
        """Return the last word that changed the accumulator of a lane."""
        for entry in self.before(before):
            if entry.accumulator and entry.engine is engine:
                lanes = getattr(entry.issued.record, "num_active_channels", lane + 1)
                if lane < lanes:
                    return entry
        return None


def _writers(
    entries: Iterator[Executed], space: str, partition: int, offsets: Integers
) -> tuple[list[Written], Integers]:
    left = np.arange(len(offsets))
    found = []
    for entry in entries:
        for operand in entry.written:
            elements = elements_at(operand, space, partition, offsets[left])
            hits = elements >= 0
            if hits.any():
                lane = partition - operand.first_partition
                found.append(Written(entry, operand, lane, left[hits], elements[hits]))
                left = left[~hits]
        if not left.size:
            break
    return found, left


def read_operands(entry: Executed) -> Iterator[tuple[str, Operand]]:
    """Yield the memory operands that a word reads, by the names its prepared form gives them."""
    names: dict[int, str] = {}
    for name, found in operands_in(entry.prepared, "", 0):
        names.setdefault(id(found), name)
    seen: list[Operand] = []
    for number, read in enumerate(entry.prepared.operands().read):
        operand = read.operand
        if operand is not None and not any(operand is other for other in seen):
            seen.append(operand)
            name = names.get(id(operand), f"src{number}")
            yield _role(name, entry.issued.record), operand


def _role(name: str, record: Any) -> str:
    """Return what the word calls an operand; what it keeps of its destination is `dst`."""
    role = _ROLES.get(name, name)
    if name == "sources0" and hasattr(record, "src"):
        return "src"
    return "dst" if name.startswith("sources") and not hasattr(record, role) else role


def operands_in(value: Any, name: str, depth: int) -> Iterator[tuple[str, Operand]]:
    """Yield the operands that a prepared word holds, in its fields and in those of its scalars."""
    if isinstance(value, Operand):
        yield name, value
    elif isinstance(value, (tuple, list)):
        for number, part in enumerate(value):
            yield from operands_in(part, getattr(part, "name", f"{name}{number}"), depth)
    elif depth < _DEEPEST and is_part(value):
        for attribute in attrs.fields(type(value)):
            inner = name if attribute.name == "operand" else attribute.name
            yield from operands_in(getattr(value, attribute.name), inner, depth + 1)


def is_part(value: Any) -> bool:
    """Tell whether a value is a record of a handler, not the engine it works on or a word."""
    is_handler = type(value).__module__.startswith("neuron_emu.engines.")
    return attrs.has(type(value)) and is_handler and not isinstance(value, EngineState)
