"""Races: found where two accesses can be done in either order, and nowhere else.

What is true comes from `streams.Walk`, which visits every state that the engines can reach.
"""

from __future__ import annotations

import random

import pytest
from attrs import evolve

from neuron_emu import Machine, Program
from neuron_emu.generation import MARIANA
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import Engine, UpdateMode, WaitMode
from neuron_emu.isa.program import Stream
from neuron_emu.policy import Policy
from tests.sanitize.streams import (
    ENGINES,
    Step,
    Streams,
    Walk,
    machine_for,
    mixed_streams,
    pairs_of,
    random_streams,
    run,
    synchronised_streams,
)

X, Y, Z = (0, 2), (2, 4), (4, 6)


def changed(streams, engine, number, **changes):
    """Return streams with one step changed."""
    steps = [list(of_engine) for of_engine in streams.steps]
    steps[engine][number] = evolve(steps[engine][number], **changes)
    return Streams(tuple(tuple(of_engine) for of_engine in steps), dict(streams.start))


def checked(streams, interleave=None):
    """Run streams, compare the races with the walk of all states, and return the true ones."""
    walk = Walk(streams)
    truth = walk.races()
    result, found, _ = run(streams, interleave=interleave)

    assert result.is_clean, result.fault
    assert found <= truth
    assert all(walk.explains(found, pair) for pair in truth - found)
    return truth


class TestSynchronisedPrograms:
    """Nothing is reported, and every order that somebody needs is missed when it is taken away."""

    @pytest.mark.parametrize(("engines", "words"), [(2, 6), (3, 5)])
    def test_removing_one_wait_or_update(self, engines, words):
        """A needed one missing names two of its words; one that nobody needs changes nothing.

        A removed update is made up for by a semaphore that starts one higher, so that its waits
        are met too early instead of never.
        """
        needed = unneeded = 0
        for seed in range(6):
            streams = synchronised_streams(seed, engines, words)
            assert checked(streams) == set()
            assert checked(streams, interleave=seed) == set()
            for engine, steps in enumerate(streams.steps):
                for number, step in enumerate(steps):
                    variants = []
                    if step.wait is not None:
                        variants.append(changed(streams, engine, number, wait=None))
                    if step.update is not None:
                        variants.append(changed(streams, engine, number, update=None))
                        variants[-1].start[step.update[1]] = 1
                    for variant in variants:
                        races = checked(variant, interleave=seed)
                        needed += bool(races)
                        unneeded += not races

        assert needed > 10, "the generator makes orders that somebody needs"
        assert unneeded > 5, "and some that nobody does"

    def test_weakening_an_update_to_its_reads(self):
        """A READ update in the place of a COMPLETE one orders the reads only."""
        weakened = 0
        for seed in range(8):
            streams = synchronised_streams(seed)
            for engine, steps in enumerate(streams.steps):
                for number, step in enumerate(steps):
                    if step.update is not None and step.update[0].endswith("COMPLETE"):
                        update = ("SEM_INC_READ", step.update[1])
                        weakened += bool(checked(changed(streams, engine, number, update=update)))

        assert weakened > 3


class TestAnyPrograms:
    """Streams whose waits and updates mean nothing in particular."""

    @pytest.mark.parametrize("seed", range(16))
    def test_one_producer_for_each_semaphore(self, seed):
        """Each run, in turn or drawn, finds exactly the races of the words that it executed."""
        streams = random_streams(random.Random(seed), 2 + seed % 2, 4 - seed % 2)
        walk = Walk(streams)
        truth = walk.races()
        for interleave in (None, seed):
            _, found, machine = run(streams, interleave=interleave)
            done = [machine.position(engine) for engine in ENGINES]
            ran = {pair for pair in truth if all(number < done[e] for e, number in pair)}

            assert found <= truth
            assert all(walk.explains(found, pair) for pair in ran - found)

    @pytest.mark.parametrize("seed", range(8))
    def test_several_producers(self, seed):
        """No run tells a false one, and a few orders together find them all."""
        streams = random_streams(random.Random(seed), 3, 3, one_producer=False)
        walk = Walk(streams)
        found = set()
        for interleave in range(6):
            found |= run(streams, interleave=interleave)[1]

        assert found <= walk.races()
        assert all(walk.explains(found, pair) for pair in walk.races() - found)

    @pytest.mark.parametrize("seed", range(16))
    def test_every_kind_of_wait_and_update(self, seed):
        """With events, counting down, equality and plain writes there is still no false one."""
        streams = mixed_streams(random.Random(seed), 2 + seed % 2, 4 - seed % 2)
        truth = Walk(streams).races()
        for interleave in range(2):
            assert run(streams, interleave=interleave)[1] <= truth


