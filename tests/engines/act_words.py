"""Generated ACT words, legal by construction, and a plain memory for the oracle to run them in."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, MutableMapping
from functools import cache

import numpy as np

from neuron_emu.generation import Generation
from neuron_emu.isa.families.activation import ActivationFunction
from neuron_emu.memory import Memory
from neuron_emu.pwp.functions import function_named
from neuron_emu.pwp.store import shipped_profiles

WINDOW_BYTES = 0x200
"""Bytes of each partition that hold data and results; the index tensors follow."""
INDEX_OFFSET = 0x200
INPUTS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15)
OUTPUTS = (*INPUTS, 11)
SIZES = {2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 2, 8: 4, 9: 4, 10: 4, 11: 4, 13: 1, 14: 1, 15: 1}
OP_PAIRS = ((6, 4), (6, 5), (6, 0), (4, 0), (5, 0), (0, 0))
REDUCE_OPS = (4, 8, 9, 0x20, 0x21)
PSUM = 0x2000000
SPECIAL_WORDS = (
    *(0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x40490FDB, 0x7F800000, 0xFF800000),
    *(0x7FC00001, 0xFFC00123, 0x7F812345, 0x00000001, 0x80000001, 0x7F7FFFFF, 0xC2AEAC50),
)


def shipped_codes() -> tuple[int, ...]:
    """Return the wire codes whose table the package brings."""
    functions = {function_named(name).name for name in shipped_profiles()}
    return tuple(f.value for f in ActivationFunction if f.name.lower() in functions)


class PlainMemory(MutableMapping[int, int]):
    """Bytes by local address: reads come from a memory that nothing changes, writes stay here."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.written: dict[int, int] = {}

    def place(self, address: int) -> tuple[str, int, int]:
        """Return space, partition and offset of an address."""
        generation = self.memory.generation
        if generation.psum is not None and address >= PSUM:
            return "psum", (address - PSUM) >> 15, address & 0x7FFF
        shift = 20 if generation.core_version >= 5 else 18
        return "sbuf", address >> shift, address & (1 << shift) - 1

    def __getitem__(self, address: int) -> int:
        if address in self.written:
            return self.written[address]
        name, partition, offset = self.place(address)
        return int(getattr(self.memory, name).data[partition, offset])

    def __setitem__(self, address: int, value: int) -> None:
        self.written[address] = value

    def __delitem__(self, address: int) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


@cache
def _floats() -> np.ndarray:
    return np.random.default_rng(5).normal(0, 3, 1 << 16).astype(np.float32).view(np.uint32)


