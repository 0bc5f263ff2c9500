"""The 17 conjuncts of `is_valid_exponential` once more: plain, slow, one word, one truth each.

Written from isa-encoding.md 1.4, 2, 3 and 6 apart from the rules, with numbers instead of the
package's tables. Test oracle only.
"""

from __future__ import annotations

import struct

V4, V5 = 4, 5
CORE = {"sunda": 2, "cayman": 3, "mariana": 4, "mariana_plus": 4, "maverick": 5}

ROWS = (
    "has_valid_neuron_header",
    "has_valid_neuron_events",
    "has_exponential_opcode",
    "is_valid_dtype",
    "is_valid_dtype",
    "tensor_scalar_immediates_check",
    "has_valid_exponential_accum_cmd",
    "has_valid_exponential_num_elements",
    "has_valid_exponential_ops",
    "s3d3_ts_exponential_unused_fields",
    "tensor_scalar_tensor_chk",
    "has_valid_active_channel_range",
    "check_m3d_active_channels",
    "mem3d_valid",
    "mem3d_valid",
    "indirect_quadrant_check_src3d",
    "indirect_quadrant_check_src3d_dst3d",
)
"""isa-encoding.md 6.1, in order."""

WAITS = {0, 1, 2, 3, 4, 5, 6, 7, 0x0E, 0x0F, 0x81, 0x82, 0x83, 0x84, 0x85}
UPDATES = {
    *(0, 1, 2, 3, 4, 5, 7, 9, 0x11, 0x12, 0x13, 0x14, 0x15, 0x17, 0x19),
    *(0x85, 0x87, 0x89, 0x95, 0x97, 0x99),
}
ALIGNMENT = {
    **dict.fromkeys((2, 3, 0xD, 0xE, 0xF), 1),
    **dict.fromkeys((4, 5, 6, 7), 2),
    **dict.fromkeys((8, 9, 0xA, 0xB), 4),
    **dict.fromkeys((1, 0xC), 8),
}


class Word:
    """The fields of an S3D3_TS word."""

    def __init__(self, data: bytes) -> None:
        values = iter(struct.unpack("<BBxxBxBxxxxxBBBB16sBBBBBBBBII16s", data))
        self.opcode, self.length = next(values), next(values)
        self.wait, self.update = next(values), next(values)
        self.cmd, self.r0, self.r1, self.r2 = (next(values) for _ in range(4))
        self.src = next(values)
        self.in_dtype, self.out_dtype, self.n, self.imm0_src = (next(values) for _ in range(4))
        self.op0, self.op1, self.reverse, self.imm1_src = (next(values) for _ in range(4))
        self.imm0, self.imm1 = next(values), next(values)
        self.dst = next(values)


class Side:
    """One operand, both ways of reading it."""

    def __init__(self, data: bytes) -> None:
        self.word, *rest = struct.unpack("<I3h3H", data)
        self.step, self.num = rest[:3], rest[3:]
        _, self.data, self.num_elem, _ = struct.unpack("<IIHH", data[:12])
        self.marker = self.word >> 24 & 0xE0
        self.address = self.word & 0x1FFFFFFF
        self.indirect = self.marker in (0x20, 0xA0)
        self.count = self.num_elem if self.indirect else self.num[0] * self.num[1] * self.num[2]


def in_psum(core: int, a: int) -> bool:
    return core < V5 and 0x2000000 <= a < 0x2400000


def in_sbuf(core: int, a: int) -> bool:
    return a < (0x8000000 if core == V5 else 0x2000000)


def partition(core: int, a: int) -> int:
    if in_psum(core, a):
        return (a - 0x2000000) >> 15
    return a >> (20 if core == V5 else 18)


