"""ALU operations on single values, in plain Python: the oracle of `engines.alu` and its siblings.

A float32 travels as its 32 bits, a word as an unsigned integer below 2**32. Nothing here is shared
with the arrays' code; sums and products are the exact rationals of `conversion`.

Sources: dve-tensor-scalar.md 5.1 to 5.3; design.md 3 for NaNs.
"""

from __future__ import annotations

from neuron_emu.engines.reference.conversion import add_bits, multiply_bits, subtract_bits
from neuron_emu.isa.enums import AluOp
from neuron_emu.policy import Policy

__all__ = ["IDENTITIES", "bitvec_op", "float_op", "integer_op"]

_SIGN = 0x8000_0000
_MAGNITUDE = 0x7FFF_FFFF
_INFINITY = 0x7F80_0000
_QUIET = 0x0040_0000
_CANONICAL_NAN = 0x7FC0_0000
_ONE = 0x3F80_0000
IDENTITIES = {
    AluOp.ADD: 0,
    AluOp.SUBTRACT: 0,
    AluOp.MULT: _ONE,
    AluOp.MAX: _SIGN | _INFINITY,
    AluOp.MIN: _INFINITY,
}
"""float32 bits that ZERO_ACCUMULATE starts from (4.5)."""


def float_op(op: int, a: int, b: int, policy: Policy) -> int:
    """Return the float32 bits of `a op b`; an operation of one operand takes `a`."""
    if op == AluOp.BYPASS:
        return a
    if op == AluOp.ADD:
        return add_bits(a, b)
    if op == AluOp.SUBTRACT:
        return subtract_bits(a, b)
    if op == AluOp.MULT:
        return multiply_bits(a, b)
    if op == AluOp.SQUARE:
        return multiply_bits(a, a)
    if op == AluOp.MAX:
        return _extreme(a, b, True, policy)
    if op == AluOp.MIN:
        return _extreme(a, b, False, policy)
    if op == AluOp.RELU:
        return _extreme(a, 0, True, policy)
    if op == AluOp.ABS_VALUE:
        return _magnitude(a)
    if op == AluOp.ABS_DIFF:
        return _magnitude(subtract_bits(a, b))
    if op in (AluOp.ABS_MAX, AluOp.ABS_MIN):
        return _by_magnitude(op == AluOp.ABS_MAX, a, b)
    if op == AluOp.SYMMETRIC_CLAMP:
        return _symmetric_clamp(a, b, policy)
    return _ONE if _holds(op, a, b) else 0


def _is_nan(bits: int) -> bool:
    return bits & _MAGNITUDE > _INFINITY


def _quieted(bits: int) -> int:
    return bits | _QUIET if _is_nan(bits) else bits


def _order(bits: int) -> int:
    """Return an integer that orders floats that are no NaN, both zeros alike."""
    magnitude = bits & _MAGNITUDE
    return -magnitude if bits & _SIGN else magnitude


def _holds(op: int, a: int, b: int) -> bool:
    a_true, b_true = a & _MAGNITUDE != 0, b & _MAGNITUDE != 0
    if op == AluOp.LOGICAL_AND:
        return a_true and b_true
    if op == AluOp.LOGICAL_OR:
        return a_true or b_true
    if op == AluOp.LOGICAL_XOR:
        return a_true != b_true
    if _is_nan(a) or _is_nan(b):
        return op == AluOp.IS_NE
    left, right = _order(a), _order(b)
    return {
        AluOp.IS_EQUAL: left == right,
        AluOp.IS_NE: left != right,
        AluOp.IS_GT: left > right,
        AluOp.IS_GE: left >= right,
        AluOp.IS_LE: left <= right,
        AluOp.IS_LT: left < right,
    }[AluOp(op)]


