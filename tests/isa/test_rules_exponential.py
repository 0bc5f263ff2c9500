"""The rules of EXPONENTIAL against the conjunct list and against an independent validator."""

from __future__ import annotations

import random

import pytest

from neuron_emu import assemble
from neuron_emu.generation import GENERATIONS, MARIANA
from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.isa.families.tensor_scalar import TensorScalar
from neuron_emu.isa.fields import write_field
from neuron_emu.isa.rules import rules_for
from neuron_emu.isa.rules.examples import standard_word
from neuron_emu.isa.validate import Judge, findings_of_word
from neuron_emu.policy import Policy
from tests.isa.mutated import mutated_words
from tests.isa.reference_validator import ROWS, conjuncts

EXPONENTIAL = standard_word(0x30)
ROW_CODES = [f"NE01{row:02}" for row in range(1, 18)]


def changed(word: bytes = EXPONENTIAL, **fields: int) -> bytes:
    """Change fields; `__` stands for a dot and `__0` for an index."""
    for name, value in fields.items():
        path = name.replace("__", ".")
        for index in "012":
            path = path.replace(f".{index}", f"[{index}]")
        word = write_field(word, TensorScalar, path, value)
    return word


def reported(word: bytes, generation: str = "mariana") -> list[tuple[str, str]]:
    found = findings_of_word(word, GENERATIONS[generation])
    return [(f.code, f.name) for f in found]


class TestRows:
    """The rule set is the conjunct list."""

    @pytest.mark.parametrize("generation", ["mariana", "mariana_plus", "maverick"])
    def test_rules_are_the_17_rows_in_order(self, generation: str) -> None:
        """Every row of isa-encoding.md 6.1 has one rule with its name, in its place."""
        rules = rules_for(0x30, generation)
        names = [r.name_on(GENERATIONS[generation]) for r in rules if r.code in ROW_CODES]
        rows = list(ROWS)
        if generation == "maverick":
            rows[11] = "has_valid_active_channel_range_with_tile"

        assert [r.code for r in rules if r.code > "NE0100"] == ROW_CODES
        assert names == rows

    @pytest.mark.parametrize("generation", list(GENERATIONS))
    @pytest.mark.parametrize("upper", ["packed_even", "product_even", "off"])
    def test_no_error_iff_every_conjunct_holds(self, generation: str, upper: str) -> None:
        """On words near the border, the verdict is the conjunction and findings are true rows."""
        judge = Judge(GENERATIONS[generation], None, Policy(exp_upper_dim=upper))
        legal = 0
        for word in mutated_words(0x30, 1500, seed=len(generation) + len(upper)):
            truths = conjuncts(word, generation, upper)
            found = {f.code for f in judge.findings(word)}
            legal += all(truths)

            assert (not found) == all(truths), (word.hex(), found, truths)
            broken = {code for code, truth in zip(ROW_CODES, truths, strict=True) if not truth}
            assert found <= broken or generation in ("sunda", "cayman"), (word.hex(), found, broken)
        assert legal > 200 or generation in ("sunda", "cayman")

    @pytest.mark.parametrize("generation", list(GENERATIONS))
    def test_random_bytes_agree(self, generation: str) -> None:
        """Random payloads of opcode 0x30 are judged as the conjuncts say."""
        rng = random.Random(7)
        for _ in range(300):
            word = bytes([0x30, 0x10]) + rng.randbytes(62)
            found = findings_of_word(word, GENERATIONS[generation])

            assert (not found) == all(conjuncts(word, generation))

    def test_worked_word_is_legal(self) -> None:
        """The composed example of isa-encoding.md 5.5 has no finding where 0x30 is wired."""
        word = bytes.fromhex(
            "30100000000000000000000003000000"
            "00100000010001000100000201000100"
            "0A068000000000000000000000000000"
            "00200000010001000100000201000100"
        )

        assert [bool(reported(word, g)) for g in GENERATIONS] == [True, True, False, False, False]

    def test_other_opcode_by_name(self) -> None:
        """The validator of EXPONENTIAL refuses another opcode's word."""
        found = Judge(MARIANA).findings_as(standard_word(0x43), 0x30)

        assert "has_exponential_opcode" in [f.name for f in found]


