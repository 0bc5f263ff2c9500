"""Rules beyond one word. All are warnings; each can be left out by its name.

A rule is a small state machine that sees the telling words of one engine's stream in order (see
`isa.stream_pass`): those that move the accumulator, load or need a function set, or end the
program. Words with an error are not seen, since they do not execute.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from attrs import define, field

from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.diagnostics import WARNING, Finding
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.families.control import ACTIVATION_TABLE_LOAD, PSEUDO_INST, PseudoKind
from neuron_emu.isa.families.tensor_scalar import EXPONENTIAL
from neuron_emu.isa.fields import field_text
from neuron_emu.isa.layout import spans_of
from neuron_emu.isa.opcodes import opcode_name

__all__ = [
    "ACCUMULATING",
    "COMMAND_PATHS",
    "STREAM_RULES",
    "TABLE_DEPENDENT",
    "Fact",
    "StreamRule",
]

COMMAND_PATHS = {
    **dict.fromkeys((0x30, 0x9A, 0xE6, 0xEA, 0x21), "accumulator_cmd"),
    **dict.fromkeys((0xBC, 0x25, 0x26), "reduce_cmd"),
}
"""Where the words that use an accumulator keep their command."""
ACCUMULATING = frozenset(COMMAND_PATHS)
DRAINS = frozenset((0x9B, 0x24))
IDLE_CLOBBERS = frozenset((0x30, 0xEA, 0xBC))
"""DVE words whose IDLE leaves the accumulator undefined (dve-tensor-scalar.md 7)."""
TABLE_DEPENDENT = frozenset((EXPONENTIAL, 0x21, 0x22, 0x25, 0x26))
HARDWIRED_FUNCTIONS = frozenset((1, 2, 3, 4, 30, 31, 33, 35, 128, 130))
"""Functions that are resident in every set (activation-tables.md 4, kind H)."""
SETS_WITH_EXP = frozenset((0, 6))
"""exp_and_others and natural_log_exp_and_others (activation-tables.md 5)."""
MOST_SETS = 8
"""Function sets that a kernel may use (activation-tables.md 5 [observed])."""


class Fact(NamedTuple):
    """What a stream rule sees of a word; `select` is its set, function or kind, by opcode."""

    position: int
    opcode: int
    command: int
    select: int
    word: bytes


@define(eq=False)
class StreamRule:
    """One rule in the state that it has reached in a stream.

    The class attributes are its identity and page; `sees` are the opcodes that it is shown, `good`
    and `bad` are listings, and `bad_index` is where the finding stands in the bad one.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    source: ClassVar[str]
    tag: ClassVar[str]
    sees: ClassVar[frozenset[int]] = frozenset()
    good: ClassVar[str]
    bad: ClassVar[str]
    bad_index: ClassVar[int]
    engine: Engine
    generation: str

    def see(self, fact: Fact) -> Finding | None:
        """Look at the next telling word."""
        return None

    def end(self, total: int, zeros: int, last: bytes) -> Finding | None:
        """Look at the end: words in all, all-zero words at the end, the last word."""
        return None

    def warn(self, fact: Fact, path: str, expected: str, message: str) -> Finding:
        """Make the finding about a field of a word."""
        record = record_type_of(fact.opcode)
        span = spans_of(record)[path]
        return Finding(
            code=self.code,
            name=self.name,
            severity=WARNING,
            field=path,
            span=(span.first_byte, span.last_byte),
            bits=span.bits,
            actual=field_text(fact.word, record, path),
            expected=expected,
            message=message,
            opcode=fact.opcode,
            generation=self.generation,
            index=fact.position,
        )


_EXP = "EXPONENTIAL src=fp32@0x1000[1,1,1][8,1,1] dst=fp32@0x2000[1,1,1][8,1,1] channels=128"
_LOAD = "ACT_TABLE_LOAD table_sel=0"
_DRAIN = "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=128"
_EXIT = "PSEUDO_INST kind=EXIT"


