"""The rules of the ACT words against an independent validator and worked words."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from neuron_emu.generation import GENERATIONS
from neuron_emu.isa.bulk import BlockJudge
from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.fields import write_field
from neuron_emu.isa.rules.examples import standard_word
from neuron_emu.isa.validate import DEFAULT_POLICY, findings_of_word
from tests.isa import mutated
from tests.isa.reference_activation import is_valid

OPCODES = (0x21, 0x22, 0x25)
OPERAND_PATHS = tuple(
    f"{side}.{leaf}"
    for side in ("src", "dst")
    for leaf in (
        *("start.partition_offset", "start.marker", "num[0]", "num[1]", "step[0]"),
        *("data.partition_offset", "data.marker", "num_elem", "reserved"),
    )
)
COMMON_PATHS = (*mutated.COMMON, "num_active_channels", "activation_func", "out_dtype")
PATHS = {
    0x21: (
        *("imm_src", "scale_src", "accumulator_cmd", "bias_src_n", "in_bias_dtype"),
        *("scale_value.word", "bias.word", "imm.word"),
    ),
    0x22: (
        *("quant_scale_value.word", "in_bias_dtype", "dequant_scale_value.word"),
        *("bias_addr.word", "quant_zero_value.word"),
    ),
    0x25: (
        *("relu_param_src", "imm0_src", "reduce_cmd", "imm1_src", "imm_dtype", "op0", "op1"),
        *("reduce_op", "in_dtype", "imm0.word", "imm1.word", "relu_param.word"),
        *("reverse_operands", "reserved0"),
    ),
}
PAIRED = (0xAA, 0x6A, 0x7A, 0xA8, 0xAB, 0xA1, 0xBA, 0x8A, 0x66)


def mutated_words(opcode: int, count: int, seed: int) -> Iterator[bytes]:
    """Yield words with up to five fields changed; some have indirect operands or pointers."""
    rng = random.Random(seed)
    record = record_type_of(opcode)
    paths = (*COMMON_PATHS, *OPERAND_PATHS, *PATHS[opcode], *PATHS[opcode])
    for _ in range(count):
        word = standard_word(opcode)
        if rng.random() < 0.3:
            word = mutated._indirect(word, rng)
        if opcode == 0x25 and rng.random() < 0.4:
            word = write_field(word, record, "num_active_channels", 32)
            for name in ("imm0", "imm1", "relu_param"):
                if rng.random() < 0.5:
                    pointer = rng.choice((0x100, 0x104, 32 * 0x40000, 0x2000100))
                    word = write_field(word, record, f"{name}_src", 1)
                    word = write_field(word, record, f"{name}.word", pointer)
        for path in rng.choices(paths, k=rng.randrange(5)):
            value = mutated._value(path, rng)
            if path == "in_bias_dtype":
                value = rng.choice(PAIRED)
            word = write_field(word, record, path, value)
        yield word


@pytest.mark.parametrize("generation", list(GENERATIONS))
@pytest.mark.parametrize("opcode", OPCODES, ids=hex)
def test_verdict(opcode: int, generation: str) -> None:
    """On words near the border, the verdict is that of the plain validator, alone and in bulk."""
    words = list(mutated_words(opcode, 400, seed=opcode + len(generation)))
    judge = BlockJudge(GENERATIONS[generation], None, DEFAULT_POLICY)
    block = np.frombuffer(b"".join(words), np.uint8).reshape(-1, 64).copy()
    verdicts = []
    for word in words:
        found = findings_of_word(word, GENERATIONS[generation])
        wired = opcode in GENERATIONS[generation].opcodes
        verdicts.append(not found)

        assert (not found) == (wired and is_valid(word, generation)), (word.hex(), found)
    assert judge.clean(block).tolist() == verdicts
    assert sum(verdicts) > 20 or opcode not in GENERATIONS[generation].opcodes


def codes(opcode: int, generation: str = "mariana", **fields: int) -> list[str]:
    """Return the codes found in the standard word of an opcode with fields changed."""
    word = standard_word(opcode)
    for name, value in fields.items():
        word = write_field(word, record_type_of(opcode), name.replace("__", "."), value)
    return [f.code for f in findings_of_word(word, GENERATIONS[generation])]


@pytest.mark.parametrize("op0", range(0x25))
def test_the_six_pairs(op0: int) -> None:
    """Of all pairs of operations exactly the six of activation-tables.md 2.6 pass."""
    legal = {(6, 4), (6, 5), (6, 0), (4, 0), (5, 0), (0, 0)}
    found = {(op0, op1) for op1 in range(0x25) if not codes(0x25, op0=op0, op1=op1)}

    assert found == {pair for pair in legal if pair[0] == op0}


def test_add_add_sentence() -> None:
    """activation-tables.md 15: ACTIVATE2 with (ADD, ADD) is refused, and the sentence names it."""
    word = write_field(standard_word(0x25), record_type_of(0x25), "op0", 4)
    (finding,) = findings_of_word(word)

    assert finding.message == (
        "(op0,op1) must be one of (MULT,ADD) (MULT,SUBTRACT) (MULT,BYPASS) (ADD,BYPASS)"
        " (SUBTRACT,BYPASS) (BYPASS,BYPASS), not (ADD,ADD)"
    )


def test_what_the_compiler_emits() -> None:
    """activation-tables.md 2.2: command 3, and for copy and reciprocal imm_src 1 beside 0."""
    for function in (0x80, 0x81):
        emitted = {"activation_func": function, "imm_src": 1, "accumulator_cmd": 3}
        for generation in GENERATIONS:
            assert codes(0x21, generation, **emitted) == []


def test_sunda_bias() -> None:
    """A bias in the word is refused on sunda, and the sentence says the generation."""
    word = write_field(standard_word(0x21), record_type_of(0x21), "bias_src_n", 1)
    (finding,) = findings_of_word(word, GENERATIONS["sunda"])

    assert finding.message == "bias_src_n must be POINTER on sunda, not INSTRUCTION"
    assert codes(0x21, "cayman", bias_src_n=1) == []


def test_dtype_of_a_shared_byte() -> None:
    """A finding about half of a byte tells which bits."""
    word = write_field(standard_word(0x21), record_type_of(0x21), "in_bias_dtype", 0xAB)
    (finding,) = findings_of_word(word)

    assert (finding.field, finding.span, finding.bits) == ("in_bias_dtype.first", (32, 32), (0, 3))
    assert "not FP32R, which is for destinations only" in finding.message


@pytest.mark.parametrize(
    ("opcode", "generation", "engines"),
    [
        (0x21, "sunda", {Engine.ACT}),
        (0x21, "mariana", {Engine.ACT, Engine.POOL}),
        (0x22, "mariana", {Engine.ACT}),
        (0x25, "mariana", {Engine.ACT, Engine.POOL}),
        (0x25, "maverick", {Engine.ACT, Engine.POOL, Engine.DVE}),
    ],
)
def test_engines(opcode: int, generation: str, engines: set[Engine]) -> None:
    """The lanes that take the opcode; maverick folds ACT into the DVE."""
    word = standard_word(opcode)
    accepted = {e for e in Engine if not findings_of_word(word, GENERATIONS[generation], e)}

    assert accepted == engines
