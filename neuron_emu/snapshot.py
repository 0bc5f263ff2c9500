"""The whole state of a machine: a digest to compare, and checkpoints to go back to.

A checkpoint holds the pages of memory that have a written byte; all other bytes are what they
were at power-on (policy `uninitialised`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.engines.accumulator import Accumulator
from neuron_emu.engines.core import EngineState
from neuron_emu.isa.enums import Engine
from neuron_emu.memory import Operand, Space
from neuron_emu.policy import Policy
from neuron_emu.pwp.library import ResidentTables

if TYPE_CHECKING:
    from neuron_emu.machine import Machine

__all__ = ["Checkpoint", "digest", "engine_frame", "put_engine_back"]

_PAGE_BYTES = 4096


EngineFrame = tuple[EngineState, int, Any, Accumulator, bool, Any]


def engine_frame(state: EngineState) -> EngineFrame:
    """Return the state of an engine that is kept by reference, as it is now.

    Registers and latches are changed item by item and are not in it. A generator's state is in it
    only where something is drawn: under policy rounding=stochastic.
    """
    accumulator = state.accumulator
    is_random = state.formats.rounding == "stochastic"
    drawn = state.random.bit_generator.state if is_random else None
    return state, state.position, state.tables, accumulator, accumulator.warned, drawn


def put_engine_back(frame: EngineFrame) -> None:
    """Put back what `engine_frame` returned."""
    state, position, tables, accumulator, warned, drawn = frame
    state.position, state.tables, state.accumulator = position, tables, accumulator
    accumulator.warned = warned
    if drawn is not None:
        state.random.bit_generator.state = drawn


def digest(machine: Machine, private: tuple[Any, ...]) -> bytes:
    """Return 32 bytes that are equal for equal states; `private` is what only the machine knows.

    Everything that a later word or a user can see takes part: all bytes of the memories and their
    written flags, semaphores, events, registers, accumulators, tables, latches, positions, words
    in flight, generators, counts and warnings. What is merely remembered does not.
    """
    hasher = hashlib.sha256()
    for space in machine.memory.spaces:
        hasher.update(space.data.data)
        hasher.update(np.packbits(space.written).data)
    for part in _parts(machine, private):
        hasher.update(part)
        hasher.update(len(part).to_bytes(8, "little"))
    return hasher.digest()


def _parts(machine: Machine, private: tuple[Any, ...]) -> Iterator[bytes]:
    yield from _plain((machine.sync.semaphores, machine.sync.events, private))
    for engine in Engine:
        state = machine.engine(engine)
        yield from _plain((state.position, state.registers, state.accumulator, state.tables))
        yield from _plain(sorted(state.latches.items()))
        yield from _plain(state.random.bit_generator.state)


def _plain(value: Any) -> Iterator[bytes]:
    """Yield the content of a value, of containers piece by piece."""
    if isinstance(value, (tuple, list)):
        yield f"{len(value)} items".encode()
        for item in value:
            yield from _plain(item)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.str} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, Accumulator):
        yield from _plain((value.values, value.undefined, value.warned))
    elif isinstance(value, ResidentTables):
        yield value.set.name.encode()
    elif isinstance(value, Operand):
        place = (value.space.name, value.first_partition, value.channels, value.low, value.end)
        yield repr(place).encode()
    else:
        yield repr(value).encode()


@frozen(eq=False)
class _Pages:
    """The pages of one memory that have a written byte: their numbers, bytes and flags."""

    numbers: npt.NDArray[np.intp]
    data: npt.NDArray[np.uint8]
    written: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, space: Space) -> _Pages:
        data, written = _paged(space)
        numbers = np.flatnonzero(written.any(axis=1))
        return cls(numbers, data[numbers], written[numbers])

    def put_back(self, space: Space, policy: Policy) -> None:
        data, written = _paged(space)
        touched = np.flatnonzero(written.any(axis=1))
        if len(touched):
            fresh, _ = _paged(Space(space.name, space.geometry, policy))
            data[touched] = fresh[touched]
            written[touched] = False
        data[self.numbers] = self.data
        written[self.numbers] = self.written
        space.flags_cleared()


def _paged(space: Space) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    size = gcd(_PAGE_BYTES, space.data.size)
    return space.data.reshape(-1, size), space.written.reshape(-1, size)


@frozen(eq=False)
class Checkpoint:
    """A copy of the state of a machine, made by `Machine.checkpoint` for `Machine.restore`."""

    steps: int
    pages: tuple[_Pages, ...]
    items: tuple[tuple[Any, Any], ...]
    frame: Any
    warnings: tuple[Any, ...]

    @classmethod
    def of(cls, machine: Machine, frame: Any) -> Checkpoint:
        """Copy what a machine holds; `frame` is what it keeps by reference, for itself."""
        states = [machine.engine(engine) for engine in Engine]
        containers = [machine.sync.semaphores, machine.sync.events]
        containers += [state.registers for state in states]
        items: list[tuple[Any, Any]] = [(c, list(c)) for c in containers]
        items += [(state.latches, dict(state.latches)) for state in states]
        return cls(
            steps=machine.steps,
            pages=tuple(_Pages.of(space) for space in machine.memory.spaces),
            items=tuple(items),
            frame=frame,
            warnings=tuple(machine.warnings),
        )

    def put_back(self, machine: Machine) -> None:
        """Make memories, lists and dictionaries of the machine what they were."""
        for pages, space in zip(self.pages, machine.memory.spaces, strict=True):
            pages.put_back(space, machine.policy)
        for container, saved in self.items:
            if isinstance(container, dict):
                container.clear()
                container.update(saved)
            else:
                container[:] = saved
        machine.warnings[:] = self.warnings

    @property
    def num_bytes(self) -> int:
        """About the memory that the checkpoint occupies."""
        return sum(pages.data.nbytes + pages.written.nbytes for pages in self.pages)
