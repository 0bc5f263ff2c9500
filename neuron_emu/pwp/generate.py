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
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.arithmetic import cubic_pwp
from neuron_emu.pwp.functions import function_named, profile_name
from neuron_emu.pwp.profile import (
    EXPONENT_BIAS,
    MANTISSA_BITS,
    Clamp,
    Octave,
    Profile,
    Section,
    float_value,
)
from neuron_emu.pwp.rules import HARDWIRED, RULES, Rule, SideRule

__all__ = ["generate", "main"]

Words = npt.NDArray[np.uint32]

_PRECISION = 200
_LARGEST_EXTRACT = 10
_MANTISSA_MASK = (1 << MANTISSA_BITS) - 1
_INFINITY = 0x7F800000
_SIGN = 0x80000000
_CHUNK = 1 << 12


def generate(name: str) -> Profile:
    """Make the profile `name` (`exp_400p`).

    Raises InputError when there is no rule for it or mpmath is not installed.
    """
    if name in HARDWIRED:
        return HARDWIRED[name]
    rule = next((r for r in RULES if profile_name(r.function, r.tolerance) == name), None)
    if rule is None:
        names = ", ".join([profile_name(r.function, r.tolerance) for r in RULES] + [*HARDWIRED])
        raise InputError(f"there is no rule to generate {name!r}; there is one for {names}")
    return _Generator(rule).profile()


def _mpmath() -> ModuleType:
    try:
        import mpmath
    except ImportError:
        raise InputError(
            "generating a table needs mpmath, which must be installed (pip install mpmath);"
            " the shipped tables do not need it"
        ) from None
    module: ModuleType = mpmath
    return module


