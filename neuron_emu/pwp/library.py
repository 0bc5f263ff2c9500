"""Where the tables of a run come from: the shipped ones, or a compiler's directory.

A directory holds profile JSON files (`exp_400p.json`), packed sets (`<set>.json` with its two
`.bin` files), or both; a packed set goes before profiles. Nothing else is mixed in: a function
that the directory lacks has no table.
"""

from __future__ import annotations

from pathlib import Path

from attrs import define, field, frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.blobs import read_packed
from neuron_emu.pwp.evaluate import CompiledProfile
from neuron_emu.pwp.functions import (
    FUNCTION_SETS,
    FUNCTIONS,
    FunctionSet,
    function_named,
    function_set,
)
from neuron_emu.pwp.profile import Profile
from neuron_emu.pwp.profile_json import read_profile
from neuron_emu.pwp.store import load_profile, shipped_profiles
from neuron_emu.pwp.tables import HardwareTables, compile_tables, unpack_tables
from neuron_emu.pwp.unpack import unpack_profiles

__all__ = ["ResidentTables", "TableLibrary"]


@define(eq=False)
class TableLibrary:
    """The tables of a run. Those of a directory are all read at once, so that damage is found
    before anything runs; shipped ones are packed when they are first needed.
    """

    directory: Path | None = None
    _packed: dict[int, HardwareTables] = field(factory=dict)
    _profiles: dict[str, Profile] = field(factory=dict)
    _functions: dict[int, str] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.directory is not None:
            self._read_directory(self.directory)
        self._functions = self._wire_codes()

    def _read_directory(self, directory: Path) -> None:
        try:
            names = {path.stem for path in directory.glob("*.json")}
        except OSError:
            names = set()
        for selected in FUNCTION_SETS:
            if selected.name in names:
                packed = read_packed(directory, selected.name)
                self._packed[selected.index] = unpack_tables(selected, packed)
                self._profiles.update(unpack_profiles(packed))
        for name in sorted(names & {name for f in FUNCTIONS for name in f.profiles}):
            self._profiles[name] = read_profile(directory / f"{name}.json")
        if not self._profiles:
            raise InputError(
                "must be a directory that holds profiles such as exp_400p.json, or packed sets"
                " such as exp_and_others.json with their .bin files",
                place=str(directory),
            )

    def _wire_codes(self) -> dict[int, str]:
        """Return the functions by their wire code; those of packed sets by the manifests' own.

        activation-tables.md 4: `func_id` is taken from the manifest. The catalog's code counts
        for a function that no manifest has; the ids of a profile file are inert.
        """
        found: dict[int, str] = {}
        for entry in (entry for tables in self._packed.values() for entry in tables.named):
            if entry.func_id is None:
                continue
            function = function_named(entry.func_name).name
            if found.setdefault(entry.func_id, function) != function:
                raise InputError(
                    f"must give each function a func_id of its own, not {entry.func_id} to both"
                    f" {found[entry.func_id]} and {function}",
                    place=str(self.directory),
                )
        named = set(found.values())
        return {
            f.code: f.name for f in FUNCTIONS if f.code is not None and f.name not in named
        } | found

    def code_of(self, function: str) -> int | None:
        """Return the wire code of a function, None where no source has one."""
        return next((code for code, name in self._functions.items() if name == function), None)

    def function_of(self, code: int) -> str | None:
        """Return the name of the function with a wire code (`func_id`), None when none has it."""
        return self._functions.get(code)

    @property
    def profile_names(self) -> tuple[str, ...]:
        """Names of the profiles that this source has a table for."""
        return shipped_profiles() if self.directory is None else tuple(self._profiles)

    def profile(self, name: str) -> Profile:
        """Return a profile by its name; InputError when this source has none."""
        if self.directory is None:
            return load_profile(name)
        if name not in self._profiles:
            raise InputError(f"holds no table for {name}", place=str(self.directory))
        return self._profiles[name]

    def holds(self, selected: FunctionSet, function: str) -> bool:
        """Tell whether a set has a function and this source a table for it."""
        return any(
            function_named(name).name == function and name in self.profile_names
            for name in selected.members
        )

    def install(self, selector: int | str) -> ResidentTables | None:
        """Return a set ready to be resident; None when no set has this index or name."""
        try:
            return ResidentTables(function_set(selector), self)
        except InputError:
            return None

    def lowest_with(self, function: str) -> ResidentTables | None:
        """Return the set of the lowest index that holds a function."""
        for candidate in FUNCTION_SETS:
            if self.holds(candidate, function):
                return ResidentTables(candidate, self)
        return None

    def packed(self, selected: FunctionSet) -> HardwareTables:
        """Return the packed tables of a set; members without a table are left out.

        Raises InputError when a file of the directory is damaged.
        """
        tables = self._packed.get(selected.index)
        if tables is None:
            tables = self._packed[selected.index] = self._make(selected)
        return tables

    def _make(self, selected: FunctionSet) -> HardwareTables:
        names = [name for name in selected.members if name in self.profile_names]
        return compile_tables(selected, {name: self.profile(name) for name in names})


@frozen
class ResidentTables:
    """The one set that an engine holds, beside the library that its packed tables come from."""

    set: FunctionSet
    library: TableLibrary

    def compiled(self, function: str) -> CompiledProfile:
        """Return the evaluator of a function through CONTROL and BUCKET.

        Raises InputError when the source of tables has none for it, or a damaged one.
        """
        tables = self.library.packed(self.set)
        return tables.compiled(tables.slot_of(function))
