"""The undo log: what each step overwrote, so that it can be put back exactly.

A step costs what it wrote: the bytes of its operands with their written flags, and single
registers, semaphores, events and latches. Everything else of a step is a handful of references,
because engines replace their accumulators and tables instead of changing them.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from attrs import define, field

from neuron_emu.memory import Operand

__all__ = ["DEFAULT_LIMIT_BYTES", "UndoLog"]

DEFAULT_LIMIT_BYTES = 1 << 28
_STEP_BYTES, _ITEM_BYTES = 512, 128
"""About what one step and one change of a single value occupy."""
_ABSENT = object()


@define(eq=False)
class _Step:
    """What one step overwrote, in order, and the machine's frame: what it keeps by reference."""

    frame: tuple[Any, ...]
    changes: list[tuple[Any, Any, Any]] = field(factory=list)
    num_bytes: int = _STEP_BYTES


class UndoLog:
    """The steps that can be undone, newest last, in about `limit_bytes` of memory.

    When a step would pass the limit the oldest steps are dropped: `undo` then ends earlier. A step
    that is larger than the whole limit cannot be undone, nor can any before it.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.num_bytes = 0
        self._steps: deque[_Step] = deque()
        self._current: _Step | None = None

    def __len__(self) -> int:
        return len(self._steps)

    def clear(self) -> None:
        """Drop every step."""
        self._steps.clear()
        self._current = None
        self.num_bytes = 0

    def begin(self, frame: tuple[Any, ...]) -> None:
        """Begin a step."""
        self._current = _Step(frame)

    def commit(self, *, is_complete: bool) -> None:
        """End a step. One that a fault stopped adds what it changed to the step before it."""
        step, self._current = self._current, None
        if step is None:
            return
        if not is_complete and (self._steps or not step.changes):
            if self._steps:
                self._steps[-1].changes += step.changes
                added = step.num_bytes - _STEP_BYTES
                self._steps[-1].num_bytes += added
                self.num_bytes += added
        else:
            self._steps.append(step)
            self.num_bytes += step.num_bytes
        while self._steps and self.num_bytes > self.limit_bytes:
            self.num_bytes -= self._steps.popleft().num_bytes

    def note_memory(self, operand: Operand) -> None:
        """Keep what an operand holds, before it is written."""
        step = self._step
        if step is not None:
            saved = operand.save()
            self._add(step, (operand, None, saved), saved.data.nbytes + saved.written.nbytes)

    def note_item(self, container: Any, key: Any) -> None:
        """Keep one item of a list or dictionary, before it is changed."""
        step = self._step
        if step is not None:
            missing = isinstance(container, dict) and key not in container
            self._add(step, (container, key, _ABSENT if missing else container[key]), 0)

    @property
    def _step(self) -> _Step | None:
        """The step that a change belongs to: between steps, the one before."""
        if self._current is not None:
            return self._current
        return self._steps[-1] if self._steps else None

    def _add(self, step: _Step, change: tuple[Any, Any, Any], num_bytes: int) -> None:
        step.changes.append(change)
        step.num_bytes += num_bytes + _ITEM_BYTES
        if step is not self._current:
            self.num_bytes += num_bytes + _ITEM_BYTES

    def undo(self) -> tuple[Any, ...] | None:
        """Put back what the newest step overwrote; return its frame, None when no step is left."""
        if not self._steps:
            return None
        step = self._steps.pop()
        self.num_bytes -= step.num_bytes
        for place, key, old in reversed(step.changes):
            if isinstance(place, Operand):
                place.restore(old)
            elif old is _ABSENT:
                del place[key]
            else:
                place[key] = old
        return step.frame
