"""Rules of Pop in order: one after the other, also by attempts that come again, and counted."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.places import QueueKey
from mqlab.explore.pop_ledger import Handed, Queue
from mqlab.explore.readers import clients_in
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_pop import (
    IN_ORDER_NO_MORE,
    IN_ORDER_NO_MORE_TEXT,
    ORDER_FORGOTTEN,
    ORDER_FORGOTTEN_TEXT,
    PopRule,
)
from mqlab.protocol.pop_check_point import POP_ORDER_REVIVE_QUEUE
from mqlab.trace.record import Record

RINGS_TOO_EARLY = "an alarm for the first message alone"
RINGS_TOO_EARLY_TEXT = (
    "The alarm of a queue that is popped in order is set for the first message that is out. When that one was given "
    "back, and so can be seen sooner than those behind it, nobody is woken once these can be seen, too: the alarm has "
    "rung, and only what becomes of a message sets it anew (OrderInfo.getLockFreeTimestamp)."
)

WOKEN_MS = 2_000
"""Whoever waits in order is woken by then."""


class OrderedPopsWait(PopRule):
    """In order nothing behind a message, nor that one again, is handed out before it is done or visible again.

    An attempt that asks once more gets the same messages again.
    """

    kinds = ("MessagePopped",)
    EXCEPTIONS: ClassVar[dict[str, str]] = {ORDER_FORGOTTEN: ORDER_FORGOTTEN_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._out: dict[Queue, dict[int, Handed]] = {}
        """Queue -> what was handed out of it in order and is not done, by its offset."""
        self._attempt_of: dict[tuple[Queue, int], str] = {}

    def on_event(self, record: Record) -> None:
        """Look at what is out in front of a message."""
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        this = self.case.pops.handed[queue, record.queue_offset][-1]
        if not this.in_order or not self.case.is_live:
            return
        out = self._out.setdefault(queue, {})
        self.judged += max(1, len(out))
        now_ms = self.case.lab.world.nodes[record.node].now_ms()
        for offset, handed in list(out.items()):
            if handed.acked_us >= 0 or handed.until_ms <= now_ms or self.case.pops.is_before_a_reset(handed):
                del out[offset]
            elif self._must_wait(record, queue, offset, handed):
                if self.started_since(record.node, handed.popped_us):
                    self.excuse(ORDER_FORGOTTEN)
                    del out[offset]
                else:
                    behind = f"{queue} offset {record.queue_offset}, and offset {offset} is still out"
                    self.found(record.row, f"{record.group} gets the message at {behind}")
        out[record.queue_offset] = this
        self._attempt_of[queue, record.queue_offset] = self.case.pops.attempts.get((record.node, record.remote), "")

    def _must_wait(self, record: Record, queue: Queue, offset: int, handed: Handed) -> bool:
        """Is what is handed out now behind this one, or this one itself, which another attempt has?"""
        if handed.pop_time == record.pop_time:
            return False
        attempt = self.case.pops.attempts.get((record.node, record.remote), "")
        # Who names no attempt never asks for one once more.
        another = not attempt or self._attempt_of.get((queue, offset)) != attempt
        return offset < record.queue_offset or (offset == record.queue_offset and another)


class OrderedPopsAreWoken(PopRule):
    """A pop that waits in order is woken when all that is out in front of it can be seen again.

    Whoever gives a message back makes its time shorter, and that of all who wait (ConsumerOrderInfoLockManager).
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "MessagePopped": "_popped", "OrderAcked": "_changed", "InvisibleTimeChanged": "_changed", "PopWoken": "_woken",
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {RINGS_TOO_EARLY: RINGS_TOO_EARLY_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._out: dict[tuple[str, str, str], dict[int, list[Handed]]] = {}
        """(broker, group, topic) -> queue id -> what the last pop in order has handed out of it."""
        self._alarms: dict[Queue, tuple[int, int]] = {}
        """Queue -> when its alarm was set, us, and for when, ms of the broker's clock."""

    def _popped(self, record: Record) -> None:
        if record.revive_qid != POP_ORDER_REVIVE_QUEUE:
            return
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        this = self.case.pops.handed[queue, record.queue_offset][-1]
        out = self._out.setdefault(queue[:3], {})
        before = out.get(record.queue_id, ())
        out[record.queue_id] = [*(each for each in before if each.pop_time == this.pop_time), this]
        self._changed(record)

    def _changed(self, record: Record) -> None:
        """Note for when the alarm of a queue is set now (OrderInfo.getLockFreeTimestamp)."""
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        now_ms = self.case.lab.world.nodes[record.node].now_ms()
        out = self._out.get(queue[:3], {}).get(record.queue_id, ())
        times = (each.until_ms for each in out if each.acked_us < 0)
        self._alarms[queue] = record.ts_us, next((until_ms for until_ms in times if now_ms < until_ms), now_ms)

    def _woken(self, record: Record) -> None:
        """Look what could be seen for a while already when a pop is woken, or has waited in vain."""
        began_us = record.ts_us - record.held_us
        out = self._out.get((record.node, record.group, record.topic), {})
        may_be_late = record.reason in ("timed out", "unblocked")
        if not may_be_late or self.is_popped_otherwise(record.node, record.group):
            return
        # What is acknowledged is named by the offset in its record, which a loss of power may leave at another place.
        if record.node in self.case.ledger.processes.power_lost_us:
            return
        now_ms = self.case.lab.world.nodes[record.node].now_ms()
        for queue_id, handed in out.items():
            waits = [each for each in handed if each.acked_us < 0]
            if not waits or record.queue_id not in (-1, queue_id):
                continue
            if self.started_since(record.node, waits[0].popped_us) or self.case.pops.is_before_a_reset(waits[0]):
                continue
            until_ms = max(each.until_ms for each in waits)
            set_us, rings_ms = self._alarms[Queue(record.node, record.group, record.topic, queue_id)]
            # The alarm does not see how a clock that runs wrong goes on.
            if not self.case.fault_times.none_between(min(set_us, began_us), record.ts_us):
                continue
            self.judged += 1
            # What was out in front of it may have been done only later than that.
            seen_ms = now_ms - max(until_ms, rings_ms)
            if not WOKEN_MS < seen_ms < record.held_us // 1_000:
                continue
            if rings_ms < until_ms:
                self.excuse(RINGS_TOO_EARLY)
            else:
                at = f"{record.node} {record.topic} queue {queue_id} offset {waits[0].queue_offset}"
                self.found(record.row, f"{record.group} waits {seen_ms} ms for the message at {at}, which it could see")


class ChangedTimesAgree(Rule):
    """In order the handle of a changed invisible time ends when its broker lets the message be seen again.

    Java: ChangeInvisibleTimeProcessor.processChangeInvisibleTimeForOrder. The handle keeps the time of the pop.
    """

    kinds = ("InvisibleTimeChanged",)

    def on_event(self, record: Record) -> None:
        """Compare the handle with what the broker has noted of the pop that it belongs to."""
        if record.revive_qid != POP_ORDER_REVIVE_QUEUE or not self.case.is_live:
            return
        infos = self.case.broker(record.node).running().pop.consumer_order_info_manager.table
        info = infos.get(f"{record.topic}@{record.group}", {}).get(record.queue_id)
        # A group that was popped again since knows nothing of the pop before.
        if info is None or info.pop_time != record.new_pop_time:
            return
        self.judged += 1
        visible_ms = (info.offset_next_visible_time or {}).get(record.queue_offset)
        ends_ms = record.new_pop_time + record.invisible_ms
        if visible_ms != ends_ms:
            queue = Queue(record.node, record.group, record.topic, record.queue_id)
            text = f"ends at {ends_ms}, and the message can be seen again at {visible_ms}"
            self.found(record.row, f"a changed handle of {queue} offset {record.queue_offset} {text}")


class DeliveriesAreCounted(PopRule):
    """A message that is popped in order again and again says how often it was handed out.

    That is counted from one pop of its queue to the next, for another attempt; a broker that was killed begins anew.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "MessagePopped": "_popped", "MessageSettled": "_settled", "ConsumeStarted": "_started",
        "ConsumeFinished": "_finished",
    }  # fmt: skip
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._pops: dict[Queue, tuple[int, str]] = {}
        """Queue -> when it was popped last, and for which attempt."""
        self._before: dict[Queue, dict[int, int]] = {}
        self._counts: dict[Queue, dict[int, int]] = {}
        """Queue -> the offsets that the pop before the last one, or the last one, handed out -> how often before."""
        self._at_work: dict[tuple[Queue, int], None] = {}
        """(queue, offset) of what a listener is at."""
        self._twice: dict[tuple[Queue, int], None] = {}
        """What was handed out again while its listener was at it: which time is settled cannot be told."""

    def _started(self, record: Record) -> None:
        if self._counts:
            at = self._at(record)
            if at in self._at_work:
                self._twice[at] = None
            self._at_work[at] = None

    def _finished(self, record: Record) -> None:
        if self._at_work:
            self._at_work.pop(self._at(record), None)

    def _at(self, record: Record) -> tuple[Queue, int]:
        broker = self.case.ledger.names.broker_of(record.broker_name)
        return Queue(broker, record.group, record.topic, record.queue_id), record.queue_offset

    def _popped(self, record: Record) -> None:
        if record.revive_qid != POP_ORDER_REVIVE_QUEUE:
            return
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        attempt = self.case.pops.attempts.get((record.node, record.remote), "")
        if self._pops.get(queue, (0, ""))[0] != record.pop_time:
            is_another = not attempt or self._pops.get(queue, (0, ""))[1] != attempt
            counts = self._counts.get(queue, {})
            self._before[queue] = {offset: count + is_another for offset, count in counts.items()}
            self._counts[queue] = {}
            self._pops[queue] = record.pop_time, attempt
        at = (queue, record.queue_offset)
        if at in self._at_work:
            self._twice[at] = None
        self._counts[queue][record.queue_offset] = self._before[queue].get(record.queue_offset, 0)

    def _settled(self, record: Record) -> None:
        """Compare what the consumer was told with the count."""
        queue, _ = at = self._at(record)
        broker = queue.broker
        handed = self.case.pops.handed.get(at, [])
        if record.queue_offset not in self._counts.get(queue, ()) or at in self._twice:
            return
        if self.case.pops.is_before_a_reset(handed[0]):
            return
        # Who pops without order, as proxies may for a while, counts nothing and moves what the next pop begins with.
        if self.started_since(broker, handed[0].popped_us) or len(self.case.pops.orders[broker, record.group]) > 1:
            return
        self.judged += 1
        least = 1 + self._counts[queue][record.queue_offset]
        if record.delivery_attempt < least:
            times = f"{record.delivery_attempt} of {least} times"
            where = f"{queue} offset {record.queue_offset}"
            self.found(record.row, f"the message at {where} says that it was handed out {times}")


class FailedWaitsInFront(PopRule):
    """In order no listener of a 5.x client gets a message while the one in front of it waits for its next attempt.

    Message groups of one queue that go side by side are not judged (enableFifoConsumeAccelerator).
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "FifoAttemptPutOff": "_put_off", "ConsumeStarted": "_called", "NodeCrashed": "_process_ended"
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {IN_ORDER_NO_MORE: IN_ORDER_NO_MORE_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._waiting: dict[tuple[str, QueueKey], Record] = {}
        """(process, queue) -> the message that waits for its next attempt there."""

    def _process_ended(self, record: Record) -> None:
        self._waiting = {at: waits for at, waits in self._waiting.items() if at[0] != record.target}

    def _put_off(self, record: Record) -> None:
        if not self._goes_side_by_side(record):
            self._waiting[_queue_of_5(record)] = record

    def _called(self, record: Record) -> None:
        waits = self._waiting.pop(_queue_of_5(record), None) if self._waiting else None
        if waits is None:
            return
        self.judged += 1
        if record.queue_offset <= waits.queue_offset:
            return
        if self._came_without_order(record) or self._came_without_order(waits):
            self.excuse(IN_ORDER_NO_MORE)
        else:
            place = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            reason = f"gives its listener offset {record.queue_offset} of {place} while {waits.queue_offset} waits"
            self.found(record.row, f"{record.node} {reason}")

    def _came_without_order(self, record: Record) -> bool:
        """Did a proxy pop this message as for any other group?"""
        broker = self.case.ledger.names.broker_of(record.broker_name)
        queue = Queue(broker, record.group, record.topic, record.queue_id)
        handed = self.case.pops.handed.get((queue, record.queue_offset), [])
        return any(not each.in_order for each in handed) and self.is_popped_otherwise(broker, record.group)

    def _goes_side_by_side(self, record: Record) -> bool:
        clients = clients_in(self.case.lab, record.node)
        return any(getattr(client, "enable_fifo_consume_accelerator", False) for client, *_ in clients)


class AttemptsGoOn(Rule):
    """A receive of a 5.x push consumer that failed is repeated as the same attempt: in order it gets the same messages.

    An answer that was lost on its way blocks the queue for every other attempt (ProcessQueueImpl.receiveMessageLater).
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "ReceiveRequested": "_asks", "ReceiveFinished": "_answered", "ProcessQueueDropped": "_over",
        "ProcessQueueCreated": "_over", "NodeCrashed": "_process_ended",
    }  # fmt: skip
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._attempts: dict[tuple[str, QueueKey], str] = {}
        """(process, queue) -> the attempt that has brought nothing yet."""

    def _process_ended(self, record: Record) -> None:
        self._attempts = {at: attempt for at, attempt in self._attempts.items() if at[0] != record.target}

    def _answered(self, record: Record) -> None:
        if record.messages:
            self._over(record)

    def _over(self, record: Record) -> None:
        self._attempts.pop(_queue_of_5(record), None)

    def _asks(self, record: Record) -> None:
        if not record.attempt_id:
            return
        self.judged += 1
        at = _queue_of_5(record)
        before = self._attempts.get(at, record.attempt_id)
        self._attempts[at] = record.attempt_id
        if before != record.attempt_id:
            queue = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            what = f"attempt {before} for {queue} has brought nothing, and the next one is {record.attempt_id}"
            self.found(record.row, f"{record.node}: {what}")


def _queue_of_5(record: Record) -> tuple[str, QueueKey]:
    return record.node, (record.group, record.topic, record.broker_name, record.queue_id)
