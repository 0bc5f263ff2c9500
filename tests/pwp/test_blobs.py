"""Packed sets as files: bytes that the sources print, both directions, and damage of every kind."""

from __future__ import annotations

import contextlib
import json
import random
import struct

import numpy as np
import pytest

from neuron_emu.errors import InputError
from neuron_emu.pwp.blobs import blob_files, read_packed
from neuron_emu.pwp.evaluate import compile_profile
from neuron_emu.pwp.functions import function_set
from neuron_emu.pwp.library import TableLibrary
from neuron_emu.pwp.profile import differences
from neuron_emu.pwp.store import load_profile
from neuron_emu.pwp.tables import install, unpack_tables
from neuron_emu.pwp.unpack import check_packed, unpack_profiles
from tests.pwp.inputs import edge_bits, random_bits, special_bits

SET = "exp_and_others"
# activation-tables.md 6.6 [observed]: control word by index, and buckets 0, 777 to 780.
CONTROL_WORDS = {
    0: 0xB800,
    1: 0xB801,
    18: 0x1B012,
    25: 0x87910,
    26: 0xB996,
    51: 0x87AA6,
    64: 0xBB2D,
}
BUCKETS = {
    0: "3F7FFFD0 3F7FFFD0 3EFFFFD0 3E2AAA8B B63FFFFF",
    777: "3F800000 3F800000 3F000000 3E2AAAAB 00000000",
    778: "3F800000 3F800000 3F000000 3E2AAAAB 00000000",
    779: "7F800000 00000000 00000000 00000000 00000000",
    780: "00000000 00000000 00000000 00000000 00000000",
}
KEYS = [
    *("bkt_bin", "bkt_entry_cnt", "ctl_bin", "ctl_entry_cnt", "func_to_bkt_start_idx"),
    *("func_to_ctl_start_idx", "func_exp_to_bkt_start_idx", "func_exp_to_ctl_start_idx"),
    "profile_meta_data",
]


@pytest.fixture
def files(tmp_path):
    """The files of set 0 in a directory."""
    for file, data in blob_files(install(0).packed).items():
        (tmp_path / file).write_bytes(data)
    return tmp_path


class TestPublishedBytes:
    def test_buckets_and_controls(self, files):
        """Records lie at 32-byte strides with the printed words."""
        bkt = (files / f"{SET}_bkt.bin").read_bytes()
        ctl = (files / f"{SET}_ctrl.bin").read_bytes()

        assert (len(bkt), len(ctl)) == (941 * 32, 89 * 32)
        for index, words in BUCKETS.items():
            record = bkt[32 * index : 32 * index + 32]
            assert record == struct.pack("<5I12x", *(int(w, 16) for w in words.split()))
        for index, word in CONTROL_WORDS.items():
            assert ctl[32 * index : 32 * index + 32] == struct.pack("<I28x", word)

    def test_manifest_keys(self, files):
        """Nine keys, thirty in each entry, the file name with an r and its key without."""
        manifest = json.loads((files / f"{SET}.json").read_text())

        assert list(manifest) == KEYS
        assert {len(entry) for entry in manifest["profile_meta_data"]} == {30}
        assert manifest["ctl_bin"] == f"{SET}_ctrl.bin"
        assert manifest["func_exp_to_bkt_start_idx"]["exp"]["-19"] == [0, 406]
        assert manifest["func_exp_to_ctl_start_idx"]["exp"]["6"] == [25, 51]
        assert manifest["func_exp_to_bkt_start_idx"]["tanh"]["-13"] == [814]
        assert manifest["func_exp_to_ctl_start_idx"]["parametric_relu"] == {}


class TestReading:
    def test_round_trip(self, files):
        """Reading gives the set that was written, and the same bytes when written again."""
        again = read_packed(files, SET)

        assert again.functions == install(0).packed.functions
        assert blob_files(again) == blob_files(install(0).packed)

    @pytest.mark.parametrize("function", ["exp", "tanh", "relu", "sign", "square"])
    def test_same_bits_as_the_profile(self, files, function):
        """Evaluation from blobs equals evaluation from the profile."""
        tables = unpack_tables(function_set(0), read_packed(files, SET))
        profile = load_profile(function)
        bits = np.concatenate([special_bits(), edge_bits(profile), random_bits(20_000)])
        values = bits.view(np.float32)
        from_blobs = tables.compiled(tables.slot_of(function)).evaluate(values)
        from_profile = compile_profile(profile).evaluate(values)

        assert np.array_equal(from_blobs.view(np.uint32), from_profile.view(np.uint32))

    def test_library(self, files, tmp_path):
        """A directory of a compiler is used instead of the shipped tables, and only it."""
        library = TableLibrary(files)

        resident = library.install(0)
        assert resident is not None
        assert resident.compiled("exp").evaluate(np.float32([0.5])).view(np.uint32) == 0x3FD308B1
        with pytest.raises(InputError, match=r"set exp_and_others must hold 'sin'"):
            resident.compiled("sin")
        with pytest.raises(InputError, match="must be a directory that holds profiles"):
            TableLibrary(tmp_path / "nothing")


