"""The house: lint, format and strict types, the flow of imports, and sizes."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.command import ROOT

PACKAGE = ROOT / "neuron_emu"
MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_clean(command):
    """ruff and mypy --strict have nothing to say."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("isa", ("neuron_emu.memory", "neuron_emu.engines", "neuron_emu.machine")),
        ("memory", ("neuron_emu.isa.families", "neuron_emu.engines", "neuron_emu.machine")),
        ("pwp", ("neuron_emu.isa", "neuron_emu.engines", "neuron_emu.memory")),
        ("engines", ("neuron_emu.machine", "neuron_emu.cli", "neuron_emu.debug")),
    ],
)
def test_data_flows_one_way(room, forbidden):
    """design: isa knows no memory or engine, tables know no instruction, engines no machine."""
    wrong = [
        (path.name, name)
        for path in (PACKAGE / room).rglob("*.py")
        for name in _imports(path)
        if name.startswith(forbidden)
    ]

    assert wrong == []


def test_construct_and_ml_dtypes_stay_behind_their_doors():
    """construct is used by layout.py only, ml_dtypes by numerics.py only."""
    users = {"construct": set(), "ml_dtypes": set()}
    for path in MODULES:
        for name in _imports(path):
            if name in users:
                users[name].add(path.name)

    assert users == {"construct": {"layout.py"}, "ml_dtypes": {"numerics.py"}}


def test_modules_stay_small():
    """No module passes 500 lines."""
    long = {p.name: n for p in MODULES if (n := len(p.read_text().splitlines())) > 500}

    assert long == {}
