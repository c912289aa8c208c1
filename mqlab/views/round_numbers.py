"""The round numbers that stand along an axis."""

from __future__ import annotations

from math import floor, log10

_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 3_600)


def round_step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, 50, ... (and their tenths) that is not below `least`."""
    power: float = 10.0 ** floor(log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def round_us(least: float, finest: int) -> int:
    """The same in whole microseconds, from `finest` up."""
    return round(round_step(max(least, finest)))


def round_seconds(span_us: int) -> int:
    """The seconds between two marks of an axis so long, of which it has twelve at the most: 1, 2, 5, 10, 20, 30, ..."""
    return next((step for step in _SECONDS if span_us / step <= 12e6), _SECONDS[-1])
