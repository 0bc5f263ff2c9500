"""Element types in memory, their conversions, and float32 arithmetic that no host can bend.

Every element is read into float32, computed there, and written back: `to_float32` and
`from_float32` are the two doors. This is the only user of ml_dtypes, which is fed float32 alone
because a float64 would be rounded twice.

Sources: dve-tensor-scalar.md 6.3 to 6.7 (conversions), 12 (switches); design.md 3 (NaN rule).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.generation import Generation
from neuron_emu.isa.enums import DType
from neuron_emu.policy import Policy

__all__ = [
    "BitsArray",
    "Float32Array",
    "NumberFormats",
    "accumulate",
    "add",
    "from_float32",
    "multiply",
    "quiet",
    "storage_dtype",
    "subtract",
    "to_float32",
    "ulp_distance",
]

Float32Array = npt.NDArray[np.float32]
BitsArray = npt.NDArray[np.unsignedinteger[Any]]

_CANONICAL_NAN = np.uint32(0x7FC0_0000)
_QUIET = np.uint32(0x0040_0000)
_SIGN = np.uint32(0x8000_0000)
_LOW_HALF = np.uint32(0x0000_FFFF)
_INTEGERS: dict[DType, Any] = {
    DType.INT8: np.int8,
    DType.UINT8: np.uint8,
    DType.INT16: np.int16,
    DType.UINT16: np.uint16,
    DType.INT32: np.int32,
    DType.UINT32: np.uint32,
}
_FP8_DTYPES = (DType.FP8_EXP3, DType.FP8_EXP4, DType.FP8_EXP5)
_OTHER_FLOATS = (DType.BFLOAT16, DType.FP16, DType.FP32, DType.FP32R)
_STORAGE = {
    dtype: np.dtype(f"<u{dtype.size_bytes}") for dtype in (*_INTEGERS, *_FP8_DTYPES, *_OTHER_FLOATS)
}
_FLOAT32 = np.dtype(np.float32)
_BLOCK_COLUMNS = 512
_FEW_COLUMNS = 4
# The ends of these two are no float32; these are the float32 just below.
_LARGEST_BELOW = {DType.INT32: np.float32(2**31 - 2**7), DType.UINT32: np.float32(2**32 - 2**8)}


@frozen(cache_hash=True)
class NumberFormats:
    """What the dtype codes mean in one run: the engine's configuration, resolved.

    Attributes
    ----------
    fp8_profile: `ieee` or `extended`, for E4M3 and E5M2 (dve-tensor-scalar.md 6.6).
    fp8_e3m4_max: `ieee` or `saturate`, what a finite overflow of E3M4 gives.
    fp32r_mantissa: explicit mantissa bits that FP32R keeps (6.5).
    rounding: `rne` or `stochastic` (6.7).
    seed: the seed of stochastic rounding.
    """

    fp8_profile: str
    fp8_e3m4_max: str
    fp32r_mantissa: int
    rounding: str
    seed: int

    @classmethod
    def of(cls, generation: Generation, policy: Policy) -> NumberFormats:
        """Resolve the rows of `policy` that concern numbers for `generation`."""
        profile = policy.fp8_profile
        if profile == "generation":
            profile = "ieee" if generation.core_version < 4 else "extended"
        return cls(
            fp8_profile=profile,
            fp8_e3m4_max=policy.fp8_e3m4_max,
            fp32r_mantissa=int(policy.fp32r_mantissa),
            rounding=policy.rounding,
            seed=policy.seed,
        )

    def new_generator(self) -> np.random.Generator:
        """Return a generator for `from_float32` that starts at the seed."""
        return np.random.default_rng(self.seed)


def storage_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the little-endian unsigned type of one element in memory.

    Defined for the thirteen dtypes of S3D3_TS (isa-encoding.md 6.2); raises InputError for others.
    """
    try:
        return _STORAGE[dtype]
    except KeyError:
        accepted = ", ".join(member.word for member in sorted(_STORAGE))
        found = dtype.word if isinstance(dtype, DType) else repr(dtype)
        raise InputError(f"dtype must be one of {accepted}, not {found}") from None


