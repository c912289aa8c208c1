"""The hooks that note what a client does with its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.consumer.hooks import ConsumeMessageContext, ConsumeMessageHook, ConsumeReturnType
from mqlab.client.producer.hooks import EndTransactionContext, EndTransactionHook, SendMessageContext, SendMessageHook
from mqlab.client.producer.send_result import SEND_OK
from mqlab.client.trace.trace_context import TraceBean, TraceContext, TraceType, begin_context
from mqlab.protocol.message import MessageConst

if TYPE_CHECKING:
    from mqlab.client.trace.async_trace_dispatcher import AsyncTraceDispatcher

RETURN_TYPES = list(ConsumeReturnType)
"""How a listener came back, by the number that a record has for it."""
DEFAULT_REGION = "DefaultRegion"


class SendMessageTraceHookImpl(SendMessageHook):
    """Notes each message whose broker has answered; of a send that failed, or was one-way, nothing is noted.

    Java: org.apache.rocketmq.client.trace.hook.SendMessageTraceHookImpl.
    """

    name = "SendMessageTraceHook"

    def __init__(self, dispatcher: AsyncTraceDispatcher) -> None:
        self._dispatcher = dispatcher

    def send_message_before(self, context: SendMessageContext) -> None:
        """Begin a note, unless the message is a trace itself."""
        message = context.message
        if message.topic.startswith(self._dispatcher.trace_topic_name):
            return
        traced = begin_context(self._dispatcher.node, TraceType.PUB)
        traced.group_name = context.producer_group
        traced.trace_beans = [
            TraceBean(
                message.topic,
                tags=message.tags,
                keys=message.keys,
                store_host=context.broker_address,
                body_length=len(message.body),
                msg_type=context.msg_type,
            )
        ]
        context.mq_trace_context = traced

    def send_message_after(self, context: SendMessageContext) -> None:
        """End the note, and give it to the dispatcher, unless its broker wants no traces."""
        traced, result = context.mq_trace_context, context.send_result
        if not isinstance(traced, TraceContext) or result is None or not result.trace_on:
            return
        [bean] = traced.trace_beans
        traced.cost_time = self._dispatcher.node.now_ms() - traced.time_stamp
        traced.is_success = result.send_status is SEND_OK
        traced.region_id = result.region_id
        bean.msg_id = result.msg_id
        bean.offset_msg_id = result.offset_msg_id or ""
        bean.store_time = traced.time_stamp + traced.cost_time // 2
        self._dispatcher.append(traced)


class EndTransactionTraceHookImpl(EndTransactionHook):
    """Notes the outcome of each transaction, also of one that the broker has asked after.

    Java: org.apache.rocketmq.client.trace.hook.EndTransactionTraceHookImpl. As there the kind of message is that of a
    commit, whatever the outcome.
    """

    name = "EndTransactionTraceHook"

    def __init__(self, dispatcher: AsyncTraceDispatcher) -> None:
        self._dispatcher = dispatcher

    def end_transaction(self, context: EndTransactionContext) -> None:
        """Note an outcome."""
        message = context.message
        if message.topic.startswith(self._dispatcher.trace_topic_name):
            return
        traced = begin_context(self._dispatcher.node, TraceType.END_TRANSACTION)
        traced.group_name = context.producer_group
        traced.region_id = message.properties.get(MessageConst.MSG_REGION) or DEFAULT_REGION
        traced.trace_beans = [
            TraceBean(
                message.topic,
                context.msg_id,
                tags=message.tags,
                keys=message.keys,
                store_host=context.broker_address or "null",
                msg_type="TRANS_MSG_COMMIT",
                transaction_state=context.transaction_state,
                transaction_id=context.transaction_id,
                from_transaction_check=context.from_transaction_check,
            )
        ]
        self._dispatcher.append(traced)


class ConsumeMessageTraceHookImpl(ConsumeMessageHook):
    """Notes each call of a listener, before and after, for all its messages that brokers want to have traced.

    Java: org.apache.rocketmq.client.trace.hook.ConsumeMessageTraceHookImpl.
    """

    name = "ConsumeMessageTraceHook"

    def __init__(self, dispatcher: AsyncTraceDispatcher) -> None:
        self._dispatcher = dispatcher

    def consume_message_before(self, context: ConsumeMessageContext) -> None:
        """Note that the listener is called."""
        traced = begin_context(self._dispatcher.node, TraceType.SUB_BEFORE)
        traced.group_name = context.consumer_group
        for message in context.messages:
            if message.properties.get(MessageConst.TRACE_SWITCH) == "false":
                continue
            traced.region_id = message.properties.get(MessageConst.MSG_REGION)
            traced.trace_beans.append(
                TraceBean(
                    message.topic,
                    message.msg_id,
                    tags=message.tags,
                    keys=message.keys,
                    store_time=message.store_timestamp,
                    body_length=message.store_size,
                    retry_times=message.reconsume_times,
                )
            )
        context.mq_trace_context = traced
        if traced.trace_beans:
            self._dispatcher.append(traced)

    def consume_message_after(self, context: ConsumeMessageContext) -> None:
        """Note how the listener came back; as in RocketMQ each message is said to have taken its part of the time."""
        before = context.mq_trace_context
        if not isinstance(before, TraceContext) or not before.trace_beans:
            return
        traced = begin_context(self._dispatcher.node, TraceType.SUB_AFTER)
        traced.region_id = before.region_id
        traced.group_name = before.group_name
        traced.request_id = before.request_id
        traced.is_success = context.success
        traced.cost_time = (traced.time_stamp - before.time_stamp) // len(context.messages)
        traced.trace_beans = before.trace_beans
        if context.return_type is not None:
            traced.context_code = RETURN_TYPES.index(context.return_type)
        self._dispatcher.append(traced)
