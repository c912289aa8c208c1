"""Every kind of client at work while servers answer nonsense."""

from __future__ import annotations

from typing import Any

from mqlab.client import (
    CONSUME_SUCCESS,
    ConsumeOrderlyStatus,
    DefaultLitePullConsumer,
    DefaultMQProducer,
    DefaultMQPullConsumer,
    Message,
    MessageListenerOrderly,
    MQPullConsumerScheduleService,
)
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.sim import Node

from .conftest import NAMESRV, Cluster
from .mutation import hooks_of

REFUSALS = (MQClientException, MQBrokerException, RemotingException)
"""What a client may raise at its application."""


class Taking(MessageListenerOrderly):
    """Notes what it gets."""

    def __init__(self, got: set[bytes]) -> None:
        self.got = got

    def consume_message(self, messages: Any, context: Any) -> ConsumeOrderlyStatus:
        self.got.update(message.body for message in messages)
        return ConsumeOrderlyStatus.SUCCESS


class Shop:
    """A producer and one consumer of each kind, on nodes of their own, each in its group."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.got: dict[str, set[bytes]] = {kind: set() for kind in ("push", "orderly", "pull", "schedule", "lite")}
        self.heard = 0
        self.sent = 0
        settings: dict[str, Any] = {"namesrv_addr": NAMESRV}
        self.producer = DefaultMQProducer(cluster.node("producer"), "PG", **settings)
        self.push = cluster.new_consumer("push", "push", listener=self._take, pull_batch_size=4)
        self.orderly = cluster.new_consumer("orderly", "orderly")
        self.orderly.register_message_listener(Taking(self.got["orderly"]))
        self.pull = DefaultMQPullConsumer(cluster.node("pull"), "pull", **settings)
        self.pull.register_message_queue_listener("T")
        self.schedule = MQPullConsumerScheduleService(cluster.node("schedule"), "schedule", **settings)
        self.schedule.register_pull_task_callback("T", self._pull_task)
        self.lite = DefaultLitePullConsumer(cluster.node("lite"), "lite", **settings)
        self.lite.subscribe("T", "*")

    def _take(self, messages: Any, context: Any) -> Any:
        self.got["push"].update(message.body for message in messages)
        return CONSUME_SUCCESS

    async def _pull_task(self, queue: Any, context: Any) -> None:
        consumer = context.pull_consumer
        try:
            offset = max(await consumer.fetch_consume_offset(queue, False), 0)
            result = await consumer.pull(queue, "*", offset, 32)
            self.got["schedule"].update(message.body for message in result.msg_found_list)
            await consumer.update_consume_offset(queue, result.next_begin_offset)
        except REFUSALS:
            pass

    # -- what the applications do ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start everything and let the applications work for ever."""
        for client in (self.producer, self.push, self.orderly, self.pull, self.schedule, self.lite):
            node: Node = client.node
            node.spawn(self._start(client), f"start {node.name}")
        for name, work in (("producer", self._send), ("pull", self._pull), ("lite", self._poll)):
            self.cluster.node(name).spawn(work(), f"the application of {name}")

    async def _start(self, client: Any) -> None:
        try:
            await client.start()
        except REFUSALS:
            # As with a program: somebody starts it again.
            await client.node.sleep(2_000)
            client.begin_life()
            await self._start(client)

    async def _send(self) -> None:
        node = self.cluster.node("producer")
        while True:
            await node.sleep(400)
            self.sent += 1
            message = Message("T", f"m{self.sent}", tags="A", keys=f"k{self.sent}")
            try:
                if self.sent % 4 == 0:
                    await self.producer.send_async(message, self._hear)
                elif self.sent % 4 == 1:
                    await self.producer.send([message, Message("T", f"n{self.sent}")])
                else:
                    await self.producer.send(message)
            except REFUSALS:
                continue

    def _hear(self, result: Any, error: Exception | None) -> None:
        assert error is None or isinstance(error, REFUSALS), error
        self.heard += 1

    async def _pull(self) -> None:
        node, consumer = self.cluster.node("pull"), self.pull
        offsets: dict[Any, int] = {}
        while True:
            await node.sleep(1_000)
            try:
                for queue in await consumer.fetch_subscribe_message_queues("T"):
                    offset = max(0, offsets.get(queue) or await consumer.min_offset(queue))
                    if await consumer.max_offset(queue) <= offset:
                        offset = max(0, await consumer.search_offset(queue, node.now_ms() - 20_000))
                    result = await consumer.pull(queue, "*", offset, 32)
                    self.got["pull"].update(message.body for message in result.msg_found_list)
                    offsets[queue] = max(0, result.next_begin_offset)
                    await consumer.pull_async(queue, "A", 0, 4, self._hear)
            except REFUSALS:
                continue

    async def _poll(self) -> None:
        node = self.cluster.node("lite")
        while True:
            await node.sleep(100)
            try:
                self.got["lite"].update(message.body for message in await self.lite.poll(1_000))
            except REFUSALS:
                continue


def play(
    seed: int, *, share: float = 0.3, wire_bytes: bool = False, sick_ms: int = 60_000, well_ms: int = 100_000
) -> int:
    """Let servers answer nonsense for a while; then all clients must get well. How many answers were bad."""
    cluster = Cluster(seed=seed, brokers=2, wire_bytes=wire_bytes)
    cluster.create_topic("T", 2)
    shop = Shop(cluster)
    hooks = hooks_of(cluster, seed, share)
    shop.begin()
    cluster.run_ms(sick_ms)
    for hook in hooks:
        hook.on = False
    cluster.run_ms(well_ms)
    before = shop.sent
    heard = shop.heard
    cluster.run_ms(20_000)
    assert shop.sent > before + 20
    assert shop.heard > heard
    wanted = {f"m{k}".encode() for k in range(before, shop.sent - 10)}
    for kind, got in shop.got.items():
        assert wanted <= got, (kind, sorted(wanted - got)[:5])
    return sum(hook.mutated for hook in hooks)
