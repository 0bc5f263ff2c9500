"""Commands that look: state, memory, words, writers and reasons."""

from __future__ import annotations

import re
from typing import Any

import attrs
import numpy as np

from neuron_emu.cli.common import atomic_output
from neuron_emu.debug import probe
from neuron_emu.debug.commands.registry import COMMANDS, command, count_in, find_command
from neuron_emu.debug.debugger import Debugger
from neuron_emu.debug.maps import access_map, occupancy
from neuron_emu.debug.plots import save_access_map, save_occupancy
from neuron_emu.debug.records import Difference, Explanation, Listing, Outcome, Stop, Tile, Why
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import engine_named

__all__ = ["INFO_TOPICS"]

TOPIC = "looking"


def _registers(debugger: Debugger, text: str) -> Any:
    words = text.split()
    engines = [engine_named(w) for w in words if w != "all"] or [debugger.engine]
    return tuple(r for e in engines for r in debugger.registers(e, all_of_them="all" in words))


def _expectations(debugger: Debugger, text: str) -> Any:
    """Compare memory with what the scenarios expect at the end."""
    return tuple(
        Outcome(f"{expected.spec}: {expected.check(debugger.machine) or 'ok'}")
        for scenario in debugger.scenarios
        for expected in scenario.expectations
    )


def _accumulators(debugger: Debugger, text: str) -> Any:
    if text:
        return (debugger.accumulator(engine_named(text)),)
    loaded = dict.fromkeys((*probe.streams(debugger.machine), Engine.ACT, Engine.DVE))
    engines = [e for e in loaded if e in (Engine.ACT, Engine.DVE)]
    return tuple(debugger.accumulator(engine) for engine in engines)


INFO_TOPICS: dict[str, Any] = {
    "registers": _registers,
    "semaphores": lambda debugger, text: debugger.semaphores(all_of_them=text == "all"),
    "accumulators": _accumulators,
    "tables": lambda debugger, text: debugger.tables(),
    "cam": lambda debugger, text: debugger.cam(),
    "engines": lambda debugger, text: debugger.engines(),
    "writes": lambda debugger, text: debugger.writes(count_in(text) if text else 10),
    "warnings": lambda debugger, text: debugger.warnings(),
    "breakpoints": lambda debugger, text: tuple(p.status for p in debugger.points),
    "expectations": _expectations,
    "labels": lambda debugger, text: tuple(
        Outcome(f"{engine.name.lower()}:{index} {name}")
        for engine, labels in debugger.labels.items()
        for name, index in labels.items()
    ),
}


@command("info i", f"info {'|'.join(INFO_TOPICS)} [...]", "info registers act", topic=TOPIC)
def info(debugger: Debugger, text: str) -> Any:
    """Show state: registers, semaphores, accumulators, tables, CAM, engines, writes and so on."""
    word, _, rest = text.partition(" ")
    matches = [name for name in INFO_TOPICS if name.startswith(word) and word]
    if word == "b":
        matches = ["breakpoints"]
    if word == "threads":
        matches = ["engines"]
    if len(matches) != 1:
        raise InputError(f"info must be about one of {', '.join(INFO_TOPICS)}, not {word!r}")
    return INFO_TOPICS[matches[0]](debugger, rest.strip())


@command(
    "x", "x[/x] SPEC | x[/x] DTYPE@ADDRESS[STEPS][SIZES] [channels=N]",
    "x bf16@0x4000[1,1][64,2] channels=4", topic=TOPIC, repeats=True,
)  # fmt: skip
def examine(debugger: Debugger, text: str) -> Tile:
    """Show memory as typed elements, /x as bits; `?` marks elements never written."""
    as_bits = text.startswith("/x")
    tile = debugger.examine(text.removeprefix("/x").strip())
    if not as_bits:
        return tile
    digits = 2 * tile.dtype.size_bytes
    texts = np.vectorize(lambda bits: f"{int(bits):0{digits}x}", otypes=[object])(tile.bits)
    return attrs.evolve(tile, values=texts)


@command("print p inspect", "print[/x] EXPRESSION", "print act.acc[0] - 1", topic=TOPIC)
def print_(debugger: Debugger, text: str) -> Any:
    """Show the value of an expression over fields and state."""
    as_hex = text.startswith("/x")
    value = debugger.evaluate(text.removeprefix("/x").strip())
    if as_hex:
        return Outcome(f"{int(value):#x}" if isinstance(value, int) else float(value).hex())
    return value


@command("expect", "expect EXPRESSION", "expect abs(fp32@0x2000 - 1) < 1e-6", topic=TOPIC)
def expect(debugger: Debugger, text: str) -> Outcome:
    """Fail unless an expression is true: what a bug report or a test asserts."""
    if not debugger.evaluate(text):
        raise ExpectationError(f"expected {text}")
    return Outcome(f"as expected: {text}")


