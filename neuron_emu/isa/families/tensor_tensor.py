"""S3S3D3_TT: operations on two tensors (dve-tensor-scalar.md 9.2, isa-encoding.md 9 [observed])."""

from __future__ import annotations

from attrs import frozen

from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import struct, values
from neuron_emu.isa.records import (
    DTypePair,
    Events,
    Header,
    Indirect16B,
    Pattern,
    Tensor3D,
    memory_pattern,
)
from neuron_emu.isa.text import Operands, alu_op_text, pattern_text

__all__ = [
    "BATCH_NORM_BACK_PROP",
    "CAST_PREDICATED",
    "COPY_PREDICATED",
    "FAMILY",
    "TENSOR_TENSOR",
    "TENSOR_TENSOR_BITVEC",
    "TensorTensor",
]

TENSOR_TENSOR = 0x41
TENSOR_TENSOR_BITVEC = 0x51
BATCH_NORM_BACK_PROP = 0x65
COPY_PREDICATED = 0x72
CAST_PREDICATED = 0x99
_SILENT_BYPASS = frozenset((BATCH_NORM_BACK_PROP, COPY_PREDICATED, CAST_PREDICATED))
"""Opcodes whose op is BYPASS, which their text leaves out."""


@frozen(kw_only=True)
class TensorTensor:
    """S3S3D3_TT: dst = src0 op src1; of the predicated copies src0 is the predicate."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    in_dtype: DTypePair = struct(12, DTypePair, "dtypes of src0 and src1")
    out_dtype: int = values("u8", 13, "dtype of the destination", enum=DType)
    op: int = values("u8", 14, "operation", enum=AluOp)
    num_active_channels: int = values("u8", 15, "partitions that take part")
    src0: Pattern = memory_pattern(16, 3, "first source")
    src1: Pattern = memory_pattern(32, 3, "second source")
    dst: Pattern = memory_pattern(48, 3, "destination")


def _to_text(word: TensorTensor) -> list[str]:
    tokens = [
        f"src0={pattern_text(word.src0, word.in_dtype.first)}",
        f"src1={pattern_text(word.src1, word.in_dtype.second)}",
        f"dst={pattern_text(word.dst, word.out_dtype)}",
        f"channels={word.num_active_channels}",
    ]
    if word.op == AluOp.BYPASS and word.header.opcode in _SILENT_BYPASS:
        return tokens
    return [f"op={alu_op_text(word.op)}", *tokens]


def _from_text(opcode: int, operands: Operands) -> TensorTensor:
    dtype0, src0 = operands.pattern("src0", Tensor3D, Indirect16B)
    dtype1, src1 = operands.pattern("src1", Tensor3D, Indirect16B)
    out_dtype, dst = operands.pattern("dst", Tensor3D, Indirect16B)
    return TensorTensor(
        header=header_of(opcode),
        events=operands.take_events(),
        in_dtype=DTypePair(first=dtype0, second=dtype1),
        out_dtype=out_dtype,
        op=operands.alu_ops("op", 1)[0],
        num_active_channels=operands.integer("channels", 0, 255),
        src0=src0,
        src1=src1,
        dst=dst,
    )


FAMILY = Family(
    name="S3S3D3_TT",
    record=TensorTensor,
    opcodes=(
        TENSOR_TENSOR,
        TENSOR_TENSOR_BITVEC,
        BATCH_NORM_BACK_PROP,
        COPY_PREDICATED,
        CAST_PREDICATED,
    ),
    to_text=_to_text,
    from_text=_from_text,
)
