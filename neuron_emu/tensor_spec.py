"""SPEC: a region of an on-chip memory as text, loaded from and dumped to arrays and .npy files.

`sbuf:0+0x1000:fp32[128,512]` is 128 partitions from partition 0, 512 fp32 in each from byte 0x1000
on. Source: design.md 4 (SPEC) and 5 (bad input); dtype words of operand-text.md 1.
"""

from __future__ import annotations

import ast
import io
import os
import re
import stat
import sys
import warnings
from math import prod
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from neuron_emu.errors import InputError
from neuron_emu.generation import Generation
from neuron_emu.isa.enums import DTYPE_WORDS, DType
from neuron_emu.memory import AccessPattern, Memory, MemoryFault, Operand, geometry_of
from neuron_emu.numerics import NumberFormats, from_float32, storage_dtype, to_float32

__all__ = ["TensorSpec", "dump", "load", "read_npy", "text"]

_FORM = "SPACE:PARTITION+OFFSET:DTYPE[CHANNELS,N...]"
_NUMBER = r"(?:0x[0-9A-Fa-f]{1,16}|[0-9]{1,20})"
_SPEC = re.compile(
    rf"(?P<space>[^:]*):(?P<partition>{_NUMBER})\+(?P<offset>{_NUMBER})"
    rf":(?P<dtype>[^:\[]*)(?P<bits>:bits)?\[(?P<shape>{_NUMBER}(?:,{_NUMBER})*)\]"
)
_WORDS = {word: DType(code) for code, word in DTYPE_WORDS.items()} | {"bfloat16": DType.BFLOAT16}
_SPACES = ("sbuf", "psum")
_MAX_DIMS = 32
"""Dimensions that every numpy release can hold."""
_SIGNED = (DType.INT8, DType.INT16, DType.INT32)
_FLOAT32_SIGNIFICANT_BITS = 24


def _number(word: str) -> int:
    return int(word, 16 if word.startswith("0x") else 10)


@frozen
class TensorSpec:
    """A tensor in SBUF or PSUM: C order, last index innermost, contiguous in each partition.

    `shape` is [channels, n...]; `offset` is in bytes; with `bits` arrays are unsigned bits.
    """

    space: str
    partition: int
    offset: int
    dtype: DType
    shape: tuple[int, ...]
    bits: bool = False

    @classmethod
    def parse(cls, words: str) -> TensorSpec:
        """Read a SPEC; raise InputError that says what would be accepted."""
        match = _SPEC.fullmatch(words)
        if match is None:
            raise InputError(
                f"SPEC must be {_FORM}, e.g. sbuf:0+0x1000:fp32[128,512], not {words!r}"
            )
        space, word = match["space"], match["dtype"]
        if space not in _SPACES:
            raise InputError(f"space must be sbuf or psum, not {space!r}", place=words)
        if word not in _WORDS:
            accepted = ", ".join(_WORDS)
            raise InputError(f"dtype must be one of {accepted}, not {word!r}", place=words)
        shape = tuple(_number(item) for item in match["shape"].split(","))
        if not 2 <= len(shape) <= _MAX_DIMS:
            raise InputError(
                f"shape must be [CHANNELS,N...] of 2 to {_MAX_DIMS} numbers, not {len(shape)}",
                place=words,
            )
        if 0 in shape:
            raise InputError("every number of the shape must be at least 1, not 0", place=words)
        partition, offset = _number(match["partition"]), _number(match["offset"])
        return cls(space, partition, offset, _WORDS[word], shape, match["bits"] is not None)

    def __str__(self) -> str:
        bits = ":bits" if self.bits else ""
        shape = ",".join(str(count) for count in self.shape)
        place = f"{self.space}:{self.partition}+{self.offset:#x}"
        return f"{place}:{self.dtype.word}{bits}[{shape}]"

    @property
    def channels(self) -> int:
        """Partitions that the tensor covers."""
        return self.shape[0]

    @property
    def elements_per_partition(self) -> int:
        """Elements in each of them."""
        return prod(self.shape[1:])

    @property
    def bytes_per_partition(self) -> int:
        """Bytes in each of them."""
        return self.elements_per_partition * self.dtype.size_bytes

    def check(self, generation: Generation) -> None:
        """Raise InputError unless the tensor lies in a memory of `generation`."""
        place = str(self)
        try:
            geometry = geometry_of(generation, self.space)
        except InputError as error:
            raise InputError(error.message, place=place) from None
        partitions, active = geometry.num_partitions, geometry.active_bytes
        if self.partition >= partitions:
            raise InputError(
                f"partition must be 0 to {partitions - 1}, not {self.partition}", place=place
            )
        left = partitions - self.partition
        if self.channels > left:
            raise InputError(
                f"channels from partition {self.partition} must be 1 to {left},"
                f" not {self.channels}",
                place=place,
            )
        end = self.offset + self.bytes_per_partition
        if end > active:
            raise InputError(
                f"offset plus bytes in a partition must be at most {active:#x} in {self.space}"
                f" on {generation.name}, not {end:#x}",
                place=place,
            )

    def operand(self, memory: Memory) -> Operand:
        """Return the region as an operand of `memory`; raise InputError as `check` does."""
        self.check(memory.generation)
        start = memory.space_named(self.space).address(self.partition, self.offset)
        count = self.elements_per_partition
        made = memory.operand(
            AccessPattern(start, (1,), (count,)),
            self.dtype.size_bytes,
            self.channels,
            max_elements=count,
        )
        if isinstance(made, MemoryFault):
            raise InputError(made.reason, place=str(self))
        return made


