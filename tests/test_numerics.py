"""Conversions, NaN rules and sums, bit by bit.

Expected values come from dve-tensor-scalar.md 6 and 13 (copied here as numbers), from the order of
the codes themselves, and from the exact rational arithmetic of `engines.reference.conversion`,
which shares no code with `numerics`.
"""

from __future__ import annotations

import struct

import attrs
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuron_emu import numerics
from neuron_emu.engines.reference import conversion
from neuron_emu.errors import InputError
from neuron_emu.generation import CAYMAN, GENERATIONS, MARIANA
from neuron_emu.isa.enums import DType
from neuron_emu.numerics import NumberFormats
from neuron_emu.policy import Policy

IEEE = NumberFormats.of(CAYMAN, Policy())
EXTENDED = NumberFormats.of(MARIANA, Policy())
SATURATE_E3M4 = attrs.evolve(EXTENDED, fp8_e3m4_max="saturate")
STOCHASTIC = attrs.evolve(IEEE, rounding="stochastic", seed=7)

FP8 = (DType.FP8_EXP3, DType.FP8_EXP4, DType.FP8_EXP5)
HALVES = (DType.BFLOAT16, DType.FP16)
NARROW_INTEGERS = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)
WIDE_INTEGERS = (DType.INT32, DType.UINT32)
MATRIX = (*FP8, *HALVES, *NARROW_INTEGERS, *WIDE_INTEGERS, DType.FP32, DType.FP32R)

NAN = 0x7FC00000
INF = 0x7F800000
SIGN = 0x80000000
MAX_FLOAT = 0x7F7FFFFF

SPECIAL_BITS = [
    bits | sign
    for sign in (0, SIGN)
    for bits in (
        0,
        1,  # smallest subnormal
        0x007FFFFF,  # largest subnormal
        0x00800000,  # smallest normal
        0x33000000,  # 2^-25, half of the smallest FP16
        0x33000001,
        0x3F000000,
        0x3F800000,
        MAX_FLOAT,
        INF,
        INF | 1,  # signalling NaN whose payload lies in the lowest bit
        0x7FA00000,  # signalling NaN
        NAN,
        NAN | 0x1234,
        0x7FFFFFFF,
    )
]

ANY_BITS = st.integers(0, 0xFFFFFFFF)
NEAR_ONE_BITS = st.builds(
    lambda sign, exponent, mantissa: sign << 31 | exponent << 23 | mantissa,
    st.integers(0, 1),
    st.integers(95, 162),  # 2^-32 to 2^35: around every narrow format and integer
    st.integers(0, 0x7FFFFF),
)
FLOAT_BITS = st.one_of(ANY_BITS, NEAR_ONE_BITS, st.sampled_from(SPECIAL_BITS))


def floats(bits):
    return np.array(bits, dtype=np.uint32).view(np.float32)


def words(values):
    return np.asarray(values).view(np.uint32).tolist()


def float_bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def codes_of(dtype):
    return np.arange(1 << 8 * dtype.size_bytes, dtype=numerics.storage_dtype(dtype))


def write(bits, dtype, formats=EXTENDED, **options):
    return numerics.from_float32(floats(bits), dtype, formats, **options).tolist()


def assert_same_bits(actual, expected, context=None):
    """Compare two unsigned arrays and show the first difference in hex."""
    actual, expected = np.asarray(actual).ravel(), np.asarray(expected).ravel()
    assert actual.shape == expected.shape
    wrong = np.flatnonzero(actual != expected)
    if wrong.size:
        index = wrong[0]
        shown = "" if context is None else f" from {np.asarray(context).ravel()[index]!r}"
        pytest.fail(
            f"{wrong.size} differ, first [{index}]{shown}: "
            f"{int(actual[index]):#x} must be {int(expected[index]):#x}"
        )


class TestStorageDtype:
    @pytest.mark.parametrize(
        ("dtypes", "expected"),
        [
            ((DType.INT8, DType.UINT8, *FP8), "<u1"),
            ((DType.INT16, DType.UINT16, *HALVES), "<u2"),
            ((DType.INT32, DType.UINT32, DType.FP32, DType.FP32R), "<u4"),
        ],
    )
    def test_is_unsigned_of_the_element_size(self, dtypes, expected):
        assert {numerics.storage_dtype(dtype) for dtype in dtypes} == {np.dtype(expected)}

    @pytest.mark.parametrize("dtype", sorted(set(DType) - set(MATRIX)))
    def test_refuses_what_the_family_cannot_hold(self, dtype):
        with pytest.raises(InputError, match=rf"^dtype must be one of int8, .*, not {dtype.word}$"):
            numerics.storage_dtype(dtype)

    def test_refuses_an_unassigned_code(self):
        with pytest.raises(InputError, match=r"not 23$"):
            numerics.storage_dtype(0x17)

    @pytest.mark.parametrize("dtype", MATRIX)
    def test_other_arrays_are_refused(self, dtype):
        """A float64 would be rounded twice; a wrong width would change the shape."""
        with pytest.raises(InputError, match=r"^values must be an array of float32, not float64$"):
            numerics.from_float32(np.zeros(2), dtype, EXTENDED)
        with pytest.raises(InputError, match=r"^bits must be an array of uint\d+, not int64$"):
            numerics.to_float32(np.zeros(2, np.int64), dtype, EXTENDED)

    def test_other_dtypes_are_refused_in_both_directions(self):
        with pytest.raises(InputError, match="not int64"):
            numerics.from_float32(floats([0]), DType.INT64, EXTENDED)
        with pytest.raises(InputError, match="not fp4_exp2"):
            numerics.to_float32(np.zeros(2, np.uint8), DType.FP4_EXP2, EXTENDED)
        with pytest.raises(InputError, match="FP4_EXP2"):
            conversion.from_float32_bits(0, DType.FP4_EXP2, EXTENDED)


