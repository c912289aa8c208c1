"""What a delayed message looks like while it is parked, and what it looks like again when it is due."""

from __future__ import annotations

from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, encode_properties
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC
from mqlab.store import MessageExtBrokerInner

_TIMER_PROPERTIES = (MessageConst.TIMER_DELIVER_MS, MessageConst.TIMER_DELAY_SEC, MessageConst.TIMER_DELAY_MS)
_DONE_PROPERTIES = (
    MessageConst.TIMER_DELIVER_MS,
    MessageConst.TIMER_DELAY_SEC,
    MessageConst.DELAY_TIME_LEVEL,
)


def delay_level_of(message: MessageExt) -> int:
    """The delay level that a message asks for; 0 or less for none, and where the property is no number."""
    try:
        return int(message.properties.get(MessageConst.DELAY_TIME_LEVEL, "0"))
    except ValueError:
        return 0


def is_timer_message(message: MessageExt) -> bool:
    """Does the message ask for a delay of any length or for a time of delivery, and has not waited for it yet?

    Java: org.apache.rocketmq.broker.util.HookUtils.checkIfTimerMessage.
    """
    properties = message.properties
    if message.topic == TIMER_TOPIC or MessageConst.TIMER_OUT_MS in properties:
        return False
    return any(map(properties.__contains__, _TIMER_PROPERTIES))


def park(message: MessageExtBrokerInner, max_level: int) -> int:
    """Turn a message with a delay level into a parked one; the level, which is never above `max_level`.

    Its topic and queue go into properties, and it gets the schedule topic and the queue `level - 1`. Java:
    HookUtils.transformDelayLevelMessage; a delay level also overrules the properties of a timer.

    Java: org.apache.rocketmq.broker.util.HookUtils.transformDelayLevelMessage.
    """
    properties = message.properties
    for name in _TIMER_PROPERTIES:
        properties.pop(name, None)
    asked = delay_level_of(message)
    level = min(asked, max_level)
    if level != asked:
        properties[MessageConst.DELAY_TIME_LEVEL] = str(level)
    properties[MessageConst.REAL_TOPIC] = message.topic
    properties[MessageConst.REAL_QUEUE_ID] = str(message.queue_id)
    message.properties_string = encode_properties(properties, DECODED_MAP_CAPACITY)
    message.topic = RMQ_SYS_SCHEDULE_TOPIC
    message.queue_id = level - 1
    return level


def message_time_up(parked: MessageExt) -> MessageExtBrokerInner:
    """The message to store when a parked one is due; ValueError if it does not say where it belongs.

    Its text of properties is that of the parked message, so the stored copy and the consumer still see DELAY,
    REAL_TOPIC and REAL_QID. Only the mapping lacks DELAY, which is why the copy is not parked again. Java:
    ScheduleMessageService.messageTimeUp.

    Java: org.apache.rocketmq.broker.schedule.ScheduleMessageService.messageTimeUp.
    """
    properties = dict(parked.properties)
    text = encode_properties(properties, DECODED_MAP_CAPACITY)
    properties[MessageConst.WAIT_STORE_MSG_OK] = "false"
    for name in _DONE_PROPERTIES:
        properties.pop(name, None)
    topic = properties.get(MessageConst.REAL_TOPIC)
    if not topic:
        raise ValueError("it has no REAL_TOPIC")
    return MessageExtBrokerInner(
        topic,
        parked.body,
        queue_id=int(properties.get(MessageConst.REAL_QUEUE_ID, "")),
        flag=parked.flag,
        sys_flag=parked.sys_flag,
        properties=properties,
        properties_string=text,
        born_timestamp=parked.born_timestamp,
        born_host=parked.born_host,
        store_host=parked.store_host,
        reconsume_times=parked.reconsume_times,
    )
