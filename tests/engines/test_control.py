"""Control words as they execute: semaphores, registers, branches, and what is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuron_emu import Machine, Program
from neuron_emu.isa.enums import AluOp, Engine
from neuron_emu.isa.opcodes import OPCODES
from neuron_emu.policy import Policy

WORD = 0xFFFFFFFF


def run(text, registers=(), engine=Engine.DVE, **options):
    """Run a listing; return the machine and the result."""
    machine = Machine(options.pop("generation", "mariana"), **options)
    for number, value in dict(registers).items():
        machine.engine(engine).registers[number] = value
    return machine, machine.run(Program.from_text(text, engine), max_steps=1000)


def registers_after(text, registers=(), **options):
    machine, result = run(text, registers, **options)
    assert result.is_clean, result.fault
    return machine.engine(Engine.DVE).registers


def fault_of(text, registers=(), **options):
    _, result = run(text, registers, **options)
    assert result.fault is not None
    return result.fault


class TestEventSemaphore:
    """0xA0 has a second wait and a second update (isa-encoding.md 2.4)."""

    LINE = "EVENT_SEMAPHORE S[1]>=2 S[3]++@complete wait2=S[2]==5 update2=S[4]-=7@complete"

    @pytest.mark.parametrize(
        ("first", "second", "runs"), [(2, 5, True), (1, 5, False), (2, 4, False), (0, 0, False)]
    )
    def test_both_waits_must_be_met(self, first, second, runs):
        """One alone does not let it issue; then both updates fire."""
        machine = Machine()
        machine.sync.semaphores[1:5] = [first, second, 0, 10]

        result = machine.run(Program.from_text(self.LINE))

        assert result.is_clean == runs
        assert machine.sync.semaphores[1:5] == [first, second, int(runs), 3 if runs else 10]

    def test_deadlock_names_the_wait_that_is_not_met(self):
        """The first wait holds, the second does not."""
        machine = Machine()
        machine.sync.semaphores[1] = 2

        result = machine.run(Program.from_text(self.LINE))

        assert result.fault is not None
        assert result.fault.message == ("dve at word 0 waits for semaphore 2 == 5, and it is 0")

    def test_each_half_has_its_own_value_and_register(self):
        """The register forms of the second half read the register of their own value."""
        line = "EVENT_SEMAPHORE S[1]>=$R[5] wait2=S[2]<$R[6] update2=S[3]=$R[7]@complete"
        machine = Machine()
        machine.engine(Engine.DVE).registers[5:8] = [1, 0xFFFFFFFF, 99]
        machine.sync.semaphores[1:3] = [1, 0xFFFFFFFE]

        assert machine.run(Program.from_text(line)).is_clean
        assert machine.sync.semaphores[3] == 99

    def test_events_of_the_second_half_flip(self):
        """A THEN form of the second wait clears its event."""
        machine = Machine()
        machine.sync.events[9] = 1

        assert machine.run(Program.from_text("EVENT_SEMAPHORE wait2=E[9]==1,=0")).is_clean
        assert machine.sync.events[9] == 0

    @pytest.mark.parametrize("engine", list(Engine))
    def test_on_every_engine(self, engine):
        """Control words are legal on all five."""
        _, result = run("EVENT_SEMAPHORE S[1]++@complete\nNOP\nDRAIN\nENGINE_NOP", engine=engine)

        assert result.is_clean
        assert result.steps == 4


class TestRangeClear:
    """0xB0 clears a range, ends included, or the numbers of a mask."""

    @pytest.mark.parametrize(
        ("choice", "semaphores", "events"),
        [("both", 0, 0), ("semaphores", 0, 1), ("events", 1, 0)],
    )
    def test_range(self, choice, semaphores, events):
        """Policy range_clear says what is cleared; neighbours stay."""
        machine = Machine(policy=Policy(range_clear=choice))
        machine.sync.semaphores[:] = [1] * 256
        machine.sync.events[:] = [1] * 256

        machine.run(Program.from_text("EVENT_SEMAPHORE_RANGE_CLEAR mode=RANGE first=3 last=5"))

        assert machine.sync.semaphores[2:7] == [1, *[semaphores] * 3, 1]
        assert machine.sync.events[2:7] == [1, *[events] * 3, 1]

    def test_mask(self):
        """Bit i of byte k is number 8 k + i: bytes 0x81 at 0 and 0x80 at 31."""
        machine = Machine()
        machine.sync.semaphores[:] = [1] * 256
        mask = "81" + "00" * 30 + "80"

        machine.run(Program.from_text(f"EVENT_SEMAPHORE_RANGE_CLEAR mode=MASK mask=0x{mask}"))

        cleared = [n for n, value in enumerate(machine.sync.semaphores) if value == 0]
        assert cleared == [0, 7, 255]

    def test_refused(self):
        """An unknown mode, and a range that ends before it begins."""
        assert (
            fault_of("EVENT_SEMAPHORE_RANGE_CLEAR mode=RANGE first=5 last=4").name
            == "range_clear_mode"
        )
        line = f".word b0100000{'00' * 8}03{'00' * 51}"
        warned = fault_of(line, policy=Policy(invalid="warn"))
        assert warned.message == "clear mode 3 is not published"


class TestMove:
    """MOVE sets registers from immediates or registers."""

    def test_immediates(self):
        """The public sample, and eight at once."""
        assert registers_after("MOVE dtype=uint32 $R[61]=0xc61c0000")[61] == 0xC61C0000
        eight = " ".join(f"$R[{n}]={n * n}" for n in range(8))
        assert registers_after(f"MOVE dtype=int32 {eight}")[:9] == [0, 1, 4, 9, 16, 25, 36, 49, 0]

    @pytest.mark.parametrize(
        ("choice", "after"), [("sequential", [7, 7, 7]), ("parallel", [7, 7, 2])]
    )
    def test_chain(self, choice, after):
        """R1 := R0 and R2 := R1: only a chain tells the two orders apart."""
        line = "MOVE dtype=uint32 $R[1]=$R[0] $R[2]=$R[1]"
        policy = Policy(move_order=choice)

        assert registers_after(line, {0: 7, 1: 2, 2: 3}, policy=policy)[:3] == after

    def test_registers_are_of_the_engine(self):
        """ACT's register 5 is not the DVE's."""
        machine = Machine()
        streams = [
            Program.from_text("MOVE dtype=uint32 $R[5]=1", engine).streams[0]
            for engine in (Engine.DVE, Engine.ACT)
        ]
        machine.run(Program(streams=(streams[0],)))

        assert machine.engine(Engine.DVE).registers[5] == 1
        assert machine.engine(Engine.ACT).registers[5] == 0

    @pytest.mark.parametrize(("choice", "low"), [("this", 64), ("next", 128)])
    def test_program_counter(self, choice, low):
        """Register 128 is the low half of the byte offset, 129 the high half."""
        text = "NOP\nMOVE dtype=uint32 $R[1]=$R[128] $R[2]=$R[129]"
        registers = registers_after(text, {2: 5}, policy=Policy(program_counter=choice))

        assert registers[1:3] == [low, 0]

    @pytest.mark.parametrize(
        ("line", "name", "message"),
        [
            ("MOVE dtype=uint32 $R[128]=1", "control_registers", "0 to 63"),
            ("MOVE dtype=uint32 $R[1]=$R[64]", "control_registers", "128 or 129"),
            ("MOVE dtype=int8 $R[1]=1", "no_model", "how registers hold it is not published"),
            ("MOVE dtype=uint64 $R[1]=1", "no_model", "MOVE of uint64 is not executed"),
        ],
    )
    def test_refused(self, line, name, message):
        """What the register file or the pages do not give."""
        fault = fault_of(line)

        assert fault.name == name
        assert message in fault.message

    def test_bad_registers_fault_when_rules_only_warn(self):
        """Nothing wraps around silently."""
        policy = Policy(invalid="warn")
        assert fault_of("MOVE dtype=uint32 $R[64]=1", policy=policy).name == "register"
        exponential = (
            "EXPONENTIAL src=fp32@$R[70][1][1] dst=fp32@0x2000[1][1] channels=1"
            " max_value=fp32@0.0 accumulator_cmd=IDLE"
        )
        fault = fault_of(exponential, policy=policy)
        assert (fault.name, fault.message) == ("register", "register must be 0 to 63, not 70")


def signed(value, width=32):
    return value - (1 << width) if value >> (width - 1) else value


ALU_CASES = [
    # op, dtype, src0, src1, result; dve-tensor-scalar.md 5.1 to 5.3, worked out by hand
    ("BYPASS", "uint32", 7, 9, 7),
    ("BITWISE_NOT", "uint32", 0x0F0F0F0F, 0, 0xF0F0F0F0),
    ("ADD", "uint32", 0xFFFFFFFF, 2, 1),
    ("ADD", "int32", 0x7FFFFFFF, 1, 0x80000000),
    ("SUBTRACT", "uint32", 3, 5, 0xFFFFFFFE),
    ("MULTIPLY", "int32", 0xFFFFFFFF, 5, 0xFFFFFFFB),
    ("MULTIPLY", "uint32", 0x10000, 0x10001, 0x10000),
    ("DIVIDE", "int32", 0xFFFFFFF9, 2, 0xFFFFFFFD),
    ("DIVIDE", "uint32", 0xFFFFFFF9, 2, 0x7FFFFFFC),
    ("DIVIDE", "int32", 0x80000000, 0xFFFFFFFF, 0x80000000),
    ("MOD", "int32", 0xFFFFFFF9, 2, 0xFFFFFFFF),
    ("MOD", "int32", 7, 0xFFFFFFFE, 1),
    ("MAX", "int32", 0xFFFFFFFF, 1, 1),
    ("MAX", "uint32", 0xFFFFFFFF, 1, 0xFFFFFFFF),
    ("MIN", "int32", 0xFFFFFFFF, 1, 0xFFFFFFFF),
    ("BITWISE_AND", "uint32", 0xFF00FF00, 0x0FF00FF0, 0x0F000F00),
    ("BITWISE_OR", "uint32", 0xFF00FF00, 0x0FF00FF0, 0xFFF0FFF0),
    ("BITWISE_XOR", "uint32", 0xFF00FF00, 0x0FF00FF0, 0xF0F0F0F0),
    ("LOGICAL_AND", "uint32", 4, 2, 1),
    ("LOGICAL_AND", "uint32", 4, 0, 0),
    ("LOGICAL_OR", "uint32", 0, 0, 0),
    ("LOGICAL_XOR", "uint32", 4, 2, 0),
    ("ARITH_SHIFT_LEFT", "uint32", 0x80000001, 1, 2),
    ("LOGICAL_SHIFT_LEFT", "uint32", 1, 32, 0),
    ("LOGICAL_SHIFT_LEFT", "uint32", 1, 0xFFFFFFFF, 0),
    ("ARITH_SHIFT_RIGHT", "uint32", 0x80000000, 4, 0xF8000000),
    ("ARITH_SHIFT_RIGHT", "int32", 0x80000000, 99, 0xFFFFFFFF),
    ("LOGICAL_SHIFT_RIGHT", "int32", 0x80000000, 4, 0x08000000),
    ("IS_EQUAL", "uint32", 5, 5, 1),
    ("IS_NE", "uint32", 5, 5, 0),
    ("IS_GT", "int32", 0, 0xFFFFFFFF, 1),
    ("IS_GT", "uint32", 0, 0xFFFFFFFF, 0),
    ("IS_GE", "uint32", 4, 4, 1),
    ("IS_LE", "uint32", 4, 5, 1),
    ("IS_LT", "int32", 0x80000000, 0, 1),
    ("ABS_DIFF", "int32", 0xFFFFFFFE, 3, 5),
    ("ABS_DIFF", "uint32", 3, 5, 2),
    ("ABS_VALUE", "int32", 0xFFFFFFFB, 0, 5),
    ("ABS_MAX", "int32", 0xFFFFFFFB, 3, 0xFFFFFFFB),
    ("ABS_MAX", "int32", 1, 0xFFFFFFFF, 0xFFFFFFFF),
    ("ABS_MIN", "int32", 0xFFFFFFFB, 3, 3),
    ("RELU", "int32", 0xFFFFFFFB, 0, 0),
    ("SQUARE", "int32", 0xFFFFFFFB, 0, 25),
    ("MAX_UINT", "int32", 0xFFFFFFFF, 1, 0xFFFFFFFF),
    ("IS_LT_INT", "uint32", 0xFFFFFFFF, 1, 1),
    ("ADD_INT", "uint32", 0xFFFFFFFF, 1, 0),
]


class TestAluOp:
    """ALU_OP computes with integers, modulo 2^32 or 2^64."""

    @pytest.mark.parametrize(("op", "dtype", "a", "b", "result"), ALU_CASES)
    def test_operations(self, op, dtype, a, b, result):
        """From two registers, and with an immediate."""
        by_register = f"ALU_OP op={op} dtype={dtype} src0=$R[1] src1=$R[2] dst=$R[3]"
        by_value = f"ALU_OP op={op} dtype={dtype} src0=$R[1] src1={b:#x} dst=$R[1]"

        assert registers_after(by_register, {1: a, 2: b})[3] == result
        assert registers_after(by_value, {1: a})[1] == result

    @given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
    @settings(max_examples=60, deadline=None)
    def test_pairs(self, a, b):
        """64-bit dtypes carry between the low and the high register."""
        halves = {1: a & WORD, 2: a >> 32, 3: b & WORD, 4: b >> 32}
        line = "ALU_OP op={} dtype={} src0=$R[1],$R[2] src1=$R[3],$R[4] dst=$R[5],$R[6]"
        wanted = {
            ("ADD", "uint64"): a + b,
            ("SUBTRACT", "int64"): a - b,
            ("MULTIPLY", "uint64"): a * b,
            ("IS_LT", "int64"): int(signed(a, 64) < signed(b, 64)),
            ("BITWISE_XOR", "uint64"): a ^ b,
        }
        machine = Machine()
        for (op, dtype), result in wanted.items():
            registers = machine.engine(Engine.DVE).registers
            for number, value in halves.items():
                registers[number] = value
            assert machine.run(Program.from_text(line.format(op, dtype))).is_clean

            assert registers[5] | registers[6] << 32 == result % (1 << 64), (op, dtype)

    def test_every_operation_runs_or_says_why_not(self):
        """No operation of the enum ends in silence or in an exception."""
        refused = set()
        for op in AluOp:
            code = f"{int(op):02x}"
            word = f".word a8100000{'00' * 8}{code}08010801{'00' * 47}"
            _, result = run(word, {1: 6}, generation="maverick")
            if result.fault is not None:
                refused.add((op.name, result.fault.name))

        assert {name for name, _ in refused} == {
            *("POW", "CRC32", "RSQRT", "SYMMETRIC_CLAMP"),
            *("AMAX_INT", "AMIN_INT", "AMAX_UINT", "AMIN_UINT"),
            *("DIVIDE", "MOD", "DIVIDE_INT", "MOD_INT", "DIVIDE_UINT", "MOD_UINT"),
        }
        assert {name for name, fault in refused if fault == "divide"} == {
            *("DIVIDE", "MOD", "DIVIDE_INT", "MOD_INT", "DIVIDE_UINT", "MOD_UINT"),
        }

    @pytest.mark.parametrize(
        ("line", "name", "message"),
        [
            ("dtype=int32 src0=$R[1] src1=0 dst=$R[1]", "divide", "integer divide by zero"),
            ("dtype=fp32 src0=$R[1] src1=1 dst=$R[1]", "no_model", "ALU_OP of fp32"),
            (
                "dtype=int32 src0=$R[1] src1=1 dst=$R[1] dst_dtype=int64",
                "no_model",
                "between 32 and 64 bits",
            ),
            ("dtype=int32 src0=$R[1] src1=1 dst=$R[129]", "control_registers", "0 to 63"),
        ],
    )
    def test_refused(self, line, name, message):
        """A fault leaves the registers as they were."""
        machine, result = run(f"ALU_OP op=DIVIDE {line}", {1: 6})

        assert result.fault is not None
        assert result.fault.name == name
        assert message in result.fault.message
        assert machine.engine(Engine.DVE).registers[1] == 6

    def test_five_bit_counts(self):
        """Policy shift_count_wide=mask5."""
        line = "ALU_OP op=LOGICAL_SHIFT_LEFT dtype=uint32 src0=$R[1] src1=33 dst=$R[2]"
        assert registers_after(line, {1: 3}, policy=Policy(shift_count_wide="mask5"))[2] == 6


def float_bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


COMPARISONS = [
    # dtype, left, right, the comparisons that hold
    ("int32", 5, 5, {"LE", "EQ", "GE"}),
    ("int32", 0xFFFFFFFF, 1, {"LT", "LE", "NE"}),
    ("uint32", 0xFFFFFFFF, 1, {"GT", "GE", "NE"}),
    ("fp32", float_bits(-2.0), float_bits(-1.0), {"LT", "LE", "NE"}),
    ("fp32", float_bits(0.0), float_bits(-0.0), {"EQ", "LE", "GE"}),
    ("fp32", 0x7FC00000, 0x7FC00000, {"NE"}),
]


class TestBranch:
    """COMPARE_BRANCH: comparisons, targets, loops."""

    @pytest.mark.parametrize(("dtype", "left", "right", "holding"), COMPARISONS)
    @pytest.mark.parametrize("op", ["LT", "LE", "EQ", "NE", "GE", "GT"])
    def test_comparisons(self, dtype, left, right, holding, op):
        """By immediate and by register; a branch that holds skips the MOVE."""
        move = "MOVE dtype=uint32 $R[9]=1\nNOP"
        for form, src1 in (("IMM", f"{right:#x}"), ("REG", "$R[2]")):
            line = f"COMPARE_BRANCH op={op}_{form} dtype={dtype} src0=$R[1] src1={src1} target=128"
            registers = registers_after(f"{line}\n{move}", {1: left, 2: right})

            assert registers[9] == int(op not in holding)

    def test_loop(self):
        """The sum of 1 to 10, with a backward branch of two words."""
        text = """
            ALU_OP op=ADD dtype=uint32 src0=$R[2] src1=$R[1] dst=$R[2]
            ALU_OP op=SUBTRACT dtype=uint32 src0=$R[1] src1=1 dst=$R[1]
            COMPARE_BRANCH op=NE_IMM dtype=uint32 src0=$R[1] src1=0 target=-128
        """
        machine, result = run(text, {1: 10})

        assert result.is_clean
        assert machine.engine(Engine.DVE).registers[2] == 55
        assert result.steps == 30

    def test_relative_to_which_word(self):
        """+64 is the next word; under program_counter=next it is the one after it."""
        text = "COMPARE_BRANCH target=64\nHALT\nMOVE dtype=uint32 $R[1]=1"

        assert registers_after(text)[1] == 0
        assert registers_after(text, policy=Policy(program_counter="next"))[1] == 1

    def test_target_in_registers(self):
        """Absolute, and relative with a sign over 64 bits."""
        absolute = "COMPARE_BRANCH target=$R[1],$R[2]\nHALT\nMOVE dtype=uint32 $R[9]=1"
        assert registers_after(absolute, {1: 128})[9] == 1
        relative = (
            "COMPARE_BRANCH target=128\nHALT\nMOVE dtype=uint32 $R[9]=1\n"
            "COMPARE_BRANCH target=+$R[1],$R[2]"
        )
        assert registers_after(relative, {1: (-128) & WORD, 2: WORD})[9] == 1

    @pytest.mark.parametrize(
        ("line", "registers", "message"),
        [
            ("COMPARE_BRANCH target=-64", {}, "must be 0x0 to 0x40, not -0x40"),
            ("COMPARE_BRANCH target=128", {}, "must be 0x0 to 0x40, not 0x80"),
            ("COMPARE_BRANCH target=$R[1],$R[2]", {1: 65}, "a multiple of 64, not 0x41"),
            ("COMPARE_BRANCH target=$R[1],$R[2]", {2: 1}, "not 0x100000000"),
        ],
    )
    def test_out_of_the_stream(self, line, registers, message):
        """A target that is no word of the stream is a fault at the branch."""
        fault = fault_of(f"{line}\nNOP", registers)

        assert (fault.name, fault.index) == ("branch", 0)
        assert message in fault.message

    def test_endless_loop_ends(self):
        """--max-steps."""
        assert fault_of("COMPARE_BRANCH target=0").name == "max_steps"

    @pytest.mark.parametrize(
        ("line", "name", "message"),
        [
            ("COMPARE_BRANCH target=100", "branch_distance", "a multiple of 64"),
            (
                "COMPARE_BRANCH op=EQ_IMM dtype=int64 src0=$R[1] src1=0 target=64",
                "no_model",
                "COMPARE_BRANCH of int64 is not executed",
            ),
        ],
    )
    def test_refused(self, line, name, message):
        """By a rule, or for want of a published meaning."""
        fault = fault_of(line)

        assert fault.name == name
        assert message in fault.message


class TestRefusals:
    """Words without a published layout, and words that a loader resolves."""

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (
                "WRITE",
                "WRITE (opcode 0xa5) is not executed: the layout of CTRL_WR is not published",
            ),
            ("POLL_SEM", "the layout of CTRL_POLL_SEM is not published"),
            ("TEST_EVENT_SEM", "the layout of CTRL_TEST_ES is not published"),
            ("MOVE_SHAPE", "the layout of CTRL_MS is not published"),
            ("SET_ORDERING_MODE", "SET_ORDERING_MODE (opcode 0xb1) is not executed: the layout is"),
            ("PSEUDO_INST kind=LIBRARY_RELOAD", "is resolved by the loader"),
        ],
    )
    def test_reason(self, line, message):
        """The reason is that very one."""
        fault = fault_of(line)

        assert fault.name == "no_model"
        assert message in fault.message

    @pytest.mark.parametrize("opcode", sorted(set(range(0xC1, 0xDF)) & set(OPCODES)))
    def test_pseudo_words(self, opcode):
        """Each stops with its name; zero bytes are enough to know it."""
        fault = fault_of(f".word {opcode:02x}100000{'00' * 60}")

        assert fault.message.startswith(f"{OPCODES[opcode].name} (opcode {opcode:#04x})")
        assert fault.message.endswith("is resolved by the loader")

    def test_prefetch_hint_changes_nothing(self):
        """A hint has no result."""
        assert run("BRANCH_PREFETCH_HINT S[1]++@complete")[1].is_clean
