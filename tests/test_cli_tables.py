"""`tables` and the function pages of `explain`, as a new user meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.command import neuron_emu


class TestShow:
    def test_exp(self):
        """pwp-model.md 8.4: 406 + 371 sections and both thresholds."""
        page = neuron_emu("tables", "show", "exp").out

        assert page.startswith("exp_400p: 777 sections (406 negative, 371 positive)\n")
        assert "pos_high  133/3240472" in page
        assert "neg_high  133/4362891" in page

    def test_list(self):
        """Functions with codes and sets with indices."""
        page = neuron_emu("tables", "list").out

        assert "7     exp" in page
        assert "20     derivative_gelu_apprx_sigmoid_and_others" in page


class TestEval:
    @pytest.mark.parametrize(
        ("evaluator", "word"),
        [
            ("pwp", 0x3FD308B1),  # pwp-model.md 4.7
            ("exact", 0x3FD3094C),  # the correctly rounded value, same place
        ],
    )
    def test_half(self, tmp_path, evaluator, word):
        """exp(0.5) keeps the input's shape and becomes float32."""
        np.save(tmp_path / "x.npy", np.full((2, 3), 0.5))
        args = ("--input", "x.npy", "--output", "y.npy", "--evaluator", evaluator)
        answer = neuron_emu("tables", "eval", "exp", *args, cwd=tmp_path)
        result = np.load(tmp_path / "y.npy")

        assert answer.status == 0
        assert (result.dtype, result.shape) == (np.float32, (2, 3))
        assert set(result.view(np.uint32).ravel()) == {word}

    def test_own_profile(self, tmp_path):
        """`--profile` evaluates a file and says where it differs from the shipped table."""
        np.save(tmp_path / "x.npy", np.float32([0.0, 0.5]))
        neuron_emu("tables", "build", "exp", "-o", "p.json", cwd=tmp_path)
        args = ("--input", "x.npy", "--output", "y.npy", "--profile", "p.json")
        same = neuron_emu("tables", "eval", "exp", *args, cwd=tmp_path)
        document = json.loads((tmp_path / "p.json").read_text())
        document["zero_result"] = document["saturation_points"]["sat_point_pos_high"]["d1"]
        (tmp_path / "p.json").write_text(json.dumps(document))
        changed = neuron_emu("tables", "eval", "exp", *args, cwd=tmp_path)

        assert (same.status, same.err) == (0, "")
        assert "p.json differs from the shipped exp_400p in zero_result" in changed.err
        assert np.load(tmp_path / "y.npy")[0] == 0

    def test_float_strings_are_not_read(self, tmp_path):
        """Only the `int` member counts: another `float` string moves no result."""
        np.save(tmp_path / "x.npy", np.linspace(-3, 3, 50, dtype=np.float32))
        neuron_emu("tables", "build", "exp", "-o", "p.json", cwd=tmp_path)
        text = (tmp_path / "p.json").read_text()
        (tmp_path / "p.json").write_text(text.replace('"float": "', '"float": "9'))
        args = ("--input", "x.npy", "--output", "y.npy")
        neuron_emu("tables", "eval", "exp", *args, "--profile", "p.json", cwd=tmp_path)
        mine = np.load(tmp_path / "y.npy")
        neuron_emu("tables", "eval", "exp", *args, cwd=tmp_path)

        assert np.array_equal(mine, np.load(tmp_path / "y.npy"))

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["show", "frob"], "'frob' is no activation function"),
            (["eval", "exp", "--input", "no.npy", "--output", "y.npy"], "no.npy: cannot be read"),
            (["eval", "exp", "--input", "x.npy", "--output", "no/y.npy"], "no/y.npy"),
            (["eval", "exp", "--input", "x.npy", "--output", "y.npy", "--evaluator", "x"], "pwp"),
            (
                ["eval", "exp", "--input", "x.npy", "--output", "y.npy", "--profile", "b.json"],
                "b.js",
            ),
            (["eval", "exp", "--input", "big.npy", "--output", "y.npy"], "exact in float32"),
            (["blobs", "99", "-o", "d"], "function set must be 0 to 20 or one of"),
        ],
    )
    def test_bad_input(self, tmp_path, words, sentence):
        """One sentence, exit 2, no output."""
        np.save(tmp_path / "x.npy", np.float32([1]))
        np.save(tmp_path / "big.npy", np.array([2**24 + 1]))
        (tmp_path / "b.json").write_text("{}")
        answer = neuron_emu("tables", *words, cwd=tmp_path)

        assert answer.status == 2
        assert sentence in answer.err
        assert not (tmp_path / "y.npy").exists()


