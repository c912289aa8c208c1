"""The peers of the message path: other queues that live in one Python process, each sent to as its own manual shows.

fakeredis is the fair one: a log with consumer groups and acknowledgements, pure Python, in the process. The others do
less (kombu's memory transport keeps a list and no log) or something else, and stand beside it without an aim.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

BODY = bytes(range(256)) * 4
MESSAGES = 3_200
BATCH = 32
ON_FILE = 320


class FakeRedisStream:
    """A stream of fakeredis with one consumer group: XADD, XREADGROUP, XACK."""

    def __init__(self) -> None:
        fakeredis: Any = import_module("fakeredis")
        self._client = fakeredis.FakeRedis(server=fakeredis.FakeServer())
        self._client.xgroup_create("stream", "group", id="0", mkstream=True)

    def add(self) -> None:
        """Append one message."""
        self._client.xadd("stream", {"body": BODY})

    def add_pipelined(self) -> None:
        """Append a batch in one exchange with the server, which is as asynchronous as redis gets."""
        pipeline = self._client.pipeline(transaction=False)
        for _ in range(BATCH):
            pipeline.xadd("stream", {"body": BODY})
        pipeline.execute()

    def take(self, count: int) -> int:
        """Read up to `count` messages and acknowledge them; how many there were."""
        taken = 0
        for _, entries in self._client.xreadgroup("group", "consumer", {"stream": ">"}, count=count):
            assert all(entry[1][b"body"] == BODY for entry in entries)
            taken += self._client.xack("stream", "group", *[entry_id for entry_id, _ in entries])
        return taken


def backlog_of_fakeredis() -> Callable[[], int]:
    """Add all one by one, then read and acknowledge in batches of 32, RocketMQ's own pull size."""
    stream = FakeRedisStream()

    def run() -> int:
        for _ in range(MESSAGES):
            stream.add()
        return _taken(stream)

    return run


def pipelined_backlog_of_fakeredis() -> Callable[[], int]:
    """The same with the messages added 32 in an exchange."""
    stream = FakeRedisStream()

    def run() -> int:
        for _ in range(MESSAGES // BATCH):
            stream.add_pipelined()
        return _taken(stream)

    return run


def _taken(stream: FakeRedisStream) -> int:
    taken = 0
    while taken < MESSAGES:
        taken += stream.take(BATCH)
    return taken


def fakeredis_one_by_one() -> Callable[[], int]:
    """Add one, read it, acknowledge it."""
    stream = FakeRedisStream()

    def run() -> int:
        for _ in range(MESSAGES):
            stream.add()
            assert stream.take(1) == 1
        return MESSAGES

    return run


class KombuQueue:
    """kombu's memory transport: a producer, a consumer that acknowledges, and one queue.

    kombu publishes as its own first example does, with the queue declared each time, or without.
    """

    def __init__(self, *, declare: bool) -> None:
        kombu: Any = import_module("kombu")
        name = uuid4().hex
        self._connection = kombu.Connection("memory://")
        queue = kombu.Queue(name, kombu.Exchange(name, type="direct"), routing_key=name)
        self._how = {"exchange": queue.exchange, "routing_key": name, "declare": [queue] if declare else []}
        self._producer = kombu.Producer(self._connection)
        consumer = kombu.Consumer(self._connection.channel(), [queue], callbacks=[self._take])
        consumer.consume()
        self.taken = 0

    def _take(self, body: Any, message: Any) -> None:
        self.taken += 1
        message.ack()

    def publish(self) -> None:
        """Publish one message."""
        self._producer.publish(BODY, **self._how)

    def drain(self) -> None:
        """Deliver what is there to the consumer."""
        self._connection.drain_events(timeout=1)


def backlog_of_kombu(declare: bool) -> Callable[[], int]:
    """Publish all, then drain all."""
    queue = KombuQueue(declare=declare)

    def run() -> int:
        for _ in range(MESSAGES):
            queue.publish()
        while queue.taken < MESSAGES:
            queue.drain()
        return MESSAGES

    return run


def persist_queue_on_file() -> Callable[[], int]:
    """persist-queue's queue with acknowledgements, in a file of SQLite: put all, then get and acknowledge each."""
    persistqueue: Any = import_module("persistqueue")
    directory = TemporaryDirectory()
    queue = persistqueue.SQLiteAckQueue(directory.name)

    def run() -> int:
        _put_get_ack(queue, ON_FILE)
        queue.close()
        directory.cleanup()
        return ON_FILE

    return run


def persist_queue_in_memory() -> Callable[[], int]:
    """The same in SQLite's memory."""
    persistqueue: Any = import_module("persistqueue")
    queue = persistqueue.SQLiteAckQueue(":memory:")

    def run() -> int:
        _put_get_ack(queue, MESSAGES)
        return MESSAGES

    return run


def _put_get_ack(queue: Any, count: int) -> None:
    for _ in range(count):
        queue.put(BODY)
    for _ in range(count):
        queue.ack(queue.get())


def dramatiq_stub() -> Callable[[], int]:
    """dramatiq's broker for tests: an actor's messages are enqueued, then taken and acknowledged, without a worker."""
    dramatiq: Any = import_module("dramatiq")
    broker = import_module("dramatiq.brokers.stub").StubBroker()
    broker.declare_queue("bench")
    text = BODY.decode("latin-1")

    def run() -> int:
        for _ in range(MESSAGES):
            broker.enqueue(
                dramatiq.Message(queue_name="bench", actor_name="take", args=(text,), kwargs={}, options={})
            )
        consumer = broker.consume("bench", prefetch=BATCH)
        for _ in range(MESSAGES):
            consumer.ack(next(consumer))
        return MESSAGES

    return run
