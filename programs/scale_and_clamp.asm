# Two chained operations a word. First x * 2 + 1, to fp32 and to int8, then a clamp to -2..4 whose
# upper end lies behind a pointer, and last 10 - x with the operands of the first stage reversed.
TENSOR_SCALAR src=fp32@0x1000[1,1,1][5,1,1] dst=fp32@0x2000[1,1,1][5,1,1] channels=32 ops=MULTIPLY,ADD imm0=fp32@2.000000 imm1=fp32@1.000000
TENSOR_SCALAR src=fp32@0x1000[1,1,1][5,1,1] dst=int8@0x2100[1,1,1][5,1,1] channels=32 ops=MULTIPLY,ADD imm0=fp32@2.000000 imm1=fp32@1.000000
TENSOR_SCALAR src=fp32@0x1000[1,1,1][5,1,1] dst=fp32@0x2200[1,1,1][5,1,1] channels=32 ops=MAX,MIN imm0=fp32@-2.000000 imm1=[fp32@0xc000]
TENSOR_SCALAR src=fp32@0x1000[1,1,1][5,1,1] dst=fp32@0x2300[1,1,1][5,1,1] channels=32 ops=SUBTRACT,BYPASS reverse_operands=FIRST imm0=fp32@10.000000
# Bits: the exponent field of a bf16, (x >> 7) & 0xff.
TENSOR_SCALAR_BITVEC src=uint16@0x1100[1,1,1][3,1,1] dst=uint16@0x2400[1,1,1][3,1,1] channels=32 ops=LOGICAL_SHIFT_RIGHT,BITWISE_AND imm0=bits@0x7 imm1=bits@0xff
