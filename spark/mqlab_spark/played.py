"""Worlds by name, and their events as Arrow batches: what a Spark task plays.

A world's name is what `mqlab trace` is called with, `steady-load --seed 7 -p messages=30`, so a row of any table can
be played again: in a shell, or with `world_of(name).play()`. The same name gives the same events wherever it is played.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from mqlab import scenarios
from mqlab.arguments import named_values, seed_of
from mqlab.errors import LearnerError, MqlabError
from mqlab.lab import Lab, noting_labs
from mqlab.trace.record import KIND
from mqlab.trace.recorder import BATCH_ROWS, arrow_arrays


class WorldSpec(NamedTuple):
    """Which world: a scenario, a seed, parameters other than the scenario's own, and how long (None: its own time)."""

    scenario: str
    seed: int | str = 0
    parameters: Mapping[str, Any] = {}
    seconds: float | None = None

    @property
    def name(self) -> str:
        """The world's name: the arguments of `mqlab trace`."""
        words = [self.scenario, "--seed", str(self.seed)]
        for key, value in sorted(self.parameters.items()):
            words += ["-p", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        if self.seconds is not None:
            words += ["--seconds", f"{self.seconds:g}"]
        return shlex.join(words)

    def check(self) -> WorldSpec:
        """The same with its parameters in their types; LearnerError for a scenario or a parameter that is unknown."""
        checked = scenarios.get(self.scenario).check(dict(self.parameters))
        return self._replace(parameters={key: checked[key] for key in self.parameters})

    def play(self) -> Lab:
        """The world, played to its end."""
        played = played_world(self)
        if played.problem is not None:
            raise played.problem
        return played.lab


class Played(NamedTuple):
    """A world that was played, and the error that ended it before its time, if one did."""

    lab: Lab
    problem: MqlabError | None


def world_of(name: str) -> WorldSpec:
    """The world of that name; LearnerError when the text is no world's name."""
    words = shlex.split(name)
    fields: dict[str, str] = {}
    given: list[str] = []
    for option, value in zip(words[1::2], words[2::2], strict=False):
        if option == "-p":
            given.append(value)
        else:
            fields[option] = value
    if not words or len(words) % 2 == 0 or set(fields) - {"--seed", "--seconds"}:
        raise LearnerError(f"{name!r} is not the name of a world", "write: SCENARIO --seed N -p NAME=VALUE")
    seconds = float(fields["--seconds"]) if "--seconds" in fields else None
    return WorldSpec(words[0], seed_of(fields.get("--seed", "0")), named_values(given), seconds).check()


def seeds_of(text: str) -> list[int]:
    """The seeds in a text such as "0-999" or "3,7,20-29"; LearnerError for any other text."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise LearnerError(f"{text!r} are no seeds", "write them like 0-999 or 3,7,20-29")
        seeds += range(int(first), int(last if dash else first) + 1)
    return seeds


def played_world(spec: WorldSpec) -> Played:
    """Play a world; what ends it before its time is told, not raised. LearnerError if it cannot even begin."""
    with noting_labs(keep_history=True) as made:
        try:
            return Played(scenarios.get(spec.scenario).play(spec.seed, seconds=spec.seconds,
                                                            parameters=dict(spec.parameters)), None)  # fmt: skip
        except MqlabError as problem:
            if not made:
                raise
            return Played(made[0], problem)


def event_batches(lab: Lab, world: str, schema: Any, kinds: frozenset[str] | None = None) -> Iterator[Any]:
    """The events of a world as pyarrow RecordBatches of 10,000 rows, with the world's name in front.

    `schema` is an Arrow schema whose first field is the world's name; `kinds` leaves all other kinds of events out.
    """
    import pyarrow as pa

    rows = lab.history.rows()
    wanted = iter(rows) if kinds is None else (row for row in rows if row[KIND] in kinds)
    own = pa.schema(list(schema)[1:])
    while batch := list(islice(wanted, BATCH_ROWS)):
        names = pa.array([world] * len(batch), pa.string())
        yield pa.RecordBatch.from_arrays([names, *arrow_arrays(batch, own)], schema=schema)


def world_row(spec: WorldSpec) -> dict[str, Any]:
    """Play a world and say what became of it: a row of the table of worlds (`world_source.WORLDS`)."""
    lab, problem = played_world(spec)
    return {
        "world": spec.name,
        "scenario": spec.scenario,
        "seed": str(spec.seed),
        "parameters": json.dumps(dict(spec.parameters), sort_keys=True),
        "events": len(lab.history),
        "slices": lab.world.slice_no,
        "now_us": lab.world.now_us,
        "trace_hash": lab.trace_hash(),
        "problem": None if problem is None else f"{type(problem).__name__}: {problem}",
    }
