"""The flat table behind the fast way of `evaluate`: coefficients by the top bits of an input.

A cell is the set of inputs that share sign, exponent and the top mantissa bits of the finest
octave. Its row holds what the block arithmetic needs, in 32 bytes:

    float32 x, d0, d1, addend; float64 d2, d3

A row is plain when the block arithmetic gives the specified bits for every input of the cell;
every other cell gets x = NaN, which sends its inputs to the general way.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_emu.pwp.arithmetic import cubic_pwp, cubic_silicon
from neuron_emu.pwp.lookup import SIGN_BIT, SectionTable
from neuron_emu.pwp.profile import MANTISSA_BITS, QUIET_NAN

__all__ = ["build_cells"]

Words = npt.NDArray[np.uint32]
Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_SIGN = np.uint32(SIGN_BIT)
_NEGATIVE_ZERO = 0x80000000
_SMALLEST_NORMAL = 2.0**-126
# The near-tie test of the block allows for a cubic term up to this multiple of the result.
_LARGEST_TERM = 16.0


def build_cells(table: SectionTable) -> Doubles:
    """Return the rows of all cells, float64 [512 << extract_size, 4] with mixed contents."""
    shift = np.uint32(MANTISSA_BITS - table.extract_size)
    first = np.arange(512 << table.extract_size, dtype=np.uint32) << shift
    last = first | np.uint32((1 << int(shift)) - 1)
    folded_first, folded_last = table.fold(first), table.fold(last)
    row, missing = table.select(folded_first)
    row_of_last, missing_last = table.select(folded_last)
    reflected = folded_first != first
    plain = (row == row_of_last) & ~missing & ~missing_last
    plain &= (first & np.uint32(0x7F800000)) != np.uint32(0x7F800000)
    plain &= _is_regular(table.rows[row], folded_first, folded_last)
    # A mirror may get the sign of a zero wrong; adding the symmetry point, unless it is -0.0,
    # leaves no negative zero anyway.
    plain &= ~reflected | (table.symmetry_point != _NEGATIVE_ZERO)
    plain &= (first & ~_SIGN != 0) | _zero_is_regular(table, row, folded_first, reflected)
    return _fill(table, row, reflected, plain)


def _fill(table: SectionTable, row: npt.NDArray[np.int64], reflected: Mask, plain: Mask) -> Doubles:
    cells = np.empty((row.size, 4), np.float64)
    words = cells.view(np.uint32)
    words[:, 0:3] = table.rows[row, 0:3]
    # Adding -0.0 changes no value, so it is what an input that is not reflected gets.
    words[:, 3] = np.where(reflected, np.uint32(table.symmetry_point), _SIGN)
    with np.errstate(invalid="ignore"):
        cells[:, 2:4] = table.rows.view(np.float32)[row, 3:5]
    # Mirrored: f(v) = +-s(-v) has its centre at -x; an odd result flips d0 and d2, an even one
    # d1 and d3.
    words[reflected, 0] ^= _SIGN
    if table.invert:
        words[reflected, 1] ^= _SIGN
        cells[reflected, 2] *= -1.0
    else:
        words[reflected, 2] ^= _SIGN
        cells[reflected, 3] *= -1.0
    words[~plain, 0] = QUIET_NAN
    return cells


def _is_regular(rows: Words, first: Words, last: Words) -> Mask:
    """Tell for which cells no result can be denormal or lose its leading digits.

    The bound is the cubic at the middle of the cell less its largest change over half the cell
    and the rounding of the float32 part. Without a cubic term the choice of the cube has no
    effect, and every result is right.
    """
    with np.errstate(all="ignore"):
        x, d0, d1, d2, d3 = rows.view(np.float32).T.astype(np.float64)
        ends = [end.view(np.float32).astype(np.float64) - x for end in (first, last)]
        middle, half = (ends[0] + ends[1]) / 2, np.abs(ends[0] - ends[1]) / 2
        t = np.maximum(*np.abs(ends))
        change = half * (np.abs(d1) + 2 * t * np.abs(d2) + 3 * t * t * np.abs(d3))
        rounding = (np.abs(d0) + t * np.abs(d1)) * 2.0**-20
        value = np.abs(d0 + middle * (d1 + middle * (d2 + middle * d3)))
        smallest = value - change - rounding
        cubic = t * t * t * np.abs(d3)
        regular: Mask = (smallest > 2 * _SMALLEST_NORMAL) & (smallest * _LARGEST_TERM > 2 * cubic)
        regular |= d3 == 0
    return regular


def _zero_is_regular(
    table: SectionTable, row: npt.NDArray[np.int64], folded: Words, reflected: Mask
) -> Mask:
    """Tell for which cells both cubics at a zero input give the stored result for zero."""
    regular = np.zeros(row.size, np.bool_)
    for cell in np.flatnonzero((folded & ~_SIGN) == 0):
        point = folded[cell : cell + 1].view(np.float32)
        rows = table.rows[row[cell : cell + 1]]
        results = {int(cubic(point, rows)[0]) for cubic in (cubic_pwp, cubic_silicon)}
        regular[cell] = not reflected[cell] and results == {table.zero_result}
    return regular
