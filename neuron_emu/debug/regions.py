"""Regions of memory as people write them: a SPEC, or a pattern as in the listing.

`sbuf:0+0x1000:fp32[128,8]` is the SPEC of `--load` and `--dump`. `bf16@0x4000[1,1][64,2]
channels=4` has steps and sizes innermost first, as the operands of a word (operand-text.md 1).
"""

from __future__ import annotations

import re
from math import prod

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.debug.records import Tile
from neuron_emu.debug.state import dtype_named
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import DType
from neuron_emu.isa.text import parse_integer
from neuron_emu.machine import Machine
from neuron_emu.memory import AccessPattern, DirectOperand, MemoryFault, Operand
from neuron_emu.numerics import to_float32
from neuron_emu.tensor_spec import TensorSpec

__all__ = ["Region", "parse_region", "read_tile", "tile_of"]

_PATTERN = re.compile(
    r"(?P<dtype>\w+)@(?P<address>0[xX][0-9a-fA-F]+|\d+|\$?R\[\d+\])"
    r"(?:\[(?P<steps>[-\d,]+)\]\[(?P<counts>[\d,]+)\])?"
    r"(?:\s+channels=(?P<channels>\d+))?"
)
_REGISTER = re.compile(r"\$?R\[(\d+)\]")
_SIGNED_INTEGERS = (DType.INT8, DType.INT16, DType.INT32)


@frozen(eq=False)
class Region:
    """A region with its elements as an operand; `shape` is lanes first, inner index last."""

    text: str
    dtype: DType
    operand: Operand
    shape: tuple[int, ...]


def parse_region(machine: Machine, text: str, registers: list[int] | None = None) -> Region:
    """Read a SPEC or a pattern; InputError says what would be accepted."""
    text = text.strip()
    if text.partition(":")[0] in ("sbuf", "psum"):
        spec = TensorSpec.parse(text)
        return Region(text, spec.dtype, spec.operand(machine.memory), spec.shape)
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise InputError(
            "region must be a SPEC such as sbuf:0+0x1000:fp32[128,8] or a pattern such as"
            f" bf16@0x4000[1,1][64,2] channels=4, not {text!r}"
        )
    dtype = dtype_named(match["dtype"])
    steps = _numbers(match["steps"] or "1", "steps", -0x8000)
    counts = _numbers(match["counts"] or "1", "sizes", 1)
    if len(steps) != len(counts) or len(steps) > 4:
        raise InputError(
            f"steps and sizes must be 1 to 4 numbers each, not {len(steps)} and {len(counts)}",
            place=text,
        )
    channels = parse_integer(match["channels"] or "1", "channels", 1, 128)
    made = machine.memory.operand(
        AccessPattern(_address(match["address"], registers), steps, counts),
        dtype.size_bytes,
        channels,
        max_elements=machine.policy.max_elements,
    )
    if isinstance(made, MemoryFault):
        raise InputError(made.reason, place=text)
    return Region(text, dtype, made, (channels, *reversed(counts)))


def _numbers(text: str, what: str, low: int) -> tuple[int, ...]:
    return tuple(parse_integer(item, what, low, 0xFFFF) for item in text.split(","))


def _address(text: str, registers: list[int] | None) -> int:
    match = _REGISTER.fullmatch(text)
    if match is None:
        return parse_integer(text, "address", 0, 0xFFFFFFFF)
    if not registers:
        raise InputError("a register address needs an engine", place=text)
    return registers[parse_integer(match[1], "register", 0, len(registers) - 1)]


def read_tile(machine: Machine, region: Region) -> Tile:
    """Return the elements of a region, a copy."""
    return tile_of(machine, region.text, region.dtype, region.operand, region.shape)


def tile_of(
    machine: Machine, what: str, dtype: DType, operand: Operand, shape: tuple[int, ...] = ()
) -> Tile:
    """Return the elements of an operand as typed values, bits and written flags."""
    bits = operand.read().copy()
    if dtype.is_float:
        values = to_float32(bits, dtype, machine.formats)
    else:
        kind = "i" if dtype in _SIGNED_INTEGERS else "u"
        values = bits.view(f"<{kind}{dtype.size_bytes}")
    found = shape or bits.shape
    if prod(found) != bits.size:
        found = bits.shape
    return Tile(what, dtype, found, values, bits, written_flags(operand))


def written_flags(operand: Operand) -> npt.NDArray[np.bool_]:
    """Return for each element whether all its bytes were ever written."""
    space = operand.space
    flags = np.empty((operand.channels, operand.num_elements), np.bool_)
    places = operand.offsets_of_lane(0)[:, None] + np.arange(operand.item_bytes)
    for lane in range(operand.channels):
        if not isinstance(operand, DirectOperand):
            places = operand.offsets_of_lane(lane)[:, None] + np.arange(operand.item_bytes)
        flags[lane] = space.written[operand.first_partition + lane][places].all(axis=1)
    return flags
