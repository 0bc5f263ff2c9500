"""What stops a run: breakpoints, watchpoints and catchpoints, each a small object.

`arrived` is asked before a word executes, `ran` after it. Going back, `ran` is asked of the word
that is about to be undone, and `moved` after it, so that the same points stop in both directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field

from neuron_emu.debug import probe
from neuron_emu.debug.expression import Expression
from neuron_emu.debug.history import Executed, read_operands
from neuron_emu.debug.operands import overlap_mask, word_operands
from neuron_emu.debug.records import PointStatus, StopReason
from neuron_emu.debug.regions import Region, tile_of
from neuron_emu.debug.state import Moment
from neuron_emu.engines.core import Problem
from neuron_emu.isa.enums import DType, Engine
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.validate import findings_of_word
from neuron_emu.machine import Machine
from neuron_emu.memory import Operand
from neuron_emu.numerics import to_float32, ulp_distance

__all__ = [
    "Breakpoint",
    "FindingPoint",
    "Hit",
    "NonFinitePoint",
    "Point",
    "ReferencePoint",
    "RegionWatch",
    "StateWatch",
    "UninitialisedPoint",
]


@define
class Hit:
    """Why a point stops: the reason, a sentence, plain values."""

    reason: str
    message: str
    detail: dict[str, Any] = field(factory=dict)


@define(eq=False, kw_only=True)
class Point:
    """What all points share.

    Attributes
    ----------
    text: how the point was asked for.
    condition: an expression that must be true for the point to stop.
    ignore: hits that still pass by.
    is_temporary: deleted when it stops.
    """

    text: str
    number: int = 0
    condition: Expression | None = None
    enabled: bool = True
    is_temporary: bool = False
    ignore: int = 0
    hits: int = 0

    looks_after = True
    """False when a run needs to ask before a word only."""
    name = "catchpoint"

    @property
    def status(self) -> PointStatus:
        """The point as a plain record."""
        watch = getattr(self, "kind", None)
        is_watch = isinstance(self, (RegionWatch, StateWatch))
        return PointStatus(
            number=self.number,
            kind=f"{self.name} ({watch})" if is_watch else self.name,
            text=self.text,
            condition=None if self.condition is None else self.condition.text,
            enabled=self.enabled,
            temporary=self.is_temporary,
            ignore=self.ignore,
            hits=self.hits,
        )

    def arrived(self, moment: Moment) -> Hit | None:
        """Tell whether to stop before the next word."""
        return None

    def ran(self, machine: Machine, entry: Executed) -> Hit | None:
        """Tell whether to stop after a word; the machine is in the state after it."""
        return None

    def moved(self, machine: Machine, *, back: bool = False) -> Hit | None:
        """Tell whether watched state differs from the last look, and look again.

        `back` says that the machine went back, so that the last look is the newer one.
        """
        return None

    def prime(self, machine: Machine) -> None:
        """Look at the state that later looks are compared with."""


@define(eq=False, kw_only=True)
class Breakpoint(Point):
    """Stop before a word: by engine, index, opcode, or opcode on a dtype; None matches all."""

    engine: Engine | None = None
    index: int | None = None
    opcode: int | None = None
    dtype: DType | None = None

    looks_after = False
    name = "breakpoint"

    def arrived(self, moment: Moment) -> Hit | None:
        """Compare the next word."""
        if self.index is not None and moment.index != self.index:
            return None
        if self.engine is not None and moment.engine is not self.engine:
            return None
        if self.opcode is not None and moment.word[0] != self.opcode:
            return None
        if self.dtype is not None and not self._uses_dtype(moment):
            return None
        return Hit(StopReason.BREAKPOINT, f"breakpoint {self.number}: {self.text}")

    def _uses_dtype(self, moment: Moment) -> bool:
        return any(operand.dtype == self.dtype for operand in word_operands(moment.record))


@define(eq=False, kw_only=True)
class RegionWatch(Point):
    """Watch a region of memory: kind `change`, `write`, `read` or `access`."""

    region: Region
    kind: str = "change"
    _before: npt.NDArray[Any] | None = None

    name = "watchpoint"

    def prime(self, machine: Machine) -> None:
        """Copy the region."""
        if self.kind == "change":
            self._before = self.region.operand.read().copy()

    def moved(self, machine: Machine, *, back: bool = False) -> Hit | None:
        """Compare with the copy, when changes are watched."""
        if self.kind != "change" or self._before is None:
            return None
        now = self.region.operand.read()
        differs = now != self._before
        if not differs.any():
            return None
        lane, element = (int(i) for i in np.argwhere(differs)[0])
        values = [
            _values(machine, bits[lane : lane + 1, element], self.region.dtype)
            for bits in (self._before, now)
        ]
        self._before = now.copy()
        if back:
            values.reverse()
        detail = {"lane": lane, "element": element, "old": values[0], "new": values[1]}
        count = int(differs.sum())
        return Hit(
            StopReason.WATCHPOINT,
            f"watchpoint {self.number}: {count} element{'s' if count > 1 else ''} of {self.text}"
            f" changed, first lane {lane} element {element}: {values[0]} to {values[1]}",
            detail,
        )

    def ran(self, machine: Machine, entry: Executed) -> Hit | None:
        """Look whether the word's operands touch the region."""
        if self.kind in ("write", "access"):
            for operand in entry.written:
                mask = overlap_mask(operand, self.region.operand)
                if mask is not None:
                    return self._touched("wrote", mask)
        if self.kind in ("read", "access"):
            for _, operand in read_operands(entry):
                mask = overlap_mask(operand, self.region.operand)
                if mask is not None:
                    return self._touched("read", mask)
        return None

    def _touched(self, verb: str, mask: npt.NDArray[np.bool_]) -> Hit:
        lane, element = (int(i) for i in np.argwhere(mask)[0])
        return Hit(
            StopReason.WATCHPOINT,
            f"watchpoint {self.number}: the word {verb} {int(mask.sum())} of {mask.size} elements"
            f" of {self.text}, first lane {lane} element {element}",
            {"lane": lane, "element": element, "elements": int(mask.sum())},
        )