def two(first, second, **options):
    """Run streams of DVE and ACT; return their races as pairs of indices."""
    _, found, machine = run(Streams((tuple(first), tuple(second))), **options)
    return {(a[1], b[1]) for a, b in found}, machine


class TestWhatOrders:
    """Each rule of docs/sanitizers.md by hand."""

    def test_reads_do_not_race(self):
        assert two([Step(X, Y)], [Step(X, Z)])[0] == set()

    def test_each_kind_of_conflict(self):
        """Write and write, read after write, write after read."""
        assert two([Step(writes=X)], [Step(writes=X)])[0] == {(0, 0)}
        assert two([Step(writes=X)], [Step(X, Y)])[0] == {(0, 0)}
        assert two([Step(X, Y)], [Step(writes=X)])[0] == {(0, 0)}

    def test_neighbouring_bytes_do_not_race(self):
        assert two([Step(writes=X)], [Step(writes=Y)])[0] == set()

    @pytest.mark.parametrize(("moment", "races"), [("READ", {(0, 0)}), ("COMPLETE", set())])
    def test_an_update_after_the_reads_does_not_order_the_write(self, moment, races):
        first = Step(X, Y, update=(f"SEM_INC_{moment}", 1))
        found, machine = two([first], [Step(writes=Y, wait=("SEM_GE_IMM", 1), value=1)])

        assert found == races
        if races:
            assert "tells only that the reads are done" in machine.sanitizer.reports[0].message

    def test_an_update_after_the_reads_orders_the_reads(self):
        first = Step(X, Y, update=("SEM_INC_READ", 1))

        assert two([first], [Step(writes=X, wait=("SEM_GE_IMM", 1), value=1)])[0] == set()

    def test_a_later_word_orders_the_earlier_ones_of_its_engine(self):
        first = [Step(writes=X), Step(update=("SEM_INC_READ", 1))]

        assert two(first, [Step(writes=X, wait=("SEM_GE_IMM", 1), value=1)])[0] == set()

    @pytest.mark.parametrize(("threshold", "races"), [(1, {(1, 2)}), (2, set())])
    def test_a_threshold_orders_what_it_needs_and_no_more(self, threshold, races):
        """Both updates have run when the wait is met; one of them would have been enough."""
        count = ("SEM_INC_COMPLETE", 1)
        first = [Step(writes=X, update=count), Step(writes=Y, update=count)]
        second = [Step(), Step(), Step(Y, Z, wait=("SEM_GE_IMM", 1), value=threshold)]

        assert two(first, second)[0] == races

    def test_what_is_before_either_of_two_updates_is_ordered(self):
        """DVE writes X, then tells ACT or POOL; either may be the one that POOL's wait saw."""
        told = ("SEM_INC_COMPLETE", 2)
        dve = (Step(writes=X, update=("SEM_ADD_IMM_COMPLETE", 1), value=2),)
        act = (
            Step(wait=("SEM_GE_IMM", 1), value=1, update=told),
            Step(wait=("SEM_GE_IMM", 1), value=2, update=told),
            Step(X, Y, wait=("SEM_GE_IMM", 2), value=1),
        )
        assert run(Streams((dve, act)))[1] == set()

    def test_what_is_before_one_of_two_updates_is_not(self):
        """SP's wait may have seen POOL's update, which does not know of DVE's write."""
        told = ("SEM_INC_COMPLETE", 2)
        dve = (Step(writes=X, update=("SEM_INC_COMPLETE", 1)),)
        act = (Step(wait=("SEM_GE_IMM", 1), value=1, update=told),)
        pool = (Step(), Step(), Step(update=told))
        for threshold, races in ((1, {((0, 0), (3, 3))}), (2, set())):
            last = Step(X, Y, wait=("SEM_GE_IMM", 2), value=threshold)
            streams = Streams((dve, act, pool, (Step(), Step(), Step(), last)))

            assert run(streams)[1] == Walk(streams).races() == races

    def test_counting_up_and_down_by_several_engines(self):
        """One of two steps up is enough, whether or not POOL has taken one off."""
        up, down = ("SEM_INC_COMPLETE", 1), ("SEM_DEC_COMPLETE", 1)
        dve = (Step(writes=X, update=up), Step(writes=Y, update=up))
        last = Step(Y, Z, wait=("SEM_GE_IMM", 1), value=1)
        streams = Streams((dve, (Step(), Step(), Step(), last), (Step(update=down),)))

        assert run(streams)[1] == Walk(streams).races() == {((0, 1), (1, 3))}

    def test_two_waits_of_a_word_know_of_each_other(self):
        """POOL took one off before it told semaphore 2, so semaphore 1 needs both steps up."""
        up, down = ("SEM_INC_COMPLETE", 1), ("SEM_DEC_COMPLETE", 1)
        streams = Streams(
            (
                (Step(writes=X, update=up), Step(writes=Y, update=up)),
                (Step(), Step(Y, Z)),
                (Step(update=down), Step(update=("SEM_INC_COMPLETE", 2))),
            )
        )
        *others, act = sorted(streams.program().streams, key=lambda s: s.engine is Engine.ACT)
        both = assemble("EVENT_SEMAPHORE S[1]>=1 wait2=S[2]>=1")
        act = evolve(act, data=act.data[:64] + both + act.data[64:])
        machine = machine_for(streams)

        assert machine.run(Program(streams=(*others, act))).is_clean
        assert machine.sanitizer.reports == []

    def test_a_semaphore_that_is_counted_down_again(self):
        """The consumer takes each unit off: the second wait needs the second update."""
        give = ("SEM_INC_COMPLETE", 1)
        take = ("SEM_DEC_READ", 1)
        first = [Step(writes=X, update=give), Step(writes=Y, update=give)]
        second = [
            Step(X, Z, wait=("SEM_GE_IMM", 1), value=1, update=take),
            Step(Y, Z, wait=("SEM_GE_IMM", 1), value=1, update=take),
        ]
        assert two(first, second)[0] == set()
        assert two(first, [second[0], evolve(second[1], wait=None)])[0] == {(1, 1)}

    def test_a_semaphore_that_is_written(self):
        flag = ("SEM_WR_IMM_COMPLETE", 1)
        first = [Step(writes=X, update=flag, value=1), Step(writes=Y, update=flag, value=2)]
        second = [Step(), Step(), Step(X, Z, wait=("SEM_GE_IMM", 1), value=1)]

        assert two(first, [*second, Step(Y, Z, wait=("SEM_GE_IMM", 1), value=2)])[0] == set()
        assert two(first, [*second, Step(Y, Z)])[0] == {(1, 3)}

    def test_an_event_that_is_handed_back_and_forth(self):
        first = [
            Step(writes=X, wait=("EVT_CLEAR", 5), update=("EVT_SET_COMPLETE", 5)),
            Step(writes=X, wait=("EVT_CLEAR", 5), update=("EVT_SET_COMPLETE", 5)),
        ]
        take = Step(X, Y, wait=("EVT_SET", 5), update=("EVT_CLR_READ", 5))

        assert two(first, [take, take])[0] == set()
        assert (1, 0) in two([first[0], evolve(first[1], wait=None)], [take])[0]

    def test_a_flip_tells_that_a_word_has_issued_and_not_that_it_has_read(self):
        """SET_THEN_CLEAR clears the event at issue: who waits for that may be too early."""
        first = [
            Step(writes=X, update=("EVT_SET_COMPLETE", 5)),
            Step(writes=X, wait=("EVT_CLEAR", 5)),
        ]
        assert two(first, [Step(X, Y, wait=("EVT_SET_THEN_CLEAR", 5))])[0] == {(1, 0)}

    def test_clearing_a_range_is_an_update(self):
        """ACT waits until a semaphore that starts at 7 has been cleared."""
        clear = bytearray(assemble("EVENT_SEMAPHORE_RANGE_CLEAR first=4 last=6"))
        streams = Streams(((Step(writes=X),), (Step(X, Y, wait=("SEM_EQ_IMM", 5)),)))
        dve, act = streams.program().streams
        for words, races in ((dve.data + clear, set()), (bytes(clear) + dve.data, {(0, 1)})):
            machine = Machine(sanitize=True)
            machine.sync.semaphores[5] = 7
            result = machine.run(Program(streams=(evolve(dve, data=bytes(words)), act)))

            assert result.is_clean
            assert {(b[1], a[1]) for a, b in pairs_of(machine.sanitizer.reports)} == races

    def test_a_value_that_something_else_has_set_orders_all_updates(self):
        """A semaphore that is set between two words no longer tells what brought it there."""
        first = (Step(writes=X, update=("SEM_INC_COMPLETE", 1)), Step())
        machine = Machine(sanitize=True)
        machine.load(Streams((first, (Step(X, Y, wait=("SEM_GE_IMM", 1), value=9),))).program())
        machine.step()
        machine.sync.semaphores[1] = 9

        assert machine.run().is_clean
        assert pairs_of(machine.sanitizer.reports) == set()

    def test_a_program_comes_after_the_one_before(self):
        machine = Machine(sanitize=True)
        for engine in (Engine.DVE, Engine.ACT):
            word = Streams(()).word(engine, Step(writes=X))
            machine.run(Program.of(word, engine=engine))

        assert pairs_of(machine.sanitizer.reports) == set()

    def test_the_index_of_a_scatter_is_read(self):
        scatter = assemble("COPY src=fp32@0x1000[1][4] dst=fp32@0x2000[index@0x8000][4] channels=1")
        fill = assemble("MEMSET dst=fp32@0x8000[1][1] channels=1 set_value=0x0")
        machine = Machine(policy=Policy(invalid="warn"), sanitize=True)
        streams = (*Program.of(scatter).streams, *Program.of(fill, engine=Engine.ACT).streams)

        assert machine.run(Program(streams=streams)).is_clean
        assert pairs_of(machine.sanitizer.reports) == {((0, 0), (1, 0))}

    @pytest.mark.parametrize(("partition", "races"), [(0, True), (3, True), (4, False), (19, True)])
    def test_index_tensors_are_read(self, partition, races):
        """ACT writes the index of a gather that DVE does at the same time.

        The four offsets of a group of 16 partitions lie in the first four of them.
        """
        gather = Program.load("programs/gather.toml").streams[0]
        place = 0x8000 + partition * MARIANA.sbuf.partition_stride
        fill = assemble(f"MEMSET dst=fp32@{place:#x}[1][1] channels=1 set_value=0x0")
        # A start at partition 3 is not legal, which does not matter here.
        machine = Machine(policy=Policy(invalid="warn"), sanitize=True)
        machine.run(Program(streams=(gather, *Program.of(fill, engine=Engine.ACT).streams)))

        assert pairs_of(machine.sanitizer.reports) == ({((0, 1), (1, 0))} if races else set())


