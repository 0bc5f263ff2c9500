"""SPEC words, arrays in and out, .npy files and the text of a dump (design.md 4 and 5)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from neuron_emu.errors import InputError
from neuron_emu.generation import (
    CAYMAN,
    MARIANA,
    MAVERICK,
    SUNDA,
    Generation,
    MemoryGeometry,
)
from neuron_emu.isa.enums import DType
from neuron_emu.memory import Memory
from neuron_emu.policy import Policy
from neuron_emu.tensor_spec import TensorSpec, dump, load, read_npy, text

SMALL = evolve(
    MARIANA,
    sbuf=MemoryGeometry(base=0, partition_stride=0x40000, active_bytes=0x400),
)
WORDS = {
    "fp32": DType.FP32,
    "fp32r": DType.FP32R,
    "bf16": DType.BFLOAT16,
    "fp16": DType.FP16,
    "fp8_e3": DType.FP8_EXP3,
    "fp8_e4": DType.FP8_EXP4,
    "fp8_e5": DType.FP8_EXP5,
    "int8": DType.INT8,
    "uint8": DType.UINT8,
    "int16": DType.INT16,
    "uint16": DType.UINT16,
    "int32": DType.INT32,
    "uint32": DType.UINT32,
}


def through(words: str, array: Any, **policy: Any) -> np.ndarray[Any, Any]:
    """Load `array` and return the raw bits that it became."""
    memory = Memory(SMALL, Policy(**policy))
    spec = TensorSpec.parse(words)
    load(memory, spec, array)
    return dump(memory, evolve(spec, bits=True))


class TestParse:
    """SPACE:PARTITION+OFFSET:DTYPE[CHANNELS,N...]."""

    def test_the_example(self) -> None:
        spec = TensorSpec.parse("sbuf:0+0x1000:fp32[128,512]")
        assert spec == TensorSpec("sbuf", 0, 0x1000, DType.FP32, (128, 512))
        assert (spec.channels, spec.elements_per_partition, spec.bytes_per_partition) == (
            128,
            512,
            2048,
        )

    def test_bits_and_number_forms(self) -> None:
        spec = TensorSpec.parse("psum:0x20+64:bf16:bits[0x10,4,2,3]")
        assert spec == TensorSpec("psum", 32, 64, DType.BFLOAT16, (16, 4, 2, 3), bits=True)
        assert str(spec) == "psum:32+0x40:bf16:bits[16,4,2,3]"
        assert spec.bytes_per_partition == 48

    @pytest.mark.parametrize("word", WORDS)
    def test_dtype_words(self, word: str) -> None:
        spec = TensorSpec.parse(f"sbuf:3+0:{word}[1,2]")
        assert spec.dtype is WORDS[word]
        assert TensorSpec.parse(str(spec)) == spec

    def test_bfloat16_is_an_alias(self) -> None:
        assert str(TensorSpec.parse("sbuf:0+0:bfloat16[1,1]")) == "sbuf:0+0x0:bf16[1,1]"

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ("", r"^SPEC must be SPACE:PARTITION\+OFFSET:DTYPE\[CHANNELS,N\.\.\.\], e\.g\. "),
            ("sbuf:0:fp32[128,512]", "^SPEC must be"),
            ("sbuf:-1+0:fp32[1,1]", "^SPEC must be"),
            ("sbuf:0+0x:fp32[1,1]", "^SPEC must be"),
            ("sbuf:0+0:fp32[128,512]\n", "^SPEC must be"),
            ("sbuf:0+0:fp32[]", "^SPEC must be"),
            ("sbuf:0+0:fp32[1,]", "^SPEC must be"),
            ("sbuf:0+0:fp32", "^SPEC must be"),
            ("sbuf:0+" + "9" * 5000 + ":fp32[1,1]", "^SPEC must be"),
            ("dram:0+0:fp32[1,1]", "space must be sbuf or psum, not 'dram'$"),
            ("sbuf:0+0:float[1,1]", "dtype must be one of int8, uint8, .*, not 'float'$"),
            ("sbuf:0+0:fp32[128]", r"must be \[CHANNELS,N\.\.\.\] of 2 to 32 numbers, not 1$"),
            ("sbuf:0+0:fp32[" + "1," * 40 + "1]", "of 2 to 32 numbers, not 41$"),
            ("sbuf:0+0:fp32[0,4]", "must be at least 1, not 0$"),
            ("sbuf:0+0:fp32[4,0x0]", "must be at least 1, not 0$"),
        ],
    )
    def test_refused(self, words: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            TensorSpec.parse(words)

    @settings(deadline=None, max_examples=200)
    @given(st.text(alphabet="sbufpm:+0x19[],bitsf32 é\x00", max_size=40))
    def test_any_text_is_read_or_refused(self, words: str) -> None:
        try:
            spec = TensorSpec.parse(words)
        except InputError:
            return
        assert TensorSpec.parse(str(spec)) == spec


class TestCheck:
    """What a generation has room for."""

    @pytest.mark.parametrize(
        ("generation", "words"),
        [
            (SUNDA, "sbuf:0+0x2fff0:fp32[128,4]"),
            (MARIANA, "sbuf:127+0:uint8[1,0x40000]"),
            (CAYMAN, "psum:96+0x3ffe:bf16[32,1]"),
            (MAVERICK, "sbuf:0+0x7fffc:fp32[128,1]"),
            # Nothing asks a region to be aligned.
            (MARIANA, "sbuf:0+0x3:fp32[1,1]"),
        ],
    )
    def test_accepted(self, generation: Generation, words: str) -> None:
        TensorSpec.parse(words).check(generation)

    @pytest.mark.parametrize(
        ("generation", "words", "message"),
        [
            (MAVERICK, "psum:0+0:fp32[1,1]", "space must be sbuf on maverick, not 'psum'"),
            (MARIANA, "sbuf:128+0:fp32[1,1]", "partition must be 0 to 127, not 128"),
            (
                MARIANA,
                "sbuf:64+0:fp32[65,1]",
                "channels from partition 64 must be 1 to 64, not 65",
            ),
            (
                SUNDA,
                "sbuf:0+0x2fff0:fp32[1,5]",
                "offset plus bytes in a partition must be at most 0x30000 in sbuf on sunda,"
                " not 0x30004",
            ),
            (
                MARIANA,
                "psum:0+16383:bf16[1,1]",
                "offset plus bytes in a partition must be at most 0x4000 in psum on mariana,"
                " not 0x4001",
            ),
        ],
    )
    def test_refused(self, generation: Generation, words: str, message: str) -> None:
        spec = TensorSpec.parse(words)
        with pytest.raises(InputError) as caught:
            spec.check(generation)
        assert caught.value.message == message
        assert caught.value.place == str(spec)
        for use in (lambda m: dump(m, spec), lambda m: load(m, spec, np.zeros(spec.shape))):
            with pytest.raises(InputError):
                use(Memory(generation))


class TestLoad:
    """Floats convert, unsigned arrays of the width are bits, other integers must fit."""

    def test_layout(self) -> None:
        memory = Memory(SMALL)
        array = np.arange(24, dtype=np.uint16).reshape(2, 3, 4)
        load(memory, TensorSpec.parse("sbuf:5+0x11:uint16[2,3,4]"), np.asfortranarray(array))
        assert memory.sbuf.data[5, 0x11 : 0x11 + 24].tolist() == [
            byte for value in range(12) for byte in (value, 0)
        ]
        assert memory.sbuf.data[6, 0x11] == 12
        assert memory.sbuf.written[5:7, 0x11 : 0x11 + 24].all()
        assert np.count_nonzero(memory.sbuf.written) == 48

    @pytest.mark.parametrize(
        ("word", "value", "bits"),
        [
            # cases/users.md 8 and 9; dve-tensor-scalar.md 13.
            ("int8", [0.5, 1.5, 2.5, -0.5, -1.5, 300, -300], [0, 2, 2, 0, 0xFE, 0x7F, 0x80]),
            ("uint8", [-1.5, 255.5], [0, 255]),
            ("bf16", np.array([0x3F808001, 0x3F818000, 0xFF7FFFFF], np.uint32).view("f4"),
             [0x3F81, 0x3F82, 0xFF80]),
            ("fp16", [65504.0, 65520.0, -0.0], [0x7BFF, 0x7C00, 0x8000]),
            ("fp32r", np.array([0x3F801800, 0x3F800801], np.uint32).view("f4"),
             [0x3F802000, 0x3F801000]),
            # Mariana's extended E4M3 saturates; E3M4 goes to infinity.
            ("fp8_e4", [448.0, 1e9, 1.0], [0x7E, 0x7E, 0x38]),
            ("fp8_e3", [15.5, 16.0], [0x6F, 0x70]),
            ("fp32", np.array([0x7FA00001, 0x80000000], np.uint32).view("f4"),
             [0x7FA00001, 0x80000000]),
        ],
    )  # fmt: skip
    def test_floats_convert(self, word: str, value: Any, bits: list[int]) -> None:
        array = np.array([value], dtype=np.float32) if isinstance(value, list) else value[None]
        assert through(f"sbuf:0+0:{word}[1,{len(bits)}]", array).tolist() == [bits]

    def test_float64_goes_through_float32(self) -> None:
        # 1 + 2^-8 + 2^-30 is above the bf16 tie, but its float32 is the tie, which goes to even.
        assert through("sbuf:0+0:bf16[1,1]", np.array([[1 + 2**-8 + 2**-30]])) == 0x3F80
        assert through("sbuf:0+0:fp32[1,1]", np.array([[1e300]])) == 0x7F800000
        assert through("sbuf:0+0:fp16[1,1]", np.array([[1.5]], np.float16)) == 0x3E00

    def test_rounds_to_nearest_even_under_stochastic_rounding(self) -> None:
        array = np.full((1, 64), 1 + 2**-9, dtype=np.float32)
        assert (through("sbuf:0+0:bf16[1,64]", array, rounding="stochastic") == 0x3F80).all()

    @pytest.mark.parametrize(
        ("words", "array", "bits"),
        [
            ("bf16", np.array([[0x7FC1, 0x3F80]], np.uint16), [0x7FC1, 0x3F80]),
            ("fp32", np.array([[0x7FA00001]], ">u4"), [0x7FA00001]),
            ("int8", np.array([[0xFF]], np.uint8), [0xFF]),
            ("fp8_e4", np.array([[0x7F]], np.uint8), [0x7F]),
            ("bf16:bits", np.array([[0xFFFF, 0]], np.int64), [0xFFFF, 0]),
            ("int16", np.array([[-32768, 32767]], np.int64), [0x8000, 0x7FFF]),
            ("uint32", np.array([[4294967295]], np.uint64), [0xFFFFFFFF]),
            ("uint8", np.array([[True, False]]), [1, 0]),
            ("bf16", np.array([[3, -256, 2**62]], np.int64), [0x4040, 0xC380, 0x5E80]),
            ("fp32", np.array([[16777216, -(2**63)]], np.int64), [0x4B800000, 0xDF000000]),
            ("fp16", np.array([[2048, -2049 + 1]], np.int16), [0x6800, 0xE800]),
            ("fp8_e4", np.array([[448, 0]], np.int16), [0x7E, 0]),
            ("fp32", np.array([[1, 0]], np.uint8), [0x3F800000, 0]),
        ],
    )
    def test_integers(self, words: str, array: Any, bits: list[int]) -> None:
        assert through(f"sbuf:0+0:{words}[1,{len(bits)}]", array).tolist() == [bits]

    @pytest.mark.parametrize(
        ("words", "array", "message"),
        [
            ("int8", np.array([[0, 128]], np.int16), r"integer at \[0, 1\] must be int8, not 128$"),
            ("int8", np.array([[0, -129]], np.int64), "must be int8, not -129$"),
            ("uint16", np.array([[0, -1]], np.int16), "must be uint16, not -1$"),
            ("int32", np.array([[0, 2**31]], np.uint64), "must be int32, not 2147483648$"),
            ("bf16:bits", np.array([[0, 65536]], np.int32), "must be uint16, not 65536$"),
            ("fp32", np.array([[0, 16777217]], np.int32), "exact in fp32, not 16777217$"),
            ("fp32", np.array([[0, 2**63 - 1]]), f"exact in fp32, not {2**63 - 1}$"),
            ("fp32", np.array([[0, 2**64 - 1]], np.uint64), f"exact in fp32, not {2**64 - 1}$"),
            ("bf16", np.array([[256, 257]], np.int16), "exact in bf16, not 257$"),
            ("fp32r", np.array([[4096, 4097]], np.int16), "exact in fp32r, not 4097$"),
            ("fp16", np.array([[0, 65536]], np.int32), "exact in fp16, not 65536$"),
            ("fp8_e4", np.array([[0, 449]], np.int16), "exact in fp8_e4, not 449$"),
            ("bf16:bits", np.array([[0.0, 1.0]]), r"unsigned bits \(uint16\), not float64$"),
            ("fp32", np.array([[0, 1j]]), "must hold integers or floats, not complex128;"),
            ("fp32", np.array([["a", "b"]]), "must hold integers or floats, not <U1;"),
            ("fp32", np.array([[None, 1]]), "must hold integers or floats, not object;"),
            ("fp32", [[1, 2], [3]], "must be rectangular$"),
            ("fp32", np.zeros(2), r"must have shape \[1, 2\], not \[2\]$"),
            ("fp32", np.zeros((2, 1)), r"must have shape \[1, 2\], not \[2, 1\]$"),
            ("fp32", np.float32(0), r"must have shape \[1, 2\], not \[\]$"),
        ],
    )
    def test_refused_and_nothing_written(self, words: str, array: Any, message: str) -> None:
        memory = Memory(SMALL)
        with pytest.raises(InputError, match=message) as caught:
            load(memory, TensorSpec.parse(f"sbuf:0+0:{words}[1,2]"), array)
        assert caught.value.place == f"sbuf:0+0x0:{words}[1,2]"
        assert not memory.sbuf.written.any()


class TestDump:
    """Float types as float32, integers as themselves, `:bits` as unsigned bits."""

    @pytest.mark.parametrize(
        ("word", "raw", "dtype", "values"),
        [
            ("fp32", b"\x00\x00\x80\x3f\x00\x00\x00\x80", np.float32, [1.0, -0.0]),
            ("fp32r", b"\x01\x00\x80\x3f\x00\x00\x80\x7f", np.float32, [1 + 2**-23, np.inf]),
            ("bf16", b"\x80\x3f\x20\xc0", np.float32, [1.0, -2.5]),
            ("fp16", b"\x01\x00\x00\xc0", np.float32, [2.0**-24, -2.0]),
            ("fp8_e3", b"\x6f\x01", np.float32, [15.5, 2.0**-6]),
            ("fp8_e4", b"\x7e\xb8", np.float32, [448.0, -1.0]),
            ("fp8_e5", b"\x7b\x01", np.float32, [57344.0, 2.0**-16]),
            ("int8", b"\x80\x7f", np.int8, [-128, 127]),
            ("uint8", b"\x80\x7f", np.uint8, [128, 127]),
            ("int16", b"\x00\x80\x01\x00", np.int16, [-32768, 1]),
            ("uint16", b"\x00\x80\x01\x00", np.uint16, [32768, 1]),
            ("int32", b"\xfe\xff\xff\xff\x01\x00\x00\x00", np.int32, [-2, 1]),
            ("uint32", b"\xfe\xff\xff\xff\x01\x00\x00\x00", np.uint32, [2**32 - 2, 1]),
            ("bf16:bits", b"\x80\x3f\x20\xc0", np.uint16, [0x3F80, 0xC020]),
            ("int8:bits", b"\x80\x7f", np.uint8, [128, 127]),
        ],
    )
    def test_values(self, word: str, raw: bytes, dtype: Any, values: list[Any]) -> None:
        memory = Memory(SMALL)
        memory.sbuf.data[127, 0x3F : 0x3F + len(raw)] = list(raw)
        array = dump(memory, TensorSpec.parse(f"sbuf:127+0x3f:{word}[1,2,1]"))
        assert array.dtype == dtype
        assert array.shape == (1, 2, 1)
        assert array.tobytes() == np.array(values, dtype).tobytes()

    def test_is_a_copy(self) -> None:
        for word in ("fp32", "int32", "uint8:bits", "bf16"):
            memory = Memory(SMALL)
            array = dump(memory, TensorSpec.parse(f"sbuf:0+0:{word}[2,4]"))
            array[...] = 1
            assert not memory.sbuf.data.any()

    @settings(deadline=None, max_examples=40)
    @given(st.sampled_from(sorted(WORDS)), st.integers(1, 8), st.integers(1, 9), st.data())
    def test_bits_come_back(self, word: str, channels: int, count: int, data: Any) -> None:
        spec = TensorSpec.parse(f"psum:2+6:{word}:bits[{channels},{count}]")
        width = 8 * spec.dtype.size_bytes
        bits = np.array(
            data.draw(
                st.lists(
                    st.integers(0, (1 << width) - 1),
                    min_size=channels * count,
                    max_size=channels * count,
                )
            ),
            dtype=f"u{width // 8}",
        ).reshape(channels, count)
        memory = Memory(MARIANA)
        load(memory, spec, bits)
        assert np.array_equal(dump(memory, spec), bits)


HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


def npy(header: str, data: bytes = bytes(8), version: bytes = b"\x01\x00") -> bytes:
    size = len(header.encode()).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + header.encode() + data


class TestReadNpy:
    """Good files whatever their order; damaged ones end in a sentence that names the file."""

    @pytest.mark.parametrize(
        "array",
        [
            np.arange(6, dtype=np.float32).reshape(2, 3),
            np.arange(6, dtype=">f8").reshape(2, 3),
            np.asfortranarray(np.arange(24, dtype=">i2").reshape(2, 3, 4)),
            np.array([True, False]),
            np.array([1, 2**64 - 1], dtype=np.uint64),
            np.zeros((0, 3), dtype=np.int8),
            np.array([0x7FA00001], dtype=np.uint32).view(np.float32),
            np.array([1.5], dtype=np.float16),
        ],
    )
    def test_good_files(self, tmp_path: Path, array: np.ndarray[Any, Any]) -> None:
        np.save(tmp_path / "x.npy", array)
        found = read_npy(tmp_path / "x.npy")
        assert found.dtype == array.dtype.newbyteorder("=")
        assert found.flags.c_contiguous
        assert found.shape == array.shape
        native = np.ascontiguousarray(array).astype(found.dtype)
        assert found.tobytes() == native.tobytes()

    @pytest.mark.parametrize("version", [b"\x02\x00", b"\x03\x00"])
    def test_other_versions(self, tmp_path: Path, version: bytes) -> None:
        (tmp_path / "x.npy").write_bytes(npy(HEADER, b"\0\0\x80\x3f\0\0\0\x40", version))
        assert read_npy(str(tmp_path / "x.npy")).tolist() == [1.0, 2.0]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "must be a .npy file of integers or floats, which starts 93 .*, not nothing$"),
            (b"PK\x03\x04 and so on", r"not 50 4b .* \(a \.npz holds several; save one array\)$"),
            (b"\x93NUMPY", r"format version must be 1\.0, 2\.0 or 3\.0, not \(\)$"),
            (npy(HEADER, version=b"\x09\x00"), r"not \(9, 0\)$"),
            (npy(HEADER)[:9], "header must be complete, not cut at 9 bytes$"),
            (npy(HEADER)[:30], "header must be complete, not cut at 30 bytes$"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "header must be complete"),
            (npy("{'descr': "), "header must be a dictionary of descr, fortran_order, shape$"),
            (npy("\x00"), "header must be a dictionary"),
            (npy("[" * 9000), "header must be a dictionary"),
            (npy("-" * 9000 + "1"), "header must be a dictionary"),
            (npy("{'\\d': 1 is 1}"), "header must be a dictionary"),
            (npy("{[]: 1}"), "header must be a dictionary"),
            (npy(HEADER).replace(b"'descr'", b"\xff\xfe\xfd\xfc\xfb\xfa "), "header must be"),
            (npy(HEADER.replace("(2,)", "(-2,)")), "header must be a dictionary"),
            (npy(HEADER.replace("(2,)", "(True,)")), "header must be a dictionary"),
            (npy(HEADER.replace("(2,)", "2")), "header must be a dictionary"),
            (npy(HEADER.replace("(2,)", "(1,) * 2")), "header must be a dictionary"),
            (npy(HEADER.replace("(2,)", str((1,) * 40))), "header must be a dictionary"),
            (npy(HEADER.replace("False", "0")), "header must be a dictionary"),
            (npy(HEADER.replace("<f4", "|O")), r"descr must be .*, e\.g\. '<f4', not '\|O'$"),
            (npy(HEADER.replace("<f4", "<c8")), "descr must be .*, not '<c8'$"),
            (npy(HEADER.replace("<f4", "<U2")), "descr must be .*, not '<U2'$"),
            (npy(HEADER.replace("<f4", "<f12")), "(descr must be|must hold)"),
            (npy(HEADER.replace("'<f4'", "[('a', '<f4')]")), "descr must be"),
            (npy(HEADER, bytes(7)), r"must hold 8 bytes of data for float32 of shape \[2\], not 7"),
            (npy(HEADER, bytes(9)), "must hold 8 bytes of data .*, not 9$"),
            (npy(HEADER.replace("(2,)", "(1 << 40,)")), "header must be a dictionary"),
            (npy(HEADER.replace("(2,)", f"({1 << 40},)")), f"must hold {1 << 42} bytes"),
            (npy(HEADER.replace("(2,)", f"({1 << 60},) ")), f"must hold {1 << 62} bytes"),
        ],
    )
    def test_damaged(self, tmp_path: Path, content: bytes, message: str) -> None:
        path = tmp_path / "x.npy"
        path.write_bytes(content)
        with pytest.raises(InputError, match=message) as caught:
            read_npy(path)
        assert caught.value.place == str(path)
        assert path.read_bytes() == content

    def test_not_a_file(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
            with pytest.raises(InputError, match=r"not a directory, pipe or device$"):
                read_npy(path)
        with pytest.raises(InputError, match=r"none\.npy: cannot be read: No such file"):
            read_npy(tmp_path / "none.npy")
        with pytest.raises(InputError, match=r"must not contain a NUL character$"):
            read_npy("a\0.npy")

    @settings(deadline=None, max_examples=200)
    @given(st.data())
    def test_any_damage_is_read_or_refused(
        self, tmp_path_factory: pytest.TempPathFactory, data: Any
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "damaged.npy"
        content = bytearray(npy(HEADER))
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
        with contextlib.suppress(InputError):
            assert isinstance(read_npy(path), np.ndarray)


class TestText:
    """A line per partition."""

    def test_floats(self) -> None:
        array = np.array(
            [[0.1, -0.0, 1.0, 16777216.0], [np.nan, np.inf, -np.inf, 1e-45]], dtype=np.float32
        )
        assert text(array) == "0.1 -0.0 1.0 1.6777216e+07\nnan inf -inf 1e-45"

    def test_integers_and_dimensions(self) -> None:
        assert text(np.arange(8, dtype=np.int8).reshape(2, 2, 2) - 4) == "-4 -3 -2 -1\n0 1 2 3"
        assert text(np.array([[255, 0]], dtype=np.uint8)) == "255 0"

    @settings(deadline=None, max_examples=200)
    @given(st.integers(0, 0xFFFFFFFF))
    def test_gives_the_same_float32_back(self, bits: int) -> None:
        value = np.array([[bits]], dtype=np.uint32).view(np.float32)
        words = text(value)
        if np.isnan(value[0, 0]):
            assert words == "nan"
        else:
            assert np.float32(float(words)).view(np.uint32) == bits
            # Shortest: one digit fewer does not read back as the same value.
            digits = len(words.split("e")[0].strip("-").replace(".", "").strip("0"))
            if np.isfinite(value[0, 0]) and digits > 1:
                shorter = f"{float(value[0, 0]):.{digits - 2}e}"
                assert np.float32(float(shorter)).view(np.uint32) != bits
