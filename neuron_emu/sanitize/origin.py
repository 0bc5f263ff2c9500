"""The station at which one element of a word became what it is: found by running it alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from neuron_emu.engines.accumulator import Accumulator
from neuron_emu.engines.core import Effects, EngineState, Operands, Prepared
from neuron_emu.engines.kernels import Kernel
from neuron_emu.isa.enums import DType
from neuron_emu.isa.layout import rows_of
from neuron_emu.isa.records import Address, Immediate, TensorPattern
from neuron_emu.issue import Issued
from neuron_emu.memory import Operand
from neuron_emu.numerics import to_float32
from neuron_emu.sanitize.trial import tried

__all__ = ["Place", "station_of"]

Test = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.bool_]]
_VALUES = ("v", "y", "value")
"""Keys under which stations tell intermediate values, as float32 bits (design.md 2)."""


@frozen
class Place:
    """An element and a station; `is_verified` when the element alone computes to the same bits."""

    lane: int
    element: int | None
    station: str
    is_verified: bool = False


def station_of(
    issued: Issued,
    operands: Operands,
    effects: Effects,
    state: EngineState,
    lane: int,
    element: int,
    test: Test,
) -> Place | None:
    """Return the first station of an element whose value passes a test; None when not found.

    The element is run as a word of its own, which changes nothing, and compared with what the
    whole word computed. A result that only the output format cannot hold arises at `convert`.
    """
    record = _one_element(issued.record, operands, effects, lane, element)
    if record is None or not isinstance(issued.kernel, Kernel):
        return None
    alone = tried(issued.kernel, record, _state_of_lane(state, lane))
    if alone is None:
        return None
    prepared, result = alone
    if not result.writes or result.writes[0][1].size != 1:
        return None
    if result.writes[0][1][0, 0] != effects.writes[0][1][lane, element]:
        return None
    station = _told_station(prepared, result, test)
    if station is None:
        station = _converted_or_computed(issued.kernel, record, state, lane, test)
    return Place(lane, element, station, is_verified=True)


def _one_element(
    record: Any, operands: Operands, effects: Effects, lane: int, element: int
) -> Any | None:
    """Return the word with one channel and one element, or None where that has no meaning."""
    tensors = [row.name for row in rows_of(type(record))]
    tensors = [name for name in tensors if isinstance(getattr(record, name), TensorPattern)]
    reads = [read.operand for read in operands.read if read.operand is not None]
    changes: dict[str, Any] = {"num_active_channels": 1}
    for name in tensors:
        if name.startswith("dst"):
            operand = effects.writes[0][0]
        elif reads:
            operand = reads.pop(0)
        else:
            return None
        pattern = _pattern_at(getattr(record, name), operand, lane, element)
        if pattern is None:
            return None
        changes[name] = pattern
    changes |= _pointers_at(record, reads, lane)
    try:
        return evolve(record, **changes)
    except TypeError:
        return None


def _pattern_at(
    pattern: TensorPattern, operand: Operand, lane: int, element: int
) -> TensorPattern | None:
    if lane >= operand.channels or element >= operand.num_elements:
        return None
    offset = int(operand.offsets_of_lane(lane)[element])
    address = operand.space.address(operand.first_partition + lane, offset)
    num = (1,) * len(pattern.num) if isinstance(pattern.num, tuple) else 1
    return evolve(pattern, start=Address(partition_offset=address, marker=0), num=num)


def _pointers_at(record: Any, scalars: list[Operand], lane: int) -> dict[str, Any]:
    """Return the pointers of a word moved on to another lane."""
    found: dict[str, Any] = {}
    for row in rows_of(type(record)):
        value = getattr(record, row.name)
        if isinstance(value, Immediate):
            for operand in scalars:
                place = operand.space.address(operand.first_partition, operand.low)
                if place == value.word:
                    stride = operand.space.geometry.partition_stride
                    found[row.name] = Immediate(word=place + lane * stride)
    return found


def _state_of_lane(state: EngineState, lane: int) -> EngineState:
    """Return the engine as a lane sees it, apart from the real one."""
    whole = state.accumulator
    return evolve(
        state,
        random=copy.deepcopy(state.random),
        registers=list(state.registers),
        accumulator=Accumulator(
            np.roll(whole.values, -lane), np.roll(whole.undefined, -lane), whole.warned
        ),
    )


def _told_station(prepared: Prepared, effects: Effects, test: Test) -> str | None:
    """Return the first station whose own value passes the test."""
    for name, detail in prepared.stations(effects):
        for key in _VALUES:
            text = detail.get(key)
            if isinstance(text, str) and text.startswith("0x") and len(text) <= 10:
                value = np.array([int(text, 16)], np.uint32).view(np.float32)
                if test(value)[0]:
                    return str(name)
    return None


def _converted_or_computed(
    kernel: Kernel, record: Any, state: EngineState, lane: int, test: Test
) -> str:
    """Tell an output format that cannot hold the result from an operation that made it."""
    wide = _with_fp32_output(record)
    alone = None if wide is None else tried(kernel, wide, _state_of_lane(state, lane))
    if alone is not None:
        values = to_float32(alone[1].writes[0][1], DType.FP32, state.formats)
        if not test(values).any():
            return "convert"
    return "operation"


def _with_fp32_output(record: Any) -> Any | None:
    """Return the word with fp32 as what it writes; None when no field says what it writes."""
    names = {row.name for row in rows_of(type(record))}
    if "out_dtype" in names:
        return evolve(record, out_dtype=int(DType.FP32))
    if "in_out_dtype" in names:
        return evolve(record, in_out_dtype=evolve(record.in_out_dtype, second=int(DType.FP32)))
    is_drain = "dtype" in names and "dst" in names and "src" not in names
    return evolve(record, dtype=int(DType.FP32)) if is_drain else None
