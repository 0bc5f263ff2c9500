"""The records of one activation table: sections, octaves, clamps and the profile they make up.

Every float is held as its 32-bit pattern, so that nothing is ever rounded on the way. The members
carry the names of the profile's keys (pwp-model.md 2). A profile is a value: equal tables compare
equal, and the evaluator, the hardware tables and the files are all built from it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from attrs import Attribute, evolve, field, frozen

from neuron_emu.errors import InputError

__all__ = [
    "CLAMP_NAMES",
    "EXPONENT_BIAS",
    "LIVE_FIELDS",
    "MANTISSA_BITS",
    "QUIET_NAN",
    "Clamp",
    "Octave",
    "Profile",
    "Section",
    "differences",
    "float_bits",
    "float_value",
    "uncovered_input",
]

EXPONENT_BIAS = 127
MANTISSA_BITS = 23
QUIET_NAN = 0x7FC00000
FLT_MAX = 0x7F7FFFFF
_MANTISSA_MASK = (1 << MANTISSA_BITS) - 1
_FIRST_INFINITE = 0x7F800000

# Order of the four clamps in a function's block of buckets (activation-tables.md 6.4).
CLAMP_NAMES = ("pos_low", "neg_low", "pos_high", "neg_high")


def float_bits(value: float) -> int:
    """Return the bits of a float32 value; the value must be one exactly, or NaN."""
    word: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return word


def float_value(bits: int) -> float:
    """Return the float32 that has these bits, as a Python float."""
    value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return value


def _in_range(low: int, high: int) -> Any:
    def check(instance: object, attribute: Attribute[int], value: object) -> None:
        if type(value) is not int or not low <= value <= high:
            raise InputError(
                f"{attribute.name} must be an integer from {low} to {high}, not {value!r}"
            )

    return check


def _word(default: int | None = None) -> Any:
    validator = _in_range(0, 0xFFFFFFFF)
    return (
        field(validator=validator)
        if default is None
        else field(default=default, validator=validator)
    )


@frozen
class Section:
    """One cubic `d0 + d1*t + d2*t^2 + d3*t^3`, `t = input - x`; all members are fp32 bits."""

    x: int = _word(0)
    d0: int = _word(0)
    d1: int = _word(0)
    d2: int = _word(0)
    d3: int = _word(0)


@frozen
class Octave:
    """The sections for one exponent of one side.

    Attributes
    ----------
    exponent: unbiased exponent.
    extract_size: number of top mantissa bits that select the section.
    sections: the stored sections, which may be fewer than `2**extract_size` in the last octave.
    num_sections, extract_lsb: as declared in a file; no result depends on them.
    """

    exponent: int = field(validator=_in_range(-EXPONENT_BIAS, EXPONENT_BIAS + 1))
    extract_size: int = field(default=0, validator=_in_range(0, MANTISSA_BITS))
    sections: tuple[Section, ...] = ()
    num_sections: int = field()
    extract_lsb: int = field()

    @num_sections.default
    def _span(self) -> int:
        return 1 << self.extract_size if self.sections else 0

    @extract_lsb.default
    def _shift(self) -> int:
        return MANTISSA_BITS - self.extract_size if self.sections else 0

    def __attrs_post_init__(self) -> None:
        if len(self.sections) > 1 << self.extract_size:
            raise InputError(
                f"exponent_sections must hold at most {1 << self.extract_size} sections for"
                f" extract_size {self.extract_size}, not {len(self.sections)}"
            )


@frozen
class Clamp:
    """What is evaluated past a threshold: a high clamp at or above it, a low one at or below it.

    The threshold is the magnitude with biased exponent `sat_point` and mantissa `mantissa_point`.
    """

    sat_point: int = field(default=0, validator=_in_range(0, 255))
    mantissa_point: int = field(default=0, validator=_in_range(0, _MANTISSA_MASK))
    section: Section = Section()

    @property
    def magnitude(self) -> int:
        """The threshold as the bits of a positive float."""
        return self.sat_point << MANTISSA_BITS | self.mantissa_point


@frozen(kw_only=True, cache_hash=True)
class Profile:
    """One activation table with the information of all 24 keys (pwp-model.md 2.1).

    The names are the keys'; `pos_high` and its three siblings are `saturation_points`. Members
    that hold a float hold its bits. An id is None where it is not known.
    """

    name: str
    neuron_id: int | None = None
    sunda_id: int | None = None
    tonga_id: int | None = None
    max_diff: int | float | None = None
    symmetry_en: bool = False
    symmetry_invert_sign_opt: bool = False
    symmetry_opt_use_neg_region: bool = False
    symmetry_point: int = _word(0)
    zero_result: int = _word()
    nan_result: int = _word(QUIET_NAN)
    pinf_result: int = _word()
    ninf_result: int = _word()
    lower_bound: int = _word(FLT_MAX | 0x80000000)
    upper_bound: int = _word(FLT_MAX)
    imm_bias: bool = False
    fma_const0: int = _word(0)
    fma_const1: int = _word(0)
    use_multipass: bool = False
    pos_exponents: tuple[Octave, ...] = ()
    neg_exponents: tuple[Octave, ...] = ()
    pos_high: Clamp = Clamp()
    pos_low: Clamp = Clamp()
    neg_high: Clamp = Clamp()
    neg_low: Clamp = Clamp()
    lut_size: int = field()
    exponent_offset: int = field()

    @lut_size.default
    def _stored(self) -> int:
        return sum(self.num_stored)

    @exponent_offset.default
    def _lowest(self) -> int:
        octaves = (*self.pos_exponents, *self.neg_exponents)
        return min((octave.exponent for octave in octaves), default=-EXPONENT_BIAS)

    def __attrs_post_init__(self) -> None:
        for side in ("pos_exponents", "neg_exponents"):
            exponents = [octave.exponent for octave in getattr(self, side)]
            if exponents != sorted(set(exponents)):
                raise InputError(f"{side} must have ascending exponents, each once")

    @property
    def takes_slope(self) -> bool:
        """True for parametric ReLU, whose slope comes with the instruction.

        It alone has `fma_const0` = 1.0 (activation-tables.md 4.2 [observed]).
        """
        return self.fma_const0 == 0x3F800000

    @property
    def stored_sections(self) -> Iterator[Section]:
        """The sections in the order of a bucket block: negative, positive, then the clamps."""
        for octave in (*self.neg_exponents, *self.pos_exponents):
            yield from octave.sections
        for name in CLAMP_NAMES:
            yield self.clamp(name).section

    @property
    def num_stored(self) -> tuple[int, int]:
        """The number of sections that the octaves store, negative and positive side."""
        negative, positive = (
            sum(len(octave.sections) for octave in side)
            for side in (self.neg_exponents, self.pos_exponents)
        )
        return negative, positive

    def clamp(self, name: str) -> Clamp:
        """Return a clamp by its name in CLAMP_NAMES."""
        clamp: Clamp = getattr(self, name)
        return clamp


# The keys that the loader or the evaluator of the compiler's simulator reads (pwp-model.md 2.1).
LIVE_FIELDS = (
    "name",
    "symmetry_en",
    "symmetry_invert_sign_opt",
    "symmetry_opt_use_neg_region",
    "symmetry_point",
    "zero_result",
    "nan_result",
    "pinf_result",
    "ninf_result",
    "pos_exponents",
    "neg_exponents",
    "pos_high",
    "pos_low",
    "neg_high",
    "neg_low",
)


def differences(first: Profile, second: Profile) -> tuple[str, ...]:
    """Name the live fields in which two profiles differ; empty when every result is the same."""

    def live(profile: Profile) -> dict[str, Any]:
        def octaves(side: tuple[Octave, ...]) -> tuple[Octave, ...]:
            return tuple(Octave(o.exponent, o.extract_size, o.sections) for o in side if o.sections)

        plain = evolve(
            profile,
            pos_exponents=octaves(profile.pos_exponents),
            neg_exponents=octaves(profile.neg_exponents),
        )
        return {name: getattr(plain, name) for name in LIVE_FIELDS}

    left, right = live(first), live(second)
    return tuple(name for name in LIVE_FIELDS if left[name] != right[name])


def check_covered(profile: Profile, subject: str = "") -> None:
    """Refuse a profile that leaves an input without a clamp or a section; `subject` is its name."""
    gap = uncovered_input(profile)
    if gap is not None:
        side = "neg_exponents" if gap >> 31 else "pos_exponents"
        raise InputError(
            f"{f'{subject} ' if subject else ''}{side} must have a stored section for every input"
            f" between the clamps, but 0x{gap:08x} has none (Unhandled section in simulation)"
        )


def uncovered_input(profile: Profile) -> int | None:
    """Return the bits of a finite input that no clamp and no stored section covers, or None.

    The fold is taken into account: a side that no input is folded to may be empty.
    """
    if profile.takes_slope:
        return None
    for negative in (False, True):
        if profile.symmetry_en and negative != profile.symmetry_opt_use_neg_region:
            continue
        gap = _gap_of_side(profile, negative)
        if gap is not None:
            return gap | (0x80000000 if negative else 0)
    return None


def _gap_of_side(profile: Profile, negative: bool) -> int | None:
    octaves = profile.neg_exponents if negative else profile.pos_exponents
    low, high = (
        (profile.neg_low, profile.neg_high) if negative else (profile.pos_low, profile.pos_high)
    )
    stored = {octave.exponent + EXPONENT_BIAS: octave for octave in octaves}
    first = max(low.magnitude + 1, 1)
    end = min(high.magnitude, _FIRST_INFINITE)
    while first < end:
        exponent = first >> MANTISSA_BITS
        octave = stored.get(exponent)
        shift = MANTISSA_BITS - (octave.extract_size if octave else 0)
        covered = len(octave.sections) << shift if octave else 0
        if first & _MANTISSA_MASK >= covered:
            return first
        first = (exponent << MANTISSA_BITS) + covered
    return None
