"""Scopes and variables: fields, registers, accumulators, semaphores and memory tiles.

A reference is valid while the machine stands still; the tree behind it is made when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from neuron_emu.debug import probe
from neuron_emu.debug.debugger import Debugger
from neuron_emu.debug.looking import annotated
from neuron_emu.debug.operands import operand_of, word_operands
from neuron_emu.debug.records import Tile
from neuron_emu.debug.regions import tile_of
from neuron_emu.isa.codec import decode
from neuron_emu.isa.enums import Engine

__all__ = ["Variables"]

Children = list[dict[str, Any]]


@define(eq=False)
class Variables:
    """The references of one stop."""

    debugger: Debugger
    _makers: dict[int, Callable[[], Children]] = field(factory=dict)

    def forget(self) -> None:
        """Drop every reference: the machine moves."""
        self._makers.clear()

    def _reference(self, make: Callable[[], Children]) -> int:
        number = len(self._makers) + 1
        self._makers[number] = make
        return number

    def children(self, reference: int) -> Children | None:
        """Return the variables behind a reference; None when it is not valid."""
        make = self._makers.get(reference)
        return None if make is None else make()

    def scopes(self, engine: Engine) -> list[dict[str, Any]]:
        """Return the scopes of an engine's word."""
        rows: tuple[tuple[str, Callable[[], Children], bool], ...] = (
            ("Fields", lambda: self._fields(engine), False),
            ("Registers", lambda: self._registers(engine), False),
            ("Accumulators", lambda: self._accumulators(engine), True),
            ("Semaphores", self._semaphores, False),
            ("Memory", lambda: self._memory(engine), True),
        )
        return [
            {
                "name": name,
                "variablesReference": self._reference(make),
                "expensive": is_expensive,
                **({"presentationHint": "registers"} if name == "Registers" else {}),
            }
            for name, make, is_expensive in rows
        ]

    def _fields(self, engine: Engine) -> Children:
        machine = self.debugger.machine
        stream = probe.streams(machine)[engine]
        index = machine.position(engine)
        if index >= len(stream):
            return []
        record = decode(stream[index], machine.generation)
        return [
            _leaf(found.path, found.text, found.path) for found in annotated(record, stream[index])
        ]

    def _registers(self, engine: Engine) -> Children:
        name = engine.name.lower()
        return [
            _leaf(f"R[{r.number}]", f"{r.value:#x}", f"{name}.R[{r.number}]")
            for r in self.debugger.registers(engine, all_of_them=True)
        ]

    def _accumulators(self, engine: Engine) -> Children:
        lanes = self.debugger.accumulator(engine)
        name = engine.name.lower()
        return [
            _leaf(
                f"acc[{lane}]",
                f"{value}{' (undefined)' if lanes.undefined[lane] else ''}",
                f"{name}.acc[{lane}]",
            )
            for lane, value in enumerate(lanes.values)
        ]

    def _semaphores(self) -> Children:
        found = []
        for semaphore in self.debugger.semaphores():
            name = f"{semaphore.kind}[{semaphore.number}]"
            waiters = ", ".join(str(place) for place in semaphore.waiters)
            text = f"{semaphore.value}{f' (waited for by {waiters})' if waiters else ''}"
            found.append(_leaf(name, text, name))
        return found

    def _memory(self, engine: Engine) -> Children:
        """Return the operands of the engine's word as tiles, as they are now."""
        machine = self.debugger.machine
        stream = probe.streams(machine)[engine]
        index = machine.position(engine)
        if index >= len(stream):
            return []
        record = decode(stream[index], machine.generation)
        registers = machine.engine(engine).registers
        found = []
        for named in word_operands(record):
            operand = operand_of(named, record, machine.memory, registers)
            if operand is None or named.dtype is None:
                continue
            tile = tile_of(machine, named.role, named.dtype, operand)
            address = operand.space.address(operand.first_partition, operand.low)
            found.append(self.tile(named.role, tile, address))
        return found

    def tile(self, name: str, tile: Tile, address: int | None = None) -> dict[str, Any]:
        """Return a tile as a variable with a child for each lane."""
        shape = ",".join(map(str, tile.shape))
        variable = {
            "name": name,
            "value": f"{tile.dtype.word}[{shape}]",
            "type": tile.dtype.word,
            "variablesReference": self._reference(lambda: self._lanes(tile)),
            "indexedVariables": len(tile.values),
        }
        if address is not None:
            variable["memoryReference"] = f"{address:#x}"
        return variable

    def _lanes(self, tile: Tile) -> Children:
        return [
            {
                "name": f"[{lane}]",
                "value": " ".join(_element(tile, lane, i) for i in range(min(8, values.size)))
                + (" …" if values.size > 8 else ""),
                "variablesReference": self._reference(
                    lambda lane=lane: self._elements(tile, lane)  # type: ignore[misc]
                ),
                "indexedVariables": int(values.size),
            }
            for lane, values in enumerate(tile.values)
        ]

    def _elements(self, tile: Tile, lane: int) -> Children:
        digits = 2 * tile.dtype.size_bytes
        return [
            {
                "name": f"[{element}]",
                "value": f"{_element(tile, lane, element)} "
                f"({int(tile.bits[lane, element]):#0{digits + 2}x})",
                "variablesReference": 0,
            }
            for element in range(tile.values.shape[1])
        ]


def _element(tile: Tile, lane: int, element: int) -> str:
    value: np.generic = tile.values[lane, element]
    return f"{value}" if tile.written[lane, element] else f"{value}?"


def _leaf(name: str, value: str, expression: str) -> dict[str, Any]:
    return {"name": name, "value": value, "variablesReference": 0, "evaluateName": expression}
