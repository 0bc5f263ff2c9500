"""S2D2_RS: RANGE_SELECT (dve-tensor-scalar.md 9.6 [observed])."""

from __future__ import annotations

from attrs import frozen

from neuron_emu.isa.enums import AccumulatorCommand, AluOp, ImmediateSource
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import DTypePair, Events, Header, Immediate, Tensor2D
from neuron_emu.isa.text import (
    Inexpressible,
    Operands,
    alu_op_text,
    enum_text,
    float_text,
    immediate_text,
    parse_float,
    pattern_text,
)

__all__ = ["FAMILY", "FILL_VALUE", "RANGE_SELECT", "RangeSelect"]

RANGE_SELECT = 0xBC
FILL_VALUE = 0xFF7FFFFF
"""The one legal fill value: the most negative finite float32."""


@frozen(kw_only=True)
class RangeSelect:
    """S2D2_RS: keep elements whose base + index lies within both bounds, else write the fill."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    num_active_channels: int = values("u8", 12, "partitions that take part")
    in_out_dtype: DTypePair = struct(13, DTypePair, "dtypes of src and dst")
    reduce_cmd: int = values("u8", 14, "accumulator command", enum=AccumulatorCommand)
    reduce_op: int = values("u8", 15, "MAX", enum=AluOp)
    base: int = values("u32", 16, "float32 bits, the index of the first element")
    fill_val: int = values("u32", 20, "float32 bits, what stands for an element out of range")
    src: Tensor2D = struct(24, Tensor2D, "source")
    comp_op0: int = values("u8", 36, "comparison with bound0", enum=AluOp)
    comp_op1: int = values("u8", 37, "comparison with bound1", enum=AluOp)
    bound0_src: int = values("u8", 38, "source of bound0", enum=ImmediateSource)
    bound1_src: int = values("u8", 39, "source of bound1", enum=ImmediateSource)
    bound0: Immediate = struct(40, Immediate, "first bound")
    bound1: Immediate = struct(44, Immediate, "second bound")
    dst: Tensor2D = struct(48, Tensor2D, "destination")
    reserved: bytes = raw(60, 4, "zero")


def _to_text(word: RangeSelect) -> list[str]:
    if any(word.reserved):
        raise Inexpressible("a reserved byte is not zero")
    tokens = [
        f"src={pattern_text(word.src, word.in_out_dtype.first)}",
        f"dst={pattern_text(word.dst, word.in_out_dtype.second)}",
        f"channels={word.num_active_channels}",
        f"base={float_text(word.base)}",
        f"ops={alu_op_text(word.comp_op0)},{alu_op_text(word.comp_op1)}",
        f"bound0={immediate_text(word.bound0_src, word.bound0)}",
        f"bound1={immediate_text(word.bound1_src, word.bound1)}",
    ]
    if word.fill_val != FILL_VALUE:
        tokens.append(f"fill={float_text(word.fill_val)}")
    if word.reduce_op != AluOp.MAX:
        tokens.append(f"reduce_op={alu_op_text(word.reduce_op)}")
    return [*tokens, f"accumulator_cmd={enum_text(AccumulatorCommand, word.reduce_cmd)}"]


def _from_text(opcode: int, operands: Operands) -> RangeSelect:
    in_dtype, src = operands.pattern("src", Tensor2D)
    out_dtype, dst = operands.pattern("dst", Tensor2D)
    comp_op0, comp_op1 = operands.alu_ops("ops", 2)
    bound0_src, bound0 = operands.immediate("bound0")
    bound1_src, bound1 = operands.immediate("bound1")
    fill = operands.pairs.pop("fill", f"{FILL_VALUE:#x}")
    operands.pairs.setdefault("reduce_op", AluOp.MAX.name)
    return RangeSelect(
        header=header_of(opcode),
        events=operands.take_events(),
        num_active_channels=operands.integer("channels", 0, 255),
        in_out_dtype=DTypePair(first=in_dtype, second=out_dtype),
        reduce_cmd=operands.name("accumulator_cmd", AccumulatorCommand, AccumulatorCommand.IDLE),
        reduce_op=operands.alu_ops("reduce_op", 1)[0],
        base=parse_float(operands.pairs.pop("base", "0"), "base"),
        fill_val=parse_float(fill, "fill"),
        src=src,
        comp_op0=comp_op0,
        comp_op1=comp_op1,
        bound0_src=bound0_src,
        bound1_src=bound1_src,
        bound0=bound0,
        bound1=bound1,
        dst=dst,
        reserved=bytes(4),
    )


FAMILY = Family(
    name="S2D2_RS",
    record=RangeSelect,
    opcodes=(RANGE_SELECT,),
    to_text=_to_text,
    from_text=_from_text,
)
