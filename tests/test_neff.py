"""NEFF files: the header to the byte, streams by engine, and archives that mean harm."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import re
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuron_emu import Program, assemble
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine
from neuron_emu.neff import Limits, extract, pack_neff, read_contents, read_engine_files, write_neff
from tests.command import ROOT, neuron_emu

EXP = (
    "EXPONENTIAL src=fp32@0x1000[1,1,1][8,1,1] dst=fp32@0x2000[1,1,1][8,1,1] channels=128"
    " max_value=fp32@0.000000 accumulator_cmd=IDLE"
)
WORDS = assemble("ACT_TABLE_LOAD table_sel=0\n" + EXP)
NOP = assemble("NOP")
# cases/users.md 1, worked out apart from any emulator.
CASE_1 = "3f800000 3ebc5a40 3e0a9501 3d4bed0b 3c960a53 3bdcc97a 3b22722d 3a6f0acc"


def wrapped(data, version=1, **fields):
    """Put a header around data, written field by field from the table of operand-text.md 3."""
    digest = hashlib.sha256(data) if version == 1 else hashlib.md5(data)
    values = {0: (8, version), 8: (8, 1024), 16: (8, len(data))}
    header = bytearray(1024)
    for offset, (size, value) in values.items():
        header[offset : offset + size] = value.to_bytes(size, "little")
    header[172 : 172 + digest.digest_size] = digest.digest()
    for offset, raw in fields.items():
        start = int(offset.removeprefix("at"))
        header[start : start + len(raw)] = raw
    return bytes(header) + data


def tarred(*members, format=tarfile.USTAR_FORMAT):
    """Make a tar archive with the standard library from (name, bytes) or TarInfo members."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                information = tarfile.TarInfo(member[0])
                information.size = len(member[1])
                tar.addfile(information, io.BytesIO(member[1]))
    return file.getvalue()


def typed(name, kind, target=""):
    """Make a member that is no regular file."""
    information = tarfile.TarInfo(name)
    information.type, information.linkname = kind, target
    return information


def retyped(archive, kind, at=156):
    """Change one byte of the first header and make its checksum right again."""
    block = bytearray(archive[:512])
    block[at] = kind
    return resummed(block) + archive[512:]


