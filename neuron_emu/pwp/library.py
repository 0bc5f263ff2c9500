"""Where the tables of a run come from: the shipped ones, or a compiler's directory.

A directory holds profile JSON files (`exp_400p.json`), packed sets (`<set>.json` with its two
`.bin` files), or both; a packed set goes before profiles. Which sets there are, and their indices,
its `act_info.json` says; without one the published roster counts. Nothing else is mixed in: a
function that the directory lacks has no table.
"""

from __future__ import annotations

from pathlib import Path

from attrs import define, evolve, field, frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.act_info import ACT_INFO, ListedSet, read_act_info
from neuron_emu.pwp.blobs import read_packed
from neuron_emu.pwp.evaluate import CompiledProfile
from neuron_emu.pwp.functions import (
    FUNCTION_SETS,
    FUNCTIONS,
    FunctionSet,
    function_named,
    function_of_profile,
    function_set,
)
from neuron_emu.pwp.manifest import pack_set
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

    Attributes
    ----------
    sets: the function sets by index: those of the directory's act_info.json, else the roster.
    """

    directory: Path | None = None
    sets: tuple[FunctionSet, ...] = field(default=FUNCTION_SETS, init=False)
    _packed: dict[int, HardwareTables] = field(factory=dict, init=False)
    _profiles: dict[str, Profile] = field(factory=dict, init=False)
    _functions: dict[int, str] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        if self.directory is not None:
            self._read_directory(self.directory)
        self._functions = self._wire_codes()

    def _read_directory(self, directory: Path) -> None:
        try:
            names = {path.name for path in directory.glob("*.json") if path.is_file()}
        except OSError:
            names = set()
        if ACT_INFO in names:
            listed = read_act_info(directory)
        else:
            listed = tuple(ListedSet(one, f"{one.name}.json") for one in FUNCTION_SETS)
        self.sets = tuple(self._read_set(directory, one, names) for one in listed)
        wanted = {name for f in FUNCTIONS for name in f.profiles}
        wanted |= {name for one in self.sets for name in one.members}
        for name in sorted(wanted):
            if f"{name}.json" in names:
                self._profiles.setdefault(name, _packable(name, directory / f"{name}.json"))
        if not self._profiles:
            raise InputError(
                "must be a directory that holds profiles such as exp_400p.json, or packed sets"
                " such as exp_and_others.json with their .bin files",
                place=str(directory),
            )

    def _read_set(self, directory: Path, listed: ListedSet, names: set[str]) -> FunctionSet:
        """Read a packed set if the directory has it, and return the set with what it holds."""
        if listed.manifest not in names:
            return listed.set
        packed = read_packed(directory, listed.set.name, listed.manifest)
        held = tuple(entry.func_name for entry in packed.functions)
        if ACT_INFO in names and sorted(held) != sorted(listed.set.members):
            raise InputError(
                f"profile_meta_data must hold the functions that {ACT_INFO} lists for"
                f" {listed.set.name}: {', '.join(listed.set.members)}",
                place=str(directory / listed.manifest),
            )
        selected = evolve(listed.set, members=held, is_order_published=True)
        self._packed[selected.index] = unpack_tables(selected, packed)
        # Of a profile that differs from set to set, the lowest set's is shown.
        self._profiles = unpack_profiles(packed) | self._profiles
        return selected

    def _wire_codes(self) -> dict[int, str]:
        """Return the functions by their wire code; those of packed sets by the manifests' own.

        activation-tables.md 4: `func_id` is taken from the manifest. The catalog's code counts
        for a function that no manifest has; the ids of a profile file are inert.
        """
        found: dict[int, str] = {}
        for entry in (entry for tables in self._packed.values() for entry in tables.named):
            if entry.func_id is None:
                continue
            function = function_of_profile(entry.func_name)
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

    def profile_name(self, function: str) -> str:
        """Return the name of the profile that a function's or a profile's name stands for here.

        Of several variants the catalog's first that this source holds (bare ln is ln_40p); a
        directory may hold functions that the catalog does not know. InputError for another name.
        """
        held = self.profile_names
        if function in held:
            return function
        try:
            found = function_named(function)
        except InputError:
            unknown = [name for name in held if function_of_profile(name) == function]
            if not unknown:
                raise
            return unknown[0]
        if function in found.profiles:
            return function
        return next((name for name in found.profiles if name in held), found.profiles[0])

    def profile(self, name: str) -> Profile:
        """Return a profile by its name; InputError when this source has none."""
        if self.directory is None:
            return load_profile(name)
        if name not in self._profiles:
            raise InputError(f"holds no table for {name}", place=str(self.directory))
        return self._profiles[name]

    def holds(self, selected: FunctionSet, function: str) -> bool:
        """Tell whether a set has a function and this source a table for it."""
        names = self.profile_names
        return any(
            function_of_profile(name) == function and name in names for name in selected.members
        )

    def function_set(self, selector: int | str) -> FunctionSet:
        """Return a set of this source by index or name; InputError names what it has."""
        return function_set(selector, self.sets)

    def install(self, selector: int | str) -> ResidentTables | None:
        """Return a set ready to be resident; None when no set has this index or name."""
        try:
            return ResidentTables(self.function_set(selector), self)
        except InputError:
            return None

    def lowest_with(self, function: str) -> ResidentTables | None:
        """Return the set of the lowest index that holds a function."""
        for candidate in self.sets:
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
        names = self.profile_names
        present = [name for name in selected.members if name in names]
        return compile_tables(selected, {name: self.profile(name) for name in present})


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


def _packable(name: str, path: Path) -> Profile:
    """Read a profile as the table of `name`; refuse what the hardware tables have no room for."""
    profile = evolve(read_profile(path), name=function_of_profile(name))
    try:
        pack_set(name, {name: profile})
    except InputError as error:
        raise InputError(str(error), place=str(path)) from None
    return profile
