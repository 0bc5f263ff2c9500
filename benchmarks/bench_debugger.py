"""What the debugger costs: a flash-attention-like stream run plainly, under it, and with undo.

    python benchmarks/bench_debugger.py [--words 400] [--rounds 7]

The three ways take turns and processor time is counted, so that other work on the machine
disturbs little; the ratio is the median of the rounds' own. The limits are those of the project:
5 % without breakpoints, 50 % with undo.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from neuron_emu import Machine, Program
from neuron_emu.debug import Debugger

TILE = """
EXPONENTIAL src=fp32@0x1000[1,1,1][512,1,1] dst=bf16@0x4000[1,1,1][512,1,1] channels=128 max_value=[fp32@0xc000] accumulator_cmd=ZERO_ACCUMULATE
DVE_READ_ACCUMULATOR dst=fp32@0xd000[1][1] channels=128
EXPONENTIAL src=fp32@0xc000[1,1,1][1,1,1] dst=fp32@0xd004[1,1,1][1,1,1] channels=128 max_value=[fp32@0xc004] accumulator_cmd=IDLE
TENSOR_SCALAR src=fp32@0xd000[1,1,1][1,1,1] dst=fp32@0xd008[1,1,1][1,1,1] channels=128 ops=MULTIPLY,BYPASS imm0=[fp32@0xd004]
"""  # noqa: E501


def _machine() -> Machine:
    machine = Machine()
    generator = np.random.default_rng(0)
    machine.write("sbuf:0+0x1000:fp32[128,512]", -generator.random((128, 512), np.float32) * 8)
    machine.write("sbuf:0+0xc000:fp32[128,2]", np.zeros((128, 2), np.float32))
    return machine


def _timed(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def main() -> int:
    """Print the ratios; return 1 when one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    program = Program.from_text("ACT_TABLE_LOAD table_sel=0\n" + TILE * (options.words // 4))
    times: dict[str, list[float]] = {"plain": [], "debugger": [], "undo": []}
    for number in range(options.rounds + 1):
        # Machines of their own, so that each way begins with the same cold memory and tables.
        plain = _machine()
        plain.load(program)
        watched = Debugger(_machine(), program, records=False)
        recorded = Debugger(_machine(), program)
        taken = {
            "plain": _timed(plain.run),
            "debugger": _timed(watched.cont),
            "undo": _timed(recorded.cont),
        }
        if number:  # the first round fills caches
            for name, seconds in taken.items():
                times[name].append(seconds)
    base = statistics.median(times["plain"])
    print(f"plain: {base / options.words * 1e6:.1f} us a word")
    status = 0
    for name, limit in (("debugger", 1.05), ("undo", 1.50)):
        ratios = [t / p for t, p in zip(times[name], times["plain"], strict=True)]
        ratio = statistics.median(ratios)
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"{name}: {ratio:.3f} of it (rounds {spread}; limit {limit})")
        status |= ratio > limit
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
