"""The ALU of the DVE: one operation on float32 arrays, and its reductions and scans.

`apply(op, a, b, policy)` is one stage; `a` is the left operand. `fold` and `scan` carry a value
from element to element in stream order, each step rounded to float32. Operations on raw bits are in
`alu_bitvec`, those of the integer band in `alu_integer`; `unsupported` says which ones this engine
does not have.

NaN (design.md 3): a NaN operand stays, quieted, and of two the first; one that arithmetic makes is
0x7fc00000. Any operation but BYPASS that returns a NaN operand returns it quieted, sign kept.

Sources: dve-tensor-scalar.md 5.1 and 5.3; policy rows `nan_max_min` and `symmetric_clamp`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from neuron_emu import numerics
from neuron_emu.engines.core import Problem
from neuron_emu.generation import Generation
from neuron_emu.isa.alu_ops import op_name
from neuron_emu.isa.enums import AluOp
from neuron_emu.policy import Policy

__all__ = ["CANONICAL_NAN", "Float32s", "apply", "fold", "identity", "scan", "unsupported"]

Float32s = npt.NDArray[np.float32]
Truths = npt.NDArray[np.bool_]
Operation = Callable[[Float32s, Float32s, Policy], Float32s]

CANONICAL_NAN = np.uint32(0x7FC0_0000).view(np.float32)
_MAGNITUDE = np.uint32(0x7FFF_FFFF)
_SIGN = np.uint32(0x8000_0000)
_IDENTITIES = {
    AluOp.ADD: np.float32(0),
    AluOp.SUBTRACT: np.float32(0),
    AluOp.MULT: np.float32(1),
    AluOp.MAX: np.float32(-np.inf),
    AluOp.MIN: np.float32(np.inf),
}
_ELSEWHERE = {
    AluOp.DIVIDE: "no DVE instruction accepts it",
    AluOp.POW: "Pool and GpSimd have it",
    AluOp.MOD: "Pool and GpSimd have it",
    AluOp.CRC32: "Pool and GpSimd have it",
    AluOp.RSQRT: "Pool and GpSimd have it",
    **dict.fromkeys(
        (AluOp.DIVIDE_INT, AluOp.MOD_INT, AluOp.DIVIDE_UINT, AluOp.MOD_UINT),
        "its result for a zero divisor is not published",
    ),
    **dict.fromkeys(
        (AluOp.AMAX_INT, AluOp.AMIN_INT, AluOp.AMAX_UINT, AluOp.AMIN_UINT),
        "only that it returns an index is published",
    ),
}


def unsupported(op: int, generation: Generation) -> Problem | None:
    """Return why the DVE of a generation does not have an operation, None when it has it.

    Sources: dve-tensor-scalar.md 5.1, 5.2 and 9.1 ("not on the DVE").
    """
    if op not in generation.alu_ops:
        return Problem("no_model", f"{op_name(op)} is no ALU operation of {generation.name}")
    reason = _ELSEWHERE.get(AluOp(op))
    if reason is None:
        return None
    return Problem("no_model", f"{op_name(op)} is unsupported on the DVE: {reason}")


def identity(op: int) -> np.float32:
    """Return what ZERO_ACCUMULATE starts from (dve-tensor-scalar.md 4.5).

    Defined for ADD and SUBTRACT (0), MULT (1), MAX (-inf) and MIN (+inf); KeyError for others.
    """
    return _IDENTITIES[AluOp(op)]


def apply(op: int, a: Float32s, b: Float32s, policy: Policy) -> Float32s:
    """Return `a op b` in float32, broadcast; rounded to nearest even.

    Operations of one operand (BYPASS too) take `a`, and their result has its shape. Comparisons
    and logical operations give 1.0 or 0.0. KeyError for an operation that `unsupported` names or
    that works on bits or integers.
    """
    if op == AluOp.BYPASS:
        return a
    arithmetic = _ARITHMETIC.get(op)
    if arithmetic is not None:
        return arithmetic(a, b)
    with np.errstate(all="ignore"):
        return _OPERATIONS[op](a, b, policy)


# --- one operation each ------------------------------------------------------------------------


def _has_nan(values: Float32s) -> bool:
    return bool(np.count_nonzero(np.isnan(values)))


def _bits(values: Float32s) -> npt.NDArray[np.uint32]:
    return values.view(np.uint32)


def _bypass(a: Float32s, b: Float32s, policy: Policy) -> Float32s:
    return a


def _larger_or_smaller(is_max: bool) -> Operation:
    """Make MAX or MIN: zeros are ordered, and policy `nan_max_min` decides what a NaN gives."""

    extreme = np.maximum if is_max else np.minimum

    def operation(a: Float32s, b: Float32s, policy: Policy) -> Float32s:
        result: Float32s = np.asarray(extreme(a, b))
        zero = result == 0
        if np.count_nonzero(zero):
            both = zero & (a == 0) & (b == 0)
            word = _bits(a) & _bits(b) if is_max else _bits(a) | _bits(b)
            result = np.where(both, word.view(np.float32), result)
        if not _has_nan(result):
            return result
        return _after_nan(a, b, result, policy.nan_max_min)

    return operation


def _after_nan(a: Float32s, b: Float32s, result: Float32s, choice: str) -> Float32s:
    """Settle the elements of MAX or MIN with a NaN operand.

    np.fmax cannot do it: with a signalling NaN its answer depends on the host.
    """
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    if choice == "other":
        one = np.where(a_nan, b, a)
        return np.where(a_nan | b_nan, np.where(a_nan & b_nan, CANONICAL_NAN, one), result)
    if choice == "second":
        return numerics.quiet(np.where(a_nan | b_nan, b, result))
    return np.where(a_nan | b_nan, numerics.add(a, b), result)


_max, _min = _larger_or_smaller(True), _larger_or_smaller(False)


def _truth(operation: np.ufunc) -> Operation:
    """Make an operation that gives 1.0 or 0.0; a comparison with a NaN is false, IS_NE true."""

    def result(a: Float32s, b: Float32s, policy: Policy) -> Float32s:
        truth: Float32s = np.asarray(operation(a, b)).astype(np.float32)
        return truth

    return result


def _logical(operation: np.ufunc) -> Operation:
    """Make a logical operation on `x != 0`; a NaN counts as true."""

    def result(a: Float32s, b: Float32s, policy: Policy) -> Float32s:
        truth: Float32s = np.asarray(operation(a != 0, b != 0)).astype(np.float32)
        return truth

    return result


def _magnitude(values: Float32s) -> Float32s:
    """Return the values without their sign; a NaN keeps its own."""
    if _has_nan(values):
        return np.where(np.isnan(values), numerics.quiet(values), np.abs(values))
    return np.abs(values)


def _abs_max(a: Float32s, b: Float32s, policy: Policy) -> Float32s:
    """Return the operand of larger magnitude as it is; on a tie or with a NaN the second."""
    return numerics.quiet(np.where(np.abs(a) > np.abs(b), a, b))


def _abs_min(a: Float32s, b: Float32s, policy: Policy) -> Float32s:
    return numerics.quiet(np.where(np.abs(a) < np.abs(b), a, b))


def _symmetric_clamp(a: Float32s, b: Float32s, policy: Policy) -> Float32s:
    """Return the sign bit of `a` on the larger magnitude (policy `symmetric_clamp`).

    The header's comment is all there is; a NaN in `a` stays, one in `b` follows MAX (MIN).
    """
    pick = _max if policy.symmetric_clamp == "comment" else _min
    chosen = pick(np.abs(a), np.abs(b), policy)
    word = (_bits(chosen) & _MAGNITUDE) | (_bits(a) & _SIGN)
    signed = np.where(np.isnan(chosen), chosen, word.view(np.float32))
    return np.where(np.isnan(a), numerics.quiet(a), signed)


_ZERO = np.zeros(1, np.float32)


def _relu(a: Float32s, b: Float32s, policy: Policy) -> Float32s:
    """Return MAX of `a` and 0; adding 0 makes +0.0 of both zeros, and leaves the rest."""
    result: Float32s = np.maximum(a, _ZERO)
    result += _ZERO
    return _after_nan(a, _ZERO, result, policy.nan_max_min) if _has_nan(result) else result


_ARITHMETIC: dict[int, Callable[[Float32s, Float32s], Float32s]] = {
    AluOp.ADD: numerics.add,
    AluOp.SUBTRACT: numerics.subtract,
    AluOp.MULT: numerics.multiply,
}
_OPERATIONS: dict[int, Operation] = {
    AluOp.BYPASS: _bypass,
    AluOp.ADD: lambda a, b, policy: numerics.add(a, b),
    AluOp.SUBTRACT: lambda a, b, policy: numerics.subtract(a, b),
    AluOp.MULT: lambda a, b, policy: numerics.multiply(a, b),
    AluOp.MAX: _max,
    AluOp.MIN: _min,
    AluOp.LOGICAL_AND: _logical(np.logical_and),
    AluOp.LOGICAL_OR: _logical(np.logical_or),
    AluOp.LOGICAL_XOR: _logical(np.logical_xor),
    AluOp.IS_EQUAL: _truth(np.equal),
    AluOp.IS_GT: _truth(np.greater),
    AluOp.IS_GE: _truth(np.greater_equal),
    AluOp.IS_LE: _truth(np.less_equal),
    AluOp.IS_LT: _truth(np.less),
    AluOp.IS_NE: _truth(np.not_equal),
    AluOp.ABS_DIFF: lambda a, b, policy: _magnitude(numerics.subtract(a, b)),
    AluOp.ABS_VALUE: lambda a, b, policy: _magnitude(a),
    AluOp.ABS_MAX: _abs_max,
    AluOp.ABS_MIN: _abs_min,
    AluOp.RELU: _relu,
    AluOp.SQUARE: lambda a, b, policy: numerics.multiply(a, a),
    AluOp.SYMMETRIC_CLAMP: _symmetric_clamp,
}


# --- reductions and scans ----------------------------------------------------------------------


def fold(
    op: int,
    initial: Float32s,
    values: Float32s,
    policy: Policy,
    *,
    value_first: bool = True,
    order: str = "serial",
) -> Float32s:
    """Return the accumulator of each lane after every element, in stream order.

    `acc = value op acc`, or `acc op value` without `value_first`. `order` is policy `acc_order` and
    concerns ADD alone: `pairs` sums even and odd elements apart, the odd ones from +0.0.

    Parameters: `initial` is float32 [lanes], `values` float32 [lanes, n], n at least 1.
    """
    with np.errstate(all="ignore"):
        if op == AluOp.ADD:
            if order == "pairs":
                return _fold_pairs(initial, values, policy, value_first)
            total = numerics.accumulate(initial, values)
            return _last_nan(total, initial, values) if value_first else total
        if op in (AluOp.MAX, AluOp.MIN) and policy.nan_max_min == "other":
            return _fold_extreme(op == AluOp.MAX, initial, values)
        if op == AluOp.MULT and value_first:
            running = np.multiply.accumulate(_beside(initial, values), axis=1)
            return _last_nan(running[:, -1].copy(), initial, values)
        total = initial
        for column in range(values.shape[1]):
            total = _step(op, total, values[:, column], policy, value_first)
        return total


def scan(
    op: int,
    initial: Float32s,
    values: Float32s,
    policy: Policy,
    *,
    value_first: bool = True,
) -> Float32s:
    """Return the accumulator after each element, float32 [lanes, n]; see `fold`."""
    with np.errstate(all="ignore"):
        if op in (AluOp.MAX, AluOp.MIN) and policy.nan_max_min == "other":
            return _scan_extreme(op == AluOp.MAX, initial, values)
        if op not in (AluOp.ADD, AluOp.MULT):
            return _scan_by_columns(op, initial, values, policy, value_first)
        ufunc = np.add if op == AluOp.ADD else np.multiply
        running: Float32s = ufunc.accumulate(_beside(initial, values), axis=1)[:, 1:]
        lost = np.isnan(running[:, -1])
        if lost.any():
            again = _scan_by_columns(op, initial[lost], values[lost], policy, value_first)
            running[lost] = again
        return running


def _step(op: int, total: Float32s, value: Float32s, policy: Policy, value_first: bool) -> Float32s:
    operation = _OPERATIONS[op]
    return operation(value, total, policy) if value_first else operation(total, value, policy)


def _scan_by_columns(
    op: int, initial: Float32s, values: Float32s, policy: Policy, value_first: bool
) -> Float32s:
    running = np.empty(values.shape, np.float32)
    total = initial
    for column in range(values.shape[1]):
        total = _step(op, total, values[:, column], policy, value_first)
        running[:, column] = total
    return running


def _beside(initial: Float32s, values: Float32s) -> Float32s:
    return np.concatenate((initial[:, None], values), axis=1)


def _fold_pairs(initial: Float32s, values: Float32s, policy: Policy, value_first: bool) -> Float32s:
    even = fold(AluOp.ADD, initial, values[:, 0::2], policy, value_first=value_first)
    odd = np.zeros_like(initial)
    if values.shape[1] > 1:
        odd = fold(AluOp.ADD, odd, values[:, 1::2], policy, value_first=value_first)
    return numerics.add(even, odd)


def _last_nan(total: Float32s, initial: Float32s, values: Float32s) -> Float32s:
    """Settle the NaNs of a sum or product whose new element is the first operand of each step.

    A NaN element replaces the accumulator's, so the last one remains; else that of the start; else
    arithmetic made it.
    """
    lost = np.isnan(total)
    if not lost.any():
        return total
    is_nan = np.isnan(values[lost])
    last = is_nan.shape[1] - 1 - is_nan[:, ::-1].argmax(axis=1)
    elements = values[lost][np.arange(len(last)), last]
    kept = np.where(np.isnan(initial[lost]), initial[lost], CANONICAL_NAN)
    total[lost] = numerics.quiet(np.where(is_nan.any(axis=1), elements, kept))
    return total


def _fold_extreme(is_max: bool, initial: Float32s, values: Float32s) -> Float32s:
    """Fold MAX or MIN where NaNs are passed over: the order cannot show, but zeros are ordered."""
    seen, is_nan = _without_nan(is_max, _beside(initial, values))
    total: Float32s = (np.maximum if is_max else np.minimum).reduce(seen, axis=1)
    zero = total == 0
    if np.count_nonzero(zero):
        won = _winning_zero(is_max, seen[zero])
        total[zero] = _signed_zero(is_max, np.asarray(won.any(axis=1)))
    if is_nan is not None:
        total[is_nan.all(axis=1)] = CANONICAL_NAN
    return total


def _scan_extreme(is_max: bool, initial: Float32s, values: Float32s) -> Float32s:
    seen, is_nan = _without_nan(is_max, _beside(initial, values))
    running: Float32s = (np.maximum if is_max else np.minimum).accumulate(seen, axis=1)[:, 1:]
    zero = running == 0
    if np.count_nonzero(zero):
        won = np.logical_or.accumulate(_winning_zero(is_max, seen), axis=1)[:, 1:]
        running = np.where(zero, _signed_zero(is_max, won), running)
    if is_nan is not None:
        only_nan = np.logical_and.accumulate(is_nan, axis=1)[:, 1:]
        running = np.where(only_nan, CANONICAL_NAN, running)
    return running


def _without_nan(is_max: bool, values: Float32s) -> tuple[Float32s, Truths | None]:
    """Return the values with what never wins for each NaN, and where those were, if anywhere."""
    if not _has_nan(values):
        return values, None
    is_nan = np.isnan(values)
    return np.where(is_nan, _IDENTITIES[AluOp.MAX if is_max else AluOp.MIN], values), is_nan


def _winning_zero(is_max: bool, values: Float32s) -> Truths:
    """Tell which elements are the zero that wins over the other one: +0 for MAX, -0 for MIN."""
    word = np.ascontiguousarray(values).view(np.uint32)
    return np.asarray(word == (np.uint32(0) if is_max else _SIGN))


def _signed_zero(is_max: bool, won: Truths) -> Float32s:
    return np.where(won == is_max, np.float32(0.0), np.float32(-0.0))
