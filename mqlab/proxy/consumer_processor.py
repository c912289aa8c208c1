"""Popping for clients, and what becomes of what was popped."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.errors import MqlabError
from mqlab.protocol.extra_info import ReceiptHandle, parse_handle
from mqlab.protocol.headers.client import ConsumerSendMsgBackRequestHeader
from mqlab.protocol.headers.pop import PopMessageRequestHeader
from mqlab.protocol.v2.definition import Code
from mqlab.proxy.cluster_message_service import DEFAULT_TIMEOUT_MS, ClusterMessageService
from mqlab.proxy.errors import ProxyException
from mqlab.proxy.grpc_validator import validate_receipt_handle
from mqlab.trace.events.proxy import DeadLetterForwarded, PopResultFiltered

if TYPE_CHECKING:
    from mqlab.client.consumer.pop.pop_result import PopResult
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.protocol.message import MessageExt
    from mqlab.proxy.message_queue_selector import AddressableMessageQueue
    from mqlab.sim import Node

MAX_MSG_NUMS_FOR_POP_REQUEST = 32
INIT_MODE_MAX = 1
"""A group that pops a topic for the first time begins at the newest message (ConsumeInitMode.MAX)."""


class Pop(NamedTuple):
    """What a client wants to have popped; times are in ms."""

    group: str
    topic: str
    max_messages: int
    invisible_ms: int
    poll_ms: int
    subscription: SubscriptionData
    fifo: bool
    attempt_id: str | None
    max_attempts: int


class ConsumerProcessor:
    """Pops, acknowledges, changes invisible times, forwards dead letters.

    Java: org.apache.rocketmq.proxy.processor.ConsumerProcessor, the dead letters from ProducerProcessor.
    """

    def __init__(self, node: Node, messages: ClusterMessageService) -> None:
        self._node = node
        self._messages = messages

    async def pop_message(self, queue: AddressableMessageQueue, pop: Pop, timeout_ms: int) -> PopResult:
        """Pop messages, each with the proxy's handle; those that nobody shall get are settled at once.

        A message whose tag does not match (the broker compares hash codes only) is acknowledged; one that has been
        delivered as often as the group allows goes to the dead letters. Nobody waits for either.
        """
        header = PopMessageRequestHeader(
            consumer_group=pop.group,
            topic=pop.topic,
            queue_id=queue.message_queue.queue_id,
            max_msg_nums=min(pop.max_messages, MAX_MSG_NUMS_FOR_POP_REQUEST),
            invisible_time=pop.invisible_ms,
            poll_time=pop.poll_ms,
            born_time=0,
            init_mode=INIT_MODE_MAX,
            exp_type=pop.subscription.expression_type,
            exp=pop.subscription.sub_string,
            order=pop.fifo,
            attempt_id=pop.attempt_id,
        )
        result = await self._messages.pop_message(queue, header, timeout_ms)
        result.msg_found_list = [message for message in result.msg_found_list if self._is_for_client(message, pop)]
        return result

    def _is_for_client(self, message: MessageExt, pop: Pop) -> bool:
        handle = parse_handle(message.properties["POP_CK"])._replace(commit_log_offset=message.commit_log_offset)
        message.properties["POP_CK"] = handle.encode()
        if not is_tag_matched(pop.subscription.tags_set, message.tags):
            self._tell_filtered(message, handle, pop, "NO_MATCH")
            self._node.spawn(self._in_silence(self.ack_message(handle, pop.topic, pop.group)), "ack of a filtered one")
            return False
        if message.reconsume_times >= pop.max_attempts:
            self._tell_filtered(message, handle, pop, "TO_DLQ")
            forward = self.forward_message_to_dead_letter_queue(handle, message.msg_id, pop.topic, pop.group)
            self._node.spawn(self._in_silence(forward), "forward to dead letters")
            return False
        return True

    def _tell_filtered(self, message: MessageExt, handle: ReceiptHandle, pop: Pop, result: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(
                PopResultFiltered(
                    pop.group, pop.topic, handle.broker_name, message.queue_id, message.queue_offset, message.msg_id,
                    result, message.reconsume_times,
                )
            )  # fmt: skip

    async def _in_silence(self, work: Coroutine[Any, Any, object]) -> None:
        """What fails here comes back when its invisible time is over."""
        with suppress(MqlabError):
            await work

    async def ack_message(
        self, handle: ReceiptHandle, topic: str, group: str, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> bool:
        """Acknowledge a message; GrpcProxyException when its invisible time is over, False when the broker refuses."""
        validate_receipt_handle(handle, self._node.now_ms())
        return await self._messages.ack_message(handle, topic, group, timeout_ms)

    async def change_invisible_time(
        self, handle: ReceiptHandle, topic: str, group: str, invisible_ms: int
    ) -> ReceiptHandle | None:
        """Let a message be invisible from now on for so long: its new handle, None when the broker refuses.

        GrpcProxyException when its invisible time is over.
        """
        validate_receipt_handle(handle, self._node.now_ms())
        return await self._messages.change_invisible_time(handle, topic, group, invisible_ms)

    async def forward_message_to_dead_letter_queue(
        self, handle: ReceiptHandle, message_id: str, topic: str, group: str
    ) -> None:
        """Let the broker put a message to the dead letters of its group, then acknowledge it.

        Java: org.apache.rocketmq.proxy.processor.ProducerProcessor.forwardMessageToDeadLetterQueue.
        """
        if handle.commit_log_offset is None or handle.commit_log_offset < 0:
            raise ProxyException(Code.INVALID_RECEIPT_HANDLE, "commit log offset is empty")
        header = ConsumerSendMsgBackRequestHeader(
            offset=handle.commit_log_offset,
            group=group,
            delay_level=-1,
            origin_msg_id=message_id,
            origin_topic=handle.real_topic(topic, group),
            max_reconsume_times=0,
        )
        await self._messages.send_message_back(handle, header)
        if self._node.hooks.on:
            self._node.hooks.emit(
                DeadLetterForwarded(
                    group, topic, handle.broker_name, handle.queue_id, handle.queue_offset, message_id
                )
            )
        self._node.spawn(self._in_silence(self.ack_message(handle, topic, group)), "ack of a dead letter")


def is_tag_matched(wanted: frozenset[str], tag: str | None) -> bool:
    """Whether a tag is among those that a subscription wants; one that names none wants all.

    Java: org.apache.rocketmq.proxy.common.utils.FilterUtils.isTagMatched.
    """
    return not wanted or tag in wanted
