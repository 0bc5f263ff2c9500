"""Sanitizers: what a run does wrong without failing, reported while it goes on.

`Machine(sanitize=True)` runs them all; see docs/sanitizers.md. Reports are warnings: none stops a
run. The names of `KINDS` are stable.
"""

from __future__ import annotations

from neuron_emu.sanitize.report import KINDS, Report, Word
from neuron_emu.sanitize.sanitizer import Sanitizer

__all__ = ["KINDS", "Report", "Sanitizer", "Word"]
