"""CTRL_MV, CTRL_AL and CTRL_BR: words that work on the sequencer's registers.

Source: isa-encoding.md 9 [observed]; registers: 7.1. MOVE's text is a public sample; the notation
of the other two is ours. Lists of registers: `$R[low]`, or `$R[low],$R[high]` for 64 bits.
"""

from __future__ import annotations

import re
from enum import IntEnum

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import AluOp, DType, member
from neuron_emu.isa.families.base import Family, header_of
from neuron_emu.isa.layout import raw, struct, values
from neuron_emu.isa.records import Events, Header
from neuron_emu.isa.text import (
    Inexpressible,
    Operands,
    alu_op_text,
    enum_text,
    parse_integer,
    register_text,
)

__all__ = [
    "ALU_OP",
    "COMPARE_BRANCH",
    "FAMILIES",
    "MOVE",
    "WIDE_DTYPES",
    "AluWord",
    "BranchTarget",
    "BranchWord",
    "CompareOp",
    "DataSource",
    "MoveWord",
]

MOVE = 0xA7
ALU_OP = 0xA8
COMPARE_BRANCH = 0xA9
MOST_MOVES = 8
WIDE_DTYPES = frozenset((DType.UINT64, DType.INT64))
"""Dtypes that take a pair of registers, the low half first."""


class DataSource(IntEnum):
    """DATA_SRC (isa-encoding.md 7.1); that CTRL_MV uses it as well is [inferred]."""

    REGISTER = 0
    IMMEDIATE = 1


class CompareOp(IntEnum):
    """Comparison of CTRL_BR (isa-encoding.md 9)."""

    ALWAYS = 0
    LT_IMM = 1
    LE_IMM = 2
    EQ_IMM = 3
    NE_IMM = 4
    GE_IMM = 5
    GT_IMM = 6
    LT_REG = 9
    LE_REG = 10
    EQ_REG = 11
    NE_REG = 12
    GE_REG = 13
    GT_REG = 14


class BranchTarget(IntEnum):
    """Target mode of CTRL_BR (isa-encoding.md 9)."""

    REGISTER = 1
    REL_IMM = 3
    REL_REGISTER = 4


@frozen(kw_only=True)
class MoveWord:
    """CTRL_MV: up to eight registers take an immediate or another register."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    move_count: int = values("u8", 12, "registers that are set, 1 to 8")
    dtype: int = values("u8", 13, "dtype of the values", enum=DType)
    source_kind: int = values("u8", 14, "registers or immediates", enum=DataSource)
    reserved0: bytes = raw(15, 1, "zero")
    sources: tuple[int, ...] = values("u8", 16, "source registers", count=8)
    destinations: tuple[int, ...] = values("u8", 24, "destination registers", count=8)
    immediates: tuple[int, ...] = values("u32", 32, "immediate values", count=8)


@frozen(kw_only=True)
class AluWord:
    """CTRL_AL: dst = src0 op src1, src1 a register or an immediate."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    op: int = values("u8", 12, "operation", enum=AluOp)
    dtype: int = values("u8", 13, "dtype of the operands", enum=DType)
    src1_kind: int = values("u8", 14, "where src1 comes from", enum=DataSource)
    dst_dtype: int = values("u8", 15, "dtype of the result", enum=DType)
    src0_low: int = values("u8", 16, "register of src0, low half")
    src0_high: int = values("u8", 17, "register of src0, high half")
    src1_low: int = values("u8", 18, "register of src1, low half")
    src1_high: int = values("u8", 19, "register of src1, high half")
    dst_low: int = values("u8", 20, "register of the result, low half")
    dst_high: int = values("u8", 21, "register of the result, high half")
    reserved0: bytes = raw(22, 2, "zero")
    immediate: int = values("u64", 24, "src1 as an immediate")
    reserved1: bytes = raw(32, 32, "zero")


@frozen(kw_only=True)
class BranchWord:
    """CTRL_BR: goes on elsewhere when a comparison holds."""

    header: Header = struct(0, Header, "header")
    events: Events = struct(4, Events, "semaphores and events")
    op: int = values("u8", 12, "comparison", enum=CompareOp)
    dtype: int = values("u8", 13, "dtype of the comparison", enum=DType)
    target_mode: int = values("u8", 14, "what tells the target", enum=BranchTarget)
    reserved0: bytes = raw(15, 1, "zero")
    compare_immediate: int = values("u32", 16, "right side of the immediate comparisons")
    reserved1: bytes = raw(20, 12, "zero")
    compare0: int = values("u8", 32, "register on the left side")
    compare1: int = values("u8", 33, "register on the right side")
    target_low: int = values("u8", 34, "register of the target, low half")
    target_high: int = values("u8", 35, "register of the target, high half")
    reserved2: bytes = raw(36, 12, "zero")
    branch_immediate: int = values("i64", 48, "signed distance in bytes [unknown: chosen]")
    reserved3: bytes = raw(56, 8, "zero")


