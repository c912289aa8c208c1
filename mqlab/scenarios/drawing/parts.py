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
from mqlab.scenarios.drawing.kinds import (
    ACTS,
    ADMINISTRATOR,
    ALL,
    DONE_TO,
    KINDS,
    NEEDED,
    OWN,
    SETTINGS,
    THROUGH_PROXIES,
    TOPICS,
)
from mqlab.scenarios.drawing.values import NAME, Legal, Value, value_text

AT = re.compile(r"at (\d{1,9})ms: (.*)")


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
    brokers = [part.name for part in world if part.kind == "broker"]
    for place, part in enumerate(world, 1):
        if part.kind in ACTS:
            _check_act(world, place, part)
            continue
        if part.kind != "group" and part.name in names:
            raise _bad(place, part.text, f"there is another part named {part.name!r}", "give each a name of its own")
        if part.kind != "group":
            names.add(part.name)
        if part.kind == "slave" and (master := part.says.get("of", "broker-a")) not in brokers:
            raise _bad(place, part.text, f"there is no broker {master!r}", f"choose among {', '.join(brokers)}")
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
    if part.kind == "delete-topic" and is_read(world, part.name):
        raise _bad(place, part.text, f"somebody reads {part.name}", "delete a topic that nobody reads")


def is_read(world: World, topic: str) -> bool:
    """Does anybody read this topic, or begin to while the world plays?"""
    return any(
        part.says.get("topic", TOPICS[0]) == topic
        for part in world
        if "members" in OWN[part.kind] or part.kind == "subscribe"
    )


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
