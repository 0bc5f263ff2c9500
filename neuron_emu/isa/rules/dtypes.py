"""Rules of the dtype bytes: `is_valid_dtype` (isa-encoding.md 6.2)."""

from __future__ import annotations

from neuron_emu.isa.enums import DType, member
from neuron_emu.isa.families import tensor_scalar
from neuron_emu.isa.fields import read_field
from neuron_emu.isa.rules.core import Example, Review, Truth, WordReview, rule

__all__ = ["INPUT_DTYPES", "OUTPUT_DTYPES", "dtype_is_valid", "dtype_list"]

INPUT_DTYPES = frozenset(range(DType.INT8, DType.FP8_EXP5 + 1)) - {DType.FP32R, DType.INT64}
"""The short form of the test: d > 1, d != 12, d <= 15 and d != 11 (dve-tensor-scalar.md 6.2)."""
OUTPUT_DTYPES = INPUT_DTYPES | {DType.FP32R}

_REASONS = {
    DType.INVALID: "the INVALID member",
    DType.FP32R: "which is for destinations only",
    DType.UINT64: "which is 64 bits wide",
    DType.INT64: "which is 64 bits wide",
    DType.FP4_EXP2: "which is narrower than a byte",
    DType.INT4: "which is narrower than a byte",
}
_NEAREST = {DType.FP32R: DType.FP32, DType.UINT64: DType.UINT32, DType.INT64: DType.INT32}


def dtype_list(codes: frozenset[int]) -> str:
    """Name dtypes in the order of their codes."""
    return " ".join(DType(code).name for code in sorted(codes))


def dtype_is_valid(r: Review, name: str) -> Truth:
    """Tell whether the dtype field `name` of a Tensor-Scalar word passes its own rule."""
    return r.one_of(r[name], OUTPUT_DTYPES if name == "out_dtype" else INPUT_DTYPES)


def describe_dtype(r: Review, field: str) -> str:
    """Say what a dtype byte holds and why it is refused."""
    code = read_field(r.word, r.record, field) if isinstance(r, WordReview) else 0
    known = member(DType, code)
    if known is None or code not in r.generation.dtypes:
        return f"{code:#04x}, which is no dtype of {r.generation.name}"
    reason = _REASONS.get(known)
    return f"{known.name}, {reason}" if reason else known.name


def _nearest(r: Review, field: str) -> str:
    best = _NEAREST.get(r[field])
    return best.name if best is not None else ""


@rule(
    "NE0104",
    "is_valid_dtype",
    opcodes=tensor_scalar.FAMILY.opcodes,
    source="isa-encoding.md 6.2; dve-tensor-scalar.md 6.2",
    tag="observed",
    requires=("NE0001",),
    examples=(
        Example(path="in_dtype", good=DType.FP32, bad=DType.FP32R),
        Example(path="in_dtype", good=DType.FP32, bad=DType.CPTC1),
    ),
)
def in_dtype_is_valid(r: Review) -> None:
    """The source dtype must be one that the datapath reads; FP32R is not.

    64-bit, 4-bit and scale kinds are refused on every generation that has them. The compressed
    kinds CPTC1 to CPTC7 pass the enum and no source names a rejection; they are refused because
    no format is published and no alignment exists for them.
    """
    r.require(
        r.one_of(r["in_dtype"], INPUT_DTYPES),
        "in_dtype",
        f"one of {dtype_list(INPUT_DTYPES)}",
        actual=lambda: describe_dtype(r, "in_dtype"),
        nearest=lambda: _nearest(r, "in_dtype"),
    )


@rule(
    "NE0105",
    "is_valid_dtype",
    opcodes=tensor_scalar.FAMILY.opcodes,
    source="isa-encoding.md 6.2; dve-tensor-scalar.md 6.2",
    tag="observed",
    requires=("NE0001",),
    examples=(Example(path="out_dtype", good=DType.FP32R, bad=DType.INT64),),
)
def out_dtype_is_valid(r: Review) -> None:
    """The destination dtype must be one that the datapath writes; FP32R is allowed.

    Otherwise as for the source, see NE0104. The vendor's documentation lists fewer destination
    dtypes for EXPONENTIAL (no uint32, no fp8 e3m4) than the predicate accepts; the predicate is
    followed.
    """
    r.require(
        r.one_of(r["out_dtype"], OUTPUT_DTYPES),
        "out_dtype",
        f"one of {dtype_list(OUTPUT_DTYPES)}",
        actual=lambda: describe_dtype(r, "out_dtype"),
        nearest=lambda: _nearest(r, "out_dtype"),
    )
