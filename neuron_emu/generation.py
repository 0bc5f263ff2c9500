"""The five hardware generations as data: geometry, code sets, what is wired.

Each generation is written as a difference from the one before it. Every limit that a rule or the
memory model uses comes from here; no other module holds a literal one.

Sources: isa-encoding.md 0 (generations), 1.4 (opcode sets), 3.3 (address map), 5.2 (availability),
7.2 and 7.3 (enum sizes); activation-tables.md 10 (PROF_CAM); dve-tensor-scalar.md 6.6 (FP8).
"""

from __future__ import annotations

from attrs import evolve, frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import AluOp, DType

__all__ = [
    "CAYMAN",
    "GENERATIONS",
    "MARIANA",
    "MARIANA_PLUS",
    "MAVERICK",
    "SUNDA",
    "CamModel",
    "Generation",
    "MemoryGeometry",
    "generation_named",
]


@frozen(kw_only=True)
class MemoryGeometry:
    """One on-chip memory: `local address = base + partition * stride + offset`.

    All members are bytes except `num_partitions` (isa-encoding.md 3.3 [observed]).
    """

    base: int
    partition_stride: int
    active_bytes: int
    num_partitions: int = 128
    bank_bytes: int | None = None

    @property
    def window_bytes(self) -> int:
        """Size of the address window, holes between partitions included."""
        return self.partition_stride * self.num_partitions

    @property
    def end(self) -> int:
        """First local address past the window."""
        return self.base + self.window_bytes


@frozen(kw_only=True)
class CamModel:
    """What is published of a DVE's PROF_CAM (activation-tables.md 10.3).

    `armed` are the armed opcode ids without the wildcard, `slots` the byte offset of each slot
    that is known. Masks are 0xFF but for the one id of two bytes, 0x1E3, whose mask is 0x1FF.
    """

    armed: frozenset[int]
    slots: tuple[tuple[int, int], ...] = ()

    def slot_of(self, opcode: int) -> int | None:
        """Return the byte offset of the slot of `opcode`, or None when it is unpublished."""
        return dict(self.slots).get(opcode)


@frozen(kw_only=True)
class Generation:
    """One hardware generation.

    Attributes
    ----------
    core_version: the value of the core-version enum; v4+ has none of its own.
    opcodes, dtypes, alu_ops: members of the three enums (isa-encoding.md 1.4, 7.2, 7.3).
    has_indirect: operand unions have an indirect member (isa-encoding.md 4.2).
    has_exponential: 0x30 is bound to a struct and a validator (isa-encoding.md 5.2).
    has_tile_flags: byte 3 of the header is `inst_flags` (isa-encoding.md 1.3).
    dve_dispatch_base, dve_dispatch_entries: the sequencer's dispatch table covers the opcodes
        from the base on (activation-tables.md 10.5); None where no page describes it.
    dve_cam: the DVE's PROF_CAM, None where there is none.
    addr_reg_reserved_mask: bits of a register-form ADDR4 that must be zero (isa-encoding.md 3.1).
    dve_not_default: opcodes that the DVE's default microcode tables lack, though the header has
        them (dve-tensor-scalar.md 1.1).
    num_function_sets: sets of the roster that ACTIVATION_TABLE_LOAD indexes
        (activation-tables.md 5).
    """

    name: str
    neuron_core: str
    core_version: int
    sbuf: MemoryGeometry
    psum: MemoryGeometry | None
    opcodes: frozenset[int]
    dtypes: frozenset[int]
    alu_ops: frozenset[int]
    has_indirect: bool = False
    has_exponential: bool = False
    has_tile_flags: bool = False
    dve_dispatch_base: int | None = None
    dve_dispatch_entries: int = 0
    dve_cam: CamModel | None = None
    addr_reg_reserved_mask: int = 0x00FFFF00
    num_channels: int = 128
    quadrant_partitions: int = 32
    num_address_registers: int = 64
    num_semaphores: int = 256
    indirect_group_partitions: int = 16
    dve_not_default: frozenset[int] = frozenset()
    num_function_sets: int = 21

    def __str__(self) -> str:
        return self.name


def _opcodes(text: str) -> frozenset[int]:
    """Expand `01-05 21` into a set of opcodes, all numbers hexadecimal."""
    members: set[int] = set()
    for item in text.split():
        first, _, last = item.partition("-")
        members.update(range(int(first, 16), int(last or first, 16) + 1))
    return frozenset(members)


_SBUF_SUNDA = MemoryGeometry(base=0x0, partition_stride=0x40000, active_bytes=0x30000)
_PSUM = MemoryGeometry(
    base=0x2000000, partition_stride=0x8000, active_bytes=0x4000, bank_bytes=0x800
)

_OPCODES_SUNDA = _opcodes(
    "01-05 21-24 30 41-4F 51-54 58 5E-74 76-7F 82-88 8A-8F 92-96 98-AB B0-B3 B5 B8 BB"
    " C1-D6 D8-DF E5-E8 EA F0 FF"
)
_OPCODES_CAYMAN = (_OPCODES_SUNDA - _opcodes("87 88 8A-8D 8F")) | _opcodes(
    "06 07 81 BC-BF D7 E4 E9 F1 F2"
)
_OPCODES_MARIANA = _OPCODES_CAYMAN | _opcodes("08-0A 25 B4 E0-E3")
_OPCODES_MAVERICK = _OPCODES_MARIANA | _opcodes("26 B6 B9 BA F3 F4")

