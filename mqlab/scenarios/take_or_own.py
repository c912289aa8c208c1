"""Owning and taking side by side: two groups get the same orders, one by push and the other by Pop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer
from mqlab.scenarios import registry
from mqlab.scenarios.membership import SUCCESS, TOPIC, open_shop, packer, spawn_orders
from mqlab.scenarios.registry import scenario, story

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer
    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt

TAKES: dict[str, Any] = {
    "client_rebalance": False,
    "consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
}
"""The settings with which a consumer pops, where its broker says so, from the oldest message on."""
OWNERS, TAKERS = "owners", "takers"
SETTLED_S = 25
"""After so long a group that began together has its queues, those of its retry topic included."""


def owner(lab: Lab, name: str, *, packing_ms: float = 100, **settings: Any) -> DefaultMQPushConsumer:
    """A member of the group that shares the queues out: what is in a queue is for its owner; not yet started."""
    return packer(lab, name, group=OWNERS, packing_ms=packing_ms, **settings)


def taker(lab: Lab, name: str, *, packing_ms: float = 100, **settings: Any) -> DefaultMQPushConsumer:
    """A member of the group that pops: it takes orders from any queue, for a while; not yet started."""
    return packer(lab, name, group=TAKERS, packing_ms=packing_ms, client_rebalance=False, **settings)


async def open_both(lab: Lab, *, queues: int) -> DefaultMQProducer:
    """A shop whose broker lets the group `takers` pop."""
    producer = await open_shop(lab, queues=queues)
    lab.set_message_request_mode(TOPIC, TAKERS, "POP")
    return producer


TAKE_OR_OWN = story("""
    QueueAllocated 1 push-1: The members of one group share the queues out: each owns some, and pulls those alone.
    PopAssigned 1 pop-1: The members of the other group own nothing: each asks for orders of any queue.
    MessagePopped 1 broker-a: The broker hands an order out, and hides it from the rest of the group for a while.
    AckReceived 1 broker-a: The taker is done, and acknowledges this one order.
    NodeFrozen 1 push-1: A member of the first group hangs. Its queues stay its own, and nobody packs what is in them.
    NodeFrozen 2 pop-1: A member of the second group hangs, too. The others take what it does not.
    MessageRevived 1 broker-a: The order that it had taken was not acknowledged in time, so the broker brings it back.
""")


@scenario("take-or-own", seconds=40, captions=TAKE_OR_OWN)
async def take_or_own(
    lab: Lab,
    *,
    members: int = 3,
    queues: int = 6,
    every_ms: int = 100,
    packing_ms: int = 50,
    invisible_s: int = 10,
    joins_s: float = 0,
    faults: str = "at 30s: freeze push-1; at 30s: freeze pop-1",
) -> None:
    """Two groups of three get the same orders, one by push and one by Pop; a member of each hangs.

    With `joins_s` one more joins each group so many seconds after the first order.
    """
    producer = await open_both(lab, queues=queues)
    for number in range(1, members + 1):
        await owner(lab, f"push-{number}", packing_ms=packing_ms).start()
        await taker(lab, f"pop-{number}", packing_ms=packing_ms, pop_invisible_time=1_000 * invisible_s).start()
    lab.run_for(seconds=SETTLED_S)
    spawn_orders(producer, queues=queues, every_ms=every_ms)
    if faults:
        lab.faults(faults.replace("; ", "\n"))
    if joins_s:
        lab.run_for(seconds=joins_s)
        await owner(lab, f"push-{members + 1}", packing_ms=packing_ms).start()
        await taker(lab, f"pop-{members + 1}", packing_ms=packing_ms, pop_invisible_time=1_000 * invisible_s).start()


class Act(NamedTuple):
    """What the two groups are compared in: the world, where it is best begun to be watched (ms), at which pace (seconds
    of the world per second), and what there is to be seen. The world stands where the most is to be seen.
    """

    title: str
    look_at: str
    lab: Lab
    begins_ms: float
    pace: float


def three_acts(seed: int | str = 0) -> list[Act]:
    """A member hangs; there are more members than queues; a member joins."""
    hangs = _played(seed, 37, packing_ms=150)
    nine = _played(seed, 33, members=9, queues=8, every_ms=60, packing_ms=700, faults="")
    joins = _played(seed, 29.9, members=2, queues=8, every_ms=25, packing_ms=60, joins_s=4, faults="")
    return [
        Act(
            "A member hangs",
            "push-1 and pop-1 hang at 30 s. With push, the queues of push-1 fill up, and the bars get lower: a third "
            "of the orders waits. With Pop, only what pop-1 had in its hands waits, until its time is over.",
            hangs, 28_000, 2,
        ),
        Act(
            "Nine members, eight queues",
            "Nine members in each group, and eight queues. With push, one member owns no queue, and stays idle "
            "however many orders come. With Pop, all nine work.",
            nine, 25_000, 1,
        ),
        Act(
            "A member joins",
            "push-3 and pop-3 join at 29 s. With push, queues change their owner: for a second and a half nobody "
            "pulls them, and their orders pile up. With Pop nothing moves, so nothing stops.",
            joins, 27_500, 1,
        ),
    ]  # fmt: skip


def _played(seed: int | str, until_s: float, **parameters: Any) -> Lab:
    lab = registry.get("take-or-own").build(seed, parameters=parameters)
    return lab.run_for(ms=until_s * 1_000 - lab.now_ms)


@scenario("one-taken", seconds=60)
async def one_taken(
    lab: Lab,
    *,
    invisible_s: int = 20,
    packing_ms: int = 3_600_000,
    refusals: int = 0,
    others_every_ms: int = 0,
    queues: int = 4,
) -> None:
    """One order is taken, and its taker needs too long for it; others may be sent meanwhile, which are packed at once.

    The first order takes `packing_ms` at its first time, and no time when it comes again; with `refusals` the taker
    says so many times that it wants it later.
    """
    producer = await open_both(lab, queues=queues)
    consumer = lab.consumer(TAKERS, node="pop-1", **TAKES, pop_invisible_time=1_000 * invisible_s)
    consumer.subscribe(TOPIC, "*")

    async def pack(orders: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        if orders[0].body == b"order 0":
            if orders[0].reconsume_times < refusals:
                # Not in the millisecond of the pop: then the ack of the old check point would settle the new one, too,
                # since they differ in nothing else than the time of the pop.
                await context.sleep(20)
                return ConsumeConcurrentlyStatus.RECONSUME_LATER
            if not orders[0].reconsume_times:
                await context.sleep(packing_ms)
        return SUCCESS

    consumer.register_message_listener(pack)
    await consumer.start()
    lab.run_for(seconds=SETTLED_S)
    spawn_orders(producer, orders=10**6 if others_every_ms else 1, queues=queues, every_ms=others_every_ms)
