"""The three files of a packed set: `<set>.json`, `<set>_bkt.bin` and `<set>_ctrl.bin`.

Layouts: activation-tables.md 6.2 to 6.5 [observed]. Both `.bin` files have 32-byte records, of
which a bucket uses the first 20 bytes and a control word the first 4. `func_id` is null for the
functions whose wire code no source prints.

Reading trusts nothing: counts must agree with the sizes of the files, indices must lie within
them, unused bytes must be zero, and each control word must be one of the two forms that exist.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import fields

from neuron_emu.errors import InputError
from neuron_emu.pwp.act_info import file_name
from neuron_emu.pwp.functions import function_of_profile
from neuron_emu.pwp.json_reader import Node, load_json, read_limited
from neuron_emu.pwp.manifest import (
    BASE_BITS,
    BUCKET_WORDS,
    LSB_SHIFT,
    SIZE_SHIFT,
    FunctionMetaData,
    PackedSet,
)
from neuron_emu.pwp.profile import MANTISSA_BITS
from neuron_emu.pwp.unpack import check_packed

__all__ = ["blob_files", "read_packed"]

RECORD_BYTES = 32
_USED_BUCKET_WORDS = 5
_MAX_RECORDS = 1 << 16
_NUMBERS = {
    # key -> largest value; the others are bits of a float (activation-tables.md 6.3, 6.5).
    "symmetry_opt_en": 1,
    "sym_invert_sign_point": 1,
    "symmetry_opt_use_neg_region": 1,
    "imm_bias": 1,
    "fma_indirection_src_sel": 63,
    "pwl_control_base_pos": 255,
    "pwl_control_base_neg": 255,
    "small_pos_signal_exp_threshold": 255,
    "small_neg_signal_exp_threshold": 255,
    "large_pos_signal_exp_threshold": 255,
    "large_neg_signal_exp_threshold": 255,
    "large_pos_signal_mantissa_threshold": (1 << MANTISSA_BITS) - 1,
    "large_neg_signal_mantissa_threshold": (1 << MANTISSA_BITS) - 1,
}
_CLAMP_INDICES = (
    "pos_small_signal_pwl_control",
    "neg_small_signal_pwl_control",
    "pos_large_signal_pwl_control",
    "neg_large_signal_pwl_control",
)


def blob_files(packed: PackedSet) -> dict[str, bytes]:
    """Return the files of a set by name: manifest, buckets, control words."""
    controls = np.zeros((len(packed.controls), RECORD_BYTES // 4), "<u4")
    controls[:, 0] = packed.controls
    return {
        f"{packed.name}.json": (json.dumps(_manifest(packed), indent=1) + "\n").encode(),
        f"{packed.name}_bkt.bin": packed.buckets.astype("<u4").tobytes(),
        f"{packed.name}_ctrl.bin": controls.tobytes(),
    }


def _manifest(packed: PackedSet) -> dict[str, Any]:
    """Return the nine keys of `<set>.json`; `ctl_bin` has no r, its value has one (6.2)."""
    by_exponent = {
        key: {
            function: {str(exponent): list(indices) for exponent, indices in lists.items()}
            for function, lists in table.items()
        }
        for key, table in (
            ("func_exp_to_bkt_start_idx", packed.exponent_buckets),
            ("func_exp_to_ctl_start_idx", packed.exponent_controls),
        )
    }
    return {
        "bkt_bin": f"{packed.name}_bkt.bin",
        "bkt_entry_cnt": len(packed.buckets),
        "ctl_bin": f"{packed.name}_ctrl.bin",
        "ctl_entry_cnt": len(packed.controls),
        "func_to_bkt_start_idx": packed.bucket_starts,
        "func_to_ctl_start_idx": packed.control_starts,
        **by_exponent,
        "profile_meta_data": [_entry(function) for function in packed.functions],
    }


def _entry(function: FunctionMetaData) -> dict[str, Any]:
    return {a.name: getattr(function, a.name) for a in fields(FunctionMetaData)}


def read_packed(directory: Path, name: str, manifest: str | None = None) -> PackedSet:
    """Read a set from a directory; InputError names file, record or key and what was expected.

    `manifest` is the file to begin with, `<name>.json` if it has its usual name.
    """
    path = directory / (manifest or f"{name}.json")
    root = Node(str(path), "", load_json(read_limited(path), str(path)))
    buckets = _records(directory, root, "bkt", _USED_BUCKET_WORDS)
    controls = _records(directory, root, "ctl", 1)[:, 0]
    entries = root.key("profile_meta_data").items()
    functions = tuple(_function(node, len(buckets), len(controls)) for node in entries)
    names = [function_of_profile(f.func_name) for f in functions]
    if len(set(names)) != len(names) or not names:
        root.key("profile_meta_data").fail("one entry for each function")
    _check_controls(controls, len(buckets), str(directory / file_name(root.key("ctl_bin"))))
    packed = PackedSet(
        name=name,
        functions=functions,
        buckets=buckets,
        controls=np.ascontiguousarray(controls),
        bucket_starts=_starts(root, "func_to_bkt_start_idx", names, len(buckets)),
        control_starts=_starts(root, "func_to_ctl_start_idx", names, len(controls)),
        exponent_buckets=_by_exponent(root, "func_exp_to_bkt_start_idx", names, len(buckets)),
        exponent_controls=_by_exponent(root, "func_exp_to_ctl_start_idx", names, len(controls)),
    )
    try:
        check_packed(packed)
    except InputError as error:
        raise InputError(str(error), place=str(path)) from None
    return packed


def _records(directory: Path, root: Node, kind: str, used_words: int) -> npt.NDArray[np.uint32]:
    """Read the records of one `.bin` file as uint32 [records, 8]."""
    file = file_name(root.key(f"{kind}_bin"))
    count = root.key(f"{kind}_entry_cnt").integer(0, _MAX_RECORDS)
    path = directory / file
    if path.exists() and not path.is_file():
        raise InputError("must be a regular file", place=str(path))
    data = read_limited(path, count * RECORD_BYTES)
    if len(data) != count * RECORD_BYTES:
        raise InputError(
            f"must hold {count} records of {RECORD_BYTES} bytes, as {kind}_entry_cnt says",
            place=str(path),
        )
    words = np.frombuffer(data, "<u4").reshape(count, BUCKET_WORDS).astype(np.uint32)
    spare = words[:, used_words:].any(axis=1)
    if spare.any():
        raise InputError(
            f"record {int(spare.argmax())} must be zero past byte {4 * used_words}",
            place=str(path),
        )
    return words


def _check_controls(controls: npt.NDArray[np.uint32], buckets: int, place: str) -> None:
    """A word has no bits past 19, and its fields add up to the mantissa or are both zero."""
    for index, word in enumerate(map(int, controls)):
        size, lsb = word >> SIZE_SHIFT & 0xF, word >> LSB_SHIFT & 0x1F
        base = word & ((1 << BASE_BITS) - 1)
        if word >> 20 or size + lsb not in (0, MANTISSA_BITS) or base > buckets:
            raise InputError(
                f"record {index} must be a control word with a bucket below {buckets} and"
                f" extract_size + extract_lsb = {MANTISSA_BITS}, not {word:#010x}",
                place=place,
            )


def _function(node: Node, buckets: int, controls: int) -> FunctionMetaData:
    name = node.key("func_name").value
    try:
        function_of_profile(name if isinstance(name, str) else "")
    except InputError:
        node.key("func_name").fail("the name of a profile such as exp_400p")
    members: dict[str, Any] = {"func_name": name}
    for attribute in fields(FunctionMetaData):
        key = attribute.name
        if key == "func_name":
            continue
        member = node.key(key)
        if key == "func_id":
            members[key] = None if member.value is None else member.integer(0, 255)
        elif key == "exp_offset":
            members[key] = member.integer(-127, 128)
        elif key == "use_multipass":
            members[key] = member.flag()
        elif key in _CLAMP_INDICES:
            members[key] = member.integer(0, buckets - 1)
        elif _NUMBERS.get(key) == 1:
            members[key] = int(member.flag())
        else:
            members[key] = member.integer(0, _NUMBERS.get(key, 0xFFFFFFFF))
    return FunctionMetaData(**members)


def _starts(root: Node, key: str, names: list[str], limit: int) -> dict[str, int]:
    node = root.key(key)
    return {name: node.key(name).integer(0, limit) for name in names}


def _by_exponent(
    root: Node, key: str, names: list[str], limit: int
) -> dict[str, dict[int, tuple[int, ...]]]:
    table: dict[str, dict[int, tuple[int, ...]]] = {}
    for name in names:
        node = root.key(key).key(name)
        if not isinstance(node.value, dict):
            node.fail("an object of exponent: [indices]")
        table[name] = {
            _exponent(node, text): tuple(
                item.integer(0, limit) for item in node.key(text).items()[:2]
            )
            for text in node.value
        }
    return table


def _exponent(node: Node, text: str) -> int:
    is_number = text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 4
    if is_number and -127 <= int(text) <= 128:
        return int(text)
    return node.fail(f"keyed by exponents from -127 to 128, not by {text!r}")