def load(memory: Memory, spec: TensorSpec, array: npt.ArrayLike) -> None:
    """Write `array`, whose shape must be the SPEC's, and mark its bytes as written.

    Floats go through float32 to the dtype as an output conversion does, rounding to nearest even
    whatever policy `rounding` says. Unsigned integers of the dtype's width are bits. Other
    integers must fit: a float dtype must hold each exactly. Under `:bits` integers must be bits.
    Raises InputError for anything else; nothing is written then.
    """
    operand = spec.operand(memory)
    values = _numeric(array, spec)
    formats = NumberFormats.of(memory.generation, evolve(memory.policy, rounding="rne"))
    bits = _to_bits(values, spec, formats)
    operand.write(bits.reshape(operand.channels, operand.num_elements))


def dump(memory: Memory, spec: TensorSpec) -> npt.NDArray[Any]:
    """Return the tensor as an array of the SPEC's shape, a copy.

    Float dtypes come as float32, integers as themselves, `:bits` as unsigned bits.
    """
    bits = spec.operand(memory).read().reshape(spec.shape)
    if spec.bits:
        return bits.copy()
    if spec.dtype.is_float:
        formats = NumberFormats.of(memory.generation, memory.policy)
        return to_float32(bits.copy(), spec.dtype, formats)
    return bits.copy().view(_integer_dtype(spec.dtype))


def _integer_dtype(dtype: DType) -> np.dtype[Any]:
    return np.dtype(f"<{'i' if dtype in _SIGNED else 'u'}{dtype.size_bytes}")


def _numeric(array: npt.ArrayLike, spec: TensorSpec) -> npt.NDArray[Any]:
    """Return `array` if it holds numbers in the SPEC's shape."""
    try:
        values = np.asarray(array)
    except ValueError:
        raise InputError("array must be rectangular", place=str(spec)) from None
    if values.dtype.kind not in "biuf":
        raise InputError(
            f"array must hold integers or floats, not {values.dtype}; store other number types"
            " as float32 or as unsigned integers of the element's width",
            place=str(spec),
        )
    if values.shape != spec.shape:
        raise InputError(
            f"array must have shape {list(spec.shape)}, not {list(values.shape)}", place=str(spec)
        )
    return values


def _to_bits(
    values: npt.NDArray[Any], spec: TensorSpec, formats: NumberFormats
) -> npt.NDArray[Any]:
    storage = storage_dtype(spec.dtype)
    kind = values.dtype.kind
    if kind == "u" and values.dtype.itemsize == storage.itemsize:
        return values.astype(storage)
    if kind == "f":
        if spec.bits:
            raise InputError(
                f"array must hold unsigned bits ({storage.name}), not {values.dtype}",
                place=str(spec),
            )
        with np.errstate(all="ignore"):
            return from_float32(values.astype(np.float32), spec.dtype, formats)
    if spec.dtype.is_float and not spec.bits:
        return _integers_as_floats(values, spec, formats)
    target = storage if spec.bits else _integer_dtype(spec.dtype)
    limits = np.iinfo(target)
    # One comparison for each limit: numpy compares with Python integers exactly.
    _refuse_first((values < limits.min) | (values > limits.max), values, target.name, spec)
    return values.astype(target).view(storage)


def _integers_as_floats(
    values: npt.NDArray[Any], spec: TensorSpec, formats: NumberFormats
) -> npt.NDArray[Any]:
    """Convert integers that `spec.dtype` holds exactly; raise InputError at the first other."""
    exact = is_exact_in_float32(values)
    singles = values.astype(np.float32)
    bits = from_float32(singles, spec.dtype, formats)
    exact &= to_float32(bits, spec.dtype, formats) == singles
    _refuse_first(~exact, values, f"exact in {spec.dtype.word}", spec)
    return bits


