"""What the DVE words outside the Tensor-Scalar family share: operands, scalars, passes, traces.

A prepared word starts a `Pass` for each execution. The pass takes the elements of all sources, at
once or in stream order (`stream.in_stream_order`), returns the destination's, and in the end tells
what else changed: the accumulator, or a latch of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from neuron_emu.engines.accumulator import Accumulator
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
)
from neuron_emu.engines.stream import in_stream_order
from neuron_emu.isa.enums import DType
from neuron_emu.isa.records import Immediate, Pattern
from neuron_emu.memory import AccessPattern, Bits, MemoryFault, Operand, stream_order_matters
from neuron_emu.numerics import from_float32, to_float32

__all__ = [
    "Elementwise",
    "Float32s",
    "OneSource",
    "Pass",
    "PreparedStream",
    "PreparedWhole",
    "Station",
    "Stored",
    "TypedScalar",
    "as_floats",
    "converted",
    "count_problem",
    "prepare_stream",
    "refuse",
    "resolve",
    "resolve_one_source",
    "resolve_two_sources",
    "typed_scalar",
]

Float32s = npt.NDArray[np.float32]
Station = tuple[str, dict[str, Any]]
Latches = tuple[tuple[str, Any], ...]


@frozen(eq=False)
class Stored:
    """An operand with the dtype of its elements."""

    operand: Operand
    dtype: DType
    pattern: Pattern

    def as_read(self) -> Read:
        """Return the operand as something read."""
        return Read(self.dtype, self.operand)


def resolve(
    state: EngineState, channels: int, *operands: tuple[Pattern, int]
) -> list[Stored] | Problem:
    """Resolve patterns with their dtype codes, in order; the first problem when there is one."""
    found = []
    for pattern, code in operands:
        dtype = state.dtype(code)
        if isinstance(dtype, Problem):
            return dtype
        operand = state.operand(pattern, dtype, channels)
        if isinstance(operand, Problem):
            return operand
        found.append(Stored(operand, dtype, pattern))
    return found


def resolve_one_source(word: Any, state: EngineState) -> list[Stored] | Problem:
    """Resolve source and destination of a word with one source and a dtype for either."""
    return resolve(
        state, word.num_active_channels, (word.src, word.in_dtype), (word.dst, word.out_dtype)
    )


def resolve_two_sources(word: Any, state: EngineState) -> list[Stored] | Problem:
    """Resolve both sources and the destination of a word whose sources share a DTYPE_PAIR."""
    return resolve(
        state,
        word.num_active_channels,
        (word.src0, word.in_dtype.first),
        (word.src1, word.in_dtype.second),
        (word.dst, word.out_dtype),
    )


def count_problem(wanted: int, found: int, what: str = "dst") -> Problem | None:
    """Return the problem of an operand without the element count that it must have."""
    if wanted == found:
        return None
    return Problem("element_count", f"{what} must have {wanted} elements in a lane, not {found}")


def refuse(reason: str) -> Callable[[Any, EngineState], Problem]:
    """Return a `prepare` that says why no word of an opcode executes."""

    def prepare(word: Any, state: EngineState) -> Problem:
        return Problem("no_model", reason)

    return prepare


@frozen(eq=False)
class TypedScalar:
    """A scalar in the word, or one element of `dtype` in each partition behind a pointer."""

    scalar: Scalar
    dtype: DType
    state: EngineState

    def as_read(self) -> Read:
        """Return the scalar as something read."""
        return self.scalar.as_read(self.dtype)

    def bits(self) -> Bits:
        """Return the element's bits, [1, 1], or [channels, 1] behind a pointer."""
        if self.scalar.operand is not None:
            return self.scalar.operand.read().copy()
        assert self.scalar.word is not None
        return self.scalar.word[:, None].astype(f"<u{self.dtype.size_bytes}")

    def floats(self) -> Float32s:
        """Return the value as float32, [1, 1] or [channels, 1]; one in the word is always fp32."""
        if self.scalar.word is not None:
            return self.scalar.floats()[:, None]
        return to_float32(self.bits(), self.dtype, self.state.formats)


