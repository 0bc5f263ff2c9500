"""Text both ways: published samples, golden lines, and the total round trip."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuron_emu import assemble, decode, disassemble, encode
from neuron_emu.errors import InputError
from neuron_emu.generation import GENERATIONS, MARIANA, SUNDA
from neuron_emu.isa.assembly import disassemble_word
from neuron_emu.isa.families import FAMILY_OF_OPCODE
from neuron_emu.isa.text import float_text, parse_float

# isa-encoding.md 5.5, composed by hand.
EXAMPLE = bytes.fromhex(
    "30100000 00000000 00000000 03000000"
    "00100000 01000100 01000002 01000100"
    "0A068000 00000000 00000000 00000000"
    "00200000 01000100 01000002 01000100"
)
EXAMPLE_TEXT = (
    "EXPONENTIAL src=fp32@0x1000[1,1,1][512,1,1] dst=bf16@0x2000[1,1,1][512,1,1] channels=128"
    " max_value=fp32@0.000000 accumulator_cmd=ZERO_ACCUMULATE"
)
# dve-tensor-scalar.md 13, x * 2.0 + 1.0.
TENSOR_SCALAR = bytes.fromhex(
    "43100000 00000000 00000000 00000000"
    "00100000 01000100 01000800 01000100"
    "0a0a8000 06040000 00000040 0000803f"
    "00200000 01000100 01000800 01000100"
)
GOLDEN = [
    (EXAMPLE, EXAMPLE_TEXT),
    (
        TENSOR_SCALAR,
        "TENSOR_SCALAR src=fp32@0x1000[1,1,1][8,1,1] dst=fp32@0x2000[1,1,1][8,1,1] channels=128"
        " ops=MULTIPLY,ADD imm0=fp32@2.000000 accumulator_cmd=IDLE imm1=fp32@1.000000",
    ),
    (
        # operand-text.md 1, the sample line; bytes by isa-encoding.md 5.4.
        bytes.fromhex("24100000") + bytes(24) + struct.pack("<I", 1)
        + bytes.fromhex("0A0080") + bytes(9) + struct.pack("<IhH", 0x8000, 1, 1) + bytes(12),
        "ACTIVATION_READ_ACCUMULATOR dst=fp32@0x8000[1][1] channels=128",
    ),
    (bytes.fromhex("23100000") + bytes(60), "ACT_TABLE_LOAD table_sel=0"),
    (
        # Waits for semaphore 4 >= 292, increments it at completion (operand-text.md 1).
        bytes.fromhex("a4100000 05041304 24010000") + bytes(52),
        "NOP S[4]>=292 S[4]++@complete",
    ),
    (bytes.fromhex("df100000 00000000 00000000 01") + bytes(51), "PSEUDO_INST kind=EXIT"),
]  # fmt: skip


class TestGolden:
    @pytest.mark.parametrize(("word", "text"), GOLDEN)
    def test_both_ways(self, word, text):
        """Literal bytes beside the literal line."""
        assert disassemble(word) == text + "\n"
        assert assemble(text) == word

    def test_pointer_register_and_seed(self):
        """The three forms of max_value, and reduce_init under LOAD_ACCUMULATE only."""
        base = EXAMPLE_TEXT.replace("ZERO_ACC", "LOAD_ACC")
        pointer = assemble(base.replace("max_value=fp32@0.000000", "max_value=[fp32@0xc000]"))
        register = assemble(base.replace("max_value=fp32@0.000000", "max_value=$R[5]"))
        seeded = assemble(base + " reduce_init=fp32@10.000000")

        assert (pointer[35], pointer[40:44]) == (1, struct.pack("<I", 0xC000))
        assert (register[35], register[40:44]) == (2, struct.pack("<I", 5))
        assert seeded[44:48] == struct.pack("<f", 10)
        assert disassemble(seeded).endswith(" reduce_init=fp32@10.000000\n")

    def test_address_forms(self):
        """Register and indirect addresses set the marker bits of isa-encoding.md 3.1."""
        text = EXAMPLE_TEXT.replace("fp32@0x1000[1,1,1][512,1,1]", "fp32@$R[7][1,1,1][512,1,1]")
        by_register = assemble(text)
        gather = assemble(EXAMPLE_TEXT.replace(
            "fp32@0x1000[1,1,1][512,1,1]", "fp32@0x1000[index@0x8000][512]"
        ))  # fmt: skip

        assert by_register[16:20] == bytes.fromhex("07000080")
        assert gather[16:32] == struct.pack("<IIHH4x", 0x20008000, 0x1000, 512, 0)
        assert disassemble(by_register) == text + "\n"
        assert "src=fp32@0x1000[index@0x8000][512]" in disassemble(gather)

    def test_indirect_is_no_text_where_unions_are_missing(self):
        """SUNDA reads the same bytes as a plain tensor, which the notation cannot say."""
        gather = assemble(EXAMPLE_TEXT.replace("fp32@0x1000[1,1,1][512,1,1]",
                                               "fp32@0x1000[index@0x8000][512]"))  # fmt: skip

        assert disassemble(gather, SUNDA).startswith(f".word {gather.hex()}  # EXPONENTIAL: ")

    def test_bytes_are_a_comment(self):
        """`--bytes` adds offset and bytes, and the line still assembles."""
        text = disassemble(EXAMPLE + EXAMPLE, show_bytes=True)

        assert text.splitlines()[1].startswith(EXAMPLE_TEXT + "  # 0x0040: 30100000 00000000")
        assert assemble(text) == EXAMPLE + EXAMPLE


class TestInput:
    @pytest.mark.parametrize(
        "text",
        [
            "\n# a comment\nNOP S[4] (Scalar)>=292 S[4] (Scalar)++@complete   # more\n",
            "NOP: $S[4]>=292 $S[4]++@complete;",
            "start: NOP S[4]>=0x124 S[4]++@complete",
        ],
    )
    def test_what_is_skipped(self, text):
        """Comments, labels, semaphore names and the listing notation of NEFF members."""
        assert assemble(text) == GOLDEN[4][0]

    def test_missing_dimensions_and_long_names(self):
        """Missing dimensions are step 1, size 1; the long opcode name is read."""
        short = EXAMPLE_TEXT.replace("[1,1,1][512,1,1]", "[1][512]")

        assert assemble(short) == EXAMPLE
        assert assemble("ACTIVATION_TABLE_LOAD table_sel=0") == GOLDEN[3][0]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (
                "FROB",
                r"^line 2: a line must begin with an opcode such as EXPONENTIAL",
            ),
            ("MATMUL fast", r"^line 2: 'MATMUL' has no text form; write it as \.word$"),
            ("ACT_TABLE_LOAD", r"^line 2: table_sel=0 is missing$"),
            (
                "ACT_TABLE_LOAD table_sel=256",
                r"table_sel must be a number from 0 to 255, not '256'",
            ),
            ("NOP x=1", r"^line 2: operand 'x=' must not stand here$"),
            ("NOP S[1]==", r"^line 2: semaphore must be like S\[4\]>=292"),
            ("NOP S[256]>0", r"semaphore must be a number from 0 to 255, not '256'"),
            ("NOP S[1]>1 S[2]+=2@read", r"wait and update must use the same semaphore value"),
            ("NOP S[1]>1 S[2]>1", r"a word must have at most one wait"),
            (".word 00", r"\.word must have 128 hex digits, not '00'"),
            (EXAMPLE_TEXT.replace("fp32@0x1000", "fp33@0x1000"), r"dtype must be one of int8, "),
            (EXAMPLE_TEXT.replace("[512,1,1]", "[65536,1,1]"), r"sizes must be a number from 0 to"),
            (EXAMPLE_TEXT.replace("0.000000", "1e39"), r"max_value must be a float32, not '1e39'"),
            (EXAMPLE_TEXT + " channels=1", r"^line 2: channels must be given once$"),
            (
                EXAMPLE_TEXT.replace("ZERO_", "ZERO-"),
                r"accumulator_cmd must be one of IDLE, ZERO, ",
            ),
        ],
    )
    def test_messages_name_line_and_expectation(self, line, message):
        """Text that cannot be read names its line and what was expected."""
        with pytest.raises(InputError, match=message):
            assemble("NOP\n" + line)

    @given(st.text(max_size=80))
    def test_any_text(self, text):
        """Any text assembles or is refused with our own error."""
        with contextlib.suppress(InputError):
            assemble(text)


class TestFloats:
    @given(st.integers(0, 0xFFFFFFFF))
    def test_round_trip(self, word):
        """Every float32, NaN payloads and both zeros included, reads back as its bits."""
        assert parse_float(float_text(word), "value") == word

    @pytest.mark.parametrize(
        ("word", "text"),
        [
            (0x00000000, "0.000000"),
            (0x80000000, "-0.000000"),
            (0x3F000000, "0.500000"),
            (0x3DCCCCCD, "0.100000"),
            (0x3EBC5AB2, "0.36787945"),
            (0x7F800000, "inf"),
            (0xFF800000, "-inf"),
            (0x7FC00001, "0x7fc00001"),
        ],
    )
    def test_forms(self, word, text):
        """operand-text.md 1: six decimals, else the digits needed, a NaN as its bits."""
        assert float_text(word) == text


def words(family_only: bool = False) -> st.SearchStrategy[bytes]:
    """Random words; with headers of a compiler and sane fields often enough to reach the text."""
    opcode = st.sampled_from(sorted(FAMILY_OF_OPCODE)) if family_only else st.integers(0, 255)

    @st.composite
    def build(draw: st.DrawFn) -> bytes:
        word = bytearray(draw(st.binary(min_size=64, max_size=64)))
        word[0] = draw(opcode)
        if draw(st.booleans()):
            word[1:4] = b"\x10\x00\x00"
        if draw(st.booleans()):
            word[4:12] = bytes(8)
        if draw(st.booleans()):
            word[12:16] = bytes([draw(st.integers(0, 5)), 0, 0, 0])
            word[32:34] = draw(
                st.binary(min_size=2, max_size=2).map(lambda b: bytes(x % 17 for x in b))
            )
            word[35] %= 4
            word[36:40] = bytes([0, 0, word[38] % 5, word[39] % 4])
            word[19] &= draw(st.sampled_from([0x1F, 0x3F, 0x9F, 0xBF, 0xFF]))
            word[51] &= draw(st.sampled_from([0x1F, 0x3F, 0x9F, 0xBF, 0xFF]))
        return bytes(word)

    return build()


class TestRoundTrip:
    @settings(max_examples=400)
    @given(words(), st.sampled_from(list(GENERATIONS.values())))
    def test_any_word(self, word, generation):
        """Any 64 bytes decode, encode, print and assemble back to the same bytes."""
        assert encode(decode(word, generation)) == word
        assert assemble(disassemble(word, generation)) == word

    @settings(max_examples=400)
    @given(words(family_only=True))
    def test_family_words(self, word):
        """The same for the opcodes that have a family; most of these reach the text form."""
        assert encode(decode(word)) == word
        assert assemble(disassemble_word(word, MARIANA)) == word

    def test_every_opcode_decodes_with_its_name(self):
        """An opcode without a family keeps header, events and payload, and its name is shown."""
        for opcode in range(256):
            word = bytes([opcode, 16]) + bytes(range(2, 64))

            assert encode(decode(word)) == word
            assert assemble(disassemble(word)) == word
        assert "# MATMUL: no text form" in disassemble(bytes([2]) + bytes(63))
        assert "# UNKNOWN_00: no text form" in disassemble(bytes(64))

    def test_register_number_of_32_bits(self):
        """The operand of an event may be any number; it prints and comes back."""
        word = bytes.fromhex("a410000000009901e8030000") + bytes(52)

        assert disassemble(word) == "NOP S[1]=$R[1000]@complete\n"
        assert assemble(disassemble(word)) == word

    def test_wrong_sizes(self):
        """A word is 64 bytes, a stream a multiple of them."""
        with pytest.raises(InputError, match=r"^a word must be 64 bytes, not 63$"):
            decode(bytes(63))
        with pytest.raises(InputError, match=r"^size must be a multiple of 64 bytes, not 65$"):
            disassemble(bytes(65))
