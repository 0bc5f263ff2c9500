"""The edges of the command line: streams that are closed or full, outputs that are inputs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuron_emu import assemble
from tests.command import ROOT, neuron_emu

COMMAND = f"{shlex.quote(sys.executable)} -m neuron_emu"
LONG = "a" * 5000


def shell(line, cwd):
    """Run a shell line; no part of it may end in a traceback."""
    done = subprocess.run(line, shell=True, cwd=cwd, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def folder(tmp_path):
    """A stream, a listing and an array."""
    text = (ROOT / "programs" / "exp.asm").read_text()
    (tmp_path / "x.asm").write_text(text)
    (tmp_path / "x.bin").write_bytes(assemble(text))
    np.save(tmp_path / "x.npy", np.float32([[1, 2]]))
    return tmp_path


class TestStreams:
    @pytest.mark.parametrize(
        "words",
        ["dis x.bin", "validate --format json x.bin", "explain 0x30", "asm x.asm -o -"],
    )
    def test_full_device(self, folder, words):
        """One sentence and exit 2 when standard output takes nothing."""
        done = shell(f"{COMMAND} {words} > /dev/full", folder)

        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "No space left on device" in done.stderr

    @pytest.mark.parametrize(
        "words",
        [
            "run --dump sbuf:0+0:fp32[1,1]=/dev/full x.bin",
            "run --trace /dev/full x.bin",
            "asm x.asm -o /dev/full",
            "tables build exp -o /dev/full",
        ],
    )
    def test_full_output_file(self, folder, words):
        """The file is named."""
        answer = neuron_emu(*words.split(), cwd=folder)

        assert answer.status == 2
        assert "/dev/full: cannot be written: No space left on device" in answer.err

    @pytest.mark.parametrize("words", ["dis x.bin >&-", "run --trace - x.bin >&-", "run - <&-"])
    def test_closed(self, folder, words):
        """A stream that the caller closed is no traceback."""
        done = shell(f"{COMMAND} {words}", folder)

        assert done.returncode == 2
        assert done.stderr.startswith("neuron-emu: ")

    def test_arrays_on_pipes(self, folder):
        """`-` is standard input for an array, and `eval` keeps its shape, a scalar's too."""
        np.save(folder / "half.npy", np.float32(0.5))
        done = subprocess.run(
            f"{COMMAND} tables eval exp --input - --output y.npy < half.npy",
            shell=True,
            cwd=folder,
            check=False,
        )
        result = np.load(folder / "y.npy")

        assert done.returncode == 0
        assert result.shape == ()
        assert int(result.view(np.uint32)) == 0x3FD308B1


