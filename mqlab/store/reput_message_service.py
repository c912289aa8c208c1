"""Dispatch: what the commit log has got becomes readable, in the order in which it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.sim.disk import DiskFull
from mqlab.sim.service import ServiceThread
from mqlab.store.dispatch_request import DispatchRequest
from mqlab.store.running_flags import RunningFlags
from mqlab.trace.events.store import DispatchStalled, MessageDispatched

if TYPE_CHECKING:
    from mqlab.store.default_message_store import DefaultMessageStore

_STRETCH_BYTES = 1 << 20


class Reput:
    """Goes through the commit log behind the puts and gives each message its queue entry.

    `reput_from_offset` is the end of what is dispatched. Differs from RocketMQ: a put leaves a request for each message
    in `commit_log.requests`, so that its bytes need not be read again; the log is read where none was left.

    Java: org.apache.rocketmq.store.DefaultMessageStore.ReputMessageService.
    """

    def __init__(self, store: DefaultMessageStore) -> None:
        self.store = store
        self.reput_from_offset = 0
        self.stalled = False
        self._unreadable_to = -1
        """Where the log ended when the bytes to dispatch next were no whole record yet."""

    def begin_at(self, offset: int) -> None:
        """Everything before `offset` is dispatched."""
        self.reput_from_offset = offset
        self.store.commit_log.requests.clear()

    @property
    def behind_bytes(self) -> int:
        """How many bytes of the commit log are not dispatched."""
        return self.store.commit_log.max_offset - self.reput_from_offset

    @property
    def is_commit_log_available(self) -> bool:
        """Is there anything that may be dispatched now?"""
        end = self.store.commit_log.confirm_offset
        return not self.stalled and self.reput_from_offset < end != self._unreadable_to

    def do_reput(self) -> None:
        """Dispatch all that may be dispatched (DefaultMessageStore.ReputMessageService.doReput)."""
        store = self.store
        if self.reput_from_offset < store.commit_log.min_offset:
            self.reput_from_offset = store.commit_log.min_offset
        end, requests = store.commit_log.confirm_offset, store.commit_log.requests
        while self.reput_from_offset < end:
            if not requests or requests[0].commit_log_offset > self.reput_from_offset:
                if not self._read_on(min(end, requests[0].commit_log_offset) if requests else end):
                    return
                continue
            request = requests[0]
            if request.commit_log_offset < self.reput_from_offset:
                # Its file was deleted before its turn came.
                requests.popleft()
                continue
            if request.commit_log_offset + request.msg_size > end or not self._dispatch(request):
                return
            requests.popleft()

    def _read_on(self, end: int) -> bool:
        """Dispatch the next stretch of what nobody has left a request for; False when it goes no further."""
        start = self.reput_from_offset
        requests, after = self.store.commit_log.read_requests(start, min(end, start + _STRETCH_BYTES))
        for request in requests:
            if not self._dispatch(request):
                return False
        if after <= start:
            self._unreadable_to = self.store.commit_log.confirm_offset
            return False
        self.reput_from_offset = after
        return True

    def stall(self, commit_log_offset: int, reason: str) -> None:
        """Nothing more can be dispatched, and no message taken, until the disk has room again."""
        store = self.store
        self.stalled = True
        store.running_flags.set(RunningFlags.LOGIC_DISK_FULL)
        if store.services is not None:
            store.services.clean.wakeup_for_work()
        if store.hooks.on:
            store.hooks.emit(DispatchStalled(commit_log_offset, reason))

    def _dispatch(self, request: DispatchRequest) -> bool:
        store = self.store
        try:
            for dispatcher in store.dispatcher_list:
                dispatcher(request)
        except DiskFull as problem:
            self.stall(request.commit_log_offset, f"no space left for {problem.path}")
            return False
        self.reput_from_offset = request.commit_log_offset + request.msg_size
        if request.sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK and not request.has_queue_entry:
            return True
        if store.services is not None:
            store.services.dispatched()
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
                request.bit_map,
                request.properties,
            )
        return True


class ReputMessageService(ServiceThread):
    """Looks every millisecond whether there is something to dispatch (DefaultMessageStore.ReputMessageService).

    Java: org.apache.rocketmq.store.DefaultMessageStore.ReputMessageService.
    """

    def __init__(self, store: DefaultMessageStore) -> None:
        super().__init__(store.node, period_ms=1)
        self.reput = store.reput

    def has_work(self) -> bool:
        """Is there anything that may be dispatched now?"""
        return self.reput.is_commit_log_available

    def tick(self) -> None:
        """Dispatch what has been appended since the last tick."""
        self.reput.do_reput()
