"""The scenarios of push: members that come and go, order, slow listeners, and a group in which everybody gets all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from mqlab.client import (
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    DefaultMQPushConsumer,
    MessageListenerOrderly,
    MessageModel,
)
from mqlab.scenarios.numbered import TOPIC, come_and_go, number_of, reader, reading_time_ms, spawn_sending
from mqlab.scenarios.registry import ANY_FAULT, scenario
from mqlab.scenarios.words import Flush

if TYPE_CHECKING:
    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt

READERS = "readers"
Limit = Literal["count", "size", "span", "any"]
LIMITS: dict[str, dict[str, int]] = {
    "count": {"pull_threshold_for_queue": 8},
    "size": {"pull_threshold_size_for_queue": 1},
    "span": {"consume_concurrently_max_span": 6},
}
"""The settings with which each of the three thresholds is the first to be passed."""


async def start_shop(
    lab: Lab, *, brokers: int, queues: int, flush: str, messages: int, every_ms: int, size: int = 100
) -> None:
    """A name server, brokers, a topic, and a producer at work."""
    lab.name_server()
    for _ in range(brokers):
        lab.broker(flush_disk_type=flush)
    lab.create_topic(TOPIC, queues)
    # Packing big bodies costs more of the machine's time than all the rest, and shows nothing here.
    producer = lab.producer("shop", compress_msg_body_over_howmuch=4 * 1024 * 1024)
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms, size=size)


def new_reader(lab: Lab, **settings: Any) -> DefaultMQPushConsumer:
    """A consumer of the topic, from its beginning, not started."""
    consumer = lab.consumer(READERS, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, **settings)
    consumer.subscribe(TOPIC, "*")
    return consumer


async def start_members(lab: Lab, members: list[DefaultMQPushConsumer]) -> None:
    """The first member begins at once and stays; the others join and leave while the scenario plays."""
    await members[0].start()
    for member in members[1:]:
        draw = member.node.choose
        member.node.spawn(come_and_go(member, 500 + draw("join", 8_000), 2_000 + draw("stay", 15_000)), "come and go")


class SlowlyInOrder(MessageListenerOrderly):
    """An orderly listener that looks at the bodies, takes its time, and now and then wants a message once more."""

    def __init__(self, consumer: DefaultMQPushConsumer, refuse_one_in: int) -> None:
        self._consumer = consumer
        self._refuse_one_in = refuse_one_in

    async def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        """Read one message after the other."""
        for message in messages:
            number_of(message)
        await context.sleep(reading_time_ms(self._consumer))
        if self._consumer.node.choose("refuse", self._refuse_one_in) == 1:
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return ConsumeOrderlyStatus.SUCCESS


@scenario(
    "push-clustering", seconds=30, faults=ANY_FAULT,
    goals=("queue-is-given-up-while-its-listener-works", "message-is-consumed-by-two-members"),
)
async def push_clustering(
    lab: Lab,
    *,
    consumers: int = 3,
    brokers: int = 1,
    queues: int = 4,
    messages: int = 50,
    every_ms: int = 400,
    flush: Flush = "SYNC_FLUSH",
) -> None:
    """The members of a group share the queues, and the queues move whenever a member joins or leaves."""
    await start_shop(lab, brokers=brokers, queues=queues, flush=flush, messages=messages, every_ms=every_ms)
    members = [new_reader(lab) for _ in range(consumers)]
    for member in members:
        member.register_message_listener(reader(member))
    await start_members(lab, members)


@scenario("push-orderly", seconds=30, faults=ANY_FAULT, goals=("orderly-queue-changes-hands",))
async def push_orderly(
    lab: Lab,
    *,
    consumers: int = 2,
    queues: int = 2,
    messages: int = 40,
    every_ms: int = 500,
    refuse_one_in: int = 10,
    flush: Flush = "SYNC_FLUSH",
) -> None:
    """The members of a group lock their queues at the broker and consume each in its order."""
    await start_shop(lab, brokers=1, queues=queues, flush=flush, messages=messages, every_ms=every_ms)
    members = [new_reader(lab) for _ in range(consumers)]
    for member in members:
        member.register_message_listener(SlowlyInOrder(member, refuse_one_in))
    await start_members(lab, members)


@scenario("slow-listener", seconds=30, faults=ANY_FAULT, goals=("too-many-messages-held",))
async def slow_listener(
    lab: Lab,
    *,
    messages: int = 60,
    every_ms: int = 40,
    queues: int = 2,
    threads: int = 1,
    batch: int = 4,
    limit: Limit = "any",
    very_slow_ms: int = 2_000,
    flush: Flush = "SYNC_FLUSH",
) -> None:
    """A listener is slower than the producer, and the consumer stops pulling when it holds too much.

    `limit` is the threshold that comes first: count, size or span; with "any" the seed draws it.
    """
    limits = list(LIMITS)
    first = limits[lab.world.choose("limit", len(limits))] if limit == "any" else limit
    size = 200_000 if first == "size" else 100
    await start_shop(lab, brokers=1, queues=queues, flush=flush, messages=messages, every_ms=every_ms, size=size)
    consumer = new_reader(
        lab, consume_thread_min=threads, consume_thread_max=threads, pull_batch_size=batch, **LIMITS[first]
    )
    consumer.register_message_listener(reader(consumer, very_slow_ms))
    await consumer.start()


@scenario(
    "broadcasting", seconds=30, faults=ANY_FAULT,
    goals=("broadcast-reaches-two-members", "broadcasting-member-goes-on-from-its-file"),
)
async def broadcasting(
    lab: Lab,
    *,
    consumers: int = 2,
    queues: int = 2,
    messages: int = 30,
    every_ms: int = 500,
    flush: Flush = "SYNC_FLUSH",
) -> None:
    """Every member of a group gets every message, and keeps its own place in a file of its own."""
    await start_shop(lab, brokers=1, queues=queues, flush=flush, messages=messages, every_ms=every_ms)
    for _ in range(consumers):
        consumer = new_reader(lab, message_model=MessageModel.BROADCASTING)
        consumer.register_message_listener(reader(consumer))
        await consumer.start()
