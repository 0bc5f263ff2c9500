"""Run generated Tensor-Scalar words on the machine and as plain loops, byte for byte, for long.

    python benchmarks/long_reference.py [--words 100000] [--opcode 0x43] [--seed 0]
                                        [--generation mariana] [--policy KEY=VALUE]

`--words` is a number of words for each of the eight opcodes of S3D3_TS, or for the one given.
They come from the generator of the tests, in portions with seeds of their own; what is compared is
the memory, the accumulators and their flags. Exit 0 when all are equal, 1 at the first difference,
which is printed with its word and can be had again from its seed. 100,000 words of an opcode take
about five minutes on one core, those of 0x93, of 1024 elements and more, three times as long.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from neuron_emu.generation import generation_named
from neuron_emu.isa.opcodes import opcode_name
from neuron_emu.policy import Policy
from tests.engines.tensor_scalar_words import EXPONENTIAL, OPCODES, first_difference

PORTION = 1000


def compare(opcode: int, options: argparse.Namespace) -> str | None:
    """Return the first difference of an opcode's words with the seed of its portion, or None."""
    generation = generation_named(options.generation)
    policy = Policy.parse(options.policy)
    for first in range(0, options.words, PORTION):
        words = min(PORTION, options.words - first)
        seed = options.seed + first // PORTION
        found = first_difference(opcode, words, seed, generation=generation, policy=policy)
        if found is not None:
            return f"seed {seed}, {found}"
        print(f"\r{opcode_name(opcode)}: {first + words} words", end="", file=sys.stderr)
    print(file=sys.stderr)
    return None


def main() -> int:
    """Run the opcodes one after the other; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--opcode", type=lambda text: int(text, 0), choices=OPCODES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--generation", default="mariana")
    parser.add_argument("--policy", action="append", default=[])
    options = parser.parse_args()
    wired = generation_named(options.generation).has_exponential
    opcodes = [op for op in OPCODES if op != EXPONENTIAL or wired]
    for opcode in [options.opcode] if options.opcode is not None else opcodes:
        started = time.perf_counter()
        difference = compare(opcode, options)
        if difference is not None:
            print(f"{opcode_name(opcode)} ({opcode:#04x}) differs: {difference}")
            return 1
        seconds = time.perf_counter() - started
        print(
            f"{opcode_name(opcode)} ({opcode:#04x}): {options.words} words equal, {seconds:.0f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
