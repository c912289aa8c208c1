"""What a consumer says of itself when an administrator asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING

from mqlab.client.consumer.offset_store import ReadOffsetType
from mqlab.protocol.bodies import ConsumerRunningInfo, ConsumeStatus, PopProcessQueueInfo, ProcessQueueInfo
from mqlab.protocol.header_codec import camel_case
from mqlab.protocol.message import MEBIBYTE

if TYPE_CHECKING:
    from mqlab.client.consumer.consumer_impl import ConsumerImpl
    from mqlab.client.consumer.pop.pop_request import PopProcessQueue
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.client.consumer.push.consumer_statistics import ConsumerStatistics
    from mqlab.protocol.message import MessageQueue
    from mqlab.sim import Node

VERSION = "V5_3_3"


async def running_info(impl: ConsumerImpl, held: Iterable[tuple[MessageQueue, ProcessQueue]]) -> ConsumerRunningInfo:
    """The settings of a consumer, its subscriptions, and what it holds of its queues.

    Java: org.apache.rocketmq.client.impl.consumer.MQConsumerInner.consumerRunningInfo. Differs from RocketMQ: the
    settings are those that are here, times and rates are means over the whole life of a consumer, and there are no
    stack traces.
    """
    info = ConsumerRunningInfo(_properties(impl))
    info.subscription_set = sorted(impl.subscriptions(), key=lambda subscription: subscription.topic)
    for queue, process_queue in sorted(held):
        info.mq_table[queue] = await _queue_info(impl, queue, process_queue)
    return info


def add_work_of_push(
    info: ConsumerRunningInfo,
    impl: ConsumerImpl,
    statistics: ConsumerStatistics,
    popped: Mapping[MessageQueue, PopProcessQueue],
) -> None:
    """Add what only a push consumer has: what it has popped, and how it does with each topic."""
    node = impl.node
    for queue, pops in sorted(popped.items()):
        last_ms = _wall_ms(node, pops.last_pop_us)
        info.mq_pop_table[queue] = PopProcessQueueInfo(pops.wait_ack_msg_count, pops.dropped, last_ms)
    alive_s = max(1.0, (node.now_ms() - impl.consumer_start_ms) / 1_000)
    for subscription in info.subscription_set:
        sums = statistics.by_topic[subscription.topic]
        info.status_table[subscription.topic] = ConsumeStatus(
            sums.pull_us / 1_000 / max(1, sums.pulls),
            sums.pulled / alive_s,
            sums.consume_us / 1_000 / max(1, sums.calls),
            sums.consume_ok / alive_s,
            sums.consume_failed / alive_s,
            sums.consume_failed,
        )


def _properties(impl: ConsumerImpl) -> dict[str, str]:
    given = {camel_case(field.name): _java_text(getattr(impl.settings, field.name)) for field in fields(impl.settings)}
    addresses = impl.instance.api.remoting_client.name_server_addresses
    return {name: text for name, text in given.items() if text is not None} | {
        "consumerGroup": impl.group_name,
        "PROP_CONSUMER_START_TIMESTAMP": str(impl.consumer_start_ms),
        "PROP_NAMESERVER_ADDR": "".join(f"{address};" for address in addresses),
        "PROP_CONSUME_TYPE": impl.consume_type.value,
        "PROP_CLIENT_VERSION": VERSION,
    }


def _java_text(value: object) -> str | None:
    """A setting as Java writes it into its properties; None for what has no short text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return value.name
    return str(value) if isinstance(value, (int, str)) else None


async def _queue_info(impl: ConsumerImpl, queue: MessageQueue, held: ProcessQueue) -> ProcessQueueInfo:
    """Java: org.apache.rocketmq.client.impl.consumer.ProcessQueue.fillProcessQueueInfo."""
    node = impl.node
    info = ProcessQueueInfo(await impl.offset_store.read_offset(queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE))
    cached, at_work = held.msg_tree_map, list(held.consuming_msg_orderly_tree_map)
    if cached:
        info.cached_msg_min_offset, info.cached_msg_max_offset = cached.first_key(), cached.last_key()
        info.cached_msg_count = len(cached)
    info.cached_msg_size_in_mib = held.msg_size // MEBIBYTE
    if at_work:
        info.transaction_msg_min_offset, info.transaction_msg_max_offset = at_work[0], at_work[-1]
        info.transaction_msg_count = len(at_work)
    info.locked, info.try_unlock_times, info.droped = held.locked, held.try_unlock_times, held.dropped
    info.last_lock_timestamp = _wall_ms(node, held.last_lock_us)
    info.last_pull_timestamp = _wall_ms(node, held.last_pull_us)
    info.last_consume_timestamp = _wall_ms(node, held.last_consume_us)
    return info


def _wall_ms(node: Node, then_us: int) -> int:
    """A moment of the world on the wall clock of its machine, in ms since 1970."""
    return node.now_ms() - (node.now_us() - then_us) // 1_000
