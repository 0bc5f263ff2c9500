"""The validators of the everyday DVE opcodes once more: plain, slow, one word, one truth.

Written from dve-tensor-scalar.md 9 and isa-encoding.md 6 apart from the rules, by byte offsets and
numbers instead of the package's layouts and tables. Test oracle only.
"""

from __future__ import annotations

import math
import struct

from tests.isa.reference_validator import (
    CORE,
    UPDATES,
    V5,
    WAITS,
    Side,
    channels_ok,
    destination_quadrant,
    in_psum,
    mem3d_valid,
    partition,
    scalar_ok,
    source_quadrant,
)

INT = {2, 3, 4, 5, 8, 9}
IN = INT | {6, 7, 0xA, 0xD, 0xE, 0xF}
OUT = IN | {0xB}
LONG = {1, 0xC}
BITS = {0, 1, 2, 3, 0xA, 0xB, 0xC, 0x10, 0x11}
SIZE = {**dict.fromkeys((2, 3, 13, 14, 15), 1), **dict.fromkeys((4, 5, 6, 7), 2)}
TT, STT = (0x41, 0x51, 0x65, 0x72, 0x99), (0x9D, 0x9E, 0xE5, 0xEA)
TR = (0x42, 0x46, 0x47, 0x48, 0x4E, 0x52, 0x5E, 0x6A, 0x6B, 0x83, 0x84)
MR, BN, S2 = (
    (0x49, 0x4B, 0x4D, 0xE9),
    (0x60, 0x61, 0x62, 0x6C, 0x6E, 0x82),
    (0x64, 0x6D, 0x70, 0x71),
)


class Pattern(Side):
    """An operand of 2 to 4 dimensions, as the shared predicates want it."""

    def __init__(self, word: bytes, at: int, dimensions: int) -> None:
        data = word[at : at + 4 + 4 * dimensions]
        self.word = struct.unpack_from("<I", data)[0]
        self.num = struct.unpack_from(f"<{dimensions}H", data, 4 + 2 * dimensions)
        self.data, self.num_elem, _ = struct.unpack_from("<IHH", data, 4)
        self.marker, self.address = self.word >> 24 & 0xE0, self.word & 0x1FFFFFFF
        self.indirect = self.marker in (0x20, 0xA0)
        self.count = self.num_elem if self.indirect else math.prod(self.num)


def u32(word: bytes, at: int) -> int:
    return int.from_bytes(word[at : at + 4], "little")


def general(core: int) -> set[int]:
    ops = {0, 4, 5, 6, 8, 9, 0xD, 0xE, 0xF, *range(0x12, 0x1A)}
    return ops | (set(range(0x20, 0x24)) if core >= 4 else set()) | ({0x24} if core == 5 else set())


def alu(core: int) -> set[int]:
    low = set(range(0x1E)) | {0xC4, 0xC5, 0xC6}
    return low | (set(range(0xC7, 0xE2)) if core >= 3 else set()) | general(core)


def is_valid(word: bytes, generation: str) -> bool:
    """Return whether a word of one of these opcodes is legal."""
    core, op = CORE[generation], word[0]
    late = {0xE9: 3, 0xBC: 3}
    if core < late.get(op, 2) or word[1] != 16:
        return False
    waits = WAITS - ({6, 7, 0xE, 0xF} if core == V5 else set())
    updates = UPDATES - ({1, 2, 0x11, 0x12} if core == V5 else set())
    if word[4] not in waits or word[6] not in updates:
        return False
    if op == 0x69:
        return not any(word[12:32]) and all(b < 64 or b == 255 for b in word[32:])
    if op in TT:
        return _tensor_tensor(word, core)
    if op in STT:
        return _scalar_tensor_tensor(word, core)
    if op in TR:
        return _tensor_reduce(word, core)
    if op in MR:
        return _memset(word, core)
    if op in BN:
        return _batch_norm(word, core)
    if op in S2:
        return _key_load(word, core)
    if op == 0x98:
        return _scalar_select(word, core)
    return _match_replace(word, core) if op == 0x6F else _range_select(word, core)


def operand_ok(
    side: Pattern, core: int, n: int, dtype: int, write: bool, *, plain: bool = False
) -> bool:
    """Address, counts, channels; an indirect form only from v4 on and only where it may be."""
    if side.indirect and (core < 4 or plain):
        return False
    return channels_ok(core, side, n) and mem3d_valid(core, side, dtype, write)


def sources_ok(first: Pattern, second: Pattern, core: int) -> bool:
    """At most one in PSUM, else one quadrant; only immediate addresses are tested."""
    if first.marker or second.marker:
        return True
    inside = [in_psum(core, side.address) for side in (first, second)]
    if any(inside):
        return not all(inside)
    return partition(core, first.address) // 32 == partition(core, second.address) // 32


