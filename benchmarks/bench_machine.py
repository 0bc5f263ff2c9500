"""Speed of the whole machine, as ratios to numpy and to plain Python in the same run.

    python benchmarks/bench_machine.py [--quick]

Words per second of small words, of words that are all different, with undo recorded; nanoseconds
an element of large EXPONENTIAL words against `np.exp` on float32; and the cold start of
`neuron-emu --version` against `python -c pass`. Every figure is the best of several runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from neuron_emu import Machine, Program
from neuron_emu.isa.assembly import assemble

LINE = (
    "EXPONENTIAL src={src}@{source:#x}[1][{n}] dst={dst}@{target:#x}[1][{n}] channels={channels}"
    " max_value=fp32@0.0 accumulator_cmd={command}"
)


def exponential(
    src: str,
    dst: str,
    n: int = 1,
    *,
    source: int = 0x1000,
    target: int = 0x20000,
    channels: int = 128,
    command: str = "IDLE",
) -> bytes:
    """Return one EXPONENTIAL word."""
    line = LINE.format(
        src=src, dst=dst, n=n, source=source, target=target, channels=channels, command=command
    )
    return assemble(line)


def best(call: Callable[[], object], repeat: int) -> float:
    """Return the seconds of the quickest of `repeat` calls, after one that is not counted."""
    call()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def machine_with_input(n: int = 8192, dtype: str = "fp32") -> Machine:
    """Return a machine that holds exp and normal inputs of `dtype` in every lane."""
    machine = Machine()
    machine.preload("exp_and_others")
    values = np.random.default_rng(0).normal(size=(128, n)).astype(np.float32)
    machine.write(f"sbuf:0+0x1000:{dtype}[128,{n}]", values)
    return machine


def small_words(repeat: int) -> None:
    """Print words per second through the whole machine, events off."""
    num_words = 2000
    numbers = list(range(num_words))
    plain = best(lambda: [number + 1 for number in numbers], repeat) / num_words
    words = {
        "NOP": assemble("NOP"),
        "EXPONENTIAL [128,1] fp32": exponential("fp32", "fp32"),
        "EXPONENTIAL [128,1] bf16": exponential("bf16", "bf16"),
        "EXPONENTIAL [128,2] bf16, sum": exponential("bf16", "bf16", 2, command="ZERO_ACCUMULATE"),
    }
    print(f"{'one word over and over':36} {'words/s':>10} {'undo costs':>10}")
    for name, word in words.items():
        program = Program.of(word * num_words)
        machine = machine_with_input(512, "bf16" if "bf16" in name else "fp32")
        machine.run(Program.of(exponential("bf16", "bf16", 512) * 2))
        if not machine.run(program).is_clean:
            raise SystemExit(f"{name} must run without a fault")
        seconds = best(lambda: machine.run(program), repeat) / num_words  # noqa: B023
        machine.record_undo()
        recorded = best(lambda: machine.run(program), repeat) / num_words  # noqa: B023
        extra = f"{(recorded / seconds - 1) * 100:+9.0f}%"
        print(f"{name:36} {1 / seconds:10,.0f} {extra}")
    print(f"{'a Python addition in a list':36} {1 / plain:10,.0f}")


def different_words(repeat: int) -> None:
    """Print words per second of a straight line of words, and of a loop over it."""
    num_words = 4000
    data = b"".join(
        exponential("bf16", "bf16", source=0x1000 + 2 * i, target=0x20000 + 2 * i)
        for i in range(num_words)
    )
    program = Program.of(data)

    def first_time() -> float:
        machine = machine_with_input(dtype="bf16")
        start = time.perf_counter()
        machine.run(program)
        return time.perf_counter() - start

    seconds = min(first_time() for _ in range(max(repeat // 5, 2)))
    print(f"{'4000 different words, each met once':36} {num_words / seconds:10,.0f}")


def large_words(repeat: int) -> None:
    """Print the time of an element of large words as a ratio to `np.exp` on float32."""
    print(f"\n{'large words':36} {'ns/element':>10} {'x np.exp':>10}")
    for name, n, dtype in (("fp32 [128,8192]", 8192, "fp32"), ("bf16 [128,2048]", 2048, "bf16")):
        machine = machine_with_input(n, dtype)
        values = machine.read(f"sbuf:0+0x1000:{dtype}[128,{n}]")
        out = np.empty_like(values)
        with np.errstate(all="ignore"):
            base = best(lambda: np.exp(values, out=out), repeat)  # noqa: B023
        program = Program.of(exponential(dtype, dtype, n))
        seconds = best(lambda: machine.run(program), repeat)  # noqa: B023
        scale = 1e9 / values.size
        print(f"{'np.exp float32 ' + str(list(values.shape)):36} {base * scale:10.2f} {1:10.1f}")
        print(f"{'EXPONENTIAL ' + name:36} {seconds * scale:10.2f} {seconds / base:10.1f}")


def cold_start(repeat: int) -> None:
    """Print how long the command takes to say its version."""
    version = [sys.executable, "-c", "from neuron_emu.cli import main; main(['--version'])"]
    times = [
        best(lambda: subprocess.run(command, check=True, capture_output=True), repeat)  # noqa: B023
        for command in ([sys.executable, "-c", "pass"], version)
    ]
    print(f"\n{'cold start':36} {'ms':>10} {'x python':>10}")
    for name, seconds in zip(("python -c pass", "neuron-emu --version"), times, strict=True):
        print(f"{name:36} {seconds * 1e3:10.1f} {seconds / times[0]:10.2f}")


def main() -> None:
    """Run all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    repeat = 5 if parser.parse_args().quick else 25
    small_words(repeat)
    different_words(repeat)
    large_words(repeat)
    cold_start(max(repeat // 2, 3))


if __name__ == "__main__":
    main()
