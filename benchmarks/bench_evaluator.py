"""Speed of the evaluators as a ratio to numpy on float32, in the same run, on one thread.

    python benchmarks/bench_evaluator.py [FUNCTION...]

Prints, for 10^6 normal inputs, nanoseconds an element and how many times slower than `np.exp`
each evaluator is, and for 128 inputs the microseconds of one call. Then every function's kernel
against the numpy expression that a user would write for it; numpy has no erf.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.store import load_profile

Floats = npt.NDArray[np.float32]

LARGE = 1_000_000
SMALL = 128


def best(call: Callable[[], object], number: int, repeat: int) -> float:
    """Return the seconds of one call in the best of `repeat` runs of `number` calls."""
    return min(timeit.repeat(call, number=number, repeat=repeat)) / number


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Floats) -> Floats:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def _gelu_tanh(x: Floats) -> Floats:
    return x * (np.tanh((x * x * x * 0.044715 + x) * 0.7978845608028654) + 1) * 0.5


EXPRESSIONS: dict[str, Callable[[Floats], Floats]] = {
    "abs": np.abs,
    "arctan": np.arctan,
    "copy": np.copy,
    "derivative_erf": lambda x: np.exp(-x * x) * 1.1283792,
    "derivative_sigmoid": lambda x: _sigmoid(x) * (1 - _sigmoid(x)),
    "derivative_silu": lambda x: _sigmoid(x) * (1 + x * (1 - _sigmoid(x))),
    "derivative_tanh": lambda x: 1 - np.tanh(x) ** 2,
    "exp": np.exp,
    "gelu_apprx_sigmoid": lambda x: x * _sigmoid(1.702 * x),
    "gelu_apprx_tanh": _gelu_tanh,
    "is_finite": lambda x: np.isfinite(x).astype(np.float32),
    "leaky_relu": lambda x: np.where(x <= 0, x * 0.01, x),
    "ln": lambda x: np.log(np.abs(x)),
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "reciprocal": lambda x: 1 / x,
    "reciprocal_sqrt": lambda x: 1 / np.sqrt(np.abs(x)),
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": _sigmoid,
    "sign": np.sign,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sin": np.sin,
    "softplus": _softplus,
    "sqrt": lambda x: np.sqrt(np.abs(x)),
    "square": np.square,
    "tanh": np.tanh,
}
"""What is timed beside a function's kernel; one-sided functions get magnitudes."""


def against_numpy(values: Floats) -> None:
    """Print one line for each function: kernel, numpy expression, ratio."""
    print(f"\n{'kernel, evaluator pwp':24} {'ns/element':>10} {'numpy':>9} {'ratio':>9}")
    one_sided = {"ln", "sqrt", "reciprocal_sqrt"}
    for name, expression in EXPRESSIONS.items():
        compiled = compile_profile(load_profile(name))
        inputs = np.abs(values) if name in one_sided else values
        compiled.evaluate(inputs)
        ours = best(lambda: compiled.evaluate(inputs), 1, 5)  # noqa: B023
        theirs = best(lambda: expression(inputs), 1, 5)  # noqa: B023
        scale = 1e9 / len(values)
        print(f"{name:24} {ours * scale:10.2f} {theirs * scale:9.2f} {ours / theirs:9.1f}")


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
    if not names:
        against_numpy(large)


if __name__ == "__main__":
    main(sys.argv[1:])
