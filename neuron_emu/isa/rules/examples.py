"""The standard words that the examples of the rules start from."""

from __future__ import annotations

from functools import cache

from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.fields import write_field
from neuron_emu.isa.rules.core import Example, Rule
from neuron_emu.isa.rules.everyday_examples import EVERYDAY_LINES

__all__ = ["bad_word", "good_word", "standard_word"]

_OPERANDS = "src=fp32@0x1000[1,8,8][8,1,1] dst=fp32@0x2000[1,8,8][8,1,1] channels=128"
_TILE = "src=fp32@0x1000[1,8,8][8,4,1] dst=fp32@0x2000[1,8,8][8,4,1] channels=128"
_BITS = "src=uint16@0x1000[1,8,8][8,1,1] dst=uint16@0x2000[1,8,8][8,1,1] channels=128"
_REDUCE = "ops=MULTIPLY,ADD imm0=fp32@2.0 accumulator_cmd=ZERO_ACCUMULATE"
_DRAIN = "dst=fp32@0x3000[1][1] channels=128"
_PLANE = "src=fp32@0x1000[1,8][8,1] dst=fp32@0x2000[1,8][8,1] channels=128"
_BYTES = _OPERANDS.replace("dst=fp32", "dst=uint8")
_LINES = {
    0x21: f"ACTIVATE EXP bias_ptr=fp32@0x3000 {_OPERANDS} accumulator_cmd=IDLE",
    0x22: f"ACTIVATE_QUANTIZE RELU bias_ptr=fp32@0x3000 {_BYTES}",
    0x25: f"ACTIVATE2 EXP {_PLANE} ops=MULTIPLY,ADD imm0=fp32@2.0 reduce_cmd=IDLE",
    0x30: f"EXPONENTIAL {_OPERANDS} max_value=fp32@0.0 accumulator_cmd=IDLE",
    0x23: "ACT_TABLE_LOAD table_sel=0",
    0x24: f"ACTIVATION_READ_ACCUMULATOR {_DRAIN}",
    0x43: f"TENSOR_SCALAR {_OPERANDS} ops=MULTIPLY,ADD imm0=fp32@2.0 imm1=fp32@1.0",
    0x53: f"TENSOR_SCALAR_BITVEC {_BITS} ops=BITWISE_AND,BITWISE_OR imm0=bits@0xff",
    0x93: f"TRANSPOSE_TENSOR_SCALAR_ARITH {_TILE} ops=MULTIPLY,ADD imm0=fp32@2.0",
    0x9A: f"TENSOR_SCALAR_CACHE_REDUCE {_OPERANDS} {_REDUCE}",
    0xE6: f"TENSOR_SCALAR_CACHE_CUMULATIVE {_OPERANDS} {_REDUCE}",
    0x9B: f"DVE_READ_ACCUMULATOR {_DRAIN}",
    **EVERYDAY_LINES,
    0xA1: "HALT",
    0xA2: "DRAIN",
    0xA3: "INSTRUCTION_FLUSH",
    0xA4: "NOP",
    0xA6: "NOTIFY",
    0xA0: "EVENT_SEMAPHORE S[22]>=240 setter=0",
    0xA7: "MOVE dtype=uint32 $R[61]=0xc61c0000",
    0xA8: "ALU_OP op=ADD dtype=int32 src0=$R[1] src1=$R[2] dst=$R[3]",
    0xA9: "COMPARE_BRANCH op=LT_IMM dtype=int32 src0=$R[1] src1=0xa target=-128",
    0xB0: "EVENT_SEMAPHORE_RANGE_CLEAR mode=RANGE first=3 last=9",
    0xDF: "PSEUDO_INST kind=EXIT",
}


_POINTER_TWINS = {0x44: 0x43, 0x54: 0x53}
"""The deprecated opcodes, whose scalars are pointers, by the opcodes that are otherwise alike."""


@cache
def standard_word(opcode: int) -> bytes:
    """Return a legal word of an opcode; KeyError when there is none."""
    twin = _POINTER_TWINS.get(opcode)
    if twin is None:
        return assemble(_LINES[opcode])
    word = standard_word(twin)
    for path, value in (("header.opcode", opcode), ("imm0.word", 0x100), ("imm1.word", 0x200)):
        word = write_field(word, record_type_of(twin), path, value)
    return word


def good_word(rule: Rule, example: Example) -> bytes:
    """Return the word of an example that the rule passes."""
    return _changed(rule, example, example.good)


def bad_word(rule: Rule, example: Example) -> bytes:
    """Return the word of an example that the rule refuses."""
    return _changed(rule, example, example.bad)


def _changed(rule: Rule, example: Example, value: int) -> bytes:
    opcode = opcode_of(rule, example)
    word = standard_word(opcode)
    for path, given in (*example.given.items(), (example.path, value)):
        word = write_field(word, record_type_of(opcode), path, given)
    return word


def opcode_of(rule: Rule, example: Example) -> int:
    """Return the opcode of an example: its own, else EXPONENTIAL where the rule has it."""
    if example.opcode is not None:
        return example.opcode
    return 0x30 if 0x30 in rule.opcodes else min(rule.opcodes)
