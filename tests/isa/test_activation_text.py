"""The text of the ACT words: the published samples byte for byte, our own forms, round trips."""

from __future__ import annotations

import random
import struct

import pytest

from neuron_emu import assemble, decode, disassemble
from neuron_emu.errors import InputError
from neuron_emu.generation import GENERATIONS, MAVERICK
from neuron_emu.isa.families.activation import ActivationFunction, BiasSource
from neuron_emu.isa.opcodes import OPCODES
from neuron_emu.pwp.functions import FUNCTIONS

# operand-text.md 1, the two public ACTIVATE lines; bytes by activation-tables.md 2.2.
IDENTITY_SAMPLE = (
    "ACTIVATE S[4] (Scalar)>=292 S[4] (Scalar)++@complete IDENTITY bias_ptr=fp32@0x28490"
    " src=fp32@0x20490[1,1,1][1,1,1] dst=fp32@0x4490[1,1,1][1,1,1] channels=128 scale=[0x448c]"
    " imm=0.000000 accumulator_cmd=IDLE"
)
IDENTITY_WORD = bytes.fromhex(
    "21100000 05041304 24010000 00010000"
    "90040200 01000100 01000100 01000100"
    "aa0a8001 8c440000 90840200 00000000"
    "90440000 01000100 01000100 01000100"
)
EXP_SAMPLE = (
    "ACTIVATE EXP src=fp32@0x0[1,1,1][256,1,1] dst=fp32@0x4000[1,1,1][256,1,1] channels=128"
    " accumulator_cmd=ZERO_ACCUMULATE"
)
EXP_WORD = bytes.fromhex(
    "21100000 00000000 00000000 00000301"
    "00000000 01000100 01000001 01000100"
    "aa0a8007 0000803f 00000000 00000000"
    "00400000 01000100 01000001 01000100"
)
QUANTIZE = (
    "ACTIVATE_QUANTIZE RELU bias_ptr=bf16@0x100 src=int32@0x0[1,1,1][8,1,1]"
    " dst=uint8@0x400[1,1,1][8,1,1] channels=4 dequant_scale=0.500000 quant_scale=2.000000"
    " quant_zero=128.000000"
)
QUANTIZE_WORD = bytes.fromhex(
    "22100000 00000000 00000000 00000040"
    "00000000 01000100 01000800 01000100"
    "68030402 0000003f 00010000 00000043"
    "00040000 01000100 01000800 01000100"
)
ACTIVATE2 = (
    "ACTIVATE2 EXP src=fp32@0x0[1,1][8,1] dst=bf16@0x400[1,1][8,1] channels=4 ops=MULTIPLY,ADD"
    " reverse_operands=FIRST imm_dtype=bf16 imm0=[bf16@0x30] imm1=bits@0x3f80 relu_param=$R[4]"
    " reduce_cmd=RESET_REDUCE reduce_op=ABS_MAX"
)
ACTIVATE2_WORD = bytes.fromhex(
    "25100000 00000000 00000000"
    "00000000 01000100 08000100"
    "02010300 06060420 0a060407 30000000 803f0000 04000000"
    "00040000 01000100 08000100 01000000"
)
MULTIPASS = (
    "ACTIVATE_MULTIPASS EXP src=fp32@0x0[1,1][8,1] dst=bf16@0x400[1,1][8,1]"
    " prev_pass=bf16@0x800[1][8] channels=4 reduce_cmd=IDLE"
)


class TestSamples:
    """Literal bytes beside literal lines."""

    @pytest.mark.parametrize(
        ("text", "word"),
        [
            pytest.param(IDENTITY_SAMPLE, IDENTITY_WORD, id="sample-identity"),
            pytest.param(EXP_SAMPLE, EXP_WORD, id="sample-exp"),
            pytest.param(QUANTIZE, QUANTIZE_WORD, id="quantize"),
            pytest.param(ACTIVATE2, ACTIVATE2_WORD, id="activate2"),
        ],
    )
    def test_both_ways(self, text, word):
        """The line gives the bytes and the bytes give the line, its semaphore labels aside."""
        assert assemble(text) == word
        assert disassemble(word) == text.replace(" (Scalar)", "") + "\n"

    def test_multipass(self):
        """ACTIVATE_MULTIPASS reads and prints on the one generation that has it."""
        word = assemble(MULTIPASS)

        assert struct.unpack_from("<IhH", word, 40) == (0x800, 1, 8)
        assert disassemble(word, MAVERICK) == MULTIPASS + "\n"
        assert disassemble(word).startswith(".word 2610")


