"""Commands that set, list and change what stops a run."""

from __future__ import annotations

import re

from neuron_emu.debug.commands.registry import command
from neuron_emu.debug.debugger import Debugger
from neuron_emu.debug.records import Outcome, PointStatus
from neuron_emu.errors import InputError
from neuron_emu.isa.text import parse_integer

__all__: list[str] = []

TOPIC = "stopping"
_LOCATION = "[INDEX|ENGINE:INDEX|LABEL|OPCODE [DTYPE]|ENGINE] [if CONDITION]"


@command("break b br", f"break {_LOCATION}", "break EXPONENTIAL bf16 if index > 2", topic=TOPIC)
def break_(debugger: Debugger, text: str) -> PointStatus:
    """Stop before a word: by place, label, opcode, opcode on a dtype, engine or condition."""
    return debugger.breakpoint(text).status


@command("tbreak tb", f"tbreak {_LOCATION}", "tbreak act:2", topic=TOPIC)
def tbreak(debugger: Debugger, text: str) -> PointStatus:
    """Stop before a word once."""
    return debugger.breakpoint(text, temporary=True).status


@command("watch w", "watch TARGET [if CONDITION]", "watch sbuf:0+0x2000:fp32[4,8]", topic=TOPIC)
def watch(debugger: Debugger, text: str) -> PointStatus:
    """Stop when a region, R[n], S[n], E[n], acc[n] or an expression changes."""
    return debugger.watch(_target(text)).status


@command("wwatch", "wwatch TARGET [if CONDITION]", "wwatch S[4]", topic=TOPIC)
def wwatch(debugger: Debugger, text: str) -> PointStatus:
    """Stop when a word writes a target, also with an equal value."""
    return debugger.watch(_target(text), "write").status


@command("rwatch", "rwatch TARGET [if CONDITION]", "rwatch bf16@0x4000[1][8]", topic=TOPIC)
def rwatch(debugger: Debugger, text: str) -> PointStatus:
    """Stop when a word reads a target."""
    return debugger.watch(_target(text), "read").status


@command("awatch", "awatch TARGET [if CONDITION]", "awatch act.acc[0]", topic=TOPIC)
def awatch(debugger: Debugger, text: str) -> PointStatus:
    """Stop when a word reads or writes a target."""
    return debugger.watch(_target(text), "access").status


def _target(text: str) -> str:
    if not text:
        raise InputError("a target must follow: a region, R[n], S[n], E[n] or acc[n]")
    return text


@command("catch", "catch nan|nonfinite|uninitialised|finding", "catch nan", topic=TOPIC)
def catch(debugger: Debugger, text: str) -> PointStatus:
    """Stop at a NaN (or infinity) produced, an uninitialised read, or a word that breaks a rule."""
    return debugger.catch(text).status


@command(
    "reference ref", "reference SPEC=FILE.npy [ulp N|abs X|rel X]",
    "reference sbuf:0+0x2000:fp32[4,8]=good.npy rel 1e-4", topic=TOPIC,
)  # fmt: skip
def reference(debugger: Debugger, text: str) -> PointStatus:
    """Stop when a word writes a value that differs from a file beyond a tolerance."""
    return debugger.reference(text).status


@command("delete d", "delete [NUMBER]", "delete 2", topic=TOPIC)
def delete(debugger: Debugger, text: str) -> Outcome:
    """Delete a breakpoint or watchpoint, or all."""
    count = debugger.delete(_number(text) if text else None)
    return Outcome(f"deleted {count}")


@command("disable dis", "disable NUMBER", "disable 1", topic=TOPIC)
def disable(debugger: Debugger, text: str) -> PointStatus:
    """Let a point pass by until it is enabled again."""
    point = debugger.point(_number(text))
    point.enabled = False
    return point.status


@command("enable en", "enable NUMBER", "enable 1", topic=TOPIC)
def enable(debugger: Debugger, text: str) -> PointStatus:
    """Let a disabled point stop again."""
    point = debugger.point(_number(text))
    point.enabled = True
    return point.status


@command("condition cond", "condition NUMBER [EXPRESSION]", "condition 1 S[4] >= 2", topic=TOPIC)
def condition(debugger: Debugger, text: str) -> PointStatus:
    """Give a point a condition, or take it away."""
    number, _, rest = text.partition(" ")
    return debugger.condition(_number(number), rest).status


@command("ignore", "ignore NUMBER COUNT", "ignore 1 5", topic=TOPIC)
def ignore(debugger: Debugger, text: str) -> PointStatus:
    """Let the next COUNT hits of a point pass by."""
    words = text.split()
    if len(words) != 2:
        raise InputError(f"ignore must be given NUMBER COUNT, not {text!r}")
    point = debugger.point(_number(words[0]))
    point.ignore = parse_integer(words[1], "count", 0, 10_000_000)
    return point.status


def _number(text: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise InputError(f"number must be of a breakpoint or watchpoint, not {text!r}")
    return int(text)
