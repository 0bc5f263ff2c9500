"""The table evaluator of the compiler's simulator, written plainly twice: the oracle.

`scalar` follows pwp-model.md 4 step by step for one input, with libm's pow for the cube, and is
what every other route is tested against. `twin` is the same in plain numpy, for sweeps that are
too long for it: each step over the whole array, the cube by `np.float_power`, which calls libm's
pow for each element.

Nothing here is shared with the evaluator under test, and nothing is done for speed.
"""

from __future__ import annotations

import ctypes
import math
import struct
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from neuron_emu.errors import InputError
from neuron_emu.pwp.profile import Clamp, Octave, Profile, Section

__all__ = ["scalar", "twin"]

Words = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float32]


def scalar(profile: Profile, v: int, nan: str = "fallthrough") -> int:
    """Return the bits of f(v) for the bits `v` of one float32 (pwp-model.md 4.1 to 4.6).

    Raises InputError when no section covers the input.
    """
    if v & 0x7FFFFFFF == 0:
        return profile.zero_result
    if v & 0x7FFFFFFF == 0x7F800000:
        return profile.ninf_result if v >> 31 else profile.pinf_result
    if _is_nan(v) and nan == "profile":
        return profile.nan_result
    sel = v
    if profile.symmetry_en:
        sel = v & 0x7FFFFFFF
        if profile.symmetry_opt_use_neg_region:
            sel = sel ^ 0x80000000
    y = _cubic(sel, _section(profile, sel))
    if profile.symmetry_en and sel != v:
        if profile.symmetry_invert_sign_opt:
            y = y ^ 0x80000000
        y = _single(_value(y) + _value(profile.symmetry_point), y, profile.symmetry_point)
    return y


def _section(profile: Profile, sel: int) -> Section:
    exponent, mantissa = sel >> 23 & 0xFF, sel & 0x7FFFFF
    if sel >> 31 == 0:
        high, low, region = profile.pos_high, profile.pos_low, profile.pos_exponents
    else:
        high, low, region = profile.neg_high, profile.neg_low, profile.neg_exponents
    if exponent > high.sat_point:
        return high.section
    if exponent == high.sat_point and mantissa >= high.mantissa_point:
        return high.section
    if exponent < low.sat_point:
        return low.section
    if exponent == low.sat_point and mantissa <= low.mantissa_point:
        return low.section
    for octave in region:
        if octave.exponent + 127 == exponent:
            section_id = mantissa >> (23 - octave.extract_size)
            if section_id < len(octave.sections):
                return octave.sections[section_id]
    raise InputError(f"Unhandled section in simulation: 0x{sel:08x}")


def _cubic(sel: int, section: Section) -> int:
    x, d0, d1, d2, d3 = section.x, section.d0, section.d1, section.d2, section.d3
    t = _single(_value(sel) - _value(x), sel, x)
    linear = _single(_value(t) * _value(d1), t, d1)
    low = _single(_value(linear) + _value(d0), linear, d0)
    wide = _value(t)
    q = wide * wide * _value(d2)
    r1 = _value(low) + q
    c = math.pow(wide, 3.0) * _value(d3)
    r2 = c + r1
    if not math.isnan(r2):
        return _single(r2)
    # Of the operands of each operation the first NaN stays; one that is made is the default.
    in_q = _first_nan(q, t, d2)
    in_r1 = _first_nan(r1, low, in_q)
    in_c = _first_nan(c, t, d3)
    return _first_nan(r2, in_c, in_r1)


def _is_nan(bits: int) -> bool:
    return bits & 0x7FFFFFFF > 0x7F800000


def _first_nan(result: float, first: int, second: int) -> int:
    for bits in (first, second):
        if _is_nan(bits):
            return bits | 0x00400000
    return 0x7FC00000 if math.isnan(result) else 0


