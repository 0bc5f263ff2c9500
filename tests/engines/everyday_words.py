"""Legal everyday DVE words at random, and one engine beside the plain implementation.

Words are legal by construction (dve-tensor-scalar.md 9): small patterns in a window of each
partition, so that sources, destinations and pointers often overlap, with zero and negative steps.
"""

from __future__ import annotations

import random
from collections.abc import MutableMapping
from typing import Any

import numpy as np
from attrs import define, field

from neuron_emu import Machine
from neuron_emu.engines.core import Problem
from neuron_emu.engines.kernels import KERNELS
from neuron_emu.engines.reference.search_words import run_search_word
from neuron_emu.engines.reference.words import PlainEngine, run_word
from neuron_emu.engines.search import INDICES, KEYS, Latch
from neuron_emu.engines.shuffle import MASK
from neuron_emu.generation import MARIANA
from neuron_emu.isa import alu_ops
from neuron_emu.isa.codec import decode, encode
from neuron_emu.isa.enums import AluOp, DType, Engine
from neuron_emu.isa.families import FAMILY_OF_OPCODE
from neuron_emu.isa.families.base import header_of
from neuron_emu.isa.layout import rows_of
from neuron_emu.isa.records import (
    Address,
    DTypePair,
    Events,
    Immediate,
    Indirect12B,
    Indirect16B,
    Indirect20B,
    Tensor2D,
    Tensor3D,
    Tensor4D,
)
from neuron_emu.policy import Policy

SIZES = {
    1: (DType.INT8, DType.UINT8, DType.FP8_EXP3, DType.FP8_EXP4, DType.FP8_EXP5),
    2: (DType.INT16, DType.UINT16, DType.BFLOAT16, DType.FP16),
    4: (DType.INT32, DType.UINT32, DType.FP32, DType.FP32R),
}
SIZE_OF = {dtype: size for size, dtypes in SIZES.items() for dtype in dtypes}
OUTPUTS = tuple(SIZE_OF)
INPUTS = tuple(dtype for dtype in OUTPUTS if dtype != DType.FP32R)
INTEGERS = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.UINT32)
CUMULATIVE = (DType.UINT8, DType.UINT16, DType.INT32, DType.UINT32)
SELECT_DATA = tuple(dtype for dtype in INPUTS if dtype not in (DType.INT32, DType.UINT32))
REPLACE_DTYPES = (
    *(DType.FP16, DType.BFLOAT16, DType.UINT8, DType.UINT16, DType.UINT32, DType.FP32),
    DType.INT32,
)
STATS_OUTPUTS = (DType.FP32, DType.BFLOAT16, DType.FP16)
FLOATS = (
    *(0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x40000000, 0x40490FDB, 0xC1200000),
    *(0x3F000000, 0x42C80000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFA00001, 0x00000001),
    *(0x7F7FFFFF, 0x4F000000, 0x33800000, 0xC2AE0000),
)
NO_EVENTS = Events(wait_mode=0, wait_idx=0, update_mode=0, update_idx=0, semaphore_value=0)
SBUF_STRIDE = MARIANA.sbuf.partition_stride
DATA_BYTES, INDEX_BYTES = 320, 32
WINDOW = DATA_BYTES + INDEX_BYTES
"""Bytes of each partition that words touch: data and pointers, then index tensors."""
INDIRECT = {2: Indirect12B, 3: Indirect16B, 4: Indirect20B}
TENSORS = {2: Tensor2D, 3: Tensor3D, 4: Tensor4D}
TILE_OPCODES = (0x6A, 0x6B, 0x82, 0x83, 0x84)
BIT_OPCODES = (0x51, 0x52, 0x5E, 0x84, 0x9E)


