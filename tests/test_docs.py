"""Every example in the documents and docstrings is run and must print what it shows."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import shlex
import subprocess
import tomllib
from fnmatch import fnmatch
from functools import cache

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


@cache
def _guide_rows():
    """Return the modules that each row of the reading guide names, in order."""
    page = (ROOT / "docs" / "reading-guide.md").read_text()
    cells = re.findall(r"^\| [\w ]+ \| (`[^|]*`) \|", page, re.MULTILINE)
    return [re.findall(r"`([^`]+)`", cell) for cell in cells]


def _row_of(name):
    """Return the number of the row that names a module, such as `isa/families/control`."""
    rows = [
        number
        for number, names in enumerate(_guide_rows())
        if any(fnmatch(name, item) or f"{name}/*" == item for item in names)
    ]
    assert len(rows) == 1, f"{name} must stand in one row of the reading guide"
    return rows[0]


def _modules_and_imports():
    """Yield each module with what it imports when it is imported; faces of packages left out."""
    package = ROOT / "neuron_emu"
    names = {
        path: path.relative_to(package).with_suffix("").as_posix().removesuffix("/__init__")
        for path in sorted(package.rglob("*.py"))
    }
    faces = ("isa", "__init__", "__main__")
    for path, name in names.items():
        nodes = ast.parse(path.read_text()).body
        bases = [(n, (n.module or "").split(".")) for n in nodes if isinstance(n, ast.ImportFrom)]
        found = {
            member if member in names.values() else "/".join(base[1:])
            for node, base in bases
            if base[0] == "neuron_emu"
            for member in ("/".join([*base[1:], alias.name]) for alias in node.names)
        }
        if name not in faces:
            yield name, found - {"", *faces}


def test_reading_guide():
    """Every module stands in one row, and imports only from its row and those above it."""
    upward = [
        (name, other)
        for name, imports in _modules_and_imports()
        for other in sorted(imports)
        if _row_of(other) > _row_of(name)
    ]

    assert upward == []


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
