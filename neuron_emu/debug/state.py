"""The names of the expression language: what they mean on a machine at one moment.

| name | value |
|---|---|
| `step` | words executed since the start |
| `engine`, `index`, `opcode`, `undefined` | of the word that is next; `undefined` has no value |
| any field, `src.num[0]`, `imm0.word` | of that word, by the paths of `explain` |
| `R[5]`, `acc[3]`, `acc_undefined[3]` | register, accumulator lane and its flag of that engine |
| `S[4]`, `E[4]` | semaphore and event |
| `act.R[5]`, `dve.acc[3]`, `act.index` | the same of a named engine |
| `bf16@0x4000` | one element of memory at a local address |
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from attrs import frozen

from neuron_emu.debug import probe
from neuron_emu.debug.expression import Number, Path
from neuron_emu.engines.core import EngineState
from neuron_emu.errors import InputError
from neuron_emu.isa.codec import decode, record_type_of
from neuron_emu.isa.enums import DTYPE_WORDS, AccumulatorCommand, AluOp, DType, Engine
from neuron_emu.isa.fields import read_field
from neuron_emu.isa.layout import spans_of
from neuron_emu.isa.opcodes import OPCODE_BY_NAME
from neuron_emu.machine import Machine
from neuron_emu.memory import AccessPattern, MemoryFault
from neuron_emu.numerics import to_float32

__all__ = ["Moment", "constant", "element_value", "is_name", "unknown_name"]

_SIGNED = {DType.INT8: 8, DType.INT16: 16, DType.INT32: 32}


@frozen(eq=False)
class Moment:
    """A machine and the word of one engine that is next; `word` is empty past the end."""

    machine: Machine
    engine: Engine
    index: int
    word: bytes

    @classmethod
    def of(cls, machine: Machine, engine: Engine) -> Moment:
        """Return the moment as an engine sees it."""
        stream = probe.streams(machine).get(engine)
        index = machine.position(engine)
        is_over = stream is None or index >= len(stream)
        return cls(machine, engine, index, b"" if is_over or stream is None else stream[index])

    @property
    def state(self) -> EngineState:
        """The engine's state."""
        return self.machine.engine(self.engine)

    @property
    def record(self) -> Any:
        """The decoded word; None past the end of the stream."""
        return decode(self.word, self.machine.generation) if self.word else None

    # --- the expression language ------------------------------------------------------------

    def value(self, path: Path, indices: tuple[int, ...]) -> Number:
        """Return what a name means here; InputError names what would be known."""
        name = path.parts[0]
        if name.upper() in Engine.__members__ and len(path.parts) > 1:
            moment = Moment.of(self.machine, Engine[name.upper()])
            return moment.value(Path(path.parts[1:]), indices)
        if len(path.parts) == 1:
            known = self._own(name, indices)
            if known is not None:
                return known
        if self.word:
            text = _indexed(path, indices)
            if text in spans_of(record_type_of(self.word[0])):
                return read_field(self.word, record_type_of(self.word[0]), text)
        if len(path.parts) == 1 and not indices:
            code = constant(name)
            if code is not None:
                return code
        raise unknown_name(path)

    def _own(self, name: str, indices: tuple[int, ...]) -> Number | None:
        machine = self.machine
        if name == "step":
            return machine.steps
        if name == "engine":
            return int(self.engine)
        if name == "index":
            return self.index
        if name == "opcode" and self.word:
            return self.word[0]
        if len(indices) != 1:
            return None
        number = indices[0]
        if name == "R[]":
            return int(_item(self.state.registers, number, "R"))
        if name == "S[]":
            return int(_item(machine.sync.semaphores, number, "S"))
        if name == "E[]":
            return int(_item(machine.sync.events, number, "E"))
        if name == "acc[]":
            return float(_item(self.state.accumulator.values, number, "acc"))
        if name == "acc_undefined[]":
            return int(_item(self.state.accumulator.undefined, number, "acc_undefined"))
        return None

    def cell(self, dtype: str, address: int) -> Number:
        """Return the element at a local address."""
        code = next(code for code, word in DTYPE_WORDS.items() if word == dtype)
        return element_value(self.machine, DType(code), address)

    def member_code(self, path: Path, name: str) -> int | None:
        """Return the code of an enum member when the path is a field of that enum."""
        if not self.word:
            return None
        spans = spans_of(record_type_of(self.word[0]))
        text = str(path).replace("[]", "[0]")
        span = spans.get(text) or spans.get(str(path).replace("[]", ""))
        if span is None or span.enum is None:
            return None
        if name in span.enum.__members__:
            return int(span.enum[name])
        return constant(name) if span.enum is DType else None


