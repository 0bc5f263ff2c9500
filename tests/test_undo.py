"""Going back: any mix of steps forward and back equals a fresh run to the same word."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from neuron_emu import Machine, Program
from neuron_emu.generation import MARIANA, MemoryGeometry
from neuron_emu.isa.enums import Engine
from neuron_emu.policy import Policy

# Small memories, so that a digest of all of them is quick.
SMALL = evolve(
    MARIANA,
    sbuf=MemoryGeometry(base=0, partition_stride=0x40000, active_bytes=0x1000),
    psum=MemoryGeometry(base=0x2000000, partition_stride=0x8000, active_bytes=0x400),
)

DVE = """
ACT_TABLE_LOAD table_sel=0
MOVE dtype=uint32 $R[1]=0 $R[2]=0x200
EXPONENTIAL S[1]++@read src=fp32@0x100[1][4] dst=bf16@$R[2][1][4] channels=4 max_value=fp32@1.0 \
accumulator_cmd=ZERO_ACCUMULATE
EXPONENTIAL src=fp32@0x100[1][4] dst=fp32@0x104[1][4] channels=4 max_value=fp32@0.5 \
accumulator_cmd=ACCUMULATE
DVE_READ_ACCUMULATOR S[2]+=5@complete dst=fp32@0x300[1][1] channels=4
EXPONENTIAL src=fp32@0x900[1][4] dst=fp32@0x2000000[0][4] channels=4 max_value=fp32@0.5 \
accumulator_cmd=IDLE
EXPONENTIAL src=fp32@0x100[1][4] dst=fp32@0x2000100[1][4] channels=4 max_value=[fp32@0x300] \
accumulator_cmd=ACCUMULATE
ALU_OP S[3]--@complete op=ADD dtype=uint32 src0=$R[2] src1=0x10 dst=$R[2]
ALU_OP op=ADD dtype=uint32 src0=$R[1] src1=1 dst=$R[1]
COMPARE_BRANCH op=LT_IMM dtype=uint32 src0=$R[1] src1=3 target=-448
EVENT_SEMAPHORE E[9]=1@complete update2=S[4]=99@read
EVENT_SEMAPHORE_RANGE_CLEAR mode=RANGE first=0 last=3
ACT_TABLE_LOAD table_sel=3
"""
ACT = """
COPY S[1]>=1 src=fp32@0x100[1][4] dst=fp32@0x400[1][4] channels=4
NOP E[9]==1,=0 S[5]-=1@complete
COPY src=uint8@0x10f[-1][15] dst=uint8@0x110[1][15] channels=64
"""


def machine_for(seed=None, policy=None, **options):
    """Return a loaded machine at its first word."""
    machine = Machine(SMALL, policy, interleave=seed)
    machine.write("sbuf:0+0x100:fp32[4,4]", np.float32(np.arange(16).reshape(4, 4) / 8))
    if options:
        machine.record_undo(True, **options)
    streams = (
        *Program.from_text(DVE).streams,
        *Program.from_text(ACT, Engine.ACT).streams,
        *Program.from_text("NOP S[1]>=2 S[6]++@read", Engine.POOL).streams,
    )
    machine.load(Program(streams=streams))
    return machine


def fresh_snapshots(seed=None, policy=None):
    """Return the snapshot after each step of a run that never goes back."""
    machine = machine_for(seed, policy)
    snapshots = [machine.snapshot()]
    while not machine.is_finished:
        assert machine.step() is None
        snapshots.append(machine.snapshot())
    return snapshots


CONFIGURATIONS = [
    (None, None),
    (7, None),
    (123, None),
    (None, Policy(rounding="stochastic", uninitialised="random", acc_idle="nan")),
    (5, Policy(rounding="stochastic")),
]
FRESH = {}


def fresh(configuration):
    if configuration not in FRESH:
        FRESH[configuration] = fresh_snapshots(*configuration)
    return FRESH[configuration]


class TestUndo:
    """Undo is exact, bounded, and costs what was written."""

    @settings(max_examples=40, deadline=None)
    @given(
        st.sampled_from(CONFIGURATIONS),
        st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=12),
    )
    def test_any_mix_equals_a_fresh_run(self, configuration, moves):
        """Byte for byte: memories, flags, registers, semaphores, accumulators, all of it."""
        snapshots = fresh(configuration)
        machine = machine_for(*configuration, limit_bytes=1 << 20)
        index = 0
        for is_forward, count in moves:
            for _ in range(count):
                if is_forward:
                    index += not machine.is_finished
                    assert machine.step() is None
                else:
                    assert machine.undo() == (index > 0)
                    index = max(index - 1, 0)
            assert machine.undo_depth == index
            assert machine.snapshot() == snapshots[index]

    @pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=range(len(CONFIGURATIONS)))
    def test_all_the_way(self, configuration):
        """To the end, word by word to the start, and to the end again."""
        snapshots = fresh(configuration)
        machine = machine_for(*configuration, limit_bytes=1 << 20)

        assert machine.run().is_clean
        assert machine.steps == len(snapshots) - 1
        assert machine.snapshot() == snapshots[-1]
        for snapshot in reversed(snapshots[:-1]):
            assert machine.undo()
            assert machine.snapshot() == snapshot
        assert not machine.undo()
        assert machine.run().is_clean
        assert machine.snapshot() == snapshots[-1]

    def test_the_program_is_worth_it(self):
        """It loops, warns, loads tables, waits, and its states all differ."""
        snapshots = fresh((None, None))
        machine = machine_for()
        result = machine.run()

        assert len(set(snapshots)) == len(snapshots) > 25
        assert result.table_loads == 2
        assert {w.name for w in result.warnings} == {"uninitialised_read", "undefined_accumulator"}

    def test_recording_changes_nothing(self):
        """A recorded run and a plain one end in the same state."""
        machine = machine_for(limit_bytes=1 << 20)

        assert machine.run().is_clean
        assert machine.snapshot() == fresh((None, None))[-1]

    def test_limit_drops_the_oldest(self):
        """undo ends early and says so; what is left is still exact."""
        snapshots = fresh((None, None))
        machine = machine_for(limit_bytes=6000)
        machine.run()

        depth = machine.undo_depth
        assert 0 < depth < len(snapshots) - 1
        back = 0
        while machine.undo():
            back += 1
        assert back == depth
        assert machine.undo_depth == 0
        assert machine.snapshot() == snapshots[-1 - depth]

    def test_a_step_larger_than_the_limit(self):
        """It cannot be undone, and nothing before it."""
        machine = machine_for(limit_bytes=100)
        machine.run()

        assert machine.undo_depth == 0
        assert not machine.undo()

    def test_off(self):
        """Without recording there is nothing to undo; ending it drops what there was."""
        machine = machine_for()
        machine.step()
        assert not machine.undo()
        machine.record_undo()
        machine.step()
        machine.record_undo(False)

        assert not machine.undo()
        assert machine.undo_depth == 0

    def test_a_fault_is_no_step(self):
        """After a fault, undo takes back the last word that ran, with the fault's warnings."""
        machine = Machine(SMALL, Policy(invalid="warn"))
        machine.record_undo()
        machine.load(Program.from_text("NOP S[1]++@complete\nMOVE dtype=uint32 $R[64]=1"))
        start = machine.snapshot()
        assert machine.step() is None
        assert machine.step() is not None
        assert machine.step() is not None

        assert machine.undo_depth == 1
        assert machine.undo()
        assert machine.snapshot() == start
        assert machine.warnings == []

    def test_fault_between_the_moments_of_others(self):
        """Under a seed, what others did before the fault is taken back with the last word."""
        program = Program(
            streams=(
                *Program.from_text("NOP S[1]++@read\n" * 4).streams,
                *Program.from_text("NOP\nNOP\nWRITE", Engine.ACT).streams,
            )
        )
        for seed in range(12):
            machine = Machine(SMALL, interleave=seed)
            machine.record_undo()
            machine.load(program)
            start, snapshots = machine.snapshot(), []
            while machine.step() is None:
                snapshots.append(machine.snapshot())
            for snapshot in reversed([start, *snapshots[:-1]]):
                assert machine.undo()
                assert machine.snapshot() == snapshot

    def test_writes_between_words(self):
        """A write by the user goes with the word before it."""
        machine = machine_for(limit_bytes=1 << 20)
        for _ in range(3):
            machine.step()
        machine.write("sbuf:0+0x100:fp32[4,4]", np.zeros((4, 4), np.float32))

        assert machine.undo()
        assert machine.snapshot() == fresh((None, None))[2]

    def test_loading_starts_anew(self):
        """A new program cannot be undone into the old one."""
        machine = machine_for(limit_bytes=1 << 20)
        machine.run()
        machine.load(Program.from_text("NOP"))

        assert not machine.undo()

    def test_first_write_of_unwritten_bytes(self):
        """Written flags go back, so the same read warns again."""
        machine = Machine(SMALL, sanitize=True)
        machine.record_undo()
        line = "COPY src=fp32@0x200[1][1] dst=fp32@0x200[1][1] channels=1"
        machine.load(Program.from_text(f"{line}\n{line}"))
        machine.run()
        assert [w.index for w in machine.warnings] == [0]
        machine.undo()
        machine.undo()
        machine.run()

        assert [w.index for w in machine.warnings] == [0]
        assert not machine.memory.sbuf.written[0, 0x1FF]
        assert machine.memory.sbuf.written[0, 0x200]


