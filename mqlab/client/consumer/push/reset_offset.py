"""Moving a consumer to other offsets because its broker says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mqlab.sim import Lock
from mqlab.trace.events.client import ConsumerOffsetsReset

if TYPE_CHECKING:
    from mqlab.client.consumer.consumer_impl import ConsumerImpl
    from mqlab.protocol.message import MessageQueue

SETTLE_MS = 10_000
"""How long listeners have to come back before the offsets are set."""


async def reset_offset(
    owner: ConsumerImpl,
    topic: str,
    offset_table: Mapping[MessageQueue, int],
    suspend: Callable[[], None],
    resume: Callable[[], None],
) -> None:
    """Suspend the consumer, drop the queues of the topic that are named, wait for ten seconds, write their new offsets,
    and let it resume.

    Meanwhile it pulls nothing of other topics either. One such move of a client instance follows another.

    Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.resetOffset.
    """
    node = owner.node
    lock: Lock = node.life.singletons.setdefault(
        f"MQClientInstance.resetOffset/{owner.instance.client_id}", Lock("the lock of moving offsets")
    )
    async with lock:
        suspend()
        try:
            table = owner.rebalance_impl.process_queue_table
            wanted = [queue for queue in table if queue.topic == topic and queue in offset_table]
            for queue in wanted:
                table[queue].dropped = True
                table[queue].clear()
            await node.sleep(SETTLE_MS)
            moved = [queue for queue in table if queue.topic == topic and queue in offset_table]
            for queue in moved:
                owner.offset_store.update_offset(queue, offset_table[queue], False)
                await owner.rebalance_impl.remove_process_queue(queue, "its offset was set anew")
            if node.hooks.on:
                node.hooks.emit(ConsumerOffsetsReset(owner.group_name, topic, len(moved)))
        finally:
            resume()