def resummed(block):
    """Return a header block with the checksum that its bytes need."""
    block = bytearray(block)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def tree(folder):
    """Return every path below a folder with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def model(tmp_path):
    """A NEFF with work for one engine, an empty engine, and companions."""
    write_neff(
        tmp_path / "m.neff",
        {
            "def.json": b"{}",
            "sg00/dve.bin": WORDS,
            "sg00/dve.asm": b"# a listing",
            "sg00/act.bin": b"",
            "sg00/act.json": b'{"activation_function_sets": ["exp_and_others", "small"]}',
        },
        name="exp",
        build_version="1.2",
    )
    return tmp_path / "m.neff"


class TestHeader:
    # operand-text.md 3: offset, bytes in the file, field, value shown.
    FIELDS = (
        (24, (5).to_bytes(8, "little"), "neff_version_major", 5),
        (32, (6).to_bytes(8, "little"), "neff_version_minor", 6),
        (40, b"2.21.1\0junk", "build_version", "2.21.1"),
        (168, b"\2\0\0\0", "num_tpb", 2),
        (204, bytes(range(16)), "uuid", bytes(range(16)).hex()),
        (220, b"model\x1b[2J\0", "name", "model\\x1b[2J"),
        (476, b"\3\0\0\0", "requested_tpb_count", 3),
        (480, b"\1\2\0\4", "tpb_per_node", "1 2 0 4"),
        (544, (0x8000000000000001).to_bytes(8, "little"), "feature_bits", "0x8000000000000001"),
        (552, b"\7\0\0\0", "lnc_size", 7),
    )

    def test_every_field_at_its_offset(self, tmp_path):
        """Bytes placed by hand at the offsets of the table come out under their names."""
        data = tarred(("sg00/dve.bin", NOP))
        raw = {f"at{offset}": value for offset, value, _, _ in self.FIELDS}
        (tmp_path / "m.neff").write_bytes(wrapped(data, **raw))

        contents = read_contents(str(tmp_path / "m.neff"))
        rows = contents.header.rows()

        assert {name: rows[name] for _, _, name, _ in self.FIELDS} == {
            name: value for _, _, name, value in self.FIELDS
        }
        assert (rows["pkg_version"], rows["header_size"]) == (1, 1024)
        assert rows["data_size"] == len(data)
        assert rows["hash"] == hashlib.sha256(data).hexdigest()
        assert contents.warnings == ()

    @pytest.mark.parametrize("version", [1, 2])
    def test_packing_agrees_with_the_table(self, version):
        """Our writer's header is the hand-made one, and its data is a plain or gzip tar."""
        packed = pack_neff({"sg00/dve.bin": NOP}, version)
        data = packed[1024:]
        ones = {"at168": b"\1", "at476": b"\1"}
        plain = gzip.decompress(data) if version == 2 else data

        assert packed == wrapped(data, version, **ones)
        with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
            assert tar.getnames() == ["sg00/dve.bin"]

    @pytest.mark.parametrize(
        ("name", "data", "sentence"),
        [
            ("empty", b"", "is not a NEFF: the header has 1024 bytes, the file 0"),
            ("text", b"hello\n", "is not a NEFF: the header has 1024 bytes, the file 6"),
            ("zeros", bytes(2048), "is not a NEFF: pkg_version must be 1 or 2, not 0"),
            (
                "header size",
                wrapped(b"", at8=b"\0\2"),
                "is not a NEFF: header_size must be 1024, not 512",
            ),
            (
                "cut",
                pack_neff({"a": bytes(9)}, 1)[:-1],
                "is truncated: the header announces 10240 bytes of data, 10239 follow it",
            ),
            (
                "longer",
                pack_neff({"a": b""}, 1) + b"x",
                "data_size must be 10241, the bytes that follow the header, not 10240",
            ),
            (
                "huge",
                wrapped(b"", at16=b"\xff" * 8),
                "is truncated: the header announces 18446744073709551615 bytes of data,"
                " 0 follow it",
            ),
            (
                "no archive",
                wrapped(b"not a tar archive".ljust(1024)),
                "is no tar archive, or a damaged one: a header's checksum is wrong",
            ),
            (
                "gzip without end",
                wrapped(gzip.compress(bytes(1024))[:-8], 2),
                "is truncated: the gzip data has no end",
            ),
            (
                "gzip checksum",
                wrapped(gzip.compress(bytes(1024))[:-8] + bytes(8), 2),
                "gzip data is damaged: incorrect data check",
            ),
            (
                "gzip and more",
                wrapped(gzip.compress(bytes(1024)) + b"x", 2),
                "holds bytes after the end of its gzip data",
            ),
            (
                "no end mark",
                wrapped(tarred(("a", b"x"))[:1024]),
                "is truncated: the archive ends in the middle of a member",
            ),
            (
                "cut member",
                wrapped(tarred(("a", bytes(2000)))[:1024]),
                "is truncated: the archive ends in the middle of a member",
            ),
        ],
    )
    def test_no_neff_is_one_sentence(self, tmp_path, name, data, sentence):
        """Every reader refuses it in the same words."""
        path = tmp_path / "x.neff"
        path.write_bytes(data)

        for read in (read_contents, read_engine_files, lambda p: extract(p, tmp_path / "out")):
            with pytest.raises(InputError) as caught:
                read(str(path))
            assert str(caught.value) == f"{path}: {sentence}"
        assert os.listdir(tmp_path) == ["x.neff"]

    @pytest.mark.parametrize("words", [("dis",), ("run",), ("neff", "list")])
    def test_commands_exit_2(self, tmp_path, words):
        """Nothing on standard output, one line on standard error."""
        (tmp_path / "x.neff").write_bytes(b"hello\n")
        answer = neuron_emu(*words, "x.neff", cwd=tmp_path)

        assert (answer.status, answer.out) == (2, "")
        assert answer.err == (
            "neuron-emu: x.neff: is not a NEFF: the header has 1024 bytes, the file 6\n"
        )

    def test_what_is_no_regular_file(self, tmp_path):
        """A missing file, a pipe without a writer, and a folder that is no NEFF."""
        os.mkfifo(tmp_path / "p.neff")
        for name, sentence in (
            ("absent.neff", "cannot be read: No such file or directory"),
            ("p.neff", "must be a regular file"),
            (".", "is no unpacked NEFF: it must hold a folder sg00 with the files of engines"),
        ):
            with pytest.raises(InputError, match=re.escape(sentence)):
                read_engine_files(str(tmp_path / name))
            with pytest.raises(InputError, match=re.escape(sentence)):
                read_contents(str(tmp_path / name))


