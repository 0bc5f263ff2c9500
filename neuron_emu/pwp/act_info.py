"""`act_info.json`: which function sets a compiler's directory holds, and in which order.

A set's position in `act_func_sets` is the index that an ACTIVATION_TABLE_LOAD carries. Layout:
activation-tables.md 6.1 [observed]. Its `bkt_bin` and `ctrl_bin` are not read: the set's own
manifest names the same files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.functions import FunctionSet, function_of_profile, variant_of_profile
from neuron_emu.pwp.json_reader import Node, load_json, read_limited

__all__ = ["ACT_INFO", "ListedSet", "act_info_text", "file_name", "read_act_info"]

ACT_INFO = "act_info.json"
_MOST_SETS = 1 << 12
_LARGEST_SELECTOR = 1 << 31
# It becomes the name of files.
_SET_NAME = re.compile(r"\w[\w.-]{0,199}", re.ASCII)


@frozen
class ListedSet:
    """One set of a directory, and the file that is its manifest."""

    set: FunctionSet
    manifest: str


def read_act_info(directory: Path) -> tuple[ListedSet, ...]:
    """Return the sets in the order of a directory's act_info.json.

    Raises InputError naming the key that is wrong.
    """
    path = directory / ACT_INFO
    root = Node(str(path), "", load_json(read_limited(path), str(path)))
    entries = root.key("act_func_sets")
    items = entries.items()
    if not 0 < len(items) <= _MOST_SETS:
        entries.fail(f"an array of 1 to {_MOST_SETS} sets")
    listed = tuple(_listed(index, node) for index, node in enumerate(items))
    names = [one.set.name for one in listed]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"act_func_sets must have each name once, not {twice!r}", place=str(path))
    return listed


def _listed(index: int, node: Node) -> ListedSet:
    name = node.key("name")
    if not isinstance(name.value, str) or not _SET_NAME.fullmatch(name.value):
        name.fail("the name of a set such as exp_and_others")
    act = node.key("act")
    if not isinstance(act.value, dict):
        act.fail("an object of function: variant")
    members = tuple(_member(act, function) for function in act.value)
    return ListedSet(
        FunctionSet(index, str(name.value), members, is_order_published=True),
        file_name(node.key("profile_json")),
    )


def _member(act: Node, function: str) -> str:
    variant = act.key(function).integer(0, _LARGEST_SELECTOR)
    profile = f"{function}_{variant}p"
    try:
        function_of_profile(profile)
    except InputError:
        act.fail("keyed by functions such as exp")
    return profile


def file_name(node: Node) -> str:
    """Return a file name that leads to no other folder."""
    name = node.value
    if not isinstance(name, str) or not name or Path(name).name != name or "\0" in name:
        node.fail("a file name without a folder")
    return str(name)


def act_info_text(sets: Iterable[FunctionSet]) -> str:
    """Return the text of act_info.json for sets in the order of their indices."""
    entries: list[dict[str, Any]] = [
        {
            "name": selected.name,
            "bkt_bin": f"{selected.name}_bkt.bin",
            "ctrl_bin": f"{selected.name}_ctrl.bin",
            "profile_json": f"{selected.name}.json",
            "act": {
                function_of_profile(name): variant_of_profile(name) for name in selected.members
            },
        }
        for selected in sets
    ]
    keys = ["bkt_bin", "ctrl_bin", "profile_json"]
    return json.dumps({"pwp_file_keys": keys, "act_func_sets": entries}, indent=1) + "\n"