def _two_inputs(word: bytes, core: int, at: tuple[int, int, int], dimensions: int, pair: int,
                out: int, n: int) -> bool:  # fmt: skip
    first, second, dst = (Pattern(word, place, dimensions) for place in at)
    return (
        operand_ok(first, core, n, pair & 15, False)
        and operand_ok(second, core, n, pair >> 4, False)
        and operand_ok(dst, core, n, out, True)
        and first.count == second.count == dst.count
        and sources_ok(first, second, core)
    )


def _tensor_tensor(word: bytes, core: int) -> bool:
    op, pair, out, alu_op, n = word[0], *word[12:16]
    a, b = pair & 15, pair >> 4
    if op == 0x41:
        integer = (set(range(0xC4, 0xDE)) - {0xCE}) & alu(core) | {0x1B}
        legal = a in IN and b in IN and out in OUT
        legal = legal and alu_op in general(core) | integer | {0x1A}
    elif op == 0x51:
        counted = a in LONG and alu_op in (2, 3, 0x10, 0x11) and b == 9
        legal = a in INT | LONG and out == a and (b == a or counted) and alu_op in BITS
        legal = legal and (alu_op != 3 or SIZE.get(a, 4) == 4)
    elif op == 0x65:
        legal = a in IN and b in IN and out in OUT
    else:
        legal = a in INT and b in IN and alu_op == 0
        legal = legal and (out == b if op == 0x72 else out in OUT)
    return legal and _two_inputs(word, core, (16, 32, 48), 3, pair, out, n)


def _scalar_tensor_tensor(word: bytes, core: int) -> bool:
    op, (op0, op1, reverse, source) = word[0], word[36:40]
    pair, out, n, scalar, command = word[40:45]
    a, b = pair & 15, pair >> 4
    if op == 0x9E:
        legal = a in INT and a == b == out and op0 in BITS and op1 in BITS
        legal = legal and (SIZE.get(a, 4) == 4 or 3 not in (op0, op1)) and command == 0
    elif op == 0xEA:
        legal = a in INT and b in IN - {8, 9} and out in OUT
        legal = legal and (op0, op1) == (0, 8) and command in (0, 2, 3)
    else:
        legal = a in IN and b in IN and out in OUT and {op0, op1} <= general(core)
        legal = legal and command in ((0, 2, 3) if op == 0x9D else (0,))
    legal = legal and reverse <= (1 if op == 0xEA else 3) and not any(word[45:48])
    legal = legal and scalar in IN and _pointer_ok(core, source, u32(word, 60), n, scalar)
    legal = legal and (op == 0x9E or source != 0 or scalar == 0xA)
    return legal and _two_inputs(word, core, (12, 24, 48), 2, pair, out, n)


def _pointer_ok(core: int, source: int, value: int, n: int, dtype: int) -> bool:
    """`scalar_ok` with the alignment of a dtype."""
    size = SIZE.get(dtype, 4)
    aligned = value - value % 4 if source == 1 and value % size == 0 else value
    return scalar_ok(core, source, aligned, n)


def _tensor_reduce(word: bytes, core: int) -> bool:
    op = word[0]
    a, out, n, negated, alu_op, dim, mask = word[32:39]
    src, dst = Pattern(word, 12, 4), Pattern(word, 44, 4)
    folds, bits = op in (0x42, 0x52, 0x83, 0x84, 0x4E, 0x5E), op in (0x52, 0x84, 0x5E)
    if bits:
        kinds = {3, 5, 8, 9} if op == 0x5E else INT | LONG
        legal = a in kinds and a == out and alu_op in BITS | ({0x1C} if op != 0x5E else set())
        legal = legal and (alu_op != 3 or SIZE.get(a, 4) == 4)
    elif op in (0x42, 0x83):
        legal = a in IN | LONG and out in OUT | LONG and alu_op in general(core)
    elif op == 0x4E:
        arith = general(core) | {0x1D, 0xC4, 0xC5, 0xC6} | ({0xC7, 0xC8} if core >= 3 else set())
        legal = a in IN and out in OUT and alu_op in arith
    else:
        legal = a in IN and alu_op == 0 and (out in OUT if op in (0x47, 0x48) else out == a)
    legal = legal and dim in ((2, 3, 4, 5) if folds else (0, 2)) and not any(word[39:44])
    legal = legal and negated <= (op in (0x42, 0x83)) and mask <= (op == 0x6B)
    legal = legal and (op not in (0x6A, 0x6B, 0x83, 0x84) or n % 32 == 0)
    if (
        not legal
        or not operand_ok(src, core, n, a, False)
        or not operand_ok(dst, core, n, out, True)
    ):
        return False
    if op in (0x6B, 0x83, 0x84) and src.count % 32:
        return False
    if not source_quadrant(core, src) or not destination_quadrant(core, src, dst):
        return False
    if op in (0x42, 0x52, 0x83, 0x84):
        inner = src.count if src.indirect else math.prod(src.num[: dim - 1])
        return dst.count == src.count // inner
    return dst.count <= src.count if op == 0x6B else dst.count == src.count


