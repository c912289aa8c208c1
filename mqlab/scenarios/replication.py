"""The scenarios of a master and its slave: what two copies cost, and what they are good for."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Literal, NamedTuple

from mqlab.scenarios import registry
from mqlab.scenarios.numbered import TOPIC, reader, spawn_sending
from mqlab.scenarios.pushing import new_reader
from mqlab.scenarios.registry import scenario, story
from mqlab.scenarios.words import Flush

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


Replication = Literal["ASYNC_MASTER", "SYNC_MASTER"]
"""brokerRole: whether a master answers before or after its slave has a message."""
Accident = Literal["process killed", "power off", "disk lost", "network cut"]
ACCIDENTS: dict[Accident, str] = {
    "process killed": "crash broker-a for 3s",
    "power off": "power_off broker-a for 3s",
    "disk lost": "power_off broker-a",
    "network cut": "partition broker-a | slave-a for 5s",
}
"""What happens to the master; one whose disk is lost does not come back, and the slave is all that there is."""

CONNECTED_S = 8
"""By then a slave that began with the world follows its master."""


@scenario("accident", seconds=15)
async def accident(
    lab: Lab,
    *,
    flush: Flush = "ASYNC_FLUSH",
    replication: Replication = "ASYNC_MASTER",
    what: Accident = "power off",
    messages: int = 200,
    every_ms: int = 10,
    size: int = 1_000,
) -> None:
    """A shop sends to a master with a slave, and after a second one of four accidents happens to the master."""
    copies = 2 if replication == "SYNC_MASTER" else 1
    lab.name_server()
    lab.broker("broker-a", flush_disk_type=flush, broker_role=replication, in_sync_replicas=copies)
    lab.broker(slave_of="broker-a")
    lab.create_topic(TOPIC, 1)
    lab.run_for(seconds=CONNECTED_S)
    producer = lab.producer("shop", send_msg_timeout=5_000, retry_times_when_send_failed=0)
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms, size=size)
    lab.faults(f"at {lab.now_ms + 1_000:g}ms: {ACCIDENTS[what]}")


class Aftermath(NamedTuple):
    """One setting and one accident: of so many messages that were answered SEND_OK, so many are gone afterwards."""

    flush: Flush
    replication: Replication
    what: Accident
    acknowledged: int
    lost: int
    less_safe: int
    """Messages whose answer said that they are stored, and not as safely as asked for."""


def aftermath(flush: Flush, replication: Replication, what: Accident, seed: int | str = 0) -> Aftermath:
    """Play one accident, and look which acknowledged messages can be read from who is there."""
    lab = registry.get("accident").play(seed, parameters={"flush": flush, "replication": replication, "what": what})
    answers: dict[str, str] = {r.msg_id: r.send_status for r in lab.history.find("SendSucceeded")}
    there = set()
    for broker in lab.brokers:
        if broker.is_up():
            store = broker.running().message_store
            for offset in range(store.get_max_offset_in_queue(TOPIC, 0)):
                message = store.look_message_by_offset(store.get_commit_log_offset_in_queue(TOPIC, 0, offset))
                if message is not None:
                    there.add(message.properties.get("UNIQ_KEY", ""))
    acknowledged = [msg_id for msg_id, status in answers.items() if status == "SEND_OK"]
    lost = sum(msg_id not in there for msg_id in acknowledged)
    return Aftermath(flush, replication, what, len(acknowledged), lost, len(answers) - len(acknowledged))


def sixteen_worlds(seed: int | str = 0) -> list[Aftermath]:
    """Four settings times four accidents."""
    settings: product[tuple[Flush, Replication]] = product(
        ("ASYNC_FLUSH", "SYNC_FLUSH"), ("ASYNC_MASTER", "SYNC_MASTER")
    )
    return [aftermath(flush, replication, what, seed) for flush, replication in settings for what in ACCIDENTS]
