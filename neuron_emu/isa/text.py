"""The profiler notation of operand-text.md 1: pieces of text to fields and back.

Formatting raises `Inexpressible` for what the notation cannot say; the disassembler then writes a
`.word` line. Parsing raises InputError with what was expected.
"""

from __future__ import annotations

import re
import struct
from enum import IntEnum
from typing import Any, NoReturn

from attrs import define, field, frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import (
    DTYPE_WORDS,
    AddressMarker,
    AluOp,
    ImmediateSource,
    UpdateMode,
    WaitMode,
    member,
)
from neuron_emu.isa.records import (
    Address,
    Events,
    Immediate,
    IndirectPattern,
    Pattern,
    Tensor1D,
)

__all__ = [
    "DTYPE_CODES",
    "Inexpressible",
    "Operands",
    "alu_op_text",
    "events_text",
    "float_text",
    "immediate_text",
    "parse_integer",
    "pattern_text",
    "register_text",
]

DTYPE_CODES: dict[str, int] = {word: code for code, word in DTYPE_WORDS.items()} | {
    "bfloat16": 0x06
}
"""Dtype words that are read; older traces spell bf16 `bfloat16`."""

_ALU_WORDS = {AluOp.MULT: "MULTIPLY"}
"""The one ALU operation that the public samples spell otherwise than isa-encoding.md 7.3."""


class Inexpressible(Exception):  # noqa: N818 - a verdict about a word, not an error
    """The notation cannot say a field of this word; the text tells which."""


def _refuse(reason: str) -> NoReturn:
    raise Inexpressible(reason)


# --- fields to text ---------------------------------------------------------------------------


def dtype_text(code: int) -> str:
    """Return the dtype word of a wire code."""
    return DTYPE_WORDS.get(code) or _refuse(f"dtype {code:#04x} has no word")


def register_text(number: int) -> str:
    """Return `$R[n]`."""
    return f"$R[{number}]"


def alu_op_text(code: int) -> str:
    """Return the name of an ALU operation."""
    op = member(AluOp, code)
    if op is None:
        _refuse(f"ALU operation {code:#04x} has no name")
    return _ALU_WORDS.get(op, op.name)


def enum_text(enum: type[IntEnum], code: int) -> str:
    """Return the name of an enum value."""
    value = member(enum, code)
    return value.name if value is not None else _refuse(f"{enum.__name__} {code} has no name")


def float_text(word: int) -> str:
    """Return the text of float32 bits: six decimals, more digits if needed, a NaN as its bits."""
    value = struct.unpack("<f", word.to_bytes(4, "little"))[0]
    if value != value:
        return f"{word:#010x}"
    for text in (f"{value:.6f}", *(f"{value:.{digits}g}" for digits in (7, 8, 9))):
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            return text
    return f"{word:#010x}"


def _address_text(address: Address) -> str:
    """Return the text of an address of marker IMM or ADDR_REG."""
    if address.kind in (AddressMarker.IMM, AddressMarker.INDIRECT_IMM):
        return f"{address.partition_offset:#x}"
    if address.kind in (AddressMarker.ADDR_REG, AddressMarker.INDIRECT_REG):
        if address.partition_offset >> 8:
            _refuse("a register address has nonzero reserved bits")
        return register_text(address.register)
    return _refuse("a shape from registers, or a marker that is not legal")


def pattern_text(pattern: Pattern, dtype: int) -> str:
    """Return `dtype@address[steps][sizes]`, innermost first, or the indirect form.

    The indirect form is ours: `dtype@data[index@address][elements]`.
    """
    word = dtype_text(dtype)
    if isinstance(pattern, IndirectPattern):
        if pattern.data.marker or pattern.reserved or any(getattr(pattern, "padding", b"")):
            _refuse("an indirect pattern has nonzero reserved bits")
        index = _address_text(pattern.index)
        return f"{word}@{_address_text(pattern.data)}[index@{index}][{pattern.num_elem}]"
    if pattern.start.is_indirect:
        _refuse("an indirect marker on a generation without indirect patterns")
    steps = ",".join(map(str, pattern.steps))
    counts = ",".join(map(str, pattern.counts))
    return f"{word}@{_address_text(pattern.start)}[{steps}][{counts}]"


def immediate_text(source: int, immediate: Immediate, pointee: str = "fp32") -> str:
    """Return the text of an fp32 immediate by its source: value, `[dtype@pointer]` or register."""
    if source == ImmediateSource.INSTRUCTION:
        return f"fp32@{float_text(immediate.word)}"
    if source == ImmediateSource.POINTER:
        return f"[{pointee}@{immediate.word:#x}]"
    if source == ImmediateSource.REG_PTR:
        if immediate.register_reserved:
            _refuse("a register immediate has nonzero reserved bytes")
        return register_text(immediate.register)
    return _refuse(f"immediate source {source} has no form")


