"""S3D3_TS: EXPONENTIAL and the Tensor-Scalar opcodes (dve-tensor-scalar.md 3, 4 [observed])."""

from __future__ import annotations

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import (
    AccumulatorCommand,
    AluOp,
    DType,
    ImmediateSource,
    ReverseOperands,
)
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
    Inexpressible,
    Operands,
    alu_op_text,
    dtype_text,
    enum_text,
    immediate_text,
    pattern_text,
)

__all__ = ["BITVEC_OPCODES", "EXPONENTIAL", "FAMILY", "POINTER_OPCODES", "TensorScalar"]

EXPONENTIAL = 0x30
BITVEC_OPCODES = frozenset((0x53, 0x54))
"""Opcodes whose immediates are raw bits of in_dtype (dve-tensor-scalar.md 3.2)."""
POINTER_OPCODES = frozenset((0x44, 0x54))
"""Opcodes whose immediates are pointers although their sources are 0 (dve-tensor-scalar.md 4.3)."""


@frozen(kw_only=True)
class TensorScalar:
    """S3D3_TS, 64 bytes at the same offsets in every generation."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    accumulator_cmd: int = values("u8", 12, "accumulator command", enum=AccumulatorCommand)
    reserved0: bytes = raw(13, 3, "zero")
    src: Pattern = memory_pattern(16, 3, "source")
    in_dtype: int = values("u8", 32, "dtype of the source", enum=DType)
    out_dtype: int = values("u8", 33, "dtype of the destination", enum=DType)
    num_active_channels: int = values("u8", 34, "partitions that take part")
    imm0_src: int = values("u8", 35, "source of imm0", enum=ImmediateSource)
    op0: int = values("u8", 36, "first operation", enum=AluOp)
    op1: int = values("u8", 37, "second operation", enum=AluOp)
    reverse_operands: int = values("u8", 38, "operands to swap", enum=ReverseOperands)
    imm1_src: int = values("u8", 39, "source of imm1", enum=ImmediateSource)
    imm0: Immediate = struct(40, Immediate, "first scalar; max_value of EXPONENTIAL")
    imm1: Immediate = struct(44, Immediate, "second scalar; the seed of LOAD_ACCUMULATE")
    dst: Pattern = memory_pattern(48, 3, "destination")


def _scalar_text(word: TensorScalar, source: int, immediate: Immediate) -> str:
    is_bits = word.header.opcode in BITVEC_OPCODES
    if word.header.opcode in POINTER_OPCODES:
        if source != ImmediateSource.INSTRUCTION:
            raise Inexpressible("the source of a scalar that is always a pointer is not 0")
        pointee = dtype_text(word.in_dtype) if is_bits else "fp32"
        return immediate_text(ImmediateSource.POINTER, immediate, pointee=pointee)
    if is_bits:
        dtype = dtype_text(word.in_dtype)
        if source == ImmediateSource.INSTRUCTION:
            return f"bits@{immediate.word:#x}"
        return immediate_text(source, immediate, pointee=dtype)
    return immediate_text(source, immediate)


def _seed_tokens(word: TensorScalar) -> list[str]:
    """Return the text of imm1: the seed of an accumulating word, else the second scalar."""
    if word.accumulator_cmd == AccumulatorCommand.LOAD_ACCUMULATE:
        return [f"reduce_init={_scalar_text(word, word.imm1_src, word.imm1)}"]
    if word.imm1_src == ImmediateSource.INSTRUCTION and word.imm1.word == 0:
        return []
    if word.header.opcode == EXPONENTIAL:
        raise Inexpressible("imm1 without LOAD_ACCUMULATE")
    return [f"imm1={_scalar_text(word, word.imm1_src, word.imm1)}"]


def _to_text(word: TensorScalar) -> list[str]:
    if any(word.reserved0):
        raise Inexpressible("a reserved byte is not zero")
    tokens = [
        f"src={pattern_text(word.src, word.in_dtype)}",
        f"dst={pattern_text(word.dst, word.out_dtype)}",
        f"channels={word.num_active_channels}",
    ]
    if (word.op0, word.op1) != (AluOp.BYPASS, AluOp.BYPASS):
        tokens.append(f"ops={alu_op_text(word.op0)},{alu_op_text(word.op1)}")
    if word.reverse_operands:
        tokens.append(f"reverse_operands={enum_text(ReverseOperands, word.reverse_operands)}")
    name = "max_value" if word.header.opcode == EXPONENTIAL else "imm0"
    tokens.append(f"{name}={_scalar_text(word, word.imm0_src, word.imm0)}")
    command = enum_text(AccumulatorCommand, word.accumulator_cmd)
    return [*tokens, f"accumulator_cmd={command}", *_seed_tokens(word)]


def _scalar(operands: Operands, opcode: int, key: str) -> tuple[int, Immediate]:
    text = operands.pairs.get(key, "")
    if opcode in BITVEC_OPCODES - POINTER_OPCODES and text.startswith("bits@"):
        operands.pairs[key] = text.removeprefix("bits@")
        word = operands.integer(key, 0, 0xFFFFFFFF)
        return ImmediateSource.INSTRUCTION, Immediate(word=word)
    source, immediate = operands.immediate(key, default="0x0")
    if opcode not in POINTER_OPCODES:
        return source, immediate
    if text and source != ImmediateSource.POINTER:
        raise InputError(f"{key} must be a pointer such as [fp32@0xc000], not {text!r}")
    return ImmediateSource.INSTRUCTION, immediate


def _from_text(opcode: int, operands: Operands) -> TensorScalar:
    in_dtype, src = operands.pattern("src", Tensor3D, Indirect16B)
    out_dtype, dst = operands.pattern("dst", Tensor3D, Indirect16B)
    op0, op1 = operands.alu_ops("ops", 2)
    command = operands.name("accumulator_cmd", AccumulatorCommand, AccumulatorCommand.IDLE)
    first = "max_value" if opcode == EXPONENTIAL else "imm0"
    second = "imm1"
    if command == AccumulatorCommand.LOAD_ACCUMULATE or opcode == EXPONENTIAL:
        second = "reduce_init"
    imm0_src, imm0 = _scalar(operands, opcode, first)
    imm1_src, imm1 = _scalar(operands, opcode, second)
    return TensorScalar(
        header=header_of(opcode),
        events=operands.take_events(),
        accumulator_cmd=command,
        reserved0=bytes(3),
        src=src,
        in_dtype=in_dtype,
        out_dtype=out_dtype,
        num_active_channels=operands.integer("channels", 0, 255),
        imm0_src=imm0_src,
        op0=op0,
        op1=op1,
        reverse_operands=operands.name("reverse_operands", ReverseOperands, ReverseOperands.NONE),
        imm1_src=imm1_src,
        imm0=imm0,
        imm1=imm1,
        dst=dst,
    )


FAMILY = Family(
    name="S3D3_TS",
    record=TensorScalar,
    opcodes=(EXPONENTIAL, 0x43, 0x53, 0x44, 0x54, 0x93, 0x9A, 0xE6),
    to_text=_to_text,
    from_text=_from_text,
)
