"""Where the results of a large word stand between its computation and its writes.

Memory that the host hands out anew is cleared page by page when it is first touched, which takes
longer than looking up an answer. So an engine keeps the buffers of its large results.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field

from neuron_emu.memory import Bits

__all__ = ["BLOCK", "Staging", "lane_blocks"]

BLOCK = 1 << 15
"""Elements that are handled at a time, so that what one step makes the next finds in the cache."""
_MOST_BUFFERS = 4


@define(eq=False)
class Staging:
    """Buffers of one engine, each used again once no array refers to it any more."""

    _buffers: list[npt.NDArray[np.uint8]] = field(factory=list, init=False)
    _index: npt.NDArray[np.intp] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._index = np.empty(BLOCK, np.intp)

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array with arbitrary contents, as `np.empty` does; it is the caller's."""
        dtype = np.dtype(dtype)
        num_bytes = math.prod(shape) * dtype.itemsize
        return self._unused(num_bytes)[:num_bytes].view(dtype).reshape(shape)

    def _unused(self, num_bytes: int) -> npt.NDArray[np.uint8]:
        buffers = self._buffers
        for number in range(len(buffers)):
            # Two references are the list's and the argument's; every array made of it holds one.
            if buffers[number].size >= num_bytes and sys.getrefcount(buffers[number]) == 2:
                return buffers[number]
        if len(buffers) == _MOST_BUFFERS:
            del buffers[0]
        buffers.append(np.empty(num_bytes, np.uint8))
        return buffers[-1]

    def index(self, inputs: Bits) -> npt.NDArray[np.intp]:
        """Return inputs in the type of numpy's indices; the array is good until the next call."""
        if inputs.size > BLOCK:
            return inputs.astype(np.intp)
        index = self._index[: inputs.size].reshape(inputs.shape)
        index[...] = inputs
        return index


def lane_blocks(shape: tuple[int, ...]) -> list[slice]:
    """Return the lanes of [channels, n] elements in groups that are handled at a time."""
    channels, num_elements = shape
    lanes = max(BLOCK // num_elements, 1)
    return [slice(first, first + lanes) for first in range(0, channels, lanes)]
