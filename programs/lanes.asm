# Values from lane to lane: first the neighbour's, the last lane of a quadrant keeping what it has,
# then a whole tile of 32 lanes by 32 elements on its side.
LOAD_MASK_SELECT mask=[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,255]
STREAM_SHUFFLE src=int32@0x1000[1][1] dst=int32@0x2000[1][1] channels=32
MEMSET dst=int32@0x3000[1,1,1,1][32,1,1,1] channels=32 set_value=0x0
COPY src=int32@0x1000[1,1,1,1][1,1,1,1] dst=int32@0x3000[1,1,1,1][1,1,1,1] channels=32
STREAM_TRANSPOSE src=int32@0x3000[1,1,1,1][32,1,1,1] dst=int32@0x4000[1,1,1,1][32,1,1,1] channels=32
