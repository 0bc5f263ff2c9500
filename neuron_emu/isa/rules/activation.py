"""Rules of ACTIVATE and ACTIVATE_QUANTIZE, and those that ACTIVATE2 shares with them.

Source: activation-tables.md 2.2, 2.3 and 2.6. No page prints the names of the conjuncts; leaf names
are used where a leaf is known and plain names elsewhere. What S3D3_TS states about operands is
stated here by the same functions.
"""

from __future__ import annotations

from typing import Any

from neuron_emu.isa.enums import DType, ImmediateSource
from neuron_emu.isa.families.activation import (
    ACTIVATE,
    ACTIVATE_QUANTIZE,
    ActivationFunction,
    BiasSource,
)
from neuron_emu.isa.families.activation2 import ACTIVATE2
from neuron_emu.isa.rules import operands, quadrants
from neuron_emu.isa.rules.core import Example, Review, rule
from neuron_emu.isa.rules.dtypes import (
    INPUT_DTYPES,
    OUTPUT_DTYPES,
    describe_dtype,
    dtype_list,
)
from neuron_emu.isa.rules.operands import GATHER, INDIRECT_GENERATIONS, SCATTER, check_operand
from neuron_emu.isa.rules.predicates import (
    implies,
    operand_of,
)
from neuron_emu.isa.rules.scalars import check_pointer, check_register_number, check_scalar
from neuron_emu.policy import Policy

__all__ = ["BIAS_DTYPES"]

OPCODES = (ACTIVATE, ACTIVATE_QUANTIZE, ACTIVATE2)
PAIRED = (ACTIVATE, ACTIVATE_QUANTIZE)
"""Opcodes whose source and bias dtypes share a byte."""
BIAS_DTYPES = frozenset((DType.FP32, DType.BFLOAT16, DType.FP16))
QUANTIZE_INPUTS = frozenset((DType.FP32, DType.INT32))
COMMANDS = frozenset(range(5))
QUADRANT_1 = 32 * 0x40000
_SUNDA = 2
_EMITTER = Policy(act_imm_src="emitter")

# --- dtypes -----------------------------------------------------------------------------------


def _in_dtype(r: Review) -> Any:
    return r["in_dtype"] if r.opcode == ACTIVATE2 else r["in_bias_dtype"] & 0xF


def _in_path(r: Review) -> str:
    return "in_dtype" if r.opcode == ACTIVATE2 else "in_bias_dtype.first"


def _bias_dtype(r: Review) -> Any:
    return r["in_bias_dtype"] >> 4


def _legal_inputs(r: Review) -> frozenset[int]:
    return QUANTIZE_INPUTS if r.opcode == ACTIVATE_QUANTIZE else INPUT_DTYPES


def _legal_outputs(r: Review) -> frozenset[int]:
    return frozenset((DType.UINT8,)) if r.opcode == ACTIVATE_QUANTIZE else OUTPUT_DTYPES


@rule(
    "NE0501",
    "is_valid_dtype",
    opcodes=OPCODES,
    source="activation-tables.md 2.2, 2.3, 2.6",
    tag="observed",
    examples=(
        Example(path="in_bias_dtype", good=0xA6, bad=0xAB),
        Example(path="in_bias_dtype", good=0xA8, bad=0xA2, opcode=ACTIVATE_QUANTIZE),
        Example(path="in_dtype", good=DType.FP8_EXP4, bad=DType.FP32R, opcode=ACTIVATE2),
    ),
)
def activation_in_dtype(r: Review) -> None:
    """The source dtype must be one that the datapath reads; ACTIVATE_QUANTIZE reads FP32 and INT32.

    See NE0104 for what the others read; FP32R is for destinations only.
    """
    legal = _legal_inputs(r)
    path = _in_path(r)
    r.require(
        r.one_of(_in_dtype(r), legal),
        path,
        f"one of {dtype_list(legal)}",
        actual=lambda: describe_dtype(r, path),
    )


