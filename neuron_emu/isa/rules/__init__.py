"""The rules: one module a topic, one small named function a conjunct.

Importing the package fills `core.RULES`. Codes: NE00xx plain rules, NE01xx the rows of
`is_valid_exponential` (NE0107 is row 7), NE02xx the Tensor-Scalar opcodes, NE03xx accumulator
reads, NE04xx control words, NE05xx ACT instructions, NE06xx everyday DVE words, NE09xx streams.
"""

from __future__ import annotations

from neuron_emu.isa.rules import (
    accumulator_read,
    activation,
    activation2,
    control,
    control_words,
    dtypes,
    dve_operands,
    exponential,
    header,
    immediates,
    operands,
    quadrants,
    scalar_select,
    search_words,
    tensor_scalar,
    tensor_words,
)
from neuron_emu.isa.rules.core import COMMON_OPCODES, RULES, Rule, rules_for

TOPICS = (
    header,
    dtypes,
    immediates,
    exponential,
    operands,
    quadrants,
    tensor_scalar,
    accumulator_read,
    activation,
    activation2,
    control,
    control_words,
    dve_operands,
    tensor_words,
    search_words,
    scalar_select,
)

__all__ = ["RULES", "TOPICS", "Rule", "has_own_rules", "rules_for"]


def has_own_rules(opcode: int) -> bool:
    """Tell whether an opcode has rules beyond those that every word has and being wired."""
    return any(
        opcode in r.opcodes and len(r.opcodes) < COMMON_OPCODES and r.code != "NE0001"
        for r in RULES.values()
    )
