"""Decode, encode, print and assemble random 64-byte words of every generation.

    python benchmarks/random_words.py [--words 1000000] [--seed 0]

No word may raise, and each must come back as the same bytes from the record and from the text.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from neuron_emu.generation import GENERATIONS
from neuron_emu.isa.assembly import assemble_line, disassemble_word
from neuron_emu.isa.codec import decode, encode
from neuron_emu.isa.families import FAMILY_OF_OPCODE


def _tame(word: bytearray) -> None:
    """Clear what the text cannot say in most families, so that many words reach the text form."""
    word[4:16] = bytes(8) + bytes([word[12] % 5, 0, 0, 0])
    word[32:34] = bytes(2 + code % 10 for code in word[32:34])
    word[35:40] = bytes([word[35] % 2, word[36] % 10, word[37] % 10, word[38] % 4, word[39] % 2])
    word[19] &= 0x9F
    word[51] &= 0x9F


def main() -> int:
    """Run the words; return 1 at the first that does not come back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    source = random.Random(options.seed)
    generations = list(GENERATIONS.values())
    families = sorted(FAMILY_OF_OPCODE)
    started = time.perf_counter()
    as_text = 0
    for count in range(options.words):
        word = bytearray(source.randbytes(64))
        if count % 2:
            # Half the words have an opcode with a layout and the header of a compiler.
            word[:4] = bytes([source.choice(families), 16, 0, 0])
        if count % 4 == 1:
            _tame(word)
        data = bytes(word)
        generation = generations[count % len(generations)]
        line = disassemble_word(data, generation)
        as_text += not line.startswith(".word")
        if encode(decode(data, generation)) != data or assemble_line(line) != data:
            print(f"word {count} does not come back: {data.hex()}")
            return 1
        if sys.stderr.isatty() and count % 10_000 == 0:
            print(f"\r{count}", end="", file=sys.stderr)
    elapsed = time.perf_counter() - started
    print(
        f"{options.words} words, {as_text} of them as text, all came back;"
        f" {options.words / elapsed:.0f} words/s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
