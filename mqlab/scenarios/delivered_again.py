"""The scenarios of a message that nobody can consume: groups whose listeners fail, and the queue behind the message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, MessageListenerOrderly
from mqlab.protocol import Message
from mqlab.scenarios.registry import scenario, story

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPushConsumer
    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt

TOPIC = "Orders"
GROUP = "billing"
POISON = b"poison"
KNOWN_MS = 30_000
"""A new group reads its retry topic only after its second rebalance, about 21 s after its start."""
SHORT_LEVELS = "1s 2s 3s 4s 5s 6s 7s 8s 9s 10s 11s 12s 13s 14s 15s 16s 17s 18s"
"""The levels with which a real RocketMQ was recorded, so that five attempts took no hour."""
PACE_MS = 500

Listener = Callable[[Sequence["MessageExt"], Any], Any]


def never(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
    """A listener that wants every message again later."""
    return ConsumeConcurrentlyStatus.RECONSUME_LATER


def no_poison(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
    """A concurrent listener that is content with all messages but the poison."""
    if any(message.body == POISON for message in messages):
        return ConsumeConcurrentlyStatus.RECONSUME_LATER
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


class NoPoisonInOrder(MessageListenerOrderly):
    """An orderly listener that is content with all messages but the poison, and goes no further than there."""

    def consume_message(self, messages: Sequence[MessageExt], context: Any) -> ConsumeOrderlyStatus:
        """Stop the queue for a moment at the poison."""
        if any(message.body == POISON for message in messages):
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return ConsumeOrderlyStatus.SUCCESS


async def open_shop(lab: Lab, **broker: Any) -> DefaultMQProducer:
    """A name server, a broker with one queue of `Orders`, and a producer on the machine `shop`."""
    lab.name_server()
    lab.broker("broker-a", **broker)
    lab.create_topic(TOPIC, 1)
    producer = lab.producer("shop", node="shop")
    await producer.start()
    return producer


async def add_group(
    lab: Lab, group: str, listener: Listener | MessageListenerOrderly, **settings: Any
) -> DefaultMQPushConsumer:
    """A consumer of `Orders` in a group of its own, on a machine of the same name, started."""
    consumer = lab.consumer(group, node=group, **settings)
    consumer.subscribe(TOPIC, "*")
    consumer.register_message_listener(listener)
    await consumer.start()
    return consumer


@scenario("always-fails", seconds=60)
async def always_fails(lab: Lab, *, levels: str = "", max_reconsume_times: int = -1) -> None:
    """A message that its group can never consume: attempts by the delay levels, and then the dead letters."""
    broker: dict[str, Any] = {"message_delay_level": levels} if levels else {}
    producer = await open_shop(lab, **broker)
    await add_group(lab, GROUP, never, max_reconsume_times=max_reconsume_times)
    lab.run_for(ms=KNOWN_MS)
    await producer.send(Message(TOPIC, b"order 1: 49.90 EUR", keys="order-1"))


POISONED = story("""
    SendAttempted 1 shop: Three groups get the same orders: one takes them side by side, two take them in order.
    SendAttempted 5 shop: This order is poison: no listener can take it.
    MessageGivenBack 1 concurrent: The group without order gives it back, and goes on with the others.
    MessageStored 12 orderly: In the groups that keep the order everything behind it waits.
    ConsumeStarted 60 orderly: They try it again each second, and nothing else.
    SendAttempted 30 orderly-4: One group gives up after four tries, and lets it go. The other one never does.
""")


@scenario("poison", seconds=40, captions=POISONED)
async def poison(
    lab: Lab, *, messages: int = 60, poison_at: int = 4, orderly_times: int = 4, pace_ms: int = PACE_MS
) -> None:
    """One message cannot be consumed: a concurrent group, an orderly one that gives up, one that never does.

    Which message it is says `poison_at`, and how far apart they are sent `pace_ms`; `orderly_times` is after how many
    retries the second group gives up.
    """
    producer = await open_shop(lab)
    await add_group(lab, "concurrent", no_poison)
    await add_group(lab, "orderly", NoPoisonInOrder())
    await add_group(lab, f"orderly-{orderly_times}", NoPoisonInOrder(), max_reconsume_times=orderly_times)
    lab.run_for(ms=KNOWN_MS)

    async def load() -> None:
        for number in range(messages):
            body = POISON if number == poison_at else b"order %d" % number
            message = Message(TOPIC, body, keys=f"order-{number}")
            await type(producer).send.inside(producer, message)  # type: ignore[attr-defined]  # see public_call
            await producer.node.sleep(pace_ms)

    producer.node.spawn(load(), "load")
