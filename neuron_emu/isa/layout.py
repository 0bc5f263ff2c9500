"""One table of field rows per structure, and all that derives from it.

A structure is an `attrs.frozen` class whose members are declared with the row makers below, each
with its byte offset. From these rows derive the construct schema (`schema_of`), the numpy dtype
(`numpy_dtype_of`) and the byte and bit spans (`spans_of`). `check_cover` proves at import that the
rows cover every byte once.

Schemas describe and never judge (design.md 1): any bytes of the right length parse and build back
to the same bytes, so reserved bytes are named rows. construct is used here and nowhere else.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable
from enum import IntEnum
from functools import cache as _cache
from typing import Any, TypeVar, cast

import construct
import numpy as np
from attrs import Attribute, field, fields, frozen

from neuron_emu.errors import NeuronEmuError

__all__ = [
    "LayoutError",
    "Row",
    "Span",
    "bit_group",
    "bits",
    "build",
    "check_cover",
    "numpy_dtype_of",
    "parse",
    "raw",
    "rows_of",
    "schema_of",
    "size_of",
    "spans_of",
    "struct",
    "union",
    "values",
]

RecordT = TypeVar("RecordT")
ResultT = TypeVar("ResultT")


def cache(function: Callable[[type[Any]], ResultT]) -> Callable[[type[Any]], ResultT]:
    """Remember what `function` derives from a record class."""
    return cast(Callable[[type[Any]], ResultT], _cache(function))


_SCALARS: dict[str, tuple[Any, str, int]] = {
    "u8": (construct.Int8ul, "<u1", 1),
    "i16": (construct.Int16sl, "<i2", 2),
    "u16": (construct.Int16ul, "<u2", 2),
    "u32": (construct.Int32ul, "<u4", 4),
    "u64": (construct.Int64ul, "<u8", 8),
    "i64": (construct.Int64sl, "<i8", 8),
}
"""Scalar kinds: construct type, numpy type, bytes. Everything is little-endian."""


class LayoutError(NeuronEmuError):
    """The bytes do not have the length of the structure, or a value does not fit its field."""


@frozen(kw_only=True)
class Row:
    """One field of a structure.

    `kind` is a scalar kind, `raw` or `bits`; `record` is set for nested structures and `views` for
    unions. Bit rows count `offset` and `size` in bits of the whole group, other rows in bytes.
    """

    name: str
    offset: int
    size: int
    kind: str
    doc: str
    count: int = 1
    enum: type[IntEnum] | None = None
    record: type[Any] | None = None
    views: tuple[type[Any], ...] = ()


@frozen
class Span:
    """Where a field lies in the word: first and last byte, and its bits when it is part of them.

    `bits` is (lowest, highest) counted from the least significant bit of `first_byte`.
    """

    first_byte: int
    last_byte: int
    bits: tuple[int, int] | None = None
    enum: type[IntEnum] | None = None


def _member(**row: Any) -> Any:
    return field(metadata={"row": row})


def values(
    kind: str, at: int, doc: str, *, count: int = 1, enum: type[IntEnum] | None = None
) -> Any:
    """Declare a scalar field of `kind` at byte `at`, or an array of `count` of them."""
    size = _SCALARS[kind][2] * count
    return _member(offset=at, size=size, kind=kind, doc=doc, count=count, enum=enum)


def raw(at: int, size: int, doc: str) -> Any:
    """Declare `size` bytes without inner structure; reserved bytes are such a field."""
    return _member(offset=at, size=size, kind="raw", doc=doc)


def struct(at: int, record: type[Any], doc: str) -> Any:
    """Declare a nested structure at byte `at`."""
    return _member(offset=at, size=size_of(record), kind="struct", doc=doc, record=record)


def union(at: int, views: tuple[type[Any], ...], doc: str) -> Any:
    """Declare bytes that can be read as any of `views`, all of one size.

    The first view's static method `select(container, has_indirect)` returns the number of the
    view to keep, from the parsed members of the first view.
    """
    return _member(
        offset=at, size=size_of(views[0]), kind="union", doc=doc, record=views[0], views=views
    )


def bits(low: int, width: int, doc: str, *, enum: type[IntEnum] | None = None) -> Any:
    """Declare `width` bits from bit `low` on in a bit group."""
    return _member(offset=low, size=width, kind="bits", doc=doc, enum=enum)


def bit_group(record: type[RecordT]) -> type[RecordT]:
    """Mark an attrs class as one little-endian group of bit rows, least significant first."""
    record.__bit_group__ = True  # type: ignore[attr-defined]
    return record


@cache
def rows_of(record: type[Any]) -> tuple[Row, ...]:
    """Return the field rows of a structure, in order."""
    members: tuple[Attribute[Any], ...] = fields(record)
    return tuple(Row(name=m.name, **m.metadata["row"]) for m in members if "row" in m.metadata)


def _is_bit_group(record: type[Any]) -> bool:
    return bool(getattr(record, "__bit_group__", False))


@cache
def size_of(record: type[Any]) -> int:
    """Return the size of a structure in bytes."""
    total = sum(row.size for row in rows_of(record))
    return total // 8 if _is_bit_group(record) else total


def check_cover(record: type[Any], size: int) -> None:
    """Prove that the rows of `record` cover its `size` bytes once, in order; a defect if not."""
    unit = 8 if _is_bit_group(record) else 1
    position = 0
    for row in rows_of(record):
        if row.offset != position:
            raise LayoutError(
                f"{record.__name__}.{row.name} must start at {position}, not {row.offset}"
            )
        position += row.size
    if position != size * unit:
        raise LayoutError(f"{record.__name__} must end at {size * unit}, not {position}")


@cache
def schema_of(record: type[Any]) -> Any:
    """Return the construct schema of a structure."""
    rows = rows_of(record)
    if _is_bit_group(record):
        group = [row.name / construct.BitsInteger(row.size) for row in reversed(rows)]
        return construct.ByteSwapped(construct.BitStruct(*group))
    return construct.Struct(*(row.name / _row_schema(row) for row in rows))


def _row_schema(row: Row) -> Any:
    if row.views:
        members = {view.__name__: schema_of(view) for view in row.views}
        return construct.Union(0, **members)
    if row.record is not None:
        return schema_of(row.record)
    if row.kind == "raw":
        return construct.Bytes(row.size)
    scalar = _SCALARS[row.kind][0]
    return scalar if row.count == 1 else construct.Array(row.count, scalar)


@cache
def numpy_dtype_of(record: type[Any]) -> np.dtype[Any]:
    """Return the numpy dtype of a structure; a bit group is one unsigned column.

    The views of a union become overlapping columns `name` (the first view) and `name_<View>`.
    """
    names: list[str] = []
    formats: list[Any] = []
    offsets: list[int] = []
    for row in rows_of(record):
        for name, column in _columns(row):
            names.append(name)
            formats.append(column)
            offsets.append(row.offset)
    return np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": size_of(record)}
    )


def _columns(row: Row) -> list[tuple[str, Any]]:
    if row.views:
        first, *others = row.views
        columns = [(row.name, numpy_dtype_of(first))]
        return columns + [(f"{row.name}_{v.__name__}", numpy_dtype_of(v)) for v in others]
    if row.record is not None:
        if _is_bit_group(row.record):
            return [(row.name, f"<u{row.size}")]
        return [(row.name, numpy_dtype_of(row.record))]
    if row.kind == "raw":
        return [(row.name, ("u1", (row.size,)))]
    scalar = _SCALARS[row.kind][1]
    return [(row.name, scalar if row.count == 1 else (scalar, (row.count,)))]


@cache
def spans_of(record: type[Any]) -> dict[str, Span]:
    """Return the spans of all fields by dotted path, inner fields and array items included."""
    return dict(_spans(record, 0, ""))


def _spans(record: type[Any], base: int, prefix: str) -> list[tuple[str, Span]]:
    found: list[tuple[str, Span]] = []
    for row in rows_of(record):
        path = prefix + row.name
        if row.kind == "bits":
            low, high = row.offset, row.offset + row.size - 1
            inside = (low % 8, low % 8 + row.size - 1)
            found.append((path, Span(base + low // 8, base + high // 8, inside, row.enum)))
            continue
        start = base + row.offset
        found.append((path, Span(start, start + row.size - 1, None, row.enum)))
        for view in row.views or ((row.record,) if row.record else ()):
            known = dict(found)
            inner = _spans(view, start, path + ".")
            found.extend((p, span) for p, span in inner if p not in known)
        if row.count > 1:
            item = row.size // row.count
            for i in range(row.count):
                at = start + i * item
                found.append((f"{path}[{i}]", Span(at, at + item - 1, None, row.enum)))
    return found


def parse(record: type[RecordT], data: bytes, *, has_indirect: bool = True) -> RecordT:
    """Parse bytes into a record. Without `has_indirect` a pattern union is always a tensor.

    Raises LayoutError when `data` does not have the size of the structure.
    """
    if len(data) != size_of(record):
        raise LayoutError(f"{record.__name__} must be {size_of(record)} bytes, not {len(data)}")
    parsed: RecordT = _reader_of(record)(data, 0, has_indirect)
    return parsed


@frozen
class _Members:
    """A record seen as the parsed members that `select` of a union looks at."""

    record: Any

    def __getitem__(self, name: str) -> Any:
        value = getattr(self.record, name)
        return value if isinstance(value, (int, bytes, tuple)) else _Members(value)


@cache
def _reader_of(record: type[Any]) -> Callable[[bytes, int, bool], Any]:
    """Return what reads a structure at an offset, as the schema does but ten times as fast."""
    rows = rows_of(record)
    if _is_bit_group(record):
        size = size_of(record)
        cuts = [(row.name, row.offset, (1 << row.size) - 1) for row in rows]

        def read_group(data: bytes, base: int, has_indirect: bool) -> Any:
            word = int.from_bytes(data[base : base + size], "little")
            return record(**{name: word >> low & mask for name, low, mask in cuts})

        return read_group
    unpack = packing.Struct("<" + "".join(map(_packing_of, rows))).unpack_from
    plain = [row.name for row in rows if row.record is None and row.count == 1]
    arrays = [(row.name, row.offset, row.count, row.kind) for row in rows if row.count > 1]
    array_readers = [
        (name, offset, packing.Struct(f"<{count}{_PACKING[kind]}").unpack_from)
        for name, offset, count, kind in arrays
    ]
    inner = [(row.name, row.offset, _inner_reader(row)) for row in rows if row.record is not None]

    def read(data: bytes, base: int, has_indirect: bool) -> Any:
        members = dict(zip(plain, unpack(data, base), strict=True))
        for name, offset, unpack_array in array_readers:
            members[name] = unpack_array(data, base + offset)
        for name, offset, read_inner in inner:
            members[name] = read_inner(data, base + offset, has_indirect)
        return record(**members)

    return read


_PACKING = {"u8": "B", "i16": "h", "u16": "H", "u32": "I", "u64": "Q", "i64": "q"}
"""Scalar kinds as the struct module writes them."""


def _packing_of(row: Row) -> str:
    """Return the format of a plain row; arrays and inner structures are skipped over."""
    if row.record is not None or row.count > 1:
        return f"{row.size}x"
    return f"{row.size}s" if row.kind == "raw" else _PACKING[row.kind]


def _inner_reader(row: Row) -> Callable[[bytes, int, bool], Any]:
    if not row.views:
        return _reader_of(cast(type[Any], row.record))
    first, *others = row.views
    readers = [_reader_of(view) for view in row.views]

    def read_union(data: bytes, base: int, has_indirect: bool) -> Any:
        parsed = readers[0](data, base, has_indirect)
        chosen = first.select(_Members(parsed), has_indirect) if others else 0
        return readers[chosen](data, base, has_indirect) if chosen else parsed

    return read_union


def build(instance: Any) -> bytes:
    """Build the bytes of a record; LayoutError when a value does not fit its field."""
    record = type(instance)
    try:
        data: bytes = schema_of(record).build(_to_container(instance))
    except (construct.ConstructError, TypeError, ValueError, OverflowError) as error:
        raise LayoutError(f"{record.__name__} cannot be built: {error}") from error
    return data


def _to_container(instance: Any) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for row in rows_of(type(instance)):
        value = getattr(instance, row.name)
        if row.views:
            value = {type(value).__name__: _to_container(value)}
        elif row.record is not None:
            value = _to_container(value)
        elif row.count > 1:
            value = list(value)
        members[row.name] = value
    return members
