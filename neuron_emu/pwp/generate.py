"""Make the tables anew from the mathematical functions, by the rule of pwp-model.md 8.

The rule: a section is centred one float below the middle of its bucket, its coefficients are the
Taylor coefficients there, each rounded once; an octave gets the smallest number of sections with
which every one of its floats is within the tolerance; a clamp starts at the first float from
which its own polynomial is. mpmath is the source of truth and is needed here only: what the
package ships is the result (`store`).

    python -m neuron_emu.pwp.generate [PROFILE...]

writes the data files of the named profiles, all by default, and the same bytes every time.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp import exact
from neuron_emu.pwp.arithmetic import cubic_pwp
from neuron_emu.pwp.functions import Symmetry, function_named
from neuron_emu.pwp.profile import (
    EXPONENT_BIAS,
    MANTISSA_BITS,
    QUIET_NAN,
    Clamp,
    Octave,
    Profile,
    Section,
    float_value,
)
from neuron_emu.pwp.rules import HARDWIRED, RULES, Rule, SideRule, catalog_keys
from neuron_emu.pwp.truth import TRUTH, load_mpmath, round_to_float32

__all__ = ["generate", "main"]

Words = npt.NDArray[np.uint32]
Magnitudes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

_PRECISION = 200
_LARGEST_EXTRACT = 10
_MANTISSA_MASK = (1 << MANTISSA_BITS) - 1
_MAGNITUDE_MASK = 0x7FFFFFFF
_INFINITY = 0x7F800000
_SIGN = 0x80000000
_CHUNK = 1 << 14
# Relative error allowed for a library function in float64: 128 ulps.
_SLACK = 2.0**-46
# Past the threshold that a bisection finds, so many floats are tested too.
_AFTER_THRESHOLD = 1 << 16


def generate(name: str) -> Profile:
    """Make the profile `name` (`exp_400p`).

    Raises InputError when there is no rule for it or mpmath is not installed.
    """
    if name in HARDWIRED:
        return HARDWIRED[name]
    rule = next((r for r in RULES if r.name == name), None)
    if rule is None:
        names = ", ".join([r.name for r in RULES] + [*HARDWIRED])
        raise InputError(f"there is no rule to generate {name!r}; there is one for {names}")
    return Generator(rule).profile()


class Generator:
    """Makes one profile; its parts can be called one by one to make a part of it.

    Octaves, thresholds and sections belong to one side, whose `sign` is 0 or 0x80000000; a
    magnitude is the bits of a float without its sign.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.mp: Any = load_mpmath()
        self.reference = (_ByDouble if rule.judged_by_double else _ByFunction)(rule, self.mp)

    def profile(self) -> Profile:
        """Make the whole profile, every float of its octaves tested."""
        rule = self.rule
        sides = [s for s in (rule.positive, rule.negative) if s is not None]
        lowest = min(side.lowest_exponent for side in sides)
        positive = self.side(rule.positive, 0, lowest)
        negative = self.side(rule.negative, _SIGN, lowest)
        keys = catalog_keys(function_named(rule.function)) | {"max_diff": rule.tolerance}
        return Profile(
            pos_exponents=positive.octaves,
            neg_exponents=negative.octaves,
            pos_low=positive.low,
            pos_high=positive.high,
            neg_low=negative.low,
            neg_high=negative.high,
            **(keys | rule.keys),
        )

    def side(self, rule: SideRule | None, sign: int, lowest: int) -> _Side:
        """Make the octaves and clamps of one side; exponents from `lowest` on are declared."""
        if rule is None:
            # A side that no input is folded to is zero; the other side of a one-sided function
            # holds its constant from the smallest float on (pwp-model.md 6.1 [unknown]).
            folds = function_named(self.rule.function).symmetry != Symmetry.NONE
            absent = Section() if folds else Section(d0=QUIET_NAN)
            return _Side((), Clamp(section=absent), Clamp(section=absent))
        threshold = self.threshold(rule, sign)
        top = (threshold >> MANTISSA_BITS) - EXPONENT_BIAS
        if not rule.declares_end and threshold & _MANTISSA_MASK == 0:
            top -= 1
        octaves = [Octave(exponent) for exponent in range(lowest, rule.lowest_exponent)]
        for exponent in range(rule.lowest_exponent, top + 1):
            octaves.append(self.octave(exponent, sign, threshold, rule.extract_sizes.get(exponent)))
        low = rule.low or self.section(0, sign)
        return _Side(
            tuple(octaves),
            Clamp(rule.lowest_exponent + EXPONENT_BIAS, 0, low),
            Clamp(threshold >> MANTISSA_BITS, threshold & _MANTISSA_MASK, self.high(rule, sign)),
        )

    def high(self, rule: SideRule, sign: int) -> Section:
        """Return the polynomial of the high clamp."""
        return rule.high or self.section(rule.end or 0, sign)

    def threshold(self, rule: SideRule, sign: int) -> int:
        """Return the magnitude of the first float from which the high clamp is within tolerance.

        The error decreases towards the end of the range but for its rounding, so that a bisection
        comes close, and the floats that follow are all tested.
        """
        end = _INFINITY - 1 if rule.end is None else rule.end
        if rule.end_is_threshold:
            return end
        section = self.high(rule, sign)
        first, last = (rule.lowest_exponent + EXPONENT_BIAS) << MANTISSA_BITS, end
        while first < last:
            middle = (first + last) // 2
            if self.holds(np.array([middle]), [section], sign):
                last = middle
            else:
                first = middle + 1
        after = np.arange(first, min(first + _AFTER_THRESHOLD, end + 1))
        failing = np.flatnonzero(~self.judge(after, [section], sign))
        return first + int(failing[-1]) + 1 if failing.size else first

    def octave(
        self, exponent: int, sign: int, threshold: int, extract_size: int | None = None
    ) -> Octave:
        """Make the octave's sections below a threshold, with a given size or the smallest."""
        first = (exponent + EXPONENT_BIAS) << MANTISSA_BITS
        end = min(first + (1 << MANTISSA_BITS), threshold)
        if first >= end:
            return Octave(exponent)
        sizes = range(_LARGEST_EXTRACT + 1) if extract_size is None else [extract_size]
        for size in sizes:
            sections = self.sections(first, end, size, sign)
            if size == sizes[-1] or self.octave_holds(first, end, size, sections, sign):
                break
        return Octave(exponent, size, tuple(sections))

    def sections(self, first: int, end: int, size: int, sign: int) -> list[Section]:
        """Make the sections of the octave that begins at `first`, those below `end`."""
        width = 1 << (MANTISSA_BITS - size)
        return [self.section(x + (width - 1) // 2, sign) for x in range(first, end, width)]

    def section(self, magnitude: int, sign: int) -> Section:
        """Return the Taylor coefficients at a float, each rounded once."""
        centre = magnitude | (sign if magnitude else 0)
        with self.mp.workprec(_PRECISION):
            words = [self.coefficient(value) for value in self.taylor(float_value(centre))]
        if self.rule.linear:
            words[2:] = [0, 0]
        return Section(centre, *words)

    def taylor(self, centre: float) -> list[Any]:
        """Return the four coefficients; differences are taken in steps relative to the centre."""
        x, function = self.mp.mpf(centre), self.reference.function
        if not centre:
            coefficients: list[Any] = self.mp.taylor(function, x, 3)
            return coefficients
        relative = self.mp.taylor(lambda u: function(x * (1 + u)), 0, 3)
        return [value / x**k for k, value in enumerate(relative)]

    def coefficient(self, value: Any) -> int:
        # One that no float32 can hold is 0 (pwp-model.md 8.2).
        bits = round_to_float32(value)
        return 0 if bits & _MAGNITUDE_MASK >= _INFINITY else bits

    def octave_holds(
        self, first: int, end: int, size: int, sections: list[Section], sign: int
    ) -> bool:
        """Tell whether every float of [first, end) is within the tolerance."""
        shift = MANTISSA_BITS - size
        # A few floats of each section refuse most candidates at once.
        offsets = np.linspace(0, (1 << shift) - 1, 9).astype(np.int64)
        starts = np.arange(first, end, 1 << shift, dtype=np.int64)
        sample = (starts[:, None] + offsets).reshape(-1)
        if not self.holds(sample[sample < end], sections, sign, first, shift):
            return False
        return all(
            self.holds(np.arange(x, min(x + _CHUNK, end)), sections, sign, first, shift)
            for x in range(first, end, _CHUNK)
        )

    def holds(
        self,
        magnitudes: Magnitudes,
        sections: list[Section],
        sign: int,
        first: int | None = None,
        shift: int = 0,
    ) -> bool:
        """Tell whether floats, given in ascending order, are within the tolerance.

        A float belongs to section `(magnitude - first) >> shift`; without `first` to the only one.
        """
        bits = (magnitudes | sign).astype(np.uint32)
        start = 0 if first is None else int(magnitudes[0] - first) >> shift
        alone = first is None or int(magnitudes[-1] - first) >> shift == start
        if alone and self.surely_holds(bits.view(np.float32), sections[start]):
            return True
        return bool(self.judge(magnitudes, sections, sign, first, shift, stop=True).all())

    def judge(
        self,
        magnitudes: Magnitudes,
        sections: list[Section],
        sign: int,
        first: int | None = None,
        shift: int = 0,
        *,
        stop: bool = False,
    ) -> Mask:
        """Tell which floats are within the tolerance; `stop` ends at the first that is not."""
        bits = (magnitudes | sign).astype(np.uint32)
        place = np.zeros_like(magnitudes) if first is None else (magnitudes - first) >> shift
        low, high = int(place[0]), int(place[-1])
        got = cubic_pwp(bits.view(np.float32), _rows(sections[low : high + 1])[place - low])
        lower, upper = self.reference.enclose(bits.view(np.float32))
        near_lower, near_upper = self.within(got, lower), self.within(got, upper)
        near = near_lower & near_upper
        # Between neighbours there is no third value, so that far from both is far.
        neighbours = _distance(lower.view(np.uint32), upper.view(np.uint32)) <= 1
        doubtful = ~near & ~(neighbours & ~near_lower & ~near_upper)
        if stop and not (near | doubtful).all():
            return near
        for i in np.flatnonzero(doubtful).tolist():
            expected = np.array([self.reference.rounded(int(bits[i]))], np.uint32)
            near[i] = self.within(got[i : i + 1], expected.view(np.float32))[0]
            if stop and not near[i]:
                break
        return near

    def surely_holds(self, values: Floats, section: Section) -> bool:
        """Tell whether floats of one section are within the tolerance with two steps to spare.

        One step covers the choice of the cube, which this leaves out, and one the rounding of the
        float64 reference.
        """
        x, d0, d1, d2, d3 = _rows([section]).view(np.float32)[0]
        with np.errstate(all="ignore"):
            t = values - x
            low = t * d1 + d0
            wide = t.astype(np.float64)
            square = wide * wide
            got = (square * wide * np.float64(d3) + (square * np.float64(d2) + low)).astype("f4")
            near = self.reference.nearest(values)
        if near is None or not (np.isfinite(got).all() and np.isfinite(near).all()):
            return False
        # Patterns of opposite signs come out far apart, whichever way the difference wraps.
        steps = got.view(np.int32) - near.view(np.int32)
        spare = self.rule.tolerance - 2
        return bool(steps.max() <= spare and steps.min() >= -spare)

    def within(self, got: Words, expected: Floats) -> Mask:
        """Compare by the distance of the patterns (pwp-model.md 8.3); infinity has none."""
        wanted = expected.view(np.uint32)
        size_got, size_wanted = got & _MAGNITUDE_MASK, wanted & _MAGNITUDE_MASK
        near: Mask = _distance(got, wanted) <= self.rule.tolerance
        near &= (size_got < _INFINITY) & (size_wanted < _INFINITY)
        near |= (got == wanted) | ((size_got | size_wanted) == 0)
        return near


class _ByFunction:
    """The function itself: enclosed in float64 with a bound, rounded by mpmath."""

    def __init__(self, rule: Rule, mp: Any) -> None:
        self.name, self.mp = rule.function, mp

    def function(self, x: Any) -> Any:
        return TRUTH[self.name](self.mp, x)

    def enclose(self, values: Floats) -> tuple[Floats, Floats]:
        return exact.enclose(self.name, values)

    def nearest(self, values: Floats) -> Floats | None:
        """Return the reference to within one step, None where float64 does not settle that."""
        return exact.nearest(self.name, values)

    def rounded(self, bits: int) -> int:
        with self.mp.workprec(_PRECISION):
            return round_to_float32(self.function(self.mp.mpf(float_value(bits))))


class _ByDouble(_ByFunction):
    """gelu_apprx_tanh as the double-precision closed form of pwp-model.md 5.4 computes it.

    tanh is taken as correctly rounded, so that the result is the same on every host.
    """

    def enclose(self, values: Floats) -> tuple[Floats, Floats]:
        x = values.astype(np.float64)
        with np.errstate(all="ignore"):
            inner = self._inner(x)
            # Near -1 tanh is a multiple of 2^-53: of which one, exp tells.
            power = np.exp(2.0 * inner)
            multiple = power / (1.0 + power) * 2.0**54
            near_one = [np.rint(multiple * (1.0 + slack)) * 2.0**-53 for slack in (-_SLACK, _SLACK)]
            elsewhere = [np.tanh(inner) + 1.0 + slack for slack in (-_SLACK, _SLACK)]
            ends = (
                0.5 * x * np.where(inner < -1.0, *pair)
                for pair in zip(near_one, elsewhere, strict=True)
            )
            lower, upper = (end.astype(np.float32) for end in ends)
        return lower, upper

    def nearest(self, values: Floats) -> Floats | None:
        lower, upper = self.enclose(values)
        apart = _distance(lower.view(np.uint32), upper.view(np.uint32))
        return lower if int(apart.max()) <= 1 else None

    def rounded(self, bits: int) -> int:
        x = float_value(bits)
        with self.mp.workprec(_PRECISION):
            tanh = float(self.mp.tanh(self.mp.mpf(self._inner(x))))
        return int(np.array([0.5 * x * (tanh + 1.0)]).astype(np.float32).view(np.uint32)[0])

    @staticmethod
    def _inner(x: Any) -> Any:
        return (0.044715 * (x * x * x) + x) * 0.7978845608028654


@frozen
class _Side:
    octaves: tuple[Octave, ...]
    low: Clamp
    high: Clamp


def _rows(sections: list[Section]) -> Words:
    return np.array([(s.x, s.d0, s.d1, s.d2, s.d3) for s in sections], np.uint32)


def _distance(first: Words, second: Words) -> npt.NDArray[np.int64]:
    difference = first.view(np.int32).astype(np.int64) - second.view(np.int32)
    size: npt.NDArray[np.int64] = np.abs(difference)
    return size


def main(names: list[str]) -> None:
    """Write the data files of the named profiles, or of every profile that has a rule."""
    from neuron_emu.pwp.store import write_data_file

    for name in names or [r.name for r in RULES] + list(HARDWIRED):
        path = write_data_file(name, generate(name))
        print(path.name)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(str(error))
