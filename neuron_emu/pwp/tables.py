"""The packed hardware tables of an engine: CAM, PROFILE, CONTROL and BUCKET images.

`install(set)` compiles a function set; `HardwareTables.search` is the CAM, `.slot` reads one
PROFILE slot, `.compiled` evaluates through CONTROL and BUCKET. The images hold what a source
places (activation-tables.md 7.2 to 7.5). Fields of PROFILE whose position no source prints (the
order of the four exponent thresholds, the mantissa thresholds, the clamps' control words) are kept
beside the image as named values, never at a guessed bit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, field, frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.evaluate import CompiledProfile
from neuron_emu.pwp.functions import FunctionSet, function_of_profile, function_set
from neuron_emu.pwp.lookup import OctaveRows, SectionTable, Side
from neuron_emu.pwp.manifest import (
    BASE_BITS,
    LSB_SHIFT,
    SIZE_SHIFT,
    FunctionMetaData,
    PackedSet,
    pack_set,
)
from neuron_emu.pwp.profile import EXPONENT_BIAS, MANTISSA_BITS, Profile
from neuron_emu.pwp.store import load_profile, shipped_profiles

__all__ = [
    "BUCKET_ENTRIES",
    "CAM_ENTRIES",
    "CONTROL_ENTRIES",
    "PROFILE_ENTRIES",
    "HardwareTables",
    "compile_tables",
    "install",
    "missing_members",
    "unpack_tables",
]

# Capacities (activation-tables.md 7.1); 256 control entries by its capacity conflict.
CAM_ENTRIES, CAM_BYTES = 128, 32
PROFILE_ENTRIES, PROFILE_BYTES = 64, 128
CONTROL_ENTRIES, CONTROL_BYTES = 256, 32
BUCKET_ENTRIES, BUCKET_BYTES = 2048, 32

# PROFILE fields with a published or closed position: name -> (first bit, width), 7.3.
PROFILE_FIELDS: dict[str, tuple[int, int]] = {
    "symmetry_opt_en": (33, 2),
    "symmetry_opt_use_neg_region": (35, 2),
    "sym_invert_sign_point": (37, 2),
    "symmetry_point": (40, 32),
    "exp_offset": (72, 8),
    "pwl_control_base_pos": (112, 8),
    "pwl_control_base_neg": (120, 8),
    "fma_const_0": (496, 32),
    "fma_const_1": (528, 32),
    "fzero_result": (592, 32),
    "fnan_result": (624, 32),
    "fpinf_result": (656, 32),
    "fninf_result": (688, 32),
}
_VALID_BIT = 64


@frozen(kw_only=True, eq=False)
class HardwareTables:
    """The four images of one resident set; immutable, so a snapshot is the object itself.

    Attributes
    ----------
    set: the set that was installed.
    missing: members that have no table and are not in the images.
    cam, profile, control, bucket: the images, of full capacity.
    named: per slot, the manifest entry it was made from.
    """

    set: FunctionSet
    missing: tuple[str, ...]
    cam: bytes = field(repr=False)
    profile: bytes = field(repr=False)
    control: bytes = field(repr=False)
    bucket: bytes = field(repr=False)
    named: tuple[FunctionMetaData, ...] = field(repr=False)
    packed: PackedSet = field(repr=False)
    _compiled: dict[int, CompiledProfile] = field(factory=dict, repr=False, init=False)

    def search(self, opcode: int, func_id: int) -> int | None:
        """Return the first valid CAM slot that matches, None on a miss (7.2 [inferred])."""
        for slot in range(len(self.named)):
            entry = self.cam[slot * CAM_BYTES : (slot + 1) * CAM_BYTES]
            differs = ((opcode ^ entry[0]) & entry[4]) | ((func_id ^ entry[1]) & entry[5])
            if entry[8] & 1 and not differs:
                return slot
        return None

    def slot_of(self, function: str) -> int:
        """Return the slot of a member by function or profile name; raise InputError else."""
        for slot, entry in enumerate(self.named):
            if function in (entry.func_name, function_of_profile(entry.func_name)):
                return slot
        held = ", ".join(entry.func_name for entry in self.named)
        raise InputError(f"set {self.set.name} must hold {function!r}; it holds {held}")

    def slot(self, slot: int) -> FunctionMetaData:
        """Return the fields of a PROFILE slot: placed ones from the image, the rest as named."""
        named = self.named[slot]
        image = self.profile[slot * PROFILE_BYTES : (slot + 1) * PROFILE_BYTES]
        word = int.from_bytes(image, "little")
        placed: dict[str, Any] = {
            name: word >> first & ((1 << width) - 1)
            for name, (first, width) in PROFILE_FIELDS.items()
        }
        # Eight bits cannot tell -128 from 128; the evaluation takes the manifest's integer (7.6).
        placed["exp_offset"] = named.exp_offset
        return evolve(named, **placed)

    def control_word(self, index: int) -> int:
        """Return the CONTROL word at an index."""
        start = index * CONTROL_BYTES
        return int.from_bytes(self.control[start : start + 4], "little")

    def compiled(self, slot: int) -> CompiledProfile:
        """Return the evaluator of a slot, which reads CONTROL and BUCKET."""
        compiled = self._compiled.get(slot)
        if compiled is None:
            compiled = self._compiled[slot] = CompiledProfile(section_table(self, slot))
        return compiled


def missing_members(selected: FunctionSet) -> tuple[str, ...]:
    """Return the members of a set for which no table is shipped."""
    return tuple(name for name in selected.members if name not in shipped_profiles())


@lru_cache(maxsize=32)
def install(selector: int | str) -> HardwareTables:
    """Return the tables of a set, by index or name, made from the shipped profiles.

    Members without a table are left out and listed in `missing`; a set that lacks every table
    function of its own is refused.
    """
    selected = function_set(selector)
    missing = missing_members(selected)
    if selected.tables and set(selected.tables) <= set(missing):
        raise InputError(
            f"function set {selected.name} must have a table for {', '.join(selected.tables)};"
            " there is none yet"
        )
    profiles = {name: load_profile(name) for name in selected.members if name not in missing}
    return compile_tables(selected, profiles)


def compile_tables(selected: FunctionSet, profiles: dict[str, Profile]) -> HardwareTables:
    """Pack profiles, given by profile name, into the images of a set.

    Order and indices follow the set; a member without a profile takes no room.
    """
    present = {name: profiles[name] for name in selected.members if name in profiles}
    return unpack_tables(selected, pack_set(selected.name, present))


def unpack_tables(selected: FunctionSet, packed: PackedSet) -> HardwareTables:
    """Place a packed set into the images of its engine; InputError when it does not fit."""
    control = np.zeros((CONTROL_ENTRIES, CONTROL_BYTES // 4), "<u4")
    bucket = np.zeros((BUCKET_ENTRIES, BUCKET_BYTES // 4), "<u4")
    for name, image, entries in (
        ("CONTROL", control, len(packed.controls)),
        ("BUCKET", bucket, len(packed.buckets)),
        ("PROFILE", np.empty(PROFILE_ENTRIES), len(packed.functions)),
    ):
        if entries > len(image):
            raise InputError(
                f"set {selected.name} must need at most {len(image)} {name} entries, not {entries}"
            )
    control[: len(packed.controls), 0] = packed.controls
    bucket[: len(packed.buckets)] = packed.buckets
    cam = b"".join(map(_cam_entry, packed.functions))
    profile = b"".join(map(_profile_entry, packed.functions))
    present = {function.func_name for function in packed.functions}
    return HardwareTables(
        set=selected,
        missing=tuple(name for name in selected.members if name not in present),
        cam=cam.ljust(CAM_ENTRIES * CAM_BYTES, b"\0"),
        profile=profile.ljust(PROFILE_ENTRIES * PROFILE_BYTES, b"\0"),
        control=control.tobytes(),
        bucket=bucket.tobytes(),
        named=packed.functions,
        packed=packed,
    )


def _cam_entry(entry: FunctionMetaData) -> bytes:
    """Build one CAM entry in the CAYMAN and later order of the masks (SUNDA exchanges the two).

    Any opcode that carries the function's code is meant, so the opcode is masked out. A function
    without a published code cannot be named by an instruction: its entry is not valid.
    """
    image = bytearray(CAM_BYTES)
    if entry.func_id is not None:
        image[1] = entry.func_id & 0xFF
        image[5] = 0xFF
        image[_VALID_BIT // 8] = 1
    return bytes(image)


def _profile_entry(entry: FunctionMetaData) -> bytes:
    word = 0
    for name, (first, width) in PROFILE_FIELDS.items():
        word |= (int(getattr(entry, name)) & ((1 << width) - 1)) << first
    return word.to_bytes(PROFILE_BYTES, "little")


def section_table(tables: HardwareTables, slot: int) -> SectionTable:
    """Return the rows and index that a slot makes of the CONTROL and BUCKET images."""
    entry = tables.slot(slot)
    image = np.frombuffer(tables.bucket, "<u4").reshape(BUCKET_ENTRIES, -1)
    rows: npt.NDArray[np.uint32] = np.ascontiguousarray(image[:, [4, 0, 1, 2, 3]], np.uint32)
    positive = Side(
        _octaves(tables, entry, entry.pwl_control_base_pos, entry.large_pos_signal_exp_threshold),
        entry.large_pos_signal_exp_threshold << MANTISSA_BITS
        | entry.large_pos_signal_mantissa_threshold,
        entry.small_pos_signal_exp_threshold << MANTISSA_BITS,
        entry.pos_large_signal_pwl_control,
        entry.pos_small_signal_pwl_control,
    )
    negative = Side(
        _octaves(tables, entry, entry.pwl_control_base_neg, entry.large_neg_signal_exp_threshold),
        entry.large_neg_signal_exp_threshold << MANTISSA_BITS
        | entry.large_neg_signal_mantissa_threshold,
        entry.small_neg_signal_exp_threshold << MANTISSA_BITS,
        entry.neg_large_signal_pwl_control,
        entry.neg_small_signal_pwl_control,
    )
    return SectionTable(
        name=function_of_profile(entry.func_name),
        rows=rows,
        sides=(positive, negative),
        symmetry_en=bool(entry.symmetry_opt_en),
        invert=bool(entry.sym_invert_sign_point),
        use_neg_region=bool(entry.symmetry_opt_use_neg_region),
        symmetry_point=entry.symmetry_point,
        zero_result=entry.fzero_result,
        nan_result=entry.fnan_result,
        pinf_result=entry.fpinf_result,
        ninf_result=entry.fninf_result,
        takes_slope=entry.fma_indirection_src_sel == 2,
    )


def _octaves(
    tables: HardwareTables, entry: FunctionMetaData, base: int, last: int
) -> tuple[OctaveRows, ...]:
    """Read the control words of one half, up to the exponent at which the large clamp begins.

    The tables store no count of octaves or sections; the clamps keep inputs inside (7.6).
    """
    octaves = []
    for exponent in range(entry.exp_offset + EXPONENT_BIAS, last + 1):
        index = base + exponent - (entry.exp_offset + EXPONENT_BIAS)
        if index >= CONTROL_ENTRIES:
            break
        word = tables.control_word(index)
        lsb, size = word >> LSB_SHIFT & 0x1F, word >> SIZE_SHIFT & 0xF
        # An empty octave has both fields zero; a section of its own it has not.
        stored = 1 << size if lsb + size == MANTISSA_BITS else 0
        first_row = word & ((1 << BASE_BITS) - 1)
        octaves.append(OctaveRows(exponent, first_row, lsb, stored, index, word))
    return tuple(octaves)
