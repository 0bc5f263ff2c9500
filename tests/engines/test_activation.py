"""ACTIVATE, ACTIVATE_QUANTIZE and ACTIVATE2 on worked numbers, and the cases of real questions."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from neuron_emu.engines.function_unit import FunctionUnit, Scalars, Stage
from neuron_emu.errors import InputError
from neuron_emu.generation import MARIANA
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import AluOp, DType, Engine
from neuron_emu.isa.families.activation import ActivationFunction
from neuron_emu.isa.program import Program, Stream
from neuron_emu.isa.validate import validate
from neuron_emu.machine import Machine
from neuron_emu.policy import Policy
from neuron_emu.pwp import reference
from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.functions import FUNCTION_SETS, function_named
from neuron_emu.pwp.profile_json import dump_profile
from neuron_emu.pwp.store import load_profile, shipped_profiles

ACT, DVE = Engine.ACT, Engine.DVE
DRAIN = "ACTIVATION_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels={}"


def program(**streams: str) -> Program:
    """Return a program of one stream an engine."""
    return Program(
        streams=tuple(
            Stream(engine=Engine[name.upper()], data=assemble(text), name=name)
            for name, text in streams.items()
        )
    )


def activate(function: str, more: str = "", *, n: int, at: int = 0x1000, out: int = 0x2000) -> str:
    """Return an ACTIVATE line over n fp32 elements of two lanes."""
    command = "" if "accumulator_cmd" in more else "accumulator_cmd=IDLE"
    return (
        f"ACTIVATE {function} src=fp32@{at:#x}[1][{n}] dst=fp32@{out:#x}[1][{n}] channels=2"
        f" {more} {command}"
    )


def machine_with(values, generation="mariana", **policy: str) -> Machine:
    """Return a machine with fp32 values in two lanes at 0x1000."""
    machine = Machine(generation, Policy(**policy))
    values = np.asarray(values, np.float32)
    machine.write(
        f"sbuf:0+0x1000:fp32[2,{values.shape[-1]}]", np.broadcast_to(values, (2, values.shape[-1]))
    )
    return machine


def floats(machine: Machine, n: int, at: int = 0x2000, lane: int = 0) -> list[float]:
    """Return n fp32 values of a lane."""
    return machine.read(f"sbuf:{lane}+{at:#x}:fp32[1,{n}]")[0].tolist()


def word(machine: Machine, at: int, lane: int = 0) -> int:
    """Return the bits of one fp32."""
    return int(machine.read(f"sbuf:{lane}+{at:#x}:fp32:bits[1,1]")[0, 0])


def run(machine: Machine, *lines: str):
    """Run lines on the ACT engine and expect no fault."""
    result = machine.run(program(act="\n".join(lines)))
    assert result.fault is None, result.fault
    return result


def needs(function: str):
    """Mark a test that needs a table which the package may not bring yet."""
    have = {function_named(name).name for name in shipped_profiles()}
    return pytest.mark.skipif(function not in have, reason=f"no table of {function} yet")


class TestAffine:
    """v = x * scale + bias, two roundings (activation-tables.md 3.1)."""

    def test_values_in_the_word(self):
        """[1,2,3] * 2 + 0.5."""
        machine = machine_with([1, 2, 3])
        run(machine, activate("IDENTITY", "scale=2.0 bias=0.5", n=3))

        assert floats(machine, 3) == [2.5, 4.5, 6.5]

    def test_product_and_sum_round_apart(self):
        """(1 + 2^-12)^2 - 1 is 2^-11 after the product is rounded, not 2^-11 + 2^-24."""
        machine = machine_with([1 + 2**-12])
        run(machine, activate("IDENTITY", f"scale={1 + 2**-12!r} bias=-1.0", n=1))

        assert floats(machine, 1) == [2**-11]

    def test_pointers_have_one_value_a_lane(self):
        """scale is fp32; a bf16 bias is widened; lane 1 has its own values."""
        machine = machine_with([1, 2])
        machine.write("sbuf:0+0x4000:fp32[2,1]", [[2], [3]])
        machine.write("sbuf:0+0x4010:bf16[2,1]", [[0.5], [-0.5]])
        run(machine, activate("IDENTITY", "scale=[0x4000] bias_ptr=bf16@0x4010", n=2))

        assert floats(machine, 2) == [2.5, 4.5]
        assert floats(machine, 2, lane=1) == [2.5, 5.5]

    def test_registers_hold_pointers(self):
        """A register source names a register whose content is the address."""
        machine = machine_with([1, 2])
        machine.write("sbuf:0+0x4000:fp32[2,2]", [[2, 10], [3, 20]])
        machine.engine(ACT).registers[5] = 0x4000
        machine.engine(ACT).registers[6] = 0x4004
        run(machine, activate("IDENTITY", "scale=$R[5] bias_ptr=fp32@$R[6]", n=2))

        assert floats(machine, 2, lane=1) == [23, 26]

    def test_exp_of_a_shifted_input(self):
        """The softmax form: exp(x - max) with the negative maximum as bias; bits of case 1."""
        machine = machine_with([2, 1])
        machine.write("sbuf:0+0x4000:fp32[2,1]", [[-2], [-1]])
        run(machine, activate("EXP", "bias_ptr=fp32@0x4000", n=2))

        assert [word(machine, 0x2000), word(machine, 0x2004)] == [0x3F800000, 0x3EBC5A40]

    def test_overlap_runs_as_the_stream(self):
        """Each element is written before the next one is read: x+1 shifted by one counts up."""
        machine = machine_with([0, 9, 9, 9])
        run(machine, activate("IDENTITY", "bias=1.0", n=3, out=0x1004))

        assert floats(machine, 4, at=0x1000) == [0, 1, 2, 3]

    @pytest.mark.parametrize(
        ("imm", "policy", "expected"),
        [
            ("imm=0.25", {}, [-1, 4]),
            ("imm=[0x4000]", {}, [-2, 4]),
            ("imm=$R[5]", {}, [-2, 4]),
            # The emitter's polarity: source 1 is the value, 0.5 here.
            ("imm=[0x3f000000]", {"act_imm_src": "emitter"}, [-2, 4]),
        ],
    )
    def test_slope_of_parametric_relu(self, imm, policy, expected):
        """x > 0 ? x : x * imm, imm by its source."""
        machine = machine_with([-4, 4], **policy)
        machine.write("sbuf:0+0x4000:fp32[2,1]", [[0.5], [0.5]])
        machine.engine(ACT).registers[5] = 0x4000
        run(machine, activate("PARAMETRIC_RELU", imm, n=2))

        assert floats(machine, 2) == expected

    @pytest.mark.parametrize("policy", [{"evaluator": "silicon"}, {"nan": "profile"}, {}])
    def test_nan_of_parametric_relu(self, policy):
        """design.md 3: the profile's own result by policy, else the NaN stays, quieted."""
        machine = machine_with([1], **policy)
        machine.write("sbuf:0+0x1000:fp32:bits[2,1]", np.uint32([[0x7F812345], [0xFFC00001]]))
        run(machine, activate("PARAMETRIC_RELU", "imm=0.5", n=1))
        expected = [0x7FC00000] * 2 if policy else [0x7FC12345, 0xFFC00001]

        assert [word(machine, 0x2000, lane) for lane in (0, 1)] == expected

    @pytest.mark.parametrize(
        ("source", "bits", "refused"),
        [(1, 0x3F000000, False), (0, 0x3F000000, True), (0, 0x4000, False), (0, 0x3000002, True)],
    )
    def test_the_emitters_polarity_is_judged(self, source, bits, refused):
        """Policy act_imm_src: 1 is a value and 0 a pointer, for the validator too."""
        data = bytearray(assemble(activate("PARAMETRIC_RELU", "imm=0.5", n=1)))
        data[12] = source
        at = data.index(bytes.fromhex("0000003f"))
        data[at : at + 4] = bits.to_bytes(4, "little")
        findings = validate(bytes(data), engine=ACT, policy=Policy(act_imm_src="emitter"))

        assert {f.code for f in findings} == ({"NE0504"} if refused else set())

    @pytest.mark.parametrize("register", [0, 1])
    def test_reciprocal_with_a_pointer_in_a_register(self, register):
        """3.2: 1 + imm, imm by the pointer in the register; that of register 0 is no literal 0."""
        machine = machine_with([1], "sunda")
        machine.write("sbuf:0+0x5000:fp32[2,1]", [[3], [3]])
        machine.write("sbuf:0+0x0:fp32[2,1]", [[0], [0]])
        machine.engine(ACT).registers[register] = 0x5000
        run(machine, activate("RECIPROCAL", f"bias_ptr=fp32@0x0 imm=$R[{register}]", n=1))

        assert floats(machine, 1) == pytest.approx([0.25], rel=1e-3)

    def test_order_of_two_nans_in_quantize(self):
        """2.3 prints quant_scale before func(...), and of two NaN the first stays (design.md 3)."""
        machine = machine_with([1])
        machine.write("sbuf:0+0x1000:fp32:bits[2,1]", np.uint32([[0xFFC00001], [0xFFC00001]]))
        machine.write("sbuf:0+0x4000:fp32[2,1]", [[0], [0]])
        run(
            machine,
            "ACTIVATE_QUANTIZE IDENTITY bias_ptr=fp32@0x4000 src=fp32@0x1000[1][1]"
            " dst=uint8@0x2000[1][1] channels=2 dequant_scale=1.0 quant_scale=nan quant_zero=0.0",
        )

        assert machine.read("sbuf:0+0x2000:uint8[1,1]")[0, 0] == 255

    def test_imm_is_not_read_without_need(self):
        """For other functions the conflicting encodings of imm never matter."""
        machine = machine_with([1, 2])
        result = run(machine, activate("IDENTITY", "imm=[0x8000]", n=2))

        assert [w.name for w in result.warnings] == ["no_tables_loaded"]

    @pytest.mark.parametrize(
        ("generation", "imm", "argument"),
        [("sunda", "imm=4.0", 6), ("sunda", "imm=[0x0]", 2), ("cayman", "imm=4.0", 5)],
    )
    def test_reciprocal_adds_imm_on_sunda(self, generation, imm, argument, tmp_path):
        """2 + imm on sunda, where the emitter's zero is a zero; 2 + bias later (3.2).

        A table that returns its argument stands in for the reciprocal.
        """
        stand_in = evolve(load_profile("identity_1p"), name="reciprocal_400p")
        (tmp_path / "reciprocal_400p.json").write_text(dump_profile(stand_in))
        machine = Machine(generation, tables=tmp_path)
        machine.write("sbuf:0+0x0:fp32[2,1]", [[100], [100]])
        machine.write("sbuf:0+0x1000:fp32[2,1]", [[2], [2]])
        machine.write("sbuf:0+0x4000:fp32[2,1]", [[3], [3]])
        run(machine, activate("RECIPROCAL", f"bias_ptr=fp32@0x4000 {imm}", n=1))

        assert floats(machine, 1) == [argument]

    @needs("reciprocal")
    def test_reciprocal(self):
        """1/(x + bias) through its table, within 400 steps of float32."""
        machine = machine_with([1, 2, -5])
        run(machine, activate("RECIPROCAL", "bias=1.0", n=3))

        assert floats(machine, 3) == pytest.approx([1 / 2, 1 / 3, -1 / 4], rel=5e-5)

    @pytest.mark.parametrize("name", shipped_profiles())
    def test_every_shipped_table_is_reached_by_its_code(self, name):
        """The word's code leads to the profile of that name, in the lowest set that holds it."""
        function = function_named(name)
        held = next((s for s in FUNCTION_SETS if name in s.members and s.holds(name)), None)
        lowest = next((s for s in FUNCTION_SETS if s.holds(function.name)), None)
        if function.code is None or held is None or held is not lowest:
            pytest.skip("no published code, or a set of a lower index holds another variant")
        machine = machine_with([0.75, 1.5, -0.75])
        run(machine, activate(function.name.upper(), "imm=0.5 scale=1.0", n=3))
        inputs = np.float32([0.75, 1.5, -0.75]).view(np.uint32).tolist()
        if name == "parametric_relu_1p":
            expected = np.float32([0.75, 1.5, -0.375]).view(np.uint32).tolist()
        else:
            expected = [reference.scalar(load_profile(name), bits) for bits in inputs]

        assert machine.engine(ACT).tables.set is lowest
        assert [word(machine, 0x2000 + 4 * i) for i in range(3)] == expected

    @needs("sin")
    def test_case_7_sin_has_no_range_reduction(self):
        """Past pi the last clamp is a cubic about pi."""
        machine = machine_with([3.1415927, 4, 9])
        run(machine, activate("SIN", n=3))

        bits = [word(machine, 0x2000 + 4 * i) for i in range(3)]
        assert bits == [0xB3BBBD2E, 0xBF40C3AE, 0x41DD3883]


