"""What the debugger returns: plain frozen records, and `plain`, which turns them into JSON values.

Nothing here prints. `text.py` renders these records for people, `plain` for programs.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from neuron_emu.isa.diagnostics import Finding
from neuron_emu.isa.enums import DType, Engine

__all__ = [
    "AccumulatorLanes",
    "AnnotatedField",
    "CamEntry",
    "Change",
    "Difference",
    "EngineStatus",
    "Explanation",
    "ListedWord",
    "Listing",
    "Outcome",
    "Place",
    "PointStatus",
    "RegisterValue",
    "SemaphoreValue",
    "Station",
    "Stop",
    "StopReason",
    "TableStatus",
    "Tile",
    "Untouched",
    "Why",
    "WordSummary",
    "Writer",
    "plain",
]


@frozen
class Place:
    """A word of a stream: its engine and index, and its text."""

    engine: Engine
    index: int
    text: str
    label: str | None = None

    def __str__(self) -> str:
        return f"{self.engine.name.lower()}[{self.index}]"


class StopReason:
    """Why the machine stopped, as the words that are printed and sent."""

    STEP = "step"
    BREAKPOINT = "breakpoint"
    WATCHPOINT = "watchpoint"
    NONFINITE = "nonfinite"
    UNINITIALISED = "uninitialised"
    FINDING = "finding"
    REFERENCE = "reference"
    FAULT = "fault"
    LIMIT = "limit"
    END = "end"
    START = "start"
    INTERRUPT = "interrupt"
    GOTO = "goto"


@frozen(kw_only=True)
class Stop:
    """Where the machine stands and why.

    Attributes
    ----------
    reason: one of the words of StopReason.
    step: words executed since the start.
    place: the word that would execute next; None when every stream has ended or waits.
    message: one sentence about the reason, empty after a plain step.
    ids: numbers of the breakpoints and watchpoints that stopped it.
    detail: plain values of the reason (old and new value, address, element).
    """

    reason: str
    step: int
    place: Place | None
    message: str = ""
    ids: tuple[int, ...] = ()
    detail: dict[str, Any] = field(factory=dict)


@frozen
class RegisterValue:
    """One register of an engine."""

    engine: Engine
    number: int
    value: int


@frozen
class SemaphoreValue:
    """One semaphore (`S`) or event (`E`) and who waits for it at this moment."""

    kind: str
    number: int
    value: int
    waiters: tuple[Place, ...] = ()


@frozen(eq=False)
class AccumulatorLanes:
    """The accumulator of an engine: float32 [lanes] and which of them are undefined."""

    engine: Engine
    values: npt.NDArray[np.float32]
    undefined: npt.NDArray[np.bool_]


@frozen
class TableStatus:
    """The function set that an engine holds, None for none, and the functions of the set."""

    engine: Engine
    set: str | None
    index: int | None
    functions: tuple[str, ...]


@frozen
class CamEntry:
    """One armed opcode of the DVE's PROF_CAM and its slot, None where it is unpublished."""

    opcode: int
    name: str
    slot: int | None


@frozen
class EngineStatus:
    """One engine with a stream: how far it is and what holds it up."""

    engine: Engine
    position: int
    length: int
    stream: str
    state: str
    next_text: str | None
    is_next: bool


@frozen(eq=False)
class Tile:
    """Memory as typed elements, [lanes, elements] in stream order.

    Attributes
    ----------
    what: the text of the region.
    shape: the shape people asked for, lanes first, inner index last.
    values: float32, or integers as themselves.
    bits: the same elements as unsigned bits.
    written: per element, whether every byte was ever written.
    """

    what: str
    dtype: DType
    shape: tuple[int, ...]
    values: npt.NDArray[Any]
    bits: npt.NDArray[Any]
    written: npt.NDArray[np.bool_]


@frozen
class AnnotatedField:
    """One field of a word: path, bytes of the word, hex of them, and what they say."""

    path: str
    first_byte: int
    last_byte: int
    hex: str
    text: str
    doc: str


@frozen
class ListedWord:
    """One line of a listing."""

    engine: Engine
    index: int
    offset: int
    text: str
    hex: str
    is_current: bool
    label: str | None
    breakpoints: tuple[int, ...]


