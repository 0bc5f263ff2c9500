"""Commands that move: forward, back, and to a place."""

from __future__ import annotations

from neuron_emu.debug.commands.registry import command, count_in
from neuron_emu.debug.debugger import Debugger
from neuron_emu.debug.records import Outcome, Stop
from neuron_emu.errors import InputError
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import engine_named
from neuron_emu.isa.text import parse_integer

__all__: list[str] = []

TOPIC = "moving"


def _engine_and_count(text: str) -> tuple[Engine | None, int]:
    words = text.split()
    engine = None
    if words and words[0].upper() in Engine.__members__:
        engine = engine_named(words.pop(0))
    if len(words) > 1:
        raise InputError(f"the command takes an engine and a count, not {text!r}")
    return engine, count_in(words[0] if words else "")


@command("step s si", "step [ENGINE] [COUNT]", "step 3", topic=TOPIC, repeats=True)
def step(debugger: Debugger, text: str) -> Stop:
    """Execute one word of the scheduler's choice, or until an engine has executed one."""
    engine, count = _engine_and_count(text)
    return debugger.step(count) if engine is None else debugger.next(count, engine)


@command("next n ni", "next [ENGINE] [COUNT]", "next act", topic=TOPIC, repeats=True)
def next_(debugger: Debugger, text: str) -> Stop:
    """Execute one word of the current engine; the others go on in between."""
    engine, count = _engine_and_count(text)
    return debugger.next(count, engine)


@command("continue c", "continue [COUNT]", "continue", topic=TOPIC, repeats=True)
def continue_(debugger: Debugger, text: str) -> Stop:
    """Run until a breakpoint, a fault or the end stops it."""
    return debugger.cont(count_in(text))


@command("until u advance", "until [LOCATION]", "until act:2", topic=TOPIC, repeats=True)
def until(debugger: Debugger, text: str) -> Stop:
    """Run to a word, or without a location past this one: out of a loop."""
    return debugger.until(text or None)


@command("finish fin", "finish", "finish", topic=TOPIC)
def finish(debugger: Debugger, text: str) -> Stop:
    """Run until the stream of the current engine has ended."""
    return debugger.finish()


@command("goto", "goto STEP", "goto 0", topic=TOPIC)
def goto(debugger: Debugger, text: str) -> Stop:
    """Go to the moment at which STEP words have run, forward or back, past all breakpoints."""
    return debugger.goto(parse_integer(text, "step", 0, 1 << 40))


@command("run r", "run", "run", topic=TOPIC)
def run(debugger: Debugger, text: str) -> Stop:
    """Go back to the start and run until something stops it."""
    debugger.goto(debugger.timeline.start)
    return debugger.cont()


@command("reverse-step rs rsi", "reverse-step [COUNT]", "rs 2", topic=TOPIC, repeats=True)
def reverse_step(debugger: Debugger, text: str) -> Stop:
    """Take the last word back, on whatever engine it ran."""
    return debugger.reverse_step(count_in(text))


@command("reverse-next rn rni", "reverse-next [ENGINE] [COUNT]", "rn", topic=TOPIC, repeats=True)
def reverse_next(debugger: Debugger, text: str) -> Stop:
    """Take back until a word of the current engine was taken back."""
    engine, count = _engine_and_count(text)
    return debugger.reverse_next(count, engine)


@command("reverse-continue rc", "reverse-continue", "rc", topic=TOPIC, repeats=True)
def reverse_continue(debugger: Debugger, text: str) -> Stop:
    """Take words back until a breakpoint or watchpoint stops it, or the start is reached."""
    return debugger.reverse_continue()


@command("engine thread t", "engine [NAME]", "engine act", topic=TOPIC)
def engine(debugger: Debugger, text: str) -> Outcome:
    """Choose the engine that commands are about; without a name follow the one that goes on."""
    debugger.select(engine_named(text) if text else None)
    return Outcome(f"engine {debugger.engine.name.lower()}")


@command("record", "record on|off", "record off", topic=TOPIC)
def record(debugger: Debugger, text: str) -> Outcome:
    """Record what going back needs (the default), or stop recording and run faster."""
    if text not in ("on", "off"):
        raise InputError(f"record must be on or off, not {text!r}")
    debugger.timeline.set_recording(text == "on")
    return Outcome(f"recording is {text}; steps before {debugger.timeline.start} are fixed")
