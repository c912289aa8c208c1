"""Scales: from numbers to places on an axis, and the round numbers that stand along it."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor, log10
from typing import NamedTuple

from mqlab.views.round_numbers import round_step

_MOST_TICKS = 8


class Scale(NamedTuple):
    """An axis from `low` to `high`, drawn from `start` to `end` px; with `log` a step is a factor and not a sum."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def exact(self, value: float) -> float:
        """The place of a value, in px."""
        low, high, at = (log10(v) for v in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def __call__(self, value: float) -> float:
        """The same in hundredths of a px."""
        return round(self.exact(value), 2)

    def ticks(self, most: int = _MOST_TICKS, finest: float = 1e-300) -> list[float]:
        """Round numbers along the axis, so many of them at most; powers of ten on a logarithmic one."""
        if self.log:
            exponents = range(ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9) + 1)
            every = ceil(len(exponents) / most)
            return [10.0**exponent for exponent in exponents[::every]]
        step = round_step(max((self.high - self.low) / most, finest))
        return [round(n * step, 10) for n in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)]


def height_scale(heights: Iterable[float], start: float, end: float) -> Scale:
    """A scale from 0 to a round number above the tallest."""
    tallest = max(heights)
    top = tallest or 1.0
    step = round_step(top / _MOST_TICKS)
    return Scale(0, ceil(top / step - 1e-9) * step, start, end)


def value_scale(values: Iterable[float], start: float, end: float, *, log: bool) -> Scale:
    """A scale that holds all values: between powers of ten when it is logarithmic, else from 0 (or below)."""
    known = sorted(values)
    low, high = known[0], known[-1]
    if log:
        first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
        return Scale(10.0**first, 10.0 ** max(last, first + 1), start, end, log=True)
    step = round_step(max(high - min(low, 0), 1e-9) / _MOST_TICKS)
    return Scale(floor(min(low, 0) / step) * step, max(ceil(high / step - 1e-9) * step, step), start, end)


def number(value: float) -> str:
    """A number as it stands at an axis: 1,500 and 0.25 and 20."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 1_000 else f"{value:.6g}"
