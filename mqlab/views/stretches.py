"""Stretches: what something was between two times, when it is known when it became so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

State = TypeVar("State")


def states_between(changes: Sequence[tuple[int, State]], begin_us: int, end_us: int) -> list[tuple[int, int, State]]:
    """The states of (when, what it became) between two times, as (from, to, state); equal neighbours are one."""
    found: list[tuple[int, int, State]] = []
    for number, (at_us, state) in enumerate(changes):
        until_us = changes[number + 1][0] if number + 1 < len(changes) else end_us
        begin, end = max(at_us, begin_us), min(until_us, end_us)
        if begin >= end:
            continue
        if found and found[-1][2] == state:
            begin = found.pop()[0]
        found.append((begin, end, state))
    return found
