"""Rules of CTRL_NO: ACTIVATION_TABLE_LOAD and the plain control words."""

from __future__ import annotations

from neuron_emu.isa.families import control
from neuron_emu.isa.families.control import ACTIVATION_TABLE_LOAD, DRAIN, NOP
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.rules.core import Example, Review, rule

__all__: list[str] = []

OPCODES = control.FAMILY.opcodes


@rule(
    "NE0401",
    "valid_act_tbl_sel",
    opcodes=(ACTIVATION_TABLE_LOAD,),
    source="activation-tables.md 2.4, 5",
    tag="observed",
    examples=(Example(path="act_tbl_sel", good=20, bad=21, opcode=ACTIVATION_TABLE_LOAD),),
)
def valid_act_tbl_sel(r: Review) -> None:
    """The set index must be one of the roster of function sets.

    The index is the position of the set in the roster. An index from a register does not exist.
    """
    last = r.generation.num_function_sets - 1
    r.require(r["act_tbl_sel"] <= last, "act_tbl_sel", f"0 to {last}", nearest=str(last))


@rule(
    "NE0402",
    "zero_act_tbl_sel",
    opcodes=frozenset(OPCODES) - {ACTIVATION_TABLE_LOAD},
    source="activation-tables.md 2.4",
    tag="observed",
    examples=(Example(path="act_tbl_sel", good=0, bad=1, opcode=NOP),),
)
def zero_act_tbl_sel(r: Review) -> None:
    """Byte 35 must be zero in a control word that loads no function set."""
    r.require(r["act_tbl_sel"] == 0, "act_tbl_sel", "0", context=f"in {opcode_name(r.opcode)}")


@rule(
    "NE0403",
    "control_unused_fields",
    opcodes=OPCODES,
    source="activation-tables.md 2.4; isa-encoding.md 9",
    tag="observed",
    examples=(
        Example(path="reserved0", good=0, bad=1, opcode=NOP),
        Example(path="count", good=0, bad=1, opcode=ACTIVATION_TABLE_LOAD),
        Example(path="reserved2", good=0, bad=0x100, opcode=DRAIN),
    ),
)
def control_unused_fields(r: Review) -> None:
    """Everything past the events must be zero, but for the bytes that the opcode uses.

    ACTIVATION_TABLE_LOAD uses byte 35 (NE0401), DRAIN the count at byte 40.
    """
    for name in ("reserved0", "reserved1", "reserved2"):
        r.require(r.is_zero(name), name, "zero", context=f"in {opcode_name(r.opcode)}")
    if r.opcode != DRAIN:
        r.require(r["count"] == 0, "count", "0", context=f"in {opcode_name(r.opcode)}")
