"""The machine: gates, updates, faults, warnings and table residency, one word at a time."""

from __future__ import annotations

import re

import numpy as np
import pytest

from neuron_emu import Machine, Program
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine, UpdateMode, WaitMode
from neuron_emu.policy import Policy

EXP = (
    "EXPONENTIAL src=fp32@0x1000[1][{n}] dst=fp32@0x2000[1][{n}] channels={channels}"
    " max_value=fp32@0.0 accumulator_cmd={command}"
)
EXP_MINUS_ONE = 0x3EBC5A40
"""exp_400p(-1), evaluator pwp (design.md 3)."""


def exp_line(n=1, channels=1, command="IDLE"):
    return EXP.format(n=n, channels=channels, command=command)


def machine_with_input(values, **options):
    """Return a machine with exp loaded and `values` at 0x1000 of partition 0."""
    machine = Machine("mariana", **options)
    machine.preload("exp_and_others")
    machine.write(f"sbuf:0+0x1000:fp32[1,{len(values)}]", np.float32([values]))
    return machine


def bits_at(machine, offset, n=1, partition=0):
    return machine.read(f"sbuf:{partition}+{offset:#x}:fp32:bits[1,{n}]")[0].tolist()


def nop_with(wait=(0, 0), update=(0, 0), value=0):
    """Return a NOP word with an EVENTS block (isa-encoding.md 2)."""
    events = bytes((*wait, *update)) + value.to_bytes(4, "little")
    return bytes.fromhex("a4100000") + events + bytes(52)


def run_nop(machine, *words):
    return machine.run(Program.of(b"".join(words)))


SEMAPHORE_WAITS = [
    # mode, threshold, values that pass, values that do not (isa-encoding.md 2.1)
    ("EQ", 5, [5], [4, 6, 0xFFFFFFFB]),
    ("LT", 5, [4, 0, 0xFFFFFFFF, 0x80000000], [5, 6, 0x7FFFFFFF]),
    ("LE", 5, [5, 4, 0x80000000], [6, 0x7FFFFFFF]),
    ("GT", 5, [6, 0x7FFFFFFF], [5, 4, 0xFFFFFFFF, 0x80000000]),
    ("GE", 5, [5, 0x7FFFFFFF], [4, 0xFFFFFFFF, 0x80000000]),
    ("GT", 0xFFFFFFFF, [0, 1], [0xFFFFFFFF, 0xFFFFFFFE]),
    ("LT", 0xFFFFFFFF, [0xFFFFFFFE, 0x80000000], [0xFFFFFFFF, 0]),
]


class TestWaits:
    """A wait gates issue and has no side effect but that of the THEN forms."""

    @pytest.mark.parametrize(("name", "threshold", "passing", "failing"), SEMAPHORE_WAITS)
    @pytest.mark.parametrize("form", ["IMM", "REG"])
    def test_semaphore_compare_is_signed(self, name, threshold, passing, failing, form):
        """0xffffffff is -1, in the word and behind a register."""
        mode = WaitMode[f"SEM_{name}_{form}"]
        for value in passing + failing:
            machine = Machine()
            machine.sync.semaphores[7] = value
            machine.engine(Engine.DVE).registers[9] = threshold

            word = nop_with((mode, 7), value=9 if form == "REG" else threshold)
            result = run_nop(machine, word)

            assert result.is_clean == (value in passing), (value, result)
            assert machine.sync.semaphores[7] == value
            assert result.steps == (value in passing)

    @pytest.mark.parametrize(
        ("mode", "passes_on", "after"),
        [
            ("EVT_SET", 1, 1),
            ("EVT_SET_THEN_CLEAR", 1, 0),
            ("EVT_CLEAR", 0, 0),
            ("EVT_CLEAR_THEN_SET", 0, 1),
        ],
    )
    @pytest.mark.parametrize("event", [0, 1])
    def test_events(self, mode, passes_on, after, event):
        """The two THEN forms flip the event once the wait is met, and only then."""
        machine = Machine()
        machine.sync.events[3] = event

        result = run_nop(machine, nop_with((WaitMode[mode], 3)))

        assert result.is_clean == (event == passes_on)
        assert machine.sync.events[3] == (after if event == passes_on else event)

    def test_every_wait_mode_is_covered(self):
        """The two tables above name each member of the enum."""
        names = {f"SEM_{name}_{form}" for name, *_ in SEMAPHORE_WAITS for form in ("IMM", "REG")}
        events = {"EVT_SET", "EVT_SET_THEN_CLEAR", "EVT_CLEAR", "EVT_CLEAR_THEN_SET", "NONE"}

        assert names | events == set(WaitMode.__members__)

    def test_events_of_the_word_and_semaphores_are_separate(self):
        """Event 3 and semaphore 3 are two things."""
        machine = Machine()
        machine.sync.semaphores[3] = 1

        assert not run_nop(machine, nop_with((WaitMode.EVT_SET, 3))).is_clean


