"""Read and write the compiler's profile JSON, the 24-key schema of pwp-model.md 2.

Reading trusts nothing: a float comes from the `int` member of its box and from nowhere else, the
other members only serve to notice damage, and what is wrong is answered with file, key and
expectation. The `float` string is decoration and is never looked at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from neuron_emu.errors import InputError
from neuron_emu.pwp.json_reader import Node, load_json, read_limited
from neuron_emu.pwp.profile import (
    EXPONENT_BIAS,
    MANTISSA_BITS,
    Clamp,
    Octave,
    Profile,
    Section,
    check_covered,
    float_value,
)

__all__ = ["dump_profile", "parse_profile", "read_profile"]

_MANTISSA_MASK = (1 << MANTISSA_BITS) - 1
_SECTION_FIELDS = ("x", "d0", "d1", "d2", "d3")
_CLAMP_ENTRIES = ("pos_high", "pos_low", "neg_high", "neg_low")


def read_profile(path: str | Path) -> Profile:
    """Read a profile JSON file.

    Raises InputError for a file that cannot be read, is no JSON or is no profile.
    """
    return parse_profile(read_limited(path), str(path))


def parse_profile(data: bytes | str, place: str = "profile") -> Profile:
    """Return the profile that a JSON text describes; `place` names it in messages."""
    root = Node(place, "", load_json(data, place))
    if not isinstance(root.value, dict):
        raise InputError("must hold one JSON object, the profile", place=place)
    try:
        profile = _profile(root)
        check_covered(profile)
    except InputError as error:
        if error.place is None:
            raise InputError(error.message, place=place) from None
        raise
    return profile


def _profile(root: Node) -> Profile:
    clamps = root.key("saturation_points")
    live: dict[str, Any] = {
        "name": _text(root.key("name")),
        # 1.0 in parametric ReLU, whose slope comes with the instruction.
        "fma_const0": root.optional("fma_const0", Node.word, 0),
        **{f: root.key(f).flag() for f in _FLAGS},
        **{f: root.key(f).word() for f in _LIVE_WORDS},
        "pos_exponents": _octaves(root.key("pos_exponents")),
        "neg_exponents": _octaves(root.key("neg_exponents")),
        **{entry: _clamp(clamps.key(f"sat_point_{entry}")) for entry in _CLAMP_ENTRIES},
    }
    # What nobody reads is kept where it has the known form, and does no harm where it has not.
    inert: dict[str, Any] = {}
    for name, read in _INERT.items():
        if root.has(name):
            with suppress(InputError):
                inert[name] = read(root.key(name))
    return Profile(**live, **inert)


def _text(node: Node) -> str:
    if not isinstance(node.value, str) or not node.value or len(node.value) > 200:
        node.fail("a name")
    return str(node.value)


def _identifier(node: Node) -> int | None:
    return None if node.value is None else node.integer(-(1 << 31), (1 << 32) - 1)


def _number(node: Node) -> int | float | None:
    value = node.value
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value):
        node.fail("a number")
    return value  # type: ignore[no-any-return]


_FLAGS = ("symmetry_en", "symmetry_invert_sign_opt", "symmetry_opt_use_neg_region")
_LIVE_WORDS = ("symmetry_point", "zero_result", "nan_result", "pinf_result", "ninf_result")
_INERT: dict[str, Callable[[Node], Any]] = {
    "neuron_id": _identifier,
    "sunda_id": _identifier,
    "tonga_id": _identifier,
    "max_diff": _number,
    "lut_size": lambda node: node.integer(0, 1 << 31),
    "exponent_offset": lambda node: node.integer(-(1 << 31), 1 << 31),
    "lower_bound": Node.word,
    "upper_bound": Node.word,
    "imm_bias": Node.flag,
    "fma_const1": Node.word,
    "use_multipass": Node.flag,
}


def _section(node: Node) -> Section:
    return Section(*(node.key(name).word() for name in _SECTION_FIELDS))


def _octaves(node: Node) -> tuple[Octave, ...]:
    octaves = [_octave(item) for item in node.items()]
    ordered = sorted(octaves, key=lambda octave: octave.exponent)
    for first, second in pairwise(ordered):
        if first.exponent == second.exponent:
            raise InputError(
                f"{node.path} must have each exponent once, not {first.exponent} twice",
                place=node.place,
            )
    return tuple(ordered)


def _octave(node: Node) -> Octave:
    extract_size = node.key("extract_size").integer(0, MANTISSA_BITS)
    sections = node.key("exponent_sections").items()
    if len(sections) > 1 << extract_size:
        raise InputError(
            f"{node.path}.exponent_sections must hold at most {1 << extract_size} sections for"
            f" extract_size {extract_size}, not {len(sections)}",
            place=node.place,
        )
    span = node.optional("num_sections", lambda n: n.integer(0, 1 << 31), None)
    lsb = node.optional("extract_lsb", lambda n: n.integer(0, 255), None)
    octave = Octave(
        node.key("exponent").integer(-EXPONENT_BIAS, EXPONENT_BIAS + 1),
        extract_size,
        tuple(map(_section, sections)),
    )
    changes = {"num_sections": span, "extract_lsb": lsb}
    # Neither is used, so one that is off does no harm; two against one means damage.
    if sections and all(v is not None and v != getattr(octave, k) for k, v in changes.items()):
        raise InputError(
            f"{node.path}.extract_size must agree with num_sections {span} and extract_lsb {lsb},"
            f" not be {extract_size}",
            place=node.place,
        )
    given = {key: value for key, value in changes.items() if value is not None}
    return Octave(octave.exponent, extract_size, octave.sections, **given)


def _clamp(node: Node) -> Clamp:
    place = node.key("section") if node.has("section") else node
    return Clamp(
        node.key("sat_point").integer(0, 255),
        node.key("mantissa_point").integer(0, _MANTISSA_MASK),
        _section(place),
    )


def dump_profile(profile: Profile) -> str:
    """Return the JSON text of a profile: all 24 keys, always the same text for equal profiles."""
    return json.dumps(_document(profile), indent=1) + "\n"


def _document(profile: Profile) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name in _KEY_ORDER:
        value = getattr(profile, name)
        document[name] = _box(value) if name in _WORDS else value
    document["pos_exponents"] = [_octave_object(o, True) for o in profile.pos_exponents]
    document["neg_exponents"] = [_octave_object(o, False) for o in profile.neg_exponents]
    document["saturation_points"] = {
        f"sat_point_{entry}": _clamp_object(profile.clamp(entry)) for entry in _CLAMP_ENTRIES
    }
    return document


_KEY_ORDER = (
    "name",
    "neuron_id",
    "sunda_id",
    "tonga_id",
    "max_diff",
    "lut_size",
    *_FLAGS,
    *_LIVE_WORDS,
    "exponent_offset",
    "lower_bound",
    "upper_bound",
    "imm_bias",
    "fma_const0",
    "fma_const1",
    "use_multipass",
)
_WORDS = {*_LIVE_WORDS, "lower_bound", "upper_bound", "fma_const0", "fma_const1"}


def _box(bits: int) -> dict[str, Any]:
    return {
        "float": f"{float_value(bits):g}",
        "int": bits,
        "hexstring": f"{bits:08x}",
        "sign": bits >> 31,
        "exponent": bits >> MANTISSA_BITS & 0xFF,
        "mantissa": bits & _MANTISSA_MASK,
    }


def _section_object(section: Section) -> dict[str, Any]:
    return {name: _box(getattr(section, name)) for name in _SECTION_FIELDS}


def _octave_object(octave: Octave, positive: bool) -> dict[str, Any]:
    return {
        "exponent": octave.exponent,
        "num_sections": octave.num_sections,
        "extract_size": octave.extract_size,
        "extract_lsb": octave.extract_lsb,
        "exponent_sections": [_section_object(section) for section in octave.sections],
        "pos": positive,
    }


def _clamp_object(clamp: Clamp) -> dict[str, Any]:
    return {
        "sat_point": clamp.sat_point,
        "mantissa_point": clamp.mantissa_point,
        **_section_object(clamp.section),
    }
