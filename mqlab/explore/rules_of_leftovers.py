"""The rule of leftovers: when all is over, nothing waits, nothing is held, and nobody has kept a permit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from mqlab.client import DefaultLitePullConsumer, DefaultMQProducer, DefaultMQPushConsumer
from mqlab.client.mq_client_manager import MQClientManager
from mqlab.explore.readers import is_running
from mqlab.explore.rule import Case, Rule
from mqlab.lab.processes import BrokerProcess, ClientProcess, NameServerProcess
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.client.v5.push_consumer import PushConsumerImpl
    from mqlab.protocol.message import MessageQueue
    from mqlab.remoting import Channel
    from mqlab.remoting.calls import RemotingCalls
    from mqlab.sim import Pool
    from mqlab.sim.life import Life

GHOST = "a ghost member"
GHOST_TEXT = (
    "A heartbeat that its broker still processes when the connection closes, or when the scan for silent clients has "
    "just dropped its sender, makes that client a member again, over a connection that will not close a second time. "
    "Only the scan finds it, 120 to 130 s later; until then nobody consumes its share."
)
CONSUMING_TASKS = ("consume in order",)
"""The tasks of a 5.x consumer that give messages to a listener and settle them."""

SCAN_US = 2_300_000
"""The scan of a response table comes every 1.1 s, or 3 s after the first."""
CHECK_US = 5_200_000


class NothingIsLeftOver(Rule):
    """In the end nothing is left over: calls and pulls beyond their time, permits, threads, members that are gone."""

    kinds = ("NodeCrashed", "PowerLost", "ConnectionClosed", "ConnectionBroken", "ClientRegistered")
    EXCEPTIONS: ClassVar[dict[str, str]] = {GHOST: GHOST_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._ended: list[tuple[str, Life]] = []
        self._closed: dict[tuple[str, str], None] = {}
        """(broker, remote address) of the connections that have ended."""
        self._ghosts: dict[tuple[str, str], None] = {}

    def on_event(self, record: Record) -> None:
        """Remember the processes and connections that end, and who comes over a connection that has ended."""
        if record.kind == "ClientRegistered":
            if (record.node, record.remote) in self._closed:
                self._ghosts[record.node, record.remote] = None
        elif record.kind.startswith("Connection"):
            self._closed[record.node, record.remote] = None
        else:
            self._ended.append((record.target, self.case.lab.world.nodes[record.target].life))

    def at_end(self) -> None:
        """Go through all processes."""
        self.judged += len(self._ended) + len(self.case.lab.processes)
        for name, life in self._ended:
            if life.tasks:
                self.found(None, f"{len(life.tasks)} tasks of a process that ended are still alive on {name}")
        for process in self.case.lab.processes.values():
            if process.state != "running":
                continue
            if isinstance(process, BrokerProcess) and process.is_up():
                self._tell(process.name, self._of_broker(process))
            elif isinstance(process, NameServerProcess) and process.controller is not None:
                server = process.controller.remoting_server
                self._tell(process.name, self._of_calls(server, server.config.server_async_semaphore_value))
            elif isinstance(process, ClientProcess):
                self._tell(process.name, self._of_clients(process))

    def _tell(self, name: str, left_over: Iterator[str]) -> None:
        for text in left_over:
            self.found(None, f"in the end {name} still has {text}")

    def _of_calls(self, calls: RemotingCalls, permits: int) -> Iterator[str]:
        now_us, over_us = self.case.lab.world.now_us, self.case.fault_times.over_since_us() or 0
        waiting = calls.response_table.values()
        for future in waiting:
            if future.done:
                yield f"request {future.opaque} in its response table, which has its answer"
            elif max(future.expires_us(), over_us) + SCAN_US < now_us:
                yield f"request {future.opaque} in its response table, beyond its time-out of {future.timeout_ms} ms"
        taken = permits - calls.semaphore_async.permits
        if taken > len(waiting):
            yield f"{taken} permits taken for {len(waiting)} calls"

    def _of_pool(self, pool: Pool) -> Iterator[str]:
        world = self.case.lab.world
        entries: list[tuple[Any, int]] = [(target, token) for target, token, _ in world.ready]
        entries += [(entry[2], entry[3]) for entry in world.heap]
        jobs = sum(getattr(target, "pool", None) is pool and token == target.token for target, token in entries)
        busy = jobs + sum(task.name == pool.name for task in pool.node.life.tasks)
        if pool.busy > busy:
            yield f"{pool.busy} threads of {pool.name} taken by {busy} jobs"

    def _of_broker(self, process: BrokerProcess) -> Iterator[str]:
        broker, now_us = process.running(), self.case.lab.world.now_us
        server, client = broker.remoting_server, broker.broker_outer_api.remoting_client
        yield from self._of_calls(server, server.config.server_async_semaphore_value)
        yield from self._of_calls(client, client.config.client_async_semaphore_value)
        for pool in broker.executors.all():
            yield from self._of_pool(pool)
        over_us = self.case.fault_times.over_since_us() or 0
        for request in broker.pull_request_hold_service.held():
            if max(request.suspended_us + request.timeout_ms * 1_000, over_us) + CHECK_US < now_us:
                yield f"a pull of {request.header.topic} on hold, beyond its {request.timeout_ms} ms"
        for group, members in broker.consumer_manager.consumer_table.items():
            for info in members.channel_info_table.values():
                if self._is_gone(process.name, info.channel):
                    yield f"member {info.client_id} of {group}, whose connection has ended"
        for group, channels in broker.producer_manager.group_channel_table.items():
            for channel, info in channels.items():
                if self._is_gone(process.name, channel):
                    yield f"producer {info.client_id} of {group}, whose connection has ended"

    def _is_gone(self, broker: str, channel: Channel) -> bool:
        if channel.is_active:
            return False
        if (broker, channel.remote_address) in self._ghosts:
            self.excuse(GHOST)
            return False
        return True

    def _of_clients(self, process: ClientProcess) -> Iterator[str]:
        for instance in MQClientManager.of(process.node).factory_table.values():
            remoting = instance.api.remoting_client
            yield from self._of_calls(remoting, remoting.config.client_async_semaphore_value)
        for client, group, _ in process.clients:
            if isinstance(client, DefaultMQProducer):
                yield from self._of_producer(client)
            elif isinstance(client, DefaultMQPushConsumer) and is_running(self.case.lab, process.name, client.impl):
                yield from self._of_consumer(client, group)
            elif isinstance(client, DefaultLitePullConsumer) and client.is_running():
                assigned = client.impl.assigned_message_queue
                cached = ((queue, assigned.process_queue(queue)) for queue in sorted(client.assignment()))
                yield from self._of_queues(((queue, held) for queue, held in cached if held is not None), group)
            elif getattr(client, "speaks_to_proxies", False) and getattr(client.impl, "has_ended", False):
                yield from self._of_ended(process, client.impl)

    @staticmethod
    def _of_ended(process: ClientProcess, consumer: PushConsumerImpl) -> Iterator[str]:
        """What a 5.x push consumer that was shut down has left behind: it is alone in its process."""
        for task in process.node.life.tasks:
            if task.name in CONSUMING_TASKS:
                yield f"the task {task.name!r} of {consumer.group}, which was shut down"

    def _of_producer(self, producer: DefaultMQProducer) -> Iterator[str]:
        sender = producer.impl.async_sender
        yield from self._of_pool(sender.pool)
        for name, total, semaphore in (
            ("semaphoreAsyncSendNum", sender.async_send_num, sender.semaphore_async_send_num),
            ("semaphoreAsyncSendSize", sender.async_send_size, sender.semaphore_async_send_size),
        ):
            if semaphore.permits != total:
                yield f"{total - semaphore.permits} permits of {name} taken, with nothing under way"

    def _of_consumer(self, consumer: DefaultMQPushConsumer, group: str) -> Iterator[str]:
        yield from self._of_pool(consumer.impl.consume_message_service.pool)
        yield from self._of_queues(consumer.impl.rebalance_impl.process_queue_table.items(), group)

    @staticmethod
    def _of_queues(queues: Iterable[tuple[MessageQueue, ProcessQueue]], group: str) -> Iterator[str]:
        """What is counted of queues that have less."""
        for queue, held in queues:
            count = len(held.msg_tree_map) + len(held.consuming_msg_orderly_tree_map)
            if held.msg_count != count or (not count and held.msg_size):
                counted = f"{held.msg_count} messages ({held.msg_size} bytes)"
                yield f"{counted} counted for {queue} of {group}, which has {count}"
