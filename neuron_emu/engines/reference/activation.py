"""The ACT instructions as plain loops over bytes: the oracle of `engines.activation`.

A word is taken apart by its byte offsets (activation-tables.md 2.2, 2.3, 2.6), every element goes
alone through the affine stages, the function of `pwp.reference` and the conversion, and is written
before the next one is read. Evaluator `pwp` only, sums in serial order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, MutableMapping

from attrs import frozen

from neuron_emu.engines.reference.alu import float_op
from neuron_emu.engines.reference.conversion import (
    add_bits,
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
from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.numerics import NumberFormats
from neuron_emu.policy import Policy
from neuron_emu.pwp import reference as tables
from neuron_emu.pwp.profile import Profile

__all__ = ["PlainCore", "execute"]

_SIZES = {2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 2, 8: 4, 9: 4, 10: 4, 11: 4, 13: 1, 14: 1, 15: 1}
_VALUE, _POINTER, _REGISTER = 0, 1, 2
_PARAMETRIC, _RECIPROCAL = 4, 129
_IDENTITIES = {
    AluOp.ADD: 0x00000000,
    AluOp.MAX: 0xFF800000,
    AluOp.MIN: 0x7F800000,
    AluOp.ABS_MAX: 0x00000000,
    AluOp.ABS_MIN: 0x7F800000,
}


@frozen(kw_only=True)
class PlainCore:
    """What a word sees and changes.

    `memory` maps local addresses to bytes, `accumulator` holds float32 bits by lane, `profile`
    gives the table of a wire code.
    """

    memory: MutableMapping[int, int]
    registers: list[int]
    accumulator: list[int]
    core_version: int
    formats: NumberFormats
    policy: Policy
    profile: Callable[[int], Profile]

    def stride(self, address: int) -> int:
        """Return the distance between partitions of the memory that an address lies in."""
        if self.core_version >= 5:
            return 0x100000
        return 0x8000 if 0x2000000 <= address < 0x2400000 else 0x40000


def execute(word: bytes, core: PlainCore) -> None:
    """Run one legal ACTIVATE, ACTIVATE_QUANTIZE or ACTIVATE2 word."""
    {0x21: _activate, 0x22: _quantize, 0x25: _activate2}[word[0]](word, core)


def _u32(word: bytes, at: int) -> int:
    return int.from_bytes(word[at : at + 4], "little")


def _operand(data: bytes, dtype: int, channels: int, core: PlainCore) -> PlainOperand:
    """Read a MEM_PATTERN of 12 or 16 bytes."""
    dimensions = len(data) // 4 - 1
    first, *rest = struct.unpack(f"<I{dimensions}h{dimensions}H", data)
    from_register = first >> 31 == 1
    start = core.registers[first & 0xFF] if from_register else first & 0x1FFFFFFF
    size = _SIZES[dtype]
    if first >> 29 & 1 and core.core_version >= 4:
        data_address = _u32(data, 4)
        return indirect_operand(
            core.memory,
            start,
            data_address,
            int.from_bytes(data[8:10], "little"),
            size,
            channels,
            index_stride=core.stride(start),
            data_stride=core.stride(data_address),
            group_size=16,
        )
    steps, counts = rest[:dimensions], rest[dimensions:]
    return direct_operand(start, steps, counts, size, channels, core.stride(start))


def _scalar(source: int, bits: int, dtype: int, channels: int, core: PlainCore) -> list[int]:
    """Return the float32 bits of a scalar for each lane."""
    kind = DType(dtype)
    size = _SIZES[dtype]
    if source == _VALUE:
        return [to_float32_bits(bits % 256**size, kind, core.formats)] * channels
    start = core.registers[bits & 0xFF] if source == _REGISTER else bits
    return [
        to_float32_bits(
            read_value(core.memory, start + lane * core.stride(start), size), kind, core.formats
        )
        for lane in range(channels)
    ]


def _function(code: int, v: int, slope: int, core: PlainCore) -> int:
    if code != _PARAMETRIC:
        return tables.scalar(core.profile(code), v, core.policy.nan)
    if v & 0x7FFFFFFF > 0x7F800000:
        policy = core.policy
        by_table = policy.evaluator == "pwp" and policy.nan == "profile"
        stored = by_table or policy.evaluator == "silicon"
        return core.profile(code).nan_result if stored else v | 0x00400000
    return multiply_bits(slope, v) if v >> 31 or v == 0 else v


def _run(
    word: bytes,
    core: PlainCore,
    source: PlainOperand,
    destination: PlainOperand,
    in_dtype: int,
    function: Callable[[int, int], int],
    store: Callable[[int], int],
    fold: Callable[[int, int], int] | None,
) -> None:
    """Read, compute, write and fold element after element; `function` maps (x, lane)."""
    out_dtype = DType(word[33])
    for element in range(len(source.addresses[0])):
        results = []
        for lane, addresses in enumerate(source.addresses):
            stored = read_value(core.memory, addresses[element], source.item_bytes)
            x = to_float32_bits(stored, DType(in_dtype), core.formats)
            results.append(function(x, lane))
        for lane, (y, addresses) in enumerate(zip(results, destination.addresses, strict=True)):
            out = from_float32_bits(store(y), out_dtype, core.formats)
            write_value(core.memory, addresses[element], destination.item_bytes, out)
            if core.policy.acc_source == "after_conversion":
                y = to_float32_bits(out, out_dtype, core.formats)
            if fold is not None:
                core.accumulator[lane] = fold(core.accumulator[lane], y)


def _activate(word: bytes, core: PlainCore) -> None:
    imm_src, scale_src, command, bias_src_n = word[12:16]
    channels, code = word[34], word[35]
    in_dtype, bias_dtype = word[32] & 15, word[32] >> 4
    imm = _scalar(imm_src, _u32(word, 44), 10, channels, core)
    scale = _scalar(scale_src, _u32(word, 36), 10, channels, core)
    bias_src = (_POINTER, _VALUE, _REGISTER)[bias_src_n]
    if bias_src == _VALUE:
        bias_dtype = 10
    bias = _scalar(bias_src, _u32(word, 40), bias_dtype, channels, core)
    if code == _RECIPROCAL and core.core_version == 2:
        bias = imm if _u32(word, 44) else [0] * channels

    def function(x: int, lane: int) -> int:
        v = add_bits(multiply_bits(x, scale[lane]), bias[lane])
        return _function(code, v, imm[lane], core)

    for lane in range(channels):
        if command in (1, 3):
            core.accumulator[lane] = 0
        elif command == 4:
            core.accumulator[lane] = imm[lane]
    _run(
        word,
        core,
        _operand(word[16:32], in_dtype, channels, core),
        _operand(word[48:64], word[33], channels, core),
        in_dtype,
        function,
        lambda y: y,
        add_bits if command >= 2 else None,
    )


def _quantize(word: bytes, core: PlainCore) -> None:
    channels, code = word[34], word[35]
    in_dtype, bias_dtype = word[32] & 15, word[32] >> 4
    quant_scale, quant_zero, scale = (_u32(word, at) for at in (12, 44, 36))
    bias = _scalar(_POINTER, _u32(word, 40), bias_dtype, channels, core)

    def function(x: int, lane: int) -> int:
        return _function(code, add_bits(multiply_bits(x, scale), bias[lane]), 0, core)

    _run(
        word,
        core,
        _operand(word[16:32], in_dtype, channels, core),
        _operand(word[48:64], word[33], channels, core),
        in_dtype,
        function,
        lambda y: add_bits(multiply_bits(quant_scale, y), quant_zero),
        None,
    )


def _activate2(word: bytes, core: PlainCore) -> None:
    relu_src, imm0_src, command, imm1_src, imm_dtype, op0, op1, reduce_op = word[24:32]
    channels, code, reverse = word[34], word[35], word[60]
    imm0 = _scalar(imm0_src, _u32(word, 36), imm_dtype, channels, core)
    imm1 = _scalar(imm1_src, _u32(word, 40), imm_dtype, channels, core)
    relu = _scalar(relu_src, _u32(word, 44), imm_dtype, channels, core)

    def stage(op: int, x: int, scalar: int, is_reversed: bool) -> int:
        if op == AluOp.BYPASS:
            return x
        return float_op(op, *((scalar, x) if is_reversed else (x, scalar)), core.policy)

    def function(x: int, lane: int) -> int:
        t = stage(op0, x, imm0[lane], reverse in (1, 3))
        return _function(code, stage(op1, t, imm1[lane], reverse in (2, 3)), relu[lane], core)

    if command in (1, 3):
        core.accumulator[:channels] = [_IDENTITIES[AluOp(reduce_op)]] * channels
    _run(
        word,
        core,
        _operand(word[12:24], word[32], channels, core),
        _operand(word[48:60], word[33], channels, core),
        word[32],
        function,
        lambda y: y,
        (lambda acc, y: float_op(reduce_op, acc, y, core.policy)) if command >= 2 else None,
    )
