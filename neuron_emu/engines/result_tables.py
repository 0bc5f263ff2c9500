"""Result tables: every answer of a narrow input dtype, computed once and then looked up.

A word of 8- or 16-bit elements has at most 65,536 different inputs. Once one configuration has
met that many elements, all its answers are computed by the ordinary path and kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from neuron_emu.engines.staging import BLOCK, Staging, lane_blocks
from neuron_emu.memory import Bits

__all__ = ["ResultTable", "ResultTables"]

_MOST_TABLES = 32
_INPUTS = 1 << 16


@frozen(eq=False)
class ResultTable:
    """Output bits and the value that an accumulator takes, by input bits."""

    bits: Bits
    taken: npt.NDArray[np.float32]

    def look_up(self, inputs: Bits, staging: Staging) -> Bits:
        """Return the output bits of inputs [channels, n]."""
        return _looked_up(self.bits, inputs, staging)

    def look_up_taken(self, inputs: Bits, staging: Staging) -> npt.NDArray[np.float32]:
        """Return the values that an accumulator takes, [channels, n]."""
        return _looked_up(self.taken, inputs, staging)


def _looked_up(answers: npt.NDArray[Any], inputs: Bits, staging: Staging) -> npt.NDArray[Any]:
    if inputs.size <= BLOCK:
        return answers.take(inputs)
    found = staging.empty(inputs.shape, answers.dtype)
    for lanes in lane_blocks(inputs.shape):
        # Every input has an answer, so the mode clips nothing; it spares a second copy.
        answers.take(staging.index(inputs[lanes]), out=found[lanes], mode="clip")
    return found


@define(eq=False)
class ResultTables:
    """The tables of one engine, least recently used first, with the demand for missing ones."""

    tables: OrderedDict[Hashable, ResultTable] = field(factory=OrderedDict)
    demand: dict[Hashable, int] = field(factory=dict)

    def find(
        self,
        key: Hashable,
        item_bytes: int,
        num_elements: int,
        compute: Callable[[Bits], tuple[Bits, npt.NDArray[np.float32]]],
    ) -> ResultTable | None:
        """Return the table of a configuration, or None while computing directly is cheaper.

        `compute` answers a row of inputs [1, n] with output bits and accumulator values.
        """
        table = self.tables.get(key)
        if table is not None:
            self.tables.move_to_end(key)
            return table
        if item_bytes > 2:
            return None
        inputs = 1 << 8 * item_bytes
        met = self.demand.get(key, 0) + num_elements
        if met < inputs:
            self._note(key, met)
            return None
        every_input = np.arange(inputs, dtype=f"<u{item_bytes}")[None, :]
        bits, taken = compute(every_input)
        table = ResultTable(bits.flatten(), taken.flatten())
        self.tables[key] = table
        self.demand.pop(key, None)
        if len(self.tables) > _MOST_TABLES:
            self.tables.popitem(last=False)
        return table

    def _note(self, key: Hashable, met: int) -> None:
        if len(self.demand) >= _INPUTS:
            self.demand.clear()
        self.demand[key] = met
