"""What a rule is, the registry, and the two readers that run the same rule function.

A rule function reads fields of a review and calls `review.require` once for each condition. The
same function judges one word (`WordReview`: fields are integers, a false condition becomes a
finding) and a block of words (`BlockReview`: fields are numpy columns, conditions only clear bits
of the `clean` mask). So conditions use comparisons, `&`, `|` and the helpers of `predicates`, never
`and`, `or`, `not` or `if` on a field (but `if not review.any(truth): return`, where conditions hold
for all words that a truth leaves out); texts that need a field's value are callables, which only
a false condition calls.

`after` is the prerequisite of a condition: where it is false the condition stays quiet. A false
prerequisite is always itself a condition of some rule, so a word has no error exactly when every
condition of every rule holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from neuron_emu.errors import NeuronEmuError
from neuron_emu.generation import GENERATIONS, Generation
from neuron_emu.isa.diagnostics import ERROR, Finding
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.fields import column_of, field_text
from neuron_emu.isa.layout import spans_of
from neuron_emu.policy import Policy

__all__ = [
    "ALL_OPCODES",
    "RULES",
    "BlockReview",
    "Example",
    "Review",
    "Rule",
    "Text",
    "Truth",
    "WordReview",
    "rule",
    "rules_for",
]

Truth = Any
"""bool for one word, a numpy column of bool for a block."""
Text = str | Callable[[], str]
"""A text, or what makes it when it is needed."""

ALL_OPCODES = frozenset(range(256))
COMMON_OPCODES = 200
"""A rule of at least so many opcodes is about what every word has."""
DEFAULT_POLICY = Policy()


@frozen(kw_only=True)
class Example:
    """A word that a rule passes and one that it refuses, which differ in one field.

    The words are the standard word of `opcode` (see `examples.py`) with `given` written into it,
    then `good` or `bad` into `path`.
    """

    path: str
    good: int
    bad: int
    opcode: int | None = None
    given: Mapping[str, int] = field(factory=dict)
    generation: str = "mariana"
    engine: Engine | None = None
    policy: Policy = DEFAULT_POLICY


@frozen(kw_only=True, eq=False)
class Rule:
    """One conjunct of a validator.

    `names` are the header's names by generation, None for all others. `requires` are the codes
    whose findings keep conditions of this rule quiet. `page` is the text of `explain`.
    """

    code: str
    names: Mapping[str | None, str]
    opcodes: frozenset[int]
    generations: frozenset[str]
    source: str
    tag: str
    requires: tuple[str, ...]
    policy: tuple[str, ...]
    examples: tuple[Example, ...]
    page: str
    check: Callable[[Review], None]

    def name_on(self, generation: Generation) -> str:
        """Return the name of the conjunct on a generation."""
        return self.names.get(generation.name, self.names[None])


RULES: dict[str, Rule] = {}
"""Every rule by code, in the order in which findings are listed once the topics are imported."""


def rule(
    code: str,
    name: str,
    *,
    opcodes: Collection[int],
    source: str,
    tag: str,
    examples: tuple[Example, ...],
    names: Mapping[str, str] | None = None,
    generations: Collection[str] = tuple(GENERATIONS),
    requires: tuple[str, ...] = (),
    policy: tuple[str, ...] = (),
) -> Callable[[Callable[[Review], None]], Callable[[Review], None]]:
    """Register a rule function; its docstring is the page of the rule."""

    def register(check: Callable[[Review], None]) -> Callable[[Review], None]:
        if code in RULES:
            raise NeuronEmuError(f"rule code {code} must be used once")
        named: dict[str | None, str] = {None: name}
        named.update(names or {})
        RULES[code] = Rule(
            code=code,
            names=named,
            opcodes=frozenset(opcodes),
            generations=frozenset(generations),
            source=source,
            tag=tag,
            requires=requires,
            policy=policy,
            examples=examples,
            page=check.__doc__ or "",
            check=check,
        )
        return check

    return register


@cache
def rules_for(opcode: int, generation: str) -> tuple[Rule, ...]:
    """Return the rules of an opcode on a generation, in the order of their codes."""
    fitting = (r for r in RULES.values() if opcode in r.opcodes and generation in r.generations)
    return tuple(sorted(fitting, key=lambda r: r.code))


@cache
def _member_table(members: frozenset[int]) -> npt.NDArray[np.bool_]:
    table = np.zeros(256, dtype=bool)
    table[list(members)] = True
    return table


@define(eq=False)
class Review:
    """What a rule function sees; the two subclasses hold one word or many.

    `operands` keeps what `predicates.operand_of` derives from the fields of an operand.
    """

    opcode: int
    generation: Generation
    engine: Engine | None
    policy: Policy
    record: type[Any]
    rule: Rule | None = field(default=None, init=False)
    operands: dict[str, Any] = field(factory=dict, init=False)

    def __getitem__(self, path: str) -> Any:
        """Return a field of whole bytes: an integer, or a column."""
        raise NotImplementedError

    def is_zero(self, path: str) -> Truth:
        """Tell whether all bytes of a field are zero."""
        raise NotImplementedError

    def one_of(self, value: Any, members: frozenset[int]) -> Truth:
        """Tell whether a byte is one of `members`."""
        raise NotImplementedError

    def where(self, truth: Truth, chosen: Any, other: Any) -> Any:
        """Choose a value by a condition."""
        raise NotImplementedError

    def any(self, truth: Truth) -> bool:
        """Tell whether a truth holds for the word, or for some word of the block."""
        raise NotImplementedError

    def wide(self, value: Any) -> Any:
        """Return a number that does not overflow in products."""
        raise NotImplementedError

    def require(
        self,
        truth: Truth,
        field: Text,
        expected: Text,
        *,
        subject: str | None = None,
        context: Text = "",
        actual: Text | None = None,
        nearest: Text = "",
        leaf: str = "",
        after: Truth = True,
    ) -> Truth:
        """State one condition; a false one becomes the finding that `field` must be `expected`.

        `subject` names the field in the sentence, `context` follows what is expected, `nearest`
        is the nearest legal value, `leaf` the leaf predicate. Returns `truth`.
        """
        raise NotImplementedError


def _text(text: Text) -> str:
    return text if isinstance(text, str) else text()


@define(eq=False)
class WordReview(Review):
    """One word. Findings gather in `findings` while the rules run."""

    word: bytes = field(kw_only=True)
    findings: list[Finding] = field(factory=list, init=False)

    def __getitem__(self, path: str) -> int:
        column = column_of(self.record, path)
        data = self.word[column.offset : column.offset + column.dtype.itemsize]
        return int.from_bytes(data, "little", signed=column.dtype.kind == "i")

    def is_zero(self, path: str) -> bool:
        column = column_of(self.record, path)
        return not any(self.word[column.offset : column.offset + column.dtype.itemsize])

    def one_of(self, value: int, members: frozenset[int]) -> bool:
        return value in members

    def where(self, truth: Truth, chosen: Any, other: Any) -> Any:
        return chosen if truth else other

    def any(self, truth: Truth) -> bool:
        return bool(truth)

    def wide(self, value: Any) -> Any:
        return value

    def require(
        self,
        truth: Truth,
        field: Text,
        expected: Text,
        *,
        subject: str | None = None,
        context: Text = "",
        actual: Text | None = None,
        nearest: Text = "",
        leaf: str = "",
        after: Truth = True,
    ) -> Truth:
        if truth or not after:
            return truth
        path = _text(field)
        holds = field_text(self.word, self.record, path) if actual is None else _text(actual)
        legal, extra, best = _text(expected), _text(context), _text(nearest)
        sentence = f"{subject or path} must be {legal}{extra and ' ' + extra}, not {holds}"
        self._add(
            path,
            actual=holds,
            expected=f"{legal}; nearest: {best}" if best else legal,
            message=f"{sentence} ({leaf})" if leaf else sentence,
        )
        return truth

    def _add(self, path: str, *, actual: str, expected: str, message: str) -> None:
        if self.rule is None:
            raise NeuronEmuError("a condition must belong to a rule")
        span = spans_of(self.record)[path]
        self.findings.append(
            Finding(
                code=self.rule.code,
                name=self.rule.name_on(self.generation),
                severity=ERROR,
                field=path,
                span=(span.first_byte, span.last_byte),
                bits=span.bits,
                actual=actual,
                expected=expected,
                message=message,
                opcode=self.word[0],
                generation=self.generation.name,
            )
        )


@define(eq=False)
class BlockReview(Review):
    """Many words of one opcode, shape (words, 64) uint8 and C-contiguous.

    `clean` tells for each word whether every condition held so far.
    """

    words: npt.NDArray[np.uint8] = field(kw_only=True)
    clean: npt.NDArray[np.bool_] = field(init=False)
    _columns: dict[str, Any] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.clean = np.ones(len(self.words), dtype=bool)

    def __getitem__(self, path: str) -> Any:
        known = self._columns.get(path)
        if known is None:
            known = self._columns[path] = self._view(path).copy()
        return known

    def _view(self, path: str) -> npt.NDArray[Any]:
        column = column_of(self.record, path)
        inner = column.dtype.subdtype
        shape = (len(self.words), *(inner[1] if inner else ()))
        strides = (self.words.strides[0], *((column.dtype.base.itemsize,) if inner else ()))
        return np.ndarray(
            shape, column.dtype.base, self.words.data, offset=column.offset, strides=strides
        )

    def is_zero(self, path: str) -> Truth:
        view = self._view(path)
        return view == 0 if view.ndim == 1 else ~view.any(axis=1)

    def one_of(self, value: Any, members: frozenset[int]) -> Truth:
        return _member_table(members)[value]

    def where(self, truth: Truth, chosen: Any, other: Any) -> Any:
        return np.where(truth, chosen, other)

    def any(self, truth: Truth) -> bool:
        return bool(np.any(truth))

    def wide(self, value: Any) -> Any:
        return value.astype(np.uint64)

    def require(
        self,
        truth: Truth,
        field: Text,
        expected: Text,
        *,
        subject: str | None = None,
        context: Text = "",
        actual: Text | None = None,
        nearest: Text = "",
        leaf: str = "",
        after: Truth = True,
    ) -> Truth:
        self.clean &= truth
        return truth
