"""Everyday DVE words as plain loops over bytes: the oracle of their handlers.

A `PlainEngine` holds the memory as a mapping from local address to byte and the state of an engine
as lists. Every function reads an element in all lanes, computes, writes it in all lanes, goes on
(dve-tensor-scalar.md 2.2). Floats travel as their 32 bits. Words are taken to be legal.

Sources: dve-tensor-scalar.md 9.2 to 9.6; NaNs, operations and conversions are those of the siblings
of this module, with which the fast engine shares nothing.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from attrs import define

from neuron_emu.engines.reference.alu import bitvec_op, float_op
from neuron_emu.engines.reference.conversion import (
    add_bits,
    divide_bits,
    from_float32_bits,
    multiply_bits,
    to_float32_bits,
)
from neuron_emu.engines.reference.memory import (
    PlainOperand,
    direct_operand,
    indirect_operand,
    read_value,
    write_value,
)
from neuron_emu.isa.enums import AccumulatorCommand, AluOp, DType, ImmediateSource

if TYPE_CHECKING:
    from neuron_emu.generation import Generation
    from neuron_emu.numerics import NumberFormats
    from neuron_emu.policy import Policy

__all__ = ["PlainEngine", "PlainStored", "run_word"]

_MINUS_ONE, _MINUS_INFINITY = 0xBF80_0000, 0xFF80_0000
_ONE = 0x3F80_0000
_UNARY = (AluOp.BYPASS, AluOp.BITWISE_NOT, AluOp.ABS_VALUE, AluOp.RELU, AluOp.SQUARE)
_BITVEC_OPCODES = (0x51, 0x52, 0x5E, 0x84, 0x9E)


@define
class PlainStored:
    """Addresses of the elements, and how to read and write them as float32 bits."""

    engine: PlainEngine
    operand: PlainOperand
    dtype: DType

    @property
    def count(self) -> int:
        """Elements in a lane."""
        return len(self.operand.addresses[0])

    def bits(self, lane: int, element: int) -> int:
        """Return one element as it is stored."""
        address = self.operand.addresses[lane][element]
        return read_value(self.engine.memory, address, self.operand.item_bytes)

    def float(self, lane: int, element: int) -> int:
        """Return one element as float32 bits."""
        return to_float32_bits(self.bits(lane, element), self.dtype, self.engine.formats)

    def put(self, lane: int, element: int, bits: int) -> None:
        """Store the low bits of a number."""
        address = self.operand.addresses[lane][element]
        write_value(self.engine.memory, address, self.operand.item_bytes, bits)

    def converted(self, value: int) -> int:
        """Return float32 bits in the dtype of this operand."""
        return from_float32_bits(value, self.dtype, self.engine.formats)


@define
class PlainEngine:
    """Memory and engine state; `accumulator` holds float32 bits, `mask` 32 bytes."""

    memory: MutableMapping[int, int]
    generation: Generation
    policy: Policy
    formats: NumberFormats
    registers: list[int]
    accumulator: list[int]
    keys: list[list[int]]
    indices: list[list[int]]
    mask: bytes

    def _stride(self, address: int) -> int:
        psum = self.generation.psum
        if psum is not None and psum.base <= address < psum.end:
            return psum.partition_stride
        return self.generation.sbuf.partition_stride

    def stored(self, pattern: Any, dtype: int, channels: int) -> PlainStored:
        """Resolve a pattern."""
        kind = DType(dtype)
        start = pattern.start.partition_offset
        if pattern.start.is_register:
            start = self.registers[pattern.start.register]
        if hasattr(pattern, "num_elem"):
            data = pattern.data.partition_offset
            operand = indirect_operand(
                self.memory,
                start,
                data,
                pattern.num_elem,
                kind.size_bytes,
                channels,
                index_stride=self._stride(start),
                data_stride=self._stride(data),
                group_size=self.generation.indirect_group_partitions,
            )
        else:
            operand = direct_operand(
                start,
                pattern.steps,
                pattern.counts,
                kind.size_bytes,
                channels,
                self._stride(start),
            )
        return PlainStored(self, operand, kind)

    def scalar_bits(self, source: int, word: int, dtype: int, channels: int) -> list[int]:
        """Return the scalar of each lane as it is stored, cut to the dtype's width."""
        size = DType(dtype).size_bytes
        if source == ImmediateSource.INSTRUCTION:
            return [word & ((1 << 8 * size) - 1)] * channels
        address = word if source == ImmediateSource.POINTER else self.registers[word & 0xFF]
        stride = self._stride(address)
        return [read_value(self.memory, address + i * stride, size) for i in range(channels)]

    def scalar_floats(self, source: int, word: int, dtype: int, channels: int) -> list[int]:
        """Return the scalar of each lane as float32 bits; one in the word is fp32."""
        if source == ImmediateSource.INSTRUCTION:
            return [word] * channels
        stored = self.scalar_bits(source, word, dtype, channels)
        return [to_float32_bits(bits, DType(dtype), self.formats) for bits in stored]


