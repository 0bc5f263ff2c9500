"""Memories and operands, against the plain loops of `engines.reference.memory` and by hand.

Hand-worked addresses follow isa-encoding.md 3.3 and 4; the tiny generation only makes it likely
that a random pattern meets an edge.
"""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from attrs import evolve
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from neuron_emu.engines.reference import memory as plain
from neuron_emu.errors import InputError
from neuron_emu.generation import (
    CAYMAN,
    GENERATIONS,
    MARIANA,
    MAVERICK,
    SUNDA,
    Generation,
    MemoryGeometry,
)
from neuron_emu.memory import (
    AccessPattern,
    DirectOperand,
    IndirectPattern,
    Location,
    Memory,
    MemoryFault,
    Operand,
    Pattern,
    Space,
    local_address,
    locate,
    stream_order_matters,
)
from neuron_emu.policy import Policy

TINY = evolve(
    MARIANA,
    name="tiny",
    sbuf=MemoryGeometry(base=0, partition_stride=0x100, active_bytes=0x60, num_partitions=40),
    psum=MemoryGeometry(base=0x4000, partition_stride=0x80, active_bytes=0x40, num_partitions=40),
)
LIMIT = 1 << 20
MEMORIES = {name: Memory(generation) for name, generation in GENERATIONS.items()}
QUICK = settings(deadline=None, max_examples=150)


def good(made: Operand | MemoryFault) -> Operand:
    assert isinstance(made, Operand), made
    return made


def bad(made: object) -> tuple[int, int, int]:
    """Return address, element and lane of a fault, whose sentence must name the address."""
    assert isinstance(made, MemoryFault), made
    assert f"{made.address:#x}" in made.reason
    return made.address, made.element, made.lane


def filled(generation: Generation, seed: int = 0) -> Memory:
    """A memory whose bytes are random and, about half of them, written."""
    memory = Memory(generation, Policy(uninitialised="random", seed=seed))
    rng = np.random.default_rng(seed)
    for space in memory.spaces:
        space.written[...] = rng.integers(0, 2, space.written.shape) == 1
        space.flags_cleared()
    return memory


def plain_bytes(memory: Memory) -> dict[int, int]:
    return {
        space.address(partition, offset): int(value)
        for space in memory.spaces
        for (partition, offset), value in np.ndenumerate(space.data)
    }


def is_byte(generation: Generation, start: int, lane: int, address: int) -> bool:
    """Say whether a byte lies in the active part of the partition that belongs to `lane`."""
    place = locate(generation, start)
    if place is None:
        return False
    geometry = generation.sbuf if place.space == "sbuf" else generation.psum
    assert geometry is not None
    partition = place.partition + lane
    first = geometry.base + partition * geometry.partition_stride
    return partition < geometry.num_partitions and 0 <= address - first < geometry.active_bytes


def stride_at(generation: Generation, start: int) -> int:
    place = locate(generation, start)
    assert place is not None
    geometry = generation.sbuf if place.space == "sbuf" else generation.psum
    assert geometry is not None
    return geometry.partition_stride


def plain_direct(
    generation: Generation, pattern: AccessPattern, item_bytes: int, channels: int
) -> plain.PlainOperand:
    stride = stride_at(generation, pattern.start)
    return plain.direct_operand(
        pattern.start, pattern.step, pattern.num, item_bytes, channels, stride
    )


item_sizes = st.sampled_from([1, 2, 4])
steps = st.one_of(st.integers(-4, 4), st.integers(-30, 30))


@st.composite
def tiny_starts(draw: st.DrawFn, *, tidy: bool = False) -> int:
    name = draw(st.sampled_from(["sbuf", "psum"]))
    geometry = TINY.sbuf if name == "sbuf" else TINY.psum
    assert geometry is not None
    last = geometry.active_bytes if tidy else geometry.partition_stride
    partition = draw(st.integers(0, 20 if tidy else geometry.num_partitions - 1))
    return local_address(TINY, name, partition, draw(st.integers(0, last - 1)))


@st.composite
def tiny_patterns(draw: st.DrawFn, start: int | None = None) -> AccessPattern:
    dims = draw(st.integers(1, 4))
    step = tuple(draw(steps) for _ in range(dims))
    num = tuple(draw(st.integers(1, 5)) for _ in range(dims))
    return AccessPattern(draw(tiny_starts()) if start is None else start, step, num)


