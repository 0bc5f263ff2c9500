"""Everyday DVE words by hand-worked numbers, from text to memory."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_emu import Machine, Program
from neuron_emu.policy import Policy

FLT_MAX = 3.4028234663852886e38
INF = float("inf")


def run(text: str, loads: dict[str, object], *policy: str) -> Machine:
    """Run a listing on the DVE of a MARIANA and return the machine; it must not fault."""
    machine = Machine("mariana", Policy.parse(policy))
    for spec, values in loads.items():
        machine.write(spec, np.asarray(values))
    result = machine.run(Program.from_text(text))
    assert result.fault is None, result.fault
    return machine


def fault(text: str, loads: dict[str, object]) -> str:
    """Return the message of the fault that a listing ends in, validation set aside."""
    machine = Machine("mariana", Policy.parse(["invalid=warn"]))
    for spec, values in loads.items():
        machine.write(spec, np.asarray(values))
    result = machine.run(Program.from_text(text))
    assert result.fault is not None
    return result.fault.message


def rows(machine: Machine, spec: str) -> list[float]:
    """Return the first lane at a SPEC."""
    return machine.read(spec)[0].tolist()


X, Y, OUT = "sbuf:0+0x1000:", "sbuf:0+0x1100:", "sbuf:0+0x2000:"


class TestTensorTensor:
    def test_operands_in_order(self):
        """dst = src0 op src1: 3 - 5 = -2, and 1 - (-2) = 3."""
        machine = run(
            "TENSOR_TENSOR op=SUBTRACT src0=fp32@0x1000[1][2] src1=bf16@0x1100[1][2]"
            " dst=int8@0x2000[1][2] channels=1",
            {X + "fp32[1,2]": [[3, 1]], Y + "bf16[1,2]": [[5, -2]]},
        )

        assert rows(machine, OUT + "int8[1,2]") == [-2, 3]

    def test_int32_passes_fp32(self):
        """16777217 has 25 bits: fp32 keeps 24 of them."""
        machine = run(
            "TENSOR_TENSOR op=ADD src0=int32@0x1000[1][1] src1=int32@0x1100[1][1]"
            " dst=int32@0x2000[1][1] channels=1",
            {X + "int32[1,1]": [[16777217]], Y + "int32[1,1]": [[0]]},
        )

        assert rows(machine, OUT + "int32[1,1]") == [16777216]

    def test_bits(self):
        """0xF0 xor 0xFF = 0x0F; nothing is converted."""
        machine = run(
            "TENSOR_TENSOR_BITVEC op=BITWISE_XOR src0=uint8@0x1000[1][2] src1=uint8@0x1100[1][2]"
            " dst=uint8@0x2000[1][2] channels=1",
            {X + "uint8[1,2]": [[0xF0, 1]], Y + "uint8[1,2]": [[0xFF, 1]]},
        )

        assert rows(machine, OUT + "uint8[1,2]") == [0x0F, 0]

    def test_predicate(self):
        """Where the predicate is 0 the destination keeps what it held."""
        text = (
            "COPY_PREDICATED src0=uint8@0x1000[1][3] src1=fp32@0x1100[1][3]"
            " dst=fp32@0x2000[1][3] channels=1"
        )
        loads = {X + "uint8[1,3]": [[1, 0, 255]], Y + "fp32[1,3]": [[1, 2, 3]]}
        machine = run(text, loads | {OUT + "fp32[1,3]": [[7, 8, 9]]})

        assert rows(machine, OUT + "fp32[1,3]") == [1, 8, 3]

    @pytest.mark.parametrize(
        ("reverse", "expected"),
        [("NONE", 0.0), ("FIRST", -2.0), ("SECOND", 0.0), ("BOTH", 2.0)],
    )
    def test_reverse_bits(self, reverse, expected):
        """(3-2)-1 = 0, (2-3)-1 = -2, 1-(3-2) = 0, 1-(2-3) = 2 (dve-tensor-scalar.md 9.5)."""
        machine = run(
            "SCALAR_TENSOR_TENSOR src0=fp32@0x1000[1][1] src1=fp32@0x1100[1][1]"
            " dst=fp32@0x2000[1][1] ops=SUBTRACT,SUBTRACT channels=1 imm=fp32@2.0"
            f" reverse_operands={reverse}",
            {X + "fp32[1,1]": [[3]], Y + "fp32[1,1]": [[1]]},
        )

        assert rows(machine, OUT + "fp32[1,1]") == [expected]


class TestCopies:
    def test_copy_is_exact_and_cast_is_not(self):
        """A bf16 NaN keeps its payload in COPY; CAST makes it canonical and rounds an int32."""
        machine = run(
            "COPY src=bf16@0x1000[1][1] dst=bf16@0x2000[1][1] channels=1\n"
            "CAST src=bf16@0x1000[1][1] dst=bf16@0x2002[1][1] channels=1\n"
            "COPY src=int32@0x1100[1][1] dst=int32@0x2004[1][1] channels=1\n"
            "CAST src=int32@0x1100[1][1] dst=int32@0x2008[1][1] channels=1",
            {X + "bf16:bits[1,1]": np.array([[0xFF81]], np.uint16), Y + "int32[1,1]": [[16777217]]},
        )

        assert rows(machine, OUT + "bf16:bits[1,2]") == [0xFF81, 0x7FC0]
        assert rows(machine, "sbuf:0+0x2004:int32[1,2]") == [16777217, 16777216]

    def test_reciprocal(self):
        """1/3 is 0x3eaaaaab correctly rounded; zeros and infinities exchange, with their signs."""
        machine = run(
            "RECIPROCAL src=fp32@0x1000[1][5] dst=fp32@0x2000[1][5] channels=1",
            {X + "fp32[1,5]": [[3, -0.0, INF, -INF, 0]]},
        )

        found = machine.read(OUT + "fp32:bits[1,5]")[0].tolist()
        assert found == [0x3EAAAAAB, 0xFF800000, 0, 0x80000000, 0x7F800000]

    def test_memset_stores_raw_bytes(self):
        """The value is in the encoding of dst: 0x3f80 is the bf16 of 1.0; other elements stay."""
        machine = run(
            "MEMSET dst=bf16@0x2000[2][2] channels=2 set_value=0x3f80",
            {OUT + "bf16[2,4]": np.full((2, 4), 5.0)},
        )

        assert machine.read(OUT + "bf16[2,4]").tolist() == [[1, 5, 1, 5]] * 2


SIX = {X + "fp32[1,6]": [[1, 2, 3, 4, 5, 6]]}


class TestFolds:
    @pytest.mark.parametrize(
        ("op", "rest", "expected"),
        [
            ("ADD", "[2,1] op_dim=X", [6, 15]),
            ("SUBTRACT", "[2,1] op_dim=X", [1 - 2 - 3, 4 - 5 - 6]),
            ("MAX", "[2,1] op_dim=X negated=1", [-3, -6]),
            ("MULTIPLY", "[1,1] op_dim=XY", [720]),
        ],
    )
    def test_reduce(self, op, rest, expected):
        """Two runs of three, or one of six; the negation comes last."""
        sizes, options = rest.split(" ", 1)
        machine = run(
            f"TENSOR_REDUCE op={op} src=fp32@0x1000[1,3][3,2] dst=fp32@0x2000[1,1]{sizes}"
            f" channels=1 {options}",
            SIX,
        )

        assert rows(machine, OUT + f"fp32[1,{len(expected)}]") == expected

    def test_transpose_then_reduce(self):
        """After the transpose lane i holds what was in element i: 32 values i."""
        machine = run(
            "TRANSPOSE_TENSOR_REDUCE op=ADD src=fp32@0x1000[1][32] dst=fp32@0x2000[1][1]"
            " channels=32 op_dim=X",
            {X + "fp32[32,32]": np.tile(np.arange(32, dtype=np.float32), (32, 1))},
        )

        assert machine.read(OUT + "fp32[32,1]")[:, 0].tolist() == [32 * i for i in range(32)]

    def test_cumulative_restarts(self):
        """1, 1-2, 1-2-3 and again in the next run."""
        machine = run(
            "TENSOR_CUMULATIVE op=SUBTRACT src=fp32@0x1000[1,3][3,2] dst=fp32@0x2000[1,3][3,2]"
            " channels=1 op_dim=X",
            SIX,
        )

        assert rows(machine, OUT + "fp32[1,6]") == [1, -1, -4, 4, -1, -7]

    def test_scan(self):
        """cases/users.md C8: from 0, 0 * .5 + 1 = 1, 1 * .5 + 1 = 1.5."""
        machine = run(
            "TENSOR_TENSOR_SCAN src0=fp32@0x1000[1][2] src1=fp32@0x1100[1][2]"
            " dst=fp32@0x2000[1][2] ops=MULTIPLY,ADD channels=1 imm=fp32@0.000000",
            {X + "fp32[1,2]": [[0.5, 0.5]], Y + "fp32[1,2]": [[1, 1]]},
        )

        assert rows(machine, OUT + "fp32[1,2]") == [1, 1.5]


class TestSelections:
    def test_select_keeps_a_running_maximum(self):
        """The false value takes part, and a second word goes on from the first."""
        text = (
            "SELECT_REDUCE src0=uint8@0x1000[1][3] src1=fp32@0x1100[1][3] dst=fp32@0x2000[1][3]"
            " ops=BYPASS,MAX channels=1 imm=fp32@-1.0 accumulator_cmd=ZERO_ACCUMULATE\n"
            "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=1\n"
            "SELECT_REDUCE src0=uint8@0x1000[1][3] src1=fp32@0x1100[1][3] dst=fp32@0x2010[1][3]"
            " ops=BYPASS,MAX channels=1 imm=fp32@9.0 reverse_operands=FIRST"
            " accumulator_cmd=ACCUMULATE\n"
            "DVE_READ_ACCUMULATOR dst=fp32@0x3004[1][1] channels=1"
        )
        machine = run(text, {X + "uint8[1,3]": [[1, 0, 1]], Y + "fp32[1,3]": [[-5, 4, -3]]})

        assert rows(machine, OUT + "fp32[1,3]") == [-5, -1, -3]
        assert rows(machine, "sbuf:0+0x2010:fp32[1,3]") == [9, 4, 9]
        assert rows(machine, "sbuf:0+0x3000:fp32[1,2]") == [-1, 9]

    def test_range_compares_the_index(self):
        """Elements 512 to 515 against [513, 515); the fill is -inf in fp16, not in the maximum."""
        text = (
            "RANGE_SELECT src=fp32@0x1000[1][4] dst=fp16@0x2000[1][4] channels=1 base=512.0"
            " ops=IS_GE,IS_LT bound0=fp32@513.0 bound1={}"
            " accumulator_cmd=ZERO_ACCUMULATE\n"
            "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=1"
        )
        loads = {X + "fp32[1,4]": [[9, 2, 3, 8]]}
        inside = run(text.format("fp32@515.0"), loads)
        empty = run(text.format("fp32@513.0"), loads)

        assert rows(inside, OUT + "fp16[1,4]") == [-INF, 2, 3, -INF]
        assert rows(inside, "sbuf:0+0x3000:fp32[1,1]") == [3]
        assert rows(empty, OUT + "fp16[1,4]") == [-INF] * 4
        assert rows(empty, "sbuf:0+0x3000:fp32[1,1]") == [-FLT_MAX]

    def test_idle_leaves_the_accumulator_undefined(self):
        """The drain after IDLE warns (dve-tensor-scalar.md 7)."""
        machine = run(
            "SELECT_REDUCE src0=uint8@0x1000[1][1] src1=fp32@0x1100[1][1] dst=fp32@0x2000[1][1]"
            " ops=BYPASS,MAX channels=1 imm=fp32@0.0\n"
            "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=1",
            {X + "uint8[1,1]": [[1]], Y + "fp32[1,1]": [[1]]},
        )

        assert [notice.name for notice in machine.warnings] == ["undefined_accumulator"]

    def test_one_predicate_a_lane(self):
        """Lane 0 is true and lane 1 false; -0.0 is false too, and reversing swaps both."""
        text = (
            "TENSOR_SCALAR_SELECT src0=fp32@0x1000[1][2] dst=fp32@0x2000[1][2] channels=2"
            " src1=fp32@-1.0 pred=[fp16@0x3000] reversed_pred={}"
        )
        loads = {
            X + "fp32[2,2]": [[1, 2], [3, 4]],
            "sbuf:0+0x3000:fp16:bits[2,1]": np.array([[0x0001], [0x8000]], np.uint16),
        }

        assert run(text.format(0), loads).read(OUT + "fp32[2,2]").tolist() == [[1, 2], [-1, -1]]
        assert run(text.format(1), loads).read(OUT + "fp32[2,2]").tolist() == [[-1, -1], [3, 4]]

    def test_a_selection_moves_bits(self):
        """A signalling NaN stays one: 0x7fa1 is not quieted to 0x7fe1, from tensor or scalar."""
        text = (
            "TENSOR_SCALAR_SELECT src0=bf16@0x1000[1][1] dst=bf16@0x2000[1][1] channels=1"
            " src1=bits@0x7fa1 pred={} pred_dtype=int32"
        )
        loads = {X + "bf16:bits[1,1]": np.array([[0xFFA2]], np.uint16)}

        assert rows(run(text.format(1), loads), OUT + "bf16:bits[1,1]") == [0xFFA2]
        assert rows(run(text.format(0), loads), OUT + "bf16:bits[1,1]") == [0x7FA1]

    def test_a_selected_pointer_is_latched(self):
        """The scalar lies where the first element goes: its old value, 7, is taken twice."""
        machine = run(
            "TENSOR_SCALAR_SELECT src0=int16@0x1000[1][2] dst=int16@0x2000[1][2] channels=1"
            " src1=[int16@0x2000] pred=0",
            {X + "int16[1,2]": [[1, 2]], OUT + "int16[1,2]": [[7, 0]]},
        )

        assert rows(machine, OUT + "int16[1,2]") == [7, 7]

    def test_a_selected_infinity_is_not_made(self):
        """The sanitizer reads a scalar in the word as bf16, so -inf comes in."""
        machine = Machine("mariana", sanitize=True)
        machine.write(X + "bf16[1,2]", np.ones((1, 2), np.float32))
        text = (
            "TENSOR_SCALAR_SELECT src0=bf16@0x1000[1][2] dst=bf16@0x2000[1][2] channels=1"
            " src1=bits@0xff80 pred=0\n"
            "COPY src=bf16@0x2000[1][2] dst=bf16@0x3000[1][2] channels=1"
        )
        machine.run(Program.from_text(text))

        assert rows(machine, "sbuf:0+0x3000:bf16[1,2]") == [-INF, -INF]
        assert "made_infinity" not in [notice.name for notice in machine.warnings]


KEYS = [3, 8, 8, 8, 8, 8, 8, 8]
DATA = [1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]
SEARCH = """
MATCH_VALUE_LOAD src=fp32@0x1100[1][8] channels=1
FIND_INDEX8 src=fp32@0x1000[1][11] dst=uint32@0x2000[1][8] channels=1
MATCH_REPLACE8 src=fp32@0x1000[1][11] dst=fp32@0x3000[1][11] channels=1 imm=-inf
DVE_READ_INDICES dst=uint16@0x4000[1][8] channels=1
"""


class TestSearch:
    def test_the_eight_largest(self):
        """Descending, with repeats; a NaN never wins."""
        machine = run(
            "MAX8 src=fp32@0x1000[1][10] dst=fp32@0x2000[1][8] channels=1",
            {X + "fp32[1,10]": [[2, 1, 5, 5, -3, float("nan"), 9, 0, -INF, 4]]},
        )

        assert rows(machine, OUT + "fp32[1,8]") == [9, 5, 5, 4, 2, 1, 0, -3]

    def test_equal_keys_take_occurrences_in_opposite_orders(self):
        """NKI's own example of nc_match_replace8, and its statement about nc_find_index8."""
        machine = run(SEARCH, {X + "fp32[1,11]": [DATA], Y + "fp32[1,8]": [KEYS]})

        assert rows(machine, OUT + "uint32[1,8]") == [2, 4, 5, 6, 7, 8, 9, 10]
        assert rows(machine, "sbuf:0+0x4000:uint16[1,8]") == [2, 10, 9, 8, 7, 6, 5, 4]
        assert rows(machine, "sbuf:0+0x3000:fp32[1,11]") == [1, 2, -INF, 4] + [-INF] * 7

    def test_missing_keys_are_all_ones(self):
        """Seven 8s in the data, eight among the keys: one is left, and 7 is nowhere."""
        keys = [7, 8, 8, 8, 8, 8, 8, 8]
        machine = run(SEARCH, {X + "fp32[1,11]": [[*DATA[:10], 5]], Y + "fp32[1,8]": [keys]})

        found = rows(machine, OUT + "uint32[1,8]")
        assert found == [0xFFFFFFFF, 4, 5, 6, 7, 8, 9, 0xFFFFFFFF]
        assert rows(machine, "sbuf:0+0x4000:uint16[1,8]")[0] == 0xFFFF

    def test_a_compiler_that_negates_steps_gets_the_same_under_the_header_order(self):
        """MAX8 written backwards and keys read backwards: NKI's order again."""
        text = """
            MAX8 src=fp32@0x1000[1][10] dst=fp32@0x111c[-1][8] channels=1
            MATCH_VALUE_LOAD src=fp32@0x111c[-1][8] channels=1
            FIND_INDEX8 src=fp32@0x1000[1][10] dst=uint32@0x2000[1][8] channels=1
        """
        values = [10, 30, 20, 30, 5, 80, 70, 60, 50, 40]
        machine = run(text, {X + "fp32[1,10]": [values]}, "search_order=header")

        assert rows(machine, Y + "fp32[1,8]") == [80, 70, 60, 50, 40, 30, 30, 20]
        assert rows(machine, OUT + "uint32[1,8]") == [5, 6, 7, 8, 9, 1, 3, 2]

    def test_keys_must_be_loaded(self):
        """Nothing is searched for before MATCH_VALUE_LOAD, nor beyond its lanes."""
        find = "FIND_INDEX8 src=fp32@0x1000[1][11] dst=uint32@0x2000[1][8] channels={}"
        loads = {"sbuf:0+0x1000:fp32[2,11]": [DATA] * 2, "sbuf:0+0x1100:fp32[2,8]": [KEYS] * 2}

        assert "MATCH_VALUE_LOAD first" in fault(find.format(1), loads)
        load = "MATCH_VALUE_LOAD src=fp32@0x1100[1][8] channels=1\n"
        assert "for 2 lanes" in fault(load + find.format(2), loads)


