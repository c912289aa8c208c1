"""Plausible wrong solutions of lab 04_broker_down, each of which its check catches."""

from __future__ import annotations

from typing import Any

PAUSE_MS = 1_000


def takes_its_turn(brokers: list[str], turn: int, avoid: str) -> int:
    """Avoids nobody."""
    return turn % len(brokers)


def begins_at_the_front(brokers: list[str], turn: int, avoid: str) -> int:
    """Takes the first queue of the list at another broker, whoever's turn it is."""
    return next((number for number, broker in enumerate(brokers) if broker != avoid), turn % len(brokers))


def does_not_go_round(brokers: list[str], turn: int, avoid: str) -> int:
    """Stops at the end of the list."""
    return next((n for n in range(turn, len(brokers)) if brokers[n] != avoid), turn % len(brokers))


def looks_at_the_clock_alone(table: list[tuple[int, int]], took_ms: int, failed: bool) -> int:
    """Looks up a failed attempt with the time that it took."""
    return max((rest for at_least, rest in table if took_ms >= at_least), default=0)


def first_row_that_fits(table: list[tuple[int, int]], took_ms: int, failed: bool) -> int:
    """Returns at the first row whose time was taken."""
    return next((rest for at_least, rest in table if (10_000 if failed else took_ms) >= at_least), 0)


def longer_than_the_border(table: list[tuple[int, int]], took_ms: int, failed: bool) -> int:
    """Wants more than the time of a row, not at least it."""
    return max((rest for at_least, rest in table if (10_000 if failed else took_ms) > at_least), default=0)


class _Rule:
    """What all of them begin with."""

    def __init__(self, node: Any, probe: Any) -> None:
        self.node = node
        self.probe = probe
        self.down: set[str] = set()
        self.until_ms: dict[str, int] = {}

    def update_fault_item(self, broker: str, latency_ms: int, failed: bool) -> None:
        if failed and broker not in self.down:
            self.down.add(broker)
            self.node.spawn(self.watch(broker), f"watch {broker}")

    def is_available(self, broker: str) -> bool:
        return broker not in self.down and self.node.now_ms() >= self.until_ms.get(broker, 0)

    async def watch(self, broker: str) -> None:
        while True:
            await self.node.sleep(PAUSE_MS)
            if await self.probe(broker):
                self.down.discard(broker)
                return

    def rest(self, broker: str, ms: int) -> None:
        self.until_ms[broker] = max(self.until_ms.get(broker, 0), self.node.now_ms() + ms)


class always_available(_Rule):  # noqa: N801 - named as a mistake
    """No rule at all: the retry will save it."""

    def update_fault_item(self, broker: str, latency_ms: int, failed: bool) -> None:
        return


class rests_ten_seconds(_Rule):  # noqa: N801
    """RocketMQ's own answer: a fixed rest, then the next call pays for the next try."""

    def update_fault_item(self, broker: str, latency_ms: int, failed: bool) -> None:
        if failed:
            self.rest(broker, 10_000)


class doubles_the_rest(_Rule):  # noqa: N801
    """Each failure doubles the rest, as network protocols do it: still paid for by calls, and late in the end."""

    def update_fault_item(self, broker: str, latency_ms: int, failed: bool) -> None:
        rests: dict[str, int] = self.__dict__.setdefault("rests", {})
        if failed:
            rests[broker] = rests.get(broker, 1_000) * 2
            self.rest(broker, rests[broker])
        else:
            rests.pop(broker, None)


class never_forgives(_Rule):  # noqa: N801
    """Who failed once is out, and nobody looks again."""

    async def watch(self, broker: str) -> None:
        return


class slow_is_down(_Rule):  # noqa: N801
    """A slow answer is taken for a failure, and the broker rests for half a minute."""

    def update_fault_item(self, broker: str, latency_ms: int, failed: bool) -> None:
        super().update_fault_item(broker, latency_ms, failed)
        if not failed and latency_ms > 200:
            self.rest(broker, 30_000)


class only_slow_is_down(_Rule):  # noqa: N801
    """Looks at the time alone: an attempt that is refused takes no time, so a killed broker looks like a quick one."""

    def update_fault_item(self, broker: str, latency_ms: int, failed: bool) -> None:
        super().update_fault_item(broker, latency_ms, latency_ms > 400)


class asks_once(_Rule):  # noqa: N801
    """One probe, and whatever it says, the broker is taken back."""

    async def watch(self, broker: str) -> None:
        await self.node.sleep(PAUSE_MS)
        await self.probe(broker)
        self.down.discard(broker)


class asks_without_a_pause(_Rule):  # noqa: N801
    """Asks again as soon as the last probe has failed."""

    async def watch(self, broker: str) -> None:
        while not await self.probe(broker):
            pass
        self.down.discard(broker)


class asks_for_ever(_Rule):  # noqa: N801
    """The watcher takes the broker back and goes on watching."""

    async def watch(self, broker: str) -> None:
        while True:
            await self.node.sleep(PAUSE_MS)
            if await self.probe(broker):
                self.down.discard(broker)


class watches_once(_Rule):  # noqa: N801
    """Remembers that a broker has a watcher, and forgets that it has gone home: the second hang is for ever."""

    def update_fault_item(self, broker: str, latency_ms: int, failed: bool) -> None:
        watched: set[str] = self.__dict__.setdefault("watched", set())
        if failed:
            self.down.add(broker)
            if broker not in watched:
                watched.add(broker)
                self.node.spawn(self.watch(broker), f"watch {broker}")


class waits_longer_each_time(_Rule):  # noqa: N801
    """Doubles the pause between probes without an end: after a long hang the broker is back too late."""

    async def watch(self, broker: str) -> None:
        pause_ms = PAUSE_MS
        while True:
            await self.node.sleep(pause_ms)
            if await self.probe(broker):
                self.down.discard(broker)
                return
            pause_ms *= 2


def always_as_many_as_allowed(brokers: list[str], most: int) -> int:
    """Three attempts on paper."""
    return most


def past_the_hanging_ones(brokers: list[str], most: int) -> int:
    """As if an attempt at a broker that hangs left time for another one."""
    return next((number for number, state in enumerate(brokers[:most], 1) if state == "well"), most)


def only_one(brokers: list[str], most: int) -> int:
    """As if a refusal used the time up, too."""
    return 1


WRONG = {
    "04/next-queue": [takes_its_turn, begins_at_the_front, does_not_go_round],
    "04/attempts": [always_as_many_as_allowed, past_the_hanging_ones, only_one],
    "04/rest": [looks_at_the_clock_alone, first_row_that_fits, longer_than_the_border],
    "04/fault-tolerance": [
        always_available,
        rests_ten_seconds,
        doubles_the_rest,
        never_forgives,
        slow_is_down,
        only_slow_is_down,
        asks_once,
        asks_without_a_pause,
        asks_for_ever,
        watches_once,
        waits_longer_each_time,
    ],
}
