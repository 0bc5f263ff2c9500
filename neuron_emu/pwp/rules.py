"""What the generator is given for each profile, and the profiles that need no generating.

Sources: pwp-model.md 7.2 (hardwired clamps), 8.4, 8.5 and 8.7 (tolerance, lowest octave, clamp
polynomials); symmetry, special results and ranges come from the catalog. What no source settles is
said where it is chosen, and in docs/tables-generator.md.
"""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from neuron_emu.pwp.functions import Function, Symmetry, function_named, profile_name
from neuron_emu.pwp.profile import Clamp, Octave, Profile, Section

__all__ = ["HARDWIRED", "RULES", "Rule", "SideRule", "catalog_keys"]

_ONE = 0x3F800000
_MINUS_ONE = 0xBF800000
_HUNDREDTH = 0x3C23D70A
_HALF_PI = 0x3FC90FDB
_PI = 0x40490FDB
_64_LN_2 = 0x42317218
# Mantissa bits of the square root of two.
_ROOT_2 = 0x003504F3
_INFINITY = 0x7F800000


def _power_of_two(exponent: int) -> int:
    return (exponent + 127) << 23


_LINE = Section(d1=_ONE)
_ZERO = Section()
_UNIT = Section(d0=_ONE)


@frozen
class SideRule:
    """One side of a generated table.

    Attributes
    ----------
    lowest_exponent: unbiased exponent of the first octave, an input of the rule (8.7).
    high: the polynomial past the last octave; None for the Taylor cubic of the function at `end`.
    end: magnitude (bits) of the largest valid input, None for all.
    end_is_threshold: the high clamp starts at `end`, instead of where it is within tolerance.
    low: the polynomial below the first octave; None for the Taylor cubic at 0.
    extract_sizes: sizes that are given rather than found, by exponent.
    declares_end: the octave that `end` begins is declared, without a section.
    """

    lowest_exponent: int
    high: Section | None = None
    end: int | None = field(default=None, kw_only=True)
    end_is_threshold: bool = field(default=False, kw_only=True)
    low: Section | None = field(default=None, kw_only=True)
    extract_sizes: dict[int, int] = field(factory=dict, kw_only=True)
    declares_end: bool = field(default=True, kw_only=True)


@frozen(kw_only=True)
class Rule:
    """What the generator needs to know of one profile.

    Attributes
    ----------
    linear: d2 and d3 are 0, so that sections are tangents.
    judged_by_double: errors and the cut are measured against the double-precision closed form,
        with its cancellation, instead of the function (8.5).
    keys: other keys of the profile.
    """

    function: str
    tolerance: int
    positive: SideRule | None = None
    negative: SideRule | None = None
    linear: bool = False
    judged_by_double: bool = False
    keys: dict[str, Any] = field(factory=dict)

    @property
    def name(self) -> str:
        """Name of the profile."""
        return profile_name(self.function, self.tolerance)


def _gated(function: str, tolerance: int, lowest: int, **keys: Any) -> Rule:
    """x times something that goes from 0 to 1: the line x above, zero below (8.4)."""
    return Rule(
        function=function,
        tolerance=tolerance,
        positive=SideRule(lowest, _LINE),
        negative=SideRule(lowest, _ZERO),
        **keys,
    )


def _on_range(
    function: str, tolerance: int, range_: tuple[int, int], ends: tuple[int, int], **keys: Any
) -> Rule:
    """Build the rule of a function with an official range [2^a, 2^b] (7.1).

    What the table does outside is not published, and invalid on the hardware. Chosen: the
    function's values at the two ends, which also makes the ends, where the clamps begin, right.
    """
    lowest, highest = range_
    side = SideRule(
        lowest,
        Section(d0=ends[1]),
        low=Section(d0=ends[0]),
        end=_power_of_two(highest),
        end_is_threshold=True,
        declares_end=keys.pop("declares_end", True),
        extract_sizes=keys.pop("extract_sizes", {}),
    )
    return Rule(function=function, tolerance=tolerance, positive=side, **keys)


def _ln(tolerance: int, extract_sizes: dict[int, int]) -> Rule:
    """Build the rule of ln: like sin it goes on past its range with the cubic at its end.

    The sizes of the octaves on either side of 1, where no size is within tolerance, are an
    observed input, as the published sizes tell it.
    """
    end = _power_of_two(64)
    low = Section(d0=_64_LN_2 | 0x80000000)
    return Rule(
        function="ln",
        tolerance=tolerance,
        positive=SideRule(-64, end=end, low=low, extract_sizes=extract_sizes),
    )