class TestStreams:
    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.parametrize(
        "names",
        [
            ("pe.bin", "act.bin", "pool.bin", "dve.bin", "sp.bin"),
            ("PE.bin", "Activation.bin", "Pool.bin", "DVE.bin", "SP.bin"),
        ],
    )
    def test_both_spellings(self, tmp_path, names, version):
        """Each of the five names of operand-text.md 3 goes to its engine, whatever the order."""
        path = tmp_path / "m.neff"
        words = {name: NOP * (n + 1) for n, name in enumerate(names)}
        write_neff(path, {f"sg00/{name}": words[name] for name in reversed(names)}, version)
        streams = Program.load(path).streams

        assert [stream.engine for stream in streams] == list(Engine)
        assert [len(stream) for stream in streams] == [1, 2, 3, 4, 5]
        assert streams[1].name == f"{path}:sg00/{names[1]}"

    def test_an_engine_without_work(self, model):
        """An empty member and a missing one are no streams; other files are none either."""
        assert [s.engine for s in Program.load(model).streams] == [Engine.DVE]

    @pytest.mark.parametrize(
        ("members", "argument", "sentence"),
        [
            ({}, "{}", "{}: holds no instruction words"),
            ({"sg00/dve.bin": b""}, "{}", "{}: holds no instruction words"),
            ({"dve.bin": NOP, "a/sg00/dve.bin": NOP}, "{}", "{}: holds no instruction words"),
            (
                {"sg00/dve.bin": NOP},
                "act:{}",
                "{}: holds no instruction words for engine act; it holds sg00/dve.bin",
            ),
            (
                {"sg00/dve.bin": NOP},
                "{}:sg01",
                "{}: holds no instruction words for sg01; it holds sg00/dve.bin",
            ),
            (
                {"sg00/dve.bin": NOP, "sg00/DVE.bin": NOP},
                "{}",
                "{}: engine dve must have one file in a subgraph,"
                " not sg00/dve.bin and sg00/DVE.bin",
            ),
            (
                {"sg00/sp.bin": bytes(24)},
                "{}",
                "{}:sg00/sp.bin: size must be a multiple of 64 bytes, not 24",
            ),
        ],
    )
    def test_refused(self, tmp_path, members, argument, sentence):
        """What cannot be a program says which file and what it holds."""
        path = tmp_path / "m.neff"
        write_neff(path, members)
        with pytest.raises(InputError) as caught:
            Program.load(argument.format(path))

        assert str(caught.value) == sentence.format(path)

    def test_subgraphs_are_kept_apart(self, tmp_path):
        """Each by its name, in the order of their numbers, from a file and from a folder."""
        path = tmp_path / "m.neff"
        members = {f"sg{n:02}/dve.bin": NOP * (n + 1) for n in (10, 1, 0)}
        write_neff(path, {**members, "sg01/act.bin": NOP})
        extract(str(path), tmp_path / "m")

        for top in (path, tmp_path / "m"):
            streams = Program.load(top).streams
            assert [(s.name, len(s)) for s in streams] == [
                (f"{top}:sg00/dve.bin", 1),
                (f"{top}:sg01/act.bin", 1),
                (f"{top}:sg01/dve.bin", 2),
                (f"{top}:sg10/dve.bin", 11),
            ]
            assert [len(s) for s in Program.load(f"{top}:sg01").streams] == [1, 2]
            assert [len(s) for s in Program.load(f"{top}:sg10/dve.bin").streams] == [11]
            assert [len(s) for s in Program.load(f"dve:{top}").streams] == [1, 2, 11]
            with pytest.raises(InputError) as caught:
                Program.load(top).one_per_engine()
            assert str(caught.value) == (
                f"engine dve must have one stream, not {top}:sg00/dve.bin and {top}:sg01/dve.bin;"
                f" choose a subgraph: {top}:sg00 or {top}:sg01"
            )
        assert [len(s) for s in Program.load(tmp_path / "m" / "sg01").streams] == [1, 2]

    def test_a_scenario_takes_a_member(self, model):
        """`dve = "m.neff:sg00"` is the stream of that engine; a scenario in one is refused."""
        scenario = model.parent / "s.toml"
        scenario.write_text('[streams]\ndve = "m.neff:sg00"')
        assert bytes(Program.load(scenario).streams[0].data) == WORDS
        scenario.write_text('[streams]\ndve = "s.toml"')
        with pytest.raises(InputError, match=r"streams\.dve must not be a scenario"):
            Program.load(scenario)
        scenario.write_text('[streams]\ndve = "\\u0000.neff"')
        with pytest.raises(InputError, match="must not hold a NUL"):
            Program.load(scenario)

    def test_streams_beyond_the_limit(self, model):
        """Streams are held in memory, so their size is bounded before they are read."""
        limit = Limits(stream_bytes=len(WORDS) - 1)
        with pytest.raises(InputError, match=r"streams have more than the limit of 127 bytes"):
            read_engine_files(str(model), limits=limit)


