"""The prompt and the scripts: lines in, text or JSON out.

A line goes through the registry; its record is printed as text, or as one JSON object a line.
"""

from __future__ import annotations

import cmd
import json
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click
from attrs import define, field

from neuron_emu.debug.commands import COMMANDS
from neuron_emu.debug.commands.inspecting import INFO_TOPICS, ExpectationError
from neuron_emu.debug.commands.registry import find_command, split_line
from neuron_emu.debug.debugger import Debugger
from neuron_emu.debug.records import Stop, StopReason, plain
from neuron_emu.debug.text import text_of
from neuron_emu.errors import NeuronEmuError
from neuron_emu.isa.opcodes import OPCODE_BY_NAME

__all__ = ["Prompt", "Session"]

_FAILING = (StopReason.FAULT, StopReason.LIMIT)
_QUITTING = ("quit", "q", "exit", "EOF")


@define(eq=False)
class Session:
    """A debugger, where its output goes, and what the exit status will be.

    `status` is 1 after a fault or an `expect` that failed, 2 after a command that could not be
    done (design.md 4).
    """

    debugger: Debugger
    as_json: bool = False
    out: TextIO = field(factory=lambda: sys.stdout)
    pages: bool = False
    status: int = 0
    has_quit: bool = False

    def run(self, line: str) -> bool:
        """Run one line and print what it says; False when the command could not be done."""
        line = line.partition("#")[0].strip() if line.lstrip().startswith("#") else line.strip()
        if not line:
            return True
        if line.split()[0] in _QUITTING:
            self.has_quit = True
            return True
        try:
            word, rest = split_line(line)
            found = find_command(word)
            self.debugger.interrupted = False
            with _interruptible(self.debugger):
                result = found.run(self.debugger, rest)
        except ExpectationError as error:
            self.status = max(self.status, 1)
            self._say(line, error=str(error))
            return True
        except NeuronEmuError as error:
            self.status = 2
            self._say(line, error=str(error))
            return False
        except KeyboardInterrupt:
            self._say(line, error="interrupted")
            return False
        if isinstance(result, Stop) and result.reason in _FAILING:
            self.status = max(self.status, 1)
        self._say(line, result)
        return True

    def run_all(self, lines: Iterable[str]) -> None:
        """Run the lines of a script until one cannot be done or quits."""
        for line in lines:
            if not self.run(line) or self.has_quit:
                return

    def _say(self, line: str, result: Any = None, *, error: str | None = None) -> None:
        if self.as_json:
            said = {"command": line, "result": plain(result)}
            if error is not None:
                said = {"command": line, "error": error}
            print(json.dumps(said), file=self.out, flush=True)
            return
        text = text_of(result) if error is None else f"error: {error}"
        if not text:
            return
        if self.pages and text.count("\n") >= shutil.get_terminal_size().lines - 1:
            click.echo_via_pager(text + "\n")
        else:
            print(text, file=self.out, flush=True)


@contextmanager
def _interruptible(debugger: Debugger) -> Iterator[None]:
    """Let Ctrl-C stop the run between two words instead of the program in the middle of one."""

    def interrupt(number: int, frame: Any) -> None:
        if debugger.interrupted:
            raise KeyboardInterrupt  # asked for twice: what runs is no run of words
        debugger.interrupted = True

    try:
        before = signal.signal(signal.SIGINT, interrupt)
    except ValueError:  # not in the main thread: whoever runs there handles interrupts
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Prompt(cmd.Cmd):
    """The interactive prompt: history and completion of the standard library."""

    prompt = "(neuron) "

    def __init__(self, session: Session) -> None:
        super().__init__(stdout=session.out)
        self.session = session

    def onecmd(self, line: str) -> bool:
        """Run a line; an empty one repeats the last that makes sense to repeat."""
        text = line.strip()
        if not text:
            return self._repeat()
        if text == "EOF":
            print(file=self.session.out)
        self.session.run(text)
        self.lastcmd = text
        return self.session.has_quit

    def _repeat(self) -> bool:
        try:
            if self.lastcmd and find_command(split_line(self.lastcmd)[0]).repeats:
                self.session.run(self.lastcmd)
        except NeuronEmuError:
            pass  # the last line was no command: there is nothing to repeat
        return self.session.has_quit

    def loop(self) -> None:
        """Read lines until quit or the end of input; Ctrl-C gives a new prompt."""
        while True:
            try:
                self.cmdloop()
                return
            except KeyboardInterrupt:
                print("^C", file=self.session.out)

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        """Complete the name of a command."""
        return [name for name in (*COMMANDS, "quit") if name.startswith(text)]

    def completedefault(self, *ignored: Any) -> list[str]:
        """Complete the argument of a command: topics, opcodes, labels or commands."""
        text, line = str(ignored[0]), str(ignored[1])
        try:
            name = find_command(split_line(line)[0]).name
        except NeuronEmuError:
            return []
        words: Iterable[str] = ()
        if name == "info":
            words = INFO_TOPICS
        elif name == "help":
            words = COMMANDS
        elif name in ("break", "tbreak", "until", "list", "explain"):
            labels = (n for found in self.session.debugger.labels.values() for n in found)
            words = (*labels, *(OPCODE_BY_NAME if "break" in name else ()))
        elif name == "catch":
            words = ("nan", "nonfinite", "uninitialised", "finding")
        elif name in ("engine", "step", "next"):
            words = (e.name.lower() for e in self.session.debugger.program.one_per_engine())
        return [word for word in words if word.startswith(text)]
