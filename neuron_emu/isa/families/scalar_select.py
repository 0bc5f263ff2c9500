"""S3D3_TS_SELECT: TENSOR_SCALAR_SELECT (dve-tensor-scalar.md 9.6 [observed]).

The word copies only, so its scalar is an element of the one dtype, bits and all [inferred].
"""

from __future__ import annotations

import re

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import DType, ImmediateSource
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import (
    Events,
    Header,
    Immediate,
    Indirect16B,
    Pattern,
    Tensor3D,
    memory_pattern,
)
from neuron_emu.isa.text import (
    DTYPE_CODES,
    Inexpressible,
    Operands,
    dtype_text,
    immediate_text,
    pattern_text,
)

__all__ = ["FAMILY", "TENSOR_SCALAR_SELECT", "ScalarSelect"]

TENSOR_SCALAR_SELECT = 0x98
_BITS = "bits@"


@frozen(kw_only=True)
class ScalarSelect:
    """S3D3_TS_SELECT: dst = pred ? src0 : src1_imm, with one predicate for each partition."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    reserved0: bytes = raw(12, 4, "zero")
    src0: Pattern = memory_pattern(16, 3, "source")
    reversed_pred: int = values("u8", 32, "1 swaps what is taken")
    num_active_channels: int = values("u8", 33, "partitions that take part")
    dtype: int = values("u8", 34, "dtype of src0, src1_imm and dst", enum=DType)
    pred_imm_dtype: int = values("u8", 35, "dtype of the predicate", enum=DType)
    reserved1: bytes = raw(36, 2, "zero")
    src1_imm_src: int = values("u8", 38, "source of src1_imm", enum=ImmediateSource)
    pred_imm_src: int = values("u8", 39, "source of pred_imm", enum=ImmediateSource)
    src1_imm: Immediate = struct(40, Immediate, "the scalar that stands in for src0")
    pred_imm: Immediate = struct(44, Immediate, "the predicate")
    dst: Pattern = memory_pattern(48, 3, "destination")


def _scalar_text(word: ScalarSelect) -> str:
    if word.src1_imm_src == ImmediateSource.INSTRUCTION and word.dtype != DType.FP32:
        return f"{_BITS}{word.src1_imm.word:#x}"
    return immediate_text(word.src1_imm_src, word.src1_imm, pointee=dtype_text(word.dtype))


def _predicate_tokens(word: ScalarSelect) -> list[str]:
    """Return the predicate with its dtype, which a pointer holds inside its brackets."""
    dtype = dtype_text(word.pred_imm_dtype)
    if word.pred_imm_src == ImmediateSource.INSTRUCTION:
        return [f"pred={word.pred_imm.word}", f"pred_dtype={dtype}"]
    text = immediate_text(word.pred_imm_src, word.pred_imm, pointee=dtype)
    is_pointer = word.pred_imm_src == ImmediateSource.POINTER
    return [f"pred={text}"] if is_pointer else [f"pred={text}", f"pred_dtype={dtype}"]


def _to_text(word: ScalarSelect) -> list[str]:
    if any(word.reserved0 + word.reserved1):
        raise Inexpressible("a reserved byte is not zero")
    tokens = [
        f"src0={pattern_text(word.src0, word.dtype)}",
        f"dst={pattern_text(word.dst, word.dtype)}",
        f"channels={word.num_active_channels}",
        f"src1={_scalar_text(word)}",
        *_predicate_tokens(word),
    ]
    return [*tokens, f"reversed_pred={word.reversed_pred}"] if word.reversed_pred else tokens


def _scalar(operands: Operands, dtype: int) -> tuple[int, Immediate]:
    text = operands.pairs.get("src1", "")
    if text.startswith(_BITS):
        operands.pairs["src1"] = text.removeprefix(_BITS)
        return ImmediateSource.INSTRUCTION, Immediate(word=operands.integer("src1", 0, 0xFFFFFFFF))
    source, immediate = operands.immediate("src1")
    if source == ImmediateSource.INSTRUCTION and dtype != DType.FP32:
        raise InputError(f"src1 must be bits like bits@0x3f80 for this dtype, not {text!r}")
    return source, immediate


def _predicate(operands: Operands) -> tuple[int, int, Immediate]:
    """Read dtype, source and value of the predicate."""
    text = operands.pairs.get("pred", "")
    pointee = re.match(r"\[(\w+)@", text)
    word = operands.pairs.pop("pred_dtype", pointee[1] if pointee else DType.UINT8.word)
    if word not in DTYPE_CODES:
        raise InputError(f"pred_dtype must be one of {', '.join(DTYPE_CODES)}, not {word!r}")
    if re.fullmatch(r"\d+|0[xX][0-9a-fA-F]+", text):
        value = Immediate(word=operands.integer("pred", 0, 0xFFFFFFFF))
        return DTYPE_CODES[word], ImmediateSource.INSTRUCTION, value
    source, immediate = operands.immediate("pred")
    if source == ImmediateSource.INSTRUCTION:
        raise InputError(f"pred must be 0, 1, [uint8@0x3000] or $R[5], not {text!r}")
    return DTYPE_CODES[word], source, immediate


def _from_text(opcode: int, operands: Operands) -> ScalarSelect:
    dtype, src0 = operands.pattern("src0", Tensor3D, Indirect16B)
    out_dtype, dst = operands.pattern("dst", Tensor3D, Indirect16B)
    if out_dtype != dtype:
        raise InputError(f"dst must be {dtype_text(dtype)} as src0, not {dtype_text(out_dtype)}")
    src1_imm_src, src1_imm = _scalar(operands, dtype)
    pred_imm_dtype, pred_imm_src, pred_imm = _predicate(operands)
    return ScalarSelect(
        header=header_of(opcode),
        events=operands.take_events(),
        reserved0=bytes(4),
        src0=src0,
        reversed_pred=operands.integer("reversed_pred", 0, 255, default=0),
        num_active_channels=operands.integer("channels", 0, 255),
        dtype=dtype,
        pred_imm_dtype=pred_imm_dtype,
        reserved1=bytes(2),
        src1_imm_src=src1_imm_src,
        pred_imm_src=pred_imm_src,
        src1_imm=src1_imm,
        pred_imm=pred_imm,
        dst=dst,
    )


FAMILY = Family(
    name="S3D3_TS_SELECT",
    record=ScalarSelect,
    opcodes=(TENSOR_SCALAR_SELECT,),
    to_text=_to_text,
    from_text=_from_text,
)
