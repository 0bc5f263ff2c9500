"""Rules of the control words with fields: waits, registers, branches, range clears.

No page prints the conjuncts of their validators, so all names are plain ones and the rules hold
only what the fields' own enums and the register file say. Which dtypes and operations execute is
the engine's business, and it says so when it refuses one.
"""

from __future__ import annotations

from neuron_emu.isa.enums import AluOp, DType, UpdateMode, WaitMode
from neuron_emu.isa.families.event_semaphore import (
    EVENT_SEMAPHORE,
    EVENT_SEMAPHORE_RANGE_CLEAR,
    ClearMode,
)
from neuron_emu.isa.families.pseudo import LOAD_ACT_FUNC_SET, TRIGGER_COLLECTIVE
from neuron_emu.isa.families.register_words import (
    ALU_OP,
    COMPARE_BRANCH,
    MOST_MOVES,
    MOVE,
    WIDE_DTYPES,
    BranchTarget,
    CompareOp,
    DataSource,
)
from neuron_emu.isa.layout import rows_of
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.isa.rules.core import Example, Review, Truth, rule
from neuron_emu.isa.rules.header import FOLDED_CORE_VERSION
from neuron_emu.isa.rules.predicates import implies

__all__: list[str] = []

RESERVED_OPCODES = (
    *(EVENT_SEMAPHORE, EVENT_SEMAPHORE_RANGE_CLEAR),
    *(MOVE, ALU_OP, COMPARE_BRANCH, LOAD_ACT_FUNC_SET),
)
GENERAL_REGISTERS = frozenset(range(64))
READABLE_REGISTERS = GENERAL_REGISTERS | {128, 129}
"""The last two are the program counter, read only (isa-encoding.md 7.1)."""
WIDE = frozenset(int(code) for code in WIDE_DTYPES)
BY_REGISTER = frozenset(int(op) for op in CompareOp if op >= CompareOp.LT_REG)
COMPARISONS = frozenset(int(op) for op in CompareOp)
TARGETS = frozenset(int(mode) for mode in BranchTarget)


@rule(
    "NE0411",
    "control_reserved_fields",
    opcodes=RESERVED_OPCODES,
    source="isa-encoding.md 1.1, 9; activation-tables.md 2.4",
    tag="inferred",
    examples=(
        Example(path="reserved0", good=0, bad=1, opcode=EVENT_SEMAPHORE),
        Example(path="reserved1", good=0, bad=0x100, opcode=EVENT_SEMAPHORE),
        Example(path="reserved0", good=0, bad=1, opcode=EVENT_SEMAPHORE_RANGE_CLEAR),
        Example(path="reserved0", good=0, bad=1, opcode=MOVE),
        Example(path="reserved1", good=0, bad=1, opcode=ALU_OP),
        Example(path="reserved3", good=0, bad=1, opcode=COMPARE_BRANCH),
    ),
)
def control_reserved_fields(r: Review) -> None:
    """The bytes between the fields of a control word must be zero."""
    for row in rows_of(r.record):
        if row.name.startswith("reserved"):
            r.require(r.is_zero(row.name), row.name, "zero", context=f"in {opcode_name(r.opcode)}")


@rule(
    "NE0412",
    "event_semaphore_modes",
    opcodes=(EVENT_SEMAPHORE,),
    source="isa-encoding.md 2.1, 2.2, 2.4",
    tag="observed fields, inferred rule",
    examples=(
        Example(path="extended.wait_mode", good=0x05, bad=0x08),
        Example(path="extended.update_mode", good=0x13, bad=0x16),
        Example(path="extended.update_mode", good=0x13, bad=0x11, generation="maverick"),
    ),
)
def event_semaphore_modes(r: Review) -> None:
    """The second wait mode and the second update mode must be members of their enums.

    They follow the rule of the first ones: maverick has no event values.
    """
    folded = r.generation.core_version >= FOLDED_CORE_VERSION
    for path, enum in (("extended.wait_mode", WaitMode), ("extended.update_mode", UpdateMode)):
        modes = frozenset(
            int(mode) for mode in enum if not (folded and mode.name.startswith("EVT"))
        )
        r.require(r.one_of(r[path], modes), path, f"a mode of {r.generation.name}")


