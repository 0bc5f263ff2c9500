"""The profile JSON: round trip, tolerance of what is harmless, refusal of what is damaged."""

from __future__ import annotations

import copy
import json
import random

import pytest
from attrs import evolve

from neuron_emu.errors import InputError
from neuron_emu.pwp.profile import differences
from neuron_emu.pwp.profile_json import dump_profile, parse_profile, read_profile
from neuron_emu.pwp.store import load_profile, shipped_profiles

# fmt: off
KEYS = [
    "name", "neuron_id", "sunda_id", "tonga_id", "max_diff", "lut_size", "symmetry_en",
    "symmetry_invert_sign_opt", "symmetry_opt_use_neg_region", "symmetry_point", "zero_result",
    "nan_result", "pinf_result", "ninf_result", "exponent_offset", "lower_bound", "upper_bound",
    "imm_bias", "fma_const0", "fma_const1", "use_multipass", "pos_exponents", "neg_exponents",
    "saturation_points",
]
# fmt: on
# fmt: off
INERT = [
    "neuron_id", "sunda_id", "tonga_id", "max_diff", "lut_size", "exponent_offset", "lower_bound",
    "upper_bound", "imm_bias", "fma_const0", "fma_const1", "use_multipass",
]
# fmt: on


@pytest.fixture
def document():
    return json.loads(dump_profile(load_profile("tanh")))


def _parse(document):
    return parse_profile(json.dumps(document), "tanh.json")


@pytest.mark.parametrize("name", shipped_profiles())
def test_round_trip(name):
    """Every key survives, and the text is the same again."""
    profile = load_profile(name)

    text = dump_profile(profile)

    assert parse_profile(text) == profile
    assert dump_profile(parse_profile(text)) == text


def test_the_schema():
    """pwp-model.md 2.1 to 2.5: 24 keys, 6 of an octave, 7 of a clamp, 6 of a float box."""
    document = json.loads(dump_profile(load_profile("exp")))
    octave = document["pos_exponents"][0]

    assert sorted(document) == sorted(KEYS)
    assert sorted(octave) == sorted(
        ["exponent", "num_sections", "extract_size", "extract_lsb", "exponent_sections", "pos"]
    )
    assert sorted(octave["exponent_sections"][0]) == ["d0", "d1", "d2", "d3", "x"]
    assert octave["exponent_sections"][0]["d3"] == {
        "float": "0.166667",
        "int": 1042983627,
        "hexstring": "3e2aaacb",
        "sign": 0,
        "exponent": 124,
        "mantissa": 2796235,
    }
    clamp = document["saturation_points"]["sat_point_pos_high"]
    assert sorted(clamp) == ["d0", "d1", "d2", "d3", "mantissa_point", "sat_point", "x"]
    assert (clamp["sat_point"], clamp["mantissa_point"]) == (133, 3240472)


def test_the_float_string_moves_nothing(document):
    """Only the `int` member is loaded."""
    section = document["pos_exponents"][3]["exponent_sections"][0]
    for text in ("1e9", "nan", "", None, 3):
        section["d1"]["float"] = document["zero_result"]["float"] = text
        assert _parse(document) == load_profile("tanh")
    for box in (section["d1"], document["zero_result"]):
        del box["float"], box["hexstring"], box["sign"], box["exponent"], box["mantissa"]
    assert _parse(document) == load_profile("tanh")


def test_harmless_differences(document):
    """Extra keys, another order, a nested clamp section, 0/1 for flags, hexadecimal in capitals."""
    document["section_id"] = document["pos_exponents"][0]["section_id"] = 7
    document["symmetry_en"], document["imm_bias"] = 1, 0
    document["pos_exponents"].reverse()
    document["nan_result"]["hexstring"] = "0x7FC00000"
    for clamp in document["saturation_points"].values():
        clamp["section"] = {name: clamp.pop(name) for name in ("x", "d0", "d1", "d2", "d3")}
    shuffled = dict(reversed(document.items()))

    assert _parse(shuffled) == load_profile("tanh")


def test_inert_keys_may_be_absent(document):
    """The 12 live keys are required on reading, the others are not."""
    for key in INERT:
        del document[key]

    assert differences(_parse(document), load_profile("tanh")) == ()


@pytest.mark.parametrize("key", [key for key in KEYS if key not in INERT])
def test_live_keys_are_required(document, key):
    """The message names file and key."""
    del document[key]

    with pytest.raises(InputError, match=rf"^tanh\.json: {key} must be present"):
        _parse(document)


