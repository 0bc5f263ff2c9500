"""Words near the border of legality: a legal word with a few fields changed to telling values."""

from __future__ import annotations

import random
from collections.abc import Iterator

from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.fields import write_field
from neuron_emu.isa.rules.examples import standard_word

_BYTES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0x11, 0x19, 0x22, 0x80, 0xFF]
_COUNTS = [0, 1, 2, 3, 4, 8, 12, 31, 32, 64, 512, 0xFFFF]
_PARTITIONS = [0, 16, 31, 32, 48, 64, 95, 96, 127]
_OFFSETS = [0, 1, 2, 4, 6, 8, 0x1000, 0x1002, 0x2FFFC, 0x37FFE, 0x3FFFF]
_PSUM, _SBUF_STRIDES = 0x2000000, (0x40000, 0x100000)


def _address(rng: random.Random) -> int:
    kind = rng.random()
    if kind < 0.1:
        return rng.choice([0x2400000, 0x1FFFFFFF, 0x7FFFFFF, 0x8000000, 63, 64, 0x10000003, 0x100])
    partition, offset = rng.choice(_PARTITIONS), rng.choice(_OFFSETS)
    if kind < 0.3:
        return _PSUM + partition * 0x8000 + (offset & 0x7FFF)
    return partition * rng.choice(_SBUF_STRIDES) + offset


def _value(path: str, rng: random.Random) -> int:
    leaf = path.rpartition(".")[2]
    if leaf == "partition_offset":
        return _address(rng)
    if leaf == "marker":
        return rng.choice([0, 0, 0, 1, 1, 5, 4, 2, 3, 6, 7])
    if leaf == "word":
        return rng.choice([0, 0, 1, 63, 64, 0x3F800000, _address(rng), rng.getrandbits(32)])
    if leaf.startswith("num[") or leaf == "num_elem":
        return rng.choice(_COUNTS)
    if leaf.startswith("step"):
        return rng.choice([1, 1, 0, 2, 0xFFFF])
    if leaf == "num_active_channels":
        return rng.choice([0, 1, 16, 32, 33, 64, 65, 96, 128, 129, 255])
    if leaf in ("wait_mode", "update_mode"):
        return rng.choice([0, 1, 2, 4, 6, 8, 0xE, 0x13, 0x16, 0x81, 0x85, 0x95, 0x99, 0xFE])
    return rng.choice(_BYTES)


COMMON = ("header.inst_word_len", "events.wait_mode", "events.update_mode")
PATHS = (
    *COMMON,
    *("accumulator_cmd", "reserved0", "in_dtype", "out_dtype", "num_active_channels"),
    *("imm0_src", "imm1_src", "imm0.word", "imm1.word", "op0", "op1", "reverse_operands"),
    *(
        f"{side}.{leaf}"
        for side in ("src", "dst")
        for leaf in (
            *("start.partition_offset", "start.marker", "num[0]", "num[1]", "num[2]", "step[0]"),
            *("data.partition_offset", "data.marker", "num_elem", "reserved"),
        )
    ),
)


def mutated_words(opcode: int, count: int, seed: int) -> Iterator[bytes]:
    """Yield `count` words of a Tensor-Scalar opcode with up to five fields changed."""
    rng = random.Random(seed)
    record = record_type_of(opcode)
    for _ in range(count):
        word = standard_word(opcode)
        if rng.random() < 0.4:
            word = _indirect(word, rng)
        if rng.random() < 0.3:
            same = rng.choice(_COUNTS)
            word = write_field(word, record, "src.num[0]", same)
            word = write_field(word, record, "dst.num[0]", same)
        for path in rng.choices(PATHS, k=rng.randrange(6)):
            word = write_field(word, record, path, _value(path, rng))
        yield word


def _indirect(word: bytes, rng: random.Random) -> bytes:
    record = record_type_of(word[0])
    for side in rng.choice((("src",), ("dst",), ("src", "dst"))):
        quadrant = rng.choice((0, 0, 0, 32 * 0x40000))
        for leaf, value in (
            ("index.marker", rng.choice((1, 1, 5))),
            ("index.partition_offset", 8 if rng.random() < 0.2 else quadrant + 0x4000),
            ("data.partition_offset", rng.choice((0x1000, quadrant + 0x1000, _PSUM))),
            ("data.marker", 0),
            ("num_elem", 8),
            ("reserved", 0),
        ):
            word = write_field(word, record, f"{side}.{leaf}", value)
        word = write_field(word, record, "num_active_channels", 32)
    return word