class TestFiles:
    @pytest.mark.parametrize(
        ("words", "path"),
        [
            ("run --trace x.bin x.bin", "x.bin"),
            ("run --load sbuf:0+0:fp32[1,2]=x.npy --dump sbuf:0+0:fp32[1,2]=x.npy x.bin", "x.npy"),
            ("asm x.asm -o x.asm", "x.asm"),
            ("asm x.asm -o ./link", "x.asm"),
            ("tables eval exp --input x.npy --output x.npy", "x.npy"),
        ],
    )
    def test_inputs_stay(self, folder, words, path):
        """An output that is an input is refused before anything runs."""
        (folder / "link").symlink_to("x.asm")
        before = (folder / path).read_bytes()
        answer = neuron_emu(*words.split(), cwd=folder)

        assert answer.status == 2
        assert "output must not be an input as well" in answer.err
        assert (folder / path).read_bytes() == before

    def test_two_outputs_of_one_name(self, folder):
        """Neither would be whole."""
        dumps = ("--dump", "sbuf:0+0:fp32[1,1]=a.npy", "--dump", "sbuf:0+4:fp32[1,1]=./a.npy")
        answer = neuron_emu("run", *dumps, "x.bin", cwd=folder)

        assert answer.status == 2
        assert "output must not be another output as well" in answer.err
        assert not (folder / "a.npy").exists()

    def test_a_link_is_followed(self, folder):
        """The link stays, and what it points to is written."""
        (folder / "link.npy").symlink_to("target.npy")
        answer = neuron_emu("run", "--dump", "sbuf:0+0:fp32[1,1]=link.npy", "x.bin", cwd=folder)

        assert answer.status == 0
        assert (folder / "link.npy").is_symlink()
        assert np.load(folder / "target.npy").shape == (1, 1)

    @pytest.mark.parametrize(
        "words",
        [
            ["run", LONG],
            ["dis", LONG],
            ["asm", "x.asm", "-o", LONG],
            ["neff", "list", LONG],
            ["run", "--dump", f"sbuf:0+0:fp32[1,1]={LONG}", "x.bin"],
        ],
    )
    def test_names_that_are_too_long(self, folder, words):
        """The system's own sentence."""
        answer = neuron_emu(*words, cwd=folder)

        assert answer.status == 2
        assert "File name too long" in answer.err

    @pytest.mark.parametrize(
        "text", ["[semaphores]\n1 = " + "9" * 5000, "a = " + "[" * 100_000, "a = \udc80"]
    )
    def test_damaged_toml(self, folder, text):
        """As a scenario and as a configuration file."""
        data = text.encode("utf-8", "surrogateescape")
        (folder / "bad.toml").write_bytes(data)
        (folder / "neuron-emu.toml").write_bytes(data)
        scenario = neuron_emu("run", "bad.toml", cwd=folder)
        configured = neuron_emu("validate", "x.bin", cwd=folder)

        assert (scenario.status, configured.status) == (2, 2)
        assert "bad.toml" in scenario.err
        assert "neuron-emu.toml: cannot be read" in configured.err

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            ("asm empty.asm -o z.bin", "empty.asm: holds no words"),
            ("run --preload 99 x.bin", "function set must be 0 to 20 or one of exp_and_others"),
            ("explain 0x30 5", "X goes with a function"),
        ],
    )
    def test_sentences(self, folder, words, sentence):
        """What would be accepted."""
        (folder / "empty.asm").write_text("# nothing\n")
        answer = neuron_emu(*words.split(), cwd=folder)

        assert answer.status == 2
        assert sentence in answer.err
        assert not (folder / "z.bin").exists()

    def test_preload_by_index_in_a_scenario(self, folder):
        """SET is a name or an index."""
        (folder / "s.toml").write_text('preload = 0\n[policy]\ntables = "strict"\n[streams]\n'
                                       'dve = "x.asm"\n')  # fmt: skip

        assert neuron_emu("run", "s.toml", cwd=folder).status == 0


def test_names_that_no_encoding_has(tmp_path):
    """A file's name may be any bytes: it is shown escaped, in every format."""
    odd = os.fsdecode(os.fsencode(tmp_path / "n") + b"\xff.bin")
    Path(odd).write_bytes(assemble("NOP"))
    for form in ("full", "concise", "json", "sarif", "github"):
        done = subprocess.run(
            [sys.executable, "-m", "neuron_emu", "validate", "--format", form, odd],
            cwd=ROOT,
            capture_output=True,
            env=os.environ | {"PYTHONIOENCODING": "utf-8:strict"},
            check=False,
        )

        assert (done.returncode, done.stderr) == (0, b""), form


def test_prefix_of_a_scenario():
    """A scenario names its engines; a prefix is refused, not ignored."""
    refused = neuron_emu("validate", "act:programs/exp.toml")

    assert refused.status == 2
    assert refused.err.endswith("a scenario names its engines itself: no prefix\n")


def test_words_without_a_zero_byte_from_a_pipe():
    """What is no text is words, whatever bytes they hold."""
    word = bytes(range(128, 192))
    printed = neuron_emu("dis", "-", stdin=word)

    assert (printed.status, printed.out.split()[:2]) == (0, [".word", word.hex()])
