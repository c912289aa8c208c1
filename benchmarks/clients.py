"""What clients cost: asynchronous against synchronous sending, many consumers against one, many queues against few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from statistics import median
from typing import Any

from benchmarks.harness import Figure, figure, operations_per_second, seconds_of
from mqlab import Lab, Message
from mqlab.client import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    DefaultMQProducer,
    DefaultMQPushConsumer,
    MessageExt,
    SendResult,
)
from mqlab.protocol.topics import is_retry_topic
from mqlab.sim import Future

TOPIC = "TopicClients"
BODY = bytes(range(256)) * 4
MESSAGES = 3_200
QUEUES = 20
CONSUMERS = 20
TOPICS = 10
FEW_QUEUES, MANY_QUEUES = 1_000, 10_000
REBALANCES = 3

_inside_send = DefaultMQProducer.send.inside  # type: ignore[attr-defined]  # see public_call
_inside_send_async = DefaultMQProducer.send_async.inside  # type: ignore[attr-defined]


class Sending:
    """A lab with a broker and a started producer, hooks off."""

    def __init__(self) -> None:
        self.lab = Lab(seed=1, history=False)
        self.lab.name_server()
        self.lab.broker("broker-a")
        self.lab.create_topic(TOPIC, QUEUES)
        self.producer: DefaultMQProducer = self.lab.producer("orders")
        self.lab.run(self.producer.start())

    def wait(self, work: Any) -> None:
        """Run work in a task of the producer's machine, up to its end."""
        self.lab.world.wait_for(self.producer.node.spawn(work, "load").join())

    async def send_all(self) -> None:
        """Send MESSAGES messages, each after the answer to the one before."""
        for _ in range(MESSAGES):
            await _inside_send(self.producer, Message(TOPIC, BODY))

    async def send_all_async(self) -> None:
        """Send MESSAGES messages without waiting in between, then wait for the last answer."""
        all_answered: Future[None] = Future("the last answer")
        missing = MESSAGES

        def answered(result: SendResult | None, error: Exception | None) -> None:
            nonlocal missing
            if error is not None:
                raise error
            missing -= 1
            if not missing:
                all_answered.set_result(None)

        for _ in range(MESSAGES):
            await _inside_send_async(self.producer, Message(TOPIC, BODY), answered)
        await all_answered


def synchronous() -> Callable[[], int]:
    """One sender that waits for each answer."""
    sending = Sending()

    def run() -> int:
        sending.wait(sending.send_all())
        return MESSAGES

    return run


def asynchronous() -> Callable[[], int]:
    """One sender with callbacks."""
    sending = Sending()

    def run() -> int:
        sending.wait(sending.send_all_async())
        return MESSAGES

    return run


def backlog_for(consumers: int) -> Callable[[], int]:
    """A backlog in 20 queues, worked off by suspended members that are let go; their start is not measured."""
    sending = Sending()
    sending.wait(sending.send_all())
    missing = MESSAGES
    all_there: Future[None] = Future("the last message")

    def listen(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        nonlocal missing
        missing -= len(messages)
        if not missing:
            all_there.set_result(None)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    members = [_member(sending.lab, [TOPIC], listen, suspended=True) for _ in range(consumers)]
    sending.lab.run_for(seconds=45)

    def run() -> int:
        for consumer in members:
            consumer.resume()
        sending.lab.world.wait_for(all_there)
        return MESSAGES

    return run


def _member(lab: Lab, topics: Sequence[str], listener: Any, *, suspended: bool) -> DefaultMQPushConsumer:
    consumer: DefaultMQPushConsumer = lab.consumer("readers", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    for topic in topics:
        consumer.subscribe(topic, "*")
    consumer.register_message_listener(listener)
    if suspended:
        consumer.suspend()
    lab.run(consumer.start())
    return consumer


def _content(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def seconds_to_rebalance(queues: int) -> float:
    """CPU seconds from the start of a second member to the moment when each of the two owns half of the queues."""
    lab = Lab(seed=1, history=False)
    lab.name_server()
    lab.broker("broker-a")
    topics = [f"{TOPIC}{number}" for number in range(TOPICS)]
    for topic in topics:
        lab.create_topic(topic, queues // TOPICS)
    first = _member(lab, topics, _content, suspended=False)
    _play_until_owned(lab, queues, [first])

    def join() -> None:
        second = _member(lab, topics, _content, suspended=False)
        _play_until_owned(lab, queues // 2, [first, second])

    return seconds_of(join)


def _play_until_owned(lab: Lab, queues: int, members: list[DefaultMQPushConsumer]) -> None:
    for _ in range(100):
        if all(_owned(member) == queues for member in members):
            return
        lab.run_for(seconds=1)
    raise AssertionError(f"the members never had {queues} queues each")


def _owned(consumer: DefaultMQPushConsumer) -> int:
    return sum(not is_retry_topic(queue.topic) for queue in consumer.impl.rebalance_impl.process_queue_table)


@cache
def _rates() -> dict[str, float]:
    return operations_per_second(
        {
            "sync": synchronous,
            "async": asynchronous,
            "1 consumer": partial(backlog_for, 1),
            "20 consumers": partial(backlog_for, CONSUMERS),
        }
    )


def async_send() -> Figure:
    """Sending 1 KB with callbacks against sending it and waiting for each answer."""
    rates = _rates()
    sync = rates["sync"]
    return figure("1 KB send, async / sync", rates["async"], "messages/s", versus=sync, aim=1.0, better="higher")


def push_consume() -> list[Figure]:
    """A backlog consumed by one member, against sending the same messages; and by twenty, against one."""
    rates = _rates()
    sync, one, many = rates["sync"], rates["1 consumer"], rates["20 consumers"]
    return [
        figure("push consume, 1 consumer / sync send", one, "messages/s", versus=sync, aim=1.0, better="higher"),
        figure("push consume, 20 consumers / 1", many, "messages/s", versus=one, aim=0.8, better="higher"),
    ]


def rebalance() -> Figure:
    """A second member takes half of 10,000 queues; what a queue costs must not grow with their number."""
    few, many = (
        median(seconds_to_rebalance(queues) / queues * 1e6 for _ in range(REBALANCES))
        for queues in (FEW_QUEUES, MANY_QUEUES)
    )
    return figure("rebalance, 10,000 queues / 1,000", many, "us/queue", versus=few, aim=1.5, better="lower")
