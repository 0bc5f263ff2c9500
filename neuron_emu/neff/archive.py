"""A tar archive read once from start to end, within limits, as if its writer were hostile.

tarfile of the standard library reads any extension header whole, follows chains of them by
recursion and knows links, devices and sparse files. A NEFF needs none of this, so what it does
need (POSIX ustar, pax `path` and `size`, GNU long names) is read here, and the rest is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import NoReturn

from attrs import define, field, frozen

from neuron_emu.errors import InputError

__all__ = ["ByteReader", "Entry", "Limits", "checked_name", "inflated", "read_entries"]

BLOCK_BYTES = 512
CHUNK_BYTES = 1 << 18
_MAX_NAME_BYTES = 1024
_MAX_DEPTH = 16
_KINDS_REFUSED = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"K": "a link",
    b"S": "a sparse file",
}


@frozen(kw_only=True)
class Limits:
    """What an archive may cost. Real files stay far below; the numbers are our own choice."""

    total_bytes: int = 4 << 30
    """All bytes of the archive after decompression."""
    num_members: int = 1 << 16
    """Headers of every kind."""
    extension_bytes: int = 16 << 20
    """All long names and pax records together."""
    stream_bytes: int = 512 << 20
    """All instruction streams that are held in memory together."""
    text_bytes: int = 16 << 20
    """All JSON members that are looked into."""


@define(eq=False)
class ByteReader:
    """Bytes in order from chunks; InputError when there are more than `limit` of them."""

    chunks: Iterator[bytes]
    limit: int
    place: str
    _chunk: bytes = b""
    _position: int = 0
    _num_seen: int = 0

    def pieces(self, count: int) -> Iterator[bytes]:
        """Yield the next `count` bytes in pieces; InputError when the data ends before."""
        while count > 0:
            if self._position >= len(self._chunk) and not self._advance():
                self.refuse("is truncated: the archive ends in the middle of a member")
            piece = self._chunk[self._position : self._position + count]
            self._position += len(piece)
            count -= len(piece)
            yield piece

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes; InputError when the data ends before."""
        return b"".join(self.pieces(count))

    def skip_rest(self) -> None:
        """Read to the end, so that checksums and limits cover every byte."""
        while self._advance():
            pass

    def _advance(self) -> bool:
        """Go to the next chunk that is not empty; False at the end."""
        for chunk in self.chunks:
            self._num_seen += len(chunk)
            if self._num_seen > self.limit:
                self.refuse(f"unpacks to more than the limit of {self.limit} bytes")
            if chunk:
                self._chunk, self._position = chunk, 0
                return True
        return False

    def refuse(self, message: str) -> NoReturn:
        """Raise InputError in the name of the file."""
        raise InputError(message, place=self.place)


@define(eq=False)
class Entry:
    """A file or folder of the archive; `pieces` gives its bytes once, before the next entry."""

    name: str
    size: int
    is_directory: bool
    _reader: ByteReader
    _num_left: int

    def pieces(self) -> Iterator[bytes]:
        """Yield what is left of the file's bytes."""
        for piece in self._reader.pieces(self._num_left):
            self._num_left -= len(piece)
            yield piece

    def read(self) -> bytes:
        """Return what is left of the file's bytes; the caller has looked at `size`."""
        return b"".join(self.pieces())

    def finish(self) -> None:
        """Skip to the block after the entry."""
        for _ in self.pieces():
            pass
        self._reader.read(-self.size % BLOCK_BYTES)


def inflated(chunks: Iterable[bytes], place: str) -> Iterator[bytes]:
    """Yield the bytes of one gzip stream in bounded chunks; InputError when it is damaged."""
    decoder = zlib.decompressobj(wbits=31)
    for compressed in chunks:
        rest = compressed
        while rest:
            if decoder.eof:
                raise InputError("holds bytes after the end of its gzip data", place=place)
            try:
                yield decoder.decompress(rest, CHUNK_BYTES)
            except zlib.error as error:
                reason = str(error).partition(": ")[2] or str(error)
                raise InputError(f"gzip data is damaged: {reason}", place=place) from None
            rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    if not decoder.eof:
        raise InputError("is truncated: the gzip data has no end", place=place)


def read_entries(reader: ByteReader, limits: Limits) -> Iterator[Entry]:
    """Yield the files and folders of a tar archive in order, names checked and unique.

    InputError for a link, device or sparse file, a name that leaves the folder or comes twice,
    and anything that is not a tar archive.
    """
    names = _Names(reader)
    extension = _Extension(reader, limits.extension_bytes)
    for _ in range(limits.num_members):
        header = reader.read(BLOCK_BYTES)
        if not any(header):
            reader.skip_rest()
            return
        size, kind = _checked_header(header, reader)
        if kind in (b"x", b"g", b"L"):
            extension.take(kind, size)
            continue
        entry = _entry(header, kind, size, extension)
        names.add(entry)
        yield entry
        entry.finish()
    reader.refuse(f"holds more than the limit of {limits.num_members} members")


