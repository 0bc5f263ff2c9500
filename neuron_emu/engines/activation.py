"""ACTIVATE 0x21, ACTIVATE_QUANTIZE 0x22, ACTIVATE2 0x25 and the refusal of 0x26.

Sources: activation-tables.md 2.2 to 2.7 and 3. Each opcode says in a `_Plan` what its fields mean;
the rest is the function unit's. v5 runs the same words on the DVE lane (11).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from attrs import define, frozen

from neuron_emu.engines.core import (
    Effects,
    EngineState,
    Operands,
    Problem,
    Read,
    registers_of,
    unequal_counts,
)
from neuron_emu.engines.function_unit import (
    IDENTITIES,
    STAGE_OPS,
    FunctionUnit,
    Parameter,
    Reduction,
    Scalars,
    Stage,
    parameter,
    reduced,
)
from neuron_emu.engines.stream import in_stream_order
from neuron_emu.errors import InputError
from neuron_emu.isa.alu_ops import op_name
from neuron_emu.isa.enums import (
    AccumulatorCommand,
    AluOp,
    DType,
    ImmediateSource,
    ReverseOperands,
    member,
)
from neuron_emu.isa.families.activation import (
    Activate,
    ActivateQuantize,
    BiasSource,
)
from neuron_emu.isa.families.activation2 import Activate2, ActivateMultipass, ReduceCommand
from neuron_emu.isa.records import Immediate, Pattern
from neuron_emu.memory import Bits, Operand, stream_order_matters
from neuron_emu.numerics import to_float32
from neuron_emu.pwp.evaluate import CompiledProfile

__all__ = [
    "PreparedActivation",
    "function_of",
    "prepare_activate",
    "prepare_activate2",
    "prepare_multipass",
    "prepare_quantize",
]

Float32s = npt.NDArray[np.float32]
_SUNDA = 2


@define(eq=False)
class PreparedActivation:
    """One word of the ACT lane with its operands."""

    unit: FunctionUnit
    source: Operand
    destination: Operand
    parameters: tuple[Parameter, ...]
    slope: Parameter | None
    command: str
    reduction: Reduction
    is_overlapping: bool
    uses_accumulator: int
    registers: tuple[int, ...]
    is_reusable: bool

    def unwritten_reads(self) -> list[int]:
        """Return the first unwritten byte of the source, each pointer, a destination's index."""
        pointers = (*self.parameters, self.slope, self.reduction.seed)
        found = [self.source.first_unwritten()]
        found += [p.first_unwritten() for p in pointers if p is not None]
        found.append(self.destination.first_unwritten(index_only=True))
        return [address for address in found if address is not None]

    def operands(self) -> Operands:
        """Return the source, the scalars, the start of a reduction, and what is written."""
        reduction = self.reduction
        scalars = [p.as_read() for p in (*self.parameters, self.slope, reduction.seed) if p]
        if reduction.resets:
            identity = np.array([IDENTITIES[reduction.op]]).view(np.uint32)
            scalars.append(Read(DType.FP32, None, identity))
        source = Read(self.unit.in_dtype, self.source)
        return Operands((source, *scalars), self.unit.out_dtype)

    def execute(self) -> Effects | Problem:
        """Compute the destination and the accumulator of one execution."""
        scalars = self._scalars()
        try:
            if self.is_overlapping:
                bits, results = self._in_stream_order(scalars)
            else:
                bits, results = self.unit.compute(self.source.read(), scalars)
        except InputError as error:
            return Problem("tables", str(error))
        state = self.unit.state
        channels = self.source.channels
        after = reduced(state.accumulator, self.reduction, channels, results, state.policy)
        return Effects(((self.destination, bits),), after)

    def _in_stream_order(self, scalars: Scalars) -> tuple[Bits, Float32s]:
        pieces: list[Float32s] = []

        def compute(columns: list[Bits]) -> Bits:
            bits, results = self.unit.compute_directly(columns[0], scalars)
            pieces.append(results)
            return bits

        bits = in_stream_order((self.source,), self.destination, compute)
        return bits, np.concatenate(pieces, axis=1)

    def _scalars(self) -> Scalars:
        slope = None if self.slope is None else self.slope.floats()
        return Scalars(tuple(p.floats() for p in self.parameters), slope)

    def stations(self, effects: Effects) -> list[tuple[str, dict[str, Any]]]:
        """Return what happened to the first element of lane 0, and the lane's accumulator."""
        unit, scalars = self.unit, self._scalars()
        stages = tuple(values[:1] for values in scalars.stages)
        first = Scalars(stages, None if scalars.slope is None else scalars.slope[:1])
        stored = self.source.read_element(0)[:1, None]
        v = unit.argument(stored, first)
        y = unit.function(v, first.slope)
        affine = {
            "input": f"{stored[0, 0]:#x}",
            "x": _hex(to_float32(stored, unit.in_dtype, unit.state.formats)),
            **{
                p.name: _hex(value)
                for p, value in zip(self.parameters, stages, strict=True)
                if p.name != _UNUSED.name
            },
            "v": _hex(v),
        }
        found: list[tuple[str, dict[str, Any]]] = [("affine", affine)]
        found += unit.table_stations(v[0])
        found.append(("result", {"evaluator": unit.state.policy.evaluator, "y": _hex(y)}))
        if unit.requantise is not None:
            scale, zero = unit.requantise
            detail = {"quant_scale": _hex(scale), "quant_zero": _hex(zero)}
            found.append(("requantise", {**detail, "value": _hex(unit.requantised(y))}))
        return found + self._ends(effects)

    def _ends(self, effects: Effects) -> list[tuple[str, dict[str, Any]]]:
        (destination, bits), *_ = effects.writes
        written = {"dtype": self.unit.out_dtype.word, "bits": f"{bits[0, 0]:#x}"}
        found: list[tuple[str, dict[str, Any]]] = [
            ("convert", written),
            ("write", {"elements": int(bits.size), "space": destination.space.name}),
        ]
        if effects.accumulator is not None:
            value = _hex(effects.accumulator.values[:1])
            found.append(("accumulator", {"command": self.command, "lane_0": value}))
        return found