class WindowMemory(MutableMapping[int, int]):
    """The windows of all SBUF partitions as a mapping from local address to byte."""

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
        self.data = data

    def __getitem__(self, address: int) -> int:
        return int(self.data[address // SBUF_STRIDE, address % SBUF_STRIDE])

    def __setitem__(self, address: int, value: int) -> None:
        self.data[address // SBUF_STRIDE, address % SBUF_STRIDE] = value

    def __delitem__(self, address: int) -> None:
        raise KeyError(address)

    def __iter__(self):
        return iter(())

    def __len__(self) -> int:
        return self.data.size


@define
class Generator:
    """Makes legal records of one opcode; `channels` fixes what is otherwise drawn."""

    opcode: int
    rng: random.Random
    channels: int | None = None
    registers: dict[int, int] = field(factory=dict)
    indexes: list[tuple[int, list[int]]] = field(factory=list)
    allows_indirect: bool = True
    home: int = 0

    def record(self) -> Any:
        """Return the next record; `registers` and `indexes` are what it needs besides."""
        self.registers, self.indexes = {}, []
        record = FAMILY_OF_OPCODE[self.opcode].record
        lanes = self.channels or self._draw_channels()
        self.home = self._start(lanes)
        fields: dict[str, Any] = {
            "header": header_of(self.opcode),
            "events": NO_EVENTS,
            "num_active_channels": lanes,
        }
        fields |= getattr(self, f"_{self._kind()}")(lanes)
        for row in rows_of(record):
            if row.name not in fields:
                zero = Immediate(word=0) if row.record is Immediate else 0
                fields[row.name] = bytes(row.size) if row.kind == "raw" else zero
        names = {row.name for row in rows_of(record)}
        made = record(**{name: value for name, value in fields.items() if name in names})
        assert decode(encode(made), MARIANA) == made
        return made

    def _kind(self) -> str:
        return {
            **dict.fromkeys((0x41, 0x51), "tensor_tensor"),
            **dict.fromkeys((0x72, 0x99), "predicated"),
            **dict.fromkeys((0x42, 0x52, 0x83, 0x84), "reduce"),
            **dict.fromkeys((0x46, 0x47, 0x48, 0x6A, 0x6B), "move"),
            **dict.fromkeys((0x4E, 0x5E), "cumulative"),
            **dict.fromkeys((0x9D, 0x9E, 0xE5), "scalar_tensor_tensor"),
            0xEA: "select_reduce",
            0xBC: "range_select",
            0x98: "scalar_select",
            0x49: "memset",
            0xE9: "read_indices",
            **dict.fromkeys((0x60, 0x61, 0x82, 0x62), "batch_norm"),
            **dict.fromkeys((0x6C, 0x6E), "search"),
            0x6D: "key_load",
            0x6F: "replace",
            0x69: "mask",
        }[self.opcode]

    # --- pieces -------------------------------------------------------------------------------

    def _draw_channels(self) -> int:
        if self.opcode in TILE_OPCODES:
            return self.rng.choice([32, 32, 32, 32, 64, 96, 128])
        if self.rng.random() < 0.06:
            return self.rng.choice([16, 31, 32, 33, 64, 65, 96, 97, 128])
        return self.rng.choice([1, 1, 2, 3])

    def _start(self, lanes: int) -> int:
        if lanes > 64:
            return 0
        return self.rng.choice([0, 64] if lanes > 32 else [0, 32, 64, 96])

    def _count(self, lanes: int, *sizes: int) -> int:
        if self.opcode in TILE_OPCODES and self.opcode != 0x6A:
            return self.rng.choice([32, 64]) if max(sizes) < 4 else 32
        return self.rng.randint(1, 10 if lanes < 16 else 4)

    def _factors(self, count: int, dimensions: int) -> list[int]:
        counts = []
        for _ in range(dimensions - 1):
            divisors = [d for d in range(1, count + 1) if count % d == 0]
            counts.append(self.rng.choice(divisors))
            count //= counts[-1]
        return [*counts, count]

    def pattern(self, dimensions: int, dtype: DType, counts: list[int], home: int | None = None):
        """Return a direct pattern over `counts`, or sometimes a register form."""
        rng, size = self.rng, SIZE_OF[dtype]
        partition = self.home if home is None else home
        counts = [*counts, *[1] * (dimensions - len(counts))]
        while True:
            steps, span = [], 1
            for count in counts:
                steps.append(rng.choice([span, span, span, -span, 0, 1, -1, 2, span + 1]))
                span = max(span, abs(steps[-1]) * count)
            low = sum(min(s * (n - 1), 0) for s, n in zip(steps, counts, strict=True))
            high = sum(max(s * (n - 1), 0) for s, n in zip(steps, counts, strict=True))
            places = DATA_BYTES // size - (high - low)
            if places > 0:
                break
        offset = (rng.randrange(places) - low) * size
        start = self._address(partition * SBUF_STRIDE + offset)
        return TENSORS[dimensions](start=start, step=tuple(steps), num=tuple(counts))

    def _address(self, local: int) -> Address:
        if self.rng.random() < 0.1:
            register = self.rng.randrange(64)
            if register not in self.registers:
                self.registers[register] = local
                return Address(partition_offset=register, marker=4)
        return Address(partition_offset=local, marker=0)

    def operand(self, dimensions: int, dtype: DType, count: int, lanes: int):
        """Return a pattern of `count` elements, indirect now and then."""
        if self.allows_indirect and self.rng.random() < 0.08 and not self.indexes:
            return self._indirect(dimensions, dtype, count, lanes)
        return self.pattern(dimensions, dtype, self._factors(count, dimensions))

    def _indirect(self, dimensions: int, dtype: DType, count: int, lanes: int):
        size = SIZE_OF[dtype]
        index = self.home * SBUF_STRIDE + DATA_BYTES
        data = self.home * SBUF_STRIDE + size * self.rng.randrange(4)
        room = DATA_BYTES // size - 4
        offsets = [self.rng.randrange(room) for _ in range(16 * -(-lanes // 16) * INDEX_BYTES // 4)]
        self.indexes.append((index, offsets))
        padding = {} if dimensions == 2 else {"padding": bytes(4 * (dimensions - 2))}
        return INDIRECT[dimensions](
            index=Address(partition_offset=index, marker=1),
            data=Address(partition_offset=data, marker=0),
            num_elem=min(count, INDEX_BYTES // 4 * 16),
            reserved=0,
            **padding,
        )

    def _ops(self, number: int, *, arith: Any = None) -> list[int]:
        if self.opcode in BIT_OPCODES:
            return [self.rng.choice(sorted(alu_ops.GENERAL_BITVEC_OPS)) for _ in range(number)]
        ops = sorted(arith or alu_ops.general_arith_ops(MARIANA))
        return [self.rng.choice(ops) for _ in range(number)]

    def _scalar(self, dtype: DType, lanes: int) -> tuple[int, Immediate]:
        rng, size = self.rng, SIZE_OF[dtype]
        kind = rng.choice([0, 0, 1, 2])
        if kind == 0:
            word = rng.choice([*FLOATS, 0x40A00000, rng.getrandbits(32)])
            if self.opcode in BIT_OPCODES:
                word = rng.choice([rng.getrandbits(8 * size), rng.randrange(8 * size + 2)])
                word &= (1 << 8 * size) - 1
            return 0, Immediate(word=word)
        local = self._start(lanes) * SBUF_STRIDE + size * rng.randrange(DATA_BYTES // size)
        if kind == 1:
            return 1, Immediate(word=local)
        register = rng.randrange(64)
        self.registers[register] = local
        return 2, Immediate(word=register)

    # --- one method for each layout -----------------------------------------------------------

    def _tensor_tensor(self, lanes: int) -> dict[str, Any]:
        rng = self.rng
        if self.opcode in BIT_OPCODES:
            first = second = out = rng.choice(INTEGERS)
        else:
            first, second, out = rng.choice(INPUTS), rng.choice(INPUTS), rng.choice(OUTPUTS)
        op = self._ops(1)[0]
        if op == AluOp.ARITH_SHIFT_RIGHT and SIZE_OF[out] < 4:
            op = AluOp.LOGICAL_SHIFT_RIGHT
        return self._three(3, lanes, first, second, out) | {"op": op}

    def _three(
        self, dimensions: int, lanes: int, first: DType, second: DType, out: DType
    ) -> dict[str, Any]:
        count = self._count(lanes, 4)
        return {
            "src0": self.operand(dimensions, first, count, lanes),
            "src1": self.operand(dimensions, second, count, lanes),
            "dst": self.operand(dimensions, out, count, lanes),
            "in_dtype": DTypePair(first=first, second=second),
            "out_dtype": out,
        }

    def _predicated(self, lanes: int) -> dict[str, Any]:
        data = self.rng.choice(INPUTS)
        out = data if self.opcode == 0x72 else self.rng.choice(OUTPUTS)
        return self._three(3, lanes, self.rng.choice(INTEGERS), data, out)

    def _scalar_tensor_tensor(self, lanes: int) -> dict[str, Any]:
        rng = self.rng
        if self.opcode == 0x9E:
            first = second = out = rng.choice(INTEGERS)
        else:
            first, second, out = rng.choice(INPUTS), rng.choice(INPUTS), rng.choice(OUTPUTS)
        scalar_dtype = first if self.opcode == 0x9E else DType.FP32
        ops = self._ops(2)
        if SIZE_OF[out] < 4:
            right = AluOp.LOGICAL_SHIFT_RIGHT
            ops = [right if op == AluOp.ARITH_SHIFT_RIGHT else op for op in ops]
        source, scalar = self._scalar(scalar_dtype, lanes)
        return self._three(2, lanes, first, second, out) | {
            "op0": ops[0],
            "op1": ops[1],
            "reverse_operands": rng.randrange(4),
            "imm0_src": source,
            "imm0": scalar,
            "imm0_dtype": scalar_dtype,
        }

    def _select_reduce(self, lanes: int) -> dict[str, Any]:
        rng = self.rng
        source, scalar = self._scalar(DType.FP32, lanes)
        predicate, data, out = (rng.choice(d) for d in (INTEGERS, SELECT_DATA, OUTPUTS))
        return self._three(2, lanes, predicate, data, out) | {
            "op0": AluOp.BYPASS,
            "op1": AluOp.MAX,
            "reverse_operands": rng.randrange(2),
            "imm0_src": source,
            "imm0": scalar,
            "imm0_dtype": DType.FP32,
            "accumulator_cmd": rng.choice([0, 2, 3]),
        }

    def _range_select(self, lanes: int) -> dict[str, Any]:
        rng = self.rng
        self.allows_indirect = False
        in_dtype, out = rng.choice(INPUTS), rng.choice(OUTPUTS)
        count = self._count(lanes, 4)
        comparisons = (AluOp.IS_EQUAL, AluOp.IS_GT, AluOp.IS_GE, AluOp.IS_LE, AluOp.IS_LT)
        bounds = [self._scalar(DType.FP32, lanes) for _ in range(2)]
        return {
            "src": self.operand(2, in_dtype, count, lanes),
            "dst": self.operand(2, out, count, lanes),
            "in_out_dtype": DTypePair(first=in_dtype, second=out),
            "reduce_cmd": rng.choice([0, 2, 3]),
            "reduce_op": AluOp.MAX,
            "base": rng.choice([0, 0x3F800000, 0x44000000]),
            "fill_val": 0xFF7FFFFF,
            "comp_op0": rng.choice(comparisons),
            "comp_op1": rng.choice(comparisons),
            "bound0_src": bounds[0][0],
            "bound0": bounds[0][1],
            "bound1_src": bounds[1][0],
            "bound1": bounds[1][1],
        }

    def _scalar_select(self, lanes: int) -> dict[str, Any]:
        rng = self.rng
        dtype, count = rng.choice(INPUTS), self._count(lanes, 4)
        scalar_source, scalar = self._scalar(dtype, lanes)
        predicate_dtype = rng.choice(INPUTS)
        predicate_source, predicate = self._scalar(predicate_dtype, lanes)
        if predicate_source == 0:
            predicate_dtype, predicate = rng.choice(INTEGERS), Immediate(word=rng.randrange(2))
        return {
            "src0": self.operand(3, dtype, count, lanes),
            "dst": self.operand(3, dtype, count, lanes),
            "dtype": dtype,
            "reversed_pred": rng.randrange(2),
            "src1_imm_src": scalar_source,
            "src1_imm": scalar,
            "pred_imm_src": predicate_source,
            "pred_imm": predicate,
            "pred_imm_dtype": predicate_dtype,
        }

    def _move(self, lanes: int) -> dict[str, Any]:
        rng = self.rng
        in_dtype = rng.choice(INPUTS)
        out = rng.choice(OUTPUTS) if self.opcode in (0x47, 0x48) else in_dtype
        count = self._count(lanes, SIZE_OF[in_dtype], SIZE_OF[out])
        written = rng.randint(1, count) if self.opcode == 0x6B and rng.random() < 0.3 else count
        if self.opcode == 0x6B:
            self.allows_indirect = False
        return {
            "src": self.operand(4, in_dtype, count, lanes),
            "dst": self.operand(4, out, written, lanes),
            "in_dtype": in_dtype,
            "out_dtype": out,
            "op_dim": rng.choice([0, 2]),
        }

    def _reduce(self, lanes: int) -> dict[str, Any]:
        rng = self.rng
        if self.opcode in BIT_OPCODES:
            in_dtype = out = rng.choice(CUMULATIVE if self.opcode == 0x5E else INTEGERS)
        else:
            in_dtype, out = rng.choice(INPUTS), rng.choice(OUTPUTS)
        op = self._ops(1)[0]
        if op == AluOp.ARITH_SHIFT_RIGHT and SIZE_OF[out] < 4:
            op = AluOp.BITWISE_XOR
        self.allows_indirect = self.opcode in (0x42, 0x52)
        count = self._count(lanes, SIZE_OF[in_dtype], SIZE_OF[out])
        subdimension = rng.choice([2, 3, 4, 5])
        src = self.operand(4, in_dtype, count, lanes)
        length = count
        if not src.start.is_indirect:
            length = int(np.prod(src.num[: subdimension - 1]))
        self.allows_indirect = False
        return {
            "src": src,
            "dst": self.operand(4, out, count // length, lanes),
            "in_dtype": in_dtype,
            "out_dtype": out,
            "op": op,
            "op_dim": subdimension,
            "negated": 0 if self.opcode in BIT_OPCODES else rng.randrange(2),
        }

    def _cumulative(self, lanes: int) -> dict[str, Any]:
        found = self._reduce(lanes)
        count = found["src"].element_count
        dtype = DType(found["out_dtype"])
        return found | {"dst": self.operand(4, dtype, count, lanes), "negated": 0}

    def _memset(self, lanes: int) -> dict[str, Any]:
        dtype = self.rng.choice([d for d in OUTPUTS if d != DType.FP32R])
        dst = self.operand(4, dtype, self._count(lanes, 4), lanes)
        return {
            "dst": dst,
            "dtype": dtype,
            "dst_element_count": dst.element_count,
            "set_value": self.rng.getrandbits(8 * SIZE_OF[dtype]),
        }

    def _read_indices(self, lanes: int) -> dict[str, Any]:
        dtype = self.rng.choice([DType.UINT16, DType.UINT32])
        return {
            "dst": self.operand(4, dtype, 8, lanes),
            "dtype": dtype,
            "dst_element_count": 8,
        }

    def _batch_norm(self, lanes: int) -> dict[str, Any]:
        rng = self.rng
        written = {0x60: rng.choice([3, 6]), 0x61: 6, 0x82: 6, 0x62: 2}[self.opcode]
        in_dtype = rng.choice(INPUTS if self.opcode != 0x62 else STATS_OUTPUTS)
        out = rng.choice(STATS_OUTPUTS)
        count = rng.randint(2, 12) if self.opcode != 0x62 else 3 * rng.randint(1, 4)
        if self.opcode == 0x82:
            count = self._count(lanes, SIZE_OF[in_dtype])
        counts = {}
        if self.opcode != 0x62:
            counts = {"even_count": 0x40400000, "odd_count": rng.choice([0, 0x40400000])}
        return {
            "src": self.pattern(4, in_dtype, self._factors(count, 4)),
            "dst": self.pattern(2, out, self._factors(written, 2)),
            "in_dtype": in_dtype,
            "out_dtype": out,
            **counts,
        }

    def _search(self, lanes: int) -> dict[str, Any]:
        rng = self.rng
        in_dtype = rng.choice(INPUTS)
        out = rng.choice(OUTPUTS if self.opcode == 0x6C else [DType.UINT16, DType.UINT32])
        return {
            "src": self.pattern(4, in_dtype, self._factors(rng.randint(8, 24), 4)),
            "dst": self.pattern(2, out, self._factors(8, 2)),
            "in_dtype": in_dtype,
            "out_dtype": out,
        }

    def _key_load(self, lanes: int) -> dict[str, Any]:
        dtype = self.rng.choice(INPUTS)
        return {"src": self.pattern(2, dtype, self._factors(8, 2)), "dtype": dtype}

    def _replace(self, lanes: int) -> dict[str, Any]:
        in_dtype, out = self.rng.choice(REPLACE_DTYPES), self.rng.choice(REPLACE_DTYPES)
        count = self.rng.randint(1, 20)
        return {
            "src": self.pattern(4, in_dtype, self._factors(count, 4)),
            "dst": self.pattern(4, out, self._factors(count, 4)),
            "in_dtype": in_dtype,
            "out_dtype": out,
            "immediate": self.rng.choice(FLOATS),
        }

    def _mask(self, lanes: int) -> dict[str, Any]:
        rng = self.rng
        mask = tuple(rng.choice([*range(32), 255, 32 + rng.randrange(32)]) for _ in range(32))
        return {"mask": mask, "num_active_channels": lanes}


class Pair:
    """One engine of a machine and its plain twin, with the same bytes and state."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self.rng = random.Random(seed)
        self.machine = Machine(MARIANA, policy)
        self.state = self.machine.engine(Engine.DVE)
        self.data = np.zeros((128, WINDOW), np.uint8)
        lanes = MARIANA.num_channels
        self.plain = PlainEngine(
            memory=WindowMemory(self.data),
            generation=MARIANA,
            policy=policy,
            formats=self.machine.formats,
            registers=[0] * 64,
            accumulator=[0] * lanes,
            keys=[[0] * 8 for _ in range(lanes)],
            indices=[[0] * 8 for _ in range(lanes)],
            mask=bytes(32),
        )
        loaded = np.ones(lanes, np.bool_)
        self.state.latches[MASK] = bytes(32)
        self.state.latches[KEYS] = Latch(np.zeros((lanes, 8), np.float32), loaded)
        self.state.latches[INDICES] = Latch(np.zeros((lanes, 8), np.uint32), loaded)

    def refill(self) -> None:
        """Fill the window anew: floats that matter, small numbers, or any bytes."""
        rng = np.random.default_rng(self.rng.getrandbits(32))
        kind = self.rng.choice(["floats", "small", "bytes", "halves"])
        if kind == "floats":
            words = rng.choice(np.array(FLOATS, np.uint32), (128, WINDOW // 4))
            self.data[:] = words.view(np.uint8)
        elif kind == "small":
            self.data[:] = rng.integers(0, 4, (128, WINDOW), np.uint8)
        elif kind == "halves":
            values = rng.normal(0, 4, (128, WINDOW // 2)).astype(np.float16)
            self.data[:] = values.view(np.uint8)
        else:
            self.data[:] = rng.integers(0, 256, (128, WINDOW), np.uint8)
        self.machine.write(f"sbuf:0+0x0:uint8[128,{WINDOW}]", self.data)

    def run(self, generator: Generator) -> Any:
        """Make a word, execute it on both sides, and return the record."""
        record = generator.record()
        for number, value in generator.registers.items():
            self.state.registers[number] = self.plain.registers[number] = value
        for address, offsets in generator.indexes:
            self._place(address, offsets)
        self._execute(record)
        runner = run_search_word if record.header.opcode in SEARCH_OPCODES else run_word
        runner(record, self.plain)
        return record

    def _place(self, address: int, offsets: list[int]) -> None:
        partition, offset = divmod(address, SBUF_STRIDE)
        words = np.array(offsets, "<u4").reshape(-1, INDEX_BYTES // 4)
        lanes = min(len(words), 128 - partition)
        words = words[:lanes]
        self.data[partition : partition + lanes, offset:] = words.view(np.uint8)
        self.machine.write(f"sbuf:{partition}+{offset}:uint32[{lanes},{INDEX_BYTES // 4}]", words)

    def _execute(self, record: Any) -> None:
        prepared = KERNELS[record.header.opcode].prepare(record, self.state)
        assert not isinstance(prepared, Problem), (prepared, record)
        effects = prepared.execute()
        assert not isinstance(effects, Problem), (effects, record)
        assert prepared.stations(effects)
        for operand, bits in effects.writes:
            operand.write(bits)
        if effects.accumulator is not None:
            self.state.accumulator = effects.accumulator
        self.state.latches.update(effects.latches)

    def difference(self) -> str | None:
        """Return where the two sides differ, None when they agree to the byte."""
        found = self.machine.read(f"sbuf:0+0x0:uint8[128,{WINDOW}]")
        if not np.array_equal(found, self.data):
            lane, byte = (int(i[0]) for i in np.nonzero(found != self.data))
            return (
                f"byte {byte:#x} of lane {lane}: {found[lane, byte]} is not {self.data[lane, byte]}"
            )
        accumulator = self.state.accumulator.values.view(np.uint32).tolist()
        if accumulator != self.plain.accumulator:
            return "the accumulators differ"
        if self.state.latches[KEYS].values.view(np.uint32).tolist() != self.plain.keys:
            return "the keys differ"
        if self.state.latches[INDICES].values.tolist() != self.plain.indices:
            return "the indices differ"
        return None if self.state.latches[MASK] == self.plain.mask else "the masks differ"


SEARCH_OPCODES = frozenset((0x69, 0x6A, 0x6B, 0x6C, 0x6D, 0x6E, 0x6F, 0xE9, 0x60, 0x61, 0x62, 0x82))


def compare(opcode: int, number: int, *, policy: Policy | None = None, seed: int = 0) -> None:
    """Run `number` words of an opcode on both sides and compare every byte after each."""
    pair = Pair(policy or Policy(), 1000 * opcode + seed)
    for index in range(number):
        if index % 8 == 0:
            pair.refill()
        if opcode in (0x6E, 0x6F) and index % 2 == 0:
            pair.run(Generator(0x6D, pair.rng, channels=pair.rng.choice([4, 4, 4, 4, 128])))
        if opcode == 0xE9 and index % 8 == 0:
            pair.run(Generator(0x6F, pair.rng))
        if opcode == 0x6A and index % 3 == 0:
            pair.run(Generator(0x69, pair.rng))
        generator = Generator(opcode, pair.rng)
        record = pair.run(generator)
        problem = pair.difference()
        assert problem is None, f"word {index}, {problem}: {record}"
