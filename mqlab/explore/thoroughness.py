"""How thorough a corpus is: what was seen and when, the chance of more, and what was never seen.

The chance that the next world shows something new is Good's and Turing's: a world that has shown something which no
other one has would have been new whenever it had come last. So the share of such worlds is what to expect of the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mqlab.explore.corpus import World
from mqlab.explore.seen import PAIR, kind_of

HELD_BACK = 10
"""One in so many worlds, the last ones, tests what was to be expected by those before them."""
LEAST_TESTED = 10
"""Fewer worlds test nothing."""


class Seed(NamedTuple):
    """Which world it was: the label of its corpus, and its seed."""

    label: str
    seed: int

    def __str__(self) -> str:
        return f"{self.label} seed {self.seed}"


class Point(NamedTuple):
    """What was known after some worlds: how many things had been seen, and the chance that the next shows a new one."""

    worlds: int
    things: int
    chance: float


class Forecast(NamedTuple):
    """The chance by the first `worlds`, and how many of the `later` ones did show something new."""

    worlds: int
    chance: float
    later: int
    new: int


class Count(NamedTuple):
    """How often something was, and in how many worlds."""

    times: int
    worlds: int


class Curve:
    """What was seen of some kinds of things, world after world.

    `first` is the world that showed each first, in that order, `once` what no other world has shown since; `points`
    says after each world what was known.
    """

    def __init__(self) -> None:
        self.first: dict[str, Seed] = {}
        self.once: set[str] = set()
        self.points: list[Point] = []
        self._alone: Counter[Seed] = Counter()
        """World -> how many things this one alone has shown, if there are any."""
        self._new: list[bool] = []

    def add(self, seed: Seed, new: Iterable[str], again: Iterable[str]) -> None:
        """Count one more world: what it shows first in its corpus, and what it shows there as the second one.

        When corpora are read one after the other, what is new in a later one may have been seen before.
        """
        before = len(self.first)
        for name in new:
            if name in self.first:
                self._seen_again(name)
            else:
                self.first[name] = seed
                self.once.add(name)
                self._alone[seed] += 1
        for name in again:
            self._seen_again(name)
        worlds = len(self.points) + 1
        self._new.append(len(self.first) > before)
        self.points.append(Point(worlds, len(self.first), len(self._alone) / worlds))

    def _seen_again(self, name: str) -> None:
        if name in self.once:
            self.once.remove(name)
            whose = self.first[name]
            self._alone[whose] -= 1
            if not self._alone[whose]:
                del self._alone[whose]

    @property
    def alone(self) -> int:
        """How many worlds have shown something that no other one has."""
        return len(self._alone)

    @property
    def chance(self) -> float:
        """The chance that the next world shows something new, from 0 to 1."""
        return self.points[-1].chance if self.points else 1.0

    def forecast(self) -> Forecast | None:
        """What was to be expected of the last tenth of the worlds, and what came; None of fewer than 100 worlds."""
        later = len(self.points) // HELD_BACK
        if later < LEAST_TESTED:
            return None
        known = self.points[-later - 1]
        return Forecast(known.worlds, known.chance, later, sum(self._new[-later:]))

    def after(self) -> Iterator[Point]:
        """The points after 1, 10, 100 ... worlds, and after all."""
        worlds = 1
        while worlds < len(self.points):
            yield self.points[worlds - 1]
            worlds *= 10
        yield from self.points[-1:]


class Thoroughness:
    """What the worlds of a corpus, or of several, say together.

    `could` says of which kinds there is a list of all that could be seen. `named` is the curve of things with a name
    of their own, `pairs` that of pairs of events, of which there are too many to name those that never came;
    `unended` counts worlds in which messages were sent to the last.
    """

    def __init__(self, worlds: Iterable[World], could: Mapping[str, list[str]]) -> None:
        self.could = could
        self.named, self.pairs = Curve(), Curve()
        self.seeds: list[Seed] = []
        self.failures: list[World] = []
        self.unended = 0
        self.judged: dict[str, Count] = {}
        self.excused: dict[str, Count] = {}
        for world in worlds:
            self._add(world)

    def _add(self, world: World) -> None:
        seed = Seed(world.label, world.seed)
        self.seeds.append(seed)
        for curve, paired in ((self.named, False), (self.pairs, True)):
            new, again = ([name for name in part if _is_pair(name) is paired] for part in (world.new, world.again))
            curve.add(seed, new, again)
        self.unended += not world.load_ended
        if world.failure is not None:
            self.failures.append(world)
        for counts, more in ((self.judged, world.judged), (self.excused, world.excused)):
            for name, times in more.items():
                before = counts.get(name, Count(0, 0))
                counts[name] = Count(before.times + times, before.worlds + bool(times))

    @property
    def kinds(self) -> list[str]:
        """The kinds of things that were seen or could have been."""
        return sorted({*self.could, *map(kind_of, self.named.first)})

    def seen(self, kind: str) -> dict[str, Seed]:
        """What was seen of a kind, without the kind in front, and the world that showed it first."""
        found = self.named.first
        return {_name(name): seed for name, seed in found.items() if kind_of(name) == kind}

    def once(self, kind: str) -> int:
        """How many things of a kind a single world has shown."""
        return sum(kind_of(name) == kind for name in self.named.once)

    def never(self, kind: str) -> list[str]:
        """What could be seen of a kind, and never was; nothing where there is no such list."""
        return [_name(name) for name in self.could.get(kind, ()) if name not in self.named.first]


def _is_pair(name: str) -> bool:
    return kind_of(name) == PAIR


def _name(feature: str) -> str:
    return feature.partition(" ")[2]