class TestNumberFormats:
    @pytest.mark.parametrize(
        ("generation", "profile"),
        [
            ("sunda", "ieee"),
            ("cayman", "ieee"),
            ("mariana", "extended"),
            ("mariana_plus", "extended"),
            ("maverick", "extended"),
        ],
    )
    def test_profile_of_each_generation(self, generation, profile):
        assert NumberFormats.of(GENERATIONS[generation], Policy()).fp8_profile == profile

    def test_defaults(self):
        assert NumberFormats(
            fp8_profile="extended",
            fp8_e3m4_max="ieee",
            fp32r_mantissa=11,
            rounding="rne",
            seed=0,
        ) == NumberFormats.of(MARIANA, Policy())

    def test_policy_decides_over_the_generation(self):
        policy = Policy.parse(
            [
                "fp8_profile=ieee",
                "fp8_e3m4_max=saturate",
                "fp32r_mantissa=13",
                "rounding=stochastic",
                "seed=5",
            ]
        )
        assert NumberFormats.of(MARIANA, policy) == NumberFormats(
            fp8_profile="ieee",
            fp8_e3m4_max="saturate",
            fp32r_mantissa=13,
            rounding="stochastic",
            seed=5,
        )

    def test_is_a_key(self):
        assert {IEEE: 1}[NumberFormats.of(CAYMAN, Policy())] == 1
        assert IEEE != EXTENDED


class TestToFloat32:
    @pytest.mark.parametrize("formats", [IEEE, EXTENDED], ids=["ieee", "extended"])
    @pytest.mark.parametrize("dtype", [*FP8, DType.INT8, DType.UINT8])
    def test_every_byte(self, dtype, formats):
        codes = codes_of(dtype)
        expected = [conversion.to_float32_bits(int(c), dtype, formats) for c in codes]
        actual = numerics.to_float32(codes, dtype, formats).view(np.uint32)

        assert_same_bits(actual, expected, codes)

    @pytest.mark.parametrize("dtype", [*HALVES, DType.INT16, DType.UINT16])
    def test_every_half_word(self, dtype):
        codes = codes_of(dtype)
        expected = [conversion.to_float32_bits(c, dtype, IEEE) for c in codes.tolist()]
        actual = numerics.to_float32(codes, dtype, IEEE).view(np.uint32)

        assert_same_bits(actual, expected, codes)

    @pytest.mark.parametrize(
        ("dtype", "formats", "ml_type"),
        [
            (DType.FP8_EXP3, IEEE, ml_dtypes.float8_e3m4),
            (DType.FP8_EXP4, IEEE, ml_dtypes.float8_e4m3),
            (DType.FP8_EXP4, EXTENDED, ml_dtypes.float8_e4m3fn),
            (DType.FP8_EXP5, EXTENDED, ml_dtypes.float8_e5m2),
            (DType.BFLOAT16, EXTENDED, ml_dtypes.bfloat16),
            (DType.FP16, EXTENDED, np.float16),
            (DType.INT16, EXTENDED, np.int16),
            (DType.UINT16, EXTENDED, np.uint16),
        ],
    )
    def test_both_implementations_agree_with_the_libraries(self, dtype, formats, ml_type):
        codes = codes_of(dtype)
        with np.errstate(invalid="ignore"):
            expected = codes.view(ml_type).astype(np.float64)
        finite = np.isfinite(expected)
        reference = [conversion.to_float32_bits(c, dtype, formats) for c in codes[::13].tolist()]

        actual = numerics.to_float32(codes, dtype, formats)
        assert (actual[finite] == expected[finite]).all()
        assert (floats(reference)[finite[::13]] == expected[::13][finite[::13]]).all()

    @pytest.mark.parametrize(
        ("dtype", "formats", "code", "bits"),
        [
            (DType.BFLOAT16, EXTENDED, 0x7F81, NAN),
            (DType.BFLOAT16, EXTENDED, 0xFFFF, NAN | SIGN),
            (DType.BFLOAT16, EXTENDED, 0xFF80, INF | SIGN),
            (DType.FP16, EXTENDED, 0x7C01, NAN),
            (DType.FP16, EXTENDED, 0xFE00, NAN | SIGN),
            (DType.FP16, EXTENDED, 0x0001, 0x33800000),  # 2^-24
            (DType.FP8_EXP3, IEEE, 0x6F, 0x41780000),  # 15.5
            (DType.FP8_EXP3, IEEE, 0x01, 0x3C800000),  # 2^-6
            (DType.FP8_EXP3, IEEE, 0xF0, INF | SIGN),
            (DType.FP8_EXP4, IEEE, 0x77, 0x43700000),  # 240
            (DType.FP8_EXP4, IEEE, 0x78, INF),
            (DType.FP8_EXP4, IEEE, 0xFC, NAN | SIGN),
            (DType.FP8_EXP4, EXTENDED, 0x78, 0x43800000),  # 256
            (DType.FP8_EXP4, EXTENDED, 0xFE, 0xC3E00000),  # -448
            (DType.FP8_EXP4, EXTENDED, 0xFF, NAN | SIGN),
            (DType.FP8_EXP4, EXTENDED, 0x01, 0x3B000000),  # 2^-9
            (DType.FP8_EXP5, EXTENDED, 0x7B, 0x47600000),  # 57344
            (DType.FP8_EXP5, EXTENDED, 0x7C, INF),
            (DType.FP8_EXP5, EXTENDED, 0xFD, NAN | SIGN),
            (DType.INT32, EXTENDED, 16777217, 0x4B800000),  # 2^24 + 1: tie to even
            (DType.INT32, EXTENDED, 16777219, 0x4B800002),
            (DType.INT32, EXTENDED, 0x80000000, 0xCF000000),
            (DType.INT32, EXTENDED, 0x7FFFFFFF, 0x4F000000),
            (DType.UINT32, EXTENDED, 0xFFFFFFFF, 0x4F800000),
            (DType.FP32, EXTENDED, 0xFF812345, 0xFF812345),
            (DType.FP32R, EXTENDED, 0x7F812345, 0x7F812345),
        ],
    )
    def test_documented_value(self, dtype, formats, code, bits):
        codes = np.array([code], numerics.storage_dtype(dtype))
        assert words(numerics.to_float32(codes, dtype, formats)) == [bits]
        assert conversion.to_float32_bits(code, dtype, formats) == bits

    @settings(deadline=None)
    @given(st.lists(st.integers(0, 0xFFFFFFFF), min_size=1), st.sampled_from(WIDE_INTEGERS))
    def test_wide_integers_round_to_even(self, numbers, dtype):
        bits = np.array(numbers, np.uint32)
        expected = [conversion.to_float32_bits(n, dtype, IEEE) for n in numbers]
        assert words(numerics.to_float32(bits, dtype, IEEE)) == expected

    @pytest.mark.parametrize("dtype", WIDE_INTEGERS)
    def test_wide_integers_at_every_tie(self, dtype):
        """Every power of two, its half steps, and the integers beside them."""
        numbers = sorted(
            {
                (sign * (2**power + half * 2**shift + delta)) % 2**32
                for power in range(24, 32)
                for shift in [max(power - 24, 0)]
                for half in (0, 1, 2, 3, -1)
                for delta in (-1, 0, 1)
                for sign in (1, -1)
            }
        )
        expected = [conversion.to_float32_bits(n, dtype, IEEE) for n in numbers]
        actual = numerics.to_float32(np.array(numbers, np.uint32), dtype, IEEE)
        assert_same_bits(actual.view(np.uint32), expected, numbers)


