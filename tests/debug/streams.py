"""Streams and machines that the tests of the debugger share."""

from __future__ import annotations

import random

import numpy as np

from neuron_emu import Machine, Program
from neuron_emu.debug import Debugger
from neuron_emu.generation import generation_named
from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Stream
from neuron_emu.policy import Policy
from neuron_emu.scenario import Scenario
from tests.command import ROOT

PROGRAMS = sorted((ROOT / "programs").glob("*.toml"))


def two_engines() -> Program:
    """Return an ACT stream that waits for a DVE stream, which waits for it in turn."""
    dve = """
    ACT_TABLE_LOAD table_sel=0
    EXPONENTIAL S[2]++@complete src=fp32@0x1000[1,1,1][4,1,1] dst=fp32@0x2000[1,1,1][4,1,1] channels=4 max_value=fp32@0.000000 accumulator_cmd=ZERO_ACCUMULATE
    EXPONENTIAL S[3]>=1 src=fp32@0x3000[1,1,1][4,1,1] dst=bf16@0x4000[1,1,1][4,1,1] channels=4 max_value=fp32@2.000000 accumulator_cmd=ACCUMULATE
    DVE_READ_ACCUMULATOR dst=fp32@0x5000[1][1] channels=4
    """  # noqa: E501
    act = """
    ACT_TABLE_LOAD table_sel=0
    ACTIVATE S[2]>=1 S[3]++@complete SQUARE src=fp32@0x2000[1,1,1][4,1,1] dst=fp32@0x3000[1,1,1][4,1,1] channels=4 accumulator_cmd=IDLE
    NOP
    """  # noqa: E501
    return Program(
        streams=(
            Stream(engine=Engine.DVE, data=assemble(dve), name="dve"),
            Stream(engine=Engine.ACT, data=assemble(act), name="act"),
        )
    )


def machine_with_inputs(interleave: int | None = None, **policy: str) -> Machine:
    """Return a machine with four values in each of four partitions at 0x1000."""
    rows = [f"{k}={v}" for k, v in policy.items()]
    machine = Machine(policy=Policy.parse(rows), interleave=interleave)
    values = np.array([0, -1, -2, -3], np.float32) - np.arange(4, dtype=np.float32)[:, None]
    machine.write("sbuf:0+0x1000:fp32[4,4]", values)
    return machine


def debugger(**policy: str) -> Debugger:
    """Return a debugger over both."""
    return Debugger(machine_with_inputs(**policy), two_engines())


def scenario_machine(path, *policy: str) -> Machine:
    """Return the machine of a scenario, ready to load its program."""
    scenario = Scenario.read(path)
    machine = Machine(
        generation_named(scenario.generation or "mariana"),
        Policy.parse([*scenario.policy, *policy]),
    )
    scenario.prepare(machine)
    return machine


def random_program(source: random.Random, words: int) -> Program:
    """Return a DVE stream of random legal words that read and write each other's results."""
    lines = ["ACT_TABLE_LOAD table_sel=0"]
    for _ in range(words):
        src, dst = (0x1000 + 0x100 * source.randrange(4) for _ in range(2))
        count, channels = source.choice((1, 2, 4, 8)), source.choice((1, 4, 32, 64))
        in_dtype, out_dtype = (
            source.choice(("fp32", "bf16")),
            source.choice(("fp32", "bf16", "int8")),
        )
        command = source.choice(("IDLE", "ACCUMULATE", "ZERO_ACCUMULATE"))
        if command != "IDLE" and in_dtype == "bf16":
            count = max(count, 2)
        kind = source.randrange(4)
        if kind == 0:
            lines.append(f"DVE_READ_ACCUMULATOR dst=fp32@{dst:#x}[1][1] channels={channels}")
        elif kind == 1:
            lines.append(f"NOP S[{source.randrange(8)}]++@complete")
        else:
            lines.append(
                f"EXPONENTIAL src={in_dtype}@{src:#x}[1,1,1][{count},1,1]"
                f" dst={out_dtype}@{dst:#x}[1,1,1][{count},1,1] channels={channels}"
                f" max_value=fp32@1.000000 accumulator_cmd={command}"
            )
    return Program.from_text("\n".join(lines))


POISONED = """
MEMSET dst=fp32@0x108[1][1] channels=1 set_value=0x7fc00000
TENSOR_REDUCE op=ADD src=fp32@0x100[1][4] dst=fp32@0x200[1][1] channels=1 op_dim=X
TENSOR_SCALAR_CACHE_CUMULATIVE src=fp32@0x100[1,1,1][4,1,1] dst=fp32@0x300[1,1,1][4,1,1] channels=1 ops=BYPASS,ADD imm0=fp32@0.0 accumulator_cmd=ZERO_ACCUMULATE
TENSOR_SCALAR_CACHE_REDUCE src=fp32@0x300[1,1,1][2,1,1] dst=fp32@0x380[1,1,1][2,1,1] channels=1 ops=BYPASS,ADD imm0=fp32@0.0 accumulator_cmd=ACCUMULATE
DVE_READ_ACCUMULATOR dst=fp32@0x400[1][1] channels=1
"""  # noqa: E501


def ran(listing: str, loads: dict[str, object], **policy: str) -> Debugger:
    """Return a debugger at the end of a listing that ran on what is loaded by SPEC."""
    machine = Machine(policy=Policy.parse([f"{k}={v}" for k, v in policy.items()]))
    for spec, values in loads.items():
        machine.write(spec, np.asarray(values))
    made = Debugger(machine, Program.from_text(listing))
    stop = made.cont()
    assert stop.reason == "end", stop.message
    return made
