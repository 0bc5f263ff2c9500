"""What the sanitizers report: frozen records whose names are stable."""

from __future__ import annotations

from attrs import field, frozen

from neuron_emu.generation import Generation
from neuron_emu.isa.assembly import disassemble_word
from neuron_emu.isa.enums import Engine

__all__ = ["KINDS", "Report", "Word"]

KINDS = {
    "uninitialised_read": "a word reads bytes that nothing wrote",
    "undefined_accumulator": "a word uses an accumulator while it is undefined",
    "race": "two engines touch the same bytes, one of them writes, and nothing orders them",
    "made_nan": "a word makes a NaN from inputs without one",
    "made_infinity": "a word makes an infinity from inputs without one",
    "unread_destination": "nothing reads or dumps what a word writes",
    "unwritten_output": "a region that is dumped holds bytes that nothing wrote",
}
"""Names of reports with what each one says."""


@frozen
class Word:
    """A word in the stream of an engine; `place` is both as text, as in `dve[3]`."""

    engine: Engine
    index: int
    data: bytes
    place: str = field(init=False, eq=False)

    @place.default
    def _place_in_text(self) -> str:
        return f"{self.engine.name.lower()}[{self.index}]"

    def text(self, generation: Generation) -> str:
        """Return the word in assembly."""
        return disassemble_word(self.data, generation)


@frozen(kw_only=True)
class Report:
    """One finding of a sanitizer; it never stops a run.

    Attributes
    ----------
    name: a key of KINDS.
    words: the words it is about: for a race the earlier one and the later one; none for an output.
    address, num_bytes: the first byte it is about, and how many there are.
    lane, element, station: where a NaN or an infinity arises.
    """

    name: str
    message: str
    words: tuple[Word, ...] = ()
    address: int | None = None
    num_bytes: int = 0
    lane: int | None = None
    element: int | None = None
    station: str | None = None

    def __str__(self) -> str:
        where = f"{self.words[-1].place}: " if self.words else ""
        return f"{where}{self.name}: {self.message}"