def finite_magnitudes(dtype, formats):
    """Return the float32 of the non-negative finite codes, which are in rising order."""
    half = codes_of(dtype)[: 1 << 8 * dtype.size_bytes - 1]
    values = numerics.to_float32(half, dtype, formats)
    return values[np.isfinite(values)]


OVERFLOW = [
    (DType.FP8_EXP3, IEEE, 0x70),
    (DType.FP8_EXP3, SATURATE_E3M4, 0x6F),
    (DType.FP8_EXP4, IEEE, 0x78),
    (DType.FP8_EXP4, EXTENDED, 0x7E),
    (DType.FP8_EXP5, IEEE, 0x7C),
    (DType.FP8_EXP5, EXTENDED, 0x7B),
    (DType.BFLOAT16, EXTENDED, 0x7F80),
    (DType.FP16, EXTENDED, 0x7C00),
]


class TestFromFloat32:
    @pytest.mark.parametrize("negative", [False, True])
    @pytest.mark.parametrize(("dtype", "formats", "overflow"), OVERFLOW)
    def test_every_rounding_boundary(self, dtype, formats, overflow, negative):
        """Neighbouring codes differ by one, so the even of two is known without any rounding."""
        exact = finite_magnitudes(dtype, formats)
        wide = exact.astype(np.float64)
        following = np.append(wide[1:], 2 * wide[-1] - wide[-2])
        middle = ((wide + following) / 2).astype(np.float32)
        code = np.arange(len(exact))
        above = np.append(code[1:], overflow)
        tie = np.where(code % 2 == 0, code, above)
        infinity = np.float32(np.inf)
        cases = [
            (exact, code),
            (np.nextafter(exact, infinity), code),
            (np.nextafter(middle, np.float32(0)), code),
            (middle, tie),
            (np.nextafter(middle, infinity), above),
        ]
        sign = 1 << 8 * dtype.size_bytes - 1 if negative else 0

        assert (middle.astype(np.float64) * 2 == wide + following).all()
        for values, expected in cases:
            source = -values if negative else values
            actual = numerics.from_float32(source, dtype, formats)
            assert_same_bits(actual, expected + sign, source)

    @pytest.mark.parametrize("dtype", NARROW_INTEGERS)
    def test_every_integer_boundary(self, dtype):
        bits = 8 * dtype.size_bytes
        is_signed = dtype in (DType.INT8, DType.INT16)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
        number = np.arange(low - 3, high + 4)
        exact, middle = number.astype(np.float32), (number + 0.5).astype(np.float32)
        even = number + number % 2
        infinity = np.float32(np.inf)
        for values, rounded in [
            (exact, number),
            (np.nextafter(middle, -infinity), number),
            (middle, even),
            (np.nextafter(middle, infinity), number + 1),
        ]:
            expected = np.clip(rounded, low, high) % 2**bits
            assert_same_bits(numerics.from_float32(values, dtype, IEEE), expected, values)

    @pytest.mark.parametrize(
        ("bits", "dtype", "formats", "code"),
        [
            # dve-tensor-scalar.md 13, in the order of its table
            (0x3F808000, DType.BFLOAT16, EXTENDED, 0x3F80),
            (0x3F818000, DType.BFLOAT16, EXTENDED, 0x3F82),
            (0x7F7FFFFF, DType.BFLOAT16, EXTENDED, 0x7F80),
            (0x477FEFFF, DType.FP16, EXTENDED, 0x7BFF),
            (0x477FF000, DType.FP16, EXTENDED, 0x7C00),
            (0x3F800800, DType.FP32R, EXTENDED, 0x3F800000),
            (0x3F801800, DType.FP32R, EXTENDED, 0x3F802000),
            (0x3F800801, DType.FP32R, EXTENDED, 0x3F801000),
            (0x7F7FF800, DType.FP32R, EXTENDED, 0x7F800000),
            (float_bits(247.9), DType.FP8_EXP4, IEEE, 0x77),
            (float_bits(248), DType.FP8_EXP4, IEEE, 0x78),
            (float_bits(464), DType.FP8_EXP4, EXTENDED, 0x7E),
            (float_bits(465), DType.FP8_EXP4, EXTENDED, 0x7E),  # 0x7F only without saturation
            (float_bits(61439), DType.FP8_EXP5, IEEE, 0x7B),
            (float_bits(61440), DType.FP8_EXP5, IEEE, 0x7C),
            (float_bits(61440), DType.FP8_EXP5, EXTENDED, 0x7B),
            (float_bits(15.74), DType.FP8_EXP3, IEEE, 0x6F),
            (float_bits(15.75), DType.FP8_EXP3, IEEE, 0x70),
            (float_bits(15.75), DType.FP8_EXP3, SATURATE_E3M4, 0x6F),
            # users' case 9
            (0x3F808001, DType.BFLOAT16, EXTENDED, 0x3F81),
            (0xFF7FFFFF, DType.BFLOAT16, EXTENDED, 0xFF80),
            # 6.4 note 2: -FLT_MAX narrows to minus infinity where nothing saturates
            (0xFF7FFFFF, DType.FP16, EXTENDED, 0xFC00),
            (0xFF7FFFFF, DType.FP8_EXP4, IEEE, 0xF8),
            (0xFF7FFFFF, DType.FP8_EXP5, IEEE, 0xFC),
            # 6.6: infinities and NaN, sign kept
            (INF, DType.FP8_EXP4, EXTENDED, 0x7F),
            (INF | SIGN, DType.FP8_EXP4, EXTENDED, 0xFF),
            (INF | SIGN, DType.FP8_EXP4, IEEE, 0xF8),
            (INF, DType.FP8_EXP5, EXTENDED, 0x7C),
            (INF | SIGN, DType.FP8_EXP3, SATURATE_E3M4, 0xF0),
            (NAN | SIGN, DType.FP8_EXP3, IEEE, 0xF8),
            (NAN | SIGN, DType.FP8_EXP4, IEEE, 0xFC),
            (NAN | SIGN, DType.FP8_EXP4, EXTENDED, 0xFF),
            (NAN | SIGN, DType.FP8_EXP5, EXTENDED, 0xFE),
            (INF | 1, DType.FP8_EXP5, IEEE, 0x7E),
            # 6.4: NaN of the 16-bit formats, sign dropped; FP32 and FP32R keep everything
            (0xFFFFFFFF, DType.BFLOAT16, EXTENDED, 0x7FC0),
            (INF | 1, DType.BFLOAT16, EXTENDED, 0x7FC0),
            (0xFFFFFFFF, DType.FP16, EXTENDED, 0x7E00),
            (0xFF800001, DType.FP16, EXTENDED, 0x7E00),
            (0xFF800001, DType.FP32, EXTENDED, 0xFF800001),
            (0xFF800001, DType.FP32R, EXTENDED, 0xFF800001),
            (0x7FFFFFFF, DType.FP32R, EXTENDED, 0x7FFFFFFF),
        ],
    )
    def test_documented_bits(self, bits, dtype, formats, code):
        assert write([bits], dtype, formats) == [code]
        assert conversion.from_float32_bits(bits, dtype, formats) == code

    @pytest.mark.parametrize(
        ("dtype", "values", "expected"),
        [
            # dve-tensor-scalar.md 13 and users' case 8
            (DType.INT8, [0.5, 1.5, 2.5, -0.5, -1.5, -2.5], [0, 2, 2, 0, -2, -2]),
            (DType.INT8, [127.5, 128.0, -129.0, 300, -300], [127, 127, -128, 127, -128]),
            (DType.UINT8, [255.5, -3.0, -1.5, -0.0], [255, 0, 0, 0]),
            # 6.4 note 6, and the float32 values on both sides of each end
            (DType.INT32, [2147483648.0, 2147483520.0, 3e38], [2**31 - 1, 2147483520, 2**31 - 1]),
            (DType.INT32, [-2147483648.0, -2147483904.0, -0.5], [-(2**31), -(2**31), 0]),
            (DType.UINT32, [4294967296.0, 4294967040.0], [2**32 - 1, 4294967040]),
            (DType.UINT32, [-1.0, -0.5, 0.5, 1.5, 8388607.5], [0, 0, 0, 2, 8388608]),
            (DType.INT32, [8388607.5, -8388606.5, 16777215.0], [8388608, -8388606, 16777215]),
        ],
    )
    def test_documented_integers(self, dtype, values, expected):
        wrapped = [n % (1 << 8 * dtype.size_bytes) for n in expected]
        bits = [float_bits(v) for v in values]
        assert write(bits, dtype) == wrapped
        assert [conversion.from_float32_bits(b, dtype, IEEE) for b in bits] == wrapped

    @pytest.mark.parametrize(
        ("dtype", "positive", "negative"),
        [
            (DType.INT8, 0x7F, 0x80),
            (DType.INT16, 32767, 0x8000),
            (DType.INT32, 0x7FFFFFFF, 0x80000000),
            (DType.UINT8, 0xFF, 0),
            (DType.UINT16, 0xFFFF, 0),
            (DType.UINT32, 0xFFFFFFFF, 0),
        ],
    )
    def test_nan_and_infinity_go_to_the_end_of_their_sign(self, dtype, positive, negative):
        above = [NAN, INF, INF | 1, 0x7FFFFFFF, 0x3F800000]
        below = [bits | SIGN for bits in above[:-1]]
        assert write(above, dtype) == [positive] * 4 + [1]
        assert write(below, dtype) == [negative] * 4

    @pytest.mark.parametrize("formats", [IEEE, EXTENDED, SATURATE_E3M4])
    @pytest.mark.parametrize("dtype", MATRIX)
    def test_special_values(self, dtype, formats):
        expected = [conversion.from_float32_bits(b, dtype, formats) for b in SPECIAL_BITS]
        assert_same_bits(write(SPECIAL_BITS, dtype, formats), expected, SPECIAL_BITS)

    @settings(max_examples=300, deadline=None)
    @given(
        st.lists(FLOAT_BITS, min_size=1, max_size=40),
        st.sampled_from(MATRIX),
        st.sampled_from([IEEE, EXTENDED, SATURATE_E3M4]),
    )
    def test_equals_the_reference(self, bits, dtype, formats):
        expected = [conversion.from_float32_bits(b, dtype, formats) for b in bits]
        assert write(bits, dtype, formats) == expected

    @pytest.mark.parametrize("formats", [IEEE, EXTENDED], ids=["ieee", "extended"])
    @pytest.mark.parametrize("dtype", [*FP8, *HALVES, *NARROW_INTEGERS])
    def test_a_stored_number_survives_the_round_trip(self, dtype, formats):
        codes = codes_of(dtype)
        values = numerics.to_float32(codes, dtype, formats)
        kept = ~np.isnan(values)
        assert_same_bits(numerics.from_float32(values, dtype, formats)[kept], codes[kept])

    @pytest.mark.parametrize("mantissa", [10, 11, 13])
    def test_fp32r_keeps_the_configured_bits(self, mantissa):
        formats = attrs.evolve(EXTENDED, fp32r_mantissa=mantissa)
        dropped = 23 - mantissa
        step, half = 1 << dropped, 1 << (dropped - 1)
        one = 0x3F800000
        cases = {
            one + half: one,
            one + half + 1: one + step,
            one + half - 1: one,
            one + step + half: one + 2 * step,
            one + step + half - 1: one + step,
            MAX_FLOAT: INF,
            INF - half - 1: INF - step,
            INF - half: INF,
            half: 0,  # subnormals round on the same grid
            half + 1: step,
            0x00800000 - 1: 0x00800000,
        }
        for source, expected in cases.items():
            assert write([source, source | SIGN], DType.FP32R, formats) == [
                expected,
                expected | SIGN,
            ]

    @settings(deadline=None)
    @given(st.lists(FLOAT_BITS, min_size=1), st.sampled_from([10, 11, 13]))
    def test_fp32r_equals_the_reference(self, bits, mantissa):
        formats = attrs.evolve(EXTENDED, fp32r_mantissa=mantissa)
        expected = [conversion.from_float32_bits(b, DType.FP32R, formats) for b in bits]
        assert write(bits, DType.FP32R, formats) == expected


