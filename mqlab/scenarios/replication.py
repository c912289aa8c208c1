"""The scenario of a master and its slave: what two copies cost, and what they are good for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.scenarios.numbered import TOPIC, reader, spawn_sending
from mqlab.scenarios.pushing import new_reader
from mqlab.scenarios.registry import scenario, story

if TYPE_CHECKING:
    from mqlab.lab import Lab

TABLES_MS = 65_000
"""When a slave knows its master's topics: it fetches them for the first time 61 to 64 s after its start."""

OF_A_PAIR = ("crash", "freeze", "cut", "power_off")

SYNC_REPLICATION = story("""
    ReplicationBegun 1 slave-a: A slave has connected to its master, which sends it the commit log from now on.
    ReplicaPutWaiting 1 broker-a: An order is stored, and its producer is not answered yet: two brokers shall have it.
    ReplicaPutAnswered 1 broker-a: The slave has told its master that it has the order, too. That is the answer.
    NodeFrozen 1 slave-a: The slave hangs. Each answer takes three seconds now, and says FLUSH_SLAVE_TIMEOUT.
    NodeThawed 1 slave-a: The slave goes on, and is up to date with the next look at its connection.
    MasterDisconnected 1 slave-a: The master is killed. What it answered SEND_OK for, the slave has.
    RouteUpdated 4 consumer-1: The consumer learns it with the next route, and reads on from the slave.
    MasterConnected 2 slave-a: The master is back with the log that it had, and the slave follows it again.
""")


@scenario(
    "sync-replication",
    seconds=110,
    faults=OF_A_PAIR,
    captions=SYNC_REPLICATION,
    explored_with={"slave_hangs_s": 0, "master_down_s": 0},
)
async def sync_replication(
    lab: Lab,
    *,
    messages: int = 120,
    every_ms: int = 300,
    in_sync_replicas: int = 2,
    slave_read: bool = True,
    slave_hangs_s: int = 8,
    master_down_s: int = 45,
) -> None:
    """A synchronous master has a slave, which hangs for a while; then the master dies, and consumers read the copy."""
    lab.name_server()
    lab.broker("broker-a", broker_role="SYNC_MASTER", in_sync_replicas=in_sync_replicas, slave_read_enable=slave_read)
    lab.broker(slave_of="broker-a")
    lab.create_topic(TOPIC, 2)
    lab.run_for(ms=TABLES_MS)
    producer = lab.producer("shop", send_msg_timeout=10_000)
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms)
    consumer = new_reader(lab)
    consumer.register_message_listener(reader(consumer, 1_000))
    await consumer.start()
    if slave_hangs_s:
        lab.faults(f"at {lab.now_ms + 5_000:g}ms: freeze slave-a for {slave_hangs_s}s")
    if master_down_s:
        lab.faults(f"at {lab.now_ms + 25_000:g}ms: crash broker-a for {master_down_s}s")
