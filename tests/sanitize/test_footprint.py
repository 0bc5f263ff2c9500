"""Footprints against bytes marked one by one, and tables of accesses against a plain search."""

from __future__ import annotations

import random

import numpy as np
import pytest

from neuron_emu.generation import MARIANA
from neuron_emu.isa.enums import Engine
from neuron_emu.memory import AccessPattern, IndirectPattern, Memory
from neuron_emu.sanitize.accesses import MOST_ROWS, AccessTable
from neuron_emu.sanitize.footprint import footprint_of, index_footprint_of
from neuron_emu.sanitize.report import Word

STRIDE = MARIANA.sbuf.partition_stride
GROUP = MARIANA.indirect_group_partitions
WORD = Word(Engine.DVE, 0, bytes(64))


def random_pattern(generator):
    """Return a pattern around byte 256 of a few partitions, and its item size and channels."""
    size = generator.choice([1, 2, 4])
    dims = generator.randint(1, 3)
    steps = tuple(generator.randint(-3, 4) for _ in range(dims))
    counts = tuple(generator.randint(1, 4) for _ in range(dims))
    start = generator.randrange(4) * STRIDE + 256 + size * generator.randrange(8)
    return AccessPattern(start, steps, counts), size, generator.randint(1, 4)


def bytes_of(pattern, size, channels):
    """Return the addresses that a pattern touches, by plain loops."""
    offsets = [0]
    for step, count in zip(pattern.step, pattern.num, strict=True):
        offsets = [offset + i * step * size for offset in offsets for i in range(count)]
    return {
        pattern.start + lane * STRIDE + offset + byte
        for lane in range(channels)
        for offset in offsets
        for byte in range(size)
    }


def operand_of(memory, pattern, size, channels):
    return memory.operand(pattern, size, channels, max_elements=1 << 16)


def address_of_first(shared):
    return min(shared, key=lambda address: (address // STRIDE, address % STRIDE))


@pytest.mark.parametrize("seed", range(200))
def test_shared_bytes_of_patterns(seed):
    """Count and first address of what two patterns share, and whether one covers the other."""
    generator = random.Random(seed)
    memory = Memory(MARIANA)
    parts = [random_pattern(generator) for _ in range(2)]
    first, second = (footprint_of(operand_of(memory, *part), GROUP) for part in parts)
    marked = [bytes_of(*part) for part in parts]
    both = marked[0] & marked[1]

    assert first.num_bytes == len(marked[0])
    assert first.shared(second) == ((address_of_first(both), len(both)) if both else None)
    assert first.covers(second) == (marked[1] <= marked[0])
    assert first.covers(first)


@pytest.mark.parametrize("num_elements", [1, 5, 16, 21, 32])
def test_gathers_and_their_index(num_elements):
    """Two groups with lists of their own; offset i lies in partition i mod 16, column i div 16."""
    memory = Memory(MARIANA)
    generator = np.random.default_rng(num_elements)
    lists = generator.integers(0, 50, size=(2, num_elements))
    index_bytes = set()
    for group in range(2):
        for i in range(num_elements):
            partition, column = 16 * group + i % 16, i // 16
            memory.sbuf.data.view("<u4")[partition, 0x8000 // 4 + column] = lists[group, i]
            index_bytes |= {partition * STRIDE + 0x8000 + 4 * column + b for b in range(4)}
    operand = operand_of(memory, IndirectPattern(0x8000, 0x1000, num_elements), 2, 32)
    data_bytes = {
        lane * STRIDE + 0x1000 + 2 * int(offset) + byte
        for lane in range(32)
        for offset in lists[lane // 16]
        for byte in range(2)
    }
    for found, marked in (
        (footprint_of(operand, GROUP), data_bytes),
        (index_footprint_of(operand, memory.sbuf, GROUP), index_bytes),
    ):
        assert found.num_bytes == len(marked)
        for seed in range(20):
            generator = random.Random(seed)
            start = generator.choice(sorted(marked)) + generator.randint(-3, 3)
            part = AccessPattern(start, (1,), (generator.randint(1, 30),)), 1, 3
            both = bytes_of(*part) & marked
            other = footprint_of(operand_of(memory, *part), GROUP)

            assert found.shared(other) == ((address_of_first(both), len(both)) if both else None)


def test_memories_share_nothing():
    memory = Memory(MARIANA)
    parts = [(AccessPattern(start, (1,), (4,)), 4, 1) for start in (0, MARIANA.psum.base)]
    sbuf, psum = (footprint_of(operand_of(memory, *part), GROUP) for part in parts)

    assert sbuf.shared(psum) is None


class TestAccessTable:
    """The rows whose box meets that of a footprint."""

    def footprints(self, count, seed=0):
        generator, memory = random.Random(seed), Memory(MARIANA)
        parts = [random_pattern(generator) for _ in range(count)]
        return [footprint_of(operand_of(memory, *part), GROUP) for part in parts]

    def test_against_a_plain_search(self):
        """Adding, replacing, discarding and forgetting in any order."""
        footprints = self.footprints(300)
        generator = random.Random(1)
        table, plain = AccessTable(), {}
        for time in range(1500):
            footprint = generator.choice(footprints)
            what = generator.random()
            if what < 0.7:
                table.add(footprint, WORD, time)
                plain[footprint.key] = (footprint, WORD, time)
            elif what < 0.9:
                table.discard(footprint)
                plain.pop(footprint.key, None)
            elif what < 0.91:
                table.keep_after(time - 100)
                plain = {key: row for key, row in plain.items() if row[2] > time - 100}
            assert len(table) == len(plain)
            if time % 10 == 0:
                after = time - generator.randrange(200)
                found = {id(row[0]): row[2] for row in table.near(footprint, after)}
                assert found == {
                    id(row[0]): row[2]
                    for row in plain.values()
                    if row[2] > after and self.boxes_meet(row[0].box, footprint.box)
                }

    @staticmethod
    def boxes_meet(a, b):
        return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]

    def test_it_stays_bounded(self):
        """The older half goes when there are too many."""
        memory, table = Memory(MARIANA), AccessTable()
        for time in range(MOST_ROWS + 10):
            pattern = AccessPattern(4 * time, (1,), (1,))
            table.add(footprint_of(operand_of(memory, pattern, 4, 1), GROUP), WORD, time)

        assert table.dropped == MOST_ROWS // 2
        assert len(table) == MOST_ROWS // 2 + 10
        assert min(time for _, _, time in table) == MOST_ROWS // 2