def _checked_header(header: bytes, reader: ByteReader) -> tuple[int, bytes]:
    """Return size and type of a header block whose checksum is right."""
    unsigned = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if _number(header[148:156]) != unsigned:
        reader.refuse("is no tar archive, or a damaged one: a header's checksum is wrong")
    size = _number(header[124:136])
    if size is None:
        reader.refuse("is a damaged tar archive: a member's size is no number")
    return size, header[156:157]


def _number(data: bytes) -> int | None:
    """Read an octal number, or the base-256 form of large ones; None for anything else."""
    if data[0] == 0x80:
        return int.from_bytes(data[1:], "big")
    digits = data.strip(b" \0")
    if not digits or digits.strip(b"01234567"):
        return None
    return int(digits, 8)


def _entry(header: bytes, kind: bytes, size: int, extension: _Extension) -> Entry:
    reader = extension.reader
    raw = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0]
    if header[257:263] == b"ustar\0" and prefix:
        raw = prefix + b"/" + raw
    raw, size = extension.applied(raw, size)
    name = checked_name(raw, reader.place)
    if kind in _KINDS_REFUSED:
        reader.refuse(f"member {name} must be a file or a folder, not {_KINDS_REFUSED[kind]}")
    if kind not in (b"0", b"\0", b"7", b"5"):
        reader.refuse(f"member {name} must be a file or a folder, not of type {kind!r}")
    is_directory = kind == b"5" or (kind == b"\0" and raw.endswith(b"/"))
    if is_directory:
        size = 0  # POSIX: the field is a hint there, and no blocks follow
    if size > reader.limit:
        reader.refuse(f"member {name} announces {size} bytes, more than the limit {reader.limit}")
    return Entry(name, size, is_directory, reader, size)


def checked_name(raw: bytes, place: str) -> str:
    """Return a member's path without `.` parts; InputError when it could leave the folder.

    The folder itself is "". Unprintable characters are refused because names are printed.
    """
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"member name must be UTF-8, not {raw[:80]!r}", place=place) from None
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\\" in name:
        raise InputError(f"member name must stay below the folder, not {name!r}", place=place)
    if not name or not name.isprintable():
        raise InputError(f"member name must be printable, not {name[:80]!r}", place=place)
    if len(raw) > _MAX_NAME_BYTES or len(parts) > _MAX_DEPTH:
        message = (
            f"member name must have at most {_MAX_NAME_BYTES} bytes in {_MAX_DEPTH} parts,"
            f" not {len(raw)} in {len(parts)}"
        )
        raise InputError(message, place=place)
    return "/".join(parts)


@define(eq=False)
class _Extension:
    """Long name and size that a pax or GNU header gives to the entry after it."""

    reader: ByteReader
    budget: int
    name: bytes | None = None
    size: int | None = None

    def take(self, kind: bytes, size: int) -> None:
        """Read an extension header of `size` bytes; a global one (g) changes nothing here."""
        self.budget -= size
        if self.budget < 0:
            self.reader.refuse("holds more long names and pax records than the limit")
        data = self.reader.read(size)
        self.reader.read(-size % BLOCK_BYTES)
        if kind == b"L":
            self.name = data.partition(b"\0")[0]
        elif kind == b"x":
            for key, value in _pax_records(data, self.reader):
                self._set(key, value)

    def _set(self, key: bytes, value: bytes) -> None:
        if key.startswith(b"GNU.sparse"):
            self.reader.refuse("holds a sparse file, which a NEFF must not")
        if key == b"path":
            self.name = value
        elif key == b"size":
            if not value.isdigit() or len(value) > 20:
                self.reader.refuse(f"pax size must be a number, not {value[:80]!r}")
            self.size = int(value)

    def applied(self, name: bytes, size: int) -> tuple[bytes, int]:
        """Return name and size of the entry at hand, and forget the extension."""
        result = (
            name if self.name is None else self.name,
            size if self.size is None else self.size,
        )
        self.name = self.size = None
        return result


def _pax_records(data: bytes, reader: ByteReader) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of `LENGTH KEY=VALUE\\n` records."""
    start = 0
    while start < len(data):
        blank = data.find(b" ", start, start + 9)
        digits = data[start:blank] if blank > start else b""
        end = start + int(digits) if digits.isdigit() else 0
        record = data[blank + 1 : end]
        key, equals, value = record.removesuffix(b"\n").partition(b"=")
        if not start < end <= len(data) or not equals or not record.endswith(b"\n"):
            reader.refuse("is a damaged tar archive: a pax record is malformed")
        yield key, value
        start = end


@define(eq=False)
class _Names:
    """The names so far, so that no file comes twice or lies below another file."""

    reader: ByteReader
    files: set[str] = field(factory=set)
    folders: set[str] = field(factory=lambda: {""})

    def add(self, entry: Entry) -> None:
        """Note an entry; InputError when it clashes with an earlier one."""
        parts = entry.name.split("/")
        parents = {"/".join(parts[:n]) for n in range(1, len(parts))}
        folders = parents | {entry.name} if entry.is_directory else parents
        is_repeated = not entry.is_directory and (
            entry.name in self.files or entry.name in self.folders
        )
        if is_repeated or folders & self.files:
            self.reader.refuse(f"member {entry.name or '.'} must come once, and not below a file")
        self.folders |= folders
        if not entry.is_directory:
            self.files.add(entry.name)
