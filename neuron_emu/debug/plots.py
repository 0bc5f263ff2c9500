"""Maps as PNG files; needs the plot extra."""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from neuron_emu.debug.maps import AccessMap, Occupancy
from neuron_emu.errors import InputError

__all__ = ["save_access_map", "save_occupancy"]


def _figure(rows: int, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "a plot needs matplotlib, which must be installed: pip install 'neuron-emu[plot]'"
        ) from None
    figure = Figure(figsize=(9, height * rows), layout="constrained")
    return figure, figure.subplots(rows, 1, squeeze=False)[:, 0]


def save_occupancy(maps: tuple[Occupancy, ...], stream: IO[bytes]) -> None:
    """Draw the share of written bytes, one picture a memory."""
    figure, axes = _figure(len(maps), 3.0)
    for axis, occupied in zip(axes, maps, strict=True):
        rows, columns = occupied.shares.shape
        extent = (
            0.0,
            columns * occupied.bytes_per_cell / 1024,
            rows * occupied.partitions_per_row,
            0.0,
        )
        image = axis.imshow(
            occupied.shares, aspect="auto", extent=extent, vmin=0, vmax=1, cmap="viridis"
        )
        axis.set_title(f"{occupied.space}: {occupied.written_bytes} bytes written")
        axis.set_xlabel("offset in the partition, KiB")
        axis.set_ylabel("partition")
        figure.colorbar(image, ax=axis, label="share written")
    figure.savefig(stream, format="png")


def save_access_map(access: AccessMap, stream: IO[bytes]) -> None:
    """Draw the byte offset of each element in stream order, one picture an operand."""
    figure, axes = _figure(len(access.operands), 2.4)
    for axis, operand in zip(axes, access.operands, strict=True):
        axis.plot(np.arange(len(operand.offsets)), operand.offsets, ".", markersize=3)
        last = operand.first_partition + operand.channels - 1
        verb = "writes" if operand.is_written else "reads"
        axis.set_title(
            f"{operand.role} {verb} {operand.dtype} in {operand.space},"
            f" partitions {operand.first_partition} to {last}"
        )
        axis.set_xlabel("element in stream order")
        axis.set_ylabel("byte offset")
    figure.suptitle(f"{access.place}", fontsize=9)
    figure.savefig(stream, format="png")
