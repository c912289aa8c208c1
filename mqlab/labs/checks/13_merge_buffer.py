"""The checks of lab 13: what a batch costs, which acks memory takes, what a kill brings back, and the scan itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from mqlab import Lab
from mqlab.check import Cases, NotSolvedYet, Right, Wrong, draws_for, lab_check
from mqlab.errors import LearnerError, SimulationError
from mqlab.exercises.memory_shift import CRASH_SLACK_MS, STAY_MS, MemoryShift, Order, Rule
from mqlab.scenarios.merge_buffer import Kitchen, open_kitchen, records_of_pops

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageExt

TAKES_MS, LEFT_MS = 8_500, 4_500


# -- what a batch costs ---------------------------------------------------------------------------------------------


@lab_check("13/written", points=1)
def written(answer: Callable[[int, float, bool], int], *, seed: int) -> Wrong | None:
    """Batches of other sizes, done soon or late, with the buffer and without."""
    draw = draws_for(seed)
    size, buffer = draw.between("size", 1, 9), draw.one_of("buffer", [True, False])
    done_s = draw.one_of("done", [draw.between("soon", 5, 90) / 10, draw.between("late", 120, 200) / 10])
    lab = _one_batch(size, done_s, buffer, seed)
    want = records_of_pops(lab)["waiting"]
    got = answer(size, done_s, buffer)
    if got == want:
        return None
    told = f"written(size={size}, done_s={done_s}, buffer={buffer}) is {want}, and yours says {got!r}"
    return Wrong(told, world=partial(_one_batch, size, done_s, buffer, seed))


def _one_batch(size: int, done_s: float, buffer: bool, seed: int) -> Lab:
    """One batch, invisible for a minute, whose orders are all done at the same time; the world half a minute later."""
    lab = Lab(seed)
    kitchen = open_kitchen(lab, size, buffer=buffer)
    orders = lab.run(kitchen.pop(size))
    lab.run_for(seconds=done_s)
    lab.run(kitchen.ack(*orders))
    return lab.run_for(seconds=30 - done_s)


# -- which acks memory takes ------------------------------------------------------------------------------------------


@lab_check("13/takes-ack", points=1)
def takes_ack(answer: Callable[[int, int, int], bool], *, seed: int) -> Wrong | None:
    """Acks around both limits, of batches that are invisible for a short or a long time."""
    draw, cases = Random(f"13/takes-ack/{seed}"), Cases()
    for invisible_ms in (draw.randint(5_000, 12_000), draw.randint(14_000, 60_000)):
        popped_ms = draw.randint(0, 9_999)
        visible_ms = popped_ms + invisible_ms
        for now_ms in (
            popped_ms + 1,
            *(popped_ms + TAKES_MS + late for late in (-1, 0, 1)),
            *(visible_ms - LEFT_MS + late for late in (-1, 0, 1)),
        ):
            want = now_ms - popped_ms <= TAKES_MS and visible_ms - now_ms >= LEFT_MS
            got = answer(popped_ms, visible_ms, now_ms)
            told = f"popped at {popped_ms}, visible at {visible_ms}, now {now_ms}: {want}, and yours says {got!r}"
            cases.note(want, got == want or Wrong(told))
    return cases.result


# -- what a kill brings back ------------------------------------------------------------------------------------------


@lab_check("13/comes-again", points=1)
def comes_again(answer: Callable[[list[tuple[list[int], set[int]]]], list[int]], *, seed: int) -> Wrong | None:
    """Kitchens that have popped some batches and done some orders, when their broker is killed."""
    lab, kitchen, batches = _killed(seed)
    want = sorted(message.queue_offset for message in lab.run(kitchen.pop()))
    given = [(list(orders), set(done)) for orders, done in batches]
    got = answer(given)
    if isinstance(got, list | tuple | set | frozenset) and sorted(got, key=repr) == sorted(want, key=repr):
        return None
    told = "; ".join(f"{orders} popped, {sorted(done) or 'none'} done" for orders, done in batches)
    return Wrong(f"{told}: {want or 'nothing'} came again, and yours says {got!r}", world=lambda: _killed(seed)[0])


def _killed(seed: int) -> tuple[Lab, Kitchen, list[tuple[list[int], set[int]]]]:
    """A kitchen that has popped batches and done some orders a second ago, whose broker was killed and is back."""
    draw = Random(f"13/comes-again/{seed}")
    sizes = [draw.randint(1, 4) for _ in range(draw.randint(1, 5))]
    lab = Lab(seed)
    kitchen = open_kitchen(lab, sum(sizes), buffer=True)
    batches: list[tuple[list[int], set[int]]] = []
    lazy_from = draw.randint(0, len(sizes) - 1)
    for number, size in enumerate(sizes):
        popped: list[MessageExt] = lab.run(kitchen.pop(size))
        done = popped if number < lazy_from else [message for message in popped if draw.random() < 0.6]
        lab.run(kitchen.ack(*done))
        batches.append(([m.queue_offset for m in popped], {m.queue_offset for m in done}))
    lab.run_for(seconds=1)
    lab.crash("broker-a")
    lab.restart("broker-a")
    lab.run_for(seconds=1)
    return lab, kitchen, batches


# -- the scan -------------------------------------------------------------------------------------------------------


@lab_check("13/stay-or-store", points=3)
def stay_or_store(answer: Rule, *, seed: int) -> Right | Wrong:
    """Orders done soon, late or never, and kills: nothing is lost, little comes twice, nothing is written in vain."""
    shift = MemoryShift(answer, seed)
    try:
        shift.play()
    except SimulationError as error:
        # What a rule returns is read in a task of the broker's, which dies of it.
        if not isinstance(error.__cause__, LearnerError) or isinstance(error.__cause__, NotSolvedYet):
            raise
        return Wrong(str(error.__cause__), shift.story(*range(20)))
    return _lost(shift) or _twice(shift) or _written(shift) or _left_over(shift) or _right(shift)


def _lost(shift: MemoryShift) -> Wrong | None:
    """Has everything come again that nobody did?"""
    for order in shift.orders.values():
        if order.work_ms is None and not order.again_ms:
            return _wrong(shift, order, "nobody has done it, and it does not come again")
    return None


def _twice(shift: MemoryShift) -> Wrong | None:
    """Has nothing come again that was done, beside what was popped in the last ten seconds before a kill?"""
    for order in shift.orders.values():
        if order.done_ms is None or not order.again_ms:
            continue
        if shift.killed_ms is None:
            return _wrong(shift, order, "it was done in time, and comes again")
        age_ms = shift.killed_ms - order.popped_ms
        if age_ms > STAY_MS + CRASH_SLACK_MS:
            popped = f"popped {age_ms / 1_000:.1f} s before the kill"
            return _wrong(shift, order, f"it was {popped} and done, and comes again")
    return None


def _written(shift: MemoryShift) -> Wrong | None:
    """Were no more check points written than had to be?"""
    had_to = shift.had_to_store()
    if shift.check_points <= had_to:
        return None
    told = f"{shift.check_points} check points are written, and {had_to} had to be: the others were done in time"
    return Wrong(told, shift.story(*range(20)))


def _left_over(shift: MemoryShift) -> Wrong | None:
    """Is memory empty in the end, and the group behind all orders?"""
    kept = shift.buffer.kept
    if kept is not None:
        batch = shift.orders[f"order-{kept}"].batch
        return Wrong(f"all orders of batch {batch} are done, and your scan keeps it in memory", shift.story(batch))
    if shift.killed_ms is not None:
        return None
    held = shift.in_memory()
    if held:
        return Wrong(f"all is over, and memory still holds batch {held[0]}", shift.story(held[0]))
    last = max(int(key.removeprefix("order-")) for key in shift.orders)
    if shift.progress() <= last:
        told = f"all is over, and the group still stands before order-{shift.progress()}: a restart begins there"
        return Wrong(told, shift.story(shift.orders[f"order-{shift.progress()}"].batch))
    return None


def _right(shift: MemoryShift) -> Right:
    again = sum(order.done_ms is not None and bool(order.again_ms) for order in shift.orders.values())
    return Right({
        "check points written": {"yours": shift.check_points, "had to": shift.had_to_store()},
        "orders done that came again after a kill": {"yours": again},
    })  # fmt: skip


def _wrong(shift: MemoryShift, order: Order, what: str) -> Wrong:
    return Wrong(f"{order.key} of batch {order.batch}: {what}", shift.story(order.batch))
