"""Orders with steps that must be done in turn: a shop sends them, clerks do them, and a book says who did what when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.client import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageListenerOrderly,
    select_message_queue_by_hash,
)
from mqlab.protocol import Message, MessageQueue
from mqlab.scenarios.registry import scenario, story
from mqlab.views import StepBars, Work

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPushConsumer
    from mqlab.client.producer.message_queue_selector import MessageQueueSelector
    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt
    from mqlab.sim import Node

TOPIC = "Orders"
BROKER = "broker-a"
GROUP = "desk"
STEPS = ("placed", "paid", "packed", "shipped")
STEP = "step"
"""The property of a message that says which step it is, from 1 on."""
UNTIL_THE_END = 1_000_000
"""So many orders that they come for as long as anybody plays."""


class Entry(NamedTuple):
    """One line of the book: a clerk did a step of an order. Times are ms of the lab; what goes on ends at infinity."""

    begin_ms: float
    end_ms: float
    who: str
    order: str
    step: int
    queue_id: int
    queue_offset: int


class Book:
    """Who did which step of which order, and when. It is the application's own and outlives its processes."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def begin(self, node: Node, message: MessageExt) -> int:
        """A clerk begins with a message; the number of the line."""
        order, step = message.keys or "", int(message.properties[STEP])
        now_ms = node.world.now_us / 1_000
        self.entries.append(Entry(now_ms, inf, node.name, order, step, message.queue_id, message.queue_offset))
        return len(self.entries) - 1

    def end(self, node: Node, number: int) -> None:
        """The clerk is done with that line."""
        self.entries[number] = self.entries[number]._replace(end_ms=node.world.now_us / 1_000)

    def out_of_step(self) -> list[str]:
        """The orders of which a step was begun before the one in front of it was done, in the order of their names."""
        begun: dict[tuple[str, int], float] = {}
        done: dict[tuple[str, int], float] = {}
        for entry in self.entries:
            key = (entry.order, entry.step)
            begun[key] = min(begun.get(key, inf), entry.begin_ms)
            done[key] = min(done.get(key, inf), entry.end_ms)
        early = [key for key, at_ms in begun.items() if key[1] > 1 and at_ms < done.get((key[0], key[1] - 1), inf)]
        return sorted({order for order, _ in early}, key=_number)

    def again(self, who: str = "", *, since_ms: float = 0) -> list[Entry]:
        """The lines from then on (of one clerk, or of all) whose step of that order stood in the book already."""
        seen: set[tuple[str, int]] = set()
        found = []
        for entry in self.entries:
            key = (entry.order, entry.step)
            if key in seen and entry.begin_ms >= since_ms and who in ("", entry.who):
                found.append(entry)
            seen.add(key)
        return found

    def first(self, who: str, queues: Iterable[int], *, since_ms: float) -> Entry | None:
        """The first line from then on in which this clerk did something from one of these queues."""
        wanted = set(queues)
        return next(
            (e for e in self.entries if e.who == who and e.queue_id in wanted and e.begin_ms >= since_ms),
            None,
        )

    def took_ms(self) -> float:
        """From the begin of the first line to the end of the last one, in ms."""
        return max(entry.end_ms for entry in self.entries) - self.entries[0].begin_ms

    def bars(self, orders: Sequence[str], title: str = "Who was at which step when") -> StepBars:
        """When each step of these orders was at work, as a picture."""
        works = {
            order: [Work(e.begin_ms, e.end_ms, e.who, e.step) for e in self.entries if e.order == order]
            for order in orders
        }
        return StepBars(works, STEPS, title)


def _message(order: str, step: int) -> Message:
    return Message(TOPIC, STEPS[step - 1], keys=order, properties={STEP: str(step)})


def _number(order: str) -> int:
    return int(order.rpartition("-")[2])


