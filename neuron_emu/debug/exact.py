"""Exact values beside computed ones: rational arithmetic, functions by mpmath, distances in ULP.

mpmath is used when it is installed. Without it the functions that the package knows in decimals
(exp, tanh) and the rational ones are still exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from types import ModuleType
from typing import Any

from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.pwp.exact import CLOSED_FORMS

__all__ = ["applied", "decimal_text", "exact_function", "source_of_truth", "ulp_of", "ulps"]

_DIGITS = 60
_FARTHEST = 10_000
"""Arguments of exponentials past this are far outside every format: no value is worked out."""
_FORMATS: dict[DType, tuple[int, int]] = {
    DType.FP32: (23, -126),
    DType.FP32R: (11, -126),
    DType.BFLOAT16: (7, -126),
    DType.FP16: (10, -14),
    DType.FP8_EXP3: (4, -2),
    DType.FP8_EXP4: (3, -6),
    DType.FP8_EXP5: (2, -14),
}
"""Explicit mantissa bits and smallest normal exponent (dve-tensor-scalar.md 6)."""


def _mpmath() -> ModuleType | None:
    try:
        import mpmath
    except ImportError:
        return None
    module: ModuleType = mpmath
    return module


def source_of_truth() -> str:
    """Return what works out functions here."""
    return "decimal" if _mpmath() is None else "mpmath"


def ulp_of(exact: Fraction, dtype: DType) -> Fraction:
    """Return the distance of neighbours of a dtype around a value; 1 for an integer dtype."""
    if dtype not in _FORMATS:
        return Fraction(1)
    mantissa, lowest = _FORMATS[dtype]
    exponent = lowest
    if exact:
        size = abs(exact)
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        if Fraction(2) ** exponent > size:
            exponent -= 1
    return Fraction(2) ** (max(exponent, lowest) - mantissa)


def ulps(value: float, exact: Fraction | None, dtype: DType = DType.FP32) -> float | None:
    """Return how far a value is from the exact one in ULP of a dtype; None without numbers."""
    if exact is None or not math.isfinite(value):
        return None
    return float(abs(Fraction(value) - exact) / ulp_of(exact, dtype))


def decimal_text(exact: Fraction, digits: int = 20) -> str:
    """Return a rational as a decimal with this many significant digits."""
    with localcontext(Context(prec=digits)):
        value = Decimal(exact.numerator) / Decimal(exact.denominator)
    return f"{value:.{digits - 1}e}" if value and abs(value.adjusted()) > 6 else f"{value:f}"


def applied(
    op: int, x: Fraction | None, scalar: Fraction | None, is_reversed: bool = False
) -> Fraction | None:
    """Return an ALU operation of rationals; None where it has no value or is no arithmetic."""
    if op == AluOp.BYPASS or x is None:
        return x
    if scalar is None:
        return None
    a, b = (scalar, x) if is_reversed else (x, scalar)
    if op == AluOp.ADD:
        return a + b
    if op == AluOp.SUBTRACT:
        return a - b
    if op == AluOp.MULT:
        return a * b
    if op == AluOp.DIVIDE:
        return a / b if b else None
    return {AluOp.MAX: max(a, b), AluOp.MIN: min(a, b)}.get(AluOp(op))


def exact_function(name: str, x: Fraction) -> Fraction | None:
    """Return f(x) to at least 50 digits; None where it has no value or none is known."""
    if abs(x) > _FARTHEST:
        return _RATIONAL[name](x) if name in _RATIONAL else None
    if name in _RATIONAL:
        return _RATIONAL[name](x)
    module = _mpmath()
    if module is None or name not in _FUNCTIONS:
        return _by_decimal(name, x)
    with module.workdps(_DIGITS):
        try:
            result = _FUNCTIONS[name](module, module.mpf(x.numerator) / x.denominator)
        except (ValueError, ZeroDivisionError):
            return None
        if not module.isfinite(result) or module.im(result) != 0:
            return None
        sign, mantissa, exponent, _ = module.re(result)._mpf_
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (-1 if sign else 1)


def _by_decimal(name: str, x: Fraction) -> Fraction | None:
    form = CLOSED_FORMS.get(name)
    if form is None or form.precise is None or not x:
        return None
    with localcontext(Context(prec=_DIGITS)):
        try:
            return Fraction(form.precise(Decimal(x.numerator) / Decimal(x.denominator)))
        except ArithmeticError:
            # Outside the domain, as ln of a negative number.
            return None


def _inverse(x: Fraction) -> Fraction | None:
    return 1 / x if x else None


_RATIONAL: dict[str, Callable[[Fraction], Fraction | None]] = {
    "identity": lambda x: x,
    "copy": lambda x: x,
    "relu": lambda x: max(x, Fraction(0)),
    "abs": abs,
    "square": lambda x: x * x,
    "sign": lambda x: Fraction((x > 0) - (x < 0)),
    "memset_zero": lambda x: Fraction(0),
    "is_finite": lambda x: Fraction(1),
    "reciprocal": _inverse,
}


def _sigmoid(m: Any, x: Any) -> Any:
    return 1 / (1 + m.exp(-x))


def _softplus(m: Any, x: Any) -> Any:
    return m.log1p(m.exp(x))


def _gelu(m: Any, x: Any) -> Any:
    return x * (1 + m.erf(x / m.sqrt(2))) / 2


_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda m, x: m.exp(x),
    "tanh": lambda m, x: m.tanh(x),
    "sigmoid": _sigmoid,
    "ln": lambda m, x: m.log(x),
    "sqrt": lambda m, x: m.sqrt(x),
    "reciprocal_sqrt": lambda m, x: 1 / m.sqrt(x),
    "abs_reciprocal_sqrt": lambda m, x: 1 / m.sqrt(abs(x)),
    "sin": lambda m, x: m.sin(x),
    "erf": lambda m, x: m.erf(x),
    "arctan": lambda m, x: m.atan(x),
    "softplus": _softplus,
    "silu": lambda m, x: x * _sigmoid(m, x),
    "gelu": _gelu,
    "mish": lambda m, x: x * m.tanh(_softplus(m, x)),
    "derivative_erf": lambda m, x: 2 / m.sqrt(m.pi) * m.exp(-x * x),
    "derivative_sigmoid": lambda m, x: _sigmoid(m, x) * (1 - _sigmoid(m, x)),
    "derivative_tanh": lambda m, x: 1 - m.tanh(x) ** 2,
    "derivative_silu": lambda m, x: _sigmoid(m, x) * (1 + x * (1 - _sigmoid(m, x))),
}
