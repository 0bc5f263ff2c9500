# Two tiles of 32 channels by 32 elements, transposed on the way in: lane i reads what element i of
# the 32 lanes of its group holds. Then each lane adds a scalar of its own, behind a pointer.
TRANSPOSE_TENSOR_SCALAR_ARITH src=fp32@0x1000[1,1,1][32,1,1] dst=fp32@0x2000[1,1,1][32,1,1] channels=64 ops=MULTIPLY,ADD imm0=fp32@10.000000 imm1=[fp32@0xc000]
