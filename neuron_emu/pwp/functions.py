"""The activation functions and the 21 function sets, as data.

Sources: activation-tables.md 4 (wire codes, ordinals, kinds, variants, table sizes [observed]) and
5 (the sets [observed]); pwp-model.md 7. A code that no source prints is None and never guessed.
"""

from __future__ import annotations

from attrs import field, frozen

from neuron_emu.errors import InputError

__all__ = [
    "FUNCTIONS",
    "FUNCTION_SETS",
    "RESIDENTS",
    "Function",
    "FunctionSet",
    "Variant",
    "function_named",
    "function_set",
    "profile_name",
]


@frozen
class Variant:
    """One profile of a function: `<function>_<tolerance>p`, where tolerance counts fp32 ULPs.

    `lut_size` is the number of stored sections that the sources print for the compiler's table.
    """

    tolerance: int
    lut_size: int


@frozen
class Function:
    """One activation function.

    Attributes
    ----------
    code: the wire code (`func_id`), None where no source prints it.
    ordinal: the compiler's ordinal, None where it has none.
    variants: its profiles; the first one is meant when only the function is named.
    """

    name: str
    code: int | None
    ordinal: int | None
    variants: tuple[Variant, ...]

    @property
    def is_hardwired(self) -> bool:
        """True for a function that is always resident and stores no section."""
        return self.variants[0].lut_size == 0

    @property
    def profiles(self) -> tuple[str, ...]:
        """Names of its profiles, the default first."""
        return tuple(profile_name(self.name, v.tolerance) for v in self.variants)


def profile_name(function: str, tolerance: int) -> str:
    """Return the name of a profile, e.g. `exp_400p`."""
    return f"{function}_{tolerance}p"


def _function(name: str, code: int | None, ordinal: int | None, *variants: int) -> Function:
    pairs = zip(variants[::2], variants[1::2], strict=True)
    return Function(name, code, ordinal, tuple(Variant(*pair) for pair in pairs))


# name, wire code, ordinal, then (tolerance, published lut_size) for each variant. ln's two sizes
# follow the blob arithmetic of activation-tables.md 13.1. The two multipass files of ln and the
# second file of derivative_erf are in no set; the suffix of the latter is not published.
FUNCTIONS: tuple[Function, ...] = (
    _function("identity", 1, 0, 1, 0),
    _function("relu", 2, 2, 1, 0),
    _function("leaky_relu", 3, 3, 1, 0),
    _function("parametric_relu", 4, 4, 1, 0),
    _function("sigmoid", 5, 5, 40, 796),
    _function("tanh", 6, 6, 4, 104),
    _function("exp", 7, 7, 400, 777),
    _function("sqrt", 8, 9, 65536, 1113),
    _function("softplus", 9, 8, 40, 828),
    _function("ln", 10, 11, 40, 1219, 400, 513),
    _function("sin", 19, 13, 4, 55),
    _function("erf", 21, 12, 4, 66),
    _function("derivative_erf", 22, 22, 400, 466),
    _function("gelu", 23, 16, 4, 504),
    _function("mish", 24, 17, 4, 1099),
    _function("gelu_apprx_tanh", 25, 18, 40, 945),
    _function("gelu_apprx_sigmoid", 26, 19, 40, 1042),
    _function("arctan", 28, 14, 4, 168),
    _function("reciprocal_sqrt", 29, 10, 40000, 1202),
    _function("square", 30, 1, 1, 0),
    _function("sign", 31, 15, 1, 0),
    _function("derivative_gelu", 32, 21, 40, 115),
    _function("abs", 33, 24, 1, 0),
    _function("abs_reciprocal_sqrt", 34, 26, 40000, 1202),
    _function("is_finite", 35, 29, 1, 0),
    _function("silu", 36, 27, 32, 908),
    _function("derivative_silu", 37, 28, 32, 1008),
    _function("derivative_gelu_apprx_sigmoid", 38, 20, 4096, 1283),
    _function("copy", 128, 23, 1, 0),
    _function("reciprocal", 129, 25, 400, 1016),
    _function("memset_zero", 130, None, 1, 0),
    _function("derivative_relu", None, None, 1, 0),
    _function("derivative_leaky_relu", None, None, 1, 0),
    _function("derivative_identity", None, None, 1, 0),
    _function("derivative_sigmoid", None, None, 40, 797),
    _function("derivative_tanh", None, None, 400, 397),
)

_BY_NAME = {function.name: function for function in FUNCTIONS}
_BY_PROFILE = {name: function for function in FUNCTIONS for name in function.profiles}