_COMPARISONS = {"EQ": "==", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_EVENT_WAITS = {
    WaitMode.EVT_SET: "==1",
    WaitMode.EVT_SET_THEN_CLEAR: "==1,=0",
    WaitMode.EVT_CLEAR: "==0",
    WaitMode.EVT_CLEAR_THEN_SET: "==0,=1",
}
_ACTIONS = {"INC": "++", "DEC": "--", "ADD": "+=", "SUB": "-=", "WR": "="}


def _wait_forms() -> dict[WaitMode, tuple[str, str, str]]:
    """Return mode -> (letter, operator, operand kind '', 'IMM' or 'REG')."""
    forms = {mode: ("E", text, "") for mode, text in _EVENT_WAITS.items()}
    for mode in WaitMode:
        if mode.name.startswith("SEM_"):
            _, comparison, kind = mode.name.split("_")
            forms[mode] = ("S", _COMPARISONS[comparison], kind)
    return forms


def _update_forms() -> dict[UpdateMode, tuple[str, str, str, str]]:
    """Return mode -> (letter, operator, operand kind, moment)."""
    forms = {}
    for mode in UpdateMode:
        kind, *rest = mode.name.split("_")
        moment = rest[-1].lower() if rest else ""
        if kind == "EVT":
            forms[mode] = ("E", "=1" if rest[0] == "SET" else "=0", "", moment)
        elif kind == "SEM":
            forms[mode] = ("S", _ACTIONS[rest[0]], rest[1] if len(rest) == 3 else "", moment)
    return forms


_WAIT_FORMS = _wait_forms()
_UPDATE_FORMS = _update_forms()


def _event_operand(kind: str, value: int) -> str:
    return {"": "", "IMM": str(value), "REG": register_text(value)}[kind]


def events_text(events: Events) -> list[str]:
    """Return the wait and update tokens, in that order."""
    tokens: list[str] = []
    used = False
    if events.wait_mode != WaitMode.NONE:
        letter, operator, kind = _WAIT_FORMS.get(events.wait_mode) or _refuse(  # type: ignore[call-overload]
            f"wait mode {events.wait_mode:#04x} has no form"
        )
        operand = _event_operand(kind, events.semaphore_value)
        tokens.append(f"{letter}[{events.wait_idx}]{operator}{operand}")
        used = bool(kind)
    elif events.wait_idx:
        _refuse("a wait index without a wait")
    if events.update_mode != UpdateMode.NONE:
        letter, operator, kind, moment = _UPDATE_FORMS.get(events.update_mode) or _refuse(  # type: ignore[call-overload]
            f"update mode {events.update_mode:#04x} has no form"
        )
        operand = _event_operand(kind, events.semaphore_value)
        tokens.append(f"{letter}[{events.update_idx}]{operator}{operand}@{moment}")
        used = used or bool(kind)
    elif events.update_idx:
        _refuse("an update index without an update")
    if events.semaphore_value and not used:
        _refuse("a semaphore value that no mode uses")
    return tokens


# --- text to fields ---------------------------------------------------------------------------

_EVENT_TOKEN = re.compile(r"\$?([SE])\[(\d+)\]((?:==|<=|>=|<|>|\+\+|--|\+=|-=|=).*)")
_REGISTER = re.compile(r"\$R\[(\d+)\]")
_ADDRESS = r"(0[xX][0-9a-fA-F]+|\d+|\$R\[\d+\])"
_TENSOR = re.compile(rf"(\w+)@{_ADDRESS}\[([-\d,]+)\]\[([\d,]+)\]")
_INDIRECT = re.compile(rf"(\w+)@{_ADDRESS}\[index@{_ADDRESS}\]\[(\d+)\]")
_POINTER = re.compile(r"\[(?:(\w+)@)?(0[xX][0-9a-fA-F]+|\d+)\]")


def parse_integer(text: str, what: str, low: int, high: int) -> int:
    """Read a decimal or 0x number in [low, high]; InputError names `what` otherwise."""
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]{1,20}|[0-9]{1,20})", text):
        value = int(text, 16 if "x" in text.lower() else 10)
        if low <= value <= high:
            return value
    raise InputError(f"{what} must be a number from {low} to {high}, not {text!r}")


def _parse_register(text: str, what: str, last: int = 255) -> int | None:
    match = _REGISTER.fullmatch(text)
    return parse_integer(match[1], f"{what} register", 0, last) if match else None


