"""From the bits of an input to the row of coefficients: one structure for every table.

A `SectionTable` is what both sources of a table come down to: a profile, and a function's slot in
the packed hardware tables. The evaluators know nothing else, so the two routes share their
arithmetic and differ only in how the rows are found.

The outer index is the biased exponent of the folded input, the inner one its top mantissa bits; a
clamp goes before both (pwp-model.md 4.3, 4.4).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.profile import EXPONENT_BIAS, MANTISSA_BITS, Octave, Profile

__all__ = ["OctaveRows", "SectionTable", "Side", "from_profile", "unhandled_section"]

Words = npt.NDArray[np.uint32]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SIGN_BIT = 0x80000000
MAGNITUDE_MASK = 0x7FFFFFFF
MANTISSA_MASK = (1 << MANTISSA_BITS) - 1
_KEYS = 512


@frozen
class OctaveRows:
    """Where the sections of one octave are.

    Attributes
    ----------
    exponent: biased exponent.
    first_row, stored: its rows.
    shift: right shift of the mantissa that gives the section's index.
    control_index, control_word: its entry in CONTROL, for a table that was read from there.
    """

    exponent: int
    first_row: int
    shift: int
    stored: int
    control_index: int | None = None
    control_word: int | None = None


@frozen
class Side:
    """The half of a table for one sign.

    Attributes
    ----------
    octaves: where the sections of each exponent are.
    high, low: thresholds of the clamps, as magnitudes (bits of a positive float).
    high_row, low_row: rows of the clamps.
    """

    octaves: tuple[OctaveRows, ...]
    high: int
    low: int
    high_row: int
    low_row: int


@frozen(kw_only=True, eq=False)
class SectionTable:
    """Rows of cubics and the index that leads to them.

    Attributes
    ----------
    name: name of the function, for messages and for the closed form.
    rows: uint32 [rows, 5], the bits of x, d0, d1, d2, d3.
    sides: positive, negative.
    The other members are the profile's keys of the same meaning; floats are bits.
    """

    name: str
    rows: Words
    sides: tuple[Side, Side]
    symmetry_en: bool
    invert: bool
    use_neg_region: bool
    symmetry_point: int
    zero_result: int
    nan_result: int
    pinf_result: int
    ninf_result: int
    takes_slope: bool = False
    _base: Indices = field(init=False, repr=False)
    _shift: npt.NDArray[np.uint32] = field(init=False, repr=False)
    _stored: Indices = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        base = np.zeros(_KEYS, np.int64)
        shift = np.zeros(_KEYS, np.uint32)
        stored = np.zeros(_KEYS, np.int64)
        for sign, side in enumerate(self.sides):
            for octave in side.octaves:
                key = sign << 8 | octave.exponent
                base[key], shift[key] = octave.first_row, octave.shift
                stored[key] = octave.stored
        object.__setattr__(self, "_base", base)
        object.__setattr__(self, "_shift", shift)
        object.__setattr__(self, "_stored", stored)

    @property
    def extract_size(self) -> int:
        """Largest number of mantissa bits that select a section anywhere in the table."""
        shifts = [o.shift for side in self.sides for o in side.octaves if o.stored]
        return MANTISSA_BITS - min(shifts, default=MANTISSA_BITS)

    def fold(self, bits: Words) -> Words:
        """Return the bits of the evaluated points: `v`, `abs(v)` or `-abs(v)`."""
        if not self.symmetry_en:
            return bits
        magnitude = bits & np.uint32(MAGNITUDE_MASK)
        return magnitude | np.uint32(SIGN_BIT) if self.use_neg_region else magnitude

    def select(self, folded: Words) -> tuple[Indices, Mask]:
        """Return the row of each evaluated point, and where there is none (its row is then 0)."""
        key = folded >> np.uint32(MANTISSA_BITS)
        index = ((folded & np.uint32(MANTISSA_MASK)) >> self._shift[key]).astype(np.int64)
        row = self._base[key] + index
        missing = index >= self._stored[key]
        magnitude = folded & np.uint32(MAGNITUDE_MASK)
        for sign, side in enumerate(self.sides):
            of_side = (folded >= np.uint32(SIGN_BIT)) == bool(sign)
            low = of_side & (magnitude <= np.uint32(side.low))
            high = of_side & (magnitude >= np.uint32(side.high))
            row[low] = side.low_row
            row[high] = side.high_row
            missing &= ~(low | high)
        row[missing] = 0
        return row, missing


def unhandled_section(name: str, bits: int) -> InputError:
    """Return the error for an input that no section covers, with the simulator's own text."""
    return InputError(f"Unhandled section in simulation: {name} has no section for 0x{bits:08x}")


def from_profile(profile: Profile) -> SectionTable:
    """Return the table of a profile; rows are numbered as in its block of buckets."""
    sections = [(s.x, s.d0, s.d1, s.d2, s.d3) for s in profile.stored_sections]
    negative, row = _octave_rows(profile.neg_exponents, 0)
    positive, row = _octave_rows(profile.pos_exponents, row)
    # The clamps follow as pos_low, neg_low, pos_high, neg_high.
    sides = (
        Side(positive, profile.pos_high.magnitude, profile.pos_low.magnitude, row + 2, row),
        Side(negative, profile.neg_high.magnitude, profile.neg_low.magnitude, row + 3, row + 1),
    )
    return SectionTable(
        name=profile.name,
        rows=np.array(sections, np.uint32).reshape(-1, 5),
        sides=sides,
        symmetry_en=profile.symmetry_en,
        invert=profile.symmetry_invert_sign_opt,
        use_neg_region=profile.symmetry_opt_use_neg_region,
        symmetry_point=profile.symmetry_point,
        zero_result=profile.zero_result,
        nan_result=profile.nan_result,
        pinf_result=profile.pinf_result,
        ninf_result=profile.ninf_result,
        takes_slope=profile.takes_slope,
    )


def _octave_rows(octaves: tuple[Octave, ...], row: int) -> tuple[tuple[OctaveRows, ...], int]:
    entries = []
    for octave in octaves:
        biased = octave.exponent + EXPONENT_BIAS
        stored = len(octave.sections)
        entries.append(OctaveRows(biased, row, MANTISSA_BITS - octave.extract_size, stored))
        row += stored
    return tuple(entries), row