def is_exact_in_float32(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tell which integers a float32 holds: those of 24 bits and zeros behind them."""
    magnitude = values.astype(np.uint64)
    magnitude = np.where(values < 0, ~magnitude + np.uint64(1), magnitude)
    lowest_bit = np.maximum(magnitude & (~magnitude + np.uint64(1)), np.uint64(1))
    exact: npt.NDArray[np.bool_] = magnitude // lowest_bit < 1 << _FLOAT32_SIGNIFICANT_BITS
    return exact


def _refuse_first(
    refused: npt.NDArray[np.bool_], values: npt.NDArray[Any], wanted: str, spec: TensorSpec
) -> None:
    if refused.any():
        index = [int(i) for i in np.argwhere(refused)[0]]
        raise InputError(
            f"integer at {index} must be {wanted}, not {int(values[tuple(index)])}",
            place=str(spec),
        )


# --- Files and text -------------------------------------------------------------------------------

_NPY = "a .npy file of integers or floats"
_MAGIC = b"\x93NUMPY"
_MAX_HEADER_BYTES = 10_000
"""numpy's own limit for a header that is read without trust."""
_HEADER_KEYS = {"descr", "fortran_order", "shape"}


def read_npy(path: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """Return the array of a .npy file, `-` for standard input, in native byte order and C order.

    Nothing is unpickled, and the header is compared with the file's size before anything is
    allocated. Raises InputError, naming the file, when it is missing, no regular file, damaged,
    or holds anything but booleans, integers and floats.
    """
    place = os.fspath(path)
    if place == "-":
        return _read_open_npy(io.BytesIO(sys.stdin.buffer.read()), "<stdin>")
    if "\0" in place:
        raise InputError("name must not contain a NUL character", place=repr(place))
    try:
        # A pipe or a device might never end, and opening one might never return.
        if not stat.S_ISREG(os.stat(place).st_mode):
            raise InputError(f"must be {_NPY}, not a directory, pipe or device", place=place)
        with open(place, "rb") as file:
            return _read_open_npy(file, place)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place=place) from None
    except MemoryError:
        raise InputError("must fit into this machine's memory", place=place) from None


def _read_open_npy(file: BinaryIO, place: str) -> npt.NDArray[Any]:
    header, start = _npy_header(file.read(_MAX_HEADER_BYTES + 12), place)
    dtype, shape = _npy_dtype(header["descr"], place), header["shape"]
    wanted = prod(shape) * dtype.itemsize
    found = file.seek(0, os.SEEK_END) - start
    if found != wanted:
        raise InputError(
            f"must hold {wanted} bytes of data for {dtype} of shape {list(shape)}, not {found}",
            place=place,
        )
    file.seek(start)
    flat = np.frombuffer(file.read(wanted), dtype, prod(shape))
    array = flat.reshape(shape, order="F" if header["fortran_order"] else "C")
    return np.array(array, dtype.newbyteorder("="), order="C")


def _npy_header(content: bytes, place: str) -> tuple[dict[str, Any], int]:
    """Return the header of a .npy file and where its data starts."""
    if content[:6] != _MAGIC:
        hint = " (a .npz holds several; save one array)" if content[:2] == b"PK" else ""
        found = content[:6].hex(" ") or "nothing"
        raise InputError(
            f"must be {_NPY}, which starts 93 4e 55 4d 50 59, not {found}{hint}", place=place
        )
    version = tuple(content[6:8])
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise InputError(f"format version must be 1.0, 2.0 or 3.0, not {version}", place=place)
    start = 10 if version == (1, 0) else 12
    length = int.from_bytes(content[8:start], "little")
    if length > _MAX_HEADER_BYTES or len(content) < start + length:
        raise InputError(f"header must be complete, not cut at {len(content)} bytes", place=place)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # damaged text may look like doubtful Python
            header = ast.literal_eval(content[start : start + length].decode("utf-8").strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        header = None
    if not _is_header(header):
        keys = ", ".join(sorted(_HEADER_KEYS))
        raise InputError(f"header must be a dictionary of {keys}", place=place)
    return header, start + length


def _is_header(header: Any) -> bool:
    return (
        isinstance(header, dict)
        and header.keys() == _HEADER_KEYS
        and isinstance(header["fortran_order"], bool)
        and isinstance(header["shape"], tuple)
        and len(header["shape"]) <= _MAX_DIMS
        and all(type(count) is int and 0 <= count < 1 << 62 for count in header["shape"])
    )


def _npy_dtype(descr: Any, place: str) -> np.dtype[Any]:
    """Return the type of a plain numeric array; no structures, objects or strings."""
    if isinstance(descr, str) and re.fullmatch(r"[<>|=](b1|[iu][1248]|f(2|4|8|12|16))", descr):
        try:
            return np.dtype(descr)
        except TypeError:  # a long double that this host does not have
            pass
    raise InputError(
        f"descr must be an integer or float type, e.g. '<f4', not {descr!r}", place=place
    )


def text(array: npt.NDArray[Any]) -> str:
    """Return an array as text: a line per partition (first index), values separated by a blank.

    A float is the shortest decimal that reads back as the same value of its own type; nan, inf
    and -0.0 are shown. No newline after the last line.
    """
    rows = np.asarray(array).reshape(len(array), -1)
    return "\n".join(" ".join(str(value) for value in row) for row in rows)
