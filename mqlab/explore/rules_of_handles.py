"""Rules of handles: what a client of 5.x holds of a message, and what its proxy does with that meanwhile."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from mqlab.explore.pop_ledger import Queue
from mqlab.explore.readers import clients_in
from mqlab.explore.rule import Case
from mqlab.explore.rules_of_pop import ANSWERED_US, PopRule
from mqlab.lab.processes import ProxyProcess
from mqlab.protocol.codes import RequestCode
from mqlab.trace.record import Record

SETTLED_US = 10_000_000
"""A few tries to settle a message, each of 3 s at the most."""
RENEWED_US = 15_000_000
"""A renewal may come so much later than the last moment for it: a round of 5 s, and a call of a proxy to a broker."""
DRIFT = 1.05
"""By so much clocks are wrong at the most."""

NOT_WRITTEN = "a message that could not be written to its client"
NOT_WRITTEN_TEXT = (
    "A proxy whose client is gone when its messages come lets others have them after a second "
    "(ReceiveMessageResponseStreamWriter). It has noted their handles before, to renew them, and does not note the "
    "new ones: it goes on to renew those of the pop."
)

Request = tuple[str, int]
"""(process that asks, opaque)"""

NACK_TASK = "nack of what could not be written"
"""The task in which a proxy gives back what it could not write to its client."""


class _Given(NamedTuple):
    """A message as a 5.x client is given it: the offset is that of the queue it came from, be it of a topic of retries.

    The client does not say which of the two: it shows what was sent to the group again under its own topic.
    """

    broker: str
    group: str
    queue_id: int
    offset: int
    message_id: str


class _OfListeners(PopRule):
    """A rule of what listeners of 5.x clients are given."""

    def given(self, record: Record) -> _Given:
        """The message that an event of a client is about."""
        broker = self.case.ledger.names.broker_of(record.broker_name)
        return _Given(broker, record.group, record.queue_id, record.queue_offset, record.msg_id)

    def brought_back(self, record: Record) -> _Given:
        """The message that a reviver brings back, as a client was given it."""
        return _Given(record.node, record.group, record.queue_id, record.queue_offset, record.unique_key)

    def is_of_5(self, record: Record) -> bool:
        """Did a client of 5.x say this?"""
        clients = clients_in(self.case.lab, record.node)
        return any(hasattr(client, "subscription_expressions") for client, group, _ in clients if group == record.group)

    @staticmethod
    def ended_node(ended: Record) -> str:
        """Where a process has crashed, or a client was stopped."""
        return str(ended.target if ended.kind == "NodeCrashed" else ended.node)

    @classmethod
    def without(cls, listeners: dict[_Given, Record], ended: Record) -> dict[_Given, Record]:
        """What is left of listeners when a process has crashed, or a client was stopped."""
        node = cls.ended_node(ended)
        return {at: record for at, record in listeners.items() if record.node != node}


class DoneIsSettled(_OfListeners):
    """What a listener of a 5.x client is done with comes no more, unless it could not be settled in its time.

    A client settles again and again, each second, until that works or the handle has expired (ProcessQueueImpl). What
    it has told the broker is AckedStaysAway's to judge.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "ConsumeStarted": "_started", "ConsumeFinished": "_finished", "SettlingFailed": "_not_settled",
        "MessageSettled": "_settled", "MessageRevived": "_revived", "NodeCrashed": "_ended", "ClientStopped": "_ended",
    }  # fmt: skip
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._done: dict[_Given, Record] = {}
        """The end of the listener that was content with a message."""
        self._handles: dict[tuple[str, _Given], int] = {}
        """(process, what its listener was given) -> with how many handles it can settle that yet."""

    def _started(self, record: Record) -> None:
        if self.case.pops.groups:
            held = record.node, self.given(record)
            self._handles[held] = self._handles.get(held, 0) + 1

    def _ended(self, record: Record) -> None:
        self._done = self.without(self._done, record)
        node = self.ended_node(record)
        self._handles = {held: left for held, left in self._handles.items() if held[0] != node}

    def _settled(self, record: Record) -> None:
        held = record.node, self.given(record)
        if self._handles.get(held):
            self._handles[held] -= 1

    def _finished(self, record: Record) -> None:
        if self.case.pops.groups and record.status == "SUCCESS" and self.is_of_5(record):
            self._done[self.given(record)] = record

    def _not_settled(self, record: Record) -> None:
        held = self.given(record)
        self.judged += 1
        if self._handles.get((record.node, held)) == 0:
            reason = f"{record.node} settles {record.msg_id} of {record.topic} for {record.group} again"
            self.found(record.row, f"{reason}, though its handle has expired")
        # Of a handle that is over for who says so; its proxy may have got a newer one, and lost it.
        if "INVALID_RECEIPT_HANDLE" in record.reason:
            self._done.pop(held, None)
            self._handles[record.node, held] = max(0, self._handles.get((record.node, held), 1) - 1)

    def _revived(self, record: Record) -> None:
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        handed = self.case.pops.find(queue, record.queue_offset, record.pop_time)
        done = self._done.get(self.brought_back(record))
        if handed is None or done is None or handed.said_done:
            return
        until_us = (handed.until_ms - self.case.lab.world.epoch_ms) * 1_000
        if not handed.popped_us < done.ts_us < until_us - SETTLED_US:
            return
        # Handed out anew meanwhile, as after a crash, it may be that one which the listener is done with.
        later = self.case.pops.handed[queue, record.queue_offset]
        if any(handed.popped_us < each.popped_us < done.ts_us for each in later):
            return
        self.judged += 1
        if self.case.fault_times.none_between(until_us - SETTLED_US, record.ts_us):
            ago_ms = (record.ts_us - done.ts_us) // 1_000
            reason = f"has been done with the message at {queue} offset {record.queue_offset} for {ago_ms} ms"
            self.found(record.row, f"{done.node} {reason}, and it comes again")


