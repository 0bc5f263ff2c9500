"""The engines: sequencer, DVE, ACT and the plain loops that check them."""
