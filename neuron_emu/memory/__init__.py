"""SBUF and PSUM: the address map, access patterns as views, bounds, undo and written flags."""

from __future__ import annotations

from neuron_emu.memory.address import (
    AccessPattern,
    IndirectPattern,
    Location,
    MemoryFault,
    Pattern,
    geometry_of,
    local_address,
    locate,
)
from neuron_emu.memory.onchip import Memory
from neuron_emu.memory.operand import (
    Bits,
    DirectOperand,
    IndirectOperand,
    Operand,
    SavedCells,
)
from neuron_emu.memory.order import stream_order_matters
from neuron_emu.memory.space import Space

__all__ = [
    "AccessPattern",
    "Bits",
    "DirectOperand",
    "IndirectOperand",
    "IndirectPattern",
    "Location",
    "Memory",
    "MemoryFault",
    "Operand",
    "Pattern",
    "SavedCells",
    "Space",
    "geometry_of",
    "local_address",
    "locate",
    "stream_order_matters",
]
