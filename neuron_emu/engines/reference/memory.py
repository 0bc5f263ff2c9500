"""Memory operands as plain loops over bytes: slow, obvious, and apart from `neuron_emu.memory`.

A memory is a mapping from local address to byte. An operand is `PlainOperand`: the address of
every element of every lane, in stream order. Sources: isa-encoding.md 3.3, 4.1 and 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence

from attrs import frozen

__all__ = [
    "PlainOperand",
    "direct_operand",
    "first_bad_byte",
    "gather",
    "indirect_operand",
    "read_value",
    "scatter",
    "stream_apply",
    "write_value",
]

Values = list[list[int]]
"""Elements as unsigned integers, [lane][element]."""


@frozen
class PlainOperand:
    """Where each element starts: `addresses[lane][element]`, local addresses."""

    addresses: list[list[int]]
    item_bytes: int


def direct_operand(
    start: int,
    step: Sequence[int],
    num: Sequence[int],
    item_bytes: int,
    channels: int,
    partition_stride: int,
) -> PlainOperand:
    """List the elements of an access pattern; steps and counts innermost first."""
    steps = [*step, 0, 0, 0][:4]
    counts = [*num, 1, 1, 1][:4]
    offsets = []
    for w in range(counts[3]):
        for z in range(counts[2]):
            for y in range(counts[1]):
                for x in range(counts[0]):
                    place = x * steps[0] + y * steps[1] + z * steps[2] + w * steps[3]
                    offsets.append(place * item_bytes)
    lanes = range(channels)
    addresses = [[start + lane * partition_stride + o for o in offsets] for lane in lanes]
    return PlainOperand(addresses, item_bytes)


def indirect_operand(
    memory: Mapping[int, int],
    index_address: int,
    data_address: int,
    num_elements: int,
    item_bytes: int,
    channels: int,
    *,
    index_stride: int,
    data_stride: int,
    group_size: int,
) -> PlainOperand:
    """List the elements that an index tensor in `memory` leads to; strides are of partitions."""
    addresses = []
    for lane in range(channels):
        group = lane // group_size
        row = []
        for element in range(num_elements):
            index_partition = group_size * group + element % group_size
            column = element // group_size
            at = index_address + index_partition * index_stride + 4 * column
            offset = read_value(memory, at, 4)
            row.append(data_address + lane * data_stride + offset * item_bytes)
        addresses.append(row)
    return PlainOperand(addresses, item_bytes)


def first_bad_byte(
    operand: PlainOperand, is_byte: Callable[[int, int], bool]
) -> tuple[int, int, int] | None:
    """Return address, element and lane of the first byte for which `is_byte(lane, address)` fails.

    Stream order: element by element, lanes innermost, bytes upwards. None when all are good.
    """
    for element in range(len(operand.addresses[0])):
        for lane, addresses in enumerate(operand.addresses):
            for byte in range(operand.item_bytes):
                if not is_byte(lane, addresses[element] + byte):
                    return addresses[element] + byte, element, lane
    return None


def read_value(memory: Mapping[int, int], address: int, item_bytes: int) -> int:
    """Return the little-endian unsigned integer at `address`."""
    value = 0
    for byte in range(item_bytes):
        value += memory[address + byte] << (8 * byte)
    return value


def write_value(
    memory: MutableMapping[int, int], address: int, item_bytes: int, value: int
) -> None:
    """Store a little-endian unsigned integer at `address`."""
    for byte in range(item_bytes):
        memory[address + byte] = (value >> (8 * byte)) & 0xFF


def gather(memory: Mapping[int, int], operand: PlainOperand) -> Values:
    """Read every element."""
    return [
        [read_value(memory, address, operand.item_bytes) for address in addresses]
        for addresses in operand.addresses
    ]


def scatter(memory: MutableMapping[int, int], operand: PlainOperand, values: Values) -> None:
    """Write every element in stream order, so that the last of repeated destinations stays."""
    for element in range(len(operand.addresses[0])):
        for lane, addresses in enumerate(operand.addresses):
            write_value(memory, addresses[element], operand.item_bytes, values[lane][element])


def stream_apply(
    memory: MutableMapping[int, int],
    source: PlainOperand,
    destination: PlainOperand,
    function: Callable[[int], int],
) -> None:
    """Read element i in all lanes, compute, write element i in all lanes, then go on to i + 1.

    `function` maps the source's bits to the destination's (dve-tensor-scalar.md 2.2).
    """
    for element in range(len(source.addresses[0])):
        results = []
        for addresses in source.addresses:
            results.append(function(read_value(memory, addresses[element], source.item_bytes)))
        for addresses, result in zip(destination.addresses, results, strict=True):
            write_value(memory, addresses[element], destination.item_bytes, result)
