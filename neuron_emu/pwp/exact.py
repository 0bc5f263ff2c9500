"""The closed forms, correctly rounded to float32: evaluator `exact`.

A function is taken in float64 by a form that loses nothing to cancellation, or with a scale that
says how much; an element whose error bound straddles a rounding boundary is redone in the standard
library's `decimal` (`decimals`), which is slow, exact and the same everywhere. No tie occurs there:
these functions are transcendental, or algebraic without a value in the middle of two floats.

What is proven and what is not: the bound of 2^-46 times the scale is 128 ulps of the double.
It covers the roundings of each form below with a margin of eight, provided that the library
functions keep their own promise (numpy's exp, log, tanh, arctan and sin: 4 ulps; the C library's
erf and erfc: 5), which is taken on trust and sampled in the tests. Given that, every result is the
nearest float32. Forms without a `precise` member need no bound: their float64 value is exact, or a
single correctly rounded division or square root, which a second rounding to 24 bits cannot spoil.

Sources: pwp-model.md 5.4 (closed forms), design.md 3. Where the printed form is a truncated
mathematical constant (1.1283792, 0.3989423) or is not the derivative it is named after
(derivative_silu), the mathematical function is meant.
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
from neuron_emu.pwp.decimals import PRECISE
from neuron_emu.pwp.profile import QUIET_NAN

__all__ = [
    "CLOSED_FORMS",
    "ClosedForm",
    "closed_form",
    "enclose",
    "evaluate",
    "has_closed_form",
    "nearest",
]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Scaled = tuple[Doubles, Doubles]

_BOUND = 2.0**-46
_DECIMAL_DIGITS = 60
# Small enough for the float64 pieces to stay in the cache.
_BLOCK = 12288
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
_SIGMOID_SLOPE = 1.702
_CUBIC_SLOPE = 0.044715
# Past this every gated function has reached its limit in float32; exp of it overflows quietly.
_FAR = 1000.0


@frozen
class ClosedForm:
    """One function.

    Attributes
    ----------
    approximate: float64 to the value and its scale: the error is within 2^-46 of the scale.
    precise: the value for a finite non-zero input to at least 50 digits, in the context's
        precision; None where `approximate` leads to the right float32 by itself.
    keeps_nan: a NaN input is the result, quieted; False for the functions that are constant there.
    """

    approximate: Callable[[Doubles], Scaled]
    precise: Callable[[Decimal], Decimal] | None = None
    keeps_nan: bool = True


def has_closed_form(name: str) -> bool:
    """Tell whether a function, given by its name or its profile's, has a closed form here."""
    return name in CLOSED_FORMS or name.rpartition("_")[0] in CLOSED_FORMS


def closed_form(name: str) -> ClosedForm:
    """Return the closed form of a function, by its name or its profile's.

    Raises InputError, with the simulator's text, when there is none.
    """
    form = CLOSED_FORMS.get(name) or CLOSED_FORMS.get(name.rpartition("_")[0])
    if form is None:
        accepted = ", ".join(sorted(CLOSED_FORMS))
        raise InputError(
            f"Unsupported activation function Simulator::simulation: {name}"
            f" (evaluator exact has {accepted})"
        )
    return form


def evaluate(name: str, values: Floats) -> Floats:
    """Return the closed form of the function `name` for float32 [n], correctly rounded.

    `name` may carry a profile's suffix. A NaN that comes in stays, quieted; one that is made (ln
    of a negative number) is 0x7fc00000. Raises InputError for a function without a closed form.
    """
    form = closed_form(name)
    result = np.empty(values.size, np.float32)
    with np.errstate(all="ignore"):
        for start in range(0, values.size, _BLOCK):
            _block(form, values[start : start + _BLOCK], result[start : start + _BLOCK])
    return result


def enclose(name: str, values: Floats) -> tuple[Floats, Floats]:
    """Return two float32 [n] between which the correctly rounded closed form lies.

    They are equal for all but about one element in two million.
    """
    form = closed_form(name)
    with np.errstate(all="ignore"):
        wide, scale = form.approximate(values.astype(np.float64))
        if form.precise is None:
            near = wide.astype(np.float32)
            return near, near
        return _ends(wide, scale)


def nearest(name: str, values: Floats) -> Floats | None:
    """Return the closed form of float32 [n] to within one step of the grid, without deciding.

    None where the error of an element could be more.
    """
    form = closed_form(name)
    with np.errstate(all="ignore"):
        wide, scale = form.approximate(values.astype(np.float64))
        if scale is not wide and bool((np.abs(scale) * 2.0**-20 > np.abs(wide)).any()):
            return None
        return wide.astype(np.float32)


