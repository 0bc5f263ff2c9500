# The accumulator as a cache. A reduction writes its elements and keeps the fold: the largest of 2x.
TENSOR_SCALAR_CACHE_REDUCE src=fp32@0x1000[1,1,1][3,1,1] dst=fp32@0x2000[1,1,1][3,1,1] channels=16 ops=MULTIPLY,MAX imm0=fp32@2.000000 accumulator_cmd=ZERO_ACCUMULATE
DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=16
# A scan writes every running value, and a second word goes on from the last one.
TENSOR_SCALAR_CACHE_CUMULATIVE src=fp32@0x1000[1,1,1][3,1,1] dst=fp32@0x2100[1,1,1][3,1,1] channels=16 ops=BYPASS,ADD imm0=fp32@0.000000 accumulator_cmd=ZERO_ACCUMULATE
DVE_READ_ACCUMULATOR dst=fp32@0x3004[1][1] channels=16
TENSOR_SCALAR_CACHE_CUMULATIVE src=fp32@0x1000[1,1,1][3,1,1] dst=fp32@0x210c[1,1,1][3,1,1] channels=16 ops=BYPASS,ADD imm0=fp32@0.000000 accumulator_cmd=ACCUMULATE
# From a seed of 10: 10 + 2 + 4 + 6.
TENSOR_SCALAR_CACHE_REDUCE src=fp32@0x1000[1,1,1][3,1,1] dst=bf16@0x2200[1,1,1][3,1,1] channels=16 ops=MULTIPLY,ADD imm0=fp32@2.000000 accumulator_cmd=LOAD_ACCUMULATE reduce_init=fp32@10.000000
DVE_READ_ACCUMULATOR dst=fp32@0x3008[1][1] channels=16
