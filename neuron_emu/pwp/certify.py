"""Proof of a table's error: every float32 input, against the exact function and the plain twin.

A sweep goes through the 2^32 inputs in blocks. Each block compares the fast evaluator with the
numpy twin bit for bit, and measures the distance to the exact value in float32 steps by octave.
Finished blocks are kept in a file beside the certificate, so that a sweep goes on where it ended.
"""

from __future__ import annotations

import datetime
import json
import multiprocessing
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from attrs import asdict

from neuron_emu import __version__
from neuron_emu.errors import InputError
from neuron_emu.numerics import ulp_distance
from neuron_emu.pwp.certificate import Certificate, Octave, table_hash
from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.exact import closed_form
from neuron_emu.pwp.profile import EXPONENT_BIAS, MANTISSA_BITS, Clamp, Profile
from neuron_emu.pwp.reference import twin

__all__ = ["BLOCKS", "certify", "measure"]

BLOCK_INPUTS = 1 << 26
BLOCKS = (1 << 32) // BLOCK_INPUTS
# Measured at once: the arrays of a chunk stay in the cache, which halves the time of a sweep.
_CHUNK_INPUTS = 1 << 17
_KEPT_BYTES = 31 << 20
_EXPONENT_SPECIAL = 255

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]


def measure(profile: Profile, first: int, count: int) -> Octave:
    """Measure `count` inputs from the bits `first` on.

    They lie in one octave of one sign, and either clamps or sections evaluate all of them.
    """
    # The input before the first one belongs to the step into it, which may cross an edge.
    lead = 1 if first & 0x7FFFFFFF else 0
    bits = np.arange(first - lead, first + count, dtype=np.uint64).astype(np.uint32)
    compiled = compile_profile(profile)
    fast = compiled.evaluate(bits.view(np.float32))
    plain = twin(profile, bits[lead:])
    differences = int(np.count_nonzero(fast[lead:].view(np.uint32) != plain))
    exponent = (first >> MANTISSA_BITS & 0xFF) - EXPONENT_BIAS
    clamped = _is_clamped(profile, first)
    if exponent == _EXPONENT_SPECIAL - EXPONENT_BIAS:
        return _without_error(first, exponent, clamped, 0, differences)
    exact = compiled.evaluate(bits.view(np.float32), evaluator="exact")
    if np.array_equal(fast.view(np.uint32), exact.view(np.uint32)):
        finite = int(np.count_nonzero(np.isfinite(exact[lead:])))
        return _without_error(first, exponent, clamped, finite, differences)
    both = np.isfinite(fast) & np.isfinite(exact)
    same = both | (fast == exact) | (np.isnan(fast) & np.isnan(exact))
    distance = np.where(both, ulp_distance(fast, exact), 0)[lead:]
    breaks = _breaks(fast, exact, both)
    jumps = _edge_jumps(profile, bits, fast, exact, both)
    worst, jump = int(distance.argmax()), int(jumps.argmax())
    return Octave(
        negative=bool(first >> 31),
        exponent=exponent,
        clamped=clamped,
        inputs=int(both[lead:].sum()),
        max_ulp=int(distance[worst]),
        at=int(bits[lead + worst]),
        sum_ulp=int(distance.sum()),
        unbounded=int(np.count_nonzero(~same[lead:])),
        breaks=int(breaks.sum()),
        break_at=int(bits[int(breaks.argmax())]),
        max_jump=int(jumps[jump]),
        jump_at=int(bits[jump]),
        twin_differences=differences,
    )


def _clamps(profile: Profile, negative: bool) -> tuple[Clamp, Clamp]:
    """Return the low and the high clamp that inputs of a sign meet, after the fold."""
    if _evaluates_negative(profile, negative):
        return profile.neg_low, profile.neg_high
    return profile.pos_low, profile.pos_high


def _evaluates_negative(profile: Profile, negative: bool) -> bool:
    """Tell whether inputs of a sign are evaluated on the negative side, after the fold."""
    return profile.symmetry_opt_use_neg_region if profile.symmetry_en else negative


def _is_clamped(profile: Profile, bits: int) -> bool:
    low, high = _clamps(profile, bool(bits >> 31))
    return not low.magnitude < bits & 0x7FFFFFFF < high.magnitude


def _pieces(profile: Profile, first: int, count: int) -> Iterator[tuple[int, int]]:
    """Cut a run of inputs of one sign where a clamp ends or begins: first input and count."""
    sign = first & 0x80000000
    low, high = _clamps(profile, bool(sign))
    ends = {sign | low.magnitude + 1, sign | high.magnitude, first + count}
    for end in sorted(end for end in ends if first < end <= first + count):
        yield first, end - first
        first = end


def _without_error(
    first: int, exponent: int, clamped: bool, inputs: int, differences: int
) -> Octave:
    """Return the measure of inputs that are exact, or of infinities and NaNs."""
    zeros = dict.fromkeys(("max_ulp", "sum_ulp", "unbounded", "breaks", "max_jump"), 0)
    return Octave(
        negative=bool(first >> 31),
        exponent=exponent,
        clamped=clamped,
        inputs=inputs,
        at=first,
        break_at=first,
        jump_at=first,
        twin_differences=differences,
        **zeros,
    )


