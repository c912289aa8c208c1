"""Brokers beside themselves: a synchronous master beside an asynchronous one, a broker with 100,000 half messages
beside one with none, and a pair that nobody uses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

from benchmarks.harness import Figure, figure, operations_per_second, seconds_of
from benchmarks.messages import SENDERS, TOPIC, Flow
from benchmarks.peers import BODY, MESSAGES
from mqlab import Lab, Message
from mqlab.client import DefaultMQProducer
from mqlab.protocol.message import MessageConst
from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC
from mqlab.store import MessageExtBrokerInner

HALF_MESSAGES = 100_000
SENDS, SENDS_AT_ONCE = 4_000, 500
ROUNDS_S, ROUNDS = 300, 7
"""A broker looks at its half messages every 30 s: ten times while one measurement lasts."""
HOUR_MS = 3_600_000


# -- replication -------------------------------------------------------------------------------------------------------


class Pair(Flow):
    """The same lab, whose broker has a slave that has connected."""

    def __init__(self, role: str) -> None:
        super().__init__(broker_role=role, in_sync_replicas=2)
        self.lab.broker(slave_of="broker-a")
        self.lab.run_for(seconds=20)


def _sent_to(role: str) -> Callable[[], int]:
    pair = Pair(role)

    def run() -> int:
        for done in pair.start_senders(SENDERS):
            pair.lab.world.wait_for(done)
        pair.lab.run_for(seconds=1)
        ends = {broker.running().message_store.max_phy_offset for broker in pair.lab.brokers}
        assert len(ends) == 1, "the slave has all"
        return MESSAGES

    return run


def sync_against_async() -> Figure:
    """1 KB messages a second to a master that waits for its slave, against one that does not; both until the slave has
    them.
    """
    rates = operations_per_second({role: partial(_sent_to, role) for role in ("SYNC_MASTER", "ASYNC_MASTER")})
    return figure(
        "sync replication / async replication", rates["SYNC_MASTER"], "messages/s", versus=rates["ASYNC_MASTER"],
        aim=0.5, better="higher",
    )  # fmt: skip


# -- half messages -----------------------------------------------------------------------------------------------------


class Bank:
    """A broker with so many half messages that wait for their end, and a producer of plain messages."""

    def __init__(self, half_messages: int) -> None:
        self.lab = Lab(seed=1, history=False)
        self.lab.name_server()
        broker = self.lab.broker("broker-a", transaction_time_out=HOUR_MS).running()
        self.lab.create_topic(TOPIC, 4)
        self.producer: DefaultMQProducer = self.lab.producer("orders")
        self.lab.run(self.producer.start())
        self.lab.run(self.producer.send(Message(TOPIC, BODY)))
        # The parts of transactions come with the first of them, also where there are no more.
        for number in range(half_messages + 1):
            broker.prepare_message(self._half_message(number))
            if not number % 1_000:
                self.lab.run_for(ms=2)
        self.lab.run_for(seconds=60)
        store = broker.message_store
        assert store.get_max_offset_in_queue(RMQ_SYS_TRANS_HALF_TOPIC, 0) == half_messages + 1

    def _half_message(self, number: int) -> MessageExtBrokerInner:
        properties = {
            MessageConst.PRODUCER_GROUP: "bank", MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX: f"{number:032X}",
            MessageConst.TRANSACTION_PREPARED: "true",
        }  # fmt: skip
        now_ms = self.lab.brokers[0].node.now_ms()
        return MessageExtBrokerInner(TOPIC, BODY, 0, 0, 4, properties, None, now_ms, "10.0.0.9:40000", "10.0.0.2:10911")

    def sends_us(self) -> float:
        """What a plain message costs, us: sent, stored and acknowledged."""
        return seconds_of(self._send) / SENDS_AT_ONCE * 1e6

    def rounds_ms(self) -> float:
        """What ten looks at the half messages cost with all else that a broker does in five minutes, ms."""
        return seconds_of(lambda: self.lab.run_for(seconds=ROUNDS_S)) * 1e3

    def _send(self) -> None:
        for _ in range(SENDS_AT_ONCE):
            self.lab.run(self.producer.send(Message(TOPIC, BODY)))


def half_messages() -> list[Figure]:
    """What sends and looks cost while 100,000 half messages wait, against what they cost while one does."""
    many, one = Bank(HALF_MESSAGES), Bank(0)
    sends: dict[Bank, list[float]] = {many: [], one: []}
    rounds: dict[Bank, list[float]] = {many: [], one: []}
    for _ in range(SENDS // SENDS_AT_ONCE):
        for bank, times in sends.items():
            times.append(bank.sends_us())
    for _ in range(ROUNDS):
        for bank, times in rounds.items():
            times.append(bank.rounds_ms())
    return [
        figure(
            "a send while 10^5 half messages wait / one", median(sends[many]), "us", versus=median(sends[one]),
            aim=1.2, better="lower",
        ),
        figure(
            "ten check rounds, 10^5 half messages / one", median(rounds[many]), "ms", versus=median(rounds[one]),
            aim=1.5, better="lower",
        ),
    ]  # fmt: skip


# -- a pair that nobody uses -------------------------------------------------------------------------------------------


def idle_pair() -> Figure:
    """The slices of a virtual minute in which nobody uses a master, its slave and their name server."""
    lab = Lab(seed=1, history=False)
    lab.name_server()
    lab.broker("broker-a", broker_role="SYNC_MASTER", in_sync_replicas=2)
    lab.broker(slave_of="broker-a")
    lab.create_topic(TOPIC, 4)
    lab.run_for(seconds=180)
    before = lab.world.slice_no
    lab.run_for(seconds=60)
    return figure("idle pair of brokers", lab.world.slice_no - before, "slices/minute", aim=800, better="lower")
