"""Always-valid words by opcode and generation, legal under the default policy."""

from __future__ import annotations

import random
import struct

from attrs import frozen

from neuron_emu.errors import InputError, NeuronEmuError
from neuron_emu.generation import MARIANA, Generation
from neuron_emu.isa.alu_ops import (
    BITVEC_OPS,
    CACHE_REDUCE_OPS,
    dve_integer_ops,
    general_arith_ops,
)
from neuron_emu.isa.enums import AluOp, DType, UpdateMode, WaitMode
from neuron_emu.isa.families import accumulator_read, control, tensor_scalar
from neuron_emu.isa.families.control import ACTIVATION_TABLE_LOAD, DRAIN
from neuron_emu.isa.families.tensor_scalar import BITVEC_OPCODES, EXPONENTIAL
from neuron_emu.isa.rules.accumulator_read import DTYPES as READ_DTYPES
from neuron_emu.isa.rules.dtypes import INPUT_DTYPES, OUTPUT_DTYPES
from neuron_emu.isa.rules.header import FIRST_WIRED
from neuron_emu.isa.rules.immediates import POINTER_OPCODES
from neuron_emu.isa.rules.predicates import alignment_of, legal_starts
from neuron_emu.isa.rules.tensor_scalar import CACHE_INPUTS, CACHE_OPCODES, INTEGER_DTYPES

__all__ = ["OPCODES", "Maker", "Shape", "valid_word"]

OPCODES = (
    *tensor_scalar.FAMILY.opcodes,
    *accumulator_read.FAMILY.opcodes,
    *control.FAMILY.opcodes,
)
"""The opcodes that `valid_word` makes."""
_OPS_OF_OTHER_ENGINES = frozenset((AluOp.CRC32, AluOp.RSQRT))
_WAITS = tuple(m for m in WaitMode if not m.name.startswith("EVT"))
_UPDATES = tuple(m for m in UpdateMode if not m.name.startswith("EVT"))


@frozen(kw_only=True)
class Shape:
    """What a word must look like; None leaves it to chance.

    `source` and `destination` are `plain`, `register`, `indirect` or `indirect_register`;
    `data_in_psum` is about immediate data addresses. `executable` leaves out waits, and integer
    operations on float dtypes, so that the word runs alone.
    """

    executable: bool = False
    in_dtype: int | None = None
    out_dtype: int | None = None
    source: str | None = None
    destination: str | None = None
    data_in_psum: bool | None = None
    max_channels: int | None = None
    command: int | None = None


def valid_word(
    rng: random.Random, opcode: int, generation: Generation = MARIANA, shape: Shape | None = None
) -> bytes:
    """Draw a word of `opcode` that breaks no rule on `generation`.

    Every operand lies in the active bytes. CRC32 and RSQRT, legal but computed by other engines
    only, are not drawn.
    Raises InputError for an opcode that is not in `OPCODES` or not wired on the generation.
    """
    if opcode not in OPCODES:
        accepted = " ".join(f"{o:#04x}" for o in OPCODES)
        raise InputError(f"opcode must be one of {accepted}, not {opcode:#04x}")
    if generation.core_version < FIRST_WIRED.get(opcode, 0):
        raise InputError(f"opcode {opcode:#04x} must be wired, and is not on {generation}")
    maker = Maker(rng, generation, shape or Shape())
    if opcode in tensor_scalar.FAMILY.opcodes:
        return maker.tensor_scalar(opcode)
    if opcode in accumulator_read.FAMILY.opcodes:
        return maker.accumulator_read(opcode)
    return maker.control(opcode)