@define(eq=False)
class UndefinedAccumulator(StreamRule):
    """An accumulator must be defined before it is used.

    It is undefined at the start and after an IDLE word of the accumulating DVE opcodes;
    ZERO_ACCUMULATE and LOAD_ACCUMULATE define it. ACCUMULATE and the accumulator reads use it. The
    emulator keeps a value beside a flag, but no value read here is to be relied on.
    Told once, at the first use.
    """

    code = "NE0901"
    name = "undefined_accumulator"
    source = "dve-tensor-scalar.md 7; activation-tables.md 3.3"
    tag = "observed; power-on state unknown"
    good = f"{_LOAD}\n{_EXP} accumulator_cmd=ZERO_ACCUMULATE\n{_DRAIN}"
    bad = f"{_LOAD}\n{_EXP} accumulator_cmd=ACCUMULATE\n{_DRAIN}"
    bad_index = 1
    sees = ACCUMULATING | DRAINS
    why: str | None = field(default="no word has defined it", init=False)

    def see(self, fact: Fact) -> Finding | None:
        if fact.opcode in DRAINS:
            return self._use(fact, "header.opcode")
        if fact.command == 2:
            return self._use(fact, COMMAND_PATHS[fact.opcode])
        if fact.command:
            self.why = None
        elif fact.opcode in IDLE_CLOBBERS:
            self.why = f"the IDLE word {fact.position} has left it so"
        return None

    def _use(self, fact: Fact, path: str) -> Finding | None:
        if self.why is None:
            return None
        verb = "reads" if fact.opcode in DRAINS else "adds to"
        name = opcode_name(fact.opcode)
        message = f"{name} {verb} an accumulator that is undefined: {self.why}"
        self.why = None
        expected = "a use after ZERO_ACCUMULATE or LOAD_ACCUMULATE"
        return self.warn(fact, path, expected, message)


@define(eq=False)
class UndrainedAccumulator(StreamRule):
    """What LOAD_ACCUMULATE seeds must be read before it is lost.

    The next word that defines or clobbers the accumulator, or the end of the stream, loses it.
    """

    code = "NE0902"
    name = "undrained_accumulator"
    source = "dve-tensor-scalar.md 7, 7.1"
    tag = "inferred"
    good = f"{_LOAD}\n{_EXP} accumulator_cmd=LOAD_ACCUMULATE reduce_init=fp32@1.0\n{_DRAIN}"
    bad = f"{_LOAD}\n{_EXP} accumulator_cmd=LOAD_ACCUMULATE reduce_init=fp32@1.0"
    bad_index = 1
    sees = ACCUMULATING | DRAINS
    pending: Fact | None = field(default=None, init=False)

    def see(self, fact: Fact) -> Finding | None:
        if fact.opcode in DRAINS:
            self.pending = None
            return None
        if not self._loses(fact):
            return None
        found = self._lost(f"word {fact.position} overwrites it")
        self.pending = fact if fact.command == 4 else None
        return found

    @staticmethod
    def _loses(fact: Fact) -> bool:
        return fact.command in (1, 3, 4) or (fact.command == 0 and fact.opcode in IDLE_CLOBBERS)

    def end(self, total: int, zeros: int, last: bytes) -> Finding | None:
        return self._lost("the stream ends")

    def _lost(self, how: str) -> Finding | None:
        if self.pending is None:
            return None
        message = f"the accumulator that LOAD_ACCUMULATE seeds is never read: {how}"
        path = COMMAND_PATHS[self.pending.opcode]
        return self.warn(self.pending, path, "a DVE_READ_ACCUMULATOR after it", message)


@define(eq=False)
class NoTableLoaded(StreamRule):
    """A word that evaluates a function needs a function set, so the stream should load one.

    Without ACTIVATION_TABLE_LOAD the result depends on what is resident. The emulator then takes
    the lowest set that holds the function (policy `tables`). Told once, at the first such word.
    """

    code = "NE0903"
    name = "no_table_loaded"
    source = "activation-tables.md 5, 9"
    tag = "inferred"
    good = f"{_LOAD}\n{_EXP}"
    bad = _EXP
    bad_index = 0
    sees = TABLE_DEPENDENT | {ACTIVATION_TABLE_LOAD}
    is_told: bool = field(default=False, init=False)

    def see(self, fact: Fact) -> Finding | None:
        if self.is_told:
            return None
        if fact.opcode == ACTIVATION_TABLE_LOAD:
            self.is_told = True
        elif _needs_table(fact):
            self.is_told = True
            name = opcode_name(fact.opcode)
            message = f"{name} needs a function set, and no word before it loads one"
            return self.warn(fact, "header.opcode", "an ACT_TABLE_LOAD before it", message)
        return None


def _needs_table(fact: Fact) -> bool:
    if fact.opcode == EXPONENTIAL:
        return True
    return fact.opcode in TABLE_DEPENDENT and fact.select not in HARDWIRED_FUNCTIONS