@rule(
    "NE0413",
    "move_count",
    opcodes=(MOVE,),
    source="isa-encoding.md 9 (CTRL_MV)",
    tag="inferred",
    examples=(
        Example(path="move_count", good=1, bad=0),
        Example(path="move_count", good=8, bad=9),
    ),
)
def move_count(r: Review) -> None:
    """MOVE must set 1 to 8 registers, the number that its arrays hold."""
    count = r["move_count"]
    r.require((count >= 1) & (count <= MOST_MOVES), "move_count", f"1 to {MOST_MOVES}")


@rule(
    "NE0414",
    "control_data_source",
    opcodes=(MOVE, ALU_OP),
    source="isa-encoding.md 7.1 (DATA_SRC), 9",
    tag="observed enum; inferred for MOVE",
    examples=(
        Example(path="source_kind", good=0, bad=2, opcode=MOVE),
        Example(path="src1_kind", good=1, bad=2, opcode=ALU_OP),
    ),
)
def control_data_source(r: Review) -> None:
    """The second operand must come from a register or from the word."""
    path = "source_kind" if r.opcode == MOVE else "src1_kind"
    kinds = frozenset(int(kind) for kind in DataSource)
    r.require(r.one_of(r[path], kinds), path, "REGISTER or IMMEDIATE")


@rule(
    "NE0415",
    "control_registers",
    opcodes=(MOVE, ALU_OP, COMPARE_BRANCH),
    source="isa-encoding.md 7.1",
    tag="observed numbers, inferred rule",
    examples=(
        Example(path="sources[0]", good=129, bad=130, opcode=MOVE, given={"source_kind": 0}),
        Example(path="destinations[0]", good=63, bad=128, opcode=MOVE),
        Example(path="src0_low", good=128, bad=64, opcode=ALU_OP),
        Example(path="dst_low", good=0, bad=64, opcode=ALU_OP),
        Example(path="compare0", good=63, bad=64, opcode=COMPARE_BRANCH),
        Example(
            path="target_low",
            good=63,
            bad=200,
            opcode=COMPARE_BRANCH,
            given={"target_mode": BranchTarget.REGISTER},
        ),
    ),
)
def control_registers(r: Review) -> None:
    """Registers that the word uses must exist: 0 to 63, and 128 and 129 only to be read.

    High halves count only for 64-bit dtypes, arrays only up to move_count.
    """
    for path, is_used, is_read in _registers(r):
        members = READABLE_REGISTERS if is_read else GENERAL_REGISTERS
        expected = "a register 0 to 63" + (", 128 or 129" if is_read else "")
        r.require(implies(is_used, r.one_of(r[path], members)), path, expected)


def _registers(r: Review) -> list[tuple[str, Truth, bool]]:
    """Return path, whether the word uses it, and whether it is read, of each register field."""
    if r.opcode == MOVE:
        by_register = r["source_kind"] == DataSource.REGISTER
        count = r["move_count"]
        return [
            row
            for i in range(MOST_MOVES)
            for row in (
                (f"sources[{i}]", by_register & (count > i), True),
                (f"destinations[{i}]", count > i, False),
            )
        ]
    if r.opcode == ALU_OP:
        by_register = r["src1_kind"] == DataSource.REGISTER
        is_wide = r.one_of(r["dtype"], WIDE)
        dst_is_wide = r.one_of(r["dst_dtype"], WIDE)
        return [
            ("src0_low", True, True),
            ("src0_high", is_wide, True),
            ("src1_low", by_register, True),
            ("src1_high", by_register & is_wide, True),
            ("dst_low", True, False),
            ("dst_high", dst_is_wide, False),
        ]
    compares = r["op"] != CompareOp.ALWAYS
    jumps = r["target_mode"] != BranchTarget.REL_IMM
    return [
        ("compare0", compares, True),
        ("compare1", r.one_of(r["op"], BY_REGISTER), True),
        ("target_low", jumps, True),
        ("target_high", jumps, True),
    ]


