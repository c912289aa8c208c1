"""The checks of lab 14: what comes again in order, the handle after a change, records, and a reviver's decision."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from mqlab import Lab
from mqlab.check import Wrong, draws_for, lab_check
from mqlab.check.draws import Draws
from mqlab.explore.rule import Case, Rule
from mqlab.museum import fix_of, rules
from mqlab.museum.fixes import judge, room_of
from mqlab.scenarios import museum
from mqlab.scenarios.museum_parts import Decision, Prepare, decided_by
from mqlab.scenarios.ordered_kitchen import OrderedKitchen, open_ordered_kitchen


def _kitchen(lab: Lab, orders: int) -> OrderedKitchen:
    """A kitchen with so many orders before it."""
    opened: list[OrderedKitchen] = []

    async def build() -> None:
        opened.append(await open_ordered_kitchen(lab, orders))

    lab.finish_building(build())
    return opened[0]


@lab_check("14/comes-again", points=1)
def comes_again(answer: Callable[[list[int], list[int]], list[int]], *, seed: int) -> Wrong | None:
    """Batches in order, some orders acknowledged: the second pop of the same attempt is foretold."""
    draw = draws_for(seed)
    size, skipped = draw.between("size", 1, 8), draw.between("skipped", 0, 3)
    lab = Lab(seed)
    kitchen = _kitchen(lab, size + skipped)
    if skipped:
        lab.run(kitchen.ack(*lab.run(kitchen.take("before", skipped))))
    orders = lab.run(kitchen.take("once", size))
    offsets = [order.queue_offset for order in orders]
    acked = [order for order in draw.shuffled("acks", orders) if draw.between(f"ack {order.queue_offset}", 0, 2)]
    lab.run(kitchen.ack(*acked))
    was = [order.queue_offset for order in lab.run(kitchen.take("once", size)) if order.queue_offset in offsets]
    numbers = sorted(order.queue_offset for order in acked)
    got = answer(list(offsets), numbers)
    if isinstance(got, list | tuple) and list(got) == was:
        return None
    return Wrong(f"of {offsets} the orders {numbers} are acknowledged: {was} come again, and yours says {got!r}")


@lab_check("14/new-handle", points=1)
def new_handle(answer: Callable[[str, int, int], str], *, seed: int) -> Wrong | None:
    """An order gets longer, and is acknowledged with your handle: it does not come again."""
    draw = draws_for(seed)
    lab = Lab(seed)
    kitchen = _kitchen(lab, 4)
    order = lab.run(kitchen.pop(4, invisible_ms=10_000))[draw.between("place", 1, 3)]
    lab.run_for(ms=draw.between("later", 10, 8_000))
    pop_time, invisible_ms = lab.run(kitchen.change(order, 1_000 * draw.between("longer", 5, 20)))
    old = order.properties["POP_CK"]
    got = answer(old, pop_time, invisible_ms)
    fields = old.split(" ")
    want = " ".join([fields[7], str(pop_time), str(invisible_ms), *fields[3:]])
    if got != want:
        return Wrong(f"{old!r} becomes {want!r} with {pop_time} and {invisible_ms}, and yours says {got!r}")
    lab.run(kitchen.ack_by(got))
    lab.run_for(ms=invisible_ms + 15_000)
    if any(record.queue_offset == order.queue_offset for record in lab.history.find("MessageRevived")):
        return Wrong("the order comes again although it was acknowledged with the new handle")
    return None


@lab_check("14/records", points=1)
def records(answer: Callable[[int, int], int], *, seed: int) -> Wrong | None:
    """Orders popped in batches and acknowledged one by one: the records of the log are counted."""
    draw = draws_for(seed)
    sizes = [draw.between(f"pop {n}", 1, 9) for n in range(draw.between("pops", 1, 12))]
    lab = Lab(seed)
    kitchen = _kitchen(lab, sum(sizes))
    for size in sizes:
        lab.run(kitchen.ack(*lab.run(kitchen.pop(size, invisible_ms=10_000))))
    lab.run_for(seconds=30)
    was = len(list(lab.history.find("MessageStored")))
    got = answer(sum(sizes), len(sizes))
    if got == was:
        return None
    return Wrong(f"{sum(sizes)} orders in {len(sizes)} pops make {was} records, and yours says {got!r}")


# -- what becomes of a message -----------------------------------------------------------------------------------------


class _Room(NamedTuple):
    """One world of the museum, the rules that must hold in it, and for how long it plays."""

    build: Callable[[Lab, Prepare], Coroutine[Any, Any, None]]
    rules: tuple[type[Rule], ...]
    seconds: int


_ROOMS = (
    _Room(
        lambda lab, prepare: museum.pops_that_wait_for_flushes(lab, prepare, messages=60, flush_us=6_000),
        (rules.UnackedComesAgain, rules.RevivedWasPopped),
        50,
    ),
    _Room(
        lambda lab, prepare: museum.topic_made_again(lab, prepare, messages=20, deleted_after_ms=4_000),
        (rules.ReviveTerminates, rules.RevivedWasPopped),
        60,
    ),
    _Room(
        lambda lab, prepare: museum.log_that_is_cleaned(lab, prepare, messages=60, too_slow_ms=25_000),
        (rules.RevivedWasPopped, rules.ReviveTerminates),
        100,
    ),
)
_ANSWERS = ("back", "gone", "later")


@lab_check("14/decide", points=4)
def decide(answer: Decision, *, seed: int) -> Wrong | None:
    """Messages whose time is over, told one by one, and then three rooms of the museum with your reviver in them."""
    wrong = _told(answer, seed)
    if wrong is not None:
        return replace(wrong, world=partial(_played, answer, seed))
    if seed % (2 * len(_ROOMS)) >= len(_ROOMS):
        return None  # a world for every second seed is enough, and half as long to wait for
    room = _ROOMS[seed % len(_ROOMS)]
    lab = Lab(seed)
    lab.finish_building(room.build(lab, decided_by(answer)))
    watching = [rule(Case(lab)) for rule in room.rules]
    for rule in watching:
        for row in lab.history.rows():
            rule(row)
        lab.world.hooks.attach(rule)
    for _ in range(0, room.seconds, 5):
        lab.run_for(seconds=5)
        for rule in watching:
            if rule.violations:
                return Wrong(f"{rule.rule} {rule.violations[0].reason}")
    for rule in watching:
        rule.at_end()
        if rule.violations:
            return Wrong(f"{rule.rule} {rule.violations[0].reason}")
    return None


# -- more rooms --------------------------------------------------------------------------------------------------------

_WORLD_EACH = 5
"""A world for each fifth seed is enough: it says no more with the others, and one waits for it."""
_EPOCH_MS = 1_767_225_600_000
_LEVELS_MS = tuple(1_000 * seconds for seconds in (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600))


def _in_the_room(number: str, told: str, decision: Callable[..., object], seed: int) -> Wrong | None:
    """What is wrong with single cases, and then what the decision does in the room of a bug."""
    if told:
        return Wrong(told, world=partial(room_of, fix_of(number), decision, seed))
    return judge(fix_of(number), decision, seed=seed, world=not seed % _WORLD_EACH)


@lab_check("14/deliver-at", points=1)
def deliver_at(answer: Callable[..., object], *, seed: int) -> Wrong | None:
    """Single notes, with a wheel and without, and then your times of delivery in the rooms 3787 and 4153."""

    def with_a_wheel(kind: str, until_ms: int, now_ms: int, levels_ms: Sequence[int]) -> object:
        return answer(kind, until_ms, now_ms, levels_ms, True, None if kind == "ck" else until_ms - 1_000)

    told = _told_when(answer, draws_for(seed))
    return _in_the_room("3787" if seed % (2 * _WORLD_EACH) else "4153", told, with_a_wheel, seed)


def _told_when(answer: Callable[..., object], draw: Draws) -> str:
    now_ms = _EPOCH_MS + draw.between("now", 0, 60_000)
    for case in range(6):
        until_ms = now_ms + draw.between(f"left {case}", 1_500, 500_000)
        ck_ms = until_ms + draw.between(f"check point {case}", -5_000, 90_000)
        # At the very end of a level "behind" and "not before" are two things.
        level_at_ms = now_ms + draw.one_of(f"level {case}", _LEVELS_MS[2:])
        if case % 3 == 1:
            until_ms, ck_ms = level_at_ms - 500, level_at_ms
        elif case % 3 == 2:
            until_ms, ck_ms = level_at_ms, level_at_ms - 1_000
        for kind in ("ck", "ack"):
            due_ms = until_ms - 1_000 if kind == "ck" else until_ms
            behind_ms = max(due_ms, ck_ms) if kind == "ack" else due_ms
            level_ms = next((one for one in _LEVELS_MS if now_ms + one > behind_ms), _LEVELS_MS[-1])
            for wheel, want in ((True, due_ms), (False, now_ms + level_ms)):
                got = answer(kind, until_ms, now_ms, _LEVELS_MS, wheel, ck_ms if kind == "ack" else None)
                if got != want or isinstance(got, bool):
                    point = f", its check point comes {ck_ms - now_ms} ms from now" if kind == "ack" else ""
                    return (
                        f"a note {kind!r} in a broker {'with' if wheel else 'without'} a wheel, {until_ms - now_ms} ms "
                        f"before the end of the invisible time{point}: it is to come {want - now_ms} ms from now, "
                        f"and yours says {_from_now(got, now_ms)}"
                    )
    return ""


def _from_now(got: object, now_ms: int) -> str:
    if isinstance(got, bool) or not isinstance(got, int | float):
        return repr(got)
    return f"{got - now_ms:g} ms from now"


@lab_check("14/read-up-to", points=1)
def read_up_to(answer: Callable[..., Any], *, seed: int) -> Wrong | None:
    """Single rounds with notes and check points, and then your reviver in the room 3507."""
    told = _told_how_far(answer, draws_for(seed))

    def read_one(deliver_ms: int, waited_ms: int) -> object:
        return _first(answer([(deliver_ms, waited_ms)], 0, []))

    return _in_the_room("3507", told, read_one, seed)


def _told_how_far(answer: Callable[..., Any], draw: Draws) -> str:
    for case in range(6):
        was_ms = _EPOCH_MS + draw.between(f"was {case}", 0, 9_000)
        notes = [
            (
                _EPOCH_MS + draw.between(f"delivered {case} {n}", 0, 12_000),
                draw.between(f"waited {case} {n}", 1, 30_000),
            )
            for n in range(draw.between(f"notes {case}", 0, 4))
        ]
        newest_ms = max([was_ms, *(deliver_ms for deliver_ms, _ in notes)])
        ends_ms = [
            newest_ms
            - (2_000 if draw.between(f"just {case} {n}", 0, 4) == 0 else draw.between(f"end {case} {n}", 0, 9_000))
            for n in range(draw.between(f"ends {case}", 0, 4))
        ]
        ripe = next((n for n, end_ms in enumerate(ends_ms) if newest_ms - end_ms <= 2_000), len(ends_ms))
        got = answer(list(notes), was_ms, list(ends_ms))
        if not isinstance(got, tuple | list) or tuple(got) != (newest_ms, ripe):
            shown = [(deliver_ms - _EPOCH_MS, waited_ms) for deliver_ms, waited_ms in notes]
            return (
                f"read up to {was_ms - _EPOCH_MS}, notes {shown}, ends {[end_ms - _EPOCH_MS for end_ms in ends_ms]} "
                f"(times from {_EPOCH_MS} on): now read up to {newest_ms - _EPOCH_MS}, {ripe} to be judged, "
                f"and yours says {got!r}"
            )
    return ""


def _first(said: object) -> object:
    """The first of two things that were returned; whatever else it is, the room says that it is no time."""
    return said[0] if isinstance(said, tuple | list) and said else said


@lab_check("14/passes", points=1)
def passes(answer: Callable[..., Any], *, seed: int) -> Wrong | None:
    """Single rounds with all kinds of records, and then your reviver in the room 5408."""
    told = _told_what_passes(answer, draws_for(seed))

    def passes_one(waited_ms: int, patience_ms: int) -> object:
        return answer([("alone", _EPOCH_MS - waited_ms)], _EPOCH_MS, patience_ms) == 1

    return _in_the_room("5408", told, passes_one, seed)


def _told_what_passes(answer: Callable[..., Any], draw: Draws) -> str:
    patience_ms = draw.between("patience", 10_000, 180_000)
    for case in range(8):
        records = []
        for n in range(draw.between(f"records {case}", 0, 6)):
            kind = draw.one_of(f"kind {case} {n}", ["settled", "settled", "matched", "alone", "alone", "waiting"])
            ago_ms = patience_ms + draw.one_of(f"ago {case} {n}", [0, 1, 1, 5_000, 9_000, -5_000])
            records.append((kind, _EPOCH_MS - ago_ms))
        holds = (
            n for n, (kind, due_ms) in enumerate(records)
            if kind == "waiting" or (kind == "alone" and _EPOCH_MS - due_ms <= patience_ms)
        )  # fmt: skip
        want = next(holds, len(records))
        got = answer(list(records), _EPOCH_MS, patience_ms)
        if got != want or isinstance(got, bool):
            shown = ", ".join(f"{kind} (due {_EPOCH_MS - due_ms} ms ago)" for kind, due_ms in records) or "nothing"
            told = f"with a patience of {patience_ms} ms were read: {shown}"
            return f"{told}; {want} need not be read again, and yours says {got!r}"
    return ""


# -- what becomes of a message, told one by one ------------------------------------------------------------------------


def _played(answer: Decision, seed: int) -> Lab:
    """A room with such a reviver."""
    room = _ROOMS[seed % len(_ROOMS)]
    lab = Lab(seed)
    lab.finish_building(room.build(lab, decided_by(answer)))
    return lab.run_for(seconds=room.seconds)


def _told(answer: Decision, seed: int) -> Wrong | None:
    """Cases that a world seldom brings, among them a store that does not read."""
    draw = draws_for(seed)
    asked = draw.between("asked", 0, 900)
    pop_time = 1_767_225_600_000 + draw.between("popped", 0, 60_000)
    stored = pop_time + draw.between("stored", -20_000, 5_000)
    later = draw.between("later", 1, 40)
    cases: tuple[tuple[str, int | None, int | None, int, bool, str], ...] = (
        ("the store gives this very message", asked, stored, asked + later, True, "back"),
        ("the store gives a later message", asked + later, stored, asked + later + 1, True, "gone"),
        ("the store gives nothing, and the queue ends before the offset", None, None, asked // 2, True, "gone"),
        ("the store gives nothing, and the queue is longer", None, None, asked + later, True, "gone"),
        ("the store does not read just now", None, None, asked + later, False, "later"),
    )
    for told, found, at_ms, end, reads, want in cases:
        got = answer(asked, found, pop_time, at_ms, end, reads)
        if got not in _ANSWERS:
            return Wrong(f"{told}: yours says {got!r}, which is none of {', '.join(_ANSWERS)}")
        if got != want:
            facts = f"asked {asked}, found {found}, popped {pop_time}, stored {at_ms}, queue ends at {end}"
            return Wrong(f"{told} ({facts}): it is {want!r}, and yours says {got!r}")
    return None