def _hex(value: Float32s) -> str:
    """Return the bits of the first float32 of an array as text."""
    return f"{int(np.ascontiguousarray(value).reshape(-1).view(np.uint32)[0]):#010x}"


# --- what the fields of a word mean -----------------------------------------------------------


class _Spec(NamedTuple):
    """A scalar field of a word, by plain IMM_SRC."""

    name: str
    source: int
    immediate: Immediate
    dtype: int = DType.FP32


_UNUSED = _Spec("unused", ImmediateSource.INSTRUCTION, Immediate(word=0))


@frozen(kw_only=True)
class _Plan:
    """One word in the terms of the function unit."""

    function: int
    in_dtype: int
    out_dtype: int
    stages: tuple[Stage, ...]
    parameters: tuple[_Spec, ...]
    slope: _Spec | None
    seed: _Spec | None = None
    command: str = ""
    op: AluOp = AluOp.ADD
    resets: bool = False
    folds: bool = False
    requantise: tuple[Float32s, Float32s] | None = None


def function_of(word: Activate | ActivateQuantize | Activate2, state: EngineState) -> str | None:
    """Return the catalog name of a word's function, None for a code that no table has."""
    return state.library.function_of(word.activation_func)


def prepare_activate(word: Activate, state: EngineState) -> PreparedActivation | Problem:
    """Make an ACTIVATE word ready: dst = f(src * scale + bias) (2.2, 3.1)."""
    command = member(AccumulatorCommand, word.accumulator_cmd)
    if command is None:
        return Problem("no_model", f"accumulator_cmd {word.accumulator_cmd} has no meaning")
    imm = _imm(word, state)
    return _prepare(
        word,
        state,
        _Plan(
            function=word.activation_func,
            in_dtype=word.in_bias_dtype.first,
            out_dtype=word.out_dtype,
            stages=(Stage(AluOp.MULT), Stage(AluOp.ADD)),
            parameters=(_Spec("scale", word.scale_src, word.scale_value), _addend(word, state)),
            slope=imm,
            seed=imm if command == AccumulatorCommand.LOAD_ACCUMULATE else None,
            command=command.name,
            resets=command in (AccumulatorCommand.ZERO, AccumulatorCommand.ZERO_ACCUMULATE),
            folds=command not in (AccumulatorCommand.IDLE, AccumulatorCommand.ZERO),
        ),
    )