class TestCommands:
    def test_dis(self, model):
        """A comment names the member, and `asm` gives its bytes back."""
        answer = neuron_emu("dis", "m.neff", cwd=model.parent)

        assert answer.status == 0
        assert answer.out == (f"# m.neff:sg00/dve.bin (dve)\nACT_TABLE_LOAD table_sel=0\n{EXP}\n")
        assert assemble(answer.out) == WORDS

    @pytest.mark.parametrize("argument", ["m.neff", "m:sg00"])
    def test_run(self, model, argument):
        """EXPONENTIAL from a NEFF and from its folder: the bits of case 1."""
        np.save(model.parent / "x.npy", np.tile(-np.arange(8, dtype=np.float32), (128, 1)))
        extract(str(model), model.parent / "m")
        answer = neuron_emu(
            *("run", "--load", "sbuf:0+0x1000:fp32[128,8]=x.npy"),
            *("--dump", "sbuf:127+0x2000:fp32:bits[1,8]=-", argument),
            cwd=model.parent,
        )

        assert (answer.status, answer.err) == (0, "neuron-emu: ran 2 words on mariana\n")
        assert answer.out == " ".join(str(int(word, 16)) for word in CASE_1.split()) + "\n"

    def test_list(self, model):
        """Header fields, function sets, then a line for each member, its name last."""
        answer = neuron_emu("neff", "list", "m.neff", cwd=model.parent)
        digest = hashlib.md5(model.read_bytes()[1024:]).hexdigest()

        assert (answer.status, answer.err) == (0, "")
        assert answer.out == (
            "pkg_version          2\n"
            "header_size          1024\n"
            f"data_size            {model.stat().st_size - 1024}\n"
            "neff_version_major   0\n"
            "neff_version_minor   0\n"
            "build_version        1.2\n"
            "num_tpb              1\n"
            f"hash                 {digest}\n"
            f"uuid                 {'0' * 32}\n"
            "name                 exp\n"
            "requested_tpb_count  1\n"
            "tpb_per_node\n"
            "feature_bits         0x0\n"
            "lnc_size             0\n"
            "sg00 function sets   exp_and_others small\n"
            "       bytes     words engine name\n"
            "           2         - -      def.json\n"
            "         128         2 dve    sg00/dve.bin\n"
            "          11         - -      sg00/dve.asm\n"
            "           0         0 act    sg00/act.bin\n"
            "          57         - -      sg00/act.json\n"
        )

    def test_list_as_json(self, model):
        """One object; `-` reads standard input."""
        answer = neuron_emu("neff", "list", "--json", "-", stdin=model.read_bytes())
        found = json.loads(answer.out)

        assert (found["file"], found["header"]["name"], found["warnings"]) == ("-", "exp", [])
        assert found["activation_function_sets"] == {"sg00": ["exp_and_others", "small"]}
        assert found["members"][1] == {
            "name": "sg00/dve.bin",
            "size": 128,
            "words": 2,
            "engine": "dve",
            "subgraph": "sg00",
        }

    def test_extract(self, model):
        """All files with their bytes; what is there already is never touched."""
        first = neuron_emu("neff", "extract", "m.neff", "-o", "m", cwd=model.parent)
        before = tree(model.parent / "m")
        again = neuron_emu("neff", "extract", "m.neff", "-o", "m", cwd=model.parent)

        assert (first.status, first.out) == (0, "")
        assert first.err == "neuron-emu: unpacked 5 files into m\n"
        assert before == {
            "def.json": b"{}",
            "sg00": None,
            "sg00/act.bin": b"",
            "sg00/act.json": b'{"activation_function_sets": ["exp_and_others", "small"]}',
            "sg00/dve.asm": b"# a listing",
            "sg00/dve.bin": WORDS,
        }
        assert again.status == 2
        assert again.err == "neuron-emu: m: must be a new or an empty folder\n"
        assert tree(model.parent / "m") == before

    def test_a_wrong_hash_is_a_warning(self, model):
        """What is hashed is stated by words alone, so the job is done and the mismatch told."""
        data = bytearray(model.read_bytes())
        data[172] ^= 0xFF
        model.write_bytes(data)
        warning = (
            r"warning: m\.neff: the MD5 of the data is \w{32}, not \w{32} as the header says\n"
        )

        for words in (("neff", "list"), ("dis",)):
            answer = neuron_emu(*words, "m.neff", cwd=model.parent)
            assert answer.status == 0
            assert re.fullmatch(warning, answer.err)

    def test_the_sample_beside_the_programs(self):
        """programs/exp.neff holds programs/exp.asm, so that the documents can show it."""
        words = assemble((ROOT / "programs" / "exp.asm").read_text())
        (stream,) = Program.load(ROOT / "programs" / "exp.neff").streams

        assert stream.data == words


