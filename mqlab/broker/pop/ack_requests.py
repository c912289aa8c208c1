"""What requests about a popped message have in common: their checks, the lock of its queue, and writing an ack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import FAQ, RequestError
from mqlab.broker.pop import revive_log
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.errors import ExtraInfoError
from mqlab.protocol.extra_info import ReceiptHandle, parse_handle
from mqlab.trace.events.pop import AckLost, AckStored

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pop.kv.pop_consumer_service import PopConsumerService
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.protocol.pop_check_point import AckMsg
    from mqlab.remoting import Channel

LOCK_RETRY_MS = 1
_FIELDS_USED = 6


def check_queue(broker: BrokerParts, channel: Channel, topic: str, queue_id: int) -> tuple[int, int]:
    """The first offset of a queue and its end; RequestError when there is no such topic or queue."""
    config = broker.topic_config_manager.select_topic_config(topic)
    if config is None:
        raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please! \n{FAQ}")
    if not 0 <= queue_id < config.read_queue_nums:
        raise RequestError(
            ResponseCode.MESSAGE_ILLEGAL,
            f"queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{config.read_queue_nums}] "
            f"consumer:[/{channel.remote_address}]",
        )
    store = broker.message_store
    return store.get_min_offset_in_queue(topic, queue_id), store.get_max_offset_in_queue(topic, queue_id)


def handle_in(extra_info: str, queue_id: int, offset: int) -> ReceiptHandle:
    """The receipt handle in a request; ExtraInfoError when it is none.

    As in RocketMQ nobody asks whether such a batch was ever handed out, or to whom; and queue and offset are those of
    the request, whatever stands in the last two fields.
    """
    end = f" {queue_id} {offset}"
    if extra_info.endswith(end) and extra_info.count(" ") == _FIELDS_USED + 1:
        return parse_handle(extra_info)
    fields = extra_info.split(" ")
    if len(fields) < _FIELDS_USED:
        raise ExtraInfoError(f"getBrokerName fail, extraInfoStrs length {len(fields)}")
    return parse_handle(" ".join(fields[:_FIELDS_USED]) + end)


def records_in_use(broker: WholeBroker) -> PopConsumerService | None:
    """The key-value engine where it is the one in use, None where check points and acks are messages."""
    return broker.pop.pop_consumer_service if broker.broker_config.pop_consumer_kv_service_enable else None


async def lock_queue(broker: WholeBroker, topic: str, group: str, queue_id: int) -> None:
    """Take the lock of a queue for a group, as soon as nobody has it; with records that of the whole topic.

    Java: org.apache.rocketmq.broker.processor.AckMessageProcessor.ackOrderly.
    Differs from RocketMQ: who finds it taken asks again each millisecond, where a Java thread asks without a pause.
    """
    service, locks = records_in_use(broker), broker.pop.locks
    while not (service.locks.try_lock(group, topic) if service is not None else locks.try_lock(topic, group, queue_id)):
        await broker.node.sleep(LOCK_RETRY_MS)


def unlock_queue(broker: WholeBroker, topic: str, group: str, queue_id: int) -> None:
    """Give back what `lock_queue` took."""
    service = records_in_use(broker)
    if service is not None:
        service.locks.unlock(group, topic)
    else:
        broker.pop.locks.unlock(topic, group, queue_id)


async def put_ack(broker: BrokerParts, ack: AckMsg, revive_qid: int, deliver_ms: int) -> None:
    """Write an ack to a revive queue, due at `deliver_ms`; one that cannot be written is lost, as in RocketMQ."""
    message = revive_log.ack_message(broker, ack, revive_qid, deliver_ms, unique_key=revive_log.ack_unique_key(ack))
    result = await broker.message_store.put_and_wait(message)
    if not result.is_stored:
        emit_ack_lost(broker, ack, f"it was not stored: {result.status.value}")
    elif broker.node.hooks.on:
        offsets = ",".join(map(str, ack.offsets()))
        broker.node.hooks.emit(
            AckStored(
                ack.group or "", ack.topic or "", ack.queue_id, offsets, ack.start_offset, ack.pop_time, revive_qid
            )
        )


def emit_ack_lost(broker: BrokerParts, ack: AckMsg, reason: str) -> None:
    """Say in the trace that an ack has no effect."""
    hooks = broker.node.hooks
    if hooks.on:
        for offset in ack.offsets():
            hooks.emit(
                AckLost(ack.group or "", ack.topic or "", ack.queue_id, offset, ack.start_offset, ack.pop_time, reason)
            )
