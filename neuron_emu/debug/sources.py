"""Which elements of the sources of a word an element of its destination was made from.

Most words compute element by element. A reduction takes a run, a scan all elements up to its own,
an accumulator all of them, and a transposing word takes them from other lanes.
Sources: dve-tensor-scalar.md 4.4 (transpose), 9.3 (reductions, cumulative), 9.5 (scan).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_emu.debug.history import Executed
from neuron_emu.engines.shuffle import PreparedTranspose
from neuron_emu.engines.streaming import PreparedStream, PreparedWhole
from neuron_emu.engines.tensor_reduce import TILE, PreparedReduce
from neuron_emu.engines.worker import PreparedTensorScalar
from neuron_emu.isa.families.scalar_tensor_tensor import TENSOR_TENSOR_SCAN
from neuron_emu.isa.families.tensor_reduce import TENSOR_CUMULATIVE, TENSOR_CUMULATIVE_BITVEC
from neuron_emu.memory import Operand

__all__ = ["Integers", "contributing", "is_scan", "ranges_text"]

Integers = npt.NDArray[np.int64]

CACHE_CUMULATIVE = 0xE6
_SCANS = frozenset(
    (TENSOR_CUMULATIVE, TENSOR_CUMULATIVE_BITVEC, TENSOR_TENSOR_SCAN, CACHE_CUMULATIVE)
)


def is_scan(entry: Executed) -> bool:
    """Tell whether an element of the destination depends on those before it."""
    return entry.issued.word[0] in _SCANS


def contributing(
    entry: Executed, operand: Operand, written: Operand | None, lane: int, elements: Integers
) -> list[tuple[int, Integers]]:
    """Return lanes and elements of a source that went into elements of a lane of `written`.

    `written` is None for the accumulator, which takes every element of the lane.
    """
    count = operand.num_elements
    if written is None:
        return [(lane, np.arange(count))]
    if _is_transposing(entry):
        return _across_lanes(lane, _columns(entry, count, elements), operand.channels)
    if count == 1:
        return [(lane, np.zeros(1, np.int64))]
    if isinstance(entry.prepared, PreparedReduce) or is_scan(entry):
        return [(lane, _columns(entry, count, elements))]
    if isinstance(entry.prepared, PreparedWhole) or count != written.num_elements:
        return [(lane, np.arange(count))]
    return [(lane, np.unique(elements))]


def _is_transposing(entry: Executed) -> bool:
    prepared = entry.prepared
    if isinstance(prepared, PreparedReduce):
        return prepared.is_transposing
    if isinstance(prepared, PreparedTensorScalar):
        return prepared.arrangement is not None
    return isinstance(prepared, PreparedTranspose)


def _columns(entry: Executed, count: int, elements: Integers) -> Integers:
    """Return the elements of the stream that enters the computation."""
    prepared = entry.prepared
    if isinstance(prepared, PreparedReduce):
        runs = np.unique(elements)[:, None] * prepared.length
        return np.asarray((runs + np.arange(prepared.length)).ravel(), np.int64)
    if not is_scan(entry):
        return np.unique(elements)
    length = count
    if isinstance(prepared, PreparedStream):
        length = int(prepared.details.get("run", count))
    taken = np.zeros(count, np.bool_)
    for start in np.unique(elements // length) * length:
        within = elements[(elements >= start) & (elements < start + length)]
        taken[start : int(within.max()) + 1] = True
    return np.flatnonzero(taken)


def _across_lanes(lane: int, columns: Integers, channels: int) -> list[tuple[int, Integers]]:
    """Return where the columns of a transposed lane stand: y[32g+i][32b+j] = x[32g+j][32b+i]."""
    lanes = lane // TILE * TILE + columns % TILE
    elements = columns // TILE * TILE + lane % TILE
    return [(int(of), np.unique(elements[lanes == of])) for of in np.unique(lanes) if of < channels]


def ranges_text(numbers: Integers) -> str:
    """Return numbers as ranges: `0-1, 3`."""
    ordered = np.unique(numbers)
    breaks = np.flatnonzero(np.diff(ordered) > 1) + 1
    runs = np.split(ordered, breaks)
    return ", ".join(f"{r[0]}" if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