class TestWarnings:
    @pytest.mark.parametrize(
        ("members", "warning"),
        [
            ({"sg00/act.json": b"{"}, "sg00/act.json: is not JSON"),
            ({"sg00/Activation.json": b"[" * 100_000}, "sg00/Activation.json: is not JSON"),
            (
                {"sg00/act.json": b'{"activation_function_sets": [1]}'},
                "sg00/act.json: activation_function_sets must be a list of names",
            ),
            ({"sg00/sp.bin": bytes(8)}, "sg00/sp.bin: size must be a multiple of 64 bytes, not 8"),
        ],
    )
    def test_members(self, tmp_path, members, warning):
        """A listing is never refused for what a member holds."""
        write_neff(tmp_path / "m.neff", members)
        assert read_contents(str(tmp_path / "m.neff")).warnings == (warning,)

    def test_a_set_list_that_is_too_large(self, model):
        """JSON is looked into within a limit."""
        (warning,) = read_contents(str(model), Limits(text_bytes=10)).warnings
        assert warning == "sg00/act.json: is too large to look for function sets"

    def test_compression_that_the_version_does_not_announce(self, tmp_path):
        """Read as it is, and told: a public source has gzip under both versions."""
        data = gzip.compress(tarred(("sg00/dve.bin", NOP)))
        (tmp_path / "m.neff").write_bytes(wrapped(data, 1))
        contents = read_contents(str(tmp_path / "m.neff"))

        assert contents.members[0].num_words == 1
        assert contents.warnings == ("pkg_version is 1, but it holds gzip data",)


