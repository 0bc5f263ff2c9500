"""S4D2_BN, S2_BN and S4D4_MR: batch-norm statistics and the search for eight values.

Source: dve-tensor-scalar.md 9.7, isa-encoding.md 9 [observed].
"""

from __future__ import annotations

from attrs import frozen

from neuron_emu.isa.enums import DType, ImmediateSource
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import Events, Header, Immediate, Tensor2D, Tensor4D
from neuron_emu.isa.text import (
    Inexpressible,
    Operands,
    float_text,
    immediate_text,
    parse_float,
    pattern_text,
)

__all__ = [
    "BN_AGGREGATE",
    "BN_FAMILY",
    "BN_STATS",
    "BN_STATS2",
    "FIND_INDEX8",
    "KEY_FAMILY",
    "MATCH_REPLACE8",
    "MATCH_VALUE_LOAD",
    "MAX8",
    "REPLACE_FAMILY",
    "TRANSPOSE_BN_STATS2",
    "BatchNorm",
    "KeyLoad",
    "MatchReplace",
]

BN_STATS = 0x60
BN_STATS2 = 0x61
BN_AGGREGATE = 0x62
MAX8 = 0x6C
MATCH_VALUE_LOAD = 0x6D
FIND_INDEX8 = 0x6E
MATCH_REPLACE8 = 0x6F
TRANSPOSE_BN_STATS2 = 0x82


@frozen(kw_only=True)
class BatchNorm:
    """S4D2_BN. The two counts are those that BN_STATS writes; other opcodes hold zero there."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    src: Tensor4D = struct(12, Tensor4D, "source")
    in_dtype: int = values("u8", 32, "dtype of the source", enum=DType)
    out_dtype: int = values("u8", 33, "dtype of the destination", enum=DType)
    num_active_channels: int = values("u8", 34, "partitions that take part")
    reserved0: bytes = raw(35, 5, "zero")
    even_count: int = values("u32", 40, "float32 bits, count of the even elements")
    odd_count: int = values("u32", 44, "float32 bits, count of the odd elements")
    dst: Tensor2D = struct(48, Tensor2D, "destination")
    reserved1: bytes = raw(60, 4, "zero")


@frozen(kw_only=True)
class KeyLoad:
    """S2_BN: a source alone; MATCH_VALUE_LOAD leaves both immediates zero."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    reserved0: bytes = raw(12, 4, "zero")
    src: Tensor2D = struct(16, Tensor2D, "source")
    imm1: Immediate = struct(28, Immediate, "second immediate")
    dtype: int = values("u8", 32, "dtype of the source", enum=DType)
    reserved1: bytes = raw(33, 1, "zero")
    num_active_channels: int = values("u8", 34, "partitions that take part")
    reserved2: bytes = raw(35, 9, "zero")
    imm0: Immediate = struct(44, Immediate, "first immediate")
    imm0_src: int = values("u8", 48, "source of imm0", enum=ImmediateSource)
    reserved3: bytes = raw(49, 15, "zero")


