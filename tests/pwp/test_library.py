"""A compiler's directory: its act_info.json, sets that the roster does not know, what it lacks."""

from __future__ import annotations

import contextlib
import json
import os
import random

import numpy as np
import pytest
from attrs import evolve

from neuron_emu.errors import InputError
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program
from neuron_emu.machine import Machine
from neuron_emu.pwp.act_info import act_info_text, read_act_info
from neuron_emu.pwp.blobs import blob_files
from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.functions import FUNCTION_SETS, FunctionSet
from neuron_emu.pwp.library import TableLibrary
from neuron_emu.pwp.manifest import pack_set
from neuron_emu.pwp.pages import function_table, walk_page
from neuron_emu.pwp.profile import Clamp, Octave, Section, differences
from neuron_emu.pwp.profile_json import dump_profile
from neuron_emu.pwp.reference import scalar
from neuron_emu.pwp.store import load_profile
from neuron_emu.pwp.unpack import check_packed, unpack_profiles

# Two sets of a made-up compiler, in an order of its own; "wobble" is in no catalog.
FIRST = FunctionSet(0, "trigonometry", ("sin_4p", "copy_1p"))
SECOND = FunctionSet(1, "newer", ("wobble_7p", "exp_400p"))
WOBBLE_CODE = 77


def members(selected):
    """Return the profiles of a set; wobble is tanh under another name and code."""
    wobble = evolve(load_profile("tanh_4p"), name="wobble", sunda_id=WOBBLE_CODE)
    return {
        name: wobble if name == "wobble_7p" else load_profile(name) for name in selected.members
    }


@pytest.fixture
def directory(tmp_path):
    """Both sets, packed, beside their act_info.json."""
    for selected in (FIRST, SECOND):
        for name, data in blob_files(pack_set(selected.name, members(selected))).items():
            (tmp_path / name).write_bytes(data)
    (tmp_path / "act_info.json").write_text(act_info_text((FIRST, SECOND)))
    return tmp_path


def run(directory, index, code):
    """Load set `index`, apply the function with this code to 0.5, return its bits or the fault."""
    machine = Machine("mariana", tables=directory)
    machine.write("sbuf:0+0x1000:fp32[1,1]", [[0.5]])
    word = bytearray(
        assemble("ACTIVATE EXP src=fp32@0x1000[1][1] dst=fp32@0x2000[1][1] channels=1")
    )
    word[35] = code
    load = assemble(f"ACTIVATION_TABLE_LOAD table_sel={index}")
    fault = machine.run(Program.of(load + bytes(word), Engine.ACT)).fault
    return fault or int(machine.read("sbuf:0+0x2000:fp32:bits[1,1]")[0, 0])


def test_layout():
    """activation-tables.md 6.1: two keys; five for each set; `act` in order."""
    document = json.loads(act_info_text(FUNCTION_SETS))
    first = document["act_func_sets"][0]

    assert list(document) == ["pwp_file_keys", "act_func_sets"]
    assert document["pwp_file_keys"] == ["bkt_bin", "ctrl_bin", "profile_json"]
    assert list(first) == ["name", "bkt_bin", "ctrl_bin", "profile_json", "act"]
    assert list(first["act"].items())[:3] == [("exp", 400), ("identity", 1), ("copy", 1)]


def test_a_profile_of_two_passes_has_its_number():
    """ln_4p_0mp is variant 4, as its name says."""
    text = act_info_text([FunctionSet(0, "passes", ("ln_4p_0mp", "copy_1p"))])

    assert json.loads(text)["act_func_sets"][0]["act"] == {"ln": 4, "copy": 1}


def test_the_index_is_the_position(directory):
    """activation-tables.md 2.4: 0x23 counts in the target's own act_info.json."""
    exp = load_profile("exp").sunda_id

    assert run(directory, 1, exp) == 0x3FD308B1
    assert "does not hold exp" in run(directory, 0, exp).message
    assert run(directory, 2, exp).message == "act_tbl_sel must be 0 to 1, not 2"


def test_a_function_outside_the_catalog(directory):
    """It has a table and a code, and so a value; a closed form it has not."""
    library = TableLibrary(directory)
    values = np.float32([0.5])
    tables = library.packed(library.function_set("newer"))
    compiled = tables.compiled(tables.slot_of("wobble"))

    assert library.function_of(WOBBLE_CODE) == "wobble"
    assert run(directory, 1, WOBBLE_CODE) == scalar(load_profile("tanh"), 0x3F000000)
    with pytest.raises(InputError, match="Simulator::simulation: wobble"):
        compiled.evaluate(values, evaluator="exact")
    (line,) = [row for row in function_table(library).splitlines() if "wobble" in row]
    assert line.split() == ["77", "wobble", "wobble_7p", "?", "104"]
    assert walk_page("wobble_7p", compiled, 0x3F000000).endswith("no closed form has this name")


def test_profiles_instead_of_packed_sets(tmp_path):
    """The list gives the sets, files of their members the tables."""
    (tmp_path / "act_info.json").write_text(act_info_text((FIRST, SECOND)))
    for selected in (FIRST, SECOND):
        for name, profile in members(selected).items():
            (tmp_path / f"{name}.json").write_text(dump_profile(profile))

    assert run(tmp_path, 1, load_profile("exp").sunda_id) == 0x3FD308B1


