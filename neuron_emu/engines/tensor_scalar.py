"""The Tensor-Scalar opcodes of the DVE: two ALU stages with scalars, transposed, folded or scanned.

    0x43 0x44 TENSOR_SCALAR      dst = convert((x op0 s0) op1 s1), in fp32
    0x53 0x54                    the same on raw bits
    0x93                         a 32 x 32 transposition of the source, then 0x43
    0x9A CACHE_REDUCE            dst = convert(x op0 s0), and the accumulator folds it by op1
    0xE6 CACHE_CUMULATIVE        dst = convert(acc) after each acc = (x op0 s0) op1 acc

Sources: dve-tensor-scalar.md 3.2 (scalars), 4 (opcodes), 5 (operations), 12 (switches).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define

from neuron_emu.engines import alu
from neuron_emu.engines.alu_bitvec import apply_words
from neuron_emu.engines.alu_integer import apply_int
from neuron_emu.engines.core import EngineState, Problem
from neuron_emu.engines.worker import (
    ACCUMULATING,
    Accumulation,
    Arrangement,
    Datapath,
    Latched,
    PreparedTensorScalar,
    Station,
    dtypes_of,
    first_float,
    prepare_word,
)
from neuron_emu.isa.alu_ops import (
    CACHE_REDUCE_OPS,
    GENERAL_BITVEC_OPS,
    INTEGER_BAND,
    UNARY_OPS,
    dve_integer_ops,
    general_arith_ops,
    op_name,
)
from neuron_emu.isa.enums import AluOp, DType, Engine
from neuron_emu.isa.families.tensor_scalar import BITVEC_OPCODES, POINTER_OPCODES, TensorScalar
from neuron_emu.memory import Bits, Operand
from neuron_emu.numerics import from_float32, storage_dtype, to_float32

__all__ = ["prepare", "prepare_cache", "transposed"]

_SCALAR_ENGINE_LIMITED = 3
"""Core version whose Scalar engine has TENSOR_SCALAR for three pairs of operations only."""
_ACT_OPS = frozenset(
    ((AluOp.MULT, AluOp.ADD), (AluOp.MULT, AluOp.BYPASS), (AluOp.ADD, AluOp.BYPASS))
)

Float32s = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]

TRANSPOSE = 0x93
CACHE_CUMULATIVE = 0xE6
TILE = 32
"""Channels and elements of a transposed tile (4.4)."""
_SIGNED: dict[DType, Any] = {DType.INT8: np.int8, DType.INT16: np.int16, DType.INT32: np.int32}
_UNSIGNED: dict[DType, Any] = {
    DType.UINT8: np.uint8,
    DType.UINT16: np.uint16,
    DType.UINT32: np.uint32,
}


# --- two stages --------------------------------------------------------------------------------


def _uses_scalar(op: int) -> bool:
    return op != AluOp.BYPASS and op not in UNARY_OPS


@define(eq=False)
class _TwoStage:
    """What the datapaths of two stages share; they have nothing for the accumulator."""

    word: TensorScalar
    state: EngineState
    in_dtype: DType
    out_dtype: DType

    def is_reversed(self, stage: int) -> bool:
        """Tell whether the scalar is the left operand of a stage.

        BYPASS and operations of one operand take the stream's, swapped or not (4.1).
        """
        op = self.word.op1 if stage else self.word.op0
        return bool(self.word.reverse_operands >> stage & 1) and _uses_scalar(op)

    def described(self, scalars: Latched, x: str, first: str, second: str) -> list[Station]:
        """Return the stations of both stages from the texts of their values."""
        word = self.word
        stage_0 = {"op": op_name(word.op0), "x": x, "scalar": f"{scalars.first[0]:#x}", "y": first}
        stage_1 = {"op": op_name(word.op1), "scalar": f"{scalars.second[0]:#x}", "y": second}
        return [("stage_0", stage_0), ("stage_1", stage_1)]


@define(eq=False)
class ArithmeticDatapath(_TwoStage):
    """Two stages in fp32, each rounded by itself, and one conversion at the end."""

    def compute(
        self, bits: Bits, scalars: Latched, start: Float32s | None
    ) -> tuple[Bits, Float32s | None]:
        """Return output bits; see `Datapath`."""
        *_, result = self._stages(bits, scalars)
        state = self.state
        return from_float32(result, self.out_dtype, state.formats, random=state.random), None

    def _stages(self, bits: Bits, scalars: Latched) -> tuple[Float32s, Float32s, Float32s]:
        x = to_float32(bits, self.in_dtype, self.state.formats)
        first = self._stage(0, self.word.op0, x, scalars.first_float)
        return x, first, self._stage(1, self.word.op1, first, scalars.second_float)

    def _stage(self, stage: int, op: int, value: Float32s, scalar: Float32s) -> Float32s:
        if self.is_reversed(stage):
            return alu.apply(op, scalar, value, self.state.policy)
        return alu.apply(op, value, scalar, self.state.policy)

    def stations(self, bits: Bits, scalars: Latched) -> list[Station]:
        """Return the two stages, values as float32 bits."""
        x, first, second = self._stages(bits[:, None], scalars)
        return self.described(scalars, first_float(x), first_float(first), first_float(second))


@define(eq=False)
class BitvecDatapath(_TwoStage):
    """Two stages on raw bits, zero-extended to 32; the low bits are written.

    Between the stages a narrow element is cut to its width (policy `bitvec_stage_mask`).
    """

    def compute(
        self, bits: Bits, scalars: Latched, start: Float32s | None
    ) -> tuple[Bits, Float32s | None]:
        """Return output bits; see `Datapath`."""
        *_, result = self._stages(bits, scalars)
        return result.astype(storage_dtype(self.out_dtype)), None

    def _stages(self, bits: Bits, scalars: Latched) -> tuple[Words, Words, Words]:
        x = bits.astype(np.uint32)
        first = self._stage(0, self.word.op0, x, scalars.first[:, None])
        if self.state.policy.bitvec_stage_mask == "stage" and self.in_dtype.size_bytes < 4:
            first = first & np.uint32((1 << 8 * self.in_dtype.size_bytes) - 1)
        return x, first, self._stage(1, self.word.op1, first, scalars.second[:, None])

    def _stage(self, stage: int, op: int, value: Words, scalar: Words) -> Words:
        if self.is_reversed(stage):
            return apply_words(op, scalar, value, self.state.policy)
        return apply_words(op, value, scalar, self.state.policy)

    def stations(self, bits: Bits, scalars: Latched) -> list[Station]:
        """Return the two stages, values as bits."""
        texts = [f"{int(word[0, 0]):#x}" for word in self._stages(bits[:, None], scalars)]
        return self.described(scalars, *texts)


@define(eq=False)
class IntegerDatapath(_TwoStage):
    """Two stages of native integers (MAVERICK): 32-bit words that never pass through fp32.

    An element is sign- or zero-extended, a scalar is the raw 32-bit integer of the word or behind
    the pointer (5.2 [unknown: chosen]); policy `int_store` is about narrower destinations.
    """

    def compute(
        self, bits: Bits, scalars: Latched, start: Float32s | None
    ) -> tuple[Bits, Float32s | None]:
        """Return output bits; see `Datapath`."""
        *_, result = self._stages(bits, scalars)
        return self._stored(result), None

    def _stages(self, bits: Bits, scalars: Latched) -> tuple[Words, Words, Words]:
        x = bits.astype(np.uint32)
        if self.in_dtype in _SIGNED:
            x = bits.view(_SIGNED[self.in_dtype]).astype(np.int32).view(np.uint32)
        first = self._stage(0, self.word.op0, x, scalars.first[:, None])
        return x, first, self._stage(1, self.word.op1, first, scalars.second[:, None])

    def _stage(self, stage: int, op: int, value: Words, scalar: Words) -> Words:
        if op == AluOp.BYPASS:
            return value
        return apply_int(op, *((scalar, value) if self.is_reversed(stage) else (value, scalar)))

    def _stored(self, words: Words) -> Bits:
        storage = storage_dtype(self.out_dtype)
        if self.state.policy.int_store == "wrap":
            return words.astype(storage)
        wide = (words.view(np.int32) if self.in_dtype in _SIGNED else words).astype(np.int64)
        limits = np.iinfo({**_SIGNED, **_UNSIGNED}[self.out_dtype])
        kept: Bits = wide.clip(limits.min, limits.max).astype(storage)
        return kept

    def stations(self, bits: Bits, scalars: Latched) -> list[Station]:
        """Return the two stages, values as words."""
        texts = [f"{int(word[0, 0]):#x}" for word in self._stages(bits[:, None], scalars)]
        return self.described(scalars, *texts)


@define(eq=False)
class MoveDatapath(_TwoStage):
    """Two BYPASS of equal dtypes under policy `ts_identity_hub=raw`: the bits as they are."""

    def compute(
        self, bits: Bits, scalars: Latched, start: Float32s | None
    ) -> tuple[Bits, Float32s | None]:
        """Return the bits; see `Datapath`."""
        return bits, None

    def stations(self, bits: Bits, scalars: Latched) -> list[Station]:
        """Return two stages that change nothing."""
        text = f"{int(bits[0]):#x}"
        return self.described(scalars, text, text, text)


def transposed(bits: Bits) -> Bits:
    """Transpose tiles of 32 lanes by 32 elements in place of each other, [channels, n].

    `y[32g + i][32b + j] = x[32g + j][32b + i]`; both sizes must be multiples of 32.
    """
    channels, elements = bits.shape
    tiles = bits.reshape(channels // TILE, TILE, elements // TILE, TILE)
    return tiles.transpose(0, 3, 2, 1).reshape(channels, elements)


RESHAPE_BANK = Arrangement(transposed, TILE)
"""The bank in front of the Compute bank (4.4): a tile is read before its first element is written,
and scalars belong to the lane that computes."""


def prepare(word: TensorScalar, state: EngineState) -> PreparedTensorScalar | Problem:
    """Make a two-stage word ready: 0x43, 0x53, 0x44, 0x54 or 0x93."""
    dtypes = dtypes_of(word, state)
    if isinstance(dtypes, Problem):
        return dtypes
    opcode = word.header.opcode
    if state.engine is Engine.ACT and state.generation.core_version == _SCALAR_ENGINE_LIMITED:
        problem = _refused_on_act(word)
        if problem is not None:
            return problem
    datapath: Datapath | Problem = _two_stage(word, state, *dtypes)
    if isinstance(datapath, Problem):
        return datapath
    prepared = prepare_word(
        word,
        state,
        datapath,
        in_dtype=dtypes[0],
        scalar_dtype=dtypes[0] if opcode in BITVEC_OPCODES else DType.FP32,
        forces_pointers=opcode in POINTER_OPCODES,
        scalars_used=(_uses_scalar(word.op0), _uses_scalar(word.op1)),
        arrangement=RESHAPE_BANK if opcode == TRANSPOSE else None,
    )
    if opcode != TRANSPOSE or isinstance(prepared, Problem):
        return prepared
    return _untileable(prepared.source) or prepared


def _refused_on_act(word: TensorScalar) -> Problem | None:
    """Return why ACT of CAYMAN does not take a word's operations (activation-tables.md 1)."""
    if (word.op0, word.op1) in _ACT_OPS:
        return None
    pairs = ", ".join("/".join(op.name for op in pair) for pair in sorted(_ACT_OPS))
    found = f"{op_name(word.op0)}/{op_name(word.op1)}"
    return Problem("no_model", f"ACT of cayman takes the operations {pairs}, not {found}")


