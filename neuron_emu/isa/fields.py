"""Fields of a raw word by dotted path: find, read, write, and say in their own words.

The paths are those of `layout.spans_of`; nothing is decoded, so both views of a union can be named.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from neuron_emu.isa.enums import member
from neuron_emu.isa.layout import numpy_dtype_of, spans_of
from neuron_emu.isa.opcodes import opcode_name

__all__ = ["Column", "column_of", "field_text", "read_field", "write_field"]


@frozen
class Column:
    """Where a field lies in the derived numpy dtype: byte offset and element type."""

    offset: int
    dtype: np.dtype[Any]


_COLUMNS: dict[tuple[type[Any], str], Column] = {}


def column_of(record: type[Any], path: str) -> Column:
    """Return the column of a field of whole bytes; KeyError when the structure has none.

    A bit group is one column, named without its members. A field of a union's second view is
    found in the overlapping column of that view.
    """
    column = _COLUMNS.get((record, path))
    if column is None:
        column = _find(numpy_dtype_of(record), path.split("."), 0)
        if column is None:
            raise KeyError(path)
        _COLUMNS[record, path] = column
    return column


def _find(dtype: np.dtype[Any], parts: list[str], offset: int) -> Column | None:
    if not parts:
        return Column(offset, dtype)
    name, _, index = parts[0].removesuffix("]").partition("[")
    for candidate, (inner, at, *_) in (dtype.fields or {}).items():
        if candidate != name and not candidate.startswith(f"{name}_Indirect"):
            continue
        start = offset + at
        if index:
            inner = inner.base
            start += int(index) * inner.itemsize
        found = _find(inner, parts[1:], start)
        if found is not None:
            return found
    return None


def read_field(word: bytes, record: type[Any], path: str) -> int:
    """Read a field as a number, little-endian; a signed field keeps its sign."""
    span = spans_of(record)[path]
    data = word[span.first_byte : span.last_byte + 1]
    if span.bits is not None:
        low, high = span.bits
        return int.from_bytes(data, "little") >> low & (1 << high - low + 1) - 1
    is_signed = column_of(record, path).dtype.base.kind == "i"
    return int.from_bytes(data, "little", signed=is_signed)


def write_field(word: bytes, record: type[Any], path: str, value: int) -> bytes:
    """Return the word with one field replaced; `value` is cut to the field's width."""
    span = spans_of(record)[path]
    size = span.last_byte - span.first_byte + 1
    low, high = span.bits or (0, 8 * size - 1)
    mask = (1 << high - low + 1) - 1
    whole = int.from_bytes(word[span.first_byte : span.last_byte + 1], "little")
    whole = whole & ~(mask << low) | (value & mask) << low
    return word[: span.first_byte] + whole.to_bytes(size, "little") + word[span.last_byte + 1 :]


def field_text(word: bytes, record: type[Any], path: str) -> str:
    """Say what a field holds: the enum member, a number, or the hex of more than four bytes."""
    span = spans_of(record)[path]
    value = read_field(word, record, path)
    if span.enum is not None:
        named = member(span.enum, value)
        return named.name if named is not None else f"{value:#04x}"
    if path == "header.opcode":
        return f"{opcode_name(value)} ({value:#04x})"
    if path.rpartition(".")[2].startswith(("reserved", "padding")):
        return "0x" + word[span.first_byte : span.last_byte + 1].hex()
    return str(value)