class TestAccumulator:
    """128 registers of ACT alone (activation-tables.md 3.3)."""

    @pytest.mark.parametrize("seed", [None, 1, 2, 3])
    def test_case_5_two_separate_files(self, seed):
        """ACT 1 + 1 = 2 and DVE e^-1, in any interleaving of the two engines."""
        machine = Machine(interleave=seed)
        machine.write("sbuf:0+0x1000:fp32[2,2]", [[0, -1], [0, -1]])
        dst = "dst=fp32@0x2000[1][1] channels=2"
        exponential = (
            "EXPONENTIAL S[1]++@complete src=fp32@0x1004[1][1] dst=fp32@0x2004[1][1] channels=2"
            " max_value=fp32@0.0 accumulator_cmd=ZERO_ACCUMULATE"
        )
        result = machine.run(
            program(
                act=f"""
ACTIVATE EXP src=fp32@0x1000[1][1] {dst} accumulator_cmd=ZERO_ACCUMULATE
EVENT_SEMAPHORE S[1]>=1 S[2]++@complete
ACTIVATE EXP src=fp32@0x1000[1][1] {dst} accumulator_cmd=ACCUMULATE
ACTIVATION_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=2
""",
                dve=f"""
{exponential}
EVENT_SEMAPHORE S[2]>=1
DVE_READ_ACCUMULATOR dst=fp32@0x3004[1][1] channels=2
""",
            )
        )

        assert result.fault is None
        assert (word(machine, 0x3000), word(machine, 0x3004)) == (0x40000000, 0x3EBC5A40)

    @pytest.mark.parametrize(
        ("second", "drained"), [("ZERO_ACCUMULATE", 0x40A00000), ("IDLE", 0x3FAF1690)]
    )
    def test_case_6_idle_keeps_the_sum(self, second, drained):
        """A second word replaces the sum or, idle, leaves it; the DVE sums beside it."""
        machine = machine_with([0, -1, 5])
        exponential = (
            "EXPONENTIAL src=fp32@0x1000[1][2] dst=fp32@0x2010[1][2] channels=2"
            " max_value=fp32@0.0 accumulator_cmd=ZERO_ACCUMULATE"
        )
        result = machine.run(
            program(
                act="\n".join(
                    (
                        activate("EXP", "accumulator_cmd=ZERO_ACCUMULATE", n=2),
                        activate("COPY", f"accumulator_cmd={second}", n=1, at=0x1008),
                        DRAIN.format(2),
                    )
                ),
                dve=f"{exponential}\nDVE_READ_ACCUMULATOR dst=fp32@0x3004[1][1] channels=2",
            )
        )

        assert result.fault is None
        assert word(machine, 0x3000) == drained
        assert word(machine, 0x3004) == 0x3FAF1690
        assert floats(machine, 1) == [5]

    @pytest.mark.parametrize(
        ("command", "more", "drained"),
        [
            ("ACCUMULATE", "", 13),
            ("ZERO_ACCUMULATE", "", 6),
            ("ZERO", "", 0),
            ("IDLE", "", 7),
            ("LOAD_ACCUMULATE", "imm=10.0", 16),
            ("LOAD_ACCUMULATE", "imm=[0x4000]", 26),
        ],
    )
    def test_commands(self, command, more, drained):
        """From 7, over [1,2,3]; the outputs are written under every command."""
        machine = machine_with([1, 2, 3, 7])
        machine.write("sbuf:0+0x4000:fp32[2,1]", [[20], [20]])
        run(
            machine,
            activate("COPY", "accumulator_cmd=ZERO_ACCUMULATE", n=1, at=0x100C),
            activate("IDENTITY", f"{more} accumulator_cmd={command}", n=3),
            DRAIN.format(2),
        )

        assert floats(machine, 1, at=0x3000) == [drained]
        assert floats(machine, 3) == [1, 2, 3]

    @pytest.mark.parametrize(
        ("source", "drained"),
        [("before_conversion", 0x3FC6C898), ("after_conversion", 0x3FC6C000)],
    )
    def test_sum_is_taken_before_the_conversion(self, source, drained):
        """Case 2 on ACT: bf16 results of exp [0,-1,-2,-3]."""
        machine = machine_with([0, -1, -2, -3], acc_source=source)
        line = activate("EXP", "accumulator_cmd=ZERO_ACCUMULATE", n=4)
        run(machine, line.replace("dst=fp32", "dst=bf16"), DRAIN.format(2))

        assert word(machine, 0x3000) == drained

    def test_lanes_that_do_not_take_part_stay(self):
        """A word of one channel leaves the register of lane 1."""
        machine = machine_with([1, 2, 3])
        narrow = activate("IDENTITY", "accumulator_cmd=ZERO_ACCUMULATE", n=1)
        run(
            machine,
            activate("IDENTITY", "accumulator_cmd=ZERO_ACCUMULATE", n=3),
            narrow.replace("channels=2", "channels=1"),
            DRAIN.format(2),
        )

        assert [floats(machine, 1, 0x3000, lane)[0] for lane in (0, 1)] == [1, 6]

    @pytest.mark.parametrize(
        ("command", "names"),
        [
            ("ACCUMULATE", ["undefined_accumulator"]),
            ("ZERO", []),
            ("ZERO_ACCUMULATE", []),
        ],
    )
    def test_power_on_is_undefined(self, command, names):
        """Adding to a register that nothing set warns; ZERO defines it, IDLE does not undo that."""
        machine = machine_with([1])
        machine.preload(0)
        result = run(
            machine,
            activate("COPY", f"accumulator_cmd={command}", n=1),
            activate("COPY", n=1),
            DRAIN.format(2),
        )

        assert [w.name for w in result.warnings] == names

    def test_maverick_runs_act_words_on_the_dve(self):
        """The fold: the DVE's registers and drain, the semantics of ACT (11)."""
        machine = machine_with([0, -1, 5], "maverick")
        result = machine.run(
            program(
                dve="\n".join(
                    (
                        "ACT_TABLE_LOAD table_sel=0",
                        activate("EXP", "accumulator_cmd=ZERO_ACCUMULATE", n=2),
                        activate("COPY", n=1, at=0x1008),
                        "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=2",
                    )
                )
            )
        )

        assert result.fault is None
        assert result.warnings == ()
        assert word(machine, 0x3000) == 0x3FAF1690