class TestBlobs:
    def test_run_from_blobs_and_profiles(self, tmp_path):
        """A run on `--tables DIR` gives the same numbers from blobs and from profiles."""
        neuron_emu("tables", "blobs", "exp_and_others", "-o", tmp_path / "blobs")
        (tmp_path / "profiles").mkdir()
        neuron_emu("tables", "build", "exp", "-o", tmp_path / "profiles" / "exp_400p.json")

        for name in ("blobs", "profiles"):
            answer = neuron_emu("run", "--tables", tmp_path / name, "programs/exp.toml")
            assert answer.status == 0, answer.err


class TestExplain:
    def test_one_input(self):
        """`explain exp 0.5` walks the stations of pwp-model.md 4.7."""
        page = neuron_emu("explain", "exp", "0.5").out

        assert "index=424 section=0 x=0x3f1fffff d0=0x3fef22ae" in page
        assert "result   1.6487027406692505 (0x3fd308b1)" in page
        assert "error    155 ULP" in page

    def test_negative_number_is_no_option(self):
        """X may be -1."""
        answer = neuron_emu("explain", "exp", "-1")

        assert answer.status == 0
        assert "(0x3ebc5a40)" in answer.out


@pytest.mark.parametrize("function", ["exp", "ln"])
def test_plot(tmp_path, function):
    """A PNG picture, of both halves and with either scale."""
    pytest.importorskip("matplotlib")
    answer = neuron_emu("tables", "plot", function, "-o", tmp_path / "p.png")

    assert answer.status == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG\r\n")


