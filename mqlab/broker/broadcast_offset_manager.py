"""How far the slowest member of a broadcasting group has pulled, noted by the broker for whoever looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.sim import ServiceThread

if TYPE_CHECKING:
    from mqlab.broker.consumer_manager import ConsumerManager
    from mqlab.broker.consumer_offset_manager import ConsumerOffsetManager
    from mqlab.sim import Node

SCAN_PERIOD_MS = 5_000
EXPIRE_US = 120_000_000
"""A client that is not online and has not pulled for so long counts no more (broadcastOffsetExpireSecond)."""
EXPIRE_MAX_US = 300_000_000
"""A client that is online is forgotten, too, when it has not pulled for so long (broadcastOffsetExpireMaxSecond)."""
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
    `<group>@broadcast`, and nobody consumes from there. What is known of one client never goes back; the least of all
    does when a slower client comes. As in RocketMQ it is committed at every scan, also when nobody has pulled since.
    """

    def __init__(self, node: Node, consumers: ConsumerManager, offsets: ConsumerOffsetManager) -> None:
        super().__init__(node, "BroadcastOffsetManager", SCAN_PERIOD_MS)
        self._consumers = consumers
        self._offsets = offsets
        self.offset_store: dict[tuple[str, str], dict[str, _ClientProgress]] = {}

    def has_work(self) -> bool:
        """Is any client known?"""
        return bool(self.offset_store)

    def update_offset(self, group: str, topic: str, queue_id: int, offset: int, client_id: str) -> None:
        """A client asks for messages of the queue from this offset on, so it has all before."""
        clients = self.offset_store.setdefault((group, topic), {})
        progress = clients.get(client_id)
        if progress is None:
            progress = clients[client_id] = _ClientProgress()
        progress.updated_us = self.node.now_us()
        progress.offsets[queue_id] = max(offset, progress.offsets.get(queue_id, offset))
        self.wakeup_for_work()

    def tick(self) -> None:
        """Note the least offset of each queue, and forget those who are gone (scanOffsetData)."""
        for (group, topic), clients in list(self.offset_store.items()):
            least: dict[int, int] = {}
            for client_id, progress in list(clients.items()):
                silent_us = self.node.now_us() - progress.updated_us
                online = self._is_online(group, client_id)
                if online or silent_us < EXPIRE_US:
                    for queue_id, offset in progress.offsets.items():
                        least[queue_id] = min(offset, least.get(queue_id, offset))
                if silent_us >= (EXPIRE_MAX_US if online else EXPIRE_US):
                    del clients[client_id]
            if not clients:
                del self.offset_store[group, topic]
            for queue_id, offset in least.items():
                self._offsets.commit_offset(group + SUFFIX, topic, queue_id, offset, "broadcast")

    def _is_online(self, group: str, client_id: str) -> bool:
        members = self._consumers.get_consumer_group_info(group)
        return members is not None and members.find_channel(client_id) is not None
