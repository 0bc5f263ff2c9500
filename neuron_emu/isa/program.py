"""Programs: one stream of words for each engine, from bytes, text or files.

`x.bin` holds raw words, `x.asm` text, `x.toml` is a scenario that names or holds streams; `x.neff`
or an unpacked NEFF folder has streams for several engines, `x.neff:sg01` those of one subgraph;
`-` is standard input. `act:FILE` gives a file to an engine, and takes that engine's streams of a
NEFF. Sources: design.md 4, isa-encoding.md 10.
"""

from __future__ import annotations

import mmap
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import field, frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.records import WORD_BYTES

__all__ = [
    "Program",
    "Stream",
    "engine_named",
    "read_scenario",
    "read_streams",
    "read_text",
    "split_argument",
]


def engine_named(name: str) -> Engine:
    """Return the engine called `name` (pe act pool dve sp); InputError naming them otherwise."""
    engine = Engine.__members__.get(name.upper())
    if engine is None or name != name.lower():
        accepted = ", ".join(e.name.lower() for e in Engine)
        raise InputError(f"engine must be one of {accepted}, not {name!r}")
    return engine


@frozen(kw_only=True)
class Stream:
    """The words of one engine. `data` is bytes or a read-only memory map of a file.

    `name` is where it came from, as the command line would name it; `warnings` what was odd there.
    `is_member` tells a stream of a container, which is printed under its name.
    """

    engine: Engine
    data: bytes | mmap.mmap = field(repr=False)
    name: str = "<bytes>"
    warnings: tuple[str, ...] = ()
    is_member: bool = False

    def __attrs_post_init__(self) -> None:
        if len(self.data) == 0:
            raise InputError("holds no words", place=self.name)
        if len(self.data) % WORD_BYTES:
            raise InputError(
                f"size must be a multiple of {WORD_BYTES} bytes, not {len(self.data)}",
                place=self.name,
            )

    def __len__(self) -> int:
        return len(self.data) // WORD_BYTES

    def __getitem__(self, index: int) -> bytes:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return bytes(self.data[index * WORD_BYTES : (index + 1) * WORD_BYTES])

    def __iter__(self) -> Iterator[bytes]:
        return (self[index] for index in range(len(self)))


@frozen(kw_only=True)
class Program:
    """Streams in the order in which they were given."""

    streams: tuple[Stream, ...]

    @classmethod
    def of(cls, data: bytes, engine: Engine = Engine.DVE, name: str = "<bytes>") -> Program:
        """Make a program of one stream of raw words."""
        return cls(streams=(Stream(engine=engine, data=bytes(data), name=name),))

    @classmethod
    def from_text(cls, text: str, engine: Engine = Engine.DVE) -> Program:
        """Make a program of one stream from its listing."""
        return cls.of(assemble(text), engine, "<text>")

    @classmethod
    def load(cls, *arguments: str | Path, engine: Engine = Engine.DVE) -> Program:
        """Read files as the command line names them, `ENGINE:FILE` included."""
        streams: list[Stream] = []
        for argument in arguments:
            streams.extend(read_streams(str(argument), engine))
        return cls(streams=tuple(streams))

    def one_per_engine(self) -> dict[Engine, Stream]:
        """Return the streams by engine; InputError when an engine has two."""
        by_engine: dict[Engine, Stream] = {}
        for stream in self.streams:
            if stream.engine in by_engine:
                raise InputError(
                    f"engine {stream.engine.name.lower()} must have one stream, not"
                    f" {by_engine[stream.engine].name} and {stream.name}"
                    f"{_choice(by_engine[stream.engine], stream)}"
                )
            by_engine[stream.engine] = stream
        return by_engine


def _choice(first: Stream, second: Stream) -> str:
    """Say how to name one of two members of a container, which are subgraphs of one file."""
    if not (first.is_member and second.is_member):
        return ""
    subgraphs = [stream.name.rpartition("/")[0] for stream in (first, second)]
    return f"; choose a subgraph: {' or '.join(subgraphs)}"


