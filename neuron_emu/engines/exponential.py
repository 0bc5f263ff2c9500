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
from neuron_emu.engines.staging import BLOCK, lane_blocks
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
from neuron_emu.numerics import from_float32, storage_dtype, subtract, to_float32
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
    set_name: str
    """The function set that was resident when the word was made ready."""

    def compute(
        self, bits: Bits, scalars: Latched, start: Float32s | None
    ) -> tuple[Bits, Float32s | None]:
        """Return output bits and the values to add; see `Datapath`."""
        table = self._table(bits, scalars)
        if table is not None:
            staging = self.state.staging
            taken = None if start is None else table.look_up_taken(bits, staging)
            return table.look_up(bits, staging), taken
        return self._compute_directly(bits, scalars.first_float)

    def _compute_directly(self, bits: Bits, maximum: Float32s) -> tuple[Bits, Float32s]:
        state = self.state
        x = to_float32(bits, self.in_dtype, state.formats)
        room = state.staging.empty(x.shape, np.float32) if x.size > BLOCK else None
        results = self._evaluate(x, maximum, room)
        out = self._converted(results)
        if state.policy.acc_source == "after_conversion":
            results = to_float32(out, self.out_dtype, state.formats)
        return out, results

    def _evaluate(self, x: Float32s, maximum: Float32s, out: Float32s | None = None) -> Float32s:
        policy = self.state.policy
        return self.profile.evaluate(
            x, evaluator=policy.evaluator, nan=policy.nan, fma=policy.fma, minus=maximum, out=out
        )

    def _converted(self, results: Float32s) -> Bits:
        """Return the output bits, converted some lanes at a time: then they stay in the cache."""
        state, dtype = self.state, self.out_dtype
        if results.size <= BLOCK or dtype == DType.FP32:
            return from_float32(results, dtype, state.formats, random=state.random)
        out: Bits = state.staging.empty(results.shape, storage_dtype(dtype))
        for lanes in lane_blocks(results.shape):
            # Rows one after the other draw the random numbers of the whole.
            out[lanes] = from_float32(results[lanes], dtype, state.formats, random=state.random)
        return out

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
        maximum = scalars.first_float[0]
        v = subtract(x, maximum)
        affine = {
            "input": f"{bits[0]:#x}",
            "x": first_float(x),
            "max_value": first_float(scalars.first_float),
            "v": first_float(v),
        }
        profile = {"function": "exp", "set": self.set_name}
        found: list[Station] = [("profile", profile), ("affine", affine)]
        evaluator = self.state.policy.evaluator
        if evaluator != "exact":
            found += self.profile.station(v[0]).as_events()
        found.append(
            ("result", {"evaluator": evaluator, "y": first_float(self._evaluate(x, maximum))})
        )
        return found


def prepare(word: TensorScalar, state: EngineState) -> PreparedTensorScalar | Problem:
    """Make an EXPONENTIAL word ready: find the resident profile and resolve the operands."""
    profile = state.compiled("exp")
    if isinstance(profile, Problem):
        return profile
    assert state.tables is not None  # the profile came from them
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
        ExponentialDatapath(profile, *dtypes, state, state.tables.set.name),
        in_dtype=dtypes[0],
        accumulation=Accumulation(0.0, add_to),
    )
