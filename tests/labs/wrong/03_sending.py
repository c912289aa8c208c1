"""Plausible wrong solutions of lab 03_sending, each of which its check catches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

Callback = Callable[[Any, Any], None]


def counts_one_way_calls(asyncs: int, syncs: int, oneways: int, permits: int) -> tuple[int, int]:
    """Takes a one-way call for one that waits."""
    calls = asyncs + syncs + oneways
    return min(calls, permits), max(0, calls - permits)


def sync_needs_no_permit(asyncs: int, syncs: int, oneways: int, permits: int) -> tuple[int, int]:
    """As it was in RocketMQ 4: a synchronous call limits itself."""
    return min(asyncs, permits) + syncs, max(0, asyncs - permits)


def all_are_in_the_table(asyncs: int, syncs: int, oneways: int, permits: int) -> tuple[int, int]:
    """Lets those without a permit stand in the table, too."""
    return asyncs + syncs, max(0, asyncs + syncs - permits)


Table = dict[int, Callable[[str], None]]


def only_finds_it(table: Table, opaque: int, answer: str) -> None:
    """Calls who waits, and leaves the row in the table: a second answer is heard, too."""
    waiter = table.get(opaque)
    if waiter is not None:
        waiter(answer)


def in_the_order_of_requests(table: Table, opaque: int, answer: str) -> None:
    """Gives each answer to the request that was sent first, as if the table were a list."""
    if opaque in table:
        table.pop(next(iter(table)))(answer)


def expects_somebody(table: Table, opaque: int, answer: str) -> None:
    """Believes that somebody waits for each answer."""
    table.pop(opaque)(answer)


class LetsAllGo:
    """Counts, and sends all the same."""

    def __init__(self, send: Callable[[Any, Callback], None], limit: int) -> None:
        self.send, self.limit, self.out = send, limit, 0
        self.line: deque[tuple[Any, Callback]] = deque()

    def submit(self, message: Any, callback: Callback) -> None:
        """Send it."""
        self.send(message, callback)


class _Counting(LetsAllGo):
    def submit(self, message: Any, callback: Callback) -> None:
        """Send now, or stand in line."""
        if self.out >= self.limit:
            self.line.append((message, callback))
        else:
            self._start(message, callback)

    def _start(self, message: Any, callback: Callback) -> None:
        self.out += 1
        self.send(message, lambda result, error: self._answered(callback, result, error))

    def _answered(self, callback: Callback, result: Any, error: Any) -> None:
        raise NotImplementedError


class LetsANewOneOvertake(_Counting):
    """Frees the place, calls back, and only then looks at the line: what the callback submits goes first."""

    def _answered(self, callback: Callback, result: Any, error: Any) -> None:
        self.out -= 1
        try:
            callback(result, error)
        finally:
            if self.line and self.out < self.limit:
                self._start(*self.line.popleft())


class StopsAtACallbackThatRaises(_Counting):
    """Calls back first: when that raises, the place is never free again."""

    def _answered(self, callback: Callback, result: Any, error: Any) -> None:
        callback(result, error)
        self.out -= 1
        if self.line:
            self._start(*self.line.popleft())


class FreesAPlaceOnlyForSuccess(_Counting):
    """Takes a message that failed for one that is still on its way."""

    def _answered(self, callback: Callback, result: Any, error: Any) -> None:
        if error is None:
            self.out -= 1
            if self.line:
                self._start(*self.line.popleft())
        callback(result, error)


class LastComeFirstSent(_Counting):
    """Takes the line from its end."""

    def _answered(self, callback: Callback, result: Any, error: Any) -> None:
        self.out -= 1
        if self.line:
            self._start(*self.line.pop())
        callback(result, error)


WRONG = {
    "03/answer": [only_finds_it, in_the_order_of_requests, expects_somebody],
    "03/in-line": [counts_one_way_calls, sync_needs_no_permit, all_are_in_the_table],
    "03/bounded": [
        LetsAllGo,
        LetsANewOneOvertake,
        StopsAtACallbackThatRaises,
        FreesAPlaceOnlyForSuccess,
        LastComeFirstSent,
    ],
}
