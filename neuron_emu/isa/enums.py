"""The enumerations of the instruction word: every code is the wire code.

Sources: isa-encoding.md 1.2, 2.1, 2.2, 7.1, 7.2, 7.3 [observed] unless a class says otherwise.
Unknown values are legal in a decoded word: they pass through as plain integers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

__all__ = [
    "AccumulatorCommand",
    "AddressMarker",
    "AluOp",
    "DType",
    "DebugCommand",
    "Engine",
    "ImmediateSource",
    "ReverseOperands",
    "UpdateMode",
    "WaitMode",
    "member",
]

EnumT = TypeVar("EnumT", bound=IntEnum)


def member(enum: type[EnumT], value: int) -> EnumT | None:
    """Return the member of `enum` that has `value`, or None when there is none."""
    try:
        return enum(value)
    except ValueError:
        return None


class Engine(IntEnum):
    """The five instruction queues of a core (isa-encoding.md 7.1, NEURON_ENGINE)."""

    PE = 0
    ACT = 1
    POOL = 2
    DVE = 3
    SP = 4


class DebugCommand(IntEnum):
    """Trace level in byte 2 of the header (isa-encoding.md 1.2)."""

    NONE = 0
    NOTIFY = 1
    START = 3
    END = 5
    START_END = 7
    INS_FIELD = 9


class WaitMode(IntEnum):
    """Condition that gates the issue of a word (isa-encoding.md 2.1)."""

    NONE = 0x00
    SEM_EQ_IMM = 0x01
    SEM_LT_IMM = 0x02
    SEM_LE_IMM = 0x03
    SEM_GT_IMM = 0x04
    SEM_GE_IMM = 0x05
    EVT_SET = 0x06
    EVT_SET_THEN_CLEAR = 0x07
    EVT_CLEAR = 0x0E
    EVT_CLEAR_THEN_SET = 0x0F
    SEM_EQ_REG = 0x81
    SEM_LT_REG = 0x82
    SEM_LE_REG = 0x83
    SEM_GT_REG = 0x84
    SEM_GE_REG = 0x85


class UpdateMode(IntEnum):
    """What a word does to a semaphore or event (isa-encoding.md 2.2).

    0x99 of the register forms is [observed]; 0x85, 0x87, 0x89, 0x95 and 0x97 are [inferred].
    """

    NONE = 0x00
    EVT_SET_READ = 0x01
    EVT_CLR_READ = 0x02
    SEM_INC_READ = 0x03
    SEM_DEC_READ = 0x04
    SEM_ADD_IMM_READ = 0x05
    SEM_SUB_IMM_READ = 0x07
    SEM_WR_IMM_READ = 0x09
    EVT_SET_COMPLETE = 0x11
    EVT_CLR_COMPLETE = 0x12
    SEM_INC_COMPLETE = 0x13
    SEM_DEC_COMPLETE = 0x14
    SEM_ADD_IMM_COMPLETE = 0x15
    SEM_SUB_IMM_COMPLETE = 0x17
    SEM_WR_IMM_COMPLETE = 0x19
    SEM_ADD_REG_READ = 0x85
    SEM_SUB_REG_READ = 0x87
    SEM_WR_REG_READ = 0x89
    SEM_ADD_REG_COMPLETE = 0x95
    SEM_SUB_REG_COMPLETE = 0x97
    SEM_WR_REG_COMPLETE = 0x99


class AddressMarker(IntEnum):
    """The three flag bits of an ADDR4 word, as `byte 3 & 0xE0` (isa-encoding.md 3.1)."""

    IMM = 0x00
    INDIRECT_IMM = 0x20
    SHAPE_REG = 0x40
    ADDR_REG = 0x80
    INDIRECT_REG = 0xA0
    ADDR_SHAPE_REG = 0xC0


class ImmediateSource(IntEnum):
    """IMM_SRC: where an immediate operand comes from (isa-encoding.md 7.1)."""

    INSTRUCTION = 0
    POINTER = 1
    REG_PTR = 2


class AccumulatorCommand(IntEnum):
    """ACCUM_CMD (isa-encoding.md 7.1)."""

    IDLE = 0
    ZERO = 1
    ACCUMULATE = 2
    ZERO_ACCUMULATE = 3
    LOAD_ACCUMULATE = 4


class ReverseOperands(IntEnum):
    """TENS_SCALAR_REV_OPS (isa-encoding.md 7.1)."""

    NONE = 0
    FIRST = 1
    SECOND = 2
    BOTH = 3


class DType(IntEnum):
    """DTYPE (isa-encoding.md 7.2). Which generation has which code: `generation.py`."""

    INVALID = 0x00
    UINT64 = 0x01
    INT8 = 0x02
    UINT8 = 0x03
    INT16 = 0x04
    UINT16 = 0x05
    BFLOAT16 = 0x06
    FP16 = 0x07
    INT32 = 0x08
    UINT32 = 0x09
    FP32 = 0x0A
    FP32R = 0x0B
    INT64 = 0x0C
    FP8_EXP3 = 0x0D
    FP8_EXP4 = 0x0E
    FP8_EXP5 = 0x0F
    FP4_EXP2 = 0x10
    FP8_EXP2 = 0x11
    INT4 = 0x12
    SFP8_E8 = 0x13
    SFP8_E7 = 0x14
    SFP8_E6 = 0x15
    SFP8_E5 = 0x16
    CPTC1 = 0x19
    CPTC2 = 0x1A
    CPTC3 = 0x1B
    CPTC4 = 0x1C
    CPTC5 = 0x1D
    CPTC6 = 0x1E
    CPTC7 = 0x1F

    @property
    def size_bytes(self) -> int:
        """Bytes of one element in memory; 0 for kinds that are not whole bytes or unpublished."""
        return _DTYPE_SIZE_BYTES.get(self.value, 0)

    @property
    def is_float(self) -> bool:
        """True for the floating-point datapath set (dve-tensor-scalar.md 6.2) and FP32R."""
        return self.value in _FLOAT_DTYPES

    @property
    def word(self) -> str:
        """The word of the text notation (operand-text.md 1), e.g. `bf16`."""
        return DTYPE_WORDS.get(self.value, self.name.lower())


_DTYPE_SIZE_BYTES = {
    **dict.fromkeys((0x02, 0x03, 0x0D, 0x0E, 0x0F, 0x11, 0x13, 0x14, 0x15, 0x16), 1),
    **dict.fromkeys((0x04, 0x05, 0x06, 0x07), 2),
    **dict.fromkeys((0x08, 0x09, 0x0A, 0x0B), 4),
    **dict.fromkeys((0x01, 0x0C), 8),
}
_FLOAT_DTYPES = frozenset((0x06, 0x07, 0x0A, 0x0B, 0x0D, 0x0E, 0x0F))

DTYPE_WORDS = {
    0x02: "int8",
    0x03: "uint8",
    0x04: "int16",
    0x05: "uint16",
    0x06: "bf16",
    0x07: "fp16",
    0x08: "int32",
    0x09: "uint32",
    0x0A: "fp32",
    0x0B: "fp32r",
    0x0D: "fp8_e3",
    0x0E: "fp8_e4",
    0x0F: "fp8_e5",
}
"""Wire code to the dtype word of operand-text.md 1."""


class AluOp(IntEnum):
    """ALU_OP (isa-encoding.md 7.3). Which generation has which code: `generation.py`.

    The long spellings of abbreviated members are [inferred]; the codes are [observed].
    """

    BYPASS = 0x00
    BITWISE_NOT = 0x01
    ARITH_SHIFT_LEFT = 0x02
    ARITH_SHIFT_RIGHT = 0x03
    ADD = 0x04
    SUBTRACT = 0x05
    MULT = 0x06
    DIVIDE = 0x07
    MAX = 0x08
    MIN = 0x09
    BITWISE_AND = 0x0A
    BITWISE_OR = 0x0B
    BITWISE_XOR = 0x0C
    LOGICAL_AND = 0x0D
    LOGICAL_OR = 0x0E
    LOGICAL_XOR = 0x0F
    LOGICAL_SHIFT_LEFT = 0x10
    LOGICAL_SHIFT_RIGHT = 0x11
    IS_EQUAL = 0x12
    IS_GT = 0x13
    IS_GE = 0x14
    IS_LE = 0x15
    IS_LT = 0x16
    ABS_DIFF = 0x17
    IS_NE = 0x18
    ABS_VALUE = 0x19
    POW = 0x1A
    MOD = 0x1B
    CRC32 = 0x1C
    RSQRT = 0x1D
    ABS_MAX = 0x20
    ABS_MIN = 0x21
    RELU = 0x22
    SQUARE = 0x23
    SYMMETRIC_CLAMP = 0x24
    ADD_INT = 0xC4
    MULT_INT = 0xC5
    SUBTRACT_INT = 0xC6
    DIVIDE_INT = 0xC7
    MOD_INT = 0xC8
    IS_EQUAL_INT = 0xC9
    IS_NE_INT = 0xCA
    ABS_MAX_INT = 0xCB
    ABS_MIN_INT = 0xCC
    ABS_DIFF_INT = 0xCD
    ABS_VALUE_INT = 0xCE
    MAX_INT = 0xCF
    MIN_INT = 0xD0
    IS_GT_INT = 0xD1
    IS_GE_INT = 0xD2
    IS_LE_INT = 0xD3
    IS_LT_INT = 0xD4
    MAX_UINT = 0xD5
    MIN_UINT = 0xD6
    IS_GT_UINT = 0xD7
    IS_GE_UINT = 0xD8
    IS_LE_UINT = 0xD9
    IS_LT_UINT = 0xDA
    MULT_UINT = 0xDB
    DIVIDE_UINT = 0xDC
    MOD_UINT = 0xDD
    AMAX_INT = 0xDE
    AMIN_INT = 0xDF
    AMAX_UINT = 0xE0
    AMIN_UINT = 0xE1
