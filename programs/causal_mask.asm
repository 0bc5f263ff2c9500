# A causal row in two tiles of four: keep the keys up to the query's place, which a pointer gives,
# and the largest value kept over both tiles.
RANGE_SELECT src=fp32@0x1000[1,1][4,1] dst=fp32@0x2000[1,1][4,1] channels=2 base=0.000000 ops=IS_GE,IS_LE bound0=fp32@0.000000 bound1=[fp32@0x3000] accumulator_cmd=ZERO_ACCUMULATE
RANGE_SELECT src=fp32@0x1010[1,1][4,1] dst=fp32@0x2010[1,1][4,1] channels=2 base=4.000000 ops=IS_GE,IS_LE bound0=fp32@0.000000 bound1=[fp32@0x3000] accumulator_cmd=ACCUMULATE
DVE_READ_ACCUMULATOR dst=fp32@0x3004[1][1] channels=2
