"""How many messages are handed out and not yet acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.protocol.pop_check_point import PopCheckPoint


class PopInflightMessageCounter:
    """Messages under way by topic, group and queue (org.apache.rocketmq.broker.processor.PopInflightMessageCounter).

    They are known in memory only, so what was popped before the broker's start is not counted down either.
    """

    def __init__(self, broker: BrokerParts) -> None:
        node = broker.node
        self._counts_from_ms = node.now_ms() - (node.now_us() - broker.start_us) // 1_000 - 1
        self._numbers: dict[tuple[str, str], dict[int, int]] = {}

    def increment(self, topic: str, group: str, queue_id: int, number: int) -> None:
        """So many more are handed out."""
        if number > 0:
            queues = self._numbers.setdefault((topic, group), {})
            queues[queue_id] = queues.get(queue_id, 0) + number

    def decrement(self, topic: str, group: str, pop_time: int, queue_id: int, number: int) -> None:
        """So many are acknowledged, of those that were popped at `pop_time` (ms since 1970)."""
        if pop_time >= self._counts_from_ms:
            self._take(topic, group, queue_id, number)

    def decrement_check_point(self, check_point: PopCheckPoint) -> None:
        """One message of a check point was revived."""
        assert check_point.topic is not None
        assert check_point.group is not None
        self.decrement(check_point.topic, check_point.group, check_point.pop_time, check_point.queue_id, 1)

    def _take(self, topic: str, group: str, queue_id: int, number: int) -> None:
        queues = self._numbers.get((topic, group))
        if queues is None or queue_id not in queues:
            return
        queues[queue_id] -= number
        if queues[queue_id] <= 0:
            self.clear(topic, group, queue_id)

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Begin to count a queue anew."""
        queues = self._numbers.get((topic, group))
        if queues is None:
            return
        queues.pop(queue_id, None)
        if not queues:
            del self._numbers[topic, group]

    def clear_group(self, group: str) -> None:
        """A group was deleted."""
        for key in [key for key in self._numbers if key[1] == group]:
            del self._numbers[key]

    def clear_topic(self, topic: str) -> None:
        """A topic was deleted."""
        for key in [key for key in self._numbers if key[0] == topic]:
            del self._numbers[key]

    def number(self, topic: str, group: str, queue_id: int) -> int:
        """How many of a queue are under way."""
        return self._numbers.get((topic, group), {}).get(queue_id, 0)
