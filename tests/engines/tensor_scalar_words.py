"""Legal S3D3_TS words at random, and the machine beside the plain implementation.

Words are legal by construction (dve-tensor-scalar.md 4.2 to 4.7, isa-encoding.md 6): small patterns
in a window of each partition, so that source, destination and pointers often overlap.
"""

from __future__ import annotations

import random
from functools import cache

import numpy as np
from attrs import define, field, frozen

from neuron_emu import Machine, Program
from neuron_emu.engines.reference.tensor_scalar import PlainCore, execute
from neuron_emu.generation import MARIANA, Generation
from neuron_emu.isa import alu_ops
from neuron_emu.isa.codec import encode
from neuron_emu.isa.enums import AluOp, DType, Engine
from neuron_emu.isa.families.base import header_of
from neuron_emu.isa.families.tensor_scalar import TensorScalar
from neuron_emu.isa.records import (
    Address,
    Events,
    Immediate,
    Indirect16B,
    Pattern,
    Tensor3D,
)
from neuron_emu.policy import Policy
from neuron_emu.pwp.store import load_profile

OPCODES = (0x43, 0x53, 0x44, 0x54, 0x93, 0x9A, 0xE6, 0x30)
BIT_OPCODES, POINTER_OPCODES, CACHE_OPCODES = (0x53, 0x54), (0x44, 0x54), (0x9A, 0xE6)
TRANSPOSE, EXPONENTIAL = 0x93, 0x30
DATA_BYTES, INDEX_BYTES = 288, 32
WINDOW = DATA_BYTES + INDEX_BYTES
"""Bytes of each partition that words touch: data and pointers, then index tensors."""
SIZES = {
    1: (DType.INT8, DType.UINT8, DType.FP8_EXP3, DType.FP8_EXP4, DType.FP8_EXP5),
    2: (DType.INT16, DType.UINT16, DType.BFLOAT16, DType.FP16),
    4: (DType.INT32, DType.UINT32, DType.FP32, DType.FP32R),
}
SIZE_OF = {dtype: size for size, dtypes in SIZES.items() for dtype in dtypes}
OUTPUTS = tuple(SIZE_OF)
INPUTS = tuple(dtype for dtype in OUTPUTS if dtype != DType.FP32R)
INTEGERS = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.UINT32)
CACHE_INPUTS = tuple(d for d in INPUTS if d not in (DType.INT32, DType.UINT32))
PSUM_BASE, PSUM_STRIDE = 0x2000000, 0x8000
FLOATS = (
    *(0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x40000000, 0x40490FDB, 0xC1200000),
    *(0x3F000000, 0x42C80000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFA00001, 0x00000001),
    *(0x7F7FFFFF, 0x4F000000, 0x33800000, 0xC2AE0000),
)
NO_EVENTS = Events(wait_mode=0, wait_idx=0, update_mode=0, update_idx=0, semaphore_value=0)


@frozen
class Case:
    """A word, the registers it reads, and index tensors to place: address and offsets."""

    word: TensorScalar
    registers: dict[int, int]
    indexes: tuple[tuple[int, list[int]], ...]


