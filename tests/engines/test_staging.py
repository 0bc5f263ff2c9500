"""Buffers of large results, and the large words that use them, against small words."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_emu import Machine, Program
from neuron_emu.engines.staging import BLOCK, Staging, lane_blocks
from neuron_emu.isa.enums import Engine
from neuron_emu.policy import Policy


class TestStaging:
    def test_a_buffer_is_used_again_when_nothing_refers_to_it(self) -> None:
        staging = Staging()
        first = staging.empty((4, 100), np.float32)
        address = first.ctypes.data
        del first

        assert staging.empty((100,), np.uint16).ctypes.data == address

    def test_what_is_held_is_never_handed_out(self) -> None:
        """A view of a view is enough to hold it."""
        staging = Staging()
        held = staging.empty((4, 100), np.uint32).view(np.float32)[1:2].reshape(-1)
        held[:] = 1
        for value in range(8):
            staging.empty((4, 100), np.uint32)[:] = value

        assert (held == 1).all()

    def test_more_than_it_keeps(self) -> None:
        """Arrays of growing size at the same time keep their contents."""
        staging = Staging()
        arrays = [staging.empty((1000 * n,), np.int64) for n in range(1, 9)]
        for number, array in enumerate(arrays):
            array[:] = number

        assert [set(array.tolist()) for array in arrays] == [{n} for n in range(8)]

    @pytest.mark.parametrize("shape", [(1, 1), (128, 1), (128, 300), (3, BLOCK + 1), (128, 8192)])
    def test_blocks_cover_every_lane_once(self, shape: tuple[int, int]) -> None:
        lanes = np.arange(shape[0])

        assert np.array_equal(np.concatenate([lanes[b] for b in lane_blocks(shape)]), lanes)


def _line(channels: int, n: int, src: str, dst: str, maximum: str, *, first_lane: int = 0) -> str:
    lane = first_lane * 0x40000
    pointer = maximum.format(0x28000 + lane)
    return (
        f"EXPONENTIAL src={src}@{0x1000 + lane:#x}[1][{n}] dst={dst}@{0x10000 + lane:#x}[1][{n}]"
        f" channels={channels} max_value={pointer} accumulator_cmd=ZERO_ACCUMULATE"
    )


class TestLargeWords:
    """A word of many lanes gives what one word for each lane gives."""

    CASES = (
        ("fp32", "fp32", "[fp32@{:#x}]", {}),
        ("fp32", "bf16", "fp32@0.75", {}),
        ("fp32", "bf16", "fp32@inf", {"evaluator": "silicon"}),
        ("fp32", "fp16", "[fp32@{:#x}]", {"acc_source": "after_conversion"}),
        ("bf16", "bf16", "fp32@-1.0", {}),
    )

    @pytest.mark.parametrize(("src", "dst", "maximum", "policy"), CASES)
    def test_as_lane_by_lane(
        self, src: str, dst: str, maximum: str, policy: dict[str, str]
    ) -> None:
        channels, n = 32, 3000
        random = np.random.default_rng(0)
        values = random.normal(size=(channels, n)).astype(np.float32)
        values[3, 5:9] = [np.nan, np.inf, -np.inf, -0.0]
        values[7] = -np.inf
        values.view(np.uint32)[9, 1] = 0x7F812345
        maxima = random.normal(size=(channels, 1)).astype(np.float32)
        maxima[7], maxima[8] = -np.inf, np.nan
        results = []
        for lanes in (channels, 1):
            # A lane by itself may start at a partition where a legal word cannot.
            machine = Machine(policy=Policy(invalid="warn", **policy))
            machine.preload("exp_and_others")
            machine.write(f"sbuf:0+0x1000:{src}[{channels},{n}]", values)
            machine.write(f"sbuf:0+0x28000:fp32[{channels},1]", maxima)
            sums = np.zeros(channels, np.float32)
            for first in range(0, channels, lanes):
                line = _line(lanes, n, src, dst, maximum, first_lane=first)
                assert machine.run(Program.from_text(line)).is_clean
                sums[first : first + lanes] = machine.engine(Engine.DVE).accumulator.values[:lanes]
            out = machine.read(f"sbuf:0+0x10000:{dst}:bits[{channels},{n}]")
            results.append((out, sums.view(np.uint32)))

        for whole, single in zip(*results, strict=True):
            assert np.array_equal(whole, single)
