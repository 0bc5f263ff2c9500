"""S2S2D2_STT: a scalar and two tensors (dve-tensor-scalar.md 9.5, isa-encoding.md 9 [observed])."""

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
    DTypePair,
    Events,
    Header,
    Immediate,
    Indirect12B,
    Pattern,
    Tensor2D,
    memory_pattern,
)
from neuron_emu.isa.text import (
    DTYPE_CODES,
    Inexpressible,
    Operands,
    alu_op_text,
    dtype_text,
    enum_text,
    immediate_text,
    pattern_text,
)

__all__ = [
    "FAMILY",
    "SCALAR_TENSOR_TENSOR",
    "SCALAR_TENSOR_TENSOR_BITVEC",
    "SELECT_REDUCE",
    "TENSOR_TENSOR_SCAN",
    "ScalarTensorTensor",
]

SCALAR_TENSOR_TENSOR = 0x9D
SCALAR_TENSOR_TENSOR_BITVEC = 0x9E
TENSOR_TENSOR_SCAN = 0xE5
SELECT_REDUCE = 0xEA
_BITS = "bits@"


@frozen(kw_only=True)
class ScalarTensorTensor:
    """S2S2D2_STT. Of SELECT_REDUCE src0 is the predicate, src1 the data, imm0 the other value."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    src0: Pattern = memory_pattern(12, 2, "first source")
    src1: Pattern = memory_pattern(24, 2, "second source")
    op0: int = values("u8", 36, "operation on src0 and the scalar", enum=AluOp)
    op1: int = values("u8", 37, "operation on that and src1", enum=AluOp)
    reverse_operands: int = values("u8", 38, "operands to swap", enum=ReverseOperands)
    imm0_src: int = values("u8", 39, "source of imm0", enum=ImmediateSource)
    in_dtype: DTypePair = struct(40, DTypePair, "dtypes of src0 and src1")
    out_dtype: int = values("u8", 41, "dtype of the destination", enum=DType)
    num_active_channels: int = values("u8", 42, "partitions that take part")
    imm0_dtype: int = values("u8", 43, "dtype of imm0", enum=DType)
    accumulator_cmd: int = values("u8", 44, "accumulator command", enum=AccumulatorCommand)
    reserved: bytes = raw(45, 3, "zero")
    dst: Pattern = memory_pattern(48, 2, "destination")
    imm0: Immediate = struct(60, Immediate, "the scalar")


def _scalar_text(word: ScalarTensorTensor) -> str:
    is_bitvec = word.header.opcode == SCALAR_TENSOR_TENSOR_BITVEC
    if is_bitvec and word.imm0_src == ImmediateSource.INSTRUCTION:
        return f"{_BITS}{word.imm0.word:#x}"
    return immediate_text(word.imm0_src, word.imm0, pointee=dtype_text(word.imm0_dtype))


def _to_text(word: ScalarTensorTensor) -> list[str]:
    if any(word.reserved):
        raise Inexpressible("a reserved byte is not zero")
    tokens = [
        f"src0={pattern_text(word.src0, word.in_dtype.first)}",
        f"src1={pattern_text(word.src1, word.in_dtype.second)}",
        f"dst={pattern_text(word.dst, word.out_dtype)}",
        f"ops={alu_op_text(word.op0)},{alu_op_text(word.op1)}",
        f"channels={word.num_active_channels}",
        f"imm={_scalar_text(word)}",
    ]
    if word.imm0_dtype != DType.FP32:
        tokens.append(f"imm_dtype={dtype_text(word.imm0_dtype)}")
    if word.reverse_operands:
        tokens.append(f"reverse_operands={enum_text(ReverseOperands, word.reverse_operands)}")
    if word.accumulator_cmd:
        tokens.append(f"accumulator_cmd={enum_text(AccumulatorCommand, word.accumulator_cmd)}")
    return tokens


def _scalar(operands: Operands) -> tuple[int, Immediate]:
    text = operands.pairs.get("imm", "")
    if text.startswith(_BITS):
        operands.pairs["imm"] = text.removeprefix(_BITS)
        word = operands.integer("imm", 0, 0xFFFFFFFF)
        return ImmediateSource.INSTRUCTION, Immediate(word=word)
    return operands.immediate("imm", default="0x0")


def _immediate_dtype(operands: Operands) -> int:
    word = operands.pairs.pop("imm_dtype", DType.FP32.word)
    if word in DTYPE_CODES:
        return DTYPE_CODES[word]
    raise InputError(f"imm_dtype must be one of {', '.join(DTYPE_CODES)}, not {word!r}")


def _from_text(opcode: int, operands: Operands) -> ScalarTensorTensor:
    dtype0, src0 = operands.pattern("src0", Tensor2D, Indirect12B)
    dtype1, src1 = operands.pattern("src1", Tensor2D, Indirect12B)
    out_dtype, dst = operands.pattern("dst", Tensor2D, Indirect12B)
    op0, op1 = operands.alu_ops("ops", 2)
    imm0_src, imm0 = _scalar(operands)
    return ScalarTensorTensor(
        header=header_of(opcode),
        events=operands.take_events(),
        src0=src0,
        src1=src1,
        op0=op0,
        op1=op1,
        reverse_operands=operands.name("reverse_operands", ReverseOperands, ReverseOperands.NONE),
        imm0_src=imm0_src,
        in_dtype=DTypePair(first=dtype0, second=dtype1),
        out_dtype=out_dtype,
        num_active_channels=operands.integer("channels", 0, 255),
        imm0_dtype=_immediate_dtype(operands),
        accumulator_cmd=operands.name(
            "accumulator_cmd", AccumulatorCommand, AccumulatorCommand.IDLE
        ),
        reserved=bytes(3),
        dst=dst,
        imm0=imm0,
    )


FAMILY = Family(
    name="S2S2D2_STT",
    record=ScalarTensorTensor,
    opcodes=(
        SCALAR_TENSOR_TENSOR,
        SCALAR_TENSOR_TENSOR_BITVEC,
        TENSOR_TENSOR_SCAN,
        SELECT_REDUCE,
    ),
    to_text=_to_text,
    from_text=_from_text,
)