@rule(
    "NE0502",
    "is_valid_dtype",
    opcodes=OPCODES,
    source="activation-tables.md 2.2, 2.3, 2.6",
    tag="observed",
    examples=(
        Example(path="out_dtype", good=DType.FP32R, bad=DType.INT64),
        Example(path="out_dtype", good=DType.UINT8, bad=DType.INT8, opcode=ACTIVATE_QUANTIZE),
    ),
)
def activation_out_dtype(r: Review) -> None:
    """The destination dtype must be one that the datapath writes, for ACTIVATE_QUANTIZE UINT8."""
    legal = _legal_outputs(r)
    r.require(
        r.one_of(r["out_dtype"], legal),
        "out_dtype",
        f"one of {dtype_list(legal)}",
        actual=lambda: describe_dtype(r, "out_dtype"),
    )


# --- scalars ----------------------------------------------------------------------------------


@rule(
    "NE0503",
    "activation_bias",
    opcodes=PAIRED,
    source="activation-tables.md 2.2, 2.3",
    tag="observed",
    examples=(
        Example(path="in_bias_dtype", good=0x7A, bad=0x8A),
        Example(path="bias_src_n", good=1, bad=3),
        Example(path="bias_src_n", good=0, bad=1, generation="sunda"),
        Example(path="bias.word", good=0x1002, bad=0x1001, given={"in_bias_dtype": 0x6A}),
        Example(path="bias.word", good=63, bad=64, given={"bias_src_n": 2}),
        Example(path="bias_addr.word", good=0x100, bad=0x2400000, opcode=ACTIVATE_QUANTIZE),
        Example(
            path="bias.word", good=0x100, bad=QUADRANT_1 + 0x100, given={"num_active_channels": 64}
        ),
    ),
)
def activation_bias(r: Review) -> None:
    """The bias must be FP32, BFLOAT16 or FP16, from a legal source.

    bias_src_n counts its sources with 0 and 1 swapped: 0 a pointer, 1 a value in the word, 2 a
    register that holds a pointer. On sunda the bias is always behind a pointer, as it is on all
    generations in ACTIVATE_QUANTIZE, which has no selector. A pointer lies in a memory, is aligned
    to the bias dtype and starts on a partition that suits the channel count.
    """
    dtype = _bias_dtype(r)
    dtype_ok = r.require(
        r.one_of(dtype, BIAS_DTYPES),
        "in_bias_dtype.second",
        f"one of {dtype_list(BIAS_DTYPES)}",
        subject="bias dtype",
        actual=lambda: describe_dtype(r, "in_bias_dtype.second"),
    )
    if r.opcode == ACTIVATE_QUANTIZE:
        pointer = r["bias_addr.word"] >= 0
        check_pointer(r, "bias_addr.word", "bias", pointer, dtype, dtype_ok)
        return
    source = r["bias_src_n"]
    only_pointers = r.generation.core_version == _SUNDA
    r.require(
        source == BiasSource.POINTER if only_pointers else source <= BiasSource.REG_PTR,
        "bias_src_n",
        "POINTER" if only_pointers else "POINTER, INSTRUCTION or REG_PTR",
        context=f"on {r.generation.name}" if only_pointers else "",
    )
    is_pointer = source == BiasSource.POINTER
    check_pointer(r, "bias.word", "bias", is_pointer, dtype, dtype_ok)
    check_register_number(r, "bias.word", "bias", source == BiasSource.REG_PTR)


@rule(
    "NE0504",
    "activation_immediates",
    opcodes=(ACTIVATE,),
    source="activation-tables.md 2.2",
    tag="observed",
    policy=("act_imm_src",),
    examples=(
        Example(path="scale_src", good=0, bad=3, given={"scale_value.word": 0x3F800000}),
        Example(path="scale_value.word", good=0x100, bad=0x102, given={"scale_src": 1}),
        Example(path="imm.word", good=63, bad=64, given={"imm_src": 2}),
        Example(path="imm.word", good=0x100, bad=0x3F000001, given={"imm_src": 0}, policy=_EMITTER),
        Example(path="imm_src", good=1, bad=0, given={"imm.word": 0x3F000001}, policy=_EMITTER),
    ),
)
def activation_immediates(r: Review) -> None:
    """scale_value and imm must fit their sources: a value, a pointer to fp32, or a register.

    imm_src is read as IMM_SRC, as the header types it; the compiler writes 1 beside a literal 0,
    which passes as a pointer to address 0. Policy act_imm_src reads it as IMM_SRC_N instead.
    """
    check_scalar(r, "scale_value", "scale_src")
    enum = BiasSource if r.policy.act_imm_src == "emitter" else ImmediateSource
    check_scalar(r, "imm", "imm_src", pointer=enum.POINTER)


