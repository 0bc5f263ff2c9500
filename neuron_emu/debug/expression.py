"""A small expression language over the fields of a word and the state of a machine.

Conditions of breakpoints and the argument of `print` are written in it. It reads, never writes, and
nothing of it reaches Python: numbers, names, `[...]`, arithmetic, comparisons and a few functions.

    accumulator_cmd == IDLE && src.num[0] > 8
    isnan(fp32@0x2000) or S[4] >= 2
    act.acc[0] - dve.acc[0] > 0.5
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any, Protocol

from attrs import frozen

from neuron_emu.errors import InputError
from neuron_emu.isa.enums import DTYPE_WORDS

__all__ = ["Expression", "Number", "Path", "Scope", "parse_expression"]

Number = int | float

_DTYPES = "|".join(sorted(DTYPE_WORDS.values(), key=len, reverse=True))
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<cell>(?:{_DTYPES})@)
    |(?P<float>\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    |(?P<int>0[xX][0-9a-fA-F]+|\d+)
    |(?P<name>\$?[A-Za-z_][A-Za-z_0-9]*)
    |(?P<sign>\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%&|^~!<>()\[\].,])
    )""",
    re.VERBOSE,
)
_MAX_TOKENS = 200
_MAX_DEPTH = 30
_LARGEST = 1 << 128
"""Integers past this are refused, so that no expression can use up memory."""


class Scope(Protocol):
    """What an expression looks names up in."""

    def value(self, path: Path, indices: tuple[int, ...]) -> Number:
        """Return the value of a path; InputError when there is none."""
        ...

    def cell(self, dtype: str, address: int) -> Number:
        """Return the element of a dtype at a local address."""
        ...

    def member_code(self, path: Path, name: str) -> int | None:
        """Return the code of an enum member when `path` is a field of that enum."""
        ...


