"""Puts that wait until enough brokers have the message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mqlab.sim import Future, Timer
from mqlab.store.put_message import PutMessageStatus
from mqlab.trace.events.ha import ReplicaPutAnswered, ReplicaPutWaiting

if TYPE_CHECKING:
    from mqlab.sim import Node


@dataclass(slots=True)
class GroupCommitRequest:
    """A put whose producer waits: it is there once `ack_nums` brokers, the master included, have all before
    `next_offset`.

    Java: org.apache.rocketmq.store.CommitLog.GroupCommitRequest.
    """

    next_offset: int
    ack_nums: int
    since_us: int
    answer: Future[PutMessageStatus]
    deadline: Timer | None = None


class GroupTransferService:
    """Answers waiting puts, in their order (org.apache.rocketmq.store.ha.GroupTransferService).

    Differs from RocketMQ: there a thread looks each millisecond, here each report of a slave is the occasion.
    """

    def __init__(self, node: Node, replicas_at: Callable[[int], int]) -> None:
        self._node = node
        self._replicas_at = replicas_at
        """How many brokers have all before an offset, the master included."""
        self._requests: deque[GroupCommitRequest] = deque()

    @property
    def waiting(self) -> int:
        """How many puts wait."""
        return len(self._requests)

    def put_request(self, next_offset: int, ack_nums: int, timeout_ms: int) -> Future[PutMessageStatus]:
        """PUT_OK once `ack_nums` brokers have all before `next_offset`, FLUSH_SLAVE_TIMEOUT after the time."""
        answer: Future[PutMessageStatus] = Future(f"{ack_nums} copies up to {next_offset}")
        request = GroupCommitRequest(next_offset, ack_nums, self._node.now_us(), answer)
        if self._node.hooks.on:
            self._node.hooks.emit(ReplicaPutWaiting(next_offset, ack_nums))
        request.deadline = self._node.timeout(timeout_ms, self._timed_out, request, name="GroupTransferService")
        self._requests.append(request)
        self.notify_transfer_some()
        return answer

    def notify_transfer_some(self) -> None:
        """A slave has reported more: answer what is there now."""
        requests = self._requests
        while requests and self._replicas_at(requests[0].next_offset) >= requests[0].ack_nums:
            self._answer(requests.popleft(), PutMessageStatus.PUT_OK)

    def _timed_out(self, request: GroupCommitRequest) -> None:
        self._requests.remove(request)
        self._answer(request, PutMessageStatus.FLUSH_SLAVE_TIMEOUT)

    def _answer(self, request: GroupCommitRequest, status: PutMessageStatus) -> None:
        assert request.deadline is not None
        request.deadline.cancel()
        if self._node.hooks.on:
            waited_ms = (self._node.now_us() - request.since_us) // 1_000
            self._node.hooks.emit(ReplicaPutAnswered(request.next_offset, request.ack_nums, status.value, waited_ms))
        request.answer.set_result(status)

    def shutdown(self) -> None:
        """Answer nobody any more: the connections of the producers are closed."""
        for request in self._requests:
            assert request.deadline is not None
            request.deadline.cancel()
        self._requests.clear()
