# A three-dimensional pattern, X first: X walks backwards through four elements, Y repeats each
# row twice (step 0), Z goes from one group of four to the next. The destination is contiguous.
ACT_TABLE_LOAD table_sel=0
EXPONENTIAL src=fp32@0x100c[-1,0,4][4,2,2] dst=fp32@0x2000[1,4,8][4,2,2] channels=16 max_value=fp32@0.000000 accumulator_cmd=IDLE
