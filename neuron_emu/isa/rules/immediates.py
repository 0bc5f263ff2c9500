"""Rules of the two scalars: `tensor_scalar_immediates_check` (isa-encoding.md 6.3)."""

from __future__ import annotations

import numpy as np

from neuron_emu.isa.enums import AccumulatorCommand, DType, ImmediateSource
from neuron_emu.isa.families import tensor_scalar
from neuron_emu.isa.families.tensor_scalar import BITVEC_OPCODES
from neuron_emu.isa.rules.core import Example, Review, Truth, rule
from neuron_emu.isa.rules.dtypes import dtype_is_valid
from neuron_emu.isa.rules.predicates import (
    ALIGNMENT_MASK,
    alignment_of,
    implies,
)
from neuron_emu.isa.rules.scalars import SELECTORS, check_pointer_place, check_register_number
from neuron_emu.isa.text import float_text

__all__ = ["POINTER_OPCODES", "check_seed"]

POINTER_OPCODES = frozenset((0x44, 0x54))
"""The deprecated forms whose opcode, not the selector, says pointer (dve-tensor-scalar.md 4.3)."""
_WIDTH_MASKS = np.full(256, 0xFFFFFFFF, dtype=np.uint32)
for _code in DType:
    if 0 < _code.size_bytes < 4:
        _WIDTH_MASKS[_code] = (1 << 8 * _code.size_bytes) - 1


@rule(
    "NE0106",
    "tensor_scalar_immediates_check",
    opcodes=tensor_scalar.FAMILY.opcodes,
    source="isa-encoding.md 6.3; dve-tensor-scalar.md 3.2, 4.3",
    tag="observed",
    requires=("NE0001",),
    examples=(
        Example(path="imm0_src", good=0, bad=3),
        Example(path="imm0.word", good=0x2000, bad=0x2002, given={"imm0_src": 1}),
        Example(path="imm0.word", good=63, bad=64, given={"imm0_src": 2}),
        Example(path="imm0.word", good=0xFFFF, bad=0x10000, opcode=0x53),
    ),
)
def tensor_scalar_immediates_check(r: Review) -> None:
    """Each scalar must fit its source: a value, a pointer to one value a partition, a register.

    A pointer must lie in a memory, be aligned (4 bytes for arithmetic opcodes, the size of
    in_dtype for bit operations) and start on a partition that suits the channel count. A register
    number must be below the number of address registers, its reserved bytes zero [inferred].
    An inline scalar of a bit operation must fit the width of in_dtype; an arithmetic one is any
    float32. EXPONENTIAL is read as arithmetic, since its scalars are documented as float32; the
    class test itself is not printed for it.
    TENSOR_SCALAR_PTR forms keep selector 0 and hold two pointers all the same.
    """
    for name in ("imm0", "imm1"):
        if r.opcode in POINTER_OPCODES:
            r.require(
                r[f"{name}_src"] == 0,
                f"{name}_src",
                "INSTRUCTION (0)",
                context="in a TENSOR_SCALAR_PTR word, whose opcode says pointer",
            )
            _check_pointer(r, name, r[f"{name}_src"] >= 0)
            continue
        selector = r[f"{name}_src"]
        r.require(
            r.one_of(selector, SELECTORS),
            f"{name}_src",
            "INSTRUCTION, POINTER or REG_PTR",
        )
        _check_pointer(r, name, selector == ImmediateSource.POINTER)
        check_register_number(r, f"{name}.word", None, selector == ImmediateSource.REG_PTR)
        if r.opcode in BITVEC_OPCODES:
            _check_width(r, name, selector == ImmediateSource.INSTRUCTION)


def _check_pointer(r: Review, name: str, applies: Truth) -> None:
    if not r.any(applies):
        return
    check_pointer_place(r, f"{name}.word", name, applies)
    _check_alignment(r, name, applies)


def _check_alignment(r: Review, name: str, applies: Truth) -> None:
    pointer = r[f"{name}.word"]
    by_dtype = r.opcode in BITVEC_OPCODES
    mask = ALIGNMENT_MASK[r["in_dtype"]] if by_dtype else 3

    def size() -> int:
        return alignment_of(r["in_dtype"]) if by_dtype else 4

    r.require(
        implies(applies, (pointer & mask) == 0),
        f"{name}.word",
        lambda: f"a multiple of {size()}",
        subject=f"{name} pointer",
        actual=lambda: f"{pointer:#x}",
        nearest=lambda: f"{pointer - pointer % size():#x}",
        after=dtype_is_valid(r, "in_dtype") if by_dtype else True,
    )


def _check_width(r: Review, name: str, applies: Truth) -> None:
    word = r[f"{name}.word"]
    mask = _WIDTH_MASKS[r["in_dtype"]]
    r.require(
        implies(applies, word <= mask),
        f"{name}.word",
        lambda: f"at most {int(mask):#x}",
        context="to fit in_dtype",
        actual=lambda: f"{word:#x}",
        leaf="ts_imm_chk",
        after=dtype_is_valid(r, "in_dtype"),
    )


def check_seed(r: Review, known: Truth) -> None:
    """State that imm1 is an inline zero unless LOAD_ACCUMULATE takes its seed from it.

    `known` tells whether the command is one that the opcode takes at all.
    """
    command = r["accumulator_cmd"]
    loads = command == AccumulatorCommand.LOAD_ACCUMULATE
    inline = r.require(
        loads | (r["imm1_src"] == 0),
        "imm1_src",
        "INSTRUCTION",
        context=lambda: f"with {AccumulatorCommand(command).name}",
        after=known,
    )
    r.require(
        loads | (r["imm1.word"] == 0),
        "imm1.word",
        "0",
        subject="imm1",
        context=lambda: f"with {AccumulatorCommand(command).name}; only LOAD_ACCUMULATE has a seed",
        actual=lambda: float_text(r["imm1.word"]),
        after=known & inline,
    )
