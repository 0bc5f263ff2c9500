"""The text of control and pseudo words, both ways, with the public samples of operand-text.md."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuron_emu.errors import InputError
from neuron_emu.isa.assembly import assemble, disassemble, disassemble_word
from neuron_emu.isa.codec import decode, encode
from neuron_emu.isa.opcodes import OPCODES

CONTROL_OPCODES = sorted(op for op in OPCODES if op == 0x9F or 0xA0 <= op <= 0xB5 or op >= 0xC1)


def word(prefix, **at):
    """Return 64 bytes: a hex prefix, and bytes at `bN=` offsets."""
    data = bytearray(bytes.fromhex(prefix).ljust(64, b"\0"))
    for place, value in at.items():
        start = int(place[1:])
        data[start : start + len(value)] = value
    return bytes(data)


# operand-text.md 1 and 2; the bytes follow from isa-encoding.md 2 and 9, worked out by hand.
SAMPLES = [
    (
        "MOVE dtype=uint32 $R[61]=0xc61c0000",
        word("a7100000 0000000000000000 01 09 01", b24=b"\x3d", b32=bytes.fromhex("00001cc6")),
        "MOVE dtype=uint32 $R[61]=0xc61c0000",
    ),
    (
        "EVENT_SEMAPHORE S[22] (qSyncIO0)>=240 setter=0",
        word("a0100000 05160000 f0000000"),
        "EVENT_SEMAPHORE S[22]>=240 setter=0",
    ),
    (
        "EVENT_SEMAPHORE $S[11]>0;",
        word("a0100000 040b0000"),
        "EVENT_SEMAPHORE S[11]>0 setter=0",
    ),
    (
        "PSEUDO_TRIGGER_COLLECTIVE $S[10]>0 $S[22]++@complete ctype=ALL_REDUCE input_tensor_id=3"
        " output_tensor_id=4 num_elements=32 dtype=fp32 op=ADD group_id=0;",
        word(
            "C8 10 00 00 04 0A 13 16 00 00 00 00 04 0A 00 00 03 00 00 00 04 00 00 00 20",
            b32=b"\x01",
        ),
        "PSEUDO_TRIGGER_COLLECTIVE S[10]>0 S[22]++@complete ctype=ALL_REDUCE input_tensor_id=3"
        " output_tensor_id=4 num_elements=32 dtype=fp32 op=ADD group_id=0",
    ),
    (
        "PSEUDO_DMA_TRIGGER $S[3]>4 qSyncIO0 block_id=0;",
        word("c1100000 04030000 04000000", b12=b"qSyncIO0"),
        "PSEUDO_DMA_TRIGGER S[3]>4 qSyncIO0 block_id=0",
    ),
    (
        "PSEUDO_LOAD_ACT_FUNC_SET act_set_name=exp_and_others",
        word("c6100000", b12=b"exp_and_others"),
        "PSEUDO_LOAD_ACT_FUNC_SET act_set_name=exp_and_others",
    ),
    (
        "EVENT_SEMAPHORE S[1]==2 S[3]--@read wait2=E[4]==1,=0 update2=S[5]=7@complete setter=0",
        word(
            "a0100000 01010403 02000000",
            b32=bytes([0x07, 4, 0x19, 5]),
            b40=b"\x07",
        ),
        "EVENT_SEMAPHORE S[1]==2 S[3]--@read wait2=E[4]==1,=0 update2=S[5]=7@complete setter=0",
    ),
    (
        "EVENT_SEMAPHORE_RANGE_CLEAR mode=RANGE first=16 last=31",
        word("b0100000", b12=bytes([1, 16, 31])),
        "EVENT_SEMAPHORE_RANGE_CLEAR mode=RANGE first=16 last=31",
    ),
    (
        "MOVE dtype=int32 $R[1]=$R[2] $R[3]=$R[129]",
        word("a7100000", b12=bytes([2, 8, 0, 0, 2, 129]), b24=bytes([1, 3])),
        "MOVE dtype=int32 $R[1]=$R[2] $R[3]=$R[129]",
    ),
    (
        "ALU_OP op=MULTIPLY dtype=int32 src0=$R[1] src1=-2 dst=$R[3]",
        word("a8100000", b12=bytes([6, 8, 1, 8, 1, 0, 0, 0, 3]), b24=b"\xfe\xff\xff\xff"),
        "ALU_OP op=MULTIPLY dtype=int32 src0=$R[1] src1=0xfffffffe dst=$R[3]",
    ),
    (
        "ALU_OP op=ADD dtype=uint64 src0=$R[1],$R[2] src1=$R[3],$R[4] dst=$R[5],$R[6]",
        word("a8100000", b12=bytes([4, 1, 0, 1, 1, 2, 3, 4, 5, 6])),
        "ALU_OP op=ADD dtype=uint64 src0=$R[1],$R[2] src1=$R[3],$R[4] dst=$R[5],$R[6]",
    ),
    (
        "COMPARE_BRANCH op=LT_IMM dtype=int32 src0=$R[1] src1=10 target=-128",
        word("a9100000", b12=bytes([1, 8, 3]), b16=b"\x0a", b32=b"\x01", b48=b"\x80" + b"\xff" * 7),
        "COMPARE_BRANCH op=LT_IMM dtype=int32 src0=$R[1] src1=0xa target=-128",
    ),
    (
        "COMPARE_BRANCH op=GT_REG dtype=uint32 src0=$R[1] src1=$R[2] target=$R[3],$R[4]",
        word("a9100000", b12=bytes([14, 9, 1]), b32=bytes([1, 2, 3, 4])),
        "COMPARE_BRANCH op=GT_REG dtype=uint32 src0=$R[1] src1=$R[2] target=$R[3],$R[4]",
    ),
    (
        "COMPARE_BRANCH target=+$R[3],$R[4]",
        word("a9100000", b14=b"\x04", b34=bytes([3, 4])),
        "COMPARE_BRANCH op=ALWAYS target=+$R[3],$R[4]",
    ),
    ("POLL_SEM", word("b3100000"), "POLL_SEM"),
    ("WRITE S[1]>0", word("a5100000 04010000"), "WRITE S[1]>0"),
    ("ENGINE_NOP S[2]++@complete", word("9f100000 00001302"), "ENGINE_NOP S[2]++@complete"),
    ("PSEUDO_RETURN", word("d2100000"), "PSEUDO_RETURN"),
    ("DRAIN count=3", word("a2100000", b40=b"\x03"), "DRAIN count=3"),
]


@pytest.mark.parametrize(("line", "data", "printed"), SAMPLES, ids=lambda v: str(v)[:40])
def test_samples(line, data, printed):
    """The line gives the bytes, and the bytes print as they are."""
    assert assemble(line).hex() == data.hex()
    assert disassemble(data) == f"{printed}\n"


@pytest.mark.parametrize(
    ("data", "comment"),
    [
        (word("c1100000", b12=b"qDve\0x"), "qDve"),
        (word("c1100000", b12=b"\xff\0"), "PSEUDO_DMA_TRIGGER"),
        (word("c8100000", b32=b"\x02"), "CollectiveType 2"),
        (word("b3100000", b20=b"\x01"), "POLL_SEM: the layout of its payload is not published"),
        (word("a5100000", b63=b"\x01"), "WRITE: the layout"),
        (word("d9100000", b12=b"\x01"), "PSEUDO_TRIGGER_COLLECTIVE2: the layout"),
        (word("a0100000", b20=b"\x01"), "a reserved byte is not zero"),
        (word("a0100000", b36=b"\x01"), "does not give the bytes back"),
        (word("a7100000", b12=bytes([9, 9, 1])), "move_count 9"),
        (word("a7100000", b12=bytes([2, 9, 1])), "a register is set twice"),
        (word("a7100000", b12=bytes([1, 9, 2])), "source kind 2"),
        (word("a7100000", b12=bytes([1, 0, 1])), "dtype 0x00"),
        (word("a8100000", b12=bytes([0x1F, 9, 1, 9])), "ALU operation 0x1f"),
        (word("a9100000", b12=bytes([7, 9, 3])), "CompareOp 7"),
        (word("a9100000", b12=bytes([0, 9, 2])), "BranchTarget 2"),
        (word("b0100000", b12=b"\x03"), "ClearMode 3"),
    ],
)
def test_what_the_text_cannot_say(data, comment):
    """A `.word` line with the reason, which reads back as the same bytes."""
    line = disassemble_word(data)

    assert line.startswith(f".word {data.hex()}  # ")
    assert comment in line
    assert assemble(line) == data


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("MOVE dtype=uint32", "MOVE must set 1 to 8 registers"),
        ("MOVE dtype=uint32 $R[1]=$R[2] $R[2]=0x1", "registers or immediates, not both"),
        ("MOVE dtype=uint99 $R[1]=1", "dtype must be one of"),
        ("MOVE dtype=uint32 $R[1]=0x100000000", "must be a number from -2147483648 to 4294967295"),
        ("EVENT_SEMAPHORE setter=1", "setter must be a number from 0 to 0"),
        ("EVENT_SEMAPHORE wait2=S[1]++@read", "wait2 must be like S"),
        ("EVENT_SEMAPHORE update2=7", "update2 must be like S"),
        ("EVENT_SEMAPHORE S[1]>0 S[2]>0", "at most one wait"),
        ("ALU_OP op=ADD dtype=int32 src0=$R[1] src1=$R[2]", "dst=$R[3] is missing"),
        ("ALU_OP op=ADD dtype=int32 src0=5 src1=$R[2] dst=$R[1]", "src0 must be a register"),
        ("COMPARE_BRANCH op=LT target=64", "op must be one of ALWAYS, LT_IMM"),
        ("COMPARE_BRANCH target=next", "target must be a number"),
        ("EVENT_SEMAPHORE_RANGE_CLEAR mode=MASK mask=0x1", "mask must be 0x and 64 hex digits"),
        ("PSEUDO_DMA_TRIGGER", "the name of the queue is missing"),
        ("PSEUDO_RETURN kind=1", "'kind=' must not stand here"),
    ],
)
def test_bad_lines(line, message):
    """One sentence says what was expected."""
    with pytest.raises(InputError) as caught:
        assemble(line)

    assert message in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_control_word_reads_back(data):
    """Decode and encode, disassemble and assemble: the same 64 bytes, whatever they are."""
    values = bytearray(64)
    values[0], values[1] = data.draw(st.sampled_from(CONTROL_OPCODES)), 0x10
    small = st.one_of(st.integers(0, 15), st.integers(0, 255))
    for place in data.draw(st.lists(st.integers(4, 63), max_size=12)):
        values[place] = data.draw(small)
    raw = bytes(values)

    assert encode(decode(raw)) == raw
    assert assemble(disassemble_word(raw)) == raw
