"""Who wrote this, from what, and how: the questions about one byte or accumulator lane."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from attrs import evolve, frozen

from neuron_emu.debug import probe
from neuron_emu.debug.element import (
    OneElement,
    compute_alone,
    is_elementwise,
)
from neuron_emu.debug.exact import decimal_text, ulps
from neuron_emu.debug.history import Executed, History, read_operands
from neuron_emu.debug.inputs import first_not_finite, input_stations
from neuron_emu.debug.losses import Losses
from neuron_emu.debug.records import Place, Station, Untouched, Why, Writer
from neuron_emu.debug.sources import Integers, contributing, ranges_text
from neuron_emu.debug.timeline import Timeline
from neuron_emu.engines.accumulator_read import PreparedAccumulatorRead
from neuron_emu.engines.core import Problem
from neuron_emu.engines.kernels import route_stations
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import DType, Engine
from neuron_emu.isa.program import engine_named
from neuron_emu.isa.text import parse_integer
from neuron_emu.machine import Machine
from neuron_emu.memory import Operand, locate
from neuron_emu.numerics import to_float32

__all__ = ["Asking", "Spot"]

_LANE = re.compile(r"(?:(?P<engine>[a-z]+)\.)?acc\[(?P<lane>\w+)\]")
_PLACE = re.compile(r"(?P<space>sbuf|psum):(?P<partition>\w+)\+(?P<offset>\w+)")
_DEEPEST = 6
_MOST_WORDS = 64
"""Words of one sum that are listed."""


@frozen
class Spot:
    """A byte of memory, or a lane of an accumulator when `engine` is set."""

    text: str
    space: str = ""
    partition: int = 0
    offset: int = 0
    address: int | None = None
    engine: Engine | None = None


class Asking:
    """The part of the debugger that explains values."""

    machine: Machine
    timeline: Timeline
    history: History

    @property
    def engine(self) -> Engine:
        """The engine that a bare `acc[n]` belongs to."""
        raise NotImplementedError

    def place(self, engine: Engine, index: int) -> Place | None:
        """Return a word of a stream."""
        raise NotImplementedError

    def spot(self, text: str | int) -> Spot:
        """Read an address, `sbuf:3+0x2004`, or `act.acc[3]`; InputError tells the forms."""
        words = f"{text:#x}" if isinstance(text, int) else text.strip()
        generation = self.machine.generation
        lane = _LANE.fullmatch(words)
        if lane is not None:
            engine = engine_named(lane["engine"]) if lane["engine"] else self.engine
            number = parse_integer(lane["lane"], "lane", 0, generation.num_channels - 1)
            return Spot(words, partition=number, engine=engine)
        named = _PLACE.fullmatch(words)
        if named is not None:
            space = self.machine.memory.space_named(named["space"])
            partition = parse_integer(
                named["partition"], "partition", 0, space.geometry.num_partitions - 1
            )
            last = space.geometry.active_bytes - 1
            offset = parse_integer(named["offset"], "offset", 0, last)
            return Spot(words, space.name, partition, offset, space.address(partition, offset))
        if not re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", words):
            raise InputError(
                "place must be an address such as 0x2004, sbuf:3+0x2004, or act.acc[3], not"
                f" {words!r}"
            )
        address = parse_integer(words, "address", 0, 0xFFFFFFFF)
        found = locate(generation, address)
        if found is None:
            raise InputError(f"address must be in a memory of {generation}, not {address:#x}")
        return Spot(words, found.space, found.partition, found.offset, address)

    # --- who --------------------------------------------------------------------------------

    def who(self, place: str | int, depth: int = 1) -> Writer | Untouched:
        """Return the last word that wrote a byte or lane, with its sources `depth` levels back."""
        return self._writer_of(self.spot(place), min(depth, _DEEPEST))

    def _writer_of(self, spot: Spot, depth: int) -> Writer | Untouched:
        if spot.engine is not None:
            return self._lane_writer(spot, spot.engine, "", None, depth)
        found = self.history.last_writer(spot.space, spot.partition, spot.offset)
        what = f"{spot.space}:{spot.partition}+{spot.offset:#x}"
        if found is None:
            return Untouched("", what, spot.address, self._untouched_note(spot))
        entry, operand, lane, element = found
        start = int(operand.offsets_of_lane(lane)[element])
        writer = Writer(
            step=entry.step,
            place=self._place_of(entry),
            what=what,
            element=element,
            lane=lane,
            byte=spot.offset - start,
            address=spot.address,
        )
        if not depth:
            return writer
        sources = self._sources(entry, operand, lane, np.array([element]), depth)
        return evolve(writer, sources=tuple(sources))

    def _lane_writer(
        self, spot: Spot, engine: Engine, role: str, before: int | None, depth: int
    ) -> Writer | Untouched:
        lane = spot.partition
        what = f"{engine.name.lower()}.acc[{lane}]"
        entry = self.history.last_accumulation(engine, lane, before)
        if entry is None:
            return Untouched(role, what, None, "no recorded word changed this accumulator lane")
        writer = Writer(
            step=entry.step,
            place=self._place_of(entry),
            what=what,
            element=-1,
            lane=lane,
            byte=0,
            address=None,
            role=role,
        )
        if not depth:
            return writer
        sources = self._sources(entry, None, lane, np.zeros(1, np.int64), depth)
        return evolve(writer, sources=(*sources, *self._accumulated(entry, lane, depth)))

    def _accumulated(self, entry: Executed, lane: int, depth: int) -> Iterator[Writer | Untouched]:
        """Yield the words whose elements a sum has taken, back to the word that began it."""
        taken = 0
        while getattr(entry.prepared, "uses_accumulator", 0) > lane:
            spot = Spot("accumulator", partition=lane, engine=entry.engine)
            if taken == _MOST_WORDS:
                note = f"words before step {entry.step} are not listed"
                what = f"{entry.engine.name.lower()}.acc[{lane}]"
                yield Untouched("accumulator", what, None, note)
                return
            found = self.history.last_accumulation(entry.engine, lane, entry.step)
            if found is None:
                yield self._lane_writer(spot, entry.engine, "accumulator", entry.step, 0)
                return
            begun = self._lane_writer(spot, entry.engine, "accumulator", entry.step, 0)
            assert isinstance(begun, Writer)
            if depth > 1:
                everything = np.zeros(1, np.int64)
                inner = self._sources(found, None, lane, everything, depth - 1)
                begun = evolve(begun, sources=tuple(inner))
            yield begun
            entry, taken = found, taken + 1

    def _sources(
        self,
        entry: Executed,
        written: Operand | None,
        lane: int,
        elements: Integers,
        depth: int,
    ) -> list[Writer | Untouched]:
        """Return the last writers of all that elements were made from, equal ones together."""
        found: list[Writer | Untouched] = []
        for role, operand in read_operands(entry):
            if lane < operand.channels:
                for of, group in contributing(entry, operand, written, lane, elements):
                    found += self._group_writers(role, operand, of, group, entry.begun, depth - 1)
        takes = getattr(entry.prepared, "uses_accumulator", 0) > lane
        if takes and written is not None and not is_elementwise(entry):
            spot = Spot("accumulator", partition=lane, engine=entry.engine)
            found.append(
                self._lane_writer(spot, entry.engine, "accumulator", entry.step, depth - 1)
            )
        return found

    def _group_writers(
        self, role: str, operand: Operand, lane: int, elements: Integers, before: int, depth: int
    ) -> list[Writer | Untouched]:
        """Return who wrote elements of a source, by the first element of each group."""
        offsets = operand.offsets_of_lane(lane)[elements]
        partition, space = operand.first_partition + lane, operand.space
        written, left = self.history.last_writers(space.name, partition, offsets, before)
        found: list[tuple[int, Writer | Untouched]] = []

        def named(numbers: Integers) -> tuple[str, int, str]:
            offset = int(offsets[numbers[0]])
            group = ranges_text(elements[numbers]) if len(elements) > 1 else ""
            what = f"{space.name}:{partition}+{offset:#x}"
            return what, space.address(partition, offset), group

        for entry, target, at, numbers, hits in written:
            what, address, group = named(numbers)
            start = int(target.offsets_of_lane(at)[hits[0]])
            writer = Writer(
                step=entry.step,
                place=self._place_of(entry),
                what=what,
                element=int(hits[0]),
                lane=at,
                byte=int(offsets[numbers[0]]) - start,
                address=address,
                role=role,
                group=group,
                elements=ranges_text(hits) if len(hits) > 1 else "",
            )
            if depth > 0:
                sources = self._sources(entry, target, at, hits, depth)
                writer = evolve(writer, sources=tuple(sources))
            found.append((int(numbers[0]), writer))
        for note, numbers in self._untouched_notes(space.name, partition, offsets, left, before):
            what, address, group = named(numbers)
            found.append((int(numbers[0]), Untouched(role, what, address, note, group)))
        return [source for _, source in sorted(found, key=lambda pair: pair[0])]

    def _untouched_notes(
        self, space: str, partition: int, offsets: Integers, left: Integers, before: int
    ) -> Iterator[tuple[str, Integers]]:
        """Yield what is known of bytes that no word had written, and their numbers."""
        if not left.size:
            return
        first = self.history.first_step
        if first is not None and first > self.timeline.start:
            yield f"no word from step {first} on wrote it; older ones are forgotten", left
            return
        past = offsets[left] >= self.machine.memory.space_named(space).data.shape[1]
        if past.any():
            yield "past the active bytes of the partition", left[past]
        left = left[~past]
        loaded = self.timeline.were_loaded(space, partition, offsets[left])
        if loaded.any():
            yield "loaded before the run", left[loaded]
        left = left[~loaded]
        later, never = self.history.first_writers(space, partition, offsets[left], before)
        for entry, _, _, numbers, _ in later:
            place = self._place_of(entry)
            note = f"nothing had written it yet: {place} does so at step {entry.step}"
            yield note, left[numbers]
        if never.size:
            yield "nothing ever wrote it", left[never]

    def _untouched_note(self, spot: Spot) -> str:
        """Say where a byte came from that no word has written."""
        offsets, number = np.array([spot.offset]), np.zeros(1, np.int64)
        steps = self.timeline.step + 1
        notes = self._untouched_notes(spot.space, spot.partition, offsets, number, steps)
        return next(notes)[0]

    def _place_of(self, entry: Executed) -> Place:
        place = self.place(entry.engine, entry.position)
        return place or Place(entry.engine, entry.position, "?")

    # --- why --------------------------------------------------------------------------------

    def why(self, place: str | int) -> Why:
        """Compute the element at a place again, station by station, from the state of its time."""
        spot = self.spot(place)
        if spot.engine is not None:
            raise InputError(
                "why must be asked of memory, not of an accumulator: ask who wrote the lane, then"
                " why of an element it took"
            )
        found = self.history.last_writer(spot.space, spot.partition, spot.offset)
        if found is None:
            note = self._untouched_note(spot)
            raise InputError(f"{spot.text}: no word wrote it ({note})")
        entry, operand, lane, element = found
        writer = self._writer_of(spot, 1)
        assert isinstance(writer, Writer)
        number = next(i for i, o in enumerate(entry.written) if o is operand)
        dtype = next((d for d, o in probe.written_dtypes(entry) if o is operand), DType.UINT32)
        with self.timeline.at(entry.step + 1):
            stored = int(operand.read_element(element)[lane])
        with self.timeline.at(entry.begun):
            return self._explained(entry, writer, number, dtype, stored)

    def _explained(
        self, entry: Executed, writer: Writer, number: int, dtype: DType, stored: int
    ) -> Why:
        machine = self.machine
        state = machine.engine(entry.engine)
        alone = compute_alone(entry, number, writer.lane, writer.element, state)
        if isinstance(alone, Problem):
            raise InputError(f"the word cannot be computed again: {alone.message}")
        losses = Losses.of(entry, alone, state, writer.lane, dtype)
        stations = [*self._route(entry), *self._inputs(entry, alone, writer.lane)]
        stations += losses.stations(dtype, alone.bits)
        value = _value(machine, alone.bits, dtype)
        exact = losses.exact
        return Why(
            writer=writer,
            stations=tuple(stations),
            bits=alone.bits,
            stored=stored,
            agrees=alone.bits == stored,
            dtype=dtype.word,
            value=value,
            exact=None if exact is None else f"{decimal_text(exact)} ({losses.source})",
            total_ulp=ulps(value, exact, dtype),
            note=self._note(entry, alone),
        )

    def _route(self, entry: Executed) -> list[Station]:
        kernel = entry.issued.kernel
        if isinstance(kernel, Problem):
            return []
        route = route_stations(entry.issued.word[0], kernel, entry.engine, self.machine.generation)
        return [Station(name=name, detail=detail) for name, detail in route]

    def _inputs(self, entry: Executed, alone: OneElement, lane: int) -> list[Station]:
        found: list[Station] = []
        state = self.machine.engine(entry.engine)
        bad = first_not_finite(alone.reads, state)
        for number, read in enumerate(alone.reads):
            culprit = bad[1] if bad is not None and bad[0] == number else None
            found += input_stations(read, state, culprit)
        if isinstance(entry.prepared, PreparedAccumulatorRead):
            value = self.machine.engine(entry.engine).accumulator.values[lane : lane + 1]
            detail = {"operand": f"acc[{lane}]", "bits": f"{int(value.view(np.uint32)[0]):#010x}"}
            found.append(Station(name="input", detail=detail, value=float(value[0])))
        return found

    def _note(self, entry: Executed, alone: OneElement) -> str:
        if self.machine.policy.rounding == "stochastic":
            return "stochastic rounding: the whole word was run again from the same draw"
        if isinstance(entry.prepared, PreparedAccumulatorRead):
            return (
                "the loss is that of the conversion alone; `who` names the words that made the sum"
            )
        if alone.narrowed is None and not is_elementwise(entry):
            return "this element depends on others: the whole word was run again"
        return ""


def _value(machine: Machine, bits: int, dtype: DType) -> float:
    stored = np.array([bits], f"<u{dtype.size_bytes}")
    if dtype.is_float:
        return float(to_float32(stored, dtype, machine.formats)[0])
    if dtype in (DType.INT8, DType.INT16, DType.INT32):
        return float(stored.view(f"<i{dtype.size_bytes}")[0])
    return float(stored[0])
