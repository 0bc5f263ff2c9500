# A batch of four rows of which flags tell the live ones: the others are filled with the lowest finite
# float32, so that a maximum passes over them. Then the same in bf16 with a fill for each row behind
# a pointer, and the flags reversed: now the dead rows are kept.
TENSOR_SCALAR_SELECT src0=fp32@0x1000[1,1,1][4,1,1] dst=fp32@0x2000[1,1,1][4,1,1] channels=4 src1=fp32@-3.4028235e38 pred=[uint8@0x4000]
TENSOR_REDUCE op=MAX src=fp32@0x2000[1][4] dst=fp32@0x2100[1][1] channels=4 op_dim=X
CAST src=fp32@0x1000[1][4] dst=bf16@0x3000[1][4] channels=4
TENSOR_SCALAR_SELECT src0=bf16@0x3000[1,1,1][4,1,1] dst=bf16@0x3100[1,1,1][4,1,1] channels=4 src1=[bf16@0x4010] pred=[uint8@0x4000] reversed_pred=1
# A predicate in the word holds for all rows: 0 takes the scalar, here the bits of bf16 1.5.
TENSOR_SCALAR_SELECT src0=bf16@0x3000[1,1,1][4,1,1] dst=bf16@0x3200[1,1,1][4,1,1] channels=4 src1=bits@0x3fc0 pred=0 pred_dtype=uint8