UPDATES = [
    # action, operand, old value, new value (isa-encoding.md 2.2)
    ("INC", None, 0xFFFFFFFF, 0),
    ("INC", None, 41, 42),
    ("DEC", None, 0, 0xFFFFFFFF),
    ("ADD", 0x80000001, 0x80000000, 1),
    ("ADD", 5, 37, 42),
    ("SUB", 5, 3, 0xFFFFFFFE),
    ("WR", 0xDEADBEEF, 1, 0xDEADBEEF),
]


class TestUpdates:
    """Counters are 32 bits and wrap around."""

    @pytest.mark.parametrize(("action", "operand", "old", "new"), UPDATES)
    @pytest.mark.parametrize("moment", ["READ", "COMPLETE"])
    def test_semaphores(self, action, operand, old, new, moment):
        """Each action by an immediate and, where it takes a value, by a register."""
        forms = [""] if operand is None else ["IMM_", "REG_"]
        for form in forms:
            machine = Machine()
            machine.sync.semaphores[200] = old
            machine.engine(Engine.DVE).registers[63] = operand or 0
            mode = UpdateMode[f"SEM_{action}_{form}{moment}"]

            value = 63 if form == "REG_" else operand or 0
            assert run_nop(machine, nop_with((0, 0), (mode, 200), value)).is_clean

            assert machine.sync.semaphores[200] == new

    @pytest.mark.parametrize("moment", ["READ", "COMPLETE"])
    @pytest.mark.parametrize("old", [0, 1])
    def test_events(self, moment, old):
        """SET makes 1 and CLR makes 0, whatever was there."""
        machine = Machine()
        machine.sync.events[4:6] = [old, old]

        run_nop(
            machine,
            nop_with((0, 0), (UpdateMode[f"EVT_SET_{moment}"], 4)),
            nop_with((0, 0), (UpdateMode[f"EVT_CLR_{moment}"], 5)),
        )

        assert machine.sync.events[4:6] == [1, 0]

    def test_every_update_mode_is_covered(self):
        """The tables above name each member of the enum."""
        names = {"NONE"}
        for moment in ("READ", "COMPLETE"):
            names |= {f"EVT_SET_{moment}", f"EVT_CLR_{moment}"}
            names |= {f"SEM_{action}_{moment}" for action in ("INC", "DEC")}
            forms = ("IMM", "REG")
            names |= {f"SEM_{a}_{f}_{moment}" for a in ("ADD", "SUB", "WR") for f in forms}

        assert names == set(UpdateMode.__members__)

    def test_wait_and_update_share_the_value(self):
        """semaphore_value serves the comparison and the addition (isa-encoding.md 2)."""
        machine = Machine()
        machine.sync.semaphores[1] = 5
        word = nop_with((WaitMode.SEM_EQ_IMM, 1), (UpdateMode.SEM_ADD_IMM_COMPLETE, 1), 5)

        run_nop(machine, word)

        assert machine.sync.semaphores[1] == 10