class TestReports:
    """What a report says, and when."""

    def race(self, machine):
        return next(report for report in machine.sanitizer.reports if report.name == "race")

    def test_both_words_the_bytes_and_the_missing_order(self):
        _, machine = two([Step(writes=(0, 4))], [Step((2, 6), (8, 12))])
        report = self.race(machine)

        assert [word.place for word in report.words] == ["dve[0]", "act[0]"]
        assert (report.address, report.num_bytes) == (0x1008, 8)
        assert report.message == (
            "reads 8 bytes, first at 0x1008, that dve[0] writes, and nothing orders the two;"
            " act[0] must wait for a COMPLETE update of dve[0] or an update of a later dve word;"
            " dve[0] is MEMSET dst=fp32@0x1000[1,1,1,1][4,1,1,1] channels=1 set_value=0x3f800000;"
            " act[0] is ACTIVATE COPY src=fp32@0x1008[1,1,1][4,1,1] dst=fp32@0x1020[1,1,1][4,1,1]"
            " channels=1 accumulator_cmd=IDLE"
        )

    def test_a_read_that_may_have_come_too_early(self):
        """The order in which the two happened to run does not say which order was meant."""
        _, machine = two([Step((0, 4), (8, 12))], [Step(writes=(0, 4))])
        report = self.race(machine)

        assert [word.place for word in report.words] == ["dve[0]", "act[0]"]
        assert (
            "act[0] must wait for an update of dve[0] or an update of a later dve word, or dve[0],"
            " if it is to read that, for a COMPLETE update of act[0]; dve[0] is"
        ) in report.message

    def test_a_report_is_a_warning_of_the_later_word(self):
        """It is among the warnings of the run and in the trace, and stops nothing."""
        machine = Machine(sanitize=True)
        events = []
        machine.listeners.append(events.append)
        streams = Streams(((Step(writes=X),), (Step(writes=X), Step())))

        result = machine.run(streams.program())

        assert result.is_clean
        assert result.steps == 3
        assert [str(w).partition(": reads")[0][:12] for w in result.warnings] == ["act[0]: race"]
        assert [e.detail["name"] for e in events if e.kind == "warning"] == ["race"]

    def test_a_pair_is_told_once(self):
        """A loop of 50 rounds on each engine."""
        branch = assemble("COMPARE_BRANCH op=ALWAYS target=-64")
        word = Streams(()).word(Engine.DVE, Step(writes=X))
        streams = [Program.of(word + branch, engine=e).streams[0] for e in (Engine.DVE, Engine.ACT)]
        machine = Machine(sanitize=True)
        machine.run(Program(streams=tuple(streams)), max_steps=200)

        pairs = [report.words for report in machine.sanitizer.reports]
        assert [[word.index for word in pair] for pair in pairs] == [[0, 0], [0, 0]]
        assert [pair[0].engine.name for pair in pairs] == ["DVE", "ACT"]

    def test_nothing_looks_on_by_default(self):
        machine = Machine()
        streams = Streams(((Step(writes=X),), (Step(writes=X),)))

        assert machine.run(streams.program()).warnings == ()
        assert machine.sanitizer is machine.observer is None

    def test_it_can_be_started_between_words(self):
        machine = Machine()
        steps = (Step(writes=X), Step(writes=Y))
        machine.load(Streams((steps, steps)).program())
        machine.step()
        sanitizer = machine.start_sanitizer()
        machine.run()

        assert pairs_of(sanitizer.reports) == {((0, 1), (1, 1))}


