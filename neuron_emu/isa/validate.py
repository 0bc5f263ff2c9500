"""Is this word legal, on which generation, and if not, which field breaks which rule."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from attrs import define, field

from neuron_emu.errors import InputError
from neuron_emu.generation import MARIANA, Generation, generation_named
from neuron_emu.isa.codec import encode, record_type_of
from neuron_emu.isa.diagnostics import Finding
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.isa.rules import Rule, rules_for
from neuron_emu.isa.rules.core import WordReview
from neuron_emu.policy import Policy

__all__ = ["Judge", "findings_of_word", "judge_of", "validate"]

DEFAULT_POLICY = Policy()
SEEN_LIMIT = 65536
"""Words that a judge remembers; then it starts over."""
JUDGE_LIMIT = 64
_JUDGES: dict[tuple[int, Engine | None, int], Judge] = {}
"""Judges by the identity of their parts, which a judge keeps alive."""


@define(eq=False)
class Judge:
    """Judges words for one generation, engine and policy, and remembers what it has seen.

    This is the machine's door: a word that was seen costs one dictionary look-up.
    """

    generation: Generation
    engine: Engine | None = None
    policy: Policy = DEFAULT_POLICY
    _seen: dict[bytes, tuple[Finding, ...]] = field(factory=dict, init=False)

    def findings(self, word: bytes) -> tuple[Finding, ...]:
        """Return the findings of a word of 64 bytes, by code; never raises for any bytes."""
        found = self._seen.get(word)
        if found is None:
            found = self.findings_as(word, word[0])
            if len(self._seen) >= SEEN_LIMIT:
                self._seen.clear()
            self._seen[bytes(word)] = found
        return found

    def findings_as(self, word: bytes, opcode: int) -> tuple[Finding, ...]:
        """Return the findings of the validator of `opcode` about a word of any opcode."""
        review = WordReview(
            opcode, self.generation, self.engine, self.policy, record_type_of(opcode), word=word
        )
        rules = rules_for(opcode, self.generation.name)
        pending = {rule.code: rule for rule in rules}
        quiet: set[str] = set()
        for rule in rules:
            _run(rule, review, pending, quiet)
        return tuple(sorted(review.findings, key=lambda f: f.code))


def _run(rule: Rule, review: WordReview, pending: dict[str, Rule], quiet: set[str]) -> None:
    """Run a rule after its prerequisites; it stays quiet when one of them failed or was quiet."""
    if pending.pop(rule.code, None) is None:
        return
    for code in rule.requires:
        if code in pending:
            _run(pending[code], review, pending, quiet)
    if quiet.intersection(rule.requires):
        quiet.add(rule.code)
        return
    before = len(review.findings)
    review.rule = rule
    rule.check(review)
    if len(review.findings) > before:
        quiet.add(rule.code)


def judge_of(
    generation: Generation = MARIANA, engine: Engine | None = None, policy: Policy = DEFAULT_POLICY
) -> Judge:
    """Return the judge of a generation, engine and policy; the same objects give the same one."""
    key = (id(generation), engine, id(policy))
    judge = _JUDGES.get(key)
    if judge is None:
        if len(_JUDGES) >= JUDGE_LIMIT:
            _JUDGES.clear()
        judge = _JUDGES[key] = Judge(generation, engine, policy)
    return judge


def findings_of_word(
    word: bytes,
    generation: Generation = MARIANA,
    engine: Engine | None = None,
    policy: Policy = DEFAULT_POLICY,
) -> tuple[Finding, ...]:
    """Return the findings of one 64-byte word; InputError when it has another length.

    Any 64 bytes are judged without an exception. Without an engine, engines are not checked.

    >>> word = bytes.fromhex("a4100000") + bytes(59) + b"\x01"
    >>> [f.message for f in findings_of_word(word)]
    ['reserved2 must be zero in NOP, not 0x0000000000000000000000000000000000000001']
    """
    if len(word) != WORD_BYTES:
        raise InputError(f"a word must be {WORD_BYTES} bytes, not {len(word)}")
    return judge_of(generation, engine, policy).findings(word)


def validate(
    program: Program | bytes | Any,
    generation: Generation | str = MARIANA,
    *,
    engine: Engine | None = None,
    policy: Policy = DEFAULT_POLICY,
    allow: Collection[str] = (),
) -> list[Finding]:
    """Judge a word of 64 bytes, a decoded record, or every word of a program, on a generation.

    The findings of a program carry their place, each stream is judged for its engine, and rules
    across words add warnings; `allow` names those to leave out. Raises InputError for bytes of
    another length and for an unknown name.
    """
    if isinstance(generation, str):
        generation = generation_named(generation)
    if isinstance(program, Program):
        # The pass over streams stands on this module.
        from neuron_emu.isa.stream_pass import allowed_names, findings_of_stream

        allowed = allowed_names(allow)
        return [
            finding
            for stream in program.streams
            for finding in findings_of_stream(
                stream, Judge(generation, stream.engine, policy), allowed
            )
        ]
    if isinstance(program, (bytes, bytearray, memoryview)):
        return list(findings_of_word(bytes(program), generation, engine, policy))
    return list(findings_of_word(encode(program), generation, engine, policy))
