"""Requests that begin and end a session, set breakpoints, and move the machine."""

from __future__ import annotations

import os
import re
from typing import Any

from neuron_emu import __version__
from neuron_emu.debug.dap.adapter import (
    Adapter,
    Arguments,
    Reply,
    objects_of,
    request,
    source_of,
    word_of,
    words_of,
)
from neuron_emu.debug.dap.breakpoints import FILTERS, Breakpoints
from neuron_emu.debug.dap.sources import (
    stream_sources,
)
from neuron_emu.debug.dap.variables import Variables
from neuron_emu.debug.loading import load_debugger
from neuron_emu.debug.records import Stop, StopReason
from neuron_emu.errors import InputError
from neuron_emu.generation import generation_named
from neuron_emu.isa.program import engine_named

__all__: list[str] = []


# --- the beginning and the end ------------------------------------------------------------------


@request("initialize")
def _initialize(adapter: Adapter, arguments: Arguments) -> Reply:
    adapter.first_line = 1 if arguments.get("linesStartAt1", True) else 0
    supported = (
        *("ConfigurationDoneRequest", "FunctionBreakpoints", "ConditionalBreakpoints"),
        *("HitConditionalBreakpoints", "EvaluateForHovers", "StepBack", "RestartRequest"),
        *("ExceptionInfoRequest", "TerminateRequest", "ReadMemoryRequest", "DisassembleRequest"),
        *("InstructionBreakpoints", "DataBreakpoints", "SteppingGranularity"),
        *("LoadedSourcesRequest", "CompletionsRequest"),
    )
    filters = [
        {"filter": name, "label": label, "default": False, "supportsCondition": False}
        for name, label in FILTERS
    ]
    return Reply(
        {f"supports{name}": True for name in supported} | {"exceptionBreakpointFilters": filters}
    )


@request("launch")
def _launch(adapter: Adapter, arguments: Arguments) -> Reply:
    """Load a program or scenario; the editor then sets breakpoints and says configurationDone."""
    programs = words_of(arguments, "program") or words_of(arguments, "programs")
    if not programs:
        raise InputError("launch must name a program: a .bin, .asm or .toml file")
    directory = arguments.get("cwd")
    if isinstance(directory, str) and directory:
        try:
            os.chdir(directory)
        except OSError as error:
            raise InputError(f"cwd cannot be entered: {error.strerror}", place=directory) from None
    generation = arguments.get("generation")
    debugger = load_debugger(
        programs,
        generation=generation_named(str(generation)) if generation else None,
        engine=engine_named(str(arguments.get("engine") or "dve")),
        loads=words_of(arguments, "load"),
        preload=word_of(arguments, "preload"),
        tables=word_of(arguments, "tables"),
        policies=words_of(arguments, "policy"),
        interleave=_seed(arguments.get("interleave")),
    )
    adapter.loaded = debugger
    adapter.sources = stream_sources(debugger)
    adapter.breakpoints = Breakpoints(debugger, adapter.sources)
    adapter.variables = Variables(debugger)
    adapter.debugs = not arguments.get("noDebug")
    adapter.stops_on_entry = bool(arguments.get("stopOnEntry", True)) and adapter.debugs
    return Reply(then=lambda: adapter.event("initialized"))


def _seed(value: Any) -> int | None:
    if value is None or isinstance(value, int):
        return value
    raise InputError(f"interleave must be a whole number, not {value!r}")


@request("configurationDone")
def _configuration_done(adapter: Adapter, arguments: Arguments) -> Reply:
    debugger = adapter.debugger
    if adapter.stops_on_entry:
        return Reply(then=lambda: adapter.moving(debugger.where))
    return Reply(then=lambda: adapter.moving(debugger.cont))


@request("restart")
def _restart(adapter: Adapter, arguments: Arguments) -> Reply:
    debugger = adapter.debugger
    debugger.interrupted = False

    def again() -> Stop:
        stop = debugger.goto(debugger.timeline.start)
        return stop if adapter.stops_on_entry else debugger.cont()

    return Reply(then=lambda: adapter.moving(again))


@request("terminate")
def _terminate(adapter: Adapter, arguments: Arguments) -> Reply:
    return Reply(then=lambda: adapter.event("terminated"))


@request("disconnect")
def _disconnect(adapter: Adapter, arguments: Arguments) -> Reply:
    adapter.is_over = True
    return Reply()


# --- breakpoints --------------------------------------------------------------------------------