class TestForms:
    """What the samples leave out."""

    @pytest.mark.parametrize(
        ("operand", "source_n", "dtype", "word"),
        [
            ("bias_ptr=fp32@0x28490", BiasSource.POINTER, 0x0A, 0x28490),
            ("bias_ptr=bf16@0x2", BiasSource.POINTER, 0x06, 0x2),
            ("bias_ptr=fp16@$R[5]", BiasSource.REG_PTR, 0x07, 5),
            ("bias=0.500000", BiasSource.INSTRUCTION, 0x0A, 0x3F000000),
            ("bias=bf16@-1.000000", BiasSource.INSTRUCTION, 0x06, 0xBF800000),
            ("bias=0x7fc00001", BiasSource.INSTRUCTION, 0x0A, 0x7FC00001),
        ],
    )
    def test_bias(self, operand, source_n, dtype, word):
        """Byte 15 counts the sources of the bias with 0 and 1 swapped."""
        text = EXP_SAMPLE.replace("EXP ", f"EXP {operand} ")
        data = assemble(text)

        assert (data[15], data[32] >> 4) == (source_n, dtype)
        assert data[40:44] == struct.pack("<I", word)
        assert disassemble(data) == text + "\n"

    @pytest.mark.parametrize(
        ("operands", "sources", "words"),
        [
            ("scale=2.000000 imm=0.000000", (0, 0), (0x40000000, 0)),
            ("scale=1.000000 imm=0.250000", (0, 0), (0x3F800000, 0x3E800000)),
            ("scale=[0x448c] imm=[0xc000]", (1, 1), (0x448C, 0xC000)),
            ("scale=$R[1] imm=$R[2]", (2, 2), (1, 2)),
            ("scale=1.000000 imm=[0x0]", (0, 1), (0x3F800000, 0)),
        ],
    )
    def test_scale_and_imm(self, operands, sources, words):
        """They are printed together, in any form but the default one."""
        text = EXP_SAMPLE.replace(" accumulator", f" {operands} accumulator")
        data = assemble(text)

        assert (data[13], data[12]) == sources
        assert (struct.unpack_from("<I4xI", data, 36)) == words
        assert disassemble(data) == text + "\n"

    def test_input_is_lenient_about_defaults(self):
        """Written defaults, a dtype on an fp32 operand and the long forms read the same."""
        explicit = EXP_SAMPLE.replace(
            " accumulator", " bias=fp32@0.0 scale=fp32@1.0 imm=fp32@0.0 accumulator"
        )

        assert assemble(explicit) == EXP_WORD
        assert assemble(IDENTITY_SAMPLE.replace("[0x448c]", "[fp32@0x448c]")) == IDENTITY_WORD

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                EXP_SAMPLE.replace("EXP ", ""),
                "the function must be one of IDENTITY, .* not nothing",
            ),
            (EXP_SAMPLE.replace("EXP ", "EXPO "), "not EXPO$"),
            (EXP_SAMPLE.replace("EXP ", "EXP COPY "), "'COPY' must not stand here"),
            (EXP_SAMPLE + " scale=[bf16@0x100]", "scale must be fp32, not bf16"),
            (EXP_SAMPLE + " bias=[0x100]", "bias must be a value, not .0x100.; a pointer is bias_"),
            (EXP_SAMPLE + " bias_ptr=fp9@0x100", "the dtype of bias_ptr must be one of"),
            (EXP_SAMPLE + " bias_ptr=fp32@x", "bias_ptr must be a number from 0 to"),
            (EXP_SAMPLE + " bias_ptr=fp32@0x1 bias=1.0", "'bias=' must not stand here"),
            (QUANTIZE.replace("bias_ptr=bf16@0x100 ", ""), "always behind a pointer"),
            (QUANTIZE.replace("=2.000000", "=[0x100]"), "quant_scale must be a value"),
            (ACTIVATE2.replace("[bf16@0x30]", "[fp32@0x30]"), "imm0 must be bf16, not fp32"),
            (ACTIVATE2.replace("bits@0x3f80", "1.0"), "imm1 must be like bits@0x3f80 for bf16"),
            (MULTIPASS.replace("prev_pass=bf16", "prev_pass=fp32"), "the dtype of dst"),
        ],
    )
    def test_refused_text(self, text, message):
        """One sentence says what was expected."""
        with pytest.raises(InputError, match=message):
            assemble(text)

    def test_unnamed_code_is_a_word_line(self):
        """A function code that no source names cannot be said."""
        word = EXP_WORD[:35] + b"\x0b" + EXP_WORD[36:]

        assert disassemble(word) == (
            f".word {word.hex()}  # ACTIVATE: ActivationFunction 11 has no name\n"
        )
        assert decode(word).activation_func == 11


class TestCodes:
    def test_names_are_the_catalog(self):
        """The enum of the word and the catalog of tables print the same codes."""
        published = {f.name.upper(): f.code for f in FUNCTIONS if f.code is not None}

        assert {f.name: f.value for f in ActivationFunction} == published
        assert len(published) == 31


class TestRoundTrip:
    @pytest.mark.parametrize("opcode", [0x21, 0x22, 0x25, 0x26])
    @pytest.mark.parametrize("generation", list(GENERATIONS.values()), ids=str)
    def test_any_payload(self, opcode, generation):
        """Words near the printable ones and random bytes come back as they were."""
        rng = random.Random(opcode)
        base = {0x21: EXP_WORD, 0x22: QUANTIZE_WORD, 0x25: ACTIVATE2_WORD}.get(
            opcode, assemble(MULTIPASS)
        )
        printed = 0
        for _ in range(100):
            word = bytearray(base)
            for _ in range(rng.randrange(4)):
                word[rng.randrange(4, 64)] = rng.choice((0, 1, 2, 3, 4, 6, 7, 10, 0x80, 0x20, 255))
            if rng.random() < 0.1:
                word[4:] = rng.randbytes(60)
            text = disassemble(bytes(word), generation)
            printed += not text.startswith(".word")

            assert assemble(text) == bytes(word)
        assert printed > 25 or opcode not in generation.opcodes

    def test_opcodes_have_their_structs(self):
        """The opcode map names the structs that the families implement."""
        assert [OPCODES[op].struct for op in (0x21, 0x22, 0x25, 0x26)] == [
            "S3D3_AC",
            "S3D3_AQ",
            "S2D2_AC",
            "S1S2D2_AM",
        ]