def _values(machine: Machine, bits: npt.NDArray[Any], dtype: DType) -> float | int:
    if dtype.is_float:
        return float(to_float32(bits.copy(), dtype, machine.formats)[0])
    return int(bits[0])


@define(eq=False, kw_only=True)
class StateWatch(Point):
    """Watch the value of an expression over registers, semaphores, events and accumulators.

    `kind` as for a region. Reads and writes are those that the word names; `touches` decides.
    """

    watched: Expression
    engine: Engine
    kind: str = "change"
    target: tuple[str, Engine, int] | None = None
    _before: float | int | None = None

    name = "watchpoint"

    def prime(self, machine: Machine) -> None:
        """Evaluate the expression."""
        self._before = self.watched.value(Moment.of(machine, self.engine))

    def moved(self, machine: Machine, *, back: bool = False) -> Hit | None:
        """Compare the value with the last one; NaN equals NaN."""
        if self.kind != "change":
            return None
        now, before = self.watched.value(Moment.of(machine, self.engine)), self._before
        if now == before or (now != now and before != before):
            return None
        self._before = now
        old, new = (now, before) if back else (before, now)
        return Hit(
            StopReason.WATCHPOINT,
            f"watchpoint {self.number}: {self.text} changed from {old} to {new}",
            {"old": old, "new": new},
        )

    def ran(self, machine: Machine, entry: Executed) -> Hit | None:
        """Look whether the word reads or writes the register, semaphore, event or lane."""
        if self.kind == "change" or self.target is None:
            return None
        verbs = []
        if self.kind in ("write", "access") and probe.writes_state(entry, *self.target):
            verbs.append("wrote")
        if self.kind in ("read", "access") and probe.reads_state(entry, *self.target):
            verbs.append("read")
        if not verbs:
            return None
        return Hit(
            StopReason.WATCHPOINT,
            f"watchpoint {self.number}: the word {' and '.join(verbs)} {self.text}",
        )


@define(eq=False, kw_only=True)
class NonFinitePoint(Point):
    """Stop after the first word that produces a NaN (or an infinity, if wanted)."""

    infinities: bool = True

    def ran(self, machine: Machine, entry: Executed) -> Hit | None:
        """Look at what the word wrote, and at the accumulator it changed."""
        for dtype, operand in probe.written_dtypes(entry):
            if not dtype.is_float:
                continue
            tile = tile_of(machine, "", dtype, operand)
            bad = np.isnan(tile.values) if not self.infinities else ~np.isfinite(tile.values)
            if bad.any():
                return self._hit(tile, bad, operand)
        if entry.accumulator:
            values = machine.engine(entry.engine).accumulator.values
            bad = np.isnan(values) if not self.infinities else ~np.isfinite(values)
            if bad.any():
                lane = int(bad.argmax())
                what = f"{entry.engine.name.lower()}.acc[{lane}]"
                return Hit(StopReason.NONFINITE, f"{what} became {values[lane]}", {"lane": lane})
        return None

    def _hit(self, tile: Any, bad: npt.NDArray[np.bool_], operand: Operand) -> Hit:
        element = int(bad.any(axis=0).argmax())
        lane = int(bad[:, element].argmax())
        address = operand.space.address(
            operand.first_partition + lane, int(operand.offsets_of_lane(lane)[element])
        )
        value = tile.values[lane, element]
        return Hit(
            StopReason.NONFINITE,
            f"{int(bad.sum())} of {bad.size} elements written are not finite, first {value} in"
            f" lane {lane} element {element} at {address:#x}",
            {"lane": lane, "element": element, "address": f"{address:#x}", "value": float(value)},
        )