class TestStatistics:
    def test_even_and_odd_then_both(self):
        """1 3 5: mean 3, squares 4+0+4; 2 4: mean 3, squares 1+1; together mean 3, variance 2."""
        machine = run(
            "BN_STATS2 src=fp32@0x1000[1][5] dst=fp32@0x2000[1][6] channels=1"
            " even_count=3.0 odd_count=2.0\n"
            "BN_AGGREGATE src=fp32@0x2000[1][6] dst=fp32@0x3000[1][2] channels=1",
            {X + "fp32[1,5]": [[1, 2, 3, 4, 5]]},
        )

        assert rows(machine, OUT + "fp32[1,6]") == [3, 3, 8, 2, 3, 2]
        assert rows(machine, "sbuf:0+0x3000:fp32[1,2]") == [3, 2]

    def test_one_set(self):
        """Three elements of dst take all of the source as one set."""
        machine = run(
            "BN_STATS src=fp32@0x1000[1][4] dst=fp32@0x2000[1][3] channels=1 even_count=4.0",
            {X + "fp32[1,4]": [[1, 2, 3, 6]]},
        )

        assert rows(machine, OUT + "fp32[1,3]") == [4, 3, 14]


class TestLanes:
    def test_shuffle(self):
        """Each lane takes the one above it; lane 31 of each quadrant stays."""
        mask = ",".join(map(str, range(1, 32)))
        machine = run(
            f"LOAD_MASK_SELECT mask=[{mask},255]\n"
            "STREAM_SHUFFLE src=int32@0x1000[1][1] dst=int32@0x2000[1][1] channels=64",
            {
                X + "int32[64,1]": np.arange(64)[:, None],
                OUT + "int32[64,1]": np.full((64, 1), -1),
            },
        )

        found = machine.read(OUT + "int32[64,1]")[:, 0].tolist()
        assert found == [*range(1, 32), -1, *range(33, 64), -1]

    def test_transpose(self):
        """dst[p][e] = src[e][p] within each tile of 32 by 32."""
        values = np.arange(32 * 64).reshape(32, 64).astype(np.int32)
        machine = run(
            "STREAM_TRANSPOSE src=int32@0x1000[1][64] dst=int32@0x2000[1][64] channels=32",
            {X + "int32[32,64]": values},
        )

        found = machine.read(OUT + "int32[32,64]")
        assert (found[:, :32] == values[:, :32].T).all()
        assert (found[:, 32:] == values[:, 32:].T).all()


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "STREAM_SHUFFLE src=fp32@0x1000[1][1] dst=fp32@0x2000[1][1] channels=32",
                "LOAD_MASK_SELECT first",
            ),
            (
                "STREAM_TRANSPOSE src=fp32@0x1000[1][32] dst=fp32@0x2000[1][32] channels=32"
                " mask_enable=1",
                "mask_enable leaves out of a tile is not published",
            ),
            (
                "SCALAR_TENSOR_TENSOR src0=fp32@0x1000[1][1] src1=fp32@0x1000[1][1]"
                " dst=fp32@0x2000[1][1] ops=ADD,ADD channels=1 imm=fp32@0.0"
                " accumulator_cmd=ACCUMULATE",
                "what this word accumulates is not published",
            ),
            (
                "TENSOR_TENSOR op=POW src0=fp32@0x1000[1][1] src1=fp32@0x1000[1][1]"
                " dst=fp32@0x2000[1][1] channels=1",
                "POW is unsupported on the DVE",
            ),
            ("DVE_READ_INDICES dst=uint32@0x2000[1][8] channels=1", "MATCH_REPLACE8 first"),
            ("REG_STORE dst=uint32@0x2000[1][8] channels=1", "is not published"),
            ("RNG dst=uint32@0x2000[1][8] channels=1", "random generator is not published"),
            ("BN_PARAM_LOAD src=fp32@0x1000[1][8] channels=1", "only its fields are published"),
        ],
    )
    def test_the_reason_is_said(self, text, message):
        """What is not published decodes, and its execution says so."""
        loads = {"sbuf:0+0x1000:fp32[32,32]": np.ones((32, 32))}

        assert message in fault(text, loads)
