"""Words for tests: always-valid ones by opcode and generation, and ones that break a named rule.

`valid_word` and `broken_word` draw from a `random.Random`, so that a seed repeats a run.
`valid_words` and `broken_words` are the same as hypothesis strategies; hypothesis is needed for
these two only.

>>> from random import Random
>>> from neuron_emu import validate
>>> validate(valid_word(Random(1), 0x30))
[]
>>> [finding.name for finding in validate(broken_word(Random(1), "NE0112").word)]
['has_valid_active_channel_range']
"""

from __future__ import annotations

from neuron_emu.testing.breakers import BrokenWord, breakable_codes, broken_word
from neuron_emu.testing.strategies import broken_words, valid_words
from neuron_emu.testing.words import OPCODES, Shape, valid_word

__all__ = [
    "OPCODES",
    "BrokenWord",
    "Shape",
    "breakable_codes",
    "broken_word",
    "broken_words",
    "valid_word",
    "valid_words",
]
