"""Choices: every decision of a world that nothing forces, by name, so that it can be drawn, overridden and told again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from mqlab.errors import LearnerError

Policy = Callable[[str, int, int, int], int]
"""(point, k, n, drawn) -> value in range(n): decides instead of the drawn value."""


class Drawn(NamedTuple):
    """One choice that was made: the k-th at its point, `value` out of range(n)."""

    point: str
    k: int
    n: int
    value: int


class Point:
    """One choice point: its generator, and how many draws it has made. Who chooses there often keeps it."""

    __slots__ = ("_choices", "_random", "made", "name")

    def __init__(self, choices: Choices, name: str) -> None:
        self._choices = choices
        self._random = Random(f"{choices.seed}/{name}").random
        self.name = name
        self.made = 0

    def choose(self, n: int) -> int:
        """A number in range(n). With n = 1 nothing is decided, and nothing drawn."""
        if n <= 1:
            if n < 1:
                raise LearnerError(
                    f"choice point {self.name!r} offers nothing to choose from", "offer at least one way on"
                )
            return 0
        self.made = (k := self.made) + 1
        value = int(self._random() * n)
        choices = self._choices
        if choices.policy is None and choices.log is None and not choices.overrides:
            return value
        return choices.decide(self.name, k, n, value)


class Choices:
    """One generator per choice point, so that one more draw here moves nothing there.

    A choice is named by (point, k): the k-th draw at that point, counted from 0. Only deviations from what the seed
    draws are stored, in `overrides`; a click, a random search or a shrinker all work on that one table.
    """

    def __init__(
        self, seed: int | str, overrides: Mapping[tuple[str, int], int] | None = None, policy: Policy | None = None
    ) -> None:
        self.seed = seed
        self.overrides: dict[tuple[str, int], int] = dict(overrides or {})
        self.policy = policy
        self.deviations: dict[tuple[str, int], int] = {}
        """What the policy has decided otherwise than the seed: as overrides they play the same world without it."""
        self.log: deque[Drawn] | None = None
        """Where each choice is noted, newest last, while somebody wants to see them."""
        self._points: dict[str, Point] = {}
        self._ties: Counter[str] = Counter()

    def point(self, name: str) -> Point:
        """The choice point of that name."""
        point = self._points.get(name)
        if point is None:
            point = self._points[name] = Point(self, name)
        return point

    def choose(self, point: str, n: int) -> int:
        """A number in range(n), drawn at that point. With n = 1 nothing is decided, and nothing drawn."""
        return self.point(point).choose(n)

    def choose_tied(self, names: Sequence[str]) -> int:
        """Which of these goes first, at a point that is named by who is tied; with one name nothing is decided.

        The k-th tie of these very ones is the k-th choice there, whoever else was tied before: an override of one tie
        leaves the draws of all others as they are. There are as many points as there are sets of names, so each draw
        has a generator of its own name, and none is kept.
        """
        n = len(names)
        if n == 1:
            return 0
        point = "ties/" + " | ".join(names)
        k = self._ties[point]
        self._ties[point] = k + 1
        value = int(Random(f"{self.seed}/{point}/{k}").random() * n)
        if self.policy is None and self.log is None and not self.overrides:
            return value
        return self.decide(point, k, n, value)

    def decide(self, point: str, k: int, n: int, value: int) -> int:
        """What becomes of the drawn value where a policy, an override or the log has a say."""
        # A policy may count what it is asked: it is asked about what is overridden, too.
        decided = value if self.policy is None else self.policy(point, k, n, value)
        if (point, k) in self.overrides:
            value = self.overrides[point, k]
        elif decided != value:
            value = self.deviations[point, k] = decided
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
        return {name: point.made for name, point in self._points.items() if point.made} | self._ties