RULES: tuple[Rule, ...] = (
    Rule(
        function="exp",
        tolerance=400,
        positive=SideRule(-19, Section(d0=_INFINITY)),
        negative=SideRule(-19, _ZERO),
        keys={"tonga_id": 7},
    ),
    Rule(
        function="sigmoid",
        tolerance=40,
        negative=SideRule(-4, _ZERO),
    ),
    Rule(
        function="derivative_sigmoid",
        tolerance=40,
        positive=SideRule(-4, _ZERO),
    ),
    Rule(
        function="tanh",
        tolerance=4,
        positive=SideRule(-14, _UNIT),
    ),
    Rule(
        function="derivative_tanh",
        tolerance=400,
        positive=SideRule(-6, _ZERO),
    ),
    Rule(
        function="erf",
        tolerance=4,
        positive=SideRule(-5, _UNIT),
    ),
    Rule(
        function="derivative_erf",
        tolerance=400,
        positive=SideRule(-6, _ZERO),
    ),
    # The file in no set; its suffix is a guess (8.6).
    Rule(
        function="derivative_erf",
        tolerance=40,
        positive=SideRule(-6, _ZERO),
    ),
    Rule(
        function="arctan",
        tolerance=4,
        positive=SideRule(-6, Section(d0=_HALF_PI)),
    ),
    # No range reduction: past pi the last cubic goes on. The limits at infinity do not exist.
    Rule(
        function="sin",
        tolerance=4,
        positive=SideRule(-11, end=_PI),
    ),
    _gated("gelu_apprx_sigmoid", 40, -7),
    _gated("gelu_apprx_tanh", 40, -7, judged_by_double=True),
    # Octave -1, where the function changes its sign, is observed and not found by the rule (8.5).
    Rule(
        function="derivative_gelu_apprx_sigmoid",
        tolerance=4096,
        negative=SideRule(-7, _ZERO, extract_sizes={-1: 10}),
    ),
    _on_range(
        "reciprocal",
        400,
        (-42, 42),
        (_power_of_two(42), _power_of_two(-42)),
        keys={"imm_bias": True, "tonga_id": 15},
    ),
    # From here on the published sizes are not all met; docs/tables-generator.md compares them.
    _gated("silu", 32, -7),
    Rule(
        function="softplus",
        tolerance=40,
        positive=SideRule(-15, _LINE),
        negative=SideRule(-15, _ZERO),
    ),
    # The published sizes tell of negative sides that end at -8 and -64, where the functions are not
    # yet zero (docs/tables-generator.md); ours go on to where they round to it.
    _gated("gelu", 4, -7),
    _gated("mish", 4, -7),
    # Near its zero at -1.28 no size is within tolerance, and ten bits would overfill the set; with
    # seven all but 195 floats of the octave are.
    Rule(
        function="derivative_silu",
        tolerance=32,
        negative=SideRule(-5, _ZERO, extract_sizes={0: 7}),
    ),
    # The half without a change of sign is stored.
    Rule(
        function="derivative_gelu",
        tolerance=40,
        positive=SideRule(-6, _UNIT),
    ),
    *(_ln(tolerance, sizes) for tolerance, sizes in ((40, {-1: 7, 0: 8}), (400, {-1: 5, 0: 6}))),
    _on_range(
        "sqrt",
        65536,
        (-116, 118),
        (_power_of_two(-58), _power_of_two(59)),
        linear=True,
        declares_end=False,
    ),
    _on_range(
        "reciprocal_sqrt",
        40000,
        (-87, 97),
        (_power_of_two(43) | _ROOT_2, _power_of_two(-49) | _ROOT_2),
    ),
    _on_range(
        "abs_reciprocal_sqrt",
        40000,
        (-87, 97),
        (_power_of_two(43) | _ROOT_2, _power_of_two(-49) | _ROOT_2),
    ),
)


def catalog_keys(function: Function) -> dict[str, Any]:
    """Return the keys of a profile that the catalog holds: ids, fold, special results, range."""
    results, range_ = function.results, function.valid_range
    invert, use_negative, point = {
        Symmetry.NONE: (False, False, 0),
        Symmetry.ODD: (True, False, 0),
        Symmetry.EVEN: (False, False, 0),
        Symmetry.ABOUT_HALF_NEGATIVE: (True, True, _ONE),
        Symmetry.ABOUT_HALF_POSITIVE: (True, False, _ONE),
    }[function.symmetry]
    return {
        "name": function.name,
        "neuron_id": function.code,
        "sunda_id": function.code,
        "symmetry_en": function.symmetry != Symmetry.NONE,
        "symmetry_invert_sign_opt": invert,
        "symmetry_opt_use_neg_region": use_negative,
        "symmetry_point": point,
        "zero_result": results.zero,
        "pinf_result": results.positive_infinity,
        "ninf_result": results.negative_infinity,
        "nan_result": results.nan,
        "lower_bound": range_.lower,
        "upper_bound": range_.upper,
    }


def _hardwired(
    name: str, positive: Section, negative: Section | None = None, **keys: Any
) -> tuple[str, Profile]:
    """Build a profile that stores no section: its high clamps start at zero.

    `negative` is None for a profile that folds to the positive side.
    """
    # One empty octave at the bottom of each stored side (7.2, activation-tables.md 4).
    declared = (Octave(-127),)
    profile = Profile(
        max_diff=1,
        pos_low=Clamp(section=positive),
        pos_high=Clamp(section=positive),
        neg_low=Clamp(section=negative or Section()),
        neg_high=Clamp(section=negative or Section()),
        **{
            "pos_exponents": declared,
            "neg_exponents": () if negative is None else declared,
            **catalog_keys(function_named(name)),
            **keys,
        },
    )
    return profile_name(name, 1), profile


HARDWIRED: dict[str, Profile] = dict(
    [
        _hardwired("identity", _LINE, _LINE),
        _hardwired("copy", _LINE, _LINE, imm_bias=True),
        _hardwired("relu", _LINE, _ZERO),
        _hardwired("leaky_relu", _LINE, Section(d1=_HUNDREDTH)),
        _hardwired("abs", _LINE, Section(d1=_MINUS_ONE), tonga_id=22),
        _hardwired("square", Section(d2=_ONE)),
        _hardwired("sign", _UNIT),
        _hardwired("memset_zero", _ZERO, imm_bias=True),
        _hardwired("is_finite", _UNIT, imm_bias=True),
        _hardwired("derivative_relu", _UNIT, _ZERO),
        _hardwired("derivative_leaky_relu", _UNIT, Section(d0=_HUNDREDTH)),
        _hardwired("derivative_identity", _UNIT, _UNIT),
        # Its slope comes with the instruction: no octave, and a closed form instead of a table.
        _hardwired(
            "parametric_relu",
            _LINE,
            _ZERO,
            fma_const0=_ONE,
            exponent_offset=128,
            pos_exponents=(),
            neg_exponents=(),
        ),
    ]
)