HOSTILE = {
    "absolute": (tarred(("/tmp/escaped", b"x")), "must stay below the folder"),
    "parent": (tarred(("../escaped", b"x")), "must stay below the folder"),
    "parent inside": (tarred(("sg00/../../escaped", b"x")), "must stay below the folder"),
    "parent as folder": (tarred(typed("..", tarfile.DIRTYPE)), "must stay below the folder"),
    "backslash": (tarred(("..\\escaped", b"x")), "must stay below the folder"),
    "symlink": (
        tarred(typed("sg00", tarfile.SYMTYPE, ".."), ("sg00/escaped", b"x")),
        "not a symbolic link",
    ),
    "hard link": (tarred(typed("a", tarfile.LNKTYPE, "/etc/passwd")), "not a hard link"),
    "device": (tarred(typed("a", tarfile.CHRTYPE)), "not a device"),
    "block device": (tarred(typed("a", tarfile.BLKTYPE)), "not a device"),
    "pipe": (tarred(typed("a", tarfile.FIFOTYPE)), "not a pipe"),
    "sparse": (tarred(typed("a", tarfile.GNUTYPE_SPARSE)), "not a sparse file"),
    "other type": (retyped(tarred(("a", b"x")), ord("Z")), "not of type b'Z'"),
    "twice": (tarred(("a", b"x"), ("./a", b"y")), "member a must come once"),
    "below a file": (tarred(("a", b"x"), ("a/b", b"y")), "not below a file"),
    "over a folder": (tarred(("a/b", b"y"), ("a", b"x")), "member a must come once"),
    "the folder itself": (tarred((".", b"x")), "member . must come once"),
    "no name": (tarred(("", b"x")), "must be printable"),
    "terminal code": (tarred(("a\x1b[2J", b"x")), "must be printable"),
    "line break": (tarred(("a\nb", b"x")), "must be printable"),
    "not UTF-8": (retyped(tarred(("abc", b"x")), 0xFF, at=1), "must be UTF-8"),
    "deep": (tarred(("a/" * 20 + "b", b"x")), "1024 bytes in 16 parts, not 41 in 21"),
    "long": (
        tarred(("a" * 1025, b"x"), format=tarfile.GNU_FORMAT),
        "1024 bytes in 16 parts, not 1025 in 1",
    ),
    "too long a part": (
        tarred(("a" * 300, b"x"), format=tarfile.PAX_FORMAT),
        "cannot be written: File name too long",
    ),
}