class TestSnapshot:
    """Equal states have equal digests; one changed bit anywhere shows."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda m: m.memory.sbuf.data.__setitem__((100, 7), 1),
            lambda m: m.memory.psum.data.__setitem__((0, 0), 1),
            lambda m: m.memory.sbuf.written.__setitem__((0, 0), True),
            lambda m: m.engine(Engine.PE).registers.__setitem__(3, 1),
            lambda m: m.sync.semaphores.__setitem__(255, 1),
            lambda m: m.sync.events.__setitem__(0, 1),
            lambda m: m.engine(Engine.DVE).accumulator.values.__setitem__(5, 1),
            lambda m: m.engine(Engine.DVE).accumulator.undefined.__setitem__(5, False),
            lambda m: m.engine(Engine.ACT).latches.__setitem__("mask", np.arange(3)),
            lambda m: m.preload("exp_and_others"),
            lambda m: m.engine(Engine.DVE).random.random(),
            lambda m: m.step(),
        ],
    )
    def test_every_part_counts(self, change):
        """Two machines agree until one of them is changed."""
        one, other = machine_for(), machine_for()
        assert one.snapshot() == other.snapshot()

        change(one)

        assert one.snapshot() != other.snapshot()


class TestCheckpoint:
    """Far jumps without a log."""

    @pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=range(len(CONFIGURATIONS)))
    def test_back_and_forward(self, configuration):
        """Restored in any order, a checkpoint is the state it was made of, and runs on alike."""
        snapshots = fresh(configuration)
        machine = machine_for(*configuration)
        checkpoints = {}
        for index in range(len(snapshots)):
            if index % 5 == 0:
                checkpoints[index] = machine.checkpoint()
            machine.step()

        for index in (10, 0, 20, 5, 20, 15):
            machine.restore(checkpoints[index])
            assert machine.steps == index
            assert machine.snapshot() == snapshots[index]
            assert machine.step() is None
            assert machine.snapshot() == snapshots[index + 1]

    def test_it_holds_written_pages_only(self):
        """One written page of one partition, not the whole of 32 MiB."""
        machine = Machine()
        machine.write("sbuf:3+0x1000:fp32[1,4]", np.ones((1, 4), np.float32))

        assert machine.checkpoint().num_bytes == 2 * 4096
