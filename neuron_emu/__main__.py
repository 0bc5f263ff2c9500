"""`python -m neuron_emu`: the command line."""

from neuron_emu.cli import main

main()
