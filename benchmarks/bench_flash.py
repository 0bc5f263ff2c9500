"""Flash attention over four K tiles of 512 on DVE and ACT, against the same sums in numpy.

    python benchmarks/bench_flash.py

Both are timed in this run, so that the ratio holds on any machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program, Stream
from neuron_emu.machine import Machine

TILES, WIDTH, LANES, SCALE = 4, 512, 128, 0.125


def listings() -> dict[Engine, str]:
    """Return the streams of the two engines."""
    dve = """
MEMSET dst=fp32@0x100[1][1] channels=128 set_value=0xff800000
MEMSET dst=fp32@0x114[1][1] channels=128 set_value=0x0
"""
    act = "ACT_TABLE_LOAD table_sel=0\n"
    for tile in range(TILES):
        dve += f"""
TENSOR_SCALAR_CACHE_REDUCE src=fp32@0x{0x2000000 + 4 * WIDTH * tile:x}[1][{WIDTH}] dst=fp32@0x1000[1][{WIDTH}] channels=128 ops=MULTIPLY,MAX imm0=fp32@{SCALE} accumulator_cmd=LOAD_ACCUMULATE reduce_init=[fp32@0x100]
DVE_READ_ACCUMULATOR dst=fp32@0x104[1][1] channels=128
DVE_READ_ACCUMULATOR S[1]++@complete dst=fp32@0x108[1][1] channels=128 negated=1
SCALAR_TENSOR_TENSOR S[2]>={tile + 1} src0=fp32@0x114[1][1] src1=fp32@0x110[1][1] dst=fp32@0x114[1][1] ops=MULTIPLY,ADD channels=128 imm=[fp32@0x10c]
COPY src=fp32@0x104[1][1] dst=fp32@0x100[1][1] channels=128
"""
        act += f"""
ACTIVATE S[1]>={tile + 1} EXP bias_ptr=fp32@0x108 src=fp32@0x100[1][1] dst=fp32@0x10c[1][1] channels=128 accumulator_cmd=IDLE
ACTIVATE EXP bias_ptr=fp32@0x108 src=fp32@0x1000[1][{WIDTH}] dst=bf16@0x{0x8000 + 2 * WIDTH * tile:x}[1][{WIDTH}] channels=128 accumulator_cmd=ZERO_ACCUMULATE
ACTIVATION_READ_ACCUMULATOR S[2]++@complete dst=fp32@0x110[1][1] channels=128
"""
    return {Engine.DVE: dve, Engine.ACT: act}


def in_numpy(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the running sums, as a numpy user writes it."""
    maximum = np.full((LANES, 1), -np.inf, np.float32)
    total = np.zeros((LANES, 1), np.float32)
    for tile in range(TILES):
        scaled = scores[:, tile * WIDTH : (tile + 1) * WIDTH] * np.float32(SCALE)
        higher = np.maximum(maximum, scaled.max(axis=1, keepdims=True))
        correction = np.exp(maximum - higher)
        total = total * correction + np.exp(scaled - higher).sum(axis=1, keepdims=True)
        maximum = higher
    return total


def best_of(action: Callable[[], object], rounds: int = 9) -> float:
    """Return the shortest time of several rounds, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print times and the ratio."""
    scores = np.random.default_rng(0).standard_normal((LANES, TILES * WIDTH)).astype(np.float32)
    program = Program(
        streams=tuple(
            Stream(engine=engine, data=assemble(text), name=engine.name.lower())
            for engine, text in listings().items()
        )
    )
    machine = Machine("mariana")
    machine.write("psum:0+0:fp32[128,2048]", scores)

    def emulate() -> None:
        machine.sync.semaphores[:] = [0] * len(machine.sync.semaphores)
        assert machine.run(program).fault is None

    emulate()
    ours, theirs = best_of(emulate), best_of(lambda: in_numpy(scores))
    words = sum(len(stream) for stream in program.streams)
    print(f"emulated {ours * 1e3:.2f} ms for {words} words, numpy {theirs * 1e3:.2f} ms")
    print(f"ratio {ours / theirs:.1f}")


if __name__ == "__main__":
    main()
