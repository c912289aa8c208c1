"""How many half messages of each topic are waiting for their end, as a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.broker.config_manager import ConfigManager
from mqlab.protocol.errors import BodyError
from mqlab.protocol.topic_config import DataVersion

if TYPE_CHECKING:
    from mqlab.sim import Node


class TransactionMetrics(ConfigManager):
    """The counts in config/transactionMetrics (org.apache.rocketmq.broker.transaction.TransactionMetrics).

    As in RocketMQ a half message counts once, and each of its ends takes one away: what was given up, and committed
    all the same, leaves its topic with less than none.
    """

    def __init__(self, node: Node, path: str, on_change: Callable[[], None]) -> None:
        super().__init__(node, path, pretty=False)
        self._on_change = on_change
        self.counts: dict[str, int] = {}
        self.changed_ms: dict[str, int] = {}
        """When each count changed last, ms since 1970."""
        self.data_version = DataVersion(node.now_ms())
        self.is_unsaved = False

    def add(self, topic: str, number: int) -> None:
        """Count so many half messages more (or less) of a topic."""
        now_ms = self._node.now_ms()
        self.counts[topic] = self.counts.get(topic, 0) + number
        self.changed_ms[topic] = now_ms
        self.data_version.next_version(now_ms)
        self.is_unsaved = True
        self._on_change()

    def persist(self) -> bool:
        """Write the file, if a count has changed."""
        self.is_unsaved = False
        return super().persist()

    def encode(self) -> dict[str, Any]:
        """The content of transactionMetrics."""
        counts = {
            topic: {"count": count, "timeStamp": self.changed_ms[topic]} for topic, count in self.counts.items()
        }
        return {"dataVersion": self.data_version.to_json(), "transactionCount": counts}

    def decode(self, value: dict[str, Any]) -> None:
        """Take over the counts of a file."""
        try:
            for topic, metric in value["transactionCount"].items():
                self.counts[topic], self.changed_ms[topic] = int(metric["count"]), int(metric["timeStamp"])
            self.data_version.assign(DataVersion.from_json(value["dataVersion"]))
        except (KeyError, TypeError, AttributeError) as problem:
            raise BodyError("TransactionMetrics", f"no counts of half messages: {problem!r}") from None
