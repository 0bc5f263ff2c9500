"""The ACT validators once more: plain, slow, one word, one verdict.

Written from activation-tables.md 2.2, 2.3 and 2.6 and isa-encoding.md 3, 4.3 and 6 apart from the
rules. Test oracle only.
"""

from __future__ import annotations

import struct

from tests.isa.reference_tensor_scalar import plain_pattern_ok, plain_start_ok
from tests.isa.reference_validator import (
    ALIGNMENT,
    CORE,
    UPDATES,
    WAITS,
    Side,
    channels_ok,
    destination_quadrant,
    in_psum,
    in_sbuf,
    mem3d_valid,
    same_quadrant,
    source_quadrant,
    start_ok,
)

READABLE = {2, 3, 4, 5, 6, 7, 8, 9, 0xA, 0xD, 0xE, 0xF}
PAIRS = {(6, 4), (6, 5), (6, 0), (4, 0), (5, 0), (0, 0)}


class Plane(Side):
    """A two-dimensional operand, seen as one of three dimensions."""

    def __init__(self, data: bytes) -> None:
        word, *rest = struct.unpack("<I2h2H", data)
        super().__init__(struct.pack("<I3h3H", word, *rest[:2], 1, *rest[2:], 1))
        _, self.data, self.num_elem, _ = struct.unpack("<IIHH", data)
        if self.indirect:
            self.count = self.num_elem


def scalar_ok(core: int, source: int, value: int, dtype: int, n: int) -> bool:
    """IMM_SRC: anything inline, a legal pointer, or a register."""
    if source == 1:
        return start_ok(core, value, n) and dtype in ALIGNMENT and value % ALIGNMENT[dtype] == 0
    return source == 0 or (source == 2 and value < 64)


def operands_ok(core: int, src: Side, dst: Side, in_dtype: int, out_dtype: int, n: int) -> bool:
    if core < 4:
        return (
            plain_pattern_ok(core, src, in_dtype, False)
            and plain_pattern_ok(core, dst, out_dtype, True)
            and plain_start_ok(core, src, n)
            and plain_start_ok(core, dst, n)
            and src.num[0] * src.num[1] * src.num[2] == dst.num[0] * dst.num[1] * dst.num[2]
        )
    return (
        mem3d_valid(core, src, in_dtype, False)
        and mem3d_valid(core, dst, out_dtype, True)
        and channels_ok(core, src, n)
        and channels_ok(core, dst, n)
        and src.count == dst.count
        and source_quadrant(core, src)
        and destination_quadrant(core, src, dst)
        and not (dst.indirect and in_psum(core, dst.data & 0x1FFFFFFF))
    )


def activate_ok(data: bytes, core: int) -> bool:
    imm_src, scale_src, command, bias_src_n = data[12:16]
    in_dtype, bias_dtype = data[32] & 15, data[32] >> 4
    scale, bias, imm = struct.unpack_from("<III", data, 36)
    bias_src = {0: 1, 1: 0, 2: 2}.get(bias_src_n, 3)
    return (
        in_dtype in READABLE
        and data[33] in READABLE | {0xB}
        and bias_dtype in (6, 7, 0xA)
        and command <= 4
        and (core > 2 or bias_src_n == 0)
        and scalar_ok(core, bias_src, bias, bias_dtype, data[34])
        and scalar_ok(core, scale_src, scale, 0xA, data[34])
        and scalar_ok(core, imm_src, imm, 0xA, data[34])
        and operands_ok(core, Side(data[16:32]), Side(data[48:64]), in_dtype, data[33], data[34])
    )


def quantize_ok(data: bytes, core: int) -> bool:
    in_dtype, bias_dtype = data[32] & 15, data[32] >> 4
    quant, dequant, bias = (struct.unpack_from("<I", data, at)[0] for at in (12, 36, 40))
    return (
        in_dtype in (8, 0xA)
        and data[33] == 3
        and bias_dtype in (6, 7, 0xA)
        and data[35] != 4
        and quant not in (0, 0x80000000)
        and dequant not in (0, 0x80000000)
        and scalar_ok(core, 1, bias, bias_dtype, data[34])
        and operands_ok(core, Side(data[16:32]), Side(data[48:64]), in_dtype, 3, data[34])
    )


def pointers_ok(core: int, src: Side, pointers: list[int]) -> bool:
    """Erratum 3071."""
    if src.marker == 0x80 or not pointers:
        return True
    start = src.data & 0x1FFFFFFF if src.indirect else src.address
    if in_psum(core, start):
        return all(same_quadrant(core, pointers[0], p) for p in pointers) and all(
            in_sbuf(core, p) and not in_psum(core, p) for p in pointers
        )
    return all(same_quadrant(core, start, p) for p in pointers)


def activate2_ok(data: bytes, core: int) -> bool:
    relu_src, imm0_src, command, imm1_src, imm_dtype, op0, op1, reduce_op = data[24:32]
    imm0, imm1, relu = struct.unpack_from("<III", data, 36)
    scalars = [(relu_src, relu), (imm0_src, imm0), (imm1_src, imm1)]
    src, dst = Plane(data[12:24]), Plane(data[48:60])
    reduces = reduce_op in (4, 8, 9, 0x20, 0x21)
    return (
        core >= 4
        and data[32] in READABLE
        and data[33] in READABLE | {0xB}
        and imm_dtype in READABLE
        and (op0, op1) in PAIRS
        and data[60] <= 3
        and data[61:64] == b"\0\0\0"
        and command <= 3
        and (reduces if command else reduce_op == 0)
        and all(scalar_ok(core, s, v, imm_dtype, data[34]) for s, v in scalars)
        and operands_ok(core, src, dst, data[32], data[33], data[34])
        and pointers_ok(core, src, [v for s, v in scalars if s == 1])
    )


def is_valid(data: bytes, generation: str) -> bool:
    """Return the verdict on an ACT word."""
    core = CORE[generation]
    events = {6, 7, 0x0E, 0x0F} if core == 5 else set()
    updates = {1, 2, 0x11, 0x12} if core == 5 else set()
    check = {0x21: activate_ok, 0x22: quantize_ok, 0x25: activate2_ok}[data[0]]
    return (
        data[1] == 16
        and data[4] in WAITS - events
        and data[6] in UPDATES - updates
        and 1 <= data[34] <= 128
        and check(data, core)
    )
