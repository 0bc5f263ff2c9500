"""Messages on a stream: `Content-Length: N`, an empty line, and N bytes of JSON."""

from __future__ import annotations

import json
from typing import IO, Any

from neuron_emu.errors import NeuronEmuError

__all__ = ["MalformedError", "read_message", "write_message"]

_LARGEST = 1 << 24
_LONGEST_LINE = 1 << 12


class MalformedError(NeuronEmuError):
    """Bytes that are no message; the stream goes on behind them."""


def read_message(stream: IO[bytes]) -> dict[str, Any] | None:
    """Return the next message, None at the end of the stream; MalformedError for what is none."""
    length = _length(stream)
    if length is None:
        return None
    body = stream.read(length)
    if len(body) < length:
        return None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedError(f"a message must be JSON, not {body[:40]!r}") from None
    if not isinstance(message, dict):
        raise MalformedError(f"a message must be an object, not {body[:40]!r}")
    return message


def _length(stream: IO[bytes]) -> int | None:
    """Read a header; lines without a known field are passed over, as the protocol asks."""
    length: int | None = None
    while True:
        line = stream.readline(_LONGEST_LINE)
        if not line:
            return None
        text = line.strip()
        if not text:
            if length is not None:
                return length
            continue
        name, colon, value = text.partition(b":")
        if name.strip().lower() != b"content-length":
            if not colon:
                raise MalformedError(f"a header must be Content-Length: N, not {text[:40]!r}")
            continue
        if not value.strip().isdigit() or int(value) > _LARGEST:
            raise MalformedError(
                f"Content-Length must be 0 to {_LARGEST}, not {value.strip()[:20]!r}"
            )
        length = int(value)


def write_message(stream: IO[bytes], message: dict[str, Any]) -> None:
    """Write one message."""
    body = json.dumps(message, separators=(",", ":")).encode()
    stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    stream.flush()
