"""Plausible wrong solutions of lab 01_routes, each of which its check catches."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from mqlab.errors import MQClientException, RemotingException
from mqlab.sim import Lock

# -- where a producer may send to ----------------------------------------------------------------------------------


def sends_to_slaves(route: Any) -> list[tuple[str, int]]:
    """Does not look whether a broker's master is there."""
    return [(data.broker_name, n) for data in route.queue_datas if data.perm & 2 for n in range(data.write_queue_nums)]


def counts_read_queues(route: Any) -> list[tuple[str, int]]:
    """Takes the queues that consumers read for those that producers write."""
    masters = [broker.broker_name for broker in route.broker_datas if 0 in broker.broker_addrs]
    usable = [data for data in route.queue_datas if data.broker_name in masters and data.perm & 2]
    return [(data.broker_name, n) for data in usable for n in range(data.read_queue_nums)]


def forgets_the_permission(route: Any) -> list[tuple[str, int]]:
    """Sends to queues that may only be read."""
    masters = [broker.broker_name for broker in route.broker_datas if 0 in broker.broker_addrs]
    usable = [data for data in route.queue_datas if data.broker_name in masters]
    return [(data.broker_name, n) for data in usable for n in range(data.write_queue_nums)]


# -- when a producer is right again --------------------------------------------------------------------------------


def at_the_first_question(report_s: float, refresh_s: float) -> float:
    """Takes the first question, though it may come before the report."""
    return refresh_s


def one_period_after_the_report(report_s: float, refresh_s: float) -> float:
    """As if the timer of the producer began with the report."""
    return report_s + 30


def both_one_after_the_other(report_s: float, refresh_s: float) -> float:
    """Adds the two waits, as if the second began when the first has ended."""
    return report_s + refresh_s


# -- the scan for silent brokers -----------------------------------------------------------------------------------


def deletes_while_looking(reports: dict[str, tuple[int, int]], now_ms: int) -> list[str]:
    """Changes the table while it goes through it."""
    silent = []
    for name, (last_ms, counts_ms) in reports.items():
        if last_ms + counts_ms < now_ms:
            del reports[name]
            silent.append(name)
    return silent


def drops_too_early(reports: dict[str, tuple[int, int]], now_ms: int) -> list[str]:
    """Drops a broker whose time has not quite run out."""
    silent = [name for name, (last_ms, counts_ms) in reports.items() if last_ms + counts_ms <= now_ms]
    for name in silent:
        del reports[name]
    return silent


def one_time_for_all(reports: dict[str, tuple[int, int]], now_ms: int) -> list[str]:
    """Believes everybody for 120 s, whatever was asked for."""
    silent = [name for name, (last_ms, _) in reports.items() if last_ms + 120_000 < now_ms]
    for name in silent:
        del reports[name]
    return silent


def only_names_them(reports: dict[str, tuple[int, int]], now_ms: int) -> list[str]:
    """Leaves the table as it is."""
    return [name for name, (last_ms, counts_ms) in reports.items() if last_ms + counts_ms < now_ms]


# -- a cache of routes ---------------------------------------------------------------------------------------------

MAX_AGE_MS = 5_000
RETRY_MS = 1_000


class _Cache:
    """What all of them begin with."""

    def __init__(self, node: Any, ask: Any) -> None:
        self.node = node
        self.ask = ask
        self.routes: dict[str, Any] = {}
        self.due_ms: dict[str, int] = {}
        self.locks: dict[str, Lock] = {}

    def _lock(self, topic: str) -> Lock:
        return self.locks.setdefault(topic, Lock(topic))

    def _is_due(self, topic: str) -> bool:
        return bool(self.node.now_ms() >= self.due_ms.get(topic, 0))

    def _due_in(self, topic: str, ms: int) -> None:
        self.due_ms[topic] = self.node.now_ms() + ms


class asks_every_time(_Cache):  # noqa: N801 - named as a mistake
    """No cache at all: every call is a question."""

    async def route(self, topic: str) -> Any:
        async with self._lock(topic):
            with suppress(MQClientException, RemotingException):
                self.routes[topic] = await self.ask(topic)
            return self.routes.get(topic)


class never_asks_again(_Cache):  # noqa: N801
    """A cache without an end: the first answer is kept for ever."""

    async def route(self, topic: str) -> Any:
        async with self._lock(topic):
            if topic not in self.routes and self._is_due(topic):
                try:
                    self.routes[topic] = await self.ask(topic)
                except (MQClientException, RemotingException):
                    self._due_in(topic, RETRY_MS)
            return self.routes.get(topic)


class every_use_prolongs(_Cache):  # noqa: N801
    """Each use makes the entry young again, as in a cache that drops the unused: a busy topic is never refreshed."""

    async def route(self, topic: str) -> Any:
        async with self._lock(topic):
            if self._is_due(topic):
                try:
                    self.routes[topic] = await self.ask(topic)
                except (MQClientException, RemotingException):
                    self._due_in(topic, RETRY_MS)
                    return self.routes.get(topic)
            self._due_in(topic, MAX_AGE_MS)
            return self.routes.get(topic)


