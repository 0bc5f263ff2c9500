"""`run`, `dis` and `asm` as a new user meets them: results, exit codes, and bad input."""

from __future__ import annotations

import json
import shlex
import struct
import subprocess
import sys

import numpy as np
import pytest

from neuron_emu import assemble
from tests.command import ROOT, neuron_emu

EXP = (
    "EXPONENTIAL src=fp32@0x1000[1,1,1][8,1,1] dst=fp32@0x2000[1,1,1][8,1,1] channels=128"
    " max_value=fp32@0.000000 accumulator_cmd=IDLE"
)
SOURCE = "sbuf:0+0x1000:fp32[128,8]"
RESULT = "sbuf:0+0x2000:fp32[128,8]"
# cases/users.md 1, worked out apart from any emulator.
CASE_1 = "3f800000 3ebc5a40 3e0a9501 3d4bed0b 3c960a53 3bdcc97a 3b22722d 3a6f0acc"


@pytest.fixture
def stream(tmp_path):
    """A raw stream of a table load and one EXPONENTIAL, and its input."""
    (tmp_path / "e.bin").write_bytes(assemble("ACT_TABLE_LOAD table_sel=0\n" + EXP))
    np.save(tmp_path / "x.npy", np.tile(-np.arange(8, dtype=np.float32), (128, 1)))
    return tmp_path


class TestRun:
    def test_bytes_in_numbers_out(self, stream):
        """Raw words, an .npy in, an .npy out: the words of case 1 in every lane."""
        answer = neuron_emu(
            "run", "--load", f"{SOURCE}=x.npy", "--dump", f"{RESULT}=y.npy", "e.bin", cwd=stream
        )
        found = np.load(stream / "y.npy").view(np.uint32)
        wanted = np.array([int(word, 16) for word in CASE_1.split()], np.uint32)

        assert (answer.status, answer.out) == (0, "")
        assert np.array_equal(found, np.tile(wanted, (128, 1)))

    def test_dump_to_standard_output_is_text(self, stream):
        """One line a partition; `:bits` prints unsigned integers."""
        answer = neuron_emu(
            *("run", "--load", f"{SOURCE}=x.npy"),
            *("--dump", "sbuf:127+0x2000:fp32:bits[1,8]=-", "--dump", "sbuf:0+0x2000:fp32[2,1]=-"),
            "e.bin",
            cwd=stream,
        )

        words = " ".join(str(int(word, 16)) for word in CASE_1.split())
        assert answer.out == f"{words}\n1.0\n1.0\n"

    def test_without_a_table_load(self, stream):
        """Policy tables=auto installs the lowest set and says so once; strict faults."""
        program = stream / "bare.asm"
        program.write_text(EXP + "\n" + EXP)
        load = ("--load", f"{SOURCE}=x.npy")
        auto = neuron_emu("run", *load, program, cwd=stream)
        strict = neuron_emu("run", *load, "--policy", "tables=strict", program, cwd=stream)
        preloaded = neuron_emu("run", *load, "--preload", "exp_and_others", program, cwd=stream)
        without = neuron_emu("run", *load, "--preload", "small", program, cwd=stream)

        assert (auto.status, auto.err.count("no_tables_loaded")) == (0, 1)
        assert (strict.status, strict.err.count("dve[0]: tables: ")) == (1, 1)
        assert (preloaded.status, preloaded.err.count("warning")) == (0, 0)
        assert without.status == 1
        assert "the loaded set small (index 4) does not hold exp" in without.err

    def test_standard_input(self, stream):
        """`-` reads raw words or text."""
        words = (stream / "e.bin").read_bytes()
        args = ("run", "--load", f"{SOURCE}=x.npy", "--dump", f"{RESULT}=-", "-")
        raw = neuron_emu(*args, stdin=words, cwd=stream)
        text = neuron_emu(*args, stdin=b"ACT_TABLE_LOAD table_sel=0\n" + EXP.encode(), cwd=stream)

        assert raw.status == text.status == 0
        assert raw.out == text.out != ""

    def test_engine_prefix(self, stream):
        """`act:FILE` gives the stream to ACT, which has no EXPONENTIAL."""
        answer = neuron_emu("run", "act:e.bin", cwd=stream)

        assert answer.status == 1
        assert "fault: act[1]: opcode_on_engine: " in answer.err

    def test_two_streams_for_one_engine(self, stream):
        """run takes one stream an engine."""
        answer = neuron_emu("run", "e.bin", "dve:e.bin", cwd=stream)

        assert answer.status == 2
        assert "engine dve must have one stream" in answer.err