def test_inert_values_survive(document):
    """Whatever they say, they come back, and no live field moves."""
    document |= {"max_diff": 2.5, "lut_size": 12, "exponent_offset": 5, "tonga_id": 99}
    document |= {"use_multipass": True, "neuron_id": None}
    document["pos_exponents"][2]["num_sections"] = 1 << 30
    profile = _parse(document)

    again = json.loads(dump_profile(profile))

    assert differences(profile, load_profile("tanh")) == ()
    assert again == document


DAMAGE = [
    (("name",), 3, r"name must be a name, not 3"),
    (("symmetry_en",), "true", r"symmetry_en must be true or false, not 'true'"),
    (("symmetry_en",), 2, r"symmetry_en must be true or false, not 2"),
    (("symmetry_en",), 1.0, r"symmetry_en must be true or false, not 1\.0"),
    (("zero_result",), 0, r"zero_result must be an object, not 0"),
    (("zero_result", "int"), -1, r"zero_result\.int must be an integer from 0 to 4294967295"),
    (("zero_result", "int"), 1 << 32, r"zero_result\.int must be an integer from 0 to 429496729"),
    (("zero_result", "int"), 0.0, r"zero_result\.int must be an integer .* not 0\.0"),
    (("zero_result", "int"), True, r"zero_result\.int must be an integer .* not True"),
    (("zero_result", "int"), 5, r"zero_result\.mantissa must be 5, as int is 5, not 0"),
    (("zero_result", "hexstring"), "zz", r"hexstring must be '00000000', as int is 0, not 'zz'"),
    (("zero_result", "sign"), "0", r"zero_result\.sign must be 0"),
    (("pos_exponents",), {}, r"pos_exponents must be an array, not \{\}"),
    (("pos_exponents", 1), None, r"pos_exponents\[1\] must be an object, not None"),
    (("pos_exponents", 1, "exponent"), -14, r"pos_exponents must have each exponent once, not -14"),
    (("pos_exponents", 1, "exponent"), 129, r"\[1\]\.exponent must be an integer from -127 to 128"),
    (("pos_exponents", 1, "exponent"), 9, r"stored section for every input .* 0x39000000 has none"),
    (("pos_exponents", 1, "extract_size"), 24, r"extract_size must be an integer from 0 to 23"),
    (("pos_exponents", 1, "extract_size"), -1, r"extract_size must be an integer from 0 to 23"),
    (("pos_exponents", 1, "extract_size"), 3, r"\.extract_size must agree with num_sections 1"),
    (("pos_exponents", 12, "extract_size"), 1, r"hold at most 2 sections for extract_size 1, not"),
    (("pos_exponents", 12, "exponent_sections"), [], r"must have a stored section .* 0x3e800000"),
    (("pos_exponents", 3, "exponent_sections", 0, "d2"), 7, r"s\[0\]\.d2 must be an object, not 7"),
    (("saturation_points",), [], r"saturation_points must be an object, not \[\]"),
    (("saturation_points", "sat_point_pos_high"), 1, r"sat_point_pos_high must be an object"),
    (("saturation_points", "sat_point_pos_high", "sat_point"), 256, r"an integer from 0 to 255"),
    (("saturation_points", "sat_point_pos_high", "sat_point"), 130, r"0x40fd3192|0x41000000"),
    (("saturation_points", "sat_point_pos_high", "mantissa_point"), 1 << 23, r"0 to 8388607"),
    (("saturation_points", "sat_point_pos_high", "mantissa_point"), {}, r"0 to 8388607, not \{\}"),
    (("fma_const0",), 1, r"fma_const0 must be an object, not 1"),
]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_diff", {"float": "4", "int": 0x40800000}),
        ("lut_size", 1.5),
        ("lower_bound", -1.0),
        ("neuron_id", "6"),
        ("fma_const1", None),
        ("use_multipass", "no"),
    ],
)
def test_what_nobody_reads_may_have_any_form(document, key, value):
    """pwp-model.md 2.1: no source prints the values of these keys, and no result needs them."""
    document[key] = value

    assert differences(_parse(document), load_profile("tanh")) == ()