_DTYPES_SUNDA = frozenset(range(0x10))
_DTYPES_MARIANA = _DTYPES_SUNDA | {DType.FP4_EXP2} | frozenset(range(DType.CPTC1, DType.CPTC7 + 1))
_DTYPES_MAVERICK = _DTYPES_MARIANA | frozenset(range(DType.FP8_EXP2, DType.SFP8_E5 + 1))

_ALU_SUNDA = frozenset(range(AluOp.RSQRT + 1)) | {
    AluOp.ADD_INT,
    AluOp.MULT_INT,
    AluOp.SUBTRACT_INT,
}
_ALU_CAYMAN = _ALU_SUNDA | frozenset(range(AluOp.DIVIDE_INT, AluOp.AMIN_UINT + 1))
_ALU_MARIANA = _ALU_CAYMAN | frozenset(range(AluOp.ABS_MAX, AluOp.SQUARE + 1))
_ALU_MAVERICK = _ALU_MARIANA | {AluOp.SYMMETRIC_CLAMP}

# One blob serves the four engines of CAYMAN; its slot order is published whole.
_CAM_CAYMAN_ORDER = (
    "01 06 02 07 03 A1 A4 A7 A8 A9 AA AB B1 21 22 23 24 49 A6 A2 A3 B2 A5 A0 B8 BB BD"
    " 41 51 42 52 43 53 44 54 45 46 47 48 4A 4B 4C 4E 5E 67 68"
)
_CAM_CAYMAN = CamModel(
    armed=_opcodes(_CAM_CAYMAN_ORDER),
    slots=tuple((int(op, 16), 16 * slot) for slot, op in enumerate(_CAM_CAYMAN_ORDER.split())),
)
# The opcodes that the pages name; one further armed opcode of the 48 is named nowhere.
_CAM_MARIANA_ARMED = _opcodes(
    "9F A0 A1 A2 A3 A5 A7 A8 A9 AA AB B1 B2"
    " 41 4D 51 42 52 83 84 43 93 53 45 46 47 48 4E 5E 64 8E 65 6A 6B 70 71 72"
    " 77 78 E0 E1 E2 E3 1E3 98 30"
)
_CAM_MARIANA = CamModel(
    armed=_CAM_MARIANA_ARMED,
    slots=(
        (0x77, 0x250),
        (0x78, 0x260),
        (0xE0, 0x270),
        (0xE1, 0x280),
        (0xE2, 0x290),
        (0xE3, 0x2A0),
        (0x1E3, 0x2B0),
        (0x98, 0x2C0),
        (0x30, 0x2D0),
        (0x9F, 0x2E0),
    ),
)
_CAM_MAVERICK = CamModel(
    armed=(_CAM_MARIANA_ARMED - _opcodes("64 70 71 1E3"))
    | _opcodes("23 25 58 61 62 6C 6D 6E 6F 99")
)

SUNDA = Generation(
    name="sunda",
    neuron_core="NC-v2",
    core_version=2,
    sbuf=_SBUF_SUNDA,
    psum=_PSUM,
    opcodes=_OPCODES_SUNDA,
    dtypes=_DTYPES_SUNDA,
    alu_ops=_ALU_SUNDA,
    addr_reg_reserved_mask=0x7FFFFF00,
    dve_not_default=_opcodes("93 98 9A 9B E6"),
)
CAYMAN = evolve(
    SUNDA,
    name="cayman",
    neuron_core="NC-v3",
    core_version=3,
    sbuf=evolve(_SBUF_SUNDA, active_bytes=0x38000),
    opcodes=_OPCODES_CAYMAN,
    alu_ops=_ALU_CAYMAN,
    dve_dispatch_base=0x41,
    dve_dispatch_entries=170,
    dve_cam=_CAM_CAYMAN,
    addr_reg_reserved_mask=0x00FFFF00,
    dve_not_default=frozenset(),
)
MARIANA = evolve(
    CAYMAN,
    name="mariana",
    neuron_core="NC-v4",
    core_version=4,
    sbuf=evolve(_SBUF_SUNDA, active_bytes=0x40000),
    opcodes=_OPCODES_MARIANA,
    dtypes=_DTYPES_MARIANA,
    alu_ops=_ALU_MARIANA,
    has_indirect=True,
    has_exponential=True,
    dve_dispatch_base=0x30,
    dve_dispatch_entries=187,
    dve_cam=_CAM_MARIANA,
)
MARIANA_PLUS = evolve(MARIANA, name="mariana_plus", neuron_core="NC-v4+")
MAVERICK = evolve(
    MARIANA,
    name="maverick",
    neuron_core="NC-v5",
    core_version=5,
    sbuf=MemoryGeometry(base=0x0, partition_stride=0x100000, active_bytes=0x80000),
    psum=None,
    opcodes=_OPCODES_MAVERICK,
    dtypes=_DTYPES_MAVERICK,
    alu_ops=_ALU_MAVERICK,
    has_tile_flags=True,
    dve_cam=_CAM_MAVERICK,
)

GENERATIONS: dict[str, Generation] = {
    g.name: g for g in (SUNDA, CAYMAN, MARIANA, MARIANA_PLUS, MAVERICK)
}


def generation_named(name: str) -> Generation:
    """Return the generation called `name`; raise InputError naming the five otherwise."""
    try:
        return GENERATIONS[name]
    except KeyError:
        accepted = ", ".join(GENERATIONS)
        raise InputError(f"generation must be one of {accepted}, not {name!r}") from None