def to_float32(bits: BitsArray, dtype: DType, formats: NumberFormats) -> Float32Array:
    """Convert stored elements to float32, as an engine does on reading (6.3).

    Integers of 32 bits round to nearest even, the rest is exact. A NaN of a narrow format becomes
    0x7fc00000 with its sign kept; FP32 and FP32R bits stay as they are, NaN payloads included, and
    their result shares memory with `bits`.

    Parameters: `bits` has the type `storage_dtype(dtype)` and any shape, which the result keeps.
    Raises InputError for another type of array or a dtype outside the matrix.
    """
    _require(bits, storage_dtype(dtype), "bits")
    return np.asarray(_READERS[dtype](bits, dtype, formats))


def from_float32(
    values: Float32Array,
    dtype: DType,
    formats: NumberFormats,
    *,
    random: np.random.Generator | None = None,
) -> BitsArray:
    """Convert float32 values to stored elements, as an engine does on writing (6.4 to 6.7).

    Rounds to nearest even. Integers saturate, and a NaN goes to the end of the range that its sign
    points to. BF16 and FP16 drop the sign of a NaN, FP8 keeps it; FP32 keeps all bits, and its
    result shares memory with `values`.

    With `formats.rounding == "stochastic"` a value between two neighbours goes up with a
    probability equal to its distance from the lower one, in steps; every element takes one draw of
    `random`, whose state is the caller's (FP32 takes none). Infinities, NaN and values past the
    largest number do as without it. Never claimed equal to the hardware, which is not public.

    Parameters: `values` is float32 of any shape, which the result keeps.
    Raises InputError for another type of array or a dtype outside the matrix, TypeError when
    rounding is stochastic and `random` is missing.
    """
    _require(values, _FLOAT32, "values")
    storage = storage_dtype(dtype)
    if formats.rounding == "stochastic" and dtype != DType.FP32:
        values = _drawn_neighbours(values, dtype, formats, random)
    return np.asarray(_WRITERS[dtype](values, dtype, formats), dtype=storage)


def _require(array: npt.NDArray[Any], wanted: np.dtype[Any], name: str) -> None:
    if array.dtype != wanted:
        raise InputError(f"{name} must be an array of {wanted}, not {array.dtype}")


def _has_nan(values: Float32Array) -> bool:
    return bool(np.count_nonzero(np.isnan(values)))


@frozen(cache_hash=True)
class _Fp8:
    """An FP8 format; codes are without the sign bit (dve-tensor-scalar.md 6.6)."""

    ml_type: Any
    mantissa_bits: int
    min_exponent: int
    max_finite: int
    nan: int
    saturates: bool


_FP8 = {
    (DType.FP8_EXP3, "ieee"): _Fp8(ml_dtypes.float8_e3m4, 4, -2, 0x6F, 0x78, False),
    (DType.FP8_EXP3, "saturate"): _Fp8(ml_dtypes.float8_e3m4, 4, -2, 0x6F, 0x78, True),
    (DType.FP8_EXP4, "ieee"): _Fp8(ml_dtypes.float8_e4m3, 3, -6, 0x77, 0x7C, False),
    (DType.FP8_EXP4, "extended"): _Fp8(ml_dtypes.float8_e4m3fn, 3, -6, 0x7E, 0x7F, True),
    (DType.FP8_EXP5, "ieee"): _Fp8(ml_dtypes.float8_e5m2, 2, -14, 0x7B, 0x7E, False),
    (DType.FP8_EXP5, "extended"): _Fp8(ml_dtypes.float8_e5m2, 2, -14, 0x7B, 0x7E, True),
}


def _fp8(dtype: DType, formats: NumberFormats) -> _Fp8:
    is_e3m4 = dtype == DType.FP8_EXP3
    return _FP8[dtype, formats.fp8_e3m4_max if is_e3m4 else formats.fp8_profile]


@cache
def _fp8_decoding(form: _Fp8) -> Float32Array:
    """Return the float32 of each of the 256 codes."""
    codes = np.arange(256, dtype=np.uint8)
    with np.errstate(all="ignore"):
        values = codes.view(form.ml_type).astype(np.float32)
    return _canonical(values, codes >= 0x80)


