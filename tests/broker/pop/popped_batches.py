"""A broker's merge buffer, and the pops and acks that come to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.protocol.pop_check_point import AckMsg, BatchAckMsg, PopCheckPoint
from mqlab.protocol.topic_config import SubscriptionGroupConfig

KEY = "T@G@0"
REVIVE = "rmq_sys_REVIVE_LOG_DefaultCluster"


class Popped:
    """A broker with one topic and one group, whose buffer is used directly."""

    def __init__(self, make_cluster: Callable[..., Any], store: dict[str, Any] | None = None, **settings: Any) -> None:
        disk_bytes = settings.pop("disk_bytes", None)
        self.cluster = make_cluster(store, disk_bytes=disk_bytes, **{"enable_pop_buffer_merge": True, **settings})
        self.cluster.topic("T")
        self.cluster.broker.subscription_group_manager.update_subscription_group_config(SubscriptionGroupConfig("G"))
        self.node = self.cluster.broker_node
        self.rows: list[tuple[Any, ...]] = self.cluster.events

    @property
    def service(self) -> Any:
        """The buffer of the broker as it lives now."""
        return self.cluster.broker.pop.pop_buffer_merge_service

    @property
    def committed(self) -> int:
        """The group's progress, as the broker knows it."""
        offset: int = self.cluster.broker.consumer_offset_manager.query_offset("G", "T", 0)
        return offset

    def check_point(
        self, start: int, count: int, invisible: int = 60_000, diffs: list[int] | None = None
    ) -> PopCheckPoint:
        """What a pop of now makes of `count` messages from `start` on, one behind the other unless told."""
        diffs = diffs or list(range(count))
        return PopCheckPoint(start, self.node.now_ms(), invisible, 0, count, 0, "T", "G", 0, diffs, "broker-a")

    def pop(self, start: int, count: int, invisible: int = 60_000) -> PopCheckPoint:
        """Take the check point of a pop of now into memory."""
        return self.take_in(self.check_point(start, count, invisible))

    def take_in(self, point: PopCheckPoint) -> PopCheckPoint:
        """Take a check point into memory."""
        assert self.service.add_ck(point, 3, -1, point.offsets()[-1] + 1)
        return point

    def begin_pop(self, point: PopCheckPoint) -> Any:
        """Store a check point at once; the future of whether its messages may go."""
        call = self.service.add_ck_just_offset(point, 3, -1, point.start_offset + point.num)
        return self.node.spawn(call, "pop").join()

    def ack(self, point: PopCheckPoint, *offsets: int) -> bool:
        """Acknowledge messages; whether memory took all of it."""
        return all(
            self.service.add_ak(3, AckMsg(offset, point.start_offset, "G", "T", 0, point.pop_time, "broker-a"))
            for offset in offsets
        )

    def at(self, kind: str) -> list[float]:
        """When the events of a kind were, in ms of the world."""
        return [row[2] / 1_000 for row in self.rows if row[7] == kind]

    def fields(self, kind: str) -> list[tuple[Any, ...]]:
        """The fields of the events of a kind."""
        return [tuple(row[8:]) for row in self.rows if row[7] == kind]

    def in_revive_topic(self) -> list[PopCheckPoint | AckMsg]:
        """What lies in the revive topic by now, in the order of its queues."""
        store = self.cluster.broker.message_store
        kinds: dict[str, type[PopCheckPoint | AckMsg]] = {"ck": PopCheckPoint, "ack": AckMsg, "bAck": BatchAckMsg}
        found = []
        for queue_id in range(8):
            queue = store.find_consume_queue(REVIVE, queue_id)
            for offset in range(queue.max_offset_in_queue if queue is not None else 0):
                message = store.look_message_by_offset(queue.get(offset).pos)
                assert queue_id == 3
                found.append(kinds[message.properties["TAGS"]].decode(message.body))
        return found
