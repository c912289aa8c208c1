"""What a judge finds out with one seed: it went well, perhaps with figures, or something was wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wrong:
    """What went wrong with one seed: an explanation, and the trace (as text) that shows it.

    A judge that needs no world may name one that shows the same: `world` is called when the verdict is opened, and
    plays a `Lab`. `share` and `cases` come from `Cases`.
    """

    explanation: str
    trace: str = ""
    world: Callable[[], object] | None = None
    share: float = 0.0
    """How much of the seed went well all the same, from 0 to 1."""
    cases: tuple[int, int] | None = None
    """How many cases went well, and of how many; None where a seed is one case."""


@dataclass(frozen=True, slots=True)
class Right:
    """This seed went well, with figures that could be beaten: `Right({"queues moved": {"yours": 31, "AVG": 52}})`.

    What is counted, and how much of it there was, by whose rule; the first is the student's. The verdict adds up the
    figures of all seeds.
    """

    figures: Mapping[str, Mapping[str, float]]
