"""A picture of a table: its error in float32 steps over the octaves, and the grid of sections."""

from __future__ import annotations

from typing import IO, Any

import numpy as np
import numpy.typing as npt

from neuron_emu.errors import InputError
from neuron_emu.numerics import ulp_distance
from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.profile import EXPONENT_BIAS, MANTISSA_BITS, Octave, Profile

__all__ = ["plot_error"]

_SAMPLES = 4096
_LARGEST_LINEAR = 10_000
_MOST_LABELS = 40
_SIGN = 0x80000000


def plot_error(name: str, profile: Profile, stream: IO[bytes]) -> None:
    """Draw the error of every stored octave into a PNG file; needs the plot extra.

    The horizontal axis is log2 of the magnitude; section edges are ticks below the curve, as far
    as they can be told apart.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("drawing needs matplotlib: pip install 'neuron-emu[plot]'") from None
    sides = [
        (title, side, sign)
        for title, side, sign in (
            ("x > 0", profile.pos_exponents, 0),
            ("x < 0", profile.neg_exponents, _SIGN),
        )
        if any(octave.sections for octave in side)
    ]
    if not sides:
        raise InputError(f"{name} stores no sections: its clamps say all")
    figure = Figure(figsize=(12, 3.6 * len(sides)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(sides), 1, squeeze=False)[:, 0]
    for axis, (title, side, sign) in zip(axes, sides, strict=True):
        _draw_side(axis, profile, side, sign)
        axis.set_title(f"{name}, stored half {title}")
    axes[-1].set_xlabel("log2 of the magnitude (an octave from line to line)")
    figure.savefig(stream, dpi=110, format="png")


def _draw_side(axis: Any, profile: Profile, side: tuple[Octave, ...], sign: int) -> None:
    stored = [octave for octave in side if octave.sections]
    highest = 1
    for octave in stored:
        place, error = _errors(profile, _sampled(octave) | np.uint32(sign))
        highest = max(highest, int(error.max(initial=0)))
        axis.plot(place, error, linewidth=0.5, color="tab:blue")
    # Next to a zero of the function the distance in steps explodes: then the scale is logarithmic.
    is_logarithmic = highest > _LARGEST_LINEAR
    floor, bottom = (-1.0, -4.0) if is_logarithmic else (-0.06 * highest, -0.14 * highest)
    for octave in stored:
        count = len(octave.sections)
        edges = 1 + np.arange(count + 1) / (1 << octave.extract_size)
        axis.vlines(octave.exponent + np.log2(edges), floor, 0, linewidth=0.3, color="tab:red")
        if len(stored) <= _MOST_LABELS:
            axis.text(octave.exponent + 0.5, floor, str(count), ha="center", va="top", fontsize=7)
    every = 1 + len(stored) // _MOST_LABELS
    axis.set_xticks(range(stored[0].exponent, stored[-1].exponent + 2, every))
    axis.tick_params(axis="x", labelsize=7)
    axis.grid(axis="x", linewidth=0.3)
    if is_logarithmic:
        axis.set_yscale("symlog", linthresh=1)
    axis.set_ylim(bottom, (2 if is_logarithmic else 1.05) * highest)
    axis.set_ylabel("error in ULP\n(red: section edges, count below)")


def _sampled(octave: Octave) -> npt.NDArray[np.uint32]:
    """Return inputs spread over the stored sections of an octave."""
    width = 1 << (MANTISSA_BITS - octave.extract_size)
    span = len(octave.sections) * width
    steps = np.unique(np.linspace(0, span - 1, min(_SAMPLES, span)).astype(np.uint32))
    return steps + np.uint32((octave.exponent + EXPONENT_BIAS) << MANTISSA_BITS)


def _errors(
    profile: Profile, bits: npt.NDArray[np.uint32]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    values = bits.view(np.float32)
    compiled = compile_profile(profile)
    table = compiled.evaluate(values)
    exact = compiled.evaluate(values, evaluator="exact")
    finite = np.isfinite(table) & np.isfinite(exact)
    place = np.log2(np.abs(values[finite].astype(np.float64)))
    return place, ulp_distance(table[finite], exact[finite])
