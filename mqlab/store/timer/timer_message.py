"""What a timer message looks like while it waits, and what it looks like again when it is due."""

from __future__ import annotations

from mqlab.protocol.hashing import java_string_hash
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, NEW_MAP_CAPACITY, encode_properties
from mqlab.protocol.topics import TIMER_TOPIC
from mqlab.store.put_message import MessageExtBrokerInner

NEVER_ENQUEUED = (1 << 63) - 1
"""The time of enqueuing of a message that was due before the wheel could take it."""


def hold(message: MessageExtBrokerInner, out_ms: int) -> None:
    """Turn a message into one that waits in the timer's topic for the slot `out_ms`.

    Its topic and queue go into properties, written in the order of the Java map that they lie in: a message of the
    broker's own is made in a small map, one that was sent was decoded into a large one, and only that has a CLUSTER.

    Java: org.apache.rocketmq.broker.util.HookUtils.transformTimerMessage.
    """
    properties = message.properties
    properties[MessageConst.TIMER_OUT_MS] = str(out_ms)
    properties[MessageConst.REAL_TOPIC] = message.topic
    properties[MessageConst.REAL_QUEUE_ID] = str(message.queue_id)
    capacity = DECODED_MAP_CAPACITY if MessageConst.CLUSTER in properties else NEW_MAP_CAPACITY
    message.properties_string = encode_properties(properties, capacity)
    message.topic = TIMER_TOPIC
    message.queue_id = 0


def convert(waiting: MessageExt, enqueue_ms: int, roll: bool, now_ms: int) -> MessageExtBrokerInner:
    """The message to store when a waiting one comes off the wheel; ValueError if it does not say where it belongs.

    One that rolls goes back into the timer's topic. As with delay levels the text of the properties keeps REAL_TOPIC
    and REAL_QID, and that TIMER_OUT_MS is there keeps it from being timed again.

    Java: org.apache.rocketmq.store.timer.TimerMessageStore.convert and convertMessage.
    """
    properties = dict(waiting.properties)
    properties[MessageConst.TIMER_ENQUEUE_MS] = str(enqueue_ms)
    if roll:
        properties[MessageConst.TIMER_ROLL_TIMES] = str(int(properties.get(MessageConst.TIMER_ROLL_TIMES, "0")) + 1)
    properties[MessageConst.TIMER_DEQUEUE_MS] = str(now_ms)
    text = encode_properties(properties, DECODED_MAP_CAPACITY)
    # Only in memory: what is stored keeps the text.
    properties[MessageConst.WAIT_STORE_MSG_OK] = "false"
    topic, queue_id = waiting.topic, waiting.queue_id
    if not roll:
        if MessageConst.REAL_TOPIC not in properties or MessageConst.REAL_QUEUE_ID not in properties:
            raise ValueError("it does not say where it belongs")
        topic = properties.pop(MessageConst.REAL_TOPIC)
        queue_id = int(properties.pop(MessageConst.REAL_QUEUE_ID))
    return MessageExtBrokerInner(
        topic,
        waiting.body,
        queue_id=queue_id,
        flag=waiting.flag,
        sys_flag=waiting.sys_flag,
        properties=properties,
        properties_string=text,
        born_timestamp=waiting.born_timestamp,
        born_host=waiting.born_host,
        store_host=waiting.store_host,
        reconsume_times=waiting.reconsume_times,
    )


def build_delete_key(real_topic: str, unique_key: str) -> str:
    """What a message says that recalls another one, in TIMER_DEL_UNIQKEY."""
    return f"{real_topic}+{unique_key}"


def topic_hash(message: MessageExt) -> int:
    """The hash of the topic that a message is for, as its record says it."""
    topic = message.properties.get(MessageConst.REAL_TOPIC)
    return java_string_hash(topic) if topic is not None else 0
