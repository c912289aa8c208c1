"""Messages of 1 KB, sent and consumed: against kombu's memory transport, and against a bare encode-and-append loop.

Both ways of working are measured apart: a backlog (all are sent, then all are consumed) and live delivery (a consumer
waits while they are sent). A message counts once it has been sent, stored, delivered and acknowledged. kombu publishes
as its own first example does, with the queue declared (`declare=[queue]`); without that it is about twice as fast.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from mqlab import Lab, Message
from mqlab.client import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    DefaultMQProducer,
    DefaultMQPushConsumer,
    MessageExt,
)
from mqlab.sim import Future
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder, Recorder

from .harness import Figure, figure, operations_per_second

TOPIC = "TopicBench"
BODY = bytes(range(256)) * 4
MESSAGES = 3_200
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

    def start_senders(self, senders: int) -> list[Future[None]]:
        """Let MESSAGES messages be sent by several tasks, each waiting for one answer before it sends the next."""
        node = self.producer.node
        return [node.spawn(self._load(MESSAGES // senders), "load").join() for _ in range(senders)]

    def send_all(self, senders: int = SENDERS) -> None:
        """Send MESSAGES messages and wait until the last is stored."""
        for done in self.start_senders(senders):
            self.lab.world.wait_for(done)

    def wait_for_all(self) -> None:
        """Play until all that is expected has been consumed."""
        self.lab.world.wait_for(self._all_there)


def backlog_of_mqlab() -> Callable[[], int]:
    """Send all, then start the consumer and let it work the backlog off."""
    flow = Flow()
    flow.expect(MESSAGES)

    def run() -> int:
        flow.send_all()
        flow.lab.run(flow.consumer.start())
        flow.wait_for_all()
        return MESSAGES

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


def recorded(recorder: Callable[[Path], Recorder]) -> Callable[[], Callable[[], int]]:
    """Live delivery with every event recorded to a file."""

    def prepare() -> Callable[[], int]:
        directory = TemporaryDirectory()
        flow = Flow()
        flow.start_consumer()
        flow.expect(MESSAGES)
        sink = recorder(Path(directory.name) / "trace")
        flow.lab.world.hooks.attach(sink)

        def run() -> int:
            flow.start_senders(SENDERS)
            flow.wait_for_all()
            sink.close()
            directory.cleanup()
            return MESSAGES

        return run

    return prepare


class KombuFlow:
    """kombu's memory transport: a producer, a consumer that acknowledges, and one queue."""

    def __init__(self) -> None:
        kombu: Any = import_module("kombu")  # it has no types
        name = uuid4().hex
        self.connection = kombu.Connection("memory://")
        self._queue = kombu.Queue(name, kombu.Exchange(name, type="direct"), routing_key=name)
        self._producer = kombu.Producer(self.connection)
        consumer = kombu.Consumer(self.connection.channel(), [self._queue], callbacks=[self._take])
        consumer.consume()
        self.taken = 0

    def _take(self, body: Any, message: Any) -> None:
        self.taken += 1
        message.ack()

    def publish(self) -> None:
        """Publish one message."""
        queue = self._queue
        self._producer.publish(BODY, exchange=queue.exchange, routing_key=queue.routing_key, declare=[queue])

    def drain(self) -> None:
        """Deliver what is there to the consumer."""
        self.connection.drain_events(timeout=1)


def backlog_of_kombu() -> Callable[[], int]:
    """Publish all, then drain all."""
    flow = KombuFlow()

    def run() -> int:
        for _ in range(MESSAGES):
            flow.publish()
        while flow.taken < MESSAGES:
            flow.drain()
        return MESSAGES

    return run


def live_of_kombu() -> Callable[[], int]:
    """Publish one, drain one."""
    flow = KombuFlow()

    def run() -> int:
        for number in range(1, MESSAGES + 1):
            flow.publish()
            while flow.taken < number:
                flow.drain()
        return MESSAGES

    return run


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
            "kombu backlog": backlog_of_kombu,
            "live": live_of_mqlab,
            "live, one sender": live_of_mqlab_one_by_one,
            "kombu live": live_of_kombu,
            "bare": bare_appends,
            "json": recorded(JsonLinesRecorder),
            "parquet": recorded(ParquetRecorder),
        }
    )


def _against(name: str, mqlab: str, other: str, aim: float) -> Figure:
    rates = _rates()
    return figure(name, rates[mqlab], "messages/s", versus=rates[other], aim=aim, better="higher")


def against_kombu() -> list[Figure]:
    """1 KB send + push consume against kombu's Producer + Consumer + ack."""
    return [
        _against("1 KB send + consume, backlog / kombu", "backlog", "kombu backlog", 1.25),
        _against("1 KB send + consume, live / kombu", "live", "kombu live", 1.25),
        _against("1 KB send + consume, live, one sender / kombu", "live, one sender", "kombu live", 1.25),
    ]


def against_bare_appends() -> list[Figure]:
    """1 KB send + push consume against encoding and appending alone."""
    return [
        _against("1 KB send + consume, backlog / bare append", "backlog", "bare", 0.05),
        _against("1 KB send + consume, live / bare append", "live", "bare", 0.05),
    ]


def recording() -> list[Figure]:
    """Live delivery with recording on, against the same with hooks off, as time per message."""
    rates = _rates()
    return [
        figure(
            f"recording to {form}",
            1e6 / rates[recorder],
            "us/message",
            versus=1e6 / rates["live"],
            aim=1.5,
            better="lower",
        )
        for form, recorder in (("JSON lines", "json"), ("Parquet", "parquet"))
    ]