class TestDeadlock:
    """A word that waits for ever is compared with what it would race with."""

    def test_the_word_that_should_have_signalled_is_named(self):
        streams = Streams(((Step(writes=X),), (Step(X, Y, wait=("SEM_GE_IMM", 1), value=1),)))
        result, found, machine = run(streams)
        reports = machine.sanitizer.finish()

        assert result.fault is not None
        assert result.fault.name == "deadlock"
        assert found == set()
        assert pairs_of(reports) == {((0, 0), (1, 0))}
        assert "(act[0] waits for semaphore 1 >= 1, and it is 0)" in reports[0].message

    def test_a_wait_in_a_word_of_its_own(self):
        """The access follows; the update that did come is taken as an order."""
        dve = (Step(writes=X, update=("SEM_INC_COMPLETE", 1)), Step(writes=Y))
        act = (Step(wait=("SEM_GE_IMM", 1), value=2), Step(X, Z), Step(Y, Z))
        _, _, machine = run(Streams((dve, act)))
        assert pairs_of(machine.sanitizer.finish()) == set()

        act = (act[0], act[2])
        _, _, machine = run(Streams((dve, act)))
        assert pairs_of(machine.sanitizer.finish()) == {((0, 1), (1, 1))}

    @pytest.mark.parametrize("ahead", ["", "NOP S[2]>=1\n"])
    def test_a_word_that_faults_does_not_wait(self, ahead):
        """A wait on a register that does not exist is looked at and not evaluated."""
        streams = tuple(
            Stream(engine=engine, data=assemble(text))
            for engine, text in (
                (Engine.ACT, "NOP S[3]>=1"),
                (Engine.POOL, f"{ahead}NOP S[1]>=$R[1000]\nNOP"),
            )
        )
        machine = Machine(sanitize=True)
        result = machine.run(Program(streams=streams))

        assert result.fault is not None
        assert result.fault.name == ("deadlock" if ahead else "register")
        assert machine.sanitizer.finish([]) == []

    def test_looking_changes_nothing(self):
        streams = Streams(((Step(writes=X),), (Step(X, Y, wait=("SEM_GE_IMM", 1), value=1),)))
        _, _, machine = run(streams)
        before = machine.snapshot()
        machine.sanitizer.finish()

        assert machine.snapshot() == before

    def test_every_removed_update_is_told(self):
        """Without an update that a wait needs the run ends, and the end names two of its words."""
        named = 0
        for seed in range(6):
            streams = synchronised_streams(seed)
            for engine, steps in enumerate(streams.steps):
                for number, step in enumerate(steps):
                    if step.update is None:
                        continue
                    variant = changed(streams, engine, number, update=None)
                    result, found, machine = run(variant)
                    waits_left = Walk(variant)
                    assert found <= waits_left.races()
                    if result.fault is not None:
                        assert result.fault.name == "deadlock"
                        named += bool(pairs_of(machine.sanitizer.finish()))

        assert named > 5


