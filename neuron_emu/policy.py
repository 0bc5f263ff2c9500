"""Every behaviour that no source settles, in one frozen object.

A row is one field: its choices (default first), the reason for the default, and the page whose
[unknown] or conflict it decides. Nothing else in the package guesses; code that meets an open
question reads its row here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import Attribute, evolve, field, fields, frozen

from neuron_emu.errors import InputError

__all__ = ["Policy", "PolicyRow", "policy_page", "policy_rows"]


@frozen
class PolicyRow:
    """Describe one key: what may be chosen, why the first choice is the default, and the source."""

    name: str
    choices: tuple[str, ...]
    reason: str
    source: str

    @property
    def is_number(self) -> bool:
        """True for a key whose value is a whole number rather than a word."""
        return not self.choices


def _row(choices: str, reason: str, source: str) -> Any:
    words = tuple(choices.split("|"))
    return field(
        default=words[0],
        metadata={"choices": words, "reason": reason, "source": source},
    )


def _number(default: int, reason: str, source: str) -> Any:
    return field(default=default, metadata={"choices": (), "reason": reason, "source": source})


@frozen(kw_only=True)
class Policy:
    """The choices of one run. `Policy.parse(["evaluator=silicon"])` reads `KEY=VALUE` words."""

    evaluator: str = _row(
        "pwp|silicon|exact",
        "bit-exact to the table evaluator of the compiler's simulator",
        "design.md 3",
    )
    nan: str = _row(
        "fallthrough|profile",
        "the simulator has no NaN branch: a NaN goes through the clamp (evaluator pwp only)",
        "design.md 3; pwp-model.md 6.1",
    )
    fma: str = _row(
        "off|on",
        "the schedule of the silicon's Horner chain is unpublished (evaluator silicon only)",
        "design.md 3; pwp-model.md 9",
    )
    tables: str = _row(
        "auto|strict",
        "an engine with no set loaded takes the lowest set that holds the function, once told;"
        " strict faults, for the functions that every set holds as well",
        "design.md 2",
    )
    dve_act_ops: str = _row(
        "accept|refuse",
        "0x23 and 0x24 run in a DVE stream; the MARIANA DVE's own dispatch starts at 0x30",
        "design.md 2",
    )
    invalid: str = _row(
        "refuse|warn",
        "an instruction that breaks a rule is not executed",
        "design.md 5",
    )
    uninitialised: str = _row(
        "zero|nan|random",
        "bytes that were never written; nan fills with 0xff, random with seeded bytes",
        "design.md 5",
    )
    acc_source: str = _row(
        "before_conversion|after_conversion",
        "the accumulator is an internal fp32 register, so it takes the fp32 result",
        "isa-encoding.md 5.3; dve-tensor-scalar.md 12",
    )
    acc_order: str = _row(
        "serial|pairs",
        "serial fp32 additions in stream order; pairs sums even and odd elements apart",
        "isa-encoding.md 5.3; dve-tensor-scalar.md 4.5, 12",
    )
    acc_idle: str = _row(
        "keep|nan",
        "after IDLE the DVE accumulator is undefined: its value is kept beside a flag",
        "design.md 2; dve-tensor-scalar.md 7",
    )
    act_imm_src: str = _row(
        "header|emitter",
        "the header types imm_src of ACTIVATE as IMM_SRC (0 a value, 1 a pointer); the compiler's"
        " emitter writes 1 beside a literal 0, which would fit IMM_SRC_N; under header that zero of"
        " the v2 reciprocal is taken as the value all the same",
        "activation-tables.md 2.2",
    )
    exp_upper_dim: str = _row(
        "packed_even|product_even|off",
        "packed_even: packed inputs need each upper count to be 1 or even; the literal reading"
        " (even product) would refuse one-dimensional accumulating words",
        "isa-encoding.md 6.5",
    )
    nan_max_min: str = _row(
        "other|second|propagate",
        "MAX and MIN with one NaN return the other operand, as the GpSimd reduce and a C fmax do;"
        " second is SSE's rule, propagate that of additions",
        "dve-tensor-scalar.md 5.3",
    )
    shift_count_wide: str = _row(
        "mathematical|mask5",
        "a shift by 32 and more gives 0 or the sign fill; the scalar cores use five bits instead",
        "dve-tensor-scalar.md 5.3",
    )
    bitvec_stage_mask: str = _row(
        "stage|word",
        "an 8- or 16-bit element is cut to its width after each stage, or only when it is written",
        "dve-tensor-scalar.md 5.3",
    )
    sub_reduce_order: str = _row(
        "value_first|accumulator_first",
        "0x9A folds `op1(value, acc)`, the order that NKI gives for 0xE6, its sibling",
        "dve-tensor-scalar.md 4.5, 12",
    )
    ts_identity_hub: str = _row(
        "fp32|raw",
        "two BYPASS of equal dtypes pass fp32 like any arithmetic word, which costs INT32 bits;"
        " raw moves the bits",
        "dve-tensor-scalar.md 6.4 note 4",
    )
    int_store: str = _row(
        "wrap|saturate",
        "native integer operations (maverick) store the low bits of a 32-bit result in a narrower"
        " dtype; the simulator lists saturating variants as well",
        "dve-tensor-scalar.md 5.2",
    )
    search_order: str = _row(
        "nki|header",
        "MAX8 writes the largest first, and index k belongs to key k, as NKI documents. header:"
        " MAX8 writes the smallest first and keys lie reversed; a compiler that negates steps to"
        " get NKI's order needs it",
        "dve-tensor-scalar.md 9.7, 11 row 13",
    )
    indirect_reserved: str = _row(
        "accept|refuse",
        "mem3d_valid prints no test of the reserved half-word of an indirect descriptor; that it"
        " must be zero is inferred",
        "isa-encoding.md 4.3, 6.11",
    )
    saturate_set: str = _row(
        "ignored",
        "MARIANA has a second microcode set named saturate; that it clamps is inferred only",
        "dve-tensor-scalar.md 1.1, 12",
    )
    symmetric_clamp: str = _row(
        "comment|clamp",
        "sign(a) * max(abs a, abs b) is the header's only text, and the sign bit of a is taken for"
        " its sign, so that a zero gives the magnitude of b; clamp takes the min instead",
        "dve-tensor-scalar.md 5.1",
    )
    fp32r_mantissa: str = _row(
        "11|10|13",
        "explicit mantissa bits kept by FP32R: the only bit-level description has 11",
        "dve-tensor-scalar.md 6.5",
    )
    fp8_profile: str = _row(
        "generation|ieee|extended",
        "E4M3 and E5M2 overflow: IEEE with infinities on sunda and cayman, extended and"
        " saturating from mariana on",
        "dve-tensor-scalar.md 6.6",
    )
    fp8_e3m4_max: str = _row(
        "ieee|saturate",
        "E3M4 overflows to infinity past 15.5, or stays at 15.5",
        "dve-tensor-scalar.md 6.6, 12",
    )
    rounding: str = _row(
        "rne|stochastic",
        "round to nearest even; stochastic is seeded, and never claimed equal to hardware",
        "dve-tensor-scalar.md 6.7",
    )
    program_counter: str = _row(
        "this|next",
        "relative branches and registers 128 and 129 count from the byte offset of the word itself",
        "isa-encoding.md 7.1, 9",
    )
    range_clear: str = _row(
        "both|semaphores|events",
        "the name of 0xB0 speaks of events and semaphores, and no field chooses between them",
        "isa-encoding.md 9 (CTRL_ER)",
    )
    move_order: str = _row(
        "sequential|parallel",
        "the pairs of one MOVE take effect one after the other, or all are read before one is"
        " written; only a chain of registers tells them apart",
        "isa-encoding.md 9 (CTRL_MV)",
    )
    seed: int = _number(
        0,
        "seed of stochastic rounding and of uninitialised=random; the runtime's default is 0",
        "dve-tensor-scalar.md 6.7",
    )
    max_elements: int = _number(
        1 << 19,
        "elements one word may visit in a partition: the bytes of the largest one; zero steps"
        " allow up to 2^48, which no machine finishes",
        "design.md 5 (no hang)",
    )

    @classmethod
    def parse(cls, words: Iterable[str]) -> Policy:
        """Return the default policy changed by `KEY=VALUE` words; raise InputError on a bad one.

        A value may be shortened while it stays unambiguous: `acc_source=after`.
        """
        policy = cls()
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                raise InputError(f"policy must be KEY=VALUE, not {word!r}", place="--policy")
            policy = policy.replace(name.strip(), value.strip())
        return policy

    def replace(self, name: str, value: str) -> Policy:
        """Return a copy with the row `name` set to `value`, as `parse` reads them."""
        row = next((r for r in policy_rows() if r.name == name), None)
        if row is None:
            accepted = ", ".join(r.name for r in policy_rows())
            raise InputError(f"{name!r} is no policy; the keys are {accepted}", place="--policy")
        change: dict[str, Any] = {name: _read_value(row, value)}
        return evolve(self, **change)


def _read_value(row: PolicyRow, value: str) -> str | int:
    if row.is_number:
        if value.isascii() and value.isdigit() and len(value) < 19:
            return int(value)
        raise InputError(f"{row.name} must be a whole number, not {value!r}", place="--policy")
    matches = [choice for choice in row.choices if choice.startswith(value) and value]
    if value in row.choices:
        return value
    if len(matches) == 1:
        return matches[0]
    accepted = ", ".join(row.choices)
    raise InputError(f"{row.name} must be one of {accepted}, not {value!r}", place="--policy")


def policy_rows() -> tuple[PolicyRow, ...]:
    """Return every row in the order of the table."""
    rows: tuple[Attribute[Any], ...] = fields(Policy)
    return tuple(
        PolicyRow(a.name, a.metadata["choices"], a.metadata["reason"], a.metadata["source"])
        for a in rows
    )


def policy_page() -> str:
    """Return the page of the documentation that lists every row."""
    lines = [
        "# Policy: what no source settles",
        "",
        "Each row is a question that the sources leave open or answer in two ways.",
        "The first choice is the default; `--policy KEY=VALUE` takes another, and a value may be",
        "shortened while it stays unambiguous.",
        "",
        "| key | choices | reason for the default | source |",
        "|---|---|---|---|",
    ]
    for row in policy_rows():
        default = getattr(Policy(), row.name)
        choices = " · ".join(row.choices) if row.choices else f"a number (default {default})"
        lines.append(f"| `{row.name}` | {choices} | {row.reason} | {row.source} |")
    return "\n".join(lines) + "\n"