def _two_stage(
    word: TensorScalar, state: EngineState, in_dtype: DType, out_dtype: DType
) -> Datapath | Problem:
    """Return the datapath that the two operations of a word need."""
    ops = (word.op0, word.op1)
    if word.header.opcode in BITVEC_OPCODES:
        problem = _refused_op(ops, GENERAL_BITVEC_OPS, "a bit word", state)
        return problem or BitvecDatapath(word, state, in_dtype, out_dtype)
    if INTEGER_BAND.intersection(ops):
        legal = dve_integer_ops(state.generation)
        problem = _refused_op(ops, legal, f"an integer word on {state.generation}", state)
        return (
            problem
            or _not_integers(in_dtype, out_dtype)
            or IntegerDatapath(word, state, in_dtype, out_dtype)
        )
    legal = general_arith_ops(state.generation)
    problem = _refused_op(ops, legal, "an arithmetic word", state)
    if problem is not None:
        return problem
    is_identity = ops == (AluOp.BYPASS, AluOp.BYPASS) and in_dtype == out_dtype
    if is_identity and state.policy.ts_identity_hub == "raw":
        return MoveDatapath(word, state, in_dtype, out_dtype)
    return ArithmeticDatapath(word, state, in_dtype, out_dtype)


def _refused_op(
    ops: tuple[int, ...], legal: frozenset[int], where: str, state: EngineState
) -> Problem | None:
    """Return why an operation does not execute, or None; `legal` are those of the opcode."""
    for op in ops:
        problem = alu.unsupported(op, state.generation)
        if problem is None and op not in legal:
            problem = Problem("no_model", f"{op_name(op)} has no meaning in {where}")
        if problem is not None:
            return problem
    return None


