"""The exception root of the package.

Architectural faults (an address past the end, a refused instruction) are results and travel as
`neuron_emu.events.Fault`; these exceptions say that a job could not be done at all, or that the
model itself is wrong.
"""

from __future__ import annotations

__all__ = ["InputError", "NeuronEmuError"]

_LONGEST_MESSAGE = 2000
"""Characters of a message; inputs are quoted in it, and they can be of any length."""


class NeuronEmuError(Exception):
    """Root of every exception that this package raises on purpose."""


class InputError(NeuronEmuError, ValueError):
    """Refuse an input; the message says where, what it holds and what would be accepted.

    `place` names the file, option or field and is printed in front of the message.
    """

    def __init__(self, message: str, *, place: str | None = None) -> None:
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[:_LONGEST_MESSAGE]}..."
        place = place[-_LONGEST_MESSAGE:] if place else place
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place
