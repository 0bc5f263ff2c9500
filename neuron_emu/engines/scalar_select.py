"""A tensor or a scalar, chosen by one predicate for each lane: TENSOR_SCALAR_SELECT 0x98.

Source: dve-tensor-scalar.md 9.6. The word copies only, so elements and scalar move as bits of its
one dtype. A predicate in the word is 0 or 1; behind a pointer it is true unless it is zero
[inferred from the predicates of 9.2].
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_emu.engines.core import EngineState, Problem, Read
from neuron_emu.engines.streaming import (
    Elementwise,
    PreparedStream,
    TypedScalar,
    prepare_stream,
    resolve,
    typed_scalar,
)
from neuron_emu.isa.families.scalar_select import ScalarSelect

__all__ = ["prepare"]


def _is_true(predicate: TypedScalar) -> npt.NDArray[np.bool_]:
    """Return the truth of each lane, [1, 1] or [channels, 1]; both float zeros are false."""
    if predicate.dtype.is_float:
        return np.asarray(predicate.floats() != 0)
    return np.asarray(predicate.bits() != 0)


def _as_read(scalar: TypedScalar) -> Read:
    """Return a scalar as something read: here one in the word has its dtype too."""
    inline = scalar.bits()[0] if scalar.scalar.operand is None else None
    return Read(scalar.dtype, scalar.scalar.operand, inline)


def prepare(word: ScalarSelect, state: EngineState) -> PreparedStream | Problem:
    """Make TENSOR_SCALAR_SELECT ready: dst = pred ? src0 : src1_imm."""
    channels = word.num_active_channels
    if word.reversed_pred > 1:
        return Problem("no_model", f"reversed_pred must be 0 or 1, not {word.reversed_pred}")
    found = resolve(state, channels, (word.src0, word.dtype), (word.dst, word.dtype))
    if isinstance(found, Problem):
        return found
    source, destination = found
    scalar = typed_scalar(state, word.src1_imm_src, word.src1_imm, word.dtype, channels)
    if isinstance(scalar, Problem):
        return scalar
    predicate = typed_scalar(state, word.pred_imm_src, word.pred_imm, word.pred_imm_dtype, channels)
    if isinstance(predicate, Problem):
        return predicate

    def begin() -> Elementwise:
        # Both scalars are latched before anything is written (dve-tensor-scalar.md 3.2 rule 7).
        takes_source = _is_true(predicate) != bool(word.reversed_pred)
        other = scalar.bits()
        return Elementwise(lambda columns: np.where(takes_source, columns[0], other))

    prepared = prepare_stream(
        state,
        begin,
        (source,),
        destination,
        scalars=(scalar, predicate),
        immediates=((word.src1_imm_src, word.src1_imm), (word.pred_imm_src, word.pred_imm)),
        details={"op": "SELECT", "reversed": bool(word.reversed_pred)},
    )
    if isinstance(prepared, PreparedStream):
        prepared.inputs = (source.as_read(), _as_read(scalar), _as_read(predicate))
    return prepared