class TestEnds:
    """How a run stops."""

    def test_deadlock_names_engines_semaphores_and_values(self):
        """Which engine waits for which semaphore value, and what is there."""
        machine = Machine()
        machine.sync.semaphores[4] = 0xFFFFFFFE
        program = Program(
            streams=(
                *Program.from_text("NOP\nNOP S[4]>=1").streams,
                *Program.from_text("NOP E[9]==1", Engine.ACT).streams,
                *Program.from_text("NOP", Engine.POOL).streams,
            )
        )

        result = machine.run(program)

        assert result.steps == 2
        assert result.fault is not None
        assert result.fault.name == "deadlock"
        assert result.fault.message == (
            "dve at word 1 waits for semaphore 4 >= 1, and it is -2;"
            " act at word 0 waits for event 9 to be 1, and it is 0"
        )

    @pytest.mark.parametrize("line", ["NOP S[1]=$R[{}]@complete", "NOP S[1]>=$R[{}]"])
    @pytest.mark.parametrize("number", [64, 128, 1000])
    def test_register_that_does_not_exist(self, line, number):
        """isa-encoding.md 7.1: 0 to 63; nothing is done, and no other register is taken."""
        result = Machine().run(Program.from_text(line.format(number)))

        assert result.fault is not None
        assert (result.fault.name, result.steps) == ("register", 0)
        assert result.fault.message == f"semaphore register must be 0 to 63, not {number}"

    def test_deadlock_by_register(self):
        """The threshold is shown, not the register's number."""
        machine = Machine()
        machine.engine(Engine.DVE).registers[5] = 17

        result = machine.run(Program.from_text("NOP S[4]>$R[5]"))

        assert result.fault is not None
        assert "waits for semaphore 4 > 17, and it is 0" in result.fault.message

    def test_max_steps(self):
        """The limit counts words, and stops with a fault of its own."""
        program = Program.from_text("NOP\n" * 5)

        machine = Machine()
        result = machine.run(program, max_steps=3)
        exact = Machine().run(program, max_steps=5)

        assert result.fault is not None
        assert (result.steps, result.fault.name, result.fault.index) == (3, "max_steps", 3)
        assert "stopped at the limit of 3 words" in result.fault.message
        assert exact.is_clean
        assert exact.steps == 5

    def test_stream_ends_at_halt_and_exit(self):
        """What follows is never looked at (isa-encoding.md 10)."""
        for last in ("HALT", "PSEUDO_INST kind=EXIT"):
            machine = Machine()

            result = machine.run(Program.from_text(f"NOP\n{last}\nNOP S[1]++@complete"))

            assert (result.is_clean, result.steps) == (True, 2)
            assert machine.sync.semaphores[1] == 0
            assert machine.is_finished

    def test_running_again_goes_on_where_it_stopped(self):
        """run without a program continues; a finished machine does nothing."""
        machine = Machine()
        machine.run(Program.from_text("NOP\n" * 5), max_steps=2)

        assert machine.position(Engine.DVE) == 2
        assert machine.run().steps == 3
        assert machine.run().steps == 0
        assert machine.step() is None


