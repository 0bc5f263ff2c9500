"""What happens before what: vector clocks that semaphores and events carry between engines.

Word n of an engine (counted from 1 as it runs) has two moments: 2n - 1 when its reads are done and
2n when it is complete. A clock holds, for each engine, the last moment that is known to have
passed. On one engine every moment comes after all earlier ones. An update passes on the clock that
its word has at the update; a wait takes over what must have passed whenever it is met.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence

from attrs import define, field, frozen

from neuron_emu.engines.sequencer import Wait
from neuron_emu.isa.enums import Engine

__all__ = ["Clock", "Condition", "Orders", "condition_of"]

Clock = tuple[int, ...]
"""The last known moment of each engine, in the order of `Engine`."""
NUM_ENGINES = len(Engine)
_PRUNE_AT, _MOST_UPDATES = 32, 1024
_BITS, _SIGN = 1 << 32, 1 << 31
_COMPARE: dict[str, tuple[Callable[[int, int], bool], int]] = {
    "EQ": (operator.eq, 0),
    "LT": (operator.lt, -1),
    "LE": (operator.le, -1),
    "GT": (operator.gt, 1),
    "GE": (operator.ge, 1),
}
"""Each comparison with the direction in which a counter comes to meet it."""


def _signed(value: int) -> int:
    return (value + _SIGN) % _BITS - _SIGN


def joined(a: Sequence[int], b: Sequence[int]) -> Clock:
    """Return the clock that knows what either knows."""
    return tuple(map(max, a, b))


@frozen
class Condition:
    """What a wait waits for: `is_met` of a value, and the direction that leads there (0: none)."""

    kind: str
    index: int
    is_met: Callable[[int], bool]
    direction: int


def condition_of(wait: Wait, registers: Sequence[int]) -> Condition:
    """Return the condition of a wait at this moment."""
    kind, comparison, *_ = wait.mode.name.split("_")
    if kind == "EVT":
        wanted = int(comparison == "SET")
        return Condition("E", wait.index, lambda value: value == wanted, 0)
    compare, direction = _COMPARE[comparison]
    limit = wait.threshold(registers)
    return Condition("S", wait.index, lambda value: compare(_signed(value), limit), direction)


@frozen
class _Update:
    """A change of a semaphore or event: added to it, or put in its place; by whom and when."""

    amount: int
    is_absolute: bool
    engine: int
    time: int
    clock: Clock

    def applied(self, value: int) -> int:
        return self.amount if self.is_absolute else value + self.amount


@define
class _Variable:
    """A semaphore or event: the value that it had, and the updates since then in the order run.

    `clock` is what every wait on it takes over: updates that are too many to keep one by one.
    """

    value: int
    clock: Clock = (0,) * NUM_ENGINES
    updates: list[_Update] = field(factory=list)

    def value_after(self, updates: Iterable[_Update]) -> int:
        value = self.value
        for update in updates:
            value = update.applied(value)
        return value

    def fold(self, count: int, *, is_known: bool) -> None:
        """Forget the first `count` updates; unless all engines know them, waits take them over."""
        gone = self.updates[:count]
        self.value = self.value_after(gone)
        del self.updates[:count]
        if not is_known:
            for update in gone:
                self.clock = joined(self.clock, update.clock)


class Orders:
    """The clocks of all engines and what semaphores and events pass on.

    Attributes
    ----------
    engines: those that have a stream.
    clocks: of each engine; what it knows of itself is its latest moment.
    """

    def __init__(self, engines: Sequence[int], is_live: Callable[[int], bool]) -> None:
        self.engines = tuple(engines)
        self._is_live = is_live
        self.clocks = [[0] * NUM_ENGINES for _ in range(NUM_ENGINES)]
        self._variables: dict[tuple[str, int], _Variable] = {}

    def advance(self, engine: int, time: int) -> None:
        """Note that an engine has come to a moment of its own."""
        self.clocks[engine][engine] = time

    def known_to_all(self, engine: int) -> int:
        """Return the last moment of an engine that all other live engines know to have passed."""
        return min(
            (
                self.clocks[other][engine]
                for other in self.engines
                if other != engine and self._is_live(other)
            ),
            default=self.clocks[engine][engine],
        )

    # --- updates --------------------------------------------------------------------------------

    def add(self, kind: str, index: int, old: int, amount: int, engine: int) -> None:
        """Pass on an engine's clock with an amount that is added; `old` is the value before."""
        self._append(kind, index, old, amount, engine, is_absolute=False)

    def put(self, kind: str, index: int, old: int, value: int, engine: int) -> None:
        """Pass on an engine's clock with a value that replaces the `old` one."""
        self._append(kind, index, old, value, engine, is_absolute=True)

    def _append(
        self, kind: str, index: int, old: int, amount: int, engine: int, *, is_absolute: bool
    ) -> None:
        variable = self._variables.get((kind, index))
        if variable is None:
            variable = self._variables[kind, index] = _Variable(old)
        clock = tuple(self.clocks[engine])
        update = _Update(_signed(amount), is_absolute, engine, clock[engine], clock)
        variable.updates.append(update)
        if len(variable.updates) % _PRUNE_AT == 0:
            self._prune(variable)

    def _prune(self, variable: _Variable) -> None:
        known = 0
        limits = [self.known_to_all(engine) for engine in range(NUM_ENGINES)]
        for update in variable.updates:
            if update.time > limits[update.engine]:
                break
            known += 1
        variable.fold(known, is_known=True)
        excess = len(variable.updates) - _MOST_UPDATES
        if excess > 0:
            variable.fold(excess, is_known=False)

    # --- waits ----------------------------------------------------------------------------------

    def clock_if_met(self, engine: int, conditions: Iterable[Condition]) -> Clock:
        """Return what an engine would know of all updates so far if its waits were met."""
        clock = tuple(self.clocks[engine])
        for condition in conditions:
            variable = self._variables.get((condition.kind, condition.index))
            for update in variable.updates if variable is not None else ():
                clock = joined(clock, update.clock)
        return clock

    def wait(self, engine: int, condition: Condition, value: int) -> None:
        """Take over what must have passed for a wait to be met, now that the value meets it."""
        variable = self._variables.get((condition.kind, condition.index))
        if variable is None:
            return
        found = variable.value_after(variable.updates)
        if _signed(found) != _signed(value):
            # Something else has set it: from now on it counts from there.
            variable.fold(len(variable.updates), is_known=False)
            variable.value = value
        clock = joined(self.clocks[engine], variable.clock)
        self.clocks[engine] = list(joined(clock, _guaranteed(variable, condition, clock)))


