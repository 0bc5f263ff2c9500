"""The shipped tables: one small data file for each profile, and the way to ask for them by name.

A data file is an 8-byte magic, the SHA-256 of everything after it, the length of a header (u32),
the header as compact JSON, and the sections as uint32 d0, d1, d2, d3, x in the order of a bucket
block: negative octaves, positive octaves, the clamps pos_low, neg_low, pos_high, neg_high. All is
little endian; equal profiles give equal bytes on every machine, as no compressor is involved.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import fields

from neuron_emu.errors import InputError
from neuron_emu.pwp.functions import FUNCTIONS, function_named
from neuron_emu.pwp.profile import CLAMP_NAMES, Clamp, Octave, Profile, Section

__all__ = [
    "DATA_DIRECTORY",
    "decode_data",
    "encode_data",
    "load_profile",
    "shipped_profiles",
    "write_data_file",
]

_MAGIC = b"NEUPWP1\n"
DATA_DIRECTORY = Path(__file__).parent / "data"
_SUFFIX = ".pwp"
_RECORD = struct.Struct("<5I")
_NESTED = ("pos_exponents", "neg_exponents", *CLAMP_NAMES)


def shipped_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that the package brings, in catalog order."""
    return tuple(
        name
        for function in FUNCTIONS
        for name in function.profiles
        if (DATA_DIRECTORY / f"{name}{_SUFFIX}").is_file()
    )


@lru_cache(maxsize=64)
def load_profile(name: str) -> Profile:
    """Return a shipped profile by its name (`exp_400p`) or its function's (`exp`).

    Raises InputError naming what exists.
    """
    function = function_named(name)
    wanted = name if name in function.profiles else function.profiles[0]
    path = DATA_DIRECTORY / f"{wanted}{_SUFFIX}"
    if not path.is_file():
        available = ", ".join(shipped_profiles())
        raise InputError(f"there is no table for {wanted!r} yet; the tables are {available}")
    return decode_data(path.read_bytes(), path.name)


def write_data_file(name: str, profile: Profile, directory: Path = DATA_DIRECTORY) -> Path:
    """Write the data file of a profile and return its path."""
    directory.mkdir(exist_ok=True)
    path = directory / f"{name}{_SUFFIX}"
    path.write_bytes(encode_data(profile))
    return path


def encode_data(profile: Profile) -> bytes:
    """Return the bytes of a profile's data file."""
    plain: dict[str, Any] = {
        a.name: getattr(profile, a.name) for a in fields(Profile) if a.name not in _NESTED
    }
    header = plain | {
        "pos_exponents": [_octave_header(o) for o in profile.pos_exponents],
        "neg_exponents": [_octave_header(o) for o in profile.neg_exponents],
        "clamps": [
            [profile.clamp(name).sat_point, profile.clamp(name).mantissa_point]
            for name in CLAMP_NAMES
        ],
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    records = [_RECORD.pack(s.d0, s.d1, s.d2, s.d3, s.x) for s in profile.stored_sections]
    body = struct.pack("<I", len(text)) + text + b"".join(records)
    return _MAGIC + hashlib.sha256(body).digest() + body


def _octave_header(octave: Octave) -> list[int]:
    return [octave.exponent, octave.extract_size, len(octave.sections)]


def decode_data(data: bytes, place: str = "table") -> Profile:
    """Return the profile of a data file; raise InputError when its hash does not match."""
    digest, body = data[8:40], data[40:]
    if data[:8] != _MAGIC or hashlib.sha256(body).digest() != digest:
        raise InputError("must be an intact table file; its SHA-256 does not match", place=place)
    (length,) = struct.unpack_from("<I", body)
    header = json.loads(body[4 : 4 + length])
    records = _RECORD.iter_unpack(body[4 + length :])
    sections = (Section(x, d0, d1, d2, d3) for d0, d1, d2, d3, x in records)
    negative = _octaves(header.pop("neg_exponents"), sections)
    positive = _octaves(header.pop("pos_exponents"), sections)
    points = zip(CLAMP_NAMES, header.pop("clamps"), strict=True)
    clamps: dict[str, Any] = {
        name: Clamp(exponent, mantissa, next(sections)) for name, (exponent, mantissa) in points
    }
    return Profile(neg_exponents=negative, pos_exponents=positive, **clamps, **header)


def _octaves(headers: list[list[int]], sections: Iterator[Section]) -> tuple[Octave, ...]:
    return tuple(
        Octave(exponent, size, tuple(next(sections) for _ in range(count)))
        for exponent, size, count in headers
    )
