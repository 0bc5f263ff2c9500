"""One input on its way through a table, every station of it: for traces and for `explain F X`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from attrs import asdict, evolve, frozen

from neuron_emu.pwp.lookup import MAGNITUDE_MASK, SectionTable
from neuron_emu.pwp.profile import EXPONENT_BIAS, MANTISSA_BITS, Section

__all__ = ["Station", "walk"]

_INFINITY = 0x7F800000


@frozen(kw_only=True)
class Station:
    """What happens to one input of evaluator `pwp`. Floats are bits unless said otherwise.

    Attributes
    ----------
    input, folded: the input and the point that is evaluated.
    special: `zero`, `+inf`, `-inf`, or None when the cubic decides.
    where: the clamp's name (`pos_high`), or `octave`.
    exponent, section_index: unbiased exponent and index within the octave, None for a clamp.
    control_index, control_word: the octave's in the packed tables; None for a profile.
    bucket: index of the section in BUCKET; for a profile, the row within its own block.
    t, low: float32; square_term, cube_term, total: Python floats, the double part.
    reflected: the folded point is not the input, so the result was reconstructed.
    result: the bits that evaluation gives.
    """

    function: str
    input: int
    folded: int
    reflected: bool
    result: int
    special: str | None = None
    where: str | None = None
    exponent: int | None = None
    section_index: int | None = None
    control_index: int | None = None
    control_word: int | None = None
    bucket: int | None = None
    section: Section | None = None
    t: int | None = None
    low: int | None = None
    square_term: float | None = None
    cube_term: float | None = None
    total: float | None = None

    def as_events(self) -> list[tuple[str, dict[str, Any]]]:
        """Return name and fields of each station in order, bits as hexadecimal text."""
        events: list[tuple[str, dict[str, Any]]] = []
        if self.reflected:
            events.append(("fold", {"point": _word(self.folded)}))
        if self.special:
            events.append(("special", {"case": self.special}))
        if self.where == "octave":
            control: dict[str, Any] = {"exponent": self.exponent}
            if self.control_index is not None and self.control_word is not None:
                control |= {"index": self.control_index, "word": _word(self.control_word)}
            events.append(("control", control))
        elif self.where:
            events.append(("clamp", {"name": self.where}))
        if self.section is not None and self.t is not None and self.low is not None:
            words = {name: _word(bits) for name, bits in asdict(self.section).items()}
            place = {"index": self.bucket, "section": self.section_index}
            events.append(("bucket", place | words))
            sums = {
                "square_term": _number(self.square_term),
                "cube_term": _number(self.cube_term),
                "total": _number(self.total),
            }
            events.append(("cubic", {"t": _word(self.t), "low": _word(self.low), **sums}))
        return events


def _number(value: float | None) -> float | str | None:
    # JSON has no infinities and no NaN.
    return value if value is None or math.isfinite(value) else str(value)


def _word(bits: int) -> str:
    return f"{bits:#010x}"


def walk(table: SectionTable, bits: int, result: int) -> Station:
    """Find the stations of one input, given as float32 bits with the bits of its result."""
    folded = table.fold(np.array([bits], np.uint32))
    walked = Station(
        function=table.name,
        input=bits,
        folded=int(folded[0]),
        reflected=int(folded[0]) != bits,
        result=result,
        special={0: "zero", _INFINITY: "-inf" if bits >> 31 else "+inf"}.get(bits & MAGNITUDE_MASK),
    )
    if walked.special or table.takes_slope:
        return walked
    row = int(table.select(folded)[0][0])
    return _with_sums(_with_place(walked, table, row), table, row)


def _with_place(walked: Station, table: SectionTable, row: int) -> Station:
    negative = walked.folded >> 31
    side, sign = table.sides[negative], ("pos", "neg")[negative]
    for name, clamp_row in (("high", side.high_row), ("low", side.low_row)):
        if row == clamp_row:
            return evolve(walked, where=f"{sign}_{name}", bucket=row)
    exponent = walked.folded >> MANTISSA_BITS & 0xFF
    octave = next(octave for octave in side.octaves if octave.exponent == exponent)
    return evolve(
        walked,
        where="octave",
        exponent=exponent - EXPONENT_BIAS,
        section_index=row - octave.first_row,
        control_index=octave.control_index,
        control_word=octave.control_word,
        bucket=row,
    )


def _with_sums(walked: Station, table: SectionTable, row: int) -> Station:
    words = table.rows[row]
    section = Section(*(int(word) for word in words))
    x, d0, d1, d2, d3 = words.view(np.float32)
    with np.errstate(all="ignore"):
        t = np.array([walked.folded], np.uint32).view(np.float32)[0] - x
        low = t * d1 + d0
        square_term = float(t) * float(t) * float(d2)
        cube_term = math.pow(float(t), 3.0) * float(d3)
    t_bits, low_bits = int(t.view(np.uint32)), int(low.view(np.uint32))
    if walked.folded & MAGNITUDE_MASK > _INFINITY:
        # A NaN that comes in stays, which is not left to the host.
        t_bits = low_bits = walked.folded | 0x00400000
    return evolve(
        walked,
        section=section,
        t=t_bits,
        low=low_bits,
        square_term=square_term,
        cube_term=cube_term,
        total=cube_term + (float(low) + square_term),
    )
