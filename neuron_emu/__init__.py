"""An instruction-level emulator of the NeuronCore Vector (DVE) and Scalar (ACT) engines.

The public names are loaded on first use, so that `import neuron_emu` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from neuron_emu.isa.assembly import assemble, disassemble
    from neuron_emu.isa.codec import decode, encode
    from neuron_emu.isa.program import Program
    from neuron_emu.isa.validate import validate
    from neuron_emu.machine import Machine

_HOME = {
    "Machine": "neuron_emu.machine",
    "Program": "neuron_emu.isa.program",
    "assemble": "neuron_emu.isa.assembly",
    "decode": "neuron_emu.isa.codec",
    "disassemble": "neuron_emu.isa.assembly",
    "encode": "neuron_emu.isa.codec",
    "validate": "neuron_emu.isa.validate",
}

__all__ = [
    "Machine",
    "Program",
    "__version__",
    "assemble",
    "decode",
    "disassemble",
    "encode",
    "validate",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