class TestHostile:
    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.parametrize("case", HOSTILE)
    def test_refused_and_nothing_written(self, tmp_path, case, version):
        """Neither into an absent folder nor an empty one; a good file before it is undone."""
        good = tarred(("good", b"x"))[:1024]
        data, sentence = HOSTILE[case]
        data = good + data
        data = gzip.compress(data) if version == 2 else data
        (tmp_path / "x.neff").write_bytes(wrapped(data, version))
        (tmp_path / "in" / "empty").mkdir(parents=True)
        before = tree(tmp_path)

        for folder in ("absent", "in/empty"):
            with pytest.raises(InputError, match=re.escape(sentence)):
                extract(str(tmp_path / "x.neff"), tmp_path / folder)
            assert tree(tmp_path) == before
        if case != "too long a part":
            with pytest.raises(InputError, match=re.escape(sentence)):
                read_contents(str(tmp_path / "x.neff"))

    def test_a_bomb_stops_at_the_limit(self, tmp_path):
        """A member may announce what it likes; neither size nor data pass the limit."""
        million = tarred(("sg00/weights.npy", bytes(4 << 20)))
        (tmp_path / "b.neff").write_bytes(wrapped(gzip.compress(million), 2))
        path = str(tmp_path / "b.neff")

        for limit, sentence in (
            (1 << 20, "announces 4194304 bytes, more than the limit 1048576"),
            (4 << 20, "unpacks to more than the limit of 4194304 bytes"),
        ):
            with pytest.raises(InputError, match=sentence):
                extract(path, tmp_path / "out", Limits(total_bytes=limit))
        assert os.listdir(tmp_path) == ["b.neff"]
        assert len(read_contents(path).members) == 1

    def test_zeros_after_the_archive_count(self, tmp_path):
        """The end mark does not end the accounting."""
        data = gzip.compress(tarred(("a", b"")) + bytes(1 << 20))
        (tmp_path / "b.neff").write_bytes(wrapped(data, 2))
        with pytest.raises(InputError, match="unpacks to more than the limit of 65536 bytes"):
            read_contents(str(tmp_path / "b.neff"), Limits(total_bytes=1 << 16))

    def test_members_and_names_are_counted(self, tmp_path):
        """Headers of every kind, and all long names together."""
        path = tmp_path / "x.neff"
        path.write_bytes(wrapped(tarred(*((str(n), b"") for n in range(9)))))
        with pytest.raises(InputError, match="more than the limit of 8 members"):
            read_contents(str(path), Limits(num_members=8))
        long = tarred(("a" * 200, b""), format=tarfile.GNU_FORMAT)
        path.write_bytes(wrapped(long))
        with pytest.raises(InputError, match="more long names and pax records than the limit"):
            read_contents(str(path), Limits(extension_bytes=200))

    @pytest.mark.parametrize(
        "records",
        [
            b"0 path=a\n",
            b"3 a",
            b"99 path=a\n",
            b"path=a\n",
            b"12 path=abcd",
            b"11 size=abc\n",
            b"12 size=-100\n",
            b"25 GNU.sparse.major=1.000\n",
            b"\xb2 path=a\n",
        ],
    )
    def test_pax_records(self, tmp_path, records):
        """A length that does not fit, a value that is no number, a sparse file: no hang."""
        header = bytearray(tarred(("x", records))[:1024])
        header[156] = ord("x")
        data = resummed(header[:512]) + bytes(header[512:]) + tarred(("a", b"x"))
        (tmp_path / "x.neff").write_bytes(wrapped(data))
        with pytest.raises(InputError, match=r"pax|sparse"):
            read_contents(str(tmp_path / "x.neff"))

    @pytest.mark.parametrize("size", [b"\xff" * 12, b"\x80" + b"\xff" * 11, b"7" * 12, b"-1", b"9"])
    def test_sizes(self, tmp_path, size):
        """Negative, absurd and malformed sizes in a header whose checksum is right."""
        data = bytearray(tarred(("a", b"x")))
        data[124:136] = size.ljust(12, b"\0")
        (tmp_path / "x.neff").write_bytes(wrapped(resummed(data[:512]) + bytes(data[512:])))
        with pytest.raises(InputError, match=r"no number|limit|truncated"):
            read_contents(str(tmp_path / "x.neff"))


PARTS = st.text(
    st.characters(categories=["L", "N"], include_characters="._- "), min_size=1, max_size=60
).filter(lambda part: part not in (".", ".."))
NAMES = st.lists(PARTS, min_size=1, max_size=5).map("/".join)


class TestAgainstTheStandardLibrary:
    @settings(max_examples=60, deadline=None)
    @given(
        files=st.dictionaries(NAMES, st.binary(max_size=600), max_size=5),
        format=st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
        version=st.sampled_from([1, 2]),
    )
    def test_what_tarfile_writes_is_read(self, files, format, version):
        """Long names in both dialects, folders listed and not, any sizes."""
        kept = {}
        for name, data in files.items():
            if not any(n.startswith(f"{name}/") or name.startswith(f"{n}/") for n in kept):
                kept[name] = data
        archive = tarred(
            typed("./", tarfile.DIRTYPE),
            *(typed(name.rpartition("/")[0] or ".", tarfile.DIRTYPE) for name in kept),
            *((f"./{name}", data) for name, data in kept.items()),
            format=format,
        )
        data = gzip.compress(archive) if version == 2 else archive
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "m.neff")
            path.write_bytes(wrapped(data, version))
            contents = read_contents(str(path))
            extract(str(path), Path(folder, "out"))

            assert {m.name: m.size for m in contents.members} == {
                name: len(data) for name, data in kept.items()
            }
            assert {name: Path(folder, "out", name).read_bytes() for name in kept} == kept