class TestRefusal:
    @pytest.mark.parametrize("generation", ["sunda", "cayman"])
    def test_reserved_generations(self, stream, generation):
        """Case 27: validation and execution both refuse 0x30, each saying why."""
        answer = neuron_emu("run", "--gen", generation, "e.bin", cwd=stream)
        warned = neuron_emu(
            "run", "--gen", generation, "--policy", "invalid=warn", "e.bin", cwd=stream
        )

        assert answer.status == warned.status == 1
        assert "opcode_wired" in answer.err
        assert f"reserved on {generation}, not wired" in answer.err
        assert "fault: dve[1]: opcode: " in warned.err
        cam = "no PROF_CAM" if generation == "sunda" else "PROF_CAM does not arm it"
        assert cam in answer.err

    @pytest.mark.parametrize("generation", ["mariana", "mariana_plus", "maverick"])
    def test_wired_generations(self, stream, generation):
        """0x30 runs from MARIANA on."""
        answer = neuron_emu(
            "run", "--gen", generation, "--load", f"{SOURCE}=x.npy", "e.bin", cwd=stream
        )

        assert answer.status == 0

    def test_failing_conjunct_is_named_and_nothing_written(self, stream):
        """A refused word leaves memory as it was, and the dump is still written."""
        (stream / "bad.asm").write_text(EXP.replace(" max_value", " ops=ADD,BYPASS max_value"))
        answer = neuron_emu(
            "run", "--load", f"{SOURCE}=x.npy", "--dump", f"{RESULT}=y.npy", "bad.asm", cwd=stream
        )

        assert answer.status == 1
        assert "fault: dve[0]: has_valid_exponential_ops: " in answer.err
        assert not np.load(stream / "y.npy").any()


class TestTrace:
    def test_stations_by_name(self, stream):
        """design.md 2: each station, the CAM slot, and the firmware's log words."""
        neuron_emu("run", "--load", f"{SOURCE}=x.npy", "--trace", "t.jsonl", "e.bin", cwd=stream)
        lines = [json.loads(line) for line in (stream / "t.jsonl").read_text().splitlines()]
        stations = [line for line in lines if line["index"] == 1 and line["kind"] == "station"]
        by_name = {line["station"]: line for line in stations}

        assert list(by_name) == [
            *("sequencer", "kernel", "cam", "profile", "affine", "control", "bucket", "cubic"),
            *("result", "convert", "write", "accumulator"),
        ]  # fmt: skip
        assert by_name["kernel"]["handler"] == "Exponential"
        assert by_name["kernel"]["worker"] == "Tensor-Scalar"
        assert by_name["kernel"]["log"] == ["S: Exponential", "S: Tensor-Scalar"]
        assert by_name["cam"]["slot"] == "0x2d0"

    def test_unpublished_slot(self, stream):
        """MAVERICK's slot is not published."""
        answer = neuron_emu(
            "run", "--gen", "maverick", "--load", f"{SOURCE}=x.npy", "--trace", "-", "e.bin",
            cwd=stream,
        )  # fmt: skip

        assert "slot=unpublished" in answer.out
        assert "log=S: Exponential|S: Tensor-Scalar" in answer.out


