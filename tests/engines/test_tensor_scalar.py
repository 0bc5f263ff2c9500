"""The Tensor-Scalar family: printed values, hand-worked cases, and the plain implementation.

Sources: dve-tensor-scalar.md 3 to 5 and 13; the numbered cases are those of cases/users.md.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from neuron_emu import Machine, Program
from neuron_emu.engines.tensor_scalar import transposed
from neuron_emu.generation import CAYMAN, MARIANA, MAVERICK, SUNDA
from neuron_emu.isa.assembly import assemble, disassemble_word
from neuron_emu.isa.enums import DType, Engine
from neuron_emu.policy import Policy
from tests.engines.tensor_scalar_words import (
    CACHE_INPUTS,
    INPUTS,
    INTEGERS,
    OUTPUTS,
    Bench,
    Generator,
    first_difference,
)


def floats(words: list[int]) -> np.ndarray:
    return np.array(words, np.uint32).view(np.float32)


def ran(text: str, values: list[float] | np.ndarray, **policy: str) -> Machine:
    """Run a listing with fp32 `values` at 0x1000 of partition 0; it must end without a fault."""
    generation = policy.pop("generation", "mariana")
    machine = Machine(generation, Policy(**policy))
    row = np.asarray(values, np.float32)[None]
    machine.write(f"sbuf:0+0x1000:fp32[1,{row.size}]", row)
    result = machine.run(Program.from_text(text))
    assert result.fault is None, result.fault
    return machine


def fault_of(text: str, *, generation: str = "mariana", **policy: str) -> str:
    """Return the fault's name and sentence."""
    result = Machine(generation, Policy(**policy)).run(Program.from_text(text))
    assert result.fault is not None
    return f"{result.fault.name}: {result.fault.message}"


def line(
    name: str, n: int, rest: str, *, src: str = "fp32", dst: str = "fp32", channels: int = 1
) -> str:
    return (
        f"{name} src={src}@0x1000[1,1,1][{n},1,1] dst={dst}@0x2000[1,1,1][{n},1,1]"
        f" channels={channels} {rest}"
    )


def values_at(machine: Machine, n: int, dtype: str = "fp32", at: int = 0x2000) -> list[float]:
    return machine.read(f"sbuf:0+{at:#x}:{dtype}[1,{n}]")[0].tolist()


def accumulator_of(machine: Machine) -> float:
    return float(machine.engine(Engine.DVE).accumulator.values[0])


class TestWorkedValues:
    """dve-tensor-scalar.md 13."""

    @pytest.mark.parametrize(
        ("ops", "s0", "s1", "reverse", "x", "expected"),
        [
            ("MULTIPLY,ADD", 2, 1, "NONE", 3, 7),
            ("SUBTRACT,BYPASS", 10, 0, "NONE", 3, -7),
            ("SUBTRACT,BYPASS", 10, 0, "FIRST", 3, 7),
            ("SUBTRACT,SUBTRACT", 10, 1, "SECOND", 3, 8),
            ("SUBTRACT,SUBTRACT", 10, 1, "BOTH", 3, -6),
            ("IS_GT,MULTIPLY", 2, 5, "NONE", 3, 5),
            ("ABS_MAX,BYPASS", 3, 0, "NONE", -5, -5),
            ("ABS_MAX,BYPASS", -1, 0, "NONE", 1, -1),
        ],
    )
    def test_operations(
        self, ops: str, s0: float, s1: float, reverse: str, x: float, expected: float
    ) -> None:
        rest = f"ops={ops} reverse_operands={reverse} imm0=fp32@{s0} imm1=fp32@{s1}"

        assert values_at(ran(line("TENSOR_SCALAR", 1, rest), [x]), 1) == [expected]

    def test_the_complete_instruction(self) -> None:
        """x * 2 + 1 over 128 lanes and 8 elements, in the bytes of the page."""
        word = bytes.fromhex(
            "43100000000000000000000000000000"
            "00100000010001000100080001000100"
            "0a0a800006040000000000400000803f"
            "00200000010001000100080001000100"
        )
        machine = Machine()
        values = np.arange(1024, dtype=np.float32).reshape(128, 8)
        machine.write("sbuf:0+0x1000:fp32[128,8]", values)

        assert machine.run(Program.of(word)).fault is None
        assert np.array_equal(machine.read("sbuf:0+0x2000:fp32[128,8]"), 2 * values + 1)

    def test_cumulative_subtraction(self) -> None:
        """t = 2, 3, 4; out 2, 1, 3: the new value stands left of the accumulator."""
        rest = "ops=ADD,SUBTRACT imm0=fp32@1.0 accumulator_cmd=ZERO_ACCUMULATE"
        machine = ran(line("TENSOR_SCALAR_CACHE_CUMULATIVE", 3, rest), [1, 2, 3])

        assert values_at(machine, 3) == [2, 1, 3]
        assert accumulator_of(machine) == 3

    def test_reduction_from_a_seed(self) -> None:
        rest = (
            "ops=MULTIPLY,ADD imm0=fp32@2.0 accumulator_cmd=LOAD_ACCUMULATE reduce_init=fp32@10.0"
        )
        machine = ran(line("TENSOR_SCALAR_CACHE_REDUCE", 3, rest), [1, 2, 3])

        assert values_at(machine, 3) == [2, 4, 6]
        assert accumulator_of(machine) == 22


