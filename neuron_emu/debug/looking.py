"""Looking at a stopped machine: state, memory as typed tiles, listings, differences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from neuron_emu.debug import probe
from neuron_emu.debug.records import (
    AccumulatorLanes,
    AnnotatedField,
    CamEntry,
    Change,
    Difference,
    EngineStatus,
    Explanation,
    ListedWord,
    Listing,
    Place,
    RegisterValue,
    SemaphoreValue,
    TableStatus,
    Tile,
    WordSummary,
)
from neuron_emu.debug.regions import parse_region, read_tile
from neuron_emu.debug.timeline import Timeline
from neuron_emu.errors import InputError
from neuron_emu.events import Notice
from neuron_emu.generation import GENERATIONS
from neuron_emu.isa.codec import decode
from neuron_emu.isa.enums import Engine, member
from neuron_emu.isa.layout import rows_of
from neuron_emu.isa.opcodes import engines_of, opcode_name
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.isa.rules import rules_for
from neuron_emu.isa.validate import findings_of_word
from neuron_emu.machine import Machine
from neuron_emu.memory import Space

if TYPE_CHECKING:
    from neuron_emu.debug.points import Point

__all__ = ["Looking", "annotated"]


class Looking:
    """The part of the debugger that reads state and changes nothing."""

    machine: Machine
    timeline: Timeline
    points: list[Point]
    labels: dict[Engine, dict[str, int]]

    @property
    def engine(self) -> Engine:
        """The engine that commands are about."""
        raise NotImplementedError

    def place(self, engine: Engine, index: int) -> Place | None:
        """Return a word of a stream."""
        raise NotImplementedError

    # --- state ------------------------------------------------------------------------------

    def registers(
        self, engine: Engine | None = None, *, all_of_them: bool = False
    ) -> tuple[RegisterValue, ...]:
        """Return the registers of an engine that are not zero, or all of them."""
        of = engine if engine is not None else self.engine
        values = enumerate(self.machine.engine(of).registers)
        return tuple(RegisterValue(of, n, v) for n, v in values if v or all_of_them)

    def semaphores(self, *, all_of_them: bool = False) -> tuple[SemaphoreValue, ...]:
        """Return semaphores and events that are not zero or that an engine waits for."""
        machine = self.machine
        waiters: dict[tuple[str, int], list[Place]] = {}
        for engine in probe.streams(machine):
            for kind, number, _ in probe.hold_up(machine, engine):
                place = self.place(engine, machine.position(engine))
                if place is not None:
                    waiters.setdefault((kind, number), []).append(place)
        return tuple(
            SemaphoreValue(kind, number, value, tuple(waiters.get((kind, number), ())))
            for kind in ("S", "E")
            for number, value in enumerate(machine.sync.of_kind(kind))
            if value or all_of_them or (kind, number) in waiters
        )

    def accumulator(self, engine: Engine | None = None) -> AccumulatorLanes:
        """Return the accumulator lanes of an engine, copies."""
        of = engine if engine is not None else self.engine
        accumulator = self.machine.engine(of).accumulator
        return AccumulatorLanes(of, accumulator.values.copy(), accumulator.undefined.copy())

    def tables(self) -> tuple[TableStatus, ...]:
        """Return the function set that each engine holds: those with a stream, ACT and DVE."""
        engines = dict.fromkeys((*probe.streams(self.machine), Engine.ACT, Engine.DVE))
        found = []
        for engine in engines:
            tables = self.machine.engine(engine).tables
            if tables is None:
                found.append(TableStatus(engine, None, None, ()))
            else:
                held = tables.set
                found.append(TableStatus(engine, held.name, held.index, tuple(held.members)))
        return tuple(found)

    def cam(self) -> tuple[CamEntry, ...]:
        """Return the opcodes that the DVE's PROF_CAM is armed for, by opcode."""
        cam = self.machine.generation.dve_cam
        if cam is None:
            return ()
        return tuple(
            CamEntry(opcode, opcode_name(opcode & 0xFF), cam.slot_of(opcode))
            for opcode in sorted(cam.armed)
        )

    def engines(self) -> tuple[EngineStatus, ...]:
        """Return how far each stream is and what it waits for."""
        machine = self.machine
        going = probe.next_engine(machine)
        found = []
        for engine, stream in probe.streams(machine).items():
            position = machine.position(engine)
            place = self.place(engine, position)
            held = "; ".join(sentence for *_, sentence in probe.hold_up(machine, engine))
            over = probe.is_over(machine, engine)
            found.append(
                EngineStatus(
                    engine=engine,
                    position=position,
                    length=len(stream),
                    stream=stream.name,
                    state="ended" if over else held or "ready",
                    next_text=None if place is None or over else place.text,
                    is_next=engine is going,
                )
            )
        return tuple(found)

    def writes(self, count: int = 10) -> tuple[WordSummary, ...]:
        """Return the last words that ran and what each changed, newest first."""
        found: list[WordSummary] = []
        for entry in self.timeline.history.before():
            if len(found) == count:
                break
            place = self.place(entry.engine, entry.position)
            changed = [_range_text(operand) for operand in entry.written]
            if entry.accumulator:
                changed.append(f"{entry.engine.name.lower()} accumulator")
            if entry.tables:
                changed.append(f"{entry.engine.name.lower()} tables")
            changed += [f"R[{number}]={value:#x}" for number, value in entry.registers]
            changed += [str(change) for change in entry.sync]
            updates = (*entry.issued.read_updates, *entry.issued.complete_updates)
            changed += [f"{'E' if 'EVT' in u.mode.name else 'S'}[{u.index}]" for u in updates]
            if place is not None:
                found.append(WordSummary(entry.step, place, tuple(changed)))
        return tuple(found)

    def warnings(self) -> tuple[Notice, ...]:
        """Return the machine's warnings so far."""
        return tuple(self.machine.warnings)

    # --- memory and words -------------------------------------------------------------------

    def examine(self, region: str) -> Tile:
        """Return memory as typed elements: a SPEC, or `bf16@0x4000[1,1][64,2] channels=4`."""
        registers = self.machine.engine(self.engine).registers
        return read_tile(self.machine, parse_region(self.machine, region, registers))

    def listing(
        self, engine: Engine | None = None, index: int | None = None, around: int = 3
    ) -> Listing:
        """Return the words around one, and the fields of that one with their bytes."""
        of = engine if engine is not None else self.engine
        stream = probe.streams(self.machine).get(of)
        if stream is None:
            raise InputError(f"engine {of.name.lower()} must have a stream to list")
        position = self.machine.position(of)
        middle = min(position if index is None else index, len(stream) - 1)
        words = []
        for number in range(max(0, middle - around), min(len(stream), middle + around + 1)):
            place = self.place(of, number)
            if place is not None:
                words.append(self._listed(place, stream[number], number == position))
        record = decode(stream[middle], self.machine.generation)
        return Listing(middle, tuple(words), annotated(record, stream[middle]))

    def _listed(self, place: Place, word: bytes, is_current: bool) -> ListedWord:
        numbers = [
            point.number
            for point in self.points
            if getattr(point, "index", None) == place.index
            and getattr(point, "engine", None) in (None, place.engine)
        ]
        return ListedWord(
            engine=place.engine,
            index=place.index,
            offset=place.index * WORD_BYTES,
            text=place.text,
            hex=word.hex(),
            is_current=is_current,
            label=place.label,
            breakpoints=tuple(numbers),
        )

    def explain(self, engine: Engine | None = None, index: int | None = None) -> Explanation:
        """Return all that is known of a word: fields, rules, findings, and who accepts it."""
        of = engine if engine is not None else self.engine
        machine = self.machine
        at = machine.position(of) if index is None else index
        stream = probe.streams(machine).get(of)
        place = self.place(of, at)
        if place is None or stream is None:
            raise InputError(f"there is no word {at} of {of.name.lower()} to explain")
        word = stream[at]
        findings = {
            name: findings_of_word(word, generation, of, machine.policy)
            for name, generation in GENERATIONS.items()
        }
        rules = rules_for(word[0], machine.generation.name)
        return Explanation(
            place=place,
            opcode=word[0],
            name=opcode_name(word[0]),
            engines=tuple(e.name.lower() for e in _takers(word[0], machine)),
            fields=annotated(decode(word, machine.generation), word),
            rules=tuple(f"{r.code} {r.name_on(machine.generation)}" for r in rules),
            findings=findings[machine.generation.name],
            generations={
                name: tuple(f.name for f in found if f.severity == "error")
                for name, found in findings.items()
            },
        )

    # --- differences ------------------------------------------------------------------------

    def diff(self, words: int = 1) -> Difference:
        """Return what changed in the last `words` words: memory, registers, everything."""
        now = self.timeline.step
        before = max(self.timeline.start, now - words)
        after = _Copy.of(self.machine)
        with self.timeline.at(before) as machine:
            earlier = _Copy.of(machine)
        return Difference(before, now, tuple(_changes(earlier, after, self.machine)), words)