def fill(memory: Memory, rng: random.Random) -> None:
    """Put words that mean something as numbers into the window of every partition."""
    generator = np.random.default_rng(rng.getrandbits(32))
    for space in memory.spaces:
        shape = (128, (WINDOW_BYTES + 0x40) // 4)
        words = _floats()[generator.integers(0, 1 << 16, shape)]
        special = generator.random(shape) < 0.15
        words[special] = np.array(SPECIAL_WORDS, np.uint32)[
            generator.integers(0, len(SPECIAL_WORDS), int(special.sum()))
        ]
        space.data[:, : WINDOW_BYTES + 0x40] = words.view(np.uint8)
    index = generator.integers(0, 16, (128, 0x10), dtype=np.uint32)
    memory.sbuf.data[:, INDEX_OFFSET : INDEX_OFFSET + 0x40] = index.view(np.uint8)


class Words:
    """Makes words of one opcode for one generation; `registers` are what they refer to."""

    def __init__(self, opcode: int, generation: Generation, rng: random.Random) -> None:
        self.opcode = opcode
        self.generation = generation
        self.rng = rng
        self.registers = [0] * 64
        self.codes = shipped_codes()

    def word(self) -> bytes:
        """Return one word."""
        self.next_register = 0
        return {0x21: self._activate, 0x22: self._quantize, 0x25: self._activate2}[self.opcode]()

    # --- pieces -------------------------------------------------------------------------------

    def _address(self, partition: int, offset: int, *, psum: bool) -> int:
        if psum:
            return PSUM + partition * 0x8000 + offset
        return partition * self.generation.sbuf.partition_stride + offset

    def _lanes(self) -> tuple[int, int]:
        """Return channels and a legal start partition."""
        rng = self.rng
        channels = rng.choice((1, 1, 2, 3, 4))
        if rng.random() < 0.05:
            channels = rng.choice((17, 33, 64, 100, 128))
        starts = (0, 32, 64, 96) if channels <= 32 else (0, 64) if channels <= 64 else (0,)
        return channels, rng.choice(starts)

    def _shape(self, channels: int, dimensions: int) -> list[int]:
        counts = [1] * dimensions
        budget = 8 if channels <= 4 else 2
        for dimension in self.rng.sample(range(dimensions), dimensions):
            counts[dimension] = self.rng.choice([c for c in (1, 2, 3, 4) if c <= budget])
            budget //= counts[dimension]
        return counts

    def _may_be_register(self, address: int) -> int:
        if self.rng.random() < 0.15 and self.next_register < 64:
            number = self.next_register
            self.next_register += 1
            self.registers[number] = address
            return 0x80000000 | number
        return address

    def _pattern(
        self, counts: list[int], dtype: int, partition: int, *, psum: bool, near: int | None
    ) -> tuple[bytes, int]:
        """Return a pattern inside the window and the byte offset of its first element."""
        rng, size, dimensions = self.rng, SIZES[dtype], len(counts)
        if self.generation.has_indirect and not psum and rng.random() < 0.12:
            return self._indirect(int(np.prod(counts)), partition, dimensions), 0
        steps = [rng.choice((1, 1, 1, 2, 3, 0, -1, -2, 5)) for _ in counts]
        ends = [step * (count - 1) for step, count in zip(steps, counts, strict=True)]
        low, high = sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)
        places = WINDOW_BYTES // size - high
        first = rng.randrange(-low, places)
        if near is not None:
            first = min(max(near // size + rng.randrange(-3, 4), -low), places - 1)
        start = self._may_be_register(self._address(partition, first * size, psum=psum))
        return struct.pack(f"<I{dimensions}h{dimensions}H", start, *steps, *counts), first * size

    def _indirect(self, elements: int, partition: int, dimensions: int) -> bytes:
        index = self._address(partition, INDEX_OFFSET, psum=False)
        data = self._address(partition, 0x40, psum=False)
        return struct.pack("<IIHH", 0x20000000 | index, data, elements, 0).ljust(
            4 * dimensions + 4, b"\0"
        )

    def _operands(
        self, in_dtype: int, out_dtype: int, dimensions: int
    ) -> tuple[int, int, bytes, bytes]:
        """Return channels, start partition and the two patterns."""
        rng = self.rng
        channels, partition = self._lanes()
        has_psum = self.generation.psum is not None
        from_psum = has_psum and rng.random() < 0.3
        to_psum = has_psum and SIZES[out_dtype] == 4 and rng.random() < 0.3
        counts = self._shape(channels, dimensions)
        src, first = self._pattern(counts, in_dtype, partition, psum=from_psum, near=None)
        near = first if rng.random() < 0.4 else None
        shuffled = rng.sample(counts, dimensions)
        dst, _ = self._pattern(shuffled, out_dtype, partition, psum=to_psum, near=near)
        return channels, partition, src, dst

    def _float(self) -> int:
        if self.rng.random() < 0.2:
            return self.rng.choice(SPECIAL_WORDS)
        return int(_floats()[self.rng.getrandbits(16)])

    def _scalar(
        self, dtype: int, partition: int, sources: tuple[int, ...] = (0, 0, 1, 2)
    ) -> tuple[int, int]:
        """Return IMM_SRC and the four bytes of a scalar."""
        source = self.rng.choice(sources)
        if source == 0:
            return 0, self._float()
        places = WINDOW_BYTES // SIZES[dtype]
        offset = self.rng.randrange(places) * SIZES[dtype]
        address = self._address(partition, offset, psum=False)
        if source == 1:
            return 1, address
        number = self.next_register
        self.next_register += 1
        self.registers[number] = address
        return 2, number

    # --- words --------------------------------------------------------------------------------

    def _activate(self) -> bytes:
        rng = self.rng
        in_dtype, out_dtype = rng.choice(INPUTS), rng.choice(OUTPUTS)
        channels, partition, src, dst = self._operands(in_dtype, out_dtype, 3)
        bias_dtype = rng.choice((6, 7, 10, 10))
        scale_src, scale = self._scalar(10, partition)
        imm_src, imm = self._scalar(10, partition)
        is_sunda = self.generation.core_version == 2
        bias_src, bias = self._scalar(bias_dtype, partition, (1,) if is_sunda else (0, 1, 1, 2))
        return (
            struct.pack("<BB10x", 0x21, 16)
            + bytes((imm_src, scale_src, rng.choice((0, 1, 2, 3, 3, 4)), (1, 0, 2)[bias_src]))
            + src
            + bytes((in_dtype | bias_dtype << 4, out_dtype, channels, rng.choice(self.codes)))
            + struct.pack("<III", scale, bias, imm)
            + dst
        )

    def _quantize(self) -> bytes:
        rng = self.rng
        in_dtype = rng.choice((8, 10))
        channels, partition, src, dst = self._operands(in_dtype, 3, 3)
        bias_dtype = rng.choice((6, 7, 10))
        _, bias = self._scalar(bias_dtype, partition, (1,))
        scales = [self._float() or 0x3F800000 for _ in range(2)]
        scales = [0x40000000 if scale == 0x80000000 else scale for scale in scales]
        code = rng.choice([c for c in self.codes if c != ActivationFunction.PARAMETRIC_RELU])
        return (
            struct.pack("<BB10xI", 0x22, 16, scales[0])
            + src
            + bytes((in_dtype | bias_dtype << 4, 3, channels, code))
            + struct.pack("<III", scales[1], bias, self._float())
            + dst
        )

    def _activate2(self) -> bytes:
        rng = self.rng
        in_dtype, out_dtype = rng.choice(INPUTS), rng.choice(OUTPUTS)
        imm_dtype = rng.choice((10, 10, 6, 7, 4, 14))
        channels, partition, src, dst = self._operands(in_dtype, out_dtype, 2)
        # Erratum 3071: pointers share the quadrant of a source in SBUF.
        scalars = [self._scalar(imm_dtype, partition) for _ in range(3)]
        command = rng.choice((0, 1, 2, 3, 3))
        reduce_op = rng.choice(REDUCE_OPS) if command else 0
        (relu_src, relu), (imm0_src, imm0), (imm1_src, imm1) = scalars
        return (
            struct.pack("<BB10x", 0x25, 16)
            + src
            + bytes((relu_src, imm0_src, command, imm1_src, imm_dtype, *rng.choice(OP_PAIRS)))
            + bytes((reduce_op, in_dtype, out_dtype, channels, rng.choice(self.codes)))
            + struct.pack("<III", imm0, imm1, relu)
            + dst
            + bytes((rng.randrange(4), 0, 0, 0))
        )
