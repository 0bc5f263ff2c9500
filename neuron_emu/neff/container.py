"""NEFF files and unpacked NEFF folders: what they hold, and the streams of their engines.

A NEFF is a header and a tar archive. Folders sg00, sg01, ... are subgraphs and hold one file of
instruction words for each engine, in one of two spellings. Source: operand-text.md 3,
isa-encoding.md 10, activation-tables.md 5 (activation_function_sets).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from attrs import define, field, frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.neff.archive import (
    CHUNK_BYTES,
    ByteReader,
    Entry,
    Limits,
    inflated,
    read_entries,
)
from neuron_emu.neff.header import HASH_NAMES, HEADER_BYTES, Header, printable

__all__ = [
    "SUBGRAPH",
    "Archive",
    "Contents",
    "Gatherer",
    "Member",
    "folder_members",
    "function_sets_of",
    "open_archive",
    "read_contents",
    "reading",
]

ENGINE_OF_FILE = {
    **{f"{engine.name.lower()}.bin": engine for engine in Engine},
    "PE.bin": Engine.PE,
    "Activation.bin": Engine.ACT,
    "Pool.bin": Engine.POOL,
    "DVE.bin": Engine.DVE,
    "SP.bin": Engine.SP,
}
"""Engine by member name: the old spelling and that of newer compilers (operand-text.md 3)."""
_FUNCTION_SET_FILES = ("act.json", "Activation.json")
SUBGRAPH = re.compile(r"sg[0-9]+")


@frozen(kw_only=True)
class Member:
    """A file of a NEFF: its path below the top, and its size in bytes."""

    name: str
    size: int

    @property
    def subgraph(self) -> str | None:
        """Return the subgraph whose folder holds the file, or None."""
        folder = self.name.rpartition("/")[0]
        return folder if SUBGRAPH.fullmatch(folder) else None

    @property
    def file(self) -> str:
        """Return the last part of the name."""
        return self.name.rpartition("/")[2]

    @property
    def engine(self) -> Engine | None:
        """Return the engine whose words the file holds, or None for other files."""
        return ENGINE_OF_FILE.get(self.file) if self.subgraph is not None else None

    @property
    def num_words(self) -> int | None:
        """Return the number of words; None for other files and for a size that is no multiple."""
        is_whole = self.engine is not None and self.size % WORD_BYTES == 0
        return self.size // WORD_BYTES if is_whole else None


@frozen(kw_only=True)
class Contents:
    """What a NEFF holds. `header` is None for an unpacked folder.

    `function_sets` are the names of activation_function_sets by subgraph, where it is stated.
    """

    header: Header | None
    members: tuple[Member, ...]
    function_sets: dict[str, tuple[str, ...]]
    warnings: tuple[str, ...]


@define(eq=False, kw_only=True)
class Archive:
    """An open NEFF file. Its entries come once and in order; warnings are complete after them."""

    place: str
    header: Header
    limits: Limits
    file: IO[bytes] = field(repr=False)
    warnings: list[str] = field(factory=list)

    def entries(self) -> Iterator[Entry]:
        """Yield files and folders; after the last one compare the hash in the header.

        The documentation says "hash of the data" and no more. The data bytes as the file stores
        them, compressed or not, are hashed here (MD5 for pkg_version 2, SHA-256 for 1); because
        that reading rests on words alone, a mismatch is a warning and not an error.
        """
        digest = hashlib.new(HASH_NAMES[self.header.pkg_version], usedforsecurity=False)
        chunks = self._chunks(digest)
        first = next(chunks, b"")
        is_gzip = first.startswith(b"\x1f\x8b")
        if is_gzip != (self.header.pkg_version == 2):
            found = "gzip data" if is_gzip else "no gzip data"
            self.warnings.append(f"pkg_version is {self.header.pkg_version}, but it holds {found}")
        stored = _chain(first, chunks)
        data = inflated(stored, self.place) if is_gzip else stored
        reader = ByteReader(data, self.limits.total_bytes, self.place)
        yield from read_entries(reader, self.limits)
        if digest.digest() != self.header.digest:
            self.warnings.append(
                f"the {digest.name.upper()} of the data is {digest.hexdigest()},"
                f" not {self.header.digest.hex()} as the header says"
            )

    def _chunks(self, digest: Any) -> Iterator[bytes]:
        left = self.header.data_size
        while left > 0:
            chunk = self.file.read(min(left, CHUNK_BYTES))
            if not chunk:
                raise InputError("became shorter while it was read", place=self.place)
            left -= len(chunk)
            digest.update(chunk)
            yield chunk


def _chain(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks


@contextmanager
def open_archive(path: str, limits: Limits | None = None) -> Iterator[Archive]:
    """Open a NEFF file, `-` for standard input; InputError when it is none or cannot be read."""
    limits = limits or Limits()
    place = "<stdin>" if path == "-" else path
    with reading(place), _opened(path, limits) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        header = Header.read(file.read(HEADER_BYTES), size, place)
        yield Archive(place=place, header=header, limits=limits, file=file)


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Turn an error of the operating system into a sentence about `place`."""
    try:
        yield
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise InputError(message, place=place) from None


