"""The search for eight values: MAX8 0x6C, MATCH_VALUE_LOAD 0x6D, FIND_INDEX8 0x6E,
MATCH_REPLACE8 0x6F and DVE_READ_INDICES 0xE9.

Sources: dve-tensor-scalar.md 9.7 and 7.1. Policy `search_order` decides between the order that NKI
documents for plain patterns and the one of the header's comments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.engines.core import Effects, EngineState, Problem, registers_of
from neuron_emu.engines.streaming import (
    Float32s,
    Pass,
    PreparedStream,
    PreparedWhole,
    Stored,
    as_floats,
    converted,
    count_problem,
    prepare_stream,
    resolve,
    resolve_one_source,
)
from neuron_emu.isa.enums import DType
from neuron_emu.isa.families.memset import Memset
from neuron_emu.isa.families.search import BatchNorm, KeyLoad, MatchReplace
from neuron_emu.memory import Bits
from neuron_emu.policy import Policy

__all__ = [
    "EIGHT",
    "INDICES",
    "KEYS",
    "NOT_FOUND",
    "Latch",
    "largest_eight",
    "prepare_find_index",
    "prepare_key_load",
    "prepare_match_replace",
    "prepare_max",
    "prepare_read_indices",
]

EIGHT = 8
NOT_FOUND = 0xFFFF_FFFF
"""Index of a key that no element equals; cut to the dtype's width when it is written."""
KEYS, INDICES = "match_keys", "match_indices"
_SIGN, _INFINITY = np.uint32(0x8000_0000), np.uint32(0x7F80_0000)
Indices = npt.NDArray[np.uint32]
_INDEX_DTYPES = (DType.UINT16, DType.UINT32)


@frozen(eq=False)
class Latch:
    """Eight values of every lane, [lanes, 8], and which lanes were ever loaded."""

    values: npt.NDArray[Any]
    loaded: npt.NDArray[np.bool_]


def _with_lanes(state: EngineState, name: str, values: npt.NDArray[Any]) -> Latch:
    """Return a latch with the first lanes replaced; the others stay."""
    lanes = state.generation.num_channels
    old = state.latches.get(name)
    if old is None:
        old = Latch(np.zeros((lanes, EIGHT), values.dtype), np.zeros(lanes, np.bool_))
    after = Latch(old.values.copy(), old.loaded.copy())
    after.values[: len(values)], after.loaded[: len(values)] = values, True
    return after


def _latched(state: EngineState, name: str, channels: int, loader: str) -> Any:
    """Return the values of the first lanes, or the problem that something did not load them."""
    latch = state.latches.get(name)
    if latch is None or not latch.loaded[:channels].all():
        return Problem("not_loaded", f"{name} must be loaded for {channels} lanes: {loader} first")
    return latch.values[:channels]


def _finds_key_0_first(policy: Policy, is_replacing: bool) -> bool:
    """Tell whether equal keys take occurrences from key 0 on, or from key 7 on.

    NKI: FIND_INDEX8 upwards, MATCH_REPLACE8 from key 7 down. Header: from slot 0 on, which holds
    the last key of the stream, for both.
    """
    return policy.search_order == "nki" and not is_replacing


# --- the eight largest -------------------------------------------------------------------------


def largest_eight(values: Float32s) -> Float32s:
    """Return the eight largest of each lane, [lanes, 8], the largest first.

    NaN never wins and leaves -inf behind; of the two zeros +0.0 is the larger, as for MAX.
    """
    word = np.ascontiguousarray(values).view(np.uint32)
    word = np.where(np.isnan(values), _SIGN | _INFINITY, word)
    # Unsigned keys in the order of the numbers: negative ones are inverted.
    keys = np.where(word & _SIGN, ~word, word | _SIGN)
    if keys.shape[1] > EIGHT:
        keys = np.partition(keys, keys.shape[1] - EIGHT, axis=1)[:, -EIGHT:]
    keys = np.sort(keys, axis=1)[:, ::-1]
    restored: Float32s = np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float32)
    return restored


def prepare_max(word: BatchNorm, state: EngineState) -> PreparedWhole | Problem:
    """Make MAX8 ready."""
    found = _search_operands(word, state)
    if isinstance(found, Problem):
        return found
    source, destination = found

    def compute() -> Effects:
        largest = largest_eight(as_floats(source.operand.read(), source, state))
        if state.policy.search_order == "header":
            largest = np.ascontiguousarray(largest[:, ::-1])
        return Effects(((destination.operand, converted(largest, destination, state)),))

    registers = registers_of(word.src, word.dst)
    return PreparedWhole(state, source, compute, registers, written=destination.dtype)


def _search_operands(word: BatchNorm, state: EngineState) -> list[Stored] | Problem:
    found = resolve_one_source(word, state)
    if isinstance(found, Problem):
        return found
    elements = found[0].operand.num_elements
    if elements < EIGHT:
        return Problem("element_count", f"src must have at least {EIGHT} elements, not {elements}")
    return count_problem(EIGHT, found[1].operand.num_elements) or found


# --- keys and their indices --------------------------------------------------------------------


def prepare_key_load(word: KeyLoad, state: EngineState) -> PreparedWhole | Problem:
    """Make MATCH_VALUE_LOAD ready: key k is element k of the stream."""
    found = resolve(state, word.num_active_channels, (word.src, word.dtype))
    if isinstance(found, Problem):
        return found
    (source,) = found

    def compute() -> Effects:
        values = as_floats(source.operand.read(), source, state)
        return Effects(latches=((KEYS, _with_lanes(state, KEYS, values)),))

    problem = count_problem(EIGHT, source.operand.num_elements, "src")
    return problem or PreparedWhole(state, source, compute, registers_of(word.src))


