"""Conditions on one start address, which several rules state for different words.

Source: isa-encoding.md 3.1 (register form), 6.10 (start partition), 6.12 (start address).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_emu.isa.enums import DType, member
from neuron_emu.isa.rules.core import Review, Truth
from neuron_emu.isa.rules.predicates import (
    ADDRESS_MASK,
    ALIGNMENT_MASK,
    FOUR_BYTE_DTYPES,
    Place,
    alignment_of,
    implies,
    legal_starts,
    nearest_of,
    window_text,
)

__all__ = ["check_place", "check_register", "choices", "start_partition"]


def start_partition(
    r: Review,
    path: str,
    place: Place,
    applies: Truth,
    subject: str,
    *,
    leaf: str = "start_addr_active_channels",
    after: Truth = True,
) -> None:
    """State `start_addr_active_channels` of an immediate address; quiet outside the windows."""
    if not r.any(applies):
        return

    def channels() -> int:
        return int(r["num_active_channels"])

    r.require(
        implies(applies, place.start_allowed),
        path,
        lambda: choices(legal_starts(r.generation, channels())),
        subject=subject,
        context=lambda: f"for {channels()} channel{'s' * (channels() != 1)}",
        actual=lambda: str(place.partition),
        nearest=lambda: _nearest_start(place, legal_starts(r.generation, channels())),
        leaf=leaf,
        after=after & place.in_memory,
    )


def choices(values: Sequence[int]) -> str:
    """Write `0, 32, 64 or 96`."""
    *others, last = map(str, values)
    return f"{', '.join(others)} or {last}" if others else last


def _nearest_start(place: Place, legal: tuple[int, ...]) -> str:
    best = nearest_of(int(place.partition), legal)
    return f"{best} (address {place.moved_to(best):#x})"


def check_place(
    r: Review,
    path: str,
    place: Place,
    applies: Truth,
    subject: str,
    dtype: Any,
    dtype_ok: Truth,
    *,
    writes: bool = False,
    psum: bool = True,
) -> None:
    """State `tensor_start_addr_valid` of the immediate ADDR4 at `path`.

    `dtype_ok` keeps the conditions quiet that need a legal dtype; `psum` is False where PSUM is
    not allowed.
    """
    if not r.any(applies):
        return
    field = f"{path}.partition_offset"
    address = place.address
    r.require(
        implies(applies, place.in_memory if psum else place.in_sbuf),
        field,
        lambda: window_text(r.generation, psum=psum),
        subject=f"{subject} address",
        actual=lambda: f"{address:#x}",
        leaf="tensor_start_addr_valid",
    )
    r.require(
        implies(applies, (address & ALIGNMENT_MASK[dtype]) == 0),
        field,
        lambda: f"a multiple of {alignment_of(dtype)}",
        subject=f"{subject} address",
        context=lambda: f"for {_dtype_name(dtype)}",
        actual=lambda: f"{address:#x}",
        nearest=lambda: f"{address - address % alignment_of(dtype):#x}",
        leaf="addr_aligned_dtype",
        after=dtype_ok,
    )
    if writes and r.any(applies & place.in_psum):
        wide = r.one_of(dtype, FOUR_BYTE_DTYPES)
        reason = "since PSUM is written in 4-byte elements only"
        r.require(
            implies(applies & place.in_psum, wide),
            field,
            "in SBUF",
            context=lambda: f"for {_dtype_name(dtype)}, {reason}",
            subject=f"{subject} address",
            actual=lambda: f"{address:#x} in PSUM",
            leaf="tensor_start_addr_valid",
            after=dtype_ok,
        )


def _dtype_name(code: int) -> str:
    known = member(DType, code)
    return known.name if known is not None else f"{code:#04x}"


def check_register(r: Review, path: str, word: Any, applies: Truth, subject: str) -> None:
    """State the register form of the ADDR4 at `path`: number and reserved bits."""
    if not r.any(applies):
        return
    last = r.generation.num_address_registers - 1
    r.require(
        implies(applies, (word & r.generation.addr_reg_reserved_mask & ADDRESS_MASK) == 0),
        f"{path}.partition_offset",
        "zero in the reserved bits of the register form",
        subject=f"{subject} address",
        actual=lambda: f"{word:#010x}",
        leaf="tensor_start_addr_valid",
    )
    r.require(
        implies(applies, (word & 0xFF) <= last),
        f"{path}.partition_offset",
        f"0 to {last}",
        subject=f"{subject} address register",
        actual=lambda: str(word & 0xFF),
        leaf="tensor_start_addr_valid",
    )
