"""When computing a whole word at once would differ from the element stream of the engine.

The engine reads element i in all lanes, computes, writes element i in all lanes, then goes on
(dve-tensor-scalar.md 2.2 [unknown: chosen]).
"""

from __future__ import annotations

import numpy as np

from neuron_emu.memory.operand import DirectOperand, Operand

__all__ = ["stream_order_matters"]


def stream_order_matters(source: Operand, destination: Operand) -> bool:
    """Return whether some element written at position i is read at a later position.

    Exact for access patterns; for an indirect operand True whenever the byte ranges meet. The
    offsets of an index tensor are latched before the first element and do not count. The answer
    for two access patterns never changes: keep it beside the operands.
    """
    if not source.overlaps(destination):
        return False
    if not (isinstance(source, DirectOperand) and isinstance(destination, DirectOperand)):
        return True
    if destination.is_injective and _is_same_walk(source, destination):
        return False
    return _reads_an_earlier_write(source, destination)


def _is_same_walk(source: DirectOperand, destination: DirectOperand) -> bool:
    return (
        source.offset == destination.offset
        and source.item_bytes == destination.item_bytes
        and source.dims == destination.dims
    )


def _reads_an_earlier_write(source: DirectOperand, destination: DirectOperand) -> bool:
    """Compare, for every byte, the earliest write with the reads; every lane has these offsets."""
    low = min(source.low, destination.low)
    never = np.iinfo(np.int64).max
    earliest = np.full(max(source.end, destination.end) - low, never, dtype=np.int64)
    places, first_writer = np.unique(destination.byte_offsets() - low, return_index=True)
    for byte in range(destination.item_bytes):
        earliest[places + byte] = first_writer
    position = np.arange(source.num_elements)
    reads = source.byte_offsets() - low
    return any(bool((earliest[reads + byte] < position).any()) for byte in range(source.item_bytes))