class TestQuantize:
    """quant_scale * f(x * dequant_scale + bias) + quant_zero, to uint8 (2.3)."""

    LINE = (
        "ACTIVATE_QUANTIZE {} bias_ptr=fp32@0x4000 src={}@0x1000[1][4] dst=uint8@0x2000[1][4]"
        " channels=2 dequant_scale=0.5 quant_scale={} quant_zero={}"
    )

    def test_int32_relu(self):
        """[-4,3,10,300]/2 + 1, relu, times 2 plus 128: 128 133 140 and saturated 255."""
        machine = Machine()
        machine.write("sbuf:0+0x1000:int32[2,4]", np.array([[-4, 3, 10, 300]] * 2))
        machine.write("sbuf:0+0x4000:fp32[2,1]", [[1], [1]])
        run(machine, self.LINE.format("RELU", "int32", "2.0", "128.0"))

        assert machine.read("sbuf:0+0x2000:uint8[1,4]")[0].tolist() == [128, 133, 140, 255]

    def test_ties_go_to_even_and_negatives_to_zero(self):
        """Identity of [1,3,5,-9]/2: 0.5 1.5 2.5 -4.5."""
        machine = machine_with([1, 3, 5, -9])
        machine.write("sbuf:0+0x4000:fp32[2,1]", [[0], [0]])
        run(machine, self.LINE.format("IDENTITY", "fp32", "1.0", "0.0"))

        assert machine.read("sbuf:0+0x2000:uint8[1,4]")[0].tolist() == [0, 2, 2, 0]

    def test_accumulator_stays(self):
        """The word has no accumulator command."""
        machine = machine_with([1, 2, 3, 4])
        machine.write("sbuf:0+0x4000:fp32[2,1]", [[0], [0]])
        run(
            machine,
            activate("COPY", "accumulator_cmd=ZERO_ACCUMULATE", n=1),
            self.LINE.format("IDENTITY", "fp32", "1.0", "0.0"),
            DRAIN.format(2),
        )

        assert floats(machine, 1, at=0x3000) == [1]


