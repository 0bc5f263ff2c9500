"""S3D3_AC and S3D3_AQ: ACTIVATE and ACTIVATE_QUANTIZE, and what all ACT instructions share.

Source: activation-tables.md 2.2 and 2.3 [observed]; text: operand-text.md 1, whose two ACTIVATE
samples are printed byte for byte. What the samples leave out is ours: a bias of 0.0 in the word is
not printed, and `scale` and `imm` are printed together unless they are 1.0 and 0.
"""

from __future__ import annotations

from enum import IntEnum

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import (
    AccumulatorCommand,
    DType,
    ImmediateSource,
)
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import struct, values
from neuron_emu.isa.records import (
    DTypePair,
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
    enum_text,
    float_text,
    immediate_text,
    parse_integer,
    pattern_text,
    register_text,
)

__all__ = [
    "ACTIVATE",
    "ACTIVATE_QUANTIZE",
    "FAMILIES",
    "Activate",
    "ActivateQuantize",
    "ActivationFunction",
    "BiasSource",
    "dtype_code",
    "pattern_tokens",
    "take_function",
    "take_immediate",
]

ACTIVATE = 0x21
ACTIVATE_QUANTIZE = 0x22
_ONE = 0x3F800000


class BiasSource(IntEnum):
    """IMM_SRC_N: as IMM_SRC with 0 and 1 swapped (isa-encoding.md 7.1)."""

    POINTER = 0
    INSTRUCTION = 1
    REG_PTR = 2

    @property
    def plain(self) -> ImmediateSource:
        """The member of IMM_SRC with the same meaning."""
        return ImmediateSource[self.name]


class ActivationFunction(IntEnum):
    """The wire codes with a published name (activation-tables.md 4)."""

    IDENTITY = 1
    RELU = 2
    LEAKY_RELU = 3
    PARAMETRIC_RELU = 4
    SIGMOID = 5
    TANH = 6
    EXP = 7
    SQRT = 8
    SOFTPLUS = 9
    LN = 10
    SIN = 19
    ERF = 21
    DERIVATIVE_ERF = 22
    GELU = 23
    MISH = 24
    GELU_APPRX_TANH = 25
    GELU_APPRX_SIGMOID = 26
    ARCTAN = 28
    RECIPROCAL_SQRT = 29
    SQUARE = 30
    SIGN = 31
    DERIVATIVE_GELU = 32
    ABS = 33
    ABS_RECIPROCAL_SQRT = 34
    IS_FINITE = 35
    SILU = 36
    DERIVATIVE_SILU = 37
    DERIVATIVE_GELU_APPRX_SIGMOID = 38
    COPY = 128
    RECIPROCAL = 129
    MEMSET_ZERO = 130


@frozen(kw_only=True)
class Activate:
    """S3D3_AC: dst = f(src * scale + bias), with an optional running sum."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    imm_src: int = values("u8", 12, "source of imm", enum=ImmediateSource)
    scale_src: int = values("u8", 13, "source of scale_value", enum=ImmediateSource)
    accumulator_cmd: int = values("u8", 14, "accumulator command", enum=AccumulatorCommand)
    bias_src_n: int = values("u8", 15, "source of bias, 0 and 1 swapped", enum=BiasSource)
    src: Pattern = memory_pattern(16, 3, "source")
    in_bias_dtype: DTypePair = struct(32, DTypePair, "dtypes of the source and of the bias")
    out_dtype: int = values("u8", 33, "dtype of the destination", enum=DType)
    num_active_channels: int = values("u8", 34, "partitions that take part")
    activation_func: int = values("u8", 35, "function", enum=ActivationFunction)
    scale_value: Immediate = struct(36, Immediate, "multiplier, fp32")
    bias: Immediate = struct(40, Immediate, "addend; fp32 when it is in the word")
    imm: Immediate = struct(44, Immediate, "slope of PARAMETRIC_RELU, fp32")
    dst: Pattern = memory_pattern(48, 3, "destination")


@frozen(kw_only=True)
class ActivateQuantize:
    """S3D3_AQ: dst = quant_scale * f(src * dequant_scale + bias) + quant_zero."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    quant_scale_value: Immediate = struct(12, Immediate, "output multiplier, fp32")
    src: Pattern = memory_pattern(16, 3, "source")
    in_bias_dtype: DTypePair = struct(32, DTypePair, "dtypes of the source and of the bias")
    out_dtype: int = values("u8", 33, "dtype of the destination", enum=DType)
    num_active_channels: int = values("u8", 34, "partitions that take part")
    activation_func: int = values("u8", 35, "function", enum=ActivationFunction)
    dequant_scale_value: Immediate = struct(36, Immediate, "input multiplier, fp32")
    bias_addr: Immediate = struct(40, Immediate, "pointer to the bias of each partition")
    quant_zero_value: Immediate = struct(44, Immediate, "output addend, fp32")
    dst: Pattern = memory_pattern(48, 3, "destination")


