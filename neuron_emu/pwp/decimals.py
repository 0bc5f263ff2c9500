"""The activation functions in the standard library's `decimal`, slow and to any precision.

`exact` asks here for the few elements that float64 leaves open. Each function takes a finite
non-zero Decimal and returns at least the digits of the context it is called in, less five. Inner
steps that cancel carry the digits they lose on top. Sources: pwp-model.md 5.4 (closed forms, whose
printed constants 1.1283792 and 0.3989423 are read as 2/sqrt(pi) and 1/sqrt(2*pi)).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, getcontext, localcontext
from functools import lru_cache

__all__ = ["PRECISE", "arctan", "erf", "erfc", "log1p", "pi", "sin"]

_ONE = Decimal(1)
_TWO = Decimal(2)
_SIGMOID_SLOPE = Decimal("1.702")
_CUBIC_SLOPE = Decimal("0.044715")
_GUARD = 12


@lru_cache(maxsize=8)
def _pi_to(digits: int) -> Decimal:
    with localcontext() as context:
        context.prec = digits + _GUARD
        # Machin: pi/4 = 4 arctan(1/5) - arctan(1/239).
        return 4 * (4 * _arctan_series(_ONE / 5) - _arctan_series(_ONE / 239))


def pi() -> Decimal:
    """Return pi to the precision of the context."""
    return _pi_to(getcontext().prec)


def _arctan_series(x: Decimal) -> Decimal:
    square, power, total, k = x * x, x, x, 1
    while True:
        power = -power * square
        k += 2
        next_total = total + power / k
        if next_total == total:
            return total
        total = next_total


def arctan(x: Decimal) -> Decimal:
    """Return the arc tangent, by halving the angle until the series is short."""
    with localcontext() as context:
        context.prec += _GUARD
        if abs(x) > 1:
            return (pi() / 2).copy_sign(x) - arctan(1 / x)
        halvings = 0
        while abs(x) > Decimal("0.05"):
            x = x / (1 + (1 + x * x).sqrt())
            halvings += 1
        return _arctan_series(x) * Decimal(1 << halvings)


def sin(x: Decimal) -> Decimal:
    """Return the sine of x radians; the reduction carries the digits of x."""
    with localcontext() as context:
        # A multiple of pi may be as close to a float32 as its last digit: 2 * 24 bits more.
        context.prec += _GUARD + 20 + max(x.adjusted(), 0)
        rest = x - 2 * pi() * (x / (2 * pi())).to_integral_value()
        square, term, total, k = rest * rest, rest, rest, 1
        while True:
            term = -term * square / ((k + 1) * (k + 2))
            k += 2
            next_total = total + term
            if next_total == total:
                return total
            total = next_total


def log1p(x: Decimal) -> Decimal:
    """Return ln(1 + x) for x > -1."""
    with localcontext() as context:
        context.prec += _GUARD + max(-x.adjusted(), 0)
        return (1 + x).ln()


def erf(x: Decimal) -> Decimal:
    """Return the error function by its series of positive terms."""
    with localcontext() as context:
        context.prec += _GUARD
        twice_square, term, total, k = 2 * x * x, x, x, 1
        while True:
            k += 2
            term = term * twice_square / k
            next_total = total + term
            if next_total == total:
                return 2 * (-x * x).exp() * total / pi().sqrt()
            total = next_total


def erfc(x: Decimal) -> Decimal:
    """Return 1 - erf(x); for a positive x with the digits that the difference loses."""
    with localcontext() as context:
        context.prec += _GUARD + (int(x * x / 2) if x > 0 else 0)
        return 1 - erf(x)


def _expm1(x: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec += _GUARD + max(-x.adjusted(), 0)
        return x.exp() - 1


def _tanh(x: Decimal) -> Decimal:
    grown = _expm1(2 * x)
    return grown / (grown + 2)


def _sigmoid(x: Decimal) -> Decimal:
    return 1 / (1 + (-x).exp())


def _derivative_sigmoid(x: Decimal) -> Decimal:
    power = (-abs(x)).exp()
    return power / (1 + power) ** 2


def _derivative_of_gated(x: Decimal) -> Decimal:
    """Return d/dx of x*sigmoid(x); near its zero at -1.28 the sum carries 30 digits more."""
    with localcontext() as context:
        context.prec += _GUARD + 30
        power = x.exp()
        return (x + power + 1) * power / (power + 1) ** 2


def _softplus(x: Decimal) -> Decimal:
    return log1p((-abs(x)).exp()) + max(x, Decimal(0))


def _mish(x: Decimal) -> Decimal:
    # tanh(ln(1 + e)) = (e^2 + 2e) / (e^2 + 2e + 2)
    power = x.exp()
    numerator = power * (power + 2)
    return x * numerator / (numerator + 2)


def _gelu(x: Decimal) -> Decimal:
    return x * erfc(-x / _TWO.sqrt()) / 2


def _derivative_gelu(x: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec += _GUARD + 30
        density = (-x * x / 2).exp() / (2 * pi()).sqrt()
        return erfc(-x / _TWO.sqrt()) / 2 + x * density


def _gelu_apprx_tanh(x: Decimal) -> Decimal:
    # (1 + tanh u) / 2 = sigmoid(2u)
    inner = (2 / pi()).sqrt() * (x + _CUBIC_SLOPE * x**3)
    return x * _sigmoid(2 * inner)


def _derivative_erf(x: Decimal) -> Decimal:
    return 2 * (-x * x).exp() / pi().sqrt()


PRECISE: dict[str, Callable[[Decimal], Decimal]] = {
    "exp": Decimal.exp,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "derivative_sigmoid": _derivative_sigmoid,
    "derivative_tanh": lambda x: 4 * _derivative_sigmoid(2 * x),
    "ln": Decimal.ln,
    "softplus": _softplus,
    "silu": lambda x: x * _sigmoid(x),
    "derivative_silu": _derivative_of_gated,
    "gelu_apprx_sigmoid": lambda x: x * _sigmoid(_SIGMOID_SLOPE * x),
    "derivative_gelu_apprx_sigmoid": lambda x: _derivative_of_gated(_SIGMOID_SLOPE * x),
    "mish": _mish,
    "erf": erf,
    "derivative_erf": _derivative_erf,
    "gelu": _gelu,
    "derivative_gelu": _derivative_gelu,
    "gelu_apprx_tanh": _gelu_apprx_tanh,
    "sin": sin,
    "arctan": arctan,
    "reciprocal_sqrt": lambda x: 1 / x.sqrt(),
    "abs_reciprocal_sqrt": lambda x: 1 / abs(x).sqrt(),
}
