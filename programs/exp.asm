# exp(x) of eight fp32 values in each of 128 partitions.
# The word before it makes function set 0 (exp_and_others) resident.
ACT_TABLE_LOAD table_sel=0
EXPONENTIAL src=fp32@0x1000[1,1,1][8,1,1] dst=fp32@0x2000[1,1,1][8,1,1] channels=128 max_value=fp32@0.000000 accumulator_cmd=IDLE
