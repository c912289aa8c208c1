"""Wrong solutions of lab 05_push_is_pull, each of which its check catches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def _is_behind(newest: int, pull: Any) -> bool:
    return bool(pull.offset < newest)


def _is_ready(newest: int, now_ms: int, pull: Any) -> bool:
    return _is_behind(newest, pull) or bool(pull.due_ms <= now_ms)


def as_long_as_asked(next_pass_ms: int, hold_ms: int) -> int:
    """Believes that the broker keeps to the time that the client asks for."""
    return hold_ms


def one_pass_too_many(next_pass_ms: int, hold_ms: int) -> int:
    """Adds the time until the next pass to the time that was asked for."""
    return hold_ms + next_pass_ms


def rounded_up_to_fives(next_pass_ms: int, hold_ms: int) -> int:
    """Rounds up to whole passes, as if the pull had come with one."""
    return -(-hold_ms // 5_000) * 5_000


def tags_also_at_a_pass(pull_offset: int, wanted: set[int], max_offset: int, tags_code: int | None) -> bool:
    """Lets a pass look at the tag that it does not have."""
    return max_offset > pull_offset and (not wanted or tags_code in wanted)


def forgets_the_offset(pull_offset: int, wanted: set[int], max_offset: int, tags_code: int | None) -> bool:
    """Wakes whatever the queue holds, also when it is the message before."""
    return tags_code is None or not wanted or tags_code in wanted


def one_too_early(pull_offset: int, wanted: set[int], max_offset: int, tags_code: int | None) -> bool:
    """Takes the end of the queue for the offset of its last message."""
    return max_offset >= pull_offset and (tags_code is None or not wanted or tags_code in wanted)


class Right:
    """What all of them have in common; each one below spoils a part of it."""

    def __init__(self) -> None:
        self.held: dict[Any, list[Any]] = {}

    def hold(self, pull: Any) -> None:
        """Keep it by its queue."""
        self.held.setdefault(pull.queue, []).append(pull)

    def arrived(self, queue: Any, max_offset: int) -> list[Any]:
        """Those of this queue that get something."""
        return self.take(queue, lambda pull: pull.offset < max_offset)

    def look(self, now_ms: int, max_offset_of: Callable[[Any], int]) -> list[Any]:
        """Those that are due, or that get something after all."""
        woken = []
        for queue in list(self.held):
            newest = max_offset_of(queue)
            woken += self.take(queue, partial(_is_ready, newest, now_ms))
        return woken

    def take(self, queue: Any, ready: Callable[[Any], bool]) -> list[Any]:
        """Take out those of a queue that are ready."""
        pulls = [(pull, ready(pull)) for pull in self.held.pop(queue, [])]
        kept = [pull for pull, is_ready in pulls if not is_ready]
        if kept:
            self.held[queue] = kept
        return [pull for pull, is_ready in pulls if is_ready]


class LooksThroughAll(Right):
    """Keeps one list and goes through all of it at each arrival."""

    def arrived(self, queue: Any, max_offset: int) -> list[Any]:
        """Right, but with work for every pull that is held."""
        found = [(q, pull) for q, pulls in self.held.items() for pull in pulls]
        woken = [pull for q, pull in found if q == queue and pull.offset < max_offset]
        for pull in woken:
            self.held[pull.queue].remove(pull)
        return woken


class WakesEverybody(Right):
    """Wakes whatever is held when anything comes, so most answers are empty."""

    def arrived(self, queue: Any, max_offset: int) -> list[Any]:
        """All of them."""
        woken = [pull for pulls in self.held.values() for pull in pulls]
        self.held.clear()
        return woken


class TakesEachNoticeForNew(Right):
    """Wakes all that wait for the queue, also for a notice of what they have had: empty answers."""

    def arrived(self, queue: Any, max_offset: int) -> list[Any]:
        """All of this queue."""
        return self.take(queue, lambda pull: True)


class OnePerQueue(Right):
    """Keeps one pull for each queue; the next one of the same queue takes its place, and the first is lost."""

    def hold(self, pull: Any) -> None:
        """Overwrites."""
        self.held[pull.queue] = [pull]


class WakesTheFirst(Right):
    """Gives a message to the first pull that waits for it, as if it could be read only once."""

    def arrived(self, queue: Any, max_offset: int) -> list[Any]:
        """One of them."""
        ready = self.take(queue, lambda pull: pull.offset < max_offset)
        for pull in ready[1:]:
            self.hold(pull)
        return ready[:1]


class TrustsTheNotice(Right):
    """Uses the pass for time-outs only, so a notice that was lost costs up to 20 s."""

    def look(self, now_ms: int, max_offset_of: Callable[[Any], int]) -> list[Any]:
        """Those that are due."""
        return [pull for queue in list(self.held) for pull in self.take(queue, lambda pull: pull.due_ms <= now_ms)]


class WaitsForThePass(Right):
    """Does nothing at an arrival; that is short polling with 5 s."""

    def arrived(self, queue: Any, max_offset: int) -> list[Any]:
        """Nobody."""
        return []


class NeverGivesUp(Right):
    """Forgets that a pull has a time; its client gives up alone."""

    def look(self, now_ms: int, max_offset_of: Callable[[Any], int]) -> list[Any]:
        """Those that get something."""
        woken = []
        for queue in list(self.held):
            newest = max_offset_of(queue)
            woken += self.take(queue, partial(_is_behind, newest))
        return woken


class OffByOne(Right):
    """Takes the largest offset for the last message; it is the one that the next message will get."""

    def look(self, now_ms: int, max_offset_of: Callable[[Any], int]) -> list[Any]:
        """Everybody who waits at the end of a queue."""
        woken = []
        for queue in list(self.held):
            newest = max_offset_of(queue)
            woken += self.take(queue, partial(_is_ready, newest + 1, now_ms))
        return woken


class ForgetsToTakeOut(Right):
    """Answers a pull and keeps it, so that it is answered again."""

    def arrived(self, queue: Any, max_offset: int) -> list[Any]:
        """Right, but they stay."""
        return [pull for pull in self.held.get(queue, []) if pull.offset < max_offset]


class ComparesTexts(Right):
    """Looks through all pulls, and compares the texts of their queues: no less work than comparing the queues."""

    def arrived(self, queue: Any, max_offset: int) -> list[Any]:
        """All pulls are looked at."""
        everybody = [pull for pulls in self.held.values() for pull in pulls]
        woken = [pull for pull in everybody if str(pull.queue) == str(queue) and pull.offset < max_offset]
        for pulls in self.held.values():
            pulls[:] = [pull for pull in pulls if pull not in woken]
        return woken


def forgets_the_round_trip(queues: int, interval_ms: float, round_trip_ms: float) -> float:
    """As if a task pulled in a fixed rhythm."""
    return queues * 60_000 / interval_ms


def one_task_for_all_queues(queues: int, interval_ms: float, round_trip_ms: float) -> float:
    """As if one task went from queue to queue."""
    return 60_000 / (interval_ms + round_trip_ms)


def per_second(queues: int, interval_ms: float, round_trip_ms: float) -> float:
    """Requests per second."""
    return queues * 1_000 / (interval_ms + round_trip_ms)


Pulls = list[tuple[str, int, int]]


def by_topic_alone(pulls: Pulls) -> dict[str, list[int]]:
    """Puts all queues of a topic into one list."""
    table: dict[str, list[int]] = {}
    for topic, _, offset in pulls:
        table.setdefault(topic, []).append(offset)
    return table


def the_last_one_stays(pulls: Pulls) -> dict[str, list[int]]:
    """Begins a new list with each pull."""
    return {f"{topic}@{queue}": [offset] for topic, queue, offset in pulls}


def without_the_at(pulls: Pulls) -> dict[str, list[int]]:
    """Another key than RocketMQ's."""
    table: dict[str, list[int]] = {}
    for topic, queue, offset in pulls:
        table.setdefault(f"{topic}{queue}", []).append(offset)
    return table


WRONG = {
    "05/held-for": [as_long_as_asked, one_pass_too_many, rounded_up_to_fives],
    "05/wakes": [tags_also_at_a_pass, forgets_the_offset, one_too_early],
    "05/asks": [forgets_the_round_trip, one_task_for_all_queues, per_second],
    "05/table": [by_topic_alone, the_last_one_stays, without_the_at],
    "05/hold": [
        LooksThroughAll,
        WakesEverybody,
        TakesEachNoticeForNew,
        OnePerQueue,
        WakesTheFirst,
        TrustsTheNotice,
        WaitsForThePass,
        NeverGivesUp,
        OffByOne,
        ForgetsToTakeOut,
        ComparesTexts,
    ],
}
