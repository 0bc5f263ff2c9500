"""The command line. Each subcommand is a module here with a click command named `command`.

Commands are imported when they are used, so that `neuron-emu --version` starts fast. Exit 0 is
clean, 1 a finding of severity error or a fault, 2 a job that could not be done (design.md 4).
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from typing import NoReturn

from neuron_emu import __version__

__all__ = ["main"]

COMMANDS = {
    "run": "run instruction streams over modelled memory",
    "dis": "print a stream as text",
    "asm": "turn text into a stream",
    "tables": "show, evaluate and build activation tables",
    "validate": "say whether each word is legal, and why not",
    "explain": "explain a rule, an opcode or a function",
    "neff": "list and unpack NEFF files",
    "debug": "step through streams, look inside, go back, ask why",
}


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command line and exit with its status; no input ends in a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    if words == ["--version"]:
        print(f"neuron-emu {__version__}")
        sys.exit(0)
    from neuron_emu.cli.group import run_command

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        # File names hold what no encoding may have: it is shown escaped, and nothing is lost.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = run_command(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe has gone: not an error, and nothing more can be written.
        status = 0
        _drop_output()
    except OSError as error:
        status = 2
        _drop_output()
        with contextlib.suppress(OSError):
            print(f"neuron-emu: output cannot be written: {error.strerror}", file=sys.stderr)
    sys.exit(status)


def _open_missing_streams() -> None:
    """Stand in for standard streams that the caller has closed; writing to a closed one fails."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        print("neuron-emu: standard output must be open", file=sys.stderr)
        sys.exit(2)


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter's own flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