def function_named(name: str) -> Function:
    """Return the function called `name`, which may be a profile's name (`exp_400p`) too."""
    function = _BY_NAME.get(name) or _BY_PROFILE.get(name)
    if function is None:
        accepted = ", ".join(_BY_NAME)
        raise InputError(f"{name!r} is no activation function; the functions are {accepted}")
    return function


@frozen
class FunctionSet:
    """One set of functions that a table load makes resident (activation-tables.md 5).

    Attributes
    ----------
    index: the number that an ACTIVATION_TABLE_LOAD carries (`act_tbl_sel`).
    tables: its table functions, as profile names in the printed order.
    bucket_entries, control_entries: published sizes of the compiler's own blobs.
    """

    index: int
    name: str
    tables: tuple[str, ...]
    bucket_entries: int
    control_entries: int
    members: tuple[str, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        # The order of members is published for set 0 only: first table function, the first eight
        # residents, the other table functions, the rest. It is taken for all [unknown].
        first, others = self.tables[:1], self.tables[1:]
        members = first + RESIDENTS[:_RESIDENTS_AHEAD] + others + RESIDENTS[_RESIDENTS_AHEAD:]
        object.__setattr__(self, "members", members)

    @property
    def is_order_published(self) -> bool:
        """True for the one set whose member order a source prints."""
        return self.index == 0

    def holds(self, function: str) -> bool:
        """Tell whether a function, or exactly this profile, is a member."""
        return any(function in (name, _BY_PROFILE[name].name) for name in self.members)


# activation-tables.md 6.6, set order of exp_and_others.
RESIDENTS: tuple[str, ...] = (
    "identity_1p",
    "copy_1p",
    "leaky_relu_1p",
    "parametric_relu_1p",
    "abs_1p",
    "sign_1p",
    "memset_zero_1p",
    "relu_1p",
    "derivative_relu_1p",
    "derivative_leaky_relu_1p",
    "derivative_identity_1p",
    "is_finite_1p",
    "square_1p",
)
_RESIDENTS_AHEAD = 8


def _roster(*rows: tuple[str, str, int, int]) -> tuple[FunctionSet, ...]:
    return tuple(
        FunctionSet(index, name, tuple(tables.split()), buckets, controls)
        for index, (name, tables, buckets, controls) in enumerate(rows)
    )


FUNCTION_SETS: tuple[FunctionSet, ...] = _roster(
    ("exp_and_others", "exp_400p tanh_4p", 941, 89),
    ("softplus_and_others", "softplus_40p", 884, 61),
    ("sigmoid_and_others", "sigmoid_40p tanh_4p erf_4p arctan_4p", 1202, 82),
    ("sqrt_and_others", "sqrt_65536p", 1169, 254),
    ("small", "", 52, 20),
    ("natural_log", "ln_40p", 1275, 148),
    ("natural_log_exp_and_others", "ln_400p exp_400p", 1350, 200),
    ("sigmoid_derivative", "derivative_sigmoid_40p", 853, 31),
    ("tanh_and_derivative", "derivative_tanh_400p tanh_4p", 561, 49),
    ("trig_and_small", "sin_4p arctan_4p", 283, 60),
    ("gelu_and_others", "derivative_gelu_40p gelu_4p tanh_4p", 787, 67),
    ("gelu_apprx_tanh_and_others", "gelu_apprx_tanh_40p tanh_4p", 1109, 57),
    ("gelu_apprx_sigmoid_and_others", "gelu_apprx_sigmoid_40p tanh_4p", 1206, 60),
    ("reciprocal_and_small", "reciprocal_400p", 1072, 105),
    ("reciprocal_sqrt_and_small", "reciprocal_sqrt_40000p", 1258, 205),
    ("abs_reciprocal_sqrt_and_small", "abs_reciprocal_sqrt_40000p", 1258, 205),
    ("mish_and_others", "mish_4p", 1155, 44),
    ("erf_derivative", "derivative_erf_400p", 522, 30),
    ("silu_and_others", "silu_32p tanh_4p sin_4p", 1131, 75),
    ("derivative_silu_and_others", "derivative_silu_32p tanh_4p sin_4p", 1231, 62),
    (
        "derivative_gelu_apprx_sigmoid_and_others",
        "derivative_gelu_apprx_sigmoid_4096p tanh_4p",
        1447,
        50,
    ),
)


def function_set(selector: int | str) -> FunctionSet:
    """Return a set by index or name; raise InputError naming what would be accepted."""
    for candidate in FUNCTION_SETS:
        if selector in (candidate.index, candidate.name, str(candidate.index)):
            return candidate
    names = ", ".join(s.name for s in FUNCTION_SETS)
    last = FUNCTION_SETS[-1].index
    raise InputError(f"function set must be 0 to {last} or one of {names}, not {selector!r}")