class _Generator:
    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.mp: Any = _mpmath()
        self.function: Callable[[Any], Any] = getattr(self.mp, rule.mpmath_name)

    def profile(self) -> Profile:
        rule = self.rule
        with self.mp.workprec(_PRECISION):
            positive = self.side(rule.positive, 0)
            negative = self.side(rule.negative, _SIGN)
        code = function_named(rule.function).code
        return Profile(
            name=rule.function,
            neuron_id=code,
            sunda_id=code,
            tonga_id=rule.tonga_id,
            max_diff=rule.tolerance,
            pos_exponents=positive.octaves,
            neg_exponents=negative.octaves,
            pos_low=positive.low,
            pos_high=positive.high,
            neg_low=negative.low,
            neg_high=negative.high,
            **rule.special,
        )

    def side(self, rule: SideRule | None, sign: int) -> _Side:
        if rule is None:
            return _Side((), Clamp(), Clamp())
        threshold = self.threshold(rule, sign)
        top = (threshold >> MANTISSA_BITS) - EXPONENT_BIAS
        octaves = []
        for exponent in range(rule.lowest_exponent, top + 1):
            octaves.append(self.octave(exponent, sign, threshold))
        low = Clamp(rule.lowest_exponent + EXPONENT_BIAS, 0, self.section(0, sign))
        high = Clamp(threshold >> MANTISSA_BITS, threshold & _MANTISSA_MASK, rule.high)
        return _Side(tuple(octaves), low, high)

    def threshold(self, rule: SideRule, sign: int) -> int:
        """Return the magnitude of the first float from which the high clamp is within tolerance.

        The error decreases towards the end of the range, so that a bisection finds it.
        """
        first = (rule.lowest_exponent + EXPONENT_BIAS) << MANTISSA_BITS
        end = _INFINITY - 1
        while first < end:
            middle = (first + end) // 2
            if self.clamp_holds(rule.high, middle | sign):
                end = middle
            else:
                first = middle + 1
        return first

    def clamp_holds(self, section: Section, bits: int) -> bool:
        got = self.table_value(np.array([bits], np.uint32), [section])
        return self.within(int(got[0]), self.rounded(bits))

    def octave(self, exponent: int, sign: int, threshold: int) -> Octave:
        first = (exponent + EXPONENT_BIAS) << MANTISSA_BITS
        end = min(first + (1 << MANTISSA_BITS), threshold)
        if first >= end:
            return Octave(exponent)
        for size in range(_LARGEST_EXTRACT + 1):
            width = 1 << (MANTISSA_BITS - size)
            count = (end - first - 1) // width + 1
            sections = [
                self.section(first + i * width + (width - 1) // 2, sign) for i in range(count)
            ]
            if self.octave_holds(first, end, width, sections, sign):
                break
        return Octave(exponent, size, tuple(sections))

    def section(self, magnitude: int, sign: int) -> Section:
        """Return the Taylor coefficients at a float, each rounded once."""
        x = float_value(magnitude | (sign if magnitude else 0))
        taylor = self.mp.taylor(self.function, self.mp.mpf(x), 3)
        words = [self.coefficient(value) for value in taylor]
        return Section(magnitude | (sign if magnitude else 0), *words)

    def coefficient(self, value: Any) -> int:
        # One that no float32 can hold is 0 (pwp-model.md 8.2).
        bits = round_to_float32(value)
        return 0 if bits & 0x7FFFFFFF >= _INFINITY else bits

    def octave_holds(
        self, first: int, end: int, width: int, sections: list[Section], sign: int
    ) -> bool:
        """Tell whether every float of [first, end) is within the tolerance."""
        # A few floats of each section refuse most candidates at once.
        offsets = np.linspace(0, width - 1, 9).astype(np.int64)
        starts = np.arange(first, end, width, dtype=np.int64)
        sample = (starts[:, None] + offsets).reshape(-1)
        sample = sample[sample < end]
        if not self.all_within(sample, first, width, sections, sign):
            return False
        return all(
            self.all_within(
                np.arange(start, min(start + _CHUNK, end)), first, width, sections, sign
            )
            for start in range(first, end, _CHUNK)
        )

    def all_within(
        self,
        magnitudes: npt.NDArray[np.int64],
        first: int,
        width: int,
        sections: list[Section],
        sign: int,
    ) -> bool:
        bits = (magnitudes | sign).astype(np.uint32)
        low = int(magnitudes[0] - first) // width
        high = int(magnitudes[-1] - first) // width
        rows = _rows(sections[low : high + 1])[(magnitudes - first) // width - low]
        got = cubic_pwp(bits.view(np.float32), rows)
        with np.errstate(all="ignore"):
            near = self.rule.approximate(bits.view(np.float32).astype(np.float64))
            near_bits = near.astype(np.float32).view(np.uint32)
        distance = np.abs(got.view(np.int32).astype(np.int64) - near_bits.view(np.int32))
        # The float64 value rounds to the true float32 or to a neighbour of it.
        tolerance = self.rule.tolerance
        if (distance > tolerance + 1).any():
            return False
        return all(
            self.within(int(got[i]), self.rounded(int(bits[i])))
            for i in np.flatnonzero(distance >= tolerance).tolist()
        )

    def table_value(self, bits: Words, sections: list[Section]) -> Words:
        return cubic_pwp(bits.view(np.float32), _rows(sections))

    def rounded(self, bits: int) -> int:
        return round_to_float32(self.function(self.mp.mpf(float_value(bits))))

    def within(self, got: int, expected: int) -> bool:
        """Compare by the distance of the patterns (pwp-model.md 8.3); infinity has none."""
        if got & 0x7FFFFFFF == _INFINITY or expected & 0x7FFFFFFF == _INFINITY:
            return got == expected
        if got & 0x7FFFFFFF == 0 and expected & 0x7FFFFFFF == 0:
            return True
        return abs(_signed(got) - _signed(expected)) <= self.rule.tolerance


@frozen
class _Side:
    octaves: tuple[Octave, ...]
    low: Clamp
    high: Clamp


def _rows(sections: list[Section]) -> Words:
    return np.array([(s.x, s.d0, s.d1, s.d2, s.d3) for s in sections], np.uint32)


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits


def round_to_float32(value: Any) -> int:
    """Return the bits of an mpmath number rounded to nearest even, denormals included."""
    sign, mantissa, exponent, _ = value._mpf_
    word = _SIGN if sign else 0
    if not mantissa:
        return word
    mantissa = int(mantissa)
    # The unit of the last place, as a power of two: 24 bits, fewer below the normal range.
    highest = exponent + mantissa.bit_length()
    if highest < -149:
        return word
    if highest > 128:
        return word | _INFINITY
    unit = max(highest - 24, -149)
    if unit <= exponent:
        steps = mantissa << (exponent - unit)
    else:
        drop = unit - exponent
        steps = mantissa >> drop
        rest = mantissa & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        steps += rest > half or (rest == half and steps & 1)
    if steps.bit_length() > 24:
        steps, unit = steps >> 1, unit + 1
    if unit > 104:
        return word | _INFINITY
    # A step count below 2^23 occurs at unit -149 only: a denormal, whose exponent field is 0.
    return word | int(steps + ((unit + 149) << MANTISSA_BITS))


def main(names: list[str]) -> None:
    """Write the data files of the named profiles, or of every profile that has a rule."""
    from neuron_emu.pwp.store import write_data_file

    every = [profile_name(r.function, r.tolerance) for r in RULES] + list(HARDWIRED)
    for name in names or every:
        path = write_data_file(name, generate(name))
        print(path.name)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(str(error))
