"""JSON that is trusted in nothing: values with the path that leads to them, for messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.pwp.profile import MANTISSA_BITS

__all__ = ["Node", "load_json", "read_limited"]

# Far above the largest profile (1283 sections need about 1 MB).
MAX_FILE_BYTES = 32 << 20
_MANTISSA_MASK = (1 << MANTISSA_BITS) - 1


@frozen
class Node:
    """A JSON value with the path that leads to it, for messages."""

    place: str
    path: str
    value: Any

    def fail(self, expectation: str) -> NoReturn:
        shown = repr(self.value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        raise InputError(f"{self.path} must be {expectation}, not {shown}", place=self.place)

    def has(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def key(self, key: str) -> Node:
        if not isinstance(self.value, dict):
            self.fail("an object")
        path = f"{self.path}.{key}" if self.path else key
        if key not in self.value:
            raise InputError(f"{path} must be present", place=self.place)
        return Node(self.place, path, self.value[key])

    def items(self) -> list[Node]:
        if not isinstance(self.value, list):
            self.fail("an array")
        return [Node(self.place, f"{self.path}[{i}]", v) for i, v in enumerate(self.value)]

    def integer(self, low: int, high: int) -> int:
        if type(self.value) is not int or not low <= self.value <= high:
            self.fail(f"an integer from {low} to {high}")
        return int(self.value)

    def flag(self) -> bool:
        if self.value not in (0, 1) or type(self.value) not in (bool, int):
            self.fail("true or false")
        return bool(self.value)

    def word(self) -> int:
        """Return the bits of a float box; raise when its other members contradict `int`."""
        bits = self.key("int").integer(0, 0xFFFFFFFF)
        repeated = {
            "sign": bits >> 31,
            "exponent": bits >> MANTISSA_BITS & 0xFF,
            "mantissa": bits & _MANTISSA_MASK,
        }
        for member, expected in repeated.items():
            if self.has(member):
                node = self.key(member)
                if type(node.value) not in (int, bool) or node.value != expected:
                    node.fail(f"{expected}, as int is {bits}")
        if self.has("hexstring"):
            node = self.key("hexstring")
            text = node.value.lower().removeprefix("0x") if isinstance(node.value, str) else ""
            if text.rjust(8, "0") != f"{bits:08x}":
                node.fail(f"'{bits:08x}', as int is {bits}")
        return bits

    def optional(self, key: str, read: Callable[[Node], Any], default: Any) -> Any:
        return read(self.key(key)) if self.has(key) else default


def read_limited(path: str | Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of a file, one more than `limit` at the most; InputError if unreadable."""
    try:
        with Path(path).open("rb") as file:
            return file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", place=str(path)) from None


def load_json(data: bytes | str, place: str) -> Any:
    """Return the value of a JSON text without repeated keys, NaN or deep nesting."""
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"must be at most {MAX_FILE_BYTES} bytes long", place=place)

    def refuse_constant(name: str) -> NoReturn:
        raise InputError(f"must hold no {name}: JSON has no such number", place=place)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError(f"key {twice[:60]!r} must occur once in an object", place=place)
        return members

    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"must be UTF-8 text; byte {error.start} is not", place=place) from None
    except RecursionError:
        raise InputError("must not be nested this deeply", place=place) from None
    except ValueError as error:
        raise InputError(f"must be JSON: {error}", place=place) from None