def typed_scalar(
    state: EngineState, source: int, immediate: Immediate, code: int, channels: int
) -> TypedScalar | Problem:
    """Prepare a scalar whose pointer leads to elements of dtype `code`."""
    dtype = state.dtype(code)
    if isinstance(dtype, Problem):
        return dtype
    address = resolve_scalar(source, immediate, state.registers)
    if isinstance(address, Problem):
        return address
    if address is None:
        return TypedScalar(Scalar(np.array([immediate.word], np.uint32), None), dtype, state)
    pattern = AccessPattern(start=address, step=(1,), num=(1,))
    operand = state.memory.operand(pattern, dtype.size_bytes, channels, max_elements=1)
    if isinstance(operand, MemoryFault):
        return problem_of(operand)
    return TypedScalar(Scalar(None, operand), dtype, state)


class Pass:
    """One execution of a word over its elements. Subclasses define `step`."""

    def step(self, columns: list[Bits]) -> Bits:
        """Take the next elements of each source, [channels, n]; return the destination's.

        It is called once with all elements, or with a few in stream order.
        """
        raise NotImplementedError

    def accumulator(self) -> Accumulator | None:
        """Return the accumulator after the last step, None when it did not change."""
        return None

    def latches(self) -> Latches:
        """Return new values of engine latches after the last step."""
        return ()


class Elementwise(Pass):
    """A pass whose elements do not depend on each other: `function` is its step."""

    def __init__(self, function: Callable[[list[Bits]], Bits]) -> None:
        self._function = function

    def step(self, columns: list[Bits]) -> Bits:
        return self._function(columns)


@define(eq=False)
class PreparedStream:
    """A word with its operands, each pass of which `begin` starts.

    `sources` are read in lockstep; `reads` are those whose bytes must have been written, which
    leaves out a destination that a word only keeps. `inputs` are all that take part.
    """

    state: EngineState
    begin: Callable[[], Pass | Problem]
    sources: tuple[Operand, ...]
    reads: tuple[Operand, ...]
    scalars: tuple[TypedScalar, ...]
    destination: Stored
    is_overlapping: bool
    registers: tuple[int, ...]
    is_reusable: bool
    uses_accumulator: int = 0
    details: dict[str, Any] = field(factory=dict)
    inputs: tuple[Read, ...] = ()

    def unwritten_reads(self) -> list[int]:
        """Return the first unwritten byte of each source, pointer and index."""
        found = [operand.first_unwritten() for operand in self.reads]
        found += [typed.scalar.first_unwritten() for typed in self.scalars]
        found.append(self.destination.operand.first_unwritten(index_only=True))
        return [address for address in found if address is not None]

    def operands(self) -> Operands:
        """Return the sources, a kept destination, the scalars, and what is written."""
        return Operands(self.inputs, self.destination.dtype)

    def execute(self) -> Effects | Problem:
        """Run one pass, or say what it lacks."""
        run = self.begin()
        if isinstance(run, Problem):
            return run
        destination = self.destination.operand
        if self.is_overlapping:
            bits = in_stream_order(self.sources, destination, run.step)
        else:
            bits = run.step([source.read() for source in self.sources])
        return Effects(((destination, bits),), accumulator=run.accumulator(), latches=run.latches())

    def stations(self, effects: Effects) -> list[Station]:
        """Return the first element of lane 0 of each source, what was written, and the carry."""
        read = {
            f"src{number}": f"{int(source.read_element(0)[0]):#x}"
            for number, source in enumerate(self.sources)
        }
        found: list[Station] = [("read", read)] if read else []
        if self.details:
            found.append(("operation", dict(self.details)))
        (operand, bits), *_ = effects.writes
        written = {"dtype": self.destination.dtype.word, "bits": f"{int(bits[0, 0]):#x}"}
        found.append(("convert", written))
        found.append(("write", {"elements": int(bits.size), "space": operand.space.name}))
        if effects.accumulator is not None:
            value = effects.accumulator.values[:1].view(np.uint32)
            found.append(("accumulator", {"lane_0": f"{int(value[0]):#010x}"}))
        return found


