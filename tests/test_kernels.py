"""Whole kernels on DVE and ACT at full size: against float64 formulas, and under any order.

The bounds are the certified table error (exp: 400 float32 steps, 4.8e-5) plus the rounding of the
stored types. The scores of the Tensor engine are preloaded.
"""

from __future__ import annotations

import numpy as np
import pytest

from neuron_emu.isa.assembly import assemble
from neuron_emu.isa.enums import Engine
from neuron_emu.isa.program import Program, Stream
from neuron_emu.machine import Machine

EXP_ERROR = 4.8e-5
LANES = 128


def program(**texts):
    """Make a program of one listing an engine."""
    return Program(
        streams=tuple(
            Stream(engine=Engine[name.upper()], data=assemble(text), name=name)
            for name, text in texts.items()
        )
    )


def run(streams, loads, *, seed=None, generation="mariana"):
    """Run a program over loaded memory; return the machine."""
    machine = Machine(generation, interleave=seed)
    for spec, values in loads.items():
        machine.write(spec, values)
    result = machine.run(streams)

    assert result.fault is None, result.fault
    return machine


def normal(shape, seed=0, scale=3.0):
    """Draw float32 scores."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


class TestSoftmaxTile:
    """C1: [128,128] from PSUM."""

    STREAMS = program(
        dve="""
TENSOR_REDUCE op=MAX src=fp32@0x2000000[1][128] dst=fp32@0x100[1][1] channels=128 op_dim=X
TENSOR_SCALAR S[1]++@complete src=fp32@0x2000000[1][128] dst=fp32@0x1000[1][128] channels=128 ops=SUBTRACT,BYPASS imm0=[fp32@0x100]
TENSOR_REDUCE S[2]>=1 op=ADD src=fp32@0x2000[1][128] dst=fp32@0x104[1][1] channels=128 op_dim=X
RECIPROCAL src=fp32@0x104[1][1] dst=fp32@0x108[1][1] channels=128
TENSOR_SCALAR src=fp32@0x2000[1][128] dst=fp32@0x3000[1][128] channels=128 ops=MULTIPLY,BYPASS imm0=[fp32@0x108]
""",
        act="""
ACT_TABLE_LOAD table_sel=0
ACTIVATE S[1]>=1 S[2]++@complete EXP src=fp32@0x1000[1][128] dst=fp32@0x2000[1][128] channels=128
""",
    )

    def test_against_float64(self):
        """Each probability within twice the table's error and a few roundings."""
        scores = normal((LANES, 128))
        machine = run(self.STREAMS, {"psum:0+0:fp32[128,128]": scores})
        found = machine.read("sbuf:0+0x3000:fp32[128,128]")
        wide = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
        wanted = wide / wide.sum(axis=1, keepdims=True)

        assert np.allclose(found, wanted, rtol=2 * EXP_ERROR + 1e-5, atol=0)
        assert np.allclose(found.sum(axis=1), 1, atol=1e-5)

    def test_any_order_gives_the_same_bytes(self):
        """A hundred drawn orders of the two engines."""
        loads = {"psum:0+0:fp32[128,128]": normal((LANES, 128))}
        spec = "sbuf:0+0:fp32:bits[128,4096]"
        wanted = run(self.STREAMS, loads).read(spec)

        for seed in range(100):
            assert np.array_equal(run(self.STREAMS, loads, seed=seed).read(spec), wanted)


def flash_streams(tiles, width, scale):
    """C2: the running maximum on the DVE, correction and exponentials on ACT, for each K tile."""
    dve = """
MEMSET dst=fp32@0x100[1][1] channels=128 set_value=0xff800000
MEMSET dst=fp32@0x114[1][1] channels=128 set_value=0x0
"""
    act = "ACT_TABLE_LOAD table_sel=0\n"
    for tile in range(tiles):
        source = f"0x{0x2000000 + 4 * width * tile:x}"
        out = f"0x{0x8000 + 2 * width * tile:x}"
        dve += f"""
TENSOR_SCALAR_CACHE_REDUCE src=fp32@{source}[1][{width}] dst=fp32@0x1000[1][{width}] channels=128 ops=MULTIPLY,MAX imm0=fp32@{scale} accumulator_cmd=LOAD_ACCUMULATE reduce_init=[fp32@0x100]
DVE_READ_ACCUMULATOR dst=fp32@0x104[1][1] channels=128
DVE_READ_ACCUMULATOR S[1]++@complete dst=fp32@0x108[1][1] channels=128 negated=1
SCALAR_TENSOR_TENSOR S[2]>={tile + 1} src0=fp32@0x114[1][1] src1=fp32@0x110[1][1] dst=fp32@0x114[1][1] ops=MULTIPLY,ADD channels=128 imm=[fp32@0x10c]
COPY src=fp32@0x104[1][1] dst=fp32@0x100[1][1] channels=128
"""
        act += f"""
ACTIVATE S[1]>={tile + 1} EXP bias_ptr=fp32@0x108 src=fp32@0x100[1][1] dst=fp32@0x10c[1][1] channels=128 accumulator_cmd=IDLE
ACTIVATE EXP bias_ptr=fp32@0x108 src=fp32@0x1000[1][{width}] dst=bf16@{out}[1][{width}] channels=128 accumulator_cmd=ZERO_ACCUMULATE
ACTIVATION_READ_ACCUMULATOR S[2]++@complete dst=fp32@0x110[1][1] channels=128
"""
    return program(dve=dve, act=act)


