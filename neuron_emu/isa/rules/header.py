"""Rules of the parts that every word has: opcode, engine, header and events."""

from __future__ import annotations

from neuron_emu.generation import GENERATIONS
from neuron_emu.isa.codec import EVENTLESS_OPCODES
from neuron_emu.isa.enums import Engine, UpdateMode, WaitMode
from neuron_emu.isa.opcodes import engines_of, opcode_name
from neuron_emu.isa.records import INSTRUCTION_WORD_LENGTH
from neuron_emu.isa.rules.core import ALL_OPCODES, Example, Review, rule

__all__ = ["FIRST_WIRED", "INVALID"]

INVALID = 0xFF
"""The INVALID member of the opcode enum: no validator accepts it (isa-encoding.md 1.4)."""
FIRST_WIRED = {0x30: 4, 0x7B: 3}
"""Opcodes of every enum whose struct and validator came later: the first core version."""
COMPACT_CONTROL = 0xB6
"""Its byte 1 is reserved, not a length (isa-encoding.md 1.3)."""
TABLE_OPCODES = frozenset((0x23, 0x24))
"""What policy `dve_act_ops` decides about in a DVE stream (design.md 2)."""
FOLDED_CORE_VERSION = 5
"""From this core version on the DVE is the engine of the ACT opcodes (activation-tables.md 11)."""

WAIT_MODES = frozenset(WaitMode)
UPDATE_MODES = frozenset(UpdateMode)
_EVENT_WAITS = frozenset(m for m in WaitMode if m.name.startswith("EVT"))
_EVENT_UPDATES = frozenset(m for m in UpdateMode if m.name.startswith("EVT"))


@rule(
    "NE0001",
    "opcode_wired",
    opcodes=FIRST_WIRED,
    source="isa-encoding.md 5.2, 8.2",
    tag="observed",
    examples=(
        Example(path="header.opcode", good=0x43, bad=0x30, opcode=0x43, generation="cayman"),
    ),
)
def opcode_wired(r: Review) -> None:
    """The opcode must be wired on the generation, not only reserved in its enum.

    An opcode keeps its number in all generations, but the struct and the validator may be bound
    later: EXPONENTIAL (0x30) from mariana on, TENSOR_DEQUANTIZE (0x7b) from cayman on.
    Before that no validator is bound, so the other rules of the opcode do not apply, and the
    engine has no dispatch entry for it.
    """
    first = FIRST_WIRED[r.opcode]
    generation = next(g.name for g in GENERATIONS.values() if g.core_version >= first)
    r.require(
        r.generation.core_version >= first,
        "header.opcode",
        f"one that {r.generation.name} wires",
        subject="opcode",
        actual=f"{opcode_name(r.opcode)} ({r.opcode:#04x}): reserved, unwired, no validator bound;"
        f" wired from {generation} on",
    )


@rule(
    "NE0002",
    "opcode_on_engine",
    opcodes=ALL_OPCODES - {INVALID},
    source="isa-encoding.md 8, 10; activation-tables.md 1",
    tag="inferred",
    policy=("dve_act_ops",),
    examples=(Example(path="header.opcode", good=0x43, bad=0x02, opcode=0x43, engine=Engine.DVE),),
)
def opcode_on_engine(r: Review) -> None:
    """The engine of the stream must take the opcode.

    The rule applies when the engine is known. The whole matrix of opcodes and engines is not
    published: an opcode without a named engine is accepted on all.
    ACT and DVE both take ACTIVATION_TABLE_LOAD and ACTIVATION_READ_ACCUMULATOR; policy
    `dve_act_ops=refuse` keeps them out of a DVE stream before maverick, where the dispatch table
    of the DVE starts at 0x30.
    """
    if r.engine is None or r.opcode not in r.generation.opcodes:
        return
    engines = engines_of(r.opcode, r.generation.core_version)
    refused = (
        r.policy.dve_act_ops == "refuse"
        and r.opcode in TABLE_OPCODES
        and r.generation.core_version < FOLDED_CORE_VERSION
    )
    if refused:
        engines = engines - {Engine.DVE}
    names = [e.name.lower() for e in sorted(engines)] or ["no engine"]
    r.require(
        r.engine in engines,
        "header.opcode",
        f"in a stream of {' or '.join(names)}",
        subject=opcode_name(r.opcode),
        actual=f"of {r.engine.name.lower()}",
    )


@rule(
    "NE0101",
    "has_valid_neuron_header",
    opcodes=ALL_OPCODES,
    source="isa-encoding.md 1.2, 1.4",
    tag="observed",
    examples=(
        Example(path="header.inst_word_len", good=0x10, bad=0x04),
        Example(path="header.opcode", good=0xA4, bad=0x55, opcode=0xA4),
    ),
)
def has_valid_neuron_header(r: Review) -> None:
    """The opcode must be in the opcode enum of the generation and the length must be 16 dwords.

    Opcodes are added and retired from one generation to the next; their numbers never change
    meaning. 0xff is the enum's INVALID member and no instruction.
    The debug bytes are free. COMPACT_CONTROL_INST of maverick has no length byte.
    """
    known = r.require(
        r.opcode in r.generation.opcodes and r.opcode != INVALID,
        "header.opcode",
        f"an opcode of {r.generation.name}",
        subject="opcode",
        actual=f"{r.opcode:#04x} ({opcode_name(r.opcode)})",
    )
    if r.opcode == COMPACT_CONTROL and known:
        return
    r.require(
        r["header.inst_word_len"] == INSTRUCTION_WORD_LENGTH,
        "header.inst_word_len",
        f"{INSTRUCTION_WORD_LENGTH} dwords",
        subject="inst_word_len",
        after=known,
    )


@rule(
    "NE0102",
    "has_valid_neuron_events",
    opcodes=ALL_OPCODES - EVENTLESS_OPCODES - {INVALID},
    source="isa-encoding.md 2.1, 2.2, 2.3, 11 row 13",
    tag="observed",
    examples=(
        Example(path="events.wait_mode", good=0x04, bad=0x08),
        Example(path="events.update_mode", good=0x13, bad=0x16),
        Example(path="events.wait_mode", good=0x04, bad=0x06, generation="maverick"),
    ),
)
def has_valid_neuron_events(r: Review) -> None:
    """The wait mode and the update mode must be members of their enums.

    maverick drops the event values of both enums ([observed] for the waits, [inferred] for the
    updates). Its further wait values 0x91 to 0x95 and 0xfe are not pinned to an enum and are left
    out. The header also holds a consistency test whose relation is printed nowhere; it is read as
    no further restriction.
    """
    folded = r.generation.core_version >= FOLDED_CORE_VERSION
    waits = WAIT_MODES - _EVENT_WAITS if folded else WAIT_MODES
    updates = UPDATE_MODES - _EVENT_UPDATES if folded else UPDATE_MODES
    r.require(
        r.one_of(r["events.wait_mode"], waits),
        "events.wait_mode",
        f"a wait mode of {r.generation.name}",
        subject="wait_mode",
    )
    r.require(
        r.one_of(r["events.update_mode"], updates),
        "events.update_mode",
        f"an update mode of {r.generation.name}",
        subject="update_mode",
    )
