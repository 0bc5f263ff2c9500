"""Reductions of the innermost dimensions: 0x42, 0x52, and 0x83, 0x84 after a transpose.

acc is the first element, then acc op x in stream order, in fp32 or on raw bits; negated last.
Source: dve-tensor-scalar.md 9.3; the transpose: 4.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define

from neuron_emu.engines import alu
from neuron_emu.engines.alu_bitvec import apply_bits
from neuron_emu.engines.core import Effects, EngineState, Problem, registers_of
from neuron_emu.engines.streaming import (
    Float32s,
    OneSource,
    Station,
    Stored,
    as_floats,
    converted,
    count_problem,
    resolve_one_source,
)
from neuron_emu.engines.tensor_tensor import arith_problem, bitvec_problem, same_width
from neuron_emu.isa.alu_ops import op_name
from neuron_emu.isa.enums import member
from neuron_emu.isa.families.tensor_reduce import (
    TENSOR_CUMULATIVE_BITVEC,
    TENSOR_REDUCE_BITVEC,
    TRANSPOSE_TENSOR_REDUCE,
    TRANSPOSE_TENSOR_REDUCE_BITVEC,
    TensorReduce,
    TensorSubdimension,
)
from neuron_emu.isa.records import TensorPattern
from neuron_emu.memory import Bits
from neuron_emu.numerics import multiply

__all__ = [
    "TILE",
    "PreparedReduce",
    "covered",
    "is_bitvec",
    "op_problem",
    "prepare_reduce",
    "tile_problem",
    "transposed",
]

TILE = 32
"""Lanes and elements of the square that is transposed."""
_MINUS_ONE = np.full(1, -1, np.float32)
_BITVEC = frozenset(
    (TENSOR_REDUCE_BITVEC, TENSOR_CUMULATIVE_BITVEC, TRANSPOSE_TENSOR_REDUCE_BITVEC)
)
_TRANSPOSING = frozenset((TRANSPOSE_TENSOR_REDUCE, TRANSPOSE_TENSOR_REDUCE_BITVEC))


def is_bitvec(word: TensorReduce) -> bool:
    """Tell whether a word of S4D4_TR works on raw bits."""
    return word.header.opcode in _BITVEC


def op_problem(word: TensorReduce, stored: list[Stored], state: EngineState) -> Problem | None:
    """Return why the operation or the dtypes of a folding word do not execute."""
    if is_bitvec(word):
        return bitvec_problem(word.op, state) or same_width(stored)
    return arith_problem(word.op, state)


def covered(word: TensorReduce) -> int | Problem:
    """Return how many elements the dimensions of op_dim hold; an indirect source has X alone."""
    subdimension = member(TensorSubdimension, word.op_dim)
    if not subdimension:
        return Problem("no_model", f"op_dim must be X, XY, XYZ or XYZW, not {word.op_dim}")
    if not isinstance(word.src, TensorPattern):
        return word.src.element_count
    product = 1
    for count in word.src.counts[: subdimension.dimensions]:
        product *= count
    return product


def tile_problem(channels: int, elements: int) -> Problem | None:
    """Return why operands cannot be cut into tiles of 32 lanes by 32 elements."""
    if channels % TILE == 0 and elements % TILE == 0:
        return None
    return Problem(
        "element_count",
        f"a transpose needs a multiple of {TILE} channels and elements, not {channels} by"
        f" {elements}",
    )


def transposed(bits: Bits) -> Bits:
    """Transpose each tile: y[32 g + i][32 b + j] = x[32 g + j][32 b + i]."""
    channels, elements = bits.shape
    tiles = bits.reshape(channels // TILE, TILE, elements // TILE, TILE)
    return tiles.transpose(0, 3, 2, 1).reshape(channels, elements)


@define(eq=False)
class PreparedReduce(OneSource):
    """One reducing word: each run of `length` source elements becomes one of the destination."""

    word: TensorReduce
    state: EngineState
    length: int
    is_transposing: bool
    is_overlapping: bool
    registers: tuple[int, ...]
    is_reusable: bool
    uses_accumulator: int = 0

    def execute(self) -> Effects:
        """Fold every run; where operands meet, a run is written before the next one is read."""
        if self.is_overlapping:
            bits = self._in_stream_order()
        else:
            bits = self._fold(self._shuffled(self.source.operand.read()))
        return Effects(((self.destination.operand, bits),))

    def _shuffled(self, bits: Bits) -> Bits:
        return transposed(bits) if self.is_transposing else bits

    def _in_stream_order(self) -> Bits:
        """Read block by block (a tile when transposing), and write each run that is complete."""
        source, destination = self.source.operand, self.destination.operand
        block = TILE if self.is_transposing else 1
        saved = destination.save()
        shape = (destination.channels, destination.num_elements)
        written: Bits = np.empty(shape, destination.dtype)
        waiting: list[Bits] = []
        done = 0
        for first in range(0, source.num_elements, block):
            columns = [source.read_element(first + i) for i in range(block)]
            waiting.extend(self._shuffled(np.stack(columns, axis=1)).T)
            while len(waiting) >= self.length:
                run = np.stack(waiting[: self.length], axis=1)
                del waiting[: self.length]
                written[:, done] = self._fold(run)[:, 0]
                destination.write_element(done, written[:, done])
                done += 1
        destination.restore(saved)
        return written

    def _fold(self, bits: Bits) -> Bits:
        channels = bits.shape[0]
        if is_bitvec(self.word):
            return self._fold_bits(bits.reshape(-1, self.length)).reshape(channels, -1)
        values = as_floats(bits, self.source, self.state)
        folded = self._fold_floats(values.reshape(-1, self.length))
        if self.word.negated:
            folded = multiply(folded, _MINUS_ONE)
        return converted(folded.reshape(channels, -1), self.destination, self.state)

    def _fold_floats(self, rows: Float32s) -> Float32s:
        if self.length == 1:
            return rows[:, 0]
        policy = self.state.policy
        return alu.fold(self.word.op, rows[:, 0], rows[:, 1:], policy, value_first=False)

    def _fold_bits(self, rows: Bits) -> Bits:
        total = rows[:, 0]
        for column in range(1, self.length):
            total = apply_bits(self.word.op, total, rows[:, column], self.state.policy)
        return total

    def stations(self, effects: Effects) -> list[Station]:
        """Return the fold of the first run of lane 0."""
        (operand, bits), *_ = effects.writes
        fold: dict[str, Any] = {"op": op_name(self.word.op), "run": self.length}
        if self.is_transposing:
            fold["transpose"] = True
        if self.word.negated:
            fold["negated"] = True
        written = {"dtype": self.destination.dtype.word, "bits": f"{int(bits[0, 0]):#x}"}
        return [
            ("read", {"src": f"{int(self.source.operand.read_element(0)[0]):#x}"}),
            ("operation", fold),
            ("convert", written),
            ("write", {"elements": int(bits.size), "space": operand.space.name}),
        ]


def prepare_reduce(word: TensorReduce, state: EngineState) -> PreparedReduce | Problem:
    """Make a reducing word ready: dst holds the dimensions that op_dim leaves."""
    found = resolve_one_source(word, state)
    if isinstance(found, Problem):
        return found
    source, destination = found
    length = covered(word)
    if isinstance(length, Problem):
        return length
    is_transposing = word.header.opcode in _TRANSPOSING
    elements = source.operand.num_elements
    problem = op_problem(word, found, state)
    if problem is None and is_transposing:
        problem = tile_problem(word.num_active_channels, elements)
    if problem is None and is_bitvec(word) and word.negated:
        problem = Problem("no_model", "a word on raw bits has no negation: negated must be 0")
    return (
        problem
        or count_problem(elements // length, destination.operand.num_elements)
        or PreparedReduce(
            word=word,
            state=state,
            source=source,
            destination=destination,
            length=length,
            is_transposing=is_transposing,
            is_overlapping=source.operand.overlaps(destination.operand),
            registers=registers_of(word.src, word.dst),
            is_reusable=not (word.src.start.is_indirect or word.dst.start.is_indirect),
        )
    )