class TestShapes:
    @pytest.mark.parametrize("dtype", MATRIX)
    @pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
    def test_both_directions_keep_the_shape(self, dtype, shape):
        values = np.full(shape, 3, np.float32)
        stored = numerics.from_float32(values, dtype, EXTENDED)
        back = numerics.to_float32(stored, dtype, EXTENDED)

        assert isinstance(stored, np.ndarray)
        assert isinstance(back, np.ndarray)
        assert stored.shape == back.shape == shape
        assert (stored.dtype, back.dtype) == (numerics.storage_dtype(dtype), np.float32)
        assert (back == 3).all()

    @pytest.mark.parametrize("dtype", MATRIX)
    def test_single_values_convert_like_arrays(self, dtype):
        stored = write(SPECIAL_BITS, dtype)
        codes = np.array(stored, numerics.storage_dtype(dtype))
        loaded = words(numerics.to_float32(codes, dtype, EXTENDED))
        for bits, code, back in zip(SPECIAL_BITS, stored, loaded, strict=True):
            single = numerics.from_float32(floats(bits), dtype, EXTENDED)
            assert single.tolist() == code
            assert words(numerics.to_float32(single, dtype, EXTENDED)) == back

    @pytest.mark.parametrize("dtype", MATRIX)
    def test_strided_arrays_convert_like_their_copies(self, dtype):
        values = floats(SPECIAL_BITS * 4).reshape(8, -1).T[::2, ::-1]
        expected = numerics.from_float32(values.copy(), dtype, EXTENDED)
        stored = numerics.from_float32(values, dtype, EXTENDED)
        assert_same_bits(stored, expected)

        wide = np.zeros((*stored.shape, 2), stored.dtype)
        wide[..., 1] = stored
        strided = numerics.to_float32(wide[..., 1], dtype, EXTENDED)
        assert_same_bits(
            strided.view(np.uint32), numerics.to_float32(expected, dtype, EXTENDED).view(np.uint32)
        )

    @pytest.mark.parametrize("dtype", MATRIX)
    def test_inputs_are_not_changed(self, dtype):
        values = floats(SPECIAL_BITS)
        numerics.from_float32(values, dtype, EXTENDED)
        assert values.view(np.uint32).tolist() == SPECIAL_BITS

    @pytest.mark.parametrize("dtype", MATRIX)
    def test_results_can_be_written_without_spoiling_later_ones(self, dtype):
        """No result is a view of a lookup table."""
        if dtype in (DType.FP32, DType.FP32R):
            return
        codes = np.ones(3, numerics.storage_dtype(dtype))
        first = numerics.to_float32(codes, dtype, EXTENDED)
        expected = first.copy()
        first[:] = 77
        assert (numerics.to_float32(codes, dtype, EXTENDED) == expected).all()


