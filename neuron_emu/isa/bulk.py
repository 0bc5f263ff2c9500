"""Whole streams fast: which words cannot be proven clean by the rules run over columns.

The rules are the same functions that judge one word, see `rules.core`. A word that this pass does
not prove clean is judged again alone, so the findings are those of the single word.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from attrs import define, field

from neuron_emu.generation import Generation
from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.isa.rules import rules_for
from neuron_emu.isa.rules.core import BlockReview
from neuron_emu.policy import Policy

__all__ = ["BLOCK_WORDS", "BlockJudge"]

BLOCK_WORDS = 16384
"""Words judged at a time: one megabyte, so that the columns stay in the processor's cache."""
SLOT_BITS = 14
TABLE_PAUSE = 7
"""Blocks for which the table is left alone after one in which hardly any word was in it."""
_LANES = WORD_BYTES // 8
_MULTIPLIERS = np.array(
    [0x9E3779B97F4A7C15 * (2 * lane + 1) & 0xFFFFFFFFFFFFFFFF | 1 for lane in range(_LANES)],
    dtype=np.uint64,
)


@define(eq=False)
class BlockJudge:
    """Proves words clean for one generation, engine and policy.

    Clean words are kept in a table of one word a slot, slots by hash, and compared whole, so a
    repeated word costs a look-up and a hash collision costs only speed.
    """

    generation: Generation
    engine: Engine | None
    policy: Policy
    _table: npt.NDArray[np.uint64] = field(init=False)
    _filled: npt.NDArray[np.bool_] = field(init=False)
    _is_filled: bool = field(default=False, init=False)
    _blocks_without_table: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._table = np.zeros((1 << SLOT_BITS, _LANES), dtype=np.uint64)
        self._filled = np.zeros(1 << SLOT_BITS, dtype=bool)

    def clean(self, words: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Tell of each word, shape (words, 64) and C-contiguous, whether no rule finds an error."""
        if self._blocks_without_table:
            self._blocks_without_table -= 1
            return self._run_rules(words)
        lanes = words.view(np.uint64)
        slots = ((lanes @ _MULTIPLIERS) >> np.uint64(64 - SLOT_BITS)).astype(np.intp)
        seen: npt.NDArray[np.bool_] = self._filled.take(slots)
        kept = self._table.take(slots, axis=0)
        for lane in range(_LANES):
            seen &= kept[:, lane] == lanes[:, lane]
        new = np.flatnonzero(~seen)
        if self._is_filled and len(new) > len(words) * 7 // 8:
            self._blocks_without_table = TABLE_PAUSE
        if len(new):
            proven = new[self._run_rules(words[new])]
            seen[proven] = True
            self._table[slots[proven]] = lanes[proven]
            self._filled[slots[proven]] = True
        self._is_filled = True
        return seen

    def _run_rules(self, words: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        counts = np.bincount(words[:, 0], minlength=256)
        present = np.flatnonzero(counts)
        if len(present) == 1:
            return self._run_opcode(int(present[0]), words)
        clean = np.zeros(len(words), dtype=bool)
        for opcode in present:
            chosen = np.flatnonzero(words[:, 0] == opcode)
            clean[chosen] = self._run_opcode(int(opcode), words[chosen])
        return clean

    def _run_opcode(self, opcode: int, words: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        review = BlockReview(
            opcode, self.generation, self.engine, self.policy, record_type_of(opcode), words=words
        )
        for rule in rules_for(opcode, self.generation.name):
            rule.check(review)
        clean: npt.NDArray[np.bool_] = review.clean
        return clean
