"""NEFF files and unpacked NEFF folders. Imports the enums of `isa` and nothing else of it."""

from __future__ import annotations

from neuron_emu.neff.archive import Limits
from neuron_emu.neff.container import Contents, Member, read_contents
from neuron_emu.neff.extract import extract
from neuron_emu.neff.header import Header
from neuron_emu.neff.streams import EngineFile, is_neff, read_engine_files, split_selector
from neuron_emu.neff.writer import pack_neff, write_neff

__all__ = [
    "Contents",
    "EngineFile",
    "Header",
    "Limits",
    "Member",
    "extract",
    "is_neff",
    "pack_neff",
    "read_contents",
    "read_engine_files",
    "split_selector",
    "write_neff",
]
