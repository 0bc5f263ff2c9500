"""`why` of words that are plain arithmetic: inputs, stages, rounding, and the exact value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from neuron_emu.debug.exact import decimal_text
from tests.debug.streams import ran

X = "sbuf:0+0x1000:fp32[1,4]"
Y = "sbuf:0+0x1040:fp32[1,4]"
LOADS = {
    X: np.array([[3, 7, -0.5, 1]], np.float32),
    Y: np.array([[1, 2**-24, 2**-24, 0.25]], np.float32),
}
TWO = "src0=fp32@0x1000[1][4] src1=fp32@0x1040[1][4]"


def _stations(why, name: str):
    return [s for s in why.stations if s.name == name]


def test_reciprocal():
    """1/3: float32 0x3eaaaaab, a third of an ulp off; bf16 0x3eab, a third of an ulp from that."""
    made = ran("RECIPROCAL src=fp32@0x1000[1][4] dst=bf16@0x2000[1][4] channels=1", LOADS)
    why = made.why(0x2000)
    (stage,), (convert,) = _stations(why, "reciprocal"), _stations(why, "convert")

    assert stage.detail == {"x": "0x40400000", "y": "0x3eaaaaab"}
    assert stage.loss_ulp == pytest.approx(1 / 3)
    assert convert.detail == {"dtype": "bf16", "bits": "0x3eab", "from": "0x3eaaaaab"}
    # 0x3eaaaaab lies 0x5555 of 0x10000 steps below 0x3eab0000.
    assert convert.loss_ulp == pytest.approx(0x5555 / 0x10000)
    assert why.exact == "0.33333333333333333333 (rational arithmetic)"


def test_cast_of_an_integer_past_24_bits():
    """16777217 becomes 16777216 on the way in: half an ulp, and the exact value keeps the 1."""
    made = ran(
        "CAST src=int32@0x1000[1][1] dst=fp32@0x2000[1][1] channels=1",
        {"sbuf:0+0x1000:int32[1,1]": np.array([[16777217]], np.int32)},
    )
    why = made.why(0x2000)
    (source,) = _stations(why, "input")
    assert (source.value, source.loss_ulp) == (16777216, 0.5)
    assert (why.exact.split()[0], why.total_ulp) == ("1.6777217000000000000e+7", 0.5)


def test_tensor_tensor_shows_the_sum_and_its_rounding():
    """7 + 2^-24 = 7 in float32: 2^-24 of an ulp of 2^-21, an eighth."""
    made = ran(f"TENSOR_TENSOR op=ADD {TWO} dst=int8@0x2000[1][4] channels=1", LOADS)
    why = made.why(0x2001)
    (stage,) = _stations(why, "stage_0")
    assert stage.detail == {
        "op": "ADD",
        "src0": "0x40e00000",
        "src1": "0x33800000",
        "y": "0x40e00000",
    }
    assert stage.loss_ulp == 1 / 8
    assert why.exact.startswith(decimal_text(7 + Fraction(1, 2**24)))
    assert (why.dtype, why.value) == ("int8", 7)


def test_scalar_tensor_tensor_has_two_stages():
    """(2 - 3) - 1 with the first stage reversed: -1, then -2."""
    made = ran(
        f"SCALAR_TENSOR_TENSOR {TWO} dst=fp32@0x2000[1][4] ops=SUBTRACT,SUBTRACT channels=1"
        " imm=fp32@2.0 reverse_operands=FIRST",
        LOADS,
    )
    why = made.why(0x2000)
    (first,), (second,) = _stations(why, "stage_0"), _stations(why, "stage_1")
    assert (first.value, second.value, why.exact.split()[0]) == (-1, -2, "-2")
    assert (first.loss_ulp, second.loss_ulp, why.total_ulp) == (0, 0, 0)


def test_reduction_loses_what_each_step_rounds_away():
    """1 + 2^-24 + 2^-24 = 1 in float32, 1 + 2^-23 exactly: twice half an ulp, in all one."""
    made = ran(
        "TENSOR_REDUCE op=ADD src=fp32@0x1040[1,3][3,1] dst=fp32@0x2000[1][1] channels=1 op_dim=XY",
        LOADS,
    )
    why = made.why(0x2000)
    folds = _stations(why, "fold")
    assert [f.detail["element"] for f in folds] == [1, 2]
    assert [(f.value, f.loss_ulp) for f in folds] == [(1, 0.5), (1, 0.5)]
    assert (why.value, why.total_ulp) == (1, 1)


def test_second_run_counts_its_elements_from_the_source():
    """Runs of two: the second one folds element 3 into element 2."""
    made = ran(
        "TENSOR_REDUCE op=MAX src=fp32@0x1000[1,2][2,2] dst=fp32@0x2000[1][2] channels=1 op_dim=X"
        " negated=1",
        LOADS,
    )
    why = made.why(0x2004)
    (fold,), (negate,) = _stations(why, "fold"), _stations(why, "negate")
    assert (fold.detail["element"], fold.value, negate.value) == (3, 1, -1)
    assert why.exact.split()[0] == "-1"


def test_overflow_of_a_long_sum_is_placed():
    """Finite inputs of 1e38: the fourth one, element 3, passes 3.4e38."""
    made = ran(
        "TENSOR_REDUCE op=ADD src=fp32@0x1000[1][20] dst=fp32@0x2000[1][1] channels=1 op_dim=X",
        {"sbuf:0+0x1000:fp32[1,20]": np.full((1, 20), 1e38, np.float32)},
    )
    why = made.why(0x2000)
    (fold,) = _stations(why, "fold")
    assert fold.detail["not_finite_from_element"] == 3
    assert (fold.value, why.total_ulp) == (np.inf, None)


def test_scan_shows_the_last_steps():
    """r = x * r + y from 0.5: 3 * 0.5 + 1 = 2.5, then 7 * 2.5 = 17.5."""
    made = ran(
        f"TENSOR_TENSOR_SCAN {TWO} dst=fp32@0x2000[1][4] ops=MULTIPLY,ADD channels=1 imm=fp32@0.5",
        LOADS,
    )
    why = made.why(0x2004)
    values = [s.value for s in why.stations if s.name.startswith("stage_")]
    assert values == [1.5, 2.5, 17.5, 17.5]
    assert why.exact.startswith(decimal_text(Fraction(35, 2) + Fraction(1, 2**24)))


def test_cache_cumulative_shows_stage_and_fold():
    """t = 2 x; acc = t - acc from 0: 6, 14 - 6 = 8."""
    made = ran(
        "TENSOR_SCALAR_CACHE_CUMULATIVE src=fp32@0x1000[1,1,1][4,1,1] dst=fp32@0x2000[1,1,1][4,1,1]"
        " channels=1 ops=MULTIPLY,SUBTRACT imm0=fp32@2.0 accumulator_cmd=ZERO_ACCUMULATE",
        LOADS,
    )
    why = made.why(0x2004)
    assert [s.value for s in _stations(why, "stage_0")] == [14]
    assert [s.value for s in _stations(why, "fold")] == [6, 8]
    assert (why.value, why.exact.split()[0]) == (8, "8")


WORDS = {
    "cast": "CAST src=fp32@0x1000[1][32] dst={d}@0x2000[1][32] channels=32",
    "reciprocal": "RECIPROCAL src=fp32@0x1000[1][32] dst={d}@0x2000[1][32] channels=32",
    "tensor_tensor": "TENSOR_TENSOR op=SUBTRACT src0=fp32@0x1000[1][32] src1=fp32@0x1080[1][32]"
    " dst={d}@0x2000[1][32] channels=32",
    "scalar": "SCALAR_TENSOR_TENSOR src0=fp32@0x1000[1][32] src1=fp32@0x1080[1][32]"
    " dst={d}@0x2000[1][32] ops=MULTIPLY,MAX channels=32 imm=[fp32@0x1100]",
    "reduce": "TENSOR_REDUCE op=ADD src=fp32@0x1000[1,4][4,8] dst={d}@0x2000[1][8] channels=32"
    " op_dim=X",
    "transposed": "TRANSPOSE_TENSOR_REDUCE op=ADD src=fp32@0x1000[1,8][8,8] dst={d}@0x2000[1][8]"
    " channels=32 op_dim=X",
    "cumulative": "TENSOR_CUMULATIVE op=ADD src=fp32@0x1000[1,8][8,4] dst={d}@0x2000[1][32]"
    " channels=32 op_dim=X",
    "scan": "TENSOR_TENSOR_SCAN src0=fp32@0x1000[1][32] src1=fp32@0x1080[1][32]"
    " dst={d}@0x2000[1][32] ops=MULTIPLY,ADD channels=32 imm=[fp32@0x1100]",
    "cache": "TENSOR_SCALAR_CACHE_CUMULATIVE src=fp32@0x1000[1,1,1][32,1,1]"
    " dst={d}@0x2000[1,1,1][32,1,1] channels=32 ops=MULTIPLY,ADD imm0=[fp32@0x1100]"
    " accumulator_cmd=ZERO_ACCUMULATE",
}


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
@pytest.mark.parametrize("name", WORDS)
def test_stages_are_there_for_every_element(name, dtype):
    """Drawn values with a few that are not finite: no element is without its fp32 result."""
    draw = np.random.default_rng(5)
    values = draw.normal(size=(32, 72)).astype(np.float32)
    values[3, 5], values[4, 9], values[5, 2] = np.nan, np.inf, -np.inf
    made = ran(WORDS[name].format(d=dtype), {"sbuf:0+0x1000:fp32[32,72]": values})
    size = 2 if dtype == "bf16" else 4
    count = 8 if name in ("reduce", "transposed") else 32
    for lane in (0, 3, 4, 5, 31):
        for element in range(0, count, 3):
            why = made.why(f"sbuf:{lane}+{0x2000 + size * element}")
            (convert,) = _stations(why, "convert")
            assert "from" in convert.detail, (lane, element)
            assert why.agrees
            finite = np.isfinite([s.value for s in _stations(why, "input")]).all()
            assert (why.exact is not None) or not finite


def test_a_drain_claims_nothing_about_its_sum():
    """1 + 2^-24 + 2^-24 became 1: the conversion loses nothing, the sum did, and no one says 0."""
    made = ran(
        "TENSOR_SCALAR_CACHE_REDUCE src=fp32@0x1040[1,1,1][3,1,1] dst=fp32@0x2000[1,1,1][3,1,1]"
        " channels=1 ops=BYPASS,ADD imm0=fp32@0.0 accumulator_cmd=ZERO_ACCUMULATE\n"
        "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=1",
        LOADS,
    )
    why = made.why(0x3000)
    assert (why.value, why.exact, why.total_ulp) == (1, None, None)
    assert _stations(why, "convert")[0].loss_ulp == 0
    assert why.note.startswith("the loss is that of the conversion alone")