def check_against_plain(memory: Memory, operand: Operand, model: plain.PlainOperand) -> None:
    """Compare read, element access, flags, save, write and restore with the plain operand."""
    before = plain_bytes(memory)
    flags = {space.name: space.written.copy() for space in memory.spaces}
    data = {space.name: space.data.copy() for space in memory.spaces}
    assert operand.read().tolist() == plain.gather(before, model)
    for element in {0, operand.num_elements // 2, operand.num_elements - 1}:
        wanted = [plain.read_value(before, a[element], model.item_bytes) for a in model.addresses]
        assert operand.read_element(element).tolist() == wanted

    saved = operand.save()
    values = np.random.default_rng(1).integers(
        0, 1 << (8 * operand.item_bytes), (operand.channels, operand.num_elements), operand.dtype
    )
    operand.write(values)
    after = dict(before)
    plain.scatter(after, model, values.tolist())
    assert plain_bytes(memory) == after
    touched = {a + b for lane in model.addresses for a in lane for b in range(model.item_bytes)}
    for space in memory.spaces:
        for (partition, offset), flag in np.ndenumerate(space.written):
            was = flags[space.name][partition, offset]
            assert flag == (was or space.address(partition, offset) in touched)
    assert operand.is_written()
    assert operand.first_unwritten() in (None, operand.first_unwritten(index_only=True))

    operand.restore(saved)
    for space in memory.spaces:
        assert np.array_equal(space.data, data[space.name])
        assert np.array_equal(space.written, flags[space.name])


class TestAddresses:
    """The local address map (isa-encoding.md 3.3 and 3.4)."""

    @pytest.mark.parametrize(
        ("generation", "address", "place"),
        [
            (MARIANA, 0x0, Location("sbuf", 0, 0)),
            (MARIANA, 0x0800000, Location("sbuf", 32, 0)),
            (MARIANA, 0x1FFFFFF, Location("sbuf", 127, 0x3FFFF)),
            (MARIANA, 0x2100004, Location("psum", 32, 4)),
            (SUNDA, 0x7FFFF, Location("sbuf", 1, 0x3FFFF)),
            (CAYMAN, 0x23FFFFF, Location("psum", 127, 0x7FFF)),
            (CAYMAN, 0x2400000, None),
            (MARIANA, -1, None),
            (MAVERICK, 0x2000000, Location("sbuf", 32, 0)),
            (MAVERICK, 0x7FFFFFF, Location("sbuf", 127, 0xFFFFF)),
            (MAVERICK, 0x8000000, None),
        ],
    )
    def test_locate(self, generation: Generation, address: int, place: Location | None) -> None:
        assert locate(generation, address) == place
        if place is not None:
            back = local_address(generation, place.space, place.partition, place.offset)
            assert back == address

    def test_maverick_has_no_psum(self) -> None:
        assert MEMORIES["maverick"].psum is None
        with pytest.raises(InputError, match=r"^space must be sbuf on maverick, not 'psum'$"):
            local_address(MAVERICK, "psum", 0, 0)
        with pytest.raises(InputError, match=r"^space must be sbuf or psum on sunda, not 'dram'$"):
            MEMORIES["sunda"].space_named("dram")

    def test_a_pattern_has_as_many_steps_as_counts(self) -> None:
        with pytest.raises(ValueError, match="not 2 steps and 1 counts"):
            AccessPattern(0, (1, 1), (4,))
        with pytest.raises(ValueError, match="not 5 steps"):
            AccessPattern(0, (1,) * 5, (1,) * 5)


class TestPowerOn:
    """Policy `uninitialised`; nothing counts as written."""

    @pytest.mark.parametrize("name", GENERATIONS)
    def test_active_bytes_and_zeros(self, name: str) -> None:
        memory = Memory(GENERATIONS[name])
        for space in memory.spaces:
            assert space.data.shape == space.written.shape
            assert space.data.shape == (128, space.geometry.active_bytes)
            assert not space.data[:, -1].any()
            assert not space.written[:, -1].any()

    def test_nan_and_random(self) -> None:
        assert (Memory(TINY, Policy(uninitialised="nan")).sbuf.data == 0xFF).all()
        first, same, other = (
            Memory(TINY, Policy(uninitialised="random", seed=seed)) for seed in (5, 5, 6)
        )
        assert np.array_equal(first.sbuf.data, same.sbuf.data)
        assert not np.array_equal(first.sbuf.data, other.sbuf.data)
        assert first.psum is not None
        assert not np.array_equal(first.sbuf.data[:, :0x40], first.psum.data)


class TestDirectOperands:
    """Access patterns against plain loops."""

    @QUICK
    @given(tiny_patterns(), item_sizes, st.integers(1, 40))
    def test_equals_the_plain_loops(
        self, pattern: AccessPattern, item_bytes: int, channels: int
    ) -> None:
        assume(pattern.num_elements * channels < 4000)
        model = plain_direct(TINY, pattern, item_bytes, channels)
        memory = filled(TINY)
        made = memory.operand(pattern, item_bytes, channels, max_elements=LIMIT)
        first_bad = plain.first_bad_byte(
            model, lambda lane, address: is_byte(TINY, pattern.start, lane, address)
        )
        if first_bad is not None:
            assert bad(made) == first_bad
        else:
            check_against_plain(memory, good(made), model)

    @settings(deadline=None, max_examples=60)
    @given(st.data(), st.sampled_from(sorted(GENERATIONS)), item_sizes, st.integers(1, 128))
    def test_equals_the_plain_loops_on_real_generations(
        self, data: st.DataObject, name: str, item_bytes: int, channels: int
    ) -> None:
        generation, memory = GENERATIONS[name], MEMORIES[name]
        space = data.draw(st.sampled_from(memory.spaces))
        step = tuple(data.draw(st.integers(-40, 40)) for _ in range(3))
        num = tuple(data.draw(st.integers(1, 4)) for _ in range(3))
        low = sum(min(0, s * (n - 1)) for s, n in zip(step, num, strict=True)) * item_bytes
        high = sum(max(0, s * (n - 1)) for s, n in zip(step, num, strict=True)) * item_bytes
        offset = data.draw(st.integers(-low, space.geometry.active_bytes - item_bytes - high))
        partition = data.draw(st.integers(0, 128 - channels))
        pattern = AccessPattern(space.address(partition, offset), step, num)
        operand = good(memory.operand(pattern, item_bytes, channels, max_elements=LIMIT))
        model = plain_direct(generation, pattern, item_bytes, channels)

        values = np.random.default_rng(2).integers(
            0, 1 << (8 * item_bytes), (channels, prod(num)), operand.dtype
        )
        saved = operand.save()
        operand.write(values)
        written: dict[int, int] = {}
        plain.scatter(written, model, values.tolist())
        for address, value in written.items():
            place = locate(generation, address)
            assert place is not None
            assert space.data[place.partition, place.offset] == value
            assert space.written[place.partition, place.offset]
        assert operand.read().tolist() == plain.gather(written, model)
        assert np.count_nonzero(space.written[partition : partition + channels]) == len(written)
        operand.restore(saved)
        assert not space.written[partition : partition + channels].any()

    def test_x_is_fastest(self) -> None:
        memory = Memory(MARIANA)
        memory.sbuf.data[3, :12] = range(12)
        pattern = AccessPattern(3 * 0x40000 + 3, (-1, 4), (3, 2))
        operand = good(memory.operand(pattern, 1, 1, max_elements=LIMIT))
        assert operand.read().tolist() == [[3, 2, 1, 7, 6, 5]]
        assert isinstance(operand, DirectOperand)
        assert operand.view.tolist() == [[[3, 2, 1], [7, 6, 5]]]

    def test_the_last_repeated_destination_stays(self) -> None:
        memory = Memory(MARIANA)
        operand = good(memory.operand(AccessPattern(8, (1, 1), (3, 3)), 2, 2, max_elements=9))
        operand.write(np.arange(1, 19, dtype=np.uint16).reshape(2, 9))
        # Row 0: places 0..4 take elements 1, 4, 7, 8, 9; row 1 is nine more.
        words = memory.sbuf.data[:2, 8:18].copy().view(np.uint16)
        assert words.tolist() == [[1, 4, 7, 8, 9], [10, 13, 16, 17, 18]]
        operand = good(memory.operand(AccessPattern(0, (0,), (5,)), 1, 1, max_elements=5))
        operand.write(np.array([[5, 4, 3, 2, 1]], dtype=np.uint8))
        assert memory.sbuf.data[0, 0] == 1

    def test_one_run_per_lane_is_not_copied(self) -> None:
        memory = Memory(MARIANA)
        for step, num in [((1, 1, 1), (512, 1, 1)), ((1, 16), (16, 4)), ((-2,), (8,))]:
            operand = good(memory.operand(AccessPattern(0x40, step, num), 4, 128, max_elements=512))
            values = operand.read()
            assert np.shares_memory(values, memory.sbuf.data)
            assert not values.flags.writeable
        split = good(memory.operand(AccessPattern(64, (1, 17), (16, 4)), 4, 8, max_elements=64))
        assert not np.shares_memory(split.read(), memory.sbuf.data)

    def test_a_read_may_be_written_where_it_came_from(self) -> None:
        memory = Memory(MARIANA)
        memory.sbuf.data[0, :6] = range(6)
        source = good(memory.operand(AccessPattern(0, (1,), (5,)), 1, 1, max_elements=5))
        shifted = good(memory.operand(AccessPattern(1, (1,), (5,)), 1, 1, max_elements=5))
        shifted.write(source.read())
        assert memory.sbuf.data[0, :6].tolist() == [0, 0, 1, 2, 3, 4]

    def test_values_must_have_type_and_shape(self) -> None:
        operand = good(
            MEMORIES["mariana"].operand(AccessPattern(0, (1,), (4,)), 4, 2, max_elements=4)
        )
        with pytest.raises(ValueError, match=r"^values must be uint32 of shape \(2, 4\), not"):
            operand.write(np.zeros((2, 5), dtype=np.uint32))
        with pytest.raises(ValueError, match=r"not uint16 of shape \(2, 4\)$"):
            operand.write(np.zeros((2, 4), dtype=np.uint16))

    def test_a_flag_cleared_by_restore_is_marked_again(self) -> None:
        memory = Memory(TINY)
        operand = good(memory.operand(AccessPattern(0, (1,), (4,)), 4, 2, max_elements=4))
        values = np.ones((2, 4), dtype=np.uint32)
        saved = operand.save()
        for _ in range(2):
            assert not operand.is_written()
            operand.write(values)
            assert operand.is_written()
            assert memory.sbuf.written[:2, :16].all()
            operand.restore(saved)
            assert not memory.sbuf.written.any()

    def test_a_large_area_is_looked_at_once(self) -> None:
        """Parts of an area that was written are known; what lies beside it is not, nor gaps."""
        memory = Memory(MARIANA)

        def operand(address: int, n: int, channels: int = 128, step: int = 1) -> Operand:
            pattern = AccessPattern(address, (step,), (n,))
            return good(memory.operand(pattern, 4, channels, max_elements=n))

        whole = operand(0x100, 256)
        whole.write(np.ones((128, 256), np.uint32))
        assert operand(0x100, 256).is_written()
        assert operand(0x4FC, 1, channels=1).is_written()
        assert not operand(0x104, 256).is_written()
        assert not operand(0xFC, 256).is_written()

        gaps = operand(0x2000, 128, step=2)
        gaps.write(np.ones((128, 128), np.uint32))
        assert not operand(0x2000, 255).is_written()

    def test_a_large_area_is_forgotten_when_flags_are_cleared(self) -> None:
        memory = Memory(MARIANA)
        pattern = AccessPattern(0x100, (1,), (256,))
        operand = good(memory.operand(pattern, 4, 128, max_elements=256))
        saved = operand.save()
        operand.write(np.ones((128, 256), np.uint32))
        operand.restore(saved)

        again = good(memory.operand(pattern, 4, 128, max_elements=256))
        assert again.first_unwritten() == 0x100
        again.write(np.ones((128, 256), np.uint32))
        assert memory.sbuf.written[:, 0x100:0x500].all()


class TestFaults:
    """First bad addresses worked out by hand; each fault names what would be accepted."""

    @pytest.mark.parametrize(
        ("generation", "pattern", "item_bytes", "channels", "fault"),
        [
            # Past the active bytes: 0x3fff0 + 4 * 4 = 0x40000, which is partition 1's first byte.
            (MARIANA, AccessPattern(0x3FFF0, (1,), (8,)), 4, 1, (0x40000, 4, 0)),
            (SUNDA, AccessPattern(0x2FFF8, (1,), (4,)), 4, 128, (0x30000, 2, 0)),
            (CAYMAN, AccessPattern(0x37FFC, (1, 1), (1, 2)), 4, 1, (0x38000, 1, 0)),
            (MAVERICK, AccessPattern(0x17FFFF, (1,), (2,)), 1, 1, (0x180000, 1, 0)),
            # A start in the hole; an element that straddles its edge.
            (SUNDA, AccessPattern(0x70010, (1,), (4,)), 4, 128, (0x70010, 0, 0)),
            (SUNDA, AccessPattern(0x2FFFE, (1,), (1,)), 4, 1, (0x30000, 0, 0)),
            # Out of the hole back into the partition is still bad at its first element.
            (SUNDA, AccessPattern(0x30004, (-1,), (8,)), 4, 1, (0x30004, 0, 0)),
            # Before the partition's start: offsets 8, 4, 0, -4 of partition 2.
            (MARIANA, AccessPattern(0x80008, (-1,), (4,)), 4, 8, (0x7FFFC, 3, 0)),
            (MARIANA, AccessPattern(0x4, (-2,), (3,)), 2, 1, (-4, 2, 0)),
            # An element that begins before the start is bad at its first byte.
            (MARIANA, AccessPattern(0x40002, (-1,), (2,)), 4, 1, (0x3FFFE, 1, 0)),
            # Y steps back by 6 elements: rows at offsets 0x10, 0x4, -0x8; 6th element of X 3.
            (MARIANA, AccessPattern(0x10, (1, -6), (3, 3)), 2, 1, (-8, 6, 0)),
            # Past the last partition: lane 128 - 120, at element 0, although element 4 is bad too.
            (MARIANA, AccessPattern(0x23C3FF0, (1,), (8,)), 4, 16, (0x2403FF0, 0, 8)),
            (MARIANA, AccessPattern(0x1F80000, (1,), (8,)), 4, 3, (0x2000000, 0, 2)),
            # PSUM's own active bytes and end.
            (MARIANA, AccessPattern(0x2003FFC, (1,), (2,)), 4, 128, (0x2004000, 1, 0)),
            (MARIANA, AccessPattern(0x2400000, (1,), (2,)), 4, 1, (0x2400000, 0, 0)),
            (MAVERICK, AccessPattern(0x8000000, (1,), (2,)), 4, 1, (0x8000000, 0, 0)),
            # 65535^4 elements: X and Y stay in place, Z = 4 reaches offset 4 * 0x7fff * 2.
            (
                CAYMAN,
                AccessPattern(0, (0, 0, 0x7FFF, 0), (65535,) * 4),
                2,
                1,
                (0x3FFF8, 65535 * 65535 * 4, 0),
            ),
        ],
    )
    def test_first_bad_byte(
        self,
        generation: Generation,
        pattern: AccessPattern,
        item_bytes: int,
        channels: int,
        fault: tuple[int, int, int],
    ) -> None:
        memory = MEMORIES[generation.name]
        made = memory.operand(pattern, item_bytes, channels, max_elements=LIMIT)
        assert bad(made) == fault

    def test_sentences(self) -> None:
        def reason(address: int, channels: int = 1, step: int = 1) -> str:
            pattern = AccessPattern(address, (step,), (8,))
            made = MEMORIES["sunda"].operand(pattern, 4, channels, max_elements=LIMIT)
            assert isinstance(made, MemoryFault)
            return made.reason

        assert reason(0x6FFFC) == (
            "offset in sbuf partition 1 must be below 0x30000, not 0x30000"
            " (address 0x70000, element 1, lane 0)"
        )
        assert reason(0x40000, step=-1) == (
            "offset in sbuf partition 1 must be 0x0 or above, not -0x4"
            " (address 0x3fffc, element 1, lane 0)"
        )
        assert reason(0x2000000, channels=129) == (
            "psum partition must be below 128, not 128 (address 0x2400000, element 0, lane 128)"
        )
        assert reason(0x3000000) == (
            "address must be in sbuf (0x0 to 0x1ffffff) or psum (0x2000000 to 0x23fffff),"
            " not 0x3000000"
        )

    def test_counts(self) -> None:
        def reason(pattern: Pattern, item_bytes: int = 4, channels: int = 1) -> str:
            made = MEMORIES["mariana"].operand(pattern, item_bytes, channels, max_elements=100)
            assert isinstance(made, MemoryFault)
            return made.reason

        assert reason(AccessPattern(0, (1, 1), (4, 0))) == "num_elem must be at least 1, not 0"
        assert reason(IndirectPattern(0, 0, 0)) == "num_elem must be at least 1, not 0"
        one = AccessPattern(0, (1,), (1,))
        assert reason(one, channels=0) == "channels must be at least 1, not 0"
        assert reason(one, item_bytes=0) == "element size must be 1, 2, 4 or 8 bytes, not 0"
        huge = AccessPattern(0, (0,) * 4, (65535,) * 4)
        assert reason(huge) == (
            f"elements in a partition must be at most 100 (policy max_elements), not {65535**4}"
        )
        assert reason(IndirectPattern(0, 0, 101)).endswith("not 101")
        most = AccessPattern(0, (0, 1), (25, 4))
        assert isinstance(MEMORIES["mariana"].operand(most, 4, 1, max_elements=100), Operand)

    def test_nothing_is_touched(self) -> None:
        memory = Memory(TINY)
        memory.operand(AccessPattern(0x58, (1,), (4,)), 4, 1, max_elements=4)
        assert not memory.sbuf.data.any()
        assert not memory.sbuf.written.any()


class TestWrittenFlags:
    """Bytes that were read before anything wrote them (cases/users.md 13)."""

    @QUICK
    @given(tiny_patterns(), item_sizes, st.integers(1, 20), st.sampled_from([0.5, 0.95, 1.0]))
    def test_first_unwritten(
        self, pattern: AccessPattern, item_bytes: int, channels: int, share: float
    ) -> None:
        assume(pattern.num_elements * channels < 3000)
        memory = Memory(TINY)
        made = memory.operand(pattern, item_bytes, channels, max_elements=LIMIT)
        assume(isinstance(made, Operand))
        operand = good(made)
        rng = np.random.default_rng(3)
        operand.space.written[...] = rng.random(operand.space.written.shape) < share

        model = plain_direct(TINY, pattern, item_bytes, channels)
        base, stride = operand.space.geometry.base, operand.space.geometry.partition_stride
        written = operand.space.written
        first = plain.first_bad_byte(
            model, lambda _, address: bool(written[divmod(address - base, stride)])
        )
        assert operand.first_unwritten() == (None if first is None else first[0])
        assert operand.is_written() == (first is None)

    def test_a_region_never_written(self) -> None:
        memory = Memory(MARIANA)
        source = good(memory.operand(AccessPattern(0x1000, (1,), (4,)), 4, 2, max_elements=4))
        assert source.first_unwritten() == 0x1000
        first = good(memory.operand(AccessPattern(0x1000, (1,), (1,)), 4, 2, max_elements=4))
        first.write(np.zeros((2, 1), dtype=np.uint32))
        assert source.first_unwritten() == 0x1004
        memory.sbuf.written[0] = True
        assert source.first_unwritten() == 0x41004
        memory.sbuf.written[1, :0x1006] = True
        assert source.first_unwritten() == 0x41006
        memory.sbuf.written[1] = True
        assert source.first_unwritten() is None
        assert source.is_written()


class TestStreamOrder:
    """Read element i in all lanes, compute, write element i in all lanes, then go on."""

    @staticmethod
    def matters(source: plain.PlainOperand, destination: plain.PlainOperand) -> bool:
        """The definition: some byte that position i writes is read at a position j > i."""
        written: set[int] = set()
        for element in range(len(source.addresses[0])):
            for lane in source.addresses:
                if any(lane[element] + b in written for b in range(source.item_bytes)):
                    return True
            for lane in destination.addresses:
                written.update(lane[element] + b for b in range(destination.item_bytes))
        return False

    @staticmethod
    def mix(value: int) -> int:
        """Depend on every bit and on how often it was applied."""
        return (value * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF

    @settings(deadline=None, max_examples=400)
    @given(st.data(), item_sizes, item_sizes, st.integers(1, 20))
    def test_equals_the_plain_loops(
        self, data: st.DataObject, source_bytes: int, destination_bytes: int, channels: int
    ) -> None:
        start = data.draw(tiny_starts(tidy=True))
        delta = data.draw(st.one_of(st.just(0), st.integers(-8, 8)))
        lanes = data.draw(st.sampled_from([0, 0, 1, -1, 5, 30])) * stride_at(TINY, start)
        pattern = data.draw(tiny_patterns(start))
        other = data.draw(
            st.one_of(
                st.just(pattern),
                st.permutations(range(len(pattern.num))).map(
                    lambda order: AccessPattern(
                        start,
                        tuple(pattern.step[i] for i in order),
                        tuple(pattern.num[i] for i in order),
                    )
                ),
                tiny_patterns(start),
            )
        )
        other = evolve(other, start=start + delta + lanes)
        if other.num_elements != pattern.num_elements:
            other = AccessPattern(other.start, (other.step[0],), (pattern.num_elements,))
        memory = filled(TINY)
        made = [
            memory.operand(pattern, source_bytes, channels, max_elements=LIMIT),
            memory.operand(other, destination_bytes, channels, max_elements=LIMIT),
        ]
        assume(all(isinstance(operand, Operand) for operand in made))
        source, destination = (good(operand) for operand in made)
        plain_source = plain_direct(TINY, pattern, source_bytes, channels)
        plain_destination = plain_direct(TINY, other, destination_bytes, channels)

        verdict = stream_order_matters(source, destination)
        assert verdict == self.matters(plain_source, plain_destination)
        bits = 8 * destination_bytes
        expected = plain_bytes(memory)
        plain.stream_apply(
            expected, plain_source, plain_destination, lambda v: self.mix(v) % (1 << bits)
        )
        if verdict:
            for element in range(source.num_elements):
                mixed = [self.mix(v) % (1 << bits) for v in source.read_element(element).tolist()]
                destination.write_element(element, np.array(mixed, destination.dtype))
        else:
            rows = source.read().tolist()
            mixed_rows = [[self.mix(v) % (1 << bits) for v in row] for row in rows]
            destination.write(np.array(mixed_rows, destination.dtype))
        assert plain_bytes(memory) == expected
        assert destination.is_written()

    def make(self, memory: Memory, start: int, step: int, num: int, item: int = 4) -> Operand:
        return good(memory.operand(AccessPattern(start, (step,), (num,)), item, 4, max_elements=64))

    def test_by_hand(self) -> None:
        memory = Memory(MARIANA)
        source = self.make(memory, 0x100, 1, 8)
        assert not stream_order_matters(source, self.make(memory, 0x100, 1, 8))
        assert not stream_order_matters(source, self.make(memory, 0x200, 1, 8))
        # One further on, element i is overwritten before it is read; one back, after.
        assert stream_order_matters(source, self.make(memory, 0x104, 1, 8))
        assert not stream_order_matters(source, self.make(memory, 0xFC, 1, 8))
        # A reversal in place reads its second half after writing it.
        assert stream_order_matters(source, self.make(memory, 0x11C, -1, 8))
        # bf16 written over its own fp32 source trails behind; fp32 over bf16 runs ahead.
        assert not stream_order_matters(source, self.make(memory, 0x100, 1, 8, 2))
        assert stream_order_matters(self.make(memory, 0x100, 1, 8, 2), source)
        # In place with a zero step reads what the element before has written.
        still = self.make(memory, 0x100, 0, 8)
        assert stream_order_matters(still, still)

    def test_partitions_and_spaces(self) -> None:
        memory = Memory(MARIANA)
        source = self.make(memory, 0x100, 1, 8)
        assert stream_order_matters(source, self.make(memory, 3 * 0x40000 + 0x104, 1, 8))
        assert not stream_order_matters(source, self.make(memory, 4 * 0x40000 + 0x104, 1, 8))
        psum = self.make(memory, 0x2000104, 1, 8)
        assert not stream_order_matters(source, psum)
        assert not source.overlaps(psum)
        assert source.overlaps(self.make(memory, 0x11C, 1, 8))
        assert not source.overlaps(self.make(memory, 0x120, 1, 8))
        assert not source.overlaps(self.make(memory, 0xE0, 1, 8))

    def test_indirect_is_careful(self) -> None:
        memory = Memory(MARIANA)
        gather = good(memory.operand(IndirectPattern(0x8000, 0x100, 8), 4, 4, max_elements=8))
        # Every offset is 0, so the data is the word at 0x100.
        assert stream_order_matters(gather, self.make(memory, 0x100, 1, 8))
        assert stream_order_matters(self.make(memory, 0x100, 1, 8), gather)
        assert not stream_order_matters(gather, self.make(memory, 0x104, 1, 8))


def write_index(memory: Memory, address: int, offsets: list[list[int]]) -> None:
    """Store offsets[group][i] where isa-encoding.md 4.3 says, byte by byte."""
    place = locate(memory.generation, address)
    assert place is not None
    for group, row in enumerate(offsets):
        for i, offset in enumerate(row):
            partition = place.partition + 16 * group + i % 16
            at = place.offset + 4 * (i // 16)
            for byte, value in enumerate(offset.to_bytes(4, "little")):
                if partition < len(memory.sbuf.data) and at + byte < memory.sbuf.data.shape[1]:
                    memory.sbuf.data[partition, at + byte] = value
                    memory.sbuf.written[partition, at + byte] = True


class TestIndirectOperands:
    """Gather and scatter (isa-encoding.md 4.3)."""

    @QUICK
    @given(st.data(), item_sizes, st.integers(1, 40), st.integers(1, 40))
    @example(data=None, item_bytes=4, channels=20, num_elements=3)
    def test_equals_the_plain_loops(
        self, data: st.DataObject | None, item_bytes: int, channels: int, num_elements: int
    ) -> None:
        index_address, data_address, largest = 0x40, 0x4000 + 5 * 0x80, 3
        if data is not None:
            index_address = 4 * data.draw(st.integers(0, 0x19)) + 0x100 * data.draw(
                st.one_of(st.just(0), st.integers(0, 39))
            )
            data_address = data.draw(tiny_starts(tidy=True))
            largest = data.draw(st.sampled_from([0, 3, 12, 1 << 32]))
        memory = filled(TINY)
        groups = -(-channels // 16)
        rng = np.random.default_rng(num_elements)
        offsets = rng.integers(0, largest, (groups, num_elements), endpoint=largest < 1 << 32)
        write_index(memory, index_address, offsets.tolist())
        pattern = IndirectPattern(index_address, data_address, num_elements)
        made = memory.operand(pattern, item_bytes, channels, max_elements=LIMIT)

        first_bad = self.first_bad_index(pattern, groups)
        if first_bad is None:
            model = plain.indirect_operand(
                plain_bytes(memory),
                index_address,
                data_address,
                num_elements,
                item_bytes,
                channels,
                index_stride=0x100,
                data_stride=stride_at(TINY, data_address),
                group_size=16,
            )
            first_bad = plain.first_bad_byte(
                model, lambda lane, address: is_byte(TINY, data_address, lane, address)
            )
        if first_bad is not None:
            assert bad(made) == first_bad
        else:
            check_against_plain(memory, good(made), model)

    @staticmethod
    def first_bad_index(pattern: IndirectPattern, groups: int) -> tuple[int, int, int] | None:
        partition, offset = divmod(pattern.index_address, 0x100)
        for element in range(pattern.num_elements):
            for group in range(groups):
                row = partition + 16 * group + element % 16
                column = offset + 4 * (element // 16)
                for byte in range(column, column + 4):
                    if row >= 40 or byte >= 0x60:
                        return 0x100 * row + byte, element, 16 * group
        return None

    def test_gather_by_hand(self) -> None:
        memory = Memory(MARIANA)
        lanes = np.arange(32, dtype=np.uint16)[:, None]
        memory.sbuf.data[:32, 0x100:0x150].view(np.uint16)[...] = 100 * lanes + np.arange(40)
        write_index(memory, 0x2000, [[39, 0, 7], [1, 1, 2]])
        operand = good(memory.operand(IndirectPattern(0x2000, 0x100, 3), 2, 32, max_elements=3))
        values = operand.read()
        assert values[0].tolist() == [39, 0, 7]
        assert values[15].tolist() == [1539, 1500, 1507]
        assert values[16].tolist() == [1601, 1601, 1602]
        assert values[31].tolist() == [3101, 3101, 3102]

    def test_the_last_repeated_destination_stays(self) -> None:
        memory = Memory(MARIANA)
        write_index(memory, 0x2000, [[4, 2, 4, 2, 4]])
        operand = good(memory.operand(IndirectPattern(0x2000, 0x100, 5), 1, 2, max_elements=5))
        operand.write(np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]], dtype=np.uint8))
        assert memory.sbuf.data[:2, 0x100:0x105].tolist() == [[0, 0, 4, 0, 5], [0, 0, 9, 0, 10]]

    def test_values_may_be_the_rows_that_are_written(self) -> None:
        memory = Memory(MARIANA)
        memory.sbuf.data[:48, 0x100] = np.arange(48)
        write_index(memory, 0x2000, [[0], [0]])
        pattern = IndirectPattern(0x2000, 16 * 0x40000 + 0x100, 1)
        destination = good(memory.operand(pattern, 1, 32, max_elements=1))
        source = good(memory.operand(AccessPattern(0x100, (1,), (1,)), 1, 32, max_elements=1))
        destination.write(source.read())
        assert memory.sbuf.data[16:48, 0x100].tolist() == list(range(32))

    @pytest.mark.parametrize(
        ("pattern", "channels", "fault"),
        [
            # Not a place for an index: unaligned, PSUM, nowhere.
            (IndirectPattern(0x2002, 0, 4), 16, (0x2002, 0, 0)),
            (IndirectPattern(0x2000000, 0, 4), 16, (0x2000000, 0, 0)),
            (IndirectPattern(0x3000000, 0, 4), 16, (0x3000000, 0, 0)),
            (IndirectPattern(0x2000, 0x3000000, 4), 16, (0x3000000, 0, 0)),
            # 17 offsets need column 1, which lies past 0x40000 of partition 0.
            (IndirectPattern(0x3FFFC, 0, 17), 16, (0x40000, 16, 0)),
            # Partition 120 + 8 holds offset 8 of a list, even for one channel.
            (IndirectPattern(120 * 0x40000, 0, 9), 1, (0x2000000, 8, 0)),
            # Group 1 starts at partition 112 + 16.
            (IndirectPattern(112 * 0x40000, 0, 2), 17, (0x2000000, 0, 16)),
            # The data itself past the last partition: lane 4 of partition 124.
            (IndirectPattern(0x2000, 124 * 0x40000, 1), 16, (0x2000000, 0, 4)),
        ],
    )
    def test_first_bad_byte(
        self, pattern: IndirectPattern, channels: int, fault: tuple[int, int, int]
    ) -> None:
        made = MEMORIES["mariana"].operand(pattern, 4, channels, max_elements=LIMIT)
        assert bad(made) == fault

    def test_offset_out_of_range(self) -> None:
        memory = Memory(MARIANA)
        write_index(memory, 0x2000, [[0, 0, 0], [0, 0xFFFF, 0x10000]])
        pattern = IndirectPattern(0x2000, 0x40004, 3)
        # 0x40004 + 16 lanes, offset 4 + 4 * 0xffff = 0x40000 of partition 17.
        assert bad(memory.operand(pattern, 4, 32, max_elements=3)) == (0x480000, 1, 16)
        assert isinstance(memory.operand(pattern, 4, 16, max_elements=3), Operand)
        # Partition 125 has room for 3 lanes, but the offset of lane 0 is bad before that.
        made = memory.operand(IndirectPattern(0x42000, 125 * 0x40000 + 8, 1), 4, 16, max_elements=1)
        assert bad(made) == (0x2000008, 0, 3)
        memory.sbuf.data[1, 0x2002] = 1
        made = memory.operand(IndirectPattern(0x42000, 125 * 0x40000 + 8, 1), 4, 16, max_elements=1)
        assert bad(made) == (126 * 0x40000 + 8, 0, 0)
        write_index(memory, 0x2000, [[0, 0xFFFFFFFF]])
        made = memory.operand(pattern, 4, 16, max_elements=3)
        assert bad(made) == (0x40004 + 4 * 0xFFFFFFFF, 1, 0)

    def test_an_index_in_a_hole_is_bad_in_its_first_lane(self) -> None:
        # Partition 30, past its 0x60 bytes; group 1 would also start past partition 39.
        made = filled(TINY).operand(IndirectPattern(0x1E64, 0, 1), 4, 32, max_elements=1)
        assert bad(made) == (0x1E64, 0, 0)

    def test_a_part_of_a_group_uses_its_whole_list(self) -> None:
        memory = Memory(MARIANA)
        memory.sbuf.data[0, 0x100:0x120] = range(32)
        write_index(memory, 0x2000, [list(range(31, -1, -1))])
        operand = good(memory.operand(IndirectPattern(0x2000, 0x100, 32), 1, 1, max_elements=32))
        assert operand.read().tolist() == [list(range(31, -1, -1))]

    def test_unwritten_index_bytes_come_first(self) -> None:
        memory = Memory(MARIANA)
        write_index(memory, 0x2000, [[0, 1]])
        memory.sbuf.written[1, 0x2002] = False
        pattern = IndirectPattern(0x2000, 0x100, 2)
        operand = good(memory.operand(pattern, 2, 4, max_elements=2))
        assert operand.first_unwritten() == 0x42002
        assert operand.first_unwritten(index_only=True) == 0x42002
        memory.sbuf.written[1, 0x2002] = True
        operand = good(memory.operand(pattern, 2, 4, max_elements=2))
        assert operand.first_unwritten() == 0x100
        assert operand.first_unwritten(index_only=True) is None
        memory.sbuf.written[:3, 0x100:0x104] = True
        assert operand.first_unwritten() == 3 * 0x40000 + 0x100
        memory.sbuf.written[3, 0x100:0x103] = True
        assert operand.first_unwritten() == 3 * 0x40000 + 0x103
        assert not operand.is_written()

    def test_the_index_is_latched(self) -> None:
        memory = Memory(MARIANA)
        memory.sbuf.data[0, :4] = [10, 11, 12, 13]
        write_index(memory, 0x2000, [[3]])
        operand = good(memory.operand(IndirectPattern(0x2000, 0, 1), 1, 1, max_elements=1))
        write_index(memory, 0x2000, [[2]])
        assert operand.read().tolist() == [[13]]


def test_space_shows_its_size() -> None:
    assert repr(Space("psum", TINY.psum or TINY.sbuf, Policy())) == "Space('psum', 40 x 0x40 bytes)"
