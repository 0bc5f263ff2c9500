"""EXPONENTIAL: the cases of cases/users.md with their bits, and the plain implementation.

Decimals are mathematics (the table is within 400 fp32 ULP), hexadecimal words are exp_400p's under
evaluator `pwp`, worked out apart from any emulator.
"""

from __future__ import annotations

import numpy as np
import pytest

from neuron_emu import Machine, Program
from neuron_emu.engines.result_tables import ResultTables
from neuron_emu.generation import MAVERICK
from neuron_emu.isa.enums import DType, Engine
from neuron_emu.policy import Policy
from tests.engines.tensor_scalar_words import INPUTS, OUTPUTS, SIZE_OF, first_difference

EXP = 0x30
FULL_NAN = 0x7FC00000


def exp_line(
    n: int,
    command: str = "IDLE",
    *,
    src: str = "fp32",
    dst: str = "fp32",
    maximum: str = "fp32@0.0",
    channels: int = 1,
    seed: str = "",
    at: tuple[int, int] = (0x1000, 0x2000),
) -> str:
    return (
        f"EXPONENTIAL src={src}@{at[0]:#x}[1,1,1][{n},1,1] dst={dst}@{at[1]:#x}[1,1,1][{n},1,1]"
        f" channels={channels} max_value={maximum} accumulator_cmd={command}{seed}"
    )


DRAIN = "DVE_READ_ACCUMULATOR dst=fp32@{at:#x}[1][1] channels={channels}"


def drain(at: int = 0x3000, channels: int = 1) -> str:
    return DRAIN.format(at=at, channels=channels)


def machine_with(values: list[float], channels: int = 1, **policy: str) -> Machine:
    machine = Machine("mariana", Policy(**policy))
    machine.preload("exp_and_others")
    if values:
        rows = np.tile(np.float32(values), (channels, 1))
        machine.write(f"sbuf:0+0x1000:fp32[{channels},{len(values)}]", rows)
    return machine


def run(machine: Machine, *lines: str) -> Machine:
    result = machine.run(Program.from_text("\n".join(lines)))
    assert result.fault is None, result.fault
    return machine


def words_at(machine: Machine, n: int, at: int = 0x2000, dtype: str = "fp32") -> list[int]:
    return machine.read(f"sbuf:0+{at:#x}:{dtype}:bits[1,{n}]")[0].tolist()


def floats_at(machine: Machine, n: int, at: int = 0x2000) -> np.ndarray:
    return machine.read(f"sbuf:0+{at:#x}:fp32[1,{n}]")[0]


class TestCases:
    """cases/users.md 1 to 4 and 10 to 13."""

    def test_1_eight_values_in_every_lane(self) -> None:
        machine = machine_with([0, -1, -2, -3, -4, -5, -6, -7], channels=128)
        run(machine, exp_line(8, channels=128))

        expected = "3f800000 3ebc5a40 3e0a9501 3d4bed0b 3c960a53 3bdcc97a 3b22722d 3a6f0acc"
        found = machine.read("sbuf:0+0x2000:fp32:bits[128,8]")
        assert found.tolist() == [[int(word, 16) for word in expected.split()]] * 128
        mathematics = np.exp(-np.arange(8.0))
        assert np.allclose(found.view(np.float32), mathematics, rtol=4.8e-5, atol=0)

    @pytest.mark.parametrize(
        ("acc_source", "expected"),
        [("before_conversion", 0x3FC6C898), ("after_conversion", 0x3FC6C000)],
    )
    def test_2_sum_of_a_bf16_word(self, acc_source: str, expected: int) -> None:
        machine = machine_with([0, -1, -2, -3], acc_source=acc_source)
        run(machine, exp_line(4, "ZERO_ACCUMULATE", dst="bf16"), drain())

        assert words_at(machine, 1, 0x3000) == [expected]

    def test_3_seed(self) -> None:
        machine = machine_with([0, -1, -2, -3])
        run(machine, exp_line(4, "LOAD_ACCUMULATE", seed=" reduce_init=fp32@10.0"), drain())

        assert words_at(machine, 1, 0x3000) == [0x4138D913]

    def test_4_idle_leaves_the_accumulator_undefined(self) -> None:
        machine = machine_with([0, -1])
        run(
            machine,
            exp_line(2, "ZERO_ACCUMULATE"),
            exp_line(2, "IDLE"),
            exp_line(2, "ACCUMULATE", at=(0x1000, 0x2000)).replace("[2,1,1]", "[1,1,1]"),
            drain(),
        )

        told = [(w.name, w.index) for w in machine.warnings]
        assert told == [("undefined_accumulator", 2)]
        assert "is not to be relied on" in machine.warnings[0].message
        assert floats_at(machine, 1, 0x3000)[0] == pytest.approx(2.3678794, abs=2e-5)

    def test_10_two_flash_tiles(self) -> None:
        """Maxima 2 and 3 behind pointers; the correction is exp(2 - 3)."""
        machine = machine_with([1, 2, 3, 0])
        machine.write("sbuf:0+0xc000:fp32[1,2]", np.float32([[2, 3]]))
        run(
            machine,
            exp_line(2, "ZERO_ACCUMULATE", maximum="[fp32@0xc000]"),
            drain(0x3000),
            exp_line(1, maximum="[fp32@0xc004]", at=(0xC000, 0x3004)),
            exp_line(2, "ZERO_ACCUMULATE", maximum="[fp32@0xc004]", at=(0x1008, 0x2008)),
            drain(0x3008),
        )

        old, correction, new = floats_at(machine, 3, 0x3000)
        assert old == pytest.approx(1.3678794, rel=4.8e-5)
        assert correction == pytest.approx(0.36787945, rel=4.8e-5)
        assert old * correction + new == pytest.approx(1.5530018, rel=4.8e-5)

    def test_11_top_two(self) -> None:
        """exp of 2 and 1 less the maximum behind a pointer, over their sum."""
        machine = machine_with([2, 1])
        machine.write("sbuf:0+0xc000:fp32[1,1]", np.float32([[2]]))
        run(machine, exp_line(2, "ZERO_ACCUMULATE", maximum="[fp32@0xc000]"), drain())

        probabilities = floats_at(machine, 2) / floats_at(machine, 1, 0x3000)
        assert probabilities == pytest.approx([0.7310586, 0.2689414], rel=1e-4)

    def test_12_a_row_of_minus_infinity(self) -> None:
        """-inf - -inf is the canonical NaN, and the trace shows that the subtraction made it."""
        machine = machine_with([-np.inf] * 2)
        stations: dict[str, dict[str, object]] = {}
        machine.listeners.append(lambda event: stations.update({event.station or "": event.detail}))
        run(machine, exp_line(2, maximum="fp32@-inf"))

        assert words_at(machine, 2) == [FULL_NAN] * 2
        assert stations["affine"]["v"] == f"{FULL_NAN:#010x}"
        assert stations["affine"]["x"] == "0xff800000"

    def test_13_bytes_that_nothing_wrote(self) -> None:
        machine = run(machine_with([]), exp_line(4, channels=2))

        (warning,) = machine.warnings
        assert warning.name == "uninitialised_read"
        assert "first at 0x1000" in warning.message
        assert words_at(machine, 4) == [0x3F800000] * 4