@define(eq=False, kw_only=True)
class UninitialisedPoint(Point):
    """Stop before a word that would read bytes that nothing wrote."""

    looks_after = False

    def arrived(self, moment: Moment) -> Hit | None:
        """Prepare the word apart from the machine and ask for its first unwritten byte."""
        prepared = probe.prepare_word(moment.state, moment.word, moment.record)
        if isinstance(prepared, Problem):
            return None
        addresses = prepared.unwritten_reads()
        if not addresses:
            return None
        return Hit(
            StopReason.UNINITIALISED,
            f"the word reads bytes that nothing wrote, first at {addresses[0]:#x}",
            {"address": f"{addresses[0]:#x}"},
        )


@define(eq=False, kw_only=True)
class FindingPoint(Point):
    """Stop before a word about which a rule has something to say."""

    looks_after = False

    def arrived(self, moment: Moment) -> Hit | None:
        """Judge the word."""
        machine = moment.machine
        findings = findings_of_word(moment.word, machine.generation, moment.engine, machine.policy)
        if not findings:
            return None
        messages = "; ".join(dict.fromkeys(f.message for f in findings))
        name = opcode_name(moment.word[0])
        return Hit(
            StopReason.FINDING,
            f"{name} breaks {findings[0].name}: {messages}",
            {"names": [f.name for f in findings], "codes": [f.code for f in findings]},
        )


@define(eq=False, kw_only=True)
class ReferencePoint(Point):
    """Stop after a word that writes a value which differs from a reference.

    `reference` has the region's shape; `kind` is `ulp` (of float32), `relative`, `absolute`, or
    None for equal to the bit.
    """

    region: Region
    reference: npt.NDArray[Any]
    kind: str | None = None
    tolerance: float = 0.0

    def ran(self, machine: Machine, entry: Executed) -> Hit | None:
        """Compare the elements that the word wrote."""
        for operand in entry.written:
            mask = overlap_mask(operand, self.region.operand)
            if mask is None:
                continue
            tile = tile_of(machine, "", self.region.dtype, self.region.operand)
            bad = mask & ~self._agrees(tile.values)
            if bad.any():
                return self._hit(tile.values, bad)
        return None

    def _agrees(self, found: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        wanted = self.reference.reshape(found.shape)
        both_nan = (found != found) & (wanted != wanted)
        if self.kind == "ulp" and found.dtype == np.float32:
            near = ulp_distance(found, wanted.astype(np.float32)) <= self.tolerance
            return np.asarray(near | both_nan)
        if self.kind in ("relative", "absolute"):
            with np.errstate(invalid="ignore", over="ignore"):
                limit = self.tolerance * (np.abs(wanted) if self.kind == "relative" else 1)
                near = np.abs(found.astype(np.float64) - wanted.astype(np.float64)) <= limit
            return np.asarray(near | (found == wanted) | both_nan)
        return np.asarray((found == wanted) | both_nan)

    def _hit(self, found: npt.NDArray[Any], bad: npt.NDArray[np.bool_]) -> Hit:
        element = int(bad.any(axis=0).argmax())
        lane = int(bad[:, element].argmax())
        operand = self.region.operand
        address = operand.space.address(
            operand.first_partition + lane, int(operand.offsets_of_lane(lane)[element])
        )
        wanted = self.reference.reshape(found.shape)[lane, element]
        return Hit(
            StopReason.REFERENCE,
            f"{int(bad.sum())} elements of {self.region.text} differ from the reference, first"
            f" lane {lane} element {element} at {address:#x}: {found[lane, element]}, not {wanted}",
            {
                "lane": lane,
                "element": element,
                "address": f"{address:#x}",
                "found": float(found[lane, element]),
                "wanted": float(wanted),
                "elements": int(bad.sum()),
            },
        )
