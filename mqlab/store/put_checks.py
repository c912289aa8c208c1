"""What the store refuses before it writes anything, in RocketMQ's order."""

from __future__ import annotations

from mqlab.protocol.properties import PROPERTIES_MAX_BYTES
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.store.put_message import MessageExtBrokerInner, PutMessageResult, PutMessageStatus

TOPIC_MAX = 127
RETRY_TOPIC_MAX = 255
_RETRY_PREFIX = "%RETRY%"


def refused(status: PutMessageStatus, remark: str) -> PutMessageResult:
    """The result of a put that stored nothing."""
    return PutMessageResult(status, remark=remark)


def check_message(message: MessageExtBrokerInner) -> PutMessageResult | None:
    """The refusal of a message whose topic or body can't be (HookUtils.checkBeforePutMessage); None when all is
    well.

    Java: org.apache.rocketmq.broker.util.HookUtils.checkBeforePutMessage.
    """
    topic = message.topic
    length = len(topic.encode("utf-8", "replace"))
    if length > TOPIC_MAX and not topic.startswith(_RETRY_PREFIX):
        return refused(PutMessageStatus.MESSAGE_ILLEGAL, f"the topic has {length} bytes, {TOPIC_MAX} are the most")
    if length > RETRY_TOPIC_MAX:
        return refused(
            PutMessageStatus.MESSAGE_ILLEGAL, f"the topic has {length} bytes, {RETRY_TOPIC_MAX} are the most"
        )
    if message.body is None:
        return refused(PutMessageStatus.MESSAGE_ILLEGAL, "the message has no body")
    return None


def check_inner_batch(message: MessageExtBrokerInner, is_batch_queue: bool) -> PutMessageResult | None:
    """The refusal of a whole batch for a topic that keeps single messages, and of what only looks like one
    (HookUtils.checkInnerBatch).
    """
    if not message.sys_flag & MessageSysFlag.INNER_BATCH:
        if "INNER_NUM" in message.properties:
            return refused(PutMessageStatus.MESSAGE_ILLEGAL, "it has INNER_NUM, and is no whole batch")
    elif not is_batch_queue:
        return refused(PutMessageStatus.MESSAGE_ILLEGAL, "a whole batch needs a topic with queue.type=BatchCQ")
    return None


def check_batch(batch: MessageExtBrokerInner, max_body: int) -> PutMessageResult | None:
    """The refusal of a batch that is empty, too large, in a transaction or delayed (CommitLog.asyncPutMessages)."""
    if MessageSysFlag.transaction_value(batch.sys_flag):
        return refused(PutMessageStatus.MESSAGE_ILLEGAL, "the messages of a transaction cannot come in a batch")
    if batch.properties.get("DELAY", "0") != "0":
        return refused(PutMessageStatus.MESSAGE_ILLEGAL, "a batch cannot be delayed")
    if not batch.body:
        return refused(PutMessageStatus.MESSAGE_ILLEGAL, "the batch is empty")
    if len(batch.body) > max_body:
        return refused(
            PutMessageStatus.UNKNOWN_ERROR,
            f"java.lang.RuntimeException: message body size exceeded, msg body size: {len(batch.body)}, "
            f"maxMessageSize: {max_body}",
        )
    return None


def check_sizes(body: bytes, properties: str, max_body: int) -> PutMessageResult | None:
    """The refusal of a message that is too large."""
    if len(body) > max_body:
        return refused(PutMessageStatus.MESSAGE_ILLEGAL, f"the body has {len(body)} bytes, {max_body} are the most")
    # Most are short enough whatever their characters: three bytes is the most that a UTF-16 unit takes.
    if len(properties) * 3 > PROPERTIES_MAX_BYTES:
        length = len(properties.encode("utf-8", "replace"))
        if length > PROPERTIES_MAX_BYTES:
            return refused(
                PutMessageStatus.PROPERTIES_SIZE_EXCEEDED,
                f"the properties take {length} bytes, {PROPERTIES_MAX_BYTES} are the most",
            )
    return None
