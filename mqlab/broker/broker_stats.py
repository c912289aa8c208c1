"""Counting what a broker does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mqlab.protocol.topics import is_system_topic
from mqlab.store import RMQ_SYS_SCHEDULE_TOPIC

if TYPE_CHECKING:
    from mqlab.sim import Node

TOPIC_PUT_NUMS, TOPIC_PUT_SIZE = "TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE"
GROUP_GET_NUMS, GROUP_GET_SIZE = "GROUP_GET_NUMS", "GROUP_GET_SIZE"
SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
BROKER_PUT_NUMS, BROKER_GET_NUMS = "BROKER_PUT_NUMS", "BROKER_GET_NUMS"
"""What is counted (org.apache.rocketmq.common.stats.Stats): by topic, by "topic@group", and by cluster."""

DAY_MS = 24 * 3_600_000

STORE_SECONDS = (10, 60, 600)
"""Over so many seconds a broker says how much its store does (org.apache.rocketmq.store.StoreStatsService)."""


class StatsSnapshot(NamedTuple):
    """What was counted in a time: the sum, how much of it in a second, and how much at a time."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class _Samples:
    """What a count was at the last ticks, of which none is later than the last change.

    A tick at which nothing had changed since the one before is not kept: so nobody has to wake up for it.
    """

    __slots__ = ("_kept", "_tick_ms", "_values", "first")

    def __init__(self, tick_ms: int, kept: int, age_ms: int) -> None:
        self._tick_ms = tick_ms
        self._kept = kept
        self.first = age_ms // tick_ms
        """The tick at which nothing was counted yet."""
        self._values: deque[tuple[int, int, int]] = deque()

    def before_change(self, age_ms: int, value: int, times: int) -> None:
        """The count is about to change, and was this until now."""
        tick = age_ms // self._tick_ms
        if not self._values or self._values[-1][0] != tick:
            self._values.append((tick, value, times))
            while self._values[0][0] < tick - self._kept:
                self._values.popleft()

    def over(self, age_ms: int, value: int, times: int, ticks: int = 0) -> StatsSnapshot:
        """What was counted in the last ticks, up to the last one that is over: in all that are kept, unless told."""
        last = age_ms // self._tick_ms
        first = max(last - (ticks or self._kept), self.first)
        if last <= first:
            return StatsSnapshot()
        (before, times_before), (now, times_now) = (self._at(tick, value, times) for tick in (first, last))
        total, often = now - before, times_now - times_before
        return StatsSnapshot(total, total * 1_000 / ((last - first) * self._tick_ms), total / often if often else 0.0)

    def _at(self, tick: int, value: int, times: int) -> tuple[int, int]:
        """The count at a tick: what it was before the first change after it."""
        return next(((value, times) for changed, value, times in self._values if changed >= tick), (value, times))


class StatsItem:
    """One count, and what it was over the last minute, hour and day (org.apache.rocketmq.common.stats.StatsItem).

    RocketMQ notes all counts every ten seconds, ten minutes and hour from the broker's start on, and tells of the notes
    alone: what came since the last one is in no figure.
    """

    __slots__ = ("_day", "_hour", "_minute", "_tick", "times", "value")

    def __init__(self, age_ms: int) -> None:
        self.value = 0
        self.times = 0
        self._minute = _Samples(10_000, 6, age_ms)
        self._hour = _Samples(600_000, 6, age_ms)
        self._day = _Samples(3_600_000, 24, age_ms)
        self._tick = -1

    def add(self, value: int, times: int, age_ms: int) -> None:
        """Count; `age_ms` is how long the broker has been there."""
        if age_ms // 10_000 != self._tick:
            self._tick = age_ms // 10_000
            for samples in (self._minute, self._hour, self._day):
                samples.before_change(age_ms, self.value, self.times)
        self.value += value
        self.times += times

    def in_minute(self, age_ms: int) -> StatsSnapshot:
        """Over the last 60 s."""
        return self._minute.over(age_ms, self.value, self.times)

    def in_hour(self, age_ms: int) -> StatsSnapshot:
        """Over the last 60 minutes."""
        return self._hour.over(age_ms, self.value, self.times)

    def in_day(self, age_ms: int) -> StatsSnapshot:
        """Over the last 24 hours."""
        return self._day.over(age_ms, self.value, self.times)


class _StoreCount:
    """One count of the store, over seconds."""

    __slots__ = ("_samples", "_value")

    def __init__(self) -> None:
        self._value = 0
        self._samples = _Samples(1_000, STORE_SECONDS[-1], 0)

    def add(self, value: int, age_ms: int) -> None:
        self._samples.before_change(age_ms, self._value, 0)
        self._value += value

    def tps(self, age_ms: int) -> str:
        """How much a second, over 10, 60 and 600 s; nothing where the broker is younger than that and 1 s."""
        long_enough = [seconds for seconds in STORE_SECONDS if (seconds + 1) * 1_000 <= age_ms]
        told = [str(self._samples.over(age_ms, self._value, 0, seconds).tps) for seconds in long_enough]
        return " ".join(told + [""] * (len(STORE_SECONDS) - len(told)))