# --- pieces of text ---------------------------------------------------------------------------


def take_function(operands: Operands) -> int:
    """Take the bare word that names the function; InputError lists the names."""
    name = operands.words.pop(0) if operands.words else ""
    if name in ActivationFunction.__members__:
        return ActivationFunction[name].value
    accepted = ", ".join(ActivationFunction.__members__)
    raise InputError(f"the function must be one of {accepted}, not {name or 'nothing'}")


def dtype_code(key: str, word: str) -> int:
    """Return the wire code of a dtype word; InputError names `key` otherwise."""
    if word not in DTYPE_CODES:
        raise InputError(f"the dtype of {key} must be one of {', '.join(DTYPE_CODES)}, not {word}")
    return DTYPE_CODES[word]


def _plain_immediate_text(source: int, immediate: Immediate) -> str:
    """Return an fp32 immediate as ACTIVATE prints it: without its dtype."""
    if source == ImmediateSource.POINTER:
        return f"[{immediate.word:#x}]"
    return immediate_text(source, immediate).removeprefix("fp32@")


def take_immediate(
    operands: Operands, key: str, default: str, dtype: int = DType.FP32
) -> tuple[int, Immediate]:
    """Take an immediate; InputError when a dtype is written with it that is not `dtype`.

    A value of another dtype than fp32 is written as its bits: `bits@0x3f80`.
    """
    text = operands.pairs.get(key, default).removeprefix("[")
    word, at, _ = text.partition("@")
    if dtype != DType.FP32 and word == "bits" and at:
        operands.pairs[key] = text.removeprefix("bits@")
        bits = operands.integer(key, 0, 0xFFFFFFFF)
        return ImmediateSource.INSTRUCTION, Immediate(word=bits)
    if at and word != dtype_text(dtype):
        raise InputError(f"{key} must be {dtype_text(dtype)}, not {word}")
    source, immediate = operands.immediate(key, default)
    if source == ImmediateSource.INSTRUCTION and dtype != DType.FP32 and immediate.word:
        raise InputError(f"{key} must be like bits@0x3f80 for {dtype_text(dtype)}, not {text}")
    return source, immediate


def _bias_tokens(source: int, bias: Immediate, dtype: int) -> list[str]:
    word = dtype_text(dtype)
    if source == BiasSource.POINTER:
        return [f"bias_ptr={word}@{bias.word:#x}"]
    if source == BiasSource.REG_PTR:
        if bias.register_reserved:
            raise Inexpressible("a register immediate has nonzero reserved bytes")
        return [f"bias_ptr={word}@{register_text(bias.register)}"]
    if source != BiasSource.INSTRUCTION:
        raise Inexpressible(f"bias source {source} has no form")
    value = float_text(bias.word)
    if dtype != DType.FP32:
        return [f"bias={word}@{value}"]
    return [f"bias={value}"] if bias.word else []


def _take_bias(operands: Operands) -> tuple[int, int, Immediate]:
    """Take `bias_ptr=dtype@pointer`, `bias=value` or nothing: source, dtype and the four bytes."""
    if "bias_ptr" in operands.pairs:
        word, _, text = operands.pairs["bias_ptr"].rpartition("@")
        dtype = dtype_code("bias_ptr", word or "fp32")
        if not text.startswith("$"):
            bias = Immediate(word=parse_integer(text, "bias_ptr", 0, 0xFFFFFFFF))
            del operands.pairs["bias_ptr"]
            return BiasSource.POINTER, dtype, bias
        operands.pairs["bias_ptr"] = text
        _, bias = operands.immediate("bias_ptr")
        return BiasSource.REG_PTR, dtype, bias
    word, _, text = operands.pairs.pop("bias", "0x0").rpartition("@")
    dtype = dtype_code("bias", word or "fp32")
    operands.pairs["bias"] = text
    source, bias = operands.immediate("bias")
    if source != ImmediateSource.INSTRUCTION:
        raise InputError(f"bias must be a value, not {text}; a pointer is bias_ptr=fp32@0x28490")
    return BiasSource.INSTRUCTION, dtype, bias


def pattern_tokens(src: Pattern, in_dtype: int, dst: Pattern, out_dtype: int) -> list[str]:
    """Return the tokens of source and destination."""
    return [f"src={pattern_text(src, in_dtype)}", f"dst={pattern_text(dst, out_dtype)}"]


