"""Words whose destination overlaps their source, run as the element stream of the engine.

The engine reads element i in all lanes, computes, writes it in all lanes, and goes on
(dve-tensor-scalar.md 2.2 [unknown: chosen]). `memory.stream_order_matters` tells which words need
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from neuron_emu.memory import Bits, Operand

__all__ = ["in_stream_order"]


def in_stream_order(
    sources: Sequence[Operand],
    destination: Operand,
    compute: Callable[[list[Bits]], Bits],
    *,
    block: int = 1,
) -> Bits:
    """Return what a word writes, [channels, n], when later elements are read after earlier writes.

    `compute` takes the next `block` elements of each source, [channels, block], and returns those
    of the destination; it is called in stream order, so it may carry state. The memory is put back
    as it was, so that the machine applies the effects as for any word.
    """
    saved = destination.save()
    written: Bits = np.empty((destination.channels, destination.num_elements), destination.dtype)
    try:
        for first in range(0, destination.num_elements, block):
            elements = range(first, min(first + block, destination.num_elements))
            columns = [
                np.stack([source.read_element(element) for element in elements], axis=1)
                for source in sources
            ]
            results = compute(columns)
            for position, element in enumerate(elements):
                destination.write_element(element, results[:, position])
                written[:, element] = results[:, position]
    finally:
        destination.restore(saved)
    return written
