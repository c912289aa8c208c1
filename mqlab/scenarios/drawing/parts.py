"""The lines of a drawn world: what each kind of part takes, and how a line is read and written.

    broker broker-a flush_disk_type=SYNC_FLUSH
    topic Orders queues=4
    push workers topic=Orders members=2 pull_batch_size=1
    at 12300ms: suspend workers for_ms=4000
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.scenarios.drawing import settings
from mqlab.scenarios.drawing.values import NAME, SWITCH, Legal, Name, Value, number, value_text, words

TOPICS = ("Orders", "Payments")

ALL = "all"
CONDITIONS = {
    "few": "place < 8",
    "some": "place BETWEEN 3 AND 14 OR kind = 'gift'",
    "gifts": "kind IN ('gift', 'toy') AND NOT (place = 4)",
    "ordinary": "kind IS NULL",
}
"""What a group may want of a topic by a condition (SQL92). Each message of a `producer` line has its `place` in the
load, one in four is a `gift` and one in four a `toy`.
"""
READING: dict[str, Legal] = {
    "topic": Name(TOPICS), "tags": Name(("*", "paid", "paid||late")), "wants": words(ALL, ALL, ALL, *CONDITIONS),
}  # fmt: skip
"""What every group says: the topic that it reads, and which tags of it, or what it wants by a condition."""
LISTENING: dict[str, Legal] = {
    **READING,
    "members": number(1, 16, 1, 2, 3),
    "moves": SWITCH,
    "refuse_one_in": number(0, 1_000, 0, 0, 5, 20),
    "slow_ms": number(1, 60_000, 20, 500, 3_000),
}
"""A listener wants one message in so many again (0: none), and rarely takes up to `slow_ms` for one. With `moves` all
members but the first come and go."""
POLLING: dict[str, Legal] = {**READING, "members": number(1, 16, 1, 2), "moves": SWITCH}

OWN: dict[str, dict[str, Legal]] = {
    "name-server": {},
    "broker": {},
    "topic": {"queues": number(1, 64, 1, 2, 4)},
    "group": {},
    "producer": {
        "topic": Name(TOPICS),
        "way": words("sync", "async", "one-way", "batches"),
        "messages": number(1, 100_000, 10, 20, 40),
        "every_ms": number(0, 3_600_000, 20, 200, 500),
        "size": number(30, 4 * 1024 * 1024, 30, 100, 1_000),
        "delay_level": number(0, 18, 0, 0, 0, 1, 2),
        "timer_ms": number(0, 3_600_000, 0, 0, 0, 1_500, 6_000),
        "timer_as": words("delay-ms", "delay-s", "deliver-at"),
    },
    "push": LISTENING,
    "orderly": LISTENING,
    "broadcasting": LISTENING,
    "pop": {key: legal for key, legal in LISTENING.items() if key not in ("tags", "wants")},
    "transactions": {
        "topic": Name(TOPICS),
        "messages": number(1, 100_000, 4, 8, 16),
        "every_ms": number(0, 3_600_000, 200, 1_000),
        "size": number(30, 4 * 1024 * 1024, 30, 100),
        "debit_ms": number(0, 60_000, 10, 150),
    },
    "lite": POLLING,
    "pull": {
        "topic": Name(TOPICS), "members": number(1, 16, 1, 2), "moves": SWITCH, "way": words("at-once", "held"),
        "batch": number(1, 32, 1, 4, 32), "pause_ms": number(1, 3_600_000, 500, 2_000),
    },
    "schedule": {
        "topic": Name(TOPICS), "members": number(1, 16, 1, 2), "moves": SWITCH,
        "next_delay_ms": number(1, 3_600_000, 200, 1_000),
    },
    "proxy": {},
    "producer5": {
        "topic": Name(TOPICS),
        "messages": number(1, 100_000, 10, 20),
        "every_ms": number(0, 3_600_000, 20, 200, 500),
        "size": number(30, 4 * 1024 * 1024, 30, 100),
    },
    "push5": {
        "topic": Name(TOPICS), "members": number(1, 16, 1, 2), "refuse_one_in": number(0, 1_000, 0, 0, 5, 20),
        "slow_ms": number(1, 60_000, 20, 500, 3_000),
    },
    "simple5": {
        "topic": Name(TOPICS), "members": number(1, 16, 1, 2), "batch": number(1, 32, 1, 8),
        "refuse_one_in": number(0, 1_000, 0, 0, 5, 20),
    },
    "suspend": {"for_ms": number(1, 3_600_000, 500, 4_000, 20_000)},
    "seek": {"to": words("begin", "middle", "end")},
    "reset": {"back_ms": number(0, 3_600_000, 0, 3_000, 10_000, 3_600_000)},
    "subscribe": {"topic": Name(TOPICS)},
    "unsubscribe": {"topic": Name(TOPICS)},
    "set": {},
    "restart-broker": {"down_ms": number(1, 3_600_000, 500, 3_000)},
    "restart-members": {"down_ms": number(1, 3_600_000, 100, 2_000)},
    "delete-group": {"clean_offset": SWITCH},
    "scale": {"queues": number(1, 64, 1, 5, 8)},
    "create-topic": {"queues": number(1, 64, 1, 4)},
}  # fmt: skip
"""What a line says about a part itself, beside RocketMQ's settings."""

