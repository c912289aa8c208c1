"""The numbers that commands take: a type for argparse for each range, so that a wrong one is told at once.

`parser.add_argument("--jobs", type=whole(1))` refuses 0, -1, "two" and 1.5 with what it takes, and exit status 2.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from math import isfinite

MOST = 1_000_000_000


def whole(least: int, most: int = MOST) -> Callable[[str], int]:
    """Whole numbers from `least` to `most`, both included."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is no whole number") from None
        if not least <= number <= most:
            raise ArgumentTypeError(f"{text} is not from {least} to {most}")
        return number

    return read


def share(text: str) -> float:
    """A share above 0, up to 1. Who means per cent is told how that is written."""
    try:
        return number(0, 1, above=True)(text)
    except ArgumentTypeError as problem:
        raise ArgumentTypeError(f"{problem}: this is a share, so 80 % is 0.8") from None


def number(least: float, most: float = MOST, *, above: bool = False) -> Callable[[str], float]:
    """Finite numbers from `least` to `most`; with `above` the least one itself is not among them."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is no number") from None
        if not isfinite(value) or not least <= value <= most or (above and value == least):
            span = f"above {least:g}, up to" if above else f"from {least:g} to"
            raise ArgumentTypeError(f"{text} is not {span} {most:g}")
        return value

    return read
