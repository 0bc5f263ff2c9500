"""Pages of text about tables: the lists, one profile, one input on its way through it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from neuron_emu.numerics import ulp_distance
from neuron_emu.pwp import exact
from neuron_emu.pwp.certificate import Certificate, shipped_certificate
from neuron_emu.pwp.certificate import Octave as MeasuredOctave
from neuron_emu.pwp.evaluate import CompiledProfile
from neuron_emu.pwp.functions import FUNCTIONS, FunctionSet, function_of_profile
from neuron_emu.pwp.library import TableLibrary
from neuron_emu.pwp.profile import CLAMP_NAMES, Octave, Profile, float_value

__all__ = ["certificate_page", "function_table", "profile_page", "set_table", "walk_page"]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return aligned columns, two blanks apart."""
    lines = [tuple(header), *map(tuple, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def function_table(library: TableLibrary) -> str:
    """Return one line a profile: code, function, profile, published sections and the library's."""
    held = library.profile_names

    def row(name: str, published: str) -> tuple[str, ...]:
        function = function_of_profile(name)
        code = library.code_of(function)
        ours = str(sum(library.profile(name).num_stored)) if name in held else "none"
        return "?" if code is None else str(code), function, name, published, ours

    known = {
        name: str(variant.lut_size)
        for function in FUNCTIONS
        for name, variant in zip(function.profiles, function.variants, strict=True)
    }
    # A compiler's directory may hold more.
    known |= {name: "?" for name in held if name not in known}

    header = ("code", "function", "profile", "published sections", "sections here")
    return _table(header, (row(*item) for item in known.items())) + "\n"


def set_table(sets: Iterable[FunctionSet], held: Sequence[str]) -> str:
    """Return one line a set: index, name, what is known of it, and what has no table."""

    def row(item: FunctionSet) -> tuple[str, ...]:
        missing = [name for name in item.tables if name not in held]
        order = "published" if item.is_order_published else "as in set 0"
        lists = (" ".join(names) or "-" for names in (item.tables, missing))
        return str(item.index), item.name, order, *lists

    header = ("index", "set", "member order", "table functions", "without a table")
    return _table(header, map(row, sets))


def profile_page(name: str, profile: Profile) -> str:
    """Return the octaves, clamps, special results and symmetry of a profile."""
    negative, positive = profile.num_stored
    symmetry = (
        f"fold {_yes(profile.symmetry_en)}, invert {_yes(profile.symmetry_invert_sign_opt)},"
        f" negative half stored {_yes(profile.symmetry_opt_use_neg_region)},"
        f" point {float_value(profile.symmetry_point):g}"
    )
    specials = " ".join(
        f"{key}={_value(getattr(profile, f'{key}_result'))}"
        for key in ("zero", "pinf", "ninf", "nan")
    )
    parts = [
        f"{name}: {positive + negative} sections ({negative} negative, {positive} positive)",
        f"symmetry: {symmetry}",
        f"results: {specials}",
        *_certified(name, profile),
        "",
        _clamps(profile),
    ]
    for title, side in (("negative", profile.neg_exponents), ("positive", profile.pos_exponents)):
        if any(octave.sections for octave in side):
            parts += ["", f"{title} octaves", _octaves(side)]
    return "\n".join(parts)


def _certified(name: str, profile: Profile) -> list[str]:
    certificate = shipped_certificate(name, profile)
    if certificate is None:
        return []
    where = " where a section evaluates it" if any(profile.num_stored) else ""
    return [
        f"certificate of {certificate.date}: at most {certificate.max_ulp} ULP from the exact"
        f" function{where}, {certificate.mean_ulp:g} on average"
    ]


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _value(bits: int) -> str:
    return f"{np.float32(float_value(bits))} (0x{bits:08x})"


def _clamps(profile: Profile) -> str:
    def row(name: str) -> tuple[str, ...]:
        clamp = profile.clamp(name)
        section = clamp.section
        words = (section.x, section.d0, section.d1, section.d2, section.d3)
        place = f"{clamp.sat_point}/{clamp.mantissa_point}"
        return name, place, *(f"{word:08x}" for word in words)

    return _table(
        ("clamp", "exponent/mantissa", *("x", "d0", "d1", "d2", "d3")), map(row, CLAMP_NAMES)
    )


def _octaves(side: Iterable[Octave]) -> str:
    def row(octave: Octave) -> tuple[str, ...]:
        stored = len(octave.sections)
        size = str(octave.extract_size)
        low, high = 2.0**octave.exponent, 2.0 ** (octave.exponent + 1)
        return str(octave.exponent), f"{low:g}..{high:g}", size, str(stored)

    return _table(("exponent", "magnitude", "extract_size", "sections"), map(row, side))


def certificate_page(certificate: Certificate) -> str:
    """Return the measured error of a table: the summary, then one line an octave with an error."""

    def row(octave: MeasuredOctave) -> tuple[str, ...]:
        mean = octave.sum_ulp / max(octave.inputs, 1)
        name = f"{'-' if octave.negative else '+'}2^{octave.exponent}"
        name = f"{name} clamp" if octave.clamped else name
        numbers = (octave.max_ulp, octave.breaks, octave.max_jump, octave.unbounded)
        return name, f"{mean:.3f}", *map(str, numbers)

    header = ("octave", "mean ULP", "max ULP", "breaks", "max jump", "not finite")
    rows = (row(o) for o in certificate.octaves if o.max_ulp or o.unbounded)
    return "\n".join(
        (
            f"{certificate.profile}: {certificate.inputs} inputs,"
            f" {certificate.twin_differences} differ from the plain twin",
            f"error where sections evaluate: {certificate.max_ulp} ULP at {certificate.at},"
            f" mean {certificate.mean_ulp:g}; {certificate.breaks} steps against the function,"
            f" {certificate.max_jump} ULP at a section's edge",
            _table(header, rows),
        )
    )


def walk_page(name: str, compiled: CompiledProfile, bits: int) -> str:
    """Return one input on its way: fold, octave, section, sums, result, exact value, error.

    A function without a closed form, which a compiler's tables may hold, has no exact value.
    """
    values = np.array([bits], np.uint32).view(np.float32)
    station = compiled.station(values)
    result = np.array([station.result], np.uint32).view(np.float32)
    lines = [f"{name}({values[0]}), input bits 0x{station.input:08x}"]
    for title, detail in station.as_events():
        pairs = " ".join(f"{key}={_plain(item)}" for key, item in detail.items())
        lines.append(f"  {title:8} {pairs}")
    lines.append(f"  result   {_value(station.result)}")
    if not exact.has_closed_form(compiled.table.name):
        return "\n".join([*lines, "  exact    unknown: no closed form has this name"])
    wanted = compiled.evaluate(values, evaluator="exact")
    steps = int(ulp_distance(result, wanted)[0])
    is_one_number = bool(np.isnan(result[0]) != np.isnan(wanted[0]))
    lines.append(f"  exact    {_value(int(wanted.view(np.uint32)[0]))}")
    lines.append(f"  error    {'one of the two is no number' if is_one_number else f'{steps} ULP'}")
    return "\n".join(lines)


def _plain(item: Any) -> str:
    return f"{item:.17g}" if isinstance(item, float) else str(item)