class BrokerStats:
    """Counts since the broker's start: what is put by topic and got by group, and of all that is no system's own how
    much there was at the last two midnights (UTC).

    A delayed message, or one that was given back, counts as put when it is delivered: its first topic is a system one.

    Java: org.apache.rocketmq.store.stats.BrokerStatsManager and BrokerStats. Differs from RocketMQ: seven counts of
    some thirty; there are none by queue and no latencies, and what has been idle for long is kept. The seconds of the
    store are those of these counts, where RocketMQ also has what brokers write for themselves and what slaves copy.
    """

    __slots__ = (
        "_boot_us", "_cluster", "_day", "_items", "_node", "_puts", "_transferred", "boot_ms", "got_today_morning",
        "got_yesterday_morning", "messages_got", "messages_put", "put_today_morning", "put_yesterday_morning",
    )  # fmt: skip

    def __init__(self, node: Node, cluster: str) -> None:
        self.boot_ms = node.now_ms()
        """When the broker started."""
        self.messages_put = self.messages_got = 0
        """All that were put and got, without those of system topics."""
        self.put_today_morning = self.put_yesterday_morning = 0
        self.got_today_morning = self.got_yesterday_morning = 0
        self._node = node
        self._cluster = cluster
        self._boot_us = node.now_us()
        self._day = self.boot_ms // DAY_MS
        self._items: dict[tuple[str, str], StatsItem] = {}
        self._puts, self._transferred = _StoreCount(), _StoreCount()

    @property
    def age_ms(self) -> int:
        """How long the broker has been there, whatever its clock shows."""
        return (self._node.now_us() - self._boot_us) // 1_000

    def put(self, topic: str, messages: int, size: int) -> None:
        """Messages were stored, records of `size` bytes together."""
        self.turn_day()
        age_ms = self.age_ms
        self._count(TOPIC_PUT_NUMS, topic, messages, age_ms)
        self._count(TOPIC_PUT_SIZE, topic, size, age_ms)
        self._count(BROKER_PUT_NUMS, self._cluster, messages, age_ms, times=0)
        self._puts.add(messages, age_ms)
        if not is_system_topic(topic):
            self.messages_put += messages

    def got(self, group: str, topic: str, messages: int, size: int, asked: str = "") -> None:
        """A group was given messages of this topic, records of `size` bytes together; it has `asked` for another topic
        where these are its retries.
        """
        self.turn_day()
        age_ms, key = self.age_ms, f"{topic}@{group}"
        self._count(GROUP_GET_NUMS, key, messages, age_ms)
        self._count(GROUP_GET_SIZE, key, size, age_ms)
        self._count(BROKER_GET_NUMS, self._cluster, messages, age_ms, times=0)
        self._transferred.add(messages, age_ms)
        if not is_system_topic(asked or topic):
            self.messages_got += messages

    def sent_back(self, group: str, topic: str, parked: str, size: int) -> None:
        """A group has given a message of this topic back, and a record of `size` bytes was stored as `parked`. Of these
        RocketMQ counts those that wait, each as one of the topic in which they do.
        """
        age_ms = self.age_ms
        if parked == RMQ_SYS_SCHEDULE_TOPIC:
            self._count(TOPIC_PUT_NUMS, parked, 1, age_ms)
            self._count(TOPIC_PUT_SIZE, parked, size, age_ms)
        self._count(SNDBCK_PUT_NUMS, f"{topic}@{group}", 1, age_ms)

    def topic_deleted(self, topic: str) -> None:
        """Forget what was counted for a topic."""
        self._forget(lambda key: key == topic or key.startswith(f"{topic}@"))

    def group_deleted(self, group: str) -> None:
        """Forget what was counted for a group."""
        self._forget(lambda key: key.endswith(f"@{group}"))

    def _forget(self, is_meant: Callable[[str], bool]) -> None:
        self._items = {place: item for place, item in self._items.items() if not is_meant(place[1])}

    def _count(self, name: str, key: str, value: int, age_ms: int, times: int = 1) -> None:
        item = self._items.get((name, key))
        if item is None:
            item = self._items[name, key] = StatsItem(age_ms)
        item.add(value, times, age_ms)

    def item(self, name: str, key: str) -> StatsItem | None:
        """A count; None if there was nothing to count."""
        return self._items.get((name, key))

    def tps(self, name: str, key: str) -> float:
        """How much a second over the last minute."""
        item = self.item(name, key)
        return 0.0 if item is None else item.in_minute(self.age_ms).tps

    @property
    def put_tps(self) -> str:
        """Messages put a second, over 10, 60 and 600 s."""
        return self._puts.tps(self.age_ms)

    @property
    def transferred_tps(self) -> str:
        """Messages given to consumers a second, over 10, 60 and 600 s."""
        return self._transferred.tps(self.age_ms)

    def turn_day(self) -> None:
        """Note at midnight how much there was until then; on a day after one on which nothing was counted, twice."""
        day = self._node.now_ms() // DAY_MS
        for _ in range(min(2, day - self._day)):
            self.put_yesterday_morning, self.put_today_morning = self.put_today_morning, self.messages_put
            self.got_yesterday_morning, self.got_today_morning = self.got_today_morning, self.messages_got
        self._day = max(day, self._day)
