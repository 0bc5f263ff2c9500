"""The 36 activation functions and their 40 profiles, as data.

Sources: activation-tables.md 4 (wire codes, ordinals, kinds, variants, table sizes, official ranges
[observed]); pwp-model.md 5.4 (closed forms [observed]), 7 (sizes,
octaves, symmetry, special results). A code that no source prints is None and never guessed.
"""

from __future__ import annotations

from enum import IntEnum

from attrs import frozen

__all__ = [
    "FUNCTIONS",
    "Function",
    "SpecialResults",
    "Symmetry",
    "ValidRange",
    "Variant",
    "profile_name",
]

_ZERO = 0
_ONE = 0x3F800000
_MINUS_ONE = 0xBF800000
_HALF = 0x3F000000
_QUARTER = 0x3E800000
_HUNDREDTH = 0x3C23D70A
_LN_2 = 0x3F317218
_HALF_PI = 0x3FC90FDB
_MINUS_HALF_PI = 0xBFC90FDB
_PI = 0x40490FDB
_MINUS_PI = 0xC0490FDB
_TWO_OVER_ROOT_PI = 0x3F906EBB
_INFINITY = 0x7F800000
_MINUS_INFINITY = 0xFF800000
_NAN = 0x7FC00000
# The largest bfloat16, which prints as 3.39e38 (pwp-model.md 7.3 [unknown]).
_LARGEST_BFLOAT16 = 0x7F7F0000


class Symmetry(IntEnum):
    """The fold of a profile (pwp-model.md 7.4): what is stored and how the rest comes back."""

    NONE = 0
    """Both sides stored, or a function of positive inputs only."""
    ODD = 1
    """f(-x) = -f(x), positive half stored."""
    EVEN = 2
    """f(-x) = f(x), positive half stored."""
    ABOUT_HALF_NEGATIVE = 3
    """f(-x) = 1 - f(x), negative half stored."""
    ABOUT_HALF_POSITIVE = 4
    """f(-x) = 1 - f(x), positive half stored."""


@frozen
class SpecialResults:
    """Results stored for special inputs, as bits.

    `source` is `observed` where a page prints them, `limit` where they are the mathematical limits
    that stand in for what no page prints (pwp-model.md 7.3 [unknown]).
    """

    zero: int
    positive_infinity: int
    negative_infinity: int
    nan: int = _NAN
    source: str = "limit"


@frozen
class ValidRange:
    """The range of inputs, as bits, for which results are right; `official` if documented."""

    lower: int = 0xFF7FFFFF
    upper: int = 0x7F7FFFFF
    official: bool = False


@frozen
class Variant:
    """One profile of a function: `<function>_<tolerance>p`, where tolerance counts fp32 ULPs.

    Attributes
    ----------
    lut_size: stored sections of the compiler's table, as published.
    generated: stored sections of the table that this package brings, None where it brings none.
    octaves: declared octaves of the compiler's table, where the sources tell.
    source: tag of `lut_size`; `derived` from the sizes of the sets.
    suffix: what follows `p` in the name of a multipass file.
    """

    tolerance: int
    lut_size: int
    generated: int | None = 0
    octaves: int | None = None
    source: str = "observed"
    suffix: str = ""


@frozen
class Function:
    """One activation function.

    Attributes
    ----------
    code: the wire code (`func_id`), None where no source prints it.
    ordinal: the compiler's ordinal, None where it has none.
    closed_form: what it computes, as text.
    symmetry: its fold, and whether that is `observed`, `derived` or `inferred`.
    results: what the table stores for zero, infinities and NaN.
    valid_range: inputs for which the table is right.
    variants: its profiles; the first one is meant when only the function is named.
    """

    name: str
    code: int | None
    ordinal: int | None
    closed_form: str
    symmetry: Symmetry
    symmetry_source: str
    results: SpecialResults
    variants: tuple[Variant, ...]
    valid_range: ValidRange = ValidRange()

    @property
    def is_hardwired(self) -> bool:
        """True for a function that is always resident and stores no section."""
        return self.variants[0].lut_size == 0

    @property
    def profiles(self) -> tuple[str, ...]:
        """Names of its profiles, the default first."""
        return tuple(profile_name(self.name, v.tolerance) + v.suffix for v in self.variants)


def profile_name(function: str, tolerance: int) -> str:
    """Return the name of a profile, e.g. `exp_400p`."""
    return f"{function}_{tolerance}p"


def _resident(
    name: str,
    code: int | None,
    ordinal: int | None,
    closed_form: str,
    results: SpecialResults,
    symmetry: Symmetry = Symmetry.NONE,
    octaves: int = 2,
) -> Function:
    source = "observed" if symmetry != Symmetry.ODD else "inferred"
    variants = (Variant(1, 0, 0, octaves),)
    return Function(name, code, ordinal, closed_form, symmetry, source, results, variants)