def unknown_name(path: Path) -> InputError:
    """Return the error about a name that means nothing."""
    return InputError(
        f"{path} is no name here; known are step, engine, index, opcode, R[n], S[n], E[n],"
        " acc[n], fields of the word such as src.num[0], and DTYPE@ADDRESS"
    )


_OWN = frozenset(("step", "engine", "index", "opcode"))
_INDEXED = frozenset(("R[]", "S[]", "E[]", "acc[]", "acc_undefined[]"))


def is_name(path: Path) -> bool:
    """Tell whether a name means something before some word, be it not the one that is next."""
    parts = path.parts
    if len(parts) > 1 and parts[0].upper() in Engine.__members__:
        parts = parts[1:]
    text = ".".join(parts)
    if text in _OWN or text in _INDEXED or constant(text) is not None:
        return True
    fields, members = _names_of_words()
    return text in fields or text in members


@cache
def _names_of_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the fields of all words, indices left out, and the members of their enums."""
    fields: set[str] = set()
    members: set[str] = set()
    for record in {record_type_of(opcode) for opcode in OPCODE_BY_NAME.values()}:
        for name, span in spans_of(record).items():
            fields.add(re.sub(r"\[\d+\]", "[]", name))
            if span.enum is not None:
                members.update(span.enum.__members__)
    return frozenset(fields), frozenset(members)


def _indexed(path: Path, indices: tuple[int, ...]) -> str:
    left = list(indices)
    parts = []
    for part in path.parts:
        while part.endswith("[]"):
            part = part[:-2]
            if left:
                part += f"[{left.pop(0)}]"
        parts.append(part)
    return ".".join(parts)


def _item(values: Any, number: int, name: str) -> Any:
    if not 0 <= number < len(values):
        raise InputError(f"{name} must have an index from 0 to {len(values) - 1}, not {number}")
    return values[number]


def constant(name: str) -> int | None:
    """Return the code of an opcode, an engine, a dtype word or a common enum member."""
    if name in OPCODE_BY_NAME:
        return OPCODE_BY_NAME[name]
    if name == name.lower() and name.upper() in Engine.__members__:
        return int(Engine[name.upper()])
    for code, word in DTYPE_WORDS.items():
        if word == name:
            return code
    for enum in (AccumulatorCommand, AluOp):
        if name in enum.__members__:
            return int(enum[name])
    return {"nan": None, "true": 1, "false": 0}.get(name)


def element_value(machine: Machine, dtype: DType, address: int) -> Number:
    """Return one element of memory as a number; InputError when the address is none."""
    operand = machine.memory.operand(
        AccessPattern(address, (1,), (1,)), dtype.size_bytes, 1, max_elements=1
    )
    if isinstance(operand, MemoryFault):
        raise InputError(operand.reason)
    bits = operand.read_element(0)
    if dtype.is_float:
        return float(to_float32(bits, dtype, machine.formats)[0])
    number = int(bits[0])
    width = _SIGNED.get(dtype)
    return number - (1 << width) if width and number >> (width - 1) else number


def dtype_named(word: str) -> DType:
    """Return the dtype of a word such as bf16; InputError lists them."""
    for code, known in DTYPE_WORDS.items():
        if word == known or (word == "bfloat16" and known == "bf16"):
            return DType(code)
    raise InputError(f"dtype must be one of {', '.join(DTYPE_WORDS.values())}, not {word!r}")
