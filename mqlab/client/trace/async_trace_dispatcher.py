"""Sending what a client noted of its messages, now and then, behind its back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from mqlab.client.topic_publish_info import TopicPublishInfo
from mqlab.client.trace.trace_data_encoder import CONTENT_SPLITTER, TraceTransferBean, encode_context
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol.hashing import java_map_order
from mqlab.protocol.message import Message, MessageQueue
from mqlab.protocol.topics import RMQ_SYS_TRACE_TOPIC
from mqlab.sim import Future, ServiceThread, WaitTimeout
from mqlab.trace.events.msg_trace import TraceLost, TraceNoted, TraceSent

if TYPE_CHECKING:
    from mqlab.client.client_config import ClientConfig
    from mqlab.client.trace.trace_context import TraceContext
    from mqlab.sim import Node

MOST_IN_A_BATCH = 20
QUEUE_CAPACITY = 2_048
FLUSH_INTERVAL_MS = 5_000
LOOK_MS = 5
"""How often the dispatcher looks whether there is something to send."""
SHUTDOWN_MS = 5_000
MAX_MESSAGE_SIZE = 128_000
SEND_TIMEOUT_MS = 5_000
SEND_THREADS = 2
GROUP_NAME_PREFIX = "_INNER_TRACE_PRODUCER"
TRACE_INSTANCE_NAME = "PID_CLIENT_INNER_TRACE_PRODUCER"

PRODUCE, CONSUME = "PRODUCE", "CONSUME"


class TraceProducer(Protocol):
    """The producer that sends traces, as its dispatcher uses it (a DefaultMQProducer)."""

    @property
    def node(self) -> Node:
        """Where it runs."""
        ...

    @property
    def max_message_size(self) -> int:
        """How long a body may be."""
        ...

    @property
    def impl(self) -> Any:
        """What stands behind the public class."""
        ...

    @property
    def start(self) -> Any:
        """DefaultMQProducer.start."""
        ...

    @property
    def shutdown(self) -> Any:
        """DefaultMQProducer.shutdown."""
        ...

    @property
    def send_async(self) -> Any:
        """DefaultMQProducer.send_async."""
        ...


def trace_producer_settings(node: Node, config: ClientConfig, group: str, kind: str) -> tuple[str, dict[str, Any]]:
    """The group and the settings of the producer that sends the trace of a client: one for each, in an instance that
    all of a process share.

    Java: org.apache.rocketmq.client.trace.AsyncTraceDispatcher.getAndCreateTraceProducer.
    """
    numbers: count[int] = node.life.singletons.setdefault("AsyncTraceDispatcher.COUNTER", count(1))
    return f"{GROUP_NAME_PREFIX}-{group}-{kind}-{next(numbers)}", {
        "namesrv_addr": config.namesrv_addr,
        "namesrv_domain": config.namesrv_domain,
        "instance_name": f"{TRACE_INSTANCE_NAME}_{config.namesrv_addr or 'null'}",
        "send_msg_timeout": SEND_TIMEOUT_MS,
        "max_message_size": MAX_MESSAGE_SIZE,
        "credentials": config.credentials,
    }


class _Worker(ServiceThread):
    """The thread that looks whether there is something to send."""

    def __init__(self, dispatcher: AsyncTraceDispatcher) -> None:
        super().__init__(dispatcher.node, "MQ-AsyncArrayDispatcher-Thread", LOOK_MS)
        self._dispatcher = dispatcher

    def has_work(self) -> bool:
        """Does anything wait to be sent?"""
        return bool(self._dispatcher.trace_context_queue)

    def next_tick_us(self) -> int:
        """The next look, or where less than a batch waits the first one at which that has waited for long enough."""
        soonest_us = super().next_tick_us()
        dispatcher = self._dispatcher
        if len(dispatcher.trace_context_queue) >= dispatcher.batch_num:
            return soonest_us
        return max(soonest_us, self.tick_at(dispatcher.last_flush_us + FLUSH_INTERVAL_MS * 1_000 + 1))

    def tick(self) -> None:
        """Hand on as much as is due."""
        while self._dispatcher.flush_trace_context(force=False):
            pass


class AsyncTraceDispatcher:
    """Keeps what a client notes, and sends it in batches: when there are enough, or five seconds after the last one.

    A note that finds no room among the 2,048 that may wait is lost, and so is a batch that cannot be sent. The notes of
    one batch travel as one message for each topic that they speak of, with the ids and the keys of their messages as
    its keys. As in RocketMQ a text that has become longer than a message may be (128,000) is sent all the same, which
    its producer refuses.

    Java: org.apache.rocketmq.client.trace.AsyncTraceDispatcher. Differs from RocketMQ: there is no access channel of
    a cloud, and the threads that send choose their queues in one turn together.
    """

    def __init__(self, config: ClientConfig, group: str, producer: TraceProducer) -> None:
        self.node = producer.node
        self.group = group
        self.trace_producer = producer
        self.trace_topic_name = ((config.trace_topic or "").strip() and config.trace_topic) or RMQ_SYS_TRACE_TOPIC
        self.batch_num = min(config.trace_msg_batch_num, MOST_IN_A_BATCH)
        self.trace_context_queue: deque[TraceContext] = deque()
        self.discard_count = 0
        self.last_flush_us = self.node.now_us()
        self.trace_executor = self.node.pool("MQTraceSendThread", SEND_THREADS, QUEUE_CAPACITY)
        self._worker = _Worker(self)
        self._is_started = False
        self._turn = -1
        self._sending = 0
        self._idle: Future[None] | None = None

    # -- life -------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the producer and the thread; without a producer that runs nothing is sent, and nobody is told."""
        try:
            await self.trace_producer.start()
        except MQClientException as error:
            self._lost(f"trace dispatcher start failed: {error}")
            return
        self._is_started = True
        self._worker.start()

    async def shutdown(self) -> None:
        """Send what waits, wait for the threads that send for five seconds at most, and end the producer."""
        while self.trace_context_queue:
            self.flush_trace_context(force=True)
        self.trace_executor.shutdown()
        if self._sending:
            self._idle = Future("the threads that send a message trace")
            with suppress(WaitTimeout):
                await self.node.wait(self._idle, SHUTDOWN_MS)
        if self._is_started:
            await self.trace_producer.shutdown()
        self._worker.shutdown()

    # -- what waits -------------------------------------------------------------------------------------------------

    def append(self, context: TraceContext) -> bool:
        """Note something; False if there is no room for it."""
        if len(self.trace_context_queue) >= QUEUE_CAPACITY:
            self.discard_count += 1
            self._lost(f"buffer full {self.discard_count}")
            return False
        self.trace_context_queue.append(context)
        hooks = self.node.hooks
        if hooks.on:
            msg_id, waiting = context.trace_beans[0].msg_id, len(self.trace_context_queue)
            hooks.emit(TraceNoted(self.group, context.trace_type.value, msg_id, waiting))
        self._worker.rearm()
        return True

    def flush_trace_context(self, *, force: bool) -> bool:
        """Give one batch to the threads that send, if it is time or with `force`; was there one?"""
        queue = self.trace_context_queue
        waited_us = self.node.now_us() - self.last_flush_us
        is_time = force or len(queue) >= self.batch_num or waited_us > FLUSH_INTERVAL_MS * 1_000
        if not queue or not is_time:
            return False
        contexts = [queue.popleft() for _ in range(min(self.batch_num, len(queue)))]
        self.last_flush_us = self.node.now_us()
        self._sending += 1
        if not self.trace_executor.submit(self._send_and_count, contexts):
            self._sending -= 1
            self._lost("the threads that send have too much to do")
        return True

    # -- sending ----------------------------------------------------------------------------------------------------

    async def _send_and_count(self, contexts: Sequence[TraceContext]) -> None:
        try:
            await self.send_trace_data(contexts)
        finally:
            self._sending -= 1
            if self._idle is not None and not self._sending:
                self._idle.try_set_result(None)

    async def send_trace_data(self, contexts: Iterable[TraceContext]) -> None:
        """Send notes, those of each topic as a message of their own.

        Java: org.apache.rocketmq.client.trace.AsyncTraceDispatcher.AsyncDataSendTask.sendTraceData.
        """
        by_topic: dict[str, list[TraceTransferBean]] = {}
        for context in contexts:
            if context.region_id is None or not context.trace_beans:
                continue
            key = f"{context.trace_beans[0].topic}{CONTENT_SPLITTER}{self.trace_topic_name}"
            by_topic.setdefault(key, []).append(encode_context(context))
        for key in java_map_order(by_topic):
            await self._flush_data(by_topic[key])

    async def _flush_data(self, beans: Iterable[TraceTransferBean]) -> None:
        words: dict[str, None] = {}
        data = ""
        for bean in beans:
            words.update(dict.fromkeys(bean.trans_key))
            data += bean.trans_data
            if len(data) >= self.trace_producer.max_message_size:
                await self._send_by_mq(words, data)
                words, data = {}, ""
        if data:
            await self._send_by_mq(words, data)

    async def _send_by_mq(self, words: Iterable[str], data: str) -> None:
        topic = self.trace_topic_name
        message = Message(topic, data.encode(), keys=java_map_order(words))
        if self.node.hooks.on:
            self.node.hooks.emit(TraceSent(topic, self.group, len(message.body)))
        try:
            brokers = await self._brokers_of(topic)
            if brokers:
                await self.trace_producer.send_async(message, self._sent, selector=self._select, argument=brokers)
            else:
                await self.trace_producer.send_async(message, self._sent, timeout=SEND_TIMEOUT_MS)
        except (MQClientException, MQBrokerException, RemotingException) as error:
            self._lost(str(error))

    async def _brokers_of(self, topic: str) -> frozenset[str]:
        """The brokers that have the topic of traces; none when no name server knows one."""
        impl = self.trace_producer.impl
        table = impl.topic_publish_info_table
        info = table.get(topic)
        if info is None or not info.ok:
            table.setdefault(topic, TopicPublishInfo(self.node, topic))
            await impl.instance.routes.refresh(topic)
            info = table[topic]
        return frozenset(queue.broker_name for queue in info.message_queue_list)

    def _select(self, queues: Sequence[MessageQueue], message: Message, brokers: frozenset[str]) -> MessageQueue:
        own = [queue for queue in queues if queue.broker_name in brokers]
        if self._turn < 0:
            self._turn = self.node.choose(f"first-queue/{self.trace_topic_name}", len(own))
        else:
            self._turn += 1
        return own[self._turn % len(own)]

    def _sent(self, result: object, error: Exception | None) -> None:
        if error is not None:
            self._lost(str(error))

    def _lost(self, reason: str) -> None:
        if self.node.hooks.on:
            self.node.hooks.emit(TraceLost(self.group, reason))