def _points(adapter: Adapter) -> Breakpoints:
    if adapter.breakpoints is None:
        raise InputError("a program must be launched before breakpoints are set")
    return adapter.breakpoints


@request("setBreakpoints")
def _set_breakpoints(adapter: Adapter, arguments: Arguments) -> Reply:
    points = _points(adapter)
    source = arguments.get("source")
    wanted = objects_of(arguments, "breakpoints")
    found = source_of(adapter, source if isinstance(source, dict) else {})
    if found is None:
        message = "no stream of the program comes from this source"
        return Reply({"breakpoints": [{"verified": False, "message": message} for _ in wanted]})
    made = points.set_source(found, wanted, adapter.first_line)
    return Reply({"breakpoints": made})


@request("setFunctionBreakpoints")
def _set_functions(adapter: Adapter, arguments: Arguments) -> Reply:
    return Reply(
        {"breakpoints": _points(adapter).set_functions(objects_of(arguments, "breakpoints"))}
    )


@request("setInstructionBreakpoints")
def _set_instructions(adapter: Adapter, arguments: Arguments) -> Reply:
    wanted = objects_of(arguments, "breakpoints")
    return Reply({"breakpoints": _points(adapter).set_instructions(wanted)})


@request("setExceptionBreakpoints")
def _set_exceptions(adapter: Adapter, arguments: Arguments) -> Reply:
    return Reply(
        {"breakpoints": _points(adapter).set_exceptions(list(words_of(arguments, "filters")))}
    )


@request("dataBreakpointInfo")
def _data_info(adapter: Adapter, arguments: Arguments) -> Reply:
    """A variable can be watched by the expression that names it."""
    name = str(arguments.get("name") or "")
    reference, target = arguments.get("variablesReference"), name
    if isinstance(reference, int) and reference and adapter.variables is not None:
        for variable in adapter.variables.children(reference) or []:
            if variable["name"] == name:
                target = str(variable.get("evaluateName") or name)
    if not re.search(r"[\[@:]", target):
        return Reply({"dataId": None, "description": f"{name} cannot be watched"})
    return Reply(
        {
            "dataId": target,
            "description": target,
            "accessTypes": ["read", "write", "readWrite"],
            "canPersist": True,
        }
    )


@request("setDataBreakpoints")
def _set_data(adapter: Adapter, arguments: Arguments) -> Reply:
    return Reply({"breakpoints": _points(adapter).set_data(objects_of(arguments, "breakpoints"))})


# --- moving -------------------------------------------------------------------------------------


@request("continue")
def _continue(adapter: Adapter, arguments: Arguments) -> Reply:
    debugger = adapter.debugger
    if debugger.machine.is_finished and debugger.last_stop.reason == StopReason.END:
        return Reply({"allThreadsContinued": True}, then=adapter.finished)
    return Reply({"allThreadsContinued": True}, then=lambda: adapter.moving(debugger.cont))


@request("reverseContinue")
def _reverse_continue(adapter: Adapter, arguments: Arguments) -> Reply:
    return Reply(then=lambda: adapter.moving(adapter.debugger.reverse_continue))


@request("next")
def _next(adapter: Adapter, arguments: Arguments) -> Reply:
    engine = adapter.engine_of(arguments)
    return Reply(then=lambda: adapter.moving(lambda: adapter.debugger.next(1, engine)))


@request("stepIn")
def _step_in(adapter: Adapter, arguments: Arguments) -> Reply:
    return Reply(then=lambda: adapter.moving(adapter.debugger.step))


@request("stepOut")
def _step_out(adapter: Adapter, arguments: Arguments) -> Reply:
    engine = adapter.engine_of(arguments)

    def out() -> Stop:
        adapter.debugger.select(engine)
        try:
            return adapter.debugger.finish()
        finally:
            adapter.debugger.select(None)

    return Reply(then=lambda: adapter.moving(out))


@request("stepBack")
def _step_back(adapter: Adapter, arguments: Arguments) -> Reply:
    return Reply(then=lambda: adapter.moving(adapter.debugger.reverse_step))


@request("pause")
def _pause(adapter: Adapter, arguments: Arguments) -> Reply:
    """The reading thread has asked the run to end already; nothing is left to do here."""
    adapter.debugger.interrupted = False
    return Reply()


@request("attach")
def _attach(adapter: Adapter, arguments: Arguments) -> Reply:
    raise InputError(f"neuron-emu {__version__} launches programs; there is nothing to attach to")
