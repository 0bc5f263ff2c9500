"""Functions by name, and the 21 function sets.

Source of the sets: activation-tables.md 5 [observed]. The functions themselves are in `catalog`.
"""

from __future__ import annotations

import re

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.catalog import (
    FUNCTIONS,
    Function,
    SpecialResults,
    Symmetry,
    ValidRange,
    Variant,
    profile_name,
)

__all__ = [
    "FUNCTIONS",
    "FUNCTION_SETS",
    "RESIDENTS",
    "Function",
    "FunctionSet",
    "SpecialResults",
    "Symmetry",
    "ValidRange",
    "Variant",
    "function_named",
    "function_of_profile",
    "function_set",
    "profile_name",
    "variant_of_profile",
]

_BY_NAME = {function.name: function for function in FUNCTIONS}
_BY_PROFILE = {name: function for function in FUNCTIONS for name in function.profiles}
_PROFILE = re.compile(r"([A-Za-z]\w*?)_(\d+)p(?:_\d+mp)?", re.ASCII)


def function_named(name: str) -> Function:
    """Return the function called `name`, which may be a profile's name (`exp_400p`) too."""
    function = _BY_NAME.get(name) or _BY_PROFILE.get(name)
    if function is None:
        accepted = ", ".join(_BY_NAME)
        raise InputError(
            f"{name!r} is no activation function (Unsupported activation function"
            f" Simulator::simulation: {name}); the functions are {accepted}"
        )
    return function


def function_of_profile(profile: str) -> str:
    """Return the name of a profile's function: the catalog's, or what its own form says.

    A compiler's tables may hold functions that the catalog does not know. Raises InputError for a
    text that is no profile's name.
    """
    known = _BY_PROFILE.get(profile)
    return _parts_of_name(profile)[1] if known is None else known.name


def variant_of_profile(profile: str) -> int:
    """Return the number in a profile's name, which `act` of act_info.json selects it by."""
    return int(_parts_of_name(profile)[2])


def _parts_of_name(profile: str) -> re.Match[str]:
    match = _PROFILE.fullmatch(profile)
    if match is None:
        raise InputError(f"must be the name of a profile such as exp_400p, not {profile!r}")
    return match


@frozen
class FunctionSet:
    """One set of functions that a table load makes resident (activation-tables.md 5).

    Attributes
    ----------
    index: the number that an ACTIVATION_TABLE_LOAD carries (`act_tbl_sel`).
    members: its functions, as profile names in their order.
    bucket_entries, control_entries: published sizes of the compiler's own blobs.
    is_order_published: True where a source prints the order of the members.
    """

    index: int
    name: str
    members: tuple[str, ...]
    bucket_entries: int | None = None
    control_entries: int | None = None
    is_order_published: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        """The members that are not in every set."""
        return tuple(name for name in self.members if name not in RESIDENTS)

    def holds(self, function: str) -> bool:
        """Tell whether a function, or exactly this profile, is a member."""
        return any(function in (name, function_of_profile(name)) for name in self.members)


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
    """Make the sets from index order, name, table functions and published sizes.

    The order of members is published for set 0 only: first table function, the first eight
    residents, the other table functions, the rest. It is taken for all [unknown].
    """
    sets = []
    for index, (name, tables, buckets, controls) in enumerate(rows):
        first, *others = tables.split() or [""]
        ahead, behind = RESIDENTS[:_RESIDENTS_AHEAD], RESIDENTS[_RESIDENTS_AHEAD:]
        members = tuple(filter(None, (first, *ahead, *others, *behind)))
        sets.append(FunctionSet(index, name, members, buckets, controls, index == 0))
    return tuple(sets)


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


def function_set(selector: int | str, sets: tuple[FunctionSet, ...] = FUNCTION_SETS) -> FunctionSet:
    """Return a set by index or name; raise InputError naming what would be accepted."""
    for candidate in sets:
        if selector in (candidate.index, candidate.name, str(candidate.index)):
            return candidate
    names = ", ".join(s.name for s in sets)
    raise InputError(
        f"function set must be 0 to {sets[-1].index} or one of {names}, not {selector!r}"
    )
