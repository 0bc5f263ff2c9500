"""Scalars: a value in the word, a pointer to one value in each active partition, or a register."""

from __future__ import annotations

from typing import Any

from neuron_emu.isa.enums import DType, ImmediateSource
from neuron_emu.isa.rules.addresses import start_partition
from neuron_emu.isa.rules.core import Review, Truth
from neuron_emu.isa.rules.predicates import (
    ALIGNMENT_MASK,
    Place,
    alignment_of,
    channels_in_range,
    implies,
    window_text,
)

__all__ = [
    "SELECTORS",
    "check_pointer",
    "check_pointer_place",
    "check_register_number",
    "check_scalar",
]

SELECTORS = frozenset(ImmediateSource)


def check_pointer(
    r: Review, path: str, subject: str, applies: Truth, dtype: Any, dtype_ok: Truth
) -> None:
    """State that a pointer to one value in each active partition is legal."""
    if not r.any(applies):
        return
    check_pointer_place(r, path, subject, applies)
    pointer = r[path]
    r.require(
        implies(applies, (pointer & ALIGNMENT_MASK[dtype]) == 0),
        path,
        lambda: f"a multiple of {alignment_of(dtype)}",
        subject=f"{subject} pointer",
        actual=lambda: f"{pointer:#x}",
        nearest=lambda: f"{pointer - pointer % alignment_of(dtype):#x}",
        leaf="addr_aligned_dtype",
        after=dtype_ok,
    )


def check_pointer_place(r: Review, path: str, subject: str, applies: Truth) -> None:
    """State that a pointer lies in a memory, on a partition that suits the channel count."""
    pointer = r[path]
    place = Place(r, pointer)
    r.require(
        implies(applies, place.in_memory),
        path,
        lambda: window_text(r.generation),
        subject=f"{subject} pointer",
        actual=lambda: f"{pointer:#x}",
        leaf="tpb_addr_active_channels",
    )
    start_partition(
        r,
        path,
        place,
        applies,
        f"{subject} pointer's start partition",
        leaf="tpb_addr_active_channels",
        after=channels_in_range(r),
    )


def check_register_number(r: Review, path: str, subject: str | None, applies: Truth) -> None:
    """State that a register number is below the number of address registers."""
    if not r.any(applies):
        return
    last = r.generation.num_address_registers - 1
    r.require(
        implies(applies, r[path] <= last),
        path,
        f"a register from 0 to {last} with zero reserved bytes",
        subject=subject,
        actual=lambda: f"{r[path]:#x}",
        leaf="is_valid_imm_reg",
    )


def check_scalar(
    r: Review,
    name: str,
    selector: str,
    dtype: Any = DType.FP32,
    dtype_ok: Truth = True,
    pointer: int = ImmediateSource.POINTER,
) -> None:
    """State that the scalar `name` fits its IMM_SRC; a pointer is aligned to `dtype`.

    `pointer` is the selector's value for a pointer, which IMM_SRC_N counts otherwise.
    """
    source = r[selector]
    r.require(r.one_of(source, SELECTORS), selector, "INSTRUCTION, POINTER or REG_PTR")
    path = f"{name}.word"
    check_pointer(r, path, name, source == pointer, dtype, dtype_ok)
    check_register_number(r, path, name, source == ImmediateSource.REG_PTR)