class TestCases:
    """Cases 20 to 28 of real questions."""

    @pytest.mark.parametrize(
        ("channels", "partition", "legal"),
        [(36, 48, "0 or 64"), (8, 48, "0, 32, 64 or 96"), (64, 32, "0 or 64"), (97, 64, "0")],
    )
    def test_start_partition(self, channels: int, partition: int, legal: str) -> None:
        """20 to 22: the leaf, the legal partitions and the partition found are all named."""
        word = changed(num_active_channels=channels)
        word = changed(word, src__start__partition_offset=partition * 0x40000)
        (found,) = findings_of_word(word)

        assert found.name == "check_m3d_active_channels"
        assert found.message == (
            f"src start partition must be {legal} for {channels} channels, not {partition}"
            " (start_addr_active_channels)"
        )
        assert (found.field, found.span, found.bits) == (
            "src.start.partition_offset",
            (16, 19),
            (0, 28),
        )
        assert found.actual == str(partition)

    @pytest.mark.parametrize(("channels", "partition"), [(8, 32), (64, 64), (36, 64), (128, 0)])
    def test_start_partition_controls(self, channels: int, partition: int) -> None:
        """20 to 22, controls: the legal partitions pass."""
        word = changed(num_active_channels=channels)

        assert not reported(changed(word, src__start__partition_offset=partition * 0x40000))

    def test_fp32r_source(self) -> None:
        """23: FP32R is for destinations only."""
        assert reported(changed(in_dtype=DType.FP32R)) == [("NE0104", "is_valid_dtype")]
        assert reported(changed(out_dtype=DType.FP32R)) == []

    def test_odd_packed_count(self) -> None:
        """24: three bf16 in a row cannot accumulate; four, IDLE, fp32 and step 2 can."""
        word = changed(in_dtype=DType.BFLOAT16, accumulator_cmd=3, src__num__0=3, dst__num__0=3)

        assert reported(word) == [("NE0108", "has_valid_exponential_num_elements")]
        assert not reported(changed(word, src__num__0=4, dst__num__0=4))
        assert not reported(changed(word, accumulator_cmd=0))
        assert not reported(changed(word, in_dtype=DType.FP32))
        assert not reported(changed(word, src__step__0=2))

    def test_seed_without_load(self) -> None:
        """25: imm1 is the seed of LOAD_ACCUMULATE alone."""
        word = changed(accumulator_cmd=2, imm1__word=0x3F000000)
        (found,) = findings_of_word(word)

        assert (found.name, found.actual) == ("has_valid_exponential_accum_cmd", "0.500000")
        assert not reported(changed(word, accumulator_cmd=4))

    def test_alu_operation(self) -> None:
        """26: the exponential has no ALU operation."""
        assert reported(changed(op0=AluOp.ADD)) == [("NE0109", "has_valid_exponential_ops")]

    @pytest.mark.parametrize("generation", ["sunda", "cayman"])
    def test_unwired(self, generation: str) -> None:
        """27: reserved on sunda and cayman, wired from mariana on, and nothing else is said."""
        (found,) = findings_of_word(changed(op0=4, in_dtype=0xB), GENERATIONS[generation])

        assert found.name == "opcode_wired"
        assert "reserved, unwired, no validator bound; wired from mariana on" in found.message

    def test_narrow_psum_write(self) -> None:
        """28: PSUM is written in 4-byte elements only."""
        word = changed(out_dtype=DType.BFLOAT16, dst__start__partition_offset=0x2000000)
        (found,) = findings_of_word(word)

        assert found.name == "mem3d_valid"
        assert "PSUM is written in 4-byte elements only" in found.message
        assert not reported(changed(word, out_dtype=DType.FP32))


class TestQuiet:
    """A rule whose prerequisite failed stays quiet; independent faults are all told."""

    def test_no_channels(self) -> None:
        """Without a channel count no start partition is wrong."""
        word = changed(num_active_channels=0, src__start__partition_offset=48 * 0x40000)

        assert [code for code, _ in reported(word)] == ["NE0112"]

    def test_zero_count(self) -> None:
        """A zero count is told once, not as a difference in counts too."""
        assert [code for code, _ in reported(changed(src__num__0=0))] == ["NE0114"]

    def test_bad_dtype(self) -> None:
        """A dtype that is refused has no alignment."""
        word = changed(in_dtype=0x1C, src__start__partition_offset=0x1001)

        assert [code for code, _ in reported(word)] == ["NE0104"]

    def test_all_findings(self) -> None:
        """Three independent faults are three findings, in the order of the conjuncts."""
        word = changed(op1=6, num_active_channels=200, dst__start__partition_offset=0x2002)

        assert [code for code, _ in reported(word)] == ["NE0109", "NE0112", "NE0115"]

    def test_psum_on_maverick(self) -> None:
        """0x2000000 is SBUF partition 32 on maverick, so 128 channels cannot start there."""
        word = changed(src__start__partition_offset=0x2000000)

        assert reported(word, "mariana") == []
        assert reported(word, "maverick") == [("NE0113", "check_m3d_active_channels")]


def test_reserved_half_word_of_a_descriptor():
    """mem3d_valid prints no test of it; policy indirect_reserved=refuse adds one."""
    word = bytearray(
        assemble(
            "EXPONENTIAL src=fp32@0x0[index@0x8000][4] dst=fp32@0x2000[1][4] channels=16"
            " accumulator_cmd=IDLE"
        )
    )
    word[26] = 1
    strict = Policy.parse(["indirect_reserved=refuse"])

    assert findings_of_word(bytes(word), MARIANA) == ()
    assert [f.name for f in findings_of_word(bytes(word), MARIANA, None, strict)] == ["mem3d_valid"]
