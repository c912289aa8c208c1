"""Pop and its cousins on one stage: the same workers do the same with each of the three, and the same goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mqlab.cousins import CallRefused, ShareBroker, ShareConsumer, SharePartition, SqsClient, SqsQueue, SqsService
from mqlab.cousins.share_broker import PORT as SHARE_PORT
from mqlab.cousins.share_partition import AcknowledgeType
from mqlab.cousins.sqs_service import PORT as SQS_PORT
from mqlab.errors import MQBrokerException
from mqlab.lab.processes import Process
from mqlab.protocol import Message
from mqlab.scenarios.numbered import FAILURES
from mqlab.scenarios.pop_check_points import GROUP, TOPIC, Worker
from mqlab.scenarios.registry import scenario, story
from mqlab.sim import public_call
from mqlab.trace.events.cousins import WorkAnswered, WorkTaken

if TYPE_CHECKING:
    from mqlab.lab import Lab
    from mqlab.sim import Node

System = Literal["pop", "share-group", "sqs"]
SYSTEMS: tuple[System, ...] = ("pop", "share-group", "sqs")
SERVERS = {"pop": "broker-a", "share-group": "kafka-1", "sqs": "sqs"}
"""The machine that hands orders out."""
PREFIXES: dict[System, str] = {"pop": "pop-", "share-group": "share-", "sqs": "sqs-"}
"""How the names of the others begin where all three are in one world."""
Trouble = Literal["none", "killed", "hung", "late", "broker-killed", "poison"]
NOT_DONE = "no answer"


class Taken(NamedTuple):
    """An order in the hands of a worker; `told_count` is how often it was delivered, as this queue counts.

    RocketMQ tells how often it was delivered *before* (reconsumeTimes, from 0), the others count this time, too.
    """

    order: str
    told_count: int
    held: Any


class CousinProcess(Process):
    """A machine with a program that `make` makes of it, at each start."""

    def __init__(self, lab: Lab, node: Node, make: Callable[[Node], Any]) -> None:
        super().__init__(lab, node)
        self._make = make

    def _boot(self, node: Node) -> None:
        node.life.program = self._make(node)


class CousinServer(CousinProcess):
    """A machine that hands orders out as a cousin does."""


class Hand:
    """A worker of any of the three: takes orders, says that they are done, asks for more time.

    What the queue answers is returned as a text: "OK", or the name of the error.
    """

    call_name = "worker"

    def __init__(self, system: System, node: Node) -> None:
        self.system = system
        self.node = node

    @public_call
    async def take(self, most: int, seconds: int) -> list[Taken]:
        """Up to `most` orders, for so many seconds (of a share group the group says how many)."""
        taken = await self._take(most, seconds)
        if self.node.hooks.on:
            for order, told_count, _ in taken:
                self.node.hooks.emit(WorkTaken(self.system, self.node.name, order, told_count))
        return taken

    @public_call
    async def done(self, taken: Taken) -> str:
        """Say that an order is done; what the queue answers."""
        answer = await self._answer(self._done, taken)
        if self.node.hooks.on:
            self.node.hooks.emit(WorkAnswered(self.system, self.node.name, taken.order, answer))
        return answer

    @public_call
    async def longer(self, taken: Taken, seconds: int) -> str:
        """Ask for so many seconds more, from now on (of a share group the group says how many)."""
        return await self._answer(self._longer, taken, seconds)

    async def _answer(self, ask: Callable[..., Any], *arguments: Any) -> str:
        try:
            await ask(*arguments)
        except CallRefused as refused:
            return refused.code
        except MQBrokerException as refused:
            return f"code {refused.response_code}"
        except FAILURES:
            return NOT_DONE
        return "OK"

    async def _take(self, most: int, seconds: int) -> list[Taken]:
        raise NotImplementedError

    async def _done(self, taken: Taken) -> None:
        raise NotImplementedError

    async def _longer(self, taken: Taken, seconds: int) -> None:
        raise NotImplementedError

    @public_call
    async def work(self, seconds: int, *, packing_ms: int = 0, poison: str = "", every_ms: int = 500) -> None:
        """Take orders without end, pack each for so long and say that it is done, but for the one that nobody can."""
        while True:
            try:
                taken = await type(self).take.inside(self, 10, seconds)  # type: ignore[attr-defined]  # see public_call
            except (CallRefused, MQBrokerException, *FAILURES):
                taken = []
            for one in taken:
                await self.node.sleep(packing_ms)
                if one.order != poison:
                    await type(self).done.inside(self, one)  # type: ignore[attr-defined]  # see public_call
            await self.node.sleep(every_ms)


class PopHand(Hand):
    """A worker that pops, acknowledges, and changes the invisible time."""

    def __init__(self, worker: Worker) -> None:
        super().__init__("pop", worker.node)
        self._worker = worker

    async def _take(self, most: int, seconds: int) -> list[Taken]:
        popped = await Worker.pop.inside(self._worker, most, invisible_ms=seconds * 1_000)  # type: ignore[attr-defined]
        return [Taken(message.body.decode(), message.reconsume_times, message) for message in popped]

    async def _done(self, taken: Taken) -> None:
        await Worker.ack.inside(self._worker, taken.held)  # type: ignore[attr-defined]  # see public_call

    async def _longer(self, taken: Taken, seconds: int) -> None:
        await Worker.hide.inside(self._worker, taken.held, seconds * 1_000)  # type: ignore[attr-defined]


class ShareHand(Hand):
    """A worker that is a member of a share group, in explicit mode."""

    def __init__(self, node: Node, address: str) -> None:
        super().__init__("share-group", node)
        self._consumer = ShareConsumer(node, address)

    async def _take(self, most: int, seconds: int) -> list[Taken]:
        fetched = await self._consumer.fetch(most)
        return [Taken(body, delivery_count, offset) for offset, delivery_count, body in fetched]

    async def _done(self, taken: Taken) -> None:
        await self._consumer.acknowledge(taken.held, AcknowledgeType.ACCEPT)

    async def _longer(self, taken: Taken, seconds: int) -> None:
        await self._consumer.acknowledge(taken.held, AcknowledgeType.RENEW)


class SqsHand(Hand):
    """A worker that receives messages of a queue and deletes them."""

    def __init__(self, node: Node, address: str) -> None:
        super().__init__("sqs", node)
        self._client = SqsClient(node, address)

    async def _take(self, most: int, seconds: int) -> list[Taken]:
        received = await self._client.receive_message(most, seconds)
        return [Taken(body, count, handle) for _, body, handle, count in received]

    async def _done(self, taken: Taken) -> None:
        await self._client.delete_message(taken.held)

    async def _longer(self, taken: Taken, seconds: int) -> None:
        await self._client.change_message_visibility(taken.held, seconds)


class Counter:
    """One of the three with orders in it: `open_counter(lab, system, orders=6)` makes it."""

    def __init__(self, lab: Lab, system: System, server: Process, prefix: str) -> None:
        self.lab = lab
        self.system = system
        self.server = server
        self._prefix = prefix

    def worker(self, name: str) -> Hand:
        """A worker on a machine of its own."""
        name = f"{self._prefix}{name}"
        if self.system == "pop":
            worker = Worker(self.lab, name)
            self.lab.run(worker.open())
            return PopHand(worker)
        process = add_process(self.lab, name, lambda node: None)
        ip = self.server.node.spec.ip
        if self.system == "share-group":
            return ShareHand(process.node, f"{ip}:{SHARE_PORT}")
        return SqsHand(process.node, f"{ip}:{SQS_PORT}")


def add_process(
    lab: Lab, name: str, make: Callable[[Node], Any], kind: type[CousinProcess] = CousinProcess
) -> CousinProcess:
    """A machine with a program, which runs when this returns."""
    process = kind(lab, lab.node(name), make)
    lab.processes[name] = process
    lab.start(name)
    lab.run_for(ms=1)
    return process


def open_counter(
    lab: Lab, system: System, *, orders: int, seconds: int = 20, limit: int = 5, prefix: str = ""
) -> Counter:
    """One of the three with so many orders, named "order 0", "order 1", ...

    `seconds` is the lock of the share group, and `limit` how often an order is delivered at most; Pop's brokers know no
    such limit, there its clients look at the count. `prefix` begins the names of all machines but the server.
    """
    bodies = [f"order {number}" for number in range(orders)]
    sender_name = f"{prefix}shop" if prefix else "counter"
    if system == "pop":
        lab.name_server()
        broker = lab.broker("broker-a", revive_queue_num=1)
        lab.create_topic(TOPIC, 1)
        producer = lab.producer("counter", node=sender_name)
        lab.run(producer.start())
        for body in bodies:
            lab.run(producer.send(Message(TOPIC, body.encode())))
        return Counter(lab, system, broker, prefix)
    if system == "share-group":
        server = add_process(lab, SERVERS[system], lambda node: _share_broker(node, seconds, limit), CousinServer)
        sender = add_process(lab, sender_name, lambda node: None)
        consumer = ShareConsumer(sender.node, _address(server, SHARE_PORT))
        for body in bodies:
            lab.run(consumer.produce(body))
        return Counter(lab, system, server, prefix)
    server = add_process(lab, SERVERS[system], lambda node: _sqs_service(node, limit), CousinServer)
    sender = add_process(lab, sender_name, lambda node: None)
    client = SqsClient(sender.node, _address(server, SQS_PORT))
    for body in bodies:
        lab.run(client.send_message(body))
    return Counter(lab, system, server, prefix)


def _address(process: Process, port: int) -> str:
    return f"{process.node.spec.ip}:{port}"


def _share_broker(node: Node, seconds: int, limit: int) -> ShareBroker:
    partition = SharePartition(lock_duration_ms=seconds * 1_000, delivery_count_limit=limit)
    broker = ShareBroker(node, TOPIC, GROUP, partition)
    broker.start()
    return broker


def _sqs_service(node: Node, limit: int) -> SqsService:
    service = SqsService(node, "orders", SqsQueue(max_receive_count=limit))
    service.start()
    return service


THREE = story("""
    WorkTaken 1 pop-worker-1: Three queues: RocketMQ's Pop, a share group of Kafka, SQS. A worker of each takes orders.
    NodeCrashed 1 pop-worker-1: A second later all three workers are killed. They have packed nothing.
    RecordLetGo 1 kafka-1: Kafka's broker sees the connection close. What that worker held is free at once.
    RecordAcknowledged 1 share-worker-2: So the share group's second worker packs, while the others have nothing to do.
    SqsMessageReceived 4 sqs: SQS knows times, and no workers. The time is over: whoever asks gets the orders.
    ReviveCheckPointRead 1 broker-a: Pop has a check point among its messages. When the time is over it is read.
    MessageRevived 1 broker-a: No acknowledgement comes for two seconds more, so the broker stores a copy of each order.
    WorkTaken 16 pop-worker-2: Pop's second worker has the orders last. They waited for about 1 s, 10 s and 13 s.
