"""What a machine tells an observer of each word, while it happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from neuron_emu.engines.core import Effects, Prepared
from neuron_emu.issue import Issued, Queue

__all__ = ["Observer"]


class Observer(Protocol):
    """Looks on and changes nothing."""

    def started(self, queues: Sequence[Queue]) -> None:
        """Take note of the streams that are about to run."""
        ...

    def begun(self, queue: Queue, issued: Issued, prepared: Prepared, effects: Effects) -> None:
        """Take note of a word whose reads are done, before its flips and READ updates."""
        ...

    def finishing(self, queue: Queue, issued: Issued, effects: Effects) -> None:
        """Take note of a word before its writes and COMPLETE updates."""
        ...

    def rewound(self) -> None:
        """Take note that the machine has gone back to an earlier state."""
        ...