@pytest.mark.parametrize(("path", "value", "message"), DAMAGE)
def test_damage_is_named(document, path, value, message):
    """File, key and expectation."""
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value

    with pytest.raises(InputError, match=message) as caught:
        _parse(document)
    assert str(caught.value).startswith("tanh.json: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be JSON"),
        ("{", "must be JSON"),
        ("[]", "must hold one JSON object"),
        ("3", "must hold one JSON object"),
        ('{"name": NaN}', "must hold no NaN"),
        ('{"name": -Infinity}', "must hold no -Infinity"),
        ('{"name": "a", "name": "b"}', "key 'name' must occur once"),
        ("[" * 200_000, "must not be nested this deeply"),
        ('{"a":' * 200_000, "must not be nested this deeply"),
        ('{"name": ' + "9" * 6000 + "}", "must be JSON"),
        (b"\xff\xfe{}", "must be UTF-8 text; byte 0 is not"),
        (b"\x00\x01\x02", "must be JSON"),
        ('{"name": "\\ud800"}', "must be present"),
    ],
    ids=range(13),
)
def test_what_is_no_profile(text, message):
    """Never another exception than InputError."""
    with pytest.raises(InputError, match=message):
        parse_profile(text, "x.json")


def test_files(tmp_path, monkeypatch):
    """A missing file, a directory, a file beyond any size, a byte order mark."""
    path = tmp_path / "p.json"
    with pytest.raises(InputError, match=r"p\.json: cannot be read: No such file"):
        read_profile(path)
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_profile(tmp_path)
    with pytest.raises(InputError, match="cannot be read: embedded null byte"):
        read_profile("a\0b")
    path.write_text("\ufeff" + dump_profile(load_profile("exp")), encoding="utf-8")
    assert read_profile(path) == load_profile("exp")
    monkeypatch.setattr("neuron_emu.pwp.json_reader.MAX_FILE_BYTES", 1000)
    with pytest.raises(InputError, match="must be at most 1000 bytes long"):
        read_profile(path)


# Nothing in a file repeats these, so a change of one is another, equally valid table. Who loads a
# file can compare it with the shipped one: `differences` names the field.
UNGUARDED = {
    "name",
    "symmetry_en",
    "symmetry_invert_sign_opt",
    "symmetry_opt_use_neg_region",
    "pos_high",
    "neg_high",
    "pos_low",
    "neg_low",
}


def _places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*path, index))


def _mutate(document, chance):
    """Change one random place of a copy in one random way."""
    changed = copy.deepcopy(document)
    *path, last = chance.choice([p for p in _places(document) if p])
    place = changed
    for step in path:
        place = place[step]
    old = place[last]
    kind = chance.randrange(5)
    if kind == 0:
        del place[last]
    elif kind == 1:
        place[last] = chance.choice([None, True, "", "x", -1, 0, 1, 2.5, 1 << 40, [], {}, [{}]])
    elif kind == 2 and isinstance(old, int):
        place[last] = old ^ (1 << chance.randrange(32))
    elif kind == 3 and isinstance(old, list) and old:
        old.append(copy.deepcopy(old[0]))
    else:
        place[last] = old + 1 if isinstance(old, int | float) else str(old)[::-1]
    return changed


@pytest.mark.parametrize("seed", range(10))
def test_random_mutations(seed):
    """A thousand changed files: refused, the same live table, or another in an unguarded field."""
    profile = load_profile("tanh")
    document = json.loads(dump_profile(profile))
    chance = random.Random(seed)
    outcomes = {"refused": 0, "equal": 0, "other": 0}
    for _ in range(100):
        changed = _mutate(document, chance)
        try:
            loaded = _parse(changed)
        except InputError:
            outcomes["refused"] += 1
            continue
        different = set(differences(loaded, profile))
        outcomes["other" if different else "equal"] += 1
        assert different <= UNGUARDED
        for clamp in ("pos_high", "neg_high", "pos_low", "neg_low"):
            assert loaded.clamp(clamp).section == profile.clamp(clamp).section

    assert outcomes["refused"] > 50
    assert outcomes["other"] < 10


@pytest.mark.parametrize("seed", range(3))
def test_random_bytes(seed):
    """500 files with bytes changed, cut off or inserted: InputError or a profile."""
    text = dump_profile(load_profile("relu")).encode()
    chance = random.Random(seed)
    for _ in range(500):
        data = bytearray(text)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.randrange(4) == 0:
            del data[chance.randrange(len(data)) :]
        try:
            parse_profile(bytes(data))
        except InputError:
            continue


def test_differences_name_the_field():
    """What tells a user that a file is not the shipped table."""
    tanh = load_profile("tanh")
    moved = evolve(tanh, pos_high=evolve(tanh.pos_high, mantissa_point=8204691), lut_size=3)

    assert differences(tanh, moved) == ("pos_high",)
    assert differences(tanh, evolve(tanh, lut_size=3)) == ()