def _memset(word: bytes, core: int) -> bool:
    op, dtype, n = word[0], word[32], word[34]
    dst, value = Pattern(word, 44, 4), u32(word, 40)
    kinds = {0x49: IN, 0x4D: INT, 0xE9: {5, 9}}.get(op, OUT)
    legal = dtype in kinds and not any(word[12:28] + word[33:34] + word[35:40])
    legal = legal and operand_ok(dst, core, n, dtype, True) and u32(word, 28) == dst.count
    if op == 0x49:
        legal = legal and value < 1 << 8 * SIZE.get(dtype, 4)
    return legal and (op != 0xE9 or (dst.count == 8 and value == 0))


def _batch_norm(word: bytes, core: int) -> bool:
    op, a, out, n = word[0], *word[32:35]
    src, dst = Pattern(word, 12, 4), Pattern(word, 48, 2)
    kinds = {0x6C: OUT, 0x62: OUT, 0x6E: {5, 9}}.get(op, {0xA, 6, 7})
    legal = a in IN and out in kinds and not any(word[35:40] + word[60:64])
    legal = legal and operand_ok(src, core, n, a, False, plain=True)
    legal = legal and operand_ok(dst, core, n, out, True, plain=True)
    counts = [u32(word, 40), u32(word, 44)]
    if op in (0x60, 0x61, 0x82):
        legal = legal and all(c >> 23 & 0xFF != 0xFF for c in counts) and src.count <= 512
        legal = legal and dst.count in ((3, 6) if op == 0x60 else (6,))
        return legal and (op != 0x82 or (n % 32 == 0 and src.count % 32 == 0))
    legal = legal and counts == [0, 0]
    if op == 0x62:
        return legal and src.count % 3 == 0 and dst.count == 2
    return legal and 8 <= src.count <= 16384 and dst.count == 8


def _key_load(word: bytes, core: int) -> bool:
    dtype, n, src = word[32], word[34], Pattern(word, 16, 2)
    legal = dtype in IN and not any(word[12:16] + word[33:34] + word[35:44] + word[49:64])
    legal = legal and operand_ok(src, core, n, dtype, False, plain=True)
    zero = not any(word[28:32] + word[44:49])
    return legal and (word[0] != 0x6D or (src.count == 8 and zero))


def _match_replace(word: bytes, core: int) -> bool:
    a, out, n = word[32:35]
    src, dst = Pattern(word, 12, 4), Pattern(word, 44, 4)
    kinds = {7, 6, 3, 5, 9, 0xA, 8}
    legal = {a, out} <= kinds and not any(word[35:40])
    legal = legal and operand_ok(src, core, n, a, False, plain=True)
    legal = legal and operand_ok(dst, core, n, out, True, plain=True)
    return legal and src.count == dst.count <= 16384


def _scalar_select(word: bytes, core: int) -> bool:
    reverse, n, dtype, kind = word[32:36]
    source, chosen = word[38], word[39]
    src, dst = Pattern(word, 16, 3), Pattern(word, 48, 3)
    legal = dtype in IN and kind in IN and reverse <= 1 and not any(word[12:16] + word[36:38])
    legal = legal and _pointer_ok(core, source, u32(word, 40), n, dtype)
    legal = legal and _pointer_ok(core, chosen, u32(word, 44), n, kind)
    legal = legal and (chosen != 0 or (kind in INT and u32(word, 44) <= 1))
    legal = legal and operand_ok(src, core, n, dtype, False)
    return legal and operand_ok(dst, core, n, dtype, True) and src.count == dst.count


def _range_select(word: bytes, core: int) -> bool:
    n, pair, command, reduce_op = word[12:16]
    src, dst = Pattern(word, 24, 2), Pattern(word, 48, 2)
    op0, op1, source0, source1 = word[36:40]
    legal = pair & 15 in IN and pair >> 4 in OUT and command in (0, 2, 3) and reduce_op == 8
    legal = legal and {op0, op1} <= {0x12, 0x13, 0x14, 0x15, 0x16} and u32(word, 20) == 0xFF7FFFFF
    legal = legal and scalar_ok(core, source0, u32(word, 40), n)
    legal = legal and scalar_ok(core, source1, u32(word, 44), n) and not any(word[60:64])
    legal = legal and operand_ok(src, core, n, pair & 15, False, plain=True)
    legal = legal and operand_ok(dst, core, n, pair >> 4, True, plain=True)
    base = struct.unpack_from("<f", word, 16)[0]
    return legal and src.count == dst.count and base + src.count <= 1 << 24