@define(eq=False)
class TooManySets(StreamRule):
    """A kernel should use at most 8 function sets."""

    code = "NE0904"
    name = "too_many_sets"
    source = "activation-tables.md 5"
    tag = "observed"
    good = "\n".join(f"ACT_TABLE_LOAD table_sel={n}" for n in (*range(8), 0))
    bad = "\n".join(f"ACT_TABLE_LOAD table_sel={n}" for n in range(9))
    bad_index = 8
    sees = frozenset((ACTIVATION_TABLE_LOAD,))
    sets: set[int] = field(factory=set, init=False)

    def see(self, fact: Fact) -> Finding | None:
        if len(self.sets) > MOST_SETS:
            return None
        self.sets.add(fact.select)
        if len(self.sets) <= MOST_SETS:
            return None
        message = f"set {fact.select} is the ninth set of the stream; a kernel may use 8"
        return self.warn(fact, "act_tbl_sel", "at most 8 different sets", message)


@define(eq=False)
class SetWithoutExp(StreamRule):
    """EXPONENTIAL needs a resident set that holds exp: 0 or 6 of the roster.

    A resident set without the function is a fault when the word executes. Told once a load.
    """

    code = "NE0905"
    name = "set_without_exp"
    source = "activation-tables.md 5"
    tag = "observed"
    good = f"ACT_TABLE_LOAD table_sel=6\n{_EXP}"
    bad = f"ACT_TABLE_LOAD table_sel=5\n{_EXP}"
    bad_index = 1
    sees = frozenset((ACTIVATION_TABLE_LOAD, EXPONENTIAL))
    load: Fact | None = field(default=None, init=False)

    def see(self, fact: Fact) -> Finding | None:
        if fact.opcode == ACTIVATION_TABLE_LOAD:
            self.load = None if fact.select in SETS_WITH_EXP else fact
            return None
        if self.load is None:
            return None
        message = (
            f"EXPONENTIAL needs exp, which set {self.load.select} (loaded at word"
            f" {self.load.position}) does not hold; sets 0 and 6 do"
        )
        self.load = None
        return self.warn(fact, "header.opcode", "set 0 or 6 loaded", message)


@define(eq=False)
class WordsAfterExit(StreamRule):
    """Nothing after EXIT executes, so a stream should end there; zero padding is NE0907."""

    code = "NE0906"
    name = "words_after_exit"
    source = "isa-encoding.md 10"
    tag = "observed"
    good = f"NOP\n{_EXIT}"
    bad = f"{_EXIT}\nNOP"
    bad_index = 0
    sees = frozenset((PSEUDO_INST,))
    exit: Fact | None = field(default=None, init=False)

    def see(self, fact: Fact) -> Finding | None:
        if self.exit is None and fact.select == PseudoKind.EXIT:
            self.exit = fact
        return None

    def end(self, total: int, zeros: int, last: bytes) -> Finding | None:
        if self.exit is None or total - zeros - self.exit.position < 2:
            return None
        count = total - zeros - self.exit.position - 1
        message = f"{count} word{'s' * (count > 1)} after EXIT will never execute"
        return self.warn(self.exit, "kind", "EXIT in the last word", message)


@define(eq=False)
class ZeroPadding(StreamRule):
    """All-zero words at the end are padding, not instructions.

    Behind EXIT or HALT they never execute and this warning is all that is said of them. Elsewhere
    an engine would meet them, and each is an error too (opcode 0 is in no enum).
    """

    code = "NE0907"
    name = "zero_padding"
    source = "isa-encoding.md 10"
    tag = "inferred"
    good = f"NOP\n{_EXIT}"
    bad = f"NOP\n{_EXIT}\n.word {'00' * 64}\n.word {'00' * 64}"
    bad_index = 2

    def end(self, total: int, zeros: int, last: bytes) -> Finding | None:
        if not zeros:
            return None
        plural = "s" * (zeros > 1)
        first = Fact(total - zeros, last[0], 0, 0, last)
        message = f"the stream ends in {zeros} all-zero word{plural}, which is padding"
        return self.warn(first, "header.opcode", "no padding", message)


STREAM_RULES: tuple[type[StreamRule], ...] = (
    UndefinedAccumulator,
    UndrainedAccumulator,
    NoTableLoaded,
    TooManySets,
    SetWithoutExp,
    WordsAfterExit,
    ZeroPadding,
)
