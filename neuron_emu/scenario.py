"""Scenario files: a program with the memory to load, the registers, and what to expect.

generation = "mariana"
[streams]
dve = "exp.asm"                          # a file beside this one, or text of several lines
[registers.dve]
5 = 0xc000
[semaphores]
4 = 1
[policy]
tables = "strict"
[[load]]
at = "sbuf:0+0x1000:fp32[128,8]"
values = [0, -1, -2, -3, -4, -5, -6, -7] # broadcast to the shape; or file = "x.npy"
[[expect]]
at = "sbuf:0+0x2000:fp32:bits[128,1]"
values = [0x3f800000]                    # equal to the bit, or with ulp, relative or absolute
[fault]                                  # only in a program that must be refused
name = "has_valid_exponential_ops"
index = 0
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.events import Fault
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import engine_named, read_scenario
from neuron_emu.isa.text import parse_integer
from neuron_emu.machine import Machine
from neuron_emu.numerics import storage_dtype, ulp_distance
from neuron_emu.tensor_spec import TensorSpec, read_npy

__all__ = ["Expectation", "Scenario"]

_KEYS = frozenset(
    (
        *("generation", "streams", "registers", "semaphores", "events"),
        *("policy", "preload", "load", "expect", "fault"),
    )
)
_TOLERANCES = ("ulp", "relative", "absolute")
ResultT = TypeVar("ResultT")


@frozen
class Expectation:
    """Values that a region must hold after the run, within at most one kind of tolerance."""

    spec: TensorSpec
    values: npt.NDArray[Any]
    kind: str | None
    tolerance: float

    def check(self, machine: Machine) -> str | None:
        """Return None when the memory holds the values, else the first difference."""
        found = machine.read(self.spec)
        bad = ~self._agrees(found)
        if not bad.any():
            return None
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        allowed = f" ({self.kind} {self.tolerance:g} allowed)" if self.kind else ""
        return (
            f"{int(bad.sum())} of {bad.size} values differ, first at {list(place)}:"
            f" {_show(found[place])} must be {_show(self.values[place])}{allowed}"
        )

    def _agrees(self, found: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        wanted = self.values
        both_nan = (found != found) & (wanted != wanted)
        if self.kind == "ulp" and found.dtype == np.float32:
            return np.asarray(ulp_distance(found, wanted) <= self.tolerance)
        if self.kind in ("relative", "absolute"):
            with np.errstate(invalid="ignore", over="ignore"):
                limit = self.tolerance * (np.abs(wanted) if self.kind == "relative" else 1)
                near = np.abs(found.astype(np.float64) - wanted.astype(np.float64)) <= limit
            return np.asarray(near | (found == wanted) | both_nan)
        return np.asarray((found == wanted) | both_nan)


def _show(value: Any) -> str:
    if isinstance(value, np.float32):
        return f"{value} (0x{value.view(np.uint32):08x})"
    return f"{value} ({int(value):#x})"


@frozen(kw_only=True)
class Scenario:
    """What a scenario file says besides its streams."""

    path: Path
    generation: str | None
    policy: tuple[str, ...]
    preload: str | None
    registers: tuple[tuple[Engine, int, int], ...]
    semaphores: tuple[tuple[int, int], ...]
    events: tuple[tuple[int, int], ...]
    loads: tuple[tuple[TensorSpec, npt.NDArray[Any]], ...]
    expectations: tuple[Expectation, ...]
    fault: dict[str, Any] | None

    @classmethod
    def read(cls, path: Path) -> Scenario:
        """Read a scenario; InputError names the file, the key and what was expected."""
        table = read_scenario(path)
        unknown = sorted(table.keys() - _KEYS)
        if unknown:
            raise InputError(
                f"{unknown[0]!r} is no key of a scenario; the keys are {', '.join(sorted(_KEYS))}",
                place=str(path),
            )
        registers = [
            (_at(path, "registers", partial(engine_named, name)), number, value)
            for name, values in _table(table, "registers", path).items()
            for number, value in _numbers(values, f"registers.{name}", path, 63)
        ]
        return cls(
            path=path,
            generation=_text(table, "generation", path),
            policy=tuple(f"{k}={v}" for k, v in _table(table, "policy", path).items()),
            preload=_selector(table, path),
            registers=tuple(registers),
            semaphores=_numbers(table.get("semaphores", {}), "semaphores", path, 255),
            events=_numbers(table.get("events", {}), "events", path, 255, 1),
            loads=tuple(_placed(entry, "load", path) for entry in _list(table, "load", path)),
            expectations=tuple(_expectation(e, path) for e in _list(table, "expect", path)),
            fault=_table(table, "fault", path) or None,
        )

    def prepare(self, machine: Machine) -> None:
        """Set memory, registers, semaphores, events and the resident set of a machine."""
        for spec, values in self.loads:
            _at(self.path, f"load {spec}", partial(machine.write, spec, values))
        for engine, number, value in self.registers:
            machine.engine(engine).registers[number] = value
        for number, value in self.semaphores:
            machine.sync.semaphores[number] = value
        for number, value in self.events:
            machine.sync.events[number] = value
        if self.preload is not None:
            machine.preload(self.preload)

    def check(self, machine: Machine, fault: Fault | None) -> list[tuple[str, str | None]]:
        """Return each expectation with None when it holds, else what differs."""
        results: list[tuple[str, str | None]] = [
            (str(expectation.spec), expectation.check(machine)) for expectation in self.expectations
        ]
        if self.fault is not None:
            results.append((f"fault {self.fault.get('name')}", self._check_fault(fault)))
        return results

    def _check_fault(self, fault: Fault | None) -> str | None:
        wanted = self.fault or {}
        if fault is None:
            return f"a fault {wanted.get('name')} must stop the run, and none did"
        if fault.name != wanted.get("name") or fault.index != wanted.get("index", fault.index):
            return f"the fault must be {wanted}, not {fault.name} at word {fault.index}"
        return None


def _at(path: Path, what: str, action: Callable[[], ResultT]) -> ResultT:
    """Do `action`; an InputError it raises names the scenario and the key."""
    try:
        return action()
    except InputError as error:
        raise InputError(str(error), place=f"{path} [{what}]") from None


def _table(table: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"{key} must be a table", place=str(path))
    return value


def _list(table: dict[str, Any], key: str, path: Path) -> list[dict[str, Any]]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InputError(f"{key} must be written [[{key}]]", place=str(path))
    return value


def _text(table: dict[str, Any], key: str, path: Path) -> str | None:
    value = table.get(key)
    if value is None or isinstance(value, str):
        return value
    raise InputError(f"{key} must be text, not {value!r}", place=str(path))


def _selector(table: dict[str, Any], path: Path) -> str | None:
    """Read `preload`, the name or the index of a set."""
    value = table.get("preload")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(table, "preload", path)


def _numbers(
    table: Any, key: str, path: Path, last: int, largest: int = 0xFFFFFFFF
) -> tuple[tuple[int, int], ...]:
    """Read a table of number = number."""
    if not isinstance(table, dict):
        raise InputError(f"{key} must be a table of number = number", place=str(path))
    found = []
    for name, value in table.items():
        number = _at(path, key, partial(parse_integer, name, key, 0, last))
        if not isinstance(value, int) or not 0 <= value <= largest:
            raise InputError(f"{key}.{name} must be 0 to {largest}, not {value!r}", place=str(path))
        found.append((number, int(value)))
    return tuple(found)


def _placed(entry: dict[str, Any], key: str, path: Path) -> tuple[TensorSpec, npt.NDArray[Any]]:
    """Read `at` and `values` or `file` of one entry."""
    at = entry.get("at")
    if not isinstance(at, str):
        raise InputError(f"{key} needs at = a SPEC", place=str(path))
    spec = _at(path, key, lambda: TensorSpec.parse(at))
    file = entry.get("file")
    if isinstance(file, str):
        return spec, read_npy(path.parent / file)
    try:
        values = np.array(entry.get("values"))
        if values.size == np.prod(spec.shape) and values.dtype.kind in "biuf":
            values = values.reshape(spec.shape)
        values = np.broadcast_to(values, spec.shape)
    except (ValueError, OverflowError):
        values = np.array(None)
    if values.dtype.kind not in "biuf":
        raise InputError(
            f"{key} {at} needs values = numbers that fill or repeat over {list(spec.shape)},"
            " or file = an .npy file",
            place=str(path),
        )
    if spec.bits and values.dtype.kind in "iu":
        return spec, values.astype(storage_dtype(spec.dtype))
    return spec, values


def _expectation(entry: dict[str, Any], path: Path) -> Expectation:
    spec, values = _placed(entry, "expect", path)
    kinds = [kind for kind in _TOLERANCES if kind in entry]
    if len(kinds) > 1:
        raise InputError(f"expect {spec} must have one tolerance, not {kinds}", place=str(path))
    kind = kinds[0] if kinds else None
    tolerance = entry[kind] if kind else 0
    if type(tolerance) not in (int, float) or not tolerance >= 0:
        raise InputError(f"{kind} must be a number, not {tolerance!r}", place=str(path))
    if spec.dtype.is_float and not spec.bits:
        values = values.astype(np.float32)
    return Expectation(spec, values, kind, float(tolerance))
