"""The records of the debugger as text for people."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

import numpy as np

from neuron_emu.debug.maps import AccessMap, Occupancy, OperandMap
from neuron_emu.debug.records import (
    AccumulatorLanes,
    AnnotatedField,
    CamEntry,
    Change,
    Difference,
    EngineStatus,
    Explanation,
    ListedWord,
    Listing,
    Outcome,
    Place,
    PointStatus,
    RegisterValue,
    SemaphoreValue,
    Station,
    Stop,
    StopReason,
    TableStatus,
    Tile,
    Untouched,
    Why,
    WordSummary,
    Writer,
)
from neuron_emu.events import Notice

__all__ = ["text_of"]

_MOST_VALUES = 16
_SHADES = " .:-=+*#%@"


@singledispatch
def text_of(value: Any) -> str:
    """Return a result as text without a newline at the end."""
    if value is None:
        return ""
    if isinstance(value, (tuple, list)):
        return "\n".join(text_of(item) for item in value) if value else "none"
    return str(value)


@text_of.register
def _float(value: float) -> str:
    bits = int(np.float32(value).view(np.uint32)) if abs(value) < 3e38 or value != value else None
    same = bits is not None and (value != value or float(np.float32(value)) == value)
    return f"{value!r} ({bits:#010x})" if same else repr(value)


@text_of.register
def _int(value: int) -> str:
    return f"{value} ({value:#x})" if abs(value) > 9 else str(value)


@text_of.register
def _stop(stop: Stop) -> str:
    lines = []
    if stop.reason not in (StopReason.STEP, StopReason.GOTO, StopReason.START) or stop.message:
        named = stop.message.startswith(stop.reason)
        lines.append(stop.message if named else f"{stop.reason}: {stop.message}".rstrip(": "))
    if stop.place is not None:
        lines.append(f"{_step_text(stop.step)}  {_place_line(stop.place)}")
    else:
        lines.append(_step_text(stop.step))
    return "\n".join(lines)


def _step_text(step: int) -> str:
    return f"step {step}"


def _place_line(place: Place) -> str:
    label = f"{place.label}: " if place.label else ""
    return f"{place} {label}{place.text}"


@text_of.register
def _place(place: Place) -> str:
    return _place_line(place)


@text_of.register
def _point(point: PointStatus) -> str:
    notes = [f"{point.hits} hits"] if point.hits != 1 else ["1 hit"]
    if point.condition is not None and point.condition not in point.text:
        notes.insert(0, f"if {point.condition}")
    if point.ignore:
        notes.append(f"{point.ignore} more pass by")
    if not point.enabled:
        notes.append("disabled")
    temporary = "temporary " if point.temporary else ""
    return f"{temporary}{point.kind} {point.number}: {point.text}, {', '.join(notes)}"


@text_of.register
def _outcome(outcome: Outcome) -> str:
    return outcome.message


@text_of.register
def _register(register: RegisterValue) -> str:
    name = f"{register.engine.name.lower()}.R[{register.number}]"
    return f"{name:12} {register.value:#010x}  {register.value}"


@text_of.register
def _semaphore(semaphore: SemaphoreValue) -> str:
    line = f"{semaphore.kind}[{semaphore.number}] = {semaphore.value}"
    waiters = ", ".join(str(place) for place in semaphore.waiters)
    return f"{line}  waited for by {waiters}" if waiters else line


@text_of.register
def _accumulator(lanes: AccumulatorLanes) -> str:
    """Join lanes side by side that hold equal bits and flags."""
    lines = []
    keys = list(zip(lanes.values.view(np.uint32).tolist(), lanes.undefined.tolist(), strict=True))
    first = 0
    for lane in range(1, len(keys) + 1):
        if lane < len(keys) and keys[lane] == keys[first]:
            continue
        bits, undefined = keys[first]
        span = f"[{first}]" if lane == first + 1 else f"[{first}-{lane - 1}]"
        flag = "  undefined" if undefined else ""
        lines.append(
            f"{lanes.engine.name.lower()}.acc{span:10} {lanes.values[first]!s:>14} "
            f" {bits:#010x}{flag}"
        )
        first = lane
    return "\n".join(lines)


@text_of.register
def _table(table: TableStatus) -> str:
    name = table.engine.name.lower()
    if table.set is None:
        return f"{name}: no function set"
    return f"{name}: {table.set} (index {table.index}): {', '.join(table.functions)}"


@text_of.register
def _cam(entry: CamEntry) -> str:
    slot = "slot unpublished" if entry.slot is None else f"slot {entry.slot:#x}"
    return f"{entry.opcode:#05x} {entry.name:32} {slot}"


@text_of.register
def _engine(status: EngineStatus) -> str:
    mark = "=>" if status.is_next else "  "
    where = f"{status.engine.name.lower()}[{status.position}] of {status.length}"
    line = f"{mark} {where:16} {status.state}"
    return f"{line}  {status.next_text}" if status.next_text else line


@text_of.register
def _summary(summary: WordSummary) -> str:
    changed = ", ".join(summary.changed) or "nothing"
    opcode = summary.place.text.split(" ")[0]
    return f"step {summary.step}  {summary.place} {opcode}: {changed}"


@text_of.register
def _notice(notice: Notice) -> str:
    return str(notice)


@text_of.register
def _tile(tile: Tile) -> str:
    """Return a line a lane; equal lanes side by side are one line."""
    rows = [_row_text(tile, lane) for lane in range(len(tile.values))]
    lines = [f"{tile.what} has shape {list(tile.shape)}"]
    first = 0
    for lane in range(1, len(rows) + 1):
        if lane < len(rows) and rows[lane] == rows[first]:
            continue
        span = f"{first}" if lane == first + 1 else f"{first}-{lane - 1}"
        lines.append(f"{span:>8}: {rows[first]}")
        first = lane
    return "\n".join(lines)


def _row_text(tile: Tile, lane: int) -> str:
    values = tile.values[lane]
    shown = values[:_MOST_VALUES]
    words = [
        str(value) if written else f"{value}?"
        for value, written in zip(shown, tile.written[lane], strict=False)
    ]
    more = f" … {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
    return " ".join(words) + more


@text_of.register
def _listing(listing: Listing) -> str:
    lines = []
    for word in listing.words:
        lines.append(_listed(word))
        if word.index == listing.index:
            lines += _grouped(listing.fields)
    return "\n".join(lines)


def _listed(word: ListedWord) -> str:
    mark = "=>" if word.is_current else "b " if word.breakpoints else "  "
    label = f"{word.label}: " if word.label else ""
    return f"{mark} {word.engine.name.lower()}[{word.index}] {word.offset:#06x}  {label}{word.text}"


def _grouped(fields: Iterable[AnnotatedField]) -> list[str]:
    """Return a line for each top field: its bytes and the members that are not zero."""
    groups: dict[str, list[AnnotatedField]] = {}
    for field in fields:
        groups.setdefault(field.path.partition(".")[0], []).append(field)
    lines = []
    for name, members in groups.items():
        first, last = members[0].first_byte, max(m.last_byte for m in members)
        spread = {}
        for member in members:
            for at in range(member.first_byte, member.last_byte + 1):
                index = 2 * (at - member.first_byte)
                spread[at] = member.hex[index : index + 2]
        data = "".join(spread.get(at, "00") for at in range(first, last + 1))
        shown = [m for m in members if m.text not in ("0", "NONE (0)") or len(members) == 1]
        texts = [
            m.text if len(members) == 1 else f"{m.path.partition('.')[2]}={m.text}" for m in shown
        ]
        lines.append(f"     {first:02}-{last:02}  {data:32} {name}: {' '.join(texts)}".rstrip())
    return lines


@text_of.register
def _field(field: AnnotatedField) -> str:
    where = f"{field.first_byte:02}-{field.last_byte:02}"
    return f"  {where}  {field.hex:16} {field.path:26} {field.text:24} {field.doc}".rstrip()


@text_of.register
def _explanation(explanation: Explanation) -> str:
    lines = [_place_line(explanation.place)]
    engines = ", ".join(explanation.engines)
    lines.append(f"{explanation.name}, opcode {explanation.opcode:#04x}, engines {engines}")
    lines += [text_of(field) for field in explanation.fields]
    rules = ", ".join(rule.split(" ", 1)[0] for rule in explanation.rules)
    lines.append(f"rules: {rules or 'none'}")
    lines += [f"  {f.code} {f.name} ({f.severity}): {f.message}" for f in explanation.findings]
    for name, broken in explanation.generations.items():
        lines.append(f"  {name:13} {'legal' if not broken else 'breaks ' + ', '.join(broken)}")
    return "\n".join(lines)


@text_of.register
def _difference(difference: Difference) -> str:
    count = difference.to_step - difference.from_step
    fewer = f" ({count} words, not {difference.asked})" if count < difference.asked else ""
    lines = [f"steps {difference.from_step} to {difference.to_step}{fewer}:"]
    lines += [text_of(change) for change in difference.changes]
    return "\n".join(lines) if difference.changes else lines[0] + " nothing changed"


@text_of.register
def _change(change: Change) -> str:
    return f"  {change.what:28} {change.before} -> {change.after}"


# --- who and why ------------------------------------------------------------------------------


@text_of.register
def _writer(writer: Writer) -> str:
    return "\n".join(_writer_lines(writer, 0))


@text_of.register
def _untouched(source: Untouched) -> str:
    return "\n".join(_writer_lines(source, 0))


def _writer_lines(source: Writer | Untouched, depth: int) -> list[str]:
    indent = "  " * depth
    role = f"{source.role} " if source.role else ""
    if source.group:
        several = "" if source.group.isdigit() else "s"
        role += f"element{several} {source.group} from "
    if isinstance(source, Untouched):
        return [f"{indent}{role}{source.what}: {source.note}"]
    where = f"element {source.element} of lane {source.lane}"
    if source.elements:
        where = f"elements {source.elements} of lane {source.lane}"
    if source.element < 0:
        where = f"lane {source.lane}"
    byte = f", byte {source.byte}" if source.byte else ""
    lines = [f"{indent}{role}{source.what}: {where}{byte}, written at step {source.step} by"]
    lines.append(f"{indent}  {_place_line(source.place)}")
    for inner in source.sources:
        lines += _writer_lines(inner, depth + 2)
    return lines


@text_of.register
def _station(station: Station) -> str:
    pairs = " ".join(f"{key}={_detail(value)}" for key, value in station.detail.items())
    value = "" if station.value is None else f" -> {station.value:.9g}"
    loss = "" if station.loss_ulp is None else f"  [{station.loss_ulp:.3g} ulp]"
    return f"  {station.name:11} {pairs}{value}{loss}"


def _detail(value: Any) -> str:
    if isinstance(value, list):
        return "|".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.17g}" if isinstance(value, float) else str(value)


@text_of.register
def _why(why: Why) -> str:
    lines = _writer_lines(why.writer, 0)[:2]
    lines += [text_of(station) for station in why.stations]
    verdict = "as stored" if why.agrees else f"NOT as stored: {why.stored:#x}"
    lines.append(f"  bits {why.bits:#x} = {why.value:.9g} ({why.dtype}), {verdict}")
    if why.exact is not None:
        total = "" if why.total_ulp is None else f", {why.total_ulp:.4g} ulp of {why.dtype} away"
        lines.append(f"  exact {why.exact}{total}")
    if why.note:
        lines.append(f"  {why.note}")
    return "\n".join(lines)


# --- maps -------------------------------------------------------------------------------------


@text_of.register
def _occupancy(occupied: Occupancy) -> str:
    """Return the grid, rows of equal content joined."""
    size = occupied.bytes_per_cell
    lines = [
        f"{occupied.space}: {occupied.written_bytes} of {occupied.total_bytes} bytes written;"
        f" a column is {size:#x} bytes"
    ]
    rows = ["".join(_shade(share) for share in row) for row in occupied.shares]
    first = 0
    for row in range(1, len(rows) + 1):
        if row < len(rows) and rows[row] == rows[first]:
            continue
        span = f"{first * occupied.partitions_per_row}-{row * occupied.partitions_per_row - 1}"
        lines.append(f"{span:>8} |{rows[first]}|")
        first = row
    return "\n".join(lines)


def _shade(share: float) -> str:
    if share <= 0:
        return _SHADES[0]
    return _SHADES[max(1, min(len(_SHADES) - 1, round(share * (len(_SHADES) - 1))))]


@text_of.register
def _access(access: AccessMap) -> str:
    return "\n".join([_place_line(access.place), *(text_of(o) for o in access.operands)])


@text_of.register
def _operand(operand: OperandMap) -> str:
    """Return the extent and, cell by cell in memory order, which element comes when."""
    offsets = operand.offsets
    last = operand.first_partition + operand.channels - 1
    low, end = int(offsets.min()), int(offsets.max()) + operand.item_bytes
    verb = "writes" if operand.is_written else "reads"
    head = (
        f"  {operand.role} {verb} {len(offsets)} {operand.dtype} in {operand.space} partitions"
        f" {operand.first_partition}-{last}, bytes {low:#x}..{end - 1:#x}"
    )
    if not operand.is_same_in_lanes:
        head += " (lane 0 shown; lanes differ)"
    cells = (end - low) // operand.item_bytes
    visits: dict[int, list[int]] = {}
    for element, offset in enumerate(offsets[: 4 * _MOST_VALUES].tolist()):
        visits.setdefault((offset - low) // operand.item_bytes, []).append(element)
    if cells > 4 * _MOST_VALUES:
        steps = np.diff(offsets[:9]).tolist()
        return f"{head}\n    first {int(offsets[0]):#x}, then by {', '.join(map(str, steps))} bytes"
    texts = ["+".join(map(str, visits.get(cell, []))) or "." for cell in range(cells)]
    return f"{head}\n    {' '.join(texts)}"
