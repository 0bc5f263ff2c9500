"""The instruction streams of a NEFF file or an unpacked folder, engine by engine."""

from __future__ import annotations

import mmap
from itertools import pairwise
from pathlib import Path

from attrs import evolve, frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine
from neuron_emu.neff.archive import Limits
from neuron_emu.neff.container import SUBGRAPH, Member, folder_members, open_archive, reading

__all__ = ["EngineFile", "is_neff", "read_engine_files", "split_selector"]


@frozen(kw_only=True)
class EngineFile:
    """The words of one engine in one subgraph, and the warnings of the file that held them."""

    member: Member
    engine: Engine
    data: bytes | mmap.mmap
    warnings: tuple[str, ...] = ()


def is_neff(path: str) -> bool:
    """Return whether a PROGRAM argument names a NEFF file, an unpacked folder, or a part."""
    container, _ = split_selector(path)
    return container.endswith(".neff") or Path(container).is_dir()


def split_selector(path: str) -> tuple[str, str]:
    """Split `X.neff:sg01` or `X.neff:sg01/dve.bin` into file and part; the part may be empty.

    The folder of a subgraph is the part of the unpacked NEFF around it.
    """
    folder = Path(path)
    if folder.is_dir() and SUBGRAPH.fullmatch(folder.name):
        return str(folder.parent), folder.name
    container, colon, part = path.rpartition(":")
    if colon and not folder.exists() and (container.endswith(".neff") or Path(container).is_dir()):
        return container, part
    return path, ""


def read_engine_files(
    path: str, engine: Engine | None = None, limits: Limits | None = None
) -> list[EngineFile]:
    """Read the streams that a PROGRAM argument names, ordered by subgraph and engine.

    `engine` keeps that engine's streams alone. An empty or missing member is an engine without
    work. Raises InputError when nothing is left, and when two members claim one engine.
    """
    limits = limits or Limits()
    container, part = split_selector(path)
    read = _from_folder if Path(container).is_dir() else _from_file
    found, members = read(container, _Wanted(part, engine), limits)
    if not found:
        raise InputError(_nothing_sentence(part, engine, members), place=container)
    found.sort(key=lambda file: (_subgraph_order(file.member), file.engine))
    for first, second in pairwise(found):
        if (first.member.subgraph, first.engine) == (second.member.subgraph, second.engine):
            message = (
                f"engine {first.engine.name.lower()} must have one file in a subgraph,"
                f" not {first.member.name} and {second.member.name}"
            )
            raise InputError(message, place=container)
    return found


@frozen
class _Wanted:
    """Which members a PROGRAM argument asks for."""

    part: str
    engine: Engine | None

    def engine_of(self, member: Member) -> Engine | None:
        """Return the engine of a member that holds words and is asked for, else None."""
        is_part = self.part in ("", member.subgraph, member.name)
        is_engine = self.engine in (None, member.engine)
        return member.engine if member.size > 0 and is_part and is_engine else None


def _from_file(path: str, wanted: _Wanted, limits: Limits) -> tuple[list[EngineFile], list[Member]]:
    files: list[EngineFile] = []
    members: list[Member] = []
    left = limits.stream_bytes
    with open_archive(path, limits) as archive:
        for entry in archive.entries():
            if entry.is_directory:
                continue
            member = Member(name=entry.name, size=entry.size)
            members.append(member)
            engine = wanted.engine_of(member)
            if engine is None:
                continue
            left -= entry.size
            if left < 0:
                message = f"streams have more than the limit of {limits.stream_bytes} bytes"
                raise InputError(f"{message}; extract it and run the folder", place=path)
            files.append(EngineFile(member=member, engine=engine, data=entry.read()))
    warnings = tuple(f"{path}: {message}" for message in archive.warnings)
    return [evolve(file, warnings=warnings) for file in files], members


def _from_folder(
    path: str, wanted: _Wanted, limits: Limits
) -> tuple[list[EngineFile], list[Member]]:
    files: list[EngineFile] = []
    with reading(path):
        members = folder_members(Path(path), limits)
        for member in members:
            engine = wanted.engine_of(member)
            if engine is not None:
                with Path(path, member.name).open("rb") as file:
                    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                files.append(EngineFile(member=member, engine=engine, data=data))
    return files, members


def _subgraph_order(member: Member) -> tuple[int, str]:
    subgraph = member.subgraph or ""
    return int(subgraph.removeprefix("sg") or 0), subgraph


def _nothing_sentence(part: str, engine: Engine | None, members: list[Member]) -> str:
    """Say what was asked for and what there is."""
    asked = [f"engine {engine.name.lower()}"] if engine is not None else []
    asked += [part] if part else []
    there = [m.name for m in members if m.engine is not None and m.size > 0]
    what = f" for {' of '.join(asked)}" if asked else ""
    others = f"; it holds {', '.join(there[:10])}" if there else ""
    if len(there) > 10:
        others += f" and {len(there) - 10} more"
    return f"holds no instruction words{what}{others}"