SETTINGS: dict[str, dict[str, Legal]] = {
    "name-server": {},
    "broker": settings.BROKER,
    "topic": {},
    "group": settings.GROUP,
    "producer": settings.PRODUCER,
    "push": settings.PUSH,
    "orderly": settings.PUSH,
    "broadcasting": settings.PUSH,
    "pop": settings.POP,
    "transactions": settings.PRODUCER,
    "lite": settings.LITE,
    "pull": settings.PULL,
    "schedule": settings.PULL,
    "proxy": settings.PROXY,
    "producer5": settings.CLIENT_5,
    "push5": settings.PUSH_5,
    "simple5": settings.SIMPLE_5,
    "suspend": {},
    "seek": {},
    "reset": {},
    "subscribe": {},
    "unsubscribe": {},
    "set": settings.SET_BROKER,
    "restart-broker": settings.RESTARTED_BROKER,
    "restart-members": settings.PUSH,
    "delete-group": {},
    "scale": {},
    "create-topic": {},
}
"""What a line may set of RocketMQ's own settings."""

KINDS = tuple(OWN)
ACTS = (
    "suspend", "seek", "reset", "subscribe", "unsubscribe", "set", "restart-broker", "restart-members",
    "delete-group", "scale", "create-topic",
)  # fmt: skip
"""What people do while the world plays: a group of listeners stands still for a while, one that polls goes on
elsewhere, a group is set to what was stored `back_ms` ago (0: to the end), a group reads a topic too or no more, a
broker is set to something else while it runs, a broker or the members of a group stop in good order and start again
with other settings, a group is forgotten, with how far it came or without, a topic gets as many queues, a topic is
made."""
DONE_TO: dict[str, tuple[str, ...]] = {
    "delete-group": ("push", "orderly", "broadcasting", "lite", "pull", "schedule", "pop", "push5", "simple5"),
    "set": ("broker",), "restart-broker": ("broker",), "restart-members": ("push", "orderly", "broadcasting"),
    "subscribe": ("push", "orderly", "broadcasting", "lite"),
    "unsubscribe": ("push", "orderly", "broadcasting", "lite"),
    "suspend": ("push", "orderly", "broadcasting"), "seek": ("lite",), "scale": ("topic",),
    "reset": ("push", "orderly", "lite", "pull", "schedule", "pop"),
}  # fmt: skip
"""The kinds of parts that an act can be done to, by the name of its line."""
AT = re.compile(r"at (\d{1,9})ms: (.*)")
THROUGH_PROXIES = ("producer5", "push5", "simple5")
"""The clients that need a proxy."""
ADMINISTRATOR = "administrator"
"""The machine from which brokers are asked for what people do to them."""
NEEDED = ("name-server", "broker")
"""Without one of each there is no world."""


class Part(NamedTuple):
    """One line: a kind, a name, and what it says, by name. What it does not say has its default."""

    kind: str
    name: str
    says: Mapping[str, Value]
    at_ms: int = 0
    """When it is done, in the world's time; 0 for what is there from the beginning."""

    @property
    def text(self) -> str:
        """The line."""
        when = f"at {self.at_ms}ms: " if self.kind in ACTS else ""
        said = (f"{key}={value_text(value)}" for key, value in self.says.items())
        return when + " ".join((self.kind, self.name, *said))

    def settings(self) -> dict[str, Any]:
        """What it sets of RocketMQ's settings."""
        return {key: value for key, value in self.says.items() if key in SETTINGS[self.kind]}


World = tuple[Part, ...]


def world_text(world: World) -> str:
    """The world as one line."""
    return "; ".join(part.text for part in world)


def world_from_text(text: str) -> World:
    """The world in a text with one part a line, or with parts separated by ";". LearnerError for a bad line."""
    lines = [line.strip() for row in text.splitlines() for line in row.split(";") if line.strip()]
    world = tuple(_part(number, line) for number, line in enumerate(lines, 1))
    _check(world)
    return world


