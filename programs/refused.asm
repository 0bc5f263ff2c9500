# EXPONENTIAL takes no ALU operation: op0 must be BYPASS. The word before it runs.
ACT_TABLE_LOAD table_sel=0
EXPONENTIAL src=fp32@0x1000[1,1,1][8,1,1] dst=fp32@0x2000[1,1,1][8,1,1] channels=128 ops=ADD,BYPASS max_value=fp32@0.000000 accumulator_cmd=IDLE
