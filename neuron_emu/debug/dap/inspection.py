"""Requests that look: threads, frames, scopes, variables, expressions, memory, instructions."""

from __future__ import annotations

import base64
import re
from typing import Any

from neuron_emu.debug import probe
from neuron_emu.debug.commands.registry import find_command, run_line, split_line
from neuron_emu.debug.dap.adapter import (
    Adapter,
    Arguments,
    Reply,
    request,
    source_of,
)
from neuron_emu.debug.dap.sources import (
    instruction_at,
    instruction_reference,
)
from neuron_emu.debug.records import Stop, Tile
from neuron_emu.debug.text import text_of
from neuron_emu.errors import InputError
from neuron_emu.isa.assembly import disassemble_word
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.records import WORD_BYTES
from neuron_emu.isa.text import parse_integer
from neuron_emu.memory import locate

__all__: list[str] = []

_MOST_BYTES = 1 << 20
_MOST_INSTRUCTIONS = 1 << 14


# --- looking ------------------------------------------------------------------------------------


@request("threads")
def _threads(adapter: Adapter, arguments: Arguments) -> Reply:
    engines = probe.streams(adapter.debugger.machine)
    return Reply({"threads": [{"id": int(e) + 1, "name": e.name.lower()} for e in engines]})


@request("stackTrace")
def _stack_trace(adapter: Adapter, arguments: Arguments) -> Reply:
    engine = adapter.engine_of(arguments)
    debugger = adapter.debugger
    index = debugger.machine.position(engine)
    source = adapter.sources[engine]
    last = len(source.lines) - 1
    place = debugger.place(engine, index)
    frame = {
        "id": int(engine) + 1,
        "name": f"{engine.name.lower()}[{index}] {place.text if place else 'ended'}",
        "line": source.lines[min(index, last)] - 1 + adapter.first_line,
        "column": adapter.first_line,
        "source": source.as_dict(),
        "instructionPointerReference": instruction_reference(engine, min(index, last)),
        "presentationHint": "normal" if place else "label",
    }
    return Reply({"stackFrames": [frame], "totalFrames": 1})


@request("scopes")
def _scopes(adapter: Adapter, arguments: Arguments) -> Reply:
    engine = adapter.engine_of(arguments, "frameId")
    variables = adapter.variables
    return Reply({"scopes": [] if variables is None else variables.scopes(engine)})


@request("variables")
def _variables(adapter: Adapter, arguments: Arguments) -> Reply:
    reference = arguments.get("variablesReference")
    variables = adapter.variables
    found = None
    if variables is not None and isinstance(reference, int):
        found = variables.children(reference)
    if found is None:
        raise InputError(f"variablesReference must be of this stop, not {reference!r}")
    start, count = arguments.get("start") or 0, arguments.get("count") or len(found)
    return Reply({"variables": found[int(start) : int(start) + int(count)]})


@request("source")
def _source(adapter: Adapter, arguments: Arguments) -> Reply:
    named = arguments.get("source")
    wanted = dict(named) if isinstance(named, dict) else {}
    wanted.setdefault("sourceReference", arguments.get("sourceReference"))
    found = source_of(adapter, wanted)
    if found is None:
        raise InputError("no stream of the program has this source")
    return Reply({"content": found.text, "mimeType": "text/x-asm"})


@request("loadedSources")
def _loaded_sources(adapter: Adapter, arguments: Arguments) -> Reply:
    return Reply({"sources": [source.as_dict() for source in adapter.sources.values()]})


@request("evaluate")
def _evaluate(adapter: Adapter, arguments: Arguments) -> Reply:
    """Evaluate an expression or a region; in the console, any command of the prompt."""
    debugger = adapter.debugger
    text = str(arguments.get("expression") or "").strip()
    if arguments.get("frameId"):
        debugger.select(adapter.engine_of(arguments, "frameId"))
    try:
        if arguments.get("context") == "repl" and _is_command(text):
            return _ran(adapter, run_line(debugger, text))
        if re.match(r"(sbuf|psum):|\w+@[^\[]+\[.*\]\[", text):
            return _ran(adapter, debugger.examine(text))
        return _ran(adapter, debugger.evaluate(text))
    finally:
        debugger.select(None)


