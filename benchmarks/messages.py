"""Messages of 1 KB, sent and consumed: against fakeredis streams, and against a bare encode-and-append loop.

Both ways of working are measured apart: a backlog (all are sent, then all are consumed) and live delivery (a consumer
waits while they are sent). A message counts once it has been sent, stored, delivered and acknowledged.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from benchmarks import peers
from benchmarks.counts import per_message
from benchmarks.harness import Figure, beside, figure, operations_per_second
from benchmarks.peers import BODY, MESSAGES
from mqlab import Lab, Message
from mqlab.client import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    DefaultMQProducer,
    DefaultMQPushConsumer,
    MessageExt,
)
from mqlab.sim import Future
from mqlab.trace.bus import Row

TOPIC = "TopicBench"
APPENDS = 30_000
BORN_MS = 1_767_225_600_000
SENDERS = 16

_inside_send = DefaultMQProducer.send.inside  # type: ignore[attr-defined]  # see public_call


class Flow:
    """A lab with a name server, a broker, a producer and a counting consumer, hooks off."""

    def __init__(self, **settings: Any) -> None:
        self.lab = Lab(seed=1, history=False)
        self.lab.name_server()
        self.lab.broker("broker-a", **settings)
        self.lab.create_topic(TOPIC, 4)
        self.producer: DefaultMQProducer = self.lab.producer("orders")
        self.lab.run(self.producer.start())
        self.consumer: DefaultMQPushConsumer = self.lab.consumer("readers")
        self.consumer.subscribe(TOPIC, "*")
        self.consumer.register_message_listener(self._listen)
        self._missing = 0
        self._all_there: Future[None] = Future()

    def _listen(self, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        self._missing -= len(messages)
        if not self._missing:
            self._all_there.set_result(None)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def start_consumer(self) -> None:
        """Start the consumer and let its first pulls be held."""
        self.lab.run(self.consumer.start())
        self.lab.run_for(seconds=1)

    def expect(self, count: int) -> None:
        """Begin to count deliveries."""
        self._missing = count
        self._all_there = Future("the last message")

    async def _load(self, count: int) -> None:
        for _ in range(count):
            await _inside_send(self.producer, Message(TOPIC, BODY))

    def start_senders(self, senders: int, messages: int = MESSAGES) -> list[Future[None]]:
        """Let messages be sent by several tasks, each waiting for one answer before it sends the next."""
        node = self.producer.node
        return [node.spawn(self._load(messages // senders), "load").join() for _ in range(senders)]

    def send_all(self, messages: int) -> None:
        """Send that many messages and wait until the last is stored."""
        for done in self.start_senders(SENDERS, messages):
            self.lab.world.wait_for(done)

    def wait_for_all(self) -> None:
        """Play until all that is expected has been consumed."""
        self.lab.world.wait_for(self._all_there)


def backlog_of_mqlab(messages: int = MESSAGES) -> Callable[[], int]:
    """Send all, then start the consumer and let it work the backlog off."""
    flow = Flow()
    flow.expect(messages)

    def run() -> int:
        flow.send_all(messages)
        flow.lab.run(flow.consumer.start())
        flow.wait_for_all()
        return messages

    return run


def live_of_mqlab(senders: int = SENDERS) -> Callable[[], int]:
    """Send to a consumer whose pulls are held."""
    flow = Flow()
    flow.start_consumer()
    flow.expect(MESSAGES)

    def run() -> int:
        flow.start_senders(senders)
        flow.wait_for_all()
        return MESSAGES

    return run


def live_of_mqlab_one_by_one() -> Callable[[], int]:
    """One sender, so that nearly each message wakes a held pull of its own."""
    return live_of_mqlab(senders=1)


def events() -> list[Row]:
    """The events of live delivery, ready to be recorded."""
    flow = Flow()
    flow.start_consumer()
    flow.expect(MESSAGES)
    rows: list[Row] = []
    flow.lab.world.hooks.attach(rows.append)
    flow.start_senders(SENDERS)
    flow.wait_for_all()
    return rows


_HEAD = struct.Struct(">iiIiiqqiq4siq4siiqi")


def bare_appends() -> Callable[[], int]:
    """What no broker can do without: encode each message in the commit log's layout and append it to a log."""
    topic, host = TOPIC.encode(), b"\x0a\x00\x00\x01"
    properties = b"UNIQ_KEY\x017F000001000114AE5A5A0000000000000\x02WAIT\x01true"
    log = bytearray()

    def run() -> int:
        pack = _HEAD.pack
        size = _HEAD.size + len(BODY) + 1 + len(topic) + 2 + len(properties)
        topic_length, properties_length = bytes((len(topic),)), len(properties).to_bytes(2, "big")
        for number in range(APPENDS):
            head = pack(
                size, -626843481, zlib.crc32(BODY), 0, 0, number, len(log), 0, BORN_MS,
                host, 40_000, BORN_MS, host, 10_911, 0, 0, len(BODY),
            )  # fmt: skip
            log.extend(b"".join((head, BODY, topic_length, topic, properties_length, properties)))
        return APPENDS

    return run


@cache
def _rates() -> dict[str, float]:
    return operations_per_second(
        {
            "backlog": backlog_of_mqlab,
            "fakeredis backlog": peers.backlog_of_fakeredis,
            "live": live_of_mqlab,
            "live, one sender": live_of_mqlab_one_by_one,
            "fakeredis one by one": peers.fakeredis_one_by_one,
            "bare": bare_appends,
            "fakeredis, pipelined": peers.pipelined_backlog_of_fakeredis,
            "kombu, declare": partial(peers.backlog_of_kombu, True),
            "kombu": partial(peers.backlog_of_kombu, False),
            "persist-queue in memory": peers.persist_queue_in_memory,
            "persist-queue on file": peers.persist_queue_on_file,
            "dramatiq's stub": peers.dramatiq_stub,
        }
    )


def _against(name: str, mqlab: str, other: str, aim: float) -> Figure:
    rates = _rates()
    return figure(name, rates[mqlab], "messages/s", versus=rates[other], aim=aim, better="higher")


def against_fakeredis() -> list[Figure]:
    """1 KB send + push consume against XADD + XREADGROUP + XACK, in batches of 32 and one at a time."""
    return [
        _against("1 KB send + consume, backlog / fakeredis by 32", "backlog", "fakeredis backlog", 1.1),
        _against("1 KB send + consume, one by one / fakeredis", "live, one sender", "fakeredis one by one", 1.5),
    ]


def beside_others() -> list[Figure]:
    """The same backlog beside queues that do less, or that are no peers: without an aim."""
    rates = _rates()
    names = (
        "fakeredis, pipelined", "kombu, declare", "kombu", "persist-queue in memory", "persist-queue on file",
        "dramatiq's stub",
    )  # fmt: skip
    return [beside(f"backlog beside {name}", rates["backlog"], "messages/s", rates[name]) for name in names]


def executed() -> list[Figure]:
    """The bytecodes and calls of one message of a backlog."""
    counts = per_message(backlog_of_mqlab)
    return [
        figure("bytecodes per message of a backlog", counts.bytecodes, "bytecodes", aim=6_000, better="lower"),
        figure("calls per message of a backlog", counts.calls, "calls", aim=160, better="lower"),
    ]


def against_bare_appends() -> list[Figure]:
    """1 KB send + push consume against encoding and appending alone."""
    return [
        _against("1 KB send + consume, backlog / bare append", "backlog", "bare", 0.05),
        _against("1 KB send + consume, live / bare append", "live", "bare", 0.05),
    ]
