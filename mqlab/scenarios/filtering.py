"""The scenarios of filters: groups that want parts of one topic by a tag or by a condition, with bits and without.

`open_shop` is the same topic to play with: whoever joins says what it wants, and orders are sent as they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeConcurrentlyStatus, ConsumeFromWhere
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.protocol import Message
from mqlab.scenarios.ground import keep_nothing
from mqlab.scenarios.numbered import TOPIC, come_and_go, reader, send_sync
from mqlab.scenarios.registry import ANY_FAULT, scenario, story

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPushConsumer
    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt

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
    goals=("message-is-passed-over-by-its-bits", "message-is-read-and-held-back", "filter-comes-alive-again"),
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


WHO_READS = story("""
    ConsumerFilterChanged 1 broker-a: One group reads all orders, one those over 100 from Berlin. The broker keeps that
        condition.
    FilterBitMapCalculated 1 broker-a: An order is stored. Now, and only once, the broker judges it by each condition
        that it knows.
    MessageDispatched 1 broker-a: What comes out are a few bits, which lie beside the order's place in the queue.
    MessagesFilteredByBroker 1 broker-a: When the group reads on, an order without its bits is passed over unread.
    ConsumerFilterChanged 2 broker-a: Somebody new wants the same, and begins with the first order.
    QueueAllocated 3 late: The bits of those orders say nothing of a newcomer: the broker reads all of them.
    FilterBitMapCalculated 50 broker-a: From now on each order is judged for both.
""")


@scenario("who-reads", seconds=8, captions=WHO_READS)
async def who_reads(lab: Lab, *, condition: str = CONDITION, orders: int = 40, more: int = 20) -> None:
    """A group whose condition has bits is spared what it does not want; one that comes later is not."""
    by_sql = MessageSelector.by_sql(condition)
    settings = {"enable_consume_queue_ext": True, "enable_calc_filter_bit_map": True}
    shop = await open_shop(lab, {"all": "*", "large": by_sql}, **settings)
    await shop.send(_random_orders(shop.producer, orders), every_ms=100)
    lab.run_for(seconds=8)
    await shop.join("late", by_sql)
    lab.run_for(seconds=2)
    await shop.send(_random_orders(shop.producer, more), every_ms=100)


def _random_orders(producer: DefaultMQProducer, count: int) -> list[dict[str, str]]:
    draw = producer.node.choose
    return [{"amount": str(draw("amount", MOST)), "city": CITIES[draw("city", len(CITIES))]} for _ in range(count)]


class Shop:
    """A shop that sends orders, and readers who want a part of them (see `open_shop`).

    `handled` has what came to the listener of each reader, by the name of its machine.
    """

    def __init__(self, lab: Lab, producer: DefaultMQProducer) -> None:
        self.lab = lab
        self.producer = producer
        self.handled: dict[str, list[MessageExt]] = {}

    async def join(
        self, group: str, wanted: str | MessageSelector, *, machine: str = "", **settings: Any
    ) -> DefaultMQPushConsumer:
        """A reader that begins at the first order and wants these: tags as a text, or a MessageSelector.

        It is the first or another member of its group, on a machine that is called as the group unless said otherwise.
        """
        begin = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        consumer = self.lab.consumer(group, node=machine or group, consume_from_where=begin, **settings)
        handled = self.handled[consumer.node.name] = []

        def keep(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
            handled.extend(messages)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer.subscribe(TOPIC, wanted)
        consumer.register_message_listener(keep)
        await consumer.start()
        return consumer

    async def send(self, orders: Iterable[Mapping[str, str]], *, every_ms: int = 20) -> None:
        """Send orders one after the other: the key `tag` of each is its tag, all others are its properties."""
        for number, order in enumerate(orders):
            message = Message(TOPIC, f"order {number}", tags=order.get("tag", ""), keys=f"order-{number}")
            for name, value in order.items():
                if name != "tag":
                    message.put_user_property(name, value)
            await self.producer.send(message)
            self.lab.run_for(ms=every_ms)

    def read_for(self, group: str) -> int:
        """How many orders a broker has read from its log for a group: those given to it, and those judged and held
        back.
        """
        history, read = self.lab.history, 0
        for record in history.find("PullAnswered", group=group, topic=TOPIC):
            read += record.messages
        for record in history.find("MessagesFilteredByBroker", group=group):
            read += record.by_expression
        return read


async def open_shop(
    lab: Lab, wanted: Mapping[str, str | MessageSelector] | None = None, *, queues: int = 1, **settings: Any
) -> Shop:
    """A broker that filters by conditions, a topic, a producer, and a reader for each group in `wanted`."""
    lab.name_server()
    lab.broker(enable_property_filter=True, **settings)
    lab.create_topic(TOPIC, queues)
    producer = lab.producer("shop")
    await producer.start()
    shop = Shop(lab, producer)
    for group, what in (wanted or {}).items():
        await shop.join(group, what)
    return shop
