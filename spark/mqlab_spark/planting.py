"""Faults planted into recorded traces, to see whether the audit finds them: all of them, and nothing else.

    python -m mqlab_spark plant traces/ planted/ --seed 7
    python -m mqlab_spark audit planted/

copies the traces and changes some of them as no broker and no client would: what was stored is taken out, what was
consumed comes again, in another group, or before it was stored. What was planted is sealed in the card beside the
traces, as in a data set: it has a hash of each thing, and nothing that tells which it is.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mqlab import __version__
from mqlab.data_sets import CARD, LATE, LOST, TWICE
from mqlab.data_sets.recipe import checksum, seal
from mqlab.errors import LearnerError
from mqlab.sim import Choices
from mqlab.trace.record import NODE, TS_US
from mqlab.trace.recorded import check_whole
from mqlab_spark.changing import Call, World, get
from mqlab_spark.traces import TraceFile, listed, trace_files

ACKNOWLEDGED_ONLY = "acknowledged, never stored"
CONSUMED_ONLY = "consumed, never stored"
TOO_EARLY = "before it was stored"
NOT_HANDED_OUT = "never handed out"
WRONG_GROUP = "wrong group"
CLOCK = "clock"

SOON_US = 1_000
STRANGERS = "strangers"
NAME = "planted"
"""The name of every such card."""

Found = tuple[str, str, str]
"""What is planted: what, group, unique key; of a clock what, "", machine."""


# -- what is planted ---------------------------------------------------------------------------------------------------

Plan = Callable[[], list[Found]]
"""Carries a change out, and says what is to be found of it."""


def _without_calls(world: World, call: Call, *, narrow: bool) -> Plan | None:
    wanted = world.wishes.get((call.group, world.topic_of(call.key)), set())
    if not wanted or ("*" in wanted) is narrow or not world.is_behind(call):
        return None

    def carry_out() -> list[Found]:
        world.drop(call.began, call.ended)
        return [(LOST, call.group, call.key)]

    return carry_out


def _lost(world: World, call: Call) -> Plan | None:
    return _without_calls(world, call, narrow=False)


def _lost_under_a_tag(world: World, call: Call) -> Plan | None:
    return _without_calls(world, call, narrow=True)


def _copy(world: World, call: Call, after_us: int, **fields: Any) -> None:
    began, ended = world.rows[call.began], world.rows[call.ended]
    assert began is not None
    assert ended is not None
    world.add(began, after_us, **fields)
    world.add(ended, after_us + ended[TS_US] - began[TS_US], **fields)


def _end_us(world: World, call: Call) -> int:
    ended = world.rows[call.ended]
    assert ended is not None
    return int(ended[TS_US])


def _twice(world: World, call: Call) -> Plan | None:
    def carry_out() -> list[Found]:
        _copy(world, call, _end_us(world, call) + SOON_US)
        return [(TWICE, call.group, call.key)]

    return carry_out


def _late(world: World, call: Call) -> Plan | None:
    row = world.rows[world.stored[call.key]]
    assert row is not None
    place = (row[NODE], *(get(row, name) for name in ("topic", "queue_id")), get(row, "queue_offset") + 1)
    following = world.at.get(place)
    later = [other for other in world.calls.get(following, ()) if other.group == call.group] if following else []
    if not later or following in world.used or _end_us(world, later[0]) <= _end_us(world, call):
        return None

    def carry_out() -> list[Found]:
        world.used.add(later[0].key)
        _copy(world, call, _end_us(world, later[0]) + SOON_US)
        world.drop(call.began, call.ended)
        return [(LATE, call.group, call.key)]

    return carry_out


def _acknowledged_only(world: World, call: Call) -> Plan | None:
    groups = world.groups_of(world.topic_of(call.key))
    if not groups:
        return None

    def carry_out() -> list[Found]:
        world.drop(*(place for each in world.calls[call.key] for place in (each.began, each.ended)))
        world.drop_store(call.key)
        return [(ACKNOWLEDGED_ONLY, group, call.key) for group in groups]

    return carry_out


def _consumed_only(world: World, call: Call) -> Plan | None:
    given = [each.group for each in world.calls[call.key]]
    if set(world.groups_of(world.topic_of(call.key))) - set(given):
        return None

    def carry_out() -> list[Found]:
        world.drop_store(call.key)
        return [(CONSUMED_ONLY, group, call.key) for group in given]

    return carry_out


def _too_early(world: World, call: Call) -> Plan | None:
    first_us = {each.group: world.rows[each.began][TS_US] for each in world.calls[call.key]}  # type: ignore[index]
    stored_us = min(first_us.values()) + SOON_US

    def carry_out() -> list[Found]:
        world.move(world.stored[call.key], stored_us)
        return [(TOO_EARLY, group, call.key) for group, us in first_us.items() if us < stored_us]

    return carry_out


def _never_begun(world: World, call: Call) -> Plan | None:
    def carry_out() -> list[Found]:
        world.drop(call.began)
        return [(NOT_HANDED_OUT, call.group, call.key)]

    return carry_out


def _never_pulled(world: World, call: Call) -> Plan | None:
    row = world.rows[world.stored[call.key]]
    assert row is not None
    offset = get(row, "queue_offset")
    same = ("topic", "queue_id")
    over = [
        (place, other) for place, other in world.find("PullAnswered")
        if get(other, "group") == call.group and all(get(other, name) == get(row, name) for name in same)
        and get(other, "queue_offset") <= offset < get(other, "next_offset") and get(other, "messages")
    ]  # fmt: skip
    if len(over) != 1 or get(over[0][1], "next_offset") - get(over[0][1], "queue_offset") != 1:
        return None

    def carry_out() -> list[Found]:
        world.drop(over[0][0])
        return [(NOT_HANDED_OUT, call.group, call.key)]

    return carry_out


def _wrong_group(world: World, call: Call) -> Plan | None:
    subscribed = world.groups_of(world.topic_of(call.key))
    others = sorted({group for group, _ in world.wishes} - set(subscribed))
    group = others[0] if others else STRANGERS

    def carry_out() -> list[Found]:
        _copy(world, call, _end_us(world, call) + SOON_US, group=group)
        return [(WRONG_GROUP, group, call.key)]

    return carry_out


KINDS: Mapping[str, Callable[[World, Call], Plan | None]] = {
    "lost": _lost,
    "lost under a tag": _lost_under_a_tag,
    "twice": _twice,
    "late": _late,
    "acknowledged and never stored": _acknowledged_only,
    "consumed and never stored": _consumed_only,
    "consumed before it was stored": _too_early,
    "ended and never begun": _never_begun,
    "consumed and never pulled": _never_pulled,
    "consumed in a wrong group": _wrong_group,
}
"""The kinds of faults of single messages."""

A_CLOCK = "a clock that is wrong"
LEAST_SECONDS, MOST_SECONDS = 1, 10


def _wrong_clock(world: World, choices: Choices) -> list[Found]:
    """Set the clock of a consumer, seconds before or behind; of a world with nothing else planted."""
    nodes = sorted({row[NODE] for _, row in world.find("ConsumeStarted")})
    asked = {row[NODE] for _, row in world.find("ResponseReceived")}
    nodes = [node for node in nodes if node in asked]
    if not nodes or world.used:
        return []
    node = nodes[choices.choose("machine", len(nodes))]
    seconds = LEAST_SECONDS + choices.choose("seconds", MOST_SECONDS)
    world.shift(node, (1 if choices.choose("ahead or behind", 2) else -1) * seconds * 1_000_000)
    world.is_closed = True
    return [(CLOCK, "", node)]


# -- planting ----------------------------------------------------------------------------------------------------------


class _Worlds:
    """The worlds of a directory, read when they are looked at; those that were changed are kept."""

    def __init__(self, files: list[TraceFile], choices: Choices) -> None:
        self._files = files
        self._choices = choices
        self.changed: dict[str, World] = {}
        self._last: World | None = None

    def in_some_order(self, point: str) -> Iterator[World]:
        """All that are not closed, from one that is drawn on."""
        first = self._choices.choose(point, len(self._files))
        for file in self._files[first:] + self._files[:first]:
            world = self.changed.get(file.world) or (self._last if self._last and self._last.file is file else None)
            self._last = world or World(file)
            if not self._last.is_closed:
                yield self._last

    def keep(self, world: World) -> None:
        self.changed[world.file.world] = world


def plant(traces: str | Path, out: str | Path, *, seed: int = 0, each: int = 3) -> dict[str, Any]:
    """Copy traces into a directory and plant so many faults of each kind in them; the card, which is written, too.

    A kind for which no trace has a place (tags, say, that nobody uses) is planted less often, which the card says.
    LearnerError where there is no whole trace, or something is in the directory already.
    """
    place = Path(out)
    if place.exists() and any(place.iterdir()):
        raise LearnerError(f"there is something in {out} already", "name a directory that is new, or empty")
    there, found = listed(traces)
    if not found:
        raise LearnerError(f"there is no trace at {traces}", "write one: mqlab trace SCENARIO --out trace.parquet")
    if not there.is_local:
        raise LearnerError(f"{traces} is not on this machine", "copy the traces here, and plant in the copies")
    files = trace_files(there, {file: check_whole(there.at(file)) for file in found})
    choices = Choices(seed)
    worlds = _Worlds(files, choices)
    planted: dict[str, list[tuple[str, Found]]] = {kind: [] for kind in (A_CLOCK, *KINDS)}
    for _ in range(each if len(files) > 1 else 0):
        for world in worlds.in_some_order(A_CLOCK):
            things = _wrong_clock(world, choices)
            if things:
                worlds.keep(world)
                planted[A_CLOCK] += ((world.file.world, thing) for thing in things)
                break
    for kind, plan_of in KINDS.items():
        for _ in range(each):
            for world in worlds.in_some_order(kind):
                things = _planted(world, plan_of, choices, kind)
                if things:
                    worlds.keep(world)
                    planted[kind] += ((world.file.world, thing) for thing in things)
                    break
            else:
                break
    hashes = []
    for file in files:
        target = place / file.file
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.world in worlds.changed:
            hashes.append(worlds.changed[file.world].write(target))
        else:
            shutil.copyfile(file.path, target)
            hashes.append(file.trace_hash or "")
    card = _card(Path(traces), seed, planted, hashes)
    (place / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return card


def _planted(world: World, plan_of: Callable[[World, Call], Plan | None], choices: Choices, kind: str) -> list[Found]:
    calls = world.free_calls()
    first = choices.choose(f"{kind}: message", len(calls)) if calls else 0
    for call in calls[first:] + calls[:first]:
        plan = plan_of(world, call)
        if plan is not None:
            found = plan()
            world.used.add(call.key)
            return found
    return []


def _card(
    traces: Path, seed: int, planted: Mapping[str, Iterable[tuple[str, Found]]], hashes: list[str]
) -> dict[str, Any]:
    file = traces / CARD
    before = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    sealed = {
        kind: sorted(text for world, thing in things for text in seal(NAME, world, [thing]))
        for kind, things in planted.items()
    }
    return {
        "name": NAME,
        "title": "Traces with planted faults",
        "question": "Which events are missing, or cannot be true?",
        "seed": seed,
        "worlds": len(hashes),
        "checksum": checksum(hashes),
        "seals": sorted({thing[0] for things in planted.values() for _, thing in things}),
        "planted": {kind: len(texts) for kind, texts in sealed.items()},
        "sealed_by_kind": sealed,
        "sealed": sorted(text for texts in sealed.values() for text in texts),
        "before": {key: before[key] for key in ("name", "seals", "sealed") if key in before},
        "made_by": f"mqlab {__version__}",
    }
