"""The inputs of an element as stations: addresses, bits, what the fp32 path makes of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from neuron_emu.debug.element import Input
from neuron_emu.debug.exact import ulps
from neuron_emu.debug.records import Station
from neuron_emu.debug.sources import ranges_text
from neuron_emu.engines.core import EngineState
from neuron_emu.isa.enums import DType
from neuron_emu.numerics import to_float32

__all__ = ["exact_inputs", "first_not_finite", "input_stations"]

_MOST = 8
"""Elements of a source that are shown one by one; of longer ones the ends."""
_SIGNED = (DType.INT8, DType.INT16, DType.INT32)


def first_not_finite(reads: tuple[Input, ...], state: EngineState) -> tuple[int, int] | None:
    """Return which source, and which of its elements here, first brought a NaN or infinity.

    First in stream order; None when all are finite.
    """
    found = []
    for number, read in enumerate(reads):
        if read.dtype.is_float:
            bad = np.flatnonzero(~np.isfinite(read.floats(state)))
            if bad.size:
                found.append((int(read.elements[bad[0]]), number, int(bad[0])))
    return None if not found else min(found)[1:]


def exact_inputs(read: Input, state: EngineState) -> list[Fraction] | None:
    """Return the values that stand in memory, before any conversion; None if one is not finite."""
    if not read.dtype.is_float:
        signed = read.dtype in _SIGNED
        stored = read.bits.view(f"<i{read.dtype.size_bytes}") if signed else read.bits
        return [Fraction(int(value)) for value in stored]
    values = read.floats(state)
    return [Fraction(float(v)) for v in values] if np.isfinite(values).all() else None


def input_stations(read: Input, state: EngineState, culprit: int | None) -> list[Station]:
    """Return a station for each element that is shown, and one for how many there are.

    `culprit` is the element here that first brought a NaN or infinity.
    """
    count = len(read.elements)
    shown = list(range(count))
    found: list[Station] = []
    if count > 1:
        detail: dict[str, Any] = {"operand": read.role, "elements": ranges_text(read.elements)}
        found.append(Station(name="inputs", detail=detail))
    if count > _MOST:
        ends = {0, 1, count - 2, count - 1}
        shown = sorted(ends if culprit is None else ends | {culprit})
    return [*found, *(_input(read, number, state, culprit == number) for number in shown)]


def _input(read: Input, number: int, state: EngineState, is_culprit: bool) -> Station:
    operand, element = read.operand, int(read.elements[number])
    offset = int(operand.offsets_of_lane(read.lane)[element])
    address = operand.space.address(operand.first_partition + read.lane, offset)
    bits = int(read.bits[number])
    detail: dict[str, Any] = {"operand": read.role}
    if len(read.elements) > 1:
        detail["element"] = element
    detail["address"] = f"{address:#x}"
    detail["bits"] = f"{bits:#0{2 * operand.item_bytes + 2}x}"
    value = float(to_float32(read.bits[number : number + 1], read.dtype, state.formats)[0])
    if is_culprit and len(read.elements) > 1:
        detail["first_not_finite"] = True
    one = Input(
        read.role, operand, read.dtype, read.lane, read.elements[:1], read.bits[number : number + 1]
    )
    exact = None if read.dtype.is_float else exact_inputs(one, state)
    loss = ulps(value, exact[0]) if exact else None
    return Station(name="input", detail=detail, value=value, loss_ulp=loss or None)
