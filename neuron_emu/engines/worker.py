"""The Tensor-Scalar worker: what the eight opcodes of S3D3_TS share, EXPONENTIAL among them.

It resolves the operands, latches the two scalars, runs a `Datapath` over the elements and keeps the
accumulator. Sources: dve-tensor-scalar.md 3, 4 and 7; activation-tables.md 10.5 (one worker).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from attrs import define, frozen

from neuron_emu.engines.accumulator import (
    Accumulator,
    after_accumulating,
    after_idle,
    start_values,
)
from neuron_emu.engines.core import (
    Effects,
    EngineState,
    Operands,
    Problem,
    Read,
    Scalar,
    problem_of,
    registers_of,
    resolve_scalar,
    unequal_counts,
)
from neuron_emu.engines.stream import in_stream_order
from neuron_emu.isa.enums import AccumulatorCommand, DType, ImmediateSource
from neuron_emu.isa.families.tensor_scalar import TensorScalar
from neuron_emu.isa.records import Immediate
from neuron_emu.memory import (
    AccessPattern,
    Bits,
    MemoryFault,
    Operand,
    stream_order_matters,
)
from neuron_emu.numerics import to_float32

__all__ = [
    "ACCUMULATING",
    "Accumulation",
    "Arrangement",
    "Datapath",
    "Latched",
    "PreparedTensorScalar",
    "Station",
    "dtypes_of",
    "first_float",
    "prepare_word",
]

Float32s = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]
Station = tuple[str, dict[str, Any]]

ACCUMULATING = frozenset(
    (
        AccumulatorCommand.ACCUMULATE,
        AccumulatorCommand.ZERO_ACCUMULATE,
        AccumulatorCommand.LOAD_ACCUMULATE,
    )
)
"""Commands with a described effect on the accumulator; ZERO has none (dve-tensor-scalar.md 7)."""


@frozen(eq=False)
class Latched:
    """The scalars of one execution, uint32[1] for one value or [channels] behind a pointer.

    They are read once, before any element is written (dve-tensor-scalar.md 3.2 rule 7).
    """

    first: Words
    second: Words

    @property
    def first_float(self) -> Float32s:
        """imm0 as float32, [1, 1] or [channels, 1]."""
        return self.first.view(np.float32)[:, None]

    @property
    def second_float(self) -> Float32s:
        """imm1 as float32, [1, 1] or [channels, 1]."""
        return self.second.view(np.float32)[:, None]


class Datapath(Protocol):
    """What an opcode computes from elements and scalars."""

    out_dtype: DType

    def compute(
        self, bits: Bits, scalars: Latched, start: Float32s | None
    ) -> tuple[Bits, Float32s | None]:
        """Return output bits and what the accumulator takes, both [channels, n].

        `start` is the accumulator before these elements, float32[channels], or None when nothing
        accumulates; then the second result may be None.
        """
        ...

    def stations(self, bits: Bits, scalars: Latched) -> list[Station]:
        """Return what happens to one element, `bits` [1], before the output conversion."""
        ...


@frozen
class Accumulation:
    """What an accumulating opcode does with the values that its datapath gives it.

    `identity` is the start of ZERO_ACCUMULATE; `finish(start, taken)` returns the accumulator,
    float32[channels], after all elements.
    """

    identity: float
    finish: Callable[[Float32s, Float32s], Float32s]


@frozen
class Arrangement:
    """What a bank in front of the datapath does with the source, `block` elements at a time."""

    apply: Callable[[Bits], Bits]
    block: int


@define(eq=False)
class PreparedTensorScalar:
    """One word with its operands; kept while its registers hold the same values."""

    word: TensorScalar
    state: EngineState
    datapath: Datapath
    source: Operand
    destination: Operand
    first: Scalar
    second: Scalar
    scalars_read: tuple[Scalar, ...]
    arrangement: Arrangement | None
    is_overlapping: bool
    accumulation: Accumulation | None
    uses_accumulator: int
    registers: tuple[int, ...]
    is_reusable: bool

    def unwritten_reads(self) -> list[int]:
        """Return the first unwritten byte of the source, each pointer, a destination's index."""
        found = [self.source.first_unwritten()]
        found += [scalar.first_unwritten() for scalar in self.scalars_read]
        found.append(self.destination.first_unwritten(index_only=True))
        return [address for address in found if address is not None]

    def operands(self) -> Operands:
        """Return the source, the scalars that are used, and what is written."""
        source = Read(DType(self.word.in_dtype), self.source)
        behind = DType.FP32
        if any(s.operand is not None and s.operand.item_bytes < 4 for s in self.scalars_read):
            behind = source.dtype
        scalars = (scalar.as_read(behind) for scalar in self.scalars_read)
        return Operands((source, *scalars), self.datapath.out_dtype)

    def execute(self) -> Effects:
        """Compute the destination and the accumulator of one execution."""
        scalars = Latched(_words(self.first), _words(self.second))
        start = self._start(scalars)
        taken: Float32s | None
        if self.is_overlapping:
            bits, taken = self._in_stream_order(scalars, start)
        else:
            bits, taken = self.datapath.compute(self._arranged(self.source.read()), scalars, start)
        return Effects(((self.destination, bits),), self._accumulator_after(start, taken))

    def _arranged(self, bits: Bits) -> Bits:
        return bits if self.arrangement is None else self.arrangement.apply(bits)

    def _start(self, scalars: Latched) -> Float32s | None:
        word = self.word
        if self.accumulation is None or word.accumulator_cmd not in ACCUMULATING:
            return None
        return start_values(
            self.state.accumulator,
            word.accumulator_cmd,
            word.num_active_channels,
            self.accumulation.identity,
            scalars.second.view(np.float32),
        )

    def _in_stream_order(
        self, scalars: Latched, start: Float32s | None
    ) -> tuple[Bits, Float32s | None]:
        pieces: list[Float32s] = []

        def compute(columns: list[Bits]) -> Bits:
            so_far = pieces[-1][:, -1] if pieces else start
            arranged = self._arranged(columns[0])
            bits, taken = self.datapath.compute(arranged, scalars, so_far)
            if taken is not None:
                pieces.append(taken)
            return bits

        block = 1 if self.arrangement is None else self.arrangement.block
        bits = in_stream_order((self.source,), self.destination, compute, block=block)
        return bits, np.concatenate(pieces, axis=1) if pieces else None

    def _accumulator_after(
        self, start: Float32s | None, taken: Float32s | None
    ) -> Accumulator | None:
        word, state = self.word, self.state
        channels = word.num_active_channels
        if self.accumulation is None:
            return None
        if start is None or taken is None:
            return after_idle(state.accumulator, channels, state.policy)
        values = self.accumulation.finish(start, taken)
        return after_accumulating(state.accumulator, word.accumulator_cmd, channels, values)

    def stations(self, effects: Effects) -> list[Station]:
        """Return what happened to one element of lane 0, and the lane's accumulator.

        It is the first element that is finite and not zero, as others take no way through the
        tables; else the first.
        """
        scalars = Latched(_words(self.first)[:1], _words(self.second)[:1])
        (destination, bits), *_ = effects.writes
        lane = self._arranged(self.source.read())[0]
        values = to_float32(lane, DType(self.word.in_dtype), self.state.formats)
        element = int((np.isfinite(values) & (values != 0)).argmax())
        found = self.datapath.stations(lane[element : element + 1], scalars)
        written = {"dtype": self.datapath.out_dtype.word, "bits": f"{bits[0, element]:#x}"}
        found.append(("convert", {"element": element, **written}))
        found.append(("write", {"elements": int(bits.size), "space": destination.space.name}))
        if self.accumulation is not None:
            command = AccumulatorCommand(self.word.accumulator_cmd).name
            after = effects.accumulator or self.state.accumulator
            found.append(("accumulator", {"command": command, "lane_0": first_float(after.values)}))
        return found


