"""Rules of indirect operands and partition quadrants: rows 16 and 17 of isa-encoding.md 6.1."""

from __future__ import annotations

from functools import partial

from neuron_emu.isa.rules.core import Example, Review, Truth, rule
from neuron_emu.isa.rules.operands import GATHER, INDIRECT_GENERATIONS, OPCODES, SCATTER
from neuron_emu.isa.rules.predicates import Place, implies, operand_of

__all__ = ["same_quadrant"]

QUADRANT_1 = 32 * 0x40000


@rule(
    "NE0116",
    "indirect_quadrant_check_src3d",
    opcodes=OPCODES,
    generations=INDIRECT_GENERATIONS,
    source="isa-encoding.md 6.13, 3.4",
    tag="observed",
    examples=(
        Example(
            path="src.data.partition_offset",
            good=0x1000,
            bad=QUADRANT_1 + 0x1000,
            given={**GATHER, "num_active_channels": 32},
        ),
        Example(
            path="src.data.partition_offset",
            good=0x1000,
            bad=0x80000,
            given=GATHER,
            generation="maverick",
        ),
    ),
)
def indirect_quadrant_check_src3d(r: Review) -> None:
    """The index of a gather and its data in SBUF must start on the same quadrant.

    Both must lie in the active bytes of the first partition of one quadrant (leaf
    addresses_in_same_sbuf_quadrant). Data in PSUM and an index from a register are free.
    """
    source = operand_of(r, "src")
    if not source.has_indirect:
        return
    same_quadrant(
        r,
        source.index_immediate & source.unflagged & (source.data.in_psum ^ True),
        "src.data.partition_offset",
        ("src data", source.data),
        ("the src index", source.start),
    )


@rule(
    "NE0117",
    "indirect_quadrant_check_src3d_dst3d",
    opcodes=OPCODES,
    generations=INDIRECT_GENERATIONS,
    source="isa-encoding.md 6.13, 4.3",
    tag="inferred",
    examples=(
        Example(
            path="dst.index.partition_offset",
            good=0x4000,
            bad=QUADRANT_1 + 0x4000,
            given={**SCATTER, "num_active_channels": 32},
        ),
        Example(
            path="dst.index.partition_offset",
            good=0x4000,
            bad=QUADRANT_1 + 0x4000,
            given={
                **GATHER,
                **SCATTER,
                "src.data.partition_offset": 0x2000000,
                "num_active_channels": 32,
            },
        ),
    ),
)
def indirect_quadrant_check_src3d_dst3d(r: Review) -> None:
    """The index of a scatter must start on the quadrant of the source.

    The body is printed nowhere; the vendor's partition rules for EXPONENTIAL give it. With the
    source in SBUF the index starts on the source's quadrant (its data address if it is
    indirect); with an indirect source in PSUM, on the quadrant of the source's index. A plain
    source in PSUM and any address from a register are free. The data address of the destination
    has no quadrant rule.
    """
    source, destination = operand_of(r, "src"), operand_of(r, "dst")
    if not destination.has_indirect:
        return
    field, index = "dst.index.partition_offset", ("dst index", destination.start)
    plain = destination.index_immediate & source.plain & (source.start.in_psum ^ True)
    same_quadrant(r, plain, field, index, ("src", source.start))
    gather = destination.index_immediate & source.index_immediate
    if not r.any(gather):
        return
    gather = gather & source.unflagged
    in_psum = source.data.in_psum
    same_quadrant(r, gather & (in_psum ^ True), field, index, ("src data", source.data))
    same_quadrant(r, gather & in_psum, field, index, ("the src index", source.start))


def same_quadrant(
    r: Review, applies: Truth, field: str, judged: tuple[str, Place], anchor: tuple[str, Place]
) -> None:
    """State `addresses_in_same_sbuf_quadrant` about an address, measured at an anchor.

    Quiet where another rule already refuses an address: outside the windows, or (for any legal
    channel count) off the first partition of a quadrant.
    """
    if not r.any(applies):
        return
    active, stride = r.generation.sbuf.active_bytes, r.generation.sbuf.partition_stride
    quadrant = r.generation.quadrant_partitions
    first, second = judged[1].partition, anchor[1].partition
    placed = judged[1].in_sbuf & anchor[1].in_sbuf
    placed = placed & (first % quadrant == 0) & (second % quadrant == 0)
    inside = placed
    for name, place in (judged, anchor):
        offset = place.address % stride
        inside = inside & r.require(
            implies(applies, offset < active),
            field,
            f"below {active:#x}, the active bytes of a partition",
            subject=f"{name} offset",
            actual=partial("{:#x}".format, offset),
            leaf="addr_in_sbuf_partition",
            after=placed,
        )
    r.require(
        implies(applies, first == second),
        field,
        lambda: f"partition {second}",
        subject=f"{judged[0]} start",
        context=f"as {anchor[0]}",
        actual=lambda: f"partition {first}",
        leaf="addresses_in_same_sbuf_quadrant",
        after=inside,
    )