class ExpectationError(InputError):
    """An `expect` that does not hold: the script goes on, and its exit status becomes 1."""


@command("dump", "dump SPEC FILE.npy", "dump sbuf:0+0x2000:fp32[4,8] out.npy", topic=TOPIC)
def dump(debugger: Debugger, text: str) -> Outcome:
    """Write memory to a .npy file."""
    words = text.split()
    if len(words) != 2 or not words[1].endswith(".npy"):
        raise InputError(f"dump must be given SPEC FILE.npy, not {text!r}")
    values = debugger.machine.read(words[0])
    with atomic_output(words[1]) as stream:
        np.save(stream, values, allow_pickle=False)
    return Outcome(f"wrote {words[1]}, {values.dtype} {list(values.shape)}")


@command("list l", "list [LOCATION]", "list act:2", topic=TOPIC)
def list_(debugger: Debugger, text: str) -> Listing:
    """Show the words around the current one, and its bytes with their meaning."""
    if not text:
        return debugger.listing()
    engine, index = debugger.location(text)
    return debugger.listing(engine, index)


@command("where bt backtrace", "where", "where", topic=TOPIC)
def where(debugger: Debugger, text: str) -> Stop:
    """Show where the machine stands and why it stopped."""
    return debugger.where()


@command("diff", "diff [WORDS]", "diff 2", topic=TOPIC)
def diff(debugger: Debugger, text: str) -> Difference:
    """Show what the last WORDS words changed, in memory and everywhere else."""
    return debugger.diff(count_in(text, "words"))


@command("map", "map [sbuf|psum|word [LOCATION]] [FILE.png]", "map word map.png", topic=TOPIC)
def map_(debugger: Debugger, text: str) -> Any:
    """Show how full the memories are, or where one word reads and writes; as text or PNG."""
    words = text.split()
    path = words.pop() if words and words[-1].endswith(".png") else None
    machine = debugger.machine
    if words and words[0] == "word":
        engine, index = debugger.engine, machine.position(debugger.engine)
        if len(words) > 1:
            engine, index = debugger.location(words[1])
        place = debugger.place(engine, index)
        if place is None:
            raise InputError("the stream has ended: name a word, for instance `map word 0`")
        access = access_map(machine, place, probe.streams(machine)[engine][index])
        if path is None:
            return access
        with atomic_output(path) as stream:
            save_access_map(access, stream)
        return Outcome(f"wrote {path}")
    names = words or [space.name for space in machine.memory.spaces]
    maps = tuple(occupancy(machine.memory.space_named(name)) for name in names)
    if path is None:
        return maps
    with atomic_output(path) as stream:
        save_occupancy(maps, stream)
    return Outcome(f"wrote {path}")


@command("who", "who ADDRESS|SPACE:PARTITION+OFFSET|ENGINE.acc[N] [DEPTH]", "who 0x2004 3",
         topic="asking")  # fmt: skip
def who(debugger: Debugger, text: str) -> Any:
    """Show the last word that wrote a byte or lane, and what it was made from, DEPTH back."""
    place, _, depth = text.partition(" ")
    return debugger.who(place, count_in(depth.strip(), "depth") if depth.strip() else 1)


@command("why", "why ADDRESS|SPACE:PARTITION+OFFSET", "why sbuf:3+0x2004", topic="asking")
def why(debugger: Debugger, text: str) -> Why:
    """Compute an element again station by station: bits, table section, rounding, loss."""
    return debugger.why(text)


@command("explain", "explain [LOCATION]", "explain 2", topic="asking")
def explain(debugger: Debugger, text: str) -> Explanation:
    """Show a word in full: fields, rules, findings, and which generations accept it."""
    if not text:
        return debugger.explain()
    return debugger.explain(*debugger.location(text))


@command("help h", "help [COMMAND]", "help watch", topic="asking")
def help_(debugger: Debugger, text: str) -> Outcome:
    """List the commands, or show one with its example."""
    if text:
        found = find_command(re.split(r"[\s/]", text)[0])
        others = ", ".join(found.names[1:])
        lines = [found.usage, f"  {found.summary}", f"  For example: {found.example}"]
        return Outcome("\n".join([*lines, f"  Also: {others}"] if others else lines))
    lines = []
    for topic in ("moving", "stopping", "looking", "asking"):
        lines.append(f"{topic}:")
        lines += [f"  {c.name:17} {c.summary}" for c in COMMANDS.values() if c.topic == topic]
    return Outcome("\n".join([*lines, "help COMMAND shows usage and an example"]))
