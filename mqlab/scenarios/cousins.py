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
from mqlab.scenarios.registry import scenario
from mqlab.sim import public_call
from mqlab.trace.events.cousins import WorkAnswered, WorkTaken

if TYPE_CHECKING:
    from mqlab.lab import Lab
    from mqlab.sim import Node

System = Literal["pop", "share-group", "sqs"]
SYSTEMS: tuple[System, ...] = ("pop", "share-group", "sqs")
SERVERS = {"pop": "broker-a", "share-group": "kafka-1", "sqs": "sqs"}
"""The machine that hands orders out."""
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

    def __init__(self, lab: Lab, system: System, server: Process) -> None:
        self.lab = lab
        self.system = system
        self.server = server

    def worker(self, name: str) -> Hand:
        """A worker on a machine of its own."""
        if self.system == "pop":
            worker = Worker(self.lab, name)
            self.lab.run(worker.open())
            return PopHand(worker)
        process = add_process(self.lab, name, lambda node: None)
        ip = self.server.node.spec.ip
        if self.system == "share-group":
            return ShareHand(process.node, f"{ip}:{SHARE_PORT}")
        return SqsHand(process.node, f"{ip}:{SQS_PORT}")


def add_process(lab: Lab, name: str, make: Callable[[Node], Any]) -> CousinProcess:
    """A machine with a program, which runs when this returns."""
    process = CousinProcess(lab, lab.node(name), make)
    lab.processes[name] = process
    lab.start(name)
    lab.run_for(ms=1)
    return process


def open_counter(lab: Lab, system: System, *, orders: int, seconds: int = 20, limit: int = 5) -> Counter:
    """One of the three with so many orders, named "order 0", "order 1", ...

    `seconds` is the lock of the share group, and `limit` how often an order is delivered at most; Pop's brokers know no
    such limit, there its clients look at the count.
    """
    bodies = [f"order {number}" for number in range(orders)]
    if system == "pop":
        lab.name_server()
        broker = lab.broker("broker-a", revive_queue_num=1)
        lab.create_topic(TOPIC, 1)
        producer = lab.producer("counter", node="counter")
        lab.run(producer.start())
        for body in bodies:
            lab.run(producer.send(Message(TOPIC, body.encode())))
        return Counter(lab, system, broker)
    if system == "share-group":
        server = add_process(lab, SERVERS[system], lambda node: _share_broker(node, seconds, limit))
        consumer = ShareConsumer(add_process(lab, "counter", lambda node: None).node, _address(server, SHARE_PORT))
        for body in bodies:
            lab.run(consumer.produce(body))
        return Counter(lab, system, server)
    server = add_process(lab, SERVERS[system], lambda node: _sqs_service(node, limit))
    client = SqsClient(add_process(lab, "counter", lambda node: None).node, _address(server, SQS_PORT))
    for body in bodies:
        lab.run(client.send_message(body))
    return Counter(lab, system, server)


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
    counter = open_counter(lab, system, orders=orders, seconds=lock_s, limit=limit)
    first = counter.worker("worker-1")
    held = await first.take(taken, lock_s)
    poison = held[0].order if trouble == "poison" else ""
    if others:
        second = counter.worker("worker-2")
        second.node.spawn(second.work(lock_s, packing_ms=1_000 * packing_s, poison=poison), "work")
    if trouble == "none":
        for one in held:
            await first.done(one)
        return
    if trouble == "broker-killed":
        await first.done(held[0])
    lab.run_for(seconds=1)
    if trouble == "killed":
        lab.crash("worker-1")
    elif trouble == "hung":
        lab.freeze("worker-1")
    elif trouble == "late":
        lab.run_for(seconds=lock_s + late_s - 1)
        for one in held:
            await first.done(one)
    elif trouble == "broker-killed":
        lab.crash(counter.server.name)
        lab.run_for(seconds=3)
        lab.restart(counter.server.name)
        lab.run_for(seconds=2)
        await first.done(held[1])
    else:
        for one in held[1:]:
            await first.done(one)
