"""`neuron-emu validate`: exit codes, formats, engines, configuration."""

from __future__ import annotations

import json

import pytest

from neuron_emu.cli.group import run_command
from neuron_emu.isa.rules.examples import standard_word
from tests.command import Answer

CLEAN = standard_word(0x23) + standard_word(0x30)
BAD = standard_word(0x30)[:36] + b"\x04" + standard_word(0x30)[37:]


@pytest.fixture
def validate(capsys):
    """Run `neuron-emu validate` in this process."""

    def run(*words):
        status = run_command(["validate", *words])
        out, err = capsys.readouterr()
        return Answer(status, out.encode(), err)

    return run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with streams, and go there."""
    (tmp_path / "clean.bin").write_bytes(CLEAN)
    (tmp_path / "bad.bin").write_bytes(CLEAN + BAD)
    (tmp_path / "exp.bin").write_bytes(standard_word(0x30))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_exit_codes(validate, folder):
    """0 clean, 1 an error, 2 a job that could not be done; warnings are clean."""
    assert validate("clean.bin").status == 0
    assert validate("bad.bin").status == 1
    assert validate("exp.bin").status == 0
    assert "no_table_loaded" in validate("exp.bin").out
    assert validate("none.bin").status == 2


def test_clean_stream(validate, folder):
    """A clean stream is one line of text, nothing in concise, `[]` in JSON."""
    assert validate("clean.bin").out == "clean.bin: no finding in 2 words (mariana)\n"
    assert validate("--format", "concise", "clean.bin").out == ""
    assert validate("--format", "json", "clean.bin").out == "[]\n"


def test_json_over_files(validate, folder):
    """One list over all files; engines come from the prefix, then the option."""
    answer = validate("--format", "json", "bad.bin", "act:clean.bin", "bad.bin")
    found = json.loads(answer.out)

    assert [(f["file"], f["engine"], f["name"]) for f in found] == [
        ("bad.bin", "dve", "has_valid_exponential_ops"),
        ("clean.bin", "act", "opcode_on_engine"),
        ("bad.bin", "dve", "has_valid_exponential_ops"),
    ]
    assert answer.status == 1
    assert answer.err == ""


def test_all_generations(validate, folder):
    """The matrix; legal on one generation is enough for exit 0."""
    answer = validate("--gen", "all", "clean.bin")

    assert answer.status == 0
    assert "NE0001 opcode_wired" in answer.out
    assert validate("--gen", "all", "bad.bin").status == 1
    found = json.loads(validate("--gen", "all", "--format", "json", "clean.bin").out)
    assert [f["generation"] for f in found] == ["sunda", "cayman"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--gen", "v9"], "generation must be one of sunda, cayman, mariana, mariana_plus,"),
        (["--engine", "vpu"], "engine must be one of pe, act, pool, dve, sp, not 'vpu'"),
        (["--allow", "foo"], "allow must name a stream rule (undefined_accumulator, "),
        (["--policy", "foo=1"], "'foo' is no policy"),
    ],
)
def test_unknown_names(validate, folder, words, sentence):
    """Unknown names are answered with what exists, and exit 2."""
    answer = validate(*words, "clean.bin")

    assert answer.status == 2
    assert sentence in answer.err
    assert answer.out == ""


@pytest.mark.parametrize("form", ["full", "concise", "json", "sarif", "github"])
def test_formats_agree(validate, folder, form):
    """Every format tells the finding, and the exit code does not depend on it."""
    answer = validate("--format", form, "bad.bin")

    assert answer.status == 1
    assert "NE0109" in answer.out
    assert "op0 must be BYPASS, not ADD" in answer.out


class TestConfiguration:
    def test_pyproject(self, validate, folder):
        """The section of pyproject.toml sets what the options do not."""
        text = '[tool.neuron-emu]\nallow = ["no-table-loaded"]\ngen = "cayman"\n'
        (folder / "pyproject.toml").write_text(text)

        assert "cayman" in validate("exp.bin").out
        answer = validate("--gen", "mariana", "--format", "concise", "exp.bin")
        assert answer.out == ""

    def test_own_file_from_a_folder_below(self, validate, folder, monkeypatch):
        """neuron-emu.toml is found from below, and its policy counts."""
        (folder / "neuron-emu.toml").write_text('policy = ["dve_act_ops=refuse"]\n')
        (folder / "below").mkdir()
        monkeypatch.chdir(folder / "below")

        assert "ACT_TABLE_LOAD must be in a stream of act" in validate("../clean.bin").out

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("allow = 3", "allow must be a list of strings, not 3"),
            ("colour = true", "keys must be of allow, gen, policy, not 'colour'"),
            ('allow = ["x"]', "allow must name a stream rule"),
            ("allow = [", "cannot be read"),
            ("gen = 5", "gen must be a string, not 5"),
        ],
    )
    def test_mistakes(self, validate, folder, text, sentence):
        """A wrong configuration is a sentence with the file's name, and exit 2."""
        (folder / "neuron-emu.toml").write_text(text + "\n")
        answer = validate("clean.bin")

        assert answer.status == 2
        assert sentence in answer.err


def test_uncovered_opcodes_are_named(validate, folder):
    """Words without rules of their own are counted and named, so that clean means what it says."""
    word = bytes([0x67, 0x10]) + bytes(62)
    (folder / "pool.bin").write_bytes(word * 3)

    assert validate("pool.bin").out == (
        "pool.bin: no finding in 3 words (mariana)\n"
        "  3 of them judged by opcode, engine, header and events alone: POOL_BUFFER_LOAD\n"
    )


def test_no_colour_without_a_terminal(validate, folder):
    """Nothing but text goes into a pipe."""
    assert "\x1b" not in validate("bad.bin").out


def test_progress_bar_keeps_results_on_standard_output(validate, folder, monkeypatch):
    """On a terminal a large job shows a bar on standard error; the results are not mixed in."""
    monkeypatch.setattr("neuron_emu.cli.validate.PROGRESS_WORDS", 1)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    for form in ("json", "concise"):
        answer = validate("--format", form, "bad.bin")
        assert "op0 must be BYPASS, not ADD" in answer.out
        assert "op0" not in answer.err
        assert "judging words" in answer.err
        assert "judging words" not in answer.out