def _imm_source(word: Activate, state: EngineState) -> int:
    """Return the plain source of `imm`: header and emitter disagree (policy `act_imm_src`)."""
    if state.policy.act_imm_src == "emitter" and word.imm_src in tuple(BiasSource):
        return BiasSource(word.imm_src).plain
    return word.imm_src


def _adds_imm(word: Activate, state: EngineState) -> bool:
    """Tell whether `imm` takes the place of the bias: for the v2 reciprocal (3.2)."""
    is_reciprocal = function_of(word, state) == "reciprocal"
    return is_reciprocal and state.generation.core_version == _SUNDA


def _imm(word: Activate, state: EngineState) -> _Spec:
    """Return the scalar `imm`.

    The compiler marks the literal 0 of the v2 reciprocal with imm_src 1, which the header calls a
    pointer: that zero is taken as the value it stands for.
    """
    source = _imm_source(word, state)
    is_marked = word.imm_src == ImmediateSource.POINTER and not word.imm.word
    if is_marked and _adds_imm(word, state):
        source = ImmediateSource.INSTRUCTION
    return _Spec("imm", source, word.imm)


def _addend(word: Activate, state: EngineState) -> _Spec:
    """Return what is added after the multiplication: the bias, or `imm` in its place."""
    if _adds_imm(word, state):
        return _imm(word, state)
    source_n = member(BiasSource, word.bias_src_n)
    if source_n is None or source_n == BiasSource.INSTRUCTION:
        return _Spec("bias", ImmediateSource.INSTRUCTION, word.bias)
    return _Spec("bias", source_n.plain, word.bias, word.in_bias_dtype.second)


def prepare_quantize(word: ActivateQuantize, state: EngineState) -> PreparedActivation | Problem:
    """Make an ACTIVATE_QUANTIZE word ready: quant_scale * f(src * dequant_scale + bias) + zero."""
    inline, pointer = ImmediateSource.INSTRUCTION, ImmediateSource.POINTER
    bias = _Spec("bias", pointer, word.bias_addr, word.in_bias_dtype.second)
    return _prepare(
        word,
        state,
        _Plan(
            function=word.activation_func,
            in_dtype=word.in_bias_dtype.first,
            out_dtype=word.out_dtype,
            stages=(Stage(AluOp.MULT), Stage(AluOp.ADD)),
            parameters=(_Spec("dequant_scale", inline, word.dequant_scale_value), bias),
            slope=None,
            requantise=(_float(word.quant_scale_value), _float(word.quant_zero_value)),
        ),
    )


def _float(immediate: Immediate) -> Float32s:
    return np.array([immediate.word], np.uint32).view(np.float32)


def prepare_activate2(word: Activate2, state: EngineState) -> PreparedActivation | Problem:
    """Make an ACTIVATE2 word ready: f((src op0 imm0) op1 imm1), then the reduction (2.6, 3.4)."""
    command = member(ReduceCommand, word.reduce_cmd)
    if command is None or command == ReduceCommand.LOAD_REDUCE:
        return Problem("no_model", f"reduce_cmd {word.reduce_cmd} is none of ACTIVATE2")
    bad = [op for op in (word.op0, word.op1) if op not in STAGE_OPS]
    if command != ReduceCommand.IDLE and word.reduce_op not in IDENTITIES:
        bad.append(word.reduce_op)
    if bad:
        return Problem("no_model", f"{op_name(bad[0])} is none of ACTIVATE2 in its place")
    imm0 = _Spec("imm0", word.imm0_src, word.imm0, word.imm_dtype)
    imm1 = _Spec("imm1", word.imm1_src, word.imm1, word.imm_dtype)
    return _prepare(
        word,
        state,
        _Plan(
            function=word.activation_func,
            in_dtype=word.in_dtype,
            out_dtype=word.out_dtype,
            stages=(
                Stage(AluOp(word.op0), bool(word.reverse_operands & ReverseOperands.FIRST)),
                Stage(AluOp(word.op1), bool(word.reverse_operands & ReverseOperands.SECOND)),
            ),
            # A skipped stage does not read its scalar.
            parameters=(
                imm0 if word.op0 != AluOp.BYPASS else _UNUSED,
                imm1 if word.op1 != AluOp.BYPASS else _UNUSED,
            ),
            slope=_Spec("relu_param", word.relu_param_src, word.relu_param, word.imm_dtype),
            command=command.name,
            op=AluOp(word.reduce_op) if command != ReduceCommand.IDLE else AluOp.ADD,
            resets=command in (ReduceCommand.RESET, ReduceCommand.RESET_REDUCE),
            folds=command in (ReduceCommand.REDUCE, ReduceCommand.RESET_REDUCE),
        ),
    )


