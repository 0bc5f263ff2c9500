"""The words that are plain arithmetic, worked out for one element: each stage, and exactly.

The stages use the operations of the engine, one element at a time, and the exact values rational
arithmetic. What the stages come to is compared with what the word computed; where it differs,
nothing is shown. Sources: dve-tensor-scalar.md 4.5, 4.6, 9.2 to 9.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from neuron_emu.debug.element import Input, OneElement
from neuron_emu.debug.exact import applied, ulps
from neuron_emu.debug.history import Executed
from neuron_emu.debug.inputs import exact_inputs
from neuron_emu.debug.records import Station
from neuron_emu.engines import alu
from neuron_emu.engines.accumulator import start_values
from neuron_emu.engines.copy import reciprocal
from neuron_emu.engines.core import EngineState
from neuron_emu.engines.tensor_reduce import TILE
from neuron_emu.engines.tensor_tensor import float_stage
from neuron_emu.engines.worker import ACCUMULATING
from neuron_emu.isa.alu_ops import op_name
from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.isa.families.scalar_tensor_tensor import SCALAR_TENSOR_TENSOR, TENSOR_TENSOR_SCAN
from neuron_emu.isa.families.tensor_reduce import (
    CAST,
    RECIPROCAL,
    TENSOR_CUMULATIVE,
    TENSOR_REDUCE,
    TRANSPOSE_TENSOR_REDUCE,
)
from neuron_emu.isa.families.tensor_tensor import TENSOR_TENSOR
from neuron_emu.numerics import from_float32, multiply
from neuron_emu.policy import Policy

__all__ = ["Formula", "formula_of"]

Float32s = npt.NDArray[np.float32]
CACHE_CUMULATIVE = 0xE6
_MOST_STEPS = 8
"""Steps of a fold that are shown one by one."""
_MOST_FACTORS = 1024
"""Factors past this are not multiplied out: the rational grows with each."""


@frozen(eq=False)
class Formula:
    """The stages of one element, the fp32 value that is converted, and the exact one."""

    stations: tuple[Station, ...]
    result: float
    exact: Fraction | None


def formula_of(
    entry: Executed, alone: OneElement, state: EngineState, lane: int, dtype: DType
) -> Formula | None:
    """Work one element out; None for a word that is no plain formula.

    `lane` is that of the destination, `dtype` the destination's.
    """
    way = _WAYS.get(entry.issued.word[0])
    if way is None or not alone.reads:
        return None
    work = _Work(entry, state, lane, {read.role: read for read in reversed(alone.reads)})
    work.reads = alone.reads
    value, exact = way(work)
    if state.formats.rounding != "stochastic":
        bits = from_float32(value, dtype, state.formats, random=state.random)
        if int(bits[0]) != alone.bits:
            return None
    return Formula(tuple(work.stations), float(value[0]), exact)


@define(eq=False)
class _Work:
    """One element being worked out; values are float32 [1]."""

    entry: Executed
    state: EngineState
    lane: int
    inputs: dict[str, Input]
    reads: tuple[Input, ...] = ()
    stations: list[Station] = field(factory=list)

    @property
    def record(self) -> Any:
        return self.entry.issued.record

    @property
    def policy(self) -> Policy:
        return self.state.policy

    def values(self, role: str) -> tuple[Float32s, list[Fraction] | None]:
        """Return the elements of a source as fp32 [n], and exactly."""
        read = self.inputs[role]
        return read.floats(self.state), exact_inputs(read, self.state)

    def one(self, role: str) -> tuple[Float32s, Fraction | None]:
        """Return the only element of a source."""
        values, exact = self.values(role)
        return values[:1], None if exact is None else exact[0]

    def scalar(self, values: Float32s) -> tuple[Float32s, Fraction | None]:
        """Return a latched scalar, of one lane or the same in all."""
        flat = values.ravel()
        value = flat[self.lane : self.lane + 1] if flat.size > 1 else flat
        return value, _fraction(value)

    def stage(
        self,
        name: str,
        op: int,
        stream: Float32s,
        other: Float32s,
        *,
        is_reversed: bool = False,
        names: tuple[str, str] = ("x", "scalar"),
        **more: Any,
    ) -> Float32s:
        """Apply one operation and add its station with the loss of this stage alone."""
        y = float_stage(op, stream, other, is_reversed, self.policy)
        wanted = applied(op, _fraction(stream), _fraction(other), is_reversed)
        detail = {"op": op_name(op), **more, names[0]: _hex(stream), names[1]: _hex(other)}
        self.add(name, detail, y, wanted)
        return y

    def add(self, name: str, detail: dict[str, Any], y: Float32s, wanted: Fraction | None) -> None:
        """Add a station that gives y, with its distance from the exact value of the stage."""
        detail["y"] = _hex(y)
        value = float(y[0])
        self.stations.append(
            Station(name=name, detail=detail, value=value, loss_ulp=ulps(value, wanted))
        )


Result = tuple[Float32s, Fraction | None]


def _hex(value: Float32s) -> str:
    return f"{int(value.view(np.uint32)[0]):#010x}"


def _fraction(value: Float32s) -> Fraction | None:
    number = float(value[0])
    return Fraction(number) if math.isfinite(number) else None


def _cast(work: _Work) -> Result:
    return work.one("src")


def _reciprocal(work: _Work) -> Result:
    x, exact = work.one("src")
    y, near = reciprocal(x), _fraction(x)
    work.add("reciprocal", {"x": _hex(x)}, y, 1 / near if near else None)
    return y, 1 / exact if exact else None


def _tensor_tensor(work: _Work) -> Result:
    (a, exact_a), (b, exact_b) = work.one("src0"), work.one(_second(work))
    op = work.record.op
    y = work.stage("stage_0", op, a, b, names=("src0", "src1"))
    return y, applied(op, exact_a, exact_b)


def _second(work: _Work) -> str:
    """Return the role of the second tensor: one pattern may stand in both places."""
    return "src1" if "src1" in work.inputs else "src0"


def _swapped(work: _Work) -> tuple[bool, bool]:
    code = int(work.record.reverse_operands)
    return bool(code & 1), bool(code & 2)


def _scalar_tensor_tensor(work: _Work) -> Result:
    word, swapped = work.record, _swapped(work)
    (a, exact), (b, exact_b) = work.one("src0"), work.one(_second(work))
    scalar, exact_scalar = work.scalar(work.entry.prepared.scalars[0].floats())  # type: ignore[attr-defined]
    y = work.stage("stage_0", word.op0, a, scalar, is_reversed=swapped[0])
    y = work.stage("stage_1", word.op1, y, b, is_reversed=swapped[1], names=("x", "src1"))
    exact = applied(word.op0, exact, exact_scalar, swapped[0])
    return y, applied(word.op1, exact, exact_b, swapped[1])


def _reduce(work: _Work) -> Result:
    values, exact = _ordered(work)
    y, total = _fold(work, work.record.op, None, values, exact, value_first=False)
    if work.record.negated:
        y = multiply(y, np.full(1, -1, np.float32))
        total = None if total is None else -total
        work.add("negate", {}, y, _fraction(y))
    return y, total


def _ordered(work: _Work) -> tuple[Float32s, list[Fraction] | None]:
    """Return the elements of a run in stream order: a transposed run lies across lanes."""
    parts = [(read.floats(work.state), exact_inputs(read, work.state)) for read in work.reads]
    if len(parts) == 1:
        return parts[0]
    # Tile after tile, and in a tile lane after lane (dve-tensor-scalar.md 4.4).
    places = [
        (int(element) // TILE, read.lane, n, k)
        for n, read in enumerate(work.reads)
        for k, element in enumerate(read.elements)
    ]
    order = [(n, k) for *_, n, k in sorted(places)]
    values = np.array([parts[n][0][k] for n, k in order], np.float32)
    exacts = [part[1] for part in parts]
    if any(part is None for part in exacts):
        return values, None
    return values, [exacts[n][k] for n, k in order]  # type: ignore[index]


def _cumulative(work: _Work) -> Result:
    values, exact = work.values("src")
    return _fold(work, work.record.op, None, values, exact, value_first=False)


def _fold(
    work: _Work,
    op: int,
    start: Result | None,
    values: Float32s,
    exact: Sequence[Fraction | None] | None,
    *,
    value_first: bool,
) -> Result:
    """Fold elements into `start`, or into the first of them, and show the steps."""
    first = 0 if start is not None else 1
    numbers = work.reads[0].elements if len(work.reads) == 1 else np.arange(len(values))
    total = start[0] if start is not None else values[:1]
    steps = []
    for number in range(first, len(values)):
        before, value = total, values[number : number + 1]
        pair = (value, before) if value_first else (before, value)
        total = alu.apply(op, *pair, work.policy)
        steps.append((int(numbers[number]), before, value, total))
    wanted = _exact_fold(op, start, exact, value_first)
    if len(steps) <= _MOST_STEPS:
        for number, before, value, after in steps:
            a, b = _fraction(before), _fraction(value)
            near = applied(op, b, a) if value_first else applied(op, a, b)
            detail = {"op": op_name(op), "element": number, "acc": _hex(before), "x": _hex(value)}
            work.add("fold", detail, after, near)
    else:
        detail = {"op": op_name(op), "elements": len(values)}
        overflow = next((n for n, *_, y in steps if not np.isfinite(y[0])), None)
        if overflow is not None:
            detail["not_finite_from_element"] = overflow
        work.add("fold", detail, total, wanted)
    return total, wanted


def _exact_fold(
    op: int, start: Result | None, exact: Sequence[Fraction | None] | None, value_first: bool
) -> Fraction | None:
    if exact is None or (start is not None and start[1] is None):
        return None
    if len(exact) > _MOST_FACTORS and op in (AluOp.MULT, AluOp.DIVIDE):
        return None
    rest = list(exact) if start is not None else list(exact[1:])
    total = start[1] if start is not None else exact[0]
    for value in rest:
        total = applied(op, value, total) if value_first else applied(op, total, value)
    return total


def _scan(work: _Work) -> Result:
    """Work out r = (src0 op0 r) op1 src1 up to the element; the last steps are shown."""
    word, swapped = work.record, _swapped(work)
    (a, exact_a), (b, exact_b) = work.values("src0"), work.values(_second(work))
    r, exact = work.scalar(work.entry.prepared.scalars[0].floats())  # type: ignore[attr-defined]
    is_exact = len(a) <= _MOST_FACTORS and exact_a is not None and exact_b is not None
    for number in range(len(a)):
        x, y = a[number : number + 1], b[number : number + 1]
        if len(a) - number <= _MOST_STEPS // 2:
            names = ("src0", "r")
            first = work.stage(
                "stage_0", word.op0, x, r, is_reversed=swapped[0], names=names, element=number
            )
            names = ("x", "src1")
            r = work.stage("stage_1", word.op1, first, y, is_reversed=swapped[1], names=names)
        else:
            first = float_stage(word.op0, x, r, swapped[0], work.policy)
            r = float_stage(word.op1, first, y, swapped[1], work.policy)
        if is_exact:
            exact = applied(word.op0, exact_a[number], exact, swapped[0])  # type: ignore[index]
            exact = applied(word.op1, exact, exact_b[number], swapped[1])  # type: ignore[index]
    return r, exact if is_exact else None


def _cache_cumulative(work: _Work) -> Result:
    """Work out acc = (x op0 s0) op1 acc up to the element."""
    word, prepared = work.record, work.entry.prepared
    values, exact = work.values("src")
    scalar, exact_scalar = work.scalar(prepared.first.floats())  # type: ignore[attr-defined]
    if word.accumulator_cmd not in ACCUMULATING:
        y = work.stage("stage_0", word.op0, values[-1:], scalar)
        return y, None if exact is None else applied(word.op0, exact[-1], exact_scalar)
    start = start_values(
        work.state.accumulator,
        word.accumulator_cmd,
        word.num_active_channels,
        prepared.accumulation.identity,  # type: ignore[attr-defined]
        prepared.second.floats(),  # type: ignore[attr-defined]
    )[work.lane : work.lane + 1]
    if word.op0 == AluOp.BYPASS:
        taken = values
    else:
        taken = alu.apply(word.op0, values, scalar, work.policy)
        work.stage("stage_0", word.op0, values[-1:], scalar, element=len(values) - 1)
    inner = None if exact is None else [applied(word.op0, v, exact_scalar) for v in exact]
    begin = (start, _fraction(start))
    if math.isinf(float(start[0])) and word.op1 in (AluOp.MAX, AluOp.MIN) and inner:
        begin = (start, inner[0])  # the identity of MAX and MIN leaves the first as it is
    return _fold(work, word.op1, begin, taken, inner, value_first=True)


_WAYS: dict[int, Callable[[_Work], Result]] = {
    CAST: _cast,
    RECIPROCAL: _reciprocal,
    TENSOR_TENSOR: _tensor_tensor,
    SCALAR_TENSOR_TENSOR: _scalar_tensor_tensor,
    TENSOR_REDUCE: _reduce,
    TRANSPOSE_TENSOR_REDUCE: _reduce,
    TENSOR_CUMULATIVE: _cumulative,
    TENSOR_TENSOR_SCAN: _scan,
    CACHE_CUMULATIVE: _cache_cumulative,
}
