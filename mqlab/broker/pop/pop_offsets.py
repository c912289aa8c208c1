"""Where a group pops on in a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.topics import RETRY_GROUP_TOPIC_PREFIX

if TYPE_CHECKING:
    from mqlab.broker.pop.pop_parts import PopParts

INIT_MODE_MIN = 0
"""A group without an offset begins at the oldest message (org.apache.rocketmq.common.constant.ConsumeInitMode)."""

INIT_MODE_MAX = 1
"""It begins at the last message, which alone it gets."""


class PopOffsets:
    """Progress of groups that pop (org.apache.rocketmq.broker.processor.PopMessageProcessor.getPopOffset).

    The committed offset says "up to here everything was handed out and has its check point", not "consumed".
    """

    def __init__(self, services: PopParts) -> None:
        broker = services.broker
        self._services = services
        self._config = broker.broker_config
        self._store = broker.message_store
        self._offsets = broker.consumer_offset_manager

    def get_pop_offset(
        self,
        topic: str,
        group: str,
        queue_id: int,
        init_mode: int,
        *,
        init: bool,
        lock_key: str,
        check_reset: bool,
    ) -> int:
        """The offset to pop from: the committed one, or behind the last check point in memory if that is further.

        With `init` the offset at which a new group begins is committed; with `check_reset` a reset that waits is
        picked up.
        """
        offset = self._offsets.query_offset(group, topic, queue_id)
        if offset < 0:
            offset = self.get_init_offset(topic, group, queue_id, init_mode, init=init)
        if check_reset:
            reset = self._reset_pop_offset(topic, group, queue_id, lock_key)
            if reset is not None:
                return reset
        return max(offset, self._services.pop_buffer_merge_service.get_latest_offset(lock_key))

    def known_offset(self, topic: str, group: str, queue_id: int) -> int:
        """The offset that a group would pop from, without changing anything; a new group's is the oldest message.

        Java: org.apache.rocketmq.broker.processor.NotificationProcessor.getPopOffset.
        """
        offset = self.peeked_offset(topic, group, queue_id)
        if self._config.pop_consumer_kv_service_enable:
            return max(offset, self._offsets.query_pull_offset(group, topic, queue_id))
        return offset

    def peeked_offset(self, topic: str, group: str, queue_id: int) -> int:
        """The offset from which PEEK_MESSAGE shows a queue; a new group's is the oldest message.

        With the key-value engine that is where the last pop began, so what is in hand is shown, too.
        Java: org.apache.rocketmq.broker.processor.PeekMessageProcessor.getPopOffset.
        """
        offset = self._offsets.query_offset(group, topic, queue_id)
        if offset < 0:
            offset = self.min_offset(topic, queue_id)
        return max(offset, self._services.pop_buffer_merge_service.get_latest_offset(f"{topic}@{group}@{queue_id}"))

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The oldest message of a queue; asking for a queue makes it in RocketMQ, so an unknown one begins at 0."""
        return max(0, self._store.get_min_offset_in_queue(topic, queue_id))

    def get_init_offset(self, topic: str, group: str, queue_id: int, init_mode: int, *, init: bool) -> int:
        """Where a group without an offset begins, committed with `init`.

        A retry topic is always read from its oldest message. Mode MAX means the last message, or all of a queue that
        is so young that its first message lies in memory.
        """
        store = self._store
        if init_mode == INIT_MODE_MIN or topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            offset = self.min_offset(topic, queue_id)
        elif (
            self._config.init_pop_offset_by_check_msg_in_mem
            and store.get_min_offset_in_queue(topic, queue_id) <= 0
            and store.check_in_mem_by_consume_offset(topic, queue_id, 0)
        ):
            offset = 0
        else:
            offset = max(0, store.get_max_offset_in_queue(topic, queue_id) - 1)
        if init:
            self._offsets.commit_offset(group, topic, queue_id, offset, "pop init")
        return offset

    def _reset_pop_offset(self, topic: str, group: str, queue_id: int, lock_key: str) -> int | None:
        reset = self._offsets.query_then_erase_reset_offset(group, topic, queue_id)
        if reset is not None:
            self._services.consumer_order_info_manager.clear_block(topic, group, queue_id)
            self._services.pop_buffer_merge_service.clear_offset_queue(lock_key)
            self._offsets.commit_offset(group, topic, queue_id, reset, "pop reset")
        return reset
