"""The debugger: stop at any word, look at everything, go back, and ask why.

`Debugger` is the whole interface; see docs/debugger.md.
"""

from __future__ import annotations

from neuron_emu.debug.debugger import Debugger

__all__ = ["Debugger"]