class TestDirectory:
    def test_blobs_can_be_looked_at(self, tmp_path):
        """`show` and `eval` take a directory of packed sets as `run` does."""
        np.save(tmp_path / "x.npy", np.float32([0.5]))
        neuron_emu("tables", "blobs", "exp_and_others", "-o", tmp_path / "b")
        directory = ("--tables", tmp_path / "b")
        arrays = ("--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
        page = neuron_emu("tables", "show", "exp", *directory)
        answer = neuron_emu("tables", "eval", "exp", *arrays, *directory)

        assert page.out == neuron_emu("tables", "show", "exp").out
        assert answer.status == 0
        assert np.load(tmp_path / "y.npy").view(np.uint32) == 0x3FD308B1

    @pytest.mark.parametrize("name", ["exp_and_others_ctrl.bin", "exp_and_others.json"])
    def test_damage_is_found_before_anything_runs(self, tmp_path, name):
        """Exit 2, no dump, even when words come before the first use of a table."""
        neuron_emu("tables", "blobs", "exp_and_others", "-o", tmp_path)
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data[: len(data) // 2])
        dump = ("--dump", f"sbuf:0+0x2000:fp32[1,4]={tmp_path / 'd.npy'}")
        answer = neuron_emu("run", "--tables", tmp_path, *dump, "programs/exp.toml")

        assert answer.status == 2
        assert name in answer.err
        assert not (tmp_path / "d.npy").exists()

    def test_every_way_to_look(self, tmp_path):
        """list, explain and plot take the directory's tables, and say what it does not hold."""
        neuron_emu("tables", "blobs", "trig_and_small", "-o", tmp_path)
        listed = neuron_emu("tables", "list", "--tables", tmp_path).out.splitlines()
        rows = {line.split()[2]: line.split()[-1] for line in listed[1:40]}
        walked = neuron_emu("explain", "sin", "1", "--tables", tmp_path)
        lacking = neuron_emu("explain", "exp", "1", "--tables", tmp_path)
        drawn = neuron_emu("tables", "plot", "sin", "--tables", tmp_path, "-o", tmp_path / "p.png")

        assert (rows["sin_4p"], rows["relu_1p"], rows["exp_400p"]) == ("55", "0", "none")
        assert walked.out == neuron_emu("explain", "sin", "1").out
        assert lacking.status == 2
        assert lacking.err.endswith("holds no table for exp_400p\n")
        assert drawn.status == 0
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")

    def test_two_sources_of_one_table(self, tmp_path):
        """Nothing is chosen silently."""
        refused = neuron_emu("tables", "show", "exp", "--profile", "p.json", "--tables", tmp_path)

        assert refused.status == 2
        assert "--profile and --tables name two sources of one table" in refused.err

    def test_option_that_goes_with_a_function(self, tmp_path):
        """A rule has no table."""
        refused = neuron_emu("explain", "NE0107", "--tables", tmp_path)

        assert refused.status == 2
        assert "--tables goes with a function such as exp, not with 'NE0107'" in refused.err


class TestRefusals:
    """What may not be overwritten, named or counted, and how a reader that leaves is taken."""

    def test_outputs_do_not_replace_the_tables(self, tmp_path):
        """design.md 5: no input file changes."""
        neuron_emu("tables", "build", "exp", "-o", tmp_path / "exp_400p.json")
        before = (tmp_path / "exp_400p.json").read_bytes()
        table = tmp_path / "exp_400p.json"
        np.save(tmp_path.parent / f"{tmp_path.name}.npy", np.float32([1]))
        numbers = tmp_path.parent / f"{tmp_path.name}.npy"
        source = ("--tables", tmp_path)
        for words in (
            ("tables", "eval", "exp", "--input", numbers, "--output", table, *source),
            ("tables", "plot", "exp", "-o", table, *source),
            ("tables", "certify", "exp", "-o", table, *source),
            ("run", "--dump", f"sbuf:0+0x0:fp32[1,1]={table}", *source, "programs/exp.asm"),
            ("debug", "--batch", "--trace", table, *source, "programs/exp.asm"),
        ):
            refused = neuron_emu(*words)
            assert refused.status == 2
            assert refused.err.endswith("output must not replace a file of --tables\n")
        assert table.read_bytes() == before

    def test_blobs_over_the_sets_they_are_made_of(self, tmp_path):
        """Writing a directory anew into itself is refused as well."""
        neuron_emu("tables", "blobs", "4", "-o", tmp_path)
        refused = neuron_emu("tables", "blobs", "4", "--tables", tmp_path, "-o", tmp_path)

        assert refused.status == 2
        assert refused.err.endswith("output must not replace a file of --tables\n")

    def test_an_empty_directory_name(self):
        """An unset variable of a shell is no wish for the shipped tables."""
        for words in (("tables", "list"), ("explain", "exp", "1"), ("run", "programs/exp.asm")):
            refused = neuron_emu(*words, "--tables", "")
            assert refused.status == 2
            assert refused.err == "neuron-emu: --tables: must name a directory, not be empty\n"

    @pytest.mark.parametrize(
        "value",
        [np.int64(2**53 + 1), np.int64(2**60 + 1), np.uint64(2**64 - 1), np.int32(2**24 + 1)],
    )
    def test_integers_that_float32_does_not_hold(self, tmp_path, value):
        """Compared as integers: a double does not hold them either."""
        np.save(tmp_path / "x.npy", np.array([value]))
        arrays = ("--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
        refused = neuron_emu("tables", "eval", "exp", *arrays)

        assert refused.status == 2
        assert refused.err.endswith("integers must be exact in float32\n")

    def test_numbers_past_float32_say_nothing(self, tmp_path):
        """A slope and inputs that overflow are infinite, without a remark of numpy."""
        np.save(tmp_path / "x.npy", np.float64([1e300, -1.0]))
        arrays = ("--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
        answer = neuron_emu("tables", "eval", "parametric_relu", "--slope", "1e300", *arrays)

        assert (answer.status, answer.err) == (0, "")
        assert np.load(tmp_path / "y.npy").tolist() == [np.inf, -np.inf]

    def test_certify_looks_before_it_sweeps(self, tmp_path):
        """Nothing is begun, and nothing left, where the end is known to fail."""
        refused = neuron_emu("tables", "certify", "exp", "-o", tmp_path)
        slope = neuron_emu("tables", "certify", "parametric_relu", "-o", tmp_path / "c.json")

        assert refused.status == slope.status == 2
        assert refused.err.endswith("must be a file that can be written\n")
        assert list(tmp_path.iterdir()) == []

    def test_a_reader_that_leaves(self, tmp_path):
        """Exit 0 (nothing failed), and every file is there."""
        command = [sys.executable, "-c", "from neuron_emu.cli import main; main()"]
        words = ["tables", "blobs", "all", "-o", str(tmp_path / "sets")]
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [*command, *words], stdout=writer, stderr=subprocess.PIPE, check=False
        )
        os.close(writer)

        assert (done.returncode, done.stderr) == (0, b"")
        assert len(list((tmp_path / "sets").iterdir())) == 64

    def test_output_to_a_pipe_by_name(self, tmp_path):
        """/dev/stdout may be a pipe, which cannot be replaced by a file."""
        answer = neuron_emu("tables", "build", "relu", "-o", "/dev/stdout")

        assert answer.out == neuron_emu("tables", "build", "relu", "-o", "-").out

    def test_signalling_nan_is_shown_as_it_is(self):
        """The bits do not pass through a Python float."""
        page = neuron_emu("explain", "exp", "0x7f800001").out

        assert page.startswith("exp_400p(nan), input bits 0x7f800001\n")

    def test_a_nan_that_a_function_is_constant_at(self):
        """A number and no number have no distance."""
        page = neuron_emu("explain", "is_finite", "nan").out

        assert page.endswith("error    one of the two is no number\n")
