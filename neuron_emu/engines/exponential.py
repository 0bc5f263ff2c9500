"""EXPONENTIAL 0x30 on the DVE: dst = convert(exp(x - max)), with the running sum per lane.

Sources: isa-encoding.md 5.3, dve-tensor-scalar.md 4.7; the route through the tables: design.md 2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from attrs import define

from neuron_emu.engines import alu
from neuron_emu.engines.core import EngineState, Problem
from neuron_emu.engines.result_tables import ResultTable
from neuron_emu.engines.worker import (
    ACCUMULATING,
    Accumulation,
    Latched,
    PreparedTensorScalar,
    Station,
    dtypes_of,
    first_float,
    prepare_word,
)
from neuron_emu.isa.enums import AccumulatorCommand, AluOp, DType
from neuron_emu.isa.families.tensor_scalar import TensorScalar
from neuron_emu.memory import Bits
from neuron_emu.numerics import from_float32, subtract, to_float32
from neuron_emu.pwp.evaluate import CompiledProfile

__all__ = ["ExponentialDatapath", "prepare"]

Float32s = npt.NDArray[np.float32]


@define(eq=False)
class ExponentialDatapath:
    """exp(x - max) from one dtype to another through a compiled profile."""

    profile: CompiledProfile
    in_dtype: DType
    out_dtype: DType
    state: EngineState

    def compute(
        self, bits: Bits, scalars: Latched, start: Float32s | None
    ) -> tuple[Bits, Float32s | None]:
        """Return output bits and the values to add; see `Datapath`."""
        table = self._table(bits, scalars)
        if table is not None:
            return table.bits.take(bits), None if start is None else table.taken.take(bits)
        return self._compute_directly(bits, scalars.first_float)

    def _compute_directly(self, bits: Bits, maximum: Float32s) -> tuple[Bits, Float32s]:
        state = self.state
        x = to_float32(bits, self.in_dtype, state.formats)
        results = self._evaluate(subtract(x, maximum))
        out = from_float32(results, self.out_dtype, state.formats, random=state.random)
        if state.policy.acc_source == "after_conversion":
            results = to_float32(out, self.out_dtype, state.formats)
        return out, results

    def _evaluate(self, values: Float32s) -> Float32s:
        policy = self.state.policy
        return self.profile.evaluate(
            values, evaluator=policy.evaluator, nan=policy.nan, fma=policy.fma
        )

    def _table(self, bits: Bits, scalars: Latched) -> ResultTable | None:
        state = self.state
        if len(scalars.first) != 1 or state.formats.rounding == "stochastic":
            return None
        key = (self.profile, self.in_dtype, self.out_dtype, int(scalars.first[0]))
        return state.result_tables.find(
            key,
            bits.dtype.itemsize,
            bits.size,
            lambda every_input: self._compute_directly(every_input, scalars.first_float),
        )

    def stations(self, bits: Bits, scalars: Latched) -> list[Station]:
        """Return profile, affine, control, bucket, cubic and result stations."""
        x = to_float32(bits, self.in_dtype, self.state.formats)
        v = subtract(x, scalars.first_float[0])
        affine = {
            "input": f"{bits[0]:#x}",
            "x": first_float(x),
            "max_value": first_float(scalars.first_float),
            "v": first_float(v),
        }
        tables = self.state.tables
        profile = {"function": "exp", "set": tables.set.name if tables else None}
        found: list[Station] = [("profile", profile), ("affine", affine)]
        evaluator = self.state.policy.evaluator
        if evaluator != "exact":
            found += self.profile.station(v[0]).as_events()
        found.append(("result", {"evaluator": evaluator, "y": first_float(self._evaluate(v))}))
        return found


def prepare(word: TensorScalar, state: EngineState) -> PreparedTensorScalar | Problem:
    """Make an EXPONENTIAL word ready: find the resident profile and resolve the operands."""
    profile = state.compiled("exp")
    if isinstance(profile, Problem):
        return profile
    if word.accumulator_cmd not in (*ACCUMULATING, AccumulatorCommand.IDLE):
        return Problem(
            "no_model", f"accumulator_cmd {word.accumulator_cmd} has no described effect"
        )
    dtypes = dtypes_of(word, state)
    if isinstance(dtypes, Problem):
        return dtypes
    policy = state.policy

    def add_to(start: Float32s, taken: Float32s) -> Float32s:
        order = policy.acc_order
        return alu.fold(AluOp.ADD, start, taken, policy, value_first=False, order=order)

    return prepare_word(
        word,
        state,
        ExponentialDatapath(profile, *dtypes, state),
        in_dtype=dtypes[0],
        accumulation=Accumulation(0.0, add_to),
    )