class TestWorker:
    """What EXPONENTIAL shares with its family."""

    def test_result_tables_change_nothing(self) -> None:
        """8-bit inputs are looked up once 256 of them were met; the bytes stay the same."""
        machine = machine_with([])
        codes = np.arange(256, dtype=np.uint8)[None]
        machine.write("sbuf:0+0x1000:int8:bits[1,256]", codes)
        text = exp_line(256, "ZERO_ACCUMULATE", src="int8", dst="bf16")
        run(machine, text)
        first = words_at(machine, 256, dtype="bf16")
        total = machine.engine(Engine.DVE).accumulator.values[0]
        machine.engine(Engine.DVE).result_tables = ResultTables()
        run(machine, *[text] * 3)

        assert words_at(machine, 256, dtype="bf16") == first
        assert machine.engine(Engine.DVE).accumulator.values[0] == total

    def test_a_command_without_a_described_effect(self) -> None:
        result = Machine("mariana", Policy(invalid="warn")).run(
            Program.from_text(exp_line(1, "ZERO"))
        )

        assert result.fault is not None
        assert result.fault.message == "accumulator_cmd 1 has no described effect"

    def test_lanes_past_the_active_ones_stay(self) -> None:
        machine = machine_with([0, 0], channels=4)
        state = machine.engine(Engine.DVE)
        state.accumulator.values[:] = 5
        run(machine, exp_line(2, "ZERO_ACCUMULATE", channels=3))

        assert state.accumulator.values[:5].tolist() == [2, 2, 2, 5, 5]
        assert state.accumulator.undefined[:4].tolist() == [False, False, False, True]


class TestAgainstPlainLoops:
    """Generated words, byte for byte: memory, accumulators and their flags."""

    def test_mariana(self) -> None:
        assert first_difference(EXP, 500, 1) is None

    def test_maverick(self) -> None:
        assert first_difference(EXP, 100, 2, generation=MAVERICK) is None

    @pytest.mark.parametrize("spaces", ["sbuf sbuf", "psum sbuf", "sbuf psum", "psum psum"])
    def test_every_pair_of_dtypes_and_spaces(self, spaces: str) -> None:
        """PSUM takes outputs of four bytes only (isa-encoding.md 6.12)."""
        source, destination = spaces.split()
        for in_dtype in INPUTS:
            for out_dtype in OUTPUTS:
                if destination == "sbuf" or SIZE_OF[out_dtype] == 4:
                    difference = first_difference(
                        EXP,
                        1,
                        in_dtype * 16 + out_dtype,
                        dtypes=(in_dtype, out_dtype),
                        spaces=(source, destination),
                        channels=2,
                    )
                    assert difference is None

    def test_every_channel_count(self) -> None:
        for channels in range(1, 129):
            assert first_difference(EXP, 1, channels, channels=channels) is None

    @pytest.mark.parametrize(
        "policy",
        [
            {"acc_source": "after_conversion"},
            {"acc_order": "pairs"},
            {"acc_idle": "nan"},
            {"nan": "profile"},
            {"fp8_profile": "ieee", "fp8_e3m4_max": "saturate", "fp32r_mantissa": "13"},
        ],
        ids=lambda policy: next(iter(policy)),
    )
    def test_policies(self, policy: dict[str, str]) -> None:
        assert first_difference(EXP, 60, 5, policy=Policy(**policy)) is None

    def test_long_rows(self) -> None:
        """Up to 280 elements in a lane."""
        pair = (DType.UINT8, DType.FP8_EXP5)
        rows = {"longest_row": 280, "max_elements": 280}

        assert first_difference(EXP, 12, 6, dtypes=pair, channels=1, **rows) is None
