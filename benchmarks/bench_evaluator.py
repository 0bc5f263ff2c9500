"""Speed of the evaluators as a ratio to `np.exp` on float32, in the same run, on one thread.

    python benchmarks/bench_evaluator.py [FUNCTION...]

Prints, for 10^6 normal inputs, nanoseconds an element and how many times slower than `np.exp`
each evaluator is, and for 128 inputs the microseconds of one call.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable

import numpy as np

from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.store import load_profile

LARGE = 1_000_000
SMALL = 128


def best(call: Callable[[], object], number: int, repeat: int) -> float:
    """Return the seconds of one call in the best of `repeat` runs of `number` calls."""
    return min(timeit.repeat(call, number=number, repeat=repeat)) / number


def main(names: list[str]) -> None:
    """Print one line for `np.exp` and one for each function and evaluator."""
    generator = np.random.default_rng(0)
    large = generator.standard_normal(LARGE).astype(np.float32)
    small = large[:SMALL].copy()
    out_large, out_small = np.empty_like(large), np.empty_like(small)
    base = best(lambda: np.exp(large, out=out_large), 3, 9)
    base_small = best(lambda: np.exp(small, out=out_small), 2000, 5)
    print(f"{'':24} {'ns/element':>10} {'x np.exp':>9} {f'us/{SMALL}':>9}")
    print(f"{'np.exp float32':24} {base * 1e9 / LARGE:10.2f} {1:9.1f} {base_small * 1e6:9.2f}")
    for name in names or ["exp", "tanh", "relu"]:
        compiled = compile_profile(load_profile(name))
        for evaluator in ("pwp", "silicon", "exact"):
            compiled.evaluate(large, evaluator=evaluator)
            run = best(lambda: compiled.evaluate(large, evaluator=evaluator), 1, 9)  # noqa: B023
            call = best(lambda: compiled.evaluate(small, evaluator=evaluator), 500, 7)  # noqa: B023
            label = f"{name} {evaluator}"
            print(f"{label:24} {run * 1e9 / LARGE:10.2f} {run / base:9.1f} {call * 1e6:9.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
