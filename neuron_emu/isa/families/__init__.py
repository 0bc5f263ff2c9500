"""The instruction families; a new one is a module here and a row in `FAMILIES`."""

from __future__ import annotations

from neuron_emu.isa.families import (
    accumulator_read,
    activation,
    activation2,
    control,
    event_semaphore,
    mask_select,
    memset,
    pseudo,
    range_select,
    register_words,
    scalar_select,
    scalar_tensor_tensor,
    search,
    tensor_reduce,
    tensor_scalar,
    tensor_tensor,
    unpublished,
)
from neuron_emu.isa.families.base import Family
from neuron_emu.isa.layout import LayoutError, check_cover
from neuron_emu.isa.opcodes import OPCODES
from neuron_emu.isa.records import WORD_BYTES

__all__ = ["FAMILIES", "FAMILY_OF_OPCODE", "Family"]

FAMILIES: tuple[Family, ...] = (
    tensor_scalar.FAMILY,
    control.FAMILY,
    control.PSEUDO_FAMILY,
    *event_semaphore.FAMILIES,
    *register_words.FAMILIES,
    *unpublished.FAMILIES,
    *pseudo.FAMILIES,
    accumulator_read.FAMILY,
    *activation.FAMILIES,
    *activation2.FAMILIES,
    tensor_tensor.FAMILY,
    tensor_reduce.FAMILY,
    scalar_tensor_tensor.FAMILY,
    memset.FAMILY,
    range_select.FAMILY,
    scalar_select.FAMILY,
    search.BN_FAMILY,
    search.KEY_FAMILY,
    search.REPLACE_FAMILY,
    mask_select.FAMILY,
)


def _by_opcode(families: tuple[Family, ...]) -> dict[int, Family]:
    """Index the families; a layout with a hole or an opcode in two families is a defect."""
    index: dict[int, Family] = {}
    for family in families:
        check_cover(family.record, WORD_BYTES)
        for opcode in family.opcodes:
            if opcode in index or OPCODES[opcode].struct != family.name:
                raise LayoutError(f"opcode {opcode:#04x} must be in one family, {family.name}")
            index[opcode] = family
    return index


FAMILY_OF_OPCODE: dict[int, Family] = _by_opcode(FAMILIES)