@rule(
    "NE0505",
    "activation_accum_cmd",
    opcodes=(ACTIVATE,),
    source="activation-tables.md 2.1, 3.3",
    tag="inferred",
    examples=(Example(path="accumulator_cmd", good=4, bad=5),),
)
def activation_accum_cmd(r: Review) -> None:
    """The accumulator command must be a member of ACCUM_CMD; all five have an effect on ACT."""
    r.require(
        r.one_of(r["accumulator_cmd"], COMMANDS),
        "accumulator_cmd",
        "IDLE, ZERO, ACCUMULATE, ZERO_ACCUMULATE or LOAD_ACCUMULATE",
    )


# --- ACTIVATE_QUANTIZE ------------------------------------------------------------------------


@rule(
    "NE0506",
    "activate_quantize_scales",
    opcodes=(ACTIVATE_QUANTIZE,),
    source="activation-tables.md 2.3",
    tag="observed; the sign of zero inferred",
    examples=(
        Example(path="quant_scale_value.word", good=0x3F800000, bad=0),
        Example(path="dequant_scale_value.word", good=1, bad=0x80000000),
    ),
)
def activate_quantize_scales(r: Review) -> None:
    """Both scales must not be zero, of either sign."""
    for name in ("quant_scale_value", "dequant_scale_value"):
        r.require(
            r[f"{name}.word"] & 0x7FFFFFFF != 0,
            f"{name}.word",
            "not zero",
            subject=name,
            actual="zero",
        )


@rule(
    "NE0507",
    "activate_quantize_function",
    opcodes=(ACTIVATE_QUANTIZE,),
    source="activation-tables.md 2.3",
    tag="observed",
    examples=(Example(path="activation_func", good=ActivationFunction.RELU, bad=4, opcode=0x22),),
)
def activate_quantize_function(r: Review) -> None:
    """The function must not be PARAMETRIC_RELU: the word has no place for a slope."""
    r.require(
        r["activation_func"] != ActivationFunction.PARAMETRIC_RELU,
        "activation_func",
        "a function without a slope",
    )


# --- operands ---------------------------------------------------------------------------------


@rule(
    "NE0513",
    "same_element_count",
    opcodes=OPCODES,
    source="activation-tables.md 2.2, 2.3; isa-encoding.md 6.8",
    tag="observed; inferred for ACTIVATE2 and for indirect patterns",
    examples=(
        Example(path="dst.num[0]", good=8, bad=7),
        Example(path="dst.num[0]", good=8, bad=7, opcode=ACTIVATE2),
    ),
)
def activation_element_count(r: Review) -> None:
    """Source and destination must have the same number of elements in a partition, see NE0111."""
    operands.tensor_scalar_tensor_chk(r)


@rule(
    "NE0514",
    "has_valid_active_channel_range",
    names={"maverick": "has_valid_active_channel_range_with_tile"},
    opcodes=OPCODES,
    source="activation-tables.md 2.2, 2.3, 2.6; isa-encoding.md 6.9",
    tag="observed; the tile test of maverick unknown",
    examples=(Example(path="num_active_channels", good=128, bad=129),),
)
def activation_channel_range(r: Review) -> None:
    """1 to 128 channels must take part, see NE0112."""
    operands.has_valid_active_channel_range(r)


@rule(
    "NE0515",
    "start_addr_active_channels",
    opcodes=OPCODES,
    source="activation-tables.md 2.2; isa-encoding.md 6.10",
    tag="observed; inferred for ACTIVATE2",
    requires=("NE0514",),
    examples=(
        Example(
            path="src.start.partition_offset",
            good=64 * 0x40000,
            bad=32 * 0x40000,
            given={"num_active_channels": 64},
        ),
    ),
)
def activation_start_partitions(r: Review) -> None:
    """Each operand must start on a partition that suits the channel count, see NE0113."""
    operands.check_m3d_active_channels(r)


