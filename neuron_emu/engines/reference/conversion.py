"""Conversions and arithmetic on single elements, in exact rational numbers.

The oracle for `neuron_emu.numerics`: it shares no code with it, and uses Python integers and
fractions alone. A float32 travels as its 32 bits. It rounds to nearest even under either setting of
the policy `rounding`.

Sources: dve-tensor-scalar.md 6.3 to 6.6; design.md 3 for the NaN of an operation.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import DType

if TYPE_CHECKING:
    from neuron_emu.numerics import NumberFormats

__all__ = [
    "add_bits",
    "divide_bits",
    "from_float32_bits",
    "multiply_bits",
    "subtract_bits",
    "to_float32_bits",
]

_SIGN = 0x8000_0000
_INFINITY = 0x7F80_0000
_QUIET = 0x0040_0000
_CANONICAL_NAN = 0x7FC0_0000
_INTEGERS = {
    DType.INT8: (-(2**7), 2**7 - 1),
    DType.UINT8: (0, 2**8 - 1),
    DType.INT16: (-(2**15), 2**15 - 1),
    DType.UINT16: (0, 2**16 - 1),
    DType.INT32: (-(2**31), 2**31 - 1),
    DType.UINT32: (0, 2**32 - 1),
}


@frozen(kw_only=True)
class _FloatFormat:
    """A float format; codes are without the sign bit, which is the highest of `bits`.

    `overflow` is the code of a finite value that is too large, `from_infinity` that of infinity.
    Codes above `max_finite` other than `infinity` are NaN.
    """

    bits: int
    mantissa_bits: int
    min_exponent: int
    max_finite: int
    overflow: int
    from_infinity: int
    infinity: int | None
    nan: int
    nan_keeps_sign: bool


def _ieee(
    bits: int, mantissa_bits: int, *, saturate: bool = False, nan_keeps_sign: bool = True
) -> _FloatFormat:
    exponent_bits = bits - 1 - mantissa_bits
    infinity = (2**exponent_bits - 1) << mantissa_bits
    return _FloatFormat(
        bits=bits,
        mantissa_bits=mantissa_bits,
        min_exponent=2 - 2 ** (exponent_bits - 1),
        max_finite=infinity - 1,
        overflow=infinity - 1 if saturate else infinity,
        from_infinity=infinity,
        infinity=infinity,
        nan=infinity | 1 << (mantissa_bits - 1),
        nan_keeps_sign=nan_keeps_sign,
    )


_E4M3_EXTENDED = _FloatFormat(
    bits=8,
    mantissa_bits=3,
    min_exponent=-6,
    max_finite=0x7E,
    overflow=0x7E,
    from_infinity=0x7F,
    infinity=None,
    nan=0x7F,
    nan_keeps_sign=True,
)


def _float_format(dtype: DType, formats: NumberFormats) -> _FloatFormat:
    extended = formats.fp8_profile == "extended"
    if dtype == DType.BFLOAT16:
        return _ieee(16, 7, nan_keeps_sign=False)
    if dtype == DType.FP16:
        return _ieee(16, 10, nan_keeps_sign=False)
    if dtype == DType.FP8_EXP3:
        return _ieee(8, 4, saturate=formats.fp8_e3m4_max == "saturate")
    if dtype == DType.FP8_EXP4:
        return _E4M3_EXTENDED if extended else _ieee(8, 3)
    if dtype == DType.FP8_EXP5:
        return _ieee(8, 2, saturate=extended)
    raise InputError(f"dtype must be one of the S3D3_TS types, not {dtype!r}")


def to_float32_bits(bits: int, dtype: DType, formats: NumberFormats) -> int:
    """Return the float32 bits of one stored element (dve-tensor-scalar.md 6.3).

    Parameters: `bits` is the element as an unsigned integer. Raises InputError for a dtype outside
    the matrix.
    """
    if dtype in (DType.FP32, DType.FP32R):
        return bits
    if dtype in _INTEGERS:
        low, high = _INTEGERS[dtype]
        return _float32_bits(Fraction(bits if bits <= high else bits - (high - low + 1)))
    form = _float_format(dtype, formats)
    sign = _SIGN if bits >> (form.bits - 1) else 0
    code = bits & (2 ** (form.bits - 1) - 1)
    if code == form.infinity:
        return sign | _INFINITY
    if code > form.max_finite:
        return sign | _CANONICAL_NAN
    return sign | _float32_bits(_decoded(code, form.mantissa_bits, form.min_exponent))


def from_float32_bits(bits: int, dtype: DType, formats: NumberFormats) -> int:
    """Return the stored element, an unsigned integer, of float32 `bits` (6.4 to 6.6).

    Raises InputError for a dtype outside the matrix.
    """
    if dtype == DType.FP32:
        return bits
    if dtype in _INTEGERS:
        return _integer_bits(bits, *_INTEGERS[dtype])
    if dtype == DType.FP32R:
        return _rounded_float32(bits, formats.fp32r_mantissa)
    form = _float_format(dtype, formats)
    sign = 1 << (form.bits - 1) if bits & _SIGN else 0
    if _is_nan(bits):
        return form.nan | (sign if form.nan_keeps_sign else 0)
    if _is_infinite(bits):
        return sign | form.from_infinity
    code = _rounded(abs(_value(bits)), form.mantissa_bits, form.min_exponent)
    return sign | (code if code <= form.max_finite else form.overflow)


def _integer_bits(bits: int, low: int, high: int) -> int:
    """Round to nearest even, then saturate; a NaN or infinity goes to the end of its sign."""
    if _is_nan(bits) or _is_infinite(bits):
        number = low if bits & _SIGN else high
    else:
        number = min(max(round(_value(bits)), low), high)
    return number % (high - low + 1)


def _rounded_float32(bits: int, mantissa_bits: int) -> int:
    """Round a finite float32 to fewer mantissa bits; carry past the largest gives infinity."""
    if _is_nan(bits) or _is_infinite(bits):
        return bits
    code = _rounded(abs(_value(bits)), mantissa_bits, -126)
    return (bits & _SIGN) | code << (23 - mantissa_bits)


def add_bits(a: int, b: int) -> int:
    """Return the float32 bits of `a + b`, rounded to nearest even, with the NaN rule."""
    if _is_nan(a) or _is_nan(b):
        return (a if _is_nan(a) else b) | _QUIET
    if _is_infinite(a) and _is_infinite(b):
        return a if a == b else _CANONICAL_NAN
    if _is_infinite(a) or _is_infinite(b):
        return a if _is_infinite(a) else b
    total = _value(a) + _value(b)
    return _float32_bits(total) if total else a & b & _SIGN


def subtract_bits(a: int, b: int) -> int:
    """Return the float32 bits of `a - b`; a NaN in `b` keeps its own sign."""
    return add_bits(a, b if _is_nan(b) else b ^ _SIGN)


def multiply_bits(a: int, b: int) -> int:
    """Return the float32 bits of `a * b`, rounded to nearest even, with the NaN rule."""
    if _is_nan(a) or _is_nan(b):
        return (a if _is_nan(a) else b) | _QUIET
    sign = (a ^ b) & _SIGN
    if _is_infinite(a) or _is_infinite(b):
        has_zero = a & ~_SIGN == 0 or b & ~_SIGN == 0
        return _CANONICAL_NAN if has_zero else sign | _INFINITY
    return sign | _float32_bits(abs(_value(a) * _value(b)))


def divide_bits(a: int, b: int) -> int:
    """Return the float32 bits of `a / b`, rounded to nearest even, with the NaN rule."""
    if _is_nan(a) or _is_nan(b):
        return (a if _is_nan(a) else b) | _QUIET
    sign = (a ^ b) & _SIGN
    a, b = a & ~_SIGN, b & ~_SIGN
    if a == b and a in (0, _INFINITY):
        return _CANONICAL_NAN
    if a == _INFINITY or b == 0:
        return sign | _INFINITY
    if b == _INFINITY:
        return sign
    return sign | _float32_bits(_value(a) / _value(b))


def _is_nan(bits: int) -> bool:
    return bits & ~_SIGN > _INFINITY


def _is_infinite(bits: int) -> bool:
    return bits & ~_SIGN == _INFINITY


def _value(bits: int) -> Fraction:
    magnitude = _decoded(bits & ~_SIGN, 23, -126)
    return -magnitude if bits & _SIGN else magnitude


def _float32_bits(value: Fraction) -> int:
    """Return the bits of the float32 nearest to `value`; zero is +0.0."""
    sign = _SIGN if value < 0 else 0
    return sign | min(_rounded(abs(value), 23, -126), _INFINITY)


def _decoded(code: int, mantissa_bits: int, min_exponent: int) -> Fraction:
    """Return the magnitude that `code`, without its sign bit, stands for."""
    exponent = code >> mantissa_bits
    mantissa = code & ((1 << mantissa_bits) - 1)
    if exponent > 0:
        mantissa += 1 << mantissa_bits
        exponent -= 1
    return Fraction(mantissa) * _power_of_two(exponent + min_exponent - mantissa_bits)


def _rounded(magnitude: Fraction, mantissa_bits: int, min_exponent: int) -> int:
    """Return the code of `magnitude` rounded to nearest even, as if exponents had no upper end.

    `round` of a Fraction goes to the nearest integer and from the middle to the even one; a
    mantissa that carries runs into the exponent by plain addition.
    """
    if not magnitude:
        return 0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < _power_of_two(exponent):
        exponent -= 1
    exponent = max(exponent, min_exponent)
    steps = round(magnitude / _power_of_two(exponent - mantissa_bits))
    return ((exponent - min_exponent) << mantissa_bits) + steps


def _power_of_two(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)
