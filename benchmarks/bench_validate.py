"""Words judged in a second: one by one, seen before, in bulk, and whole streams.

Run: python benchmarks/bench_validate.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from neuron_emu.generation import MARIANA
from neuron_emu.isa.bulk import BLOCK_WORDS, BlockJudge
from neuron_emu.isa.diagnostics import Finding
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program, Stream
from neuron_emu.isa.rules.examples import standard_word
from neuron_emu.isa.stream_pass import findings_of_stream
from neuron_emu.isa.validate import Judge
from neuron_emu.policy import Policy

WORDS = 1 << 20


def distinct_words(opcodes: tuple[int, ...]) -> np.ndarray:
    """Return a million words that all differ, in their semaphore value."""
    rows = np.frombuffer(b"".join(map(standard_word, opcodes)), np.uint8).reshape(-1, 64)
    words = np.resize(rows, (WORDS, 64)).copy()
    words[:, 8:12] = np.arange(WORDS, dtype="<u4").view(np.uint8).reshape(-1, 4)
    return words


def rate(name: str, count: int, run: Callable[[], object]) -> None:
    """Print the best of three runs."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    print(f"{name:44} {count / min(seconds) / 1e6:8.2f} million words/s")


def in_blocks(words: np.ndarray) -> int:
    """Judge words in blocks with a fresh judge."""
    judge = BlockJudge(MARIANA, Engine.DVE, Policy())
    blocks = range(0, len(words), BLOCK_WORDS)
    return sum(int(judge.clean(words[i : i + BLOCK_WORDS]).sum()) for i in blocks)


def _drain(stream: Stream, judge: Judge) -> list[Finding]:
    return list(findings_of_stream(stream, judge))


def main() -> None:
    """Print one line a measurement."""
    exponential = distinct_words((0x30,))
    mixed = distinct_words((0x23, 0x30, 0x43, 0x9A, 0x9B, 0xA4))
    repeated = np.resize(exponential[:3000], (WORDS, 64)).copy()
    listed = [row.tobytes() for row in exponential[:20_000]]
    judge = Judge(MARIANA, Engine.DVE)
    rate("one by one, new", len(listed), lambda: [judge.findings_as(w, 0x30) for w in listed])
    rate("one by one, seen", len(listed), lambda: [judge.findings(w) for w in listed])
    rate("bulk, EXPONENTIAL, all different", WORDS, lambda: in_blocks(exponential))
    rate("bulk, six opcodes, all different", WORDS, lambda: in_blocks(mixed))
    rate("bulk, 3000 words repeated", WORDS, lambda: in_blocks(repeated))
    for name, words in (("all different", mixed), ("repeated", repeated)):
        stream = Program.of(words.tobytes()).streams[0]
        rate(
            f"stream with stream rules, {name}",
            WORDS,
            partial(_drain, stream, judge),
        )


if __name__ == "__main__":
    main()