# --- text -------------------------------------------------------------------------------------

_REGISTER = re.compile(r"\$R\[(\d+)\]")
_DTYPE_NAMES = {dtype.word: dtype for dtype in DType if dtype is not DType.INVALID}


def _dtype_text(code: int) -> str:
    """Return the word of a dtype, of the 64-bit ones too, which only registers have."""
    dtype = member(DType, code)
    if dtype is None or dtype is DType.INVALID:
        raise Inexpressible(f"dtype {code:#04x} has no word")
    return dtype.word


def _take_dtype(operands: Operands, key: str, default: str | None = None) -> int:
    text = operands.take(key, "uint32") if default is None else operands.pairs.pop(key, default)
    if text in _DTYPE_NAMES:
        return _DTYPE_NAMES[text]
    raise InputError(f"{key} must be one of {', '.join(_DTYPE_NAMES)}, not {text!r}")


def _register(text: str, what: str) -> int:
    match = _REGISTER.fullmatch(text)
    if match is None:
        raise InputError(f"{what} must be a register like $R[5], not {text!r}")
    return parse_integer(match[1], f"{what} register", 0, 255)


def _pair_text(low: int, high: int, is_wide: bool) -> str:
    texts = [register_text(low)]
    return ",".join([*texts, register_text(high)] if is_wide or high else texts)


def _pair(text: str, what: str) -> tuple[int, int]:
    items = text.split(",")
    if len(items) > 2:
        raise InputError(f"{what} must be one or two registers, not {text!r}")
    low, *rest = (_register(item, what) for item in items)
    return low, rest[0] if rest else 0


def _refuse_reserved(*fields: bytes) -> None:
    if any(b"".join(fields)):
        raise Inexpressible("a reserved byte is not zero")


def _move_to_text(word: MoveWord) -> list[str]:
    _refuse_reserved(word.reserved0)
    if not 1 <= word.move_count <= MOST_MOVES:
        raise Inexpressible(f"move_count {word.move_count}")
    targets = word.destinations[: word.move_count]
    if len(set(targets)) < len(targets):
        raise Inexpressible("a register is set twice")
    if word.source_kind == DataSource.IMMEDIATE:
        taken = [f"{value:#x}" for value in word.immediates]
    elif word.source_kind == DataSource.REGISTER:
        taken = [register_text(number) for number in word.sources]
    else:
        raise Inexpressible(f"source kind {word.source_kind} has no form")
    pairs = zip(targets, taken, strict=False)
    return [
        f"dtype={_dtype_text(word.dtype)}",
        *(f"{register_text(target)}={value}" for target, value in pairs),
    ]


def _move_from_text(opcode: int, operands: Operands) -> MoveWord:
    dtype = _take_dtype(operands, "dtype")
    moves = [(key, operands.pairs.pop(key)) for key in list(operands.pairs) if key[0:1] == "$"]
    if not 1 <= len(moves) <= MOST_MOVES:
        raise InputError(
            f"MOVE must set 1 to {MOST_MOVES} registers ($R[61]=0x5), not {len(moves)}"
        )
    kinds = {_REGISTER.fullmatch(value) is not None for _, value in moves}
    if len(kinds) > 1:
        raise InputError("MOVE must take registers or immediates, not both")
    sources, immediates = [0] * MOST_MOVES, [0] * MOST_MOVES
    targets = [0] * MOST_MOVES
    is_register = kinds.pop()
    for number, (key, value) in enumerate(moves):
        targets[number] = _register(key, "destination")
        if is_register:
            sources[number] = _register(value, "source")
        else:
            immediates[number] = parse_integer(value, key, -(1 << 31), 0xFFFFFFFF) & 0xFFFFFFFF
    return MoveWord(
        header=header_of(opcode),
        events=operands.take_events(),
        move_count=len(moves),
        dtype=dtype,
        source_kind=DataSource.REGISTER if is_register else DataSource.IMMEDIATE,
        reserved0=bytes(1),
        sources=tuple(sources),
        destinations=tuple(targets),
        immediates=tuple(immediates),
    )


def _alu_to_text(word: AluWord) -> list[str]:
    _refuse_reserved(word.reserved0, word.reserved1)
    is_wide = word.dtype in WIDE_DTYPES
    if word.src1_kind == DataSource.IMMEDIATE:
        src1 = f"{word.immediate:#x}"
    elif word.src1_kind == DataSource.REGISTER:
        src1 = _pair_text(word.src1_low, word.src1_high, is_wide)
    else:
        raise Inexpressible(f"source kind {word.src1_kind} has no form")
    tokens = [
        f"op={alu_op_text(word.op)}",
        f"dtype={_dtype_text(word.dtype)}",
        f"src0={_pair_text(word.src0_low, word.src0_high, is_wide)}",
        f"src1={src1}",
        f"dst={_pair_text(word.dst_low, word.dst_high, word.dst_dtype in WIDE_DTYPES)}",
    ]
    if word.dst_dtype != word.dtype:
        tokens.append(f"dst_dtype={_dtype_text(word.dst_dtype)}")
    return tokens