class TestFlashAttention:
    """C2: four K tiles of 512."""

    TILES, WIDTH, SCALE = 4, 512, 0.125

    def scores(self):
        return normal((LANES, self.TILES * self.WIDTH), seed=2, scale=20)

    def test_against_float64(self):
        """Maximum exact, running sum and exponentials within the table's error."""
        scores = self.scores()
        machine = run(
            flash_streams(self.TILES, self.WIDTH, self.SCALE), {"psum:0+0:fp32[128,2048]": scores}
        )
        scaled = scores.astype(np.float64) * self.SCALE
        maximum = scaled.max(axis=1, keepdims=True)
        total = np.exp(scaled - maximum).sum(axis=1, keepdims=True)
        last = scaled[:, -self.WIDTH :]
        probabilities = machine.read(f"sbuf:0+{0x8000 + 6 * self.WIDTH}:bf16[128,512]")

        assert np.array_equal(machine.read("sbuf:0+0x100:fp32[128,1]"), maximum)
        assert np.allclose(
            machine.read("sbuf:0+0x114:fp32[128,1]"),
            total,
            rtol=(self.TILES + 1) * EXP_ERROR + 1e-5,
            atol=0,
        )
        assert np.allclose(probabilities, np.exp(last - maximum), rtol=2**-8, atol=1e-38)

    def test_any_order_gives_the_same_bytes(self):
        """The same under drawn orders, two small tiles."""
        streams = flash_streams(2, 32, self.SCALE)
        loads = {"psum:0+0:fp32[128,64]": normal((LANES, 64), scale=20)}
        spec = "sbuf:0+0:uint32[128,10240]"
        wanted = run(streams, loads).read(spec)

        for seed in range(100):
            assert np.array_equal(run(streams, loads, seed=seed).read(spec), wanted)


class TestLogSumExp:
    """C5 on one large chunk of bf16 logits, 32768 in a partition."""

    WIDTH = 32768

    def test_against_float64(self):
        """The sum of 32768 serial additions stays within their bound."""
        logits = normal((4, self.WIDTH), seed=5)
        machine = Machine("mariana")
        spec = f"sbuf:0+0x10000:bf16[4,{self.WIDTH}]"
        machine.write(spec, logits)
        stored = machine.read(spec).astype(np.float64)
        result = machine.run(
            Program.from_text(f"""
ACT_TABLE_LOAD table_sel=0
TENSOR_REDUCE op=MAX src=bf16@0x10000[1][{self.WIDTH}] dst=fp32@0x100[1][1] channels=4 op_dim=X
EXPONENTIAL src=bf16@0x10000[1][{self.WIDTH}] dst=bf16@0x20000[1][{self.WIDTH}] channels=4 max_value=[fp32@0x100] accumulator_cmd=ZERO_ACCUMULATE
DVE_READ_ACCUMULATOR dst=fp32@0x104[1][1] channels=4
""")
        )
        maximum = stored.max(axis=1, keepdims=True)
        total = np.exp(stored - maximum).sum(axis=1, keepdims=True)

        assert result.fault is None
        assert np.array_equal(machine.read("sbuf:0+0x100:fp32[4,1]"), maximum)
        assert np.allclose(
            machine.read("sbuf:0+0x104:fp32[4,1]"),
            total,
            rtol=EXP_ERROR + self.WIDTH * 2**-24,
        )


@pytest.mark.parametrize("generation", ["mariana", "mariana_plus"])
def test_generations_agree(generation):
    """NC-v4 and v4+ have one instruction set and give the same bytes."""
    loads = {"psum:0+0:fp32[128,128]": normal((LANES, 128))}
    spec = "sbuf:0+0x3000:fp32:bits[128,128]"

    assert np.array_equal(
        run(TestSoftmaxTile.STREAMS, loads, generation=generation).read(spec),
        run(TestSoftmaxTile.STREAMS, loads).read(spec),
    )


class TestTensorScalarOnAct:
    """activation-tables.md 1: the ACT firmware has TENSOR_SCALAR from NC-v3 on."""

    WORD = "TENSOR_SCALAR src=fp32@0x0[1][4] dst=fp32@0x100[1][4] channels=4 ops={ops} imm0=fp32@2 imm1=fp32@1"

    def run_on(self, engine, ops, generation="mariana"):
        machine = Machine(generation)
        machine.write("sbuf:0+0:fp32[4,4]", normal((4, 4)))
        fault = machine.run(program(**{engine: self.WORD.format(ops=ops)})).fault
        return fault, machine.read("sbuf:0+0x100:fp32:bits[4,4]")

    def test_same_as_on_the_vector_engine(self):
        """Both run one worker."""
        fault, on_act = self.run_on("act", "MULTIPLY,ADD")
        _, on_dve = self.run_on("dve", "MULTIPLY,ADD")

        assert fault is None
        assert np.array_equal(on_act, on_dve)

    def test_cayman_takes_three_pairs(self):
        """(mult, add), (mult, -) and (add, -)."""
        taken, _ = self.run_on("act", "MULTIPLY,ADD", "cayman")
        refused, untouched = self.run_on("act", "MAX,BYPASS", "cayman")

        assert taken is None
        assert refused.name == "no_model"
        assert "ACT of cayman takes the operations" in refused.message
        assert not untouched.any()
