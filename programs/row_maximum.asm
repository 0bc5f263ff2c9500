# The largest value of each row, taken away from the row by a pointer to one value a partition.
# The second reduction is negated, so that it can be added instead.
TENSOR_REDUCE op=MAX src=fp32@0x1000[1,1,1,1][4,1,1,1] dst=fp32@0x2000[1,1,1,1][1,1,1,1] channels=64 op_dim=X
TENSOR_SCALAR src=fp32@0x1000[1,1,1][4,1,1] dst=fp32@0x3000[1,1,1][4,1,1] channels=64 ops=SUBTRACT,BYPASS imm0=[fp32@0x2000] accumulator_cmd=IDLE
TENSOR_REDUCE op=ADD src=fp32@0x3000[1,1,1,1][4,1,1,1] dst=fp32@0x2004[1,1,1,1][1,1,1,1] channels=64 op_dim=X negated=1