class TestCases:
    """Cases of cases/users.md that need no exponential."""

    @pytest.mark.parametrize(
        ("dtype", "values", "expected"),
        [
            ("int8", [0.5, 1.5, 2.5, -0.5, -1.5, 300, -300], [0, 2, 2, 0, -2, 127, -128]),
            ("uint8", [-1.5, 255.5], [0, 255]),
        ],
    )
    def test_8_to_integers(self, dtype: str, values: list[float], expected: list[int]) -> None:
        text = line("TENSOR_SCALAR", len(values), "", dst=dtype)

        assert values_at(ran(text, values), len(values), dtype) == expected

    def test_9_to_bf16(self) -> None:
        values = floats([0x3F808000, 0x3F808001, 0x3F818000, 0x7F7FFFFF, 0xFF7FFFFF])
        machine = ran(line("TENSOR_SCALAR", 5, "", dst="bf16"), values)

        expected = [0x3F80, 0x3F81, 0x3F82, 0x7F80, 0xFF80]
        assert values_at(machine, 5, "bf16:bits") == expected

    def test_14_running_sum(self) -> None:
        rest = "ops=BYPASS,ADD accumulator_cmd=ZERO_ACCUMULATE"
        machine = ran(line("TENSOR_SCALAR_CACHE_CUMULATIVE", 3, rest), [1, 2, 3])

        assert values_at(machine, 3) == [1, 3, 6]
        assert accumulator_of(machine) == 6


