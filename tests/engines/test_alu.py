"""The ALU against plain integers, and the values that dve-tensor-scalar.md prints."""

from __future__ import annotations

import struct
from itertools import product

import numpy as np
import pytest

from neuron_emu.engines import alu
from neuron_emu.engines.alu_bitvec import apply_bits, apply_words
from neuron_emu.engines.alu_integer import apply_int
from neuron_emu.engines.reference import alu as plain
from neuron_emu.generation import CAYMAN, GENERATIONS, MARIANA, MAVERICK, SUNDA
from neuron_emu.isa import alu_ops
from neuron_emu.isa.enums import AluOp
from neuron_emu.policy import Policy

DEFAULT = Policy()
FLOAT_OPS = sorted(alu_ops.general_arith_ops(MAVERICK))
BIT_OPS = sorted(alu_ops.GENERAL_BITVEC_OPS)
INTEGER_OPS = sorted(op for op in alu_ops.INTEGER_BAND if alu.unsupported(op, MAVERICK) is None)
NAN_CHOICES = ("other", "second", "propagate")
EDGES = [
    *(0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x40000000, 0xC0A00000, 0x40400000),
    *(0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFA00005, 0x7FFFFFFF),
    *(0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x4B800001),
]
WORD_EDGES = [0, 1, 2, 5, 7, 8, 31, 32, 33, 63, 64, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


def bits_of(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def floats(words: list[int]) -> alu.Float32s:
    return np.array(words, np.uint32).view(np.float32)


def random_words(count: int, seed: int) -> list[int]:
    words = np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)
    return [int(word) for word in words]


class TestFloatOperations:
    """Every operation on fp32 gives the bits of the plain implementation."""

    @pytest.mark.parametrize("nan", NAN_CHOICES)
    @pytest.mark.parametrize("op", FLOAT_OPS)
    def test_edges(self, op: int, nan: str) -> None:
        policy = Policy(nan_max_min=nan)
        pairs = list(product(EDGES, EDGES))
        left, right = floats([a for a, _ in pairs]), floats([b for _, b in pairs])

        result = alu.apply(op, left, right, policy).view(np.uint32)

        assert [int(word) for word in result] == [
            plain.float_op(op, a, b, policy) for a, b in pairs
        ]

    @pytest.mark.parametrize("op", FLOAT_OPS)
    def test_random_words(self, op: int) -> None:
        a, b = random_words(400, 1), random_words(400, 2)
        b[::7] = a[::7]

        result = alu.apply(op, floats(a), floats(b), DEFAULT).view(np.uint32)

        expected = [plain.float_op(op, x, y, DEFAULT) for x, y in zip(a, b, strict=True)]
        assert [int(word) for word in result] == expected

    def test_clamp_that_takes_the_smaller_magnitude(self) -> None:
        policy = Policy(symmetric_clamp="clamp")
        pairs = list(product(EDGES, EDGES))
        left, right = floats([a for a, _ in pairs]), floats([b for _, b in pairs])

        result = alu.apply(AluOp.SYMMETRIC_CLAMP, left, right, policy).view(np.uint32)

        assert [int(word) for word in result] == [
            plain.float_op(AluOp.SYMMETRIC_CLAMP, a, b, policy) for a, b in pairs
        ]

    @pytest.mark.parametrize(
        ("op", "a", "b", "expected"),
        [
            (AluOp.ABS_MAX, -5.0, 3.0, -5.0),
            (AluOp.ABS_MAX, 1.0, -1.0, -1.0),
            (AluOp.ABS_MIN, -5.0, 3.0, 3.0),
            (AluOp.ABS_DIFF, 2.0, 5.0, 3.0),
            (AluOp.RELU, -2.0, 9.0, 0.0),
            (AluOp.RELU, -0.0, 9.0, 0.0),
            (AluOp.RELU, float("nan"), 9.0, 0.0),
            (AluOp.SQUARE, -3.0, 9.0, 9.0),
            (AluOp.MAX, 0.0, -0.0, 0.0),
            (AluOp.MAX, -0.0, 0.0, 0.0),
            (AluOp.MIN, 0.0, -0.0, -0.0),
            (AluOp.MAX, float("nan"), 2.0, 2.0),
            (AluOp.MIN, 2.0, float("nan"), 2.0),
            (AluOp.IS_NE, float("nan"), float("nan"), 1.0),
            (AluOp.IS_EQUAL, float("nan"), float("nan"), 0.0),
            (AluOp.IS_GE, 2.0, 2.0, 1.0),
            (AluOp.LOGICAL_AND, float("nan"), 1.0, 1.0),
            (AluOp.LOGICAL_XOR, -0.0, 1.0, 1.0),
            (AluOp.SYMMETRIC_CLAMP, -2.0, 3.0, -3.0),
        ],
    )
    def test_worked(self, op: int, a: float, b: float, expected: float) -> None:
        """Values of dve-tensor-scalar.md 5.1 and 5.3."""
        result = alu.apply(op, floats([bits_of(a)]), floats([bits_of(b)]), DEFAULT)

        assert int(result.view(np.uint32)[0]) == bits_of(expected)

    def test_two_nans_give_the_canonical_one(self) -> None:
        result = alu.apply(AluOp.MAX, floats([0xFFC00001]), floats([0x7FC00002]), DEFAULT)

        assert int(result.view(np.uint32)[0]) == 0x7FC00000

    def test_a_scalar_is_broadcast(self) -> None:
        values = np.arange(6, dtype=np.float32).reshape(2, 3)

        result = alu.apply(AluOp.MAX, values, np.array([[1], [4]], np.float32), DEFAULT)

        assert result.tolist() == [[1, 1, 2], [4, 4, 5]]


def plain_fold(
    op: int, initial: int, row: list[int], policy: Policy, value_first: bool = True
) -> list[int]:
    """Return every prefix."""
    prefixes, total = [], initial
    for value in row:
        pair = (value, total) if value_first else (total, value)
        total = plain.float_op(op, *pair, policy)
        prefixes.append(total)
    return prefixes


ROWS = [
    [0x3F800000, 0x40000000, 0x40400000],
    [0x80000000, 0x80000000, 0x80000000],
    [0x80000000, 0x00000000, 0x80000000],
    [0x7FC00001, 0x3F800000, 0xFFC00002],
    [0x7F800000, 0xFF800000, 0x3F800000],
    [0x7F800000, 0xFF800000, 0x7FA00003],
    [0x7FC00001, 0x7FC00002, 0xFFC00003],
    [0xFF800000, 0xFF800000, 0xFF800000],
    [0x00000000, 0x7F800000, 0x00000000],
    [0x7F7FFFFF, 0x7F7FFFFF, 0xFF800000],
]


class TestFolds:
    """Folds and scans equal one operation after the other."""

    @pytest.mark.parametrize("value_first", [True, False])
    @pytest.mark.parametrize("nan", NAN_CHOICES)
    @pytest.mark.parametrize("op", FLOAT_OPS)
    def test_special_rows(self, op: int, nan: str, value_first: bool) -> None:
        policy = Policy(nan_max_min=nan)
        starts = [0x00000000, 0x80000000, 0x3F800000, 0xFFC00009, 0xFF800000]
        cases = list(product(starts, ROWS))
        initial, rows = floats([start for start, _ in cases]), floats([r for _, r in cases])
        expected = [plain_fold(op, start, row, policy, value_first) for start, row in cases]

        folded = alu.fold(op, initial, rows, policy, value_first=value_first)
        scanned = alu.scan(op, initial, rows, policy, value_first=value_first)

        assert scanned.view(np.uint32).tolist() == expected
        assert folded.view(np.uint32).tolist() == [row[-1] for row in expected]

    @pytest.mark.parametrize("op", [AluOp.ADD, AluOp.MULT, AluOp.MAX, AluOp.MIN, AluOp.SUBTRACT])
    def test_long_rows(self, op: int) -> None:
        """700 elements: more than one block of the summation."""
        random = np.random.default_rng(3)
        values = random.uniform(0.5, 1.5, (5, 700)).astype(np.float32)
        initial = random.uniform(-2, 2, 5).astype(np.float32)
        words = values.view(np.uint32).tolist()
        starts = initial.view(np.uint32).tolist()
        expected = [
            plain_fold(op, start, row, DEFAULT) for start, row in zip(starts, words, strict=True)
        ]

        assert alu.scan(op, initial, values, DEFAULT).view(np.uint32).tolist() == expected
        folded = alu.fold(op, initial, values, DEFAULT).view(np.uint32)
        assert folded.tolist() == [row[-1] for row in expected]

    def test_pairs_sums_even_and_odd_elements_apart(self) -> None:
        """2**24 + 1 loses the 1 in fp32: 2**24 + 1 + 1 is 2**24 in order, and 2**24 + 2 apart."""
        values = np.array([[2.0**24, 1, 0, 1]], np.float32)
        zero = np.zeros(1, np.float32)

        assert alu.fold(AluOp.ADD, zero, values, DEFAULT)[0] == 2**24
        assert alu.fold(AluOp.ADD, zero, values, DEFAULT, order="pairs")[0] == 2**24 + 2

    def test_identities(self) -> None:
        """dve-tensor-scalar.md 4.5."""
        ops = (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULT, AluOp.MAX, AluOp.MIN)

        assert [float(alu.identity(op)) for op in ops] == [0, 0, 1, -np.inf, np.inf]


class TestBitvec:
    """Operations on bits at every width."""

    @pytest.mark.parametrize("wide", ["mathematical", "mask5"])
    @pytest.mark.parametrize("op", BIT_OPS)
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
    def test_edges_and_random_words(self, op: int, wide: str, dtype: type[np.uint32]) -> None:
        policy = Policy(shift_count_wide=wide)
        mask = int(np.iinfo(dtype).max)
        words = [word & mask for word in (*WORD_EDGES, *random_words(20, 4))]
        pairs = list(product(words, words))
        left = np.array([a for a, _ in pairs], dtype)
        right = np.array([b for _, b in pairs], dtype)

        result = apply_bits(op, left, right, policy)

        assert result.dtype == dtype
        assert result.tolist() == [plain.bitvec_op(op, a, b, policy) & mask for a, b in pairs]

    def test_wide_counts(self) -> None:
        """Mathematical by default: 0 or the sign; five bits of the count by policy."""
        word, count = np.array([0x80000001], np.uint32), np.array([33], np.uint32)
        by_five_bits = Policy(shift_count_wide="mask5")
        right, arithmetic = AluOp.LOGICAL_SHIFT_RIGHT, AluOp.ARITH_SHIFT_RIGHT

        assert apply_words(right, word, count, DEFAULT)[0] == 0
        assert apply_words(arithmetic, word, count, DEFAULT)[0] == 0xFFFFFFFF
        assert apply_words(right, word, count, by_five_bits)[0] == 0x40000000
        assert apply_words(arithmetic, word, count, by_five_bits)[0] == 0xC0000000


class TestIntegers:
    """The integer band on 32-bit words."""

    @pytest.mark.parametrize("op", INTEGER_OPS)
    def test_edges_and_random_words(self, op: int) -> None:
        words = [*WORD_EDGES, *random_words(20, 5)]
        pairs = list(product(words, words))
        left = np.array([a for a, _ in pairs], np.uint32)
        right = np.array([b for _, b in pairs], np.uint32)

        result = apply_int(op, left, right)

        assert result.tolist() == [plain.integer_op(op, a, b) for a, b in pairs]

    @pytest.mark.parametrize(
        ("op", "a", "b", "expected"),
        [
            (AluOp.ADD_INT, 0x7FFFFFFF, 1, 0x80000000),
            (AluOp.SUBTRACT_INT, 0, 1, 0xFFFFFFFF),
            (AluOp.MULT_INT, 0x10001, 0x10001, 0x20001),
            (AluOp.MAX_INT, 0xFFFFFFFF, 1, 1),
            (AluOp.MAX_UINT, 0xFFFFFFFF, 1, 0xFFFFFFFF),
            (AluOp.ABS_MAX_INT, 0xFFFFFFFB, 3, 0xFFFFFFFB),
            (AluOp.ABS_DIFF_INT, 2, 5, 3),
        ],
    )
    def test_worked(self, op: int, a: int, b: int, expected: int) -> None:
        result = apply_int(op, np.array([a], np.uint32), np.array([b], np.uint32))

        assert int(result[0]) == expected


class TestClasses:
    """The predicates of dve-tensor-scalar.md 5.4, by their printed sizes and members."""

    def test_sizes(self) -> None:
        assert len(alu_ops.BITVEC_OPS) == 10
        assert len(alu_ops.GENERAL_BITVEC_OPS) == 9
        assert [len(alu_ops.general_arith_ops(g)) for g in GENERATIONS.values()] == [
            *(17, 17, 21, 21, 22)
        ]
        assert len(alu_ops.arith_ops(CAYMAN)) == 26
        assert len(alu_ops.arith_ops(MARIANA)) == 30
        assert len(alu_ops.INTEGER_OPS) == 26
        assert len(alu_ops.dve_integer_ops(MAVERICK)) == 15
        assert alu_ops.dve_integer_ops(MARIANA) == frozenset()

    def test_members(self) -> None:
        general = "00 04 05 06 08 09 0D 0E 0F 12 13 14 15 16 17 18 19"
        integers = "00 C4 C5 C6 C9 CA CB CC CD CF D0 D1 D2 D3 D4"
        bits = "00 01 02 03 0A 0B 0C 10 11 1C"

        assert alu_ops.general_arith_ops(SUNDA) == {int(c, 16) for c in general.split()}
        assert alu_ops.dve_integer_ops(MAVERICK) == {int(c, 16) for c in integers.split()}
        assert {int(c, 16) for c in bits.split()} == alu_ops.BITVEC_OPS

    def test_what_another_engine_has_is_named(self) -> None:
        for op in (AluOp.RSQRT, AluOp.CRC32, AluOp.POW, AluOp.DIVIDE, AluOp.MOD):
            problem = alu.unsupported(op, MARIANA)

            assert problem is not None
            assert f"{op.name} is unsupported on the DVE" in problem.message

    def test_an_operation_of_a_later_generation_is_named(self) -> None:
        problem = alu.unsupported(AluOp.ABS_MAX, CAYMAN)

        assert problem is not None
        assert problem.message == "ABS_MAX is no ALU operation of cayman"

    def test_every_other_operation_executes(self) -> None:
        for op in MAVERICK.alu_ops:
            if alu.unsupported(op, MAVERICK) is None:
                assert op in (*FLOAT_OPS, *BIT_OPS, *INTEGER_OPS)
