"""Compare the fast evaluator with the plain numpy twin on every float32, bit for bit.

    python benchmarks/sweep_exp.py [--function exp] [--first 0x00000000] [--last 0xffffffff]
                                   [--jobs 1]

The twin (`neuron_emu.pwp.reference.twin`) takes libm's pow for the cube and shares no code with
the evaluator. A full sweep takes some minutes on one core; progress goes to standard error, the
result to standard output. Exit 0 when every result is equal, 1 when one differs.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import sys
import time
from collections.abc import Iterator

import numpy as np

from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.reference import twin
from neuron_emu.pwp.store import load_profile

CHUNK = 1 << 20


def compare(task: tuple[str, int, int]) -> tuple[int, int, int | None, bytes]:
    """Return inputs, differences, the first input that differs, and the digest of the results."""
    name, first, end = task
    profile = load_profile(name)
    bits = np.arange(first, end, dtype=np.uint64).astype(np.uint32)
    fast = compile_profile(profile).evaluate(bits.view(np.float32)).view(np.uint32)
    differs = np.flatnonzero(fast != twin(profile, bits))
    where = int(bits[differs[0]]) if differs.size else None
    return bits.size, differs.size, where, hashlib.sha256(fast.tobytes()).digest()


def chunks(name: str, first: int, last: int) -> Iterator[tuple[str, int, int]]:
    """Cut the range into tasks of at most CHUNK inputs."""
    for start in range(first, last + 1, CHUNK):
        yield name, start, min(start + CHUNK, last + 1)


def main() -> int:
    """Run the sweep and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--function", default="exp")
    parser.add_argument("--first", type=lambda text: int(text, 0), default=0)
    parser.add_argument("--last", type=lambda text: int(text, 0), default=0xFFFFFFFF)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if not 0 <= options.first <= options.last <= 0xFFFFFFFF or options.jobs < 1:
        parser.error("the range must lie in 0 to 0xffffffff and jobs be at least 1")
    tasks = chunks(options.function, options.first, options.last)
    total = options.last - options.first + 1
    done = differing = 0
    digest = hashlib.sha256()
    started = last_shown = time.monotonic()
    with multiprocessing.Pool(options.jobs) if options.jobs > 1 else SerialPool() as pool:
        for count, wrong, where, part in pool.imap(compare, tasks):
            done += count
            differing += wrong
            digest.update(part)
            if where is not None:
                print(f"first difference of a chunk at 0x{where:08x}", file=sys.stderr)
            if time.monotonic() - last_shown > 10:
                last_shown = time.monotonic()
                print(f"{done / total:6.1%}  {differing} differ", file=sys.stderr, flush=True)
    seconds = time.monotonic() - started
    print(
        f"{options.function}: {done} inputs, {differing} differ, {seconds:.0f} s,"
        f" numpy {np.__version__}, results {digest.hexdigest()[:16]}"
    )
    return 1 if differing or done != total else 0


class SerialPool:
    """The part of a pool that `main` uses, in this process."""

    imap = staticmethod(map)

    def __enter__(self) -> SerialPool:
        return self

    def __exit__(self, *_: object) -> None:
        return None


if __name__ == "__main__":
    sys.exit(main())