def _guaranteed(variable: _Variable, condition: Condition, known: Clock) -> Clock:
    """Return what must have passed for the condition to hold, given what is known."""
    open_updates = [u for u in variable.updates if u.time > known[u.engine]]
    if not open_updates:
        return known
    direction = condition.direction
    if direction and all(u.amount * direction > 0 and not u.is_absolute for u in open_updates):
        return _by_counting(variable, open_updates, condition, known)
    return _by_replay(variable, condition, known)


def _by_counting(
    variable: _Variable, open_updates: list[_Update], condition: Condition, known: Clock
) -> Clock:
    """Find, for each engine, the last moment without which too few updates could have come.

    All open updates count in the direction of the condition. Updates that are known come first.
    Without moment t of an engine no update could have come whose clock knows t. So the updates
    are taken in the order of what they know of that engine until the condition holds.
    """
    base = variable.value_after(u for u in variable.updates if u.time <= known[u.engine])
    if condition.is_met(base):
        return known
    clock = list(known)
    for engine in range(NUM_ENGINES):
        value = base
        for update in sorted(open_updates, key=lambda u: u.clock[engine]):
            value += update.amount
            if condition.is_met(value):
                clock[engine] = max(clock[engine], update.clock[engine])
                break
    return tuple(clock)


def _by_replay(variable: _Variable, condition: Condition, known: Clock) -> Clock:
    """Take the updates in the order run, up to the first after which the condition holds.

    Updates that are known must be among them.
    """
    known_left = sum(u.time <= known[u.engine] for u in variable.updates)
    value, clock = variable.value, known
    for update in (None, *variable.updates):
        if update is not None:
            value = update.applied(value)
            clock = joined(clock, update.clock)
            known_left -= update.time <= known[update.engine]
        if not known_left and condition.is_met(value):
            break
    return clock
