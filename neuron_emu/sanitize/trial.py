"""A word run apart: what it would do, without doing it."""

from __future__ import annotations

from typing import Any

from neuron_emu.engines.core import Effects, EngineState, Prepared, Problem
from neuron_emu.engines.kernels import Kernel
from neuron_emu.errors import InputError

__all__ = ["tried"]


def tried(
    kernel: Kernel | Problem, record: Any, state: EngineState
) -> tuple[Prepared, Effects] | None:
    """Return a word made ready with its effects, None when it would fault.

    `state` is a copy that nobody else uses: a word may draw random numbers from it.
    """
    prepared = kernel if isinstance(kernel, Problem) else kernel.prepare(record, state)
    if isinstance(prepared, Problem):
        return None
    try:
        effects = prepared.execute()
    except InputError:
        return None
    return None if isinstance(effects, Problem) else (prepared, effects)
