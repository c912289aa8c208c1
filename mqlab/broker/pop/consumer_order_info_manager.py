"""Ordered pop: which messages of each queue are out, which of them are done, and when the next may go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.broker.config_manager import ConfigManager
from mqlab.broker.pop.consumer_order_info_lock_manager import ConsumerOrderInfoLockManager
from mqlab.broker.pop.order_info import NO_NEED_TO_COMMIT, OrderInfo
from mqlab.protocol.errors import BodyError
from mqlab.protocol.extra_info import queue_id_order_count_info, queue_offset_order_count_info
from mqlab.protocol.hashing import java_map_order, java_number_order
from mqlab.trace.events.pop import OrderFreed, OrderTaken

if TYPE_CHECKING:
    from collections.abc import Callable

    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.sim.timer import Timer

TOPIC_GROUP_SEPARATOR = "@"
CLEAN_SPAN_FROM_LAST_MS = 24 * 3_600 * 1_000
PERSIST_PERIOD_MS = 10_000
_PERSIST_US = PERSIST_PERIOD_MS * 1_000
_MAP_CAPACITY = 128


class ConsumerOrderInfoManager(ConfigManager):
    """What each group's last ordered pop of a queue gave out, kept in config/consumerOrderInfo.json.

    While a message of it is neither acknowledged nor visible again, the queue is blocked: nobody else gets the messages
    behind it. Java: org.apache.rocketmq.broker.offset.ConsumerOrderInfoManager. The file follows every 10 s, counted
    from the broker's start, and at a clean stop; what belongs to a topic, group or queue that is gone, or
    was not popped for a day, is dropped then. Differs from RocketMQ: with an empty table nothing is written.
    """

    def __init__(self, broker: BrokerParts, notify_lock_is_free: Callable[[str, str, int], None]) -> None:
        super().__init__(broker.node, f"{broker.message_store_config.path('config')}/consumerOrderInfo.json")
        self._broker = broker
        self._persisting: Timer | None = None
        self.table: dict[str, dict[int, OrderInfo]] = {}
        self._notify_lock_is_free = notify_lock_is_free
        self.lock_manager = ConsumerOrderInfoLockManager(
            broker.node, lambda: broker.broker_config.enable_notify_after_pop_order_lock_release, self._visible_again
        )

    # -- what a pop does --------------------------------------------------------------------------------------------

    def update(
        self,
        attempt_id: str | None,
        is_retry: bool,
        topic: str,
        group: str,
        queue_id: int,
        pop_time: int,
        invisible_time: int,
        offsets: list[int],
        order_count_info: list[str],
    ) -> None:
        """Note what a pop gives out, and how often each message was given out before: entries of orderCountInfo.

        `is_retry` decides nothing, here as in RocketMQ.
        """
        queues = self.table.setdefault(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {})
        info = OrderInfo.of_pop(attempt_id, pop_time, invisible_time, offsets, self._node.now_ms())
        previous = queues.get(queue_id)
        if previous is not None:
            info.merge_offset_consumed_count(previous)
        queues[queue_id] = info
        hooks = self._node.hooks
        if hooks.on:
            numbers = ",".join(map(str, offsets))
            hooks.emit(OrderTaken(group, topic, queue_id, attempt_id or "", numbers, pop_time, invisible_time))
        counts = info.offset_consumed_count or {}
        for offset, count in counts.items():
            order_count_info.append(queue_offset_order_count_info(topic, queue_id, offset, count))
        # A message that is missing from the counts is new.
        least = min(counts.values(), default=0) if len(counts) == len(info.offset_list) else 0
        order_count_info.append(queue_id_order_count_info(topic, queue_id, least))
        self.lock_manager.update_lock_free_timestamp(topic, group, queue_id, info)
        self._arm_persisting()

    def check_block(self, attempt_id: str | None, topic: str, group: str, queue_id: int, invisible_time: int) -> bool:
        """Is the queue blocked for this attempt? `invisible_time` is that of the asking pop, for infos without one."""
        info = self._info(topic, group, queue_id)
        return info is not None and info.need_block(attempt_id, invisible_time, self._node.now_ms())

    def clear_block(self, topic: str, group: str, queue_id: int) -> None:
        """Forget what is out, since the group's progress was set anew."""
        queues = self.table.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}")
        if queues is not None and queues.pop(queue_id, None) is not None and self._node.hooks.on:
            self._node.hooks.emit(OrderFreed(group, topic, queue_id, "reset"))

    # -- what an acknowledgement or a change of the invisible time does -----------------------------------------------

    def commit_and_next(self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time: int) -> int:
        """A message is done; returns where the group goes on: at the first message that is not.

        -1 for a message that was not given out, -2 for one of an earlier pop: nothing is to be committed.
        """
        info = self._info(topic, group, queue_id)
        if info is None:
            return queue_offset + 1
        if info.offset_list and pop_time != info.pop_time:
            return NO_NEED_TO_COMMIT
        next_offset = info.commit_and_next(queue_offset)
        if next_offset >= 0:
            if not info.not_acked() and self._node.hooks.on:
                self._node.hooks.emit(OrderFreed(group, topic, queue_id, "settled"))
            self.lock_manager.update_lock_free_timestamp(topic, group, queue_id, info)
        return next_offset

    def update_next_visible_time(
        self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time: int, next_visible_time: int
    ) -> None:
        """A message becomes visible at that time (ms since 1970); nothing happens for a message of an earlier pop."""
        info = self._info(topic, group, queue_id)
        if info is not None and info.pop_time == pop_time:
            info.update_offset_next_visible_time(queue_offset, next_visible_time)
            self.lock_manager.update_lock_free_timestamp(topic, group, queue_id, info)

    def _info(self, topic: str, group: str, queue_id: int) -> OrderInfo | None:
        return self.table.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {}).get(queue_id)

    def _visible_again(self, topic: str, group: str, queue_id: int) -> None:
        info = self._info(topic, group, queue_id)
        if info is not None and info.not_acked() and self._node.hooks.on:
            self._node.hooks.emit(OrderFreed(group, topic, queue_id, "visible again"))
        self._notify_lock_is_free(topic, group, queue_id)

    # -- the file ---------------------------------------------------------------------------------------------------

    def auto_clean(self) -> None:
        """Drop what belongs to nothing any more."""
        topics = self._broker.topic_config_manager.topic_config_table
        groups = self._broker.subscription_group_manager
        now_ms = self._node.now_ms()
        for key in list(self.table):
            parts = key.split(TOPIC_GROUP_SEPARATOR)
            if len(parts) != 2:
                continue
            topic, group = topics.get(parts[0]), parts[1]
            if topic is None or not self.table[key] or not groups.contains_subscription_group(group):
                del self.table[key]
                continue
            for queue_id, info in list(self.table[key].items()):
                if queue_id >= topic.read_queue_nums or now_ms - info.last_consume_timestamp > CLEAN_SPAN_FROM_LAST_MS:
                    del self.table[key][queue_id]

    def encode(self) -> dict[str, Any]:
        """The content of consumerOrderInfo.json."""
        self.auto_clean()
        return {
            "table": {
                key: {queue_id: self.table[key][queue_id].to_json() for queue_id in java_number_order(self.table[key])}
                for key in java_map_order(self.table, _MAP_CAPACITY)
            }
        }

    def decode(self, value: dict[str, Any]) -> None:
        """Take over the content of a file, and set the alarms of the blocks that have not ended."""
        table = value.get("table")
        if not isinstance(table, dict):
            raise BodyError("ConsumerOrderInfoManager", "table is missing")
        self.table = {
            str(key): {int(queue_id): OrderInfo.from_json(info) for queue_id, info in queues.items()}
            for key, queues in table.items()
        }
        self.lock_manager.recover(self.table)
        self._arm_persisting()

    def _arm_persisting(self) -> None:
        """Set the timer to the next full 10 s, if there is anything to write or to drop."""
        if self._persisting is None and self.table:
            passed_us = self._node.now_us() - self._broker.start_us
            wait_us = _PERSIST_US - passed_us % _PERSIST_US
            self._persisting = self._node.call_later(
                wait_us / 1_000, self._persist_in_turn, name="persist consumer order info"
            )

    def _persist_in_turn(self) -> None:
        self._persisting = None
        self.persist()
        self._arm_persisting()

    def shutdown(self) -> None:
        """Write the file, and let no alarm ring any more."""
        if self._persisting is not None:
            self._persisting.cancel()
            self._persisting = None
        if self.table or self._node.disk.exists(self.path):
            self.persist()
        self.lock_manager.shutdown()