def _is_command(text: str) -> bool:
    try:
        find_command(split_line(text)[0])
    except InputError:
        return False
    return True


def _ran(adapter: Adapter, result: Any) -> Reply:
    body: dict[str, Any] = {"result": text_of(result), "variablesReference": 0}
    if isinstance(result, Tile) and adapter.variables is not None:
        variable = adapter.variables.tile(result.what, result)
        body["variablesReference"] = variable["variablesReference"]
        body["indexedVariables"] = variable["indexedVariables"]
        body["type"] = variable["type"]
    if isinstance(result, Stop):
        return Reply(body, then=lambda: adapter.moving(lambda: result))
    return Reply(body)


@request("completions")
def _completions(adapter: Adapter, arguments: Arguments) -> Reply:
    from neuron_emu.debug.commands import COMMANDS

    text = str(arguments.get("text") or "")
    names = [name for name in COMMANDS if name.startswith(text)] if " " not in text else []
    return Reply({"targets": [{"label": name, "type": "keyword"} for name in names]})


@request("exceptionInfo")
def _exception_info(adapter: Adapter, arguments: Arguments) -> Reply:
    stop = adapter.debugger.where()
    return Reply(
        {
            "exceptionId": str(stop.detail.get("name", stop.reason)),
            "description": stop.message,
            "breakMode": "always",
        }
    )


@request("readMemory")
def _read_memory(adapter: Adapter, arguments: Arguments) -> Reply:
    reference = parse_integer(str(arguments.get("memoryReference")), "memoryReference", 0, 1 << 40)
    address = reference + int(arguments.get("offset") or 0)
    count = int(arguments.get("count") or 0)
    if not 0 <= count <= _MOST_BYTES:
        raise InputError(f"count must be 0 to {_MOST_BYTES}, not {count}")
    machine = adapter.debugger.machine
    location = locate(machine.generation, address)
    data = b""
    if location is not None:
        space = machine.memory.space_named(location.space)
        data = space.data[location.partition, location.offset : location.offset + count].tobytes()
    body: dict[str, Any] = {"address": f"{address:#x}", "data": base64.b64encode(data).decode()}
    if len(data) < count:
        body["unreadableBytes"] = count - len(data)
    return Reply(body)


@request("disassemble")
def _disassemble(adapter: Adapter, arguments: Arguments) -> Reply:
    reference = parse_integer(str(arguments.get("memoryReference")), "memoryReference", 0, 1 << 40)
    at = instruction_at(reference + int(arguments.get("offset") or 0))
    count = int(arguments.get("instructionCount") or 0)
    if at is None or at[0] not in adapter.sources:
        raise InputError(f"memoryReference must be of a word, not {reference:#x}")
    if not 0 <= count <= _MOST_INSTRUCTIONS:
        raise InputError(f"instructionCount must be 0 to {_MOST_INSTRUCTIONS}, not {count}")
    engine, first = at[0], at[1] // WORD_BYTES + int(arguments.get("instructionOffset") or 0)
    return Reply({"instructions": [_instruction(adapter, engine, first + i) for i in range(count)]})


def _instruction(adapter: Adapter, engine: Engine, index: int) -> dict[str, Any]:
    stream = probe.streams(adapter.debugger.machine)[engine]
    if not 0 <= index < len(stream):
        return {
            "address": instruction_reference(engine, max(index, 0)),
            "instruction": "(no word)",
            "presentationHint": "invalid",
        }
    source, word = adapter.sources[engine], stream[index]
    found: dict[str, Any] = {
        "address": instruction_reference(engine, index),
        "instruction": disassemble_word(word, adapter.debugger.machine.generation),
        "instructionBytes": word.hex(" ", 4),
        "location": source.as_dict(),
        "line": source.lines[index] - 1 + adapter.first_line,
    }
    label = next((n for n, i in adapter.debugger.labels.get(engine, {}).items() if i == index), "")
    return found | ({"symbol": label} if label else {})
