"""Moves across lanes: LOAD_MASK_SELECT 0x69, STREAM_SHUFFLE 0x6A and STREAM_TRANSPOSE 0x6B.

Source: dve-tensor-scalar.md 9.1, 9.3 and 4.4 (the tile). That STREAM_SHUFFLE uses the mask of the
last LOAD_MASK_SELECT is [inferred] there.
"""

from __future__ import annotations

import numpy as np
from attrs import define

from neuron_emu.engines.control import PreparedEffects
from neuron_emu.engines.core import Effects, EngineState, Problem, registers_of
from neuron_emu.engines.streaming import (
    Elementwise,
    OneSource,
    PreparedStream,
    prepare_stream,
    resolve_one_source,
)
from neuron_emu.engines.tensor_reduce import TILE, tile_problem, transposed
from neuron_emu.engines.tensor_tensor import same_width
from neuron_emu.isa.families.mask_select import MaskSelect
from neuron_emu.isa.families.tensor_reduce import TensorReduce
from neuron_emu.memory import Bits

__all__ = ["KEEP_BIT", "MASK", "prepare_mask", "prepare_shuffle", "prepare_transpose"]

MASK = "shuffle_mask"
"""Name of the latch that holds the 32 bytes of the last LOAD_MASK_SELECT."""
KEEP_BIT = 0x20
"""Set in the bytes that leave a partition alone: 255, and what the compiler writes instead."""


def prepare_mask(word: MaskSelect, state: EngineState) -> PreparedEffects | Problem:
    """Make LOAD_MASK_SELECT ready: its mask stays in the engine."""
    wrong = next((byte for byte in word.mask if byte >= 64 and byte != 255), None)
    if wrong is not None:
        return Problem("no_model", f"a mask byte must be below 64 or 255, not {wrong}")
    effects = Effects(latches=((MASK, bytes(word.mask)),))
    return PreparedEffects(effects, ("mask", {"mask": list(word.mask)}))


def prepare_shuffle(word: TensorReduce, state: EngineState) -> PreparedStream | Problem:
    """Make STREAM_SHUFFLE ready: lane i of each quadrant takes lane mask[i], or stays."""
    found = resolve_one_source(word, state)
    if isinstance(found, Problem):
        return found
    source, destination = found
    problem = same_width(found) or tile_problem(word.num_active_channels, TILE)
    if problem is not None:
        return problem
    lanes = np.arange(word.num_active_channels)

    def begin() -> Elementwise | Problem:
        if MASK not in state.latches:
            return Problem("not_loaded", "STREAM_SHUFFLE needs a mask: LOAD_MASK_SELECT first")
        mask = np.frombuffer(state.latches[MASK], np.uint8)[lanes % TILE].astype(np.intp)
        stays = (mask & KEEP_BIT != 0)[:, None]
        taken = lanes // TILE * TILE + mask % TILE
        return Elementwise(lambda columns: np.where(stays, columns[1], columns[0][taken]))

    return prepare_stream(state, begin, (source,), destination, kept=(destination,))


@define(eq=False)
class PreparedTranspose(OneSource):
    """One STREAM_TRANSPOSE: tiles of 32 lanes by 32 elements, each read whole before it is written.

    The destination may have fewer elements than the source; the rest is dropped.
    """

    registers: tuple[int, ...]
    is_reusable: bool
    uses_accumulator: int = 0

    def execute(self) -> Effects:
        """Transpose every tile."""
        source, destination = self.source.operand, self.destination.operand
        if not source.overlaps(destination):
            bits = transposed(source.read())[:, : destination.num_elements]
        else:
            bits = self._tile_by_tile()
        return Effects(((destination, bits),))

    def _tile_by_tile(self) -> Bits:
        source, destination = self.source.operand, self.destination.operand
        saved = destination.save()
        shape = (destination.channels, destination.num_elements)
        written: Bits = np.empty(shape, destination.dtype)
        for first in range(0, destination.num_elements, TILE):
            columns = [source.read_element(first + i) for i in range(TILE)]
            tile = transposed(np.stack(columns, axis=1))
            for element in range(first, min(first + TILE, destination.num_elements)):
                written[:, element] = tile[:, element - first]
                destination.write_element(element, written[:, element])
        destination.restore(saved)
        return written

    def stations(self, effects: Effects) -> list[tuple[str, dict[str, object]]]:
        """Return the write."""
        (operand, bits), *_ = effects.writes
        return [
            ("operation", {"tiles": bits.shape[0] // TILE * -(-bits.shape[1] // TILE)}),
            ("write", {"elements": int(bits.size), "space": operand.space.name}),
        ]


def prepare_transpose(word: TensorReduce, state: EngineState) -> PreparedTranspose | Problem:
    """Make STREAM_TRANSPOSE ready."""
    found = resolve_one_source(word, state)
    if isinstance(found, Problem):
        return found
    source, destination = found
    have, wanted = source.operand.num_elements, destination.operand.num_elements
    problem = same_width(found) or tile_problem(word.num_active_channels, have)
    if problem is None and word.mask_enable:
        problem = Problem("no_model", "what mask_enable leaves out of a tile is not published")
    if problem is None and wanted > have:
        problem = Problem("element_count", f"dst must have at most {have} elements, not {wanted}")
    return problem or PreparedTranspose(
        source,
        destination,
        registers_of(word.src, word.dst),
        not (word.src.start.is_indirect or word.dst.start.is_indirect),
    )
