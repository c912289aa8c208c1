"""Pop beside push: what it writes, how fast it is, what pops that wait cost.

The same 1 KB messages and the same broker as in the push figures. A client that pops takes 32 messages at a time; it
acknowledges each by itself, as RocketMQ's own does, or all of an answer in one request, as a proxy can.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from itertools import count
from statistics import median
from typing import Any

from benchmarks.harness import Figure, beside, figure, garbage_collector_off, operations_per_second
from benchmarks.messages import TOPIC, Flow, backlog_of_mqlab
from benchmarks.peers import MESSAGES
from mqlab import ConsumeConcurrentlyStatus, Lab, Message
from mqlab.client.consumer.pop.pop_result import process_pop_response
from mqlab.client.pop_client_api import batch_ack_body
from mqlab.lab.processes import BrokerProcess
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import PopMessageRequestHeader
from mqlab.protocol.topics import SYSTEM_TOPIC_PREFIX
from mqlab.remoting import RemotingClient
from mqlab.sim import Node

GROUP = "readers"
BATCH = 32
COUNTED = 640
HOUR_MS = 3_600_000
WAITING_TOPICS, WAITING_PER_TOPIC = 10, 1_000
FEW_WAITING = 1
ARRIVALS = 300
GROUPS = ("A", "B", "C")


class PopFlow(Flow):
    """The same lab, whose consumer pops."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.lab.set_message_request_mode(TOPIC, GROUP, "POP")
        self.consumer.client_rebalance = False
        self.consumer.consume_from_where = "CONSUME_FROM_FIRST_OFFSET"


def pop_header(topic: str, now_ms: int, poll_ms: int = 0) -> PopMessageRequestHeader:
    """A pop of all queues for a batch, which stays invisible for a minute."""
    return PopMessageRequestHeader(GROUP, topic, -1, BATCH, 60_000, poll_ms, now_ms, 0, "TAG", "*")


class Popper:
    """A client that pops a batch, acknowledges it in one request, and pops the next."""

    def __init__(self, node: Node, broker: BrokerProcess) -> None:
        self.node = node
        self.remoting = RemotingClient(node)
        self.address = broker.running().broker_addr

    async def consume(self, missing: int) -> None:
        """Until so many messages are acknowledged."""
        while missing > 0:
            response = await self._call(RequestCode.POP_MESSAGE, pop_header(TOPIC, self.node.now_ms(), 15_000))
            found = process_pop_response(response, "broker-a", self.address, TOPIC).msg_found_list
            handles = [message.properties["POP_CK"] for message in found]
            if handles:
                await self._call(RequestCode.BATCH_ACK_MESSAGE, None, batch_ack_body(TOPIC, GROUP, handles).encode())
            missing -= len(handles)

    async def _call(self, code: int, header: Any, body: bytes | None = None) -> RemotingCommand:
        return await self.remoting.invoke_sync(self.address, RemotingCommand.request(code, header, body), 20_000)


# -- what is written --------------------------------------------------------------------------------------------------


def written() -> list[Figure]:
    """Messages in the commit log for each message that is sent, popped and acknowledged, to the end of its check point.

    Without the buffer a batch has a check point and each message an ack; each of these is written twice: to wait in the
    timer, and when it is due.
    """
    aims = (("buffer off", False, 3.1), ("buffer on", True, 1.0))
    return [
        figure(
            f"messages stored per popped message, {name}", stored_per_message(merge), "messages", aim=aim,
            better="lower",
        )
        for name, merge, aim in aims
    ]  # fmt: skip


def stored_per_message(merge: bool, messages: int = COUNTED) -> float:
    flow = PopFlow(enable_pop_buffer_merge=merge)
    flow.expect(messages)
    flow.send_all(messages)
    flow.lab.run(flow.consumer.start())
    flow.wait_for_all()
    flow.lab.run_for(seconds=90)
    queues = flow.lab.brokers[0].store.consume_queue_store.consume_queue_table
    stored = sum(
        queue.max_offset_in_queue
        for (topic, _), queue in queues.items()
        if topic == TOPIC or topic.startswith(SYSTEM_TOPIC_PREFIX)
    )
    return stored / messages


# -- how fast it is ---------------------------------------------------------------------------------------------------


def backlog_of_consumer(messages: int = MESSAGES, **settings: Any) -> Callable[[], int]:
    """Send all, then start a consumer that pops, until its last ack is there."""
    flow = PopFlow(**settings)
    flow.expect(messages)

    def run() -> int:
        flow.send_all(messages)
        flow.lab.run(flow.consumer.start())
        flow.wait_for_all()
        flow.lab.run_for(ms=200)
        return messages

    return run


