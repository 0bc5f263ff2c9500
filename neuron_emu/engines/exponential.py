"""EXPONENTIAL 0x30 on the DVE: dst = convert(exp(x - max)), with the running sum per lane.

Sources: isa-encoding.md 5.3, dve-tensor-scalar.md 4.7; the route through the tables: design.md 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, frozen

from neuron_emu.engines.accumulator import accumulated
from neuron_emu.engines.core import (
    Effects,
    EngineState,
    Problem,
    Scalar,
    registers_of,
    unequal_counts,
)
from neuron_emu.engines.result_tables import ResultTable
from neuron_emu.isa.enums import AccumulatorCommand, DType
from neuron_emu.isa.families.tensor_scalar import TensorScalar
from neuron_emu.memory import Bits, Operand, stream_order_matters
from neuron_emu.numerics import from_float32, subtract, to_float32
from neuron_emu.pwp.evaluate import CompiledProfile

__all__ = ["ExponentialKernel", "PreparedExponential", "prepare"]

Float32s = npt.NDArray[np.float32]


@define(eq=False)
class PreparedExponential:
    """One EXPONENTIAL word with its operands; kept while its registers hold the same values."""

    word: TensorScalar
    state: EngineState
    kernel: ExponentialKernel
    source: Operand
    destination: Operand
    maximum: Scalar
    seed: Scalar | None
    element_wise: bool
    uses_accumulator: int
    registers: tuple[int, ...]
    is_reusable: bool

    def unwritten_reads(self) -> list[int]:
        """Return the first unwritten byte of the source, each pointer, a destination's index."""
        found = [self.source.first_unwritten()]
        found += [s.first_unwritten() for s in (self.maximum, self.seed) if s is not None]
        found.append(self.destination.first_unwritten(index_only=True))
        return [address for address in found if address is not None]

    def execute(self) -> Effects:
        """Compute the destination and the accumulator of one execution."""
        command = self.word.accumulator_cmd
        maximum = self.maximum.floats()
        results: Float32s | None
        if self.element_wise:
            bits, results = self._element_by_element(maximum)
        else:
            wanted = command != AccumulatorCommand.IDLE
            bits, results = self.kernel.compute(self.source.read(), maximum, wanted)
        after = accumulated(
            self.state.accumulator,
            command,
            self.word.num_active_channels,
            results,
            None if self.seed is None else self.seed.floats(),
            self.state.policy,
        )
        return Effects(((self.destination, bits),), after)

    def _element_by_element(self, maximum: Float32s) -> tuple[Bits, Float32s]:
        """Run an overlapping word as the stream does: read, compute and write each element.

        The memory is put back, so that the machine applies the effects as for any word.
        """
        source, destination = self.source, self.destination
        saved = destination.save()
        results = np.empty((source.channels, source.num_elements), np.float32)
        bits = np.empty((source.channels, source.num_elements), destination.dtype)
        for element in range(source.num_elements):
            column = source.read_element(element)[:, None]
            written, result = self.kernel.compute_directly(column, maximum)
            destination.write_element(element, written[:, 0])
            bits[:, element], results[:, element] = written[:, 0], result[:, 0]
        destination.restore(saved)
        return bits, results

    def stations(self, effects: Effects) -> list[tuple[str, dict[str, Any]]]:
        """Return what happened to the first element of lane 0, and the lane's accumulator."""
        word, state, kernel = self.word, self.state, self.kernel
        stored = self.source.read_element(0)[:1]
        x = to_float32(stored, kernel.in_dtype, state.formats)
        maximum = self.maximum.floats()[:1]
        v = subtract(x, maximum)
        (destination, bits), *_ = effects.writes
        affine = {
            "input": f"{stored[0]:#x}",
            "x": _hex(x),
            "max_value": _hex(maximum),
            "v": _hex(v),
        }
        found: list[tuple[str, dict[str, Any]]] = [("affine", affine)]
        found += kernel.table_stations(v)
        written = {"dtype": kernel.out_dtype.word, "bits": f"{bits[0, 0]:#x}"}
        found.append(("convert", written))
        found.append(("write", {"elements": int(bits.size), "space": destination.space.name}))
        if effects.accumulator is not None:
            command = AccumulatorCommand(word.accumulator_cmd).name
            value = effects.accumulator.values[:1]
            found.append(("accumulator", {"command": command, "lane_0": _hex(value)}))
        return found