class TestStages:
    """What the two stages do, worked by hand."""

    def test_each_stage_rounds(self) -> None:
        """(1 + 2^-12)^2 ties to 1 + 2^-11 in fp32; a fused multiply-add would leave 2^-24."""
        rest = f"ops=MULTIPLY,SUBTRACT imm0=fp32@{1 + 2**-12} imm1=fp32@{1 + 2**-11}"
        machine = ran(line("TENSOR_SCALAR", 1, rest), [1 + 2**-12])

        assert values_at(machine, 1) == [0]

    def test_unary_operations_take_the_stream_when_reversed(self) -> None:
        rest = "ops=SQUARE,ABS_VALUE reverse_operands=BOTH imm0=fp32@5.0 imm1=fp32@-7.0"

        assert values_at(ran(line("TENSOR_SCALAR", 2, rest), [-3, 2]), 2) == [9, 4]

    def test_narrow_not_and_shift(self) -> None:
        """Not 0x0f is 0xf0 in a byte, and 0x0f once shifted; in a 32-bit word ones follow."""
        text = (
            "TENSOR_SCALAR_BITVEC src=uint8@0x1000[1,1,1][1,1,1] dst=uint8@0x2000[1,1,1][1,1,1]"
            " channels=1 ops=BITWISE_NOT,LOGICAL_SHIFT_RIGHT imm0=bits@0x0 imm1=bits@0x4"
        )
        byte = floats([0x0F])

        assert values_at(ran(text, byte), 1, "uint8") == [0x0F]
        assert values_at(ran(text, byte, bitvec_stage_mask="word"), 1, "uint8") == [0xFF]

    def test_identity_passes_fp32(self) -> None:
        """2^24 + 1 is no fp32; policy `ts_identity_hub=raw` moves the bits."""
        text = line("TENSOR_SCALAR", 1, "", src="int32", dst="int32")
        odd = floats([2**24 + 1])

        assert values_at(ran(text, odd), 1, "int32") == [2**24]
        assert values_at(ran(text, odd, ts_identity_hub="raw"), 1, "int32") == [2**24 + 1]

    def test_pointers_are_latched(self) -> None:
        """The scalar lies in the destination: 1 is added to all three, not 2 to the others."""
        text = (
            "TENSOR_SCALAR src=fp32@0x1000[1,1,1][3,1,1] dst=fp32@0x1000[1,1,1][3,1,1]"
            " channels=1 ops=ADD,BYPASS imm0=[fp32@0x1000]"
        )

        assert values_at(ran(text, [1, 2, 3]), 3, at=0x1000) == [2, 3, 4]

    def test_stream_order(self) -> None:
        """dst one element past src: every element is 1 more than the one before."""
        text = (
            "TENSOR_SCALAR src=fp32@0x1000[1,1,1][3,1,1] dst=fp32@0x1004[1,1,1][3,1,1]"
            " channels=1 ops=ADD,BYPASS imm0=fp32@1.0"
        )

        assert values_at(ran(text, [5, 0, 0, 0]), 4, at=0x1000) == [5, 6, 7, 8]

    def test_pointer_opcode(self) -> None:
        """0x44 reads both scalars through pointers, although the sources say 0."""
        text = (
            "TENSOR_SCALAR_PTR src=fp32@0x1000[1,1,1][2,1,1] dst=fp32@0x2000[1,1,1][2,1,1]"
            " channels=1 ops=MULTIPLY,ADD imm0=[fp32@0x1008] imm1=[fp32@0x100c]"
        )
        word = assemble(text)

        assert (word[35], word[39]) == (0, 0)
        assert disassemble_word(word, MARIANA).startswith("TENSOR_SCALAR_PTR ")
        assert "imm0=[fp32@0x1008]" in disassemble_word(word, MARIANA)
        assert values_at(ran(text, [1, 2, 10, 0.5]), 2) == [10.5, 20.5]

    def test_bits_behind_a_pointer_have_the_width_of_the_source(self) -> None:
        text = (
            "TENSOR_SCALAR_PTR_BITVEC src=uint16@0x1000[1,1,1][1,1,1]"
            " dst=uint16@0x2000[1,1,1][1,1,1] channels=1 ops=BITWISE_XOR,BYPASS"
            " imm0=[uint16@0x1002] imm1=[uint16@0x1000]"
        )

        assert values_at(ran(text, floats([0x00FF_F0F0])), 1, "uint16") == [0xF00F]

    def test_transposition(self) -> None:
        """y[32g+i][32b+j] = x[32g+j][32b+i], counted by hand on two groups and two blocks."""
        x = np.arange(64 * 64).reshape(64, 64)
        y = transposed(x.astype(np.uint32))

        for p, e in [(0, 0), (0, 1), (1, 0), (33, 2), (40, 63), (63, 32)]:
            assert y[p, e] == x[p // 32 * 32 + e % 32, e // 32 * 32 + p % 32]

    def test_integers_never_pass_fp32(self) -> None:
        """MAVERICK: 2^31 - 1 + 1 wraps, and 2^24 + 1 keeps its last bit."""
        text = line(
            "TENSOR_SCALAR", 2, "ops=ADD_INT,BYPASS imm0=fp32@0x00000001", src="int32", dst="int32"
        )
        values = floats([2**31 - 1, 2**24 + 1])

        machine = ran(text, values, generation="maverick")

        assert values_at(machine, 2, "int32") == [-(2**31), 2**24 + 2]

    def test_integers_stored_in_fewer_bits(self) -> None:
        """300 in an int8 is 44, or 127 when stored values saturate."""
        text = line(
            "TENSOR_SCALAR", 1, "ops=ADD_INT,BYPASS imm0=fp32@0x00000001", src="int32", dst="int8"
        )
        value = floats([299])

        machine = ran(text, value, generation="maverick")
        saturating = ran(text, value, generation="maverick", int_store="saturate")

        assert values_at(machine, 1, "int8") == [44]
        assert values_at(saturating, 1, "int8") == [127]


class TestCache:
    """Reductions and scans into the accumulator."""

    def test_what_the_accumulator_takes(self) -> None:
        """1 + 2^-9 is 1 in bf16: two of them sum to 2 + 2^-8, or to 2 by policy."""
        rest = "ops=BYPASS,ADD accumulator_cmd=ZERO_ACCUMULATE"
        text = line("TENSOR_SCALAR_CACHE_REDUCE", 2, rest, dst="bf16")
        values = [1 + 2**-9] * 2

        assert accumulator_of(ran(text, values)) == 2 + 2**-8
        assert accumulator_of(ran(text, values, acc_source="after_conversion")) == 2

    def test_subtract_order(self) -> None:
        """3 - (2 - (1 - 0)) = 2, or ((0 - 1) - 2) - 3 = -6."""
        rest = "ops=BYPASS,SUBTRACT accumulator_cmd=ZERO_ACCUMULATE"
        text = line("TENSOR_SCALAR_CACHE_REDUCE", 3, rest)
        values = [1.0, 2.0, 3.0]

        assert accumulator_of(ran(text, values)) == 2
        assert accumulator_of(ran(text, values, sub_reduce_order="accumulator_first")) == -6

    @pytest.mark.parametrize(
        ("op", "expected"), [("ADD", -1), ("MULTIPLY", -30), ("MAX", 5), ("MIN", -3)]
    )
    def test_identities(self, op: str, expected: float) -> None:
        """ZERO_ACCUMULATE starts from what changes nothing, whatever the operation."""
        rest = f"ops=BYPASS,{op} accumulator_cmd=ZERO_ACCUMULATE"
        values = [-3, 5, 2] if op != "ADD" else [-3, 5, -3]

        machine = ran(line("TENSOR_SCALAR_CACHE_REDUCE", 3, rest), values)

        assert accumulator_of(machine) == expected
        assert values_at(machine, 3) == values

    def test_an_undefined_accumulator_is_told_of(self) -> None:
        text = line("TENSOR_SCALAR_CACHE_REDUCE", 1, "ops=BYPASS,ADD accumulator_cmd=ACCUMULATE")
        machine = ran(text, [1])

        assert [warning.name for warning in machine.warnings] == ["undefined_accumulator"]

    def test_two_stage_words_leave_the_accumulator_alone(self) -> None:
        cache = line(
            "TENSOR_SCALAR_CACHE_REDUCE", 1, "ops=BYPASS,ADD accumulator_cmd=ZERO_ACCUMULATE"
        )
        machine = ran(f"{cache}\n{line('TENSOR_SCALAR', 1, '')}", [7])

        assert accumulator_of(machine) == 7
        assert not machine.engine(Engine.DVE).accumulator.undefined[0]


class TestRefused:
    """Words whose meaning is unpublished, or that another engine executes."""

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                line("TENSOR_SCALAR", 1, "ops=RSQRT,BYPASS"),
                "no_model: RSQRT is unsupported on the DVE: Pool and GpSimd have it",
            ),
            (
                line(
                    "TENSOR_SCALAR_BITVEC", 1, "ops=CRC32,BYPASS imm0=bits@0x0", src="int32",
                    dst="int32",
                ),
                "no_model: CRC32 is unsupported on the DVE: Pool and GpSimd have it",
            ),
        ],
    )  # fmt: skip
    def test_operations_of_other_engines(self, text: str, message: str) -> None:
        assert fault_of(text) == message

    def test_integer_operation_on_floats(self) -> None:
        text = line("TENSOR_SCALAR", 1, "ops=ADD_INT,BYPASS")

        assert fault_of(text, generation="maverick") == (
            "no_model: what an integer operation does with fp32 is not published"
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                line("TENSOR_SCALAR", 1, "ops=BITWISE_AND,BYPASS"),
                "no_model: BITWISE_AND has no meaning in an arithmetic word",
            ),
            (
                line("TENSOR_SCALAR_BITVEC", 1, "ops=ADD,BYPASS imm0=bits@0x0"),
                "no_model: ADD has no meaning in a bit word",
            ),
            (
                line("TENSOR_SCALAR", 1, "ops=ADD_INT,BYPASS", src="int8", dst="int8"),
                "no_model: ADD_INT has no meaning in an integer word on mariana",
            ),
            (
                line("TENSOR_SCALAR_CACHE_REDUCE", 1, "ops=BYPASS,ADD accumulator_cmd=IDLE"),
                "no_model: accumulator_cmd 0 has no described effect",
            ),
            (
                line("TENSOR_SCALAR_CACHE_REDUCE", 1, "ops=BYPASS accumulator_cmd=ACCUMULATE"),
                "no_model: BYPASS has no meaning in a reduction",
            ),
            (
                line("TRANSPOSE_TENSOR_SCALAR_ARITH", 32, "", channels=48),
                "element_count: channels to transpose must be a multiple of 32, not 48",
            ),
            (
                line("TRANSPOSE_TENSOR_SCALAR_ARITH", 33, "", channels=32),
                "element_count: elements to transpose must be a multiple of 32, not 33",
            ),
        ],
    )
    def test_illegal_words_under_invalid_warn(self, text: str, message: str) -> None:
        """A word that breaks a rule still gets a sentence, never a traceback."""
        assert fault_of(text, invalid="warn") == message

    def test_random_bytes_under_invalid_warn(self) -> None:
        """Any bytes of the family end in a result."""
        rng = random.Random(9)
        for opcode in (0x43, 0x53, 0x44, 0x54, 0x93, 0x9A, 0xE6):
            machine = Machine("maverick", Policy(invalid="warn"))
            for _ in range(40):
                word = bytearray(rng.randbytes(64))
                word[:12] = bytes([opcode, 16]) + bytes(10)
                for offset in (16, 48):
                    word[offset : offset + 4] = bytes([rng.randrange(64), 16, 0, 0])
                    word[offset + 10 : offset + 16] = bytes([rng.randrange(3), 0] * 3)
                machine.run(Program.of(bytes(word)))
            assert machine.warnings


