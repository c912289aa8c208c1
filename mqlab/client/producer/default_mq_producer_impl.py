"""What a producer does: its life, and the loop around the attempts of one send."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client.mq_client_manager import MQClientManager
from mqlab.client.producer.async_send import AsyncSend, AsyncSender, Outcome
from mqlab.client.producer.message_queue_selector import MessageQueueSelector
from mqlab.client.producer.mq_fault_strategy import MQFaultStrategy
from mqlab.client.producer.request_scan import scan_begins, scan_ends
from mqlab.client.producer.send_attempts import SendAttempts
from mqlab.client.producer.send_kernel import UNIQ_KEY, SendKernel
from mqlab.client.producer.send_result import SendResult
from mqlab.client.route_table import no_name_server
from mqlab.client.service_state import RUNNING, ServiceState, check_process_lives
from mqlab.client.topic_publish_info import TopicPublishInfo
from mqlab.errors import (
    MQBrokerException,
    MQClientException,
    RemotingException,
    RemotingTooMuchRequestException,
    SimulationError,
)
from mqlab.protocol.batch import MessageBatch
from mqlab.protocol.codes import ClientErrorCode, ResponseCode
from mqlab.protocol.message import Message, MessageQueue
from mqlab.protocol.topics import (
    CLIENT_INNER_PRODUCER_GROUP,
    DEFAULT_PRODUCER_GROUP,
    check_group,
    check_message,
    check_topic,
    is_dlq_topic,
    is_retry_topic,
)
from mqlab.sim import PeriodicTask
from mqlab.trace.events.client import (
    ClientStarted,
    ClientStopped,
    SendAttemptFailed,
    SendFailed,
    SendSucceeded,
)

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.client.producer.default_mq_producer import DefaultMQProducer
    from mqlab.client.producer.transactions import Transactions
    from mqlab.protocol.headers import CheckTransactionStateRequestHeader
    from mqlab.protocol.message import MessageExt
    from mqlab.sim import Life

DETECTOR_PERIOD_MS = 3_000

RETRY_RESPONSE_CODES = frozenset(
    int(code)
    for code in (
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    )
)


class DefaultMQProducerImpl:
    """The producer behind the public class (org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl)."""

    def __init__(self, producer: DefaultMQProducer) -> None:
        self.producer = producer
        self.node = producer.node
        self.service_state = ServiceState.CREATE_JUST
        self.topic_publish_info_table: dict[str, TopicPublishInfo] = {}
        self.fault_strategy = MQFaultStrategy(self.node, producer.send_latency_enable, producer.start_detector_enable)
        self.instance_life: Life | None = None
        self.instance: MQClientInstance
        self.kernel: SendKernel
        self.async_sender = AsyncSender(self)
        self.transactions: Transactions | None = None
        """What a TransactionMQProducer has besides."""
        self._detector: PeriodicTask | None = None

    # -- start and end ----------------------------------------------------------------------------------------------

    def start(self, instance: MQClientInstance | None = None) -> None:
        """Check the settings, join (or make) the client instance and start it; the instance gives its inner producer
        itself.

        Raises MQClientException when the group is illegal, the producer was started before, or its group is taken.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.start.
        """
        check_process_lives(self.instance_life, self.node, "producer")
        if self.service_state is not ServiceState.CREATE_JUST:
            raise MQClientException(
                f"The producer service state not OK, maybe started once, {self.service_state}. "
                "What to do: start a producer once; make a new one after a shutdown."
            )
        self.service_state = ServiceState.START_FAILED
        producer = self.producer
        group = self._checked_group()
        if group != CLIENT_INNER_PRODUCER_GROUP:
            producer.change_instance_name_to_pid(self.node)
        self.instance_life = self.node.life
        self.instance = instance or MQClientManager.of(self.node).get_or_create_mq_client_instance(producer)
        if not self.instance.register_producer(group, self):
            self.service_state = ServiceState.CREATE_JUST
            raise MQClientException(
                f"The producer group[{group}] has been created before, specify another name please. "
                "What to do: give this producer another group or another instance_name."
            )
        self.kernel = SendKernel(
            producer,
            group,
            self.instance,
            producer.send_message_hooks,
            producer.check_forbidden_hooks,
            self.try_to_find_topic_publish_info,
        )
        if instance is None:
            self.instance.start()
        if producer.start_detector_enable:
            self._detector = self.node.schedule_at_fixed_rate(
                self._detect, DETECTOR_PERIOD_MS, DETECTOR_PERIOD_MS, "fault detector"
            )
        self.service_state = RUNNING
        scan_begins(self.node)
        if self.node.hooks.on:
            self.node.hooks.emit(ClientStarted(self.instance.client_id, group, "producer"))

    def _checked_group(self) -> str:
        group = self.producer.producer_group
        check_group(group)
        if group == DEFAULT_PRODUCER_GROUP:
            raise MQClientException(
                f"producerGroup can not equal {group}, please specify another one. What to do: give this producer a "
                "group of its own."
            )
        return group

    async def after_start(self, topics: Iterable[str]) -> None:
        """Fetch the routes of the topics named beforehand, and send the first heartbeat."""
        for topic in topics:
            await self.try_to_find_topic_publish_info(topic)
        await self.instance.heartbeats.send_to_all_brokers()

    async def shutdown(self, shutdown_instance: bool = True) -> None:
        """Leave the instance, and end it when nobody else is there; without effect before a start and after an end.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.shutdown.
        """
        check_process_lives(self.instance_life, self.node, "producer")
        if self.service_state is not RUNNING:
            return
        await self.instance.unregister_producer(self.producer.producer_group)
        self.async_sender.pool.shutdown()
        if self._detector is not None:
            self._detector.cancel()
        if shutdown_instance:
            await self.instance.shutdown()
        if not any(instance.producer_table for instance in MQClientManager.of(self.node).factory_table.values()):
            scan_ends(self.node)
        self.service_state = ServiceState.SHUTDOWN_ALREADY
        if self.node.hooks.on:
            self.node.hooks.emit(ClientStopped(self.instance.client_id, self.producer.producer_group, "producer"))

    def make_sure_state_ok(self) -> None:
        """MQClientException unless the producer runs, in the process that it was started in."""
        if self.instance_life is not self.node.life:
            check_process_lives(self.instance_life, self.node, "producer")
        if self.service_state is not RUNNING:
            raise MQClientException(
                f"The producer service state not OK, {self.service_state}. What to do: await producer.start() first."
            )

    async def _detect(self) -> None:
        producer = self.producer
        await self.fault_strategy.latency_fault_tolerance.detect_by_one_round(
            self._probe, producer.detect_timeout, producer.detect_interval
        )

    async def _probe(self, broker_name: str, timeout_ms: int) -> bool | None:
        address = self.instance.routes.find_broker_address_in_publish(broker_name)
        if address is None:
            return None
        topic = next((t for t, info in self.topic_publish_info_table.items() if info.ok), None)
        if topic is None:
            return False
        try:
            await self.instance.api.get_max_offset(address, MessageQueue(topic, broker_name, 0), timeout_ms)
        except RemotingException:
            return False
        except MQBrokerException:
            # An error is an answer, too.
            return True
        return True

    # -- topics -----------------------------------------------------------------------------------------------------

    def publish_topic_list(self) -> list[str]:
        """The topics that this producer sends to."""
        return list(self.topic_publish_info_table)

    def is_publish_topic_need_update(self, topic: str) -> bool:
        """Whether this producer has no queues for the topic, be it one that it sends to or not."""
        info = self.topic_publish_info_table.get(topic)
        return info is None or not info.ok

    def update_topic_publish_info(self, topic: str, info: TopicPublishInfo) -> None:
        """Take over the queues of a topic, also of one that only others in this client instance have asked for."""
        self.topic_publish_info_table[topic] = info

    async def try_to_find_topic_publish_info(self, topic: str) -> TopicPublishInfo:
        """The queues of a topic: known, asked for, or made up from the template topic.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.tryToFindTopicPublishInfo.
        """
        table = self.topic_publish_info_table
        info = table.get(topic)
        if info is not None and info.ok:
            return info
        routes = self.instance.routes
        table.setdefault(topic, TopicPublishInfo(self.node, topic))
        await routes.refresh(topic)
        info = table[topic]
        if info.have_topic_router_info or info.ok:
            return info
        producer = self.producer
        await routes.refresh_from_default_topic(topic, producer.create_topic_key, producer.default_topic_queue_nums)
        return table[topic]

    def check_transaction_state(
        self, address: str, message: MessageExt, header: CheckTransactionStateRequestHeader
    ) -> None:
        """A broker asks what became of a transaction; a producer that has none does not answer."""
        if self.transactions is not None:
            self.transactions.check_transaction_state(address, message, header)

    async def recall_message(self, topic: str, recall_handle: str) -> str:
        """Ask the broker that a handle names to take a message back; its unique key.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.recallMessage.
        """
        from mqlab.protocol.headers import RecallMessageRequestHeader
        from mqlab.protocol.recall_message_handle import InvalidRecallHandle, RecallMessageHandle

        self.make_sure_state_ok()
        check_topic(topic)
        if is_retry_topic(topic) or is_dlq_topic(topic):
            raise MQClientException("topic is not supported")
        try:
            handle = RecallMessageHandle.decode(recall_handle)
        except InvalidRecallHandle as error:
            raise MQClientException(str(error)) from None
        await self.try_to_find_topic_publish_info(topic)
        routes = self.instance.routes
        address = routes.find_broker_address_in_publish(handle.broker_name) or routes.find_broker_addr_by_topic(topic)
        if not address:
            raise MQClientException("The broker service address not found")
        header = RecallMessageRequestHeader(self.producer.producer_group, topic, recall_handle, handle.broker_name)
        return await self.instance.api.recall_message(address, header, self.producer.send_msg_timeout)

    def no_route(
        self, topic: str, text: str = "", code: int = int(ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION)
    ) -> MQClientException:
        """The error for a topic to which no way is known."""
        if not self.instance.api.remoting_client.name_server_addresses:
            return no_name_server()
        return MQClientException(
            f"{text or f'No route info of this topic: {topic}'}. What to do: create the topic, or see that a name "
            "server and a broker with autoCreateTopicEnable run.",
            code,
        )

    # -- sending ----------------------------------------------------------------------------------------------------

    def batch(self, messages: Sequence[Message]) -> MessageBatch:
        """Several messages as one: each is checked and gets its key, and so does the envelope.

        Java: org.apache.rocketmq.client.producer.DefaultMQProducer.batch.
        """
        batch = MessageBatch.generate_from_list(messages)
        for message in batch.messages:
            check_message(message, self.producer.max_message_size)
            self.kernel.set_unique_key(message)
        self.kernel.set_unique_key(batch)
        batch.encode()
        return batch

    def send_default_impl(
        self, message: Message, mode: str, timeout_ms: int, outcome: Outcome | None = None
    ) -> Coroutine[Any, Any, SendResult | None]:
        """Send to a queue of the producer's choice: up to 1 + retryTimesWhenSendFailed attempts in one time budget.

        `outcome` is told how an asynchronous send ends; only the others wait, and SYNC alone has a result.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.sendDefaultImpl.
        """
        self.make_sure_state_ok()
        begin_us = self.node.world.now_us
        info = self.topic_publish_info_table.get(message.topic)
        if info is None or not message.body or len(message.body) > self.producer.max_message_size:
            # The name of a topic that is in the table was found legal before.
            check_message(message, self.producer.max_message_size)
        attempts = SendAttempts(self, message, mode, timeout_ms, begin_us, outcome)
        if info is None or not info.message_queue_list:
            return self._send_to_new_topic(message.topic, attempts)
        return attempts.run(info)

    async def _send_to_new_topic(self, topic: str, attempts: SendAttempts) -> SendResult | None:
        info = await self.try_to_find_topic_publish_info(topic)
        if not info.ok:
            raise attempts.given_up(self.no_route(topic))
        return await attempts.run(info)

    async def send_async_impl(
        self, message: Message, queue: MessageQueue, timeout_ms: int, info: TopicPublishInfo | None, outcome: Outcome
    ) -> None:
        """Start one asynchronous send to a queue; with `info`, its retries may go to other brokers."""
        prepared, left_ms = await self.kernel.prepare_async(message, queue, timeout_ms)
        AsyncSend(self, prepared, queue, info, outcome, left_ms).start(prepared.address)
        self.kernel.run_after_hooks(prepared.context, None, None)

    async def send_kernel_once(
        self, message: Message, queue: MessageQueue, mode: str, timeout_ms: int, outcome: Outcome | None = None
    ) -> SendResult | None:
        """Send to one given queue, with one attempt.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.send.
        """
        self.make_sure_state_ok()
        check_message(message, self.producer.max_message_size)
        if message.topic != queue.topic:
            raise MQClientException(
                "message's topic not equal mq's topic. What to do: give a queue of the message's own topic."
            )
        begin_us = self.node.now_us()
        try:
            if outcome is not None:
                await self.send_async_impl(message, queue, timeout_ms, None, outcome)
                return None
            result = await self.kernel.send(message, queue, mode, timeout_ms)
        except (MQClientException, MQBrokerException, RemotingException) as error:
            self.report_failed_attempt(message, queue, 1, error, retriable=False)
            self.report_failure(message, 1, begin_us, str(error))
            raise
        if result is not None:
            self.report_success(message, result)
        return result

    async def send_select_impl(
        self,
        message: Message,
        selector: MessageQueueSelector,
        argument: Any,
        mode: str,
        timeout_ms: int,
        outcome: Outcome | None = None,
    ) -> SendResult | None:
        """Send to the queue that the application's selector names, with one attempt.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.sendSelectImpl.
        """
        begin_us = self.node.now_us()
        queue = await self.select_queue(message, selector, argument)
        left_ms = timeout_ms - (self.node.now_us() - begin_us) // 1_000
        if left_ms < 0:
            late = RemotingTooMuchRequestException("sendSelectImpl call timeout")
            self.report_failure(message, 0, begin_us, str(late))
            raise late
        return await self.send_kernel_once(message, queue, mode, left_ms, outcome)

    async def select_queue(self, message: Message, selector: MessageQueueSelector, argument: Any) -> MessageQueue:
        """Ask the application's selector.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.invokeMessageQueueSelector.
        """
        self.make_sure_state_ok()
        check_message(message, self.producer.max_message_size)
        info = await self.try_to_find_topic_publish_info(message.topic)
        if not info.ok:
            raise self.no_route(message.topic, f"No route info for this topic, {message.topic}", -1)
        try:
            queue = selector(list(info.message_queue_list), message, argument)
        except SimulationError:
            raise
        except Exception as error:
            raise MQClientException(
                f"select message queue threw exception. {type(error).__name__}: {error}. What to do: mend the selector."
            ) from error
        if queue is None:
            raise MQClientException("select message queue return null. What to do: let the selector return a queue.")
        return queue

    # -- what is told -----------------------------------------------------------------------------------------------

    def report_success(self, message: Message, result: SendResult) -> None:
        """Tell the listeners that a message is stored."""
        hooks = self.node.hooks
        if hooks.on:
            queue = result.message_queue
            hooks.emit(
                SendSucceeded(
                    message.topic,
                    queue.broker_name,
                    queue.queue_id,
                    result.queue_offset,
                    result.msg_id,
                    result.send_status.value,
                )
            )

    def report_failed_attempt(
        self, message: Message, queue: MessageQueue, attempt: int, error: Exception, *, retriable: bool
    ) -> None:
        """Tell the listeners that one attempt has failed."""
        hooks = self.node.hooks
        if hooks.on:
            msg_id = message.properties.get(UNIQ_KEY, "")
            hooks.emit(SendAttemptFailed(*queue, msg_id, attempt, str(error), retriable))

    def report_failure(self, message: Message, attempts: int, begin_us: int, reason: str) -> None:
        """Tell the listeners that the producer gives up a message."""
        hooks = self.node.hooks
        if hooks.on:
            msg_id = message.properties.get(UNIQ_KEY, "")
            hooks.emit(SendFailed(message.topic, msg_id, attempts, self.node.now_us() - begin_us, reason))
