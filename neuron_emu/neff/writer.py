"""Pack files into a NEFF: for tests, and for streams that another tool wants as one file."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from neuron_emu.errors import InputError
from neuron_emu.neff.archive import checked_name
from neuron_emu.neff.header import HASH_NAMES, Header

__all__ = ["pack_neff", "write_neff"]


def pack_neff(
    members: Mapping[str, bytes], version: int = 2, *, name: str = "", build_version: str = ""
) -> bytes:
    """Return the bytes of a NEFF that holds `members` (name such as sg00/dve.bin to bytes).

    `version` is the pkg_version: 2 packs with gzip, 1 does not. The same members give the same
    bytes. Fields that describe a model which this is not (uuid, feature_bits, ...) are zero.
    Raises InputError for another version and for a name that a reader would refuse.

    >>> pack_neff({"sg00/dve.bin": bytes(64)})[:16].hex()
    '02000000000000000004000000000000'
    """
    if version not in HASH_NAMES:
        raise InputError(f"version must be 1 or 2, not {version}")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member, data in members.items():
            information = tarfile.TarInfo(checked_name(member.encode(), "members"))
            information.size = len(data)
            tar.addfile(information, io.BytesIO(data))
    data = archive.getvalue()
    if version == 2:
        data = gzip.compress(data, mtime=0)
    digest = hashlib.new(HASH_NAMES[version], data, usedforsecurity=False).digest()
    header = Header(
        pkg_version=version,
        data_size=len(data),
        hash=digest.ljust(32, b"\0"),
        name=name,
        build_version=build_version,
    )
    return header.pack() + data


def write_neff(
    path: str | Path,
    members: Mapping[str, bytes],
    version: int = 2,
    *,
    name: str = "",
    build_version: str = "",
) -> None:
    """Write a NEFF file; see `pack_neff`."""
    Path(path).write_bytes(pack_neff(members, version, name=name, build_version=build_version))