@rule(
    "NE0416",
    "control_dtype",
    opcodes=(MOVE, ALU_OP, COMPARE_BRANCH),
    source="isa-encoding.md 7.2, 9",
    tag="inferred",
    examples=(
        Example(path="dtype", good=DType.UINT32, bad=DType.INVALID, opcode=MOVE),
        Example(path="dst_dtype", good=DType.INT32, bad=0x17, opcode=ALU_OP),
        Example(path="dtype", good=DType.INT32, bad=DType.INVALID, opcode=COMPARE_BRANCH),
    ),
)
def control_dtype(r: Review) -> None:
    """The dtype of the values must be one of the generation, but for a branch that is always taken.

    Which dtypes the sequencer's registers can hold is not published: execution says so.
    """
    members = r.generation.dtypes - {DType.INVALID}
    expected = f"a dtype of {r.generation.name}"
    is_used: Truth = True
    if r.opcode == COMPARE_BRANCH:
        is_used = r["op"] != CompareOp.ALWAYS
    r.require(implies(is_used, r.one_of(r["dtype"], members)), "dtype", expected)
    if r.opcode == ALU_OP:
        r.require(r.one_of(r["dst_dtype"], members), "dst_dtype", expected)


@rule(
    "NE0417",
    "alu_op_member",
    opcodes=(ALU_OP, TRIGGER_COLLECTIVE),
    source="isa-encoding.md 7.3, 9",
    tag="observed enum, inferred rule",
    examples=(
        Example(path="op", good=AluOp.ADD, bad=0x1F, opcode=ALU_OP),
        Example(
            path="op",
            good=AluOp.ADD,
            bad=AluOp.RELU,
            opcode=ALU_OP,
            generation="cayman",
        ),
    ),
)
def alu_op_member(r: Review) -> None:
    """The operation must be in the ALU enum of the generation."""
    ops = r.generation.alu_ops
    r.require(r.one_of(r["op"], ops), "op", f"an ALU operation of {r.generation.name}")


@rule(
    "NE0418",
    "branch_modes",
    opcodes=(COMPARE_BRANCH,),
    source="isa-encoding.md 9 (CTRL_BR)",
    tag="observed",
    examples=(
        Example(path="op", good=CompareOp.GT_IMM, bad=7),
        Example(path="target_mode", good=BranchTarget.REL_IMM, bad=2),
    ),
)
def branch_modes(r: Review) -> None:
    """The comparison and the target mode must be among those that are known."""
    r.require(r.one_of(r["op"], COMPARISONS), "op", "a comparison, 0 to 6 or 9 to 14")
    r.require(
        r.one_of(r["target_mode"], TARGETS), "target_mode", "REGISTER, REL_IMM or REL_REGISTER"
    )


@rule(
    "NE0419",
    "branch_distance",
    opcodes=(COMPARE_BRANCH,),
    source="isa-encoding.md 9 (CTRL_BR)",
    tag="observed range; unknown unit, bytes are chosen",
    examples=(
        Example(path="branch_immediate", good=-128, bad=-100),
        Example(path="branch_immediate", good=0x7FFFFFC0, bad=1 << 31),
    ),
)
def branch_distance(r: Review) -> None:
    """A relative distance must be a multiple of 64 bytes and below 2^31 in size.

    The unit is not stated; bytes are chosen, because the loader computes with byte addresses.
    """
    distance = r["branch_immediate"]
    is_used = r["target_mode"] == BranchTarget.REL_IMM
    r.require(
        implies(is_used, (distance > -(1 << 31)) & (distance < 1 << 31)),
        "branch_immediate",
        "between -2^31 and 2^31",
    )
    r.require(
        implies(is_used, distance % WORD_BYTES == 0),
        "branch_immediate",
        f"a multiple of {WORD_BYTES}",
    )


@rule(
    "NE0420",
    "range_clear_mode",
    opcodes=(EVENT_SEMAPHORE_RANGE_CLEAR,),
    source="isa-encoding.md 9 (CTRL_ER)",
    tag="observed modes; inferred order of the range",
    examples=(
        Example(path="mode", good=ClearMode.RANGE, bad=0),
        Example(path="last", good=9, bad=2, given={"first": 3}),
    ),
)
def range_clear_mode(r: Review) -> None:
    """The mode must be a range or a bit mask, and a range must not end before it begins."""
    modes = frozenset(int(mode) for mode in ClearMode)
    r.require(r.one_of(r["mode"], modes), "mode", "RANGE (1) or MASK (2)")
    is_range = r["mode"] == ClearMode.RANGE
    r.require(implies(is_range, r["last"] >= r["first"]), "last", "at least first")