@contextmanager
def _opened(path: str, limits: Limits) -> Iterator[IO[bytes]]:
    if path == "-":
        # Standard input cannot seek, and the header is judged by the size of the whole.
        with tempfile.TemporaryFile() as copy:
            _copy(sys.stdin.buffer, copy, HEADER_BYTES + limits.total_bytes)
            yield copy
        return
    # Opening a pipe would wait for its writer, and a device may have no end.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise InputError("must be a regular file", place=path)
    with open(path, "rb") as file:
        yield file


def _copy(source: IO[bytes], target: IO[bytes], limit: int) -> None:
    while chunk := source.read(CHUNK_BYTES):
        target.write(chunk)
        if target.tell() > limit:
            raise InputError(f"has more than the limit of {limit} bytes", place="<stdin>")


def read_contents(path: str, limits: Limits | None = None) -> Contents:
    """List a NEFF file or an unpacked folder, reading every byte of a file once.

    Raises InputError when it is neither, is damaged, or passes a limit.
    """
    limits = limits or Limits()
    if Path(path).is_dir():
        return _folder_contents(Path(path), limits)
    gatherer = Gatherer(limits)
    with open_archive(path, limits) as archive:
        for entry in archive.entries():
            if not entry.is_directory:
                gatherer.add(Member(name=entry.name, size=entry.size), entry.read)
    return gatherer.contents(archive.header, archive.warnings)


def _folder_contents(folder: Path, limits: Limits) -> Contents:
    gatherer = Gatherer(limits)
    with reading(str(folder)):
        for member in folder_members(folder, limits):
            gatherer.add(member, (folder / member.name).read_bytes)
    return gatherer.contents(None, [])


def folder_members(folder: Path, limits: Limits) -> list[Member]:
    """List the files of an unpacked NEFF in order; InputError when the folder is none.

    Links to folders are not followed, and only regular files count.
    """
    if not any(SUBGRAPH.fullmatch(name) for name in os.listdir(folder)):
        message = "is no unpacked NEFF: it must hold a folder sg00 with the files of engines"
        raise InputError(message, place=str(folder))
    members: list[Member] = []
    for parent, folders, files in os.walk(folder, onerror=_raise):
        folders.sort()
        for name in sorted(files):
            path = Path(parent, name)
            if path.is_file():
                relative = path.relative_to(folder).as_posix()
                members.append(Member(name=relative, size=path.stat().st_size))
        if len(members) > limits.num_members:
            message = f"holds more than the limit of {limits.num_members} files"
            raise InputError(message, place=str(folder))
    return members


def _raise(error: OSError) -> None:
    """Let os.walk report what it cannot read, which it would skip."""
    raise error


@define(eq=False)
class Gatherer:
    """Collect the members of a NEFF, looking into those that name function sets."""

    limits: Limits
    members: list[Member] = field(factory=list)
    function_sets: dict[str, tuple[str, ...]] = field(factory=dict)
    warnings: list[str] = field(factory=list)
    num_text_bytes: int = 0

    def add(self, member: Member, read: Callable[[], bytes]) -> None:
        """Note a member; `read` gives its bytes and is called only where they matter."""
        self.members.append(member)
        if member.engine is not None and member.num_words is None:
            message = f"size must be a multiple of {WORD_BYTES} bytes, not {member.size}"
            self.warnings.append(f"{member.name}: {message}")
        if member.subgraph is None or member.file not in _FUNCTION_SET_FILES:
            return
        self.num_text_bytes += member.size
        if self.num_text_bytes > self.limits.text_bytes:
            self.warnings.append(f"{member.name}: is too large to look for function sets")
            return
        try:
            sets = function_sets_of(read())
        except ValueError as error:
            self.warnings.append(f"{member.name}: {error}")
            return
        if sets is not None:
            self.function_sets[member.subgraph] = sets

    def contents(self, header: Header | None, warnings: list[str]) -> Contents:
        """Return what was collected, after the warnings of the file itself."""
        return Contents(
            header=header,
            members=tuple(self.members),
            function_sets=self.function_sets,
            warnings=(*warnings, *self.warnings),
        )


def function_sets_of(data: bytes) -> tuple[str, ...] | None:
    """Return activation_function_sets of an Activation.json, None when it states none.

    Raises ValueError for what is not JSON or not a list of names.
    """
    try:
        table = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    sets = table.get("activation_function_sets") if isinstance(table, dict) else None
    if sets is None:
        return None
    if not isinstance(sets, list) or not all(isinstance(name, str) for name in sets):
        raise ValueError("activation_function_sets must be a list of names")
    return tuple(printable(name) for name in sets)
