"""Messages with a time of delivery of their own: which the broker accepts, and how they go to the timer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.message import MessageConst
from mqlab.protocol.topics import REVIVE_TOPIC_PREFIX
from mqlab.store import PutMessageResult, PutMessageStatus
from mqlab.store.timer.timer_message import hold
from mqlab.store.timer.timer_message_store import TimerMessageStore
from mqlab.trace.events.timer import TimerMessageAccepted

if TYPE_CHECKING:
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.store import MessageExtBrokerInner

_LONG_BITS = 64
_LONG_MAX = (1 << 63) - 1


def begin_timer(broker: WholeBroker) -> TimerMessageStore:
    """A timer on the files of the broker's disk, running, as if it had been there since the broker's start."""
    stats = broker.stats

    def count_put(topic: str, messages: int, size: int) -> None:
        stats.put(topic, messages, size)
        if broker.made_pop is None and topic.startswith(REVIVE_TOPIC_PREFIX):
            # An earlier life of the broker has handed messages out, and somebody must read their check points.
            _ = broker.pop

    timer = TimerMessageStore(broker.node, broker.message_store, broker.start_us, count_put)
    timer.load()
    timer.start()
    return timer


def transform_timer_message(broker: WholeBroker, message: MessageExtBrokerInner) -> PutMessageResult | None:
    """Turn a message that asks for a time of delivery into one that waits for it; the refusal of one that can't.

    A message that is due already stays as it is, and is stored like any other. Java:
    org.apache.rocketmq.broker.util.HookUtils.transformTimerMessage.
    """
    now_ms, config = broker.node.now_ms(), broker.message_store_config
    try:
        deliver_ms = _deliver_ms(message.properties, now_ms)
    except ValueError:
        return _illegal("its time of delivery is no number")
    if deliver_ms <= now_ms:
        if MessageConst.TIMER_DEL_UNIQKEY in message.properties:
            return _illegal("it is too late to recall the message")
        return None
    if deliver_ms - now_ms > config.timer_max_delay_sec * 1_000:
        return _illegal(f"it asks for {deliver_ms - now_ms} ms, {config.timer_max_delay_sec} s are the most")
    precision_ms = config.timer_precision_ms
    # The slot is read when it is over, so the one that ends at or before the asked time, or as it begins, is taken.
    slot_ms = (deliver_ms - 1) // precision_ms * precision_ms
    timer = broker.timer_message_store
    if timer.is_reject(slot_ms):
        num = timer.timer_wheel.get_num(slot_ms)
        return PutMessageResult(PutMessageStatus.WHEEL_TIMER_FLOW_CONTROL, remark=f"its slot holds {num} messages")
    topic, queue_id = message.topic, message.queue_id
    hold(message, slot_ms)
    if broker.node.hooks.on:
        unique_key = message.properties.get("UNIQ_KEY", "")
        broker.node.hooks.emit(TimerMessageAccepted(topic, queue_id, unique_key, slot_ms, deliver_ms - now_ms))
    return None


def _deliver_ms(properties: dict[str, str], now_ms: int) -> int:
    """The time of delivery that the properties ask for; ValueError if it is no number of 64 bits."""
    if (delay_s := properties.get(MessageConst.TIMER_DELAY_SEC)) is not None:
        return _wrapped(now_ms + _parse_long(delay_s) * 1_000)
    if (delay_ms := properties.get(MessageConst.TIMER_DELAY_MS)) is not None:
        return _wrapped(now_ms + _parse_long(delay_ms))
    return _parse_long(properties[MessageConst.TIMER_DELIVER_MS])


def _parse_long(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(text)
    value = int(text)
    if not -_LONG_MAX - 1 <= value <= _LONG_MAX:
        raise ValueError(text)
    return value


def _wrapped(value: int) -> int:
    """A sum as Java's 64 bits hold it."""
    value &= (1 << _LONG_BITS) - 1
    return value - (1 << _LONG_BITS) if value > _LONG_MAX else value


def _illegal(remark: str) -> PutMessageResult:
    return PutMessageResult(PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL, remark=remark)