def split_argument(argument: str, default: Engine) -> tuple[Engine, str]:
    """Split `ENGINE:FILE`; a plain FILE goes to the default engine."""
    prefix, colon, path = argument.partition(":")
    if colon and prefix.upper() in Engine.__members__ and prefix == prefix.lower():
        return engine_named(prefix), path
    return default, argument


def read_streams(argument: str, default: Engine) -> list[Stream]:
    """Read one PROGRAM argument; InputError with the file's name when it cannot be read."""
    engine, path = split_argument(argument, default)
    if "\0" in path:
        raise InputError("file name must not hold a NUL", place=repr(path))
    if not path:
        raise InputError("a program must be a file, not an empty name")
    if path == "-":
        return [_stream_of(sys.stdin.buffer.read(), engine, "<stdin>")]
    if path.endswith(".toml"):
        if path != argument:
            raise InputError("a scenario names its engines itself: no prefix", place=argument)
        return _scenario_streams(Path(path), default)
    if ":" in path or path.endswith(".neff") or Path(path).is_dir():
        # The heavier reader of containers is imported only where one may be named.
        from neuron_emu.neff import is_neff

        if is_neff(path):
            return _neff_streams(path, engine if path != argument else None)
    if path.endswith(".asm"):
        return [Stream(engine=engine, data=assemble(read_text(path), place=path), name=path)]
    if path.endswith(".bin"):
        return [Stream(engine=engine, data=_map(Path(path)), name=path)]
    return [_stream_of(_read(Path(path)), engine, path)]


def _neff_streams(path: str, engine: Engine | None) -> list[Stream]:
    """Read the streams of a NEFF file or folder; those of one engine when it is given."""
    from neuron_emu.neff import read_engine_files, split_selector

    container, _ = split_selector(path)
    return [
        Stream(
            engine=file.engine,
            data=file.data,
            name=f"{container}:{file.member.name}",
            warnings=file.warnings,
            is_member=True,
        )
        for file in read_engine_files(path, engine)
    ]


def _stream_of(data: bytes, engine: Engine, name: str) -> Stream:
    """Make a stream of bytes of unknown kind: text when it reads as text without NULs."""
    if data and b"\0" not in data:
        with suppress(UnicodeDecodeError):
            text = data.decode("utf-8")
            return Stream(engine=engine, data=assemble(text, place=name), name=name)
    return Stream(engine=engine, data=data, name=name)


def read_text(path: str) -> str:
    """Read a UTF-8 text file, `-` for standard input."""
    if path == "-":
        return _decode_text(sys.stdin.buffer.read(), "<stdin>")
    return _decode_text(_read(Path(path)), path)


def _decode_text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"text must be UTF-8; byte {error.start} is not", place=name) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", place=str(path)) from None


def _map(path: Path) -> bytes | mmap.mmap:
    """Map a regular file; anything that cannot be mapped is read."""
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return _read(path)


def read_scenario(path: Path) -> dict[str, Any]:
    """Read the TOML of a scenario; InputError when it is none."""
    try:
        return tomllib.loads(_decode_text(_read(path), str(path)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not TOML: {error}", place=str(path)) from None


def _scenario_streams(path: Path, default: Engine) -> list[Stream]:
    """Read the `[streams]` table: engine name to file name, or to a text of several lines."""
    table = read_scenario(path).get("streams")
    if not isinstance(table, dict) or not table:
        raise InputError("needs a [streams] table: engine = file or text", place=str(path))
    streams: list[Stream] = []
    for name, source in table.items():
        engine = _scenario_engine(name, path)
        if not isinstance(source, str):
            raise InputError(f"streams.{name} must be a file name or text", place=str(path))
        if "\n" in source:
            place = f"{path} streams.{name}"
            streams.append(Stream(engine=engine, data=assemble(source, place=place), name=place))
        else:
            if source.endswith(".toml"):
                raise InputError(f"streams.{name} must not be a scenario", place=str(path))
            streams.extend(read_streams(f"{name}:{path.parent / source}", default))
    return streams


def _scenario_engine(name: str, path: Path) -> Engine:
    try:
        return engine_named(name)
    except InputError as error:
        raise InputError(str(error), place=f"{path} [streams]") from None