class TestTrace:
    """Stations of a word, of its first element in lane 0."""

    def stations(self, text: str, values: list[float]) -> dict[str, dict[str, object]]:
        machine = Machine()
        machine.write(f"sbuf:0+0x1000:fp32[1,{len(values)}]", np.float32([values]))
        found: dict[str, dict[str, object]] = {}
        machine.listeners.append(lambda event: found.update({event.station or "": event.detail}))
        assert machine.run(Program.from_text(text)).fault is None
        return found

    def test_two_stages(self) -> None:
        rest = "ops=MULTIPLY,ADD imm0=fp32@2.0 imm1=fp32@1.0"
        found = self.stations(line("TENSOR_SCALAR", 1, rest), [3])

        assert found["kernel"]["worker"] == "Tensor-Scalar"
        assert list(found["stage_0"].values()) == ["MULT", "0x40400000", "0x40000000", "0x40c00000"]
        assert found["stage_1"] == {"op": "ADD", "scalar": "0x3f800000", "y": "0x40e00000"}
        assert found["convert"]["bits"] == "0x40e00000"
        assert found["write"] == {"elements": 1, "space": "sbuf"}

    def test_fold(self) -> None:
        rest = "ops=BYPASS,ADD accumulator_cmd=ZERO_ACCUMULATE"
        found = self.stations(line("TENSOR_SCALAR_CACHE_REDUCE", 2, rest), [1, 2])

        assert found["fold"] == {"op": "ADD"}
        assert found["accumulator"]["lane_0"] == "0x40400000"

    def test_a_transposed_word_shows_what_the_lane_computes(self) -> None:
        machine = Machine()
        machine.write(
            "sbuf:0+0x1000:fp32[32,32]", np.arange(1024, dtype=np.float32).reshape(32, 32)
        )
        found: dict[str, dict[str, object]] = {}
        machine.listeners.append(lambda event: found.update({event.station or "": event.detail}))
        text = line("TRANSPOSE_TENSOR_SCALAR_ARITH", 32, "", channels=32)

        assert machine.run(Program.from_text(text)).fault is None
        assert found["stage_0"]["x"] == f"{int(str(found['convert']['bits']), 16):#010x}"

    @pytest.mark.parametrize("opcode", [0x43, 0x53, 0x44, 0x54, 0x93, 0x9A, 0xE6])
    def test_every_opcode(self, opcode: int) -> None:
        """Tracing changes no result, whatever the word."""
        generator = Generator(opcode, random.Random(5), MAVERICK)
        bench = Bench(MAVERICK, Policy())
        seen: list[str | None] = []
        bench.machine.listeners.append(lambda event: seen.append(event.station))

        assert [bench.differs(generator.case()) for _ in range(20)] == [None] * 20
        assert seen.count("convert") == 20