def _breaks(fast: Floats, exact: Floats, both: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return where the table steps the other way than the exact function from one to the next."""
    with np.errstate(invalid="ignore"):
        ours = np.sign(np.diff(fast, prepend=fast[:1]))
        theirs = np.sign(np.diff(exact, prepend=exact[:1]))
    trend = np.sign(exact[both][-1] - exact[both][0]) if both.any() else np.float32(0)
    wanted = np.where(theirs == 0, trend, theirs)
    valid = both & np.concatenate([both[:1], both[:-1]])
    return np.asarray(valid & (ours * wanted < 0))


def _edge_jumps(
    profile: Profile, bits: Words, fast: Floats, exact: Floats, both: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return, at the first input of each section, the table's step less the exact one's."""
    negative = _evaluates_negative(profile, bool(bits[-1] >> 31))
    side = profile.neg_exponents if negative else profile.pos_exponents
    biased = int(bits[-1]) >> MANTISSA_BITS & 0xFF
    octave = next((o for o in side if o.exponent + EXPONENT_BIAS == biased), None)
    jumps = np.zeros(len(bits), np.int64)
    if octave is None:
        return jumps
    width = 1 << (MANTISSA_BITS - octave.extract_size)
    edges = np.flatnonzero((bits & np.uint32(width - 1)) == 0)
    edges = edges[edges > 0]
    edges = edges[both[edges] & both[edges - 1]]
    ours = ulp_distance(fast[edges], fast[edges - 1])
    theirs = ulp_distance(exact[edges], exact[edges - 1])
    jumps[edges] = np.abs(ours - theirs)
    return jumps


@lru_cache(maxsize=1)
def _one(profile: Profile) -> Profile:
    """Return the first of equal profiles, which what is kept for it is then found by at once."""
    return profile


def _block(task: tuple[Profile, int]) -> tuple[int, list[Octave]]:
    """Measure one block of inputs; its parts are merged by octave."""
    profile, number = _one(task[0]), task[1]
    # Freed at once. From then on the GNU C library keeps what arrays up to this size give back,
    # instead of asking for cleared pages each time: without it some sweeps take twice as long.
    np.empty(_KEPT_BYTES, np.uint8)
    start = number * BLOCK_INPUTS
    chunks = range(start, start + BLOCK_INPUTS, _CHUNK_INPUTS)
    pieces = (piece for first in chunks for piece in _pieces(profile, first, _CHUNK_INPUTS))
    return number, _merged(measure(profile, *piece) for piece in pieces)


def _merged(parts: Iterable[Octave]) -> list[Octave]:
    """Put the parts of each octave together, what clamps evaluate for itself."""
    merged: dict[tuple[bool, int, bool], Octave] = {}
    for part in parts:
        key = part.negative, part.exponent, part.clamped
        merged[key] = merged[key].merged(part) if key in merged else part
    return list(merged.values())


def certify(
    name: str,
    profile: Profile,
    state: Path,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> Certificate:
    """Sweep all inputs of the profile `name` and return its certificate.

    `state` keeps finished blocks; a state of another table or version is refused. `progress` is
    called with the number of finished blocks of `BLOCKS`. Raises InputError for a profile whose
    slope comes with the instruction, as there is no table to measure, and for a function without
    a closed form.
    """
    if profile.takes_slope:
        raise InputError(f"{name} takes its slope from the instruction: it has no table to certify")
    closed_form(profile.name)
    identity = {"profile": name, "table": table_hash(profile), "version": __version__}
    done = _read_state(state, identity)
    progress(len(done))
    left = [(profile, number) for number in range(BLOCKS) if number not in done]
    with state.open("a", encoding="utf-8") as file:
        if not done:
            file.write(json.dumps(identity) + "\n")
        for number, octaves in _results(left, jobs):
            done[number] = octaves
            line = {"block": number, "octaves": [asdict(octave) for octave in octaves]}
            file.write(json.dumps(line) + "\n")
            file.flush()
            progress(len(done))
    return _summary(name, profile, done)


def _results(tasks: list[tuple[Profile, int]], jobs: int) -> Iterator[tuple[int, list[Octave]]]:
    if jobs == 1:
        yield from map(_block, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(_block, tasks)


def _read_state(path: Path, identity: dict[str, str]) -> dict[int, list[Octave]]:
    """Return the finished blocks of a state file; a torn last line is forgotten."""
    if not path.exists() or not path.stat().st_size:
        return {}
    done: dict[int, list[Octave]] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        if json.loads(lines[0]) != identity:
            raise InputError(
                f"belongs to another table or version; remove it to certify {identity['profile']}"
                " anew",
                place=str(path),
            )
        for line in lines[1:]:
            try:
                record = json.loads(line)
                done[record["block"]] = [Octave(**octave) for octave in record["octaves"]]
            except (ValueError, KeyError, TypeError):
                continue
    except (ValueError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("must be the state of an earlier sweep", place=str(path)) from None
    path.write_text(
        "\n".join(
            [
                lines[0],
                *(
                    json.dumps({"block": n, "octaves": [asdict(o) for o in octaves]})
                    for n, octaves in done.items()
                ),
            ]
        )
        + "\n",
        encoding="utf-8",
    )
    return done


def _summary(name: str, profile: Profile, done: dict[int, list[Octave]]) -> Certificate:
    octaves = _merged(part for number in sorted(done) for part in done[number])
    inside = [octave for octave in octaves if not octave.clamped] or octaves
    worst = max(inside, key=lambda octave: octave.max_ulp)
    count = sum(octave.inputs for octave in inside)
    return Certificate(
        profile=name,
        table_sha256=table_hash(profile),
        date=datetime.date.today().isoformat(),
        versions={
            "neuron-emu": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "libc": " ".join(platform.libc_ver()) or os.name,
        },
        inputs=1 << 32,
        twin_differences=sum(octave.twin_differences for octave in octaves),
        max_ulp=worst.max_ulp,
        at=f"0x{worst.at:08x}",
        mean_ulp=round(sum(octave.sum_ulp for octave in inside) / max(count, 1), 6),
        breaks=sum(octave.breaks for octave in inside),
        max_jump=max(octave.max_jump for octave in inside),
        octaves=tuple(octaves),
    )
