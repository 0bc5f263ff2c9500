"""What the sanitizers cost, as ratios to the same runs without them.

    python benchmarks/bench_sanitize.py

Programs of DVE and ACT: flash attention over tiles of 128 lanes by 512 scores (bench_flash), a loop
of small words that hand bytes over, and straight-line small words without any order between the
engines. The last line is what every machine pays for being able to have an observer: two looks at
an attribute a word.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable

import numpy as np
from bench_flash import listings

from neuron_emu import Machine, Program
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import Engine

REPEAT = 9
ROUNDS, WORDS = 1500, 4000
COPY = "src=fp32@{:#x}[1][8] dst=fp32@{:#x}[1][8] channels=32"


def two_streams(dve: bytes, act: bytes) -> Program:
    """Return a program of both engines."""
    streams = (*Program.of(dve).streams, *Program.of(act, engine=Engine.ACT).streams)
    return Program(streams=streams)


def flash() -> Program:
    """Return flash attention over four tiles."""
    texts = listings()
    return two_streams(assemble(texts[Engine.DVE]), assemble(texts[Engine.ACT]))


def handed_over() -> Program:
    """Return loops of six words on DVE and four on ACT: each waits for the other's bytes."""
    loop = (
        "ALU_OP op=ADD dtype=uint32 src0=$R[1] src1=1 dst=$R[1]\n"
        f"COMPARE_BRANCH op=LT_IMM dtype=uint32 src0=$R[1] src1={ROUNDS} target={{}}"
    )
    dve = f"""
COPY {COPY.format(0x100, 0x200)}
TENSOR_TENSOR op=ADD src0=fp32@0x100[1][8] src1=fp32@0x200[1][8] dst=fp32@0x300[1][8] channels=32
COPY S[1]++@complete {COPY.format(0x300, 0x400)}
COPY S[2]>0 S[2]--@read {COPY.format(0x500, 0x600)}
{loop.format(-64 * 5)}"""
    act = f"""
NOP S[1]>0 S[1]--@complete
COPY S[2]++@complete {COPY.format(0x400, 0x500)}
{loop.format(-64 * 3)}"""
    return two_streams(assemble(dve), assemble(act))


def unordered() -> Program:
    """Return streams in which every word touches other bytes and no semaphore is used."""
    return two_streams(
        *(
            b"".join(
                assemble("COPY " + COPY.format(start + 32 * n, start + 0x10000 + 32 * n))
                for n in range(WORDS // 2)
            )
            for start in (0, 0x20000)
        )
    )


def runner(program: Program, *, sanitize: bool) -> Callable[[], int]:
    """Return what runs a program anew on one machine and returns the words that ran."""
    machine = Machine(sanitize=sanitize)
    machine.preload("exp_and_others")
    scores = np.random.default_rng(0).standard_normal((128, 2048)).astype(np.float32)
    machine.write("psum:0+0:fp32[128,2048]", scores)
    machine.write("sbuf:0+0:fp32[128,65536]", np.ones((128, 65536), np.float32))

    def run() -> int:
        machine.sync.semaphores[:] = [0] * len(machine.sync.semaphores)
        for engine in (Engine.DVE, Engine.ACT):
            machine.engine(engine).registers[1] = 0
        result = machine.run(program)
        if result.fault is not None:
            raise RuntimeError(str(result.fault))
        return result.steps

    return run


def best_of_both(off: Callable[[], object], on: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the quickest call of each, called in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEAT):
        for call, taken in zip((off, on), times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def main() -> None:
    """Print one line a program and one for a machine without sanitizers."""
    print(f"{'':28} {'words':>6} {'us/word':>8} {'sanitized':>9} {'ratio':>6}")
    quickest = float("inf")
    for name, program in (
        ("flash attention, 512 wide", flash()),
        ("small words, handed over", handed_over()),
        ("small words, no order", unordered()),
    ):
        plain, sanitized = (runner(program, sanitize=sanitize) for sanitize in (False, True))
        words = plain()
        sanitized()
        off, on = (seconds / words * 1e6 for seconds in best_of_both(plain, sanitized))
        quickest = min(quickest, off)
        print(f"{name:28} {words:6} {off:8.2f} {on:9.2f} {on / off:6.2f}")
    machine = Machine()
    calls = 100_000
    look = min(timeit.repeat(lambda: machine.observer is not None, number=calls, repeat=5)) / calls
    cost = 2 * look * 1e6
    print(f"off: two looks, at most {cost:.3f} us a word, {cost / quickest:.2%} of the quickest")


if __name__ == "__main__":
    main()