def start_ok(core: int, a: int, n: int) -> bool:
    legal = {1: (0, 32, 64, 96), 2: (0, 64), 3: (0,), 4: (0,)}[(n + 31) // 32]
    return (in_sbuf(core, a) or in_psum(core, a)) and partition(core, a) in legal


def register_ok(word: int) -> bool:
    return word & 0xFF < 64 and word >> 8 & 0xFFFF == 0


def immediate_ok(core: int, a: int, dtype: int, write: bool, psum_ok: bool) -> bool:
    if dtype not in ALIGNMENT or a % ALIGNMENT[dtype]:
        return False
    if not (in_psum(core, a) or in_sbuf(core, a)):
        return False
    if in_psum(core, a) and not psum_ok:
        return False
    return not (write and in_psum(core, a) and dtype not in (8, 9, 0xA, 0xB))


def mem3d_valid(core: int, side: Side, dtype: int, write: bool) -> bool:
    if side.indirect:
        if side.marker == 0xA0:
            index_ok = register_ok(side.word) and side.word >> 28 == 0xA
        else:
            index_ok = immediate_ok(core, side.address, 9, False, False)
        flags_ok = side.data >> 29 == 0
        data_ok = immediate_ok(core, side.data & 0x1FFFFFFF, dtype, write, True)
        return side.num_elem != 0 and index_ok and flags_ok and data_ok
    if 0 in side.num or side.marker not in (0x00, 0x80):
        return False
    if side.marker == 0x80:
        return register_ok(side.word)
    return immediate_ok(core, side.address, dtype, write, True)


def channels_ok(core: int, side: Side, n: int) -> bool:
    if not 1 <= n <= 128:
        return False
    if side.marker in (0x80, 0xC0):
        return True
    data_ok = not side.indirect or start_ok(core, side.data & 0x1FFFFFFF, n)
    return data_ok and (side.marker == 0xA0 or start_ok(core, side.address, n))


def same_quadrant(core: int, a: int, b: int) -> bool:
    stride, active = (0x100000, 0x80000) if core == V5 else (0x40000, 0x40000)
    starts = [p * stride for p in (0, 32, 64, 96)]
    return any(s <= a < s + active and s <= b < s + active for s in starts)


def source_quadrant(core: int, src: Side) -> bool:
    data = src.data & 0x1FFFFFFF
    if src.marker != 0x20 or in_psum(core, data):
        return True
    return same_quadrant(core, src.address, data)


def destination_quadrant(core: int, src: Side, dst: Side) -> bool:
    if dst.marker != 0x20 or src.marker in (0x80, 0xA0, 0xC0):
        return True
    if not src.indirect:
        return in_psum(core, src.address) or same_quadrant(core, src.address, dst.address)
    data = src.data & 0x1FFFFFFF
    anchor = src.address if in_psum(core, data) else data
    return same_quadrant(core, anchor, dst.address)


def scalar_ok(core: int, selector: int, imm: int, n: int) -> bool:
    if selector == 0:
        return True
    if selector == 1:
        return 1 <= n <= 128 and start_ok(core, imm, n) and imm % 4 == 0
    return selector == 2 and imm < 64


def counts_ok(w: Word, src: Side, dst: Side, upper: str) -> bool:
    if w.cmd == 0 or src.indirect or dst.indirect:
        return True
    unpacked = w.in_dtype in (8, 9, 0xA) or src.step[0] != 1
    y, z = src.num[1], src.num[2]
    upper_ok = {
        "packed_even": unpacked or ((y == 1 or y % 2 == 0) and (z == 1 or z % 2 == 0)),
        "product_even": y * z % 2 == 0,
        "off": True,
    }[upper]
    return (unpacked or src.num[0] % 2 == 0) and upper_ok


def conjuncts(data: bytes, generation: str, upper: str = "packed_even") -> list[bool]:
    """Return the truth of each row for a word; an unwired generation has no row true."""
    core = CORE[generation]
    if core < V4:
        return [False] * 17
    w = Word(data)
    src, dst = Side(w.src), Side(w.dst)
    events = {6, 7, 0x0E, 0x0F} if core == V5 else set()
    updates = {1, 2, 0x11, 0x12} if core == V5 else set()
    dtypes = {2, 3, 4, 5, 6, 7, 8, 9, 0xA, 0xD, 0xE, 0xF}
    return [
        w.length == 16,
        w.wait in WAITS - events and w.update in UPDATES - updates,
        w.opcode == 0x30,
        w.in_dtype in dtypes,
        w.out_dtype in dtypes | {0xB},
        scalar_ok(core, w.imm0_src, w.imm0, w.n) and scalar_ok(core, w.imm1_src, w.imm1, w.n),
        w.cmd == 4 or (w.cmd in (0, 2, 3) and w.imm1_src == 0 and w.imm1 == 0),
        counts_ok(w, src, dst, upper),
        w.op0 == w.op1 == w.reverse == 0,
        w.r0 == w.r1 == w.r2 == 0,
        mem3d_valid(core, src, w.in_dtype, False)
        and mem3d_valid(core, dst, w.out_dtype, True)
        and src.count == dst.count,
        1 <= w.n <= 128,
        channels_ok(core, src, w.n) and channels_ok(core, dst, w.n),
        mem3d_valid(core, src, w.in_dtype, False),
        mem3d_valid(core, dst, w.out_dtype, True),
        source_quadrant(core, src),
        destination_quadrant(core, src, dst),
    ]