@cache
def _fp8_encoding(form: _Fp8) -> npt.NDArray[np.uint8]:
    """Return the code of each float32 whose low 16 bits are zero, by its high 16 bits.

    An odd index also stands for everything between its two even neighbours: no FP8 value and no
    middle of two has so long a mantissa, so all of them round alike.
    """
    high = np.arange(1 << 16, dtype=np.uint32)
    values = (high << np.uint32(16)).view(np.float32)
    with np.errstate(all="ignore"):
        magnitudes = values.astype(form.ml_type).view(np.uint8) & np.uint8(0x7F)
    if form.saturates:
        magnitudes[np.isfinite(values) & (magnitudes > form.max_finite)] = form.max_finite
    magnitudes[np.isnan(values)] = form.nan
    signs = (high >> np.uint32(8)).astype(np.uint8) & np.uint8(0x80)
    return magnitudes | signs


def _read_fp8(bits: BitsArray, dtype: DType, formats: NumberFormats) -> Float32Array:
    return _fp8_decoding(_fp8(dtype, formats)).take(bits, mode="clip")


def _write_fp8(values: Float32Array, dtype: DType, formats: NumberFormats) -> BitsArray:
    word = values.view(np.uint32)
    index = word & _LOW_HALF
    index += _LOW_HALF  # carries into bit 16 unless the low half is zero: the sticky bit
    index |= word
    index >>= np.uint32(16)
    return _fp8_encoding(_fp8(dtype, formats)).take(index, mode="clip")


def _canonical(values: Float32Array, negative: npt.NDArray[np.bool_]) -> Float32Array:
    """Return `values` with every NaN made 0x7fc00000, plus the sign where `negative`."""
    nan = np.where(negative, _CANONICAL_NAN | _SIGN, _CANONICAL_NAN)
    return np.where(np.isnan(values), nan, values.view(np.uint32)).view(np.float32)