class Maker:
    """Draws the parts of a word from a random generator."""

    def __init__(self, rng: random.Random, generation: Generation, shape: Shape) -> None:
        self.rng = rng
        self.generation = generation
        self.shape = shape

    # --- common parts ---

    def preamble(self, opcode: int) -> bytes:
        """Header and events, 12 bytes."""
        rng = self.rng
        wait, update = WaitMode.NONE, UpdateMode.NONE
        if not self.shape.executable and rng.random() < 0.3:
            wait, update = rng.choice(_WAITS), rng.choice(_UPDATES)
        hint = 0 if self.generation.has_tile_flags else rng.choice((0, 0, 2, 0xFF))
        return struct.pack(
            "<BBBBBBBBI",
            *(opcode, 0x10, rng.choice((0, 0, 1, 9)), hint),
            *(wait, rng.randrange(256), update, rng.randrange(256), rng.choice((0, 1, 63))),
        )

    def channels(self, opcode: int) -> int:
        """A legal channel count."""
        most = self.shape.max_channels or self.generation.num_channels
        if opcode == 0x93:
            return self.rng.choice([n for n in (32, 64, 96, 128) if n <= most])
        return min(most, self.rng.choice((1, 16, 31, 32, 33, 64, 65, 96, 127, 128)))

    def address(
        self, channels: int, size: int, low: int, high: int, *, psum: bool, at: int | None = None
    ) -> int:
        """An address whose elements from `low` to `high` (bytes) lie in the active bytes.

        `at` asks for a partition; `psum` puts the address there.
        """
        geometry = self.generation.psum if psum else self.generation.sbuf
        if geometry is None:
            raise NeuronEmuError("a generation without PSUM has no PSUM address")
        starts = legal_starts(self.generation, channels)
        partition = self.rng.choice(starts) if at is None else at
        first, last = -low, geometry.active_bytes - size - high
        offset = self.rng.choice((first, last, self.rng.randint(first, last)))
        offset = min(-(-offset // size) * size, last // size * size)
        return geometry.base + partition * geometry.partition_stride + offset

    def wants_psum(self, *, allowed: bool = True) -> bool:
        """Whether an immediate data address goes to PSUM."""
        if self.generation.psum is None or not allowed:
            return False
        if self.shape.data_in_psum is not None:
            return self.shape.data_in_psum
        return self.rng.random() < 0.3

    def partition(self, address: int) -> int | None:
        """The SBUF partition of an address, None for PSUM."""
        sbuf = self.generation.sbuf
        return address // sbuf.partition_stride if address < sbuf.end else None

    # --- operands ---

    def form(self, wanted: str | None) -> str:
        """One of the four forms of an operand."""
        if wanted is not None:
            return wanted
        if not self.generation.has_indirect:
            return self.rng.choice(("plain", "plain", "plain", "register"))
        forms = ("plain", "plain", "plain", "register", "indirect", "indirect_register")
        return self.rng.choice(forms)

    def counts(self, total: int, *, even: bool) -> list[int]:
        """Three counts with a product of `total`; each 1 or even, the first even, if asked."""
        counts = [total, 1, 1]
        for dimension in (1, 2):
            divisors = [d for d in (1, 2, 3, 4, 6, 8) if counts[0] % d == 0]
            if even:
                divisors = [d for d in divisors if d % 2 == 0 or d == 1]
                divisors = [d for d in divisors if counts[0] // d % 2 == 0]
            counts[dimension] = self.rng.choice(divisors)
            counts[0] //= counts[dimension]
        return counts

    def steps(self, counts: list[int], size: int) -> tuple[list[int], int, int]:
        """Steps with their reach in bytes below and above the first element."""
        steps = [1, counts[0], counts[0] * counts[1]]
        if self.rng.random() < 0.4:
            steps = [self.rng.choice((-2, -1, 0, 1, 1, 2, 3)) for _ in steps]
        spans = [size * step * (count - 1) for step, count in zip(steps, counts, strict=True)]
        return steps, sum(min(s, 0) for s in spans), sum(max(s, 0) for s in spans)

    def plain(
        self, form: str, counts: list[int], size: int, channels: int, *, psum: bool
    ) -> tuple[bytes, int]:
        """A tensor pattern: its 16 bytes and its address word."""
        steps, low, high = self.steps(counts, size)
        if form == "register":
            # Registers hold zero at the start, so nothing may lie below the first element.
            steps = [abs(step) for step in steps]
            word = 0x80000000 | self.rng.randrange(64)
        else:
            word = self.address(channels, size, low, high, psum=psum)
        return struct.pack("<I3h3H", word, *steps, *counts), word

    def indirect(
        self,
        form: str,
        total: int,
        size: int,
        channels: int,
        *,
        psum: bool,
        at: int | None = None,
        with_data: bool = True,
    ) -> tuple[bytes, int, int]:
        """A descriptor: its 16 bytes, its index word and its data address.

        `at` is the partition of the index; with `with_data` SBUF data starts there too.
        """
        columns = 4 * -(-total // self.generation.indirect_group_partitions)
        index = self.address(channels, 4, 0, columns, psum=False, at=at)
        partition = self.partition(index) if with_data and form == "indirect" else None
        data = self.address(channels, size, 0, 0, psum=psum, at=None if psum else partition)
        word = 0x20000000 | index
        if form == "indirect_register":
            word = 0xA0000000 | self.rng.randrange(64)
        return struct.pack("<IIHHI", word, data, total, 0, 0), word, data

    def operands(
        self, counts: list[int], in_size: int, out_size: int, channels: int
    ) -> tuple[bytes, bytes]:
        """Source and destination with equal element counts and matching quadrants."""
        total = counts[0] * counts[1] * counts[2]
        source_form = self.form(self.shape.source)
        anchor: int | None = None
        if source_form.startswith("indirect"):
            psum = self.wants_psum()
            source, word, data = self.indirect(source_form, total, in_size, channels, psum=psum)
            place = word & 0x1FFFFFFF if psum else data
            anchor = self.partition(place) if source_form == "indirect" else None
        else:
            psum = self.wants_psum()
            source, word = self.plain(source_form, counts, in_size, channels, psum=psum)
            anchor = self.partition(word) if source_form == "plain" else None
        destination_form = self.form(self.shape.destination)
        psum = self.wants_psum(allowed=out_size == 4)
        if destination_form.startswith("indirect"):
            destination, _, _ = self.indirect(
                *(destination_form, total, out_size, channels),
                psum=psum,
                at=anchor,
                with_data=False,
            )
        else:
            other = self.counts(total, even=False)
            destination, _ = self.plain(destination_form, other, out_size, channels, psum=psum)
        return source, destination

    def scalar(self, opcode: int, in_dtype: int, channels: int) -> tuple[int, int]:
        """Selector and word of a scalar."""
        bitvec = opcode in BITVEC_OPCODES
        size = alignment_of(in_dtype) if bitvec else 4
        pointer = self.address(channels, size, 0, 0, psum=self.wants_psum())
        if opcode in POINTER_OPCODES:
            return 0, pointer
        selector = self.rng.choice((0, 0, 1, 2))
        if selector == 1:
            return 1, pointer
        if selector == 2:
            return 2, self.rng.randrange(self.generation.num_address_registers)
        if bitvec:
            return 0, self.rng.randrange(1 << 8 * size)
        return 0, struct.unpack("<I", struct.pack("<f", self.rng.uniform(-4, 4)))[0]

    # --- words ---

    def dtypes(self, opcode: int) -> tuple[int, int]:
        """Source and destination dtypes."""
        rng, shape = self.rng, self.shape
        if opcode in BITVEC_OPCODES:
            dtype = shape.in_dtype or rng.choice(sorted(INTEGER_DTYPES))
            return dtype, dtype
        inputs, outputs = INPUT_DTYPES, OUTPUT_DTYPES
        if opcode in CACHE_OPCODES:
            inputs, outputs = CACHE_INPUTS, CACHE_INPUTS | {DType.FP32R}
        first = shape.in_dtype or rng.choice(sorted(inputs))
        return first, shape.out_dtype or rng.choice(sorted(outputs))

    def operations(self, opcode: int, in_dtype: int, out_dtype: int) -> tuple[int, int]:
        """Both ALU operations."""
        rng = self.rng
        if opcode == EXPONENTIAL:
            return 0, 0
        if opcode in BITVEC_OPCODES:
            bit_ops = sorted(BITVEC_OPS - _OPS_OF_OTHER_ENGINES)
            first, second = rng.choice(bit_ops[1:]), rng.choice(bit_ops)
            narrow = alignment_of(in_dtype) < 4
            if narrow and (3 in (first, second) or (first in (2, 0x10) and second == 0x11)):
                return 0x0A, 0x0B
            return first, second
        general: list[int] = sorted(general_arith_ops(self.generation))
        if opcode in CACHE_OPCODES:
            return rng.choice(general), rng.choice(sorted(CACHE_REDUCE_OPS))
        integer: list[int] = sorted(dve_integer_ops(self.generation))
        if self.shape.executable and not INTEGER_DTYPES.issuperset((in_dtype, out_dtype)):
            integer = []
        ops = integer if integer and rng.random() < 0.2 else general
        return rng.choice(ops[1:]), rng.choice(ops)

    def command(self, opcode: int) -> int:
        """The accumulator command."""
        if self.shape.command is not None:
            return self.shape.command
        if opcode == EXPONENTIAL:
            return self.rng.choice((0, 2, 3, 4))
        return self.rng.choice((2, 3, 4)) if opcode in CACHE_OPCODES else 0

    def tensor_scalar(self, opcode: int) -> bytes:
        """A word of S3D3_TS."""
        rng = self.rng
        channels = self.channels(opcode)
        in_dtype, out_dtype = self.dtypes(opcode)
        command = self.command(opcode)
        even = opcode == EXPONENTIAL and command != 0
        total = rng.choice((32, 64, 96) if opcode == 0x93 else (2, 4, 8, 24, 36, 64))
        if not even and opcode != 0x93 and rng.random() < 0.3:
            total = rng.choice((1, 3, 5, 27))
        counts = self.counts(total, even=even)
        sizes = alignment_of(in_dtype), alignment_of(out_dtype)
        source, destination = self.operands(counts, *sizes, channels)
        imm0_src, imm0 = self.scalar(opcode, in_dtype, channels)
        imm1_src, imm1 = self.scalar(opcode, in_dtype, channels)
        if opcode == EXPONENTIAL or opcode in CACHE_OPCODES:
            imm1_src, imm1 = (imm1_src, imm1) if command == 4 else (0, 0)
        op0, op1 = self.operations(opcode, in_dtype, out_dtype)
        fixed = opcode == EXPONENTIAL or opcode in CACHE_OPCODES
        return self.preamble(opcode) + struct.pack(
            "<B3x16sBBBBBBBBII16s",
            *(command, source, in_dtype, out_dtype, channels, imm0_src),
            *(op0, op1, 0 if fixed else rng.randrange(4), imm1_src),
            *(imm0, imm1, destination),
        )

    def accumulator_read(self, opcode: int) -> bytes:
        """A word of D1_RD."""
        rng = self.rng
        channels = self.channels(opcode)
        dtype = self.shape.out_dtype or rng.choice(sorted(READ_DTYPES[opcode]))
        size = alignment_of(dtype)
        word = self.address(channels, size, 0, 0, psum=self.wants_psum(allowed=size == 4))
        if self.form(self.shape.destination) == "register":
            word = 0x80000000 | rng.randrange(64)
        negated = 0 if opcode == accumulator_read.ACTIVATION_READ_ACCUMULATOR else rng.randrange(2)
        return self.preamble(opcode) + struct.pack(
            "<16xIBBB9xIhH12x", 1, dtype, negated, channels, word, rng.choice((1, 0, -1)), 1
        )

    def control(self, opcode: int) -> bytes:
        """A word of CTRL_NO."""
        is_load = opcode == ACTIVATION_TABLE_LOAD
        table = self.rng.randrange(self.generation.num_function_sets) if is_load else 0
        count = self.rng.randrange(8) if opcode == DRAIN else 0
        return self.preamble(opcode) + struct.pack("<23xB4xI20x", table, count)
