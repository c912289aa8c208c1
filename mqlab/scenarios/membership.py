"""The scenarios of membership: packers share the queues of Orders, and one of them joins, dies or hangs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol import Message, MessageQueue
from mqlab.scenarios.registry import scenario, story

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer
    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt

TOPIC = "Orders"
BROKER = "broker-a"
GROUP = "packers"
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


async def open_shop(lab: Lab, *, queues: int = 8, **settings: Any) -> DefaultMQProducer:
    """A name server, a broker, the topic Orders, and a producer that has started and sends nothing yet."""
    lab.name_server()
    lab.broker(BROKER, **settings)
    lab.create_topic(TOPIC, queues)
    producer = lab.producer("shop")
    await producer.start()
    return producer


def spawn_orders(producer: DefaultMQProducer, *, orders: int = 1_000_000, queues: int = 8, every_ms: int = 100) -> None:
    """Let the producer send an order every so often, to one queue after the other."""

    async def load() -> None:
        for number in range(orders):
            queue = MessageQueue(TOPIC, BROKER, number % queues)
            message = Message(TOPIC, b"order %d" % number, keys=f"order-{number}")
            # When it fails the customer goes home; the trace keeps it as SendFailed.
            with suppress(MQClientException, MQBrokerException, RemotingException):
                await type(producer).send.inside(  # type: ignore[attr-defined]  # see public_call
                    producer, message, queue=queue
                )
            if every_ms:
                await producer.node.sleep(every_ms)

    producer.node.spawn(load(), "orders")


def packer(
    lab: Lab, name: str, *, group: str = GROUP, packing_ms: float = 100, **settings: Any
) -> DefaultMQPushConsumer:
    """A member of the group on a machine of its own, which takes `packing_ms` for each order; not yet started.

    Without a setting that says otherwise a new group begins with the oldest order, and four threads work.
    """
    defaults: dict[str, Any] = {
        "consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        "consume_thread_min": 4,
        "consume_thread_max": 4,
    }
    consumer = lab.consumer(group, node=name, **(defaults | settings))
    consumer.subscribe(TOPIC, "*")

    async def pack(orders: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        await context.sleep(packing_ms)
        return SUCCESS

    consumer.register_message_listener(pack)
    return consumer


MEMBER_KILLED = story("""
    QueueAllocated 8 A: A is alone in its group, and has all eight queues.
    ConsumerGroupChanged 2 broker-a: B joins. The broker tells the members that the group has changed.
    QueueDropped 4 A: A works out its share and gives four queues up.
    QueueAllocated 12 B: B takes them, and begins where A has stopped.
    ConsumerGroupChanged 3 C: C joins, and all of them work their shares out once more.
    NodeCrashed 1 C: C is killed. Its queues belong to nobody, and wait.
    ConsumerGroupChanged 4 broker-a: The broker has seen the connection end, and tells the others.
    QueueAllocated 19 B: A and B share all eight queues again. What C had not committed comes twice.
""")


@scenario("member-killed", seconds=10, captions=MEMBER_KILLED)
async def member_killed(lab: Lab, *, queues: int = 8, every_ms: int = 100, packing_ms: int = 100) -> None:
    """A is alone, B joins, C joins, and C is killed: queues move four times."""
    producer = await open_shop(lab, queues=queues)
    spawn_orders(producer, queues=queues, every_ms=every_ms)
    for name in "ABC":
        await packer(lab, name, packing_ms=packing_ms).start()
        lab.run_for(seconds=9)
    lab.faults(f"at {lab.now_ms + 1_000:g}ms: crash C")


@scenario("member-hangs", seconds=190)
async def member_hangs(
    lab: Lab, *, queues: int = 8, every_ms: int = 100, packing_ms: int = 100, hangs_s: int = 160
) -> None:
    """Two members share the queues; one hangs until long after it was given up, and then goes on."""
    producer = await open_shop(lab, queues=queues)
    for name in "AD":
        await packer(lab, name, packing_ms=packing_ms).start()
    spawn_orders(producer, queues=queues, every_ms=every_ms)
    lab.run_for(seconds=15)
    lab.faults(f"at {lab.now_ms:g}ms: freeze D for {hangs_s}s")


NEW_GROUPS = story("""
    MessageStored 40 broker-a: Forty orders are in the topic, and no group has ever read them.
    ClientStarted 4 first: A new group comes. It wants to begin with the first order.
    ConsumeStarted 40 first: It gets all forty.
    ClientStarted 6 last: Another new group wants to begin at the end: what is there already shall not count.
    QueueAllocated 8 broker-a: It asks the broker first where the group stands. This topic is young: "at 0".
    ConsumeStarted 80 last: So it gets all forty, too, and its setting was never looked at.
    ClientStopped 1 last: It goes home. More orders come while nobody of the group is there.
    ConsumeStarted 104 last-again: The same program comes back, and goes on where the group was: the broker knows.
""")


@scenario("new-groups", seconds=8, captions=NEW_GROUPS)
async def new_groups(lab: Lab, *, queues: int = 4, orders: int = 40, more: int = 12) -> None:
    """Two new groups begin with a topic that has orders in it, and one of them goes home and comes back."""
    producer = await open_shop(lab, queues=queues)
    spawn_orders(producer, orders=orders, queues=queues, every_ms=0)
    lab.run_for(seconds=1)
    await packer(lab, "first", group="first", packing_ms=20).start()
    lab.run_for(seconds=6)
    last = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    settings: dict[str, Any] = {"group": "last", "packing_ms": 20, "consume_from_where": last}
    evening = packer(lab, "last", **settings)
    await evening.start()
    lab.run_for(seconds=6)
    await evening.shutdown()
    spawn_orders(producer, orders=more, queues=queues, every_ms=0)
    lab.run_for(seconds=1)
    await packer(lab, "last-again", **settings).start()
