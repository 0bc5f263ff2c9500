"""Traces: the events of a run as JSON lines or as text.

Sources: design.md 2 (stations) and 4 (`--trace`).
"""

from __future__ import annotations

import json
from typing import Any

from neuron_emu.events import Event

__all__ = ["json_line", "text_line"]


def json_line(event: Event) -> str:
    """Return an event as one JSON object on a line."""
    record: dict[str, Any] = {
        "step": event.step,
        "engine": event.engine.name.lower(),
        "index": event.index,
        "kind": event.kind,
    }
    if event.station is not None:
        record["station"] = event.station
    for key, value in event.detail.items():
        # A bucket's index is not the word's: what an event has already gets its station's name.
        record[f"{event.station}_{key}" if key in record else key] = value
    return json.dumps(record) + "\n"


def text_line(event: Event) -> str:
    """Return an event as one line of text: words flush left, stations indented below them."""
    if event.kind == "issue":
        where = f"{event.engine.name.lower()}[{event.index}]"
        return f"{event.step:6} {where} {event.detail['text']}\n"
    pairs = " ".join(f"{key}={_text(value)}" for key, value in event.detail.items())
    return f"{'':8}{event.station or event.kind:12} {pairs}".rstrip() + "\n"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "|".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
