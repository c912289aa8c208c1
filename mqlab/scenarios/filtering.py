"""The scenario of filters: three groups want different parts of one topic, by a tag, by a condition, and all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client import ConsumeFromWhere
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.protocol import Message
from mqlab.scenarios.ground import keep_nothing
from mqlab.scenarios.numbered import TOPIC, come_and_go, reader, send_sync
from mqlab.scenarios.registry import ANY_FAULT, scenario, story

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer
    from mqlab.lab import Lab

CONDITION = "amount > 100 AND city = 'Berlin'"
LATE = "late"
LATE_MS, FOR_EVER_MS = 8_000, 100_000_000
CITIES = ("Berlin", "Oslo", "Paris")
MOST = 200
ELSEWHERE = "amount <= 100 AND NOT (city = 'Oslo')"
"""What is not known is not wanted: an order that names no city is not one from elsewhere."""


def order(producer: DefaultMQProducer, number: int, nameless: int = 0) -> Message:
    """Order `number` of a random amount for a random city; its tag says only whether it is paid.

    One in `nameless` names no city; with 0 all of them do.
    """
    draw = producer.node.choose
    amount, city = draw("amount", MOST), CITIES[draw("city", len(CITIES))]
    message = Message(TOPIC, f"order {number}: {amount} from {city}", tags="paid" if number % 2 else "open")
    message.put_user_property("amount", str(amount))
    if not nameless or draw("names no city", nameless):
        message.put_user_property("city", city)
    return message


WHAT_IS_WANTED = story("""
    ConsumerFilterChanged 1 broker-a: One group wants orders over 100 from Berlin. The broker reads that condition,
        and keeps it.
    SendAttempted 1 producer-1: A shop sends orders. Amount and city stand in the properties of each.
    MessageDispatched 2 broker-a: A queue keeps a hash of each order's tag. Of a city or an amount it knows nothing.
    MessagesFilteredByBroker 2 broker-a: So for a condition the broker reads each order that lies there, and judges
        it.
    PullWoken 1 consumer-1: Who wants everything is woken by every order.
    MessagesFilteredByBroker 4 broker-a: What is held back never travels. The group is only told where to go on.
    SendAttempted 60 consumer-3: Who has a condition is woken only by an order that fulfils it.
""")


@scenario(
    "sql-filters",
    seconds=25,
    captions=WHAT_IS_WANTED,
    faults=ANY_FAULT,
    explored_with={"also": ELSEWHERE, "nameless": 4, "bit_maps": True},
)
async def sql_filters(
    lab: Lab,
    *,
    condition: str = CONDITION,
    also: str = "",
    nameless: int = 0,
    bit_maps: bool = False,
    queues: int = 2,
    messages: int = 80,
    every_ms: int = 250,
) -> None:
    """Three groups read one topic: all of it, by a tag, and by a condition on properties that the broker judges.

    A fourth one, which comes later and takes its time, reads by the condition `also`, if there is one. One order in
    `nameless` names no city (0: all do).
    """
    lab.name_server()
    lab.broker(enable_property_filter=True, enable_consume_queue_ext=bit_maps, enable_calc_filter_bit_map=bit_maps)
    lab.create_topic(TOPIC, queues)
    wanted: dict[str, str | MessageSelector] = {
        "everything": "*",
        "paid-orders": "paid",
        "large-in-berlin": MessageSelector.by_sql(condition),
    }
    if also:
        wanted[LATE] = MessageSelector.by_sql(also)
    for group, what in wanted.items():
        consumer = lab.consumer(group, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
        consumer.subscribe(TOPIC, what)
        consumer.register_message_listener(keep_nothing if group != LATE else reader(consumer, 1_000, looks=False))
        if group == LATE:
            consumer.node.spawn(come_and_go(consumer, LATE_MS, FOR_EVER_MS), "come and go")
        else:
            await consumer.start()
    producer = lab.producer("shop")
    await producer.start()

    async def load() -> None:
        for number in range(messages):
            await send_sync(producer, order(producer, number, nameless))
            await producer.node.sleep(every_ms)

    producer.node.spawn(load(), "load")
