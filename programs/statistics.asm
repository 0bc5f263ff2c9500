# Mean and variance of eight values, in two halves of four that are put together.
BN_STATS2 src=fp32@0x1000[1,1,1,1][4,1,1,1] dst=fp32@0x2000[1,1][6,1] channels=32 even_count=2.000000 odd_count=2.000000
BN_STATS2 src=fp32@0x1010[1,1,1,1][4,1,1,1] dst=fp32@0x2018[1,1][6,1] channels=32 even_count=2.000000 odd_count=2.000000
BN_AGGREGATE src=fp32@0x2000[1,1,1,1][12,1,1,1] dst=fp32@0x3000[1,1][2,1] channels=32
