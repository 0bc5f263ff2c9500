# A gather: offsets in SBUF at 0x8000 pick elements of the data at 0x1000. Offset i of a group of
# 16 partitions lies in partition i mod 16 of the group, column i div 16.
ACT_TABLE_LOAD table_sel=0
EXPONENTIAL src=fp32@0x1000[index@0x8000][4] dst=fp32@0x2000[1,1,1][4,1,1] channels=32 max_value=fp32@0.000000 accumulator_cmd=IDLE
