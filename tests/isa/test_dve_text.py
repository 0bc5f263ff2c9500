"""Text of the everyday DVE words: published samples, golden bytes, and round trips."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuron_emu import assemble, decode, disassemble, encode
from neuron_emu.errors import InputError
from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.families import FAMILY_OF_OPCODE
from neuron_emu.isa.layout import rows_of

# operand-text.md 1: the public lines of these families, without the optional semaphore labels.
SAMPLES = [
    "TENSOR_TENSOR S[8]>=16 S[6]++@complete op=ADD src0=fp32@0x20000[1,1,1][8192,1,1]"
    " src1=fp32@0x28000[1,1,1][8192,1,1] dst=fp32@0x1020000[1,1,1][8192,1,1] channels=64",
    "STREAM_SHUFFLE src=bf16@0x0[1][64] dst=bf16@0x4000[1][64] channels=32",
    "TENSOR_TENSOR_SCAN src0=fp32@0x0[1,1][256,1] src1=fp32@0x4000[1,1][256,1]"
    " dst=fp32@0x8000[1,1][256,1] ops=MULTIPLY,ADD channels=128 imm=fp32@0.000000",
]


def two(start: int, count: int) -> bytes:
    """TENSOR2D (isa-encoding.md 4.1): contiguous."""
    return struct.pack("<I2h2H", start, 1, 1, count, 1)


def three(start: int, count: int) -> bytes:
    """TENSOR3D: contiguous."""
    return struct.pack("<I3h3H", start, 1, 1, 1, count, 1, 1)


def four(start: int, *counts: int) -> bytes:
    """TENSOR4D: contiguous in X, further dimensions repeat."""
    steps = [1] + [0 if i < len(counts) else 1 for i in range(1, 4)]
    return struct.pack("<I4h4H", start, *steps, *counts, *[1] * (4 - len(counts)))


def header(opcode: int) -> bytes:
    """Header and events of a word without events."""
    return bytes([opcode, 0x10]) + bytes(10)


# Bytes composed by hand from the layouts of dve-tensor-scalar.md 9.2 to 9.7.
GOLDEN = [
    (
        header(0x41) + bytes([0x6A, 0x07, 0x05, 32])
        + three(0x100, 4) + three(0x200, 4) + three(0x300, 4),
        "TENSOR_TENSOR op=SUBTRACT src0=fp32@0x100[1,1,1][4,1,1] src1=bf16@0x200[1,1,1][4,1,1]"
        " dst=fp16@0x300[1,1,1][4,1,1] channels=32",
    ),
    (
        header(0x72) + bytes([0xA3, 0x0A, 0x00, 128])
        + three(0x100, 4) + three(0x200, 4) + three(0x300, 4),
        "COPY_PREDICATED src0=uint8@0x100[1,1,1][4,1,1] src1=fp32@0x200[1,1,1][4,1,1]"
        " dst=fp32@0x300[1,1,1][4,1,1] channels=128",
    ),
    (
        header(0x42) + four(0x1000, 8, 2) + bytes([0x0A, 0x0A, 128, 1, 0x08, 2, 0])
        + bytes(5) + four(0x2000, 2),
        "TENSOR_REDUCE op=MAX src=fp32@0x1000[1,0,1,1][8,2,1,1] dst=fp32@0x2000[1,1,1,1][2,1,1,1]"
        " channels=128 op_dim=X negated=1",
    ),
    (
        header(0x6B) + four(0x1000, 32) + bytes([0x06, 0x06, 64, 0, 0, 0, 1])
        + bytes(5) + four(0x2000, 32),
        "STREAM_TRANSPOSE src=bf16@0x1000[1,1,1,1][32,1,1,1] dst=bf16@0x2000[1,1,1,1][32,1,1,1]"
        " channels=64 mask_enable=1",
    ),
    (
        header(0x9D) + two(0x100, 4) + two(0x200, 4) + bytes([6, 5, 2, 1, 0xAA, 0x0A, 16, 0x0A])
        + bytes(4) + two(0x300, 4) + struct.pack("<I", 0xC000),
        "SCALAR_TENSOR_TENSOR src0=fp32@0x100[1,1][4,1] src1=fp32@0x200[1,1][4,1]"
        " dst=fp32@0x300[1,1][4,1] ops=MULTIPLY,SUBTRACT channels=16 imm=[fp32@0xc000]"
        " reverse_operands=SECOND",
    ),
    (
        header(0x9E) + two(0x100, 4) + two(0x200, 4) + bytes([10, 11, 0, 0, 0x55, 0x05, 16, 0x05])
        + bytes(4) + two(0x300, 4) + struct.pack("<I", 0xFF),
        "SCALAR_TENSOR_TENSOR_BITVEC src0=uint16@0x100[1,1][4,1] src1=uint16@0x200[1,1][4,1]"
        " dst=uint16@0x300[1,1][4,1] ops=BITWISE_AND,BITWISE_OR channels=16 imm=bits@0xff"
        " imm_dtype=uint16",
    ),
    (
        header(0xEA) + two(0x100, 4) + two(0x200, 4) + bytes([0, 8, 1, 0, 0xA3, 0x0A, 16, 0x0A, 3])
        + bytes(3) + two(0x300, 4) + struct.pack("<f", -1.0),
        "SELECT_REDUCE src0=uint8@0x100[1,1][4,1] src1=fp32@0x200[1,1][4,1]"
        " dst=fp32@0x300[1,1][4,1] ops=BYPASS,MAX channels=16 imm=fp32@-1.000000"
        " reverse_operands=FIRST accumulator_cmd=ZERO_ACCUMULATE",
    ),
    (
        header(0x49) + bytes(16) + struct.pack("<I", 8) + bytes([0x06, 0, 128, 0, 0, 0, 0, 0])
        + struct.pack("<I", 0x3F80) + four(0x2000, 8),
        "MEMSET dst=bf16@0x2000[1,1,1,1][8,1,1,1] channels=128 set_value=0x3f80",
    ),
    (
        header(0xE9) + bytes(16) + struct.pack("<I", 8) + bytes([0x09, 0, 128]) + bytes(9)
        + four(0x2000, 8),
        "DVE_READ_INDICES dst=uint32@0x2000[1,1,1,1][8,1,1,1] channels=128",
    ),
    (
        header(0xBC) + bytes([64, 0xAA, 3, 8]) + struct.pack("<fI", 512.0, 0xFF7FFFFF)
        + two(0x100, 4) + bytes([0x14, 0x16, 0, 1]) + struct.pack("<fI", 2.0, 0xC000)
        + two(0x200, 4) + bytes(4),
        "RANGE_SELECT src=fp32@0x100[1,1][4,1] dst=fp32@0x200[1,1][4,1] channels=64"
        " base=512.000000 ops=IS_GE,IS_LT bound0=fp32@2.000000 bound1=[fp32@0xc000]"
        " accumulator_cmd=ZERO_ACCUMULATE",
    ),
    (
        header(0x98) + bytes(4) + three(0x100, 4) + bytes([1, 16, 0x06, 0x05, 0, 0, 0, 1])
        + struct.pack("<II", 0xFF80, 0x3000) + three(0x200, 4),
        "TENSOR_SCALAR_SELECT src0=bf16@0x100[1,1,1][4,1,1] dst=bf16@0x200[1,1,1][4,1,1]"
        " channels=16 src1=bits@0xff80 pred=[uint16@0x3000] reversed_pred=1",
    ),
    (
        header(0x98) + bytes(4) + three(0x100, 4) + bytes([0, 128, 0x0A, 0x03, 0, 0, 0, 0])
        + struct.pack("<fI", -1.5, 1) + three(0x200, 4),
        "TENSOR_SCALAR_SELECT src0=fp32@0x100[1,1,1][4,1,1] dst=fp32@0x200[1,1,1][4,1,1]"
        " channels=128 src1=fp32@-1.500000 pred=1 pred_dtype=uint8",
    ),
    (
        header(0x61) + four(0x1000, 7) + bytes([0x0A, 0x0A, 128]) + bytes(5)
        + struct.pack("<2f", 4, 3) + two(0x2000, 6) + bytes(4),
        "BN_STATS2 src=fp32@0x1000[1,1,1,1][7,1,1,1] dst=fp32@0x2000[1,1][6,1] channels=128"
        " even_count=4.000000 odd_count=3.000000",
    ),
    (
        header(0x6C) + four(0x1000, 64) + bytes([0x0A, 0x0A, 128]) + bytes(13) + two(0x2000, 8)
        + bytes(4),
        "MAX8 src=fp32@0x1000[1,1,1,1][64,1,1,1] dst=fp32@0x2000[1,1][8,1] channels=128",
    ),
    (
        header(0x6D) + bytes(4) + two(0x1000, 8) + bytes(4) + bytes([0x0A, 0, 128]) + bytes(29),
        "MATCH_VALUE_LOAD src=fp32@0x1000[1,1][8,1] channels=128",
    ),
    (
        header(0x6F) + four(0x1000, 64) + bytes([0x0A, 0x0A, 128]) + bytes(5)
        + struct.pack("<f", float("-inf")) + four(0x2000, 64),
        "MATCH_REPLACE8 src=fp32@0x1000[1,1,1,1][64,1,1,1] dst=fp32@0x2000[1,1,1,1][64,1,1,1]"
        " channels=128 imm=-inf",
    ),
    (
        header(0x69) + bytes(20) + bytes([*range(1, 32), 255]),
        f"LOAD_MASK_SELECT mask=[{','.join(map(str, range(1, 32)))},255]",
    ),
]  # fmt: skip
OPCODES = (
    *(0x41, 0x51, 0x65, 0x72, 0x99, 0x42, 0x46, 0x47, 0x48, 0x4E, 0x52, 0x5E, 0x6A, 0x6B, 0x83),
    *(0x84, 0x9D, 0x9E, 0xE5, 0xEA, 0x49, 0x4B, 0x4D, 0xE9, 0xBC, 0x60, 0x61, 0x62, 0x6C, 0x6E),
    *(0x98, 0x82, 0x64, 0x6D, 0x70, 0x71, 0x6F, 0x69),
)


SELECT = "TENSOR_SCALAR_SELECT channels=1 src0=bf16@0[1][8] "


class TestGolden:
    @pytest.mark.parametrize("line", SAMPLES)
    def test_public_samples(self, line):
        """The public lines come back unchanged."""
        assert disassemble(assemble(line)) == line + "\n"

    @pytest.mark.parametrize(("word", "line"), GOLDEN)
    def test_both_ways(self, word, line):
        """Literal bytes beside the literal line."""
        assert len(word) == 64
        assert disassemble(word) == line + "\n"
        assert assemble(line) == word

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("LOAD_MASK_SELECT mask=[1,2]", r"mask must be \[32 numbers\], not '\[1,2\]'"),
            (
                "COPY src=fp32@0[1][8] dst=fp32@8[1][8] channels=1 op_dim=Y",
                r"op_dim must be one of",
            ),
            (SAMPLES[2] + " imm_dtype=fp33", r"imm_dtype must be one of int8, "),
            (SELECT + "dst=fp16@64[1][8] src1=0 pred=1", r"dst must be bf16 as src0, not fp16"),
            (SELECT + "dst=bf16@64[1][8] src1=1.0 pred=1", r"src1 must be bits like bits@0x3f80"),
            (SELECT + "dst=bf16@64[1][8] src1=bits@1 pred=1.5", r"pred must be 0, 1, "),
            (SELECT + "dst=bf16@64[1][8] src1=bits@1 pred=[u8@0]", r"pred_dtype must be one of "),
            ("MEMSET dst=fp32@0[1][8]", r"channels=0 is missing"),
            (
                "MEMSET dst=fp32@0[0,0,0,0][65535,65535,65535,65535] channels=1",
                r"Memset cannot be built",
            ),
        ],
    )
    def test_messages(self, line, message):
        """What cannot be read says what was expected."""
        with pytest.raises(InputError, match=message):
            assemble(line)


@st.composite
def likely_words(draw: st.DrawFn) -> bytes:
    """Words of these families whose fields are mostly what the notation can say."""
    opcode = draw(st.sampled_from(OPCODES))
    word = bytearray(header(opcode) + draw(st.binary(min_size=52, max_size=52)))
    for row in rows_of(record_type_of(opcode)):
        if row.name.startswith("reserved"):
            word[row.offset : row.offset + row.size] = bytes(row.size)
        elif row.enum is not None and draw(st.integers(0, 15)):
            word[row.offset] = draw(st.sampled_from(list(row.enum)))
        elif row.views or (row.record is not None and "Tensor" in row.record.__name__):
            word[row.offset + 3] &= draw(st.sampled_from([0x1F, 0x1F, 0x9F, 0x3F, 0xFF]))
        elif row.record is not None and row.record.__name__ == "DTypePair":
            word[row.offset] = draw(st.sampled_from([0xAA, 0x6A, 0x33, 0xE2]))
    return bytes(word)


class TestRoundTrip:
    @settings(max_examples=600, deadline=None)
    @given(likely_words())
    def test_words_come_back(self, word):
        """Decode and encode, print and assemble give the same bytes back."""
        assert encode(decode(word)) == word
        assert assemble(disassemble(word)) == word

    def test_every_opcode_has_a_family_of_its_struct(self):
        """No opcode of this list is left to the generic payload."""
        assert set(OPCODES) <= set(FAMILY_OF_OPCODE)

    def test_nonzero_reserved_bytes_are_no_text(self):
        """A reserved byte that is not zero is a .word line which still comes back."""
        for opcode in OPCODES:
            for row in rows_of(record_type_of(opcode)):
                if row.name.startswith("reserved"):
                    word = bytearray(header(opcode) + bytes(52))
                    word[row.offset] = 1

                    assert disassemble(bytes(word)).startswith(".word ")
