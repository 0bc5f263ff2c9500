"""What every handler works with: the state of an engine, a prepared word, and its effects.

A handler prepares a decoded word once for its engine (`prepare`), and the prepared word computes
effects each time it executes. The machine applies effects; nothing here writes state.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from neuron_emu.engines.accumulator import Accumulator
from neuron_emu.engines.result_tables import ResultTables
from neuron_emu.engines.sequencer import SyncChange
from neuron_emu.engines.staging import Staging
from neuron_emu.errors import InputError
from neuron_emu.generation import Generation
from neuron_emu.isa.enums import AddressMarker, DType, Engine, ImmediateSource, member
from neuron_emu.isa.records import WORD_BYTES, Address, Immediate, IndirectPattern, Pattern
from neuron_emu.isa.text import DTYPE_CODES
from neuron_emu.memory import (
    AccessPattern,
    Bits,
    Memory,
    MemoryFault,
    Operand,
)
from neuron_emu.memory import IndirectPattern as ResolvedIndirect
from neuron_emu.numerics import NumberFormats
from neuron_emu.policy import Policy
from neuron_emu.pwp.evaluate import CompiledProfile
from neuron_emu.pwp.library import ResidentTables, TableLibrary

__all__ = [
    "Effects",
    "EngineState",
    "Operands",
    "Prepared",
    "Problem",
    "Read",
    "Scalar",
    "register_value",
    "registers_of",
    "resolve_pattern",
    "resolve_scalar",
    "unequal_counts",
]


@frozen
class Problem:
    """Why a word does not execute: the name of a fault, its sentence, the first bad address."""

    name: str
    message: str
    address: int | None = None


class Effects(NamedTuple):
    """What one execution changes; the machine applies it and nothing else.

    `writes` are operands with the bits to store in them, in order. `accumulator` and `tables` are
    the new state of the engine, None for no change, `registers` pairs of number and value.
    `latches` are pairs of a name and a new value of `EngineState.latches`, which is never changed
    in place. `sync` sets semaphores and events. `ends` stops the stream after this word, else
    `target` is the index of the next word where that is not the following one.
    """

    writes: tuple[tuple[Operand, Bits], ...] = ()
    accumulator: Accumulator | None = None
    tables: ResidentTables | None = None
    ends: bool = False
    registers: tuple[tuple[int, int], ...] = ()
    latches: tuple[tuple[str, Any], ...] = ()
    sync: tuple[SyncChange, ...] = ()
    target: int | None = None


class Read(NamedTuple):
    """One thing that a word reads: the elements of an operand, or bits in the word itself."""

    dtype: DType
    operand: Operand | None
    word: Bits | None = None

    def elements(self) -> Bits:
        """Return the bits, [channels, n], [channels, 1] behind a pointer, or [1] in the word."""
        if self.operand is not None:
            return self.operand.read()
        assert self.word is not None
        return self.word


class Operands(NamedTuple):
    """What a word reads, tensors in the order of its fields first, and the dtype that it writes.

    `written` is None for a word that writes no memory. An index tensor that an operand was made
    from goes without saying.
    """

    read: tuple[Read, ...] = ()
    written: DType | None = None


class Prepared(Protocol):
    """A word made ready for one engine.

    `uses_accumulator` is the number of lanes whose accumulator value is used. The machine keeps a
    prepared word while `registers` hold the values it was made with, unless it is not
    `is_reusable`: an indirect operand has read its index tensor.
    """

    uses_accumulator: int
    registers: tuple[int, ...]
    is_reusable: bool

    def unwritten_reads(self) -> list[int]:
        """Return the first byte that nothing wrote of each operand that is read."""
        ...

    def operands(self) -> Operands:
        """Return all that takes part in the result, for the sanitizers."""
        ...

    def execute(self) -> Effects | Problem:
        """Compute the effects of one execution."""
        ...

    def stations(self, effects: Effects) -> list[tuple[str, dict[str, Any]]]:
        """Return the stations of design.md 2 with what happened at each, for the trace."""
        ...


@define(eq=False)
class EngineState:
    """One engine of a machine: registers, accumulator, resident tables, and what it works on.

    Attributes
    ----------
    latches: what a word leaves inside the engine for later ones, by name: keys to match, a mask.
    position, num_words: index of the word to execute, and the length of the engine's stream.
    random: the engine's own generator, so that its results do not depend on the other engines.
    """

    engine: Engine
    generation: Generation
    policy: Policy
    formats: NumberFormats
    memory: Memory
    random: np.random.Generator
    registers: list[int]
    accumulator: Accumulator
    library: TableLibrary
    tables: ResidentTables | None = None
    result_tables: ResultTables = field(factory=ResultTables)
    staging: Staging = field(factory=Staging)
    latches: dict[str, Any] = field(factory=dict)
    position: int = 0
    num_words: int = 0

    @property
    def program_counter(self) -> int:
        """The byte offset in the stream that registers 128 and 129 show and branches count from.

        Policy `program_counter`: of the word that executes, or of the next one.
        """
        is_next = self.policy.program_counter == "next"
        return (self.position + is_next) * WORD_BYTES

    def compiled(self, function: str) -> CompiledProfile | Problem:
        """Return the resident profile of a function, or why there is none."""
        if self.tables is None:
            return Problem("tables", f"no function set is loaded, and {function} needs one")
        if not self.tables.set.holds(function):
            return Problem(
                "tables",
                f"the loaded set {self.tables.set.name} (index {self.tables.set.index}) does not"
                f" hold {function}",
            )
        try:
            return self.tables.compiled(function)
        except InputError as error:
            return Problem("tables", str(error))

    def dtype(self, code: int) -> DType | Problem:
        """Return the dtype of a code, or a problem when its number format is not modelled."""
        dtype = member(DType, code)
        if dtype is None or dtype.word not in DTYPE_CODES:
            return Problem("no_model", f"dtype {code:#04x} has no number format here")
        return dtype

    def operand(self, pattern: Pattern, dtype: DType, channels: int) -> Operand | Problem:
        """Resolve a pattern's registers and prepare its elements; the fault of bad addresses."""
        resolved = resolve_pattern(pattern, self.registers)
        if isinstance(resolved, Problem):
            return resolved
        operand = self.memory.operand(
            resolved, dtype.size_bytes, channels, max_elements=self.policy.max_elements
        )
        return problem_of(operand) if isinstance(operand, MemoryFault) else operand

    def scalar(self, source: int, immediate: Immediate, channels: int) -> Scalar | Problem:
        """Prepare an fp32 scalar: a value in the word, or one in each partition by a pointer."""
        address = resolve_scalar(source, immediate, self.registers)
        if address is None:
            return Scalar(np.array([immediate.word], np.uint32), None)
        if isinstance(address, Problem):
            return address
        operand = self.memory.operand(
            AccessPattern(start=address, step=(1,), num=(1,)),
            DType.FP32.size_bytes,
            channels,
            max_elements=1,
        )
        if isinstance(operand, MemoryFault):
            return problem_of(operand)
        return Scalar(None, operand)