def _ends(wide: Doubles, scale: Doubles) -> tuple[Floats, Floats]:
    bound = np.abs(scale) * _BOUND
    return (wide - bound).astype(np.float32), (wide + bound).astype(np.float32)


def _block(form: ClosedForm, values: Floats, out: Floats) -> None:
    wide, scale = form.approximate(values.astype(np.float64))
    out[...] = wide
    if form.precise is not None:
        lower, upper = _ends(wide, scale)
        for i in np.flatnonzero(lower < upper).tolist():
            out[i] = _decide(form.precise, values[i])
    if math.isnan(values.item(values.argmin())) or math.isnan(out.item(out.argmin())):
        _settle_nan(form, values, out)


def _settle_nan(form: ClosedForm, values: Floats, out: Floats) -> None:
    bits, incoming = out.view(np.uint32), np.isnan(values)
    bits[np.isnan(out) & ~incoming] = QUIET_NAN
    if form.keeps_nan:
        bits[incoming] = quieted(values[incoming].view(np.uint32))


def _decide(precise: Callable[[Decimal], Decimal], value: np.float32) -> np.float32:
    """Return the float32 nearest to the value, by comparison with the middles of neighbours."""
    with localcontext(Context(prec=_DECIMAL_DIGITS)):
        result = precise(Decimal(float(value)))
    # Two roundings lead next to the goal; the middles are exact in 400 digits.
    with np.errstate(all="ignore"):
        near = np.float32(float(result))
        below: np.float32 = np.nextafter(near, np.float32(-np.inf))
        above: np.float32 = np.nextafter(near, np.float32(np.inf))
    with localcontext(Context(prec=400)):
        if result < (_on_grid(below) + _on_grid(near)) / 2:
            return below
        return above if result > (_on_grid(near) + _on_grid(above)) / 2 else near


def _on_grid(end: np.float32) -> Decimal:
    """Return a float32 as a Decimal; past the largest the next step of the grid is 2**128."""
    if np.isinf(end):
        return Decimal(2) ** 128 * (1 if end > 0 else -1)
    return Decimal(float(end))


def _well(function: Callable[[Doubles], Doubles]) -> Callable[[Doubles], Scaled]:
    """Make the form of a function whose error is relative to its value."""

    def approximate(x: Doubles) -> Scaled:
        value = function(x)
        return value, value

    return approximate


def _erf(x: Doubles) -> Doubles:
    size = np.abs(x)
    # Below 2^-13 the next term of the series, x^4/10, is under 2^-55.
    value = x * ((1.0 - x * x / 3.0) * _TWO_OVER_ROOT_PI)
    value = np.where(size > 6.0, np.copysign(1.0, x), value)
    _fill(value, x, (size >= 2.0**-13) & (size <= 6.0), math.erf)
    return value


def _erfc(x: Doubles) -> Doubles:
    value = np.where(x > 0.0, 0.0, 2.0)
    near = np.abs(x) < 2.0**-13
    value = np.where(near, 1.0 - x * _TWO_OVER_ROOT_PI * (1.0 - x * x / 3.0), value)
    _fill(value, x, ~near & (x > -6.0) & (x < 27.0), math.erfc)
    return value


def _fill(
    value: Doubles, x: Doubles, where: npt.NDArray[np.bool_], function: Callable[[float], float]
) -> None:
    """Write a function of the C library, which numpy does not have, to the selected elements."""
    if where.any():
        value[where] = list(map(function, x[where].tolist()))


def _sigmoid(x: Doubles) -> Doubles:
    return 1.0 / (1.0 + np.exp(-x))


def _bell(x: Doubles) -> Doubles:
    """Return sigmoid(x) * sigmoid(-x)."""
    power = np.exp(-np.abs(x))
    once = 1.0 + power
    return power / (once * once)


def _softplus(x: Doubles) -> Doubles:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0.0)


def _gated(slope: float) -> Callable[[Doubles], Scaled]:
    """x*sigmoid(slope*x). The rounding of slope*x is an error of exp as large as its argument."""

    def approximate(x: Doubles) -> Scaled:
        x = np.maximum(x, -_FAR)
        inner = slope * x
        value = x * _sigmoid(inner)
        return value, value if slope == 1.0 else value * (1.0 + np.minimum(np.abs(inner), _FAR))

    return approximate


def _derivative_of_gated(slope: float) -> Callable[[Doubles], Scaled]:
    """s*(1 + u*(1-s)) at u = slope*x, s = sigmoid(u): the sum cancels near u = -1.28."""

    def approximate(x: Doubles) -> Scaled:
        u = np.clip(slope * x, -_FAR, _FAR)
        value, other = _sigmoid(u), _sigmoid(-u)
        pull = u * other
        size = value * (1.0 + np.abs(pull))
        # Relative to u an error moves s*(1-s) and its factors by as much as u itself is large.
        scale = size if slope == 1.0 else size * (1.0 + np.abs(u) * (value < 0.5) + np.abs(pull))
        return value * (1.0 + pull), scale

    return approximate