class TestFaults:
    """A fault leaves the state as it was before the word (design.md 5)."""

    @pytest.mark.parametrize(
        ("line", "name"),
        [
            (
                "EXPONENTIAL src=fp32@0x1000[1][2] dst=fp32@0x3fffc[1][2] channels=1 {rest}",
                "address",
            ),
            (
                "EXPONENTIAL src=fp32@0x3fffc[1][2] dst=fp32@0x2000[1][2] channels=1 {rest}",
                "address",
            ),
            (
                "EXPONENTIAL src=fp32@0x1000[1][2] dst=fp32@0x2000[1][3] channels=1 {rest}",
                "tensor_scalar_tensor_chk",
            ),
        ],
    )
    def test_nothing_changes(self, line, name):
        """Memory, accumulator, semaphores and events stay, the update does not fire."""
        machine = machine_with_input([0, -1])
        rest = "max_value=fp32@0.0 accumulator_cmd=ZERO_ACCUMULATE"
        line = line.format(rest=rest).replace("src", "E[2]==1,=0 S[1]++@read src", 1)
        machine.sync.events[2] = 1
        before = (machine.memory.sbuf.data.copy(), machine.memory.sbuf.written.copy())
        accumulator = machine.engine(Engine.DVE).accumulator.copy()

        result = machine.run(Program.from_text(line))

        assert result.fault is not None
        assert (result.fault.name, result.steps) == (name, 0)
        assert np.array_equal(machine.memory.sbuf.data, before[0])
        assert np.array_equal(machine.memory.sbuf.written, before[1])
        after = machine.engine(Engine.DVE).accumulator
        assert np.array_equal(after.values, accumulator.values)
        assert np.array_equal(after.undefined, accumulator.undefined)
        assert machine.sync.semaphores[1] == 0
        assert machine.sync.events[2] == 1
        assert machine.position(Engine.DVE) == 0

    def test_first_bad_address(self):
        """The second element of dst is the first byte past partition 0."""
        machine = machine_with_input([0, -1])
        line = exp_line(2).replace("0x2000", "0x3fffc")

        result = machine.run(Program.from_text(line))

        assert result.fault is not None
        assert result.fault.address == 0x40000

    @pytest.mark.parametrize("generation", ["sunda", "cayman"])
    def test_exponential_is_reserved(self, generation):
        """Validation and execution refuse 0x30, each for its reason, and the CAM is no reason."""
        result = Machine(generation).run(Program.from_text(exp_line()))

        assert result.fault is not None
        assert result.fault.name == "opcode_wired"
        assert "no validator bound" in result.fault.message
        assert f"EXPONENTIAL is reserved on {generation}, not wired" in result.fault.message
        if generation == "cayman":
            assert "dispatch table covers opcodes 0x41 to 0xea" in result.fault.message
        executed = Machine(generation, Policy(invalid="warn")).run(Program.from_text(exp_line()))
        assert executed.fault is not None
        assert executed.fault.name == "opcode"
        assert "reserved" in executed.fault.message

    def test_unknown_opcode(self):
        """An opcode of no generation is refused at its index; what ran before stays."""
        words = nop_with((0, 0), (UpdateMode.SEM_INC_COMPLETE, 1)) + bytes.fromhex(
            "9010" + 124 * "0"
        )
        machine = Machine()

        result = machine.run(Program.of(words))

        assert result.fault is not None
        assert (result.fault.index, result.steps) == (1, 1)
        assert "0x90" in result.fault.message
        assert machine.sync.semaphores[1] == 1


class TestInvalidWords:
    """Policy `invalid`."""

    LINE = exp_line().replace("channels=1", "channels=1 ops=ADD,BYPASS")

    def test_refuse(self):
        """The first failing conjunct names the fault; all are listed."""
        result = machine_with_input([0]).run(Program.from_text(self.LINE))

        assert result.fault is not None
        assert result.fault.name == "has_valid_exponential_ops"
        assert result.fault.names == ("has_valid_exponential_ops",)

    def test_warn(self):
        """The word runs, and each finding is a warning."""
        machine = machine_with_input([-1], policy=Policy(invalid="warn"))

        result = machine.run(Program.from_text(self.LINE))

        assert result.is_clean
        assert [w.name for w in result.warnings] == ["has_valid_exponential_ops"]
        assert bits_at(machine, 0x2000) == [EXP_MINUS_ONE]


