"""Words that break one rule: a valid word, drawn to suit the rule, with one field changed.

Each breaker knows from its rule's text alone that nothing else breaks; the validator is not asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection

from attrs import evolve, frozen

from neuron_emu.errors import InputError
from neuron_emu.generation import MARIANA, Generation
from neuron_emu.isa.codec import record_type_of
from neuron_emu.isa.enums import AluOp, DType, Engine
from neuron_emu.isa.families import accumulator_read, control, tensor_scalar
from neuron_emu.isa.families.control import ACTIVATION_TABLE_LOAD
from neuron_emu.isa.families.tensor_scalar import BITVEC_OPCODES, EXPONENTIAL
from neuron_emu.isa.fields import read_field, write_field
from neuron_emu.isa.rules import RULES
from neuron_emu.isa.rules.header import FIRST_WIRED
from neuron_emu.isa.rules.immediates import POINTER_OPCODES
from neuron_emu.isa.rules.predicates import alignment_of
from neuron_emu.isa.rules.tensor_scalar import CACHE_OPCODES
from neuron_emu.testing.words import Shape, valid_word

__all__ = ["BrokenWord", "breakable_codes", "broken_word"]

TENSOR_SCALAR = tensor_scalar.FAMILY.opcodes
READS = accumulator_read.FAMILY.opcodes
CONTROL = control.FAMILY.opcodes
TWO_STAGE = tuple(o for o in TENSOR_SCALAR if o != EXPONENTIAL and o not in CACHE_OPCODES)
OTHER_TWIN = {2: 3, 3: 2, 4: 5, 5: 4, 8: 9, 9: 8}
"""Integer dtypes of the same size."""


@frozen(kw_only=True)
class BrokenWord:
    """A word that breaks the rule `code` and no other when it is judged for `engine`."""

    code: str
    word: bytes
    engine: Engine | None = None


@frozen(kw_only=True)
class _Draw:
    """What a breaker draws with."""

    rng: random.Random
    generation: Generation
    executable: bool = False

    def valid(self, opcodes: Collection[int], shape: Shape | None = None) -> bytes:
        """Draw a valid word of one of the opcodes that are wired on the generation."""
        core = self.generation.core_version
        wired = [o for o in sorted(opcodes) if core >= FIRST_WIRED.get(o, 0)]
        wanted = evolve(shape or Shape(), executable=self.executable)
        return valid_word(self.rng, self.rng.choice(wired), self.generation, wanted)

    def one_of(self, *values: int) -> int:
        """Choose a value."""
        return self.rng.choice(values)

    def other_than(self, legal: Collection[int]) -> int:
        """Choose a byte that is not legal."""
        return self.rng.choice([value for value in range(256) if value not in legal])

    def moved(self, word: bytes, path: str, *, quadrants: bool = False) -> bytes:
        """Move an address to a partition off the quadrants, or to another quadrant."""
        record = record_type_of(word[0])
        address = read_field(word, record, path)
        psum, sbuf = self.generation.psum, self.generation.sbuf
        geometry = psum if psum is not None and address >= psum.base else sbuf
        partition = (address - geometry.base) // geometry.partition_stride
        if quadrants:
            target = (partition + 32 * self.one_of(1, 2, 3)) % 128
        else:
            target = self.rng.choice([p for p in range(128) if p % 32])
        return _set(word, path, address + (target - partition) * geometry.partition_stride)


def _get(word: bytes, path: str) -> int:
    return read_field(word, record_type_of(word[0]), path)


def _set(word: bytes, path: str, value: int) -> bytes:
    return write_field(word, record_type_of(word[0]), path, value)


_BREAKERS: dict[str, Callable[[_Draw], bytes]] = {}
_ENGINES = {"NE0002": Engine.SP}
_UNWIRED = ("sunda", "cayman")


def _breaks(code: str) -> Callable[[Callable[[_Draw], bytes]], Callable[[_Draw], bytes]]:
    def register(make: Callable[[_Draw], bytes]) -> Callable[[_Draw], bytes]:
        _BREAKERS[code] = make
        return make

    return register


def _field(
    code: str,
    path: str,
    opcodes: Collection[int],
    value: Callable[[_Draw], int],
    shape: Shape | None = None,
) -> None:
    """Register the breaker that writes `value` into `path` of a valid word."""

    def make(draw: _Draw) -> bytes:
        return _set(draw.valid(opcodes, shape), path, value(draw))

    _BREAKERS[code] = make


def breakable_codes(generation: Generation = MARIANA) -> tuple[str, ...]:
    """Return the codes that `broken_word` can break on a generation."""
    return tuple(code for code in sorted(_BREAKERS) if _exists_on(code, generation))


def _exists_on(code: str, generation: Generation) -> bool:
    if code == "NE0001":
        return generation.name in _UNWIRED
    return generation.name in RULES[code].generations


def broken_word(
    rng: random.Random, code: str, generation: Generation = MARIANA, *, executable: bool = False
) -> BrokenWord:
    """Draw a word that breaks the rule `code` and no other: a valid word with one field changed.

    The valid word is `executable` as in `Shape`. Raises InputError for a rule without a breaker
    on the generation. NE0103 has none: it speaks of another opcode's word.
    """
    known = breakable_codes(generation)
    if code not in known:
        raise InputError(f"code must be one of {' '.join(known)} on {generation}, not {code!r}")
    word = _BREAKERS[code](_Draw(rng=rng, generation=generation, executable=executable))
    return BrokenWord(code=code, word=word, engine=_ENGINES.get(code))


# --- every word -------------------------------------------------------------------------------


@_breaks("NE0001")
def _unwired(draw: _Draw) -> bytes:
    return _set(draw.valid(TENSOR_SCALAR), "header.opcode", EXPONENTIAL)


@_breaks("NE0002")
def _engine(draw: _Draw) -> bytes:
    return draw.valid((*TENSOR_SCALAR, *READS))


_field("NE0101", "header.inst_word_len", (*TENSOR_SCALAR, *READS, *CONTROL),
       lambda d: d.other_than((0x10,)))  # fmt: skip
_field("NE0102", "events.update_mode", (*TENSOR_SCALAR, *READS, *CONTROL),
       lambda d: d.one_of(0x06, 0x08, 0x16, 0x18, 0xFF))  # fmt: skip

# --- S3D3_TS ----------------------------------------------------------------------------------

_field("NE0104", "in_dtype", TENSOR_SCALAR, lambda d: d.one_of(0, 1, 0x0B, 0x0C, 0x17, 0x1A, 0xFF))
_field("NE0105", "out_dtype", TENSOR_SCALAR, lambda d: d.one_of(0, 1, 0x0C, 0x12, 0x18, 0x1F, 0x80))
_field("NE0106", "imm0_src", [o for o in TENSOR_SCALAR if o not in POINTER_OPCODES],
       lambda d: d.other_than((0, 1, 2)))  # fmt: skip
_field("NE0107", "accumulator_cmd", (EXPONENTIAL,), lambda d: d.other_than((0, 2, 3, 4)))


@_breaks("NE0108")
def _odd_count(draw: _Draw) -> bytes:
    dtype = draw.one_of(DType.BFLOAT16, DType.FP16, DType.INT8, DType.FP8_EXP4)
    shape = Shape(in_dtype=dtype, source="plain", destination="plain", command=0)
    word = draw.valid((EXPONENTIAL,), shape)
    while _get(word, "src.step[0]") != 1 or _get(word, "src.num[0]") % 2 == 0:
        word = draw.valid((EXPONENTIAL,), shape)
    return _set(word, "accumulator_cmd", draw.one_of(2, 3))


_field("NE0109", "op0", (EXPONENTIAL,), lambda d: d.other_than((0,)))
_field("NE0110", "reserved0", (EXPONENTIAL,), lambda d: d.rng.randrange(1, 1 << 24))


@_breaks("NE0111")
def _counts(draw: _Draw) -> bytes:
    word = draw.valid(TENSOR_SCALAR, Shape(destination=draw.rng.choice(("plain", "register"))))
    return _set(word, "dst.num[0]", _get(word, "dst.num[0]") + draw.one_of(1, 2, 100))


_field("NE0112", "num_active_channels", (*TENSOR_SCALAR, *READS),
       lambda d: d.other_than(range(1, 129)))  # fmt: skip


@_breaks("NE0113")
def _start(draw: _Draw) -> bytes:
    side = draw.rng.choice(("src", "dst"))
    shape = Shape(source="plain") if side == "src" else Shape(destination="plain")
    return draw.moved(draw.valid(TENSOR_SCALAR, shape), f"{side}.start.partition_offset")


@_breaks("NE0114")
def _source(draw: _Draw) -> bytes:
    word = draw.valid(TENSOR_SCALAR, Shape(source="plain", destination="plain"))
    size = alignment_of(_get(word, "in_dtype"))
    address = _get(word, "src.start.partition_offset")
    breaks = [
        ("src.num[1]", 0),
        ("src.start.marker", draw.one_of(2, 3, 6, 7)),
        ("src.start.partition_offset", 0x1F000000 // size * size),
    ]
    if size > 1:
        breaks.append(("src.start.partition_offset", address + size // 2))
    return _set(word, *draw.rng.choice(breaks))


@_breaks("NE0115")
def _destination(draw: _Draw) -> bytes:
    word = draw.valid(TENSOR_SCALAR, Shape(source="plain", destination="register"))
    return _set(word, "dst.start.partition_offset", draw.one_of(64, 128, 255))


@_breaks("NE0116")
def _gather_quadrant(draw: _Draw) -> bytes:
    shape = Shape(source="indirect", destination="plain", data_in_psum=False, max_channels=32)
    return draw.moved(draw.valid(TENSOR_SCALAR, shape), "src.data.partition_offset", quadrants=True)


@_breaks("NE0117")
def _scatter_quadrant(draw: _Draw) -> bytes:
    shape = Shape(source="plain", destination="indirect", data_in_psum=False, max_channels=32)
    path = "dst.index.partition_offset"
    return draw.moved(draw.valid(TENSOR_SCALAR, shape), path, quadrants=True)


# --- the Tensor-Scalar opcodes ----------------------------------------------------------------

_ARITH = [o for o in TENSOR_SCALAR if o not in BITVEC_OPCODES and o != EXPONENTIAL]

_field("NE0201", "reserved0", (*TWO_STAGE, *CACHE_OPCODES), lambda d: d.rng.randrange(1, 1 << 24))
_field("NE0202", "accumulator_cmd", TWO_STAGE, lambda d: d.other_than((0,)))
_field("NE0203", "op0", (*TWO_STAGE, *CACHE_OPCODES), lambda d: d.one_of(0x1E, 0x1F, 0x25, 0xE2))
_field("NE0204", "op0", TWO_STAGE, lambda d: d.one_of(AluOp.DIVIDE, AluOp.POW, AluOp.MOD))


@_breaks("NE0205")
def _order(draw: _Draw) -> bytes:
    word = draw.valid(TWO_STAGE)
    while _get(word, "op1") == AluOp.BYPASS:
        word = draw.valid(TWO_STAGE)
    return _set(word, "op0", AluOp.BYPASS)


_field("NE0206", "op0", BITVEC_OPCODES, lambda d: d.one_of(AluOp.ADD, AluOp.MAX, AluOp.IS_EQUAL))
_field("NE0207", "op0", _ARITH, lambda d: d.one_of(AluOp.BITWISE_AND, AluOp.CRC32))


@_breaks("NE0208")
def _twin(draw: _Draw) -> bytes:
    word = draw.valid(BITVEC_OPCODES)
    return _set(word, "out_dtype", OTHER_TWIN[_get(word, "in_dtype")])


_field("NE0209", "op0", BITVEC_OPCODES, lambda d: AluOp.ARITH_SHIFT_RIGHT,
       Shape(in_dtype=DType.UINT16))  # fmt: skip
_field("NE0210", "reverse_operands", (*TWO_STAGE, *CACHE_OPCODES),
       lambda d: d.other_than((0, 1, 2, 3)))  # fmt: skip


@_breaks("NE0211")
def _tile(draw: _Draw) -> bytes:
    word = draw.valid((0x93,))
    return _set(word, "num_active_channels", _get(word, "num_active_channels") - 1)


_field("NE0212", "accumulator_cmd", CACHE_OPCODES, lambda d: d.other_than((2, 3, 4)))
_field("NE0213", "op1", CACHE_OPCODES, lambda d: d.one_of(AluOp.BYPASS, AluOp.IS_GT))
_field("NE0214", "in_dtype", CACHE_OPCODES, lambda d: d.one_of(DType.INT32, DType.UINT32),
       Shape(in_dtype=DType.FP32))  # fmt: skip

# --- accumulator reads and control words ------------------------------------------------------

_field("NE0301", "dtype", READS, lambda d: d.one_of(DType.INT32, DType.UINT32, 0, 0x10),
       Shape(out_dtype=DType.FP32))  # fmt: skip
_field("NE0302", "negated", READS, lambda d: d.other_than((0, 1)))
_field("NE0303", "dst_element_count", READS, lambda d: d.one_of(0, 2, 0xFFFFFFFF))
_field("NE0304", "reserved1", READS, lambda d: d.rng.randrange(1, 1 << 72))


@_breaks("NE0305")
def _read_start(draw: _Draw) -> bytes:
    word = draw.valid(READS, Shape(destination="plain"))
    return draw.moved(word, "dst.start.partition_offset")


_field("NE0306", "dst.start.marker", READS, lambda d: d.one_of(1, 2, 3, 5, 6, 7))
_field("NE0401", "act_tbl_sel", (ACTIVATION_TABLE_LOAD,), lambda d: d.rng.randrange(21, 256))
_field("NE0402", "act_tbl_sel", [o for o in CONTROL if o != ACTIVATION_TABLE_LOAD],
       lambda d: d.rng.randrange(1, 256))  # fmt: skip
_field("NE0403", "reserved2", CONTROL, lambda d: d.rng.randrange(1, 1 << 160))
