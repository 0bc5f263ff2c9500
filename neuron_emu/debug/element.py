"""One element of a word, computed alone: the same handlers on operands of a single element.

A prepared word holds its operands in its fields. Replacing each by one of a single element gives a
word that computes just that element, through the general way of the evaluators, and whose stations
describe it. What depends on more than its own element is computed whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.debug.history import Executed, is_part, read_operands
from neuron_emu.debug.sources import Integers, contributing, is_scan
from neuron_emu.engines.activation import PreparedActivation
from neuron_emu.engines.core import Effects, EngineState, Problem
from neuron_emu.engines.result_tables import ResultTables
from neuron_emu.engines.streaming import Elementwise, PreparedStream
from neuron_emu.engines.worker import PreparedTensorScalar
from neuron_emu.isa.enums import DType
from neuron_emu.memory import Bits, DirectOperand, IndirectOperand, Operand
from neuron_emu.numerics import to_float32

__all__ = ["Input", "OneElement", "compute_alone", "is_elementwise"]

_DEEPEST = 3
_FEW = 8
"""Elements that are read one by one rather than with the whole operand."""
_CUMULATIVE = 0xE6


@frozen(eq=False)
class Input:
    """Elements of one lane of a source, ascending, with the bits that the word read there."""

    role: str
    operand: Operand
    dtype: DType
    lane: int
    elements: Integers
    bits: Bits

    def floats(self, state: EngineState) -> npt.NDArray[np.float32]:
        """Return the elements as the fp32 path takes them, float32 [n]."""
        return to_float32(self.bits, self.dtype, state.formats)


@frozen(eq=False)
class OneElement:
    """What one element came to: its bits, the stations of its handler, and how they were had.

    `narrowed` is the word of a single element, None when the word was computed whole.
    """

    bits: int
    stations: tuple[tuple[str, dict[str, Any]], ...]
    narrowed: Any
    reads: tuple[Input, ...]
    """What it was made from in memory."""


def is_elementwise(entry: Executed) -> bool:
    """Tell whether an element of the destination depends on the same element of the sources."""
    prepared = entry.prepared
    if isinstance(prepared, PreparedActivation):
        return True
    if isinstance(prepared, PreparedTensorScalar):
        return entry.issued.word[0] != _CUMULATIVE and prepared.arrangement is None
    if isinstance(prepared, PreparedStream):
        return isinstance(prepared.begin(), Elementwise)
    return False


@contextmanager
def _undisturbed(state: EngineState) -> Iterator[None]:
    """Keep the generator as it is, and let nothing be answered from remembered results."""
    drawn, tables = state.random.bit_generator.state, state.result_tables
    state.result_tables = ResultTables()
    try:
        yield
    finally:
        state.random.bit_generator.state, state.result_tables = drawn, tables


def compute_alone(
    entry: Executed, number: int, lane: int, element: int, state: EngineState
) -> OneElement | Problem:
    """Compute one element of the destination `number` of a word, before the word has run.

    The machine must be in the state before the word. Nothing of it changes.
    """
    with _undisturbed(state):
        effects = entry.prepared.execute()
    if isinstance(effects, Problem):
        return effects
    destination, bits = effects.writes[number]
    reads = _reads(entry, destination, bits, lane, element)
    with _undisturbed(state), _earlier_elements(entry, destination, bits, element):
        if state.policy.rounding == "stochastic" or not is_elementwise(entry):
            return OneElement(int(bits[lane, element]), (), None, reads)
        if isinstance(entry.prepared, PreparedStream):
            alone = _sliced(entry.prepared, lane, element)
            found = alone.execute()
            if isinstance(found, Problem):
                return found
            details = (("operation", dict(alone.details)),) if alone.details else ()
            return OneElement(int(found.writes[0][1][lane, 0]), details, None, reads)
        narrowed = _narrowed(entry.prepared, lane, element, 0)
        result = narrowed.execute()
        if isinstance(result, Problem):
            return result
        stations = tuple(narrowed.stations(result))
        return OneElement(int(_first(result)), stations, narrowed, reads)


def _first(effects: Effects) -> Any:
    return effects.writes[0][1][0, 0]


def _reads(
    entry: Executed, destination: Operand, bits: Bits, lane: int, element: int
) -> tuple[Input, ...]:
    """Return what an element was made from, with what the word read there."""
    dtypes = {id(r.operand): r.dtype for r in entry.prepared.operands().read}
    wanted = [
        (role, operand, of, group)
        for role, operand in read_operands(entry)
        if lane < operand.channels
        for of, group in contributing(entry, operand, destination, lane, np.array([element]))
    ]
    if is_scan(entry) and getattr(entry.prepared, "is_overlapping", False):
        found = _read_in_order(wanted, destination, bits, element)
    else:
        with _earlier_elements(entry, destination, bits, element):
            found = [_read_group(operand, of, group) for _, operand, of, group in wanted]
    return tuple(
        Input(role, operand, dtypes[id(operand)], of, group, values)
        for (role, operand, of, group), values in zip(wanted, found, strict=True)
    )


def _read_group(operand: Operand, lane: int, elements: Integers) -> Bits:
    if len(elements) > _FEW:
        return np.asarray(operand.read()[lane, elements], operand.dtype)
    return np.array([operand.read_element(int(e))[lane] for e in elements], operand.dtype)


def _read_in_order(
    wanted: list[tuple[str, Operand, int, Integers]],
    destination: Operand,
    bits: Bits,
    element: int,
) -> list[Bits]:
    """Read as a scan does: each element when all before it have been written."""
    found = [np.zeros(len(group), operand.dtype) for _, operand, _, group in wanted]
    saved = destination.save()
    try:
        for now in range(element + 1):
            for (_, operand, lane, group), values in zip(wanted, found, strict=True):
                if now in group:
                    values[group == now] = operand.read_element(now)[lane]
            destination.write_element(now, bits[:, now])
    finally:
        destination.restore(saved)
    return found


@contextmanager
def _earlier_elements(
    entry: Executed, destination: Operand, bits: Bits, element: int
) -> Iterator[None]:
    """Put in place what earlier elements of an overlapping word wrote; put it back at the end."""
    if not getattr(entry.prepared, "is_overlapping", False):
        yield
        return
    saved = destination.save()
    try:
        for earlier in range(element):
            destination.write_element(earlier, bits[:, earlier])
        yield
    finally:
        destination.restore(saved)


def _narrowed(value: Any, lane: int, element: int, depth: int) -> Any:
    """Return a prepared word, or a part of one, with operands of a single element and lane."""
    if isinstance(value, Operand):
        at = element if value.num_elements > 1 else 0
        offset = int(value.offsets_of_lane(lane)[at])
        return DirectOperand(
            value.space, value.first_partition + lane, offset, 1, [], value.item_bytes
        )
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_narrowed(part, lane, element, depth) for part in value)
    if hasattr(value, "num_active_channels"):
        return attrs.evolve(value, num_active_channels=1)
    if depth >= _DEEPEST or not is_part(value):
        return value
    changes: dict[str, Any] = {}
    for attribute in attrs.fields(type(value)):
        old = getattr(value, attribute.name)
        new = _narrowed(old, lane, element, depth + 1)
        if attribute.name == "is_overlapping":
            new = False
        if new is not old:
            changes[attribute.alias] = new
    return attrs.evolve(value, **changes) if changes else value


def _sliced(prepared: PreparedStream, lane: int, element: int) -> PreparedStream:
    """Return a word of one element in all lanes: its scalars belong to a closure of all lanes."""
    stored = prepared.destination
    return attrs.evolve(
        prepared,
        sources=tuple(_column(source, element) for source in prepared.sources),
        destination=attrs.evolve(stored, operand=_column(stored.operand, element)),
        is_overlapping=False,
    )


def _column(operand: Operand, element: int) -> Operand:
    if isinstance(operand, IndirectOperand):
        return _OneColumn(operand, element)
    offset = int(operand.offsets_of_lane(0)[element])
    return DirectOperand(
        operand.space, operand.first_partition, offset, operand.channels, [], operand.item_bytes
    )


class _OneColumn(DirectOperand):
    """One element of an indirect operand in each lane, wherever it lies there."""

    def __init__(self, operand: Operand, element: int) -> None:
        super().__init__(
            operand.space,
            operand.first_partition,
            operand.low,
            operand.channels,
            [],
            operand.item_bytes,
        )
        self._of, self._element = operand, element

    def read(self) -> Bits:
        return self._of.read_element(self._element)[:, None]
