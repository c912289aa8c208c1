"""The producer that applications use."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.arguments import check_whole
from mqlab.client.client_config import checked_group, checked_settings
from mqlab.client.mq_client_manager import MQClientManager
from mqlab.client.producer.async_send import Outcome, SendCallback
from mqlab.client.producer.default_mq_producer_impl import RETRY_RESPONSE_CODES, DefaultMQProducerImpl
from mqlab.client.producer.producer_config import ProducerConfig
from mqlab.client.producer.send_kernel import ASYNC, ONEWAY, SYNC
from mqlab.client.producer.send_result import SendResult
from mqlab.errors import LearnerError, MQClientException
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.message import Message, MessageQueue
from mqlab.sim import Future, public_call

if TYPE_CHECKING:
    from mqlab.client.producer.async_send import SendCallbackFunction
    from mqlab.client.producer.hooks import CheckForbiddenHook, EndTransactionHook, SendMessageHook
    from mqlab.client.producer.message_queue_selector import MessageQueueSelector
    from mqlab.client.producer.produce_accumulator import ProduceAccumulator
    from mqlab.client.producer.request_response_future import RequestCallback, RequestCallbackFunction
    from mqlab.client.producer.requests import Destination
    from mqlab.client.trace.async_trace_dispatcher import AsyncTraceDispatcher
    from mqlab.protocol.message import MessageExt
    from mqlab.sim import Node


class DefaultMQProducer(ProducerConfig):
    """Sends messages (org.apache.rocketmq.client.producer.DefaultMQProducer).

        producer = DefaultMQProducer(node, "please_rename_group", namesrv_addr="10.0.0.1:9876")
        await producer.start()
        result = await producer.send(Message("TopicTest", "hello", tags="TagA"))

    All settings of `ProducerConfig` can be given as keywords and changed as attributes before the start. Methods that
    wait are awaited, in a cell as well as in a task of the world.
    """

    call_name = "producer"

    def __init__(self, node: Node, producer_group: str, *, topics: Iterable[str] = (), **settings: Any) -> None:
        super().__init__(**checked_settings(ProducerConfig, settings))
        self.node = node
        self.producer_group = checked_group(producer_group)
        self.topics = list(topics)
        self.send_message_hooks: list[SendMessageHook] = []
        self.check_forbidden_hooks: list[CheckForbiddenHook] = []
        self.end_transaction_hooks: list[EndTransactionHook] = []
        self.trace_dispatcher: AsyncTraceDispatcher | None = None
        self._trace_hooks: tuple[SendMessageHook, EndTransactionHook] | None = None
        self.retry_response_codes: set[int] = set(RETRY_RESPONSE_CODES)
        """The codes of an answer after which another broker is tried."""
        self.begin_life()

    def begin_life(self) -> None:
        """Make what dies with the process from what this producer was given: at first, and at each restart."""
        self.forget_name_of_process()
        self.impl = DefaultMQProducerImpl(self)
        self._accumulator: ProduceAccumulator | None = None
        if self._trace_hooks is not None:
            self.send_message_hooks.remove(self._trace_hooks[0])
            self.end_transaction_hooks.remove(self._trace_hooks[1])
            self._trace_hooks = self.trace_dispatcher = None

    @public_call
    async def start(self) -> None:
        """Start the producer; MQClientException when its settings are wrong or it was started before."""
        self.impl.start()
        if self.auto_batch:
            self._accumulator = MQClientManager.of(self.node).get_or_create_produce_accumulator(self)
            self._accumulator.adjust(self.batch_max_delay_ms, self.batch_max_bytes, self.total_batch_max_bytes)
        await self.impl.after_start(self.topics)
        if self.enable_trace:
            from mqlab.client.trace.tracing import trace_sends

            dispatcher, sends, ends = trace_sends(self.node, self, self.producer_group, DefaultMQProducer)
            self.trace_dispatcher, self._trace_hooks = dispatcher, (sends, ends)
            self.send_message_hooks.append(sends)
            self.end_transaction_hooks.append(ends)
            await dispatcher.start()

    @public_call
    async def shutdown(self) -> None:
        """End the producer; it tells the brokers that it leaves. What waits for a batch is sent before."""
        if self._accumulator is not None:
            self._accumulator.flush()
        await self.impl.shutdown()
        if self.trace_dispatcher is not None:
            await self.trace_dispatcher.shutdown()

    def register_send_message_hook(self, hook: SendMessageHook) -> None:
        """Let a hook see every attempt to send.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.registerSendMessageHook.
        """
        self.send_message_hooks.append(hook)

    def register_check_forbidden_hook(self, hook: CheckForbiddenHook) -> None:
        """Let a hook forbid messages."""
        self.check_forbidden_hooks.append(hook)

    def register_end_transaction_hook(self, hook: EndTransactionHook) -> None:
        """Let a hook see the outcome of each transaction."""
        self.end_transaction_hooks.append(hook)

    # -- sending ----------------------------------------------------------------------------------------------------

    @public_call
    async def send(
        self, message: Message | Sequence[Message], *, queue: MessageQueue | None = None, timeout: int | None = None
    ) -> SendResult:
        """Send a message, or several as one batch, and wait until the broker has it.

        Without a `queue` the producer chooses one, and tries again on another broker when that fails; all attempts
        together take at most `timeout` ms. Raises MQClientException, MQBrokerException or a RemotingException.

        Java: org.apache.rocketmq.client.producer.DefaultMQProducer.send.
        """
        timeout_ms = self.send_msg_timeout if timeout is None else self._budget_ms(timeout)
        if queue is not None:
            self._check_queue(queue)
        one = message if isinstance(message, Message) else self._one(message)
        if self._accumulator is not None and self._waits_for_company(one, timeout):
            return await self._accumulate(one, queue, SYNC)
        if queue is None:
            result = await self.impl.send_default_impl(one, SYNC, timeout_ms)
        else:
            result = await self.impl.send_kernel_once(one, queue, SYNC, timeout_ms)
        assert result is not None
        return result

    @public_call
    async def send_async(
        self,
        message: Message | Sequence[Message],
        callback: SendCallback | SendCallbackFunction,
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        argument: Any = None,
        timeout: int | None = None,
    ) -> None:
        """Send a message without waiting for the broker; `callback(result, error)` is called once with the outcome.

        A failed attempt is tried again up to `retry_times_when_send_async_failed` times while there is time. With
        back-pressure this call itself waits while too many messages are on their way.

        Java: org.apache.rocketmq.client.producer.DefaultMQProducer.send.
        """
        self.impl.make_sure_state_ok()
        timeout_ms = self._budget_ms(timeout)
        self._check_queue(queue)
        if not callable(callback) and not isinstance(callback, SendCallback):
            raise LearnerError(
                f"{callback!r} is no callback", "write def callback(result, error): ... or a class of SendCallback"
            )
        if selector is not None:
            self._check_selector(selector)
        one = self._one(message)
        impl = self.impl
        if selector is None and self._waits_for_company(one, timeout):
            told = Outcome(impl, one, callback)
            self._accumulate(one, queue, ASYNC).add_done_callback(lambda answer: self._tell(told, answer))
            return

        async def dispatch(outcome: Outcome, left_ms: int) -> None:
            if queue is not None:
                await impl.send_kernel_once(one, queue, ASYNC, left_ms, outcome)
            elif selector is not None:
                await impl.send_select_impl(one, selector, argument, ASYNC, left_ms, outcome)
            else:
                await impl.send_default_impl(one, ASYNC, left_ms, outcome)

        await impl.async_sender.send(one, callback, timeout_ms, dispatch)

    @public_call
    async def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Send a message and do not wait for any answer: it may be lost, and nobody will know.

        Java: org.apache.rocketmq.client.producer.DefaultMQProducer.sendOneway.
        """
        self._check_queue(queue)
        message = self._one(message)
        if queue is None:
            await self.impl.send_default_impl(message, ONEWAY, self.send_msg_timeout)
        else:
            await self.impl.send_kernel_once(message, queue, ONEWAY, self.send_msg_timeout)

    @public_call
    async def send_by_selector(
        self, message: Message, selector: MessageQueueSelector, argument: Any, *, timeout: int | None = None
    ) -> SendResult:
        """Send a message to the queue that `selector(queues, message, argument)` returns, with one attempt."""
        timeout_ms = self._budget_ms(timeout)
        self._check_selector(selector)
        result = await self.impl.send_select_impl(self._one(message), selector, argument, SYNC, timeout_ms)
        assert result is not None
        return result

    @public_call
    async def request(
        self,
        message: Message,
        *,
        timeout: int,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        argument: Any = None,
    ) -> MessageExt:
        """Send a message and wait for the reply of whoever consumes it, for `timeout` ms at most.

            reply = await producer.request(Message("Prices", "tea"), timeout=3_000)

        The consumer makes the reply with `create_reply_message` and sends it with a producer of its own. Raises
        RequestTimeoutException when none came, MQClientException when the message could not be sent, and whatever else
        a send may raise.

        Java: org.apache.rocketmq.client.producer.DefaultMQProducer.request.
        """
        from mqlab.client.producer.requests import request

        timeout_ms = self._budget_ms(timeout)
        return await request(self.impl, self._one(message), self._destination(queue, selector, argument), timeout_ms)

    @public_call
    async def request_async(
        self,
        message: Message,
        callback: RequestCallback | RequestCallbackFunction,
        *,
        timeout: int,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        argument: Any = None,
    ) -> None:
        """Send a message and go on; `callback(reply, error)` is called with the reply, or with the reason why there is
        none.

        That no reply has come in time is found out by a scan each second.

        Java: org.apache.rocketmq.client.producer.DefaultMQProducer.request.
        """
        from mqlab.client.producer.request_response_future import RequestCallback
        from mqlab.client.producer.requests import request_async

        if not callable(callback) and not isinstance(callback, RequestCallback):
            raise LearnerError(
                f"{callback!r} is no callback", "write def callback(reply, error): ... or a class of RequestCallback"
            )
        timeout_ms = self._budget_ms(timeout)
        destination = self._destination(queue, selector, argument)
        await request_async(self.impl, self._one(message), callback, destination, timeout_ms)

    def _destination(
        self, queue: MessageQueue | None, selector: MessageQueueSelector | None, argument: Any
    ) -> Destination:
        from mqlab.client.producer.requests import Destination

        self._check_queue(queue)
        if selector is not None:
            self._check_selector(selector)
        return Destination(queue, selector, argument)

    @public_call
    async def recall_message(self, topic: str, recall_handle: str) -> str:
        """Take a timer message back that is not due yet, with the handle of its SendResult; its unique key.

        The broker must allow it (recallMessageEnable). It answers before it has looked for the message: where the
        message is delivered already, nothing happens. Raises MQClientException, MQBrokerException or a
        RemotingException.
        """
        return await self.impl.recall_message(topic, recall_handle)

    def _waits_for_company(self, message: Message, timeout: int | None) -> bool:
        """Whether a message goes into an automatic batch: as in RocketMQ not one with a time-out of its own."""
        return self._accumulator is not None and timeout is None and self._accumulator.can_batch(message)

    def _accumulate(self, message: Message, queue: MessageQueue | None, mode: str) -> Future[SendResult]:
        self.impl.make_sure_state_ok()
        assert self._accumulator is not None
        return self._accumulator.add(message, queue, self, mode)

    def _tell(self, outcome: Outcome, answer: Future[SendResult]) -> None:
        error = answer.error
        told = outcome(None, error) if isinstance(error, Exception) else outcome(answer.result(), None)
        if isinstance(told, Coroutine):
            self.node.spawn(told, "callback of a batch")

    def _budget_ms(self, timeout: int | None) -> int:
        if timeout is None:
            return self.send_msg_timeout
        check_whole("timeout", timeout, "give milliseconds: producer.send(message, timeout=3000)")
        return timeout

    @staticmethod
    def _check_queue(queue: object) -> None:
        if queue is not None and not isinstance(queue, MessageQueue):
            raise LearnerError(
                f"queue={queue!r} is no queue",
                "take one of await producer.fetch_publish_message_queues(topic), "
                'or write MessageQueue("TopicTest", "broker-a", 0)',
            )

    @staticmethod
    def _check_selector(selector: object) -> None:
        if not callable(selector):
            raise LearnerError(
                f"selector={selector!r} is no function",
                "write def selector(queues, message, argument): return queues[0]",
            )

    def _one(self, message: Message | Sequence[Message] | None) -> Message:
        """The message, or the batch of several."""
        if isinstance(message, Message):
            return message
        self.impl.make_sure_state_ok()
        if message is None:
            raise MQClientException("the message is null", int(ResponseCode.MESSAGE_ILLEGAL))
        messages = list(message) if isinstance(message, Iterable) else [message]
        if not all(isinstance(member, Message) for member in messages):
            raise LearnerError(
                f"a producer sends messages, not {type(message).__name__}", 'write Message("TopicTest", "hello")'
            )
        return self.impl.batch(messages)

    @public_call
    async def fetch_publish_message_queues(self, topic: str) -> list[MessageQueue]:
        """The queues that this producer could send to."""
        self.impl.make_sure_state_ok()
        info = await self.impl.try_to_find_topic_publish_info(topic)
        if not info.ok:
            raise self.impl.no_route(topic)
        return list(info.message_queue_list)

    def __repr__(self) -> str:
        return f"<DefaultMQProducer {self.producer_group} on {self.node.name}: {self.impl.service_state}>"
