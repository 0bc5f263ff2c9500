"""Batch-norm statistics: BN_STATS 0x60, BN_STATS2 0x61 and 0x82, BN_AGGREGATE 0x62.

Source: dve-tensor-scalar.md 9.7: count, mean and variance times count, of the even elements and
of the odd ones; the counts written are those of the word. In what steps the engine gets there is
not published [unknown: two passes in fp32 are chosen, each sum in stream order and one division,
because they lose the least].
"""

from __future__ import annotations

import numpy as np

from neuron_emu.engines.core import Effects, EngineState, Problem, registers_of
from neuron_emu.engines.streaming import (
    Float32s,
    PreparedWhole,
    Stored,
    as_floats,
    converted,
    count_problem,
    resolve_one_source,
)
from neuron_emu.engines.tensor_reduce import tile_problem, transposed
from neuron_emu.isa.families.search import TRANSPOSE_BN_STATS2, BatchNorm
from neuron_emu.numerics import accumulate, add, multiply, quiet, subtract

__all__ = ["MAX_ELEMENTS", "prepare_aggregate", "prepare_stats"]

MAX_ELEMENTS = 512
"""Elements of a lane that the statistics cover at most."""
_ONE_SET, _TWO_SETS = 3, 6
_CANONICAL_NAN = np.uint32(0x7FC0_0000).view(np.float32)


def divide(a: Float32s, b: Float32s) -> Float32s:
    """Return a / b in float32; a NaN operand stays, one that the division makes is 0x7fc00000."""
    with np.errstate(all="ignore"):
        result = np.divide(a, b, dtype=np.float32)
    given = quiet(np.where(np.isnan(a), a, b))
    made = np.where(np.isnan(a) | np.isnan(b), given, _CANONICAL_NAN)
    return np.where(np.isnan(result), made, result)


def _total(values: Float32s) -> Float32s:
    """Sum each lane in stream order from +0.0."""
    return accumulate(np.zeros(len(values), np.float32), values)


def _moments(values: Float32s, count: Float32s) -> tuple[Float32s, Float32s]:
    """Return mean and variance times count of each lane, both float32 [lanes]."""
    mean = divide(_total(values), count)
    from_mean = subtract(values, mean[:, None])
    return mean, _total(multiply(from_mean, from_mean))


def prepare_stats(word: BatchNorm, state: EngineState) -> PreparedWhole | Problem:
    """Make BN_STATS or BN_STATS2 ready; three elements of dst take one set, six take two."""
    found = _operands(word, state)
    if isinstance(found, Problem):
        return found
    source, destination = found
    elements, written = source.operand.num_elements, destination.operand.num_elements
    if written not in (_ONE_SET, _TWO_SETS):
        return Problem("element_count", f"dst must have 3 or 6 elements in a lane, not {written}")
    if elements > MAX_ELEMENTS or elements < written // _ONE_SET:
        return Problem(
            "element_count",
            f"src must have {written // _ONE_SET} to {MAX_ELEMENTS} elements, not {elements}",
        )
    is_transposing = word.header.opcode == TRANSPOSE_BN_STATS2

    def compute() -> Effects:
        bits = source.operand.read()
        values = as_floats(transposed(bits) if is_transposing else bits, source, state)
        counts = np.array([word.even_count, word.odd_count], np.uint32).view(np.float32)
        results = converted(_statistics(values, counts, written), destination, state)
        return Effects(((destination.operand, results),))

    problem = tile_problem(word.num_active_channels, elements) if is_transposing else None
    registers = registers_of(word.src, word.dst)
    return problem or PreparedWhole(state, source, compute, registers, written=destination.dtype)


def _statistics(values: Float32s, counts: Float32s, written: int) -> Float32s:
    """Return the three or six values of every lane, [lanes, written]."""
    sets = [values] if written == _ONE_SET else [values[:, 0::2], values[:, 1::2]]
    columns: list[Float32s] = []
    for part, count in zip(sets, counts, strict=False):
        length = np.full(len(values), part.shape[1], np.float32)
        columns += [np.full(len(values), count, np.float32), *_moments(part, length)]
    return np.stack(columns, axis=1)


def _operands(word: BatchNorm, state: EngineState) -> list[Stored] | Problem:
    return resolve_one_source(word, state)


def prepare_aggregate(word: BatchNorm, state: EngineState) -> PreparedWhole | Problem:
    """Make BN_AGGREGATE ready."""
    found = _operands(word, state)
    if isinstance(found, Problem):
        return found
    source, destination = found
    elements = source.operand.num_elements
    if elements % 3:
        return Problem("element_count", f"src must have a multiple of 3 elements, not {elements}")

    def compute() -> Effects:
        values = as_floats(source.operand.read(), source, state)
        results = converted(_aggregate(values), destination, state)
        return Effects(((destination.operand, results),))

    problem = count_problem(2, destination.operand.num_elements)
    registers = registers_of(word.src, word.dst)
    return problem or PreparedWhole(state, source, compute, registers, written=destination.dtype)


def _aggregate(values: Float32s) -> Float32s:
    """Fold triples of count, mean and variance times count into mean and variance."""
    counts, means, scaled = (np.ascontiguousarray(values[:, i::3]) for i in range(3))
    total = _total(counts)
    mean = divide(_total(multiply(counts, means)), total)
    from_mean = subtract(means, mean[:, None])
    between = multiply(counts, multiply(from_mean, from_mean))
    variance = divide(_total(add(scaled, between)), total)
    return np.stack([mean, variance], axis=1)
