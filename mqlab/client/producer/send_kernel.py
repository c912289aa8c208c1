"""One attempt to send one message to one queue."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.client.producer.hooks import CheckForbiddenContext, CheckForbiddenHook, SendMessageContext, SendMessageHook
from mqlab.errors import (
    MQBrokerException,
    MQClientException,
    RemotingException,
    RemotingTooMuchRequestException,
    SimulationError,
)
from mqlab.protocol.batch import MessageBatch
from mqlab.protocol.compression import compress, compression_flag
from mqlab.protocol.headers import SendMessageRequestHeaderV2
from mqlab.protocol.message import Message, MessageConst, MessageQueue
from mqlab.protocol.message_id import UniqueKeyGenerator
from mqlab.protocol.properties import NEW_MAP_CAPACITY, encode_properties
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.protocol.topics import is_retry_topic
from mqlab.trace.events.client import SendAttempted, SendHookFailed

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.client.producer.producer_config import ProducerConfig
    from mqlab.client.producer.send_result import SendResult
    from mqlab.sim import Node

SYNC, ASYNC, ONEWAY = "SYNC", "ASYNC", "ONEWAY"

UNIQ_KEY = MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX


class Prepared(NamedTuple):
    """A message made ready for an asynchronous send to one queue: where it goes, and what travels."""

    address: str
    wire_message: Message
    header: SendMessageRequestHeaderV2
    context: SendMessageContext | None


def unique_key_generator(node: Node) -> UniqueKeyGenerator:
    """The generator of unique keys of a node's process (MessageClientIDSetter).

    Java: org.apache.rocketmq.common.message.MessageClientIDSetter.
    """
    generator = node.life.singletons.get("MessageClientIDSetter")
    if not isinstance(generator, UniqueKeyGenerator):
        generator = UniqueKeyGenerator(node.spec.ip, node.spec.pid, node.spec.salt)
        node.life.singletons["MessageClientIDSetter"] = generator
    return generator


class SendKernel:
    """Makes a message ready and hands it to remoting (DefaultMQProducerImpl.sendKernelImpl).

    Differs from RocketMQ: the caller's message keeps its body, since a packed body goes into a copy.

    Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.sendKernelImpl.
    """

    def __init__(
        self,
        config: ProducerConfig,
        producer_group: str,
        instance: MQClientInstance,
        send_message_hooks: list[SendMessageHook],
        check_forbidden_hooks: list[CheckForbiddenHook],
        find_queues: Callable[[str], Coroutine[Any, Any, object]],
    ) -> None:
        self._config = config
        self._group = producer_group
        self._instance = instance
        self._node = instance.node
        self._unique_keys = unique_key_generator(instance.node)
        self._find_queues = find_queues
        self.send_message_hooks = send_message_hooks
        self.check_forbidden_hooks = check_forbidden_hooks

    def set_unique_key(self, message: Message) -> None:
        """Give a message its unique key, unless it has one."""
        if UNIQ_KEY not in message.properties:
            message.properties[UNIQ_KEY] = self._unique_keys.next(self._node.now_ms())

    def prepare(
        self, message: Message, queue: MessageQueue, address: str, mode: str, budget_ms: int
    ) -> tuple[Message, SendMessageRequestHeaderV2, SendMessageContext | None]:
        """Give a message its key: what travels (the message itself, or a copy with a packed body), its header, and the
        context of the hooks if there are any.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.tryToCompressMessage.
        """
        config = self._config
        is_batch = isinstance(message, MessageBatch)
        properties = message.properties
        now_ms = self._node.now_ms()
        if not is_batch and UNIQ_KEY not in properties:
            properties[UNIQ_KEY] = self._unique_keys.next(now_ms)
        sys_flag = 0
        wire_message = message
        if not is_batch and len(message.body) >= config.compress_msg_body_over_howmuch:
            wire_message = _with_body(message, compress(config.compress_type, message.body, config.compress_level))
            sys_flag = MessageSysFlag.COMPRESSED | compression_flag(config.compress_type)
        if "TRAN_MSG" in properties and properties["TRAN_MSG"].lower() == "true":
            sys_flag |= MessageSysFlag.TRANSACTION_PREPARED
        if self.check_forbidden_hooks:
            self._check_forbidden(message, queue, address, mode)
        context = self._run_before_hooks(wire_message, queue, address, mode) if self.send_message_hooks else None
        header = self._header(message, queue, sys_flag, now_ms, is_batch)
        if self._node.hooks.on:
            self._node.hooks.emit(
                SendAttempted(
                    message.topic,
                    queue.broker_name,
                    queue.queue_id,
                    properties.get(UNIQ_KEY, ""),
                    mode,
                    budget_ms,
                    len(wire_message.body),
                )
            )
        return wire_message, header, context

    def _header(
        self, message: Message, queue: MessageQueue, sys_flag: int, now_ms: int, is_batch: bool
    ) -> SendMessageRequestHeaderV2:
        config, properties = self._config, message.properties
        # The text is made first: a message for a retry topic carries both numbers in its properties as well.
        properties_text = encode_properties(properties, NEW_MAP_CAPACITY)
        reconsume_times, max_reconsume_times = 0, None
        if is_retry_topic(message.topic):
            reconsume_times = int(properties.pop(MessageConst.RECONSUME_TIME, "0"))
            limit = properties.pop(MessageConst.MAX_RECONSUME_TIMES, None)
            max_reconsume_times = int(limit) if limit is not None else None
        return SendMessageRequestHeaderV2(
            self._group,
            message.topic,
            config.create_topic_key,
            config.default_topic_queue_nums,
            queue.queue_id,
            sys_flag,
            now_ms,
            message.flag,
            properties_text,
            reconsume_times,
            config.unit_mode,
            max_reconsume_times,
            is_batch,
            queue.broker_name,
        )

    async def send(self, message: Message, queue: MessageQueue, mode: str, timeout_ms: int) -> SendResult | None:
        """Send and wait for the result (SYNC), or send and forget (ONEWAY: None)."""
        left_ms = timeout_ms
        address = self._instance.routes.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            address, left_ms = await self._find_address(queue, timeout_ms)
        wire_message, header, context = self.prepare(message, queue, address, mode, left_ms)
        api = self._instance.api
        result: SendResult | None = None
        try:
            if left_ms < 0:
                raise RemotingTooMuchRequestException("sendKernelImpl call timeout")
            if mode == ONEWAY:
                api.send_message_oneway(address, wire_message, header, left_ms)
            else:
                response = await api.send_message(address, wire_message, header, left_ms)
                result = api.process_send_response(queue, wire_message, response, address)
        except (RemotingException, MQBrokerException) as error:
            self.run_after_hooks(context, None, error)
            raise
        if context is not None:
            self.run_after_hooks(context, result, None)
        return result

    async def prepare_async(self, message: Message, queue: MessageQueue, timeout_ms: int) -> tuple[Prepared, int]:
        """A message made ready for an asynchronous send, and the ms that are left for it."""
        left_ms = timeout_ms
        address = self._instance.routes.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            address, left_ms = await self._find_address(queue, timeout_ms)
        wire_message, header, context = self.prepare(message, queue, address, ASYNC, left_ms)
        if left_ms < 0:
            late = RemotingTooMuchRequestException("sendKernelImpl call timeout")
            self.run_after_hooks(context, None, late)
            raise late
        return Prepared(address, wire_message, header, context), left_ms

    async def _find_address(self, queue: MessageQueue, timeout_ms: int) -> tuple[str, int]:
        """The address of a queue's master that is not known yet, and the ms that are left of the time-out then.

        The name server is asked only for a topic that this producer has no queues of. MQClientException when nobody
        knows the address.
        """
        begin_us = self._node.now_us()
        await self._find_queues(queue.topic)
        address = self._instance.routes.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            raise MQClientException(f"The broker[{queue.broker_name}] not exist")
        return address, timeout_ms - (self._node.now_us() - begin_us) // 1_000

    # -- hooks ------------------------------------------------------------------------------------------------------

    def _check_forbidden(self, message: Message, queue: MessageQueue, address: str, mode: str) -> None:
        config = self._config
        context = CheckForbiddenContext(
            config.namesrv_addr, self._group, message, queue, address, mode, config.unit_mode
        )
        for hook in self.check_forbidden_hooks:
            hook.check_forbidden(context)

    def _run_before_hooks(
        self, message: Message, queue: MessageQueue, address: str, mode: str
    ) -> SendMessageContext:
        context = SendMessageContext(self._group, message, queue, address, self._node.spec.ip, mode)
        properties = message.properties
        if properties.get(MessageConst.TRANSACTION_PREPARED) == "true":
            context.msg_type = "TRANS_MSG_HALF"
        if "__STARTDELIVERTIME" in properties or MessageConst.DELAY_TIME_LEVEL in properties:
            context.msg_type = "DELAY_MSG"
        for hook in self.send_message_hooks:
            self._run_hook(hook.send_message_before, hook, context)
        return context

    def run_after_hooks(
        self, context: SendMessageContext | None, result: SendResult | None, error: Exception | None
    ) -> None:
        """Show the hooks how the attempt ended.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.executeSendMessageHookAfter.
        """
        if context is not None:
            context.send_result, context.error = result, error
            for hook in self.send_message_hooks:
                self._run_hook(hook.send_message_after, hook, context)

    def _run_hook(
        self, call: Callable[[SendMessageContext], None], hook: SendMessageHook, context: SendMessageContext
    ) -> None:
        try:
            call(context)
        except SimulationError:
            raise
        except Exception as mistake:  # noqa: BLE001  # RocketMQ swallows it as well; here at least an event tells
            hooks = self._node.hooks
            if hooks.on:
                message = context.message
                reason = f"{type(mistake).__name__}: {mistake}"
                hooks.emit(SendHookFailed(message.topic, message.properties.get(UNIQ_KEY, ""), hook.name, reason))


def _with_body(message: Message, body: bytes) -> Message:
    copy = Message(message.topic, body, flag=message.flag)
    copy.properties = message.properties
    copy.transaction_id = message.transaction_id
    return copy
