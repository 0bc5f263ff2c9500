"""The 1024-byte header of a NEFF file.

Source: operand-text.md 3 (the documented field list, packed without gaps, little-endian).
"""

from __future__ import annotations

import struct

from attrs import field, frozen

from neuron_emu.errors import InputError

__all__ = ["HASH_NAMES", "HEADER_BYTES", "Header", "printable"]

HEADER_BYTES = 1024
HASH_NAMES = {1: "sha256", 2: "md5"}
"""Hash over the data by pkg_version, by the names of hashlib."""

_HASH_BYTES = {1: 32, 2: 16}
# pkg_version header_size data_size major minor build num_tpb hash uuid name requested_tpb_count
# tpb_per_node feature_bits lnc_size padding.
_LAYOUT = struct.Struct("<5Q128sI32s16s256sI64sQI468s")


@frozen(kw_only=True)
class Header:
    """The fields of the header; `build_version` and `name` as printable text, sizes in bytes."""

    pkg_version: int
    data_size: int
    header_size: int = HEADER_BYTES
    neff_version_major: int = 0
    neff_version_minor: int = 0
    build_version: str = ""
    num_tpb: int = 1
    hash: bytes = field(default=bytes(32), repr=bytes.hex)
    uuid: bytes = field(default=bytes(16), repr=bytes.hex)
    name: str = ""
    requested_tpb_count: int = 1
    tpb_per_node: bytes = field(default=bytes(64), repr=bytes.hex)
    feature_bits: int = 0
    lnc_size: int = 0

    @classmethod
    def read(cls, data: bytes, file_size: int, place: str) -> Header:
        """Read the start of a file of `file_size` bytes; InputError when it is no NEFF."""
        if len(data) < HEADER_BYTES:
            raise InputError(
                f"is not a NEFF: the header has {HEADER_BYTES} bytes, the file {len(data)}",
                place=place,
            )
        pkg, size, data_size, major, minor, build, tpbs, digest, *rest = _LAYOUT.unpack(
            data[:HEADER_BYTES]
        )
        uuid, name, requested, per_node, features, lnc_size, _ = rest
        if pkg not in HASH_NAMES:
            raise InputError(f"is not a NEFF: pkg_version must be 1 or 2, not {pkg}", place=place)
        if size != HEADER_BYTES:
            message = f"is not a NEFF: header_size must be {HEADER_BYTES}, not {size}"
            raise InputError(message, place=place)
        _check_data_size(data_size, file_size - HEADER_BYTES, place)
        return cls(
            pkg_version=pkg,
            data_size=data_size,
            neff_version_major=major,
            neff_version_minor=minor,
            build_version=_text(build),
            num_tpb=tpbs,
            hash=digest,
            uuid=uuid,
            name=_text(name),
            requested_tpb_count=requested,
            tpb_per_node=per_node,
            feature_bits=features,
            lnc_size=lnc_size,
        )

    def pack(self) -> bytes:
        """Return the 1024 bytes; text that is too long for its field is an InputError."""
        return _LAYOUT.pack(
            self.pkg_version,
            self.header_size,
            self.data_size,
            self.neff_version_major,
            self.neff_version_minor,
            _packed_text("build_version", self.build_version, 128),
            self.num_tpb,
            self.hash,
            self.uuid,
            _packed_text("name", self.name, 256),
            self.requested_tpb_count,
            self.tpb_per_node,
            self.feature_bits,
            self.lnc_size,
            b"",
        )

    @property
    def digest(self) -> bytes:
        """Return the bytes of the hash field that `pkg_version` uses."""
        return self.hash[: _HASH_BYTES[self.pkg_version]]

    def rows(self) -> dict[str, int | str]:
        """Return the fields by name in file order: bytes in hex, tpb_per_node as numbers.

        Zeros after the last node of tpb_per_node are left out.
        """
        return {
            "pkg_version": self.pkg_version,
            "header_size": self.header_size,
            "data_size": self.data_size,
            "neff_version_major": self.neff_version_major,
            "neff_version_minor": self.neff_version_minor,
            "build_version": self.build_version,
            "num_tpb": self.num_tpb,
            "hash": self.digest.hex(),
            "uuid": self.uuid.hex(),
            "name": self.name,
            "requested_tpb_count": self.requested_tpb_count,
            "tpb_per_node": " ".join(map(str, self.tpb_per_node.rstrip(b"\0"))),
            "feature_bits": f"{self.feature_bits:#x}",
            "lnc_size": self.lnc_size,
        }


def printable(text: str) -> str:
    """Return text with everything that is not printable escaped: a file may hold terminal codes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _check_data_size(declared: int, found: int, place: str) -> None:
    if found < declared:
        message = f"is truncated: the header announces {declared} bytes of data, {found} follow it"
        raise InputError(message, place=place)
    if found > declared:
        message = f"data_size must be {found}, the bytes that follow the header, not {declared}"
        raise InputError(message, place=place)


def _text(data: bytes) -> str:
    return printable(data.partition(b"\0")[0].decode("utf-8", "backslashreplace"))


def _packed_text(what: str, text: str, size: int) -> bytes:
    data = text.encode()
    if len(data) >= size:
        raise InputError(f"{what} must have at most {size - 1} bytes, not {len(data)}")
    return data
