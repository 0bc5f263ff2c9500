# The sixteen largest of a row: eight, their places, the row without them, and eight more.
# MATCH_REPLACE8 leaves the places in the engine, where DVE_READ_INDICES finds them.
MAX8 src=fp32@0x1000[1,1,1,1][20,1,1,1] dst=fp32@0x2000[1,1][8,1] channels=1
MATCH_VALUE_LOAD src=fp32@0x2000[1,1][8,1] channels=1
FIND_INDEX8 src=fp32@0x1000[1,1,1,1][20,1,1,1] dst=uint32@0x3000[1,1][8,1] channels=1
MATCH_REPLACE8 src=fp32@0x1000[1,1,1,1][20,1,1,1] dst=fp32@0x4000[1,1,1,1][20,1,1,1] channels=1 imm=-inf
DVE_READ_INDICES dst=uint16@0x3100[1,1,1,1][8,1,1,1] channels=1
MAX8 src=fp32@0x4000[1,1,1,1][20,1,1,1] dst=fp32@0x2020[1,1][8,1] channels=1
