"""Words that move one tensor: COPY 0x46, CAST 0x47, RECIPROCAL 0x48 and MEMSET 0x49.

Sources: dve-tensor-scalar.md 9.3, 9.4, and 6.4 note 3 (a copy is exact to the bit).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neuron_emu.engines.core import EngineState, Problem
from neuron_emu.engines.streaming import (
    Elementwise,
    Float32s,
    Pass,
    PreparedStream,
    as_floats,
    converted,
    prepare_stream,
    resolve,
    resolve_one_source,
)
from neuron_emu.engines.tensor_tensor import same_width
from neuron_emu.isa.families.memset import Memset
from neuron_emu.isa.families.tensor_reduce import TensorReduce
from neuron_emu.memory import Bits
from neuron_emu.numerics import quiet

__all__ = ["prepare_cast", "prepare_copy", "prepare_memset", "prepare_reciprocal", "reciprocal"]


def reciprocal(values: Float32s) -> Float32s:
    """Return 1/x, correctly rounded; of a zero the infinity of its sign, of a NaN that, quieted.

    The engine refines a seed to full precision by a scheme that is not published
    [unknown: the correctly rounded value is chosen].
    """
    with np.errstate(all="ignore"):
        return quiet(np.divide(np.float32(1), values))


def prepare_copy(word: TensorReduce, state: EngineState) -> PreparedStream | Problem:
    """Make COPY ready: the bits of src, NaN payloads included."""
    found = resolve_one_source(word, state)
    if isinstance(found, Problem):
        return found
    source, destination = found
    return same_width(found) or prepare_stream(
        state, lambda: Elementwise(lambda columns: columns[0]), (source,), destination
    )


def prepare_cast(word: TensorReduce, state: EngineState) -> PreparedStream | Problem:
    """Make CAST ready: through fp32, equal dtypes too."""
    return _through_float32(word, state, lambda values: values)


def prepare_reciprocal(word: TensorReduce, state: EngineState) -> PreparedStream | Problem:
    """Make RECIPROCAL ready."""
    return _through_float32(word, state, reciprocal)


def _through_float32(
    word: TensorReduce, state: EngineState, function: Callable[[Float32s], Float32s]
) -> PreparedStream | Problem:
    found = resolve_one_source(word, state)
    if isinstance(found, Problem):
        return found
    source, destination = found

    def step(columns: list[Bits]) -> Bits:
        return converted(function(as_floats(columns[0], source, state)), destination, state)

    return prepare_stream(state, lambda: Elementwise(step), (source,), destination)


def prepare_memset(word: Memset, state: EngineState) -> PreparedStream | Problem:
    """Make MEMSET ready: every element of dst becomes the low bytes of set_value."""
    found = resolve(state, word.num_active_channels, (word.dst, word.dtype))
    if isinstance(found, Problem):
        return found
    (destination,) = found
    operand = destination.operand
    value = word.set_value & ((1 << 8 * operand.item_bytes) - 1)
    bits = np.full((operand.channels, operand.num_elements), value, operand.dtype)

    class Fill(Pass):
        def step(self, columns: list[Bits]) -> Bits:
            return bits

    return prepare_stream(state, Fill, (), destination)
