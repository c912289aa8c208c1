"""What the processors of Pop ask of the key-value engine, request by request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.pop.kv.pop_consumer_context import Found, PopConsumerContext
from mqlab.broker.pop.kv.pop_consumer_record import RetryType
from mqlab.broker.pop.pop_from_queue import tell_popped
from mqlab.broker.pop.retry_message import under_plain_topic
from mqlab.protocol.extra_info import ReceiptHandle, retry_flag

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.pop.kv.pop_consumer_service import PopConsumerService
    from mqlab.broker.pop.pop_work import PopWork
    from mqlab.protocol.headers import ChangeInvisibleTimeRequestHeader
    from mqlab.protocol.pop_check_point import AckMsg


async def take(service: PopConsumerService, work: PopWork, config: BrokerConfig) -> bool:
    """Let a pop have its messages; False when they could not be noted, so that nothing is answered."""
    header = work.header
    popped = service.pop(
        work.pop_time,
        header.invisible_time,
        work.group,
        header.topic,
        header.queue_id,
        header.max_msg_nums,
        fifo=work.order,
        attempt_id=header.attempt_id,
        init_mode=header.init_mode,
        message_filter=work.message_filter,
    )
    context = popped if isinstance(popped, PopConsumerContext) else await popped
    if context.failed:
        return False
    work.rest += context.rest_count
    work.messages += context.message_count
    work.start_offset_info += context.start_offset_infos()
    work.msg_offset_info += context.msg_offset_infos()
    work.order_count_info += context.order_count_info
    for found in context.found:
        work.records += _answered_records(work, found, config)
        if service.node.hooks.on:
            tell_popped(service.node, work, found.topic, found.queue_id, found.start_offset, found.result)
    return True


def _answered_records(work: PopWork, found: Found, config: BrokerConfig) -> list[bytes]:
    """What the answer holds: the messages as they are stored, those of a retry topic under its name."""
    if found.retry_type is RetryType.NORMAL_TOPIC or not config.pop_response_return_actual_retry_topic:
        return found.result.messages
    flag, invisible_time = retry_flag(found.topic), work.header.invisible_time
    handles = (
        ReceiptHandle(
            found.start_offset, work.pop_time, invisible_time, 0, flag, config.broker_name, found.queue_id, offset
        )
        for offset in found.result.queue_offsets
    )
    return [
        under_plain_topic(record, found.topic, handle)
        for record, handle in zip(found.result.messages, handles, strict=True)
    ]


async def ack_all(service: PopConsumerService, ack: AckMsg, invisible_time: int) -> None:
    """Delete the records of all that one request acknowledges, and wait until that is safe.

    DiskFull when one of them stays.
    """
    group, topic = ack.group or "", ack.topic or ""
    for offset in ack.offsets():
        safe = service.ack(ack.pop_time, invisible_time, group, topic, ack.queue_id, offset)
        if safe is not None:
            await safe


async def change(
    service: PopConsumerService, header: ChangeInvisibleTimeRequestHeader, handle: ReceiptHandle, now_ms: int
) -> None:
    """Let a request have its message for another time from now on, and wait until that is safe; DiskFull when not."""
    safe = service.change_invisibility_duration(
        handle.pop_time,
        handle.invisible_time,
        now_ms,
        header.invisible_time,
        header.consumer_group,
        header.topic,
        header.queue_id,
        header.offset,
    )
    if safe is not None:
        await safe
