"""Which function set an engine holds, and where its profiles come from."""

from __future__ import annotations

from pathlib import Path

from attrs import define, field, frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.evaluate import CompiledProfile, compile_profile
from neuron_emu.pwp.functions import FUNCTION_SETS, FunctionSet, function_named, function_set
from neuron_emu.pwp.profile import Profile
from neuron_emu.pwp.profile_json import read_profile
from neuron_emu.pwp.store import load_profile

__all__ = ["ResidentTables", "TableLibrary"]


@define(eq=False)
class TableLibrary:
    """The profiles of a run: those of a directory of profile JSON files, else the shipped ones."""

    directory: Path | None = None
    _compiled: dict[str, CompiledProfile] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.directory is not None and not any(self.directory.glob("*.json")):
            raise InputError(
                "must be a directory that holds profile JSON files such as exp_400p.json",
                place=str(self.directory),
            )

    def profile(self, name: str) -> Profile:
        """Return a profile by its name; InputError when the source of tables has none."""
        if self.directory is None:
            return load_profile(name)
        path = self.directory / f"{name}.json"
        if not path.is_file():
            raise InputError(f"holds no {path.name}", place=str(self.directory))
        return read_profile(path)

    def compiled(self, name: str) -> CompiledProfile:
        """Return a profile ready for evaluation."""
        if name not in self._compiled:
            self._compiled[name] = compile_profile(self.profile(name))
        return self._compiled[name]

    def install(self, selector: int | str) -> ResidentTables | None:
        """Return a set ready to be resident; None when no set has this index or name."""
        try:
            return ResidentTables(function_set(selector), self)
        except InputError:
            return None

    def lowest_with(self, function: str) -> ResidentTables | None:
        """Return the set of the lowest index that holds a function."""
        for candidate in FUNCTION_SETS:
            if candidate.holds(function):
                return ResidentTables(candidate, self)
        return None


@frozen(eq=False)
class ResidentTables:
    """The one set that an engine holds."""

    set: FunctionSet
    library: TableLibrary

    def compiled(self, function: str) -> CompiledProfile:
        """Return the set's profile of a function; InputError when its file cannot be had."""
        for name in self.set.members:
            if function_named(name).name == function:
                return self.library.compiled(name)
        raise InputError(f"set {self.set.name} does not hold {function}")
