"""The pull loop: push is pull, one request after the other for each queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.consumer.pull_api_wrapper import PullResult, PullStatus
from mqlab.client.service_state import ServiceState
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.heartbeat import MessageModel
from mqlab.protocol.message import MEBIBYTE
from mqlab.protocol.sysflag import PullSysFlag
from mqlab.trace.events.client import FlowControlled, MessagesCached, PullPutOff, PullRequested

if TYPE_CHECKING:
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.client.consumer.push.default_mq_push_consumer_impl import DefaultMQPushConsumerImpl
    from mqlab.client.consumer.push.pull_request import PullRequest
    from mqlab.client.route_table import FindBrokerResult
    from mqlab.protocol.headers import PullMessageRequestHeader
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.remoting import ResponseFuture

PULL_DELAY_FLOW_CONTROL_MS = 50
PULL_DELAY_BROKER_FLOW_CONTROL_MS = 20
PULL_DELAY_PAUSED_MS = 1_000
BROKER_SUSPEND_MAX_TIME_MS = 15_000
CONSUMER_TIMEOUT_WHEN_SUSPEND_MS = 30_000



class PullLoop:
    """Takes the turns of one consumer's pull requests (DefaultMQPushConsumerImpl.pullMessage and its PullCallback).

    Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.pullMessage.
    """

    def __init__(self, owner: DefaultMQPushConsumerImpl) -> None:
        self._owner = owner
        self._node = owner.node

    # -- asking -----------------------------------------------------------------------------------------------------

    async def pull_message(self, request: PullRequest) -> None:
        """Check whether this queue may be pulled now, and pull; else come back later, or never if it was dropped.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.pullMessage.
        """
        owner = self._owner
        process_queue = request.process_queue
        if process_queue.dropped:
            return
        process_queue.last_pull_us = self._node.now_us()
        exception_delay_ms = owner.consumer.pull_time_delay_mills_when_exception
        if owner.service_state is not ServiceState.RUNNING:
            self._put_off(request, exception_delay_ms, f"the consumer is not running: {owner.service_state}")
            return
        if owner.pause:
            self._put_off(request, PULL_DELAY_PAUSED_MS, "the consumer is suspended")
            return
        if self._is_flow_controlled(request, process_queue):
            owner.instance.pull_message_service.execute_pull_request_later(request, PULL_DELAY_FLOW_CONTROL_MS)
            return
        if owner.consume_orderly and not await self._may_pull_in_order(request, exception_delay_ms):
            return
        subscription = owner.rebalance_impl.subscription_inner.get(request.message_queue.topic)
        if subscription is None:
            self._put_off(request, exception_delay_ms, "there is no subscription of the topic")
            return
        wrapper = owner.pull_api_wrapper
        try:
            found = wrapper.find_broker(request.message_queue) or await wrapper.find_broker_surely(
                request.message_queue
            )
            header = self._header(request, subscription, found)
        except MQClientException as error:
            self._put_off(request, exception_delay_ms, str(error))
            return
        if self._node.hooks.on:
            self._node.hooks.emit(
                PullRequested(
                    request.consumer_group,
                    *request.message_queue,
                    request.next_offset,
                    header.commit_offset,
                    header.sys_flag,
                )
            )
        answer = _PullCallback(self, request, subscription, found.address)
        wrapper.pull_async(found, header, CONSUMER_TIMEOUT_WHEN_SUSPEND_MS, answer)

    def _is_flow_controlled(self, request: PullRequest, process_queue: ProcessQueue) -> bool:
        """Whether too much of the queue is held already: messages, then MiB, then (unless orderly) the span of offsets.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.pullMessage.
        """
        consumer = self._owner.consumer
        if process_queue.msg_count > consumer.pull_threshold_for_queue:
            self._flow_controlled(request, "count", process_queue.msg_count, consumer.pull_threshold_for_queue)
            return True
        cached_mib = process_queue.msg_size // MEBIBYTE
        if cached_mib > consumer.pull_threshold_size_for_queue:
            self._flow_controlled(request, "size", cached_mib, consumer.pull_threshold_size_for_queue)
            return True
        if self._owner.consume_orderly:
            return False
        span = process_queue.max_span()
        if span > consumer.consume_concurrently_max_span:
            self._flow_controlled(request, "span", span, consumer.consume_concurrently_max_span)
            return True
        return False

    async def _may_pull_in_order(self, request: PullRequest, delay_ms: int) -> bool:
        """Orderly consumption pulls only locked queues, and asks once more where to begin after getting a lock.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.pullMessage.
        """
        if not request.process_queue.locked:
            self._put_off(request, delay_ms, "the queue is not locked at its broker")
            return False
        if not request.previously_locked:
            try:
                request.next_offset = await self._owner.rebalance_impl.compute_pull_from_where(request.message_queue)
            except (RemotingException, MQBrokerException, MQClientException) as error:
                self._put_off(request, delay_ms, f"no offset to pull from: {error}")
                return False
            request.previously_locked = True
        return True

    def _header(
        self, request: PullRequest, subscription: SubscriptionData, found: FindBrokerResult
    ) -> PullMessageRequestHeader:
        owner = self._owner
        consumer = owner.consumer
        queue = request.message_queue
        commit_offset = 0
        if owner.message_model is MessageModel.CLUSTERING:
            commit_offset = owner.offset_store.read_from_memory(queue)
        expression = subscription.sub_string if consumer.post_subscription_when_pull else None
        flag = PullSysFlag.build(commit_offset > 0, True, expression is not None, subscription.class_filter_mode)
        return owner.pull_api_wrapper.pull_header(
            found,
            queue,
            expression,
            subscription.expression_type,
            subscription.sub_version,
            request.next_offset,
            consumer.pull_batch_size,
            consumer.pull_batch_size_in_bytes,
            flag,
            commit_offset,
            BROKER_SUSPEND_MAX_TIME_MS,
        )

    # -- the answer -------------------------------------------------------------------------------------------------

    def on_success(
        self, request: PullRequest, subscription: SubscriptionData, result: PullResult, cost_us: int
    ) -> None:
        """Take in the messages, or what the broker said instead, and go on.

        Java: org.apache.rocketmq.client.consumer.PullCallback.onSuccess.
        """
        owner = self._owner
        owner.pull_api_wrapper.process_pull_result(request.message_queue, result, subscription)
        messages = result.msg_found_list
        request.next_offset = result.next_begin_offset
        service = owner.instance.pull_message_service
        if result.pull_status is PullStatus.OFFSET_ILLEGAL:
            self._repair_offset(request)
            return
        if result.pull_status is not PullStatus.FOUND:
            self._correct_tags_offset(request)
            service.execute_pull_request_immediately(request)
            return
        owner.statistics.pulled(request.message_queue.topic, len(messages), cost_us)
        if not messages:
            service.execute_pull_request_immediately(request)
            return
        process_queue = request.process_queue
        dispatch = process_queue.put_message(messages)
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                MessagesCached(
                    request.consumer_group,
                    *request.message_queue,
                    len(messages),
                    process_queue.msg_count,
                    process_queue.msg_size,
                )
            )
        owner.consume_message_service.submit_consume_request(messages, process_queue, request.message_queue, dispatch)
        interval_ms = owner.consumer.pull_interval
        if interval_ms > 0:
            service.execute_pull_request_later(request, interval_ms)
        else:
            service.execute_pull_request_immediately(request)

    def on_exception(self, request: PullRequest, error: Exception) -> None:
        """Come back later: soon when the broker asked for less haste, else after the usual delay.

        Java: org.apache.rocketmq.client.consumer.PullCallback.onException.
        """
        if isinstance(error, MQBrokerException) and error.response_code == ResponseCode.FLOW_CONTROL:
            delay_ms = PULL_DELAY_BROKER_FLOW_CONTROL_MS
        else:
            delay_ms = self._owner.consumer.pull_time_delay_mills_when_exception
        self._put_off(request, delay_ms, str(error))

    def _correct_tags_offset(self, request: PullRequest) -> None:
        """Nothing is cached and nothing matched: what was skipped counts as consumed.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.correctTagsOffset.
        """
        if request.process_queue.msg_count == 0:
            self._owner.offset_store.update_offset(request.message_queue, request.next_offset, increase_only=True)

    def _repair_offset(self, request: PullRequest) -> None:
        """The offset was illegal: set it right for good, give the queue up, and rebalance to take it anew.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.pullMessage.
        """
        request.process_queue.dropped = True
        self._node.spawn(self._take_anew(request), "repair of an offset")

    async def _take_anew(self, request: PullRequest) -> None:
        owner = self._owner
        owner.offset_store.update_and_freeze_offset(request.message_queue, request.next_offset)
        owner.offset_store.persist(request.message_queue)
        await owner.rebalance_impl.remove_process_queue(request.message_queue)
        owner.instance.rebalance_immediately()

    # -- telling ----------------------------------------------------------------------------------------------------

    def _put_off(self, request: PullRequest, delay_ms: int, reason: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(PullPutOff(request.consumer_group, *request.message_queue, reason, delay_ms))
        self._owner.instance.pull_message_service.execute_pull_request_later(request, delay_ms)

    def _flow_controlled(self, request: PullRequest, reason: str, cached: int, limit: int) -> None:
        self._owner.flow_control_times[reason] += 1
        if self._node.hooks.on:
            self._node.hooks.emit(FlowControlled(request.consumer_group, *request.message_queue, reason, cached, limit))


class _PullCallback:
    """Waits for the answer to one pull."""

    __slots__ = ("_address", "_began_us", "_loop", "_request", "_subscription")

    def __init__(self, loop: PullLoop, request: PullRequest, subscription: SubscriptionData, address: str) -> None:
        self._loop = loop
        self._request = request
        self._subscription = subscription
        self._address = address
        self._began_us = loop._node.now_us()

    def __call__(self, future: ResponseFuture) -> None:
        response = future.response
        if response is None:
            assert future.error is not None
            self._loop.on_exception(self._request, future.error)
            return
        try:
            result = self._loop._owner.pull_api_wrapper.process_pull_response(response, self._address)
        except (MQBrokerException, RemotingException) as error:
            self._loop.on_exception(self._request, error)
            return
        cost_us = self._loop._node.now_us() - self._began_us
        self._loop.on_success(self._request, self._subscription, result, cost_us)
