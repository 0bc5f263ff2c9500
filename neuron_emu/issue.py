"""From a word to something that executes: decoded, judged and prepared, each of them once.

A word that is met again costs one look at its engine's tables and registers. What is remembered
is bounded, and none of it is state: it can be dropped at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from neuron_emu.engines.core import EngineState, Prepared, Problem
from neuron_emu.engines.kernels import Kernel, find_kernel
from neuron_emu.engines.sequencer import (
    Update,
    Wait,
    missing_register,
    updates_of,
    waits_of,
)
from neuron_emu.generation import Generation
from neuron_emu.isa.bulk import BlockJudge
from neuron_emu.isa.codec import decode
from neuron_emu.isa.diagnostics import Finding
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.program import Stream
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.isa.validate import findings_of_word
from neuron_emu.policy import Policy
from neuron_emu.pwp.library import ResidentTables, TableLibrary

__all__ = ["Issued", "Issuer", "Queue"]

_MOST_WORDS = 1 << 15
"""Distinct words that one queue remembers; then it starts over."""
_BULK_AFTER, _BULK_WORDS = 64, 1024
"""A queue with more distinct words than the first has its words judged by so many at a time."""


@define(eq=False)
class Issued:
    """What is known of one word on one engine."""

    word: bytes
    record: Any
    waits: tuple[Wait, ...]
    read_updates: tuple[Update, ...]
    complete_updates: tuple[Update, ...]
    findings: tuple[Finding, ...]
    errors: tuple[Finding, ...]
    kernel: Kernel | Problem
    prepared: Prepared | None = None
    needs_tables: bool = False
    tables: ResidentTables | None = None
    register_values: tuple[int, ...] = ()
    reads_checked_in: int = -1


@define(eq=False)
class Queue:
    """The stream of one engine, how far it has come, and the words that are known.

    `pending` is a word between its reads and its writes, with its effects.
    """

    stream: Stream
    state: EngineState
    ended: bool = False
    pending: tuple[Issued, Any] | None = None
    issued: list[Issued | None] = field(init=False)
    by_word: dict[bytes, Issued] = field(factory=dict, init=False)
    judge: BlockJudge | None = field(default=None, init=False)
    clean_from: int = field(default=0, init=False)
    clean: list[bool] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.state.position, self.state.num_words = 0, len(self.stream)
        self.forget()

    @property
    def is_finished(self) -> bool:
        """True when no word is left and none is in flight."""
        return self.ended or self.state.position >= len(self.issued)

    def forget(self) -> None:
        """Drop what is known of the words."""
        self.by_word.clear()
        self.issued = [None] * len(self.stream)


class Issuer:
    """Decides whether and how the words of a machine execute; `warn` takes its warnings.

    Attributes
    ----------
    warned_uninitialised: a read of bytes that nothing wrote has been told in this run.
    """

    def __init__(
        self,
        generation: Generation,
        policy: Policy,
        library: TableLibrary,
        warn: Callable[[Queue, str, str], None],
        *,
        sanitize: bool,
    ) -> None:
        self.generation = generation
        self.policy = policy
        self.library = library
        self.warn = warn
        self.sanitize = sanitize
        self.warned_uninitialised = False
        self._era = 0
        self._told: set[int] = set()

    def forget_reads(self) -> None:
        """Look at written flags anew: some may have been cleared."""
        self._era += 1

    def issued(self, queue: Queue) -> Issued:
        """Return what is known of the next word of a queue that is not finished."""
        position = queue.state.position
        known = queue.issued[position]
        if known is not None:
            return known
        word = queue.stream[position]
        known = queue.by_word.get(word)
        if known is None:
            if len(queue.by_word) >= _MOST_WORDS:
                queue.forget()
            known = queue.by_word[word] = self._judged(queue, word)
        queue.issued[position] = known
        return known

    def _judged(self, queue: Queue, word: bytes) -> Issued:
        record = decode(word, self.generation)
        engine = queue.state.engine
        if engine is Engine.DVE and word[0] in self.generation.dve_not_default:
            self._tell_of_microcode(queue, word[0])
        findings: tuple[Finding, ...] = ()
        if not self._is_proven(queue):
            findings = findings_of_word(word, self.generation, engine, self.policy)
        waits, updates = waits_of(record), updates_of(record)
        kernel = find_kernel(word[0], engine, self.generation)
        missing = missing_register((*waits, *updates), self.generation.num_address_registers)
        if missing is not None:
            waits, updates, kernel = (), (), Problem("register", missing)
        return Issued(
            word=word,
            record=record,
            waits=waits,
            read_updates=tuple(u for u in updates if u.is_after_reads),
            complete_updates=tuple(u for u in updates if not u.is_after_reads),
            findings=findings,
            errors=tuple(f for f in findings if f.severity == "error"),
            kernel=kernel,
        )

    def _tell_of_microcode(self, queue: Queue, opcode: int) -> None:
        if opcode not in self._told:
            self._told.add(opcode)
            self.warn(
                queue,
                "table_set",
                f"{opcode_name(opcode)} is legal on {self.generation}, but the DVE's default"
                " microcode tables lack it",
            )

    def _is_proven(self, queue: Queue) -> bool:
        """Tell whether the next word is known to be clean from judging its neighbours with it."""
        if len(queue.by_word) < _BULK_AFTER:
            return False
        position = queue.state.position
        place = position - queue.clean_from
        if not 0 <= place < len(queue.clean):
            if queue.judge is None:
                engine = queue.state.engine
                queue.judge = BlockJudge(self.generation, engine, self.policy)
            count = min(_BULK_WORDS, len(queue.stream) - position)
            start = position * WORD_BYTES
            data = queue.stream.data[start : start + count * WORD_BYTES]
            words = np.frombuffer(data, np.uint8).reshape(count, WORD_BYTES)
            queue.clean_from, queue.clean = position, queue.judge.clean(words).tolist()
            place = 0
        return queue.clean[place]

    def prepared(self, queue: Queue, issued: Issued) -> Prepared | Problem:
        """Return the word ready to execute, or why it does not; warns of what is doubtful."""
        if issued.errors:
            problem = self._refusal(queue, issued)
            if problem is not None:
                return problem
        state, made = queue.state, issued.prepared
        if (
            made is None
            or (issued.needs_tables and issued.tables is not state.tables)
            or (made.registers and issued.register_values != _register_values(state, made))
        ):
            fresh = self._made(queue, issued)
            if isinstance(fresh, Problem):
                return fresh
            made = fresh
        if issued.reads_checked_in != self._era:
            self._check_reads(queue, issued, made)
        if made.uses_accumulator:
            self._check_accumulator(queue, made.uses_accumulator)
        return made

    def _refusal(self, queue: Queue, issued: Issued) -> Problem | None:
        """Return why a word with errors is not executed; under invalid=warn they are only told."""
        kernel = issued.kernel
        if self.policy.invalid == "refuse":
            message = "; ".join(dict.fromkeys(f.message for f in issued.errors))
            if isinstance(kernel, Problem) and kernel.name == "opcode":
                message = f"{message}; {kernel.message}"
            return Problem(issued.errors[0].name, message)
        for finding in issued.errors:
            self.warn(queue, finding.name, finding.message)
        return None

    def _made(self, queue: Queue, issued: Issued) -> Prepared | Problem:
        """Prepare a word, and remember it unless it serves one execution only."""
        state, kernel = queue.state, issued.kernel
        issued.prepared = None
        issued.reads_checked_in = -1
        if isinstance(kernel, Problem):
            return kernel
        function = kernel.function_of(issued.record, state)
        issued.needs_tables = function is not None
        if function is not None and state.tables is None:
            self._load_tables(queue, function)
        made = kernel.prepare(issued.record, state)
        if not isinstance(made, Problem) and made.is_reusable:
            issued.prepared = made
            issued.tables = state.tables
            issued.register_values = _register_values(state, made)
        return made

    def _load_tables(self, queue: Queue, function: str) -> None:
        """Follow policy `tables` for an engine that holds no set."""
        tables = self.library.lowest_with(function) if self.policy.tables == "auto" else None
        if tables is not None:
            queue.state.tables = tables
            self.warn(
                queue,
                "no_tables_loaded",
                f"no function set was loaded; installed {tables.set.name} (index"
                f" {tables.set.index}), the lowest that holds {function}",
            )

    def _check_reads(self, queue: Queue, issued: Issued, prepared: Prepared) -> None:
        """Warn of the first byte read before anything wrote it: once a run, or each time."""
        if self.warned_uninitialised and not self.sanitize:
            return
        addresses = prepared.unwritten_reads()
        for address in addresses if self.sanitize else addresses[:1]:
            self.warned_uninitialised = True
            self.warn(
                queue,
                "uninitialised_read",
                f"reads bytes that nothing wrote, first at {address:#x}; their value is policy"
                f" uninitialised={self.policy.uninitialised}",
            )
        if not addresses and issued.prepared is prepared:
            issued.reads_checked_in = self._era

    def _check_accumulator(self, queue: Queue, channels: int) -> None:
        accumulator = queue.state.accumulator
        lane = accumulator.first_use_of_undefined(channels)
        if lane is None:
            return
        accumulator.warned = True
        value = float(accumulator.values[lane])
        self.warn(
            queue,
            "undefined_accumulator",
            f"uses the {queue.state.engine.name} accumulator, which is undefined (power-on or"
            f" after IDLE): what is drained, from {value:.9g} in lane {lane} on, is not to be"
            " relied on",
        )


def _register_values(state: EngineState, prepared: Prepared) -> tuple[int, ...]:
    registers = state.registers
    return tuple(registers[number % len(registers)] for number in prepared.registers)
