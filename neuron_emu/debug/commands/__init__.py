"""The commands of the debugger: one registry for the prompt, scripts, help and JSON output."""

from __future__ import annotations

from neuron_emu.debug.commands import inspecting, moving, stopping
from neuron_emu.debug.commands.registry import COMMANDS, Command, find_command, run_line

__all__ = ["COMMANDS", "Command", "find_command", "inspecting", "moving", "run_line", "stopping"]
