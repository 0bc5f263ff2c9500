"""The generators of words as hypothesis strategies."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from neuron_emu.errors import NeuronEmuError
from neuron_emu.generation import MARIANA, Generation
from neuron_emu.testing.breakers import BrokenWord, broken_word
from neuron_emu.testing.words import Shape, valid_word

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["broken_words", "valid_words"]

DrawnT = TypeVar("DrawnT")


def _drawn(make: Callable[[random.Random], DrawnT]) -> SearchStrategy[DrawnT]:
    try:
        from hypothesis import strategies
    except ImportError:
        raise NeuronEmuError(
            "strategies need hypothesis, which is not installed: pip install hypothesis"
        ) from None
    return strategies.randoms(use_true_random=False).map(make)


def valid_words(
    opcode: int, generation: Generation = MARIANA, shape: Shape | None = None
) -> SearchStrategy[bytes]:
    """Return a strategy for `valid_word`; NeuronEmuError when hypothesis is not installed."""
    return _drawn(lambda rng: valid_word(rng, opcode, generation, shape))


def broken_words(code: str, generation: Generation = MARIANA) -> SearchStrategy[BrokenWord]:
    """Return a strategy for `broken_word`; NeuronEmuError when hypothesis is not installed."""
    return _drawn(lambda rng: broken_word(rng, code, generation))
