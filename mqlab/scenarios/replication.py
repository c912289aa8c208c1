"""The scenarios of a master and its slave: what two copies cost, and what they are good for."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mqlab.scenarios import registry
from mqlab.scenarios.numbered import TOPIC, reader, spawn_sending
from mqlab.scenarios.pushing import new_reader
from mqlab.scenarios.registry import scenario, story
from mqlab.scenarios.words import Flush

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer
    from mqlab.lab import Lab
    from mqlab.lab.processes import BrokerProcess
    from mqlab.protocol.message import MessageExt

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
    goals=("slave-answers-in-time", "slave-answers-too-late"),
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


ACCIDENT = story("""
    ReplicationBegun 1 broker-a: A slave follows the master: it is sent each byte of the commit log, and stores it, too.
    SendSucceeded 3 producer-1: A shop sends orders. The master answers when an order is in its memory: striped.
    ReplicaDataSent 2 broker-a: Ten times a second it looks whether its log has grown, and sends the slave what is new.
    ReplicaAcked 3 broker-a: The slave says what it has. What is underlined now is on two machines.
    CommitLogFlushed 3 broker-a: Twice a second the log is written to the disk. The slave is nearer than the disk.
    PowerLost 1 broker-a: The power is cut. Some orders were answered, and are on no disk and on no slave.
    StoreRecovered 3 broker-a: The master is back, with what its disk has, and goes on behind that.
    ReplicationBegun 2 slave-a: The slave kept more. It is sent what lies behind its own end, and what is before stays.
""")


async def open_pair(
    lab: Lab,
    *,
    flush: Flush = "ASYNC_FLUSH",
    replication: Replication = "ASYNC_MASTER",
    wait_ms: int = 5_000,
    **broker: Any,
) -> DefaultMQProducer:
    """A master whose slave follows it, a topic with one queue, and a producer that does not try again.

    A SYNC_MASTER answers when two brokers have a message, if `broker`, further settings of it, does not say otherwise.
    """
    settings = {"in_sync_replicas": 2 if replication == "SYNC_MASTER" else 1, **broker}
    lab.name_server()
    lab.broker("broker-a", flush_disk_type=flush, broker_role=replication, **settings)
    lab.broker(slave_of="broker-a")
    lab.create_topic(TOPIC, 1)
    lab.run_for(seconds=CONNECTED_S)
    producer = lab.producer("shop", send_msg_timeout=wait_ms, retry_times_when_send_failed=0)
    await producer.start()
    return producer


@scenario("accident", seconds=15, captions=ACCIDENT)
async def accident(
    lab: Lab,
    *,
    flush: Flush = "ASYNC_FLUSH",
    replication: Replication = "ASYNC_MASTER",
    what: Accident = "power off",
    messages: int = 200,
    every_ms: int = 10,
    size: int = 1_000,
    after_ms: int = 1_000,
) -> None:
    """A shop sends to a master with a slave, and after a while one of four accidents happens to the master."""
    producer = await open_pair(lab, flush=flush, replication=replication)
    spawn_sending(producer, messages=messages, every_ms=every_ms, size=size)
    lab.faults(f"at {lab.now_ms + after_ms:g}ms: {ACCIDENTS[what]}")


Where = Literal["both", "master", "slave", "nobody"]
"""Which brokers have a message."""


class Aftermath(NamedTuple):
    """One setting and one accident: of so many messages that were answered SEND_OK, so many are gone afterwards."""

    flush: Flush
    replication: Replication
    what: Accident
    acknowledged: int
    lost: int
    on_slave_only: int
    """Messages that are there, but not on the master, which producers and consumers ask as soon as it is back."""
    less_safe: int
    """Messages whose answer said that they are stored, and not as safely as asked for."""
    places: tuple[Where, ...]
    """Where each message is that was answered SEND_OK, in the order of the answers."""


def messages_on(broker: BrokerProcess) -> list[MessageExt]:
    """The messages in the queue of the topic, as this broker has it; none of one that is down."""
    if not broker.is_up():
        return []
    store = broker.store
    offsets = range(max(0, store.get_min_offset_in_queue(TOPIC, 0)), store.get_max_offset_in_queue(TOPIC, 0))
    places = [store.get_commit_log_offset_in_queue(TOPIC, 0, offset) for offset in offsets]
    return [message for message in map(store.look_message_by_offset, places) if message is not None]


def keys_on(broker: BrokerProcess) -> list[str]:
    """The unique keys of the messages in the queue of the topic, as this broker has it; none of one that is down."""
    return [message.properties.get("UNIQ_KEY", "") for message in messages_on(broker)]


class Standing(NamedTuple):
    """How far a pair is, in bytes of the master's commit log, and how many messages that is behind its end."""

    end: int
    flushed: int
    copied: int
    """Up to where the slave has told its master that it has the log."""
    messages_not_flushed: int
    messages_not_copied: int


def standing(lab: Lab, master: str = "broker-a") -> Standing:
    """How far a pair is that has never stood still, as its history tells it."""
    records = [(r.commit_log_offset, r.store_size) for r in lab.history.find("MessageStored", node=master)]
    ends = [offset + size for offset, size in records]
    flush, report = lab.history.last("CommitLogFlushed", node=master), lab.history.last("ReplicaAcked", node=master)
    flushed, copied = flush.flushed_where if flush else 0, report.ack_offset if report else 0
    behind = [sum(end > there for end in ends) for there in (flushed, copied)]
    return Standing(ends[-1] if ends else 0, flushed, copied, *behind)


def aftermath(
    flush: Flush, replication: Replication, what: Accident, seed: int | str = 0, **parameters: Any
) -> Aftermath:
    """Play one accident, and look which acknowledged messages can be read from who is there."""
    chosen = {"flush": flush, "replication": replication, "what": what}
    lab = registry.get("accident").play(seed, parameters={**chosen, **parameters})
    answers: dict[str, str] = {r.msg_id: r.send_status for r in lab.history.find("SendSucceeded")}
    master, slave = (set(keys_on(broker)) for broker in lab.brokers)
    names: dict[tuple[bool, bool], Where] = {
        (True, True): "both", (True, False): "master", (False, True): "slave", (False, False): "nobody",
    }  # fmt: skip
    acknowledged = [msg_id for msg_id, status in answers.items() if status == "SEND_OK"]
    places = tuple(names[msg_id in master, msg_id in slave] for msg_id in acknowledged)
    less_safe = len(answers) - len(acknowledged)
    lost, saved = places.count("nobody"), places.count("slave")
    return Aftermath(flush, replication, what, len(acknowledged), lost, saved, less_safe, places)


def sixteen_worlds(seed: int | str = 0, **parameters: Any) -> list[Aftermath]:
    """Four settings times four accidents; `parameters` are further ones of the scenario `accident`."""
    settings: product[tuple[Flush, Replication]] = product(
        ("ASYNC_FLUSH", "SYNC_FLUSH"), ("ASYNC_MASTER", "SYNC_MASTER")
    )
    return [
        aftermath(flush, replication, what, seed, **parameters)
        for flush, replication in settings
        for what in ACCIDENTS
    ]
