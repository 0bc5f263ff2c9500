"""S2D2_AC and S1S2D2_AM: ACTIVATE2, and ACTIVATE_MULTIPASS, which only decodes.

Source: activation-tables.md 2.6 and 2.7 [observed]; the text form is ours, after operand-text.md 1.
Scalars that are zero in the word are not printed; one of another dtype than fp32 is `bits@0x3f80`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import AluOp, DType, ImmediateSource, ReverseOperands
from neuron_emu.isa.families.activation import (
    ActivationFunction,
    dtype_code,
    pattern_tokens,
    take_function,
    take_immediate,
)
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import (
    Events,
    Header,
    Immediate,
    Indirect12B,
    Pattern,
    Tensor1D,
    Tensor2D,
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

__all__ = [
    "ACTIVATE2",
    "ACTIVATE_MULTIPASS",
    "FAMILIES",
    "Activate2",
    "ActivateMultipass",
    "ReduceCommand",
]

ACTIVATE2 = 0x25
ACTIVATE_MULTIPASS = 0x26


class ReduceCommand(IntEnum):
    """REDUCE_CMD (activation-tables.md 2.1); LOAD_REDUCE is not one of ACTIVATE2."""

    IDLE = 0
    RESET = 1
    REDUCE = 2
    RESET_REDUCE = 3
    LOAD_REDUCE = 4


@frozen(kw_only=True)
class Activate2:
    """S2D2_AC: dst = f((src op0 imm0) op1 imm1), with an optional reduction."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    src: Pattern = memory_pattern(12, 2, "source")
    relu_param_src: int = values("u8", 24, "source of relu_param", enum=ImmediateSource)
    imm0_src: int = values("u8", 25, "source of imm0", enum=ImmediateSource)
    reduce_cmd: int = values("u8", 26, "reduction command", enum=ReduceCommand)
    imm1_src: int = values("u8", 27, "source of imm1", enum=ImmediateSource)
    imm_dtype: int = values("u8", 28, "dtype of imm0, imm1 and relu_param", enum=DType)
    op0: int = values("u8", 29, "first operation", enum=AluOp)
    op1: int = values("u8", 30, "second operation", enum=AluOp)
    reduce_op: int = values("u8", 31, "operation of the reduction", enum=AluOp)
    in_dtype: int = values("u8", 32, "dtype of the source", enum=DType)
    out_dtype: int = values("u8", 33, "dtype of the destination", enum=DType)
    num_active_channels: int = values("u8", 34, "partitions that take part")
    activation_func: int = values("u8", 35, "function", enum=ActivationFunction)
    imm0: Immediate = struct(36, Immediate, "first scalar")
    imm1: Immediate = struct(40, Immediate, "second scalar")
    relu_param: Immediate = struct(44, Immediate, "slope of PARAMETRIC_RELU")
    dst: Pattern = memory_pattern(48, 2, "destination")
    reverse_operands: int = values("u8", 60, "operands to swap", enum=ReverseOperands)
    reserved0: bytes = raw(61, 3, "zero")


@frozen(kw_only=True)
class ActivateMultipass:
    """S1S2D2_AM: a word of v5's header that nothing emits (activation-tables.md 2.7).

    The places of src and imm1_src are [inferred].
    """

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    src: Pattern = memory_pattern(12, 2, "source")
    imm0_src: int = values("u8", 24, "source of imm0", enum=ImmediateSource)
    reduce_cmd: int = values("u8", 25, "reduction command", enum=ReduceCommand)
    imm1_src: int = values("u8", 26, "source of imm1", enum=ImmediateSource)
    imm_dtype: int = values("u8", 27, "dtype of imm0 and imm1", enum=DType)
    op0: int = values("u8", 28, "first operation", enum=AluOp)
    op1: int = values("u8", 29, "second operation", enum=AluOp)
    reduce_op: int = values("u8", 30, "operation of the reduction", enum=AluOp)
    in_dtype: int = values("u8", 31, "dtype of the source", enum=DType)
    out_dtype: int = values("u8", 32, "dtype of the destination and of prev_pass", enum=DType)
    num_active_channels: int = values("u8", 33, "partitions that take part")
    activation_func: int = values("u8", 34, "function", enum=ActivationFunction)
    reverse_operands: int = values("u8", 35, "operands to swap", enum=ReverseOperands)
    imm0: Immediate = struct(36, Immediate, "first scalar")
    prev_pass: Tensor1D = struct(40, Tensor1D, "result of the pass before")
    dst: Pattern = memory_pattern(48, 2, "destination")
    imm1: Immediate = struct(60, Immediate, "second scalar")