def _power_of_two(exponent: int) -> int:
    return (exponent + 127) << 23


def _within(lowest: int, highest: int) -> ValidRange:
    return ValidRange(_power_of_two(lowest), _power_of_two(highest), official=True)


_GATED = SpecialResults(_ZERO, _INFINITY, _ZERO)
_FROM_ZERO_TO_ONE = SpecialResults(_HALF, _ONE, _ZERO)
_LINE = SpecialResults(_ZERO, _INFINITY, _MINUS_INFINITY)
_NONE, _ODD, _EVEN = Symmetry.NONE, Symmetry.ODD, Symmetry.EVEN
_INTO_NEGATIVE, _INTO_POSITIVE = Symmetry.ABOUT_HALF_NEGATIVE, Symmetry.ABOUT_HALF_POSITIVE

# ln's two sizes follow the blob arithmetic of activation-tables.md 13.1. The two multipass files
# of ln and the second file of derivative_erf are in no set; the suffix of the latter is a guess.
FUNCTIONS: tuple[Function, ...] = (
    _resident("identity", 1, 0, "x", _LINE),
    _resident("relu", 2, 2, "max(x, 0)", _GATED),
    _resident("leaky_relu", 3, 3, "x if x > 0 else 0.01*x", _LINE),
    _resident("parametric_relu", 4, 4, "x if x > 0 else slope*x", _LINE, octaves=0),
    Function(
        "sigmoid",
        5,
        5,
        "1/(exp(-x) + 1)",
        _INTO_NEGATIVE,
        "observed",
        SpecialResults(_HALF, _ONE, _ZERO, source="observed"),
        (Variant(40, 796, 796, 11),),
    ),
    Function(
        "tanh",
        6,
        6,
        "tanh(x)",
        _ODD,
        "observed",
        SpecialResults(_ZERO, _ONE, _MINUS_ONE),
        (Variant(4, 104, 104, 17),),
    ),
    Function(
        "exp",
        7,
        7,
        "exp(x)",
        _NONE,
        "observed",
        SpecialResults(_ONE, _INFINITY, _ZERO, source="observed"),
        (Variant(400, 777, 777, 52),),
    ),
    Function(
        "sqrt",
        8,
        9,
        "sqrt(x)",
        _NONE,
        "observed",
        SpecialResults(_ZERO, _INFINITY, _NAN),
        (Variant(65536, 1113, 702, 234),),
        _within(-116, 118),
    ),
    Function(
        "softplus",
        9,
        8,
        "ln(1 + exp(x))",
        _NONE,
        "observed",
        SpecialResults(_LN_2, _INFINITY, _ZERO),
        (Variant(40, 828, 833, 41),),
    ),
    Function(
        "ln",
        10,
        11,
        "ln(x)",
        _NONE,
        "observed",
        SpecialResults(_MINUS_INFINITY, _INFINITY, _NAN),
        (
            Variant(40, 1219, 1219, 128, "derived"),
            Variant(400, 513, 513, 128, "derived"),
            Variant(4, 775, None, None, "observed", "_0mp"),
            Variant(4, 832, None, None, "observed", "_1mp"),
        ),
        _within(-64, 64),
    ),
    Function(
        "sin",
        19,
        13,
        "sin(x)",
        _ODD,
        "inferred",
        SpecialResults(_ZERO, _NAN, _NAN),
        (Variant(4, 55, 55, 13),),
        ValidRange(_MINUS_PI, _PI, official=True),
    ),
    Function(
        "erf",
        21,
        12,
        "erf(x)",
        _ODD,
        "inferred",
        SpecialResults(_ZERO, _ONE, _MINUS_ONE),
        (Variant(4, 66, 66, 7),),
    ),
    Function(
        "derivative_erf",
        22,
        22,
        "2/sqrt(pi) * exp(-x^2)",
        _EVEN,
        "inferred",
        SpecialResults(_TWO_OVER_ROOT_PI, _ZERO, _ZERO),
        (Variant(400, 466, 466, 10), Variant(40, 1182, 928)),
    ),
    Function(
        "gelu",
        23,
        16,
        "x/2 * (erf(x/sqrt(2)) + 1)",
        _NONE,
        "inferred",
        _GATED,
        (Variant(4, 504, 1573, 21),),
    ),
    Function(
        "mish",
        24,
        17,
        "x * tanh(ln(1 + exp(x)))",
        _NONE,
        "inferred",
        _GATED,
        (Variant(4, 1099, 1813, 24),),
    ),
    Function(
        "gelu_apprx_tanh",
        25,
        18,
        "x/2 * (tanh(sqrt(2/pi) * (x + 0.044715*x^3)) + 1)",
        _NONE,
        "inferred",
        _GATED,
        (Variant(40, 945, 945, 20),),
    ),
    Function(
        "gelu_apprx_sigmoid",
        26,
        19,
        "x * sigmoid(1.702*x)",
        _NONE,
        "inferred",
        _GATED,
        (Variant(40, 1042, 1042, 23),),
    ),
    Function(
        "arctan",
        28,
        14,
        "arctan(x)",
        _ODD,
        "inferred",
        SpecialResults(_ZERO, _HALF_PI, _MINUS_HALF_PI),
        (Variant(4, 168, 168, 27),),
        ValidRange(_MINUS_HALF_PI, _HALF_PI, official=True),
    ),
    Function(
        "reciprocal_sqrt",
        29,
        10,
        "1/sqrt(x)",
        _NONE,
        "observed",
        SpecialResults(_INFINITY, _ZERO, _NAN),
        (Variant(40000, 1202, 958, 185),),
        _within(-87, 97),
    ),
    _resident("square", 30, 1, "x*x", SpecialResults(0, _INFINITY, _INFINITY), _EVEN, 1),
    _resident("sign", 31, 15, "sign of x", SpecialResults(0, _ONE, _MINUS_ONE), _ODD, 1),
    Function(
        "derivative_gelu",
        32,
        21,
        "(erf(x/sqrt(2)) + 1)/2 + x/sqrt(2*pi) * exp(-x^2/2)",
        _INTO_POSITIVE,
        "inferred",
        _FROM_ZERO_TO_ONE,
        (Variant(40, 115, 39, 9),),
    ),
    _resident("abs", 33, 24, "abs(x)", SpecialResults(0, _INFINITY, _INFINITY)),
    Function(
        "abs_reciprocal_sqrt",
        34,
        26,
        "1/sqrt(abs(x))",
        _EVEN,
        "inferred",
        SpecialResults(_INFINITY, _ZERO, _ZERO),
        (Variant(40000, 1202, 958, 185),),
        ValidRange(_power_of_two(97) | 0x80000000, _power_of_two(97), official=False),
    ),
    _resident(
        "is_finite", 35, 29, "1 if x is finite else 0", SpecialResults(_ONE, 0, 0, 0), _EVEN, 1
    ),
    Function(
        "silu",
        36,
        27,
        "x/(exp(-x) + 1)",
        _NONE,
        "inferred",
        _GATED,
        (Variant(32, 908, 909, 25),),
    ),
    Function(
        "derivative_silu",
        37,
        28,
        "(x + exp(x) + 1) * exp(x)/(exp(x) + 1)^2",
        _INTO_NEGATIVE,
        "inferred",
        _FROM_ZERO_TO_ONE,
        (Variant(32, 1008, 995, 12),),
    ),
    Function(
        "derivative_gelu_apprx_sigmoid",
        38,
        20,
        "(u + exp(u) + 1) * exp(u)/(exp(u) + 1)^2, u = 1.702*x",
        _INTO_NEGATIVE,
        "derived",
        _FROM_ZERO_TO_ONE,
        (Variant(4096, 1283, 1283, 13),),
    ),
    _resident("copy", 128, 23, "x", _LINE),
    Function(
        "reciprocal",
        129,
        25,
        "1/x",
        _ODD,
        "observed",
        SpecialResults(_LARGEST_BFLOAT16, _ZERO, _ZERO),
        (Variant(400, 1016, 1016, 85),),
        ValidRange(_power_of_two(42) | 0x80000000, _power_of_two(42), official=True),
    ),
    _resident("memset_zero", 130, None, "0", SpecialResults(0, 0, 0, 0), _EVEN, 1),
    _resident("derivative_relu", None, None, "1 if x > 0 else 0", SpecialResults(0, _ONE, 0)),
    _resident(
        "derivative_leaky_relu",
        None,
        None,
        "1 if x > 0 else 0.01",
        SpecialResults(_HUNDREDTH, _ONE, _HUNDREDTH),
    ),
    _resident("derivative_identity", None, None, "1", SpecialResults(_ONE, _ONE, _ONE)),
    Function(
        "derivative_sigmoid",
        None,
        None,
        "exp(x)/(exp(x) + 1)^2",
        _EVEN,
        "inferred",
        SpecialResults(_QUARTER, _ZERO, _ZERO),
        (Variant(40, 797, 797, 11, "derived"),),
    ),
    Function(
        "derivative_tanh",
        None,
        None,
        "1 - tanh(x)^2",
        _EVEN,
        "inferred",
        SpecialResults(_ONE, _ZERO, _ZERO),
        (Variant(400, 397, 397, 12, "derived"),),
    ),
)
