"""Unpack a NEFF into a folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from neuron_emu.errors import InputError
from neuron_emu.neff.archive import Entry, Limits
from neuron_emu.neff.container import Contents, Gatherer, Member, open_archive

__all__ = ["extract"]


def extract(path: str, directory: str | Path, limits: Limits | None = None) -> Contents:
    """Unpack a NEFF file into a new or an empty folder, and return what it held.

    Only regular files and the folders above them are made, with the rights of new files; rights,
    owners and times of the archive are ignored. A folder that holds anything is refused, so no
    file is ever overwritten. The files appear when all of them are complete: after an error the
    folder is as it was, absent or empty.

    Raises InputError for such a folder, a file that is no NEFF or is damaged, and a full disk.
    """
    limits = limits or Limits()
    gatherer = Gatherer(limits)
    with open_archive(path, limits) as archive, _filled_folder(Path(directory)) as folder:
        for entry in archive.entries():
            if not entry.is_directory:
                _write(entry, folder / entry.name, folder)
                member = Member(name=entry.name, size=entry.size)
                gatherer.add(member, (folder / entry.name).read_bytes)
    return gatherer.contents(archive.header, archive.warnings)


def _write(entry: Entry, target: Path, folder: Path) -> None:
    """Write one member; the reading side raises InputError on its own."""
    with _writing(folder):
        target.parent.mkdir(parents=True, exist_ok=True)
        # Mode x: two names that this file system takes for one must not overwrite each other.
        with target.open("xb") as file:
            for piece in entry.pieces():
                file.write(piece)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        raise InputError(message, place=str(error.filename or folder)) from None


@contextmanager
def _filled_folder(directory: Path) -> Iterator[Path]:
    """Give a folder to fill inside `directory`; move what it holds up when the body succeeds."""
    with _writing(directory):
        is_new = not directory.exists()
        if is_new:
            directory.mkdir()
        elif not directory.is_dir() or any(directory.iterdir()):
            raise InputError("must be a new or an empty folder", place=str(directory))
        staging = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=directory))
    moved: list[Path] = []
    try:
        yield staging
        with _writing(directory):
            for item in sorted(staging.iterdir()):
                moved.append(item.rename(directory / item.name))
            staging.rmdir()
    except BaseException:
        _remove(staging, *moved)
        if is_new:
            with suppress(OSError):
                directory.rmdir()
        raise


def _remove(*paths: Path) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
