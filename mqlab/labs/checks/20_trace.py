"""Judges for lab 20: a percentile, a hold, bins of many worlds, and a transform over fifty worlds in one Spark job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from mqlab import scenarios
from mqlab.check import Wrong, draws_for, lab_check
from mqlab.labs.many_worlds import WORLDS_IN_ONE_JOB, Answer, ManyWorlds
from mqlab.trace.history import History
from mqlab.trace.record import Record

SCENARIO = "every-delivery"
COLUMNS = ("world", "node", "group", "topic", "queue_id", "queue_offset", "cause", "wait_us", "held_us")
FIRST_PULL = "first pull"
LINES_SHOWN, ROWS_SHOWN = 12, 3


class Message(NamedTuple):
    """One message and the group that it was given to."""

    node: str
    group: str
    topic: str
    queue_id: int
    queue_offset: int

    def __str__(self) -> str:
        return f"message {self.queue_offset} of {self.topic}, queue {self.queue_id} on {self.node}, for {self.group}"


class Delivery(NamedTuple):
    """Why a message was given to a group, how long after it was stored, and how long its pull was held, in us."""

    cause: Any
    wait_us: Any
    held_us: Any

    def __str__(self) -> str:
        return f"({self.cause}, waited {self.wait_us} us, pull held {self.held_us} us)"


Deliveries = dict[Message, list[Delivery]]

PASS_US = 5_000_000


@lab_check("20/percentile", points=1)
def percentile(answer: Callable[[list[int], int], int], *, seed: int) -> Wrong | None:
    """Percentiles of some dozens of waits, in any order."""
    draw = draws_for(seed)
    waits = [draw.between(f"wait {n}", 1, 999) for n in range(draw.between("waits", 10, 60))]
    for percent in (50, draw.between("percent", 1, 98), 99, 100):
        want = min(wait for wait in waits if 100 * sum(other <= wait for other in waits) >= percent * len(waits))
        got = answer(list(waits), percent)
        if got != want:
            shown = ", ".join(map(str, sorted(waits)))
            return Wrong(
                f"p{percent} of {len(waits)} waits is {want}, and yours says {got!r}", trace=f"sorted: {shown}"
            )
    return None


@lab_check("20/hold", points=1)
def hold(answer: Callable[[int, int], int], *, seed: int) -> Wrong | None:
    """Pulls that come anywhere in the beat of 5 s, and ask for other times than 15 s as well."""
    draw = draws_for(seed)
    for n, offset_us in enumerate([draw.between("anywhere", 1, PASS_US - 1), 500, PASS_US - 500, 0]):
        begin_us = PASS_US * draw.between(f"beat {n}", 0, 40) + offset_us
        asked_us = 1_000_000 * draw.one_of(f"asked {n}", [15, 15, 10, 12, 20])
        looks = [PASS_US * (begin_us // PASS_US + count) for count in range(1, 8)]
        want = next(look - begin_us for look in looks if look - begin_us >= asked_us)
        got = answer(begin_us, asked_us)
        if got != want:
            story = "\n".join(
                [f"looked at {look} us: held for {look - begin_us} us" for look in looks if look > begin_us]
            )
            told = f"a pull comes at {begin_us} us and asks for {asked_us} us: it is held for {want} us"
            return Wrong(f"{told}, and yours says {got!r}", trace=story)
    return None


@lab_check("20/every-world", points=1)
def every_world(answer: Callable[[list[tuple[str, int]], int], set[int]], *, seed: int) -> Wrong | None:
    """Holds of one to five worlds, with bins that all of them have, and others."""
    draw = draws_for(seed)
    width_ms = draw.one_of("width", [100, 250, 500])
    worlds = [f"night-{number}" for number in range(1, draw.between("worlds", 1, 5) + 1)]
    holds = [
        (world, draw.between(f"{world}, hold {n}", 15_000, 15_000 + 6 * width_ms))
        for world in worlds
        for n in range(draw.between(f"holds of {world}", 3, 9))
    ]
    bins = [{hold_ms // width_ms for name, hold_ms in holds if name == world} for world in worlds]
    want = {one for one in bins[0] if all(one in found for found in bins)}
    got = answer(draw.shuffled("order", holds), width_ms)
    if got == want:
        return None
    story = (f"{world}: bins {sorted(found)}" for world, found in zip(worlds, bins, strict=True))
    return Wrong(f"every world has the bins {sorted(want)}, and yours says {got!r}", trace="\n".join(story))


@lab_check("20/time-to-delivery", points=3, together=WORLDS_IN_ONE_JOB)
def time_to_delivery(answer: Answer, *, seed: int) -> Wrong | None:
    """Traces of fifty worlds: backlogs, wake-ups, slow brokers, two groups, crashes. Each message has its one row."""
    found = _found(answer, seed)
    wrong = found if isinstance(found, Wrong) else _compare(found, seed)
    return wrong and replace(wrong, world=partial(scenarios.get(SCENARIO).play, seed))


# -- one job for many worlds ---------------------------------------------------------------------------------------


_worlds = ManyWorlds(scenarios.get(SCENARIO).play, lambda lab: _wanted(lab.history))


def _found(answer: Answer, seed: int) -> Deliveries | Wrong:
    """What an answer says of each message of a world."""
    rows = _worlds.rows(answer, seed, COLUMNS)
    if isinstance(rows, Wrong):
        return rows
    found: Deliveries = {}
    for row in rows:
        message = Message(row.node, row.group, row.topic, row.queue_id, row.queue_offset)
        found.setdefault(message, []).append(Delivery(row.cause, row.wait_us, row.held_us))
    return found


# -- what is right -------------------------------------------------------------------------------------------------


def _wanted(history: History) -> dict[Message, list[Delivery]]:
    """Every message that a broker gave to a group, when it did so first, read from the events one by one.

    Two readers may be given it in the same microsecond: then both deliveries are right.
    """
    stored: dict[tuple[str, str, int, int], int] = {}
    held: dict[tuple[str, str, int], int] = {}
    woken: dict[tuple[str, str, int], tuple[str, int]] = {}
    wanted: dict[Message, list[Delivery]] = {}
    for event in history.find(("MessageStored", "PullHeld", "PullWoken", "PullAnswered")):
        if event.kind == "MessageStored":
            stored[event.node, event.topic, event.queue_id, event.queue_offset] = event.ts_us
            continue
        pull = (event.node, event.remote, event.opaque)
        if event.kind == "PullHeld":
            held[pull] = event.ts_us
        elif event.kind == "PullWoken":
            woken[pull] = (event.reason, event.ts_us - held[pull])
        else:
            cause, held_us = woken.get(pull, (FIRST_PULL, 0))
            for offset in range(event.queue_offset, event.queue_offset + event.messages):
                message = Message(event.node, event.group, event.topic, event.queue_id, offset)
                waited = event.ts_us - stored[event.node, event.topic, event.queue_id, offset]
                first = wanted.setdefault(message, [])
                if not first or first[0].wait_us == waited:
                    first.append(Delivery(cause, waited, held_us))
    return wanted


def _compare(found: Deliveries, seed: int) -> Wrong | None:
    wanted = _worlds.truth(seed)
    for message, right in wanted.items():
        rows = found.get(message, [])
        if len(rows) != 1 or rows[0] not in right:
            return Wrong(_story(message, right[0], rows), _steps(_worlds.lab(seed).history, message))
    surplus = [message for message in found if message not in wanted]
    if surplus:
        message = min(surplus, key=str)
        told = f"{message}: yours has a row, and it was never given to that group"
        return Wrong(told, _steps(_worlds.lab(seed).history, message))
    return None


def _story(message: Message, delivery: Delivery, rows: list[Delivery]) -> str:
    if not rows:
        return f"{message}: {delivery} is wanted, and yours has no row for it"
    if len(rows) > 1:
        yours = ", ".join(sorted({str(row) for row in rows})[:ROWS_SHOWN])
        return f"{message}: one row is wanted, {delivery}, and yours has {len(rows)}, among them {yours}"
    return f"{message}: {delivery} is wanted, and yours says {rows[0]}"


def _steps(history: History, message: Message) -> str:
    """The events that tell this message's way to its group: its own, and those of the pulls that brought it."""
    answers = [
        event
        for event in history.find("PullAnswered", node=message.node, group=message.group, topic=message.topic)
        if event.queue_id == message.queue_id and _covers(event, message.queue_offset)
    ]
    pulls = {(event.remote, event.opaque) for event in answers}
    shown = [
        event
        for event in history.find(("MessageStored", "PullReceived", "PullHeld", "PullWoken", "PullAnswered"))
        if event.node == message.node and _belongs(event, message, pulls)
    ]
    return "\n".join([_line(event) for event in shown[:LINES_SHOWN]])


def _covers(event: Record, offset: int) -> bool:
    return bool(event.queue_offset <= offset < event.queue_offset + event.messages)


def _belongs(event: Record, message: Message, pulls: set[tuple[str, int]]) -> bool:
    if event.kind != "MessageStored":
        return (event.remote, event.opaque) in pulls
    where = (event.topic, event.queue_id, event.queue_offset)
    return where == (message.topic, message.queue_id, message.queue_offset)


def _line(event: Record) -> str:
    what = {
        "MessageStored": "{topic} queue {queue_id} offset {queue_offset}",
        "PullReceived": "from offset {queue_offset}",
        "PullHeld": "",
        "PullWoken": "{reason}",
        "PullAnswered": "offsets {queue_offset} to {next_offset} (not included)",
    }[event.kind]
    fields = {name: getattr(event, name) for name in ("topic", "queue_id", "queue_offset") if hasattr(event, name)}
    fields |= {name: getattr(event, name) for name in ("reason", "next_offset") if hasattr(event, name)}
    pull = f"  pull {event.remote} #{event.opaque}" if event.kind != "MessageStored" else ""
    return f"{event.ts_us:>9} us  {event.kind:<13}{pull}  {what.format(**fields)}".rstrip()
