"""A function set laid out: which bucket, which control word, which threshold belongs to whom.

`pack_set` numbers the sections of the member profiles one after the other, as the compiler's
`bkt.bin`, `ctrl.bin` and `<set>.json` do (activation-tables.md 6.2 to 6.6 [observed]). The packed
hardware tables are built from it (`tables`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.functions import function_of_profile
from neuron_emu.pwp.profile import MANTISSA_BITS, Octave, Profile

__all__ = ["FunctionMetaData", "PackedSet", "control_word", "pack_set"]

# Widths of the control word's fields (activation-tables.md 7.4).
BASE_BITS = 11
LSB_SHIFT = 11
SIZE_SHIFT = 16
BUCKET_WORDS = 8
_LARGEST_EXTRACT = 15


@frozen(kw_only=True)
class FunctionMetaData:
    """One entry of `profile_meta_data`, with its 30 keys (activation-tables.md 6.3 [observed]).

    Floats are bits, thresholds plain integers, indices absolute within the set. `func_id` is None
    for a function whose wire code is not published.
    """

    func_name: str
    func_id: int | None
    fzero_result: int
    fpinf_result: int
    fninf_result: int
    fnan_result: int
    symmetry_opt_en: int
    sym_invert_sign_point: int
    symmetry_opt_use_neg_region: int
    symmetry_point: int
    imm_bias: int
    exp_offset: int
    fma_const_0: int
    fma_const_1: int
    fma_indirection_src_sel: int
    pwl_control_base_pos: int
    pwl_control_base_neg: int
    small_pos_signal_exp_threshold: int
    small_neg_signal_exp_threshold: int
    large_pos_signal_exp_threshold: int
    large_neg_signal_exp_threshold: int
    large_pos_signal_mantissa_threshold: int
    large_neg_signal_mantissa_threshold: int
    pos_small_signal_pwl_control: int
    neg_small_signal_pwl_control: int
    pos_large_signal_pwl_control: int
    neg_large_signal_pwl_control: int
    lower_bound: int
    upper_bound: int
    use_multipass: bool


@frozen(kw_only=True, eq=False)
class PackedSet:
    """The contents of one set.

    Attributes
    ----------
    name: the set's.
    functions: one entry a member, in order.
    buckets: uint32 [entries, 8]: d0, d1, d2, d3, x and three zeros.
    controls: uint32 [entries], one word an octave.
    bucket_starts, control_starts: first index of each member, by function name.
    exponent_buckets, exponent_controls: index lists by function and unbiased exponent, negative
        half before positive (`func_exp_to_bkt_start_idx` and `..._ctl_...`).
    """

    name: str
    functions: tuple[FunctionMetaData, ...]
    buckets: npt.NDArray[np.uint32]
    controls: npt.NDArray[np.uint32]
    bucket_starts: dict[str, int]
    control_starts: dict[str, int]
    exponent_buckets: dict[str, dict[int, tuple[int, ...]]]
    exponent_controls: dict[str, dict[int, tuple[int, ...]]]


def control_word(octave: Octave, bucket_base: int) -> int:
    """Return the control word of an octave whose first section is the bucket `bucket_base`."""
    if not octave.sections:
        return bucket_base
    size = octave.extract_size
    return size << SIZE_SHIFT | (MANTISSA_BITS - size) << LSB_SHIFT | bucket_base


def pack_set(name: str, profiles: dict[str, Profile]) -> PackedSet:
    """Lay out profiles, given by profile name (`exp_400p`) in the order of the set.

    Raises InputError when an index does not fit its field.
    """
    packer = _Packer()
    for profile_name, profile in profiles.items():
        packer.add(profile_name, profile)
    return PackedSet(
        name=name,
        functions=tuple(packer.functions),
        buckets=np.array(packer.buckets, np.uint32).reshape(-1, BUCKET_WORDS),
        controls=np.array(packer.controls, np.uint32),
        bucket_starts=packer.bucket_starts,
        control_starts=packer.control_starts,
        exponent_buckets=packer.exponent_buckets,
        exponent_controls=packer.exponent_controls,
    )


@frozen
class _Packer:
    functions: list[FunctionMetaData] = field(factory=list)
    buckets: list[tuple[int, ...]] = field(factory=list)
    controls: list[int] = field(factory=list)
    bucket_starts: dict[str, int] = field(factory=dict)
    control_starts: dict[str, int] = field(factory=dict)
    exponent_buckets: dict[str, dict[int, tuple[int, ...]]] = field(factory=dict)
    exponent_controls: dict[str, dict[int, tuple[int, ...]]] = field(factory=dict)

    def add(self, profile_name: str, profile: Profile) -> None:
        function = function_of_profile(profile_name)
        offset, sides = _without_holes(profile)
        base_neg = self.control_starts[function] = len(self.controls)
        base_pos = base_neg + len(sides[0])
        running = self.bucket_starts[function] = len(self.buckets)
        end = running + sum(profile.num_stored)
        if end > 1 << BASE_BITS:
            raise InputError(
                f"{profile_name} must fit into {1 << BASE_BITS} buckets with the functions ahead"
                f" of it, not end at {end}"
            )
        bucket_of: dict[int, list[int]] = {}
        control_of: dict[int, list[int]] = {}
        for side in sides:
            for octave in side:
                if octave.extract_size > _LARGEST_EXTRACT:
                    raise InputError(
                        f"{profile_name} must have an extract_size up to {_LARGEST_EXTRACT}, not"
                        f" {octave.extract_size}: a control word has no room for more"
                    )
                bucket_of.setdefault(octave.exponent, []).append(running)
                control_of.setdefault(octave.exponent, []).append(len(self.controls))
                self.controls.append(control_word(octave, running))
                running += len(octave.sections)
        self.exponent_buckets[function] = {e: tuple(v) for e, v in bucket_of.items()}
        self.exponent_controls[function] = {e: tuple(v) for e, v in control_of.items()}
        for s in profile.stored_sections:
            self.buckets.append((s.d0, s.d1, s.d2, s.d3, s.x, 0, 0, 0))
        # A function that folds stores one half; its other base points nowhere and is not used.
        base_neg = base_neg if sides[0] else base_pos
        bases = (base_pos, base_neg)
        self.functions.append(_meta_data(profile_name, profile, offset, bases, running))


def _without_holes(profile: Profile) -> tuple[int, tuple[tuple[Octave, ...], tuple[Octave, ...]]]:
    """Return the lowest exponent, and both sides with an octave for each exponent from there on.

    The control index counts exponents from one offset on, so where a side has a hole, or begins
    later than the other, an empty octave stands. The key `exponent_offset` is inert.
    """
    stored = (profile.neg_exponents, profile.pos_exponents)
    exponents = [octave.exponent for side in stored for octave in side]
    if not exponents:
        return profile.exponent_offset, ((), ())
    lowest = min(exponents)
    negative, positive = (
        tuple(
            present.get(exponent) or Octave(exponent)
            for exponent in (range(lowest, max(present) + 1) if present else ())
        )
        for present in ({octave.exponent: octave for octave in side} for side in stored)
    )
    return lowest, (negative, positive)


def _meta_data(
    profile_name: str, profile: Profile, offset: int, bases: tuple[int, int], clamps: int
) -> FunctionMetaData:
    return FunctionMetaData(
        func_name=profile_name,
        func_id=profile.sunda_id,
        fzero_result=profile.zero_result,
        fpinf_result=profile.pinf_result,
        fninf_result=profile.ninf_result,
        fnan_result=profile.nan_result,
        symmetry_opt_en=int(profile.symmetry_en),
        sym_invert_sign_point=int(profile.symmetry_invert_sign_opt),
        symmetry_opt_use_neg_region=int(profile.symmetry_opt_use_neg_region),
        symmetry_point=profile.symmetry_point,
        imm_bias=int(profile.imm_bias),
        exp_offset=offset,
        fma_const_0=profile.fma_const0,
        fma_const_1=profile.fma_const1,
        # Unique to parametric ReLU (activation-tables.md 4.2).
        fma_indirection_src_sel=2 if profile.takes_slope else 0,
        pwl_control_base_pos=bases[0],
        pwl_control_base_neg=bases[1],
        small_pos_signal_exp_threshold=profile.pos_low.sat_point,
        small_neg_signal_exp_threshold=profile.neg_low.sat_point,
        large_pos_signal_exp_threshold=profile.pos_high.sat_point,
        large_neg_signal_exp_threshold=profile.neg_high.sat_point,
        large_pos_signal_mantissa_threshold=profile.pos_high.mantissa_point,
        large_neg_signal_mantissa_threshold=profile.neg_high.mantissa_point,
        pos_small_signal_pwl_control=clamps,
        neg_small_signal_pwl_control=clamps + 1,
        pos_large_signal_pwl_control=clamps + 2,
        neg_large_signal_pwl_control=clamps + 3,
        lower_bound=profile.lower_bound,
        upper_bound=profile.upper_bound,
        use_multipass=profile.use_multipass,
    )
