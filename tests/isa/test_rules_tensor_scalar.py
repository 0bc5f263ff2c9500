"""The rules of the Tensor-Scalar opcodes against an independent validator and worked words."""

from __future__ import annotations

import pytest

from neuron_emu.generation import GENERATIONS
from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.isa.families.tensor_scalar import TensorScalar
from neuron_emu.isa.fields import write_field
from neuron_emu.isa.rules.examples import standard_word
from neuron_emu.isa.validate import findings_of_word
from tests.isa.mutated import mutated_words
from tests.isa.reference_tensor_scalar import is_valid

OPCODES = (0x43, 0x53, 0x44, 0x54, 0x93, 0x9A, 0xE6)


def codes(opcode: int, generation: str = "mariana", **fields: int) -> list[str]:
    """Return the codes found in the standard word of an opcode with fields changed."""
    word = standard_word(opcode)
    for name, value in fields.items():
        word = write_field(word, TensorScalar, name.replace("__", "."), value)
    return [f.code for f in findings_of_word(word, GENERATIONS[generation])]


@pytest.mark.parametrize("generation", list(GENERATIONS))
@pytest.mark.parametrize("opcode", OPCODES, ids=hex)
def test_verdict(opcode: int, generation: str) -> None:
    """On words near the border, the verdict is that of the plain validator."""
    legal = 0
    for word in mutated_words(opcode, 400, seed=opcode + len(generation)):
        found = findings_of_word(word, GENERATIONS[generation])
        legal += not found

        assert (not found) == is_valid(word, generation), (word.hex(), found)
    assert legal > 30


@pytest.mark.parametrize("generation", list(GENERATIONS))
@pytest.mark.parametrize("opcode", [0x43, 0x53, 0x93, 0x9A], ids=hex)
def test_every_pair_of_operations(opcode: int, generation: str) -> None:
    """All telling pairs of operations are judged as the plain validator does."""
    ops = (0, 1, 3, 4, 7, 0x0A, 0x10, 0x11, 0x19, 0x1A, 0x1C, 0x1D, 0x20, 0x24, 0xC4, 0xCE, 0xD4)
    word = standard_word(opcode)
    if opcode == 0x43:
        word = write_field(write_field(word, TensorScalar, "imm0.word", 0), TensorScalar, "imm1", 0)
    for op0 in ops:
        for op1 in ops:
            changed = write_field(word, TensorScalar, "op0", op0)
            changed = write_field(changed, TensorScalar, "op1", op1)
            found = findings_of_word(changed, GENERATIONS[generation])

            assert (not found) == is_valid(changed, generation), (op0, op1, found)


def test_worked_word() -> None:
    """The complete word of dve-tensor-scalar.md 13 is legal on every generation."""
    word = bytes.fromhex(
        "43100000000000000000000000000000"
        "00100000010001000100080001000100"
        "0a0a800006040000000000400000803f"
        "00200000010001000100080001000100"
    )

    assert not any(findings_of_word(word, g) for g in GENERATIONS.values())


@pytest.mark.parametrize(
    ("opcode", "fields", "code"),
    [
        (0x43, {"reserved0": 1}, "NE0201"),
        (0x43, {"accumulator_cmd": 2}, "NE0202"),
        (0x43, {"op0": AluOp.BYPASS}, "NE0205"),
        (0x43, {"op0": AluOp.DIVIDE}, "NE0204"),
        (0x43, {"in_dtype": 0x0B}, "NE0104"),
        (0x43, {"in_dtype": 0x01}, "NE0104"),
        (0x43, {"num_active_channels": 0}, "NE0112"),
        (0x43, {"num_active_channels": 129}, "NE0112"),
        (0x53, {"in_dtype": DType.BFLOAT16, "out_dtype": DType.BFLOAT16}, "NE0208"),
        (
            0x53,
            {"in_dtype": DType.INT8, "out_dtype": DType.INT8, "op0": AluOp.ARITH_SHIFT_RIGHT},
            "NE0209",
        ),
        (0x53, {"imm0__word": 0x10000}, "NE0106"),
        (0x93, {"num_active_channels": 48}, "NE0211"),
        (0x93, {"src__num[0]": 9, "dst__num[1]": 9, "dst__num[0]": 4}, "NE0211"),
        (0x9A, {"op1": AluOp.BYPASS}, "NE0213"),
        (0x9A, {"accumulator_cmd": 0}, "NE0212"),
        (0x9A, {"in_dtype": DType.INT32}, "NE0214"),
        (0x9A, {"reverse_operands": 1}, "NE0210"),
    ],
)  # fmt: skip
def test_expected_failures(opcode: int, fields: dict[str, int], code: str) -> None:
    """The failures that dve-tensor-scalar.md 13 lists, each with its rule alone."""
    assert codes(opcode, **fields) == [code]


def test_integer_operations() -> None:
    """maverick takes the integer set in 0x43, not in the cache opcodes; mariana refuses it."""
    pair = {"op0": AluOp.ADD_INT, "op1": AluOp.MAX_INT}

    assert codes(0x43, "maverick", **pair) == []
    assert codes(0x43, "mariana", **pair) == ["NE0207", "NE0207"]
    assert codes(0x9A, "maverick", op0=AluOp.ADD_INT) == ["NE0207"]


def test_reciprocal_square_root() -> None:
    """RSQRT passes alone with both scalars inline and zero."""
    alone = {"op0": AluOp.RSQRT, "op1": 0, "imm0__word": 0, "imm1__word": 0}

    assert codes(0x43, **alone) == []
    assert codes(0x43, **{**alone, "imm1__word": 1}) == ["NE0207"]


def test_operand_names_without_indirection() -> None:
    """sunda and cayman have plain tensors: their predicate's name, and no indirect marker."""
    word = write_field(standard_word(0x43), TensorScalar, "src.start.marker", 1)
    (found,) = findings_of_word(word, GENERATIONS["cayman"])

    assert (found.name, found.actual) == ("tensor3d_valid", "INDIRECT_IMM")
