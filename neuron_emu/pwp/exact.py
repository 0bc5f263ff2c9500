"""The closed forms, correctly rounded to float32: evaluator `exact`.

A transcendental function is taken in float64 with a generous error bound; an element whose bound
straddles a rounding boundary is redone with the standard library's `decimal`, which is slow,
exact and the same everywhere. Sources: pwp-model.md 5.4 (closed forms), design.md 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.arithmetic import quieted

__all__ = ["CLOSED_FORMS", "ClosedForm", "evaluate"]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

# numpy's vector routines promise 4 ulps of the double; this allows 64.
_RELATIVE_BOUND = 2.0**-46
_DECIMAL_DIGITS = 60
# Small enough for the float64 pieces to stay in the cache.
_BLOCK = 12288


@frozen
class ClosedForm:
    """One function.

    Attributes
    ----------
    approximate: float64 to float64, exact when `precise` is None, else within _RELATIVE_BOUND.
    precise: the value for a finite non-zero input to at least 50 digits.
    keeps_nan: a NaN input is the result, quieted; False for the functions that are constant there.
    """

    approximate: Callable[[Doubles], Doubles]
    precise: Callable[[Decimal], Decimal] | None = None
    keeps_nan: bool = True


def evaluate(name: str, values: Floats) -> Floats:
    """Return the closed form of the function `name` for float32 [n], correctly rounded.

    `name` may carry a profile's suffix. Raises InputError for a function without a closed form.
    """
    form = CLOSED_FORMS.get(name) or CLOSED_FORMS.get(name.rpartition("_")[0])
    if form is None:
        accepted = ", ".join(sorted(CLOSED_FORMS))
        raise InputError(f"evaluator exact has no closed form of {name!r}; it has {accepted}")
    result = np.empty(values.size, np.float32)
    with np.errstate(all="ignore"):
        for start in range(0, values.size, _BLOCK):
            _block(form, values[start : start + _BLOCK], result[start : start + _BLOCK])
    return result


def _block(form: ClosedForm, values: Floats, out: Floats) -> None:
    wide = form.approximate(values.astype(np.float64))
    out[...] = wide
    if form.precise is not None:
        bound = np.abs(wide) * _RELATIVE_BOUND
        lower = (wide - bound).astype(np.float32)
        upper = (wide + bound).astype(np.float32)
        for i in np.flatnonzero(lower < upper).tolist():
            out[i] = _decide(form.precise, values[i], lower[i], upper[i])
    if form.keeps_nan and math.isnan(values.item(values.argmin())):
        bits, nan = out.view(np.uint32), np.isnan(values)
        bits[nan] = quieted(values[nan].view(np.uint32))


def _decide(
    precise: Callable[[Decimal], Decimal], value: np.float32, lower: np.float32, upper: np.float32
) -> np.float32:
    """Choose between two adjacent floats; an exact tie cannot occur for these functions."""
    with localcontext(Context(prec=_DECIMAL_DIGITS)):
        result = precise(Decimal(float(value)))
    with localcontext(Context(prec=400)):
        # Past the largest float the next step of the grid would be 2**128.
        ends = [
            Decimal(2) ** 128 * (1 if end > 0 else -1) if np.isinf(end) else Decimal(float(end))
            for end in (lower, upper)
        ]
        return upper if result > sum(ends) / 2 else lower


def _tanh(x: Decimal) -> Decimal:
    # expm1 by series: its digits must survive for small x.
    if abs(x) < Decimal("0.01"):
        square = x * x
        numerator, denominator = Decimal(0), Decimal(0)
        term = Decimal(1)
        for k in range(40):
            if k % 2:
                numerator += term
            else:
                denominator += term
            term = term * x / (k + 1)
        return numerator / denominator if square else x
    power = (2 * x).exp()
    return (power - 1) / (power + 1)


def _leaky(x: Doubles) -> Doubles:
    return np.where(x <= 0, 0.01 * x, x)


CLOSED_FORMS: dict[str, ClosedForm] = {
    "exp": ClosedForm(np.exp, Decimal.exp),
    "tanh": ClosedForm(np.tanh, _tanh),
    "identity": ClosedForm(lambda x: x),
    "copy": ClosedForm(lambda x: x),
    "relu": ClosedForm(lambda x: np.maximum(x, 0.0)),
    "leaky_relu": ClosedForm(_leaky),
    "abs": ClosedForm(np.abs),
    "square": ClosedForm(lambda x: x * x),
    "sign": ClosedForm(np.sign),
    "memset_zero": ClosedForm(np.zeros_like, keeps_nan=False),
    "is_finite": ClosedForm(lambda x: np.isfinite(x).astype(np.float64), keeps_nan=False),
    "derivative_relu": ClosedForm(lambda x: np.where(x > 0, 1.0, 0.0)),
    "derivative_leaky_relu": ClosedForm(lambda x: np.where(x > 0, 1.0, 0.01)),
    "derivative_identity": ClosedForm(np.ones_like),
}