def profile_directory(tmp_path, **changes):
    """A directory with one profile that differs from the shipped exp in some keys."""
    (tmp_path / "exp_400p.json").write_text(dump_profile(evolve(load_profile("exp"), **changes)))
    return tmp_path


@pytest.mark.parametrize(
    "changes", [{"exponent_offset": -18}, {"lut_size": 99999}, {"name": "Exp"}, {"sunda_id": None}]
)
def test_inert_keys_of_a_profile_decide_nothing(tmp_path, changes):
    """pwp-model.md 2.1; the closed form is that of the file's function, however it is spelled."""
    directory = profile_directory(tmp_path, **changes)
    profile = TableLibrary(directory).profile("exp_400p")
    exact = compile_profile(profile).evaluate(np.float32([0.5]), evaluator="exact")

    assert run(directory, 0, load_profile("exp").sunda_id) == 0x3FD308B1
    assert int(exact.view(np.uint32)[0]) == 0x3FD3094C


def test_sides_that_begin_at_different_exponents(tmp_path):
    """pwp-model.md 4.4: an octave is found by its exponent; packed, a hole is an empty octave."""
    exp = load_profile("exp")
    start = evolve(exp.pos_low, sat_point=exp.pos_low.sat_point + 1)
    directory = profile_directory(tmp_path, pos_exponents=exp.pos_exponents[1:], pos_low=start)

    assert run(directory, 0, exp.sunda_id) == 0x3FD308B1


def test_a_half_without_a_fold(tmp_path):
    """Only the negative half is stored: what is packed reads back."""
    exp = load_profile("exp")
    half = evolve(exp, pos_exponents=(), pos_low=Clamp(255, 0, Section()))
    packed = pack_set("halves", {"exp_400p": half})

    assert differences(unpack_profiles(packed)["exp_400p"], half) == ()
    check_packed(packed)


def test_a_profile_that_the_hardware_has_no_room_for(tmp_path):
    """A control word has four bits for extract_size; the file is named before anything runs."""
    exp = load_profile("exp")
    fine = Octave(-19, 16, exp.pos_exponents[0].sections)
    end = Clamp(108, 1 << 7, exp.pos_high.section)
    directory = profile_directory(tmp_path, pos_exponents=(fine,), pos_high=end)

    with pytest.raises(InputError, match=r"exp_400p\.json: exp_400p must "):
        Machine(tables=directory)


def test_more_sets_than_the_roster(tmp_path):
    """activation-tables.md 2.4: the index is the position, however many there are."""
    sets = [FunctionSet(i, f"set_{i}", ("copy_1p",)) for i in range(25)]
    (tmp_path / "act_info.json").write_text(act_info_text([*sets, evolve(SECOND, index=25)]))
    (tmp_path / "exp_400p.json").write_text(dump_profile(load_profile("exp")))

    assert run(tmp_path, 25, load_profile("exp").sunda_id) == 0x3FD308B1


def test_a_pipe_is_no_table(tmp_path):
    """Reading it would wait for a writer."""
    profile_directory(tmp_path)
    os.mkfifo(tmp_path / "tanh_4p.json")

    assert TableLibrary(tmp_path).profile_names == ("exp_400p",)


def change(directory, edit):
    """Edit the act_info.json of a directory."""
    path = directory / "act_info.json"
    document = json.loads(path.read_text())
    edit(document["act_func_sets"])
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda sets: sets.clear(), "act_func_sets must be an array of 1 to 4096 sets"),
        (lambda sets: sets.append(sets[0]), "each name once, not 'trigonometry'"),
        (lambda sets: sets[0].update(name=""), "name must be the name of a set"),
        (lambda sets: sets[0].update(name="../evil"), "name must be the name of a set"),
        (lambda sets: sets[0].update(name="a\ud800"), "name must be the name of a set"),
        (lambda sets: sets[0].update(name="a\nb"), "name must be the name of a set"),
        (lambda sets: sets[0].update(act=[]), "act must be an object of function: variant"),
        (lambda sets: sets[0]["act"].update(sin="4"), r"act\.sin must be an integer"),
        (lambda sets: sets[0]["act"].update({"a b": 4}), "act must be keyed by functions"),
        (lambda sets: sets[0].update(profile_json="../x.json"), "a file name without a folder"),
        (lambda sets: sets[0].pop("profile_json"), "profile_json must be present"),
        (lambda sets: sets[0]["act"].update(tanh=4), "must hold the functions that act_info.json"),
    ],
)
def test_what_is_wrong_is_named(directory, edit, message):
    """Before anything runs."""
    change(directory, edit)

    with pytest.raises(InputError, match=message):
        Machine(tables=directory)


def test_random_damage(directory):
    """No mutation of the list ends in anything but our error or a library."""
    path = directory / "act_info.json"
    original = path.read_bytes()
    source = random.Random(11)
    for _ in range(1000):
        data = bytearray(original)
        for _ in range(source.randint(1, 3)):
            data[source.randrange(len(data))] = source.randrange(256)
        path.write_bytes(data)
        with contextlib.suppress(InputError):
            read_act_info(directory)
