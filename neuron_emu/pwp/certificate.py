"""The measured error of a table, and its file beside the table.

`certify` measures; here is what was measured, its form as JSON, and the shipped certificates.
"""

from __future__ import annotations

import hashlib
import json

from attrs import asdict, astuple, fields, frozen

from neuron_emu.pwp.profile import Profile, differences
from neuron_emu.pwp.store import DATA_DIRECTORY, encode_data, load_profile

__all__ = ["Certificate", "Octave", "shipped_certificate", "table_hash"]


@frozen(kw_only=True)
class Octave:
    """What was measured on one binary octave of one sign, or on part of it.

    Attributes
    ----------
    negative, exponent: sign, and unbiased exponent (-127 holds zero and the denormals).
    clamped: a clamp evaluates these inputs, and not the octave's sections.
    inputs: how many were compared with the exact value.
    max_ulp, at: largest distance in float32 steps, and the bits of its first input.
    sum_ulp: sum of all distances; divided by `inputs` it is the mean.
    unbounded: inputs where exactly one of table and exact value is finite, or a number; not
        counted in the distances.
    breaks, break_at: neighbours between which the table steps against the exact function.
    max_jump, jump_at: largest step at a section's edge beyond the exact function's, in steps.
    twin_differences: inputs on which the fast evaluator differs from the numpy twin.
    """

    negative: bool
    exponent: int
    clamped: bool
    inputs: int
    max_ulp: int
    at: int
    sum_ulp: int
    unbounded: int
    breaks: int
    break_at: int
    max_jump: int
    jump_at: int
    twin_differences: int

    def merged(self, other: Octave) -> Octave:
        """Return both parts of one octave as one."""
        worst = self if self.max_ulp >= other.max_ulp else other
        jump = self if self.max_jump >= other.max_jump else other
        return Octave(
            negative=self.negative,
            exponent=self.exponent,
            clamped=self.clamped,
            inputs=self.inputs + other.inputs,
            max_ulp=worst.max_ulp,
            at=worst.at,
            sum_ulp=self.sum_ulp + other.sum_ulp,
            unbounded=self.unbounded + other.unbounded,
            breaks=self.breaks + other.breaks,
            break_at=self.break_at if self.breaks else other.break_at,
            max_jump=jump.max_jump,
            jump_at=jump.jump_at,
            twin_differences=self.twin_differences + other.twin_differences,
        )


@frozen(kw_only=True)
class Certificate:
    """The measured error of one table.

    Attributes
    ----------
    table_sha256: hash of the table's data file.
    max_ulp, mean_ulp, at, breaks, max_jump: over the inputs that a stored section evaluates; of a
        table without sections over all.
    """

    profile: str
    table_sha256: str
    date: str
    versions: dict[str, str]
    inputs: int
    twin_differences: int
    max_ulp: int
    at: str
    mean_ulp: float
    breaks: int
    max_jump: int
    octaves: tuple[Octave, ...]

    def as_json(self) -> str:
        """Return the certificate file: a table of octaves, one a line, under their columns."""
        table = asdict(self, recurse=False)
        octaves = table.pop("octaves")
        head = json.dumps(table, indent=1).removesuffix("\n}")
        columns = json.dumps([column.name for column in fields(Octave)])
        rows = ",\n  ".join(json.dumps(astuple(octave)) for octave in octaves)
        return f'{head},\n "columns": {columns},\n "octaves": [\n  {rows}\n ]\n}}\n'

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Return the certificate of a file that `as_json` wrote."""
        table = json.loads(text)
        columns = table.pop("columns")
        rows = [dict(zip(columns, row, strict=True)) for row in table.pop("octaves")]
        return cls(octaves=tuple(Octave(**row) for row in rows), **table)


def shipped_certificate(name: str, profile: Profile) -> Certificate | None:
    """Return the certificate of the shipped table `name`, None where `profile` is another table.

    Keys that nobody reads may differ: a packed set keeps only some of them.
    """
    path = DATA_DIRECTORY / f"{name}.certificate.json"
    if not path.is_file() or differences(profile, load_profile(name)):
        return None
    return Certificate.from_json(path.read_text(encoding="utf-8"))


def table_hash(profile: Profile) -> str:
    """Return the SHA-256 of a profile's data file."""
    return hashlib.sha256(encode_data(profile)).hexdigest()