@define(eq=False)
class OneSource:
    """What a word with one source and one destination reads and writes."""

    source: Stored
    destination: Stored

    def unwritten_reads(self) -> list[int]:
        """Return the first unwritten byte of the source and of a destination's index."""
        found = [
            self.source.operand.first_unwritten(),
            self.destination.operand.first_unwritten(index_only=True),
        ]
        return [address for address in found if address is not None]

    def operands(self) -> Operands:
        """Return the source and what is written."""
        return Operands((self.source.as_read(),), self.destination.dtype)


@define(eq=False)
class PreparedWhole:
    """A word that reads all of its source, if it has one, before it writes its few elements."""

    state: EngineState
    source: Stored | None
    compute: Callable[[], Effects | Problem]
    registers: tuple[int, ...]
    is_reusable: bool = True
    uses_accumulator: int = 0
    written: DType | None = None

    def operands(self) -> Operands:
        """Return the source and what is written."""
        return Operands(() if self.source is None else (self.source.as_read(),), self.written)

    def unwritten_reads(self) -> list[int]:
        """Return the first unwritten byte of the source."""
        address = None if self.source is None else self.source.operand.first_unwritten()
        return [] if address is None else [address]

    def execute(self) -> Effects | Problem:
        """Compute the effects of one execution."""
        return self.compute()

    def stations(self, effects: Effects) -> list[Station]:
        """Return what lane 0 got."""
        found: list[Station] = []
        for operand, bits in effects.writes:
            lane = [f"{int(value):#x}" for value in bits[0]]
            found.append(("write", {"lane_0": lane, "space": operand.space.name}))
        for name, _ in effects.latches:
            found.append(("latch", {"name": name}))
        return found


def prepare_stream(
    state: EngineState,
    begin: Callable[[], Pass | Problem],
    sources: Sequence[Stored],
    destination: Stored,
    *,
    kept: Sequence[Stored] = (),
    scalars: Sequence[TypedScalar] = (),
    constants: Sequence[int] = (),
    immediates: Sequence[tuple[int, Immediate]] = (),
    uses_accumulator: int = 0,
    details: dict[str, Any] | None = None,
) -> PreparedStream | Problem:
    """Make a word ready whose sources and destination have equal element counts.

    `kept` follow the sources into each step; they hold what a word does not overwrite.
    `constants` are fp32 words of the instruction that may become results.
    """
    for number, source in enumerate(sources):
        problem = count_problem(
            source.operand.num_elements,
            destination.operand.num_elements,
            "dst" if number == 0 else f"dst, as src{number},",
        )
        if problem is not None:
            return problem
    operands = tuple(stored.operand for stored in (*sources, *kept))
    patterns = [stored.pattern for stored in (*sources, destination)]
    return PreparedStream(
        state=state,
        begin=begin,
        sources=operands,
        reads=tuple(stored.operand for stored in sources),
        scalars=tuple(scalars),
        destination=destination,
        is_overlapping=any(stream_order_matters(o, destination.operand) for o in operands),
        registers=registers_of(*patterns, *immediates),
        is_reusable=not any(pattern.start.is_indirect for pattern in patterns),
        uses_accumulator=uses_accumulator,
        details=details or {},
        inputs=(
            *(stored.as_read() for stored in (*sources, *kept)),
            *(scalar.as_read() for scalar in scalars),
            *(Read(DType.FP32, None, np.array([bits], np.uint32)) for bits in constants),
        ),
    )


def converted(values: Float32s, stored: Stored, state: EngineState) -> Bits:
    """Convert float32 results to the destination's dtype."""
    return from_float32(values, stored.dtype, state.formats, random=state.random)


def as_floats(bits: Bits, stored: Stored, state: EngineState) -> Float32s:
    """Convert the elements of a source to float32."""
    return to_float32(bits, stored.dtype, state.formats)