def _stage(op: int, stream: int, other: int, is_reversed: bool, engine: PlainEngine) -> int:
    if is_reversed and op not in _UNARY:
        return float_op(op, other, stream, engine.policy)
    return float_op(op, stream, other, engine.policy)


def _tensor_tensor(word: Any, engine: PlainEngine) -> None:
    lanes = word.num_active_channels
    first = engine.stored(word.src0, word.in_dtype.first, lanes)
    second = engine.stored(word.src1, word.in_dtype.second, lanes)
    destination = engine.stored(word.dst, word.out_dtype, lanes)
    for element in range(destination.count):
        results: list[int | None] = []
        for lane in range(lanes):
            if word.header.opcode == 0x41:
                a, b = first.float(lane, element), second.float(lane, element)
                results.append(destination.converted(float_op(word.op, a, b, engine.policy)))
            elif word.header.opcode == 0x51:
                a, b = first.bits(lane, element), second.bits(lane, element)
                results.append(bitvec_op(word.op, a, b, engine.policy))
            elif first.bits(lane, element) == 0:
                results.append(None)
            elif word.header.opcode == 0x72:
                results.append(second.bits(lane, element))
            else:
                results.append(destination.converted(second.float(lane, element)))
        _write(destination, element, results)


def _write(destination: PlainStored, element: int, results: list[int | None]) -> None:
    for lane, result in enumerate(results):
        if result is not None:
            destination.put(lane, element, result)


def _scalar_tensor_tensor(word: Any, engine: PlainEngine) -> None:
    lanes = word.num_active_channels
    first = engine.stored(word.src0, word.in_dtype.first, lanes)
    second = engine.stored(word.src1, word.in_dtype.second, lanes)
    destination = engine.stored(word.dst, word.out_dtype, lanes)
    swap0, swap1 = bool(word.reverse_operands & 1), bool(word.reverse_operands & 2)
    if word.header.opcode == 0x9E:
        scalars = engine.scalar_bits(word.imm0_src, word.imm0.word, first.dtype, lanes)
    else:
        scalars = engine.scalar_floats(word.imm0_src, word.imm0.word, word.imm0_dtype, lanes)
    for element in range(destination.count):
        results: list[int | None] = []
        for lane in range(lanes):
            if word.header.opcode == 0x9E:
                results.append(_bit_stages(word, engine, first, second, scalars, lane, element))
                continue
            a, b = first.float(lane, element), second.float(lane, element)
            value = _stage(word.op0, a, scalars[lane], swap0, engine)
            value = _stage(word.op1, value, b, swap1, engine)
            if word.header.opcode == 0xE5:
                scalars[lane] = value
            results.append(destination.converted(value))
        _write(destination, element, results)


def _bit_stages(
    word: Any,
    engine: PlainEngine,
    first: PlainStored,
    second: PlainStored,
    scalars: list[int],
    lane: int,
    element: int,
) -> int:
    width = (1 << 8 * first.operand.item_bytes) - 1
    value = first.bits(lane, element)
    others = (scalars[lane], second.bits(lane, element))
    for number, op in enumerate((word.op0, word.op1)):
        a, b = value, others[number]
        if word.reverse_operands >> number & 1 and op not in _UNARY:
            a, b = b, a
        value = bitvec_op(op, a, b, engine.policy)
        if engine.policy.bitvec_stage_mask == "stage":
            value &= width
    return value


