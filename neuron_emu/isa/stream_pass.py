"""A whole stream in one pass: errors of each word and warnings across words, in bounded memory."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Collection, Iterable, Iterator

import numpy as np
import numpy.typing as npt
from attrs import define, field

from neuron_emu.errors import InputError
from neuron_emu.isa.bulk import BLOCK_WORDS, BlockJudge
from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.diagnostics import Finding
from neuron_emu.isa.families.control import ACTIVATION_TABLE_LOAD, HALT, PSEUDO_INST, PseudoKind
from neuron_emu.isa.layout import spans_of
from neuron_emu.isa.program import Stream
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.isa.rules.stream import (
    ACCUMULATING,
    COMMAND_PATHS,
    DRAINS,
    STREAM_RULES,
    TABLE_DEPENDENT,
    Fact,
    StreamRule,
)
from neuron_emu.isa.validate import Judge

__all__ = ["allowed_names", "findings_of_stream"]

_SELECT_PATHS = {
    **dict.fromkeys((0x21, 0x22, 0x25, 0x26), "activation_func"),
    ACTIVATION_TABLE_LOAD: "act_tbl_sel",
    PSEUDO_INST: "kind",
}
_LOAD_ACCUMULATE = 4
_TELLING = ACCUMULATING | DRAINS | TABLE_DEPENDENT | {ACTIVATION_TABLE_LOAD, PSEUDO_INST, HALT}


def _offsets(paths: dict[int, str]) -> npt.NDArray[np.intp]:
    """Return by opcode the byte of a field; the opcode's own byte where there is none."""
    table = np.zeros(256, dtype=np.intp)
    for opcode, path in paths.items():
        span = spans_of(record_type_of(opcode)).get(path)
        table[opcode] = span.first_byte if span is not None else 0
    return table


_COMMAND_AT = _offsets(COMMAND_PATHS)
_SELECT_AT = _offsets(_SELECT_PATHS)
_IS_TELLING = np.isin(np.arange(256), list(_TELLING))


def allowed_names(names: Iterable[str]) -> frozenset[str]:
    """Read names or codes of stream rules; InputError naming what exists for any other."""
    known = {rule.name: rule.name for rule in STREAM_RULES}
    known |= {rule.code: rule.name for rule in STREAM_RULES}
    allowed = set()
    for name in names:
        found = known.get(name.replace("-", "_"))
        if found is None:
            accepted = ", ".join(rule.name for rule in STREAM_RULES)
            raise InputError(f"allow must name a stream rule ({accepted}), not {name!r}")
        allowed.add(found)
    return frozenset(allowed)


@define(eq=False)
class _Pass:
    """Where a pass over one stream stands."""

    stream: Stream
    rules: list[StreamRule]
    zeros: int
    """All-zero words at the end."""
    has_ended: bool = field(default=False, init=False)
    """EXIT or HALT has been seen."""
    last_key: int = field(default=-1, init=False)
    shown: dict[int, list[StreamRule]] = field(factory=dict, init=False)
    """The rules by the opcodes that they see."""

    def __attrs_post_init__(self) -> None:
        for opcode in _TELLING:
            self.shown[opcode] = [rule for rule in self.rules if opcode in rule.sees]

    def see_block(
        self, first: int, words: npt.NDArray[np.uint8], legal: npt.NDArray[np.bool_]
    ) -> Iterator[Finding]:
        """Show the rules the telling words of a block, without immediate repetitions."""
        chosen = np.flatnonzero(_IS_TELLING[words[:, 0]] & legal)
        if not len(chosen):
            return
        opcodes = words[chosen, 0].astype(np.int64)
        commands = words[chosen, _COMMAND_AT[opcodes]].astype(np.int64)
        selects = words[chosen, _SELECT_AT[opcodes]].astype(np.int64)
        keys = opcodes << 16 | commands << 8 | selects
        changes = np.diff(keys, prepend=self.last_key) != 0
        changes |= commands == _LOAD_ACCUMULATE
        self.last_key = int(keys[-1])
        ends = (opcodes == HALT) | ((opcodes == PSEUDO_INST) & (selects == PseudoKind.EXIT))
        self.has_ended = self.has_ended or bool(ends.any())
        for number in np.flatnonzero(changes).tolist():
            at, opcode = int(chosen[number]), int(opcodes[number])
            rules = self.shown[opcode]
            if not rules:
                continue
            select, word = int(selects[number]), words[at].tobytes()
            fact = Fact(first + at, opcode, int(commands[number]), select, word)
            for rule in rules:
                found = rule.see(fact)
                if found is not None:
                    yield found

    def finish(self) -> Iterator[Finding]:
        """Show the rules the end of the stream."""
        total = len(self.stream)
        last = self.stream[total - 1]
        for rule in self.rules:
            found = rule.end(total, self.zeros, last)
            if found is not None:
                yield found


