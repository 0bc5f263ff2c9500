"""What the validator says: one frozen finding per broken rule and word.

The keys and their meaning are the contract of design.md 4.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from neuron_emu.isa.enums import Engine

__all__ = ["ERROR", "NOTE", "WARNING", "Finding"]

ERROR = "error"
WARNING = "warning"
NOTE = "note"


@frozen(kw_only=True)
class Finding:
    """One rule that a word breaks.

    Attributes
    ----------
    code: stable identifier, e.g. NE0107; `explain` prints its page.
    name: the header's name of the conjunct, or a plain one where no header names the rule.
    severity: ERROR, WARNING or NOTE.
    field: dotted path as in `layout.spans_of`, e.g. `src.start.partition_offset`.
    span: first and last byte of the field in the word.
    bits: lowest and highest bit within the span, None when the field is whole bytes.
    actual: what the field holds, in its own words.
    expected: what would be legal, with the nearest legal value where there is one.
    message: one sentence, "X must be Y, not Z".
    generation: name of the generation that the word was judged for.
    file, engine, index, offset: where the word stands; None while a word is judged alone.
        `offset` is in bytes from the start of the stream.
    """

    code: str
    name: str
    severity: str
    field: str
    span: tuple[int, int]
    bits: tuple[int, int] | None
    actual: str
    expected: str
    message: str
    opcode: int
    generation: str
    file: str | None = None
    engine: Engine | None = None
    index: int | None = None
    offset: int | None = None

    def at(self, file: str, engine: Engine, index: int, offset: int) -> Finding:
        """Return the finding with its place in a stream."""
        return evolve(self, file=file, engine=engine, index=index, offset=offset)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract, keys in its order."""
        return {
            "file": self.file,
            "engine": None if self.engine is None else self.engine.name.lower(),
            "index": self.index,
            "offset": self.offset,
            "opcode": self.opcode,
            "generation": self.generation,
            "code": self.code,
            "name": self.name,
            "severity": self.severity,
            "field": self.field,
            "span": list(self.span),
            "bits": None if self.bits is None else list(self.bits),
            "actual": self.actual,
            "expected": self.expected,
            "message": self.message,
        }