def _scalar_tokens(word: Activate2 | ActivateMultipass, *names: str) -> list[str]:
    """Return the tokens of scalars that share imm_dtype; a zero in the word is not printed."""
    tokens = []
    for name in names:
        source, immediate = getattr(word, f"{name}_src"), getattr(word, name)
        if source != ImmediateSource.INSTRUCTION:
            text = immediate_text(source, immediate, pointee=dtype_text(word.imm_dtype))
        elif word.imm_dtype == DType.FP32:
            text = immediate_text(source, immediate)
        else:
            text = f"bits@{immediate.word:#x}"
        if (source, immediate.word) != (ImmediateSource.INSTRUCTION, 0):
            tokens.append(f"{name}={text}")
    return tokens


def _operation_tokens(word: Activate2 | ActivateMultipass) -> list[str]:
    tokens = [f"channels={word.num_active_channels}"]
    if (word.op0, word.op1) != (AluOp.BYPASS, AluOp.BYPASS):
        tokens.append(f"ops={alu_op_text(word.op0)},{alu_op_text(word.op1)}")
    if word.reverse_operands:
        tokens.append(f"reverse_operands={enum_text(ReverseOperands, word.reverse_operands)}")
    if word.imm_dtype != DType.FP32:
        tokens.append(f"imm_dtype={dtype_text(word.imm_dtype)}")
    return tokens


def _reduce_tokens(word: Activate2 | ActivateMultipass) -> list[str]:
    tokens = [f"reduce_cmd={enum_text(ReduceCommand, word.reduce_cmd)}"]
    return [*tokens, f"reduce_op={alu_op_text(word.reduce_op)}"] if word.reduce_op else tokens


def _activate2_text(word: Activate2) -> list[str]:
    if any(word.reserved0):
        raise Inexpressible("a reserved byte is not zero")
    return [
        enum_text(ActivationFunction, word.activation_func),
        *pattern_tokens(word.src, word.in_dtype, word.dst, word.out_dtype),
        *_operation_tokens(word),
        *_scalar_tokens(word, "imm0", "imm1", "relu_param"),
        *_reduce_tokens(word),
    ]


def _multipass_text(word: ActivateMultipass) -> list[str]:
    return [
        enum_text(ActivationFunction, word.activation_func),
        *pattern_tokens(word.src, word.in_dtype, word.dst, word.out_dtype),
        f"prev_pass={pattern_text(word.prev_pass, word.out_dtype)}",
        *_operation_tokens(word),
        *_scalar_tokens(word, "imm0", "imm1"),
        *_reduce_tokens(word),
    ]


def _take_shared(opcode: int, operands: Operands, *scalars: str) -> dict[str, Any]:
    """Take what ACTIVATE2 and ACTIVATE_MULTIPASS have in common, by field name."""
    in_dtype, src = operands.pattern("src", Tensor2D, Indirect12B)
    out_dtype, dst = operands.pattern("dst", Tensor2D, Indirect12B)
    imm_dtype = dtype_code("imm0", operands.pairs.pop("imm_dtype", "fp32"))
    op0, op1 = operands.alu_ops("ops", 2)
    (reduce_op,) = operands.alu_ops("reduce_op", 1)
    taken: dict[str, Any] = {}
    for name in scalars:
        taken[f"{name}_src"], taken[name] = take_immediate(operands, name, "0x0", imm_dtype)
    return taken | {
        "header": header_of(opcode),
        "events": operands.take_events(),
        "src": src,
        "reduce_cmd": operands.name("reduce_cmd", ReduceCommand, ReduceCommand.IDLE),
        "imm_dtype": imm_dtype,
        "op0": op0,
        "op1": op1,
        "reduce_op": reduce_op,
        "in_dtype": in_dtype,
        "out_dtype": out_dtype,
        "num_active_channels": operands.integer("channels", 0, 255),
        "activation_func": take_function(operands),
        "dst": dst,
        "reverse_operands": operands.name(
            "reverse_operands", ReverseOperands, ReverseOperands.NONE
        ),
    }


def _activate2_record(opcode: int, operands: Operands) -> Activate2:
    shared = _take_shared(opcode, operands, "imm0", "imm1", "relu_param")
    return Activate2(**shared, reserved0=bytes(3))


def _multipass_record(opcode: int, operands: Operands) -> ActivateMultipass:
    shared = _take_shared(opcode, operands, "imm0", "imm1")
    dtype, prev_pass = operands.pattern("prev_pass", Tensor1D)
    if dtype != shared["out_dtype"]:
        raise InputError("prev_pass must have the dtype of dst: the word holds one for both")
    return ActivateMultipass(**shared, prev_pass=prev_pass)


FAMILIES: tuple[Family, ...] = (
    Family(
        name="S2D2_AC",
        record=Activate2,
        opcodes=(ACTIVATE2,),
        to_text=_activate2_text,
        from_text=_activate2_record,
    ),
    Family(
        name="S1S2D2_AM",
        record=ActivateMultipass,
        opcodes=(ACTIVATE_MULTIPASS,),
        to_text=_multipass_text,
        from_text=_multipass_record,
    ),
)
