"""NaN and infinity made, destinations nobody reads, outputs nobody writes, and what is unknown."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_emu import Machine, Program
from neuron_emu.engines.control import PreparedEffects
from neuron_emu.isa.enums import Engine
from neuron_emu.policy import Policy
from neuron_emu.sanitize import KINDS
from neuron_emu.sanitize.sanitizer import MOST_REPORTS
from neuron_emu.scenario import Scenario
from neuron_emu.tensor_spec import TensorSpec
from tests.command import ROOT, neuron_emu

INF, NAN = float("inf"), float("nan")
LARGEST_FP16, LARGEST_FP32 = 65504.0, 3.4028235e38
EXP = (
    "EXPONENTIAL src=fp32@0x1000[1][{n}] dst={dtype}@0x2000[1][{n}] channels={channels}"
    " max_value={maximum} accumulator_cmd={command}"
)


def run(text, values=None, *, engine=Engine.DVE, policy=(), sets="exp_and_others"):
    """Run a listing under the sanitizer with `values` [lanes, n] at 0x1000."""
    machine = Machine(policy=Policy.parse(list(policy)), sanitize=True)
    machine.preload(sets)
    if values is not None:
        lanes, n = np.shape(values)
        machine.write(f"sbuf:0+0x1000:fp32[{lanes},{n}]", np.float32(values))
    result = machine.run(Program.from_text(text, engine))
    assert result.is_clean, result.fault
    return machine


def made(machine):
    """Return kind, word, lane, element and station of each NaN and infinity."""
    return [
        (r.name, r.words[0].index, r.lane, r.element, r.station)
        for r in machine.sanitizer.reports
        if r.name.startswith("made")
    ]


def exp_line(n, channels=1, dtype="fp32", maximum="fp32@0.0", command="IDLE"):
    return EXP.format(n=n, channels=channels, dtype=dtype, maximum=maximum, command=command)


class TestMadeInWords:
    """The first element in stream order, lanes innermost, and the station of design.md 2."""

    def test_masked_row_of_decode_attention(self):
        """Case C4: 1/0 is inf, then 0 times inf is NaN; the scores of -inf are inputs."""
        answer = neuron_emu("run", "--sanitize", "programs/c4_masked.toml")
        made = [line for line in answer.err.splitlines() if "made_" in line]

        assert answer.status == 0
        assert made == [
            "warning: dve[5]: made_infinity: makes an infinity from inputs without one, first in"
            " lane 0, element 0, at station operation",
            "warning: dve[6]: made_nan: makes a NaN from inputs without one, first in lane 0,"
            " element 0, at station stage_0",
        ]

    def test_the_subtraction_of_an_exponential(self):
        """Case 12: -inf - (-inf) is NaN, made in the affine stage."""
        line = exp_line(3, 2, maximum="[fp32@0x3000]")
        machine = Machine(sanitize=True)
        machine.preload("exp_and_others")
        machine.write("sbuf:0+0x1000:fp32[2,3]", np.float32([[0, 0, 0], [0, -INF, 0]]))
        machine.write("sbuf:0+0x3000:fp32[2,1]", np.float32([[0], [-INF]]))
        assert machine.run(Program.from_text(line)).is_clean

        assert made(machine)[0] == ("made_nan", 0, 1, 1, "affine")

    def test_a_table_that_overflows(self):
        """exp(89) is larger than any float32; the clamp makes an infinity of it."""
        assert made(run(exp_line(3), [[0, 200, 300]])) == [
            ("made_infinity", 0, 0, 1, "result"),
        ]

    def test_a_format_that_cannot_hold_the_result(self):
        """2 times the largest fp16 is finite in fp32."""
        text = "TENSOR_SCALAR src=fp32@0x1000[1][4] dst=fp16@0x2000[1][4] channels=1 ops={} imm0={}"
        scaled = text.format("MULTIPLY,BYPASS", "fp32@2.0")

        assert made(run(scaled, [[1, 2, LARGEST_FP16, 3]])) == [
            ("made_infinity", 0, 0, 2, "convert")
        ]
        overflow = scaled.replace("fp16@", "fp32@")
        assert made(run(overflow, [[1, LARGEST_FP32, 2, 3]])) == [
            ("made_infinity", 0, 0, 1, "stage_0")
        ]

    def test_stages_of_a_tensor_scalar(self):
        text = (
            "TENSOR_SCALAR src=fp32@0x1000[1][4] dst=fp32@0x2000[1][4] channels=1"
            " ops=ADD,MULTIPLY imm0=fp32@1.0 imm1=fp32@2.0"
        )
        assert made(run(text, [[1, 3e38, 2, 3]])) == [("made_infinity", 0, 0, 1, "stage_1")]

    def test_words_of_two_tensors(self):
        """The second tensor is the first one backwards: 3e38 meets -1 and then 2."""
        text = (
            "TENSOR_TENSOR op=MULTIPLY src0=fp32@0x1000[1][4] src1=fp32@0x100c[-1][4]"
            " dst=fp32@0x2000[1][4] channels=1"
        )
        assert made(run(text, [[2, -1, 1, 3e38]])) == [("made_infinity", 0, 0, 0, "operation")]

    def test_activate(self):
        """ACT: scale 2 makes an infinity in the affine stage."""
        text = (
            "ACTIVATE COPY src=fp32@0x1000[1][2] dst=fp32@0x2000[1][2] channels=2 scale=2.0"
            " accumulator_cmd=IDLE"
        )
        machine = run(text, [[1, 1], [1, 3e38]], engine=Engine.ACT)

        assert made(machine) == [("made_infinity", 0, 1, 1, "affine")]

    def test_a_fold(self):
        """The sum of a row overflows: the elements do not."""
        text = (
            "TENSOR_REDUCE op=ADD src=fp32@0x1000[1][3] dst=fp32@0x2000[1][1] channels=2 op_dim=X"
        )
        machine = run(text, [[1, 2, 3], [3e38, 3e38, 3e38]])

        assert made(machine) == [("made_infinity", 0, 1, 0, "operation")]

    def test_an_accumulator(self):
        """No result is infinite, but their sum is; later drains only pass it on."""
        drain = "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=1"
        line = (
            "TENSOR_SCALAR_CACHE_REDUCE src=fp32@0x1000[1][3] dst=fp32@0x2000[1][3] channels=1"
            " ops=BYPASS,ADD accumulator_cmd=ZERO_ACCUMULATE"
        )
        machine = run(f"{line}\n{drain}", [[3e38, 3e38, 1]])
        assert made(machine) == [("made_infinity", 0, 0, None, "accumulator")]

        # The largest float32 rounds up to infinity as bf16: the drain makes it.
        rounds = "DVE_READ_ACCUMULATOR dst=bf16@0x3000[1][1] channels=1"
        machine = run(f"{line}\n{rounds}", [[LARGEST_FP32, 0, 0]])
        assert made(machine) == [("made_infinity", 1, 0, 0, "convert")]

    def test_the_identity_of_a_reduction_is_not_made(self):
        """RESET leaves -inf for MAX in the registers."""
        text = (
            "ACTIVATE2 COPY src=fp32@0x1000[1][2] dst=fp32@0x2000[1][2] channels=1"
            " ops=BYPASS,BYPASS reduce_op=MAX reduce_cmd=RESET"
        )
        assert made(run(text, [[1, 2]], engine=Engine.ACT)) == []


class TestNotMade:
    """What comes in is not made, wherever it comes from."""

    @pytest.mark.parametrize(
        "text",
        [
            "COPY src=fp32@0x1000[1][4] dst=fp32@0x2000[1][4] channels=1",
            "MEMSET dst=fp32@0x2000[1][4] channels=1 set_value=0xff800000",
            "MEMSET dst=fp32@0x2000[1][4] channels=1 set_value=0x7fc00000",
            "TENSOR_SCALAR src=fp32@0x1000[1][4] dst=fp32@0x2000[1][4] channels=1 ops=ADD,BYPASS"
            " imm0=fp32@inf",
            exp_line(4),
        ],
    )
    def test_inputs_and_constants(self, text):
        assert made(run(text, [[1, INF, 2, 3]])) == []
        assert "made_nan" not in {name for name, *_ in made(run(text, [[1, NAN, 2, 3]]))}

    def test_an_element_beside_a_masked_one(self):
        """One lane holds an infinity; another makes one of its own, and that one is told."""
        text = (
            "TENSOR_SCALAR src=fp32@0x1000[1][2] dst=fp32@0x2000[1][2] channels=3"
            " ops=MULTIPLY,BYPASS imm0=fp32@10.0"
        )
        values = [[-INF, 1], [1, 3e38], [3e38, 1]]

        assert made(run(text, values)) == [("made_infinity", 0, 2, 0, "stage_0")]

    def test_one_that_moves_to_another_lane(self):
        """A transposition moves an infinity to a lane without one: that is no making."""
        values = np.ones((32, 32))
        values[5, 9] = INF
        text = "STREAM_TRANSPOSE src=fp32@0x1000[1][32] dst=fp32@0x2000[1][32] channels=32"

        assert made(run(text, values)) == []

    def test_one_that_a_recurrence_carries_on(self):
        """inf at element 1 stays in the carry of a cumulative sum."""
        text = (
            "TENSOR_CUMULATIVE op=ADD src=fp32@0x1000[1][4] dst=fp32@0x2000[1][4] channels=1"
            " op_dim=X"
        )
        assert made(run(text, [[1, INF, 2, 3]])) == []

    def test_a_word_is_told_once(self):
        text = exp_line(1) + "\nCOMPARE_BRANCH op=ALWAYS target=-64"
        machine = Machine(sanitize=True)
        machine.preload("exp_and_others")
        machine.write("sbuf:0+0x1000:fp32[1,1]", [[200]])
        machine.run(Program.from_text(text), max_steps=20)

        assert len(made(machine)) == 1


def spec(text, machine):
    return text, TensorSpec.parse(text).operand(machine.memory)


COPY = "COPY src=fp32@{:#x}[1][2] dst=fp32@{:#x}[1][2] channels=1"


class TestDestinations:
    """Nothing reads a destination when no byte that the word left is read or dumped."""

    def unread(self, *places, dumped=()):
        text = "\n".join(COPY.format(*pair) for pair in places)
        machine = run(text, [[1, 2]])
        found = machine.sanitizer.finish([spec(d, machine) for d in dumped])
        return [r.words[0].index for r in found if r.name == "unread_destination"]

    def test_read_dumped_or_neither(self):
        assert self.unread((0x1000, 0x2000)) == [0]
        assert self.unread((0x1000, 0x2000), dumped=["sbuf:0+0x2004:fp32[1,4]"]) == []
        assert self.unread((0x1000, 0x2000), (0x2004, 0x3000)) == [1]

    def test_overwritten_before_it_is_read(self):
        """A whole destination that is written again was never read; a part of it may be left."""
        assert self.unread((0x1000, 0x2000), (0x1000, 0x2000), (0x2000, 0x3000)) == [0, 2]
        assert self.unread((0x1000, 0x2000), (0x1000, 0x2004), (0x2000, 0x3000)) == [2]

    def test_in_place(self):
        """A word that reads what it overwrites uses what was there."""
        assert self.unread((0x1000, 0x2000), (0x2000, 0x2000)) == [1]

    def test_kept_elements_are_used(self):
        """A predicated copy keeps some elements of its destination."""
        text = (
            "MEMSET dst=fp32@0x2000[1][2] channels=1 set_value=0x0\n"
            "COPY_PREDICATED src0=uint32@0x1000[1][2] src1=fp32@0x1000[1][2] dst=fp32@0x2000[1][2]"
            " channels=1"
        )
        machine = run(text, [[1, 0]])
        found = machine.sanitizer.finish([spec("sbuf:0+0x2000:fp32[1,2]", machine)])

        assert found == []

    def test_accumulating_words_say_so(self):
        machine = run(exp_line(2, command="ZERO_ACCUMULATE"), [[1, 2]])
        (report,) = machine.sanitizer.finish()
        assert report.message.endswith("; only the accumulator may count")
        assert (report.address, report.num_bytes) == (0x2000, 8)

        (report,) = run(exp_line(2), [[1, 2]]).sanitizer.finish()
        assert report.message == (
            "writes 8 bytes, first at 0x2000, that no later word reads and nothing dumps"
        )

    def test_a_run_that_was_stopped_tells_nothing(self):
        machine = Machine(sanitize=True)
        text = "MEMSET dst=fp32@0x2000[1][2] channels=1 set_value=0x0\nNOP"
        machine.run(Program.from_text(text), max_steps=1)

        assert machine.sanitizer.finish([spec("sbuf:0+0x4000:fp32[1,2]", machine)]) == []


class TestOutputs:
    """A region that is dumped must have been written whole."""

    @pytest.mark.parametrize(
        ("region", "first", "count"),
        [
            ("sbuf:0+0x2000:fp32[1,2]", None, 0),
            ("sbuf:0+0x2000:fp32[1,3]", 0x2008, 4),
            ("sbuf:0+0x1ffc:uint8[2,6]", 0x1FFC, 10),
            ("psum:0+0x0:fp32[128,2]", 0x2000000, 1024),
        ],
    )
    def test_unwritten_bytes(self, region, first, count):
        machine = run(COPY.format(0x1000, 0x2000), [[1, 2]])
        found = machine.sanitizer.finish([spec(region, machine)])
        outputs = [r for r in found if r.name == "unwritten_output"]

        assert [(r.address, r.num_bytes, r.words) for r in outputs] == (
            [(first, count, ())] if count else []
        )


class TestUnknownHandlers:
    """A handler that does not tell its operands: nothing is claimed that it could refute."""

    def test_no_false_reports(self, monkeypatch):
        text = f"{COPY.format(0x1000, 0x2000)}\nNOP"
        assert len(run(text, [[1, 2]]).sanitizer.finish()) == 1

        monkeypatch.delattr(PreparedEffects, "operands")
        assert run(text, [[1, 2]]).sanitizer.finish() == []


class TestCommand:
    """`run --sanitize`."""

    def test_reports_do_not_change_the_exit_status(self, tmp_path):
        program = tmp_path / "x.asm"
        program.write_text(COPY.format(0x1000, 0x2000))
        answer = neuron_emu("run", "--sanitize", "--dump", "sbuf:0+0x2004:fp32[1,2]=-", program)

        assert answer.status == 0
        assert answer.err.splitlines() == [
            "warning: dve[0]: uninitialised_read: reads bytes that nothing wrote, first at 0x1000;"
            " their value is policy uninitialised=zero",
            "warning: unwritten_output: sbuf:0+0x2004:fp32[1,2] is dumped, and nothing wrote 4 of"
            " its 8 bytes, first 0x2008",
            "neuron-emu: ran 1 word on mariana",
        ]

    def test_expected_regions_count_as_dumped(self):
        answer = neuron_emu("run", "--sanitize", "programs/exp.toml")

        assert answer.status == 0
        assert "unread_destination" not in answer.err

    def test_shipped_programs_have_no_races(self):
        """All but the one that shows a race are synchronised."""
        for path in sorted((ROOT / "programs").glob("*.toml")):
            scenario = Scenario.read(path)
            for interleave in (None, 1):
                machine = Machine(
                    scenario.generation or "mariana",
                    Policy.parse(scenario.policy),
                    sanitize=True,
                    interleave=interleave,
                )
                scenario.prepare(machine)
                machine.run(Program.load(path))

                races = any(r.name == "race" for r in machine.sanitizer.reports)
                assert races == (path.stem == "race"), path


def test_too_many_reports_are_counted():
    """The first thousand of a kind are told one by one."""
    words = MOST_REPORTS + 5
    text = "\n".join(COPY.format(0x1000, 0x2000 + 8 * n) for n in range(words))
    found = run(text, [[1, 2]]).sanitizer.finish()

    assert len(found) == MOST_REPORTS + 1
    assert str(found[-1]) == "unread_destination: 5 more reports like these were not told"


def test_names_are_stable():
    assert list(KINDS) == [
        "uninitialised_read",
        "undefined_accumulator",
        "race",
        "made_nan",
        "made_infinity",
        "unread_destination",
        "unwritten_output",
    ]