class TestUninitialisedReads:
    """One warning a run with the first such byte; each read under `sanitize` (case 13)."""

    def test_once_a_run(self):
        """Two words read unwritten bytes: one warning, the value is exp(0) = 1."""
        machine = Machine()
        machine.preload("exp_and_others")

        result = machine.run(Program.from_text("\n".join([exp_line(4, 2)] * 2)))

        assert [w.name for w in result.warnings] == ["uninitialised_read"]
        assert "0x1000" in result.warnings[0].message
        assert bits_at(machine, 0x2000, 4) == [0x3F800000] * 4

    def test_first_byte_that_nothing_wrote(self):
        """Lane 1 was written only in part: its third element is the first unwritten one."""
        machine = machine_with_input([1, 2, 3, 4])
        machine.write("sbuf:1+0x1000:fp32[1,2]", np.float32([[1, 2]]))

        result = machine.run(Program.from_text(exp_line(4, 2)))

        assert [w.name for w in result.warnings] == ["uninitialised_read"]
        assert "0x41008" in result.warnings[0].message

    def test_sanitize_reports_each_read(self):
        """Every word and every operand that reads unwritten bytes."""
        machine = Machine(sanitize=True)
        machine.preload("exp_and_others")
        pointer = exp_line().replace("fp32@0.0", "[fp32@0x3000]")

        result = machine.run(Program.from_text("\n".join([exp_line(), pointer, exp_line()])))

        assert [
            (w.index, re.findall("first at (0x[0-9a-f]+)", w.message)[0]) for w in result.warnings
        ] == [
            (0, "0x1000"),
            (1, "0x1000"),
            (1, "0x3000"),
            (2, "0x1000"),
        ]

    def test_written_by_an_earlier_word(self):
        """What a word wrote is initialised for the next one."""
        machine = machine_with_input([0])
        second = (
            exp_line().replace("0x1000", "0x2000").replace("dst=fp32@0x2000", "dst=fp32@0x3000")
        )

        assert machine.run(Program.from_text(f"{exp_line()}\n{second}")).warnings == ()

    @pytest.mark.parametrize(("choice", "bits"), [("zero", 0x3F800000), ("nan", 0x7FFFFFFF)])
    def test_policy_gives_the_value(self, choice, bits):
        """0 gives exp(0) = 1; 0xffffffff is a NaN, and through the clamp of pwp it is no number."""
        machine = Machine(policy=Policy(uninitialised=choice, nan="profile"))
        machine.preload("exp_and_others")

        machine.run(Program.from_text(exp_line()))

        found = bits_at(machine, 0x2000)[0]
        assert found == bits if choice == "zero" else np.isnan(np.uint32(found).view(np.float32))


class TestRegisterOperands:
    """An address behind a register is resolved anew when the register has changed."""

    LINE = exp_line().replace("src=fp32@0x1000", "src=fp32@$R[3]")

    def test_same_word_two_addresses(self):
        """One word, run twice with another register value between."""
        machine = machine_with_input([0, -1])
        registers = machine.engine(Engine.DVE).registers
        registers[3] = 0x1000
        machine.load(Program.from_text(f"{self.LINE}\n{self.LINE}"))

        assert machine.step() is None
        first = bits_at(machine, 0x2000)
        registers[3] = 0x1004
        assert machine.step() is None

        assert first == [0x3F800000]
        assert bits_at(machine, 0x2000) == [EXP_MINUS_ONE]

    def test_bad_address_in_a_register(self):
        """The fault comes when the word runs."""
        machine = machine_with_input([0])
        machine.engine(Engine.DVE).registers[3] = 0x40000 - 2

        result = machine.run(Program.from_text(self.LINE))

        assert result.fault is not None
        assert (result.fault.name, result.fault.address) == ("address", 0x40000)


