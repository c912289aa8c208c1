"""What a trial has shown: a set of short texts, each with its kind in front of its name.

    event PullHeld                        that kind of event
    value PullAnswered status=FOUND       it said so, in a field that has one of a few words
    pair PullHeld > PullWoken             these two came right after each other on one machine
    setting broker flush_disk_type=...    a drawn world was set so
    operation suspend                     somebody did that in a drawn world
    fault crash                           that was done to the world
    rule SendsEnd                         that rule had something to judge
    exception a torn record               that was excused
    goal half-message-asked-about         that was reached
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from mqlab.explore.fault_plan import faults_of
from mqlab.explore.goals import goals
from mqlab.explore.trial import RULES, Outcome, Trial
from mqlab.scenarios.drawing import draw_world, world_from_text
from mqlab.scenarios.drawing.kinds import ACTS, OWN, SETTINGS
from mqlab.scenarios.drawing.values import value_text
from mqlab.sim.faults import FAULTS
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import CATALOGUE, field_types, fields_of, positions
from mqlab.trace.record import KIND, NODE

if TYPE_CHECKING:
    from mqlab.scenarios import Scenario

DRAWN = "drawn"
"""The scenario whose worlds have settings and operations of their own."""
PAIR = "pair"
"""The kind of what there are thousands of, without a list of all that could be."""

ONE_OF_A_FEW = frozenset({
    "change", "code", "filter_result", "held_in", "init_mode", "local_state", "mode", "origin", "perm", "pool",
    "pop_status", "pull_status", "reason", "request_code", "response_code", "result", "role", "rpc", "send_status",
    "settled_as", "status", "table", "trace_type",
})  # fmt: skip
"""The fields with one of a few words or codes; fields that are yes or no are taken, too."""

_ITS_OWN = re.compile(r"\[topic=[^\]]*\]|[\w.:%@-]*\d[\w.:@-]*")
"""Queues, numbers, addresses and names that are numbered: what makes of one reason many texts."""


def seen_in(trial: Trial, parameters: Mapping[str, Any]) -> frozenset[str]:
    """All that the trial of a scenario with these parameters has shown."""
    rows = trial.lab.history.rows() if trial.lab is not None else ()
    drawn = _of_drawn_world(trial.seed, parameters) if trial.scenario.name == DRAWN else ()
    return frozenset({*_of_events(rows), *drawn, *_of_outcome(trial.outcome)})


def could_be_seen(*scenarios: Scenario) -> dict[str, list[str]]:
    """Kind -> all that could be seen of it in these scenarios, of the kinds of which there is such a list."""
    drawn = any(scenario.name == DRAWN for scenario in scenarios)
    faults = {verb for scenario in scenarios for verb in scenario.faults}
    settings = (_setting(kind, key, value) for kind, key, value in _legal()) if drawn else ()
    exceptions = sorted({name for rule in RULES for name in rule.EXCEPTIONS})
    return {
        "event": _named("event", CATALOGUE),
        "setting": sorted(settings),
        "operation": _named("operation", ACTS if drawn else ()),
        "fault": _named("fault", [verb for verb in FAULTS if verb in faults]),
        "rule": _named("rule", [rule.__name__ for rule in RULES]),
        "exception": _named("exception", exceptions),
        "goal": _named("goal", goals() if drawn else sorted({name for each in scenarios for name in each.goals})),
    }


def kind_of(feature: str) -> str:
    """The kind of what was seen."""
    return feature.partition(" ")[0]


def _named(kind: str, names: Iterable[str]) -> list[str]:
    return [f"{kind} {name}" for name in names]


# -- events -----------------------------------------------------------------------------------------------------------


def _of_events(rows: Iterable[Row]) -> Iterator[str]:
    """One pass over all events of a world: a few sets of atoms, from which texts are made at the end."""
    readers = _readers()
    said: set[tuple[str, Any]] = set()
    pairs: set[tuple[str, str]] = set()
    last: dict[str, str] = {}
    for row in rows:
        kind, node = row[KIND], row[NODE]
        read = readers.get(kind)
        said.add((kind, None if read is None else read(row)))
        if node in last:
            pairs.add((last[node], kind))
        last[node] = kind
    for kind, values in said:
        yield f"event {kind}"
        for field, value in zip(_fields(kind), values or (), strict=True):
            yield f"value {kind} {field}={_word(value)}"
    for before, kind in pairs:
        yield f"{PAIR} {before} > {kind}"


@cache
def _fields(kind: str) -> tuple[str, ...]:
    """The fields of a kind that have one of a few values."""
    types = field_types()
    return tuple(name for name in fields_of(kind) if name in ONE_OF_A_FEW or types[name] == "bool")


@cache
def _readers() -> dict[str, Callable[[Row], tuple[Any, ...]]]:
    """For each kind that has such fields what reads them from a row."""
    return {kind: _reader([positions()[kind][name] for name in _fields(kind)]) for kind in CATALOGUE if _fields(kind)}


def _reader(places: list[int]) -> Callable[[Row], tuple[Any, ...]]:
    return itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))


def _word(value: object) -> str:
    """A value without what is different in each world."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _ITS_OWN.sub("#", value.partition("\n")[0]) if isinstance(value, str) else str(value)


# -- worlds and outcomes ----------------------------------------------------------------------------------------------


def _of_drawn_world(seed: int | str, parameters: Mapping[str, Any]) -> Iterator[str]:
    text = str(parameters.get("world", "")).strip()
    for part in world_from_text(text) if text else draw_world(seed):
        if part.kind in ACTS:
            yield f"operation {part.kind}"
        for key, value in part.says.items():
            yield _setting(part.kind, key, value_text(value))


def _of_outcome(outcome: Outcome) -> Iterator[str]:
    yield from (f"fault {faults_of((line,))[0].verb}" for line in outcome.plan)
    yield from (f"rule {rule}" for rule, times in outcome.judged.items() if times)
    yield from (f"exception {name}" for name in outcome.excused)
    yield from (f"goal {name}" for name in outcome.goals)


def _setting(kind: str, key: str, value: str) -> str:
    return f"setting {kind} {key}={value}"


def _legal() -> Iterator[tuple[str, str, str]]:
    """Every value that a drawn world may have of every setting."""
    for kind, own in OWN.items():
        for key, legal in {**own, **SETTINGS[kind]}.items():
            yield from ((kind, key, str(value)) for value in dict.fromkeys(legal.drawn))