def _value(bits: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return value


def _single(result: float, *operands: int) -> int:
    """Round to float32 and return the bits; a NaN among the operands stays.

    The double that comes in is exact, or rounded from float32 operands with more than twice their
    bits, so that this rounding is the only one that shows.
    """
    for bits in operands:
        if _is_nan(bits):
            return bits | 0x00400000
    if math.isnan(result):
        return 0x7FC00000
    word: int = struct.unpack("<I", bytes(ctypes.c_float(result)))[0]
    return word


def twin(profile: Profile, v: Words, nan: str = "fallthrough") -> Words:
    """Return the bits of f(v) for uint32 bits [n]; same results as `scalar`, element by element.

    A section may hold a NaN in d0 only: InputError.
    """
    magnitude = v & np.uint32(0x7FFFFFFF)
    sel = v.copy()
    if profile.symmetry_en:
        sel = magnitude.copy()
        if profile.symmetry_opt_use_neg_region:
            sel |= np.uint32(0x80000000)
    special = (magnitude == 0) | (magnitude == 0x7F800000)
    x, d0, d1, d2, d3 = _twin_sections(profile, sel, special)
    with np.errstate(all="ignore"):
        t = sel.view(np.float32) - x
        low = t * d1 + d0
        wide = t.astype(np.float64)
        r1 = low.astype(np.float64) + wide * wide * d2.astype(np.float64)
        r2 = np.float_power(wide, 3.0) * d3.astype(np.float64) + r1
        y = r2.astype(np.float32).view(np.uint32)
        y[np.isnan(r2)] = 0x7FC00000
        held = np.isnan(d0)
        y[held] = d0.view(np.uint32)[held] | np.uint32(0x00400000)
        incoming = magnitude > 0x7F800000
        y[incoming] = sel[incoming] | np.uint32(0x00400000)
        reflected = sel != v
        if profile.symmetry_en:
            if profile.symmetry_invert_sign_opt:
                y[reflected] ^= np.uint32(0x80000000)
            shifted = y.view(np.float32) + np.float32(_value(profile.symmetry_point))
            numbers = reflected & ~np.isnan(y.view(np.float32))
            y[numbers] = shifted.view(np.uint32)[numbers]
            y[numbers & np.isnan(shifted)] = 0x7FC00000
    y[magnitude == 0] = profile.zero_result
    y[v == 0x7F800000] = profile.pinf_result
    y[v == 0xFF800000] = profile.ninf_result
    if nan == "profile":
        y[incoming] = profile.nan_result
    return y


@lru_cache(maxsize=8)
def _twin_columns(profile: Profile) -> list[Floats]:
    """Return x, d0, d1, d2, d3 of all sections: of each side its octaves, then both clamps."""
    sections: list[Section] = []
    for octaves, low, high in _twin_halves(profile):
        for octave in octaves:
            sections.extend(octave.sections)
        sections.extend((low.section, high.section))
    rows = np.array([(s.x, s.d0, s.d1, s.d2, s.d3) for s in sections], np.uint32)
    columns = list(np.ascontiguousarray(rows.T).view(np.float32))
    if any(np.isnan(columns[i]).any() for i in (0, 2, 3, 4)):
        raise InputError("the numpy twin takes no section that holds a NaN beside d0")
    return columns


def _twin_halves(profile: Profile) -> list[tuple[tuple[Octave, ...], Clamp, Clamp]]:
    return [
        (profile.pos_exponents, profile.pos_low, profile.pos_high),
        (profile.neg_exponents, profile.neg_low, profile.neg_high),
    ]


def _twin_sections(profile: Profile, sel: Words, special: npt.NDArray[np.bool_]) -> list[Floats]:
    start = 0
    chosen = np.full(sel.size, -1, np.int64)
    magnitude = sel & np.uint32(0x7FFFFFFF)
    exponent, mantissa = magnitude >> np.uint32(23), magnitude & np.uint32(0x7FFFFF)
    negative = sel >= np.uint32(0x80000000)
    present = range(int(exponent.min(initial=255)), int(exponent.max(initial=0)) + 1)
    for half, (octaves, low, high) in zip(
        (~negative, negative), _twin_halves(profile), strict=True
    ):
        for octave in octaves:
            if octave.exponent + 127 in present:
                section_id = mantissa >> np.uint32(23 - octave.extract_size)
                here = half & (exponent == octave.exponent + 127)
                here &= section_id < len(octave.sections)
                np.copyto(chosen, start + section_id.astype(np.int64), where=here)
            start += len(octave.sections)
        np.copyto(chosen, start, where=half & (magnitude <= low.magnitude))
        np.copyto(chosen, start + 1, where=half & (magnitude >= high.magnitude))
        start += 2
    uncovered = (chosen < 0) & ~special
    if uncovered.any():
        first = int(sel[uncovered][0])
        raise InputError(f"Unhandled section in simulation: 0x{first:08x}")
    chosen[special] = 0
    return [column.take(chosen) for column in _twin_columns(profile)]
