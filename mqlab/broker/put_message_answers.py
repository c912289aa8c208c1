"""What a producer is answered for each thing that can become of its message in the store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.sim import Future
from mqlab.store import MessageStoreConfig, PutMessageResult, PutMessageStatus
from mqlab.store.put_message import PendingPut

WhenPut = (
    RemotingCommand
    | Future[RemotingCommand | None]
    | Coroutine[Any, Any, RemotingCommand | Future[RemotingCommand | None] | None]
)
"""The answer to a put: now, later without a thread, or later with the thread that put."""

STORED_CODES: dict[PutMessageStatus, int] = {
    PutMessageStatus.PUT_OK: ResponseCode.SUCCESS,
    PutMessageStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutMessageStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutMessageStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}
"""The message is in the commit log, even if it may not be safe yet: the producer gets its place there."""

_ILLEGAL = (
    "the message is illegal, maybe msg body or properties length not matched. "
    "msg body length limit {max_message_size}B, msg properties length limit 32KB."
)
_NOT_AVAILABLE = (
    "service not available now. It may be caused by one of the following reasons: the broker's disk is full {disk}, "
    "messages are put to the slave, message store has been shut down, etc."
)

_REFUSALS: dict[PutMessageStatus, tuple[int, str]] = {
    PutMessageStatus.IN_SYNC_REPLICAS_NOT_ENOUGH: (ResponseCode.SYSTEM_ERROR, "in-sync replicas not enough"),
    PutMessageStatus.CREATE_MAPPED_FILE_FAILED: (
        ResponseCode.SYSTEM_ERROR,
        "create mapped file failed, server is busy or broken.",
    ),
    PutMessageStatus.MESSAGE_ILLEGAL: (ResponseCode.MESSAGE_ILLEGAL, _ILLEGAL),
    PutMessageStatus.PROPERTIES_SIZE_EXCEEDED: (ResponseCode.MESSAGE_ILLEGAL, _ILLEGAL),
    PutMessageStatus.WHEEL_TIMER_NOT_ENABLE: (
        ResponseCode.SYSTEM_ERROR,
        "accurate timer message is not enabled, timerWheelEnable is false",
    ),
    PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL: (
        ResponseCode.MESSAGE_ILLEGAL,
        "timer message illegal, the delay time should not be bigger than the max delay {timer_max_delay_ms}ms; "
        "or if set del msg, the delay time should be bigger than the current time",
    ),
    PutMessageStatus.WHEEL_TIMER_FLOW_CONTROL: (
        ResponseCode.SYSTEM_ERROR,
        "timer message is under flow control, max num limit is {timer_most} or the current value is greater than "
        "{timer_congested} and less than {timer_most}, trigger random flow control",
    ),
    PutMessageStatus.SERVICE_NOT_AVAILABLE: (ResponseCode.SERVICE_NOT_AVAILABLE, _NOT_AVAILABLE),
    PutMessageStatus.OS_PAGE_CACHE_BUSY: (
        ResponseCode.SYSTEM_BUSY,
        "[PC_SYNCHRONIZED]broker busy, start flow control for a while",
    ),
}


def refusal(result: PutMessageResult, config: MessageStoreConfig, disk: str) -> tuple[int, str]:
    """Code and text for a message that was not stored; `disk` is how full the disks are, in RocketMQ's words.

    Java: org.apache.rocketmq.broker.processor.SendMessageProcessor.handlePutMessageResult.
    """
    if result.status is PutMessageStatus.UNKNOWN_ERROR:
        return int(ResponseCode.SYSTEM_ERROR), result.remark or "UNKNOWN_ERROR"
    code, text = _REFUSALS.get(result.status, (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR DEFAULT"))
    return int(code), text.format(
        max_message_size=config.max_message_size,
        disk=disk,
        timer_max_delay_ms=config.timer_max_delay_sec * 1_000,
        timer_congested=config.timer_congest_num_each_slot,
        timer_most=config.timer_congest_num_each_slot * 2,
    )


def answer_when_put(
    outcome: PutMessageResult | Future[PutMessageResult],
    label: str,
    answer: Callable[..., RemotingCommand],
    *args: Any,
) -> WhenPut:
    """`answer(result, *args)`: now, or when what the store still waits for has come; `label` says who waits for it.

    A put that waits for the lock of a slow disk keeps its thread until it is appended: then this is a coroutine.
    """
    if type(outcome) is PutMessageResult:
        return answer(outcome, *args)
    if isinstance(outcome, PendingPut):
        return _when_appended(outcome, label, answer, *args)
    assert isinstance(outcome, Future)
    return _answer_later(outcome, label, answer, *args)


async def _when_appended(
    pending: PendingPut, label: str, answer: Callable[..., RemotingCommand], *args: Any
) -> RemotingCommand | Future[RemotingCommand | None] | None:
    await pending.appended
    return answer(pending.result(), *args) if pending.done else _answer_later(pending, label, answer, *args)


def _answer_later(
    outcome: Future[PutMessageResult], label: str, answer: Callable[..., RemotingCommand], *args: Any
) -> Future[RemotingCommand | None]:
    later: Future[RemotingCommand | None] = Future(label)
    outcome.add_done_callback(lambda done: later.set_result(answer(done.result(), *args)))
    return later
