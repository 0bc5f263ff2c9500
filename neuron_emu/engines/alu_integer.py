"""The native integer operations 0xC4 to 0xDD of the ALU (dve-tensor-scalar.md 5.2).

Operands are 32-bit words: elements of integer dtypes sign- or zero-extended, an immediate as it
stands. Arithmetic wraps. Division and arg-max are not here: `alu.unsupported` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_emu.isa.enums import AluOp

__all__ = ["apply_int"]

Words = npt.NDArray[np.uint32]
Operation = Callable[[Words, Words], Words]


def apply_int(op: int, a: Words, b: Words) -> Words:
    """Return `a op b` of 32-bit words, broadcast; comparisons give 1 or 0.

    ABS_MAX_INT and ABS_MIN_INT return the operand itself, on a tie the second, as their fp32 twins
    do; ABS_DIFF_INT is the exact difference without its sign, in 32 bits ([inferred] from 5.3).
    """
    with np.errstate(over="ignore"):
        return np.asarray(_OPERATIONS[op](a, b))


def _wide(word: Words) -> npt.NDArray[np.int64]:
    return word.view(np.int32).astype(np.int64)


def _magnitude(word: Words) -> npt.NDArray[np.int64]:
    return np.asarray(np.abs(_wide(word)))


def _low_word(wide: npt.NDArray[np.int64]) -> Words:
    return (wide & 0xFFFF_FFFF).astype(np.uint32)


def _signed(operation: Any) -> Operation:
    """Make an operation on signed operands, of a result that fits in 32 bits."""
    return lambda a, b: _low_word(
        np.asarray(operation(a.view(np.int32), b.view(np.int32))).astype(np.int64)
    )


def _unsigned(operation: Any) -> Operation:
    return lambda a, b: np.asarray(operation(a, b)).astype(np.uint32)


_OPERATIONS: dict[int, Operation] = {
    AluOp.ADD_INT: _unsigned(np.add),
    AluOp.SUBTRACT_INT: _unsigned(np.subtract),
    AluOp.MULT_INT: _unsigned(np.multiply),
    AluOp.MULT_UINT: _unsigned(np.multiply),
    AluOp.IS_EQUAL_INT: _unsigned(np.equal),
    AluOp.IS_NE_INT: _unsigned(np.not_equal),
    AluOp.ABS_MAX_INT: lambda a, b: np.where(_magnitude(a) > _magnitude(b), a, b),
    AluOp.ABS_MIN_INT: lambda a, b: np.where(_magnitude(a) < _magnitude(b), a, b),
    AluOp.ABS_DIFF_INT: lambda a, b: _low_word(np.abs(_wide(a) - _wide(b))),
    AluOp.ABS_VALUE_INT: lambda a, b: _low_word(_magnitude(a)),
    AluOp.MAX_INT: _signed(np.maximum),
    AluOp.MIN_INT: _signed(np.minimum),
    AluOp.IS_GT_INT: _signed(np.greater),
    AluOp.IS_GE_INT: _signed(np.greater_equal),
    AluOp.IS_LE_INT: _signed(np.less_equal),
    AluOp.IS_LT_INT: _signed(np.less),
    AluOp.MAX_UINT: _unsigned(np.maximum),
    AluOp.MIN_UINT: _unsigned(np.minimum),
    AluOp.IS_GT_UINT: _unsigned(np.greater),
    AluOp.IS_GE_UINT: _unsigned(np.greater_equal),
    AluOp.IS_LE_UINT: _unsigned(np.less_equal),
    AluOp.IS_LT_UINT: _unsigned(np.less),
}
