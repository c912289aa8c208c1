"""Consuming one message because an administrator wants it, beside all queues and offsets."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.client.consumer.listener import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, checked_status
from mqlab.client.consumer.push.orderly_listener import ConsumeOrderlyContext, ConsumeOrderlyStatus
from mqlab.errors import SimulationError
from mqlab.protocol.bodies import ConsumeMessageDirectlyResult
from mqlab.trace.events.client import MessageConsumedDirectly

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageExt
    from mqlab.sim import Node

RESULTS: dict[object, str] = {
    ConsumeConcurrentlyStatus.CONSUME_SUCCESS: "CR_SUCCESS",
    ConsumeConcurrentlyStatus.RECONSUME_LATER: "CR_LATER",
    ConsumeOrderlyStatus.SUCCESS: "CR_SUCCESS",
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: "CR_LATER",
    ConsumeOrderlyStatus.ROLLBACK: "CR_ROLLBACK",
    ConsumeOrderlyStatus.COMMIT: "CR_COMMIT",
    None: "CR_RETURN_NULL",
}
"""What RocketMQ's CMResult calls each answer of a listener."""


async def consume_message_directly(
    node: Node, group: str, listener: Callable[..., Any], message: MessageExt, *, orderly: bool
) -> ConsumeMessageDirectlyResult:
    """Call a listener with one message, and say how it came back. No hook sees it, and no offset moves.

    Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService.consumeMessageDirectly.
    """
    queue = message.message_queue
    context: Any = ConsumeOrderlyContext(node, queue) if orderly else ConsumeConcurrentlyContext(node, queue)
    result = ConsumeMessageDirectlyResult(order=orderly)
    begin_us = node.now_us()
    try:
        said = listener((message,), context)
        status = await said if isinstance(said, Coroutine) else said
        kind: Any = ConsumeOrderlyStatus if orderly else ConsumeConcurrentlyStatus
        result.consume_result = RESULTS[checked_status(group, status, kind)]
    except SimulationError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a listener raises is a result, too
        result.consume_result = "CR_THROW_EXCEPTION"
        result.remark = f"{type(error).__name__}: {error}"
    if orderly:
        result.auto_commit = context.auto_commit
    cost_us = node.now_us() - begin_us
    result.spent_time_mills = cost_us // 1_000
    if node.hooks.on:
        node.hooks.emit(
            MessageConsumedDirectly(group, *queue, message.msg_id, result.consume_result, cost_us)
        )
    return result
