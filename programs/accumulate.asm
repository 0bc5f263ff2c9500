# exp to bf16 with its sum per lane: the accumulator takes the fp32 value before the rounding.
ACT_TABLE_LOAD table_sel=0
EXPONENTIAL src=fp32@0x1000[1,1,1][4,1,1] dst=bf16@0x2000[1,1,1][4,1,1] channels=128 max_value=fp32@0.000000 accumulator_cmd=ZERO_ACCUMULATE
DVE_READ_ACCUMULATOR dst=fp32@0x3000[1][1] channels=128
# The same values again, from a seed of 10.
EXPONENTIAL src=fp32@0x1000[1,1,1][4,1,1] dst=bf16@0x2000[1,1,1][4,1,1] channels=128 max_value=fp32@0.000000 accumulator_cmd=LOAD_ACCUMULATE reduce_init=fp32@10.000000
DVE_READ_ACCUMULATOR dst=fp32@0x3004[1][1] channels=128