# --- ACTIVATE ---------------------------------------------------------------------------------


def _activate_text(word: Activate) -> list[str]:
    dtypes = word.in_bias_dtype
    tokens = [
        enum_text(ActivationFunction, word.activation_func),
        *_bias_tokens(word.bias_src_n, word.bias, dtypes.second),
        *pattern_tokens(word.src, dtypes.first, word.dst, word.out_dtype),
        f"channels={word.num_active_channels}",
    ]
    scale, imm = (word.scale_src, word.scale_value.word), (word.imm_src, word.imm.word)
    if (scale, imm) != ((0, _ONE), (0, 0)):
        tokens.append(f"scale={_plain_immediate_text(word.scale_src, word.scale_value)}")
        tokens.append(f"imm={_plain_immediate_text(word.imm_src, word.imm)}")
    command = enum_text(AccumulatorCommand, word.accumulator_cmd)
    return [*tokens, f"accumulator_cmd={command}"]


def _activate_record(opcode: int, operands: Operands) -> Activate:
    in_dtype, src = operands.pattern("src", Tensor3D, Indirect16B)
    out_dtype, dst = operands.pattern("dst", Tensor3D, Indirect16B)
    bias_source, bias_dtype, bias = _take_bias(operands)
    scale_source, scale = take_immediate(operands, "scale", "1.0")
    imm_source, imm = take_immediate(operands, "imm", "0x0")
    return Activate(
        header=header_of(opcode),
        events=operands.take_events(),
        imm_src=imm_source,
        scale_src=scale_source,
        accumulator_cmd=operands.name(
            "accumulator_cmd", AccumulatorCommand, AccumulatorCommand.IDLE
        ),
        bias_src_n=bias_source,
        src=src,
        in_bias_dtype=DTypePair(first=in_dtype, second=bias_dtype),
        out_dtype=out_dtype,
        num_active_channels=operands.integer("channels", 0, 255),
        activation_func=take_function(operands),
        scale_value=scale,
        bias=bias,
        imm=imm,
        dst=dst,
    )


# --- ACTIVATE_QUANTIZE ------------------------------------------------------------------------


def _quantize_text(word: ActivateQuantize) -> list[str]:
    dtypes = word.in_bias_dtype
    return [
        enum_text(ActivationFunction, word.activation_func),
        *_bias_tokens(BiasSource.POINTER, word.bias_addr, dtypes.second),
        *pattern_tokens(word.src, dtypes.first, word.dst, word.out_dtype),
        f"channels={word.num_active_channels}",
        f"dequant_scale={float_text(word.dequant_scale_value.word)}",
        f"quant_scale={float_text(word.quant_scale_value.word)}",
        f"quant_zero={float_text(word.quant_zero_value.word)}",
    ]


def _take_float(operands: Operands, key: str, default: str) -> Immediate:
    text = operands.pairs.get(key, default)
    source, immediate = operands.immediate(key, default)
    if source != ImmediateSource.INSTRUCTION:
        raise InputError(f"{key} must be a value, not {text}")
    return immediate


def _quantize_record(opcode: int, operands: Operands) -> ActivateQuantize:
    in_dtype, src = operands.pattern("src", Tensor3D, Indirect16B)
    out_dtype, dst = operands.pattern("dst", Tensor3D, Indirect16B)
    if "bias_ptr" not in operands.pairs or "$" in operands.pairs["bias_ptr"]:
        raise InputError("bias_ptr must be like fp32@0x28490: the bias is always behind a pointer")
    _, bias_dtype, bias = _take_bias(operands)
    return ActivateQuantize(
        header=header_of(opcode),
        events=operands.take_events(),
        quant_scale_value=_take_float(operands, "quant_scale", "1.0"),
        src=src,
        in_bias_dtype=DTypePair(first=in_dtype, second=bias_dtype),
        out_dtype=out_dtype,
        num_active_channels=operands.integer("channels", 0, 255),
        activation_func=take_function(operands),
        dequant_scale_value=_take_float(operands, "dequant_scale", "1.0"),
        bias_addr=bias,
        quant_zero_value=_take_float(operands, "quant_zero", "0x0"),
        dst=dst,
    )


FAMILIES: tuple[Family, ...] = (
    Family(
        name="S3D3_AC",
        record=Activate,
        opcodes=(ACTIVATE,),
        to_text=_activate_text,
        from_text=_activate_record,
    ),
    Family(
        name="S3D3_AQ",
        record=ActivateQuantize,
        opcodes=(ACTIVATE_QUANTIZE,),
        to_text=_quantize_text,
        from_text=_quantize_record,
    ),
)
