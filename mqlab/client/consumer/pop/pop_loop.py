"""The pop loop: one request after the other, each for messages of whichever queue has some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.consumer.pop.consume_message_pop_concurrently_service import ConsumeMessagePopConcurrentlyService
from mqlab.client.consumer.pop.pop_acks import PopAcks
from mqlab.client.consumer.pop.pop_request import PopRequest
from mqlab.client.consumer.pop.pop_result import PopResult, PopStatus, process_pop_response
from mqlab.client.consumer.pull_api_wrapper import FilterMessageContext
from mqlab.client.consumer.push.pull_loop import (
    BROKER_SUSPEND_MAX_TIME_MS,
    PULL_DELAY_BROKER_FLOW_CONTROL_MS,
    PULL_DELAY_FLOW_CONTROL_MS,
    PULL_DELAY_PAUSED_MS,
)
from mqlab.client.service_state import ServiceState
from mqlab.errors import MQBrokerException, RemotingException
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.headers import PopMessageRequestHeader
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.route import MASTER_ID
from mqlab.trace.events.client import FlowControlled, MessagesFiltered, PullPutOff
from mqlab.trace.events.pop import MessagesTaken, PopFinished, PopRequested

if TYPE_CHECKING:
    from collections.abc import Callable

    from mqlab.client.consumer.listener import MessageListenerFunction
    from mqlab.client.consumer.push.default_mq_push_consumer_impl import DefaultMQPushConsumerImpl
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.remoting import ResponseFuture

MIN_POP_INVISIBLE_TIME_MS, MAX_POP_INVISIBLE_TIME_MS = 5_000, 300_000
DEFAULT_POP_INVISIBLE_TIME_MS = 60_000
LONGER_THAN_POLLING_MS = 10_000
"""A client waits so much longer for the answer than the broker may keep the request."""


def may_try(reconsume_times: int, most: int) -> bool:
    """Whether a message that was delivered again so often may be consumed where `most` repetitions are allowed."""
    return reconsume_times <= most


class PopLoop:
    """Takes the turns of one consumer's pop requests, and has what else a consumer needs to pop.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.popMessage and its PopCallback. Differs
    from RocketMQ: made when the broker first says that the consumer shall pop, and not at each start.
    """

    def __init__(self, owner: DefaultMQPushConsumerImpl, listener: MessageListenerFunction) -> None:
        self._owner = owner
        self._node = owner.node
        self.acks = PopAcks(owner)
        self.consume_message_pop_service = ConsumeMessagePopConcurrentlyService(owner, listener, self.acks)
        self.may_try: Callable[[int, int], bool] = may_try
        """Whether a message goes to the listener, from how often it was delivered again, and how often it may be."""

    # -- asking -----------------------------------------------------------------------------------------------------

    async def pop_message(self, request: PopRequest) -> None:
        """Check whether more messages may be taken now, and ask for some; else come back later, or never if dropped.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.popMessage.
        """
        owner = self._owner
        process_queue = request.process_queue
        if process_queue.dropped:
            return
        process_queue.last_pop_us = self._node.now_us()
        exception_delay_ms = owner.consumer.pull_time_delay_mills_when_exception
        if owner.service_state is not ServiceState.RUNNING:
            self._put_off(request, exception_delay_ms, f"the consumer is not running: {owner.service_state}")
            return
        if owner.pause:
            self._put_off(request, PULL_DELAY_PAUSED_MS, "the consumer is suspended")
            return
        if process_queue.wait_ack_msg_count > owner.consumer.pop_threshold_for_queue:
            self._flow_controlled(request, process_queue.wait_ack_msg_count)
            return
        subscription = owner.rebalance_impl.subscription_inner.get(request.message_queue.topic)
        if subscription is None:
            self._put_off(request, exception_delay_ms, "there is no subscription of the topic")
            return
        address = await self._master_of(request)
        if address is None:
            reason = f"The broker[{request.message_queue.broker_name}] not exist"
            self._put_off(request, exception_delay_ms, reason)
            return
        self._send(request, subscription, address)

    async def _master_of(self, request: PopRequest) -> str | None:
        """The address of the broker's master, after one more look at the name server if it is unknown."""
        routes = self._owner.instance.routes
        broker_name = request.message_queue.broker_name
        found = routes.find_broker_address_in_subscribe(broker_name, MASTER_ID, True)
        if found is None:
            await routes.refresh(request.message_queue.topic)
            found = routes.find_broker_address_in_subscribe(broker_name, MASTER_ID, True)
        return found.address if found is not None else None

    def _send(self, request: PopRequest, subscription: SubscriptionData, address: str) -> None:
        consumer = self._owner.consumer
        topic, broker_name, queue_id = request.message_queue
        invisible_ms = consumer.pop_invisible_time
        if not MIN_POP_INVISIBLE_TIME_MS <= invisible_ms <= MAX_POP_INVISIBLE_TIME_MS:
            invisible_ms = DEFAULT_POP_INVISIBLE_TIME_MS
        header = PopMessageRequestHeader(
            request.consumer_group,
            topic,
            queue_id,
            consumer.pop_batch_nums,
            invisible_ms,
            BROKER_SUSPEND_MAX_TIME_MS,
            self._node.now_ms(),
            request.init_mode,
            subscription.expression_type,
            subscription.sub_string,
            order=False,
            bname=broker_name,
        )
        if self._node.hooks.on:
            self._node.hooks.emit(
                PopRequested(
                    request.consumer_group,
                    *request.message_queue,
                    consumer.pop_batch_nums,
                    invisible_ms,
                    BROKER_SUSPEND_MAX_TIME_MS,
                )
            )
        began_us = self._node.now_us()

        def answered(future: ResponseFuture) -> None:
            response = future.response
            if response is None:
                assert future.error is not None
                self.on_exception(request, future.error)
                return
            try:
                result = process_pop_response(response, broker_name, address, topic)
            except (MQBrokerException, RemotingException) as error:
                self.on_exception(request, error)
                return
            self.on_success(request, subscription, result, self._node.now_us() - began_us)

        timeout_ms = BROKER_SUSPEND_MAX_TIME_MS + LONGER_THAN_POLLING_MS
        self._owner.instance.api.pop.pop_message_async(address, header, timeout_ms, answered)

    # -- the answer -------------------------------------------------------------------------------------------------

    def on_success(self, request: PopRequest, subscription: SubscriptionData, result: PopResult, cost_us: int) -> None:
        """Give the messages to the listener's threads, or take in what the broker said instead, and go on.

        Java: org.apache.rocketmq.client.consumer.PopCallback.onSuccess.
        """
        owner = self._owner
        self._process_pop_result(request, result, subscription)
        messages = result.msg_found_list
        if self._node.hooks.on:
            status = result.pop_status.value
            self._node.hooks.emit(
                PopFinished(request.consumer_group, *request.message_queue, status, len(messages), result.rest_num)
            )
        service = owner.instance.pull_message_service
        if result.pop_status is PopStatus.POLLING_FULL:
            delay_ms = owner.consumer.pull_time_delay_mills_when_exception
            self._put_off(request, delay_ms, "too many pops wait at the broker")
            return
        if result.pop_status is PopStatus.FOUND:
            owner.statistics.pulled(request.message_queue.topic, len(messages), cost_us)
        if messages:
            self._take(request, messages)
            if owner.consumer.pull_interval > 0:
                service.execute_pull_request_later(request, owner.consumer.pull_interval)
                return
        service.execute_pull_request_immediately(request)

    def _take(self, request: PopRequest, messages: list[MessageExt]) -> None:
        process_queue = request.process_queue
        process_queue.wait_ack_msg_count += len(messages)
        if self._node.hooks.on:
            self._node.hooks.emit(
                MessagesTaken(
                    request.consumer_group, *request.message_queue, len(messages), process_queue.wait_ack_msg_count
                )
            )
        self.consume_message_pop_service.submit_pop_consume_request(messages, process_queue, request.message_queue)

    def on_exception(self, request: PopRequest, error: Exception) -> None:
        """Come back later: soon when the broker asked for less haste, else after the usual delay.

        Java: org.apache.rocketmq.client.consumer.PopCallback.onException.
        """
        if isinstance(error, MQBrokerException) and error.response_code == ResponseCode.FLOW_CONTROL:
            delay_ms = PULL_DELAY_BROKER_FLOW_CONTROL_MS
        else:
            delay_ms = self._owner.consumer.pull_time_delay_mills_when_exception
        self._put_off(request, delay_ms, str(error))

    def _process_pop_result(self, request: PopRequest, result: PopResult, subscription: SubscriptionData) -> None:
        """Leave out what the listener shall not get, and acknowledge it: nobody else of the group wants it either.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.processPopResult.
        """
        owner = self._owner
        kept = found = result.msg_found_list
        tags = subscription.tags_set
        if tags and not subscription.class_filter_mode:
            kept = [message for message in found if message.properties.get(MessageConst.TAGS) in tags]
            if len(kept) < len(found) and self._node.hooks.on:
                dropped = len(found) - len(kept)
                self._node.hooks.emit(MessagesFiltered(request.consumer_group, *request.message_queue, dropped))
        if found and owner.pull_api_wrapper.filter_message_hooks:
            context = FilterMessageContext(owner.group_name, request.message_queue, list(kept), owner.unit_mode)
            for hook in owner.pull_api_wrapper.filter_message_hooks:
                hook(context)
            kept = context.msg_list
        most = owner.max_reconsume_times
        allowed = [message for message in kept if self.may_try(message.reconsume_times, most)]
        to_listener = set(allowed)
        for message in found:
            if message not in to_listener:
                tried = message.reconsume_times > most
                self.acks.ack_async(message, "tried too often" if tried else "filtered")
        result.msg_found_list = allowed

    # -- telling ----------------------------------------------------------------------------------------------------

    def _put_off(self, request: PopRequest, delay_ms: int, reason: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(PullPutOff(request.consumer_group, *request.message_queue, reason, delay_ms))
        self._owner.instance.pull_message_service.execute_pull_request_later(request, delay_ms)

    def _flow_controlled(self, request: PopRequest, unacked: int) -> None:
        owner = self._owner
        owner.flow_control_times["unacked"] += 1
        if self._node.hooks.on:
            limit = owner.consumer.pop_threshold_for_queue
            self._node.hooks.emit(
                FlowControlled(request.consumer_group, *request.message_queue, "unacked", unacked, limit)
            )
        owner.instance.pull_message_service.execute_pull_request_later(request, PULL_DELAY_FLOW_CONTROL_MS)
