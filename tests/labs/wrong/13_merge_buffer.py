"""Wrong solutions of lab 13: the mistakes that students make."""

from __future__ import annotations

from typing import Any


def both_ways(size: int, done_s: float, buffer: bool) -> int:
    """Forgets the buffer: every batch is written."""
    return size + 1


def no_check_point(size: int, done_s: float, buffer: bool) -> int:
    """Counts the acknowledgements alone."""
    return 0 if buffer and done_s <= 8.5 else size


def ten_seconds(size: int, done_s: float, buffer: bool) -> int:
    """Takes the ten seconds of the stay for the limit of an acknowledgement."""
    return 0 if buffer and done_s <= 10 else size + 1


def age_alone(popped_ms: int, visible_ms: int, now_ms: int) -> bool:
    """Looks at the age, and not at what is left."""
    return now_ms - popped_ms <= 8_500


def left_alone(popped_ms: int, visible_ms: int, now_ms: int) -> bool:
    """Looks at what is left, and not at the age."""
    return visible_ms - now_ms >= 4_500


def limits_left_out(popped_ms: int, visible_ms: int, now_ms: int) -> bool:
    """Leaves the limits themselves out."""
    return now_ms - popped_ms < 8_500 and visible_ms - now_ms > 4_500


def limits_of_the_scan(popped_ms: int, visible_ms: int, now_ms: int) -> bool:
    """Takes the limits of the scan, without the second and a half in between."""
    return now_ms - popped_ms <= 10_000 and visible_ms - now_ms >= 3_000


def not_done(batches: list[tuple[list[int], set[int]]]) -> list[int]:
    """What is not done: as if a tick in memory could be read after a kill."""
    return [offset for orders, done in batches for offset in orders if offset not in done]


def everything(batches: list[tuple[list[int], set[int]]]) -> list[int]:
    """Everything: batches that are done have moved the group's place."""
    return [offset for orders, _ in batches for offset in orders]


def unfinished_batches(batches: list[tuple[list[int], set[int]]]) -> list[int]:
    """Only the batches that are not done: those behind them wait for them."""
    return [offset for orders, done in batches if set(orders) - done for offset in orders]


def from_the_first_order(batches: list[tuple[list[int], set[int]]]) -> list[int]:
    """From the first order that is not done: the group's place moves by batches."""
    offsets = [offset for orders, _ in batches for offset in orders]
    done = {offset for _, some in batches for offset in some}
    first = next((offset for offset in offsets if offset not in done), len(offsets))
    return offsets[first:]


def nothing_if_all_is_done(batches: list[tuple[list[int], set[int]]]) -> list[int] | None:
    """Forgets to return an empty list when no batch is open."""
    for number, (orders, done) in enumerate(batches):
        if set(orders) - done:
            return [offset for later, _ in batches[number:] for offset in later]
    return None


# -- the scan -------------------------------------------------------------------------------------------------------


def _is_done(batch: Any) -> bool:
    return len(batch.done) == batch.orders


def _may_stay(batch: Any, now_ms: int) -> bool:
    return bool(batch.visible_ms - now_ms >= 3_000 and now_ms - batch.popped_ms <= 10_000)


def _all_of(batch: Any) -> list[Any]:
    steps: list[Any] = [] if batch.stored else ["store"]
    steps += [place for place in batch.done if place not in batch.done_stored]
    return [*steps, "let go"]


def stores_at_once(batch: Any, now_ms: int) -> list[Any]:
    """Writes each batch at the first look: as dear as without the buffer."""
    return ["let go"] if _is_done(batch) else _all_of(batch)


def stores_after_a_second(batch: Any, now_ms: int) -> list[Any]:
    """Gives a batch one second: most of what is written would have been done a little later."""
    if _is_done(batch):
        return ["let go"]
    return [] if now_ms - batch.popped_ms < 1_000 else _all_of(batch)


def waits_until_visible(batch: Any, now_ms: int) -> list[Any]:
    """Writes when the orders are visible again: late acknowledgements are read before their check point."""
    if _is_done(batch):
        return ["let go"]
    return [] if now_ms < batch.visible_ms else _all_of(batch)


def looks_at_the_age_alone(batch: Any, now_ms: int) -> list[Any]:
    """Ten seconds for everybody: with a short invisible time that is too late."""
    if _is_done(batch):
        return ["let go"]
    return [] if now_ms - batch.popped_ms <= 10_000 else _all_of(batch)


def looks_at_the_rest_alone(batch: Any, now_ms: int) -> list[Any]:
    """Keeps what is invisible for long: a kill brings back orders that were done long ago."""
    if _is_done(batch):
        return ["let go"]
    return [] if batch.visible_ms - now_ms >= 3_000 else _all_of(batch)


def forgets_what_is_old(batch: Any, now_ms: int) -> list[Any]:
    """Lets go what stayed too long without writing it: what nobody did is lost."""
    return [] if not _is_done(batch) and _may_stay(batch, now_ms) else ["let go"]


def forgets_the_acks(batch: Any, now_ms: int) -> list[Any]:
    """Writes the check point alone: what was ticked off in memory comes again."""
    if _is_done(batch):
        return ["let go"]
    return [] if _may_stay(batch, now_ms) else ["store", "let go"]


def acks_everything(batch: Any, now_ms: int) -> list[Any]:
    """Writes an acknowledgement for each order: what nobody did never comes again."""
    if _is_done(batch):
        return ["let go"]
    return [] if _may_stay(batch, now_ms) else ["store", *range(batch.orders), "let go"]


def writes_what_is_done(batch: Any, now_ms: int) -> list[Any]:
    """Writes a batch whose orders are all done, to be on the safe side."""
    return [] if not _is_done(batch) and _may_stay(batch, now_ms) else _all_of(batch)


def never_lets_go(batch: Any, now_ms: int) -> list[Any]:
    """Writes what has to be written, and keeps it."""
    if _is_done(batch):
        return ["let go"]
    return [] if _may_stay(batch, now_ms) else _all_of(batch)[:-1]


def keeps_what_is_done(batch: Any, now_ms: int) -> list[Any]:
    """Lets a done batch go only when its time is over."""
    if _may_stay(batch, now_ms):
        return []
    return ["let go"] if _is_done(batch) else _all_of(batch)


def one_tick_is_enough(batch: Any, now_ms: int) -> list[Any]:
    """Takes one order that is done for all of them."""
    if batch.done:
        return ["let go"]
    return [] if _may_stay(batch, now_ms) else _all_of(batch)


def no_list_at_all(batch: Any, now_ms: int) -> list[Any] | None:
    """Returns nothing where an empty list is meant."""
    return ["let go"] if _is_done(batch) else None


WRONG = {
    "13/written": [both_ways, no_check_point, ten_seconds],
    "13/takes-ack": [age_alone, left_alone, limits_left_out, limits_of_the_scan],
    "13/comes-again": [not_done, everything, unfinished_batches, from_the_first_order, nothing_if_all_is_done],
    "13/stay-or-store": [
        stores_at_once,
        stores_after_a_second,
        waits_until_visible,
        looks_at_the_age_alone,
        looks_at_the_rest_alone,
        forgets_what_is_old,
        forgets_the_acks,
        acks_everything,
        writes_what_is_done,
        never_lets_go,
        keeps_what_is_done,
        one_tick_is_enough,
        no_list_at_all,
    ],
}
