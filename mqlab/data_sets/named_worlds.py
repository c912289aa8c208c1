"""Worlds by name: a line of text that leads to exactly one world, wherever it is played.

A world's name is what `mqlab trace` is called with, `steady-load --seed 7 -p messages=30`. Where a trace is recorded,
the name goes into its header, so each row of a table that is made of it can be played again: in a shell, with
`world_of(name).play()`, or in the live view.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mqlab import scenarios
from mqlab.arguments import named_values, seed_of
from mqlab.errors import LearnerError, MqlabError
from mqlab.explore import draw_plan, faults_of
from mqlab.lab import Lab, noting_labs

FAULTY_PART = 0.75
"""The part of a world's time in which drawn faults begin."""

PIECE_MS = 1_000
"""A world whose player wants to be told how far it is is played in such pieces, which changes nothing in it."""

Told = Callable[[float, float], None]
"""Told how many of a world's seconds have passed, of how many."""

NAME, TRACE_HASH = "world", "trace_hash"
"""Where the header of a recorded trace has the world's name, and the hash of its events."""


class WorldSpec(NamedTuple):
    """Which world: a scenario, a seed, parameters other than the scenario's own, and how long (None: its own time).

    `faults` are the kinds of faults that are drawn from the seed; `settle_seconds` is how long the world goes on behind
    its time.
    """

    scenario: str
    seed: int | str = 0
    parameters: Mapping[str, Any] = {}
    seconds: float | None = None
    faults: tuple[str, ...] = ()
    settle_seconds: float = 0

    @property
    def name(self) -> str:
        """The world's name: the arguments of `mqlab trace`."""
        words = [self.scenario, "--seed", str(self.seed)]
        for key, value in sorted(self.parameters.items()):
            words += ["-p", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        if self.seconds is not None:
            words += ["--seconds", f"{self.seconds:g}"]
        if self.faults:
            words += ["--draw-faults", ",".join(self.faults)]
        if self.settle_seconds:
            words += ["--settle", f"{self.settle_seconds:g}"]
        return shlex.join(words)

    def check(self) -> WorldSpec:
        """The same with its parameters in their types; LearnerError for a scenario or a parameter that is unknown."""
        checked = scenarios.get(self.scenario).check(dict(self.parameters))
        return self._replace(parameters={key: checked[key] for key in self.parameters})

    def play(self, told: Told | None = None, **options: Any) -> Lab:
        """The world, played to its end; options as of `Scenario.build` (`wire`, ...).

        `told` is called now and then with how many of the world's seconds have passed, and how many there are.
        """
        scenario = scenarios.get(self.scenario)
        lab = scenario.build(self.seed, parameters=dict(self.parameters), **options)
        seconds = scenario.seconds if self.seconds is None else self.seconds
        end_us = lab.world.now_us + round(seconds * 1_000_000)
        if self.faults:
            plan = draw_plan(lab, self.faults, round(seconds * 1_000 * FAULTY_PART))
            for fault in faults_of(plan):
                lab.world.run_to(fault.at_us)
                lab.act(fault.verb, **fault.arguments)
        settle_us = round(self.settle_seconds * 1_000_000)
        if told is None:
            lab.run_for(max(0, end_us - lab.world.now_us) / 1_000)
            return lab.run_for(seconds=self.settle_seconds) if self.settle_seconds else lab
        last_us = max(end_us, lab.world.now_us) + settle_us
        while lab.world.now_us < last_us:
            told(lab.world.now_us / 1_000_000, last_us / 1_000_000)
            lab.run_for(min(PIECE_MS, (last_us - lab.world.now_us) / 1_000))
        return lab

    def header(self, lab: Lab) -> dict[str, Any]:
        """What the header of a trace says of its world, which is `lab`."""
        return {
            "scenario": self.scenario,
            "seed": str(self.seed),
            "parameters": dict(self.parameters),
            NAME: self.name,
            TRACE_HASH: lab.trace_hash(),
        }


class Played(NamedTuple):
    """A world that was played, and the error that ended it before its time, if one did."""

    lab: Lab
    problem: MqlabError | None


def played_world(spec: WorldSpec) -> Played:
    """Play a world; what ends it before its time is told, not raised. LearnerError if it cannot even begin."""
    with noting_labs(keep_history=True) as made:
        try:
            return Played(spec.play(), None)
        except MqlabError as problem:
            if not made:
                raise
            return Played(made[0], problem)


_OPTIONS = {"--seed", "--seconds", "--draw-faults", "--settle"}


def world_of(name: str) -> WorldSpec:
    """The world of that name; what follows a `#` is not part of it. LearnerError when it is no world's name."""
    if not isinstance(name, str):
        hint = "the tables of a build have numbers of worlds: join the column `name` of their table `worlds`"
        raise LearnerError(f"{name!r} is not the name of a world", hint)
    try:
        words = shlex.split(name, comments=True)
    except ValueError:
        words = []
    fields: dict[str, str] = {}
    given: list[str] = []
    for option, value in zip(words[1::2], words[2::2], strict=False):
        if option == "-p":
            given.append(value)
        else:
            fields[option] = value
    if not words or len(words) % 2 == 0 or set(fields) - _OPTIONS:
        raise LearnerError(f"{name!r} is not the name of a world", "write: SCENARIO --seed N -p NAME=VALUE")
    try:
        seconds = float(fields["--seconds"]) if "--seconds" in fields else None
        settle = float(fields.get("--settle", 0))
    except ValueError as problem:
        raise LearnerError(f"{name!r} is not the name of a world: {problem}", "write seconds like 1.5") from None
    faults = tuple(filter(None, fields.get("--draw-faults", "").split(",")))
    return WorldSpec(
        words[0], seed_of(fields.get("--seed", "0")), named_values(given), seconds, faults, settle
    ).check()  # fmt: skip


def seeds_of(text: str) -> list[int]:
    """The seeds in a text such as "0-999" or "3,7,20-29"; LearnerError for any other text."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise LearnerError(f"{text!r} are no seeds", "write them like 0-999 or 3,7,20-29")
        seeds += range(int(first), int(last if dash else first) + 1)
    return seeds
