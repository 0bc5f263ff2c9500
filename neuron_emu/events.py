"""What a run reports: faults, warnings and trace events, as plain frozen records.

Architectural faults are results (design.md 5): a step returns one, it never raises.
"""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from neuron_emu.isa.enums import Engine

__all__ = ["Event", "Fault", "Notice"]


@frozen(kw_only=True)
class Fault:
    """Why a stream stopped.

    `name` is the failing conjunct of a refused word, or one of `address`, `opcode`, `tables`,
    `register`, `branch`, `divide`, `deadlock`, `max_steps`, `no_model`. `address` is the first bad
    local address, if any. `names` lists all failing conjuncts. `index` is the word's place in its
    stream.
    """

    engine: Engine
    index: int
    name: str
    message: str
    address: int | None = None
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"{self.engine.name.lower()}[{self.index}]"
        return f"{where}: {self.name}: {self.message}"


@frozen(kw_only=True)
class Notice:
    """Something that never stops a run: its kind, where it arose and one sentence."""

    engine: Engine
    index: int
    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.engine.name.lower()}[{self.index}]: {self.name}: {self.message}"


@frozen(kw_only=True)
class Event:
    """One line of a trace.

    `kind` is `issue`, `station`, `warning`, `fault` or `end`; `station` names one of the stations
    of design.md 2. `detail` holds plain JSON values.
    """

    step: int
    engine: Engine
    index: int
    kind: str
    station: str | None = None
    detail: dict[str, Any] = field(factory=dict)
