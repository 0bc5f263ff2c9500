"""Moving a machine through time: forward by its words, back by undo and by checkpoints.

A position in time is the number of words executed. Going back a few words undoes them; going back
past the undo log restores the newest checkpoint before the target and runs forward from it, which
is exact because a machine is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
from attrs import define, field

from neuron_emu.debug import probe
from neuron_emu.debug.history import History
from neuron_emu.errors import InputError
from neuron_emu.events import Fault
from neuron_emu.machine import Machine
from neuron_emu.snapshot import Checkpoint
from neuron_emu.undo import DEFAULT_LIMIT_BYTES

__all__ = ["Timeline"]

_FIRST_SPACING = 1 << 12
_MOST_CHECKPOINTS = 8


@define(eq=False)
class Timeline:
    """A machine with its past.

    Attributes
    ----------
    records: whether going back is possible at all.
    start: the step at which the debugger took over.
    loaded: by memory, which bytes were written then, eight to a byte.
    """

    machine: Machine
    history: History = field(factory=History)
    records: bool = True
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    start: int = 0
    loaded: dict[str, npt.NDArray[np.uint8]] = field(factory=dict)
    _checkpoints: list[tuple[int, Checkpoint]] = field(factory=list)
    _spacing: int = _FIRST_SPACING
    _next_checkpoint: int = 0

    def __attrs_post_init__(self) -> None:
        probe.Recorder.watch(self.machine, self.history)
        for space in self.machine.memory.spaces:
            self.loaded[space.name] = np.packbits(space.written, axis=1)
        self.start = self.machine.steps
        self.set_recording(self.records)

    def was_loaded(self, space: str, partition: int, offset: int) -> bool:
        """Tell whether a byte was written before the debugger took over."""
        return bool(self.loaded[space][partition, offset // 8] >> (7 - offset % 8) & 1)

    def were_loaded(
        self, space: str, partition: int, offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Tell of each byte of a partition whether it was written before the run."""
        cells = self.loaded[space][partition, offsets // 8]
        return np.asarray(cells >> (7 - offsets % 8) & 1, np.bool_)

    def set_recording(self, is_on: bool) -> None:
        """Begin or end to record what is needed for going back; the past so far is given up."""
        self.records = is_on
        self.machine.record_undo(is_on, limit_bytes=self.limit_bytes)
        self._checkpoints.clear()
        self._spacing = _FIRST_SPACING
        self.start = self.machine.steps
        if is_on:
            self._keep_checkpoint()

    @property
    def step(self) -> int:
        """Words executed so far."""
        return self.machine.steps

    def _keep_checkpoint(self) -> None:
        """Keep a checkpoint; with too many, every second one is dropped, but never the first."""
        self._checkpoints.append((self.step, self.machine.checkpoint()))
        if len(self._checkpoints) > _MOST_CHECKPOINTS:
            self._checkpoints[:] = self._checkpoints[::2]
            self._spacing *= 2
        self._next_checkpoint = self.step + self._spacing

    def forward(self) -> Fault | None:
        """Execute one word."""
        if self.records and self.step >= self._next_checkpoint:
            self._keep_checkpoint()
        return self.machine.step()

    def forward_many(self, words: int) -> Fault | None:
        """Execute up to `words` words, as fast as the machine goes."""
        machine = self.machine
        step = machine.step
        for _ in range(words):
            fault = step()
            if fault is not None or machine.is_finished:
                return fault
        if self.records and self.step >= self._next_checkpoint:
            self._keep_checkpoint()
        return None

    def back(self) -> bool:
        """Take one word back; False at the start."""
        self._require_recording()
        if self.step <= self.start:
            return False
        if not self.machine.undo():
            self._rewind(self.step - 1)
        return True

    def to(self, step: int, stops: Callable[[], bool] = lambda: False) -> Fault | None:
        """Go to a step, back or forward; returns the fault that stands in the way.

        `stops` is asked between words of the way forward.
        """
        if step < self.step:
            self._require_recording()
            if step < self.start:
                raise InputError(f"step must be {self.start} or later, not {step}")
            self._back_to(step)
        while self.step < step and not self.machine.is_finished and not stops():
            fault = self.forward()
            if fault is not None:
                return fault
        return None

    def _back_to(self, step: int) -> None:
        if self.step - step > self.machine.undo_depth:
            self._rewind(step)
        while self.step > step and self.machine.undo():
            pass

    def _rewind(self, step: int) -> None:
        """Restore the newest checkpoint at or before a step and run forward to it."""
        at, checkpoint = next(c for c in reversed(self._checkpoints) if c[0] <= step)
        self.machine.restore(checkpoint)
        self._checkpoints = [c for c in self._checkpoints if c[0] <= at]
        self._next_checkpoint = at + self._spacing
        while self.step < step and self.forward() is None:
            pass

    def _require_recording(self) -> None:
        if not self.records:
            raise InputError("going back must be recorded: `record on` before the words run")

    @contextmanager
    def at(self, step: int) -> Iterator[Machine]:
        """Show the machine as it was at a step; it comes back to the present afterwards."""
        present = self.step
        machine = self.machine
        listeners, machine.listeners = machine.listeners, []
        try:
            self.to(step)
            yield machine
        finally:
            self.to(present)
            machine.listeners = listeners