def _parse_address(text: str, marker: AddressMarker, register_marker: AddressMarker) -> Address:
    register = _parse_register(text, "address")
    if register is not None:
        return Address(partition_offset=register, marker=register_marker >> 5)
    local = parse_integer(text, "address", 0, 0x1FFFFFFF)
    return Address(partition_offset=local, marker=marker >> 5)


def _parse_dtype(text: str) -> int:
    if text in DTYPE_CODES:
        return DTYPE_CODES[text]
    raise InputError(f"dtype must be one of {', '.join(DTYPE_CODES)}, not {text!r}")


def _parse_numbers(text: str, what: str, count: int, low: int, high: int) -> tuple[int, ...]:
    items = text.split(",")
    if len(items) > count:
        raise InputError(f"{what} must be at most {count} numbers, not {len(items)}")
    read = [parse_integer(item, what, low, high) for item in items]
    return tuple(read + [1] * (count - len(read)))


def parse_float(text: str, what: str) -> int:
    """Read a float32 as bits: a decimal, inf, nan, or its bits as 0x and eight digits."""
    if text.lower().startswith("0x"):
        return parse_integer(text, what, 0, 0xFFFFFFFF)
    if re.fullmatch(r"[-+]?(\d+\.?\d*([eE][-+]?\d{1,4})?|\.\d+([eE][-+]?\d{1,4})?|inf|nan)", text):
        try:
            return int.from_bytes(struct.pack("<f", float(text)), "little")
        except OverflowError:
            pass
    raise InputError(f"{what} must be a float32, not {text!r}")


@frozen
class ParsedEvent:
    """One wait or update token: which field it sets and the operand it needs, if any."""

    is_wait: bool
    mode: int
    index: int
    value: int | None


def parse_event(token: str) -> ParsedEvent | None:
    """Read a semaphore or event token; None when the token is something else."""
    match = _EVENT_TOKEN.fullmatch(token)
    if match is None:
        return None
    letter, index_text, rest = match.groups()
    index = parse_integer(index_text, "semaphore", 0, 255)
    body, at, moment = rest.partition("@")
    operator = re.match(r"==[01],=[01]|==|<=|>=|<|>|\+\+|--|\+=|-=|=", body)
    text = body[operator.end() :] if operator else ""
    symbol = operator[0] if operator else ""
    if letter == "E":
        symbol, text = body, ""
    kind = "REG" if _REGISTER.fullmatch(text) else "IMM" if text else ""
    found = _find_event_mode(letter, symbol, kind, moment if at else None)
    if found is None:
        raise InputError(
            "semaphore must be like S[4]>=292, S[4]++@complete, E[4]==1 or E[4]=1@read,"
            f" not {token!r}"
        )
    value = None
    if kind == "REG":
        value = _parse_register(text, "semaphore", 0xFFFFFFFF)
    elif kind == "IMM":
        value = parse_integer(text, "semaphore value", 0, 0xFFFFFFFF)
    return ParsedEvent(at == "", found, index, value)


def _find_event_mode(letter: str, symbol: str, kind: str, moment: str | None) -> int | None:
    if moment is None:
        wait = (letter, symbol, kind)
        return next((mode for mode, form in _WAIT_FORMS.items() if form == wait), None)
    update = (letter, symbol, kind, moment)
    return next((mode for mode, form in _UPDATE_FORMS.items() if form == update), None)