class TestTables:
    """Policy `tables` and the one resident set (design.md 2)."""

    def test_auto_installs_the_lowest_set_once(self):
        """One warning, however many words use it."""
        machine = Machine()
        machine.write("sbuf:0+0x1000:fp32[1,1]", np.float32([[-1]]))

        result = machine.run(Program.from_text("\n".join([exp_line()] * 3)))

        assert [w.name for w in result.warnings] == ["no_tables_loaded"]
        assert "exp_and_others (index 0)" in result.warnings[0].message
        assert bits_at(machine, 0x2000) == [EXP_MINUS_ONE]

    def test_strict_faults(self):
        """Nothing is installed."""
        machine = Machine(policy=Policy(tables="strict"))

        result = machine.run(Program.from_text(exp_line()))

        assert result.fault is not None
        assert result.fault.name == "tables"
        assert machine.engine(Engine.DVE).tables is None

    @pytest.mark.parametrize("choice", ["auto", "strict"])
    def test_loaded_set_without_the_function(self, choice):
        """A fault under both policies, naming set and function."""
        machine = Machine(policy=Policy(tables=choice))
        machine.preload("sqrt_and_others")

        result = machine.run(Program.from_text(exp_line()))

        assert result.fault is not None
        assert result.fault.name == "tables"
        assert "sqrt_and_others" in result.fault.message
        assert result.fault.message.endswith("does not hold exp")

    def test_load_replaces_the_set(self):
        """A second 0x23 takes exp away, and the same EXPONENTIAL word then faults."""
        machine = Machine()
        machine.write("sbuf:0+0x1000:fp32[1,1]", np.float32([[-1]]))
        program = [
            "ACT_TABLE_LOAD table_sel=0",
            exp_line(),
            "ACT_TABLE_LOAD table_sel=3",
            exp_line(),
        ]

        result = machine.run(Program.from_text("\n".join(program)))

        assert result.fault is not None
        assert (result.fault.name, result.fault.index) == ("tables", 3)
        assert machine.engine(Engine.ACT).tables is None

    def test_preload_by_index_and_for_one_engine(self):
        """A name or an index; an unknown one is an input error."""
        machine = Machine()
        machine.preload(3, engines=[Engine.ACT])

        assert machine.engine(Engine.ACT).tables.set.name == "sqrt_and_others"
        assert machine.engine(Engine.DVE).tables is None
        with pytest.raises(InputError, match=r"function set must be .*, not 'nothing'$"):
            machine.preload("nothing")


class TestAccumulator:
    """Its undefined flag, and what resets it."""

    def test_case_4(self):
        """ZERO_ACCUMULATE, IDLE, ACCUMULATE, drain: a warning at the ACCUMULATE word."""
        machine = machine_with_input([0, -1])
        lines = [
            exp_line(2, command="ZERO_ACCUMULATE"),
            exp_line(2),
            exp_line(1, command="ACCUMULATE"),
            "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=1",
        ]

        result = machine.run(Program.from_text("\n".join(lines)))

        assert [(w.index, w.name) for w in result.warnings] == [(2, "undefined_accumulator")]
        assert "not to be relied on" in result.warnings[0].message
        drained = machine.read("sbuf:0+0x3000:fp32[1,1]")[0, 0]
        assert drained == pytest.approx(2.3678794, rel=5e-5)

    def test_power_on(self):
        """The first drain of an accumulator that nothing set warns, the second does not."""
        line = "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=4"

        result = Machine().run(Program.from_text(f"{line}\n{line}"))

        assert [(w.index, w.name) for w in result.warnings] == [(0, "undefined_accumulator")]

    def test_only_lanes_that_are_used(self):
        """Lane 0 is defined; a drain of one lane is quiet, of two lanes not."""
        lines = [
            exp_line(1, command="ZERO_ACCUMULATE"),
            "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=1",
            "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=2",
        ]

        result = machine_with_input([0]).run(Program.from_text("\n".join(lines)))

        assert [w.index for w in result.warnings] == [2]
        assert "lane 1" in result.warnings[0].message

    def test_idle_as_nan(self):
        """Policy acc_idle=nan puts a NaN where the value would be kept."""
        machine = machine_with_input([0], policy=Policy(acc_idle="nan"))
        lines = [
            exp_line(1, command="ZERO_ACCUMULATE"),
            exp_line(1),
            "DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=1",
        ]

        machine.run(Program.from_text("\n".join(lines)))

        assert bits_at(machine, 0x3000) == [0x7FC00000]


def streams(**texts):
    """Return a program of one listing an engine."""
    return Program(
        streams=tuple(
            Program.from_text(text, Engine[name.upper()]).streams[0] for name, text in texts.items()
        )
    )