""")


@scenario("cousins", seconds=60)
async def cousins(
    lab: Lab,
    *,
    system: System = "pop",
    trouble: Trouble = "killed",
    orders: int = 3,
    taken: int = 3,
    lock_s: int = 20,
    late_s: int = 3,
    packing_s: int = 4,
    limit: int = 5,
    others: bool = True,
) -> None:
    """A worker takes orders and gets into trouble, and another one works on: with Pop, a share group or SQS.

    "killed" and "hung": the first worker, a second after it took its orders. "late": it says that they are done so many
    seconds behind the lock's end. "broker-killed": the server, for 3 s, when one order is done; then another one is.
    "poison": nobody can pack the first order. Without `others` there is no second worker.
    """
    counters = [open_counter(lab, system, orders=orders, seconds=lock_s, limit=limit)]
    await _work(lab, counters, trouble, taken, lock_s, late_s, packing_s, others=others)


@scenario("three-cousins", seconds=20, captions=THREE)
async def three_cousins(
    lab: Lab,
    *,
    trouble: Trouble = "killed",
    orders: int = 3,
    taken: int = 3,
    lock_s: int = 10,
    late_s: int = 3,
    packing_s: int = 2,
    limit: int = 5,
) -> None:
    """Pop, a share group of Kafka and SQS side by side: a worker of each gets into trouble, and another one works on.

    The scenario "cousins" has what may go wrong.
    """
    counters = [
        open_counter(lab, system, orders=orders, seconds=lock_s, limit=limit, prefix=PREFIXES[system])
        for system in SYSTEMS
    ]
    await _work(lab, counters, trouble, taken, lock_s, late_s, packing_s, others=True)


async def _work(
    lab: Lab, counters: list[Counter], trouble: Trouble, taken: int, lock_s: int, late_s: int, packing_s: int,
    *, others: bool,
) -> None:  # fmt: skip
    """At each counter a worker takes orders and gets into trouble, and another one works on."""
    places = ("worker-1", "worker-2") if others else ("worker-1",)
    workers = [[counter.worker(place) for place in places] for counter in counters]
    firsts = [mine[0] for mine in workers]
    held = [await first.take(taken, lock_s) for first in firsts]
    for mine, in_hand in zip(workers, held, strict=True):
        poison = in_hand[0].order if trouble == "poison" else ""
        for second in mine[1:]:
            second.node.spawn(second.work(lock_s, packing_ms=1_000 * packing_s, poison=poison), "work")

    async def done(which: slice) -> None:
        for first, in_hand in zip(firsts, held, strict=True):
            for one in in_hand[which]:
                await first.done(one)

    if trouble == "none":
        await done(slice(None))
        return
    if trouble == "broker-killed":
        await done(slice(1))
    lab.run_for(seconds=1)
    if trouble == "killed":
        for first in firsts:
            lab.crash(first.node.name)
    elif trouble == "hung":
        for first in firsts:
            lab.freeze(first.node.name)
    elif trouble == "late":
        lab.run_for(seconds=lock_s + late_s - 1)
        await done(slice(None))
    elif trouble == "broker-killed":
        for counter in counters:
            lab.crash(counter.server.name)
        lab.run_for(seconds=3)
        for counter in counters:
            lab.restart(counter.server.name)
        lab.run_for(seconds=2)
        await done(slice(1, 2))
    else:
        await done(slice(1, None))
