"""How figures are measured: CPU time, contenders in turns, the median of five, the garbage collector kept out."""

from __future__ import annotations

import gc
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any, Literal, NamedTuple

from mqlab.fast import running

ROUNDS = 5

Better = Literal["higher", "lower"]
Contender = Callable[[], Callable[[], int]]
"""Prepares a run (not measured) and returns it; the run (measured) returns how many operations it did."""


class Figure(NamedTuple):
    """One row of the table.

    With a `versus` (the same measure of a peer, or a limit, taken in the same run) the aim holds for `ratio`, which is
    value / versus; without one it holds for the value itself. `better` says on which side of the aim it should lie. A
    figure without an aim only stands beside the others.
    """

    name: str
    value: float
    unit: str
    versus: float | None
    ratio: float | None
    aim: float | None
    better: Better
    met: bool


def figure(name: str, value: float, unit: str, *, aim: float, better: Better, versus: float | None = None) -> Figure:
    """A figure with its ratio and its verdict filled in."""
    ratio = None if versus is None else value / versus
    measured = value if ratio is None else ratio
    met = measured >= aim if better == "higher" else measured <= aim
    return Figure(name, _rounded(value), unit, _rounded(versus), _rounded(ratio), aim, better, met)


def beside(name: str, value: float, unit: str, versus: float) -> Figure:
    """A figure beside another, without an aim."""
    return Figure(name, _rounded(value), unit, _rounded(versus), _rounded(value / versus), None, "higher", True)


def shown(name: str, value: float, unit: str) -> Figure:
    """A figure that stands alone, without an aim."""
    return Figure(name, _rounded(value), unit, None, None, None, "higher", True)


def python_build() -> str:
    """Which Python measures, and whether it was built with profile-guided optimization, which is worth up to a third.

    Debian's Python does not say how it was built.
    """
    if "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""):
        profile = "built with PGO"
    elif sysconfig.get_config_var("PGO_PROF_USE_FLAG"):
        profile = "built without PGO"
    else:
        profile = "which does not say whether it was built with PGO"
    return f"{sys.implementation.name} {sys.version.split()[0]}, {profile}; mqlab {running()}"


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