class TestDamaged:
    """Whatever is done to a small NEFF: InputError or success, and no write outside the folder."""

    MEMBERS = {  # noqa: RUF012
        "sg00/dve.bin": WORDS,
        "sg00/act.json": b'{"activation_function_sets": ["small"]}',
        "a" * 120: b"long",
    }

    @staticmethod
    def attempt(tmp_path, data):
        """Try every reader; return whether the file was read."""
        path, inner = tmp_path / "x.neff", tmp_path / "in"
        path.write_bytes(data)
        inner.mkdir(exist_ok=True)
        outcomes, sentences = [], []
        for read in (read_contents, Program.load, lambda p: extract(p, inner / "out")):
            try:
                read(str(path))
                outcomes.append(True)
            except InputError as error:
                outcomes.append(False)
                sentences.append(str(error))
        assert "\n" not in "".join(sentences)
        assert sorted(os.listdir(tmp_path)) == ["in", "x.neff"]
        assert os.listdir(inner) in ([], ["out"])
        if (inner / "out").exists():
            assert outcomes[2]
            for name in sorted((inner / "out").rglob("*"), reverse=True):
                name.rmdir() if name.is_dir() else name.unlink()
            (inner / "out").rmdir()
        return outcomes

    @pytest.mark.parametrize("version", [1, 2])
    def test_cut_anywhere(self, tmp_path, version):
        """A file that ends early is refused by every reader."""
        data = pack_neff(self.MEMBERS, version)
        source = random.Random(version)
        for length in {0, 1, 1023, 1024, 1025, *(source.randrange(len(data)) for _ in range(100))}:
            assert self.attempt(tmp_path, data[:length]) == [False, False, False]

    @pytest.mark.parametrize("version", [1, 2])
    def test_cut_inside_the_archive(self, tmp_path, version):
        """The header announces what is there, so the archive itself must notice."""
        data = pack_neff(self.MEMBERS, version)[1024:]
        end = len(data.rstrip(b"\0")) if version == 1 else len(data)
        source = random.Random(version)
        for length in (source.randrange(end) for _ in range(100)):
            answer = self.attempt(tmp_path, wrapped(data[:length], version))
            assert answer == [False, False, False]

    @pytest.mark.parametrize("version", [1, 2])
    def test_one_byte_changed(self, tmp_path, version):
        """500 changed bytes, most of them in the header and the first members."""
        data = pack_neff(self.MEMBERS, version)
        source = random.Random(version)
        for _ in range(500):
            changed = bytearray(data)
            changed[source.randrange(min(len(data), 5 << 10))] = source.randrange(256)
            self.attempt(tmp_path, bytes(changed))

    def test_one_byte_changed_under_right_checksums(self, tmp_path):
        """The same behind the archive's own defence, so that each field is met."""
        data = pack_neff(self.MEMBERS, 1)[1024:]
        headers = [n for n in range(0, len(data), 512) if data[n + 257 : n + 262] == b"ustar"]
        source = random.Random(3)
        seen = set()
        for _ in range(500):
            at = source.choice(headers)
            block = bytearray(data[at : at + 512])
            block[source.choice([source.randrange(512), source.randrange(100, 160)])] = (
                source.choice([source.randrange(256), *b"0123457xgLKS./\\\0\xff\x80"])
            )
            changed = data[:at] + resummed(block) + data[at + 512 :]
            seen.update(self.attempt(tmp_path, wrapped(changed)))
        assert seen == {True, False}
