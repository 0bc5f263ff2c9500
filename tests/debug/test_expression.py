"""The expression language: values, names, refusals; nothing of Python behind it."""

from __future__ import annotations

import math

import pytest

from neuron_emu.debug.expression import parse_expression
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine
from tests.debug.streams import debugger


@pytest.fixture(scope="module")
def at_exponential():
    """A debugger before the DVE's first EXPONENTIAL, with some state set."""
    made = debugger()
    made.select(Engine.DVE)
    made.step()
    made.machine.engine(Engine.DVE).registers[5] = 0x1004
    made.machine.engine(Engine.ACT).registers[5] = 7
    made.machine.sync.semaphores[4] = 3
    made.machine.sync.events[9] = 1
    return made


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3 - -1", 10),
        ("0x10 | 3 & 1 ^ 2", 0x13),
        ("1 << 4 >> 2", 4),
        ("7 / 2", 3.5),
        ("7 % 4", 3),
        ("!0 && !!5", 1),
        ("not 1 or 2 > 1 and 1.5e1 == 15", 1),
        ("~0", -1),
        ("min(3, 2) + max(1, 4) + abs(-1)", 7),
        ("step", 1),
        ("index", 1),
        ("engine == dve", 1),
        ("opcode == EXPONENTIAL", 1),
        ("src.num[0]", 4),
        ("src.start.partition_offset", 0x1000),
        ("num_active_channels > 3", 1),
        ("in_dtype == fp32 && out_dtype != bf16", 1),
        ("accumulator_cmd == ZERO_ACCUMULATE", 1),
        ("events.update_mode == SEM_INC_COMPLETE", 1),
        ("imm0_src == INSTRUCTION", 1),
        ("R[5] + $R[5]", 0x2008),
        ("act.R[5]", 7),
        ("act.index", 0),
        ("S[4] * 10 + E[9]", 31),
        ("acc[3]", 0.0),
        ("acc_undefined[3]", 1),
        ("fp32@0x1004", -1.0),
        ("fp32@$R[5]", -1.0),
        ("fp32@(0x1000 + 8)", -2.0),
        ("uint32@0x1004", 0xBF800000),
        ("int32@0x1004", 0xBF800000 - (1 << 32)),
        ("isnan(fp32@0x1004) + isinf(1.0)", 0),
    ],
)
def test_value(at_exponential, text, value):
    """Worked by hand from the shared program and the state that is set."""
    assert at_exponential.evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a value, not the end"),
        ("1 +", "a value, not the end"),
        ("(1", "')', not the end"),
        ("1 2", "an operator, not '2'"),
        ("nothing", "is no name here"),
        ("R[64]", "index from 0 to 63, not 64"),
        ("S[1.5]", "must be a whole number"),
        ("1 / 0", "divides by zero"),
        ("1 << 100000", "at most 128 bits"),
        ("9999999999 * 9999999999 * 9999999999 * 9999999999 * 9", "below 2^128"),
        ("fp32@0x1fffffff", "address must be in"),
        ("__import__('os')", "must not hold"),
        ("R.__class__", "is no name here"),
        ("open(1)", "an operator, not '('"),
        ("1.5 << 2", "out of range"),
        ("abs(1, 2)", "must have 1 arguments"),
        ("(" * 50 + "1" + ")" * 50, "nested at most"),
        ("+".join("1" * 200), "at most 200 parts"),
        ("@", "must not hold '@'"),
    ],
)
def test_refusal(at_exponential, text, said):
    """Every refusal is one sentence, and no input ends otherwise."""
    with pytest.raises(InputError) as raised:
        at_exponential.evaluate(text)
    assert said in str(raised.value)


def test_long_chains_do_not_overflow_the_stack(at_exponential):
    """As many signs and operators as are allowed still have a value."""
    assert at_exponential.evaluate("-" * 198 + "1") == 1
    assert at_exponential.evaluate("+".join("1" * 100)) == 100


def test_nan_is_true_and_unequal():
    """IEEE: a NaN differs from itself."""

    class Nothing:
        def cell(self, dtype, address):
            return math.nan

    assert parse_expression("fp32@0 != fp32@0").value(Nothing()) == 1
