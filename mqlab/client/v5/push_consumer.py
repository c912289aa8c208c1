"""The consumer of 5.x applications that get their messages brought."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from mqlab.client.client_config import checked_group, checked_settings
from mqlab.client.service_state import ServiceState
from mqlab.client.v5.client_configuration import PushConsumerConfiguration
from mqlab.client.v5.client_impl import MASTER_BROKER_ID, Startable
from mqlab.client.v5.consume_service import (
    ConsumeService,
    FifoConsumeService,
    MessageListener,
    StandardConsumeService,
    checked_listener,
)
from mqlab.client.v5.consumer_impl import ConsumerImpl
from mqlab.client.v5.errors import ClientException, check_status
from mqlab.client.v5.filter_expression import SUB_ALL_EXPRESSION, FilterExpression, checked_filter
from mqlab.client.v5.process_queue import ProcessQueue
from mqlab.errors import LearnerError
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import ClientType, Endpoints, MessageQueue, Permission, Resource, Settings
from mqlab.sim import public_call
from mqlab.trace.events.proxy import AssignmentsScanned, ProcessQueueCreated, ProcessQueueDropped

if TYPE_CHECKING:
    from mqlab.sim import Node

SCAN_ASSIGNMENTS_MS = (1_000, 5_000)
DEFAULT_BATCH_SIZE = 32
DEFAULT_LONG_POLLING_MS = 30_000
"""What a consumer has until a proxy says something else."""

WAIT_FOR_RECEIVES_MS = 100


class PushConsumer(Startable, PushConsumerConfiguration):
    """Gives each message to a listener (org.apache.rocketmq.client.apis.consumer.PushConsumer).

        consumer = lab.push_consumer_v5("orders")
        consumer.subscribe("Orders", "paid")
        consumer.set_message_listener(lambda message: ConsumeResult.SUCCESS)
        await consumer.start()

    It is a loop of receives, one for each assigned queue; a proxy keeps what it has invisible for as long as it lives.
    """

    call_name = "consumer"
    speaks_to_proxies = True
    impl: PushConsumerImpl

    def __init__(self, node: Node, consumer_group: str, **settings: Any) -> None:
        super().__init__(**checked_settings(PushConsumerConfiguration, settings))
        self.node = node
        self.consumer_group = checked_group(consumer_group)
        self.subscription_expressions: dict[str, FilterExpression] = {}
        self.message_listener: MessageListener | None = None
        self.begin_life()

    def begin_life(self) -> None:
        """Make what dies with the process from what this consumer was given: at first, and at each restart."""
        self.impl = PushConsumerImpl(self.node, self)

    def subscribe(self, topic: str, expression: FilterExpression | str = SUB_ALL_EXPRESSION) -> None:
        """Receive this topic, too, from the next scan of assignments on: all of it, or tags like `"paid || shipped"`.
        """
        self.subscription_expressions[topic] = checked_filter(expression)

    def unsubscribe(self, topic: str) -> None:
        """Subscribe no more. As in RocketMQ, queues of the topic that are received from already stay so."""
        self.subscription_expressions.pop(topic, None)

    def set_message_listener(self, listener: MessageListener) -> None:
        """Let this function consume: of one message, plain or `async`, which returns a ConsumeResult.

        A listener that takes its time waits in the world's: `await consumer.node.sleep(ms=300)`.
        """
        if self.impl.service_state is ServiceState.RUNNING:
            raise LearnerError(
                "the consumer runs already, and keeps the listener with which it was started",
                "make a new consumer: await consumer.shutdown(), then lab.push_consumer_v5(...)",
            )
        self.message_listener = checked_listener(self.consumer_group, listener)

    @public_call
    async def shutdown(self) -> None:
        """End the consumer: it receives no more, waits for receives under way (20 s) and listeners, and leaves."""
        await self.impl.shutdown()

    @property
    def process_queues(self) -> list[ProcessQueue]:
        """The queues that this consumer receives from at present."""
        return list(self.impl.process_queue_table.values())

    def __repr__(self) -> str:
        return (
            f"<PushConsumer {self.consumer_group} on {self.node.name}: {self.impl.service_state}, "
            f"{len(self.impl.process_queue_table)} queues>"
        )


class PushConsumerImpl(ConsumerImpl):
    """What a push consumer does (org.apache.rocketmq.client.java.impl.consumer.PushConsumerImpl)."""

    role = "push consumer"
    client_type = ClientType.PUSH_CONSUMER
    consume_service: ConsumeService

    def __init__(self, node: Node, consumer: PushConsumer) -> None:
        super().__init__(node, consumer, consumer.consumer_group, consumer.subscription_expressions)
        self._consumer = consumer
        self._pool = node.pool("MessageConsumption", consumer.consumption_thread_count)
        self._attempts = count(1)
        self._assignments: dict[str, tuple[MessageQueue, ...]] = {}
        self._assignment_index: dict[str, int] = {}
        self.process_queue_table: dict[MessageQueue, ProcessQueue] = {}
        self._shutting_down = False

    def settings(self) -> Settings:
        """What proxies are told."""
        return self._subscription(None)

    @property
    def is_running(self) -> bool:
        """Whether the consumer has started and does not end yet."""
        return super().is_running and not self._shutting_down

    @property
    def has_ended(self) -> bool:
        """Whether the consumer has left its proxies."""
        return self.service_state is ServiceState.SHUTDOWN_ALREADY

    @property
    def long_polling_ms(self) -> int:
        """How long a receive waits for messages."""
        timeout = self.subscription_settings.long_polling_timeout
        return int(timeout) if timeout is not None else DEFAULT_LONG_POLLING_MS

    @property
    def receive_batch_size(self) -> int:
        """How many messages a receive asks for at most."""
        return self.subscription_settings.receive_batch_size or DEFAULT_BATCH_SIZE

    def generate_attempt_id(self) -> str:
        """A new attempt id, in the form of a UUID; Java draws it."""
        return f"{self.node.spec.pid & 0xFFFFFFFF:08x}-0000-4000-8000-{next(self._attempts):012x}"

    # -- start and end ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the consumer, and scan assignments after 1 s and then every 5 s."""
        listener = self._consumer.message_listener
        if listener is None:
            raise ClientException("messageListener has not been set yet. What to do: set_message_listener(...).")
        if not self.subscriptions:
            raise ClientException("subscriptionExpressions have not been set yet. What to do: subscribe(topic).")
        await super().start()
        if self.subscription_settings.fifo:
            self.consume_service = FifoConsumeService(
                self.node, self.group, listener, self._pool, accelerator=self._consumer.enable_fifo_consume_accelerator
            )
        else:
            self.consume_service = StandardConsumeService(self.node, self.group, listener, self._pool)
        self.every(*SCAN_ASSIGNMENTS_MS, self.scan_assignments, "scan assignments")

    async def shutdown(self) -> None:
        """End the consumer in peace: no more receives, then wait for those under way and for listeners, then leave.

        Java: org.apache.rocketmq.client.java.impl.consumer.PushConsumerImpl.shutDown.
        """
        if not self.is_running:
            return
        self._shutting_down = True
        end_us = self.node.now_us() + (self.config.request_timeout + self.long_polling_ms) * 1_000
        while self._is_receiving() and self.node.now_us() <= end_us:
            await self.node.sleep(WAIT_FOR_RECEIVES_MS)
        self._pool.shutdown()
        while self._pool.busy:
            await self.node.sleep(WAIT_FOR_RECEIVES_MS)
        await self.node.sleep(1_000)
        await super().shutdown()

    def _is_receiving(self) -> bool:
        return any(queue.receiving for queue in self.process_queue_table.values())

    # -- assignments ------------------------------------------------------------------------------------------------

    async def scan_assignments(self) -> None:
        """Ask for the assignments of each subscribed topic, and receive from what is assigned.

        Java: org.apache.rocketmq.client.java.impl.consumer.PushConsumerImpl.scanAssignments.
        """
        for topic, expression in list(self.subscriptions.items()):
            if not self.is_running:
                return
            try:
                latest = await self._query_assignment(topic)
            except ClientException:
                # What is assigned stays assigned; the next scan asks again.
                continue
            existed = self._assignments.get(topic)
            if self.node.hooks.on:
                changed = latest != existed
                self.node.hooks.emit(AssignmentsScanned(self.client_id, self.group, topic, len(latest), changed))
            self._sync_process_queue(topic, latest, expression)
            self._assignments[topic] = latest

    async def _query_assignment(self, topic: str) -> tuple[MessageQueue, ...]:
        request = service.QueryAssignmentRequest(Resource(name=topic), Resource(name=self.group), self.endpoints)
        endpoints = self._endpoints_to_query(topic, await self.route(topic))
        response = await self.call(endpoints, service.QUERY_ASSIGNMENT, request)
        check_status(response.status)
        return tuple(assignment.message_queue for assignment in response.assignments)

    def _endpoints_to_query(self, topic: str, queues: tuple[MessageQueue, ...]) -> Endpoints:
        """The proxies that were configured if the route has them, else those of its brokers in turn."""
        if self.endpoints in self.total_route_endpoints():
            return self.endpoints
        usable = [
            queue
            for queue in queues
            if queue.broker.id == MASTER_BROKER_ID and queue.permission is not Permission.NONE
        ]
        if not usable:
            raise ClientException("Failed to pick endpoints to query assignment")
        index = self._assignment_index.get(topic, 0)
        self._assignment_index[topic] = index + 1
        return usable[index % len(usable)].broker.endpoints

    def _sync_process_queue(
        self, topic: str, latest: tuple[MessageQueue, ...], expression: FilterExpression
    ) -> None:
        """Drop the queues that are not assigned any more, or idle for too long; begin with those that are new.

        Java: org.apache.rocketmq.client.java.impl.consumer.PushConsumerImpl.syncProcessQueue.
        """
        for queue, process_queue in list(self.process_queue_table.items()):
            if queue.topic.name != topic:
                continue
            if queue not in latest:
                self._drop_process_queue(queue, "not assigned")
            elif process_queue.expired():
                self._drop_process_queue(queue, "idle")
        for queue in latest:
            if queue not in self.process_queue_table:
                self.process_queue_table[queue] = created = ProcessQueue(self, queue, expression)
                if self.node.hooks.on:
                    self.node.hooks.emit(
                        ProcessQueueCreated(self.client_id, self.group, topic, queue.broker.name, queue.id)
                    )
                created.fetch_message_immediately()

    def _drop_process_queue(self, queue: MessageQueue, reason: str) -> None:
        self.process_queue_table.pop(queue).drop()
        if self.node.hooks.on:
            self.node.hooks.emit(
                ProcessQueueDropped(
                    self.client_id, self.group, queue.topic.name, queue.broker.name, queue.id, reason
                )
            )

    # -- limits -----------------------------------------------------------------------------------------------------

    def cache_message_count_threshold_per_queue(self) -> int:
        """How many messages a queue may cache."""
        queues = len(self.process_queue_table)
        return max(1, self._consumer.max_cache_message_count // queues) if queues else 0

    def cache_message_bytes_threshold_per_queue(self) -> int:
        """How many bytes a queue may cache."""
        queues = len(self.process_queue_table)
        return max(1, self._consumer.max_cache_message_size_in_bytes // queues) if queues else 0