def pipeline(tiles, *, consumer_update="@read", producer_update="@complete"):
    """DVE writes tiles into two buffers in turn, ACT copies each away, POOL counts both."""
    dve, act, pool = [], [], []
    for i in range(tiles):
        buffer = 0x4000 + 0x100 * (i % 2)
        wait = f"S[2]>={i - 1} " if i >= 2 else ""
        dve.append(
            f"EXPONENTIAL {wait}S[1]++{producer_update} src=fp32@{0x1000 + 16 * i:#x}[1][4]"
            f" dst=fp32@{buffer:#x}[1][4] channels=8 max_value=fp32@0.0"
            f" accumulator_cmd={'ACCUMULATE' if i else 'ZERO_ACCUMULATE'}"
        )
        act.append(
            f"COPY S[1]>={i + 1} S[2]++{consumer_update} src=fp32@{buffer:#x}[1][4]"
            f" dst=fp32@{0x8000 + 16 * i:#x}[1][4] channels=8"
        )
        pool.append(f"NOP S[2]>={i} S[3]++@complete")
    dve.append(f"DVE_READ_ACCUMULATOR S[3]>={tiles} dst=fp32@0x9000[1][1] channels=8")
    return streams(dve="\n".join(dve), act="\n".join(act), pool="\n".join(pool))


def run_pipeline(tiles, seed, **updates):
    machine = Machine(interleave=seed)
    machine.preload("exp_and_others")
    values = np.random.default_rng(1).normal(size=(8, 4 * tiles)).astype(np.float32)
    machine.write(f"sbuf:0+0x1000:fp32[8,{4 * tiles}]", values)
    result = machine.run(pipeline(tiles, **updates))
    assert result.is_clean, result.fault
    out = machine.read(f"sbuf:0+0x8000:fp32:bits[8,{4 * tiles}]")
    return out.tobytes(), machine.read("sbuf:0+0x9000:fp32:bits[8,1]").tobytes()


class TestSeveralEngines:
    """Streams side by side, in turn or in a drawn order."""

    def order(self, machine, program):
        seen = []
        machine.listeners.append(
            lambda e: seen.append((e.engine.name, e.index)) if e.kind == "issue" else None
        )
        assert machine.run(program).is_clean
        return seen

    def test_round_robin(self):
        """A word each in the order of the streams; who waits is passed over."""
        program = streams(dve="NOP\nNOP\nNOP", act="NOP S[1]>=1\nNOP", pool="NOP\nNOP S[1]++@read")

        assert self.order(Machine(), program) == [
            *(("DVE", 0), ("POOL", 0), ("DVE", 1), ("POOL", 1)),
            *(("DVE", 2), ("ACT", 0), ("ACT", 1)),
        ]

    def test_a_seed_gives_one_order(self):
        """Equal seeds, equal orders; some of ten seeds differ."""
        program = streams(dve="NOP\n" * 5, act="NOP\n" * 5)
        orders = [self.order(Machine(interleave=seed), program) for seed in (*range(10), 3)]

        assert orders[3] == orders[10]
        assert len({tuple(order) for order in orders}) > 5

    def test_synchronised_program_does_not_depend_on_the_order(self):
        """The same bytes under 100 seeds as in turn: READ frees a buffer, COMPLETE hands it on."""
        expected = run_pipeline(6, None)

        assert {run_pipeline(6, seed) for seed in range(100)} == {expected}

    def test_a_wrong_update_shows_under_some_order(self):
        """READ in place of COMPLETE hands a tile on before it is written."""
        expected = run_pipeline(6, None)

        wrong = {run_pipeline(6, seed, producer_update="@read") for seed in range(20)}
        assert wrong != {expected}

    def test_two_moments(self):
        """A word in flight has read its sources: the copy holds what was there before."""
        program = streams(
            dve="COPY S[1]++@read src=fp32@0x1000[1][1] dst=fp32@0x2000[1][1] channels=1",
            act="COPY S[1]>=1 src=fp32@0x3000[1][1] dst=fp32@0x1000[1][1] channels=1",
        )
        lasts = set()
        for seed in range(20):
            machine = Machine(interleave=seed)
            machine.write("sbuf:0+0x1000:fp32[1,1]", np.float32([[1]]))
            machine.write("sbuf:0+0x3000:fp32[1,1]", np.float32([[3]]))
            machine.load(program)
            assert machine.step() is None
            lasts.add(float(machine.read("sbuf:0+0x1000:fp32[1,1]")[0, 0]))
            assert machine.run().is_clean
            assert bits_at(machine, 0x2000) == [0x3F800000]

        # The ACT word completes first under some seeds, the DVE word under others.
        assert lasts == {1.0, 3.0}

    def test_deadlock_under_a_seed(self):
        """The same sentence as in turn."""
        program = streams(dve="NOP S[1]>=1\nNOP S[2]++@complete", act="NOP S[2]>=1 S[1]++@complete")

        results = [Machine(interleave=seed).run(program) for seed in (None, 1, 2)]

        assert {r.fault.message for r in results} == {
            "dve at word 0 waits for semaphore 1 >= 1, and it is 0;"
            " act at word 0 waits for semaphore 2 >= 1, and it is 0"
        }

    def test_registers_and_branches_of_two_engines(self):
        """Each engine loops by its own registers; the semaphore takes both counts."""
        loop = """
            ALU_OP op=ADD dtype=uint32 src0=$R[1] src1=1 dst=$R[1]
            NOP S[7]++@complete
            COMPARE_BRANCH op=LT_IMM dtype=uint32 src0=$R[1] src1={count} target=-128
        """
        for seed in (None, 5):
            machine = Machine(interleave=seed)

            assert machine.run(
                streams(act=loop.format(count=4), sp=loop.format(count=9), pe="NOP S[7]>=13")
            ).is_clean
            assert machine.sync.semaphores[7] == 13
            assert machine.engine(Engine.ACT).registers[1] == 4

    def test_fault_stops_all(self):
        """The run ends at the first fault of any engine."""
        result = Machine().run(streams(dve="NOP\n" * 3, act="NOP\nWRITE\nNOP"))

        assert result.fault is not None
        assert (result.fault.engine, result.fault.index) == (Engine.ACT, 1)
        assert result.steps == 3

    def test_table_loads_are_counted(self):
        """Every 0x23 and every automatic installation."""
        lines = ["ACT_TABLE_LOAD table_sel=0", "ACT_TABLE_LOAD table_sel=3"]

        assert Machine().run(Program.from_text("\n".join(lines * 2))).table_loads == 4
        machine = Machine()
        machine.write("sbuf:0+0x1000:fp32[1,1]", np.float32([[-1]]))
        assert machine.run(Program.from_text(exp_line())).table_loads == 1


