"""One attempt to send one message to one queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import MQBrokerException, MQClientException, RemotingException, RemotingTooMuchRequestException
from mqlab.protocol.batch import MessageBatch
from mqlab.protocol.compression import compress, compression_flag
from mqlab.protocol.headers import SendMessageRequestHeaderV2
from mqlab.protocol.message import Message, MessageConst, MessageQueue
from mqlab.protocol.message_id import UniqueKeyGenerator
from mqlab.protocol.properties import NEW_MAP_CAPACITY, encode_properties
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.protocol.topics import is_retry_topic
from mqlab.trace.events.client import SendAttempted

from .hooks import CheckForbiddenHook, SendMessageContext, SendMessageHook

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.sim import Node

    from .producer_config import ProducerConfig
    from .send_result import SendResult

SYNC, ASYNC, ONEWAY = "SYNC", "ASYNC", "ONEWAY"

UNIQ_KEY = MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX


class Prepared(NamedTuple):
    """A message made ready for one queue: where it goes, and what travels.

    `wire_message` is the message itself, or a copy with a packed body.
    """

    address: str
    wire_message: Message
    header: SendMessageRequestHeaderV2
    context: SendMessageContext | None


def unique_key_generator(node: Node) -> UniqueKeyGenerator:
    """The generator of unique keys of a node's process (MessageClientIDSetter)."""
    generator = node.life.singletons.get("MessageClientIDSetter")
    if not isinstance(generator, UniqueKeyGenerator):
        generator = UniqueKeyGenerator(node.spec.ip, node.spec.pid, node.spec.salt)
        node.life.singletons["MessageClientIDSetter"] = generator
    return generator


class SendKernel:
    """Makes a message ready and hands it to remoting (DefaultMQProducerImpl.sendKernelImpl).

    Differs from RocketMQ: the caller's message keeps its body, since a packed body goes into a copy.
    """

    def __init__(
        self,
        config: ProducerConfig,
        producer_group: str,
        instance: MQClientInstance,
        send_message_hooks: list[SendMessageHook],
        check_forbidden_hooks: list[CheckForbiddenHook],
    ) -> None:
        self._config = config
        self._group = producer_group
        self._instance = instance
        self._node = instance.node
        self._unique_keys = unique_key_generator(instance.node)
        self.send_message_hooks = send_message_hooks
        self.check_forbidden_hooks = check_forbidden_hooks

    def set_unique_key(self, message: Message) -> None:
        """Give a message its unique key, unless it has one."""
        if UNIQ_KEY not in message.properties:
            message.properties[UNIQ_KEY] = self._unique_keys.next(self._node.now_ms())

    async def find_address(self, queue: MessageQueue) -> str:
        """The address of the queue's master; MQClientException when nobody knows it."""
        routes = self._instance.routes
        address = routes.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            await routes.refresh(queue.topic)
            address = routes.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            raise MQClientException(f"The broker[{queue.broker_name}] not exist")
        return address

    def prepare(self, message: Message, queue: MessageQueue, address: str, mode: str, budget_ms: int) -> Prepared:
        """The message with its key, packed if it is long, and its header."""
        config = self._config
        is_batch = isinstance(message, MessageBatch)
        if not is_batch:
            self.set_unique_key(message)
        properties = message.properties
        sys_flag = 0
        wire_message = message
        if not is_batch and len(message.body) >= config.compress_msg_body_over_howmuch:
            wire_message = _with_body(message, compress(config.compress_type, message.body, config.compress_level))
            sys_flag = MessageSysFlag.COMPRESSED | compression_flag(config.compress_type)
        if properties.get(MessageConst.TRANSACTION_PREPARED, "").lower() == "true":
            sys_flag |= MessageSysFlag.TRANSACTION_PREPARED
        reconsume_times, max_reconsume_times = 0, None
        if is_retry_topic(message.topic):
            reconsume_times = int(properties.pop(MessageConst.RECONSUME_TIME, "0"))
            limit = properties.pop(MessageConst.MAX_RECONSUME_TIMES, None)
            max_reconsume_times = int(limit) if limit is not None else None
        header = SendMessageRequestHeaderV2(
            self._group,
            message.topic,
            config.create_topic_key,
            config.default_topic_queue_nums,
            queue.queue_id,
            sys_flag,
            self._node.now_ms(),
            message.flag,
            encode_properties(properties, NEW_MAP_CAPACITY),
            reconsume_times,
            config.unit_mode,
            max_reconsume_times,
            is_batch,
            queue.broker_name,
        )
        context = self._run_before_hooks(message, queue, address, mode)
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
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
        return Prepared(address, wire_message, header, context)

    async def send(self, message: Message, queue: MessageQueue, mode: str, timeout_ms: int) -> SendResult | None:
        """Send and wait for the result (SYNC), or send and forget (ONEWAY: None)."""
        address = self._instance.routes.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            begin_us = self._node.now_us()
            address = await self.find_address(queue)
            timeout_ms -= (self._node.now_us() - begin_us) // 1_000
            if timeout_ms < 0:
                raise RemotingTooMuchRequestException("sendKernelImpl call timeout")
        prepared = self.prepare(message, queue, address, mode, timeout_ms)
        api = self._instance.api
        if mode == ONEWAY:
            api.send_message_oneway(address, prepared.wire_message, prepared.header, timeout_ms)
            self.run_after_hooks(prepared.context, None, None)
            return None
        try:
            result = await api.send_message(
                address, queue.broker_name, prepared.wire_message, prepared.header, timeout_ms
            )
        except (RemotingException, MQBrokerException) as error:
            self.run_after_hooks(prepared.context, None, error)
            raise
        self.run_after_hooks(prepared.context, result, None)
        return result

    async def prepare_async(self, message: Message, queue: MessageQueue, timeout_ms: int) -> Prepared:
        """A message made ready for an asynchronous send."""
        address = self._instance.routes.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            address = await self.find_address(queue)
        return self.prepare(message, queue, address, ASYNC, timeout_ms)

    # -- hooks ------------------------------------------------------------------------------------------------------

    def _run_before_hooks(
        self, message: Message, queue: MessageQueue, address: str, mode: str
    ) -> SendMessageContext | None:
        if not self.send_message_hooks and not self.check_forbidden_hooks:
            return None
        context = SendMessageContext(self._group, message, queue, address, self._node.spec.ip, mode)
        properties = message.properties
        if properties.get(MessageConst.TRANSACTION_PREPARED, "").lower() == "true":
            context.msg_type = "TRANS_MSG_HALF"
        elif any(name in properties for name in _DELAY_PROPERTIES):
            context.msg_type = "DELAY_MSG"
        for forbidding in self.check_forbidden_hooks:
            forbidding.check_forbidden(context)
        for hook in self.send_message_hooks:
            hook.send_message_before(context)
        return context

    def run_after_hooks(
        self, context: SendMessageContext | None, result: SendResult | None, error: Exception | None
    ) -> None:
        """Show the hooks how the attempt ended."""
        if context is not None:
            context.send_result, context.error = result, error
            for hook in self.send_message_hooks:
                hook.send_message_after(context)


_DELAY_PROPERTIES = (
    MessageConst.DELAY_TIME_LEVEL,
    MessageConst.TIMER_DELIVER_MS,
    MessageConst.TIMER_DELAY_MS,
    MessageConst.TIMER_DELAY_SEC,
)


def _with_body(message: Message, body: bytes) -> Message:
    copy = Message(message.topic, body, flag=message.flag)
    copy.properties = message.properties
    copy.transaction_id = message.transaction_id
    return copy