class TestStochasticRounding:
    NARROW = (*FP8, *HALVES, *NARROW_INTEGERS, *WIDE_INTEGERS, DType.FP32R)

    def convert(self, values, dtype, formats=STOCHASTIC):
        return numerics.from_float32(values, dtype, formats, random=formats.new_generator())

    @pytest.mark.parametrize("dtype", NARROW)
    def test_same_seed_same_result(self, dtype):
        values = np.linspace(-7, 7, 1001, dtype=np.float32)
        first = self.convert(values, dtype)
        other = self.convert(values, dtype, attrs.evolve(STOCHASTIC, seed=8))

        assert_same_bits(first, self.convert(values, dtype))
        assert (first != other).any()

    @pytest.mark.parametrize("dtype", [*FP8, *HALVES])
    def test_gives_one_of_the_two_neighbours_by_distance(self, dtype):
        grid = finite_magnitudes(dtype, STOCHASTIC).astype(np.float64)
        picks = np.unique(np.linspace(0, len(grid) - 2, 97).astype(int))
        picks = np.unique([0, 1, *picks, len(grid) - 2])
        trials = 400
        for sign in (1, -1):
            for quarter in (1, 2, 3):
                points = grid[picks] + (grid[picks + 1] - grid[picks]) * quarter / 4
                source = np.repeat(sign * points, trials).astype(np.float32)
                stored = self.convert(source, dtype)
                back = np.abs(numerics.to_float32(stored, dtype, IEEE).astype(np.float64))
                back = back.reshape(-1, trials)
                low, high = grid[picks][:, None], grid[picks + 1][:, None]

                assert ((back == low) | (back == high)).all()
                rate = (back == high).mean()
                # 40,000 trials or so: five standard deviations are 0.013
                assert abs(rate - quarter / 4) < 0.015
                assert (back == high).any(axis=1).all()
                assert (stored >> (8 * dtype.size_bytes - 1) == (sign < 0)).all()

    @pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.INT32])
    @pytest.mark.parametrize(("value", "low"), [(2.25, 2), (-2.25, -3), (0.25, 0), (-0.75, -1)])
    def test_integers_take_both_neighbours(self, dtype, value, low):
        values = np.full(20000, value, np.float32)
        signed = self.convert(values, dtype).view(f"i{dtype.size_bytes}").astype(int)

        assert set(signed.tolist()) == {low, low + 1}
        assert abs(signed.mean() - value) < 0.02

    @pytest.mark.parametrize("dtype", [DType.UINT8, DType.UINT16, DType.UINT32])
    def test_unsigned_integers_saturate(self, dtype):
        top = (1 << 8 * dtype.size_bytes) - 1
        values = np.repeat(np.float32([-0.5, -3, 5e9, 1.5]), 500)
        stored = self.convert(values, dtype).reshape(4, -1)

        assert [set(row.tolist()) for row in stored] == [{0}, {0}, {top}, {1, 2}]

    @pytest.mark.parametrize("lower", [0xBF800000, SIGN])  # -1 and, for subnormals, -0
    @pytest.mark.parametrize("mantissa", [10, 11, 13])
    def test_fp32r_takes_both_neighbours(self, mantissa, lower):
        formats = attrs.evolve(STOCHASTIC, fp32r_mantissa=mantissa)
        step = 1 << (23 - mantissa)
        values = floats([lower + step // 4] * 20000)
        stored = self.convert(values, DType.FP32R, formats)

        assert set(stored.tolist()) == {lower, lower + step}
        assert abs((stored != lower).mean() - 0.25) < 0.02

    @pytest.mark.parametrize("formats", [IEEE, EXTENDED, SATURATE_E3M4])
    @pytest.mark.parametrize("dtype", NARROW)
    def test_what_is_not_between_two_numbers_is_as_nearest_even(self, dtype, formats):
        """Infinities, NaN, overflow past the largest number, and every stored value."""
        random = np.random.default_rng(0)
        stochastic = attrs.evolve(formats, rounding="stochastic")
        special = [b for b in SPECIAL_BITS if b & ~SIGN >= MAX_FLOAT or b & ~SIGN == 0]
        source = floats(special)
        if dtype.size_bytes < 4:
            source = np.append(source, numerics.to_float32(codes_of(dtype), dtype, formats))
        expected = numerics.from_float32(source, dtype, formats)
        actual = numerics.from_float32(source, dtype, stochastic, random=random)
        assert_same_bits(actual, expected, source)

    @pytest.mark.parametrize(("dtype", "formats", "overflow"), OVERFLOW)
    def test_past_the_largest_number_nothing_is_drawn(self, dtype, formats, overflow):
        formats = attrs.evolve(formats, rounding="stochastic")
        below, largest = finite_magnitudes(dtype, formats)[-2:].astype(np.float64)
        limit = np.float32(largest + (largest - below) / 2)
        just_below = np.nextafter(limit, np.float32(0))
        code = len(finite_magnitudes(dtype, formats)) - 1
        is_code_even = code % 2 == 0
        for value, expected in [
            (just_below, code),
            (limit, code if is_code_even else overflow),
            (np.nextafter(limit, np.float32(np.inf)), overflow),
        ]:
            assert set(self.convert(np.full(200, value), dtype, formats).tolist()) == {expected}

    @pytest.mark.parametrize("mantissa", [10, 11, 13])
    def test_past_the_largest_fp32r_nothing_is_drawn(self, mantissa):
        formats = attrs.evolve(STOCHASTIC, fp32r_mantissa=mantissa)
        step = 1 << (23 - mantissa)
        values = floats([INF - step // 2 - 1] * 200 + [INF - step // 2] * 200)
        stored = self.convert(values, DType.FP32R, formats).tolist()
        assert set(stored[:200]) == {INF - step}
        assert set(stored[200:]) == {INF}

    def test_fp32_is_untouched(self):
        assert write(SPECIAL_BITS, DType.FP32, STOCHASTIC) == SPECIAL_BITS

    def test_the_state_belongs_to_the_caller(self):
        values = np.full(400, 0.3, np.float32)
        random = STOCHASTIC.new_generator()
        whole = numerics.from_float32(values, DType.INT8, STOCHASTIC, random=random)
        random = STOCHASTIC.new_generator()
        parts = [
            numerics.from_float32(part, DType.INT8, STOCHASTIC, random=random)
            for part in np.split(values, 4)
        ]
        assert_same_bits(np.concatenate(parts), whole)

    def test_a_single_value(self):
        for dtype in self.NARROW:
            stored = self.convert(np.array(0.3, np.float32), dtype)
            assert stored.tolist() == self.convert(np.float32([0.3]), dtype).tolist()[0]

    def test_needs_a_generator(self):
        with pytest.raises(TypeError, match="random must be a numpy Generator"):
            write([0], DType.INT8, STOCHASTIC)


ADDITIONS = [
    # a, b, a + b
    (0x7F800000, 0xFF800000, NAN),  # inf - inf: x86 makes 0xffc00000
    (0xFF800000, 0x7F800000, NAN),
    (0x7F800001, 0x3F800000, 0x7FC00001),  # quieted, payload kept
    (0x3F800000, 0xFF800002, 0xFFC00002),  # the second, sign kept
    (0xFFC00005, 0x7FC00006, 0xFFC00005),  # of two the first
    (0x7FC00006, 0xFFC00005, 0x7FC00006),
    (0x00000000, 0x80000000, 0x00000000),
    (0x80000000, 0x80000000, 0x80000000),
    (0x3F800000, 0xBF800000, 0x00000000),
    (MAX_FLOAT, MAX_FLOAT, INF),
    (MAX_FLOAT, 0x73000000, INF),  # half a step past the largest: tie to infinity
    (MAX_FLOAT, 0x72FFFFFF, MAX_FLOAT),
    (0x00000001, 0x00000001, 0x00000002),  # subnormals are not flushed
    (0x3F800000, 0x33800000, 0x3F800000),  # 1 + 2^-24: tie to even
    (0x3F800001, 0x33800000, 0x3F800002),
]


class TestArithmetic:
    @pytest.mark.parametrize(("a", "b", "expected"), ADDITIONS)
    def test_add(self, a, b, expected):
        assert words(numerics.add(floats([a]), floats([b]))) == [expected]
        assert conversion.add_bits(a, b) == expected

    @pytest.mark.parametrize(
        ("a", "b", "expected"),
        [
            (0xFF800000, 0xFF800000, NAN),  # users' case 12: -inf - -inf
            (0x3F800000, 0xFF800002, 0xFFC00002),  # the NaN is not negated
            (0x7F800001, 0xFF800002, 0x7FC00001),
            (0x80000000, 0x00000000, 0x80000000),
            (0x00000000, 0x00000000, 0x00000000),
        ],
    )
    def test_subtract(self, a, b, expected):
        assert words(numerics.subtract(floats([a]), floats([b]))) == [expected]
        assert conversion.subtract_bits(a, b) == expected

    @pytest.mark.parametrize(
        ("a", "b", "expected"),
        [
            (0x7F800000, 0x80000000, NAN),
            (0x00000000, 0xFF800000, NAN),
            (0x7F800000, 0xBF800000, 0xFF800000),
            (0xFF800003, 0x7FC00001, 0xFFC00003),
            (0x80000001, 0x3F000000, 0x80000000),  # half the smallest number: tie to zero
            (0x80000003, 0x3F000000, 0x80000002),
            (0x80000000, 0x3F800000, 0x80000000),
        ],
    )
    def test_multiply(self, a, b, expected):
        assert words(numerics.multiply(floats([a]), floats([b]))) == [expected]
        assert conversion.multiply_bits(a, b) == expected

    @settings(max_examples=300, deadline=None)
    @given(st.lists(st.tuples(FLOAT_BITS, FLOAT_BITS), min_size=1))
    def test_equals_the_reference(self, pairs):
        a, b = floats([p[0] for p in pairs]), floats([p[1] for p in pairs])
        for fast, slow in [
            (numerics.add, conversion.add_bits),
            (numerics.subtract, conversion.subtract_bits),
            (numerics.multiply, conversion.multiply_bits),
        ]:
            assert words(fast(a, b)) == [slow(*pair) for pair in pairs]

    def test_broadcasts(self):
        rows, column = floats([[INF, NAN | 1], [0, 0]]), floats([[INF | SIGN], [0x3F800000]])
        assert words(numerics.add(rows, column)) == [[NAN, NAN | 1], [0x3F800000, 0x3F800000]]
        assert words(numerics.add(rows, np.float32(-np.inf))) == [
            [NAN, NAN | 1],
            [0xFF800000, 0xFF800000],
        ]
        assert words(numerics.add(column[0, 0], rows[0, 0])) == NAN

    def test_quiet(self):
        bits = [INF, INF | 1, 0xFF800001, NAN, 0, 0x3F800000]
        assert words(numerics.quiet(floats(bits))) == [INF, NAN | 1, NAN | SIGN | 1, *bits[3:]]

    def test_quiet_leaves_numbers_alone(self):
        values = floats([0, INF, SIGN])
        assert numerics.quiet(values) is values


def looped(initial, values):
    """Return the sums of each lane by one addition after the other."""
    total = initial.copy()
    with np.errstate(all="ignore"):
        for column in range(values.shape[1]):
            total = total + values[:, column]
    return total


def wild(shape, seed):
    """Return numbers of many magnitudes and both signs, so that every order differs."""
    random = np.random.default_rng(seed)
    numbers = random.standard_normal(shape) * 2.0 ** random.integers(-20, 20, shape)
    return numbers.astype(np.float32)


class TestAccumulate:
    @pytest.mark.parametrize("lanes", [1, 2, 3, 4, 7, 8, 16, 33, 128])
    @pytest.mark.parametrize(
        "elements", [0, 1, 2, 4, 5, 8, 9, 127, 128, 129, 511, 512, 513, 1100, 2048]
    )
    def test_serial_equals_the_plain_loop(self, lanes, elements):
        initial, values = wild(lanes, 1), wild((lanes, elements), 2)
        before = values.copy()
        total = numerics.accumulate(initial, values)

        assert_same_bits(total.view(np.uint32), looped(initial, values).view(np.uint32))
        assert (values == before).all()
        assert (initial == wild(lanes, 1)).all()
        assert not np.shares_memory(total, initial)

    @pytest.mark.parametrize("layout", ["columns", "slice", "reversed"])
    def test_serial_takes_any_strides(self, layout):
        base = wild((64, 600), 3)
        values = {
            "columns": np.asfortranarray(base),
            "slice": wild((128, 1200), 3)[::2, 1::2],
            "reversed": base[::-1, ::-1],
        }[layout]
        initial = wild(64, 4)
        total = numerics.accumulate(initial, values)
        assert_same_bits(total.view(np.uint32), looped(initial, values).view(np.uint32))

    def test_the_data_tells_the_orders_apart(self):
        values = wild((128, 512), 2)
        serial = numerics.accumulate(np.zeros(128, np.float32), values)
        assert (serial != values.sum(axis=1, dtype=np.float32)).any()
        assert (serial != numerics.accumulate(np.zeros(128, np.float32), values[:, ::-1])).any()
        pairs = numerics.accumulate(np.zeros(128, np.float32), values, order="pairs")
        assert (serial != pairs).any()

    @pytest.mark.parametrize("elements", [1, 3, 40])
    @settings(max_examples=30, deadline=None)
    @given(data=st.data())
    def test_equals_the_reference(self, elements, data):
        rows = data.draw(
            st.lists(
                st.lists(FLOAT_BITS, min_size=elements + 1, max_size=elements + 1),
                min_size=1,
                max_size=3,
            )
        )
        expected = []
        for row in rows:
            total = row[0]
            for bits in row[1:]:
                total = conversion.add_bits(total, bits)
            expected.append(total)
        bits = floats(rows)
        assert words(numerics.accumulate(bits[:, 0].copy(), bits[:, 1:])) == expected

    @pytest.mark.parametrize("elements", [1, 5, 700])
    def test_negative_zero_stays_only_among_its_own(self, elements):
        zeros = np.full((3, elements), -0.0, np.float32)
        zeros[1, elements // 2] = 0.0
        initial = floats([SIGN, SIGN, 0])
        assert words(numerics.accumulate(initial, zeros)) == [SIGN, 0, 0]

    @pytest.mark.parametrize("elements", [3, 40, 1300])
    def test_the_first_nan_stays(self, elements):
        values = np.ones((6, elements), np.float32)
        initial = np.ones(6, np.float32)
        initial[0] = floats(0xFF800007)
        values[0, 1] = floats(0x7FC00001)
        values[1, 1], values[1, 2] = floats(0xFF800003), floats(0x7FC00002)
        values[2, 0], values[2, 1], values[2, 2] = np.inf, -np.inf, floats(0x7FC00009)
        values[3, -1] = floats(0x7F800005)
        values[4, 0] = -np.inf
        total = words(numerics.accumulate(initial, values))

        assert total[:3] == [0xFFC00007, 0xFFC00003, NAN]
        assert total[3:5] == [0x7FC00005, 0xFF800000]
        assert total[5] == float_bits(elements + 1)

    def test_nothing_added_is_nothing_changed(self):
        initial = floats([0xFF800001, SIGN])
        assert words(numerics.accumulate(initial, np.zeros((2, 0), np.float32))) == words(initial)

    def test_pairs_adds_two_sums(self):
        """Worked by hand: 2^24 swallows a one, two of them together it does not."""
        big = 2.0**24
        values = np.float32([[0, 1, 0, 1]])
        initial = np.float32([big])
        assert numerics.accumulate(initial, values).tolist() == [big]
        assert numerics.accumulate(initial, values, order="pairs").tolist() == [big + 2]

    @pytest.mark.parametrize("elements", [1, 2, 5, 512, 1301])
    def test_pairs_equals_two_plain_loops(self, elements):
        initial, values = wild(128, 5), wild((128, elements), 6)
        odd = looped(np.zeros(128, np.float32), values[:, 1::2])
        expected = looped(initial, values[:, 0::2]) + odd
        total = numerics.accumulate(initial, values, order="pairs")
        assert_same_bits(total.view(np.uint32), expected.view(np.uint32))

    def test_another_order_is_refused(self):
        with pytest.raises(InputError, match=r"^order must be serial or pairs, not 'tree'$"):
            numerics.accumulate(np.zeros(1, np.float32), np.zeros((1, 1), np.float32), order="tree")


class TestUlpDistance:
    @pytest.mark.parametrize(
        ("a", "b", "distance"),
        [
            (0x3F800000, 0x3F800000, 0),
            (0x3F800000, 0x3F800001, 1),
            (0x3F7FFFFF, 0x3F800001, 2),
            (0x00000000, 0x80000000, 0),
            (0x00000001, 0x80000001, 2),
            (MAX_FLOAT, INF, 1),
            (INF, INF | SIGN, 2 * INF),
            (NAN, 0xFFC00001, 0),
            (NAN, 0x3F800000, 2**32),
            (INF, NAN, 2**32),
        ],
    )
    def test_steps(self, a, b, distance):
        assert numerics.ulp_distance(floats([a]), floats([b])).tolist() == [distance]
        assert numerics.ulp_distance(floats([b]), floats([a])).tolist() == [distance]

    def test_broadcasts_to_int64(self):
        distance = numerics.ulp_distance(floats([0, 1, 2]), floats(1))
        assert distance.dtype == np.int64
        assert distance.tolist() == [1, 0, 1]