class TestLongStreams:
    """Words that are judged in blocks and forgotten in time behave as single ones do."""

    def lines(self, count):
        return [f"MOVE dtype=uint32 $R[{i % 60}]={i:#x}" for i in range(count)]

    def test_a_bad_word_among_good_neighbours(self):
        """It is refused at its place with its finding."""
        lines = self.lines(300)
        lines[250] = "MOVE dtype=uint32 $R[64]=0x1"

        result = Machine().run(Program.from_text("\n".join(lines)))

        assert result.fault is not None
        assert (result.fault.index, result.steps) == (250, 250)
        assert result.fault.name == "control_registers"

    def test_forgotten_words_run_again(self, monkeypatch):
        """A loop over more words than are remembered."""
        monkeypatch.setattr("neuron_emu.issue._MOST_WORDS", 16)
        lines = self.lines(50)
        lines += [
            "ALU_OP op=ADD dtype=uint32 src0=$R[63] src1=1 dst=$R[63]",
            "COMPARE_BRANCH op=LT_IMM dtype=uint32 src0=$R[63] src1=3 target=-3264",
        ]
        machine = Machine()

        result = machine.run(Program.from_text("\n".join(lines)))

        assert result.is_clean
        assert result.steps == 3 * 52
        assert machine.engine(Engine.DVE).registers[49] == 49


def test_opcodes_outside_the_default_microcode():
    """dve-tensor-scalar.md 1.1: legal on sunda, and not in its default tables; said once each."""
    line = "DVE_READ_ACCUMULATOR dst=fp32@0x{:x}[1][1] channels=1"
    program = Program.from_text("\n".join(line.format(at) for at in (0x100, 0x200)))
    told = [w.message for w in Machine("sunda").run(program).warnings if w.name == "table_set"]

    assert told == [
        "DVE_READ_ACCUMULATOR is legal on sunda, but the DVE's default microcode tables lack it"
    ]
    assert "table_set" not in [w.name for w in Machine("cayman").run(program).warnings]