def _extreme(a: int, b: int, is_max: bool, policy: Policy) -> int:
    if _is_nan(a) or _is_nan(b):
        if policy.nan_max_min == "propagate":
            return _quieted(a if _is_nan(a) else b)
        if policy.nan_max_min == "second":
            return _quieted(b)
        if _is_nan(a) and _is_nan(b):
            return _CANONICAL_NAN
        return b if _is_nan(a) else a
    if _order(a) == _order(b):
        # Equal numbers have equal bits, but for the zeros: +0 is the larger one.
        return min(a, b) if is_max else max(a, b)
    return a if (_order(a) > _order(b)) == is_max else b


def _magnitude(bits: int) -> int:
    return _quieted(bits) if _is_nan(bits) else bits & _MAGNITUDE


def _by_magnitude(larger: bool, a: int, b: int) -> int:
    if _is_nan(a) or _is_nan(b):
        return _quieted(b)
    left, right = a & _MAGNITUDE, b & _MAGNITUDE
    first = left > right if larger else left < right
    return a if first else b


def _symmetric_clamp(a: int, b: int, policy: Policy) -> int:
    if _is_nan(a):
        return _quieted(a)
    magnitude_of_b = b if _is_nan(b) else b & _MAGNITUDE
    is_max = policy.symmetric_clamp == "comment"
    chosen = _extreme(a & _MAGNITUDE, magnitude_of_b & _MAGNITUDE, is_max, policy)
    return chosen if _is_nan(chosen) else (a & _SIGN) | chosen


def bitvec_op(op: int, a: int, b: int, policy: Policy) -> int:
    """Return `a op b` of 32-bit words; narrower elements come zero-extended."""
    if op == AluOp.BYPASS:
        return a
    if op == AluOp.BITWISE_NOT:
        return a ^ 0xFFFF_FFFF
    if op == AluOp.BITWISE_AND:
        return a & b
    if op == AluOp.BITWISE_OR:
        return a | b
    if op == AluOp.BITWISE_XOR:
        return a ^ b
    count = b % 32 if policy.shift_count_wide == "mask5" else min(b, 64)
    if op in (AluOp.ARITH_SHIFT_LEFT, AluOp.LOGICAL_SHIFT_LEFT):
        return (a << count) & 0xFFFF_FFFF
    if op == AluOp.LOGICAL_SHIFT_RIGHT:
        return a >> count
    if op == AluOp.ARITH_SHIFT_RIGHT:
        return (_as_signed(a) >> count) & 0xFFFF_FFFF
    raise KeyError(op)


def _as_signed(word: int) -> int:
    return word - 2**32 if word & _SIGN else word


def integer_op(op: int, a: int, b: int) -> int:
    """Return `a op b` of 32-bit words, modulo 2**32; comparisons give 1 or 0."""
    x, y = _as_signed(a), _as_signed(b)
    results = {
        AluOp.BYPASS: x,
        AluOp.ADD_INT: x + y,
        AluOp.SUBTRACT_INT: x - y,
        AluOp.MULT_INT: x * y,
        AluOp.MULT_UINT: a * b,
        AluOp.IS_EQUAL_INT: x == y,
        AluOp.IS_NE_INT: x != y,
        AluOp.ABS_MAX_INT: x if abs(x) > abs(y) else y,
        AluOp.ABS_MIN_INT: x if abs(x) < abs(y) else y,
        AluOp.ABS_DIFF_INT: abs(x - y),
        AluOp.ABS_VALUE_INT: abs(x),
        AluOp.MAX_INT: max(x, y),
        AluOp.MIN_INT: min(x, y),
        AluOp.IS_GT_INT: x > y,
        AluOp.IS_GE_INT: x >= y,
        AluOp.IS_LE_INT: x <= y,
        AluOp.IS_LT_INT: x < y,
        AluOp.MAX_UINT: max(a, b),
        AluOp.MIN_UINT: min(a, b),
        AluOp.IS_GT_UINT: a > b,
        AluOp.IS_GE_UINT: a >= b,
        AluOp.IS_LE_UINT: a <= b,
        AluOp.IS_LT_UINT: a < b,
    }
    return int(results[AluOp(op)]) % 2**32