class TestBadInput:
    """design.md 5, one sentence and exit 2, nothing run and nothing written."""

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["run", "short.bin"], "short.bin: size must be a multiple of 64 bytes, not 65"),
            (["run", "empty.bin"], "empty.bin: holds no words"),
            (["run", "missing.bin"], "missing.bin: cannot be read: No such file or directory"),
            (["dis", "short.bin"], "short.bin: size must be a multiple of 64 bytes, not 65"),
            (["run", "--gen", "trn9", "e.bin"], "generation must be one of sunda, "),
            (["run", "--engine", "gpu", "e.bin"], "engine must be one of pe, act, pool, dve, sp"),
            (["run", "--policy", "nan=maybe", "e.bin"], "nan must be one of fallthrough, profile"),
            (["run", "--policy", "colour=red", "e.bin"], "'colour' is no policy; the keys are "),
            (["run", "--preload", "exp_or_so", "e.bin"], "exp_or_so"),
            (["run", "--load", f"{SOURCE}=no.npy", "e.bin"], "no.npy: cannot be read"),
            (["run", "--load", f"{SOURCE}=bad.npy", "e.bin"], "bad.npy"),
            (["run", "--load", "sbuf:0+0x1000:fp32[128,9]=x.npy", "e.bin"], "shape [128, 9]"),
            (["run", "--load", "sbuf:0+0x1000:fp99[128,8]=x.npy", "e.bin"], "dtype must be one of"),
            (["run", "--dump", "hbm:0+0:fp32[1,1]=-", "e.bin"], "hbm"),
            (["run", "--dump", "sbuf:0+0x3ffff:fp32[1,1]=-", "e.bin"], "0x40000"),
            (["run", "--gen", "maverick", "--dump", "psum:0+0:fp32[1,1]=-", "e.bin"], "psum"),
            (["run", "--dump", f"{RESULT}=no/such/y.npy", "e.bin"], "no/such/y.npy"),
            (["run", "--tables", "no/such", "e.bin"], "no/such"),
            (
                ["run", "bad.asm"],
                "bad.asm:2: a line must begin with an opcode such as EXPONENTIAL",
            ),
            (["run", "bad.toml"], "bad.toml: is not TOML"),
            (["run", "--max-steps", "0", "e.bin"], "0"),
            (["run"], "PROGRAM"),
            (
                ["asm", "bad.asm", "-o", "out.bin"],
                "bad.asm:2: a line must begin with an opcode such as EXPONENTIAL",
            ),
            (["frobnicate"], "frobnicate"),
        ],
        ids=lambda value: "-".join(value)[:40] if isinstance(value, list) else "",
    )
    def test_sentence(self, stream, words, sentence):
        """Each names the file or option and what would be accepted."""
        (stream / "short.bin").write_bytes(bytes(65))
        (stream / "empty.bin").write_bytes(b"")
        (stream / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00garbage")
        (stream / "bad.asm").write_text("NOP\nFROB x=1\n")
        (stream / "bad.toml").write_text("= 1")
        before = sorted(path.name for path in stream.iterdir())
        answer = neuron_emu(*words, cwd=stream)

        assert answer.status == 2
        assert sentence in answer.err
        assert answer.out == ""
        assert sorted(path.name for path in stream.iterdir()) == before

    def test_unknown_opcode_keeps_what_ran_before(self, stream):
        """A fault at that index; memory before it is kept and dumped."""
        words = (stream / "e.bin").read_bytes() + bytes(64)
        (stream / "unknown.bin").write_bytes(words)
        answer = neuron_emu(
            *("run", "--load", f"{SOURCE}=x.npy", "--dump", "sbuf:0+0x2000:fp32[1,1]=-"),
            "unknown.bin",
            cwd=stream,
        )

        assert (answer.status, answer.out) == (1, "1.0\n")
        assert "fault: dve[2]: has_valid_neuron_header: " in answer.err

    def test_address_past_the_end(self, stream):
        """The first bad local address: partition 0 ends at 0x40000 on MARIANA."""
        (stream / "far.asm").write_text(EXP.replace("0x2000", "0x3fff0"))
        answer = neuron_emu("run", "--load", f"{SOURCE}=x.npy", "far.asm", cwd=stream)

        assert answer.status == 1
        assert "fault: dve[0]: address: " in answer.err
        assert "0x40000" in answer.err

    def test_damaged_inputs_stay_as_they_are(self, stream):
        """A program that cannot be read is not changed, and an output does not appear."""
        (stream / "short.bin").write_bytes(bytes(65))
        neuron_emu("run", "--dump", f"{RESULT}=y.npy", "short.bin", cwd=stream)

        assert (stream / "short.bin").read_bytes() == bytes(65)
        assert not (stream / "y.npy").exists()


class TestText:
    def test_dis_and_asm(self, stream):
        """`asm` of `dis` gives the bytes back, whatever they are."""
        words = (stream / "e.bin").read_bytes() + bytes(range(64)) + struct.pack("<16I", *range(16))
        (stream / "w.bin").write_bytes(words)
        listing = neuron_emu("dis", "--bytes", "w.bin", cwd=stream)
        (stream / "w.asm").write_text(listing.out)
        answer = neuron_emu("asm", "w.asm", "-o", "back.bin", cwd=stream)

        assert (listing.status, answer.status) == (0, 0)
        assert listing.out.splitlines()[1].startswith(EXP)
        assert (stream / "back.bin").read_bytes() == words

    def test_pipes(self):
        """Text in, words out, both on pipes."""
        words = neuron_emu("asm", "-", "-o", "-", stdin=b"NOP").raw

        assert words == bytes.fromhex("a4100000") + bytes(60)
        assert neuron_emu("dis", "-", stdin=words).out == "NOP\n"

    def test_reader_that_goes_away(self, stream):
        """A closed pipe is no error and no traceback."""
        (stream / "long.bin").write_bytes(assemble("NOP") * 20_000)
        done = subprocess.run(
            f"{shlex.quote(sys.executable)} -m neuron_emu dis long.bin | head -n 1",
            shell=True,
            capture_output=True,
            cwd=stream,
            check=False,
        )

        assert (done.stdout, done.stderr) == (b"NOP\n", b"")

    def test_version_and_help(self):
        """--version, --help and each command's --help with an example."""
        assert neuron_emu("--version").out.startswith("neuron-emu ")
        assert "Commands:" in neuron_emu("--help").out
        for name in ("run", "dis", "asm"):
            assert "Example:" in neuron_emu(name, "--help").out


def test_readme_main_job_is_the_first_program():
    """The command of the README names a program that exists."""
    text = (ROOT / "README.md").read_text()

    assert "programs/accumulate.toml" in text
    assert (ROOT / "programs" / "accumulate.toml").is_file()
