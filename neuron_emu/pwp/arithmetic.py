"""The cubic in its two arithmetics, for arrays, with every NaN under rule.

`pwp` is the mixed sequence of the compiler's simulator (pwp-model.md 4.5); `silicon` is a Horner
chain in fp32. No power routine of numpy, no contraction and no fast-math appears here: each of
them changes results (design.md 3).

The cube is `(t*t)*t` in double, which is correctly rounded. libm's `pow(t, 3.0)` may differ from it
by one ulp of the double, and the result must equal libm's: an element whose result could be
different is redone with `math.pow`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from neuron_emu.pwp.profile import QUIET_NAN

__all__ = ["add_float32", "cubic_pwp", "cubic_silicon", "quieted", "redo_with_libm"]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint32]
Indices = npt.NDArray[np.int64]

_QUIET_BIT = np.uint32(0x00400000)
# How far the choice of the cube moves the sum r2 = c*d3 + r1: the product by two ulps of its own
# and one of rounding, the sum by its two roundings. Both constants are rounded up.
_PRODUCT_SLACK = 2.0**-50
_SUM_SLACK = 2.0**-51


def quieted(bits: Words) -> Words:
    """Return NaN bits with the quiet bit set."""
    return bits | _QUIET_BIT


def cubic_pwp(points: Floats, rows: Words) -> Words:
    """Return the bits of the simulator's cubic.

    `points` is [n] float32, `rows` uint32 [n, 5], the bits of x, d0, d1, d2, d3 of each element.
    Float `d0 + d1*t`, double `+ (t*t)*d2`, double `+ cube*d3`, one rounding to float.
    """
    x, d0, d1, d2, d3 = _columns(rows)
    with np.errstate(all="ignore"):
        t = points - x
        low = t * d1 + d0
        wide = t.astype(np.float64)
        square = wide * wide
        r1 = low + square * d2.astype(np.float64)
        product = square * wide * d3.astype(np.float64)
        r2 = product + r1
        result = r2.astype(np.float32)
        delta = np.abs(product) * _PRODUCT_SLACK + np.abs(r2) * _SUM_SLACK
        lower = (r2 - delta).astype(np.float32).view(np.uint32)
        upper = (r2 + delta).astype(np.float32).view(np.uint32)
    doubtful = (lower != upper) & (product != 0) & np.isfinite(r2)
    if doubtful.any():
        where = np.flatnonzero(doubtful)
        redo_with_libm(result, where, wide, d3, r1)
    bits = result.view(np.uint32)
    unordered = np.isnan(result)
    if unordered.any():
        bits[unordered] = _pwp_nan(points[unordered], rows[unordered])
    return bits


def redo_with_libm(
    result: Floats, where: Indices, t: Doubles, d3: npt.NDArray[np.floating], r1: Doubles
) -> None:
    """Overwrite elements of `result` with the sequence's value for libm's own cube."""
    with np.errstate(all="ignore"):
        for i in where.tolist():
            result[i] = np.float32(math.pow(float(t[i]), 3.0) * float(d3[i]) + float(r1[i]))


def cubic_silicon(points: Floats, rows: Words, *, fma: bool = False) -> Words:
    """Return the bits of `((d3*t + d2)*t + d1)*t + d0` in fp32.

    Each multiplication and addition is rounded, or with `fma` each pair once.
    """
    x, d0, d1, d2, d3 = _columns(rows)
    step = _fused if fma else _unfused
    with np.errstate(all="ignore"):
        t = points - x
        word = _track(t, _nan_word(points), _nan_word(x))
        value, value_word = d3, _nan_word(d3)
        for addend in (d2, d1, d0):
            # An infinite product is a NaN of its own, which the addend's comes after.
            product_word = _track(value * t, value_word, word)
            value = step(value, t, addend)
            value_word = _track(value, product_word, _nan_word(addend))
    bits = value.view(np.uint32)
    return np.where(value_word != 0, value_word, bits)


def _unfused(a: Floats, b: Floats, c: Floats) -> Floats:
    return a * b + c


def _fused(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return `a*b + c` rounded once to fp32.

    The product of two float32 is exact in double. The sum is rounded to odd: when it is inexact
    and its last bit is even, the neighbour on the side of the error is taken. Two bits more than
    the target suffice for the second rounding to be right (Boldo and Melquiond); here are 29.
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    wide = c.astype(np.float64)
    total = product + wide
    part = total - product
    error = (product - (total - part)) + (wide - part)
    inexact = np.isfinite(error) & (error != 0)
    bits = total.view(np.int64)
    outward = np.where(np.signbit(error) == np.signbit(total), 1, -1)
    bits += np.where(inexact & (bits & 1 == 0), outward, 0)
    return total.astype(np.float32)


def add_float32(bits: Words, addend: int) -> Words:
    """Return the bits of value + addend in fp32, both given as bits."""
    values = bits.view(np.float32)
    other = np.full(1, addend, np.uint32)
    with np.errstate(all="ignore"):
        total = values + other.view(np.float32)
    word = _track(total, _nan_word(values), _nan_word(other.view(np.float32)))
    return np.where(word != 0, word, total.view(np.uint32))


def _columns(rows: Words) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    x, d0, d1, d2, d3 = np.ascontiguousarray(rows.T).view(np.float32)
    return x, d0, d1, d2, d3


def _nan_word(values: Floats) -> Words:
    """Return the quieted bits where a value is NaN and 0 elsewhere."""
    return np.where(np.isnan(values), quieted(values.view(np.uint32)), np.uint32(0))


def _track(result: npt.NDArray[np.floating], first: Words, second: Words) -> Words:
    """Return the NaN that an operation has to give, 0 where it gives a number.

    Of two NaN operands the first stays; a NaN that the operation makes is the default one
    (design.md 3). The host's choice in `result` is never looked at.
    """
    word = np.where(first != 0, first, second)
    made = np.isnan(result) & (word == 0)
    return np.where(made, np.uint32(QUIET_NAN), word)


def _pwp_nan(points: Floats, rows: Words) -> Words:
    """Return the NaN of each element whose result is one, by the rule for each operation."""
    x, d0, d1, d2, d3 = _columns(rows)
    with np.errstate(all="ignore"):
        t = points - x
        t_word = _track(t, _nan_word(points), _nan_word(x))
        linear = t * d1
        linear_word = _track(linear, t_word, _nan_word(d1))
        low = linear + d0
        low_word = _track(low, linear_word, _nan_word(d0))
        wide = t.astype(np.float64)
        quadratic = wide * wide * d2.astype(np.float64)
        quadratic_word = _track(quadratic, t_word, _nan_word(d2))
        r1 = low + quadratic
        r1_word = _track(r1, low_word, quadratic_word)
        product = wide * wide * wide * d3.astype(np.float64)
        product_word = _track(product, t_word, _nan_word(d3))
        return _track(product + r1, product_word, r1_word)