@cache
def _fp16_decoding() -> Float32Array:
    """Return the float32 of each FP16 code; quicker to look up than NumPy's own conversion."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        values = codes.view(np.float16).astype(np.float32)
    return _canonical(values, codes >= 0x8000)


def _read_fp16(bits: BitsArray, dtype: DType, formats: NumberFormats) -> Float32Array:
    return _fp16_decoding().take(bits, mode="clip")


def _read_bf16(bits: BitsArray, dtype: DType, formats: NumberFormats) -> Float32Array:
    values: Float32Array = bits.view(ml_dtypes.bfloat16).astype(np.float32)
    return _canonical(values, bits >= 0x8000) if _has_nan(values) else values


def _read_float32(bits: BitsArray, dtype: DType, formats: NumberFormats) -> Float32Array:
    return bits.view(np.float32)


def _read_integer(bits: BitsArray, dtype: DType, formats: NumberFormats) -> Float32Array:
    values: Float32Array = bits.view(_INTEGERS[dtype]).astype(np.float32)
    return values


def _write_float32(values: Float32Array, dtype: DType, formats: NumberFormats) -> BitsArray:
    return values.view(np.uint32)


def _write_fp32r(values: Float32Array, dtype: DType, formats: NumberFormats) -> BitsArray:
    dropped = np.uint32(23 - formats.fp32r_mantissa)
    step = np.uint32(1) << dropped
    word = values.view(np.uint32)
    rounded = word >> dropped
    rounded &= np.uint32(1)
    rounded += (step >> np.uint32(1)) - np.uint32(1)
    with np.errstate(over="ignore"):  # only a NaN can wrap around
        rounded += word
    rounded &= ~(step - np.uint32(1))
    return np.where(np.isnan(values), word, rounded) if _has_nan(values) else rounded


def _write_bf16(values: Float32Array, dtype: DType, formats: NumberFormats) -> BitsArray:
    if not _has_nan(values):
        return values.astype(ml_dtypes.bfloat16).view(np.uint16)
    is_nan = np.isnan(values)
    numbers = np.where(is_nan, np.float32(0), values).astype(ml_dtypes.bfloat16)
    return np.where(is_nan, np.uint16(0x7FC0), numbers.view(np.uint16))


def _write_fp16(values: Float32Array, dtype: DType, formats: NumberFormats) -> BitsArray:
    with np.errstate(all="ignore"):
        halves = values.astype(np.float16).view(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7E00), halves) if _has_nan(values) else halves


def _write_integer(values: Float32Array, dtype: DType, formats: NumberFormats) -> BitsArray:
    integer = _INTEGERS[dtype]
    limits = np.iinfo(integer)
    if _has_nan(values):
        values = np.where(np.isnan(values), np.copysign(np.float32(np.inf), values), values)
    rounded = np.rint(values)
    largest = _LARGEST_BELOW.get(dtype, limits.max)
    integers: npt.NDArray[Any] = rounded.clip(limits.min, largest).astype(integer)
    if dtype in _LARGEST_BELOW and np.count_nonzero(above := rounded > largest):
        integers = np.where(above, integer(limits.max), integers)
    return integers.view(_STORAGE[dtype])


_READERS: dict[DType, Callable[[BitsArray, DType, NumberFormats], Float32Array]] = {
    **dict.fromkeys(_INTEGERS, _read_integer),
    **dict.fromkeys((DType.FP32, DType.FP32R), _read_float32),
    **dict.fromkeys(_FP8_DTYPES, _read_fp8),
    DType.BFLOAT16: _read_bf16,
    DType.FP16: _read_fp16,
}
_WRITERS: dict[DType, Callable[[Float32Array, DType, NumberFormats], BitsArray]] = {
    **dict.fromkeys(_INTEGERS, _write_integer),
    **dict.fromkeys(_FP8_DTYPES, _write_fp8),
    DType.FP32: _write_float32,
    DType.FP32R: _write_fp32r,
    DType.BFLOAT16: _write_bf16,
    DType.FP16: _write_fp16,
}


def _grid(dtype: DType, formats: NumberFormats) -> tuple[int, int, float]:
    """Return mantissa bits, smallest exponent and largest finite value of a float dtype."""
    if dtype == DType.BFLOAT16:
        return 7, -126, (2 - 2**-7) * 2.0**127
    if dtype == DType.FP16:
        return 10, -14, 65504.0
    if dtype == DType.FP32R:
        bits = formats.fp32r_mantissa
        return bits, -126, (2 - 2.0**-bits) * 2.0**127
    form = _fp8(dtype, formats)
    return form.mantissa_bits, form.min_exponent, float(_fp8_decoding(form)[form.max_finite])


def _drawn_neighbours(
    values: Float32Array, dtype: DType, formats: NumberFormats, random: np.random.Generator | None
) -> Float32Array:
    """Return each value moved to one of its neighbours in `dtype`, which then converts exactly.

    Every element takes a draw, needed or not, so that those of the others do not depend on it.
    """
    if random is None:
        raise TypeError("random must be a numpy Generator when rounding is stochastic, not None")
    draws = random.random(values.shape)
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64)
        step: Any = 1.0
        in_range = np.isfinite(wide)
        if dtype not in _INTEGERS:
            mantissa_bits, min_exponent, largest = _grid(dtype, formats)
            exponents = np.frexp(wide)[1] - 1
            step = np.ldexp(1.0, np.maximum(exponents, min_exponent) - mantissa_bits)
            in_range = np.abs(wide) <= largest
        steps = wide / step
        lower = np.floor(steps)
        picked = (lower + (draws < steps - lower)) * step
        # A negative value that rises to zero keeps its sign, as in nearest even.
        picked = np.copysign(picked, wide).astype(np.float32)
    return np.where(in_range, picked, values)


def quiet(values: Float32Array) -> Float32Array:
    """Return `values` with bit 22 set in every NaN; the same array when there is none."""
    if not _has_nan(values):
        return values
    word = values.view(np.uint32)
    return np.where(np.isnan(values), word | _QUIET, word).view(np.float32)


def add(a: Float32Array, b: Float32Array) -> Float32Array:
    """Return `a + b` in float32, rounded to nearest even, broadcast.

    A NaN operand stays, quieted, and of two the first; a NaN that the addition makes is 0x7fc00000
    on every host (design.md 3).
    """
    return _arithmetic(np.add, a, b)


def subtract(a: Float32Array, b: Float32Array) -> Float32Array:
    """Return `a - b` as `add` does; a NaN in `b` keeps its own sign."""
    return _arithmetic(np.subtract, a, b)


def multiply(a: Float32Array, b: Float32Array) -> Float32Array:
    """Return `a * b` as `add` does."""
    return _arithmetic(np.multiply, a, b)


def _arithmetic(operation: np.ufunc, a: Float32Array, b: Float32Array) -> Float32Array:
    with np.errstate(all="ignore"):
        result: Float32Array = np.asarray(operation(a, b, dtype=np.float32))
    if not _has_nan(result):
        return result
    a, b = np.asarray(a, dtype=np.float32), np.asarray(b, dtype=np.float32)
    return np.where(np.isnan(result), _resulting_nan(a, b), result)


def _resulting_nan(a: Float32Array, b: Float32Array) -> Float32Array:
    """Return the NaN of each pair of operands, given that the result is one."""
    second = np.where(np.isnan(b), b.view(np.uint32) | _QUIET, _CANONICAL_NAN)
    return np.where(np.isnan(a), a.view(np.uint32) | _QUIET, second).view(np.float32)


def accumulate(
    initial: Float32Array, values: Float32Array, *, order: str = "serial"
) -> Float32Array:
    """Return the accumulator of each lane after `acc = add(acc, value)` for each of its elements.

    `serial` adds in element order, one rounding each. `pairs` sums even and odd elements apart,
    the even from `initial` and the odd from +0.0, and adds the two at the end; it is a guess about
    a machine that handles elements in pairs (policy `acc_order`).

    Parameters: `initial` is float32 [lanes], `values` float32 [lanes, elements].
    Raises InputError for another order.
    """
    if order == "serial":
        return _serial(initial, values)
    if order == "pairs":
        odd = _serial(np.zeros_like(initial), values[:, 1::2])
        return add(_serial(initial, values[:, 0::2]), odd)
    raise InputError(f"order must be serial or pairs, not {order!r}")


def _serial(initial: Float32Array, values: Float32Array) -> Float32Array:
    lanes, elements = values.shape
    total = initial.copy()
    with np.errstate(all="ignore"):
        if elements <= _FEW_COLUMNS:
            for column in range(elements):
                total += values[:, column]
        elif lanes == 1:
            total = np.add.accumulate(_with_initial(initial, values), axis=1)[:, -1].copy()
        else:
            for start in range(0, elements, _BLOCK_COLUMNS):
                total = _block_sum(total, values[:, start : start + _BLOCK_COLUMNS])
    if elements == 0 or not _has_nan(total):
        return total
    lost = np.isnan(total)
    total[lost] = _first_nan(initial[lost], values[lost])
    return total


def _with_initial(initial: Float32Array, values: Float32Array) -> Float32Array:
    """Return `initial` and `values` side by side, in rows an odd number of words apart.

    Read down a column, rows a power of two apart would all fall into the same few cache sets.
    """
    lanes, elements = values.shape
    rows = np.empty((lanes, (elements + 1) | 1), dtype=np.float32)[:, : elements + 1]
    rows[:, 0] = initial
    rows[:, 1:] = values
    return rows


def _block_sum(initial: Float32Array, values: Float32Array) -> Float32Array:
    """Add the columns of `values` to `initial` in their order.

    NumPy sums pairwise along the fastest axis only; along the slow one of a transposed copy it
    adds row by row, all lanes at once. The start -0.0 changes no number, unlike +0.0.
    """
    columns = np.ascontiguousarray(_with_initial(initial, values).T)
    total: Float32Array = np.add.reduce(columns, axis=0, initial=np.float32(-0.0))
    return total


def _first_nan(initial: Float32Array, values: Float32Array) -> Float32Array:
    """Return the NaN that each lane ends in: the first to appear, since a NaN operand stays."""
    with np.errstate(all="ignore"):
        running = np.add.accumulate(_with_initial(initial, values), axis=1)
    first = np.argmax(np.isnan(running), axis=1)
    lane = np.arange(len(first))
    return _resulting_nan(initial, values[lane, np.maximum(first - 1, 0)])


def ulp_distance(a: Float32Array, b: Float32Array) -> npt.NDArray[np.int64]:
    """Return the distance of `a` and `b` in float32 steps, broadcast.

    +0.0 and -0.0 are the same step, infinity is one past the largest number. Two NaN are 0 apart,
    a NaN and a number 2**32, more than any two numbers.
    """
    ours, theirs = _step_number(a), _step_number(b)
    with np.errstate(over="ignore"):  # what overflows as signed is right as unsigned
        apart = (np.maximum(ours, theirs) - np.minimum(ours, theirs)).view(np.uint32)
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    return np.where(a_nan | b_nan, np.where(a_nan & b_nan, 0, 1 << 32), apart.astype(np.int64))


def _step_number(values: Float32Array) -> npt.NDArray[np.int32]:
    word = values.view(np.int32)
    return np.where(word < 0, np.int32(-0x8000_0000) - word, word)