@define
class Operands:
    """The operands of one line; each is taken once, and `finish` refuses what is left.

    `pairs` are the `key=value` tokens, `words` the bare ones, `events` the semaphore tokens.
    """

    pairs: dict[str, str] = field(factory=dict)
    words: list[str] = field(factory=list)
    events: list[ParsedEvent] = field(factory=list)

    @classmethod
    def read(cls, tokens: list[str]) -> Operands:
        """Sort the tokens of a line; InputError on a repeated key."""
        operands = cls()
        for token in tokens:
            event = parse_event(token)
            key, equals, value = token.partition("=")
            if event is not None:
                operands.events.append(event)
            elif equals:
                if key in operands.pairs:
                    raise InputError(f"{key} must be given once")
                operands.pairs[key] = value
            else:
                operands.words.append(token)
        return operands

    def take(self, key: str, example: str) -> str:
        """Take the value of a key that must be there."""
        if key not in self.pairs:
            raise InputError(f"{key}={example} is missing")
        return self.pairs.pop(key)

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Take a number; without a default the key must be there."""
        if key not in self.pairs and default is not None:
            return default
        return parse_integer(self.take(key, str(low)), key, low, high)

    def name(self, key: str, enum: type[IntEnum], default: IntEnum) -> int:
        """Take an enum member by name."""
        text = self.pairs.pop(key, default.name)
        if text in enum.__members__:
            return enum[text].value
        raise InputError(f"{key} must be one of {', '.join(enum.__members__)}, not {text!r}")

    def pattern(
        self, key: str, tensor: type[Any], indirect: type[IndirectPattern] | None = None
    ) -> tuple[int, Any]:
        """Take a pattern; return its dtype code and the record."""
        text = self.take(key, "fp32@0x1000[1][8]")
        match = _INDIRECT.fullmatch(text) if indirect else None
        if match and indirect:
            padding = {"padding": bytes(size)} if (size := _padding_bytes(indirect)) else {}
            return _parse_dtype(match[1]), indirect(
                index=_parse_address(
                    match[3], AddressMarker.INDIRECT_IMM, AddressMarker.INDIRECT_REG
                ),
                data=_parse_address(match[2], AddressMarker.IMM, AddressMarker.IMM),
                num_elem=parse_integer(match[4], f"{key} elements", 0, 0xFFFF),
                reserved=0,
                **padding,
            )
        match = _TENSOR.fullmatch(text)
        if match is None:
            raise InputError(f"{key} must be like fp32@0x1000[1,1,1][8,1,1], not {text!r}")
        count = 1 if tensor is Tensor1D else int(tensor.__name__[-2])
        steps = _parse_numbers(match[3], f"{key} steps", count, -0x8000, 0x7FFF)
        sizes = _parse_numbers(match[4], f"{key} sizes", count, 0, 0xFFFF)
        start = _parse_address(match[2], AddressMarker.IMM, AddressMarker.ADDR_REG)
        if tensor is Tensor1D:
            return _parse_dtype(match[1]), Tensor1D(start=start, step=steps[0], num=sizes[0])
        return _parse_dtype(match[1]), tensor(start=start, step=steps, num=sizes)

    def immediate(self, key: str, default: str | None = None) -> tuple[int, Immediate]:
        """Take an fp32 immediate; return its source and the four bytes."""
        if default is not None and key not in self.pairs:
            self.pairs[key] = default
        text = self.take(key, "fp32@0.000000")
        register = _parse_register(text, key)
        if register is not None:
            return ImmediateSource.REG_PTR, Immediate(word=register)
        pointer = _POINTER.fullmatch(text)
        if pointer:
            return ImmediateSource.POINTER, Immediate(
                word=parse_integer(pointer[2], f"{key} pointer", 0, 0xFFFFFFFF)
            )
        bits = parse_float(text.removeprefix("fp32@"), key)
        return ImmediateSource.INSTRUCTION, Immediate(word=bits)

    def alu_ops(self, key: str, count: int) -> list[int]:
        """Take `count` ALU operations, BYPASS for those not given."""
        items = self.pairs.pop(key, "BYPASS").split(",")
        if len(items) > count:
            raise InputError(f"{key} must be at most {count} operations, not {len(items)}")
        codes = [_parse_alu_op(key, item) for item in items]
        return codes + [AluOp.BYPASS] * (count - len(codes))

    def take_events(self) -> Events:
        """Take the semaphore tokens as an EVENTS record."""
        fields = {"wait_mode": 0, "wait_idx": 0, "update_mode": 0, "update_idx": 0}
        values: set[int] = set()
        for event in self.events:
            side = "wait" if event.is_wait else "update"
            if fields[f"{side}_mode"]:
                raise InputError(f"a word must have at most one {side}")
            fields[f"{side}_mode"], fields[f"{side}_idx"] = event.mode, event.index
            if event.value is not None:
                values.add(event.value)
        if len(values) > 1:
            raise InputError("wait and update must use the same semaphore value: they share it")
        return Events(**fields, semaphore_value=values.pop() if values else 0)

    def finish(self) -> None:
        """Refuse operands that nobody took."""
        left = [*self.words, *(f"{key}=" for key in self.pairs)]
        if left:
            raise InputError(f"operand {left[0]!r} must not stand here")


def _padding_bytes(indirect: type[IndirectPattern]) -> int:
    return int(indirect.__name__.removeprefix("Indirect").removesuffix("B")) - 12


def _parse_alu_op(key: str, text: str) -> int:
    names = {word: op for op, word in _ALU_WORDS.items()}
    if text in names:
        return names[text]
    if text in AluOp.__members__:
        return AluOp[text]
    raise InputError(f"{key} must name ALU operations such as ADD or MULTIPLY, not {text!r}")
