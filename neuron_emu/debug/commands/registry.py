"""The registry: a command is a row with its names, its usage, one sentence and an example.

A command is a function of the debugger and the rest of its line; it returns a record and prints
nothing. Names may be shortened as in gdb: to what is unambiguous, or to a listed abbreviation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from attrs import frozen

from neuron_emu.debug.debugger import Debugger
from neuron_emu.errors import InputError
from neuron_emu.isa.text import parse_integer

__all__ = ["COMMANDS", "Command", "command", "count_in", "find_command", "run_line", "split_line"]

Run = Callable[[Debugger, str], Any]


@frozen(kw_only=True)
class Command:
    """One command: `names` are the full name and its abbreviations."""

    names: tuple[str, ...]
    usage: str
    summary: str
    example: str
    topic: str
    run: Run
    repeats: bool = True

    @property
    def name(self) -> str:
        """The full name."""
        return self.names[0]


COMMANDS: dict[str, Command] = {}
"""Every command by its full name, in the order of `help`."""


def command(
    names: str, usage: str, example: str, *, topic: str, repeats: bool = False
) -> Callable[[Run], Run]:
    """Register a function as a command; the first line of its docstring is its help."""

    def register(run: Run) -> Run:
        words = tuple(names.split())
        summary = (run.__doc__ or "").strip().splitlines()[0]
        COMMANDS[words[0]] = Command(
            names=words,
            usage=usage,
            summary=summary,
            example=example,
            topic=topic,
            run=run,
            repeats=repeats,
        )
        return run

    return register


def split_line(line: str) -> tuple[str, str]:
    """Split a line into the word of the command and the rest; `x/x` and `p/x` keep their slash."""
    match = re.match(r"\s*([A-Za-z][\w-]*)(?=[/\s]|$)\s*(.*)", line, re.DOTALL)
    if match is None:
        raise InputError(f"a command must start with a word such as step or help, not {line!r}")
    return match[1], match[2].strip()


def find_command(word: str) -> Command:
    """Return a command by name, abbreviation or unambiguous beginning; InputError otherwise."""
    for candidate in COMMANDS.values():
        if word in candidate.names:
            return candidate
    matches = [c for c in COMMANDS.values() if c.name.startswith(word)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(c.name for c in matches)
        raise InputError(f"command {word!r} must be one of {names}")
    raise InputError(f"command must be one that `help` lists, not {word!r}")


def run_line(debugger: Debugger, line: str) -> Any:
    """Run one line of a script or prompt and return its record."""
    word, rest = split_line(line)
    return find_command(word).run(debugger, rest)


def count_in(text: str, what: str = "count") -> int:
    """Read an optional count, 1 by default."""
    return parse_integer(text, what, 1, 10_000_000) if text else 1
