"""Choices: every decision of a world that nothing forces, by name, so that it can be drawn, overridden and told again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from ..errors import LearnerError

Policy = Callable[[str, int, int, int], int]
"""(point, k, n, drawn) -> value in range(n): decides instead of the drawn value."""


class Drawn(NamedTuple):
    """One choice that was made: the k-th at its point, `value` out of range(n)."""

    point: str
    k: int
    n: int
    value: int


class Choices:
    """One generator per choice point, so that one more draw here moves nothing there.

    A choice is named by (point, k): the k-th draw at that point, counted from 0. Only deviations from what the seed
    draws are stored, in `overrides`; a click, a random search or a shrinker all work on that one table.
    """

    def __init__(self, seed: int | str, overrides: Mapping[tuple[str, int], int] | None = None) -> None:
        self.seed = seed
        self.overrides: dict[tuple[str, int], int] = dict(overrides or {})
        self.policy: Policy | None = None
        self.log: deque[Drawn] | None = None
        """Where each choice is noted, newest last, while somebody wants to see them."""
        self._points: dict[str, tuple[Callable[[], float], list[int]]] = {}

    def choose(self, point: str, n: int) -> int:
        """A number in range(n). With n = 1 nothing is decided, and nothing drawn."""
        if n <= 1:
            if n < 1:
                raise LearnerError(f"choice point {point!r} offers nothing to choose from", "offer at least one way on")
            return 0
        known = self._points.get(point)
        if known is None:
            known = self._points[point] = (Random(f"{self.seed}/{point}").random, [0])
        draw, counter = known
        k = counter[0]
        counter[0] = k + 1
        value = int(draw() * n)
        if self.policy is None and not self.overrides:
            if self.log is not None:
                self.log.append(Drawn(point, k, n, value))
            return value
        if self.policy is not None:
            value = self.policy(point, k, n, value)
        value = self.overrides.get((point, k), value)
        if self.log is not None:
            self.log.append(Drawn(point, k, n, value))
        if not 0 <= value < n:
            raise LearnerError(
                f"choice ({point!r}, {k}) was set to {value}, but only 0..{n - 1} are possible", "correct the override"
            )
        return value

    def override(self, point: str, k: int, value: int) -> None:
        """Set the k-th choice at a point; LearnerError if it was made already."""
        made = self.drawn().get(point, 0)
        if k < made:
            raise LearnerError(
                f"choice ({point!r}, {k}) was made already: {made} draws have been made there",
                f"override one of k = {made} or later, or play the world again from the start with this override",
            )
        self.overrides[point, k] = value

    def drawn(self) -> dict[str, int]:
        """How many draws each point has made so far."""
        return {point: counter[0] for point, (_, counter) in self._points.items()}
