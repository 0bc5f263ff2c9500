"""The Tensor-Scalar validators once more: plain, slow, one word, one verdict.

Written from dve-tensor-scalar.md 4.2 to 4.6 and 5.4 apart from the rules. Test oracle only.
"""

from __future__ import annotations

from tests.isa.reference_validator import (
    ALIGNMENT,
    CORE,
    UPDATES,
    WAITS,
    Side,
    Word,
    channels_ok,
    destination_quadrant,
    immediate_ok,
    mem3d_valid,
    source_quadrant,
    start_ok,
)

GENERAL = {0, 4, 5, 6, 8, 9, 0xD, 0xE, 0xF, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19}
INTEGER = {
    *(0x00, 0xC4, 0xC5, 0xC6, 0xC9, 0xCA, 0xCB, 0xCC, 0xCD),
    *(0xCF, 0xD0, 0xD1, 0xD2, 0xD3, 0xD4),
}
BITVEC = {0x00, 0x01, 0x02, 0x03, 0x0A, 0x0B, 0x0C, 0x10, 0x11, 0x1C}
DTYPES = {2, 3, 4, 5, 6, 7, 8, 9, 0xA, 0xD, 0xE, 0xF}


def general(op: int, core: int) -> bool:
    later = {0x20, 0x21, 0x22, 0x23} if core >= 4 else set()
    return op in GENERAL | later or (core == 5 and op == 0x24)


def plain_pattern_ok(core: int, side: Side, dtype: int, write: bool) -> bool:
    """tensor3d_valid of the generations without indirect patterns."""
    if 0 in side.num:
        return False
    if side.marker == 0x80:
        reserved = side.word >> 8 & (0x7FFFFF if core == 2 else 0xFFFF)
        return side.word & 0xFF < 64 and reserved == 0
    return side.marker == 0 and immediate_ok(core, side.address, dtype, write, True)


def plain_start_ok(core: int, side: Side, n: int) -> bool:
    return side.marker == 0x80 or start_ok(core, side.address, n)


def pointer_ok(core: int, w: Word, imm: int, alignment: int) -> bool:
    return start_ok(core, imm, w.n) and imm % alignment == 0


def scalar_ok(core: int, w: Word, selector: int, imm: int) -> bool:
    bitvec = w.opcode in (0x53, 0x54)
    size = ALIGNMENT[w.in_dtype]
    if w.opcode in (0x44, 0x54):
        return selector == 0 and pointer_ok(core, w, imm, size if bitvec else 4)
    if selector == 0:
        return not bitvec or imm < 1 << 8 * size
    if selector == 1:
        return pointer_ok(core, w, imm, size if bitvec else 4)
    return selector == 2 and imm < 64


def ops_ok(core: int, w: Word) -> bool:
    a, b = w.op0, w.op1
    if w.opcode in (0x9A, 0xE6):
        return general(a, core) and b in (4, 5, 6, 8, 9)
    if a == 0 and b != 0:
        return False
    if w.opcode in (0x53, 0x54):
        return a in BITVEC and b in BITVEC
    if general(a, core) and general(b, core):
        return True
    if core == 5 and a in INTEGER and b in INTEGER:
        return True
    return (a, b) == (0x1D, 0) and w.imm0 == w.imm1 == w.imm0_src == w.imm1_src == 0


def types_ok(w: Word) -> bool:
    if w.in_dtype not in DTYPES or w.out_dtype not in DTYPES | {0xB}:
        return False
    if w.opcode in (0x9A, 0xE6):
        small = {0xD, 0xE, 0xF, 7, 6, 0xA, 2, 3, 4, 5}
        return w.in_dtype in small and w.out_dtype in small | {0xB}
    if w.opcode in (0x53, 0x54):
        if w.in_dtype != w.out_dtype or w.in_dtype not in (2, 3, 4, 5, 8, 9):
            return False
        shifts = 3 in (w.op0, w.op1) or (w.op0 in (2, 0x10) and w.op1 in (3, 0x11))
        return not shifts or w.in_dtype in (8, 9)
    return True


def command_ok(w: Word) -> bool:
    if w.opcode not in (0x9A, 0xE6):
        return w.cmd == 0 and w.reverse <= 3
    seed_free = w.cmd == 4 or (w.imm1_src == 0 and w.imm1 == 0)
    return w.cmd in (2, 3, 4) and seed_free and w.reverse == 0


def operands_ok(core: int, w: Word, src: Side, dst: Side) -> bool:
    if core < 4:
        counts = [s.num[0] * s.num[1] * s.num[2] for s in (src, dst)]
        return (
            plain_pattern_ok(core, src, w.in_dtype, False)
            and plain_pattern_ok(core, dst, w.out_dtype, True)
            and plain_start_ok(core, src, w.n)
            and plain_start_ok(core, dst, w.n)
            and counts[0] == counts[1]
        )
    return (
        mem3d_valid(core, src, w.in_dtype, False)
        and mem3d_valid(core, dst, w.out_dtype, True)
        and channels_ok(core, src, w.n)
        and channels_ok(core, dst, w.n)
        and src.count == dst.count
        and source_quadrant(core, src)
        and destination_quadrant(core, src, dst)
    )


def is_valid(data: bytes, generation: str) -> bool:
    """Return the verdict on a Tensor-Scalar word."""
    core = CORE[generation]
    w = Word(data)
    src, dst = Side(w.src), Side(w.dst)
    events = {6, 7, 0x0E, 0x0F} if core == 5 else set()
    updates = {1, 2, 0x11, 0x12} if core == 5 else set()
    transposes = w.opcode != 0x93 or (src.count % 32 == 0 and w.n in (32, 64, 96, 128))
    return (
        w.length == 16
        and w.wait in WAITS - events
        and w.update in UPDATES - updates
        and w.r0 == w.r1 == w.r2 == 0
        and 1 <= w.n <= 128
        and types_ok(w)
        and ops_ok(core, w)
        and command_ok(w)
        and scalar_ok(core, w, w.imm0_src, w.imm0)
        and scalar_ok(core, w, w.imm1_src, w.imm1)
        and operands_ok(core, w, src, dst)
        and transposes
    )
