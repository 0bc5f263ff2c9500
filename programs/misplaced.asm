EXPONENTIAL src=fp32@0x1000[1,1,1][8,1,1] dst=fp32@0xc02000[1,1,1][8,1,1] channels=36 max_value=fp32@0.000000 accumulator_cmd=IDLE