def _words(scalar: Scalar) -> Words:
    """Return a scalar as 32-bit words; narrower elements behind a pointer are zero-extended."""
    if scalar.word is not None:
        return scalar.word
    assert scalar.operand is not None
    return scalar.operand.read()[:, 0].astype(np.uint32)


def first_float(values: Float32s) -> str:
    """Return the bits of the first float32 of an array as text."""
    return f"{int(np.ascontiguousarray(values).view(np.uint32).flat[0]):#010x}"


def dtypes_of(word: TensorScalar, state: EngineState) -> tuple[DType, DType] | Problem:
    """Return the source's and the destination's dtype, or why one of them is not modelled."""
    in_dtype, out_dtype = state.dtype(word.in_dtype), state.dtype(word.out_dtype)
    if isinstance(in_dtype, Problem):
        return in_dtype
    if isinstance(out_dtype, Problem):
        return out_dtype
    return in_dtype, out_dtype


def prepare_word(
    word: TensorScalar,
    state: EngineState,
    datapath: Datapath,
    *,
    in_dtype: DType,
    scalar_dtype: DType = DType.FP32,
    forces_pointers: bool = False,
    scalars_used: tuple[bool, bool] = (True, False),
    accumulation: Accumulation | None = None,
    arrangement: Arrangement | None = None,
) -> PreparedTensorScalar | Problem:
    """Resolve the operands of a word, or say why it does not execute.

    `scalar_dtype` is the type behind a pointer. `forces_pointers` makes both scalars pointers,
    whatever their source says (0x44, 0x54). `scalars_used` tells which ones the datapath uses; the
    seed of LOAD_ACCUMULATE is used without that.
    """
    channels, command = word.num_active_channels, word.accumulator_cmd
    source = state.operand(word.src, in_dtype, channels)
    if isinstance(source, Problem):
        return source
    destination = state.operand(word.dst, datapath.out_dtype, channels)
    if isinstance(destination, Problem):
        return destination
    sources = (ImmediateSource.POINTER,) * 2 if forces_pointers else (word.imm0_src, word.imm1_src)
    first = _scalar(state, sources[0], word.imm0, scalar_dtype, channels)
    if isinstance(first, Problem):
        return first
    second = _scalar(state, sources[1], word.imm1, scalar_dtype, channels)
    if isinstance(second, Problem):
        return second
    is_seeded = accumulation is not None and command == AccumulatorCommand.LOAD_ACCUMULATE
    used = zip((first, second), (scalars_used[0], scalars_used[1] or is_seeded), strict=True)
    goes_on = accumulation is not None and command == AccumulatorCommand.ACCUMULATE
    return unequal_counts(source, destination) or PreparedTensorScalar(
        word=word,
        state=state,
        datapath=datapath,
        source=source,
        destination=destination,
        first=first,
        second=second,
        arrangement=arrangement,
        scalars_read=tuple(scalar for scalar, is_used in used if is_used),
        is_overlapping=stream_order_matters(source, destination),
        accumulation=accumulation,
        uses_accumulator=channels if goes_on else 0,
        registers=registers_of(
            word.src, word.dst, (sources[0], word.imm0), (sources[1], word.imm1)
        ),
        is_reusable=not (word.src.start.is_indirect or word.dst.start.is_indirect),
    )


def _scalar(
    state: EngineState, source: int, immediate: Immediate, dtype: DType, channels: int
) -> Scalar | Problem:
    """Prepare a scalar: its bits in the word, cut to the dtype's width, or an operand."""
    address = resolve_scalar(source, immediate, state.registers)
    if address is None:
        mask = (1 << 8 * dtype.size_bytes) - 1
        return Scalar(np.array([immediate.word & mask], np.uint32), None)
    if isinstance(address, Problem):
        return address
    operand = state.memory.operand(
        AccessPattern(start=address, step=(1,), num=(1,)),
        dtype.size_bytes,
        channels,
        max_elements=1,
    )
    if isinstance(operand, MemoryFault):
        return problem_of(operand)
    return Scalar(None, operand)