@frozen(kw_only=True)
class MatchReplace:
    """S4D4_MR: MATCH_REPLACE8."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    src: Tensor4D = struct(12, Tensor4D, "source")
    in_dtype: int = values("u8", 32, "dtype of the source", enum=DType)
    out_dtype: int = values("u8", 33, "dtype of the destination", enum=DType)
    num_active_channels: int = values("u8", 34, "partitions that take part")
    reserved0: bytes = raw(35, 5, "zero")
    immediate: int = values("u32", 40, "float32 bits, what replaces an element that matches")
    dst: Tensor4D = struct(44, Tensor4D, "destination")


def _batch_norm_to_text(word: BatchNorm) -> list[str]:
    if any(word.reserved0 + word.reserved1):
        raise Inexpressible("a reserved byte is not zero")
    tokens = [
        f"src={pattern_text(word.src, word.in_dtype)}",
        f"dst={pattern_text(word.dst, word.out_dtype)}",
        f"channels={word.num_active_channels}",
    ]
    if word.even_count or word.odd_count:
        tokens += [
            f"even_count={float_text(word.even_count)}",
            f"odd_count={float_text(word.odd_count)}",
        ]
    return tokens


def _batch_norm_from_text(opcode: int, operands: Operands) -> BatchNorm:
    in_dtype, src = operands.pattern("src", Tensor4D)
    out_dtype, dst = operands.pattern("dst", Tensor2D)
    return BatchNorm(
        header=header_of(opcode),
        events=operands.take_events(),
        src=src,
        in_dtype=in_dtype,
        out_dtype=out_dtype,
        num_active_channels=operands.integer("channels", 0, 255),
        reserved0=bytes(5),
        even_count=parse_float(operands.pairs.pop("even_count", "0"), "even_count"),
        odd_count=parse_float(operands.pairs.pop("odd_count", "0"), "odd_count"),
        dst=dst,
        reserved1=bytes(4),
    )


def _key_load_to_text(word: KeyLoad) -> list[str]:
    if any(word.reserved0 + word.reserved1 + word.reserved2 + word.reserved3):
        raise Inexpressible("a reserved byte is not zero")
    tokens = [
        f"src={pattern_text(word.src, word.dtype)}",
        f"channels={word.num_active_channels}",
    ]
    if word.imm0.word or word.imm0_src:
        tokens.append(f"imm0={immediate_text(word.imm0_src, word.imm0)}")
    if word.imm1.word:
        tokens.append(f"imm1={float_text(word.imm1.word)}")
    return tokens


def _key_load_from_text(opcode: int, operands: Operands) -> KeyLoad:
    dtype, src = operands.pattern("src", Tensor2D)
    imm0_src, imm0 = operands.immediate("imm0", default="0x0")
    return KeyLoad(
        header=header_of(opcode),
        events=operands.take_events(),
        reserved0=bytes(4),
        src=src,
        imm1=Immediate(word=parse_float(operands.pairs.pop("imm1", "0"), "imm1")),
        dtype=dtype,
        reserved1=bytes(1),
        num_active_channels=operands.integer("channels", 0, 255),
        reserved2=bytes(9),
        imm0=imm0,
        imm0_src=imm0_src,
        reserved3=bytes(15),
    )


def _match_replace_to_text(word: MatchReplace) -> list[str]:
    if any(word.reserved0):
        raise Inexpressible("a reserved byte is not zero")
    return [
        f"src={pattern_text(word.src, word.in_dtype)}",
        f"dst={pattern_text(word.dst, word.out_dtype)}",
        f"channels={word.num_active_channels}",
        f"imm={float_text(word.immediate)}",
    ]


def _match_replace_from_text(opcode: int, operands: Operands) -> MatchReplace:
    in_dtype, src = operands.pattern("src", Tensor4D)
    out_dtype, dst = operands.pattern("dst", Tensor4D)
    return MatchReplace(
        header=header_of(opcode),
        events=operands.take_events(),
        src=src,
        in_dtype=in_dtype,
        out_dtype=out_dtype,
        num_active_channels=operands.integer("channels", 0, 255),
        reserved0=bytes(5),
        immediate=parse_float(operands.take("imm", "0.000000").removeprefix("fp32@"), "imm"),
        dst=dst,
    )


BN_FAMILY = Family(
    name="S4D2_BN",
    record=BatchNorm,
    opcodes=(BN_STATS, BN_STATS2, BN_AGGREGATE, MAX8, FIND_INDEX8, TRANSPOSE_BN_STATS2),
    to_text=_batch_norm_to_text,
    from_text=_batch_norm_from_text,
)
KEY_FAMILY = Family(
    name="S2_BN",
    record=KeyLoad,
    opcodes=(0x64, MATCH_VALUE_LOAD, 0x70, 0x71),
    to_text=_key_load_to_text,
    from_text=_key_load_from_text,
)
REPLACE_FAMILY = Family(
    name="S4D4_MR",
    record=MatchReplace,
    opcodes=(MATCH_REPLACE8,),
    to_text=_match_replace_to_text,
    from_text=_match_replace_from_text,
)
