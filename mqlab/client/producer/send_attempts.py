"""The attempts of one send: which queue, how long, and what to do when one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.producer.send_kernel import SYNC
from mqlab.client.producer.send_result import SEND_OK, SendResult
from mqlab.client.topic_publish_info import APPLICATION
from mqlab.errors import (
    MQBrokerException,
    MQClientException,
    RemotingConnectException,
    RemotingException,
    RemotingTimeoutException,
    RemotingTooMuchRequestException,
)
from mqlab.protocol.codes import ClientErrorCode
from mqlab.trace.events.client import QueueSelected

if TYPE_CHECKING:
    from mqlab.client.producer.async_send import Outcome
    from mqlab.client.producer.default_mq_producer_impl import DefaultMQProducerImpl
    from mqlab.client.topic_publish_info import TopicPublishInfo
    from mqlab.protocol.message import Message, MessageQueue


class SendAttempts:
    """The loop of DefaultMQProducerImpl.sendDefaultImpl for one message.

    Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.sendDefaultImpl. Differs from RocketMQ: a
    budget that is used up to the millisecond ends the send, where a real clock is always a little past it.
    """

    __slots__ = (
        "_begin_us",
        "_error",
        "_impl",
        "_message",
        "_mode",
        "_outcome",
        "_result",
        "_sent",
        "_timeout_ms",
        "_total",
    )

    def __init__(
        self,
        impl: DefaultMQProducerImpl,
        message: Message,
        mode: str,
        timeout_ms: int,
        begin_us: int,
        outcome: Outcome | None,
    ) -> None:
        self._outcome = outcome
        self._impl = impl
        self._message = message
        self._mode = mode
        self._timeout_ms = timeout_ms
        self._begin_us = begin_us
        self._total = 1 + impl.producer.retry_times_when_send_failed if mode == SYNC else 1
        self._sent: list[str] = []
        self._error: Exception | None = None
        self._result: SendResult | None = None

    async def run(self, info: TopicPublishInfo) -> SendResult | None:
        """Try until it is sent, is refused for good, or the attempts or the time are used up."""
        impl, timeout_ms, total = self._impl, self._timeout_ms, self._total
        producer, world = impl.producer, impl.node.world
        faults, hooks = impl.fault_strategy, world.hooks
        thread = APPLICATION if self._outcome is None else self._outcome.thread
        last_broker: str | None = None
        call_timeout = False
        for times in range(total):
            queue = faults.select_one_message_queue(info, last_broker, times > 0, thread)
            if queue is None:
                break
            if hooks.on:
                hooks.emit(QueueSelected(*queue, times + 1, last_broker or ""))
            last_broker = queue.broker_name
            attempt_us = world.now_us
            cost_ms = (attempt_us - self._begin_us) // 1_000
            # Java asks for less; but a real clock is past the limit after waiting for all of it, and this one is exact.
            if timeout_ms <= cost_ms:
                call_timeout = True
                break
            self._sent.append(last_broker)
            budget_ms = timeout_ms - cost_ms
            most_ms = producer.send_msg_max_timeout_per_request
            if -1 < most_ms < budget_ms and times + 1 < total:
                budget_ms = most_ms
            try:
                if self._outcome is not None:
                    await impl.send_async_impl(self._message, queue, budget_ms, info, self._outcome)
                    return None
                result = await impl.kernel.send(self._message, queue, self._mode, budget_ms)
            except MQClientException as error:
                self._failed(queue, error, attempt_us, isolated=False, reachable=True)
                continue
            except RemotingException as error:
                detecting = faults.start_detector_enable
                self._failed(queue, error, attempt_us, isolated=True, reachable=not detecting)
                continue
            except MQBrokerException as error:
                self._failed(queue, error, attempt_us, isolated=True, reachable=False)
                if error.response_code in impl.producer.retry_response_codes:
                    continue
                if self._result is not None:
                    return self._result
                impl.report_failure(self._message, len(self._sent), self._begin_us, str(error))
                raise
            if faults.send_latency_fault_enable:
                faults.update_fault_item(last_broker, (world.now_us - attempt_us) // 1_000, False, True)
            if result is None:
                return None
            if result.send_status is SEND_OK or not producer.retry_another_broker_when_not_store_ok:
                if hooks.on:
                    impl.report_success(self._message, result)
                return result
            self._result = result
        if self._result is not None:
            impl.report_success(self._message, self._result)
            return self._result
        raise self._failure(call_timeout)

    def given_up(self, error: MQClientException) -> MQClientException:
        """Tell the listeners that the message is given up without an attempt; gives the error back, to be raised."""
        self._impl.report_failure(self._message, 0, self._begin_us, str(error))
        return error

    def _failed(
        self, queue: MessageQueue, error: Exception, attempt_us: int, *, isolated: bool, reachable: bool
    ) -> None:
        self._error = error
        impl = self._impl
        cost_ms = (impl.node.now_us() - attempt_us) // 1_000
        impl.fault_strategy.update_fault_item(queue.broker_name, cost_ms, isolated, reachable)
        codes = impl.producer.retry_response_codes
        retriable = not isinstance(error, MQBrokerException) or error.response_code in codes
        impl.report_failed_attempt(self._message, queue, len(self._sent), error, retriable=retriable)

    def _failure(self, call_timeout: bool) -> Exception:
        cost_us = self._impl.node.now_us() - self._begin_us
        brokers = ", ".join(self._sent + ["null"] * (self._total - len(self._sent)))
        text = (
            f"Send [{len(self._sent)}] times, still failed, cost [{cost_us // 1_000}]ms, "
            f"Topic: {self._message.topic}, BrokersSent: [{brokers}]"
        )
        self._impl.report_failure(self._message, len(self._sent), self._begin_us, f"{self._error or text}")
        if call_timeout:
            return RemotingTooMuchRequestException("sendDefaultImpl call timeout")
        failure = MQClientException(f"{text}. Last error: {self._error}", _response_code(self._error))
        failure.__cause__ = self._error
        return failure


def _response_code(error: Exception | None) -> int:
    if isinstance(error, MQBrokerException):
        return error.response_code
    if isinstance(error, RemotingConnectException):
        return int(ClientErrorCode.CONNECT_BROKER_EXCEPTION)
    if isinstance(error, RemotingTimeoutException):
        return int(ClientErrorCode.ACCESS_BROKER_TIMEOUT)
    if isinstance(error, MQClientException):
        return int(ClientErrorCode.BROKER_NOT_EXIST_EXCEPTION)
    return -1