def prepare_multipass(word: ActivateMultipass, state: EngineState) -> Problem:
    """Refuse ACTIVATE_MULTIPASS: what prev_pass does is published nowhere (2.7)."""
    return Problem(
        "no_model",
        "unsupported opcode: ACTIVATE_MULTIPASS reads prev_pass, whose meaning no page gives; no"
        " firmware handles the word and no compiler emits it",
    )


# --- from a plan to a prepared word -----------------------------------------------------------


def _prepare(
    word: Activate | ActivateQuantize | Activate2, state: EngineState, plan: _Plan
) -> PreparedActivation | Problem:
    """Find the resident profile and resolve the operands and scalars of a plan."""
    profile = _profile(word, state, plan)
    operands = _operands(word.src, word.dst, word.num_active_channels, state, plan)
    if isinstance(profile, Problem):
        return profile
    if isinstance(operands, Problem):
        return operands
    in_dtype, out_dtype, source, destination = operands
    slope = plan.slope if profile.table.takes_slope else None
    wanted = (*plan.parameters, slope or _UNUSED, plan.seed or _UNUSED)
    scalars = _scalars(wanted, source.channels, state)
    if isinstance(scalars, Problem):
        return scalars
    *parameters, slope_value, seed = scalars
    reduction = Reduction(plan.op, plan.resets, plan.folds, seed if plan.seed else None)
    return unequal_counts(source, destination) or PreparedActivation(
        unit=FunctionUnit(state, profile, in_dtype, out_dtype, plan.stages, plan.requantise),
        source=source,
        destination=destination,
        parameters=tuple(parameters),
        slope=slope_value if slope else None,
        command=plan.command,
        reduction=reduction,
        is_overlapping=stream_order_matters(source, destination),
        uses_accumulator=source.channels if reduction.needs_value else 0,
        registers=registers_of(word.src, word.dst, *((s.source, s.immediate) for s in wanted)),
        is_reusable=not (word.src.start.is_indirect or word.dst.start.is_indirect),
    )


def _profile(
    word: Activate | ActivateQuantize | Activate2, state: EngineState, plan: _Plan
) -> CompiledProfile | Problem:
    name = function_of(word, state)
    if name is None:
        return Problem("tables", f"activation_func {plan.function:#04x} names no known function")
    profile = state.compiled(name)
    if isinstance(profile, CompiledProfile) and profile.table.takes_slope and plan.slope is None:
        return Problem("no_model", f"{name} has no slope in this word: it holds no imm")
    return profile


def _operands(
    src: Pattern, dst: Pattern, channels: int, state: EngineState, plan: _Plan
) -> tuple[DType, DType, Operand, Operand] | Problem:
    in_dtype, out_dtype = state.dtype(plan.in_dtype), state.dtype(plan.out_dtype)
    if isinstance(in_dtype, Problem):
        return in_dtype
    if isinstance(out_dtype, Problem):
        return out_dtype
    source = state.operand(src, in_dtype, channels)
    if isinstance(source, Problem):
        return source
    destination = state.operand(dst, out_dtype, channels)
    if isinstance(destination, Problem):
        return destination
    return in_dtype, out_dtype, source, destination


def _scalars(
    specs: tuple[_Spec, ...], channels: int, state: EngineState
) -> list[Parameter] | Problem:
    found = []
    for spec in specs:
        dtype = state.dtype(spec.dtype)
        if isinstance(dtype, Problem):
            return dtype
        one = parameter(state, spec.name, spec.source, spec.immediate, channels, dtype)
        if isinstance(one, Problem):
            return one
        found.append(one)
    return found