@frozen(eq=False)
class Scalar:
    """A 4-byte scalar of a word: its bits in the word, or an operand of one element a lane."""

    word: npt.NDArray[np.uint32] | None
    operand: Operand | None

    def floats(self) -> npt.NDArray[np.float32]:
        """Return the value as float32 [1] for one value, [channels] behind a pointer.

        Read once an instruction, before anything is written (dve-tensor-scalar.md 3.2 rule 7).
        """
        if self.operand is None:
            assert self.word is not None
            return self.word.view(np.float32)
        return self.operand.read()[:, 0].copy().view(np.float32)

    def as_read(self, dtype: DType = DType.FP32) -> Read:
        """Return the scalar as something read; one in the word is fp32."""
        return Read(DType.FP32 if self.operand is None else dtype, self.operand, self.word)

    def first_unwritten(self) -> int | None:
        """Return the first byte behind the pointer that nothing wrote."""
        return None if self.operand is None else self.operand.first_unwritten()


def unequal_counts(source: Operand, destination: Operand) -> Problem | None:
    """Return the problem of a source and a destination with different element counts."""
    if source.num_elements == destination.num_elements:
        return None
    return Problem(
        "element_count",
        f"src and dst must have equal element counts, not {source.num_elements} and"
        f" {destination.num_elements}",
    )


def problem_of(fault: MemoryFault) -> Problem:
    """Turn a memory fault into the problem of a word."""
    return Problem("address", fault.reason, fault.address)


def register_value(number: int, registers: list[int]) -> int | Problem:
    """Return what a register that holds an address has in it."""
    if number < len(registers):
        return registers[number]
    return Problem("register", f"register must be 0 to {len(registers) - 1}, not {number}")


def _resolve(address: Address, registers: list[int]) -> int | Problem:
    if address.is_register:
        return register_value(address.register, registers)
    return address.partition_offset


def resolve_pattern(
    pattern: Pattern, registers: list[int]
) -> AccessPattern | ResolvedIndirect | Problem:
    """Replace registers by their content, which is a local address (isa-encoding.md 3.1)."""
    if pattern.start.has_shape_register:
        return Problem(
            "address", "a shape from registers cannot be executed: its layout is unpublished"
        )
    if pattern.start.kind is None:
        return Problem("address", f"address marker {pattern.start.marker << 5:#04x} is not legal")
    start = _resolve(pattern.start, registers)
    if isinstance(start, Problem):
        return start
    if isinstance(pattern, IndirectPattern):
        return ResolvedIndirect(
            index_address=start,
            data_address=pattern.data.partition_offset,
            num_elements=pattern.num_elem,
        )
    if pattern.start.kind in (AddressMarker.INDIRECT_IMM, AddressMarker.INDIRECT_REG):
        return Problem("address", "this generation has no indirect patterns")
    return AccessPattern(start=start, step=pattern.steps, num=pattern.counts)


def resolve_scalar(source: int, immediate: Immediate, registers: list[int]) -> int | Problem | None:
    """Return the address of a pointer or register immediate, None for an inline value."""
    if source == ImmediateSource.POINTER:
        return immediate.word
    if source == ImmediateSource.REG_PTR:
        return register_value(immediate.register, registers)
    return None


def registers_of(*parts: Pattern | tuple[int, Immediate]) -> tuple[int, ...]:
    """Return the numbers of the registers that patterns and (source, immediate) pairs read."""
    numbers = []
    for part in parts:
        if isinstance(part, tuple):
            source, immediate = part
            if source == ImmediateSource.REG_PTR:
                numbers.append(immediate.register)
        elif part.start.is_register:
            numbers.append(part.start.register)
    return tuple(numbers)
