"""Layouts against the offsets of the sources, and the three derived forms against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_emu.isa.families import FAMILIES
from neuron_emu.isa.families.accumulator_read import AccumulatorRead
from neuron_emu.isa.families.control import Control
from neuron_emu.isa.families.tensor_scalar import TensorScalar
from neuron_emu.isa.layout import (
    LayoutError,
    Span,
    build,
    check_cover,
    numpy_dtype_of,
    parse,
    raw,
    rows_of,
    schema_of,
    size_of,
    spans_of,
)
from neuron_emu.isa.records import (
    Address,
    DTypePair,
    Events,
    Header,
    Indirect12B,
    Indirect16B,
    Indirect20B,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    Tensor4D,
)

# dve-tensor-scalar.md 3 and isa-encoding.md 5.1: offset and size of each field.
TENSOR_SCALAR_FIELDS = {
    "header": (0, 4),
    "events": (4, 8),
    "accumulator_cmd": (12, 1),
    "reserved0": (13, 3),
    "src": (16, 16),
    "in_dtype": (32, 1),
    "out_dtype": (33, 1),
    "num_active_channels": (34, 1),
    "imm0_src": (35, 1),
    "op0": (36, 1),
    "op1": (37, 1),
    "reverse_operands": (38, 1),
    "imm1_src": (39, 1),
    "imm0": (40, 4),
    "imm1": (44, 4),
    "dst": (48, 16),
}
# isa-encoding.md 5.4.
ACCUMULATOR_READ_FIELDS = {
    "dst_element_count": (28, 4),
    "dtype": (32, 1),
    "negated": (33, 1),
    "num_active_channels": (34, 1),
    "reserved1": (35, 9),
    "dst": (44, 8),
    "reserved2": (52, 12),
}
SIZES = {
    Header: 4,
    Events: 8,
    Address: 4,
    DTypePair: 1,
    Tensor1D: 8,
    Tensor2D: 12,
    Tensor3D: 16,
    Tensor4D: 20,
    Indirect12B: 12,
    Indirect16B: 16,
    Indirect20B: 20,
}


def _offset_and_size(span: Span) -> tuple[int, int]:
    return span.first_byte, span.last_byte - span.first_byte + 1


class TestOffsets:
    @pytest.mark.parametrize(("record", "size"), SIZES.items())
    def test_sizes(self, record, size):
        """Structure sizes of isa-encoding.md 1 to 4."""
        assert size_of(record) == size

    def test_tensor_scalar(self):
        """S3D3_TS has the published offsets."""
        spans = spans_of(TensorScalar)
        found = {name: _offset_and_size(spans[name]) for name in TENSOR_SCALAR_FIELDS}

        assert found == TENSOR_SCALAR_FIELDS

    def test_accumulator_read(self):
        """D1_RD has the published offsets."""
        spans = spans_of(AccumulatorRead)
        found = {name: _offset_and_size(spans[name]) for name in ACCUMULATOR_READ_FIELDS}

        assert found == ACCUMULATOR_READ_FIELDS

    def test_control(self):
        """activation-tables.md 2.4: byte 35; isa-encoding.md 9: the DRAIN count at 0x28."""
        spans = spans_of(Control)

        assert _offset_and_size(spans["act_tbl_sel"]) == (35, 1)
        assert _offset_and_size(spans["count"]) == (0x28, 4)

    def test_inner_fields(self):
        """Nested fields, array items and bits have spans of their own."""
        spans = spans_of(TensorScalar)

        assert spans["src.start.marker"] == Span(19, 19, (5, 7))
        assert spans["dst.num[0]"] == Span(58, 59)
        assert spans["src.num_elem"] == Span(24, 25)
        assert spans["events.semaphore_value"] == Span(8, 11)


class TestDerivedForms:
    @given(st.binary(min_size=64, max_size=64), st.sampled_from(FAMILIES))
    def test_schema_and_numpy_agree(self, word, family):
        """The construct record and the numpy view read the same numbers."""
        record = parse(family.record, word, has_indirect=False)
        row = np.frombuffer(word, numpy_dtype_of(family.record))[0]

        assert row["header"]["opcode"] == record.header.opcode
        assert row["events"]["semaphore_value"] == record.events.semaphore_value
        if family.name == "S3D3_TS":
            assert tuple(row["src"]["step"]) == record.src.step
            assert tuple(row["dst"]["num"]) == record.dst.num
            assert row["src"]["start"] == record.src.start.word
            assert row["imm1"]["word"] == record.imm1.word
            assert row["src_Indirect16B"]["data"] == int.from_bytes(word[20:24], "little")

    @given(st.binary(min_size=4, max_size=4))
    def test_address_bits(self, data):
        """Bit groups count from the least significant bit of the little-endian word."""
        word = int.from_bytes(data, "little")
        address = parse(Address, data)

        assert address == Address.of(word)
        assert (address.word, address.register) == (word, word & 0xFF)
        assert build(address) == data

    @given(st.binary(min_size=1, max_size=1))
    def test_dtype_pair(self, data):
        """First dtype in bits 3:0, second in bits 7:4."""
        pair = parse(DTypePair, data)

        assert (pair.first, pair.second) == (data[0] & 15, data[0] >> 4)
        assert build(pair) == data


class TestDefects:
    def test_hole_in_a_layout(self):
        """A layout that does not cover its bytes is found when it is declared."""
        from attrs import frozen

        @frozen(kw_only=True)
        class Holed:
            first: bytes = raw(0, 2, "two bytes")
            second: bytes = raw(3, 1, "after a hole")

        with pytest.raises(LayoutError, match=r"^Holed.second must start at 2, not 3$"):
            check_cover(Holed, 4)

    def test_wrong_length(self):
        """Parsing says what length was expected."""
        with pytest.raises(LayoutError, match=r"^Header must be 4 bytes, not 3$"):
            parse(Header, b"123")

    @pytest.mark.parametrize("value", [-1, 256, "x", None])
    def test_value_that_does_not_fit(self, value):
        """construct's errors are wrapped."""
        header = Header(opcode=value, inst_word_len=16, debug_cmd=0, debug_hint=0)

        with pytest.raises(LayoutError, match=r"^Header cannot be built: "):
            build(header)


def _members(instance, parsed):
    """Yield name, our value and the schema's value of every leaf."""
    for row in rows_of(type(instance)):
        ours, theirs = getattr(instance, row.name), parsed[row.name]
        if row.views:
            yield from _members(ours, theirs[type(ours).__name__])
        elif row.record is not None:
            yield from _members(ours, theirs)
        else:
            yield row.name, ours, tuple(theirs) if row.count > 1 else theirs


@given(st.sampled_from(FAMILIES), st.binary(min_size=64, max_size=64), st.booleans())
def test_parse_agrees_with_the_schema(family, data, has_indirect):
    """The quick reader and construct read the same values from any bytes."""
    instance = parse(family.record, data, has_indirect=has_indirect)

    for name, ours, theirs in _members(instance, schema_of(family.record).parse(data)):
        assert ours == theirs, name
