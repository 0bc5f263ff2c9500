"""Rules of S3D3_TS_SELECT: counts, the scalar, the predicate.

Source: dve-tensor-scalar.md 9.6; isa-encoding.md 6.3. Operands and dtypes: `dve_operands`.
"""

from __future__ import annotations

from neuron_emu.isa.enums import DType, ImmediateSource
from neuron_emu.isa.families.scalar_select import TENSOR_SCALAR_SELECT
from neuron_emu.isa.rules.core import Example, Review, rule
from neuron_emu.isa.rules.dtypes import INPUT_DTYPES, describe_dtype, dtype_list
from neuron_emu.isa.rules.dve_slots import INTEGERS
from neuron_emu.isa.rules.predicates import implies
from neuron_emu.isa.rules.scalars import check_scalar
from neuron_emu.isa.rules.tensor_words import equal_counts

__all__: list[str] = []

OPCODES = (TENSOR_SCALAR_SELECT,)


@rule(
    "NE0661",
    "same_element_count",
    opcodes=OPCODES,
    source="dve-tensor-scalar.md 9.6, 9.2",
    tag="inferred from the words with two sources",
    examples=(Example(path="dst.num[0]", good=8, bad=7),),
)
def select_counts(r: Review) -> None:
    """As many elements are written as are read."""
    equal_counts(r, "src0", "dst", leaf="same_element_count_m3d")


@rule(
    "NE0662",
    "has_valid_immediates",
    opcodes=OPCODES,
    source="dve-tensor-scalar.md 9.6; isa-encoding.md 6.3",
    tag="observed leaf; that this word uses it inferred",
    examples=(
        Example(path="src1_imm_src", good=0, bad=3),
        Example(
            path="src1_imm.word",
            good=0x2000,
            bad=0x2001,
            given={"src1_imm_src": 1, "dtype": DType.BFLOAT16},
        ),
        Example(path="pred_imm.word", good=63, bad=64, given={"pred_imm_src": 2}),
    ),
)
def select_immediates(r: Review) -> None:
    """The scalar and the predicate must fit their sources.

    A pointer lies in a memory, is aligned to its dtype and starts on a partition that suits the
    channel count. A register number is below the number of address registers.
    """
    check_scalar(r, "src1_imm", "src1_imm_src", r["dtype"], r.one_of(r["dtype"], INPUT_DTYPES))
    dtype = r["pred_imm_dtype"]
    check_scalar(r, "pred_imm", "pred_imm_src", dtype, r.one_of(dtype, INPUT_DTYPES))


@rule(
    "NE0663",
    "select_predicate",
    opcodes=OPCODES,
    source="dve-tensor-scalar.md 9.6",
    tag="observed for one in the word; inferred behind a pointer and for reversed_pred",
    examples=(
        Example(path="pred_imm.word", good=1, bad=2),
        Example(path="pred_imm_dtype", good=DType.UINT16, bad=DType.FP32),
        Example(
            path="pred_imm_dtype",
            good=DType.FP32,
            bad=DType.INT64,
            given={"pred_imm_src": 1, "pred_imm.word": 0x2000},
        ),
        Example(path="reversed_pred", good=1, bad=2),
    ),
)
def select_predicate(r: Review) -> None:
    """A predicate in the word must be 0 or 1 with an integer dtype; reversed_pred is 0 or 1.

    Behind a pointer the predicate may have any dtype that the engine reads.
    """
    is_inline = r["pred_imm_src"] == ImmediateSource.INSTRUCTION
    known = r.require(
        r.one_of(r["pred_imm_dtype"], INPUT_DTYPES),
        "pred_imm_dtype",
        f"one of {dtype_list(INPUT_DTYPES)}",
        actual=lambda: describe_dtype(r, "pred_imm_dtype"),
    )
    r.require(
        implies(is_inline, r.one_of(r["pred_imm_dtype"], INTEGERS)),
        "pred_imm_dtype",
        f"one of {dtype_list(INTEGERS)}",
        context="with the predicate in the word",
        actual=lambda: describe_dtype(r, "pred_imm_dtype"),
        after=known,
    )
    r.require(
        implies(is_inline, r["pred_imm.word"] <= 1),
        "pred_imm.word",
        "0 or 1",
        subject="pred_imm",
        actual=lambda: str(r["pred_imm.word"]),
    )
    r.require(r["reversed_pred"] <= 1, "reversed_pred", "0 or 1")
