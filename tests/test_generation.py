"""The five generations as data, against the published counts and masks."""

from __future__ import annotations

import pytest

from neuron_emu.errors import InputError
from neuron_emu.generation import GENERATIONS, MARIANA, MAVERICK, SUNDA, generation_named
from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.isa.opcodes import OPCODES

SIZES = {
    # opcodes, dtypes, ALU operations: isa-encoding.md 1.4, 7.2, 7.3
    "sunda": (145, 16, 33),
    "cayman": (150, 16, 60),
    "mariana": (159, 24, 64),
    "mariana_plus": (159, 24, 64),
    "maverick": (165, 30, 65),
}
# isa-encoding.md 1.4: base opcode and mask of SUNDA's enum.
SUNDA_MASKS = (
    (0x00, 0x0001001E0000003E),
    (0x41, 0x7FEFFFFFE08F7FFF),
    (0x82, 0x024BC3FFFFDF3F7F),
    (0xC1, 0x400082F07FBFFFFF),
)


class TestSets:
    @pytest.mark.parametrize("name", SIZES)
    def test_sizes_are_the_published_ones(self, name):
        """Enum sizes are printed by the sources independently of the members."""
        generation = GENERATIONS[name]

        assert (
            len(generation.opcodes),
            len(generation.dtypes),
            len(generation.alu_ops),
        ) == SIZES[name]

    def test_sunda_opcodes_are_those_of_the_masks(self):
        """The four 64-bit masks of the validator give the same set as the ranges."""
        members = {base + bit for base, mask in SUNDA_MASKS for bit in range(64) if mask >> bit & 1}

        assert members == SUNDA.opcodes

    def test_union_is_172_opcodes_and_all_have_names(self):
        """dve-tensor-scalar.md 1: 172 values over all generations."""
        union = frozenset().union(*(g.opcodes for g in GENERATIONS.values()))

        assert len(union) == 172
        assert union == OPCODES.keys()

    def test_enum_codes_are_named(self):
        """Every dtype and ALU operation of a generation is a member of its enum."""
        for generation in GENERATIONS.values():
            assert generation.dtypes <= {int(d) for d in DType}
            assert generation.alu_ops <= {int(op) for op in AluOp}


class TestGeometry:
    def test_capacities_are_the_published_ones(self):
        """isa-encoding.md 3.3: 24, 28, 32, 32 and 64 MiB of SBUF, 2 MiB of PSUM."""
        mebi = 1 << 20
        sbuf = [g.sbuf.active_bytes * g.sbuf.num_partitions for g in GENERATIONS.values()]

        assert sbuf == [24 * mebi, 28 * mebi, 32 * mebi, 32 * mebi, 64 * mebi]
        assert MARIANA.psum is not None
        assert MARIANA.psum.active_bytes * MARIANA.psum.num_partitions == 2 * mebi
        assert MARIANA.psum.active_bytes // MARIANA.psum.bank_bytes == 8

    def test_windows_are_the_published_ones(self):
        """Window sizes of isa-encoding.md 3.3; MAVERICK has no PSUM."""
        assert MARIANA.sbuf.window_bytes == 0x2000000
        assert MARIANA.psum is not None
        assert MARIANA.psum.window_bytes == 0x400000
        assert MAVERICK.sbuf.window_bytes == 0x8000000
        assert MAVERICK.psum is None


class TestCam:
    def test_armed_counts(self):
        """activation-tables.md 10.1, less the wildcard and MARIANA's one unnamed opcode."""
        armed = {n: g.dve_cam and len(g.dve_cam.armed) for n, g in GENERATIONS.items()}

        assert armed == {
            "sunda": None,
            "cayman": 46,
            "mariana": 46,
            "mariana_plus": 46,
            "maverick": 52,
        }

    def test_slot_of_exponential(self):
        """0x2d0 on MARIANA, unpublished on MAVERICK, unarmed on CAYMAN."""
        slots = {n: g.dve_cam and g.dve_cam.slot_of(0x30) for n, g in GENERATIONS.items()}

        assert slots["mariana"] == slots["mariana_plus"] == 0x2D0
        assert slots["maverick"] is slots["sunda"] is None
        assert 0x30 not in GENERATIONS["cayman"].dve_cam.armed


def test_unknown_generation_names_the_five():
    """The message says what would be accepted."""
    with pytest.raises(InputError, match=r"^generation must be one of sunda, .*, not 'trn9'$"):
        generation_named("trn9")
