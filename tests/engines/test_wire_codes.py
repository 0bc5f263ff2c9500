"""Which function a wire code means: the manifest of a packed set says so, the catalog else."""

from __future__ import annotations

import json

import numpy as np
import pytest

from neuron_emu.errors import InputError
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program
from neuron_emu.machine import Machine
from neuron_emu.pwp import reference
from neuron_emu.pwp.blobs import blob_files
from neuron_emu.pwp.functions import function_named
from neuron_emu.pwp.library import TableLibrary
from neuron_emu.pwp.profile_json import dump_profile
from neuron_emu.pwp.store import load_profile
from neuron_emu.pwp.tables import install

FUNCTION_BYTE = 35
INPUT = 0.75


@pytest.fixture
def directory(tmp_path):
    """Two packed sets of a compiler: one with derivative_sigmoid, one with exp."""
    for name in ("sigmoid_derivative", "exp_and_others"):
        for file, data in blob_files(install(name).packed).items():
            (tmp_path / file).write_bytes(data)
    return tmp_path


def give_code(directory, selected, profile, code):
    """Change one function's func_id in a manifest."""
    path = directory / f"{selected}.json"
    document = json.loads(path.read_text())
    entry = next(e for e in document["profile_meta_data"] if e["func_name"] == profile)
    entry["func_id"] = code
    path.write_text(json.dumps(document))


def result_of(directory, code):
    """Return the bits of f(0.75) for an ACTIVATE with this code, or the fault."""
    machine = Machine("mariana", tables=directory)
    machine.write("sbuf:0+0x1000:fp32[1,1]", [[INPUT]])
    line = "ACTIVATE EXP src=fp32@0x1000[1][1] dst=fp32@0x2000[1][1] channels=1"
    word = bytearray(assemble(line))
    word[FUNCTION_BYTE] = code
    fault = machine.run(Program.of(bytes(word), Engine.ACT)).fault
    return fault or int(machine.read("sbuf:0+0x2000:fp32:bits[1,1]")[0, 0])


def expected(profile):
    """Return the scalar oracle's bits of f(0.75)."""
    return reference.scalar(load_profile(profile), int(np.float32(INPUT).view(np.uint32)))


def test_a_code_that_only_the_manifest_knows(directory):
    """activation-tables.md 4: no source prints the code of derivative_sigmoid."""
    assert function_named("derivative_sigmoid").code is None
    assert result_of(directory, 99).message == "activation_func 0x63 names no known function"

    give_code(directory, "sigmoid_derivative", "derivative_sigmoid_40p", 99)

    assert result_of(directory, 99) == expected("derivative_sigmoid_40p")


def test_a_manifest_that_differs_from_the_catalog(directory):
    """The manifest's code is the function's only one."""
    give_code(directory, "exp_and_others", "exp_400p", 99)

    assert result_of(directory, 99) == expected("exp_400p")
    assert result_of(directory, 7).message == "activation_func 0x07 names no known function"


def test_codes_of_functions_that_no_manifest_has(directory):
    """They are known by the catalog, and have no table in this directory."""
    code = function_named("sin").code

    assert TableLibrary(directory).function_of(code) == "sin"
    assert result_of(directory, code).message == "no function set is loaded, and sin needs one"


def test_two_functions_of_one_code(directory):
    """Sets that contradict each other are refused before anything runs."""
    give_code(directory, "sigmoid_derivative", "derivative_sigmoid_40p", 7)

    with pytest.raises(InputError, match="func_id of its own, not 7 to both exp and derivative_s"):
        Machine(tables=directory)


def test_ids_of_a_profile_file_are_inert(tmp_path):
    """pwp-model.md 2: neuron_id and sunda_id serve no look-up."""
    text = dump_profile(load_profile("exp_400p"))
    (tmp_path / "tanh_4p.json").write_text(text)

    assert TableLibrary(tmp_path).function_of(function_named("tanh").code) == "tanh"
