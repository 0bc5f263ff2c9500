"""Run the command line as a user does, in a process of its own or in this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parent.parent


@frozen
class Answer:
    """What a command printed and its exit status."""

    status: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        """Standard output as text."""
        return self.raw.decode()


def neuron_emu(*words: object, stdin: bytes = b"", cwd: Path = ROOT, timeout: int = 60) -> Answer:
    """Run `neuron-emu WORDS` in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", "from neuron_emu.cli import main; main()", *map(str, words)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        timeout=timeout,
        check=False,
    )
    answer = Answer(done.returncode, done.stdout, done.stderr.decode())
    assert "Traceback" not in answer.err, answer.err
    return answer
