"""The vectorised evaluators: one code path for every profile.

`compile_profile(profile).evaluate(values)` is the whole interface. Two ways lead to the same bits:

- the general way finds row by row as the specification words it (`lookup`), applies one of the
  arithmetics (`arithmetic`) and handles special values, folds and NaNs;
- the fast way of evaluator `pwp` looks the top bits of an input up in a table of cells, each with
  the coefficients of its section, and needs no branch. A cell in which anything but the plain
  cubic may happen (a threshold, a missing section, a special result, a result that could be
  denormal or could cancel) holds NaN for x, so its elements come out as NaN and are handed to the
  general way.

A reflected input needs no fold in the fast way: its cell holds the section mirrored, which gives
exactly the reflected, negated or unnegated, result, as rounding to nearest is symmetric.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_emu.errors import InputError
from neuron_emu.numerics import subtract
from neuron_emu.pwp import exact
from neuron_emu.pwp.arithmetic import (
    add_float32,
    cubic_pwp,
    cubic_silicon,
    quieted,
    redo_with_libm,
)
from neuron_emu.pwp.cells import build_cells
from neuron_emu.pwp.explain import Station, walk
from neuron_emu.pwp.lookup import (
    MAGNITUDE_MASK,
    SIGN_BIT,
    SectionTable,
    from_profile,
    unhandled_section,
)
from neuron_emu.pwp.profile import MANTISSA_BITS, Profile

__all__ = ["CompiledProfile", "compile_profile"]

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]

_INFINITY = np.uint32(0x7F800000)
_BLOCK = 1 << 15
# Building the cells costs about as much as this many elements of the general way.
_CELLS_PAY_AFTER = 1 << 15
# A finer table, which no hardware holds, would need gigabytes of cells.
_LARGEST_CELLS = 15
# A result is doubtful when its double lies this close, in ulps of the double, to a float32 tie.
# cells.py admits only cells where the choice of the cube moves it by less.
_NEAR_TIE = 256
# Arrays without dimensions: numpy takes them quicker than scalars.
_TIE_OFFSET = np.array((1 << 28) + _NEAR_TIE, np.uint64)
_DROPPED_BITS = np.array((1 << 29) - 1, np.uint64)


class _Scratch(threading.local):
    """Buffers of one thread, as views by length."""

    def __init__(self) -> None:
        self.buffers = _Buffers(_BLOCK)
        self.views: dict[int, _Buffers] = {_BLOCK: self.buffers}

    def of_length(self, length: int) -> _Buffers:
        view = self.views.get(length)
        if view is None:
            if len(self.views) > 32:
                self.views = {_BLOCK: self.buffers}
            view = self.views[length] = self.buffers.head(length)
        return view


class _Buffers:
    def __init__(self, length: int, parent: _Buffers | None = None) -> None:
        def part(name: str, dtype: npt.DTypeLike, *shape: int) -> Any:
            whole = getattr(parent, name) if parent else np.empty((length, *shape), dtype)
            return whole[:length]

        self.v = part("v", np.float32)
        self.index = part("index", np.int64)
        self.rows = part("rows", np.float64, 4)
        self.t = part("t", np.float32)
        self.low = part("low", np.float32)
        self.wide = part("wide", np.float64)
        self.square = part("square", np.float64)
        self.cube = part("cube", np.float64)
        # The index is spent before the guard begins, the guard's bits are not yet needed while
        # the float part is widened: one buffer for the three.
        self.guard = self.index.view(np.uint64)
        self.low_wide = self.index.view(np.float64)
        singles = self.rows.view(np.float32)
        self.x, self.d0, self.d1, self.addend = (singles[:, i] for i in range(4))
        self.d2, self.d3 = self.rows[:, 2], self.rows[:, 3]
        self.cube_bits = self.cube.view(np.uint64)
        self.top_bits = self.low.view(np.uint32)

    def head(self, length: int) -> _Buffers:
        return _Buffers(length, self)


_scratch = _Scratch()


def _parts(shape: tuple[int, ...]) -> list[tuple[slice, slice]]:
    """Cut [lanes, n] elements into blocks: whole lanes, or pieces of one where they are long."""
    lanes, length = shape
    if length > _BLOCK:
        starts = range(0, length, _BLOCK)
        return [
            (slice(lane, lane + 1), slice(start, start + _BLOCK))
            for lane in range(lanes)
            for start in starts
        ]
    many = _BLOCK // max(length, 1)
    return [
        (slice(lane, lane + many), slice(None)) for lane in range(0, lanes if length else 0, many)
    ]


def _flat(values: Floats, minus: Floats | None = None) -> Floats:
    difference = values if minus is None else subtract(values, minus)
    return np.ascontiguousarray(difference).reshape(-1)


class CompiledProfile:
    """A table made ready for evaluation; immutable, and safe to use from several threads."""

    def __init__(self, table: SectionTable) -> None:
        self.table = table
        self._cells: npt.NDArray[np.float64] | None = None
        self._shift = np.array(MANTISSA_BITS - table.extract_size, np.uint32)
        self._ninf_result = np.uint32(table.ninf_result)
        self._seen = 0

    def evaluate(
        self,
        values: Floats,
        *,
        evaluator: str = "pwp",
        nan: str = "fallthrough",
        fma: str = "off",
        slope: Floats | float | None = None,
        minus: Floats | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """Return f(values), or f(values - minus), float32 of the same shape.

        Parameters
        ----------
        evaluator: `pwp`, `silicon` or `exact` (design.md 3).
        nan: `fallthrough` or `profile`, for `pwp` only.
        fma: `off` or `on`, for `silicon` only.
        slope: what parametric ReLU multiplies negative inputs by; broadcast against `values`.
        minus: float32 [1, 1], or [lanes, 1] beside values [lanes, n]; see `numerics.subtract`.
        out: C-contiguous float32 of the same shape, which may take the result.

        Raises InputError for another dtype than float32, an unknown choice, a missing slope, or an
        input that no section covers ("Unhandled section in simulation").
        """
        if values.dtype != np.float32:
            raise InputError(f"values must be float32, not {values.dtype}")
        if self.table.takes_slope:
            flat = _flat(values, minus)
            words = self._parametric(flat, slope, values.shape)
            if evaluator == "silicon" or (evaluator == "pwp" and nan == "profile"):
                words[np.isnan(flat)] = self.table.nan_result
            return words.view(np.float32).reshape(values.shape)
        if evaluator == "pwp" and nan in ("fallthrough", "profile"):
            result = self._in_blocks(self._pwp_block, values, minus, out, nan=nan)
        elif evaluator == "silicon" and fma == "off":
            result = self._in_blocks(self._silicon_block, values, minus, out, fma=fma)
        elif evaluator == "silicon" and fma == "on":
            result = self._general(_flat(values, minus), fma=fma)
        elif evaluator == "exact":
            result = exact.evaluate(self.table.name, _flat(values, minus))
        else:
            raise InputError(
                "evaluator must be pwp (nan fallthrough or profile), silicon (fma off or on) or"
                f" exact, not {evaluator!r} (nan {nan!r}, fma {fma!r})"
            )
        return result if result.shape == values.shape else result.reshape(values.shape)

    def _in_blocks(
        self,
        block: Callable[[Floats, Floats], None],
        values: Floats,
        minus: Floats | None,
        out: Floats | None,
        **general: str,
    ) -> Floats:
        """Evaluate piece by piece with a fast block; what comes out as NaN goes the general way."""
        if self._cells is None:
            self._seen += values.size
            if self._seen < _CELLS_PAY_AFTER or self.table.extract_size > _LARGEST_CELLS:
                return self._general(_flat(values, minus), **general)
            self._cells = build_cells(self.table)
        result = np.empty(values.shape, np.float32) if out is None else out
        with np.errstate(all="ignore"):
            if 0 < values.size <= _BLOCK:
                self._one_block(block, values, minus, result, general)
                return result
            pieces = result
            if minus is None or values.ndim != 2:
                values, pieces = _flat(values).reshape(1, -1), result.reshape(1, -1)
            for lanes, columns in _parts(values.shape):
                less = minus if minus is None or len(minus) == 1 else minus[lanes]
                piece, room = values[lanes, columns], pieces[lanes, columns]
                self._one_block(block, piece, less, room, general)
        return result

    def _one_block(
        self,
        block: Callable[[Floats, Floats], None],
        values: Floats,
        minus: Floats | None,
        out: Floats,
        general: dict[str, str],
    ) -> None:
        flat = out.reshape(-1)
        if minus is None:
            v = values.reshape(-1)
        else:
            v = _scratch.of_length(flat.size).v
            np.subtract(values, minus, out=v.reshape(values.shape))
        block(v, flat)
        # argmin is the quickest reduction that numpy has, and finds the first NaN.
        if math.isnan(flat.item(flat.argmin())):
            # Which NaN a subtraction makes is the host's choice until here.
            self._settle(v if minus is None else _flat(values, minus), flat, general)

    def _settle(self, values: Floats, out: Floats, general: dict[str, str]) -> None:
        where = np.flatnonzero(np.isnan(out))
        left = values[where]
        infinite = np.isinf(left)
        # A masked row is full of -inf.
        if infinite.any():
            words = out.view(np.uint32)
            words[where[infinite]] = np.where(
                left[infinite] > 0, np.uint32(self.table.pinf_result), self._ninf_result
            )
            where, left = where[~infinite], left[~infinite]
        out[where] = self._general(left, **general)

    def _gather(self, values: Floats) -> _Buffers:
        """Fetch the cells of a block and compute t."""
        s = _scratch.of_length(values.size)
        # Shifted as they are and then widened: numpy would widen in small pieces.
        np.right_shift(values.view(np.uint32), self._shift, out=s.top_bits)
        s.index[...] = s.top_bits
        self._cells.take(s.index, axis=0, out=s.rows, mode="clip")  # type: ignore[union-attr]
        np.subtract(values, s.x, out=s.t)
        return s

    def _pwp_block(self, values: Floats, out: Floats) -> None:
        s = self._gather(values)
        np.multiply(s.t, s.d1, out=s.low)
        np.add(s.low, s.d0, out=s.low)
        s.wide[...] = s.t
        np.multiply(s.wide, s.wide, out=s.square)
        np.multiply(s.square, s.wide, out=s.cube)
        np.multiply(s.square, s.d2, out=s.square)
        s.low_wide[...] = s.low
        np.add(s.square, s.low_wide, out=s.square)
        np.multiply(s.cube, s.d3, out=s.cube)
        np.add(s.cube, s.square, out=s.cube)
        out[...] = s.cube
        np.add(s.cube_bits, _TIE_OFFSET, out=s.guard)
        np.bitwise_and(s.guard, _DROPPED_BITS, out=s.guard)
        if s.guard.item(s.guard.argmin()) < 2 * _NEAR_TIE:
            where = np.flatnonzero(s.guard < 2 * _NEAR_TIE)
            redo_with_libm(out, where, s.wide, s.d3, s.square)
        if self.table.symmetry_en:
            np.add(out, s.addend, out=out)

    def _silicon_block(self, values: Floats, out: Floats) -> None:
        s = self._gather(values)
        # The doubles hold float32 coefficients, so narrowing them is exact.
        out[...] = s.d3
        np.multiply(out, s.t, out=out)
        s.low[...] = s.d2
        for addend in (s.low, s.d1):
            np.add(out, addend, out=out)
            np.multiply(out, s.t, out=out)
        np.add(out, s.d0, out=out)
        if self.table.symmetry_en:
            np.add(out, s.addend, out=out)

    def _general(self, values: Floats, *, nan: str = "", fma: str = "") -> Floats:
        """Evaluate with `silicon` when `fma` is given, else `pwp`, as the pages word it."""
        table = self.table
        bits = values.view(np.uint32)
        magnitude = bits & np.uint32(MAGNITUDE_MASK)
        zero, infinite = magnitude == 0, magnitude == _INFINITY
        unordered = magnitude > _INFINITY
        stored_nan = unordered if fma or nan == "profile" else np.zeros_like(unordered)
        folded = table.fold(bits)
        row, missing = table.select(folded)
        missing &= ~(zero | infinite | stored_nan)
        if missing.any():
            raise unhandled_section(table.name, int(bits[missing][0]))
        rows = table.rows[row]
        points = folded.view(np.float32)
        cubic = partial(cubic_silicon, fma=fma == "on") if fma else cubic_pwp
        result = cubic(points, rows)
        result = self._reconstruct(result, folded != bits)
        negative = bits >= np.uint32(SIGN_BIT)
        result[zero] = table.zero_result
        result[infinite & ~negative] = table.pinf_result
        result[infinite & negative] = table.ninf_result
        result[stored_nan] = table.nan_result
        return result.view(np.float32)

    def _reconstruct(self, result: Words, reflected: npt.NDArray[np.bool_]) -> Words:
        """Undo the fold where the evaluated point is not the input (design.md 3)."""
        if not self.table.symmetry_en or not reflected.any():
            return result
        if self.table.invert:
            result[reflected] ^= np.uint32(SIGN_BIT)
        result[reflected] = add_float32(result[reflected], self.table.symmetry_point)
        return result

    def station(self, value: Floats | float) -> Station:
        """Walk one input through the table and return everything on its way (evaluator `pwp`).

        An array of one element keeps a signalling NaN, which a Python float cannot.
        """
        values = np.asarray(value, np.float32).reshape(1)
        result = self.evaluate(values, slope=1.0)
        return walk(self.table, int(values.view(np.uint32)[0]), int(result.view(np.uint32)[0]))

    def _parametric(
        self, values: Floats, slope: Floats | float | None, shape: tuple[int, ...]
    ) -> Words:
        """Parametric ReLU has no table: `x <= 0 ? slope*x : x` (pwp-model.md 5.4)."""
        if slope is None:
            raise InputError(f"{self.table.name} must be given a slope")
        slopes = np.broadcast_to(np.asarray(slope, np.float32), shape).reshape(-1)
        with np.errstate(all="ignore"):
            scaled = values * slopes
        made = np.isnan(scaled) & ~np.isnan(slopes)
        bits = np.where(made, np.uint32(0x7FC00000), _or_nan(slopes, scaled))
        return np.where(values <= 0, bits, _or_nan(values, values))


def _or_nan(candidates: Floats, otherwise: Floats) -> Words:
    """Return the bits of `otherwise`, or the quieted candidate where that is NaN."""
    nan = np.isnan(candidates)
    bits = otherwise.view(np.uint32)
    return np.where(nan, quieted(candidates.view(np.uint32)), bits)


@lru_cache(maxsize=256)
def compile_profile(profile: Profile) -> CompiledProfile:
    """Return the evaluator of a profile; equal profiles share one."""
    return CompiledProfile(from_profile(profile))