def _move(word: Any, engine: PlainEngine) -> None:
    """COPY, CAST and RECIPROCAL."""
    lanes = word.num_active_channels
    source = engine.stored(word.src, word.in_dtype, lanes)
    destination = engine.stored(word.dst, word.out_dtype, lanes)
    for element in range(destination.count):
        results: list[int | None] = []
        for lane in range(lanes):
            if word.header.opcode == 0x46:
                results.append(source.bits(lane, element))
                continue
            value = source.float(lane, element)
            if word.header.opcode == 0x48:
                value = divide_bits(_ONE, value)
            results.append(destination.converted(value))
        _write(destination, element, results)


def _memset(word: Any, engine: PlainEngine) -> None:
    destination = engine.stored(word.dst, word.dtype, word.num_active_channels)
    for element in range(destination.count):
        for lane in range(word.num_active_channels):
            destination.put(lane, element, word.set_value)


def _run_length(word: Any) -> int:
    if hasattr(word.src, "num_elem"):
        return int(word.src.num_elem)
    length = 1
    for count in word.src.counts[: word.op_dim - 1]:
        length *= count
    return length


def _transposed(values: list[list[int]]) -> list[list[int]]:
    """Transpose each tile of 32 lanes and 32 elements (4.4)."""
    result = [row[:] for row in values]
    for lane, row in enumerate(values):
        for element, value in enumerate(row):
            to_lane = lane // 32 * 32 + element % 32
            result[to_lane][element // 32 * 32 + lane % 32] = value
    return result


def _reduce(word: Any, engine: PlainEngine) -> None:
    lanes = word.num_active_channels
    source = engine.stored(word.src, word.in_dtype, lanes)
    destination = engine.stored(word.dst, word.out_dtype, lanes)
    length = _run_length(word)
    is_bitvec = word.header.opcode in _BITVEC_OPCODES
    block = 32 if word.header.opcode in (0x83, 0x84) else 1
    totals = [0] * lanes
    for start in range(0, source.count, block):
        rows = [[source.bits(lane, start + i) for i in range(block)] for lane in range(lanes)]
        if block == 32:
            rows = _transposed(rows)
        for i in range(block):
            place = (start + i) % length
            for lane in range(lanes):
                value = rows[lane][i]
                if not is_bitvec:
                    value = to_float32_bits(value, source.dtype, engine.formats)
                if place == 0:
                    totals[lane] = value
                elif is_bitvec:
                    totals[lane] = bitvec_op(word.op, totals[lane], value, engine.policy)
                else:
                    totals[lane] = float_op(word.op, totals[lane], value, engine.policy)
            if place == length - 1:
                for lane in range(lanes):
                    value = totals[lane]
                    if not is_bitvec:
                        value = multiply_bits(value, _MINUS_ONE) if word.negated else value
                        value = destination.converted(value)
                    destination.put(lane, (start + i) // length, value)


def _cumulative(word: Any, engine: PlainEngine) -> None:
    lanes = word.num_active_channels
    source = engine.stored(word.src, word.in_dtype, lanes)
    destination = engine.stored(word.dst, word.out_dtype, lanes)
    length = _run_length(word)
    is_bitvec = word.header.opcode == 0x5E
    totals = [0] * lanes
    for element in range(source.count):
        for lane in range(lanes):
            value = source.bits(lane, element) if is_bitvec else source.float(lane, element)
            if element % length:
                operation: Callable[..., int] = bitvec_op if is_bitvec else float_op
                value = operation(word.op, totals[lane], value, engine.policy)
            totals[lane] = value
        for lane in range(lanes):
            value = totals[lane]
            destination.put(lane, element, value if is_bitvec else destination.converted(value))


def _accumulate(engine: PlainEngine, lane: int, value: int) -> None:
    engine.accumulator[lane] = float_op(AluOp.MAX, value, engine.accumulator[lane], engine.policy)


def _select(
    engine: PlainEngine,
    command: int,
    destination: PlainStored,
    choose: Callable[[int, int], int],
) -> None:
    """Write what `choose(lane, element)` returns, as float32 bits, and keep its maximum."""
    lanes = len(destination.operand.addresses)
    if command == AccumulatorCommand.ZERO_ACCUMULATE:
        engine.accumulator[:lanes] = [_MINUS_INFINITY] * lanes
    for element in range(destination.count):
        selected = [choose(lane, element) for lane in range(lanes)]
        for lane, value in enumerate(selected):
            bits = destination.converted(value)
            destination.put(lane, element, bits)
            if command == AccumulatorCommand.IDLE:
                continue
            taken = value
            if engine.policy.acc_source == "after_conversion":
                taken = to_float32_bits(bits, destination.dtype, engine.formats)
            _accumulate(engine, lane, taken)


def _select_reduce(word: Any, engine: PlainEngine) -> None:
    lanes = word.num_active_channels
    predicate = engine.stored(word.src0, word.in_dtype.first, lanes)
    data = engine.stored(word.src1, word.in_dtype.second, lanes)
    destination = engine.stored(word.dst, word.out_dtype, lanes)
    scalars = engine.scalar_floats(word.imm0_src, word.imm0.word, word.imm0_dtype, lanes)

    def choose(lane: int, element: int) -> int:
        is_true = predicate.bits(lane, element) != 0
        if word.reverse_operands == 1:
            is_true = not is_true
        return data.float(lane, element) if is_true else scalars[lane]

    _select(engine, word.accumulator_cmd, destination, choose)


def _range_select(word: Any, engine: PlainEngine) -> None:
    lanes = word.num_active_channels
    source = engine.stored(word.src, word.in_out_dtype.first, lanes)
    destination = engine.stored(word.dst, word.in_out_dtype.second, lanes)
    bounds = [
        engine.scalar_floats(word.bound0_src, word.bound0.word, DType.FP32, lanes),
        engine.scalar_floats(word.bound1_src, word.bound1.word, DType.FP32, lanes),
    ]

    def choose(lane: int, element: int) -> int:
        place = to_float32_bits(element, DType.UINT32, engine.formats)
        index = add_bits(word.base, place)
        for op, bound in zip((word.comp_op0, word.comp_op1), bounds, strict=True):
            if not float_op(op, index, bound[lane], engine.policy):
                return int(word.fill_val)
        return source.float(lane, element)

    _select(engine, word.reduce_cmd, destination, choose)


def _scalar_select(word: Any, engine: PlainEngine) -> None:
    lanes = word.num_active_channels
    source = engine.stored(word.src0, word.dtype, lanes)
    destination = engine.stored(word.dst, word.dtype, lanes)
    scalars = engine.scalar_bits(word.src1_imm_src, word.src1_imm.word, word.dtype, lanes)
    dtype = DType(word.pred_imm_dtype)
    predicates = engine.scalar_bits(word.pred_imm_src, word.pred_imm.word, dtype, lanes)
    if dtype.is_float:
        # Without the sign bit both zeros are 0, and nothing else is.
        sign = 1 << 8 * dtype.size_bytes - 1
        predicates = [bits & (sign - 1) for bits in predicates]
    for element in range(destination.count):
        results: list[int | None] = []
        for lane in range(lanes):
            takes_scalar = (predicates[lane] == 0) != (word.reversed_pred == 1)
            results.append(scalars[lane] if takes_scalar else source.bits(lane, element))
        _write(destination, element, results)


_RUNNERS: dict[int, Callable[[Any, PlainEngine], None]] = {
    **dict.fromkeys((0x41, 0x51, 0x72, 0x99), _tensor_tensor),
    **dict.fromkeys((0x9D, 0x9E, 0xE5), _scalar_tensor_tensor),
    **dict.fromkeys((0x46, 0x47, 0x48), _move),
    **dict.fromkeys((0x42, 0x52, 0x83, 0x84), _reduce),
    **dict.fromkeys((0x4E, 0x5E), _cumulative),
    0x49: _memset,
    0xEA: _select_reduce,
    0xBC: _range_select,
    0x98: _scalar_select,
}


def run_word(record: Any, engine: PlainEngine) -> None:
    """Execute one decoded word; KeyError for an opcode without a plain form here."""
    _RUNNERS[record.header.opcode](record, engine)