def _alu_from_text(opcode: int, operands: Operands) -> AluWord:
    dtype = _take_dtype(operands, "dtype")
    dst_dtype = _take_dtype(operands, "dst_dtype", DType(dtype).word)
    (op,) = operands.alu_ops("op", 1)
    src0 = _pair(operands.take("src0", "$R[1]"), "src0")
    text = operands.take("src1", "$R[2]")
    dst = _pair(operands.take("dst", "$R[3]"), "dst")
    is_register = text.startswith("$")
    src1 = _pair(text, "src1") if is_register else (0, 0)
    limit = 1 << (64 if dtype in WIDE_DTYPES else 32)
    immediate = 0 if is_register else parse_integer(text, "src1", -(limit >> 1), (1 << 64) - 1)
    return AluWord(
        header=header_of(opcode),
        events=operands.take_events(),
        op=op,
        dtype=dtype,
        src1_kind=DataSource.REGISTER if is_register else DataSource.IMMEDIATE,
        dst_dtype=dst_dtype,
        src0_low=src0[0],
        src0_high=src0[1],
        src1_low=src1[0],
        src1_high=src1[1],
        dst_low=dst[0],
        dst_high=dst[1],
        reserved0=bytes(2),
        immediate=immediate % limit if immediate < 0 else immediate,
        reserved1=bytes(32),
    )


def _branch_to_text(word: BranchWord) -> list[str]:
    _refuse_reserved(word.reserved0, word.reserved1, word.reserved2, word.reserved3)
    tokens = [f"op={enum_text(CompareOp, word.op)}"]
    if word.op != CompareOp.ALWAYS:
        by_register = word.op >= CompareOp.LT_REG
        src1 = register_text(word.compare1) if by_register else f"{word.compare_immediate:#x}"
        tokens += [
            f"dtype={_dtype_text(word.dtype)}",
            f"src0={register_text(word.compare0)}",
            f"src1={src1}",
        ]
    elif word.dtype:
        tokens.append(f"dtype={_dtype_text(word.dtype)}")
    mode = enum_text(BranchTarget, word.target_mode)
    if word.target_mode == BranchTarget.REL_IMM:
        return [*tokens, f"target={word.branch_immediate:+d}"]
    sign = "+" if mode == "REL_REGISTER" else ""
    return [*tokens, f"target={sign}{_pair_text(word.target_low, word.target_high, True)}"]


def _branch_from_text(opcode: int, operands: Operands) -> BranchWord:
    op = operands.name("op", CompareOp, CompareOp.ALWAYS)
    compare0 = compare1 = immediate = dtype = 0
    if op != CompareOp.ALWAYS:
        dtype = _take_dtype(operands, "dtype")
        compare0 = _register(operands.take("src0", "$R[1]"), "src0")
        src1 = operands.take("src1", "0x10")
        if op >= CompareOp.LT_REG:
            compare1 = _register(src1, "src1")
        else:
            immediate = parse_integer(src1, "src1", -(1 << 31), 0xFFFFFFFF) & 0xFFFFFFFF
    elif "dtype" in operands.pairs:
        dtype = _take_dtype(operands, "dtype")
    mode, registers, distance = _target(operands.take("target", "-128"))
    return BranchWord(
        header=header_of(opcode),
        events=operands.take_events(),
        op=op,
        dtype=dtype,
        target_mode=mode,
        reserved0=bytes(1),
        compare_immediate=immediate,
        reserved1=bytes(12),
        compare0=compare0,
        compare1=compare1,
        target_low=registers[0],
        target_high=registers[1],
        reserved2=bytes(12),
        branch_immediate=distance,
        reserved3=bytes(8),
    )


def _target(text: str) -> tuple[int, tuple[int, int], int]:
    """Read a distance in bytes, `$R[low],$R[high]`, or `+$R[low],$R[high]` as a distance."""
    if text.startswith("$"):
        return BranchTarget.REGISTER, _pair(text, "target"), 0
    if text.startswith("+$"):
        return BranchTarget.REL_REGISTER, _pair(text[1:], "target"), 0
    distance = parse_integer(text.removeprefix("+"), "target", -(1 << 63), (1 << 63) - 1)
    return BranchTarget.REL_IMM, (0, 0), distance


FAMILIES = (
    Family(
        name="CTRL_MV",
        record=MoveWord,
        opcodes=(MOVE,),
        to_text=_move_to_text,
        from_text=_move_from_text,
    ),
    Family(
        name="CTRL_AL",
        record=AluWord,
        opcodes=(ALU_OP,),
        to_text=_alu_to_text,
        from_text=_alu_from_text,
    ),
    Family(
        name="CTRL_BR",
        record=BranchWord,
        opcodes=(COMPARE_BRANCH,),
        to_text=_branch_to_text,
        from_text=_branch_from_text,
    ),
)
