"""The ACT handlers against the plain-loop oracle, byte for byte, over generated words.

NEURON_EMU_WORDS sets the number of words an opcode; 100000 take about half an hour.
"""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from neuron_emu.engines.accumulator import Accumulator
from neuron_emu.engines.core import EngineState, Problem
from neuron_emu.engines.kernels import KERNELS
from neuron_emu.engines.reference.activation import PlainCore, execute
from neuron_emu.generation import GENERATIONS, Generation
from neuron_emu.isa.codec import decode
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.families.activation import ActivationFunction
from neuron_emu.isa.validate import findings_of_word
from neuron_emu.memory import Memory
from neuron_emu.numerics import NumberFormats
from neuron_emu.policy import Policy
from neuron_emu.pwp.library import TableLibrary
from neuron_emu.pwp.store import load_profile
from tests.engines.act_words import SPECIAL_WORDS, WINDOW_BYTES, PlainMemory, Words, fill

WORDS = int(os.environ.get("NEURON_EMU_WORDS", "1000"))
BATCH = 20
POLICIES = (
    Policy(),
    Policy(nan="profile"),
    Policy(acc_source="after_conversion"),
    Policy(nan_max_min="second"),
)


@pytest.fixture(scope="module")
def memories() -> dict[str, Memory]:
    """One memory a generation; its bytes are filled anew for each batch."""
    return {name: Memory(generation) for name, generation in GENERATIONS.items()}


def lane_of(generation: Generation) -> Engine:
    """Return the engine that executes ACT words."""
    return Engine.DVE if generation.core_version >= 5 else Engine.ACT


def state_of(memory: Memory, policy: Policy, registers: list[int], rng: random.Random):
    """Return an engine over a memory, with an accumulator of telling values."""
    generation = memory.generation
    formats = NumberFormats.of(generation, policy)
    words = [rng.choice((*SPECIAL_WORDS, rng.getrandbits(31))) for _ in range(128)]
    accumulator = Accumulator.at_power_on(generation)
    accumulator.values[...] = np.array(words, np.uint32).view(np.float32)
    return EngineState(
        engine=lane_of(generation),
        generation=generation,
        policy=policy,
        formats=formats,
        memory=memory,
        random=formats.new_generator(),
        registers=registers,
        accumulator=accumulator,
        library=TableLibrary(),
    )


def plain(state: EngineState) -> tuple[PlainCore, PlainMemory]:
    """Return the oracle's view of an engine."""
    memory = PlainMemory(state.memory)
    core = PlainCore(
        memory=memory,
        registers=state.registers,
        accumulator=[int(b) for b in state.accumulator.values.view(np.uint32)],
        core_version=state.generation.core_version,
        formats=state.formats,
        policy=state.policy,
        profile=lambda code: load_profile(ActivationFunction(code).name.lower()),
    )
    return core, memory


def run_engine(word: bytes, state: EngineState) -> None:
    """Execute a word by its kernel and apply the effects as the machine does."""
    record = decode(word, state.generation)
    kernel = KERNELS[word[0]]
    state.tables = state.library.lowest_with(kernel.function_of(record, state))
    prepared = kernel.prepare(record, state)
    assert not isinstance(prepared, Problem), prepared
    before = state.memory.sbuf.data[:, :WINDOW_BYTES].copy()
    effects = prepared.execute()
    assert not isinstance(effects, Problem), effects
    assert np.array_equal(before, state.memory.sbuf.data[:, :WINDOW_BYTES])
    for operand, bits in effects.writes:
        operand.write(bits)
    if effects.accumulator is not None:
        state.accumulator = effects.accumulator


@pytest.mark.parametrize("opcode", [0x21, 0x22, 0x25])
def test_engine_equals_oracle(opcode, memories):
    """Memory and accumulators end up equal, and no legal word is refused."""
    rng = random.Random(opcode)
    generations = [g for g in GENERATIONS.values() if opcode in g.opcodes]
    for _ in range(WORDS // BATCH):
        memory = memories[rng.choice(generations).name]
        words = Words(opcode, memory.generation, rng)
        fill(memory, rng)
        state = state_of(memory, rng.choice(POLICIES), words.registers, rng)
        for _ in range(BATCH):
            _compare(words.word(), state)


def _compare(word: bytes, state: EngineState) -> None:
    generation = state.generation
    core, memory = plain(state)
    findings = findings_of_word(word, generation, state.engine, state.policy)
    assert findings == (), (word.hex(), generation.name)
    before = {space.name: space.data[:, :WINDOW_BYTES].copy() for space in state.memory.spaces}
    execute(word, core)
    for address, byte in memory.written.items():
        name, partition, offset = memory.place(address)
        before[name][partition, offset] = byte

    run_engine(word, state)

    for space in state.memory.spaces:
        assert np.array_equal(space.data[:, :WINDOW_BYTES], before[space.name]), (
            word.hex(),
            generation.name,
        )
    found = state.accumulator.values.view(np.uint32).tolist()
    assert found == core.accumulator, (word.hex(), generation.name)
