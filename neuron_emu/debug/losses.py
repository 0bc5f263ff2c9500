"""What each station of an element loses against exact arithmetic, in ULP."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import define

from neuron_emu.debug.element import OneElement
from neuron_emu.debug.exact import applied, exact_function, source_of_truth, ulps
from neuron_emu.debug.formulas import Formula, formula_of
from neuron_emu.debug.history import Executed
from neuron_emu.debug.records import Station
from neuron_emu.engines.accumulator_read import PreparedAccumulatorRead
from neuron_emu.engines.activation import PreparedActivation
from neuron_emu.engines.core import EngineState, Problem
from neuron_emu.engines.exponential import ExponentialDatapath
from neuron_emu.engines.tensor_scalar import ArithmeticDatapath
from neuron_emu.engines.worker import PreparedTensorScalar
from neuron_emu.isa.enums import DType
from neuron_emu.numerics import to_float32
from neuron_emu.pwp.arithmetic import cubic_silicon
from neuron_emu.pwp.profile import float_value

__all__ = ["Losses"]

_SKIPPED = ("write", "accumulator")
"""Stations of a whole word, which say nothing about one element."""


@define(eq=False)
class Losses:
    """The stations of one element with their losses, and its exact value.

    Attributes
    ----------
    argument: the exact argument of the function, None where it is not finite or unknown.
    function: catalog name of the function, None for a word without one.
    exact: the exact value before the output conversion.
    """

    alone: OneElement
    state: EngineState
    argument: Fraction | None
    function: str | None
    exact: Fraction | None
    result: float | None
    formula: Formula | None = None

    @classmethod
    def of(
        cls, entry: Executed, alone: OneElement, state: EngineState, lane: int, dtype: DType
    ) -> Losses:
        """Work out the exact value as far as the kind of word allows."""
        formula = formula_of(entry, alone, state, lane, dtype)
        if formula is not None:
            return cls(alone, state, None, None, formula.exact, formula.result, formula)
        prepared = alone.narrowed if alone.narrowed is not None else entry.prepared
        if isinstance(entry.prepared, PreparedAccumulatorRead):
            value = float(state.accumulator.values[lane])
            value = -value if entry.prepared.word.negated else value
            return cls(alone, state, None, None, None, value)  # the sum's own loss is unknown
        kernel = entry.issued.kernel
        function = None
        if not isinstance(kernel, Problem):
            function = kernel.function_of(entry.issued.record, state)
        argument = _argument(prepared, alone) if alone.narrowed is not None else None
        exact = argument
        if function is not None:
            exact = None if argument is None else exact_function(function, argument)
        if function is not None and getattr(prepared, "slope", None) is not None:
            exact = None
        requantise = getattr(getattr(prepared, "unit", None), "requantise", None)
        if requantise is not None and exact is not None:
            scale, zero = (_fraction(float(v[0])) for v in requantise)
            exact = None if scale is None or zero is None else exact * scale + zero
        return cls(alone, state, argument, function, exact, None)

    @property
    def source(self) -> str:
        """What worked the exact value out."""
        return "rational arithmetic" if self.function is None else source_of_truth()

    def stations(self, dtype: DType, bits: int) -> list[Station]:
        """Return the handler's stations with values and losses, and the conversion at the end."""
        found = [
            self._station(name, detail)
            for name, detail in self._details()
            if name not in (*_SKIPPED, "convert")
        ]
        if self.formula is not None:
            found = list(self.formula.stations)
        width = 2 * dtype.size_bytes + 2
        stored = np.array([bits], f"<u{dtype.size_bytes}")
        value = float(to_float32(stored, dtype, self.state.formats)[0])
        before = self.result
        loss = None if before is None else ulps(value, _fraction(before), dtype)
        detail = {"dtype": dtype.word, "bits": f"{bits:#0{width}x}"}
        if before is not None:
            detail["from"] = _hex(before)
        return [*found, Station(name="convert", detail=detail, value=value, loss_ulp=loss)]

    def _details(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the stations; of evaluator `silicon` with its own chain instead of the cubic."""
        found = list(self.alone.stations)
        if self.state.policy.evaluator != "silicon":
            return found
        bucket = next((d for name, d in found if name == "bucket"), None)
        if bucket is None:
            return found
        return [
            (name, self._horner(bucket, detail)) if name == "cubic" else (name, detail)
            for name, detail in found
        ]

    def _horner(self, bucket: dict[str, Any], cubic: dict[str, Any]) -> dict[str, Any]:
        """Return the partial sums of ((d3*t + d2)*t + d1)*t + d0, each by the evaluator's chain."""
        d0, d1, d2, d3 = (int(bucket[name], 16) for name in ("d0", "d1", "d2", "d3"))
        points = np.array([int(cubic["t"], 16)], np.uint32).view(np.float32)
        fused = self.state.policy.fma == "on"
        sums = {}
        for name, row in (
            ("d3*t+d2", (0, d2, d3, 0, 0)),
            ("(..)*t+d1", (0, d1, d2, d3, 0)),
            ("(..)*t+d0", (0, d0, d1, d2, d3)),
        ):
            rows = np.array([row], np.uint32)
            sums[name] = f"{int(cubic_silicon(points, rows, fma=fused)[0]):#010x}"
        return {"t": cubic["t"], **sums, "fma": self.state.policy.fma}

    def _station(self, name: str, detail: dict[str, Any]) -> Station:
        out = detail.get("v") if name == "affine" else detail.get("y", detail.get("value"))
        if not isinstance(out, str):
            return Station(name=name, detail=detail)
        value = float_value(int(out, 16))
        self.result = value
        loss: float | None = None
        if name == "affine":
            loss = ulps(value, self.argument)
        elif name == "result" and self.function is not None:
            argument = self._argument_of("affine")
            if argument is not None:
                loss = ulps(value, exact_function(self.function, argument))
        return Station(name=name, detail=detail, value=value, loss_ulp=loss)

    def _argument_of(self, name: str) -> Fraction | None:
        detail = next((d for n, d in self.alone.stations if n == name), None)
        return None if detail is None else _fraction(float_value(int(detail["v"], 16)))


def _hex(value: float) -> str:
    word = int(np.float32(value).view(np.uint32))
    return f"{word:#010x}"


def _fraction(value: float) -> Fraction | None:
    return Fraction(value) if math.isfinite(value) else None


def _argument(prepared: Any, alone: OneElement) -> Fraction | None:
    """Return the exact argument of the function, or the exact result of two ALU stages."""
    x = _affine_value(alone, "x")
    if isinstance(getattr(prepared, "datapath", None), ExponentialDatapath):
        maximum = _affine_value(alone, "max_value")
        return None if x is None or maximum is None else x - maximum
    if isinstance(prepared, PreparedActivation):
        for stage, parameter in zip(prepared.unit.stages, prepared.parameters, strict=True):
            scalar = _fraction(float(parameter.floats()[0]))
            x = applied(stage.op, x, scalar, stage.is_reversed)
        return x
    if isinstance(prepared, PreparedTensorScalar):
        return _two_stages(prepared, alone)
    return None


def _two_stages(prepared: PreparedTensorScalar, alone: OneElement) -> Fraction | None:
    details = [detail for name, detail in alone.stations if name.startswith("stage_")]
    if len(details) != 2 or not isinstance(prepared.datapath, ArithmeticDatapath):
        return None
    x = _fraction(float_value(int(details[0]["x"], 16)))
    for number, op in enumerate((prepared.word.op0, prepared.word.op1)):
        scalar = _fraction(float_value(int(details[number]["scalar"], 16)))
        x = applied(op, x, scalar, prepared.datapath.is_reversed(number))
    return x


def _affine_value(alone: OneElement, key: str) -> Fraction | None:
    detail = next((d for name, d in alone.stations if name == "affine"), None)
    return None if detail is None else _fraction(float_value(int(detail[key], 16)))