def _check(world: World) -> None:
    """LearnerError for lines that do not go together: a name twice, an act on nothing, a world without servers."""
    names = {ADMINISTRATOR}
    topics = [part.name for part in world if part.kind == "topic"]
    for place, part in enumerate(world, 1):
        if part.kind in ACTS:
            _check_act(world, place, part)
            continue
        if part.kind != "group" and part.name in names:
            raise _bad(place, part.text, f"there is another part named {part.name!r}", "give each a name of its own")
        if part.kind != "group":
            names.add(part.name)
        topic = str(part.says.get("topic", TOPICS[0]))
        if part.kind in THROUGH_PROXIES and not any(other.kind == "proxy" for other in world):
            raise _bad(place, part.text, f"a {part.kind} needs a proxy", "add a line: proxy proxy-1")
        if part.says.get("wants", ALL) != ALL and not all(map(_judges_conditions, world)):
            hint = "say it of every broker: enable_property_filter=true"
            raise _bad(place, part.text, "some broker does not judge conditions", hint)
        if part.kind in ("pop", *THROUGH_PROXIES) and topic not in topics:
            hint = f"add a line: topic {topic}"
            raise _bad(place, part.text, f"{topic} can be popped only where there is that topic", hint)
    for kind in NEEDED:
        if not any(part.kind == kind for part in world):
            raise LearnerError(f"a world without a {kind} is none", f"begin with a line like '{kind} {kind}-1'")


def _judges_conditions(part: Part) -> bool:
    """Does this broker let groups read by a condition? What is no broker does not stand in the way."""
    return part.kind != "broker" or part.says.get("enable_property_filter", False) is True


def shorter_worlds(world: World) -> Iterator[World]:
    """Each world that lacks one line, or one thing that a line says, the largest steps first; only whole worlds."""
    for place in reversed(range(len(world))):
        rest = world[:place] + world[place + 1 :]
        if _is_whole(rest):
            yield rest
    for place, part in enumerate(world):
        for key in part.says:
            less = part._replace(says={k: v for k, v in part.says.items() if k != key})
            shorter = (*world[:place], less, *world[place + 1 :])
            if _is_whole(shorter):
                yield shorter


def _is_whole(world: World) -> bool:
    """Do the lines go together?"""
    try:
        _check(world)
    except LearnerError:
        return False
    return True


def _bad(place: int, line: str, message: str, hint: str) -> LearnerError:
    return LearnerError(f"line {place} of the world, {line!r}: {message}", hint)


def _check_act(world: World, place: int, part: Part) -> None:
    """LearnerError for an act on something that is not in the world."""
    kinds = DONE_TO.get(part.kind)
    fit = [other.name for other in world if kinds and other.kind in kinds]
    if kinds and part.name not in fit:
        hint = f"choose among {', '.join(fit)}" if fit else f"there has to be a line of {' or '.join(kinds)} for that"
        raise _bad(place, part.text, f"nothing named {part.name!r} can be done that to", hint)


def _part(place: int, line: str) -> Part:
    timed = AT.fullmatch(line)
    kind, *rest = (timed[2] if timed else line).split() or [""]
    if kind not in OWN:
        near = get_close_matches(kind, KINDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"it is one of {', '.join(KINDS)}"
        raise _bad(place, line, f"there is no kind of part {kind!r}", hint)
    if not rest or "=" in rest[0] or not NAME.fullmatch(rest[0]):
        raise _bad(place, line, "the part has no name", f"write: {kind} NAME setting=value ...")
    if (kind in ACTS) != bool(timed):
        hint = f"write: at 5000ms: {kind} NAME ..." if kind in ACTS else f"write: {kind} NAME ..."
        raise _bad(place, line, "it is done at a time" if kind in ACTS else "it is there from the beginning", hint)
    says: dict[str, Value] = {}
    for word in rest[1:]:
        key, sign, text = word.partition("=")
        legal = _legal(place, line, kind, key) if sign else None
        if legal is None:
            raise _bad(place, line, f"{word!r} says nothing", "write: setting=value")
        if key in says:
            raise _bad(place, line, f"it says {key} twice", "leave one of them out")
        try:
            says[key] = legal.value(text)
        except ValueError:
            raise _bad(place, line, f"{word} is not possible", f"give {legal.allowed}") from None
    return Part(kind, rest[0], says, int(timed[1]) if timed else 0)


def _legal(place: int, line: str, kind: str, key: str) -> Legal:
    known = {**OWN[kind], **SETTINGS[kind]}
    if key in known:
        return known[key]
    near = get_close_matches(key, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(known) or 'none'}"
    raise _bad(place, line, f"a {kind} has no setting {key!r}", hint)
