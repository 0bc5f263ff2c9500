"""The standard words of the everyday DVE opcodes, see `examples`."""

from __future__ import annotations

__all__ = ["EVERYDAY_LINES"]


def _three(first: str, second: str, out: str) -> str:
    """Two sources and a destination of eight elements, as S3S3D3_TT has them."""
    rest = "[1,8,8][8,1,1]"
    return (
        f"src0={first}@0x1000{rest} src1={second}@0x1100{rest} dst={out}@0x2000{rest} channels=128"
    )


def _scalar(first: str, second: str, out: str, scalar: str) -> str:
    """Two sources, a scalar and a destination, as S2S2D2_STT has them."""
    rest = "[1,8][8,1]"
    operands = f"src0={first}@0x1000{rest} src1={second}@0x1100{rest} dst={out}@0x2000{rest}"
    return f"{operands} channels=128 imm={scalar}"


def _fold(dtype: str, written: int, inner: int = 8) -> str:
    """A source of rows, and a destination in one dimension, as S4D4_TR has them."""
    source = f"src={dtype}@0x1000[1,{inner},8,8][{inner},4,1,1]"
    return f"{source} dst={dtype}@0x2000[1,8,8,8][{written},1,1,1] channels=128"


def _narrow(elements: int, dtype: str, written: int) -> str:
    """A source in one dimension and a small destination, as S4D2_BN has them."""
    source = f"src=fp32@0x1000[1,8,8,8][{elements},1,1,1]"
    return f"{source} dst={dtype}@0x3000[1,8][{written},1] channels=128"


_FP32 = ("fp32", "fp32", "fp32")
_UINT16 = ("uint16", "uint16", "uint16")
_ROW = "[1,8,8,8][8,1,1,1]"
_COUNTS = "even_count=4.0 odd_count=4.0"
EVERYDAY_LINES: dict[int, str] = {
    0x41: f"TENSOR_TENSOR op=ADD {_three(*_FP32)}",
    0x51: f"TENSOR_TENSOR_BITVEC op=BITWISE_XOR {_three(*_UINT16)}",
    0x65: f"BN_BACK_PROP {_three(*_FP32)}",
    0x72: f"COPY_PREDICATED {_three('uint8', 'fp32', 'fp32')}",
    0x99: f"CAST_PREDICATED {_three('uint8', 'fp32', 'bf16')}",
    0x42: f"TENSOR_REDUCE op=MAX op_dim=X {_fold('fp32', 4)}",
    0x52: f"TENSOR_REDUCE_BITVEC op=BITWISE_OR op_dim=X {_fold('uint16', 4)}",
    0x83: f"TRANSPOSE_TENSOR_REDUCE op=ADD op_dim=X {_fold('fp32', 4)}",
    0x84: f"TRANSPOSE_TENSOR_REDUCE_BITVEC op=BITWISE_OR op_dim=X {_fold('uint16', 4)}",
    0x46: f"COPY {_fold('fp32', 32)}",
    0x47: f"CAST {_fold('fp32', 32)}",
    0x48: f"RECIPROCAL {_fold('fp32', 32)}",
    0x4E: f"TENSOR_CUMULATIVE op=ADD op_dim=X {_fold('fp32', 32)}",
    0x5E: f"TENSOR_CUMULATIVE_BITVEC op=BITWISE_OR op_dim=X {_fold('uint16', 32)}",
    0x6A: f"STREAM_SHUFFLE {_fold('fp32', 32)}",
    0x6B: f"STREAM_TRANSPOSE {_fold('fp32', 32, 16)}",
    0x9D: f"SCALAR_TENSOR_TENSOR {_scalar(*_FP32, 'fp32@2.0')} ops=MULTIPLY,ADD",
    0x9E: "SCALAR_TENSOR_TENSOR_BITVEC "
    + _scalar(*_UINT16, "bits@0xff imm_dtype=uint16 ops=BITWISE_AND,BITWISE_OR"),
    0xE5: f"TENSOR_TENSOR_SCAN {_scalar(*_FP32, 'fp32@0.0')} ops=MULTIPLY,ADD",
    0xEA: f"SELECT_REDUCE {_scalar('uint8', 'fp32', 'fp32', 'fp32@0.0')} ops=BYPASS,MAX",
    0x49: f"MEMSET dst=fp32@0x2000{_ROW} channels=128 set_value=0x3f80",
    0x4B: f"REG_STORE dst=uint32@0x2000{_ROW} channels=128",
    0x4D: f"RNG dst=uint32@0x2000{_ROW} channels=128",
    0xE9: f"DVE_READ_INDICES dst=uint32@0x2000{_ROW} channels=128",
    0x60: f"BN_STATS {_narrow(8, 'fp32', 6)} {_COUNTS}",
    0x61: f"BN_STATS2 {_narrow(8, 'fp32', 6)} {_COUNTS}",
    0x82: f"TRANSPOSE_BN_STATS2 {_narrow(32, 'fp32', 6)} {_COUNTS}",
    0x62: f"BN_AGGREGATE {_narrow(6, 'fp32', 2)}",
    0x6C: f"MAX8 {_narrow(64, 'fp32', 8)}",
    0x6E: f"FIND_INDEX8 {_narrow(64, 'uint32', 8)}",
    0x6D: "MATCH_VALUE_LOAD src=fp32@0x1000[1,8][8,1] channels=128",
    0x64: "BN_PARAM_LOAD src=fp32@0x1000[1,8][8,1] channels=128",
    0x70: "TENSOR_SCALAR_IMM_LOAD src=fp32@0x1000[1,8][8,1] channels=128",
    0x71: "TENSOR_SCALAR_IMM_LOAD_BITVEC src=uint16@0x1000[1,8][8,1] channels=128",
    0x6F: f"MATCH_REPLACE8 src=fp32@0x1000{_ROW} dst=fp32@0x2000{_ROW} channels=128 imm=-inf",
    0xBC: "RANGE_SELECT src=fp32@0x1000[1,8][8,1] dst=fp32@0x2000[1,8][8,1] channels=128"
    " ops=IS_GE,IS_LT bound0=fp32@0.0 bound1=fp32@4.0 accumulator_cmd=IDLE",
    0x98: "TENSOR_SCALAR_SELECT src0=fp32@0x1000[1,8,8][8,1,1] dst=fp32@0x2000[1,8,8][8,1,1]"
    " channels=128 src1=fp32@0.0 pred=1",
    0x69: f"LOAD_MASK_SELECT mask=[{','.join(map(str, range(32)))}]",
}
"""A legal line of each opcode."""
