"""How figures are measured: CPU time, contenders in turns, the median of five, the garbage collector kept out."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any, Literal, NamedTuple

ROUNDS = 5

Better = Literal["higher", "lower"]
Contender = Callable[[], Callable[[], int]]
"""Prepares a run (not measured) and returns it; the run (measured) returns how many operations it did."""


class Figure(NamedTuple):
    """One row of the table.

    With a `versus` (the same measure of a peer, or a limit, taken in the same run) the aim holds for `ratio`, which is
    value / versus; without one it holds for the value itself. `better` says on which side of the aim it should lie.
    """

    name: str
    value: float
    unit: str
    versus: float | None
    ratio: float | None
    aim: float
    better: Better
    met: bool


def figure(name: str, value: float, unit: str, *, aim: float, better: Better, versus: float | None = None) -> Figure:
    """A figure with its ratio and its verdict filled in."""
    ratio = None if versus is None else value / versus
    measured = value if ratio is None else ratio
    met = measured >= aim if better == "higher" else measured <= aim
    return Figure(name, _rounded(value), unit, _rounded(versus), _rounded(ratio), aim, better, met)


def _rounded(number: float | None) -> Any:
    return None if number is None else float(f"{number:.4g}")


@contextmanager
def garbage_collector_off() -> Iterator[None]:
    """Collect once, then keep the collector out of what follows."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def seconds_of(run: Callable[[], Any]) -> float:
    """The CPU seconds of this process that one call takes."""
    with garbage_collector_off():
        began = time.process_time()
        run()
        return time.process_time() - began


def operations_per_second(contenders: Mapping[str, Contender], rounds: int = ROUNDS) -> dict[str, float]:
    """The median rate of each contender; they run in turns, A B A B, so that a slow moment of the machine hits all."""
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, prepare in contenders.items():
            run = prepare()
            operations = 0

            def counted(run: Callable[[], int] = run) -> None:
                nonlocal operations
                operations = run()

            seconds = seconds_of(counted)
            rates[name].append(operations / seconds)
    return {name: median(measured) for name, measured in rates.items()}