class RenewalsGoOn(_OfListeners):
    """A proxy renews a handle while a client is at its message: until some failures in a row, or renewMaxTimeMillis.

    So nobody else is given what a listener of 5.x works on. Java: DefaultReceiptHandleManager.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "ConsumeStarted": "_started", "ConsumeFinished": "_finished", "NodeCrashed": "_ended",
        "ClientStopped": "_ended", "MessagePopped": "_popped", "HandleRenewed": "_renewed",
        "HandleRenewFailed": "_failed", "HandleGivenUp": "_given_up", "MessageRevived": "_revived",
    }  # fmt: skip
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._at_work: dict[_Given, Record] = {}
        """The begin of the listener that is at a message."""
        self._popped_us: dict[tuple[str, str], int] = {}
        """(group, message) -> when it was handed out."""
        self._failures: dict[tuple[str, str], int] = {}
        """(group, message) -> the renewals that failed since one went well."""
        self._let_go: dict[tuple[str, str], None] = {}
        """(group, message) of what is renewed no more, or was not once."""
        self._again: dict[tuple[str, str], None] = {}
        """(group, message) of what was handed out more than once: events of handles do not say which time they mean."""

    def _started(self, record: Record) -> None:
        if self.case.pops.groups and self.is_of_5(record):
            self._at_work[self.given(record)] = record

    def _finished(self, record: Record) -> None:
        if self._at_work:
            self._at_work.pop(self.given(record), None)

    def _ended(self, record: Record) -> None:
        self._at_work = self.without(self._at_work, record)

    def _popped(self, record: Record) -> None:
        message = record.group, record.unique_key
        if message in self._popped_us:
            self._again[message] = None
        self._popped_us[message] = record.ts_us

    def _renewed(self, record: Record) -> None:
        message = record.group, record.msg_id
        self._failures.pop(message, None)
        held_us, most_ms = self._held_us(record), self._config(record).renew_max_time_millis
        self.judged += 1
        if held_us > most_ms * 1_000 * DRIFT + RENEWED_US and message not in self._again:
            reason = f"renews {record.msg_id} for {record.group}, which was handed out {held_us // 1_000} ms ago"
            self.found(record.row, f"{record.node} {reason}, and does so for {most_ms} ms at the most")

    def _failed(self, record: Record) -> None:
        message = record.group, record.msg_id
        self._failures[message] = self._failures.get(message, 0) + 1
        self._let_go[message] = None

    def _given_up(self, record: Record) -> None:
        message = record.group, record.msg_id
        self._let_go[message] = None
        failures, held_us = self._failures.pop(message, 0), self._held_us(record)
        if message in self._again or record.reason not in ("too many failures", "too long"):
            return
        self.judged += 1
        config = self._config(record)
        reason = f"{record.node} gives {record.msg_id} up for {record.group}"
        if record.reason == "too many failures" and failures < config.max_renew_retry_times:
            self.found(record.row, f"{reason} after {failures} failures in a row")
        elif record.reason == "too long" and held_us * DRIFT < config.renew_max_time_millis * 1_000:
            self.found(record.row, f"{reason}, which was handed out {held_us // 1_000} ms ago")

    def _revived(self, record: Record) -> None:
        start = self._at_work.get(self.brought_back(record))
        message = record.group, record.unique_key
        if start is None or message in self._let_go or message in self._again:
            return
        self.judged += 1
        since_us = self._popped_us.get(message, start.ts_us)
        if self.case.fault_times.none_between(since_us, record.ts_us):
            ago_ms = (record.ts_us - start.ts_us) // 1_000
            at = f"{record.node} {record.topic} queue {record.queue_id} offset {record.queue_offset}"
            self.found(record.row, f"{start.node} is at the message at {at} for {ago_ms} ms, and it is brought back")

    def _held_us(self, record: Record) -> int:
        return int(record.ts_us - self._popped_us.get((record.group, record.msg_id), record.ts_us))

    def _config(self, record: Record) -> Any:
        """The ProxyConfig of who says this."""
        proxy = self.case.lab.processes[record.node]
        assert isinstance(proxy, ProxyProcess)
        return proxy.running().config


class DeadLettersAreTried(PopRule):
    """A message of a 5.x client becomes a dead letter only after its group's retryMaxTimes and one delivery more.

    The proxy counts the deliveries that its broker tells it of, and a client in order also its own tries in between.
    """

    kinds = ("MessagePopped", "ConsumeStarted", "DeadLetterForwarded", "MessageSettled")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._pops: dict[tuple[str, str], int] = {}
        """(group, message) -> how often it was handed out."""
        self._calls: dict[tuple[str, str], int] = {}
        """(group, message) -> how often a listener was called with it since the last time."""

    def on_event(self, record: Record) -> None:
        """Note the deliveries, and count them where a message is given up."""
        if record.kind == "MessagePopped":
            key = (record.group, record.unique_key)
            self._pops[key] = self._pops.get(key, 0) + 1
            self._calls.pop(key, None)
            return
        if record.kind == "ConsumeStarted":
            key = (record.group, record.msg_id)
            self._calls[key] = self._calls.get(key, 0) + 1
            return
        if record.kind == "MessageSettled" and record.settled_as != "dead letter":
            return
        key = (record.group, record.msg_id)
        tries = self._pops.get(key, 0) - 1 + self._calls.get(key, 0)
        least = self._least(record.group)
        self.judged += 1
        if tries < least:
            reason = f"{record.msg_id} becomes a dead letter of {record.group} after {tries} of {least} deliveries"
            self.found(record.row, reason)

    def _least(self, group: str) -> int:
        """What the broker allows that allows least: a proxy asks one of them, and keeps what it said for a while."""
        managers = [broker.running().subscription_group_manager for broker in self.case.lab.masters if broker.is_up()]
        tables = [manager.subscription_group_table for manager in managers]
        return 1 + min((table[group].retry_max_times for table in tables if group in table), default=0)


class HandlesAreTheNewest(PopRule):
    """Whoever has got another invisible time for a message says so from then on: its old handle is not used again.

    A proxy renews the handle that it was given last, and acknowledges with that one.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "InvisibleTimeChanged": "_used", "AckReceived": "_used", "RequestTimedOut": "_given_up",
        "RequestFailed": "_given_up", "RequestSent": "_asked",
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {NOT_WRITTEN: NOT_WRITTEN_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._changed: dict[tuple[Queue, int, int], tuple[int, Request]] = {}
        """(queue, offset, pop time) of the handles that were replaced -> when that was, and who asked for it."""
        self._unanswered: dict[Request, None] = {}
        """The wishes for another invisible time that were given up: who asked has the handle of before, and no other.

        So it is when a broker waits for its slaves for longer than it is waited for.
        """
        self._not_written: dict[Request, None] = {}
        """The wishes of proxies for what they could not give to a client."""

    def _asked(self, record: Record) -> None:
        if record.request_code == RequestCode.CHANGE_MESSAGE_INVISIBLETIME and record.task == NACK_TASK:
            self._not_written[record.node, record.opaque] = None

    def _given_up(self, record: Record) -> None:
        if record.request_code == RequestCode.CHANGE_MESSAGE_INVISIBLETIME:
            self._unanswered[record.node, record.opaque] = None

    def _used(self, record: Record) -> None:
        """Look whether the handle was replaced before."""
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        handle = (queue, record.queue_offset, record.pop_time)
        self.judged += 1
        since_us, request = self._changed.get(handle, (record.ts_us, None))
        # An answer that is on its way, or was lost, leaves who asked with the handle of before.
        is_late = record.ts_us - since_us > ANSWERED_US and request not in self._unanswered
        if is_late and request in self._not_written:
            self.excuse(NOT_WRITTEN)
        elif is_late and self.case.fault_times.none_between(since_us, record.ts_us):
            at = f"{queue} offset {record.queue_offset}"
            ago_ms = (record.ts_us - since_us) // 1_000
            self.found(record.row, f"{record.group} uses a handle of {at} that was replaced {ago_ms} ms ago")
        if record.kind == "InvisibleTimeChanged" and record.new_pop_time != record.pop_time:
            client = self.case.lab.world.network.node_at(record.remote)
            if request is None or request in self._unanswered:
                self._changed[handle] = record.ts_us, (client.name if client is not None else "", record.opaque)
