# Integers are converted to fp32 first: int8 here, then int32 with the maximum in a register's
# address, and an integer destination that rounds to nearest even and saturates.
ACT_TABLE_LOAD table_sel=0
EXPONENTIAL src=int8@0x1000[1,1,1][4,1,1] dst=fp32@0x2000[1,1,1][4,1,1] channels=32 max_value=fp32@0.000000 accumulator_cmd=IDLE
EXPONENTIAL src=int32@0x1100[1,1,1][4,1,1] dst=fp32@0x2100[1,1,1][4,1,1] channels=32 max_value=$R[5] accumulator_cmd=IDLE
EXPONENTIAL src=int8@0x1004[1,1,1][4,1,1] dst=uint8@0x2200[1,1,1][4,1,1] channels=32 max_value=fp32@0.000000 accumulator_cmd=IDLE