def findings_of_stream(
    stream: Stream,
    judge: Judge,
    allowed: Collection[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Iterator[Finding]:
    """Yield the findings of a stream, block by block in the order of the words.

    Errors are those of `judge` about each word alone. All-zero words behind EXIT or HALT are
    padding and no errors. `allowed` are stream rules to leave out, see `allowed_names`.
    """
    block_judge = BlockJudge(judge.generation, judge.engine, judge.policy)
    rules = [
        rule(judge.engine or stream.engine, judge.generation.name)
        for rule in STREAM_RULES
        if rule.name not in allowed
    ]
    state = _Pass(stream, rules, _zeros_at_end(stream.data))
    for first in range(0, len(stream), BLOCK_WORDS):
        block = stream.data[first * WORD_BYTES : (first + BLOCK_WORDS) * WORD_BYTES]
        words = np.frombuffer(block, dtype=np.uint8).reshape(-1, WORD_BYTES)
        legal = block_judge.clean(words).copy()
        warnings = list(state.see_block(first, words, legal))
        errors = _errors_of_block(judge, state, first, block, legal)
        yield from _in_order(stream, errors, warnings)
        if progress is not None:
            progress(len(words))
    yield from _in_order(stream, iter(()), sorted(state.finish(), key=lambda f: f.index or 0))


def _errors_of_block(
    judge: Judge, state: _Pass, first: int, block: bytes, legal: npt.NDArray[np.bool_]
) -> Iterator[Finding]:
    padding = len(state.stream) - state.zeros if state.has_ended else len(state.stream)
    for number in np.flatnonzero(~legal):
        index = first + int(number)
        if index >= padding:
            return
        at = int(number) * WORD_BYTES
        for finding in judge.findings(block[at : at + WORD_BYTES]):
            yield _placed(finding, state.stream, index)


def _placed(finding: Finding, stream: Stream, index: int) -> Finding:
    return finding.at(stream.name, stream.engine, index, index * WORD_BYTES)


def _in_order(
    stream: Stream, errors: Iterator[Finding], warnings: list[Finding]
) -> Iterator[Finding]:
    """Merge the findings of one block by index; the errors come in order."""
    waiting = [_placed(w, stream, w.index or 0) for w in reversed(warnings)]
    for error in errors:
        while waiting and (waiting[-1].index or 0) <= (error.index or 0):
            yield waiting.pop()
        yield error
    yield from reversed(waiting)


def _zeros_at_end(data: bytes | mmap.mmap) -> int:
    """Count the all-zero words at the end of a stream, block by block from behind."""
    total = len(data) // WORD_BYTES
    count = 0
    for last in range(total, 0, -BLOCK_WORDS):
        block = data[max(last - BLOCK_WORDS, 0) * WORD_BYTES : last * WORD_BYTES]
        lanes = np.frombuffer(block, dtype=np.uint64).reshape(-1, WORD_BYTES // 8)
        filled = np.flatnonzero(np.bitwise_or.reduce(lanes, axis=1))
        if len(filled):
            return count + len(lanes) - 1 - int(filled[-1])
        count += len(lanes)
    return count
