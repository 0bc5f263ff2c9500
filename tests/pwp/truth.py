"""The functions and their Taylor coefficients by mpmath, written apart from the package.

Coefficients come from arithmetic on truncated power series and from the differential equation of
each elementary function, so that neither finite differences nor the package's formulas enter.
"""

from __future__ import annotations

from mpmath import mp, mpf


class Series:
    """`c[0] + c[1] h + c[2] h^2 + ...`, as long as its list; a number stands for a constant."""

    def __init__(self, coefficients):
        self.c = [mpf(c) for c in coefficients]
        self.length = len(self.c)

    def _list(self, other):
        return other.c if isinstance(other, Series) else [mpf(other), *[mpf(0)] * (self.length - 1)]

    def __add__(self, other):
        return Series(a + b for a, b in zip(self.c, self._list(other), strict=True))

    def __neg__(self):
        return Series(-c for c in self.c)

    def __sub__(self, other):
        return self + -Series(self._list(other))

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        b = self._list(other)
        return Series(sum(self.c[i] * b[k - i] for i in range(k + 1)) for k in range(self.length))

    def __truediv__(self, other):
        b, quotient = self._list(other), []
        for k in range(self.length):
            rest = self.c[k] - sum(quotient[i] * b[k - i] for i in range(k))
            quotient.append(rest / b[0])
        return Series(quotient)

    def __rtruediv__(self, other):
        return Series(self._list(other)) / self

    __radd__, __rmul__ = __add__, __mul__


def exp(u):
    result = [mp.exp(u.c[0])]
    for k in range(1, u.length):
        result.append(sum(i * u.c[i] * result[k - i] for i in range(1, k + 1)) / k)
    return Series(result)


def _integral(value, u, slope):
    """Return the series with this constant term whose derivative is `slope` times u's."""
    product = Series([*(k * u.c[k] for k in range(1, u.length)), 0]) * slope
    return Series([value, *(product.c[k] / (k + 1) for k in range(u.length - 1))])


def log(u):
    return _integral(mp.log(u.c[0]), u, 1 / u)


def sqrt(u):
    root = [mp.sqrt(u.c[0])]
    for k in range(1, u.length):
        rest = u.c[k] - sum(root[i] * root[k - i] for i in range(1, k))
        root.append(rest / (2 * root[0]))
    return Series(root)


def erfc(u):
    return _integral(mp.erfc(u.c[0]), u, -2 / mp.sqrt(mp.pi) * exp(-(u * u)))


def erf(u):
    return _integral(mp.erf(u.c[0]), u, 2 / mp.sqrt(mp.pi) * exp(-(u * u)))


def arctan(u):
    return _integral(mp.atan(u.c[0]), u, 1 / (1 + u * u))


def sin(u):
    sine, cosine = mp.sin(u.c[0]), mp.cos(u.c[0])
    step = u - u.c[0]
    return sine + step * cosine - step * step * (sine / 2) - step * step * step * (cosine / 6)


def tanh(u):
    # 1 - 2/(e^2u + 1) loses the digits of small arguments: take the value apart.
    slope = 4 * exp(-2 * u) / ((1 + exp(-2 * u)) * (1 + exp(-2 * u)))
    return _integral(mp.tanh(u.c[0]), u, slope)


def sigmoid(u):
    return 1 / (1 + exp(-u))


def softplus(u):
    return _integral(mp.log1p(mp.exp(u.c[0])), u, sigmoid(u))


def gelu(u):
    return u * erfc(-u / mp.sqrt(2)) / 2


def gelu_apprx_tanh(u):
    inner = mp.sqrt(2 / mp.pi) * (u + mpf("0.044715") * u * u * u)
    return u * sigmoid(2 * inner)


def gated_derivative(u):
    return sigmoid(u) + u * (sigmoid(u) * sigmoid(-u))


FUNCTIONS = {
    "exp": exp,
    "sigmoid": sigmoid,
    "derivative_sigmoid": lambda u: sigmoid(u) * sigmoid(-u),
    "tanh": tanh,
    "derivative_tanh": lambda u: 4 * sigmoid(2 * u) * sigmoid(-2 * u),
    "erf": erf,
    "derivative_erf": lambda u: 2 / mp.sqrt(mp.pi) * exp(-(u * u)),
    "arctan": arctan,
    "sin": sin,
    "ln": log,
    "sqrt": sqrt,
    "reciprocal": lambda u: 1 / u,
    "reciprocal_sqrt": lambda u: 1 / sqrt(u),
    "abs_reciprocal_sqrt": lambda u: 1 / sqrt(u if u.c[0] > 0 else -u),
    "softplus": softplus,
    "silu": lambda u: u * sigmoid(u),
    "derivative_silu": gated_derivative,
    # tanh(ln(1 + e^u)) = 1 - 2/((1 + e^u)^2 + 1), and its numerator is e^u (e^u + 2).
    "mish": lambda u: u * exp(u) * (exp(u) + 2) / ((1 + exp(u)) * (1 + exp(u)) + 1),
    "gelu": gelu,
    "derivative_gelu": lambda u: (
        erfc(-u / mp.sqrt(2)) / 2 + u * exp(-(u * u) / 2) / mp.sqrt(2 * mp.pi)
    ),
    "gelu_apprx_tanh": gelu_apprx_tanh,
    "gelu_apprx_sigmoid": lambda u: u * sigmoid(mpf("1.702") * u),
    "derivative_gelu_apprx_sigmoid": lambda u: gated_derivative(mpf("1.702") * u),
}


def taylor(name, x):
    """Return the four coefficients of a function at the float x."""
    return FUNCTIONS[name](Series([x, 1, 0, 0])).c


def value(name, x):
    """Return f(x) for a float x."""
    return FUNCTIONS[name](Series([x])).c[0]
