"""The stations of a message as one line: those it has passed with their times, where it is, and what is to come."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from mqlab_widgets.boards.lives import Lap, Life, Lives
from mqlab_widgets.labels import label_of
from mqlab_widgets.scene.style import tile_style
from mqlab_widgets.waiting import held_up
from mqlab_widgets.words import clock, span_words

MOST_OTHERS = 3
"""So many messages that fail or wait are named beside the one that is followed."""
PASSED, HERE, AHEAD, SKIPPED = "passed", "here", "ahead", "skipped"
BAD = ("failed", "dead", "lost", "given up")
TIPS = {
    "sent": "the producer hands the message to the network",
    "parked": "the broker keeps it back until its time has come",
    "stored": "the broker has written it to its commit log",
    "answered": "the broker has told the producer that it is stored",
    "dispatched": "it has its place in a queue, from which it can be pulled",
    "woken": "the consumer's waiting request is answered because of it",
    "pulled": "it has come to the consumer",
    "listener": "the application has it",
    "failed": "the application could not handle it",
    "given back": "the consumer has sent it back to the broker",
    "retried": "the broker has stored it again, for the group to get it once more",
    "done": "the application has handled it",
    "committed": "the broker has noted that the group is done with it",
    "popped": "the broker has handed it out, and hides it from the rest of the group for a while",
    "put off": "its consumer wants it to stay hidden for another time, and to come again then",
    "acked": "the broker knows that this group is done with it",
    "revived": "nobody acknowledged it in time: it is in the retry topic of its group",
    "dead": "the broker gives it to this group no more: it is among the dead letters",
    "lost": "it was not on the disk yet when the power went",
    "given up": "the producer has stopped trying",
}


class Station(NamedTuple):
    """One station: its name, when it was passed (us), whether it was passed, and how often."""

    name: str
    at_us: int | None
    state: str
    times: int = 1


def stations_of(life: Life, group: str = "") -> list[Station]:
    """The stations of a message on its way to a group, in order; "" is the group that got it first."""
    lap = life.laps.get(group) or next(iter(life.laps.values()), Lap())
    at = {**life.at, **lap.at}
    times = {"failed": lap.tries, "listener": lap.calls if "listener" in lap.at else 1}
    sometimes = ("parked", "failed", "given up", "put off")
    names = [name for name in _names(life, lap) if name not in sometimes or name in at]
    last = max((place for place, name in enumerate(names) if name in at), default=0)
    states = [HERE if place == last else AHEAD if place > last else PASSED for place in range(len(names))]
    return [
        Station(name, at.get(name), state if name in at or state != PASSED else SKIPPED, times.get(name, 1))
        for name, state in zip(names, states, strict=True)
    ]


def _names(life: Life, lap: Lap) -> tuple[str, ...]:
    if "lost" in life.at:
        return "sent", "stored", "answered", "lost"
    if "given up" in life.at and "stored" not in life.at:
        return "sent", "given up"
    if "dead" in lap.at:
        return "sent", "stored", "failed", "given back", "dead"
    if "revived" in lap.at:
        return "sent", "stored", "revived", "popped", "listener", "failed", "put off", "done", "acked"
    if "popped" in lap.at:
        return (
            *("sent", "stored", "answered", "dispatched", "popped"),
            *("listener", "failed", "put off", "done", "acked"),
        )
    if "given back" in lap.at:
        lead = ("sent", "stored", "failed", "given back", "parked", "retried")
        return (*lead, "pulled", "listener", "done", "committed")
    first = ("sent", "parked", "answered", "stored") if "parked" in life.at else ("sent", "stored", "answered")
    return (*first, "given up", "dispatched", "woken", "pulled", "failed", "listener", "done", "committed")


def stations_html(lives: Lives, key: str = "", now_us: int = 0) -> str:
    """A line for one message (without one that is followed: the newest), and a line with others that fail or wait."""
    return trail_html(lives, key) + _others(lives, now_us)


def trail_html(lives: Lives, key: str = "") -> str:
    """The line for one message, or for the newest."""
    followed = bool(key)
    life = lives.of(key or lives.newest)
    if life is None:
        return '<div class="mq-stations"><span class="mq-faint">No message has been sent yet.</span></div>'
    label = escape(label_of(life.key, lives.lab))
    items = "".join(_item(station, life.at["sent"]) for station in stations_of(life))
    tip = "stop following this message" if followed else "the newest message: follow it"
    chip = _chip(label, life.key if not followed else "", tip, pressed=followed)
    return (
        f'<div class="mq-stations" role="group" aria-label="{escape(stations_text(lives, life.key), quote=True)}">'
        f"{chip}<ol>{items}</ol>{_groups(life)}</div>"
    )


def _chip(label: str, key: str, tip: str, *, pressed: bool = False) -> str:
    """The number of a message, which can be clicked."""
    return (
        f'<button type="button" class="mq-number" style="{tile_style(label)}" data-do="follow" tabindex="-1" '
        f'title="{tip}" data-message="{key}" aria-pressed="{str(pressed).lower()}" aria-label="{tip}">{label}</button>'
    )


def _others(lives: Lives, now_us: int) -> str:
    """Messages that fail or wait while the line above follows another one."""
    found = [held for held in held_up(lives, now_us) if label_of(held.key, lives.lab)]
    shown = "".join(
        f'<li class="{"bad" if held.bad else ""}">'
        f"{_chip(escape(label_of(held.key, lives.lab)), held.key, 'follow this message')}"
        f"<span>{held.words} <small>since {clock(held.since_us)}</small></span></li>"
        for held in found[:MOST_OTHERS]
    )
    more = f'<span class="mq-faint">and {len(found) - MOST_OTHERS:,} more</span>' if len(found) > MOST_OTHERS else ""
    return f'<div class="mq-others-line" role="group" aria-label="What fails or waits"><ul>{shown}</ul>{more}</div>'


def _item(station: Station, sent_us: int) -> str:
    tip = escape(TIPS[station.name], quote=True)
    name = station.name if station.times == 1 else f"{station.name} ×{station.times}"
    css = f"{station.state} bad" if station.name in BAD else station.state
    css += " listener" if station.name == "listener" else ""
    if station.at_us is None:
        return f'<li class="{css}" title="{tip}"><span>{name}</span><small></small></li>'
    when = clock(station.at_us) if station.name == "sent" else f"+{span_words(station.at_us - sent_us)}"
    there = f'data-do="to_time" data-ms="{station.at_us / 1_000:.3f}"'
    return f'<li class="{css}" title="{tip}" {there}><span>{name}</span><small>{when}</small></li>'


def _groups(life: Life) -> str:
    """Which group the stations are of, if there are more."""
    if len(life.laps) < 2:
        return ""
    first, *others = life.laps
    names = escape(", ".join(others))
    more = "1 more group" if len(others) == 1 else f"{len(others)} more groups"
    return f'<span class="mq-faint" title="also: {names}">{escape(first)}<br>and {more}</span>'


def stations_text(lives: Lives, key: str = "") -> str:
    """The same in a sentence."""
    life = lives.of(key or lives.newest)
    if life is None:
        return "no message has been sent yet"
    stations = stations_of(life)
    told = [_told(station, station.at_us - life.at["sent"]) for station in stations[1:] if station.at_us is not None]
    ahead = [station.name for station in stations if station.state == AHEAD]
    to_come = f"; to come: {', '.join(ahead)}" if ahead else ""
    began = f"message {label_of(life.key, lives.lab)}: sent at {clock(life.at['sent'])}"
    return ", ".join([began, *told]) + to_come


def _told(station: Station, after_us: int) -> str:
    often = f" {station.times} times, last" if station.times > 1 else ""
    return f"{station.name}{often} after {span_words(after_us)}"