@rule(
    "NE0516",
    "mem3d_valid",
    names=operands.TENSOR_NAMES,
    opcodes=OPCODES,
    source="activation-tables.md 2.2, 2.3, 2.6; isa-encoding.md 6.11",
    tag="observed; inferred from the predicate of S3D3_TS",
    examples=(
        Example(path="src.start.partition_offset", good=0x1004, bad=0x1002),
        Example(path="src.num[1]", good=1, bad=0, opcode=ACTIVATE2),
        Example(path="src.num_elem", good=8, bad=0, given=GATHER, opcode=ACTIVATE2),
    ),
)
def activation_source(r: Review) -> None:
    """The source pattern must be readable, in SBUF or PSUM, see NE0114."""
    legal = r.one_of(_in_dtype(r), _legal_inputs(r))
    check_operand(r, "src", _in_dtype(r), legal, writes=False)


@rule(
    "NE0517",
    "mem3d_valid",
    names=operands.TENSOR_NAMES,
    opcodes=OPCODES,
    source="activation-tables.md 2.2, 2.3, 2.6; isa-encoding.md 6.11, 6.12",
    tag="observed; inferred from the predicate of S3D3_TS",
    examples=(
        Example(
            path="out_dtype",
            good=DType.FP32,
            bad=DType.FP16,
            given={"dst.start.partition_offset": 0x2000000},
        ),
        Example(path="dst.start.marker", good=0, bad=3, opcode=ACTIVATE_QUANTIZE),
    ),
)
def activation_destination(r: Review) -> None:
    """The destination pattern must be writable; PSUM takes 4-byte elements only, see NE0115."""
    legal = r.one_of(r["out_dtype"], _legal_outputs(r))
    check_operand(r, "dst", r["out_dtype"], legal, writes=True)


@rule(
    "NE0518",
    "indirect_quadrant_check_src3d",
    opcodes=OPCODES,
    generations=INDIRECT_GENERATIONS,
    source="isa-encoding.md 4.3, 6.13",
    tag="observed",
    requires=("NE0516",),
    examples=(
        Example(
            path="src.data.partition_offset",
            good=0x1000,
            bad=QUADRANT_1 + 0x1000,
            given={**GATHER, "num_active_channels": 32},
        ),
    ),
)
def activation_gather_quadrant(r: Review) -> None:
    """The index of a gather and its data in SBUF must start on the same quadrant, see NE0116."""
    quadrants.indirect_quadrant_check_src3d(r)


@rule(
    "NE0519",
    "indirect_quadrant_check_src3d_dst3d",
    opcodes=OPCODES,
    generations=INDIRECT_GENERATIONS,
    source="isa-encoding.md 4.3, 6.13",
    tag="observed",
    requires=("NE0517",),
    examples=(
        Example(
            path="dst.index.partition_offset",
            good=0x4000,
            bad=QUADRANT_1 + 0x4000,
            given={**SCATTER, "num_active_channels": 32},
        ),
    ),
)
def activation_scatter_quadrant(r: Review) -> None:
    """The index of a scatter must start on the quadrant of the source, see NE0117."""
    quadrants.indirect_quadrant_check_src3d_dst3d(r)


@rule(
    "NE0520",
    "activation_scatter_space",
    opcodes=OPCODES,
    generations=INDIRECT_GENERATIONS,
    source="isa-encoding.md 4.3 (base partitions)",
    tag="observed",
    requires=("NE0517",),
    examples=(
        Example(
            path="dst.data.partition_offset",
            good=0x1000,
            bad=0x2001000,
            given={**SCATTER, "num_active_channels": 32},
        ),
    ),
)
def activation_scatter_space(r: Review) -> None:
    """An indirect destination must not be in PSUM: the vendor documents so for ACT alone."""
    destination = operand_of(r, "dst")
    if not destination.has_indirect:
        return
    data = destination.data
    r.require(
        implies(destination.indirect, data.in_psum ^ True),
        "dst.data.partition_offset",
        "in SBUF",
        subject="dst data address",
        actual=lambda: f"{data.address:#x} in PSUM",
    )