class everybody_asks(_Cache):  # noqa: N801
    """No turn-taking: all who find the route too old ask at once."""

    async def route(self, topic: str) -> Any:
        if self._is_due(topic):
            try:
                self.routes[topic] = await self.ask(topic)
                self._due_in(topic, MAX_AGE_MS)
            except (MQClientException, RemotingException):
                self._due_in(topic, RETRY_MS)
        return self.routes.get(topic)


class does_not_look_again(_Cache):  # noqa: N801
    """Takes turns, but looks at the age before its turn comes: those who waited ask one after the other."""

    async def route(self, topic: str) -> Any:
        if self._is_due(topic):
            async with self._lock(topic):
                try:
                    self.routes[topic] = await self.ask(topic)
                    self._due_in(topic, MAX_AGE_MS)
                except (MQClientException, RemotingException):
                    self._due_in(topic, RETRY_MS)
        return self.routes.get(topic)


class passes_errors_on(_Cache):  # noqa: N801
    """Lets its callers have the error although it knows an older route."""

    async def route(self, topic: str) -> Any:
        async with self._lock(topic):
            if self._is_due(topic):
                self._due_in(topic, RETRY_MS)
                self.routes[topic] = await self.ask(topic)
                self._due_in(topic, MAX_AGE_MS)
            return self.routes.get(topic)


class forgets_on_error(_Cache):  # noqa: N801
    """Drops what it knew when a question fails."""

    async def route(self, topic: str) -> Any:
        async with self._lock(topic):
            if self._is_due(topic):
                try:
                    self.routes[topic] = await self.ask(topic)
                    self._due_in(topic, MAX_AGE_MS)
                except (MQClientException, RemotingException):
                    self.routes.pop(topic, None)
                    self._due_in(topic, RETRY_MS)
            return self.routes.get(topic)


class tries_again_at_once(_Cache):  # noqa: N801
    """A failed question leaves the route due: while there is no answer, every call is a question."""

    async def route(self, topic: str) -> Any:
        async with self._lock(topic):
            if self._is_due(topic):
                with suppress(MQClientException, RemotingException):
                    self.routes[topic] = await self.ask(topic)
                    self._due_in(topic, MAX_AGE_MS)
            return self.routes.get(topic)


class keeps_the_lock(_Cache):  # noqa: N801
    """Releases the lock only when all goes well: the first error is the last thing that ever happens to the topic."""

    async def route(self, topic: str) -> Any:
        await self._lock(topic).acquire()
        if self._is_due(topic):
            try:
                self.routes[topic] = await self.ask(topic)
                self._due_in(topic, MAX_AGE_MS)
            except (MQClientException, RemotingException):
                self._due_in(topic, RETRY_MS)
                return self.routes.get(topic)
        self._lock(topic).release()
        return self.routes.get(topic)


class refreshes_all_for_ever(_Cache):  # noqa: N801
    """A timer for every topic that was ever used, as RocketMQ has it, but six times as often."""

    async def route(self, topic: str) -> Any:
        async with self._lock(topic):
            if topic not in self.due_ms:
                self._due_in(topic, 0)
                await self._refresh(topic)
                self.node.spawn(self._keep_fresh(topic), f"refresh {topic}")
        return self.routes.get(topic)

    async def _keep_fresh(self, topic: str) -> None:
        while True:
            await self.node.sleep(MAX_AGE_MS - 600 if topic in self.routes else RETRY_MS)
            await self._refresh(topic)

    async def _refresh(self, topic: str) -> None:
        with suppress(MQClientException, RemotingException):
            self.routes[topic] = await self.ask(topic)


class one_lifetime_for_all(_Cache):  # noqa: N801
    """One time for the whole cache instead of one for each topic: a question for one makes all seem fresh."""

    async def route(self, topic: str) -> Any:
        async with self._lock("all"):
            if self._is_due("all") or (topic not in self.routes and self._is_due(topic)):
                self._due_in("all", MAX_AGE_MS)
                self._due_in(topic, RETRY_MS)
                try:
                    self.routes[topic] = await self.ask(topic)
                except (MQClientException, RemotingException):
                    self._due_in("all", RETRY_MS)
            return self.routes.get(topic)


WRONG = {
    "01/queues-to-send-to": [sends_to_slaves, counts_read_queues, forgets_the_permission],
    "01/right-after": [at_the_first_question, one_period_after_the_report, both_one_after_the_other],
    "01/drop-silent": [deletes_while_looking, drops_too_early, one_time_for_all, only_names_them],
    "01/route-cache": [
        asks_every_time,
        never_asks_again,
        every_use_prolongs,
        everybody_asks,
        does_not_look_again,
        passes_errors_on,
        forgets_on_error,
        tries_again_at_once,
        keeps_the_lock,
        refreshes_all_for_ever,
        one_lifetime_for_all,
    ],
}
