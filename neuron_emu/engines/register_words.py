"""MOVE, ALU_OP and COMPARE_BRANCH: integer work on the sequencer's registers.

Source: isa-encoding.md 7.1 and 9. Registers are 32 bits wide; 64-bit dtypes take a pair, the low
half first [inferred from the lo/hi fields]. Arithmetic wraps, shifts by the width and more give 0
or the sign, division truncates (dve-tensor-scalar.md 5.1, 5.2). Registers 128 and 129 read the
program counter: the byte offset in the stream (policy `program_counter`).
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import Any

from attrs import define

from neuron_emu.engines.core import Effects, EngineState, Operands, Problem
from neuron_emu.isa.enums import AluOp, DType
from neuron_emu.isa.families.register_words import (
    WIDE_DTYPES,
    AluWord,
    BranchTarget,
    BranchWord,
    CompareOp,
    DataSource,
    MoveWord,
)
from neuron_emu.isa.records import WORD_BYTES

__all__ = ["prepare_alu", "prepare_branch", "prepare_move"]

_WORD_MASK = 0xFFFFFFFF
_COUNTER_LOW, _COUNTER_HIGH = 128, 129
_WORD_DTYPES = frozenset((DType.UINT32, DType.INT32))
_SIGNED = frozenset((DType.INT32, DType.INT64))


@define(eq=False)
class _PreparedWord:
    """A word that reads registers when it executes."""

    word: Any
    state: EngineState
    compute: Callable[[Any, EngineState], Effects | Problem]
    uses_accumulator: int = 0
    registers: tuple[int, ...] = ()
    is_reusable: bool = True

    def unwritten_reads(self) -> list[int]:
        """Return nothing: no memory is read."""
        return []

    def operands(self) -> Operands:
        """Return nothing: no memory is read or written."""
        return Operands()

    def execute(self) -> Effects | Problem:
        """Compute the effects of one execution."""
        return self.compute(self.word, self.state)

    def stations(self, effects: Effects) -> list[tuple[str, dict[str, Any]]]:
        """Return the registers that change and where the stream goes on."""
        detail: dict[str, Any] = {f"R[{n}]": f"{v:#x}" for n, v in effects.registers}
        if effects.target is not None:
            detail["target"] = effects.target
        return [("control", detail)]


# --- registers --------------------------------------------------------------------------------


def _read(number: int, state: EngineState, pending: dict[int, int] | None = None) -> int:
    if number == _COUNTER_LOW:
        return state.program_counter & _WORD_MASK
    if number == _COUNTER_HIGH:
        return state.program_counter >> 32
    if pending and number in pending:
        return pending[number]
    return state.registers[number]


def _read_pair(low: int, high: int, state: EngineState, is_wide: bool) -> int:
    value = _read(low, state)
    return value | _read(high, state) << 32 if is_wide else value


def _bad_register(
    state: EngineState, sources: tuple[int, ...], destinations: tuple[int, ...] = ()
) -> Problem | None:
    """Return the problem of the first register that cannot be read or set."""
    last = len(state.registers) - 1
    for number in sources:
        if number > last and number not in (_COUNTER_LOW, _COUNTER_HIGH):
            message = f"source register must be 0 to {last}, 128 or 129, not {number}"
            return Problem("register", message)
    for number in destinations:
        if number > last:
            return Problem("register", f"destination register must be 0 to {last}, not {number}")
    return None


def _bad_dtype(code: int, accepted: frozenset[DType], what: str) -> Problem | None:
    if code in accepted:
        return None
    words = " ".join(sorted(dtype.word for dtype in accepted))
    name = DType(code).word if code in DType._value2member_map_ else f"{code:#04x}"
    return Problem(
        "no_model",
        f"{what} of {name} is not executed: how registers hold it is not published ({words} are)",
    )


def _as_integer(value: int, code: int) -> int:
    """Read a register value as the integer that a dtype makes of it."""
    width = 64 if code in WIDE_DTYPES else 32
    value &= (1 << width) - 1
    return value - (1 << width) if code in _SIGNED and value >> (width - 1) else value


# --- MOVE -------------------------------------------------------------------------------------


def prepare_move(word: MoveWord, state: EngineState) -> _PreparedWord | Problem:
    """Make MOVE ready: 4-byte values go to registers as bits."""
    count = word.move_count
    if not 1 <= count <= len(word.destinations):
        return Problem("register", f"move_count must be 1 to 8, not {count}")
    if word.source_kind not in (DataSource.REGISTER, DataSource.IMMEDIATE):
        return Problem("no_model", f"source kind {word.source_kind} is not published")
    sources = word.sources[:count] if word.source_kind == DataSource.REGISTER else ()
    return (
        _bad_dtype(word.dtype, _WORD_DTYPES | {DType.FP32}, "MOVE")
        or _bad_register(state, sources, word.destinations[:count])
        or _PreparedWord(word, state, _move)
    )


def _move(word: MoveWord, state: EngineState) -> Effects:
    """Set each destination; policy `move_order` says whether a later pair sees an earlier one."""
    pending: dict[int, int] = {}
    visible = pending if state.policy.move_order == "sequential" else None
    for number in range(word.move_count):
        if word.source_kind == DataSource.IMMEDIATE:
            value = word.immediates[number]
        else:
            value = _read(word.sources[number], state, visible)
        pending[word.destinations[number]] = value
    return Effects(registers=tuple(pending.items()))


# --- ALU_OP -----------------------------------------------------------------------------------


def _quotient(a: int, b: int) -> int:
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


def _remainder(a: int, b: int) -> int:
    """Return the C remainder: it has the sign of the dividend."""
    size = abs(a) % abs(b)
    return -size if a < 0 else size


def _larger_magnitude(a: int, b: int) -> int:
    return a if abs(a) > abs(b) else b


def _smaller_magnitude(a: int, b: int) -> int:
    return a if abs(a) < abs(b) else b


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "BYPASS": lambda a, b: a,
    "BITWISE_NOT": lambda a, b: ~a,
    "ADD": operator.add,
    "SUBTRACT": operator.sub,
    "MULT": operator.mul,
    "DIVIDE": _quotient,
    "MOD": _remainder,
    "MAX": max,
    "MIN": min,
    "BITWISE_AND": operator.and_,
    "BITWISE_OR": operator.or_,
    "BITWISE_XOR": operator.xor,
    "LOGICAL_AND": lambda a, b: int(a != 0 and b != 0),
    "LOGICAL_OR": lambda a, b: int(a != 0 or b != 0),
    "LOGICAL_XOR": lambda a, b: int((a != 0) != (b != 0)),
    "IS_EQUAL": operator.eq,
    "IS_NE": operator.ne,
    "IS_GT": operator.gt,
    "IS_GE": operator.ge,
    "IS_LE": operator.le,
    "IS_LT": operator.lt,
    "ABS_DIFF": lambda a, b: abs(a - b),
    "ABS_VALUE": lambda a, b: abs(a),
    "ABS_MAX": _larger_magnitude,
    "ABS_MIN": _smaller_magnitude,
    "RELU": lambda a, b: max(a, 0),
    "SQUARE": lambda a, b: a * a,
}
_SHIFTS = {
    AluOp.ARITH_SHIFT_LEFT: operator.lshift,
    AluOp.LOGICAL_SHIFT_LEFT: operator.lshift,
    AluOp.ARITH_SHIFT_RIGHT: operator.rshift,
    AluOp.LOGICAL_SHIFT_RIGHT: operator.rshift,
}


def _operation(op: int) -> tuple[Callable[[int, int], int], bool | None] | None:
    """Return an operation and the signedness that its name forces, None when none is modelled."""
    if op not in AluOp._value2member_map_:
        return None
    name = AluOp(op).name
    base, _, kind = name.rpartition("_")
    if kind in ("INT", "UINT") and base in _OPERATIONS:
        return _OPERATIONS[base], kind == "INT"
    return (_OPERATIONS[name], None) if name in _OPERATIONS else None


def prepare_alu(word: AluWord, state: EngineState) -> _PreparedWord | Problem:
    """Make ALU_OP ready: 32- and 64-bit integers, of which the result has the same width."""
    if word.src1_kind not in (DataSource.REGISTER, DataSource.IMMEDIATE):
        return Problem("no_model", f"source kind {word.src1_kind} is not published")
    if _operation(word.op) is None and word.op not in _SHIFTS:
        name = AluOp(word.op).name if word.op in AluOp._value2member_map_ else f"{word.op:#04x}"
        return Problem("no_model", f"ALU_OP {name} on registers is not published")
    is_wide = word.dtype in WIDE_DTYPES
    if is_wide != (word.dst_dtype in WIDE_DTYPES):
        return Problem("no_model", "ALU_OP between 32 and 64 bits is not published")
    sources: tuple[int, ...] = (word.src0_low, word.src0_high)[: 1 + is_wide]
    if word.src1_kind == DataSource.REGISTER:
        sources += (word.src1_low, word.src1_high)[: 1 + is_wide]
    accepted = _WORD_DTYPES | WIDE_DTYPES
    return (
        _bad_dtype(word.dtype, accepted, "ALU_OP")
        or _bad_dtype(word.dst_dtype, accepted, "ALU_OP")
        or _bad_register(state, sources, (word.dst_low, word.dst_high)[: 1 + is_wide])
        or _PreparedWord(word, state, _alu)
    )


def _alu(word: AluWord, state: EngineState) -> Effects | Problem:
    is_wide = word.dtype in WIDE_DTYPES
    a = _read_pair(word.src0_low, word.src0_high, state, is_wide)
    b = word.immediate
    if word.src1_kind == DataSource.REGISTER:
        b = _read_pair(word.src1_low, word.src1_high, state, is_wide)
    result = _result(word, a, b, state)
    if isinstance(result, Problem):
        return result
    changes = [(word.dst_low, result & _WORD_MASK)]
    if is_wide:
        changes.append((word.dst_high, result >> 32 & _WORD_MASK))
    return Effects(registers=tuple(changes))


def _result(word: AluWord, a: int, b: int, state: EngineState) -> int | Problem:
    signed, unsigned = (
        (DType.INT64, DType.UINT64) if word.dtype in WIDE_DTYPES else (DType.INT32, DType.UINT32)
    )
    if word.op in _SHIFTS:
        return _shifted(word, a, b, state, signed, unsigned)
    found = _operation(word.op)
    if found is None:
        return Problem("no_model", "ALU_OP of this operation on registers is not published")
    operation, is_signed = found
    dtype = word.dtype if is_signed is None else signed if is_signed else unsigned
    left, right = _as_integer(a, dtype), _as_integer(b, dtype)
    if operation in (_quotient, _remainder) and right == 0:
        return Problem("divide", "integer divide by zero")
    return int(operation(left, right))


def _shifted(word: AluWord, a: int, b: int, state: EngineState, signed: int, unsigned: int) -> int:
    """Shift by an unsigned count; policy `shift_count_wide` cuts it to five bits."""
    width = 64 if word.dtype in WIDE_DTYPES else 32
    count = _as_integer(b, unsigned)
    count = count & 31 if state.policy.shift_count_wide == "mask5" else min(count, width)
    is_arithmetic = word.op == AluOp.ARITH_SHIFT_RIGHT
    return int(
        _SHIFTS[AluOp(word.op)](_as_integer(a, signed if is_arithmetic else unsigned), count)
    )


# --- COMPARE_BRANCH ---------------------------------------------------------------------------

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "EQ": operator.eq,
    "NE": operator.ne,
    "GE": operator.ge,
    "GT": operator.gt,
}


def prepare_branch(word: BranchWord, state: EngineState) -> _PreparedWord | Problem:
    """Make COMPARE_BRANCH ready: a comparison of 32-bit values, and where it leads."""
    if word.op not in CompareOp._value2member_map_:
        return Problem("no_model", f"comparison {word.op} is not published")
    if word.target_mode not in BranchTarget._value2member_map_:
        return Problem("no_model", f"target mode {word.target_mode} is not published")
    sources: tuple[int, ...] = ()
    problem = None
    if word.op != CompareOp.ALWAYS:
        sources = (word.compare0, word.compare1)[: 1 + (word.op >= CompareOp.LT_REG)]
        accepted = _WORD_DTYPES | {DType.FP32}
        problem = _bad_dtype(word.dtype, accepted, "COMPARE_BRANCH")
    if word.target_mode != BranchTarget.REL_IMM:
        sources += (word.target_low, word.target_high)
    return problem or _bad_register(state, sources) or _PreparedWord(word, state, _branch)


def _branch(word: BranchWord, state: EngineState) -> Effects | Problem:
    if not _holds(word, state):
        return Effects()
    address = _target_address(word, state)
    index, rest = divmod(address, WORD_BYTES)
    if rest:
        return Problem("branch", f"branch target must be a multiple of 64, not {address:#x}")
    if not 0 <= index < state.num_words:
        last = (state.num_words - 1) * WORD_BYTES
        return Problem("branch", f"branch target must be 0x0 to {last:#x}, not {address:#x}")
    return Effects(target=index)


def _holds(word: BranchWord, state: EngineState) -> bool:
    if word.op == CompareOp.ALWAYS:
        return True
    is_register = word.op >= CompareOp.LT_REG
    left = _read(word.compare0, state)
    right = _read(word.compare1, state) if is_register else word.compare_immediate
    compare = _COMPARE[CompareOp(word.op).name.partition("_")[0]]
    return compare(_as_value(left, word.dtype), _as_value(right, word.dtype))


def _as_value(bits: int, dtype: int) -> float | int:
    if dtype == DType.FP32:
        value: float = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
        return value
    return _as_integer(bits, dtype)


def _target_address(word: BranchWord, state: EngineState) -> int:
    """Return the byte offset in the stream: absolute by register, else from the counter."""
    if word.target_mode == BranchTarget.REL_IMM:
        return state.program_counter + word.branch_immediate
    value = _read_pair(word.target_low, word.target_high, state, True)
    if word.target_mode == BranchTarget.REGISTER:
        return value
    return state.program_counter + _as_integer(value, DType.INT64)