def first_matches(values: Float32s, keys: Float32s, is_ascending: bool) -> Indices:
    """Return the index of the element that each key takes, uint32 [lanes, 8].

    Equal keys take successive occurrences, from key 0 on or from key 7 on. A NaN equals nothing.
    """
    indices = np.full(keys.shape, NOT_FOUND, np.uint32)
    order = range(EIGHT) if is_ascending else range(EIGHT - 1, -1, -1)
    earlier: list[int] = []
    for key in order:
        is_equal = values == keys[:, key : key + 1]
        rank = np.zeros(len(keys), np.int64)
        for other in earlier:
            rank += keys[:, other] == keys[:, key]
        earlier.append(key)
        if rank.any():
            is_equal &= np.cumsum(is_equal, axis=1) > rank[:, None]
        found = is_equal.any(axis=1)
        indices[found, key] = is_equal[found].argmax(axis=1)
    return indices


def prepare_find_index(word: BatchNorm, state: EngineState) -> PreparedWhole | Problem:
    """Make FIND_INDEX8 ready: the index of the element that equals each key."""
    found = _search_operands(word, state)
    if isinstance(found, Problem):
        return found
    source, destination = found

    def compute() -> Effects | Problem:
        keys = _latched(state, KEYS, word.num_active_channels, "MATCH_VALUE_LOAD")
        if isinstance(keys, Problem):
            return keys
        values = as_floats(source.operand.read(), source, state)
        indices = first_matches(values, keys, _finds_key_0_first(state.policy, False))
        return _written(indices, destination, state)

    problem = _index_problem(destination)
    registers = registers_of(word.src, word.dst)
    return problem or PreparedWhole(state, source, compute, registers, written=destination.dtype)


def _written(indices: Indices, destination: Stored, state: EngineState) -> Effects:
    """Write the indices of the keys, or of the slots, which hold the keys in reverse."""
    if state.policy.search_order == "header":
        indices = indices[:, ::-1]
    operand = destination.operand
    return Effects(((operand, indices.astype(operand.dtype)),))


def _index_problem(stored: Stored) -> Problem | None:
    if stored.dtype in _INDEX_DTYPES:
        return None
    return Problem("no_model", f"indices are uint16 or uint32, not {stored.dtype.word}")


class _Replacement(Pass):
    """MATCH_REPLACE8: the element that a key takes becomes the immediate, others pass."""

    def __init__(
        self,
        word: MatchReplace,
        stored: tuple[Stored, Stored],
        keys: Float32s,
        state: EngineState,
    ) -> None:
        self._source, self._destination = stored
        self._keys, self._state = keys, state
        self._immediate = np.array([word.immediate], np.uint32).view(np.float32)[0]
        self._indices = np.full(keys.shape, NOT_FOUND, np.uint32)
        self._is_ascending = _finds_key_0_first(state.policy, True)
        self._position = 0

    def step(self, columns: list[Bits]) -> Bits:
        values = as_floats(columns[0], self._source, self._state)
        count = values.shape[1]
        if count == self._source.operand.num_elements:
            self._indices = first_matches(values, self._keys, self._is_ascending)
            values = self._replaced(values)
        else:
            values = np.concatenate([self._one(values[:, i]) for i in range(count)], axis=1)
        return converted(values, self._destination, self._state)

    def _replaced(self, values: Float32s) -> Float32s:
        after = values.copy()
        lane, key = np.nonzero(self._indices != NOT_FOUND)
        after[lane, self._indices[lane, key]] = self._immediate
        return after

    def _one(self, value: Float32s) -> Float32s:
        """Give one element of every lane to the first key that is free and equal to it."""
        is_taken = np.zeros(len(value), np.bool_)
        order = range(EIGHT) if self._is_ascending else range(EIGHT - 1, -1, -1)
        for key in order:
            is_free = self._indices[:, key] == NOT_FOUND
            takes = is_free & ~is_taken & (self._keys[:, key] == value)
            self._indices[takes, key] = self._position
            is_taken |= takes
        self._position += 1
        return np.where(is_taken, self._immediate, value)[:, None]

    def latches(self) -> tuple[tuple[str, Any], ...]:
        return ((INDICES, _with_lanes(self._state, INDICES, self._indices)),)


def prepare_match_replace(word: MatchReplace, state: EngineState) -> PreparedStream | Problem:
    """Make MATCH_REPLACE8 ready: it also leaves the indices for DVE_READ_INDICES."""
    channels = word.num_active_channels
    found = resolve(state, channels, (word.src, word.in_dtype), (word.dst, word.out_dtype))
    if isinstance(found, Problem):
        return found
    source, destination = found

    def begin() -> _Replacement | Problem:
        keys = _latched(state, KEYS, channels, "MATCH_VALUE_LOAD")
        if isinstance(keys, Problem):
            return keys
        return _Replacement(word, (source, destination), keys, state)

    return prepare_stream(state, begin, (source,), destination, constants=(word.immediate,))


def prepare_read_indices(word: Memset, state: EngineState) -> PreparedWhole | Problem:
    """Make DVE_READ_INDICES ready: what the last MATCH_REPLACE8 found."""
    found = resolve(state, word.num_active_channels, (word.dst, word.dtype))
    if isinstance(found, Problem):
        return found
    (destination,) = found

    def compute() -> Effects | Problem:
        indices = _latched(state, INDICES, word.num_active_channels, "MATCH_REPLACE8")
        if isinstance(indices, Problem):
            return indices
        return _written(indices, destination, state)

    problem = _index_problem(destination)
    problem = problem or count_problem(EIGHT, destination.operand.num_elements)
    reusable = not word.dst.start.is_indirect
    return problem or PreparedWhole(
        state, None, compute, registers_of(word.dst), reusable, written=destination.dtype
    )
