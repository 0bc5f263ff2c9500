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
    alignment_of,
    implies,
    in_psum,
    in_sbuf,
    legal_starts,
    nearest_of,
    partition_of,
    start_allowed,
    window_text,
)

__all__ = ["check_start_address", "choices", "start_partition"]


def start_partition(
    r: Review,
    path: str,
    address: Any,
    applies: Truth,
    subject: str,
    *,
    leaf: str = "start_addr_active_channels",
    after: Truth = True,
) -> None:
    """State `start_addr_active_channels` of an immediate address; quiet outside the windows."""

    def channels() -> int:
        return int(r["num_active_channels"])

    r.require(
        implies(applies, start_allowed(r, address)),
        path,
        lambda: choices(legal_starts(r.generation, channels())),
        subject=subject,
        context=lambda: f"for {channels()} channel{'s' * (channels() != 1)}",
        actual=lambda: str(partition_of(r, address)),
        nearest=lambda: _nearest_start(r, address, channels()),
        leaf=leaf,
        after=after & (in_sbuf(r, address) | in_psum(r, address)),
    )


def choices(values: Sequence[int]) -> str:
    """Write `0, 32, 64 or 96`."""
    *others, last = map(str, values)
    return f"{', '.join(others)} or {last}" if others else last


def _nearest_start(r: Review, address: int, channels: int) -> str:
    partition = partition_of(r, address)
    best = nearest_of(partition, legal_starts(r.generation, channels))
    psum = r.generation.psum
    geometry = psum if psum is not None and address >= psum.base else r.generation.sbuf
    return f"{best} (address {address + (best - partition) * geometry.partition_stride:#x})"


def check_start_address(
    r: Review,
    path: str,
    word: Any,
    immediate: Truth,
    register: Truth,
    subject: str,
    dtype: Any,
    dtype_ok: Truth,
    *,
    writes: bool = False,
    psum: bool = True,
) -> None:
    """State `tensor_start_addr_valid` of the ADDR4 at `path`.

    `immediate` and `register` tell which form applies; `dtype_ok` keeps the conditions quiet that
    need a legal dtype; `psum` is False where PSUM is not allowed.
    """
    _check_register(r, path, word, register, subject)
    address = word & ADDRESS_MASK
    field = f"{path}.partition_offset"
    in_window = in_sbuf(r, address) | in_psum(r, address) if psum else in_sbuf(r, address)
    r.require(
        implies(immediate, in_window),
        field,
        lambda: window_text(r.generation, psum=psum),
        subject=f"{subject} address",
        actual=lambda: f"{address:#x}",
        leaf="tensor_start_addr_valid",
    )
    r.require(
        implies(immediate, (address & ALIGNMENT_MASK[dtype]) == 0),
        field,
        lambda: f"a multiple of {alignment_of(dtype)}",
        subject=f"{subject} address",
        context=lambda: f"for {_dtype_name(dtype)}",
        actual=lambda: f"{address:#x}",
        nearest=lambda: f"{address - address % alignment_of(dtype):#x}",
        leaf="addr_aligned_dtype",
        after=dtype_ok,
    )
    if writes:
        wide = r.one_of(dtype, FOUR_BYTE_DTYPES)
        r.require(
            implies(immediate & in_psum(r, address), wide),
            field,
            lambda: (
                f"in SBUF for {_dtype_name(dtype)}, since PSUM is written in 4-byte elements only"
            ),
            subject=f"{subject} address",
            actual=lambda: f"{address:#x} in PSUM",
            leaf="tensor_start_addr_valid",
            after=dtype_ok,
        )


def _dtype_name(code: int) -> str:
    known = member(DType, code)
    return known.name if known is not None else f"{code:#04x}"


def _check_register(r: Review, path: str, word: Any, register: Truth, subject: str) -> None:
    last = r.generation.num_address_registers - 1
    r.require(
        implies(register, (word & r.generation.addr_reg_reserved_mask & ADDRESS_MASK) == 0),
        f"{path}.partition_offset",
        "zero in the reserved bits of the register form",
        subject=f"{subject} address",
        actual=lambda: f"{word:#010x}",
        leaf="tensor_start_addr_valid",
    )
    r.require(
        implies(register, (word & 0xFF) <= last),
        f"{path}.partition_offset",
        f"0 to {last}",
        subject=f"{subject} address register",
        actual=lambda: str(word & 0xFF),
        leaf="tensor_start_addr_valid",
    )