def _takers(opcode: int, machine: Machine) -> tuple[Engine, ...]:
    found = engines_of(opcode, machine.generation.core_version)
    return tuple(sorted(found))


def _range_text(operand: Any) -> str:
    first = operand.first_partition
    last = first + operand.channels - 1
    return f"{operand.space.name}:{first}-{last}+{operand.low:#x}..{operand.end - 1:#x}"


def annotated(record: Any, word: bytes) -> tuple[AnnotatedField, ...]:
    """Return every field of a decoded word with its bytes; all-zero raw bytes are left out."""
    found: list[AnnotatedField] = []
    _annotate(record, word, 0, "", found)
    return tuple(found)


def _annotate(
    record: Any, word: bytes, base: int, prefix: str, found: list[AnnotatedField]
) -> None:
    for row in rows_of(type(record)):
        value = getattr(record, row.name)
        path = prefix + row.name
        is_bits = row.kind == "bits"
        first = base + (row.offset // 8 if is_bits else row.offset)
        if attrs.has(type(value)):
            _annotate(value, word, first, path + ".", found)
            continue
        last = base + (row.offset + row.size - 1) // 8 if is_bits else first + row.size - 1
        data = word[first : last + 1]
        if row.kind == "raw" and not any(data):
            continue
        text = data.hex() if row.kind == "raw" else _value_text(value, row.enum)
        found.append(AnnotatedField(path, first, last, data.hex(), text, row.doc))


def _value_text(value: Any, enum: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ",".join(str(v) for v in value) + "]"
    if enum is not None:
        named = member(enum, value)
        return f"{named.name} ({value})" if named is not None else f"{value:#x}"
    return f"{value} ({value:#x})" if isinstance(value, int) and value > 9 else str(value)


@frozen(eq=False)
class _Copy:
    """A copy of the state that a person can see."""

    memory: tuple[npt.NDArray[np.uint8], ...]
    scalars: dict[str, str]

    @classmethod
    def of(cls, machine: Machine) -> _Copy:
        scalars: dict[str, str] = {}
        for kind in ("S", "E"):
            for number, value in enumerate(machine.sync.of_kind(kind)):
                scalars[f"{kind}[{number}]"] = str(value)
        for engine in dict.fromkeys((*probe.streams(machine), Engine.ACT, Engine.DVE)):
            name = engine.name.lower()
            state = machine.engine(engine)
            for number, value in enumerate(state.registers):
                scalars[f"{name}.R[{number}]"] = f"{value:#x}"
            accumulator = state.accumulator
            for lane, number32 in enumerate(accumulator.values):
                flag = " (undefined)" if accumulator.undefined[lane] else ""
                scalars[f"{name}.acc[{lane}]"] = f"{number32}{flag}"
            scalars[f"{name}.tables"] = state.tables.set.name if state.tables else "none"
            scalars[f"{name}.index"] = str(machine.position(engine))
            for key, latch in state.latches.items():
                scalars[f"{name}.{key}"] = str(latch)
        return cls(tuple(space.data.copy() for space in machine.memory.spaces), scalars)


def _changes(before: _Copy, after: _Copy, machine: Machine) -> list[Change]:
    found: list[Change] = []
    for name, text in after.scalars.items():
        was = before.scalars.get(name, "none")
        if was != text:
            _join_lane(found, Change(name, was, text))
    for space, old, new in zip(machine.memory.spaces, before.memory, after.memory, strict=True):
        found += _memory_changes(space, old, new)
    return found


_LANE = re.compile(r"(\w+\.acc)\[(?:(\d+)-)?(\d+)\]")


def _join_lane(found: list[Change], change: Change) -> None:
    """Add a change; lanes side by side that changed alike become one."""
    lane = _LANE.fullmatch(change.what)
    last = _LANE.fullmatch(found[-1].what) if found else None
    if (
        lane is not None
        and last is not None
        and (found[-1].before, found[-1].after, last[1]) == (change.before, change.after, lane[1])
        and int(last[3]) == int(lane[3]) - 1
    ):
        first = last[2] or last[3]
        change = evolve(change, what=f"{lane[1]}[{first}-{lane[3]}]")
        found.pop()
    found.append(change)


def _memory_changes(
    space: Space, old: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8]
) -> list[Change]:
    """Return runs of changed bytes; partitions with the same runs side by side are joined."""
    differs = old != new
    found: list[Change] = []
    previous: tuple[tuple[tuple[int, int], ...], int, int] | None = None

    def close(runs: tuple[tuple[int, int], ...], first: int, last: int) -> None:
        for low, end in runs:
            what = f"{space.name}:{first}-{last}+{low:#x}..{end - 1:#x}"
            shown = slice(low, min(end, low + 8))
            more = "…" if end - low > 8 else ""
            found.append(
                Change(
                    what,
                    old[first, shown].tobytes().hex() + more,
                    new[first, shown].tobytes().hex() + more,
                )
            )

    for partition in np.flatnonzero(differs.any(axis=1)).tolist():
        runs = _runs(differs[partition])
        if previous is not None and previous[0] == runs and previous[2] == partition - 1:
            previous = (runs, previous[1], partition)
            continue
        if previous is not None:
            close(*previous)
        previous = (runs, partition, partition)
    if previous is not None:
        close(*previous)
    return found


def _runs(differs: npt.NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Return the runs of changed bytes; those less than eight apart are one."""
    places = np.flatnonzero(differs)
    starts = np.flatnonzero(np.diff(places, prepend=-100) > 8)
    ends = np.append(starts[1:], len(places))
    return tuple(
        (int(places[a]), int(places[b - 1]) + 1) for a, b in zip(starts, ends, strict=True)
    )