class TestActivate2:
    """f((x op0 imm0) op1 imm1) with x = 3, imm0 = 2, imm1 = 10 (2.6, 3.4)."""

    LINE = "ACTIVATE2 {} src=fp32@0x1000[1][{n}] dst=fp32@0x2000[1][{n}] channels=2 {}"

    @pytest.mark.parametrize(
        ("ops", "plain", "first", "second", "both"),
        [
            ("MULTIPLY,ADD", 16, 16, 16, 16),
            ("MULTIPLY,SUBTRACT", -4, -4, 4, 4),
            ("MULTIPLY,BYPASS", 6, 6, 6, 6),
            ("ADD,BYPASS", 5, 5, 5, 5),
            ("SUBTRACT,BYPASS", 1, -1, 1, -1),
            ("BYPASS,BYPASS", 3, 3, 3, 3),
        ],
    )
    def test_six_pairs_reversed_four_ways(self, ops, plain, first, second, both):
        """Bit 0 swaps the operands of op0, bit 1 those of op1; BYPASS skips its stage."""
        for reverse, expected in zip(
            ("NONE", "FIRST", "SECOND", "BOTH"), (plain, first, second, both), strict=True
        ):
            machine = machine_with([3])
            operands = f"ops={ops} reverse_operands={reverse} imm0=fp32@2.0 imm1=fp32@10.0"
            run(machine, self.LINE.format("IDENTITY", operands, n=1))

            assert floats(machine, 1) == [expected]

    def test_a_skipped_stage_reads_no_scalar(self):
        """The pointer of a BYPASS stage leads to bytes that nothing wrote, and nobody minds."""
        machine = machine_with([3])
        machine.preload(0)
        result = run(machine, self.LINE.format("IDENTITY", "imm0=[0x8000] imm1=[0x8000]", n=1))

        assert result.warnings == ()

    def test_scalars_of_another_dtype(self):
        """imm_dtype holds for values in the word and behind pointers: 3 * 1.5 + -2 in bf16."""
        machine = machine_with([3])
        machine.write("sbuf:0+0x4000:bf16[2,1]", [[-2], [-3]])
        operands = "ops=MULTIPLY,ADD imm_dtype=bf16 imm0=bits@0x3fc0 imm1=[bf16@0x4000]"
        run(machine, self.LINE.format("IDENTITY", operands, n=1))

        assert [floats(machine, 1, lane=lane)[0] for lane in (0, 1)] == [2.5, 1.5]

    def test_slope(self):
        """relu_param is the slope of PARAMETRIC_RELU."""
        machine = machine_with([-4, 4])
        run(machine, self.LINE.format("PARAMETRIC_RELU", "relu_param=fp32@0.25", n=2))

        assert floats(machine, 2) == [-1, 4]

    @pytest.mark.parametrize(
        ("op", "fresh", "reset", "continued"),
        [
            ("ADD", -6, 0, 1),
            ("MAX", 2, -np.inf, 7),
            ("MIN", -5, np.inf, -5),
            ("ABS_MAX", -5, 0, 7),
            ("ABS_MIN", 2, np.inf, 2),
        ],
    )
    def test_reductions(self, op, fresh, reset, continued):
        """Over [-3,2,-5]: alone, the identity after RESET, and from 7; ABS keeps the sign."""
        machine = machine_with([-3, 2, -5, 7])
        reduce = self.LINE.format("IDENTITY", "reduce_cmd={} reduce_op=" + op, n=3)
        seven = activate("COPY", "accumulator_cmd=ZERO_ACCUMULATE", n=1, at=0x100C)
        found = []
        for lines in ([reduce.format("RESET_REDUCE")], [reduce.format("RESET")],
                      [seven, reduce.format("REDUCE")]):  # fmt: skip
            run(machine, *lines, DRAIN.format(2))
            found.append(floats(machine, 1, at=0x3000)[0])

        assert found == [fresh, reset, continued]
        assert floats(machine, 3) == [-3, 2, -5]

    def test_idle_and_sharing(self):
        """ACTIVATE2 and ACTIVATE share the registers, and IDLE leaves them."""
        machine = machine_with([1, 2])
        run(
            machine,
            self.LINE.format("IDENTITY", "reduce_cmd=RESET_REDUCE reduce_op=ADD", n=2),
            self.LINE.format("IDENTITY", "reduce_cmd=IDLE", n=2),
            activate("IDENTITY", "accumulator_cmd=ACCUMULATE", n=2),
            DRAIN.format(2),
        )

        assert floats(machine, 1, at=0x3000) == [6]

    @pytest.mark.parametrize(("nan_max_min", "expected"), [("other", 2), ("second", 2)])
    def test_nan_in_a_maximum(self, nan_max_min, expected):
        """Policy nan_max_min: the NaN gives way to the other operand, or to the newer one."""
        machine = machine_with([1, np.nan, 2], nan_max_min=nan_max_min)
        run(
            machine,
            self.LINE.format("IDENTITY", "reduce_cmd=RESET_REDUCE reduce_op=MAX", n=3),
            DRAIN.format(2),
        )

        assert floats(machine, 1, at=0x3000) == [expected]