class Clerk(MessageListenerOrderly):
    """An orderly listener that does one step after the other, each in `work_ms` and up to `more_ms` on top."""

    def __init__(self, node: Node, book: Book, work_ms: int, more_ms: int) -> None:
        self._node = node
        self._book = book
        self._work_ms = work_ms
        self._more_ms = more_ms

    async def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext | ConsumeConcurrentlyContext
    ) -> ConsumeOrderlyStatus:
        """Do these steps, and write each into the book."""
        for message in messages:
            line = self._book.begin(self._node, message)
            await context.sleep(self._work_ms + self._node.choose("work", self._more_ms + 1))
            self._book.end(self._node, line)
        return ConsumeOrderlyStatus.SUCCESS

    async def consume_side_by_side(
        self, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        """The same work as a concurrent listener."""
        await self.consume_message(messages, context)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


class Shop:
    """A name server, a broker with the topic Orders, a producer, and whatever clerks are called for."""

    def __init__(self, lab: Lab, producer: DefaultMQProducer) -> None:
        self.lab = lab
        self.producer = producer
        self.book = Book()
        self.clerks: dict[str, DefaultMQPushConsumer] = {}

    async def clerk(
        self,
        name: str,
        *,
        work_ms: int = 100,
        more_ms: int = 0,
        threads: int = 8,
        in_order: bool = True,
        group: str = GROUP,
    ) -> DefaultMQPushConsumer:
        """A member of the group on a machine of its own, started."""
        consumer = self.lab.consumer(
            group,
            node=name,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            consume_thread_min=threads,
            consume_thread_max=threads,
        )
        consumer.subscribe(TOPIC, "*")
        clerk = Clerk(consumer.node, self.book, work_ms, more_ms)
        consumer.register_message_listener(clerk if in_order else clerk.consume_side_by_side)
        self.clerks[name] = consumer
        await consumer.start()
        return consumer

    def take_orders(
        self,
        orders: int,
        *,
        every_ms: int = 100,
        pause_ms: int = 200,
        first: int = 0,
        selector: MessageQueueSelector | None = select_message_queue_by_hash,
    ) -> None:
        """Let an order be placed every so often; each of its steps follows within `pause_ms`, sent by `selector`.

        Without a selector the producer chooses the queues, one after the other.
        """
        node = self.producer.node

        async def life(order: str) -> None:
            for step in range(1, len(STEPS) + 1):
                await self.send(_message(order, step), selector)
                await node.sleep(1 + node.choose("pause", pause_ms))

        async def day() -> None:
            for number in range(first, first + orders):
                node.spawn(life(f"order-{number}"), f"order-{number}")
                await node.sleep(every_ms)

        node.spawn(day(), "orders")

    async def send(self, message: Message, selector: MessageQueueSelector | None) -> None:
        """Send one step, to the queue that the selector chooses for its order."""
        if selector is None:
            await self.producer.send(message)
        else:
            await self.producer.send_by_selector(message, selector, message.keys)

    async def send_steps(
        self, orders: int, steps: Iterable[int], *, selector: MessageQueueSelector = select_message_queue_by_hash
    ) -> None:
        """Send these steps, from 1 on, of so many orders: the first order's, then the second one's, and so on."""
        wanted = list(steps)
        for number in range(orders):
            for step in wanted:
                await self.send(_message(f"order-{number}", step), selector)

    async def fill(self, counts: Sequence[int]) -> None:
        """Send so many steps to each queue, all of other orders."""
        number = 0
        for queue_id, count in enumerate(counts):
            for _ in range(count):
                await self.producer.send(_message(f"order-{number}", 1), queue=MessageQueue(TOPIC, BROKER, queue_id))
                number += 1


async def open_shop(lab: Lab, *, queues: int = 4) -> Shop:
    """A shop whose producer has started, with no clerk yet and no order."""
    lab.name_server()
    lab.broker(BROKER)
    lab.create_topic(TOPIC, queues)
    producer = lab.producer("shop", node="shop")
    await producer.start()
    return Shop(lab, producer)


async def two_clerks(
    lab: Lab, *, queues: int = 4, work_ms: int = 100, joins_s: int = 9, in_order: bool = True, group: str = GROUP
) -> Shop:
    """A shop in which clerk A began alone and B has joined after a while: each has its share of the queues."""
    shop = await open_shop(lab, queues=queues)
    settings: dict[str, Any] = {"work_ms": work_ms, "in_order": in_order, "group": group}
    await shop.clerk("A", **settings)
    lab.run_for(seconds=joins_s)
    await shop.clerk("B", **settings)
    return shop


OWNER_KILLED = story("""
    QueueAllocated 4 A: Clerk A is alone, and has the broker's lock of each of the four queues.
    QueueDropped 2 A: B joins. A works out its share, and stops with two of the queues.
    QueueUnlocked 2 broker-a: A gives their locks back. Only now may somebody else have them.
    QueueAllocated 7 B: B has asked for the locks of its share, and got them.
    NodeCrashed 1 B: B is killed. The broker sees at once that its connection has ended.
    RebalanceSkipped 2 A: A wants the queues of B. The broker refuses: they are locked, and their owner is dead.
    RebalanceSkipped 50 A: Once a second A asks again. Orders pile up, and nobody may touch them.
    QueueLocked 8 broker-a: The lock was not renewed for more than 60 s. Now the broker gives it to A.
    QueueAllocated 9 A: A goes on where the reports of B have ended, half a second later.
""")


@scenario("owner-killed", seconds=80, captions=OWNER_KILLED)
async def owner_killed(
    lab: Lab, *, queues: int = 4, every_ms: int = 1_000, work_ms: int = 100, joins_s: int = 9, killed_s: int = 15
) -> None:
    """Two clerks do the steps of orders in turn; one is killed, and its locks outlive it by up to a minute."""
    shop = await two_clerks(lab, queues=queues, work_ms=work_ms, joins_s=joins_s)
    shop.take_orders(UNTIL_THE_END, every_ms=every_ms)
    lab.faults(f"at {lab.now_ms + 1_000 * killed_s:g}ms: crash B")


OWNER_WAKES = story("""
    QueueAllocated 7 B: Clerks A and B share four queues. Each has the broker's locks of its own two.
    NodeFrozen 1 B: B hangs. Its connection stands, so nobody misses it.
    ClientExpired 2 broker-a: B was silent for 120 s. The broker drops it from the group, and tells nobody.
    QueueLocked 8 broker-a: A looks at the group by itself and asks for the queues of B. Their locks are old.
    NodeThawed 1 B: B goes on, and does not know that it was away.
    QueueLockLost 1 B: It wants to renew its locks, and is refused. So it stops.
    QueueDropped 4 A: But B is a member again. A is told so, and gives the two queues back.
    QueueLockTaken 2 B: B has its locks again, and its old messages. It does once more what A has done.
""")


@scenario("owner-wakes", seconds=190, captions=OWNER_WAKES)
async def owner_wakes(
    lab: Lab,
    *,
    queues: int = 4,
    every_ms: int = 1_000,
    work_ms: int = 100,
    joins_s: int = 9,
    hangs_s: int = 25,
    wakes_s: int = 175,
) -> None:
    """Two clerks do the steps of orders in turn; one hangs until the other has its queues, and then goes on.

    `hangs_s` and `wakes_s` are counted from the moment at which it has joined.
    """
    shop = await two_clerks(lab, queues=queues, work_ms=work_ms, joins_s=joins_s)
    shop.take_orders(UNTIL_THE_END, every_ms=every_ms)
    lab.faults(f"at {lab.now_ms + 1_000 * hangs_s:g}ms: freeze B for {wakes_s - hangs_s}s")