@frozen
class Path:
    """A dotted name such as `act.R` or `src.num`, without the values of its indices."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


Evaluate = Callable[[Scope], Number]


@frozen
class _Node:
    """A part of an expression; `path` is set when it is a bare path."""

    evaluate: Evaluate
    path: Path | None = None
    is_plain_name: bool = False


@frozen(eq=False)
class Expression:
    """A parsed expression and the text it came from."""

    text: str
    _evaluate: Evaluate
    paths: tuple[Path, ...] = ()
    """The names it holds, whether or not they mean something now."""
    reads_memory: bool = False

    def value(self, scope: Scope) -> Number:
        """Return the value; InputError when a name is unknown or an operation is impossible."""
        try:
            return self._evaluate(scope)
        except InputError:
            raise
        except ZeroDivisionError:
            raise InputError(f"{self.text!r} divides by zero") from None
        except (OverflowError, ValueError, TypeError):
            raise InputError(f"{self.text!r} has no value: an operand is out of range") from None

    def is_true(self, scope: Scope) -> bool:
        """Tell whether the value is not zero; NaN counts as true."""
        return bool(self.value(scope))


def parse_expression(text: str) -> Expression:
    """Parse an expression; InputError says what was expected and where."""
    parser = _Parser(text)
    node = parser.either()
    parser.end()
    reads_memory = any(kind == "cell" for kind, _ in parser.tokens)
    return Expression(text, node.evaluate, tuple(parser.paths), reads_memory)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_LEVELS: tuple[dict[str, Callable[[Any, Any], Any]], ...] = (
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"<<": operator.lshift, ">>": operator.rshift},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.truediv, "%": operator.mod},
)
_FUNCTIONS: dict[str, tuple[int, Callable[..., Number]]] = {
    "abs": (1, abs),
    "isnan": (1, lambda x: int(math.isnan(x))),
    "isinf": (1, lambda x: int(math.isinf(x))),
    "min": (2, min),
    "max": (2, max),
}


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0
        self.paths: list[Path] = []

    def _peek(self, *signs: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at][1] in signs:
            return self.tokens[self.at][1]
        return None

    def _take(self, *signs: str) -> str | None:
        found = self._peek(*signs)
        self.at += found is not None
        return found

    def _expect(self, sign: str) -> None:
        if self._take(sign) is None:
            self._fail(f"{sign!r}")

    def _fail(self, wanted: str) -> None:
        found = repr(self.tokens[self.at][1]) if self.at < len(self.tokens) else "the end"
        raise InputError(f"expression must have {wanted}, not {found}", place=self.text)

    def end(self) -> None:
        if self.at < len(self.tokens):
            self._fail("an operator")

    def either(self) -> _Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise InputError(f"expression must be nested at most {_MAX_DEPTH} deep")
        node = self._both()
        while self._take("||", "or"):
            node = _logical(node, self._both(), stop_at=True)
        self.depth -= 1
        return node

    def _both(self) -> _Node:
        node = self._negation()
        while self._take("&&", "and"):
            node = _logical(node, self._negation(), stop_at=False)
        return node

    def _negation(self) -> _Node:
        negations = 0
        while self._take("!", "not"):
            negations += 1
        node = self._comparison()
        if not negations:
            return node
        wanted = negations % 2 == 0
        return _Node(lambda scope: int(bool(node.evaluate(scope)) == wanted))

    def _comparison(self) -> _Node:
        left = self._binary(0)
        sign = self._take(*_COMPARISONS)
        if sign is None:
            return left
        return _compared(left, _COMPARISONS[sign], self._binary(0))

    def _binary(self, level: int) -> _Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while sign := self._take(*_LEVELS[level]):
            node = _combined(node, _LEVELS[level][sign], self._binary(level + 1))
        return node

    def _unary(self) -> _Node:
        signs = []
        while sign := self._take("-", "~", "+"):
            signs.append(sign)
        node = self._primary()
        for sign in reversed(signs):
            node = _signed(sign, node)
        return node

    def _primary(self) -> _Node:
        if self._take("("):
            node = self.either()
            self._expect(")")
            return _Node(node.evaluate)
        if self.at >= len(self.tokens):
            self._fail("a value")
        kind, text = self.tokens[self.at]
        if kind == "sign":
            self._fail("a value")
        self.at += 1
        if kind in ("int", "float"):
            number: Number = float(text) if kind == "float" else int(text, 0 if "x" in text else 10)
            return _Node(lambda scope: number)
        if kind == "cell":
            return self._cell(text[:-1])
        if text in _FUNCTIONS and self._peek("("):
            return self._call(text)
        return self._path(text)

    def _cell(self, dtype: str) -> _Node:
        address = self._primary()
        return _Node(lambda scope: scope.cell(dtype, _index(address.evaluate(scope))))

    def _call(self, name: str) -> _Node:
        count, function = _FUNCTIONS[name]
        self._expect("(")
        arguments = [self.either()]
        while self._take(","):
            arguments.append(self.either())
        self._expect(")")
        if len(arguments) != count:
            raise InputError(
                f"{name} must have {count} arguments, not {len(arguments)}", place=self.text
            )
        return _Node(lambda scope: function(*(a.evaluate(scope) for a in arguments)))

    def _path(self, first: str) -> _Node:
        parts = [first.removeprefix("$")]
        indices: list[_Node] = []
        while sign := self._take(".", "["):
            if sign == "[":
                indices.append(self.either())
                self._expect("]")
                parts[-1] += "[]"
                continue
            if self.at >= len(self.tokens) or self.tokens[self.at][0] != "name":
                self._fail("a name")
            parts.append(self.tokens[self.at][1])
            self.at += 1
        path = Path(tuple(parts))
        self.paths.append(path)

        def evaluate(scope: Scope) -> Number:
            return scope.value(path, tuple(_index(i.evaluate(scope)) for i in indices))

        return _Node(evaluate, path, is_plain_name=len(parts) == 1 and not indices)


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise InputError(f"expression must not hold {stripped[at:].strip()[:1]!r}", place=text)
        kind = match.lastgroup or ""
        found.append((kind, match[kind]))
        at = match.end()
        if len(found) > _MAX_TOKENS:
            raise InputError(f"expression must have at most {_MAX_TOKENS} parts")
    return found


def _index(value: Number) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise InputError(f"index or address must be a whole number, not {value}")
    return int(value)


def _bounded(value: Number) -> Number:
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise InputError("integer must stay below 2^128")
    return value


def _logical(left: _Node, right: _Node, *, stop_at: bool) -> _Node:
    def evaluate(scope: Scope) -> Number:
        if bool(left.evaluate(scope)) == stop_at:
            return int(stop_at)
        return int(bool(right.evaluate(scope)))

    return _Node(evaluate)


def _combined(left: _Node, operation: Callable[[Any, Any], Any], right: _Node) -> _Node:
    def evaluate(scope: Scope) -> Number:
        a, b = left.evaluate(scope), right.evaluate(scope)
        if operation is operator.lshift and b > 128:
            raise InputError("shift must be at most 128 bits")
        result: Number = operation(a, b)
        return _bounded(result)

    return _Node(evaluate)


def _compared(left: _Node, operation: Callable[[Any, Any], bool], right: _Node) -> _Node:
    """Compare; a bare name beside a field is looked up among the members of the field's enum."""

    def side(node: _Node, other: _Node, scope: Scope) -> Number:
        if node.is_plain_name and node.path is not None and other.path is not None:
            code = scope.member_code(other.path, str(node.path))
            if code is not None:
                return code
        return node.evaluate(scope)

    return _Node(lambda scope: int(operation(side(left, right, scope), side(right, left, scope))))


def _signed(sign: str, node: _Node) -> _Node:
    if sign == "-":
        return _Node(lambda scope: -node.evaluate(scope))
    if sign == "~":
        return _Node(lambda scope: ~_index(node.evaluate(scope)))
    return _Node(node.evaluate)