class TestResidency:
    """One set is resident, the word names only the function (5)."""

    def test_auto_takes_the_lowest_set_and_says_so_once(self):
        """TANH is in set 0; the second word says nothing more."""
        machine = machine_with([0])
        result = run(machine, activate("TANH", n=1), activate("EXP", n=1))
        (notice,) = result.warnings

        assert notice.message == (
            "no function set was loaded; installed exp_and_others (index 0), the lowest that"
            " holds tanh"
        )

    @pytest.mark.parametrize(
        ("lines", "policy", "message"),
        [
            (
                [activate("EXP", n=1)],
                {"tables": "strict"},
                "no function set is loaded, and exp needs one",
            ),
            (
                ["ACT_TABLE_LOAD table_sel=4", activate("EXP", n=1)],
                {},
                "the loaded set small (index 4) does not hold exp",
            ),
            (
                ["ACT_TABLE_LOAD table_sel=4", activate("SIN", n=1)],
                {"tables": "strict"},
                "the loaded set small (index 4) does not hold sin",
            ),
        ],
    )
    def test_faults(self, lines, policy, message):
        """Strict without a set, and a set without the function under both policies."""
        machine = machine_with([0], **policy)
        result = machine.run(program(act="\n".join(lines)))

        assert result.fault is not None
        assert (result.fault.name, result.fault.message) == ("tables", message)

    def test_loads_are_counted(self):
        """A kernel that switches sets pays for it: the report has the number."""
        machine = machine_with([0])
        result = run(
            machine,
            "ACT_TABLE_LOAD table_sel=0",
            activate("EXP", n=1),
            "ACT_TABLE_LOAD table_sel=4",
            activate("ABS", n=1),
            "ACT_TABLE_LOAD table_sel=0",
            activate("EXP", n=1),
        )

        assert result.table_loads == 3

    def test_a_load_leaves_the_accumulator(self):
        """Set 0, sum 5, another set, and the sum is still there (9)."""
        machine = machine_with([5])
        run(
            machine,
            activate("COPY", "accumulator_cmd=ZERO_ACCUMULATE", n=1),
            "ACT_TABLE_LOAD table_sel=4",
            DRAIN.format(2),
        )

        assert floats(machine, 1, at=0x3000) == [5]