@define
class Generator:
    """Makes words of one opcode; `channels` and `dtypes` fix what is otherwise drawn."""

    opcode: int
    rng: random.Random
    generation: Generation = MARIANA
    channels: int | None = None
    dtypes: tuple[DType, DType] | None = None
    spaces: tuple[str, str] | None = None
    max_elements: int = 32
    longest_row: int = 16
    near: int = 0
    registers: dict[int, int] = field(factory=dict)
    indexes: list[tuple[int, list[int]]] = field(factory=list)

    def case(self) -> Case:
        """Return the next word."""
        self.registers, self.indexes = {}, []
        word = self._word()
        return Case(word, dict(self.registers), tuple(self.indexes))

    def _word(self) -> TensorScalar:
        rng, opcode = self.rng, self.opcode
        channels = self.channels or self._draw_channels()
        in_dtype, out_dtype = self.dtypes or self._draw_dtypes()
        op0, op1, reverse = self._draw_ops(in_dtype, out_dtype)
        command = 0
        if opcode in (*CACHE_OPCODES, EXPONENTIAL):
            command = rng.choice([2, 3, 4] if opcode in CACHE_OPCODES else [0, 2, 3, 4])
        count = self._draw_count(channels, max(SIZE_OF[in_dtype], SIZE_OF[out_dtype]))
        src_space, dst_space = self.spaces or self._draw_spaces(out_dtype)
        src_start = self._partition(channels)
        dst_start = src_start if rng.random() < 0.6 else self._partition(channels)
        if self.spaces is None and rng.random() < 0.5 and SIZE_OF[out_dtype] == 4:
            dst_space = src_space
        is_packed = command != 0 and opcode == EXPONENTIAL and SIZE_OF[in_dtype] < 4
        if is_packed and count % 2:
            count += 1
        src = self._pattern(src_space, src_start, channels, in_dtype, count, is_packed, src_start)
        is_free = src_space == "psum" and not src.start.is_indirect
        home = self._partition(channels) if is_free else src_start
        dst = self._pattern(dst_space, dst_start, channels, out_dtype, count, False, home)
        bits = opcode in BIT_OPCODES
        imm0_src, imm0 = self._scalar(channels, in_dtype, bits, command)
        imm1_src, imm1 = self._scalar(channels, in_dtype, bits, command)
        if opcode in (*CACHE_OPCODES, EXPONENTIAL) and command != 4:
            imm1_src, imm1 = 0, 0
        return TensorScalar(
            header=header_of(opcode),
            events=NO_EVENTS,
            accumulator_cmd=command,
            reserved0=bytes(3),
            src=src,
            in_dtype=in_dtype,
            out_dtype=out_dtype,
            num_active_channels=channels,
            imm0_src=imm0_src,
            op0=op0,
            op1=op1,
            reverse_operands=reverse,
            imm1_src=imm1_src,
            imm0=Immediate(word=imm0),
            imm1=Immediate(word=imm1),
            dst=dst,
        )

    def _draw_channels(self) -> int:
        if self.opcode == TRANSPOSE:
            return self.rng.choice([32] * 9 + [64, 96, 128])
        few = [1] * 8 + [2] * 6 + [3] * 4 + [4, 7, 9, 16]
        return self.rng.choice([*few, 32, 33, 64, 65, 96, 97, 128])

    def _draw_dtypes(self) -> tuple[DType, DType]:
        rng = self.rng
        if self.opcode in BIT_OPCODES:
            dtype = rng.choice(INTEGERS)
            return dtype, dtype
        if self.opcode in CACHE_OPCODES:
            return rng.choice(CACHE_INPUTS), rng.choice((*CACHE_INPUTS, DType.FP32R))
        if self.opcode == TRANSPOSE and rng.random() < 0.7:
            return rng.choice(SIZES[1]), rng.choice(SIZES[1])  # 1024 elements and more: be quick
        return rng.choice(INPUTS), rng.choice(OUTPUTS)

    def _draw_ops(self, in_dtype: DType, out_dtype: DType) -> tuple[int, int, int]:
        rng, generation = self.rng, self.generation
        general = sorted(alu_ops.general_arith_ops(generation))
        if self.opcode == EXPONENTIAL:
            return AluOp.BYPASS, AluOp.BYPASS, 0
        if self.opcode in CACHE_OPCODES:
            return rng.choice(general), rng.choice(sorted(alu_ops.CACHE_REDUCE_OPS)), 0
        ops = general
        if self.opcode in BIT_OPCODES:
            ops = sorted(alu_ops.GENERAL_BITVEC_OPS)
        integer = sorted(alu_ops.dve_integer_ops(generation))
        both_integers = in_dtype in INTEGERS and out_dtype in INTEGERS
        if integer and both_integers and self.opcode in (0x43, 0x44, TRANSPOSE):
            ops = rng.choice([general, integer])
        while True:
            op0, op1 = rng.choice(ops), rng.choice([AluOp.BYPASS, *ops])
            if op0 == AluOp.BYPASS != op1 or not _shifts_fit(op0, op1, in_dtype):
                continue
            return op0, op1, rng.randrange(4)

    def _draw_count(self, channels: int, item_bytes: int) -> int:
        if self.opcode == TRANSPOSE:
            has_two_tiles = channels == 32 and self.rng.random() < 0.3
            return 64 if has_two_tiles and 64 * item_bytes <= DATA_BYTES else 32
        return self.rng.randint(1, max(2, min(self.longest_row, self.max_elements // channels)))

    def _draw_spaces(self, out_dtype: DType) -> tuple[str, str]:
        if self.generation.psum is None:
            return "sbuf", "sbuf"
        destination = ["sbuf", "sbuf", "psum"] if SIZE_OF[out_dtype] == 4 else ["sbuf"]
        return self.rng.choice(["sbuf", "sbuf", "psum"]), self.rng.choice(destination)

    def _partition(self, channels: int) -> int:
        if channels <= 32:
            return self.rng.choice([0, 32, 64, 96])
        return self.rng.choice([0, 64]) if channels <= 64 else 0

    def _local(self, space: str, partition: int, offset: int) -> int:
        if space == "psum":
            return PSUM_BASE + partition * PSUM_STRIDE + offset
        return partition * self.generation.sbuf.partition_stride + offset

    def _register_for(self, address: int) -> int:
        number = next(n for n in iter(lambda: self.rng.randrange(64), None) if self._is_free(n))
        self.registers[number] = address
        return number

    def _is_free(self, number: int) -> bool:
        return number not in self.registers

    def _pattern(
        self,
        space: str,
        partition: int,
        channels: int,
        dtype: DType,
        count: int,
        is_packed: bool,
        home: int,
    ) -> Pattern:
        """Return a direct or an indirect pattern of `count` elements.

        The index tensor of an indirect one starts in partition `home`, which must be in the
        quadrant of the source or of the source's index (isa-encoding.md 6.13).
        """
        rng = self.rng
        if self.generation.has_indirect and count <= 64 and rng.random() < 0.15:
            return self._indirect(space, partition, home, channels, dtype, count)
        return self._direct(space, partition, dtype, count, is_packed)

    def _direct(
        self, space: str, partition: int, dtype: DType, count: int, is_packed: bool
    ) -> Pattern:
        rng, size = self.rng, SIZE_OF[dtype]
        while True:
            counts = _factored(count, rng)
            steps = [rng.choice([1, 1, 1, 2, 0, -1, 3, -2, 5]) for _ in counts]
            if rng.random() < 0.5:
                steps = [1, counts[0], counts[0] * counts[1]]
            if is_packed and steps[0] == 1 and any(n % 2 for n in counts if n != 1):
                continue
            if is_packed and steps[0] == 1 and counts[0] % 2:
                continue
            spans = [step * (n - 1) * size for step, n in zip(steps, counts, strict=True)]
            low = -sum(min(span, 0) for span in spans)
            high = DATA_BYTES - size - sum(max(span, 0) for span in spans)
            if low > high:
                continue
            first, last = -(-low // size), high // size
            place = rng.randint(first, last)
            if rng.random() < 0.6:
                place = min(max(self.near // size + rng.randint(-3, 3), first), last)
            self.near = offset = place * size
            start = self._start(self._local(space, partition, offset), 0x00, 0x80)
            return Tensor3D(start=start, step=tuple(steps), num=tuple(counts))

    def _start(self, address: int, marker: int, register_marker: int) -> Address:
        if self.rng.random() < 0.2:
            number = self._register_for(address)
            return Address(partition_offset=number, marker=register_marker >> 5)
        return Address(partition_offset=address, marker=marker >> 5)

    def _indirect(
        self,
        space: str,
        partition: int,
        index_partition: int,
        channels: int,
        dtype: DType,
        count: int,
    ) -> Pattern:
        rng, size = self.rng, SIZE_OF[dtype]
        first = rng.randrange(0, DATA_BYTES // 2, size)
        most = (DATA_BYTES - first) // size - 1
        column = DATA_BYTES + 16 * len(self.indexes)
        groups = -(-channels // 16)
        index_address = self._local("sbuf", index_partition, column)
        offsets = [rng.randint(0, most) for _ in range(groups * count)]
        self.indexes.append((index_address, offsets))
        return Indirect16B(
            index=self._start(index_address, 0x20, 0xA0),
            data=Address.of(self._local(space, partition, first)),
            num_elem=count,
            reserved=0,
            padding=bytes(4),
        )

    def _scalar(
        self, channels: int, in_dtype: DType, is_bits: bool, command: int
    ) -> tuple[int, int]:
        rng, size = self.rng, SIZE_OF[in_dtype] if is_bits else 4
        source = 0 if self.opcode in POINTER_OPCODES else rng.choice([0, 0, 1, 2])
        if source == 0 and self.opcode not in POINTER_OPCODES:
            if is_bits:
                word = rng.choice([rng.randrange(40), rng.getrandbits(32)])
                return 0, word & ((1 << 8 * size) - 1)
            return 0, rng.choice(FLOATS) if rng.random() < 0.8 else rng.getrandbits(32)
        space = "sbuf" if self.generation.psum is None else rng.choice(["sbuf", "psum"])
        offset = rng.randrange(DATA_BYTES // size) * size
        address = self._local(space, self._partition(channels), offset)
        return source, self._register_for(address) if source == 2 else address


def _shifts_fit(op0: int, op1: int, dtype: DType) -> bool:
    """Rule 12 of dve-tensor-scalar.md 4.2: two kinds of shift need four bytes."""
    if SIZE_OF[dtype] == 4:
        return True
    left = op0 in (AluOp.ARITH_SHIFT_LEFT, AluOp.LOGICAL_SHIFT_LEFT)
    right = op1 in (AluOp.ARITH_SHIFT_RIGHT, AluOp.LOGICAL_SHIFT_RIGHT)
    return AluOp.ARITH_SHIFT_RIGHT not in (op0, op1) and not (left and right)


def _factored(count: int, rng: random.Random) -> list[int]:
    """Split a count over three dimensions."""
    first = rng.choice([n for n in range(1, count + 1) if count % n == 0])
    rest = count // first
    second = rng.choice([n for n in range(1, rest + 1) if rest % n == 0])
    factors = [first, second, rest // second]
    if rng.random() < 0.5:
        factors.sort(reverse=True)
    return factors


class WindowMemory(dict[int, int]):
    """The windows of all partitions as a mapping from local address to byte, read when asked."""

    def __init__(self, generation: Generation, windows: list[bytes]) -> None:
        super().__init__()
        self.windows = windows
        self.bases = [0, PSUM_BASE][: len(windows)]
        self.strides = [generation.sbuf.partition_stride, PSUM_STRIDE]

    def __missing__(self, address: int) -> int:
        space = len(self.bases) - 1 if address >= self.bases[-1] else 0
        partition, offset = divmod(address - self.bases[space], self.strides[space])
        if offset >= WINDOW:
            raise KeyError(address)
        # A few neighbours come along, which costs less than asking for each of them.
        first, start = address - offset % 32, partition * WINDOW + offset - offset % 32
        for place, value in enumerate(self.windows[space][start : start + 32], first):
            self.setdefault(place, value)
        return self[address]

    def after(self) -> list[np.ndarray]:
        """Return the windows with all that was written."""
        found = [np.frombuffer(window, np.uint8).copy() for window in self.windows]
        addresses = np.fromiter(self.keys(), np.int64, len(self))
        values = np.fromiter(self.values(), np.uint8, len(self))
        for space, base in enumerate(self.bases):
            is_here = (addresses >= base) & (space + 1 == len(found) or addresses < PSUM_BASE)
            partition, offset = np.divmod(addresses[is_here] - base, self.strides[space])
            assert (offset < WINDOW).all()
            found[space][partition * WINDOW + offset] = values[is_here]
        return found


@define(eq=False)
class Bench:
    """One machine that runs one word after the other, each compared with the plain one."""

    generation: Generation
    policy: Policy
    random: np.random.Generator = field(factory=lambda: np.random.default_rng(0))
    machine: Machine = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.machine = Machine(self.generation, self.policy)
        self.machine.preload("exp_and_others")

    def _spaces(self) -> list[np.ndarray]:
        return [space.data[:, :WINDOW] for space in self.machine.memory.spaces]

    def differs(self, case: Case) -> str | None:
        """Run a case on fresh bytes both ways; return what differs, None when all is equal."""
        self._fill(case)
        state = self.machine.engine(Engine.DVE)
        windows = [space.tobytes() for space in self._spaces()]
        core = PlainCore(
            generation=self.generation,
            policy=self.policy,
            formats=self.machine.formats,
            memory=WindowMemory(self.generation, windows),
            accumulator=state.accumulator.values.view(np.uint32).tolist(),
            undefined=state.accumulator.undefined.tolist(),
            registers=list(state.registers),
            profile=load_profile("exp"),
        )
        result = self.machine.run(Program.of(encode(case.word)))
        if result.fault is not None:
            return str(result.fault)
        execute(case.word, core)
        return self._difference(core)

    def _difference(self, core: PlainCore) -> str | None:
        memory = core.memory
        assert isinstance(memory, WindowMemory)
        for space, expected in zip(self.machine.memory.spaces, memory.after(), strict=True):
            bad = np.flatnonzero(space.data[:, :WINDOW].reshape(-1) != expected)
            if bad.size:
                partition, byte = divmod(int(bad[0]), WINDOW)
                found, wanted = space.data[partition, byte], expected[bad[0]]
                where = f"{space.name} partition {partition} byte {byte:#x}"
                return f"{where}: {found:#04x} instead of {wanted:#04x}"
        state = self.machine.engine(Engine.DVE).accumulator
        for lane, (word, plain_word) in enumerate(
            zip(state.values.view(np.uint32).tolist(), core.accumulator, strict=True)
        ):
            if word != plain_word:
                return f"accumulator {lane}: {word:#010x} instead of {plain_word:#010x}"
        if state.undefined.tolist() != core.undefined:
            return "the flags of undefined accumulators"
        return None

    def _fill(self, case: Case) -> None:
        """Fill windows, accumulators and registers; a few different values in most cases."""
        is_large = case.word.header.opcode == TRANSPOSE
        pool = self._pool(DType(case.word.in_dtype), 12)
        if is_large:  # three words, which are few values of any width
            pool = self.random.choice(pool, 12).view(np.uint32)[:3]
        for window in self._spaces():
            if self.random.random() < (0.03 if is_large else 0.4):
                window[...] = self.random.integers(0, 256, window.shape, dtype=np.uint8)
                continue
            picked = self.random.choice(pool, (128, WINDOW // pool.itemsize))
            window[...] = picked.view(np.uint8)
        state = self.machine.engine(Engine.DVE)
        values = self.random.choice(np.array(FLOATS, np.uint32), 128).view(np.float32)
        state.accumulator.values[...] = values
        state.accumulator.undefined[...] = self.random.random(128) < 0.5
        for number, address in case.registers.items():
            state.registers[number] = address
        for address, offsets in case.indexes:
            self._place_index(case, address, offsets)

    def _pool(self, dtype: DType, count: int) -> np.ndarray:
        """Return bits of some values of a dtype: telling floats or random ones."""
        size = SIZE_OF[dtype]
        if dtype == DType.FP32:
            return self.random.choice(np.array(FLOATS, np.uint32), count)
        return self.random.integers(0, 1 << 8 * size, count, dtype=np.uint64).astype(f"<u{size}")

    def _place_index(self, case: Case, address: int, offsets: list[int]) -> None:
        """Offset i of group g: partition 16 g + i mod 16, column i div 16 (isa-encoding.md 4.3)."""
        stride = self.generation.sbuf.partition_stride
        partition, byte = divmod(address, stride)
        count = len(offsets) // -(-case.word.num_active_channels // 16)
        words = self.machine.memory.sbuf.data.view("<u4")
        for position, offset in enumerate(offsets):
            group, element = divmod(position, count)
            words[partition + 16 * group + element % 16, byte // 4 + element // 16] = offset


_bench_of = cache(Bench)
"""Machines are used again: every word starts from fresh bytes, accumulators and registers."""


def first_difference(
    opcode: int,
    words: int,
    seed: int,
    *,
    generation: Generation = MARIANA,
    policy: Policy | None = None,
    **fixed: object,
) -> str | None:
    """Compare `words` generated words; return the first difference with its word, or None."""
    generator = Generator(opcode, random.Random(seed), generation, **fixed)  # type: ignore[arg-type]
    bench = _bench_of(generation, policy or Policy())
    bench.random = np.random.default_rng(seed)
    for number in range(words):
        case = generator.case()
        difference = bench.differs(case)
        if difference is not None:
            return f"word {number}: {difference}\n{case}\n{encode(case.word).hex(' ', 4)}"
    return None