def backlog_by_batches(messages: int = MESSAGES) -> Callable[[], int]:
    """Send all, then pop and acknowledge in batches."""
    flow = Flow()
    popper = Popper(flow.producer.node, flow.lab.brokers[0])

    def run() -> int:
        flow.send_all(messages)
        flow.lab.world.wait_for(popper.node.spawn(popper.consume(messages), "popper").join())
        return messages

    return run


@cache
def _rates() -> dict[str, float]:
    return operations_per_second(
        {
            "push": backlog_of_mqlab,
            "batches": backlog_by_batches,
            "buffer on": partial(backlog_of_consumer, enable_pop_buffer_merge=True),
            "buffer off": backlog_of_consumer,
        }
    )


def against_push() -> list[Figure]:
    """1 KB send + pop + ack against 1 KB send + push consume."""
    rates = _rates()
    unit = "messages/s"
    return [
        figure("1 KB send + pop + ack by 32 / push", rates["batches"], unit, versus=rates["push"], aim=0.5,
               better="higher"),
        figure("pop consumer, buffer on / push", rates["buffer on"], unit, versus=rates["push"], aim=0.5,
               better="higher"),
        beside("pop consumer, each ack stored / push", rates["buffer off"], unit, rates["push"]),
    ]  # fmt: skip


# -- pops that wait ---------------------------------------------------------------------------------------------------


def waiting() -> Figure:
    """What one message costs that wakes one of 10,000 pops (and the pop that then waits again), beside one of ten."""
    many, few = _arrival_us(WAITING_PER_TOPIC), _arrival_us(FEW_WAITING)
    name = f"an arrival, {WAITING_TOPICS * WAITING_PER_TOPIC:,} pops waiting / {WAITING_TOPICS * FEW_WAITING}"
    return figure(name, many, "us", versus=few, aim=1.5, better="lower")


def _arrival_us(per_topic: int) -> float:
    lab = Lab(seed=1, history=False)
    lab.name_server()
    broker = lab.broker("broker-a")
    topics = [f"{TOPIC}{number}" for number in range(WAITING_TOPICS)]
    for topic in topics:
        lab.create_topic(topic, 1)
    producer = lab.producer("orders")
    lab.run(producer.start())
    popper = Popper(producer.node, broker)
    numbers = count()

    async def wait_and_wait_again(topic: str) -> None:
        while True:
            header = pop_header(topic, popper.node.now_ms(), HOUR_MS)
            request = RemotingCommand.request(RequestCode.POP_MESSAGE, header)
            await popper.remoting.invoke_sync(popper.address, request, 2 * HOUR_MS)
            next(numbers)

    for topic in topics:
        for _ in range(per_topic):
            popper.node.spawn(wait_and_wait_again(topic), "waits")
    lab.run_for(seconds=5)
    assert len(lab.held_pops()) == WAITING_TOPICS * per_topic
    times = []
    for number in range(ARRIVALS):
        with garbage_collector_off():
            began = time.process_time()
            lab.run(producer.send(Message(topics[number % WAITING_TOPICS], b"x")))
            lab.run_for(ms=2)
            times.append((time.process_time() - began) * 1e6)
    assert next(numbers) == ARRIVALS
    assert len(lab.held_pops()) == WAITING_TOPICS * per_topic
    return median(times)


def idle_broker() -> list[Figure]:
    """The slices of a virtual minute: of a broker whose Pop groups are gone, and with three consumers that pop."""
    lab = Lab(seed=1, history=False)
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic(TOPIC, 4)
    consumers = []
    for group in GROUPS:
        lab.set_message_request_mode(TOPIC, group, "POP")
        consumer = lab.consumer(
            group, node=group, client_rebalance=False, consume_from_where="CONSUME_FROM_FIRST_OFFSET"
        )
        consumer.subscribe(TOPIC, "*")
        consumer.register_message_listener(lambda messages, context: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
        lab.run(consumer.start())
        consumers.append(consumer)
    producer = lab.producer("orders")
    lab.run(producer.start())
    for _ in range(100):
        lab.run(producer.send(Message(TOPIC, b"x")))
    lab.run_for(seconds=300)
    with_consumers = _slices_of_a_minute(lab)
    for client in (*consumers, producer):
        lab.run(client.shutdown())
    lab.run_for(seconds=120)
    alone = _slices_of_a_minute(lab)
    return [
        figure("idle broker with Pop groups", alone, "slices/minute", aim=400, better="lower"),
        beside("with three consumers that wait / without", with_consumers, "slices/minute", alone),
    ]


def _slices_of_a_minute(lab: Lab) -> int:
    before = lab.world.slice_no
    lab.run_for(seconds=60)
    return lab.world.slice_no - before