class TestRefusals:
    """What has no published meaning is a fault with the reason."""

    @staticmethod
    def fault_of(data: bytes, generation="mariana", engine=ACT, **policy):
        machine = machine_with([1, 2], generation, **policy)
        result = machine.run(Program.of(data, engine))
        assert result.fault is not None
        return result.fault

    def test_unknown_function_code(self):
        """Code 11 is published nowhere: the validator lets it pass, execution does not guess."""
        word = bytearray(assemble(activate("EXP", n=1)))
        word[35] = 11
        fault = self.fault_of(bytes(word))

        assert fault.name == "tables"
        assert fault.message == "activation_func 0x0b names no known function"

    def test_multipass(self):
        """0x26 decodes on maverick and is refused with the reason."""
        word = assemble(
            "ACTIVATE_MULTIPASS EXP src=fp32@0x1000[1][2] dst=fp32@0x2000[1][2]"
            " prev_pass=fp32@0x3000[1][2] channels=2"
        )
        fault = self.fault_of(word, "maverick", DVE)

        assert fault.name == "no_model"
        assert fault.message.startswith("unsupported opcode: ACTIVATE_MULTIPASS reads prev_pass")

    @pytest.mark.parametrize(
        ("line", "byte", "value", "message"),
        [
            (
                "ACTIVATE_QUANTIZE RELU bias_ptr=fp32@0x4000 src=fp32@0x1000[1][2]"
                " dst=uint8@0x2000[1][2] channels=2",
                35,
                4,
                "parametric_relu has no slope in this word",
            ),
            ("ACTIVATE2 EXP src=fp32@0x1000[1][2] dst=fp32@0x2000[1][2] channels=2", 29, 7,
             "DIVIDE is none of ACTIVATE2"),
            ("ACTIVATE2 EXP src=fp32@0x1000[1][2] dst=fp32@0x2000[1][2] channels=2", 26, 4,
             "reduce_cmd 4 is none of ACTIVATE2"),
            (activate("EXP", n=2), 14, 9, "accumulator_cmd 9 has no meaning"),
        ],
    )  # fmt: skip
    def test_words_that_break_a_rule(self, line, byte, value, message):
        """Refused by the rules; with invalid=warn still a fault where nothing could be meant."""
        word = bytearray(assemble(line))
        word[byte] = value
        refused = self.fault_of(bytes(word))
        fault = self.fault_of(bytes(word), invalid="warn")

        assert refused.name.startswith("activat")
        assert (fault.name, fault.message.startswith(message)) == ("no_model", True)

    def test_bias_in_the_word_on_sunda(self):
        """Documented: on v2 the bias is behind a pointer."""
        fault = self.fault_of(assemble(activate("EXP", n=1)), "sunda")

        assert fault.message == "bias_src_n must be POINTER on sunda, not INSTRUCTION"

    def test_table_with_a_hole(self, tmp_path):
        """A user's table that leaves an input without a section is refused before anything runs."""
        profile = load_profile("exp_400p")
        hole = evolve(
            profile, pos_exponents=tuple(o for o in profile.pos_exponents if o.exponent != 0)
        )
        (tmp_path / "exp_400p.json").write_text(dump_profile(hole))

        with pytest.raises(InputError, match="Unhandled section in simulation"):
            Machine(tables=tmp_path)

    def test_pointer_past_the_active_bytes(self):
        """A pointer in the inactive tail of a sunda partition passes the rules and faults."""
        machine = machine_with([1], "sunda")
        line = activate("IDENTITY", "scale=[0x30000] bias_ptr=fp32@0x0", n=1)
        result = machine.run(program(act=line))

        assert result.fault is not None
        assert (result.fault.name, result.fault.address) == ("address", 0x30000)