class TestLongRuns:
    """What is kept stays bounded, and forgetting makes no false report."""

    def long_run(self, *steps):
        """Run streams, DVE's first; return the sanitizer."""
        streams = Streams(tuple(tuple(of_engine) for of_engine in steps))
        result, _, machine = run(streams)
        assert result.is_clean
        return machine.sanitizer

    def test_a_handshake_of_many_rounds(self):
        """DVE writes, ACT reads the same bytes, 1500 times: updates are folded as they age."""
        tell, answer = ("SEM_INC_COMPLETE", 1), ("SEM_INC_READ", 2)
        rounds = range(1500)
        sanitizer = self.long_run(
            [Step(writes=X, wait=("SEM_GE_IMM", 2), value=n, update=tell) for n in rounds],
            [Step(X, Y, wait=("SEM_GE_IMM", 1), value=n + 1, update=answer) for n in rounds],
        )

        assert sanitizer.reports == []
        assert max(len(v.updates) for v in sanitizer.orders._variables.values()) <= 64

    def test_a_producer_that_is_far_ahead(self):
        """1301 updates before the wait is met: the oldest are taken over by every wait.

        The very first is POOL's, which no later one knows of.
        """
        tell = ("SEM_INC_COMPLETE", 1)
        cells = [(n % 8, n % 8 + 1) for n in range(1300)]
        sanitizer = self.long_run(
            [Step(), *(Step(writes=cell, update=tell) for cell in cells)],
            [Step((30, 31), (31, 32), wait=("SEM_GE_IMM", 1), value=1301)],
            [Step(writes=(30, 31), update=tell)],
        )

        assert sanitizer.reports == []
        assert len(sanitizer.orders._variables["S", 1].updates) < 1100

    def test_engines_without_any_order(self):
        """Two engines over 100 footprints each: all pairs that meet, and no more, are told."""
        places = [(n, n + 1) for n in range(100)]
        sanitizer = self.long_run(
            [Step(writes=place) for place in places],
            [Step(writes=(first + 50, end + 50)) for first, end in places],
        )

        assert pairs_of(sanitizer.reports) == {((0, n + 50), (1, n)) for n in range(50)}

    def test_going_back_makes_no_false_report(self):
        """Undone words are forgotten with the orders between them."""
        streams = synchronised_streams(3)
        machine = machine_for(streams)
        machine.record_undo()
        machine.load(streams.program())
        generator = random.Random(1)
        for _ in range(200):
            if generator.random() < 0.6:
                machine.step()
            else:
                machine.undo()
        machine.run()

        assert pairs_of(machine.sanitizer.reports) == set()

    def test_undone_reports_are_told_again(self):
        machine = Machine(sanitize=True)
        machine.record_undo()
        machine.load(Streams(((Step(writes=X),), (Step(writes=X),))).program())
        for _ in range(2):
            machine.step(), machine.step()
            assert [warning.name for warning in machine.warnings] == ["race"]
            machine.undo(), machine.undo()
            assert machine.warnings == []
        checkpoint = machine.checkpoint()
        machine.run()
        machine.restore(checkpoint)

        assert machine.warnings == []


def test_modes_of_the_streams_are_those_of_the_machine():
    """The plain walk names modes as the enums do."""
    for name in ("SEM_GE_IMM", "SEM_EQ_IMM", "EVT_SET_THEN_CLEAR", "EVT_CLEAR_THEN_SET"):
        assert name in WaitMode.__members__
    for name in ("SEM_INC_READ", "SEM_WR_IMM_COMPLETE", "EVT_CLR_READ"):
        assert name in UpdateMode.__members__
