"""S4D4_TR: one tensor in, one out: reductions, scans, copies and shuffles.

Source: dve-tensor-scalar.md 9.3, isa-encoding.md 9 [observed].
"""

from __future__ import annotations

from enum import IntEnum

from attrs import frozen

from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import (
    Events,
    Header,
    Indirect20B,
    IndirectPattern,
    Pattern,
    Tensor4D,
    TensorPattern,
    memory_pattern,
)
from neuron_emu.isa.text import Inexpressible, Operands, alu_op_text, enum_text, pattern_text

__all__ = [
    "CAST",
    "COPY",
    "FAMILY",
    "RECIPROCAL",
    "STREAM_SHUFFLE",
    "STREAM_TRANSPOSE",
    "TENSOR_CUMULATIVE",
    "TENSOR_CUMULATIVE_BITVEC",
    "TENSOR_REDUCE",
    "TENSOR_REDUCE_BITVEC",
    "TRANSPOSE_TENSOR_REDUCE",
    "TRANSPOSE_TENSOR_REDUCE_BITVEC",
    "TensorReduce",
    "TensorSubdimension",
]

TENSOR_REDUCE = 0x42
COPY = 0x46
CAST = 0x47
RECIPROCAL = 0x48
TENSOR_CUMULATIVE = 0x4E
TENSOR_REDUCE_BITVEC = 0x52
TENSOR_CUMULATIVE_BITVEC = 0x5E
STREAM_SHUFFLE = 0x6A
STREAM_TRANSPOSE = 0x6B
TRANSPOSE_TENSOR_REDUCE = 0x83
TRANSPOSE_TENSOR_REDUCE_BITVEC = 0x84


class TensorSubdimension(IntEnum):
    """TENSOR_SUBDIM: the innermost dimensions that an operation covers (isa-encoding.md 7.1)."""

    UNUSED = 0
    X = 2
    XY = 3
    XYZ = 4
    XYZW = 5

    @property
    def dimensions(self) -> int:
        """How many dimensions it covers, 0 to 4."""
        return max(self.value - 1, 0)


@frozen(kw_only=True)
class TensorReduce:
    """S4D4_TR; fields that an opcode does not use are zero."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    src: Pattern = memory_pattern(12, 4, "source")
    in_dtype: int = values("u8", 32, "dtype of the source", enum=DType)
    out_dtype: int = values("u8", 33, "dtype of the destination", enum=DType)
    num_active_channels: int = values("u8", 34, "partitions that take part")
    negated: int = values("u8", 35, "1 negates what a reduction writes")
    op: int = values("u8", 36, "operation", enum=AluOp)
    op_dim: int = values("u8", 37, "dimensions that op covers", enum=TensorSubdimension)
    mask_enable: int = values("u8", 38, "1 for a partial tile of STREAM_TRANSPOSE")
    reserved1: bytes = raw(39, 5, "zero")
    dst: Pattern = memory_pattern(44, 4, "destination")


def _short_pattern_text(pattern: Pattern, dtype: int) -> str:
    """Leave out trailing dimensions of step 1, size 1, as the public STREAM_SHUFFLE line does."""
    if isinstance(pattern, IndirectPattern):
        return pattern_text(pattern, dtype)
    steps, counts = pattern.steps, pattern.counts
    while len(steps) > 1 and (steps[-1], counts[-1]) == (1, 1):
        steps, counts = steps[:-1], counts[:-1]
    return pattern_text(TensorPattern(start=pattern.start, step=steps, num=counts), dtype)


def _to_text(word: TensorReduce) -> list[str]:
    if any(word.reserved1):
        raise Inexpressible("a reserved byte is not zero")
    show = _short_pattern_text if word.header.opcode == STREAM_SHUFFLE else pattern_text
    tokens = [f"op={alu_op_text(word.op)}"] if word.op != AluOp.BYPASS else []
    tokens += [
        f"src={show(word.src, word.in_dtype)}",
        f"dst={show(word.dst, word.out_dtype)}",
        f"channels={word.num_active_channels}",
    ]
    if word.op_dim != TensorSubdimension.UNUSED:
        tokens.append(f"op_dim={enum_text(TensorSubdimension, word.op_dim)}")
    for name in ("negated", "mask_enable"):
        value = getattr(word, name)
        tokens += [f"{name}={value}"] if value else []
    return tokens


def _from_text(opcode: int, operands: Operands) -> TensorReduce:
    in_dtype, src = operands.pattern("src", Tensor4D, Indirect20B)
    out_dtype, dst = operands.pattern("dst", Tensor4D, Indirect20B)
    return TensorReduce(
        header=header_of(opcode),
        events=operands.take_events(),
        src=src,
        in_dtype=in_dtype,
        out_dtype=out_dtype,
        num_active_channels=operands.integer("channels", 0, 255),
        negated=operands.integer("negated", 0, 255, default=0),
        op=operands.alu_ops("op", 1)[0],
        op_dim=operands.name("op_dim", TensorSubdimension, TensorSubdimension.UNUSED),
        mask_enable=operands.integer("mask_enable", 0, 255, default=0),
        reserved1=bytes(5),
        dst=dst,
    )


FAMILY = Family(
    name="S4D4_TR",
    record=TensorReduce,
    opcodes=(
        TENSOR_REDUCE,
        COPY,
        CAST,
        RECIPROCAL,
        TENSOR_CUMULATIVE,
        TENSOR_REDUCE_BITVEC,
        TENSOR_CUMULATIVE_BITVEC,
        STREAM_SHUFFLE,
        STREAM_TRANSPOSE,
        TRANSPOSE_TENSOR_REDUCE,
        TRANSPOSE_TENSOR_REDUCE_BITVEC,
    ),
    to_text=_to_text,
    from_text=_from_text,
)