class TestResultTables:
    def test_narrow_inputs_by_table_equal_the_direct_way(self):
        """All bf16 inputs, each stage and the accumulator's values, bit for bit."""
        machine = Machine()
        state = machine.engine(ACT)
        profile = compile_profile(load_profile("tanh_4p"))
        unit = FunctionUnit(
            state, profile, DType.BFLOAT16, DType.FP16, (Stage(AluOp.MULT), Stage(AluOp.ADD))
        )
        scalars = Scalars((np.float32([0.75]), np.float32([0.125])), None)
        every = np.arange(1 << 16, dtype="<u2").reshape(2, -1)

        direct, table = unit.compute_directly(every, scalars), unit.compute(every, scalars)

        assert state.result_tables.tables
        for one, other in zip(direct, table, strict=True):
            assert np.array_equal(one.view(np.uint8), np.ascontiguousarray(other).view(np.uint8))

    def test_scalars_are_part_of_the_key(self):
        """Another scale is another table."""
        machine = machine_with(np.zeros(4))
        machine.write("sbuf:0+0x8000:bf16[128,512]", np.ones((128, 512)))
        line = (
            "ACTIVATE IDENTITY src=bf16@0x8000[1][512] dst=fp32@0x10000[1][512] channels=128"
            " scale={} imm=0.0"
        )
        for scale in (2.0, 3.0):
            run(machine, line.format(scale))

            assert floats(machine, 2, at=0x10000) == [scale, scale]


