"""What the generator is given for each profile, and the profiles that need no generating.

Sources: pwp-model.md 7.2 (hardwired clamps), 7.3 (special results), 7.4 (symmetry), 8.4 and 8.7
(tolerance, lowest octave, clamp polynomials).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from neuron_emu.pwp.functions import function_named, profile_name
from neuron_emu.pwp.profile import Clamp, Octave, Profile, Section

__all__ = ["HARDWIRED", "RULES", "Rule", "SideRule"]

Doubles = npt.NDArray[np.float64]

_ONE = 0x3F800000
_MINUS_ONE = 0xBF800000
_HUNDREDTH = 0x3C23D70A
_INFINITY = 0x7F800000
_MINUS_INFINITY = 0xFF800000


@frozen
class SideRule:
    """One side of a generated table.

    Attributes
    ----------
    lowest_exponent: unbiased exponent of the first octave, an input of the rule (8.7).
    high: the polynomial past the last octave. The low clamp is always the cubic at 0.
    """

    lowest_exponent: int
    high: Section


@frozen(kw_only=True)
class Rule:
    """What the generator needs to know of one profile.

    Attributes
    ----------
    mpmath_name: the function in mpmath, which is the truth.
    approximate: the same in float64, good enough that its float32 is off by one step at most.
    special: keys of the profile that hold symmetry and special results.
    """

    function: str
    tolerance: int
    mpmath_name: str
    approximate: Callable[[Doubles], Doubles]
    positive: SideRule | None
    negative: SideRule | None
    special: dict[str, Any] = field(factory=dict)
    tonga_id: int | None = None


RULES: tuple[Rule, ...] = (
    Rule(
        function="exp",
        tolerance=400,
        mpmath_name="exp",
        approximate=np.exp,
        positive=SideRule(-19, Section(d0=_INFINITY)),
        negative=SideRule(-19, Section()),
        special={"zero_result": _ONE, "pinf_result": _INFINITY, "ninf_result": 0},
        tonga_id=7,
    ),
    Rule(
        function="tanh",
        tolerance=4,
        mpmath_name="tanh",
        approximate=np.tanh,
        positive=SideRule(-14, Section(d0=_ONE)),
        negative=None,
        special={
            "symmetry_en": True,
            "symmetry_invert_sign_opt": True,
            "zero_result": 0,
            "pinf_result": _ONE,
            "ninf_result": _MINUS_ONE,
        },
    ),
)


def _hardwired(
    function: str,
    positive: Section,
    negative: Section | None,
    results: tuple[int, int, int],
    **keys: Any,
) -> tuple[str, Profile]:
    """Build a profile that stores no section: its high clamps start at zero.

    `negative` is None for a profile that folds to the positive side; `results` are those for
    zero, +inf and -inf, the mathematical limits (7.3 [unknown]).
    """
    # One empty octave at the bottom of each stored side (7.2, activation-tables.md 4).
    declared = (Octave(-127),)
    both = negative is not None
    code = function_named(function).code
    defaults = {"neuron_id": code, "sunda_id": code, "max_diff": 1, "symmetry_en": not both}
    zero, positive_infinity, negative_infinity = results
    profile = Profile(
        name=function,
        zero_result=zero,
        pinf_result=positive_infinity,
        ninf_result=negative_infinity,
        pos_low=Clamp(section=positive),
        pos_high=Clamp(section=positive),
        neg_low=Clamp(section=negative or Section()),
        neg_high=Clamp(section=negative or Section()),
        **{
            **defaults,
            "pos_exponents": declared,
            "neg_exponents": declared if both else (),
            **keys,
        },
    )
    return profile_name(function, 1), profile


_LINE = Section(d1=_ONE)
_ZERO = Section()
_UNIT = Section(d0=_ONE)

HARDWIRED: dict[str, Profile] = dict(
    [
        _hardwired("identity", _LINE, _LINE, (0, _INFINITY, _MINUS_INFINITY)),
        _hardwired("copy", _LINE, _LINE, (0, _INFINITY, _MINUS_INFINITY), imm_bias=True),
        _hardwired("relu", _LINE, _ZERO, (0, _INFINITY, 0)),
        _hardwired("leaky_relu", _LINE, Section(d1=_HUNDREDTH), (0, _INFINITY, _MINUS_INFINITY)),
        _hardwired("abs", _LINE, Section(d1=_MINUS_ONE), (0, _INFINITY, _INFINITY), tonga_id=22),
        _hardwired("square", Section(d2=_ONE), None, (0, _INFINITY, _INFINITY)),
        _hardwired("sign", _UNIT, None, (0, _ONE, _MINUS_ONE), symmetry_invert_sign_opt=True),
        _hardwired("memset_zero", _ZERO, None, (0, 0, 0), nan_result=0, imm_bias=True),
        _hardwired("is_finite", _UNIT, None, (_ONE, 0, 0), nan_result=0, imm_bias=True),
        _hardwired("derivative_relu", _UNIT, _ZERO, (0, _ONE, 0)),
        _hardwired(
            "derivative_leaky_relu", _UNIT, Section(d0=_HUNDREDTH), (_HUNDREDTH, _ONE, _HUNDREDTH)
        ),
        _hardwired("derivative_identity", _UNIT, _UNIT, (_ONE, _ONE, _ONE)),
        # Its slope comes with the instruction: no octave, and a closed form instead of a table.
        _hardwired(
            "parametric_relu",
            _LINE,
            _ZERO,
            (0, _INFINITY, _MINUS_INFINITY),
            fma_const0=_ONE,
            exponent_offset=128,
            pos_exponents=(),
            neg_exponents=(),
        ),
    ]
)
