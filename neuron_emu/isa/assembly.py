"""The text form of whole words: a listing line each, and back to the same bytes.

Notation: operand-text.md 1; the listing notation of NEFF members (section 2) is read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import lru_cache

from neuron_emu.errors import InputError
from neuron_emu.generation import MARIANA, Generation
from neuron_emu.isa.codec import decode, encode
from neuron_emu.isa.families import FAMILY_OF_OPCODE
from neuron_emu.isa.layout import LayoutError
from neuron_emu.isa.opcodes import OPCODE_BY_NAME, opcode_name
from neuron_emu.isa.records import INSTRUCTION_WORD_LENGTH, WORD_BYTES, Header
from neuron_emu.isa.text import Inexpressible, Operands, events_text

__all__ = ["assemble", "assemble_line", "disassemble", "disassemble_word", "listing", "words_of"]

_LABELLED_SEMAPHORE = re.compile(r"(\$?S\[\d+\])\s*\([^)]*\)")


def words_of(data: bytes) -> Iterator[bytes]:
    """Yield the 64-byte words of a stream; InputError when its size is not a multiple of 64."""
    if len(data) % WORD_BYTES:
        raise InputError(f"size must be a multiple of {WORD_BYTES} bytes, not {len(data)}")
    for offset in range(0, len(data), WORD_BYTES):
        yield bytes(data[offset : offset + WORD_BYTES])


def disassemble(data: bytes, generation: Generation = MARIANA, *, show_bytes: bool = False) -> str:
    """Return the listing of a stream, one line a word, which `assemble` turns back into `data`.

    >>> print(disassemble(bytes.fromhex("a4100000") + bytes(60)), end="")
    NOP
    """
    return "".join(
        f"{line}\n" for line in listing(words_of(data), generation, show_bytes=show_bytes)
    )


def listing(
    words: Iterable[bytes], generation: Generation = MARIANA, *, show_bytes: bool = False
) -> Iterator[str]:
    """Yield the line of each word; with `show_bytes` it ends in a comment of offset and bytes."""
    for index, word in enumerate(words):
        line = disassemble_word(word, generation)
        if show_bytes:
            spaced = " ".join(word[i : i + 4].hex() for i in range(0, WORD_BYTES, 4))
            mark = "" if "  # " in line else "  #"
            line = f"{line}{mark} {index * WORD_BYTES:#06x}: {spaced}"
        yield line


@lru_cache(maxsize=65536)
def disassemble_word(word: bytes, generation: Generation = MARIANA) -> str:
    """Return the line of one word; `.word` and 128 hex digits for what the notation cannot say."""
    name = opcode_name(word[0])
    try:
        line = _line_of(word, generation)
    except Inexpressible as reason:
        return f".word {word.hex()}  # {name}: {reason}"
    try:
        is_same = assemble_line(line) == word
    except InputError:
        is_same = False
    if not is_same:
        return f".word {word.hex()}  # {name}: the text does not give the bytes back"
    return line


def _line_of(word: bytes, generation: Generation) -> str:
    family = FAMILY_OF_OPCODE.get(word[0])
    if family is None or word[0] not in generation.opcodes:
        raise Inexpressible("no text form")
    record = decode(word, generation)
    header: Header = record.header
    if header.inst_word_len != INSTRUCTION_WORD_LENGTH or header.debug_cmd or header.debug_hint:
        raise Inexpressible("length or debug bytes are not those that a compiler writes")
    return " ".join([opcode_name(word[0]), *events_text(record.events), *family.to_text(record)])


def assemble(text: str, *, place: str = "line") -> bytes:
    """Assemble a listing into words; blank lines and `#` comments are skipped.

    Raises InputError with the line number and what was expected.

    >>> assemble("NOP").hex()[:8]
    'a4100000'
    """
    return b"".join(assemble_lines(text.splitlines(), place))


def assemble_lines(lines: Iterable[str], place: str) -> Iterator[bytes]:
    """Assemble lines one by one; errors name `place:number`."""
    for number, line in enumerate(lines, start=1):
        try:
            word = assemble_line(line)
        except InputError as error:
            where = f"{place}:{number}" if place != "line" else f"line {number}"
            raise InputError(str(error), place=where) from None
        if word is not None:
            yield word


def assemble_line(line: str) -> bytes | None:
    """Assemble one line; None when it holds no word."""
    text = line.partition("#")[0].strip().removesuffix(";")
    tokens = _LABELLED_SEMAPHORE.sub(r"\1", text).split()
    if tokens and tokens[0].endswith(":"):
        name = tokens[0].removesuffix(":")
        tokens[:1] = [name] if name in OPCODE_BY_NAME else []
    if not tokens:
        return None
    if tokens[0] == ".word":
        return _raw_word(tokens[1:])
    name, *operands = tokens
    opcode = OPCODE_BY_NAME.get(name)
    family = FAMILY_OF_OPCODE.get(opcode) if opcode is not None else None
    if opcode is None or family is None:
        if opcode is not None:
            raise InputError(f"{name!r} has no text form; write it as .word")
        near = get_close_matches(name.upper(), OPCODE_BY_NAME, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(
            f"a line must begin with an opcode such as EXPONENTIAL, or .word, not {name!r}{hint}"
        )
    taken = Operands.read(operands)
    record = family.from_text(opcode, taken)
    taken.finish()
    try:
        return encode(record)
    except LayoutError as error:
        raise InputError(str(error)) from None


def _raw_word(digits: list[str]) -> bytes:
    text = "".join(digits)
    if not re.fullmatch(r"[0-9a-fA-F]{128}", text):
        raise InputError(f".word must have {2 * WORD_BYTES} hex digits, not {text[:140]!r}")
    return bytes.fromhex(text)