def _mish(x: Doubles) -> Doubles:
    # x*tanh(ln(1 + e^x)); e^-|x| never overflows.
    x = np.maximum(x, -_FAR)
    power = np.exp(-np.abs(x))
    grown = power * (power + 2.0)
    twice = 2.0 * power
    ratio = np.where(x < 0.0, grown / (grown + 2.0), (1.0 + twice) / (1.0 + twice * (1.0 + power)))
    return x * ratio


def _gelu(x: Doubles) -> Scaled:
    x = np.maximum(x, -_FAR)
    value = 0.5 * x * _erfc(-_ROOT_HALF * x)
    # erfc(z) turns a relative error of z into one of 2 z^2 where it is small.
    return value, value * (1.0 + np.where(x < 0.0, x * x, 0.0))


def _derivative_gelu(x: Doubles) -> Scaled:
    x = np.clip(x, -_FAR, _FAR)
    square = x * x
    area = 0.5 * _erfc(-_ROOT_HALF * x)
    slope = x * _DENSITY * np.exp(-0.5 * square)
    scale = area * (1.0 + np.where(x < 0.0, square, 0.0)) + np.abs(slope)
    # Where both vanish the sum would lose its sign, which is that of x.
    return np.where(x < -38.0, -0.0, area + slope), scale


def _gelu_apprx_tanh(x: Doubles) -> Scaled:
    # (1 + tanh u) / 2 = sigmoid(2u)
    x = np.maximum(x, -_FAR)
    inner = 2.0 * math.sqrt(2.0 / math.pi) * (x + _CUBIC_SLOPE * x * x * x)
    value = x * _sigmoid(inner)
    return value, value * (1.0 + np.minimum(np.abs(inner), _FAR))


CLOSED_FORMS: dict[str, ClosedForm] = {
    name: ClosedForm(approximate, PRECISE[name])
    for name, approximate in {
        "exp": _well(np.exp),
        "tanh": _well(np.tanh),
        "sigmoid": _well(_sigmoid),
        "derivative_sigmoid": _well(_bell),
        "derivative_tanh": _well(lambda x: 4.0 * _bell(2.0 * x)),
        "ln": _well(np.log),
        "softplus": _well(_softplus),
        "silu": _gated(1.0),
        "derivative_silu": _derivative_of_gated(1.0),
        "gelu_apprx_sigmoid": _gated(_SIGMOID_SLOPE),
        "derivative_gelu_apprx_sigmoid": _derivative_of_gated(_SIGMOID_SLOPE),
        "mish": _well(_mish),
        "erf": _well(_erf),
        "derivative_erf": _well(lambda x: _TWO_OVER_ROOT_PI * np.exp(-(x * x))),
        "gelu": _gelu,
        "derivative_gelu": _derivative_gelu,
        "gelu_apprx_tanh": _gelu_apprx_tanh,
        "sin": _well(np.sin),
        "arctan": _well(np.arctan),
        "reciprocal_sqrt": _well(lambda x: 1.0 / np.sqrt(x)),
        "abs_reciprocal_sqrt": _well(lambda x: 1.0 / np.sqrt(np.abs(x))),
    }.items()
} | {
    "sqrt": ClosedForm(_well(np.sqrt)),
    "reciprocal": ClosedForm(_well(lambda x: 1.0 / x)),
    "identity": ClosedForm(_well(lambda x: x)),
    "copy": ClosedForm(_well(lambda x: x)),
    "relu": ClosedForm(_well(lambda x: np.maximum(x, 0.0))),
    "leaky_relu": ClosedForm(_well(lambda x: np.where(x <= 0, x / 100.0, x))),
    "abs": ClosedForm(_well(np.abs)),
    "square": ClosedForm(_well(lambda x: x * x)),
    "sign": ClosedForm(_well(np.sign)),
    "memset_zero": ClosedForm(_well(np.zeros_like), keeps_nan=False),
    "is_finite": ClosedForm(_well(lambda x: np.isfinite(x).astype(np.float64)), keeps_nan=False),
    "derivative_relu": ClosedForm(_well(lambda x: np.where(x > 0, 1.0, 0.0))),
    "derivative_leaky_relu": ClosedForm(_well(lambda x: np.where(x > 0, 1.0, 0.01))),
    "derivative_identity": ClosedForm(_well(np.ones_like)),
}
