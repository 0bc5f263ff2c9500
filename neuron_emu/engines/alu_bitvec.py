"""ALU operations on raw bits (dve-tensor-scalar.md 5.1 and 5.3).

Elements narrower than 32 bits are zero-extended and processed as 32-bit words; what is left of a
result is its low bits. An arithmetic shift right fills with bit 31 of the word, so it is one only
for 4-byte elements, which is all that validators let through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_emu.isa.enums import AluOp
from neuron_emu.policy import Policy

__all__ = ["Words", "apply_bits", "apply_words"]

Words = npt.NDArray[np.uint32]
Bits = npt.NDArray[np.unsignedinteger[Any]]

_WIDTH = np.uint32(32)


def apply_bits(op: int, a: Bits, b: Bits, policy: Policy) -> Bits:
    """Return `a op b` of unsigned elements of up to 32 bits, in the type of `a`, broadcast.

    BITWISE_NOT and BYPASS take `a` alone. `b` of a shift is an unsigned count. KeyError for an
    operation that is none on bits or that the DVE does not have.
    """
    words = apply_words(op, a.astype(np.uint32), b.astype(np.uint32), policy)
    return words.astype(a.dtype)


def apply_words(op: int, a: Words, b: Words, policy: Policy) -> Words:
    """Return `a op b` of 32-bit words; narrower elements come zero-extended, and keep all bits."""
    return np.asarray(_OPERATIONS[op](a, b, policy))


Operation = Callable[[Words, Words, Policy], Words]


def _shift(shift: np.ufunc, last: np.uint32 | None) -> Operation:
    """Make a shift; a count of 32 and more gives 0, or with `last` the shift by `last`.

    Under policy `shift_count_wide=mask5` the low five bits of the count decide instead.
    """

    def operation(a: Words, b: Words, policy: Policy) -> Words:
        if policy.shift_count_wide == "mask5":
            return np.asarray(shift(a, b & np.uint32(31)))
        if last is not None:
            return np.asarray(shift(a, np.minimum(b, last)))
        within = b < _WIDTH
        return np.where(within, shift(a, np.where(within, b, np.uint32(0))), np.uint32(0))

    return operation


def _arithmetic_right(a: Words, b: Words) -> Words:
    shifted: Words = np.right_shift(a.view(np.int32), b.view(np.int32)).view(np.uint32)
    return shifted


_shift_left = _shift(np.left_shift, None)
_OPERATIONS: dict[int, Operation] = {
    AluOp.BYPASS: lambda a, b, policy: a,
    AluOp.BITWISE_NOT: lambda a, b, policy: ~a,
    AluOp.ARITH_SHIFT_LEFT: _shift_left,
    AluOp.LOGICAL_SHIFT_LEFT: _shift_left,
    AluOp.LOGICAL_SHIFT_RIGHT: _shift(np.right_shift, None),
    AluOp.ARITH_SHIFT_RIGHT: _shift(_arithmetic_right, np.uint32(31)),  # type: ignore[arg-type]
    AluOp.BITWISE_AND: lambda a, b, policy: a & b,
    AluOp.BITWISE_OR: lambda a, b, policy: a | b,
    AluOp.BITWISE_XOR: lambda a, b, policy: a ^ b,
}