def _hex(value: Float32s) -> str:
    """Return the bits of the first float32 of an array as text."""
    return f"{int(np.ascontiguousarray(value).view(np.uint32)[0]):#010x}"


@frozen(eq=False)
class ExponentialKernel:
    """exp(x - max) from one dtype to another through a compiled profile."""

    profile: CompiledProfile
    in_dtype: DType
    out_dtype: DType
    state: EngineState

    def compute(
        self, bits: Bits, maximum: Float32s, wants_results: bool
    ) -> tuple[Bits, Float32s | None]:
        """Return output bits and the values that the accumulator takes, both [channels, n].

        `maximum` is float32[channels], or float32[1] for one value. Without `wants_results` the
        second may be None.
        """
        table = self._table(bits, maximum)
        if table is not None:
            return table.bits.take(bits), table.taken.take(bits) if wants_results else None
        return self.compute_directly(bits, maximum)

    def compute_directly(self, bits: Bits, maximum: Float32s) -> tuple[Bits, Float32s]:
        """Do what `compute` does without result tables."""
        state = self.state
        x = to_float32(bits, self.in_dtype, state.formats)
        results = self.evaluate(subtract(x, maximum[:, None]))
        out = from_float32(results, self.out_dtype, state.formats, random=state.random)
        if state.policy.acc_source == "after_conversion":
            results = to_float32(out, self.out_dtype, state.formats)
        return out, results

    def evaluate(self, values: Float32s) -> Float32s:
        """Evaluate the profile under the run's policy."""
        policy = self.state.policy
        return self.profile.evaluate(
            values, evaluator=policy.evaluator, nan=policy.nan, fma=policy.fma
        )

    def _table(self, bits: Bits, maximum: Float32s) -> ResultTable | None:
        state = self.state
        if len(maximum) != 1 or state.formats.rounding == "stochastic":
            return None
        key = (self.profile, self.in_dtype, self.out_dtype, int(maximum.view(np.uint32)[0]))
        return state.result_tables.find(
            key,
            bits.dtype.itemsize,
            bits.size,
            lambda every_input: self.compute_directly(every_input, maximum),
        )

    def table_stations(self, v: Float32s) -> list[tuple[str, dict[str, Any]]]:
        """Return control, bucket, cubic and result stations of one input [1]."""
        result = ("result", {"evaluator": self.state.policy.evaluator, "y": _hex(self.evaluate(v))})
        if self.state.policy.evaluator == "exact":
            return [result]
        station = self.profile.station(v[0])
        return [*station.as_events(), result]


def prepare(word: TensorScalar, state: EngineState) -> PreparedExponential | Problem:
    """Make an EXPONENTIAL word ready: find the resident profile and resolve the operands."""
    profile = state.compiled("exp")
    if isinstance(profile, Problem):
        return profile
    in_dtype, out_dtype = state.dtype(word.in_dtype), state.dtype(word.out_dtype)
    if isinstance(in_dtype, Problem):
        return in_dtype
    if isinstance(out_dtype, Problem):
        return out_dtype
    channels = word.num_active_channels
    source = state.operand(word.src, in_dtype, channels)
    if isinstance(source, Problem):
        return source
    destination = state.operand(word.dst, out_dtype, channels)
    if isinstance(destination, Problem):
        return destination
    maximum = state.scalar(word.imm0_src, word.imm0, channels)
    if isinstance(maximum, Problem):
        return maximum
    seed: Scalar | Problem | None = None
    if word.accumulator_cmd == AccumulatorCommand.LOAD_ACCUMULATE:
        seed = state.scalar(word.imm1_src, word.imm1, channels)
    if isinstance(seed, Problem):
        return seed
    return unequal_counts(source, destination) or PreparedExponential(
        word=word,
        state=state,
        kernel=ExponentialKernel(profile, in_dtype, out_dtype, state),
        source=source,
        destination=destination,
        maximum=maximum,
        seed=seed,
        element_wise=stream_order_matters(source, destination),
        uses_accumulator=channels if word.accumulator_cmd == AccumulatorCommand.ACCUMULATE else 0,
        registers=registers_of(
            word.src, word.dst, (word.imm0_src, word.imm0), (word.imm1_src, word.imm1)
        ),
        is_reusable=not (word.src.start.is_indirect or word.dst.start.is_indirect),
    )