class TestAgainstPlainLoops:
    """Generated words, byte for byte: memory, accumulators and their flags."""

    @pytest.mark.parametrize(
        ("opcode", "words"),
        [(0x43, 300), (0x53, 500), (0x44, 700), (0x54, 650), (0x93, 700), (0x9A, 350), (0xE6, 600)],
    )
    def test_mariana(self, opcode: int, words: int) -> None:
        """With the tests below 1000 words and more of each opcode."""
        assert first_difference(opcode, words, opcode) is None

    @pytest.mark.parametrize("generation", [SUNDA, CAYMAN, MAVERICK], ids=str)
    @pytest.mark.parametrize("opcode", [0x43, 0x53, 0x44, 0x54, 0x93, 0x9A, 0xE6])
    def test_other_generations(self, opcode: int, generation: object) -> None:
        assert first_difference(opcode, 100, 7, generation=generation) is None  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("opcode", "policy"),
        [
            *((op, {"nan_max_min": "second"}) for op in (0x43, 0x9A, 0xE6)),
            *((op, {"nan_max_min": "propagate"}) for op in (0x43, 0x9A, 0xE6)),
            (0x53, {"shift_count_wide": "mask5"}),
            (0x54, {"bitvec_stage_mask": "word"}),
            (0x43, {"ts_identity_hub": "raw"}),
            (0x9A, {"sub_reduce_order": "accumulator_first"}),
            (0x9A, {"acc_source": "after_conversion"}),
            (0x9A, {"acc_order": "pairs"}),
            (0x43, {"fp8_profile": "ieee", "fp8_e3m4_max": "saturate", "fp32r_mantissa": "10"}),
        ],
    )
    def test_policies(self, opcode: int, policy: dict[str, str]) -> None:
        assert first_difference(opcode, 60, 11, policy=Policy(**policy)) is None

    @pytest.mark.parametrize("policy", [{"int_store": "saturate"}, {"symmetric_clamp": "clamp"}])
    def test_policies_of_maverick(self, policy: dict[str, str]) -> None:
        chosen = Policy(**policy)

        assert first_difference(0x43, 200, 13, generation=MAVERICK, policy=chosen) is None

    def test_every_pair_of_dtypes(self) -> None:
        for in_dtype in INPUTS:
            for out_dtype in OUTPUTS:
                pair = (in_dtype, out_dtype)
                assert first_difference(0x43, 4, 17, dtypes=pair, channels=2) is None
        for in_dtype in CACHE_INPUTS:
            for out_dtype in (*CACHE_INPUTS, DType.FP32R):
                pair = (in_dtype, out_dtype)
                assert first_difference(0x9A, 2, 17, dtypes=pair, channels=2) is None
        for dtype in INTEGERS:
            assert first_difference(0x53, 20, 17, dtypes=(dtype, dtype), channels=2) is None

    def test_every_channel_count(self) -> None:
        for channels in range(1, 129):
            opcode = (0x43, 0x53, 0x9A, 0xE6)[channels % 4]
            assert first_difference(opcode, 2, channels, channels=channels) is None

    def test_the_generator_reaches_the_forms(self) -> None:
        """Overlaps, zero and negative steps, pointers, registers and indirect patterns occur."""
        generator = Generator(0x43, random.Random(3))
        words = [generator.case().word for _ in range(200)]
        patterns = [p for word in words for p in (word.src, word.dst)]
        steps = {s for p in patterns if not p.start.is_indirect for s in p.steps}

        assert {0, -1, 2} <= steps
        assert {word.imm0_src for word in words} == {0, 1, 2}
        assert {p.start.marker for p in patterns} == {0, 1, 4, 5}
        assert {word.in_dtype for word in words} == set(INPUTS)
