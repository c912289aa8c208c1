"""Judges for lab 23: what was never packed, what a power cut tears off, what a consumer passes over, and all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from mqlab import scenarios
from mqlab.check import Wrong, draws_for, lab_check
from mqlab.data_sets import LOST, hidden
from mqlab.explore import draw_plan, faults_of
from mqlab.lab import Lab
from mqlab.labs.many_worlds import WORLDS_IN_ONE_JOB, Answer, ManyWorlds
from mqlab.trace.history import History
from mqlab.trace.record import Record

TORN, PASSED = "torn off", "passed over"
NEVER_PACKED = ("world", "msg_id")
VERDICTS = ("world", "msg_id", "how")
TOPIC = "Orders"
LINES_SHOWN = 10
LIVES_MS, SETTLED_S, CUT_SHORT_S = 20_000, 150, 2
TROUBLE_MS, CUT_SHORT_TROUBLE_MS = 15_000, 4_000
COMMITTED_AFTER_MS = 6_000
"""A consumer commits every 5 s."""
ROOM_MS = 1_500


class Case(NamedTuple):
    """What is true of one world: which orders are lost and how, and which were never packed for any reason."""

    lost: dict[str, str]
    never_packed: set[str]
    can_be_told: bool


def _play(seed: int) -> Lab:
    """A small world with power cuts.

    In every third the consumer dies when the power has come back to stay, so that orders still wait in the end. In
    every fourth the broker flushes before it answers, and its disk hangs before the power goes: orders are stored and
    torn off that nobody was told of.
    """
    draw, dark, cut_short = draws_for(seed), seed % 4 == 0, seed % 3 == 0
    parameters = {"messages": 160, "every_ms": 300, "size": 3_000, "flush": "SYNC_FLUSH" if dark else "ASYNC_FLUSH"}
    lab = scenarios.get("power-cuts").build(seed, parameters=parameters)
    trouble_ms = CUT_SHORT_TROUBLE_MS if cut_short else TROUBLE_MS
    plan = draw_plan(lab, ["power_off"], trouble_ms)
    if dark:
        hangs_ms = draw.between("the disk hangs", 1_000, trouble_ms - 1_000)
        plan = (f"at {hangs_ms}ms: hang_disk broker-a for 10s", f"at {hangs_ms + 1_500}ms: power_off broker-a for 4s")
    for fault in faults_of(plan):
        lab.world.run_to(fault.at_us)
        lab.act(fault.verb, **fault.arguments)
    if cut_short:
        lab.run_for(max(COMMITTED_AFTER_MS, draw.between("the consumer dies", 7_000, 11_000) - lab.now_ms))
        lab.crash("consumer-1")
    lab.run_for(max(0, LIVES_MS - lab.now_ms))
    return lab.run_for(seconds=CUT_SHORT_S if cut_short else SETTLED_S)


def _case(lab: Lab) -> Case:
    history = lab.history
    acknowledged = {record.msg_id for record in history.find("SendSucceeded")}
    packed = {record.msg_id for record in history.find("ConsumeFinished") if record.status == "CONSUME_SUCCESS"}
    left = _left(history)
    lost = {key: PASSED if key in left else TORN for what, _, key in hidden(lab) if what == LOST}
    # A world that ends while its broker is down, or has just come back, does not tell yet what will become of it.
    ends = list(history.find(("PowerLost", "StoreRecovered")))
    is_up = ends[-1].kind == "StoreRecovered" and (len(ends) == 1 or lab.now_ms - ends[-1].ts_ms > ROOM_MS)
    return Case(lost, acknowledged - packed, is_up and bool(packed) and _remembers(lab))


def _remembers(lab: Lab) -> bool:
    """Whether the broker still knows what was committed at last: a power cut may have made it forget that."""
    commits = [record for record in lab.history.find("OffsetCommitted") if record.topic == TOPIC]
    last = {(record.group, record.queue_id): record.queue_offset for record in commits}
    (broker,) = lab.brokers
    offsets = broker.running().consumer_offset_manager
    return all(offsets.query_offset(group, TOPIC, queue) == offset for (group, queue), offset in last.items())


def _left(history: History) -> set[str]:
    """The orders of which a copy lies before the end of the log at every recovery that came later."""
    ends = [(record.ts_us, record.commit_log_max_offset) for record in history.find("StoreRecovered")]
    return {
        copy.unique_key
        for copy in history.find("MessageStored")
        if all(copy.commit_log_offset < end for back_us, end in ends if back_us > copy.ts_us)
    }


_worlds = ManyWorlds(_play, _case)


@lab_check("23/never-packed", points=1, together=WORLDS_IN_ONE_JOB)
def never_packed(answer: Answer, *, seed: int) -> Wrong | None:
    """Fifty worlds with power cuts, in some of which orders still wait: who was acknowledged and never packed?"""
    rows = _worlds.rows(answer, seed, NEVER_PACKED)
    if isinstance(rows, Wrong):
        return rows
    wanted = _worlds.truth(seed).never_packed
    found = Counter(row.msg_id for row in rows)
    for key in sorted(wanted | set(found)):
        if found[key] != (key in wanted):
            told = "is wanted once" if key in wanted else "is not wanted"
            wrong = Wrong(f"order {key} {told}, and yours has {found[key]} rows of it", _steps(_worlds.lab(seed), key))
            return replace(wrong, world=partial(_play, seed))
    return None


@lab_check("23/torn-off", points=1)
def torn_off(
    answer: Callable[[list[tuple[str, int, int]], list[tuple[int, int]]], set[str]], *, seed: int
) -> Wrong | None:
    """Logs that grow, lose their end one to three times, and grow again; some orders are stored twice."""
    draw = draws_for(seed)
    copies: list[tuple[str, int, int]] = []
    recoveries: list[tuple[int, int]] = []
    left: list[tuple[str, int]] = []
    now_ms, end, number = 0, 0, 0
    for cut in range(draw.between("cuts", 1, 3)):
        for each in range(draw.between(f"orders {cut}", 3, 8)):
            now_ms += draw.between(f"pause {cut} {each}", 5, 50)
            again = bool(copies) and draw.between(f"again {cut} {each}", 0, 4) == 0
            number += not again
            key = draw.one_of(f"which {cut} {each}", [copy[0] for copy in copies]) if again else f"order-{number}"
            copies.append((key, now_ms, end))
            left.append((key, end))
            end += draw.between(f"size {cut} {each}", 100, 300)
        now_ms += 1_000
        end = left[max(0, len(left) - draw.between(f"torn {cut}", 1, 4))][1]
        left = [(key, place) for key, place in left if place < end]
        recoveries.append((now_ms, end))
        now_ms += 1
    wanted = {key for key, _, _ in copies} - {key for key, _ in left}
    got = answer(draw.shuffled("copies", copies), list(recoveries))
    if got == wanted:
        return None
    story = [(at_ms, f"{at_ms:>6} ms  {key} is stored at {place}") for key, at_ms, place in copies]
    story += [(at_ms, f"{at_ms:>6} ms  after a power cut the log ends at {place}") for at_ms, place in recoveries]
    yours = _names(got) if isinstance(got, set) else repr(got)
    told = f"torn off are {_names(wanted)}, and yours says {yours}"
    return Wrong(told, "\n".join(line for _, line in sorted(story, key=lambda each: each[0])))


@lab_check("23/passed-over", points=1)
def passed_over(answer: Callable[[int, int, int], int], *, seed: int) -> Wrong | None:
    """Queues that were cut back, with a consumer that comes back early, late, and not ahead at all."""
    draw = draws_for(seed)
    for n, ahead in enumerate(
        [draw.between("ahead", 1, 30), 0, draw.between("far", 20, 60), -draw.between("behind", 1, 9)]
    ):
        end = draw.between(f"end {n}", 50, 300)
        stored = draw.between(f"stored {n}", 0, 40)
        asks = end + ahead
        # One order after the other: the consumer goes on from where it asks, or from the end if that lies beyond it.
        goes_on = min(asks, end + stored)
        wanted = sum(1 for offset in range(end, end + stored) if offset < goes_on)
        got = answer(end, stored, asks)
        if got != wanted:
            told = f"passed_over(end={end}, stored={stored}, asks={asks}) is {wanted}, and yours says {got!r}"
            steps = f"the queue ends at {end}\n{stored} orders come: it ends at {end + stored}"
            return Wrong(told, f"{steps}\nthe consumer asks from {asks}\nit goes on from {goes_on}")
    return None


@lab_check("23/find-lost", points=4, together=WORLDS_IN_ONE_JOB)
def find_lost(answer: Answer, *, seed: int) -> Wrong | None:
    """Fifty hidden worlds with power cuts: every lost order is found, with how it was lost, and no other."""
    rows = _worlds.rows(answer, seed, VERDICTS)
    if isinstance(rows, Wrong):
        return rows
    case = _worlds.truth(seed)
    if not case.can_be_told:
        return None
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.msg_id, []).append(row.how)
    for key in sorted(case.lost.keys() | found.keys()):
        wanted = [case.lost[key]] if key in case.lost else []
        yours = sorted(map(str, found.get(key, [])))
        if yours != wanted:
            told = f"was {wanted[0]}" if wanted else "is not lost"
            says = ", ".join(yours) if yours else "nothing of it"
            wrong = Wrong(f"order {key} {told}, and yours says {says}", _steps(_worlds.lab(seed), key))
            return replace(wrong, world=partial(_play, seed))
    return None


def _names(orders: set[str]) -> str:
    return ", ".join(sorted(map(str, orders))) or "none"


def _steps(lab: Lab, key: str) -> str:
    """What became of an order: its own events, what the broker lost, and what was committed for its queue at last."""
    kinds = ("SendSucceeded", "MessageStored", "ConsumeFinished", "PowerLost", "StoreRecovered")
    stored = [record for record in lab.history.find("MessageStored") if record.unique_key == key]
    queues = {record.queue_id for record in stored}
    commits = [record for record in lab.history.find("OffsetCommitted") if record.topic == TOPIC]
    committed = [record for record in commits if record.queue_id in queues][-1:]
    own = [record for record in lab.history.find(kinds) if _key(record) in (key, "")]
    return "\n".join(_line(record) for record in sorted([*own, *committed], key=lambda each: each.ts_us)[-LINES_SHOWN:])


def _key(record: Record) -> str:
    """The order that an event is of; "" of what concerns all of them."""
    if record.kind in ("PowerLost", "StoreRecovered"):
        return ""
    return str(record.unique_key if record.kind == "MessageStored" else record.msg_id)


def _line(record: Record) -> str:
    what = ""
    if record.kind == "MessageStored":
        what = f"queue {record.queue_id} offset {record.queue_offset}, at {record.commit_log_offset} of the log"
    elif record.kind == "StoreRecovered":
        what = f"the log ends at {record.commit_log_max_offset}"
    elif record.kind == "OffsetCommitted":
        what = f"queue {record.queue_id} up to offset {record.queue_offset}"
    return f"{record.ts_us:>10} us  {record.kind:<15}  {what}".rstrip()