def _not_integers(*dtypes: DType) -> Problem | None:
    for dtype in dtypes:
        if dtype not in _SIGNED and dtype not in _UNSIGNED:
            return Problem(
                "no_model", f"what an integer operation does with {dtype.word} is not published"
            )
    return None


def _untileable(source: Operand) -> Problem | None:
    """Return why a source has no whole tiles (4.2 rule 18)."""
    for what, size in (("channels", source.channels), ("elements", source.num_elements)):
        if size % TILE:
            return Problem(
                "element_count", f"{what} to transpose must be a multiple of {TILE}, not {size}"
            )
    return None


# --- the accumulator as a cache ----------------------------------------------------------------


@define(eq=False)
class CacheDatapath:
    """One stage in fp32 whose results fold into the accumulator by op1 (4.5, 4.6).

    0x9A writes the results and folds them afterwards; 0xE6 writes every running value, so it
    carries the accumulator itself. A result that folds is the fp32 one, or for 0x9A the stored one
    (policy `acc_source`).
    """

    word: TensorScalar
    state: EngineState
    in_dtype: DType
    out_dtype: DType

    def compute(
        self, bits: Bits, scalars: Latched, start: Float32s | None
    ) -> tuple[Bits, Float32s | None]:
        """Return output bits and the values that fold, or the running ones; see `Datapath`."""
        state, policy = self.state, self.state.policy
        x = to_float32(bits, self.in_dtype, state.formats)
        values = alu.apply(self.word.op0, x, scalars.first_float, policy)
        if self.word.header.opcode == CACHE_CUMULATIVE and start is not None:
            values = alu.scan(self.word.op1, start, values, policy)
        out = from_float32(values, self.out_dtype, state.formats, random=state.random)
        if self.word.header.opcode != CACHE_CUMULATIVE and policy.acc_source == "after_conversion":
            values = to_float32(out, self.out_dtype, state.formats)
        return out, values

    def finish(self, start: Float32s, taken: Float32s) -> Float32s:
        """Return the accumulator after the word."""
        policy = self.state.policy
        if self.word.header.opcode == CACHE_CUMULATIVE:
            return taken[:, -1]
        value_first = policy.sub_reduce_order == "value_first"
        return alu.fold(
            self.word.op1, start, taken, policy, value_first=value_first, order=policy.acc_order
        )

    def stations(self, bits: Bits, scalars: Latched) -> list[Station]:
        """Return op0 with its result, and the operation that folds."""
        x = to_float32(bits[:, None], self.in_dtype, self.state.formats)
        y = alu.apply(self.word.op0, x, scalars.first_float, self.state.policy)
        stage_0 = {
            "op": op_name(self.word.op0),
            "x": first_float(x),
            "scalar": f"{scalars.first[0]:#x}",
            "y": first_float(y),
        }
        return [("stage_0", stage_0), ("fold", {"op": op_name(self.word.op1)})]


def prepare_cache(word: TensorScalar, state: EngineState) -> PreparedTensorScalar | Problem:
    """Make a word ready that folds into the accumulator: 0x9A or 0xE6."""
    dtypes = dtypes_of(word, state)
    if isinstance(dtypes, Problem):
        return dtypes
    legal = general_arith_ops(state.generation)
    problem = _refused_op((word.op0,), legal, "an arithmetic word", state)
    problem = problem or _refused_op((word.op1,), CACHE_REDUCE_OPS, "a reduction", state)
    if problem is not None:
        return problem
    if word.accumulator_cmd not in ACCUMULATING:
        return Problem(
            "no_model", f"accumulator_cmd {word.accumulator_cmd} has no described effect"
        )
    datapath = CacheDatapath(word, state, *dtypes)
    return prepare_word(
        word,
        state,
        datapath,
        in_dtype=dtypes[0],
        scalars_used=(_uses_scalar(word.op0), False),
        accumulation=Accumulation(float(alu.identity(word.op1)), datapath.finish),
    )
