# The running maximum lies at 0xc000 after tile 1 and at 0xc004 after tile 2.
ACT_TABLE_LOAD table_sel=0
EXPONENTIAL src=fp32@0x2000000[1,1,1][2,1,1] dst=bf16@0x2000[1,1,1][2,1,1] channels=64 max_value=[fp32@0xc000] accumulator_cmd=ZERO_ACCUMULATE
tile2: EXPONENTIAL src=fp32@0x2000800[1,1,1][2,1,1] dst=bf16@0x2004[1,1,1][2,1,1] channels=64 max_value=[fp32@0xc000] accumulator_cmd=ACCUMULATE
DVE_READ_ACCUMULATOR dst=fp32@0xd000[1][1] channels=64
