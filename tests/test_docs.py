"""Every example in the documents and docstrings is run and must print what it shows."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import subprocess
import tomllib

import numpy as np
import pytest

from neuron_emu import scenario as scenario_module
from neuron_emu.scenario import Scenario
from tests.command import ROOT, neuron_emu

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _console_blocks():
    for page in PAGES:
        for number, block in enumerate(CONSOLE.findall(page.read_text())):
            yield pytest.param(block, id=f"{page.stem}-{number}")


def _commands(block):
    """Yield (command, expected output) of a block of `$ command` lines and what they print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


@pytest.mark.parametrize("block", list(_console_blocks()))
def test_transcript(block, tmp_path):
    """`$ neuron-emu …` prints what the page shows, standard error included."""
    for command, expected in _commands(block):
        words = [w.replace("OUT/", f"{tmp_path}/") for w in shlex.split(command)]
        assert words[0] == "neuron-emu", "only our own commands stand in console blocks"
        answer = neuron_emu(*words[1:])

        assert (answer.out + answer.err).replace(f"{tmp_path}/", "OUT/") == expected, command


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(block, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(PYTHON.findall(page.read_text()))
    ],
)
def test_python_block(source, monkeypatch):
    """Python blocks run; `>>>` blocks print what they show."""
    monkeypatch.chdir(ROOT)
    if ">>>" in source:
        test = doctest.DocTestParser().get_doctest(source, {}, "page", None, 0)
        assert doctest.DocTestRunner().run(test).failed == 0
    else:
        exec(compile(source, "page", "exec"), {"__name__": "page"})


def test_scenario_example(tmp_path):
    """The scenario on the page of the command line is read, and it shows every key."""
    page = (ROOT / "docs" / "command-line.md").read_text()
    text = re.search(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "all.toml").write_text(text)
    np.save(tmp_path / "weights.npy", np.zeros((128, 64), np.float32))
    scenario = Scenario.read(tmp_path / "all.toml")

    assert len(scenario.loads) == 2
    assert tomllib.loads(text).keys() == scenario_module._KEYS


def _git(*words):
    """Return what a git command prints, None without git or when it fails."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.decode()


def test_example_commit():
    """The commit that docs/adding-an-instruction.md walks through is as the page shows it."""
    page = (ROOT / "docs" / "adding-an-instruction.md").read_text()
    commit = re.search(r"real commit, `([0-9a-f]{7,40})`", page)[1]
    if _git("cat-file", "-e", f"{commit}^{{commit}}") is None:
        pytest.skip("the history of the project is not here")
    files = _git("show", "--format=", "--name-only", commit).split()
    text = "\n".join(_git("show", f"{commit}:{file}") for file in files)
    excerpts = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    parts = [part for e in excerpts for part in re.split(r"^ *…\n", e, flags=re.MULTILINE)]

    assert _git("log", "-1", "--format=%s", commit).startswith(
        re.search(r"^> (.+)$", page, re.MULTILINE)[1]
    )
    assert set(re.findall(r"^\| `([\w/.-]+)` \|", page, re.MULTILINE)) == set(files)
    assert [part for part in parts if f"\n{part}" not in f"\n{text}"] == []


def _modules():
    for path in sorted((ROOT / "neuron_emu").rglob("*.py")):
        if ">>>" in path.read_text():
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("name", list(_modules()))
def test_docstrings(name):
    """Examples in docstrings print what they show."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_links():
    """Every relative link of a page names a file that exists."""
    missing = [
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]

    assert missing == []
