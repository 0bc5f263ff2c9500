"""Which handler executes an opcode, and the stations on the way to it (design.md 2).

Handler and worker names and log words: seeds and activation-tables.md 10.5 [observed].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from neuron_emu.engines import (
    accumulator_read,
    activation,
    control,
    everyday,
    exponential,
    register_words,
    tensor_scalar,
)
from neuron_emu.engines.core import EngineState, Prepared, Problem
from neuron_emu.generation import Generation
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.families.activation import ACTIVATE, ACTIVATE_QUANTIZE
from neuron_emu.isa.families.activation2 import ACTIVATE2, ACTIVATE_MULTIPASS
from neuron_emu.isa.families.control import (
    ACTIVATION_TABLE_LOAD,
    DRAIN,
    HALT,
    INSTRUCTION_FLUSH,
    NOP,
    NOTIFY,
    PSEUDO_INST,
)
from neuron_emu.isa.families.event_semaphore import (
    EVENT_SEMAPHORE,
    EVENT_SEMAPHORE_RANGE_CLEAR,
)
from neuron_emu.isa.families.pseudo import PSEUDO_OPCODES
from neuron_emu.isa.families.register_words import ALU_OP, COMPARE_BRANCH, MOVE
from neuron_emu.isa.families.tensor_scalar import EXPONENTIAL
from neuron_emu.isa.families.unpublished import (
    BRANCH_PREFETCH_HINT,
    ENGINE_NOP,
    MOVE_SHAPE,
    POLL_SEM,
    SET_ORDERING_MODE,
    TEST_EVENT_SEM,
    WRITE,
)
from neuron_emu.isa.opcodes import engines_of, opcode_name

__all__ = ["KERNELS", "Kernel", "find_kernel", "route_stations"]

ACT = frozenset((Engine.ACT, Engine.DVE))
ANY = frozenset(Engine)


@frozen(kw_only=True)
class Kernel:
    """One kernel slot: the handler of an opcode.

    `function` is the activation function that must be resident, or what reads it from the word;
    `log` the words that the firmware writes when the handler runs.
    """

    handler: str
    prepare: Callable[[Any, EngineState], Prepared | Problem]
    engines: frozenset[Engine] = ANY
    worker: str | None = None
    function: str | Callable[[Any, EngineState], str | None] | None = None
    log: tuple[str, ...] = ()

    def function_of(self, record: Any, state: EngineState) -> str | None:
        """Return the activation function that a word needs, None when it needs none."""
        return self.function(record, state) if callable(self.function) else self.function


_CONTROL = Kernel(handler="Control", prepare=control.prepare_control)
_UNPUBLISHED = Kernel(handler="unpublished", prepare=control.prepare_unpublished)
_LOADER = Kernel(handler="Loader", prepare=control.prepare_loader_mark)


def _tensor_scalar(
    handler: str,
    *,
    worker: str = "Tensor-Scalar",
    cache: bool = False,
    engines: frozenset[Engine] = frozenset((Engine.DVE,)),
) -> Kernel:
    """Return the slot of a Tensor-Scalar opcode (dve-tensor-scalar.md 4)."""
    return Kernel(
        handler=handler,
        worker=worker,
        log=(f"S: {worker}",),
        engines=engines,
        prepare=tensor_scalar.prepare_cache if cache else tensor_scalar.prepare,
    )


KERNELS: dict[int, Kernel] = {
    EXPONENTIAL: Kernel(
        handler="Exponential",
        worker="Tensor-Scalar",
        log=("S: Exponential", "S: Tensor-Scalar"),
        function="exp",
        engines=frozenset((Engine.DVE,)),
        prepare=exponential.prepare,
    ),
    # activation-tables.md 1: the ACT firmware has it from CAYMAN on.
    0x43: _tensor_scalar("TensorScalarArith", engines=ACT),
    0x53: _tensor_scalar("TensorScalarBitvec"),
    0x44: _tensor_scalar("TensorScalarPtrArith", worker="Tensor-Scalar-PTR"),
    0x54: _tensor_scalar("TensorScalarPtrBitvec", worker="Tensor-Scalar-PTR"),
    0x93: _tensor_scalar("TransposeTensorScalarArith"),
    0x9A: _tensor_scalar("TensorScalarCacheReduce", cache=True),
    0xE6: _tensor_scalar("TensorScalarCacheCumulative", cache=True),
    ACTIVATE: Kernel(
        handler="Activate",
        engines=ACT,
        function=activation.function_of,
        prepare=activation.prepare_activate,
    ),
    ACTIVATE_QUANTIZE: Kernel(
        handler="ActivateQuantize",
        engines=ACT,
        function=activation.function_of,
        prepare=activation.prepare_quantize,
    ),
    ACTIVATE2: Kernel(
        handler="Activate2",
        engines=ACT,
        function=activation.function_of,
        prepare=activation.prepare_activate2,
    ),
    ACTIVATE_MULTIPASS: Kernel(
        handler="ActivateMultipass", engines=ACT, prepare=activation.prepare_multipass
    ),
    ACTIVATION_TABLE_LOAD: Kernel(
        handler="ActivationTableLoad", engines=ACT, prepare=control.prepare_table_load
    ),
    0x24: Kernel(
        handler="ActivationReadAccumulator", engines=ACT, prepare=accumulator_read.prepare
    ),
    0x9B: Kernel(
        handler="DveReadAccumulator",
        engines=frozenset((Engine.DVE,)),
        prepare=accumulator_read.prepare,
    ),
    **dict.fromkeys((HALT, DRAIN, INSTRUCTION_FLUSH, NOP, NOTIFY), _CONTROL),
    **dict.fromkeys((ENGINE_NOP, EVENT_SEMAPHORE, BRANCH_PREFETCH_HINT), _CONTROL),
    **dict.fromkeys((WRITE, SET_ORDERING_MODE, MOVE_SHAPE, POLL_SEM, TEST_EVENT_SEM), _UNPUBLISHED),
    **dict.fromkeys(PSEUDO_OPCODES, _LOADER),
    EVENT_SEMAPHORE_RANGE_CLEAR: Kernel(
        handler="EventSemaphoreRangeClear", prepare=control.prepare_range_clear
    ),
    MOVE: Kernel(handler="Move", prepare=register_words.prepare_move),
    ALU_OP: Kernel(handler="AluOp", prepare=register_words.prepare_alu),
    COMPARE_BRANCH: Kernel(handler="Branch", prepare=register_words.prepare_branch),
    PSEUDO_INST: Kernel(handler="Loader", prepare=control.prepare_pseudo),
    **{
        opcode: Kernel(
            handler=handler,
            prepare=prepare,
            engines=ANY if opcode in everyday.ANY_ENGINE else frozenset((Engine.DVE,)),
        )
        for opcode, (handler, prepare) in everyday.HANDLERS.items()
    },
}


def find_kernel(opcode: int, engine: Engine, generation: Generation) -> Kernel | Problem:
    """Return the handler of an opcode on an engine, or why nothing executes it."""
    name = f"{opcode_name(opcode)} (opcode {opcode:#04x})"
    if opcode not in generation.opcodes:
        return Problem("opcode", f"{name} is no opcode of {generation.name}")
    if opcode == EXPONENTIAL and not generation.has_exponential:
        return Problem("opcode", unwired_sentence(generation))
    kernel = KERNELS.get(opcode)
    if kernel is None:
        return Problem("no_model", f"{name} decodes, but no model executes it yet")
    if engine not in kernel.engines:
        takers = ", ".join(sorted(e.name.lower() for e in kernel.engines))
        if engine in engines_of(opcode, generation.core_version):
            why = f"is taken by {engine.name.lower()}, but is modelled on {takers} only"
            return Problem("no_model", f"{name} {why}")
        return Problem("opcode", f"{name} executes on {takers}, not on {engine.name.lower()}")
    return kernel


def unwired_sentence(generation: Generation) -> str:
    """Say why EXPONENTIAL does not execute on a generation; the CAM is shown, never the reason."""
    base = generation.dve_dispatch_base
    if base is None:
        table = "no page shows a dispatch entry for it"
    else:
        last = base + generation.dve_dispatch_entries - 1
        table = f"the DVE's dispatch table covers opcodes {base:#04x} to {last:#04x}"
    if generation.dve_cam is None:
        cam = "there is no PROF_CAM"
    else:
        cam = "the PROF_CAM does not arm it: it hits the wildcard"
    return (
        f"EXPONENTIAL is reserved on {generation.name}, not wired: no validator is bound to it and"
        f" {table} ({cam})"
    )


def route_stations(
    opcode: int, kernel: Kernel, engine: Engine, generation: Generation
) -> list[tuple[str, dict[str, Any]]]:
    """Return the stations before the handler: sequencer, kernel slot and PROF_CAM."""
    sequencer: dict[str, Any] = {"opcode": f"{opcode:#04x}", "name": opcode_name(opcode)}
    base = generation.dve_dispatch_base
    if engine is Engine.DVE and base is not None and opcode >= base:
        sequencer["dispatch_entry"] = opcode - base
    slot: dict[str, Any] = {"handler": kernel.handler}
    if kernel.worker:
        slot["worker"] = kernel.worker
    if kernel.log:
        slot["log"] = list(kernel.log)
    stations = [("sequencer", sequencer), ("kernel", slot)]
    if engine is Engine.DVE and generation.dve_cam is not None:
        stations.append(("cam", _cam_detail(opcode, generation)))
    return stations


def _cam_detail(opcode: int, generation: Generation) -> dict[str, Any]:
    cam = generation.dve_cam
    if cam is None or opcode not in cam.armed:
        return {"armed": False, "slot": "wildcard"}
    offset = cam.slot_of(opcode)
    return {"armed": True, "slot": "unpublished" if offset is None else f"{offset:#x}"}
