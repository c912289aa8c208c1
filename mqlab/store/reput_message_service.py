"""Dispatch: what the commit log has got becomes readable, in the order in which it was written."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ..sim.disk import DiskFull
from ..sim.service import ServiceThread
from ..trace.events.store import DispatchStalled, MessageDispatched
from .dispatch_request import DispatchRequest
from .running_flags import RunningFlags

if TYPE_CHECKING:
    from .default_message_store import DefaultMessageStore

_STRETCH_BYTES = 1 << 20


class Reput:
    """Goes through the commit log behind the puts and gives each message its queue entry.

    `reput_from_offset` is the end of what is dispatched. Differs from RocketMQ: `put` leaves a request for each message
    here, so that the bytes need not be read again; from `handed_from` on all requests are there, before it the log is
    read.

    Java: org.apache.rocketmq.store.DefaultMessageStore.ReputMessageService.
    """

    def __init__(self, store: DefaultMessageStore) -> None:
        self.store = store
        self.requests: deque[DispatchRequest] = deque()
        self.reput_from_offset = 0
        self.handed_from = 0
        self.stalled = False

    def begin_at(self, offset: int) -> None:
        """Everything before `offset` is dispatched; what comes behind it will be handed over."""
        self.reput_from_offset = self.handed_from = offset
        self.requests.clear()

    @property
    def behind_bytes(self) -> int:
        """How many bytes of the commit log are not dispatched."""
        return self.store.commit_log.max_offset - self.reput_from_offset

    @property
    def is_commit_log_available(self) -> bool:
        """Is there anything that may be dispatched now?"""
        return not self.stalled and self.reput_from_offset < self.store.commit_log.confirm_offset

    def do_reput(self) -> None:
        """Dispatch all that may be dispatched (DefaultMessageStore.ReputMessageService.doReput)."""
        store = self.store
        if self.reput_from_offset < store.commit_log.min_offset:
            self.reput_from_offset = store.commit_log.min_offset
        end = store.commit_log.confirm_offset
        while self.reput_from_offset < min(end, self.handed_from):
            requests, after = store.commit_log.read_requests(
                self.reput_from_offset, min(end, self.handed_from, self.reput_from_offset + _STRETCH_BYTES)
            )
            for request in requests:
                if not self._dispatch(request):
                    return
            if after == self.reput_from_offset:
                return
            self.reput_from_offset = after
        requests_left = self.requests
        while requests_left and requests_left[0].commit_log_offset + requests_left[0].msg_size <= end:
            if not self._dispatch(requests_left[0]):
                return
            requests_left.popleft()
        if not requests_left and self.reput_from_offset >= self.handed_from:
            self.reput_from_offset = max(self.reput_from_offset, end)

    def _dispatch(self, request: DispatchRequest) -> bool:
        store = self.store
        try:
            store.dispatch(request)
        except DiskFull as problem:
            self.stalled = True
            store.running_flags.set(RunningFlags.LOGIC_DISK_FULL)
            if store.hooks.on:
                store.hooks.emit(DispatchStalled(request.commit_log_offset, f"no space left for {problem.path}"))
            return False
        self.reput_from_offset = request.commit_log_offset + request.msg_size
        if not request.has_queue_entry:
            return True
        if store.hooks.on:
            store.hooks.emit(
                MessageDispatched(
                    request.topic,
                    request.queue_id,
                    request.consume_queue_offset,
                    request.commit_log_offset,
                    request.tags_code,
                )
            )
        if store.message_arriving_listener is not None:
            store.message_arriving_listener(
                request.topic,
                request.queue_id,
                request.consume_queue_offset + (request.batch_size or 1),
                request.tags_code,
                request.store_timestamp,
                None,
                request.properties,
            )
        return True


class ReputMessageService(ServiceThread):
    """Looks every millisecond whether there is something to dispatch (DefaultMessageStore.ReputMessageService).

    Java: org.apache.rocketmq.store.DefaultMessageStore.ReputMessageService.
    """

    period_ms = 1

    def __init__(self, store: DefaultMessageStore) -> None:
        super().__init__(store.node)
        self.reput = store.reput

    def has_work(self) -> bool:
        """Is there anything that may be dispatched now?"""
        return self.reput.is_commit_log_available

    def tick(self) -> None:
        """Dispatch it."""
        self.reput.do_reput()
