"""How points are asked for in words: the locations, targets and options of gdb's commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from neuron_emu.debug import probe
from neuron_emu.debug.expression import Expression, parse_expression
from neuron_emu.debug.points import (
    Breakpoint,
    FindingPoint,
    NonFinitePoint,
    Point,
    ReferencePoint,
    RegionWatch,
    StateWatch,
    UninitialisedPoint,
)
from neuron_emu.debug.regions import parse_region
from neuron_emu.debug.state import constant, is_name, unknown_name
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import DTYPE_WORDS, DType, Engine
from neuron_emu.isa.opcodes import OPCODE_BY_NAME
from neuron_emu.isa.program import engine_named
from neuron_emu.isa.text import parse_integer
from neuron_emu.tensor_spec import read_npy

if TYPE_CHECKING:
    from neuron_emu.debug.state import Moment
    from neuron_emu.machine import Machine

__all__ = ["PointRequests"]

_STATE = re.compile(r"(?:(?P<engine>[a-z]+)\.)?\$?(?P<kind>R|S|E|acc)\[(?P<number>\w+)\]")
_CATCHES = ("nan", "nonfinite", "uninitialised", "finding")
_KINDS = ("change", "write", "read", "access")


class PointRequests:
    """The part of the debugger that makes breakpoints, watchpoints and catchpoints from words."""

    machine: Machine
    points: list[Point]
    labels: dict[Engine, dict[str, int]]
    _next_number: int

    @property
    def engine(self) -> Engine:
        """The engine that a bare location belongs to."""
        raise NotImplementedError

    @property
    def moment(self) -> Moment:
        """The moment in which expressions are tried."""
        raise NotImplementedError

    def location(self, text: str) -> tuple[Engine, int]:
        """Read `INDEX`, `ENGINE:INDEX`, `LABEL` or `ENGINE:LABEL`; InputError tells the forms."""
        prefix, colon, rest = text.strip().partition(":")
        engines = [engine_named(prefix)] if colon else [self.engine, *probe.streams(self.machine)]
        word = rest if colon else prefix
        streams = probe.streams(self.machine)
        if re.fullmatch(r"\d+|0[xX][0-9a-fA-F]+", word):
            length = len(streams[engines[0]]) if engines[0] in streams else 0
            name = engines[0].name.lower()
            return engines[0], parse_integer(word, f"index in the {name} stream", 0, length - 1)
        for engine in engines:
            if word in self.labels.get(engine, {}):
                return engine, self.labels[engine][word]
        known = sorted({name for labels in self.labels.values() for name in labels})
        hint = f"; labels here: {', '.join(known)}" if known else "; there are no labels here"
        raise InputError(
            f"location must be an index such as 5 or act:3, or a label, not {text!r}{hint}"
        )

    def _add(self, point: Point) -> Point:
        point.number = self._next_number
        self._next_number += 1
        point.prime(self.machine)
        self.points.append(point)
        return point

    def breakpoint(self, words: str = "", *, temporary: bool = False, ignore: int = 0) -> Point:
        """Stop before words: `5`, `act:3`, `LABEL`, `EXPONENTIAL`, `EXPONENTIAL bf16`, `act`.

        `if CONDITION` may follow, or stand alone and concern each word.
        """
        spot, has_condition, condition_text = f" {words.strip()} ".partition(" if ")
        spot = spot.strip()
        condition = self._condition(condition_text) if has_condition else None
        point = Breakpoint(text=words.strip() or "each word", condition=condition)
        point.is_temporary, point.ignore = temporary, ignore
        self._place(point, spot, bool(has_condition))
        return self._add(point)

    def _condition(self, text: str) -> Expression:
        """Parse a condition; a name that no word and no state has is a mistake."""
        condition = parse_expression(text.strip())
        for path in condition.paths:
            if not is_name(path):
                raise unknown_name(path)
        return condition

    def _place(self, point: Breakpoint, spot: str, has_condition: bool) -> None:
        first, _, second = spot.partition(" ")
        if spot == "":
            if not has_condition:
                point.engine = self.engine
                point.index = self.machine.position(self.engine)
                point.text = f"{point.engine.name.lower()}:{point.index}"
        elif first in OPCODE_BY_NAME:
            point.opcode = OPCODE_BY_NAME[first]
            if second.strip():
                point.dtype = _dtype(second.strip())
        elif first.upper() in Engine.__members__ and first == first.lower() and not second:
            point.engine = engine_named(first)
        else:
            point.engine, point.index = self.location(spot)

    def watch(self, words: str, kind: str = "change") -> Point:
        """Stop when a region, register, semaphore, event or accumulator lane is touched.

        `kind` is change, write (also of an equal value), read or access; other expressions over
        the state can be watched for change. `if CONDITION` may follow.
        """
        if kind not in _KINDS:
            raise InputError(f"kind must be one of {', '.join(_KINDS)}, not {kind!r}")
        text, has_condition, condition_text = words.strip().partition(" if ")
        text = text.strip()
        condition = self._condition(condition_text) if has_condition else None
        if ":" in text or re.match(r"\w+@[^\[]+(\[.*\]\[|.*channels=|$)", text):
            region = parse_region(self.machine, text, self.machine.engine(self.engine).registers)
            return self._add(RegionWatch(text=text, region=region, kind=kind, condition=condition))
        match = _STATE.fullmatch(text)
        target = None
        if match is not None:
            engine = engine_named(match["engine"]) if match["engine"] else self.engine
            number = parse_integer(match["number"], match["kind"], 0, 255)
            target = (match["kind"], engine, number)
        elif kind != "change":
            raise InputError(
                f"{kind} must be of a region, R[n], S[n], E[n] or acc[n], not {text!r}"
            )
        watched = parse_expression(text)
        watched.value(self.moment)  # a name that is unknown now is a mistake
        if not watched.reads_memory and all(constant(str(p)) is not None for p in watched.paths):
            raise InputError(
                "watch must be of a region such as fp32@0x2000[1][8], or of state that can change,"
                f" not of the constant {text!r}"
            )
        return self._add(
            StateWatch(
                text=text,
                watched=watched,
                engine=self.engine,
                kind=kind,
                target=target,
                condition=condition,
            )
        )

    def catch(self, what: str) -> Point:
        """Stop at the first nan, nonfinite (NaN or infinity), uninitialised read, or finding."""
        word = what.strip()
        matches = [name for name in _CATCHES if name.startswith(word) and word]
        if word in ("nan", "inf") or matches == ["nan"]:
            return self._add(NonFinitePoint(text=f"first {word}", infinities=word == "inf"))
        if matches == ["nonfinite"]:
            return self._add(NonFinitePoint(text="first NaN or infinity"))
        if matches == ["uninitialised"]:
            return self._add(UninitialisedPoint(text="first uninitialised read"))
        if matches == ["finding"]:
            return self._add(FindingPoint(text="first finding"))
        raise InputError(f"catch must be one of {', '.join(_CATCHES)}, not {what!r}")

    def reference(self, words: str) -> Point:
        """Stop when a value written differs from a file: `SPEC=FILE.npy [ulp N|abs X|rel X]`."""
        parts = words.split()
        spec, equals, path = parts[0].partition("=") if parts else ("", "", "")
        if not equals or not path or len(parts) not in (1, 3):
            raise InputError(
                "reference must be SPEC=FILE.npy, then ulp N, abs X or rel X if values may"
                f" differ, not {words!r}"
            )
        region = parse_region(self.machine, spec)
        wanted = read_npy(path)
        if wanted.size != np.prod(region.shape) or wanted.dtype.kind not in "biuf":
            raise InputError(
                f"must hold {list(region.shape)} numbers, not {list(wanted.shape)}", place=path
            )
        kind, tolerance = None, 0.0
        if len(parts) == 3:
            kind = {"ulp": "ulp", "abs": "absolute", "rel": "relative"}.get(parts[1])
            tolerance = _tolerance(parts[2])
            if kind is None:
                raise InputError(f"tolerance must be ulp, abs or rel, not {parts[1]!r}")
        return self._add(
            ReferencePoint(
                text=words, region=region, reference=wanted, kind=kind, tolerance=tolerance
            )
        )

    def point(self, number: int) -> Point:
        """Return a point by its number; InputError when there is none."""
        for point in self.points:
            if point.number == number:
                return point
        known = ", ".join(str(p.number) for p in self.points) or "none"
        raise InputError(f"number must be of a breakpoint or watchpoint ({known}), not {number}")

    def delete(self, number: int | None = None) -> int:
        """Delete a point, or all of them; return how many."""
        if number is None:
            count = len(self.points)
            self.points.clear()
            return count
        self.points.remove(self.point(number))
        return 1

    def condition(self, number: int, text: str) -> Point:
        """Give a point a condition; an empty text takes it away."""
        point = self.point(number)
        point.condition = self._condition(text) if text.strip() else None
        return point


def _dtype(word: str) -> DType:
    code = next((code for code, known in DTYPE_WORDS.items() if known == word), None)
    if code is None:
        raise InputError(f"dtype must be one of {', '.join(DTYPE_WORDS.values())}, not {word!r}")
    return DType(code)


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise InputError(f"tolerance must be a number of 0 or more, not {text!r}")
    return value
