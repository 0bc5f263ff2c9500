"""Searches, batch-norm statistics and moves across lanes as plain loops, beside `words`.

Source: dve-tensor-scalar.md 9.3, 9.7; policy `search_order`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_emu.engines.reference.conversion import (
    add_bits,
    divide_bits,
    multiply_bits,
    subtract_bits,
    to_float32_bits,
)
from neuron_emu.engines.reference.words import PlainEngine, PlainStored
from neuron_emu.isa.enums import DType

__all__ = ["run_search_word"]

_SIGN, _INFINITY = 0x8000_0000, 0x7F80_0000
_NOT_FOUND = 0xFFFF_FFFF


def _is_nan(bits: int) -> bool:
    return bits & ~_SIGN > _INFINITY


def _number(bits: int) -> int:
    """Return an integer in the order of the numbers; both zeros are 0."""
    magnitude = bits & ~_SIGN
    return -magnitude if bits & _SIGN else magnitude


def _equal(a: int, b: int) -> bool:
    return not _is_nan(a) and not _is_nan(b) and _number(a) == _number(b)


def _source_and_destination(word: Any, engine: PlainEngine) -> tuple[PlainStored, PlainStored]:
    lanes = word.num_active_channels
    return (
        engine.stored(word.src, word.in_dtype, lanes),
        engine.stored(word.dst, word.out_dtype, lanes),
    )


def _max8(word: Any, engine: PlainEngine) -> None:
    source, destination = _source_and_destination(word, engine)
    best: list[list[int]] = []
    for lane in range(word.num_active_channels):
        values = [source.float(lane, i) for i in range(source.count)]
        values = [_SIGN | _INFINITY if _is_nan(v) else v for v in values]
        # Insertion: the largest first, and of equal zeros +0.0 first.
        ordered: list[int] = []
        for value in values:
            place = 0
            while place < len(ordered) and not _goes_before(value, ordered[place]):
                place += 1
            ordered.insert(place, value)
        eight = ordered[:8]
        best.append(eight if engine.policy.search_order == "nki" else eight[::-1])
    for lane, eight in enumerate(best):
        for place, value in enumerate(eight):
            destination.put(lane, place, destination.converted(value))


def _goes_before(a: int, b: int) -> bool:
    if _number(a) != _number(b):
        return _number(a) > _number(b)
    return a < b  # +0.0 before -0.0


def _load_keys(word: Any, engine: PlainEngine) -> None:
    source = engine.stored(word.src, word.dtype, word.num_active_channels)
    for lane in range(word.num_active_channels):
        engine.keys[lane] = [source.float(lane, i) for i in range(8)]


def _key_order(engine: PlainEngine, is_replacing: bool) -> list[int]:
    upwards = engine.policy.search_order == "nki" and not is_replacing
    return list(range(8)) if upwards else list(range(7, -1, -1))


def _take(
    engine: PlainEngine, lane: int, indices: list[int], order: list[int], at: int, value: int
) -> bool:
    """Give an element to the first key in `order` that is free and equal to it."""
    for key in order:
        if indices[key] == _NOT_FOUND and _equal(engine.keys[lane][key], value):
            indices[key] = at
            return True
    return False


def _in_output_order(engine: PlainEngine, indices: list[int]) -> list[int]:
    return indices if engine.policy.search_order == "nki" else indices[::-1]


def _find_index8(word: Any, engine: PlainEngine) -> None:
    source, destination = _source_and_destination(word, engine)
    order = _key_order(engine, False)
    found: list[list[int]] = []
    for lane in range(word.num_active_channels):
        indices = [_NOT_FOUND] * 8
        for element in range(source.count):
            _take(engine, lane, indices, order, element, source.float(lane, element))
        found.append(_in_output_order(engine, indices))
    for lane, indices in enumerate(found):
        for place, index in enumerate(indices):
            destination.put(lane, place, index)


def _match_replace8(word: Any, engine: PlainEngine) -> None:
    source, destination = _source_and_destination(word, engine)
    order = _key_order(engine, True)
    lanes = word.num_active_channels
    found = [[_NOT_FOUND] * 8 for _ in range(lanes)]
    for element in range(source.count):
        results = []
        for lane in range(lanes):
            value = source.float(lane, element)
            if _take(engine, lane, found[lane], order, element, value):
                value = word.immediate
            results.append(destination.converted(value))
        for lane, result in enumerate(results):
            destination.put(lane, element, result)
    engine.indices[:lanes] = found


def _read_indices(word: Any, engine: PlainEngine) -> None:
    destination = engine.stored(word.dst, word.dtype, word.num_active_channels)
    for lane in range(word.num_active_channels):
        for place, index in enumerate(_in_output_order(engine, engine.indices[lane])):
            destination.put(lane, place, index)


def _load_mask(word: Any, engine: PlainEngine) -> None:
    engine.mask = bytes(word.mask)


def _shuffle(word: Any, engine: PlainEngine) -> None:
    source, destination = _source_and_destination(word, engine)
    lanes = word.num_active_channels
    for element in range(source.count):
        column = [source.bits(lane, element) for lane in range(lanes)]
        for lane in range(lanes):
            chosen = engine.mask[lane % 32]
            if chosen < 32:
                destination.put(lane, element, column[lane // 32 * 32 + chosen])


def _transpose(word: Any, engine: PlainEngine) -> None:
    source, destination = _source_and_destination(word, engine)
    lanes = word.num_active_channels
    for start in range(0, destination.count, 32):
        tile = [[source.bits(lane, start + i) for i in range(32)] for lane in range(lanes)]
        for i in range(min(32, destination.count - start)):
            for lane in range(lanes):
                destination.put(lane, start + i, tile[lane // 32 * 32 + i][lane % 32])


def _float_of(number: int, engine: PlainEngine) -> int:
    return to_float32_bits(number, DType.UINT32, engine.formats)


def _moments(values: list[int], engine: PlainEngine) -> tuple[int, int]:
    total = 0
    for value in values:
        total = add_bits(total, value)
    mean = divide_bits(total, _float_of(len(values), engine))
    scaled = 0
    for value in values:
        difference = subtract_bits(value, mean)
        scaled = add_bits(scaled, multiply_bits(difference, difference))
    return mean, scaled


def _statistics(word: Any, engine: PlainEngine) -> None:
    source, destination = _source_and_destination(word, engine)
    lanes = word.num_active_channels
    rows = [[source.float(lane, i) for i in range(source.count)] for lane in range(lanes)]
    if word.header.opcode == 0x82:
        turned = [row[:] for row in rows]
        for lane in range(lanes):
            for i in range(source.count):
                turned[lane // 32 * 32 + i % 32][i // 32 * 32 + lane % 32] = rows[lane][i]
        rows = turned
    for lane, values in enumerate(rows):
        results = [word.even_count, *_moments(values, engine)]
        if destination.count == 6:
            results = [word.even_count, *_moments(values[0::2], engine)]
            results += [word.odd_count, *_moments(values[1::2], engine)]
        for place, value in enumerate(results):
            destination.put(lane, place, destination.converted(value))


def _aggregate(word: Any, engine: PlainEngine) -> None:
    source, destination = _source_and_destination(word, engine)
    lanes = word.num_active_channels
    rows = [[source.float(lane, i) for i in range(source.count)] for lane in range(lanes)]
    for lane, values in enumerate(rows):
        triples = [values[i : i + 3] for i in range(0, len(values), 3)]
        count = total = scaled = 0
        for n, mean, _ in triples:
            count = add_bits(count, n)
            total = add_bits(total, multiply_bits(n, mean))
        whole = divide_bits(total, count)
        for n, mean, part in triples:
            difference = subtract_bits(mean, whole)
            between = multiply_bits(n, multiply_bits(difference, difference))
            scaled = add_bits(scaled, add_bits(part, between))
        for place, value in enumerate((whole, divide_bits(scaled, count))):
            destination.put(lane, place, destination.converted(value))


_RUNNERS: dict[int, Callable[[Any, PlainEngine], None]] = {
    0x69: _load_mask,
    0x6A: _shuffle,
    0x6B: _transpose,
    0x6C: _max8,
    0x6D: _load_keys,
    0x6E: _find_index8,
    0x6F: _match_replace8,
    0xE9: _read_indices,
    **dict.fromkeys((0x60, 0x61, 0x82), _statistics),
    0x62: _aggregate,
}


def run_search_word(record: Any, engine: PlainEngine) -> None:
    """Execute one decoded word; KeyError for an opcode without a plain form here."""
    _RUNNERS[record.header.opcode](record, engine)
