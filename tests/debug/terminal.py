"""A person at a pseudo-terminal: lines and keys in, what the screen shows out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from tests.command import ROOT

PROMPT = "(neuron) "
_ESCAPES = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]|\x07")


class Terminal:
    """`neuron-emu WORDS` on a terminal of `rows` by 500 columns."""

    def __init__(self, *words: object, rows: int = 500, timeout: float = 20.0) -> None:
        self.timeout = timeout
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 500, 0, 0))
        environment = {**os.environ, "TERM": "dumb", "PAGER": "cat", "INPUTRC": "/dev/null"}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from neuron_emu.cli import main; main()", *map(str, words)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.seen = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def _read(self) -> None:
        ready, _, _ = select.select([self.master], [], [], self.timeout)
        assert ready, f"nothing came after: {self.seen[-300:]!r}"
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other side has closed the terminal
            data = b""
        if not data:
            raise EOFError(self.seen)
        self.seen += _ESCAPES.sub("", data.decode()).replace("\r", "")

    def until(self, text: str) -> str:
        """Return the screen up to a text, and take it away."""
        while text not in self.seen:
            self._read()
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.master, keys.encode())

    def say(self, line: str) -> str:
        """Type a line and return what appears before the next prompt, without the echo."""
        self.type(line + "\n")
        self.until(line + "\n")
        return self.until(PROMPT)

    def leave(self) -> int:
        """Wait for the end and return the exit status."""
        try:
            while True:
                self._read()
        except EOFError:
            return self.process.wait(timeout=self.timeout)


def wait_until(condition: object, seconds: float = 10.0) -> None:
    """Wait for a condition, a callable; fail after some seconds."""
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def blocks_of(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a page that carry a language."""
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return fence.findall(page.read_text())