class TestTrace:
    def test_stations(self):
        """The stations of one word: affine, tables, result, convert, write, accumulator."""
        machine = machine_with([1, 2])
        machine.preload(0)
        events = []
        machine.listeners.append(events.append)
        run(machine, activate("TANH", "scale=0.5 bias=0.25 accumulator_cmd=ZERO_ACCUMULATE", n=2))
        stations = {e.station: e.detail for e in events if e.station}

        assert list(stations)[:3] == ["sequencer", "kernel", "affine"]
        assert list(stations)[-4:] == ["result", "convert", "write", "accumulator"]
        assert stations["affine"] == {
            "input": "0x3f800000",
            "x": "0x3f800000",
            "scale": "0x3f000000",
            "bias": "0x3e800000",
            "v": "0x3f400000",
        }
        assert stations["accumulator"]["command"] == "ZERO_ACCUMULATE"
        assert stations["convert"]["bits"] == stations["result"]["y"]

    def test_requantise_station(self):
        """ACTIVATE_QUANTIZE shows the value before it becomes an integer."""
        machine = machine_with([1, 3, 5, 7])
        machine.write("sbuf:0+0x4000:fp32[2,1]", [[0], [0]])
        events = []
        machine.listeners.append(events.append)
        run(machine, TestQuantize.LINE.format("IDENTITY", "fp32", "2.0", "10.0"))
        (detail,) = [e.detail for e in events if e.station == "requantise"]

        assert detail == {
            "quant_scale": "0x40000000",
            "quant_zero": "0x41200000",
            "value": "0x41300000",
        }


def test_generations_and_lanes():
    """The kernel table takes every ACT opcode on the lanes that have it."""
    for function in ActivationFunction:
        assert function_named(function.name.lower()).code == function.value
    assert {0x21, 0x22, 0x25} <= MARIANA.opcodes