@frozen
class PointStatus:
    """A breakpoint, watchpoint or catchpoint as it stands."""

    number: int
    kind: str
    text: str
    condition: str | None
    enabled: bool
    temporary: bool
    ignore: int
    hits: int


@frozen
class Outcome:
    """What a command did that has no record of its own: one sentence."""

    message: str


@frozen
class WordSummary:
    """A word that ran and what it changed."""

    step: int
    place: Place
    changed: tuple[str, ...]


@frozen
class Listing:
    """The words around a place, and the bytes of the word there, at `index`, with their meaning."""

    index: int
    words: tuple[ListedWord, ...]
    fields: tuple[AnnotatedField, ...]


@frozen
class Writer:
    """A word that wrote a byte, and where the byte stood in its operand.

    Attributes
    ----------
    step: words that had run before it.
    element, lane, byte: position in the destination; -1 for an accumulator.
    what: the space and partition, or the accumulator lane, that was written.
    sources: what the element was made from, each with its own last writer.
    group: the elements of the source that this word wrote, such as `0-1, 3`, where there were
        several; `element`, `what` and `address` are those of the first.
    elements: where they stood in the destination, likewise.
    """

    step: int
    place: Place
    what: str
    element: int
    lane: int
    byte: int
    address: int | None
    role: str = ""
    sources: tuple[Writer | Untouched, ...] = ()
    group: str = ""
    elements: str = ""


@frozen
class Untouched:
    """A source that no recorded word wrote: loaded before the run, or never written.

    `group` names the elements of the source for which that holds, where there were several.
    """

    role: str
    what: str
    address: int | None
    note: str
    group: str = ""


@frozen(kw_only=True)
class Station:
    """One station on the way of an element.

    Attributes
    ----------
    name: input, affine, cam, control, bucket, cubic, result, convert, accumulator and the like.
    detail: plain values, floats as bits in hexadecimal text.
    value: the float32 that leaves the station, None where none does.
    loss_ulp: its distance from the exact result of this station alone, in float32 ULP (in ULP of
        the output dtype for `convert`); None where nothing is lost by definition.
    """

    name: str
    detail: dict[str, Any]
    value: float | None = None
    loss_ulp: float | None = None


@frozen(kw_only=True)
class Why:
    """How one element came to its bits.

    Attributes
    ----------
    writer: the word, element and lane.
    stations: every station on the way, in order.
    bits: what the stations give, as an integer.
    stored: what the word wrote, read from the memory after it.
    agrees: both are equal to the bit.
    exact: the exact value in decimal, and from what it was worked out.
    total_ulp: distance of the stored value from the exact one in ULP of the output dtype.
    note: what the reader should know, empty mostly.
    """

    writer: Writer
    stations: tuple[Station, ...]
    bits: int
    stored: int
    agrees: bool
    dtype: str
    value: float
    exact: str | None = None
    total_ulp: float | None = None
    note: str = ""


@frozen
class Change:
    """One thing that differs between two moments: what, and its text before and after."""

    what: str
    before: str
    after: str


@frozen
class Difference:
    """The changes between two steps; `asked` words were to be compared, there may be fewer."""

    from_step: int
    to_step: int
    changes: tuple[Change, ...]
    asked: int = 0


@frozen
class Explanation:
    """A word in full: text, fields, rules that judge it, findings, errors on each generation."""

    place: Place
    opcode: int
    name: str
    engines: tuple[str, ...]
    fields: tuple[AnnotatedField, ...]
    rules: tuple[str, ...]
    findings: tuple[Finding, ...]
    generations: dict[str, tuple[str, ...]]


def plain(value: Any) -> Any:
    """Turn a record into JSON values: enums by name, arrays as lists, bytes as hex.

    NaN and infinities, which JSON lacks, become text.
    """
    if isinstance(value, IntEnum):
        return value.name.lower()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Finding):
        return value.as_dict()
    if attrs.has(type(value)):
        members = attrs.fields(type(value))
        return {a.name.lstrip("_"): plain(getattr(value, a.name)) for a in members}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)
