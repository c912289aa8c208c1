"""The scenario of reading from a slave: who is sent there, who may go there, and what is forgotten afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mqlab.client import ConsumeFromWhere, DefaultMQPushConsumer
from mqlab.scenarios.hardships import Slowly, shut_down
from mqlab.scenarios.numbered import TOPIC, reader, spawn_sending
from mqlab.scenarios.registry import scenario, story
from mqlab.scenarios.replication import OF_A_PAIR, TABLES_MS
from mqlab.sim import LinkSpec

if TYPE_CHECKING:
    from mqlab.lab import Lab

SMALL_MEMORY_BYTES = 100_000
"""Of this a master takes 40 % to hold the newest messages: about 40 of 1,000 bytes."""
BACKLOG_EVERY_MS = 20
KILLED_MS = 20_000
POPPED_TO = "popped-to"
IN_ORDER_MS = 800
"""The most that the orderly reader takes for a message: it is still at the backlog when the master goes."""

Away = Literal["killed", "shut down"]
"""How the master leaves."""

SLAVE_READS = story("""
    MasterConnected 1 slave-a: A slave follows its master's log. Its tables, topics too, it fetches once a minute.
    PullAnswered 1 broker-a: Groups begin far back, where the master's memory ends. Its answer says: ask the slave.
    PullAnswered 3 slave-a: The slave answers the next pull, and sends the reader back. So it goes to and fro.
    NodeCrashed 1 broker-a: The master is killed. All that it has answered for lies at the slave, too.
    PullPutOff 1 consumer-1: Every pull fails until the next look at the routes. Then only the slave is left to ask.
    SlaveSynchronizeFailed 5 slave-a: By now readers ask the slave, and write there how far they are. It takes no order.
    MasterConnected 2 slave-a: The master is back. Who pops, and who needs locks, has stood still: nobody asks a slave.
    QueueLocked 3 broker-a: Locks are given anew. How far readers came at the slave they tell the master themselves.
""")


@scenario(
    "slave-reads",
    seconds=150,
    faults=OF_A_PAIR,
    captions=SLAVE_READS,
    explored_with={"away": "shut down", "away_s": 45, "backlog": 100, "messages": 60, "distance_ms": 20},
    goals=("slave-is-read", "master-is-read-again"),
)
async def slave_reads(
    lab: Lab,
    *,
    backlog: int = 160,
    messages: int = 120,
    every_ms: int = 800,
    size: int = 700,
    away: Away = "killed",
    away_s: int = 60,
    memory_bytes: int = SMALL_MEMORY_BYTES,
    distance_ms: int = 5,
) -> None:
    """Consumers read from a slave while the master is slow or away: one in parallel, one in order, one that pops.

    The way from them to the brokers takes `distance_ms`. Who is further than a slave asks it without a pause while the
    master is away, so this says how often.
    """
    lab.name_server()
    # A slave that does not lag has readers who are no further than it is.
    master = lab.broker("broker-a", slave_read_enable=True, broker_role="SYNC_MASTER", in_sync_replicas=2)
    slave = lab.broker(slave_of="broker-a")
    for broker in (master, slave):
        broker.node.spec = broker.node.spec._replace(memory_bytes=memory_bytes)
    lab.create_topic(TOPIC, 2)
    lab.set_message_request_mode(TOPIC, POPPED_TO, "POP")
    producer = lab.producer("shop", send_msg_timeout=10_000)
    await producer.start()
    spawn_sending(producer, messages=backlog, every_ms=BACKLOG_EVERY_MS, size=size)
    lab.run_for(ms=TABLES_MS)
    spawn_sending(producer, messages=messages, every_ms=every_ms, size=size)
    for name in ("readers", POPPED_TO, "in-order"):
        consumer = _consumer(lab, name)
        for broker in (master, slave):
            lab.link(consumer.node.name, broker.name, LinkSpec(distance_ms * 1_000, distance_ms * 1_000 + 200))
        if name == "in-order":
            consumer.register_message_listener(Slowly(consumer, IN_ORDER_MS))
        else:
            consumer.register_message_listener(reader(consumer, 1_000))
        await consumer.start()
    if away_s and away == "killed":
        lab.faults(f"at {lab.now_ms + KILLED_MS:g}ms: crash broker-a for {away_s}s")
    elif away_s:
        begin_ms = 10_000 + lab.world.choose("the master stops", 25_000)
        master.node.spawn(shut_down(master, begin_ms), "maintenance")
        lab.faults(f"at {lab.now_ms + begin_ms + away_s * 1_000:g}ms: restart broker-a")


def _consumer(lab: Lab, group: str) -> DefaultMQPushConsumer:
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    consumer = lab.consumer(
        group, consume_from_where=first, consume_thread_min=4, consume_thread_max=4,
        client_rebalance=group != POPPED_TO,
    )  # fmt: skip
    consumer.subscribe(TOPIC, "*")
    return consumer