class TestDamage:
    @pytest.mark.parametrize(
        ("name", "change", "message"),
        [
            ("_bkt.bin", lambda b: b[:-1], r"_bkt\.bin: must hold 941 records of 32 bytes"),
            ("_bkt.bin", lambda b: b + b"\0", r"_bkt\.bin: must hold 941 records of 32 bytes"),
            ("_bkt.bin", lambda b: b[:31] + b"\1" + b[32:], r"record 0 must be zero past byte 20"),
            ("_ctrl.bin", lambda b: b[:64], r"_ctrl\.bin: must hold 89 records"),
            ("_ctrl.bin", lambda b: b[:3] + b"\1" + b[4:], r"record 0 must be a control word"),
            ("_ctrl.bin", lambda b: b[:34] + b"\7" + b[35:], r"record 1 must be a control word"),
            (".json", lambda b: b[:100], r"\.json: must be JSON"),
            (
                ".json",
                lambda b: b.replace(b'"exp_400p"', b'"frob"'),
                r"func_name must be the na",
            ),
            (".json", lambda b: b.replace(b'_bkt.bin"', b'_bkt/../x"'), r"bkt_bin must be a file"),
            (
                ".json",
                lambda b: b.replace(b'"exp_offset": -19', b'"exp_offset": 999'),
                r"exp_offset",
            ),
            (
                ".json",
                lambda b: b.replace(b"fzero_result", b"fxero_result"),
                r"fzero_result must be",
            ),
        ],
    )
    def test_sentence(self, files, name, change, message):
        """File, record or key, and what was expected."""
        path = files / f"{SET}{name}"
        path.write_bytes(change(path.read_bytes()))

        with pytest.raises(InputError, match=message):
            read_packed(files, SET)

    def test_random_damage(self, files):
        """No mutation ends in anything but our error or a set."""
        source = random.Random(5)
        names = [f"{SET}.json", f"{SET}_bkt.bin", f"{SET}_ctrl.bin"]
        original = {name: (files / name).read_bytes() for name in names}
        for _ in range(3000):
            name = source.choice(names)
            data = bytearray(original[name])
            for _ in range(source.randint(1, 3)):
                data[source.randrange(len(data))] = source.randrange(256)
            (files / name).write_bytes(
                data[: source.choice([len(data), source.randrange(len(data))])]
            )
            with contextlib.suppress(InputError):
                unpack_tables(function_set(0), read_packed(files, SET))
            (files / name).write_bytes(original[name])


class TestContradictions:
    """Members that repeat each other must agree (activation-tables.md 6.2 to 6.5)."""

    @pytest.mark.parametrize("index", range(21))
    def test_every_set_unpacks_to_its_profiles(self, index):
        """Packed and unpacked again, no live field differs from the shipped profile."""
        packed = install(index).packed
        check_packed(packed)

        for name, profile in unpack_profiles(packed).items():
            assert differences(profile, load_profile(name)) == ()

    @pytest.mark.parametrize(
        ("function", "key", "value"),
        [
            ("tanh_4p", "exp_offset", -13),
            ("exp_400p", "large_neg_signal_exp_threshold", 134),
            ("exp_400p", "large_pos_signal_mantissa_threshold", (1 << 23) - 1),
            ("exp_400p", "small_pos_signal_exp_threshold", 100),
            ("tanh_4p", "func_id", 7),
            ("tanh_4p", "pos_small_signal_pwl_control", 777),
            ("tanh_4p", "pos_large_signal_pwl_control", 918),
            ("square_1p", "pwl_control_base_pos", 255),
        ],
    )
    def test_entries(self, files, function, key, value):
        """A live field that the set's indices contradict is refused and named."""
        path = files / f"{SET}.json"
        manifest = json.loads(path.read_text())
        entries = manifest["profile_meta_data"]
        next(e for e in entries if e["func_name"] == function)[key] = value
        path.write_text(json.dumps(manifest))

        with pytest.raises(InputError, match=rf"{SET}\.json: "):
            read_packed(files, SET)

    def test_flags_in_either_form(self, files):
        """A flag may be a number or a truth value, as use_multipass is."""
        path = files / f"{SET}.json"
        manifest = json.loads(path.read_text())
        for entry in manifest["profile_meta_data"]:
            entry["symmetry_opt_en"] = bool(entry["symmetry_opt_en"])
        path.write_text(json.dumps(manifest))

        assert read_packed(files, SET).functions == install(0).packed.functions

    def test_exponent_that_is_no_decimal(self, files):
        """A superscript is a digit to Python, and no number."""
        path = files / f"{SET}.json"
        manifest = json.loads(path.read_text())
        manifest["func_exp_to_bkt_start_idx"]["tanh"]["\u00b2"] = [1]
        path.write_text(json.dumps(manifest))

        with pytest.raises(InputError, match="keyed by exponents"):
            read_packed(files, SET)

    def test_base_of_a_half_that_is_not_stored(self, files):
        """No look-up uses it, so whatever a compiler writes there does no harm."""
        path = files / f"{SET}.json"
        manifest = json.loads(path.read_text())
        entries = manifest["profile_meta_data"]
        next(e for e in entries if e["func_name"] == "tanh_4p")["pwl_control_base_neg"] = 0
        path.write_text(json.dumps(manifest))
        tables = unpack_tables(function_set(0), read_packed(files, SET))
        values = np.linspace(-3, 3, 101, dtype=np.float32)

        assert np.array_equal(
            tables.compiled(tables.slot_of("tanh")).evaluate(values),
            compile_profile(load_profile("tanh")).evaluate(values),
        )

    @pytest.mark.parametrize(
        ("table", "function", "value"),
        [
            ("func_to_bkt_start_idx", "square", 1),
            ("func_to_ctl_start_idx", "square", 3),
            ("func_exp_to_bkt_start_idx", "tanh", {"-13": [815]}),
        ],
    )
    def test_maps(self, files, table, function, value):
        """The maps repeat what control words and clamps say."""
        path = files / f"{SET}.json"
        manifest = json.loads(path.read_text())
        if isinstance(value, dict):
            manifest[table][function] |= value
        else:
            manifest[table][function] = value
        path.write_text(json.dumps(manifest))

        with pytest.raises(InputError, match=rf"{SET}\.json: "):
            read_packed(files, SET)
