"""The activation functions in mpmath: the source of truth of the generator.

Each function takes the mpmath module and a number and is written so that nothing cancels at the
working precision. Sources: pwp-model.md 5.4, read as in `exact`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from neuron_emu.errors import InputError

__all__ = ["TRUTH", "load_mpmath", "round_to_float32"]

_SIGN = 0x80000000
_INFINITY = 0x7F800000
_MANTISSA_BITS = 23


def load_mpmath() -> ModuleType:
    """Return mpmath; raise InputError that says how to get it."""
    try:
        import mpmath
    except ImportError:
        raise InputError(
            "generating a table needs mpmath, which must be installed (pip install mpmath);"
            " the shipped tables do not need it"
        ) from None
    module: ModuleType = mpmath
    return module


def round_to_float32(value: Any) -> int:
    """Return the bits of an mpmath number rounded to nearest even, denormals included."""
    sign, mantissa, exponent, _ = value._mpf_
    word = _SIGN if sign else 0
    if not mantissa:
        return word
    mantissa = int(mantissa)
    # The unit of the last place, as a power of two: 24 bits, fewer below the normal range.
    highest = exponent + mantissa.bit_length()
    if highest < -149:
        return word
    if highest > 128:
        return word | _INFINITY
    unit = max(highest - 24, -149)
    if unit <= exponent:
        steps = mantissa << (exponent - unit)
    else:
        drop = unit - exponent
        steps = mantissa >> drop
        rest = mantissa & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        steps += rest > half or (rest == half and steps & 1)
    if steps.bit_length() > 24:
        steps, unit = steps >> 1, unit + 1
    if unit > 104:
        return word | _INFINITY
    # A step count below 2^23 occurs at unit -149 only: a denormal, whose exponent field is 0.
    return word | int(steps + ((unit + 149) << _MANTISSA_BITS))


def _sigmoid(m: Any, x: Any) -> Any:
    return 1 / (1 + m.exp(-x))


def _derivative_of_gated(m: Any, u: Any) -> Any:
    return _sigmoid(m, u) * (1 + u * _sigmoid(m, -u))


def _slope(m: Any) -> Any:
    return m.mpf(1702) / 1000


def _mish(m: Any, x: Any) -> Any:
    power = m.exp(x)
    numerator = power * (power + 2)
    return x * numerator / (numerator + 2)


def _derivative_gelu(m: Any, x: Any) -> Any:
    density = m.exp(-x * x / 2) / m.sqrt(2 * m.pi)
    return m.erfc(-x / m.sqrt(2)) / 2 + x * density


def _gelu_apprx_tanh(m: Any, x: Any) -> Any:
    inner = m.sqrt(2 / m.pi) * (x + m.mpf(44715) / 1000000 * x**3)
    return x * _sigmoid(m, 2 * inner)


TRUTH: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda m, x: m.exp(x),
    "tanh": lambda m, x: m.tanh(x),
    "sigmoid": _sigmoid,
    "derivative_sigmoid": lambda m, x: _sigmoid(m, x) * _sigmoid(m, -x),
    "derivative_tanh": lambda m, x: 4 * _sigmoid(m, 2 * x) * _sigmoid(m, -2 * x),
    "erf": lambda m, x: m.erf(x),
    "derivative_erf": lambda m, x: 2 * m.exp(-x * x) / m.sqrt(m.pi),
    "arctan": lambda m, x: m.atan(x),
    "sin": lambda m, x: m.sin(x),
    "ln": lambda m, x: m.log(x),
    "sqrt": lambda m, x: m.sqrt(x),
    "reciprocal": lambda m, x: 1 / x,
    "reciprocal_sqrt": lambda m, x: 1 / m.sqrt(x),
    "abs_reciprocal_sqrt": lambda m, x: 1 / m.sqrt(abs(x)),
    "softplus": lambda m, x: m.log1p(m.exp(x)),
    "silu": lambda m, x: x * _sigmoid(m, x),
    "derivative_silu": _derivative_of_gated,
    "mish": _mish,
    "gelu": lambda m, x: x * m.erfc(-x / m.sqrt(2)) / 2,
    "derivative_gelu": _derivative_gelu,
    "gelu_apprx_tanh": _gelu_apprx_tanh,
    "gelu_apprx_sigmoid": lambda m, x: x * _sigmoid(m, _slope(m) * x),
    "derivative_gelu_apprx_sigmoid": lambda m, x: _derivative_of_gated(m, _slope(m) * x),
}
