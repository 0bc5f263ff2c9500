"""NaN and infinity: which word makes one from inputs that have none, and in which element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from attrs import frozen

from neuron_emu.engines.core import Effects, EngineState, Operands, Prepared
from neuron_emu.isa.enums import DType
from neuron_emu.issue import Issued
from neuron_emu.memory import Bits
from neuron_emu.numerics import to_float32
from neuron_emu.sanitize.origin import Place, station_of
from neuron_emu.sanitize.report import Report, Word

__all__ = ["NonFinite"]

Mask = npt.NDArray[np.bool_]
Test = Callable[[npt.NDArray[np.float32]], Mask]
_KINDS: tuple[tuple[str, str, Test], ...] = (
    ("made_nan", "NaN", np.isnan),
    ("made_infinity", "infinity", np.isinf),
)
_EXPONENTS = {DType.BFLOAT16: np.uint16(0x7F80), DType.FP16: np.uint16(0x7C00)}
"""Exponents of infinities and NaNs, where looking at bits is quicker than converting them."""


@frozen(eq=False)
class _Moment:
    """One execution, seen after its reads and before its writes."""

    word: Word
    issued: Issued
    prepared: Prepared
    operands: Operands
    effects: Effects
    state: EngineState

    def inputs(self, test: Test) -> list[Mask]:
        """Return which elements of each input pass a test."""
        masks = [
            test(self.floats(read.elements(), read.dtype))
            for read in self.operands.read
            if read.dtype.is_float
        ]
        lanes = self.prepared.uses_accumulator
        if lanes:
            masks.append(test(self.state.accumulator.values[:lanes, None]))
        return masks

    def floats(self, bits: Bits, dtype: DType) -> npt.NDArray[np.float32]:
        """Return elements as float32."""
        return np.asarray(to_float32(bits, dtype, self.state.formats))

    def place(self, lane: int, element: int, test: Test) -> Place | None:
        """Return where an element that passes a test arises, if it can be run alone."""
        return station_of(self.issued, self.operands, self.effects, self.state, lane, element, test)


class NonFinite:
    """Reports the first NaN and the first infinity that each word makes."""

    def __init__(self, report: Callable[[Report], None]) -> None:
        self._report = report
        self._told: set[tuple[str, str]] = set()

    def check(
        self,
        word: Word,
        issued: Issued,
        prepared: Prepared,
        operands: Operands,
        effects: Effects,
        state: EngineState,
    ) -> None:
        """Look at what a word is about to write."""
        moment = _Moment(word, issued, prepared, operands, effects, state)
        results = self._results(moment)
        sums = self._new_in_accumulator(moment)
        if results is None and sums is None:
            return
        for name, noun, test in _KINDS:
            if (word.place, name) in self._told:
                continue
            found = None if results is None else self._in_results(moment, results, test)
            if found is None and sums is not None:
                found = self._in_accumulator(moment, sums, results, test)
            if found is not None:
                self._tell(moment, name, noun, found)

    def _results(self, moment: _Moment) -> npt.NDArray[np.float32] | None:
        """Return what is written as float32, None when all of it is finite or no numbers."""
        dtype = moment.operands.written
        if dtype is None or not dtype.is_float or not moment.effects.writes:
            return None
        bits = moment.effects.writes[0][1]
        exponent = _EXPONENTS.get(dtype)
        if exponent is not None and not bool(((bits & exponent) == exponent).any()):
            return None
        values = moment.floats(bits, dtype)
        return None if bool(np.isfinite(values).all()) else values

    def _new_in_accumulator(self, moment: _Moment) -> npt.NDArray[np.float32] | None:
        """Return the accumulator where it is defined and was finite before; None when finite."""
        after, before = moment.effects.accumulator, moment.state.accumulator
        if after is None or bool(np.isfinite(after.values).all()):
            return None
        is_new = ~after.undefined & np.isfinite(before.values)
        return np.where(is_new, after.values, np.float32(0))

    def _in_results(
        self, moment: _Moment, results: npt.NDArray[np.float32], test: Test
    ) -> Place | None:
        """Return where the first one arises.

        With one among the inputs too, only an element that computes to the same bits by itself
        from its own finite inputs counts.
        """
        made = test(results)
        if not made.any():
            return None
        inputs = moment.inputs(test)
        if not any(mask.any() for mask in inputs):
            lane, element = _first(made)
            return moment.place(lane, element, test) or Place(lane, element, "operation")
        for mask in inputs:
            if mask.any():
                try:
                    made = made & ~np.broadcast_to(mask, made.shape)
                except ValueError:
                    return None
        if not made.any():
            return None
        place = moment.place(*_first(made), test)
        return place if place is not None and place.is_verified else None

    def _in_accumulator(
        self,
        moment: _Moment,
        sums: npt.NDArray[np.float32],
        results: npt.NDArray[np.float32] | None,
        test: Test,
    ) -> Place | None:
        made = test(sums)
        if not made.any() or (results is not None and test(results).any()):
            return None
        if any(mask.any() for mask in moment.inputs(test)):
            return None
        return Place(int(made.argmax()), None, "accumulator")

    def _tell(self, moment: _Moment, name: str, noun: str, place: Place) -> None:
        self._told.add((moment.word.place, name))
        article = "an" if noun == "infinity" else "a"
        element = "" if place.element is None else f", element {place.element}"
        self._report(
            Report(
                name=name,
                message=(
                    f"makes {article} {noun} from inputs without one, first in lane"
                    f" {place.lane}{element}, at station {place.station}"
                ),
                words=(moment.word,),
                lane=place.lane,
                element=place.element,
                station=place.station,
            )
        )


def _first(mask: Mask) -> tuple[int, int]:
    """Return lane and element of the first True in stream order, lanes innermost."""
    element = int(mask.any(axis=0).argmax())
    return int(mask[:, element].argmax()), element
