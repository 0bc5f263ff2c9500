"""A packed set back to its profiles: what its indices and control words say, and nothing else.

The sections of an octave end where the next one begins, the last ones at the clamps
(activation-tables.md 6.4, 6.5 [observed]). Packing the profiles again must give the same set: that
is how a set of files is found to contradict itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import asdict

from neuron_emu.errors import InputError
from neuron_emu.pwp.functions import function_of_profile
from neuron_emu.pwp.manifest import (
    BASE_BITS,
    LSB_SHIFT,
    SIZE_SHIFT,
    FunctionMetaData,
    PackedSet,
    pack_set,
)
from neuron_emu.pwp.profile import (
    MANTISSA_BITS,
    Clamp,
    Octave,
    Profile,
    Section,
    check_covered,
)

__all__ = ["check_packed", "unpack_profiles"]


def unpack_profiles(packed: PackedSet) -> dict[str, Profile]:
    """Return the profiles of a set by profile name; InputError where its indices make no sense."""
    return {entry.func_name: _profile(packed, entry) for entry in packed.functions}


def _profile(packed: PackedSet, entry: FunctionMetaData) -> Profile:
    function = function_of_profile(entry.func_name)
    negative, positive = _sides(packed, entry, function)
    clamp = entry.pos_small_signal_pwl_control

    def clamp_at(offset: int, exponent: int, mantissa: int) -> Clamp:
        return Clamp(exponent, mantissa, _section(packed, clamp + offset, entry.func_name))

    return Profile(
        name=function,
        neuron_id=entry.func_id,
        sunda_id=entry.func_id,
        symmetry_en=bool(entry.symmetry_opt_en),
        symmetry_invert_sign_opt=bool(entry.sym_invert_sign_point),
        symmetry_opt_use_neg_region=bool(entry.symmetry_opt_use_neg_region),
        symmetry_point=entry.symmetry_point,
        zero_result=entry.fzero_result,
        nan_result=entry.fnan_result,
        pinf_result=entry.fpinf_result,
        ninf_result=entry.fninf_result,
        lower_bound=entry.lower_bound,
        upper_bound=entry.upper_bound,
        imm_bias=bool(entry.imm_bias),
        fma_const0=entry.fma_const_0,
        fma_const1=entry.fma_const_1,
        use_multipass=entry.use_multipass,
        neg_exponents=negative,
        pos_exponents=positive,
        pos_low=clamp_at(0, entry.small_pos_signal_exp_threshold, 0),
        neg_low=clamp_at(1, entry.small_neg_signal_exp_threshold, 0),
        pos_high=clamp_at(
            2, entry.large_pos_signal_exp_threshold, entry.large_pos_signal_mantissa_threshold
        ),
        neg_high=clamp_at(
            3, entry.large_neg_signal_exp_threshold, entry.large_neg_signal_mantissa_threshold
        ),
        exponent_offset=entry.exp_offset,
    )


def _sides(
    packed: PackedSet, entry: FunctionMetaData, function: str
) -> tuple[tuple[Octave, ...], tuple[Octave, ...]]:
    """Return the negative and the positive octaves.

    The map's lists tell how many there are in all; with two halves the second one's base tells how
    many are negative, else the fold, or without one the base, tells which half is stored.
    """
    lists = packed.exponent_controls[function].values()
    total = sum(len(indices) for indices in lists)
    start = packed.control_starts[function]
    if any(len(indices) == 2 for indices in lists):
        negative = entry.pwl_control_base_pos - entry.pwl_control_base_neg
    elif entry.symmetry_opt_en:
        negative = total if entry.symmetry_opt_use_neg_region else 0
    else:
        negative = total if entry.pwl_control_base_pos == start + total else 0
    if not 0 <= negative <= total:
        raise InputError(f"{entry.func_name} must have its negative octaves before the positive")
    exponents = [entry.exp_offset + i for i in (*range(negative), *range(total - negative))]
    octaves = list(_octaves(packed, entry, function, exponents))
    return tuple(octaves[:negative]), tuple(octaves[negative:])


def _octaves(
    packed: PackedSet, entry: FunctionMetaData, function: str, exponents: list[int]
) -> Iterator[Octave]:
    first = packed.control_starts[function]
    words = [int(word) for word in packed.controls[first : first + len(exponents)]]
    if len(words) != len(exponents):
        raise InputError(f"{entry.func_name} must have {len(exponents)} control words")
    mask = (1 << BASE_BITS) - 1
    bases = [*(word & mask for word in words), entry.pos_small_signal_pwl_control]
    for exponent, word, (base, end) in zip(exponents, words, pairwise(bases), strict=True):
        size, lsb = word >> SIZE_SHIFT & 0xF, word >> LSB_SHIFT & 0x1F
        count = end - base if size + lsb == MANTISSA_BITS else 0
        if not 0 <= count <= 1 << size or base + count != end:
            raise InputError(
                f"{entry.func_name} octave {exponent} must hold up to {1 << size} sections, not"
                f" {end - base}"
            )
        sections = (_section(packed, row, entry.func_name) for row in range(base, end))
        yield Octave(exponent, size, tuple(sections))


def _section(packed: PackedSet, row: int, name: str) -> Section:
    if row >= len(packed.buckets):
        raise InputError(f"{name} must keep to {len(packed.buckets)} buckets, not use {row}")
    d0, d1, d2, d3, x = (int(word) for word in packed.buckets[row, :5])
    return Section(x, d0, d1, d2, d3)


def check_packed(packed: PackedSet) -> None:
    """Refuse a set whose parts contradict each other; InputError names the first that does.

    Every function keeps its own codes, and the profiles that the set holds, packed again, give
    its entries, indices, control words and buckets.
    """
    ids = [entry.func_id for entry in packed.functions if entry.func_id is not None]
    if len(set(ids)) != len(ids):
        raise InputError("profile_meta_data must have each func_id once")
    profiles = unpack_profiles(packed)
    for name, profile in profiles.items():
        check_covered(profile, name)
    again = pack_set(packed.name, profiles)
    for ours, theirs in zip(again.functions, packed.functions, strict=True):
        unused = _unused(profiles[theirs.func_name])
        for key, value in asdict(ours).items():
            found: Any = getattr(theirs, key)
            if found != value and key not in unused:
                raise InputError(
                    f"{theirs.func_name} {key} must be {value} by the set's indices, not {found}"
                )
    for key in ("bucket_starts", "control_starts", "exponent_buckets", "exponent_controls"):
        if getattr(again, key) != getattr(packed, key):
            raise InputError(f"{key} must agree with the control words and the clamps")
    for key in ("buckets", "controls"):
        if not np.array_equal(getattr(again, key), getattr(packed, key)):
            raise InputError(f"{key} must hold each function's records once, in order")


def _unused(profile: Profile) -> tuple[str, ...]:
    """Return the keys that nothing reads: the control base of a half that is not stored."""
    halves = {
        "pwl_control_base_neg": profile.neg_exponents,
        "pwl_control_base_pos": profile.pos_exponents,
    }
    return tuple(key for key, octaves in halves.items() if not octaves)
