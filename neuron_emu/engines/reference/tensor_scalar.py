"""The S3D3_TS family as plain loops over bytes and integers: the oracle of the worker.

`execute` runs one legal word of 0x30, 0x43, 0x44, 0x53, 0x54, 0x93, 0x9A or 0xE6 on a mapping of
bytes and a list of accumulators, both changed in place. It shares nothing with the engine but the
decoded record, and rounds to nearest even under every policy.

Sources: dve-tensor-scalar.md 3 to 7; isa-encoding.md 3, 4 and 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

from attrs import define, frozen

from neuron_emu.engines.reference.alu import IDENTITIES, bitvec_op, float_op, integer_op
from neuron_emu.engines.reference.conversion import (
    add_bits,
    from_float32_bits,
    subtract_bits,
    to_float32_bits,
)
from neuron_emu.engines.reference.memory import (
    PlainOperand,
    direct_operand,
    indirect_operand,
    read_value,
    write_value,
)
from neuron_emu.generation import Generation
from neuron_emu.isa.enums import AccumulatorCommand, AluOp, DType
from neuron_emu.isa.families.tensor_scalar import TensorScalar
from neuron_emu.isa.records import Immediate, IndirectPattern, Pattern
from neuron_emu.numerics import NumberFormats
from neuron_emu.policy import Policy
from neuron_emu.pwp import reference as pwp_reference
from neuron_emu.pwp.profile import Profile

__all__ = ["PlainCore", "execute"]

_SIZES = {
    **dict.fromkeys((DType.INT8, DType.UINT8), 1),
    **dict.fromkeys((DType.FP8_EXP3, DType.FP8_EXP4, DType.FP8_EXP5), 1),
    **dict.fromkeys((DType.INT16, DType.UINT16, DType.BFLOAT16, DType.FP16), 2),
    **dict.fromkeys((DType.INT32, DType.UINT32, DType.FP32, DType.FP32R), 4),
}
_SIGNED_BITS = {DType.INT8: 8, DType.INT16: 16, DType.INT32: 32}
_UNSIGNED_BITS = {DType.UINT8: 8, DType.UINT16: 16, DType.UINT32: 32}
_UNARY = (AluOp.BYPASS, AluOp.BITWISE_NOT, AluOp.ABS_VALUE, AluOp.RELU, AluOp.SQUARE)
_ACCUMULATES = (2, 3, 4)
_CANONICAL_NAN = 0x7FC0_0000
_TILE = 32


@define
class PlainCore:
    """What a word works on: memory by local address, float32 bits of 128 accumulators, registers.

    `undefined` are the flags of the accumulators, `profile` the table of EXPONENTIAL.
    """

    generation: Generation
    policy: Policy
    formats: NumberFormats
    memory: MutableMapping[int, int]
    accumulator: list[int]
    undefined: list[bool]
    registers: list[int]
    profile: Profile | None = None


@frozen
class _Scalars:
    """imm0 and imm1 of every lane, as unsigned integers."""

    first: list[int]
    second: list[int]


def execute(word: TensorScalar, core: PlainCore) -> None:
    """Execute one legal word."""
    opcode = word.header.opcode
    source = _operand(word.src, word.in_dtype, word.num_active_channels, core)
    destination = _operand(word.dst, word.out_dtype, word.num_active_channels, core)
    scalars = _scalars(word, core)
    if opcode == 0x30:
        _run_exponential(word, core, source, destination, scalars)
    elif opcode == 0x9A:
        _run_cache_reduce(word, core, source, destination, scalars)
    elif opcode == 0xE6:
        _run_cumulative(word, core, source, destination, scalars)
    elif opcode == 0x93:
        _run_transposed(word, core, source, destination, scalars)
    else:
        function = _two_stages(word, core)
        _run(core, source, destination, lambda lane, x: function(x, lane, scalars))


# --- operands ------------------------------------------------------------------------------------


def _operand(pattern: Pattern, dtype: int, channels: int, core: PlainCore) -> PlainOperand:
    size = _SIZES[DType(dtype)]
    start = pattern.start.partition_offset
    if pattern.start.marker & 4:
        start = core.registers[start % 256]
    if not isinstance(pattern, IndirectPattern):
        stride = _partition_stride(start, core.generation)
        return direct_operand(start, pattern.steps, pattern.counts, size, channels, stride)
    data = pattern.data.partition_offset
    return indirect_operand(
        core.memory,
        start,
        data,
        pattern.num_elem,
        size,
        channels,
        index_stride=core.generation.sbuf.partition_stride,
        data_stride=_partition_stride(data, core.generation),
        group_size=16,
    )


def _partition_stride(address: int, generation: Generation) -> int:
    if generation.psum is not None and address >= generation.psum.base:
        return generation.psum.partition_stride
    return generation.sbuf.partition_stride


def _scalars(word: TensorScalar, core: PlainCore) -> _Scalars:
    """Read both scalars of every lane, before anything is written."""
    is_bits = word.header.opcode in (0x53, 0x54)
    size = _SIZES[DType(word.in_dtype)] if is_bits else 4
    forced = word.header.opcode in (0x44, 0x54)
    found = []
    for source, immediate in ((word.imm0_src, word.imm0), (word.imm1_src, word.imm1)):
        found.append(_scalar(1 if forced else source, immediate, size, word, core))
    return _Scalars(*found)


def _scalar(
    source: int, immediate: Immediate, size: int, word: TensorScalar, core: PlainCore
) -> list[int]:
    lanes = range(word.num_active_channels)
    if source == 0:
        return [immediate.word % (1 << 8 * size) for _ in lanes]
    address = immediate.word if source == 1 else core.registers[immediate.word % 256]
    stride = _partition_stride(address, core.generation)
    return [read_value(core.memory, address + lane * stride, size) for lane in lanes]


def _run(
    core: PlainCore,
    source: PlainOperand,
    destination: PlainOperand,
    function: Callable[[int, int], int],
) -> None:
    """Read element i in all lanes, compute `function(lane, bits)`, write it, then go on."""
    for element in range(len(source.addresses[0])):
        results = []
        for lane, addresses in enumerate(source.addresses):
            bits = read_value(core.memory, addresses[element], source.item_bytes)
            results.append(function(lane, bits))
        for addresses, result in zip(destination.addresses, results, strict=True):
            write_value(core.memory, addresses[element], destination.item_bytes, result)


# --- two stages ----------------------------------------------------------------------------------

Function = Callable[[int, int, _Scalars], int]


def _two_stages(word: TensorScalar, core: PlainCore) -> Function:
    """Return the function from bits, lane and scalars to bits; equal inputs are computed once."""
    single = _bits_element if word.header.opcode in (0x53, 0x54) else _float_element
    if word.op0 >= 0xC4:
        single = _integer_element
    known: dict[tuple[int, int, int], int] = {}

    def function(x: int, lane: int, scalars: _Scalars) -> int:
        key = (x, scalars.first[lane], scalars.second[lane])
        if key not in known:
            known[key] = single(word, core, *key)
        return known[key]

    return function


def _stages(
    word: TensorScalar, x: int, s0: int, s1: int, operation: Callable[[int, int, int], int]
) -> int:
    """Return `(x op0 s0) op1 s1` with the operands of a stage swapped by its bit."""
    for op, scalar, bit in ((word.op0, s0, 1), (word.op1, s1, 2)):
        if op not in _UNARY and word.reverse_operands & bit:
            x = operation(op, scalar, x)
        else:
            x = operation(op, x, scalar)
    return x


def _float_element(word: TensorScalar, core: PlainCore, x: int, s0: int, s1: int) -> int:
    policy, formats = core.policy, core.formats
    bypasses = word.op0 == word.op1 == AluOp.BYPASS
    if bypasses and word.in_dtype == word.out_dtype and policy.ts_identity_hub == "raw":
        return x
    x = to_float32_bits(x, DType(word.in_dtype), formats)
    result = _stages(word, x, s0, s1, lambda op, a, b: float_op(op, a, b, policy))
    return from_float32_bits(result, DType(word.out_dtype), formats)


def _bits_element(word: TensorScalar, core: PlainCore, x: int, s0: int, s1: int) -> int:
    modulus = 1 << 8 * _SIZES[DType(word.in_dtype)]
    is_cut = core.policy.bitvec_stage_mask == "stage"

    def operation(op: int, a: int, b: int) -> int:
        result = bitvec_op(op, a, b, core.policy)
        return result % modulus if is_cut else result

    return _stages(word, x, s0, s1, operation) % modulus


def _integer_element(word: TensorScalar, core: PlainCore, x: int, s0: int, s1: int) -> int:
    """Sign-extend, compute in 32 bits, and store the low bits or the nearest end of the range."""
    signed_bits = _SIGNED_BITS.get(DType(word.in_dtype))
    if signed_bits is not None and x >= 2 ** (signed_bits - 1):
        x = x - 2**signed_bits + 2**32
    result = _stages(word, x, s0, s1, integer_op)
    out_dtype = DType(word.out_dtype)
    if core.policy.int_store == "saturate":
        if signed_bits is not None and result >= 2**31:
            result -= 2**32
        if out_dtype in _SIGNED_BITS:
            limit = 2 ** (_SIGNED_BITS[out_dtype] - 1)
            result = max(-limit, min(limit - 1, result))
        else:
            result = max(0, min(2 ** _UNSIGNED_BITS[out_dtype] - 1, result))
    return result % (1 << 8 * _SIZES[out_dtype])


def _run_transposed(
    word: TensorScalar,
    core: PlainCore,
    source: PlainOperand,
    destination: PlainOperand,
    scalars: _Scalars,
) -> None:
    """Read a block of 32 elements in all lanes, transpose each tile, compute, write the block."""
    function = _two_stages(word, core)
    lanes = len(source.addresses)
    for first in range(0, len(source.addresses[0]), _TILE):
        block = [
            [
                read_value(core.memory, source.addresses[lane][first + i], source.item_bytes)
                for i in range(_TILE)
            ]
            for lane in range(lanes)
        ]
        for i in range(_TILE):
            for lane in range(lanes):
                tile, row = lane // _TILE * _TILE, lane % _TILE
                result = function(block[tile + i][row], lane, scalars)
                address = destination.addresses[lane][first + i]
                write_value(core.memory, address, destination.item_bytes, result)


# --- words that accumulate -----------------------------------------------------------------------


def _start(word: TensorScalar, core: PlainCore, identity: int, scalars: _Scalars) -> None:
    """Set the accumulators that the word does not go on from, which makes them defined."""
    command = word.accumulator_cmd
    for lane in range(word.num_active_channels):
        if command == AccumulatorCommand.ZERO_ACCUMULATE:
            core.accumulator[lane] = identity
        elif command == AccumulatorCommand.LOAD_ACCUMULATE:
            core.accumulator[lane] = scalars.second[lane]
        if command != AccumulatorCommand.ACCUMULATE:
            core.undefined[lane] = False


def _fold(
    core: PlainCore, taken: list[list[int]], operation: Callable[[int, int], int], is_sum: bool
) -> None:
    """Fold the values of each lane into its accumulator; `operation` takes accumulator, value."""
    for lane, values in enumerate(taken):
        if is_sum and core.policy.acc_order == "pairs":
            even, odd = core.accumulator[lane], 0
            for position, value in enumerate(values):
                if position % 2 == 0:
                    even = operation(even, value)
                else:
                    odd = operation(odd, value)
            core.accumulator[lane] = add_bits(even, odd)
            continue
        for value in values:
            core.accumulator[lane] = operation(core.accumulator[lane], value)


def _run_exponential(
    word: TensorScalar,
    core: PlainCore,
    source: PlainOperand,
    destination: PlainOperand,
    scalars: _Scalars,
) -> None:
    policy, formats, profile = core.policy, core.formats, core.profile
    assert profile is not None
    in_dtype, out_dtype = DType(word.in_dtype), DType(word.out_dtype)
    known: dict[tuple[int, int], tuple[int, int]] = {}
    taken: list[list[int]] = [[] for _ in source.addresses]

    def function(lane: int, x: int) -> int:
        key = (x, scalars.first[lane])
        if key not in known:
            v = subtract_bits(to_float32_bits(x, in_dtype, formats), scalars.first[lane])
            result = pwp_reference.scalar(profile, v, policy.nan)
            stored = from_float32_bits(result, out_dtype, formats)
            if policy.acc_source == "after_conversion":
                result = to_float32_bits(stored, out_dtype, formats)
            known[key] = (stored, result)
        taken[lane].append(known[key][1])
        return known[key][0]

    _run(core, source, destination, function)
    if word.accumulator_cmd in _ACCUMULATES:
        _start(word, core, 0, scalars)
        _fold(core, taken, add_bits, True)
        return
    for lane in range(word.num_active_channels):
        core.undefined[lane] = True
        if policy.acc_idle == "nan":
            core.accumulator[lane] = _CANONICAL_NAN


def _run_cache_reduce(
    word: TensorScalar,
    core: PlainCore,
    source: PlainOperand,
    destination: PlainOperand,
    scalars: _Scalars,
) -> None:
    policy, formats = core.policy, core.formats
    in_dtype, out_dtype = DType(word.in_dtype), DType(word.out_dtype)
    taken: list[list[int]] = [[] for _ in source.addresses]

    def function(lane: int, x: int) -> int:
        result = float_op(
            word.op0, to_float32_bits(x, in_dtype, formats), scalars.first[lane], policy
        )
        stored = from_float32_bits(result, out_dtype, formats)
        if policy.acc_source == "after_conversion":
            result = to_float32_bits(stored, out_dtype, formats)
        taken[lane].append(result)
        return stored

    def operation(accumulator: int, value: int) -> int:
        if policy.sub_reduce_order == "value_first":
            return float_op(word.op1, value, accumulator, policy)
        return float_op(word.op1, accumulator, value, policy)

    _run(core, source, destination, function)
    _start(word, core, IDENTITIES[AluOp(word.op1)], scalars)
    _fold(core, taken, operation, word.op1 == AluOp.ADD)


def _run_cumulative(
    word: TensorScalar,
    core: PlainCore,
    source: PlainOperand,
    destination: PlainOperand,
    scalars: _Scalars,
) -> None:
    policy, formats = core.policy, core.formats
    _start(word, core, IDENTITIES[AluOp(word.op1)], scalars)

    def function(lane: int, x: int) -> int:
        x = to_float32_bits(x, DType(word.in_dtype), formats)
        result = float_op(word.op0, x, scalars.first[lane], policy)
        core.accumulator[lane] = float_op(word.op1, result, core.accumulator[lane], policy)
        return from_float32_bits(core.accumulator[lane], DType(word.out_dtype), formats)

    _run(core, source, destination, function)
