"""The scenarios of trying again: retries by their levels, dead letters, and messages that are delivered later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, DefaultMQPushConsumer
from mqlab.scenarios.numbered import LATER, SUCCESS, TOPIC, number_of, reader, reading_time_ms, spawn_sending
from mqlab.scenarios.pushing import new_reader, start_shop
from mqlab.scenarios.registry import ANY_FAULT, scenario
from mqlab.scenarios.words import Flush

if TYPE_CHECKING:
    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt

HOPELESS, STUBBORN = 5, 3
"""Every fifth message can't be consumed at all, every third other one not at the first time."""
TROUBLE_MS = 3_000


def fastidious(consumer: DefaultMQPushConsumer) -> Callable[..., Any]:
    """A listener that wants some messages again later, and for some never says that it has them."""

    async def listener(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus | None:
        numbers = [number_of(message) for message in messages]
        hopeless = numbers[0] % HOPELESS == 0
        if not hopeless and (numbers[0] % STUBBORN or messages[0].reconsume_times):
            await context.sleep(reading_time_ms(consumer))
            return SUCCESS
        # Trouble takes its time, so that a broker may be gone when the message shall be given back.
        await context.sleep(consumer.node.choose("trouble", TROUBLE_MS))
        return None if hopeless else LATER

    return listener


@scenario(
    "retry-and-dead-letters", seconds=40, faults=ANY_FAULT,
    goals=("retry-succeeds", "message-becomes-a-dead-letter"),
)
async def retry_and_dead_letters(
    lab: Lab,
    *,
    consumers: int = 2,
    queues: int = 2,
    messages: int = 30,
    every_ms: int = 500,
    max_reconsume_times: int = 2,
    flush: Flush = "SYNC_FLUSH",
) -> None:
    """A listener fails: messages come again after 10 s and 30 s, and then go to the dead letters."""
    await start_shop(lab, brokers=1, queues=queues, flush=flush, messages=messages, every_ms=every_ms)
    for _ in range(consumers):
        consumer = new_reader(lab, max_reconsume_times=max_reconsume_times)
        consumer.register_message_listener(fastidious(consumer))
        await consumer.start()


@scenario("delayed-messages", seconds=40, faults=ANY_FAULT, goals=("message-is-parked", "levels-overtake-each-other"))
async def delayed_messages(
    lab: Lab, *, queues: int = 2, messages: int = 30, every_ms: int = 600, flush: Flush = "SYNC_FLUSH"
) -> None:
    """Messages are sent to be delivered at once, after 1 s, after 5 s and after 10 s."""
    lab.name_server()
    lab.broker(flush_disk_type=flush)
    lab.create_topic(TOPIC, queues)
    consumer = new_reader(lab)
    consumer.register_message_listener(reader(consumer))
    await consumer.start()
    producer = lab.producer("shop")
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms, delay_levels=(0, 1, 2, 3))


@scenario(
    "timer-messages", seconds=40, faults=ANY_FAULT,
    goals=("timer-message-waits-in-the-wheel", "wheel-goes-on-after-a-restart"),
)
async def timer_messages(
    lab: Lab,
    *,
    queues: int = 2,
    messages: int = 40,
    every_ms: int = 500,
    roll_window_s: int = 2 * 86_400,
    flush: Flush = "SYNC_FLUSH",
) -> None:
    """Messages are sent for a moment of their own: now, after 1.5 s, 3 s, 7 s and 20 s; the timer wheel holds them."""
    lab.name_server()
    lab.broker(flush_disk_type=flush, timer_roll_window_slot=roll_window_s)
    lab.create_topic(TOPIC, queues)
    consumer = new_reader(lab)
    consumer.register_message_listener(reader(consumer))
    await consumer.start()
    producer = lab.producer("shop")
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms, delays_ms=(0, 1_500, 3_000, 7_000, 20_000))
