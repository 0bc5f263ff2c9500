"""The handlers of the DVE words outside the Tensor-Scalar family, by opcode.

Where only a name or a layout is published the handler says so instead of executing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_emu.engines import (
    batch_norm,
    copy,
    scalar_select,
    scan,
    search,
    select,
    shuffle,
    tensor_reduce,
    tensor_tensor,
)
from neuron_emu.engines.core import EngineState, Prepared, Problem
from neuron_emu.engines.streaming import refuse
from neuron_emu.isa.families.mask_select import LOAD_MASK_SELECT
from neuron_emu.isa.families.memset import DVE_READ_INDICES, MEMSET, REG_STORE, RNG
from neuron_emu.isa.families.range_select import RANGE_SELECT
from neuron_emu.isa.families.scalar_select import TENSOR_SCALAR_SELECT
from neuron_emu.isa.families.scalar_tensor_tensor import (
    SCALAR_TENSOR_TENSOR,
    SCALAR_TENSOR_TENSOR_BITVEC,
    SELECT_REDUCE,
    TENSOR_TENSOR_SCAN,
)
from neuron_emu.isa.families.search import (
    BN_AGGREGATE,
    BN_STATS,
    BN_STATS2,
    FIND_INDEX8,
    MATCH_REPLACE8,
    MATCH_VALUE_LOAD,
    MAX8,
    TRANSPOSE_BN_STATS2,
)
from neuron_emu.isa.families.tensor_reduce import (
    CAST,
    COPY,
    RECIPROCAL,
    STREAM_SHUFFLE,
    STREAM_TRANSPOSE,
    TENSOR_CUMULATIVE,
    TENSOR_CUMULATIVE_BITVEC,
    TENSOR_REDUCE,
    TENSOR_REDUCE_BITVEC,
    TRANSPOSE_TENSOR_REDUCE,
    TRANSPOSE_TENSOR_REDUCE_BITVEC,
)
from neuron_emu.isa.families.tensor_tensor import (
    BATCH_NORM_BACK_PROP,
    CAST_PREDICATED,
    COPY_PREDICATED,
    TENSOR_TENSOR,
    TENSOR_TENSOR_BITVEC,
)

__all__ = ["ANY_ENGINE", "HANDLERS"]

Prepare = Callable[[Any, EngineState], Prepared | Problem]

ANY_ENGINE = frozenset((COPY, CAST, MEMSET, LOAD_MASK_SELECT, REG_STORE))
"""Opcodes that no page gives to the DVE alone (isa-encoding.md 8.2)."""

HANDLERS: dict[int, tuple[str, Prepare]] = {
    TENSOR_TENSOR: ("TensorTensorArith", tensor_tensor.prepare_tensor_tensor),
    TENSOR_TENSOR_BITVEC: ("TensorTensorBitvec", tensor_tensor.prepare_tensor_tensor),
    COPY_PREDICATED: ("CopyPredicated", tensor_tensor.prepare_predicated),
    CAST_PREDICATED: ("CastPredicated", tensor_tensor.prepare_predicated),
    SCALAR_TENSOR_TENSOR: (
        "ScalarTensorTensorArith",
        tensor_tensor.prepare_scalar_tensor_tensor,
    ),
    SCALAR_TENSOR_TENSOR_BITVEC: (
        "ScalarTensorTensorBitvec",
        tensor_tensor.prepare_scalar_tensor_tensor,
    ),
    TENSOR_REDUCE: ("TensorReduceArith", tensor_reduce.prepare_reduce),
    TENSOR_REDUCE_BITVEC: ("TensorReduceBitvec", tensor_reduce.prepare_reduce),
    TRANSPOSE_TENSOR_REDUCE: ("TransposeTensorReduceArith", tensor_reduce.prepare_reduce),
    TRANSPOSE_TENSOR_REDUCE_BITVEC: (
        "TransposeTensorReduceBitvec",
        tensor_reduce.prepare_reduce,
    ),
    COPY: ("Copy", copy.prepare_copy),
    CAST: ("Cast", copy.prepare_cast),
    RECIPROCAL: ("Reciprocal", copy.prepare_reciprocal),
    MEMSET: ("Memset", copy.prepare_memset),
    TENSOR_CUMULATIVE: ("TensorCumulativeArith", scan.prepare_cumulative),
    TENSOR_CUMULATIVE_BITVEC: ("TensorCumulativeBitvec", scan.prepare_cumulative),
    TENSOR_TENSOR_SCAN: ("TensorTensorScan", scan.prepare_tensor_tensor_scan),
    SELECT_REDUCE: ("SelectReduce", select.prepare_select_reduce),
    RANGE_SELECT: ("RangeSelect", select.prepare_range_select),
    TENSOR_SCALAR_SELECT: ("TensorScalarSelect", scalar_select.prepare),
    MAX8: ("Max8", search.prepare_max),
    MATCH_VALUE_LOAD: ("MatchValueLoad", search.prepare_key_load),
    FIND_INDEX8: ("FindIndex8", search.prepare_find_index),
    MATCH_REPLACE8: ("MatchReplace8", search.prepare_match_replace),
    DVE_READ_INDICES: ("DveReadIndices", search.prepare_read_indices),
    BN_STATS: ("BatchNormStats", batch_norm.prepare_stats),
    BN_STATS2: ("BatchNormStats2", batch_norm.prepare_stats),
    TRANSPOSE_BN_STATS2: ("TransposeBatchNormStats2", batch_norm.prepare_stats),
    BN_AGGREGATE: ("BatchNormAggregate", batch_norm.prepare_aggregate),
    LOAD_MASK_SELECT: ("LoadMaskSelect", shuffle.prepare_mask),
    STREAM_SHUFFLE: ("StreamShuffle", shuffle.prepare_shuffle),
    STREAM_TRANSPOSE: ("StreamTranspose", shuffle.prepare_transpose),
    BATCH_NORM_BACK_PROP: (
        "BatchNormBackProp",
        refuse("BN_BACK_PROP: only its operands are published, not what it computes"),
    ),
    0x64: (
        "BatchNormParamLoad",
        refuse("BN_PARAM_LOAD: only its fields are published, not what it loads them into"),
    ),
    REG_STORE: ("RegStore", refuse("REG_STORE: which register it stores is not published")),
    RNG: ("Rng", refuse("RNG: the engine's random generator is not published")),
    0x70: (
        "TensorScalarImmLdArith",
        refuse("TENSOR_SCALAR_IMM_LOAD: which word uses what it loads is not published"),
    ),
    0x71: (
        "TensorScalarImmLdBitvec",
        refuse("TENSOR_SCALAR_IMM_LOAD_BITVEC: which word uses what it loads is not published"),
    ),
}
