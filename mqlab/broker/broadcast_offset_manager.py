"""How far the slowest member of a broadcasting group has pulled, noted by the broker for whoever looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..sim import ServiceThread

if TYPE_CHECKING:
    from ..sim import Node
    from .consumer_manager import ConsumerManager
    from .consumer_offset_manager import ConsumerOffsetManager

SCAN_PERIOD_MS = 5_000
EXPIRE_US = 120_000_000
SUFFIX = "@broadcast"


class _ClientProgress:
    """Where one client pulls in the queues of one topic, and when it last did."""

    __slots__ = ("offsets", "updated_us")

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.updated_us = 0


class BroadcastOffsetManager(ServiceThread):
    """Members of a broadcasting group keep their offsets themselves; the broker notes the least of them every 5 s.

    Java: org.apache.rocketmq.broker.offset.BroadcastOffsetManager. It goes into the table of offsets as the group
    `<group>@broadcast`, and nobody consumes from there. A client that has left or been silent for 120 s counts no more.
    """

    period_ms = SCAN_PERIOD_MS

    def __init__(self, node: Node, consumers: ConsumerManager, offsets: ConsumerOffsetManager) -> None:
        super().__init__(node, "BroadcastOffsetManager")
        self._consumers = consumers
        self._offsets = offsets
        self._changed = False
        self.offset_store: dict[tuple[str, str], dict[str, _ClientProgress]] = {}

    def has_work(self) -> bool:
        """Has anybody pulled since the last scan?"""
        return self._changed

    def update_offset(self, group: str, topic: str, queue_id: int, offset: int, client_id: str) -> None:
        """A client asks for messages of the queue from this offset on, so it has all before."""
        clients = self.offset_store.setdefault((group, topic), {})
        progress = clients.get(client_id)
        if progress is None:
            progress = clients[client_id] = _ClientProgress()
        progress.updated_us = self.node.now_us()
        if progress.offsets.get(queue_id) != offset:
            progress.offsets[queue_id] = offset
            self._changed = True
            self.wakeup_for_work()

    def tick(self) -> None:
        """Forget those who are gone and note the least offset of each queue."""
        self._changed = False
        for (group, topic), clients in list(self.offset_store.items()):
            members = self._consumers.get_consumer_group_info(group)
            least: dict[int, int] = {}
            for client_id, progress in list(clients.items()):
                expired = self.node.now_us() - progress.updated_us > EXPIRE_US
                if expired and (members is None or members.find_channel(client_id) is None):
                    del clients[client_id]
                    continue
                for queue_id, offset in progress.offsets.items():
                    least[queue_id] = min(offset, least.get(queue_id, offset))
            for queue_id, offset in least.items():
                if self._offsets.query_offset(group + SUFFIX, topic, queue_id) != offset:
                    self._offsets.commit_offset(group + SUFFIX, topic, queue_id, offset, "broadcast")
            if not clients:
                del self.offset_store[group, topic]
