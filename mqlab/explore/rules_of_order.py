"""Rules of ordered consumption: one after the other, and one consumer at a time."""

from __future__ import annotations

from typing import ClassVar

from mqlab.client import DefaultMQPushConsumer
from mqlab.explore.ledger.consumption import SET_ANEW
from mqlab.explore.places import Place
from mqlab.explore.readers import Reader, consumers_of, is_running, push_consumer_of
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_delivery import (
    OTHER_UNIT,
    OTHER_UNIT_TEXT,
    SKIPPED,
    SKIPPED_TEXT,
    USED_TWICE,
    USED_TWICE_TEXT,
)
from mqlab.explore.rules_of_offsets import READ_NO_MORE, READ_NO_MORE_TEXT, UNSUBSCRIBED
from mqlab.explore.rules_of_queues import PREEMPTED_MOST_US
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topics import retry_topic
from mqlab.trace.record import Record

FORGOTTEN_LOCK = "a broker forgets its locks"
HUNG_OWNER = "an owner that hangs outlives its lock"
LEAVING_OWNER = "an owner that leaves does not wait for its listener"
TAKEN_AT_THE_END = "a queue taken over while its consumer ends"
TAKEN_AT_THE_END_TEXT = (
    "A consumer that is shut down gives back the locks of the queues that it has. One that its rebalance has just "
    "locked, and asks the offset of, is not among them: nobody else gets that queue until the lock is 60 s old."
)

NO_ADDRESS = "a lock at a broker that no route names"
NO_ADDRESS_TEXT = (
    "A broker that name servers have forgotten is in no route, and its clients forget its address. Who gives up its "
    "queues then cannot tell it so: nobody else gets them there until the locks are 60 s old."
)

AT_WORK = "a listener at work in a queue that is taken anew"
AT_WORK_TEXT = (
    "A queue whose offset is set anew, by a reset or since it was illegal, is let go at its broker only when no "
    "listener is at it, and nobody tries again (removeProcessQueue): the lock stays with that consumer, until it is "
    "60 s old."
)
LOST_ON_THE_WAY = "a lock lost on the way to the listener"
LOST_ON_THE_WAY_TEXT = (
    "A thread looks whether the lock is held, takes messages and then calls the listener; behind that it looks only "
    "whether the queue was given up. Where it loses the processor in between, the lock may be lost meanwhile, as to "
    "the end of its consumer, and the listener is called all the same."
)
TAKEN_ANEW = (SET_ANEW, "its offset was illegal: taken anew")
"""The reasons of a queue that is dropped so."""

ANOTHER_HAS_IT = "it belongs to another member now"
"""The reason of a queue that is dropped since it was shared anew."""
UNLOCKED_US = 20_000_000
"""A lock that was not renewed for so long is given back whatever its listener does (UNLOCK_DELAY_TIME_MILLS)."""
RENEWED = 0.75
"""Nobody else gets a lock that was renewed in this part of its life, also where clocks are wrong: it lives for 60 s."""
TRUSTED_FOR_US = 31_000_000
"""An owner trusts its lock for 30 s after the answer (rocketmq.client.rebalance.lockMaxLiveTime)."""
FAR_TOO_LONG_US = 37_000_000
"""The same where the answer was 3 s late, and the clock 5 % wrong."""
TRUSTED_US = 60_000_000
"""30 s in which an owner trusts its lock, and as much for calls of listeners that began in them."""

SOON_US = 1_000_000

QueueKey = tuple[str, str, str, int]


class InOrder(Rule):
    """An orderly listener never gets a message before the one in front of it in the queue was consumed.

    A message may come again, and the queue may go back to an offset that was committed earlier.
    """

    kinds = ("ConsumeStarted", "ConsumeFinished")
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        SKIPPED: SKIPPED_TEXT, STALE: STALE_TEXT, OTHER_UNIT: OTHER_UNIT_TEXT, TORN: TORN_TEXT,
        USED_TWICE: USED_TWICE_TEXT,
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._consumed: dict[QueueKey, int] = {}
        self._called_with: dict[QueueKey, int] = {}
        """Queue -> the offset of the last message that the listener was called with."""

    def on_event(self, record: Record) -> None:
        """Compare the offset with how far the queue was consumed."""
        reader = self.case.readers.get(record.group)
        if reader is None or not reader.in_order or not reader.from_first_offset:
            return
        key = (record.group, record.topic, record.broker_name, record.queue_id)
        consumed = self._consumed.get(key, -1)
        if record.kind == "ConsumeFinished":
            if record.status in ("SUCCESS", "COMMIT"):
                self._consumed[key] = max(consumed, record.queue_offset, self._called_with.get(key, 0))
            return
        self.judged += 1
        self._called_with[key] = self.case.ledger.consumption.last_of_batch(record.row)
        if record.queue_offset > consumed + 1:
            self._overtakes(record, reader, consumed + 1)

    def _overtakes(self, record: Record, reader: Reader, begin: int) -> None:
        """Look what lies between the first offset that was not consumed and that of a message that comes now."""
        consumption = self.case.ledger.consumption
        broker = self.case.ledger.names.broker_of(record.broker_name)
        place = Place(broker, record.topic, record.queue_id, record.queue_offset)
        begin = max(begin, consumption.moved_to(reader.name, place))
        in_front = [place._replace(queue_offset=offset) for offset in range(begin, record.queue_offset)]
        in_front = [each for each in in_front if not self._is_done_with(reader, each)]
        if not in_front:
            return
        corrected = consumption.corrected.get((reader.name, *place[:3]), 0)
        if all(each.queue_offset < corrected for each in in_front):
            self.excuse(SKIPPED)
        elif all(each in self.case.ledger.stores.used_twice for each in in_front):
            self.excuse(USED_TWICE)
        elif consumption.is_misled(reader.name, place):
            self.excuse(STALE)
        elif reader.is_choosy(record.topic) and all(map(self.case.has_unit_of_another, in_front)):
            self.excuse(OTHER_UNIT)
        elif reader.is_choosy(record.topic) and all(map(self.case.is_torn, in_front)):
            self.excuse(TORN)
        else:
            at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            self.found(record.row, f"offset {record.queue_offset} of {at} was consumed before offset {begin}")

    def _is_done_with(self, reader: Reader, place: Place) -> bool:
        """Is this message not wanted, or given back, as one that was tried too often is (checkReconsumeTimes)?"""
        ledger = self.case.ledger
        if reader.is_choosy(place.topic) and not ledger.consumption.wants(reader, place):
            return True
        kept = ledger.stores.stored.get(place)
        return kept is not None and ledger.consumption.is_done(reader.name, place, kept)


class OneOwner(Rule):
    """Two orderly listeners never consume from one queue at the same time."""

    kinds = ("ConsumeStarted", "ConsumeFinished", "NodeCrashed", "ClientStopped")
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        FORGOTTEN_LOCK: (
            "The locks are in a broker's memory. After its restart another member may lock a queue whose owner trusts "
            "its own lock for up to 30 s, until it asks for a renewal."
        ),
        HUNG_OWNER: (
            "A lock that was not renewed for 60 s is given to the next member. A listener whose process hung meanwhile "
            "goes on where it stood."
        ),
        LEAVING_OWNER: (
            "A consumer that is shut down gives its locks back at once (awaitTerminationMillisWhenShutdown is 0), also "
            "while its listener is still at work."
        ),
    }
    GOALS: ClassVar[dict[str, str]] = {
        "two-owners-at-once": "The orderly listeners of two members are at work on one queue at the same time.",
        "orderly-queue-changes-hands": "An orderly listener is called for a queue that another member consumed before.",
    }
    SUBJECT = "groups"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._at_it: dict[QueueKey, dict[str, int]] = {}
        """Queue -> process -> when its listener was called."""
        self._stopped_us: dict[tuple[str, str], int] = {}
        self._last: dict[QueueKey, str] = {}
        """Queue -> the process whose listener was called last."""

    def on_event(self, record: Record) -> None:
        """Note who is at which queue."""
        if record.kind == "NodeCrashed":
            for owners in self._at_it.values():
                owners.pop(record.target, None)
            return
        if record.kind == "ClientStopped":
            self._stopped_us[record.node, record.group] = record.ts_us
            return
        reader = self.case.readers.get(record.group)
        if reader is None or not reader.in_order:
            return
        queue = (record.group, record.topic, record.broker_name, record.queue_id)
        owners = self._at_it.setdefault(queue, {})
        if record.kind == "ConsumeFinished":
            owners.pop(record.node, None)
            return
        if self._last.setdefault(queue, record.node) != record.node:
            self.reach("orderly-queue-changes-hands", record)
        self._last[queue] = record.node
        self.judged += max(1, len(owners))
        for other, since_us in owners.items():
            self._judge(record, other, since_us)
        owners[record.node] = record.ts_us

    def _judge(self, record: Record, other: str, since_us: int) -> None:
        ledger = self.case.ledger
        broker_started_us = ledger.processes.started_us.get(ledger.names.broker_of(record.broker_name), 0)
        if other != record.node:
            self.reach("two-owners-at-once", record)
        if other == record.node and self._stopped_us.get((other, record.group), -1) < since_us:
            self.found(record.row, f"{other} calls its listener twice for one queue")
        elif ledger.processes.frozen_us.get(other, -1) >= since_us:
            self.excuse(HUNG_OWNER)
        elif self._stopped_us.get((other, record.group), -1) >= since_us:
            self.excuse(LEAVING_OWNER)
        elif broker_started_us > 0 and broker_started_us + TRUSTED_US >= since_us:
            self.excuse(FORGOTTEN_LOCK)
        else:
            at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            self.found(record.row, f"{record.node} and {other} consume {at} at the same time")


class LockedIsConsumed(Rule):
    """An orderly listener is called only while its consumer holds the lock of the queue, and gives it back in the end.

    A lock counts for 30 s after its last renewal. A queue that another member is to have is not given up under a
    listener at work, unless the lock was not renewed for 20 s.
    """

    kinds = (
        "ConsumeStarted", "ConsumeFinished", "QueueDropped", "QueueLocked", "QueueUnlocked", "QueueAllocated",
        "QueueLockLost", "NodeCrashed", "PowerLost", "RequestReceived",
    )  # fmt: skip
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        TAKEN_AT_THE_END: TAKEN_AT_THE_END_TEXT, NO_ADDRESS: NO_ADDRESS_TEXT, READ_NO_MORE: READ_NO_MORE_TEXT,
        AT_WORK: AT_WORK_TEXT, LOST_ON_THE_WAY: LOST_ON_THE_WAY_TEXT,
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._allocated_us: dict[tuple[QueueKey, str], int] = {}
        self._owner: dict[QueueKey, str] = {}
        """(group, topic, broker's process, queue id) -> the client that holds the lock."""
        self._dropped: list[tuple[QueueKey, Record, str]] = []
        """What was given up with its lock, and what excuses that the lock stays; "" for nothing."""
        self._unlocked_us: dict[tuple[QueueKey, str], int] = {}
        self._at_work: dict[tuple[QueueKey, str], None] = {}
        """The queues that a listener is at, with its process."""
        self._asked_us: dict[tuple[str, str], int] = {}
        """(broker, client's process) -> when the client last asked for locks."""
        self._lost_us: dict[tuple[QueueKey, str], int] = {}
        """When a process last learned that it has a lock no more."""

    def on_event(self, record: Record) -> None:
        """Note who holds which lock, and judge the calls of listeners."""
        if record.kind == "RequestReceived":
            if record.request_code == RequestCode.LOCK_BATCH_MQ:
                client = self.case.lab.world.network.node_at(record.remote)
                if client is not None:
                    self._asked_us[record.node, client.name] = record.ts_us
        elif record.kind == "ConsumeStarted":
            self._called(record)
            self._at_work[self._queue(record), record.node] = None
        elif record.kind == "ConsumeFinished":
            self._at_work.pop((self._queue(record), record.node), None)
        elif record.kind == "QueueLockLost":
            self._lost_us[self._queue(record), record.node] = record.ts_us
        elif record.kind in ("NodeCrashed", "PowerLost"):
            self._owner = {key: owner for key, owner in self._owner.items() if key[2] != record.target}
            self._at_work = {key: None for key in self._at_work if key[1] != record.target}
        elif record.kind in ("QueueDropped", "QueueAllocated"):
            key = self._queue(record)
            if record.kind == "QueueAllocated":
                self._allocated_us[key, record.client_id] = record.ts_us
            elif self._owner.get(key) == record.client_id:
                self._given_up(record, key)
                self._dropped.append((key, record, self._why_kept(record, key)))
        else:
            key = (record.group, record.topic, record.node, record.queue_id)
            if record.kind == "QueueLocked":
                self._taken_over(record, self._owner.get(key, record.client_id))
                self._owner[key] = record.client_id
            else:
                owner = self._owner.pop(key, record.client_id)
                self._unlocked_us[key, record.client_id] = record.ts_us
                self.judged += 1
                if owner != record.client_id:
                    self.found(record.row, f"{record.node} takes {owner}'s lock away, as {record.client_id} lets go")

    def _queue(self, record: Record) -> QueueKey:
        return record.group, record.topic, self.case.ledger.names.broker_of(record.broker_name), record.queue_id

    def _taken_over(self, record: Record, owner: str) -> None:
        """Judge whether a lock is given to another member while its owner was told lately that it has it."""
        if owner == record.client_id or not self.case.is_live:
            return
        queue = MessageQueue(record.topic, self.case.broker(record.node).settings["broker_name"], record.queue_id)
        began_us = self.case.ledger.processes.started_us.get(record.node, 0)
        lives_us = self.case.broker(record.node).running().broker_config.rebalance_lock_max_live_time * 1_000
        for process, client, member in consumers_of(self.case.lab):
            if not isinstance(client, DefaultMQPushConsumer) or member.group_name != record.group:
                continue
            held = client.impl.rebalance_impl.process_queue_table.get(queue)
            is_owner = is_running(self.case.lab, process, member) and client.impl.instance.client_id == owner
            if held is None or not is_owner or not held.locked or held.last_lock_us <= began_us:
                continue
            self.judged += 1
            ago_us = record.ts_us - held.last_lock_us
            if ago_us < RENEWED * lives_us:
                text = f"gives {owner}'s lock of {queue} to {record.client_id}, {ago_us // 1_000} ms after renewing it"
                self.found(record.row, f"{record.node} {text}")

    def _given_up(self, record: Record, key: QueueKey) -> None:
        """Judge whether a queue is given up under a listener at work."""
        asked_us = self._asked_us.get((key[2], record.node), -UNLOCKED_US)
        if (key, record.node) not in self._at_work or record.reason != ANOTHER_HAS_IT:
            return
        # A broker that was frozen hears of what nobody waits for any more.
        if self.case.ledger.processes.frozen_us.get(key[2], -UNLOCKED_US) > asked_us - UNLOCKED_US:
            return
        # So does one that could not be reached for a while.
        if not self.case.fault_times.none_between(asked_us - UNLOCKED_US, asked_us):
            return
        self.judged += 1
        if record.ts_us - asked_us < UNLOCKED_US:
            at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            self.found(record.row, f"{record.node} gives {at} up while its listener is at work on it")

    def _why_kept(self, record: Record, key: QueueKey) -> str:
        """What excuses that the lock of a queue which is given up stays; "" for nothing."""
        allocated_us = self._allocated_us.get((key, record.client_id), -SOON_US)
        if record.ts_us - allocated_us < SOON_US and record.reason == "the consumer ends":
            return TAKEN_AT_THE_END
        if record.reason == UNSUBSCRIBED:
            return READ_NO_MORE
        if record.reason in TAKEN_ANEW and (key, record.node) in self._at_work:
            return AT_WORK
        return NO_ADDRESS if self._knows_no_address(record) else ""

    def at_end(self) -> None:
        """Judge which locks were kept."""
        now_us = self.case.lab.world.now_us
        for key, record, excuse in self._dropped:
            soon_us = record.ts_us + SOON_US
            is_fair = soon_us < now_us and self.case.fault_times.none_between(record.ts_us - SOON_US, soon_us)
            if not is_fair:
                continue
            self.judged += 1
            if record.ts_us <= self._unlocked_us.get((key, record.client_id), -1):
                continue
            if excuse:
                self.excuse(excuse)
            else:
                self.found(record.row, f"{record.node} gave a queue up and has not given its lock back")

    def _knows_no_address(self, record: Record) -> bool:
        """Has this client no address of the broker any more? RebalanceImpl.unlock of RocketMQ 5.3 then does nothing."""
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        if not self.case.is_live or consumer is None:
            return False
        return not consumer.impl.instance.routes.broker_addr_table.get(record.broker_name)

    def _called(self, record: Record) -> None:
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        if not self.case.is_live or consumer is None or not consumer.impl.rebalance_impl.needs_lock:
            return
        self.judged += 1
        table = consumer.impl.rebalance_impl.process_queue_table
        for topic in (record.topic, retry_topic(record.group)):
            held = table.get(MessageQueue(topic, record.broker_name, record.queue_id))
            if held is not None and held.locked and not held.is_lock_expired:
                self._compare(record, topic, consumer.impl.instance.client_id)
                self._is_trusted(record)
                return
            if held is not None and not held.locked and self._was_just_lost(record, topic):
                self.excuse(LOST_ON_THE_WAY)
                return
        at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
        self.found(record.row, f"{record.node} calls its listener for {at}, whose lock it does not hold")

    def _was_just_lost(self, record: Record, topic: str) -> bool:
        """Was the lock lost while the thread that calls the listener may have been without the processor?"""
        group, _, broker, queue_id = self._queue(record)
        lost_us = self._lost_us.get(((group, topic, broker, queue_id), record.node), -PREEMPTED_MOST_US)
        return self.case.lab.world.tie_is_choice and record.ts_us - lost_us < PREEMPTED_MOST_US

    def _is_trusted(self, record: Record) -> None:
        """Whatever a consumer believes: nobody trusts a lock for longer than 30 s after the answer to asking for it.

        Where something was wrong the answer may have come late, the clock may, or the process may have hung.
        """
        broker = self.case.ledger.names.broker_of(record.broker_name)
        asked_us = self._asked_us.get((broker, record.node), record.ts_us)
        if self.case.ledger.processes.frozen_us.get(record.node, -1) >= asked_us:
            return
        all_was_well = self.case.fault_times.none_between(asked_us, record.ts_us)
        if record.ts_us - asked_us > (TRUSTED_FOR_US if all_was_well else FAR_TOO_LONG_US):
            at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            ago_ms = (record.ts_us - asked_us) // 1_000
            self.found(record.row, f"{record.node} calls its listener for {at}, and asked for locks {ago_ms} ms ago")

    def _compare(self, record: Record, topic: str, client_id: str) -> None:
        """What a consumer believes is what the broker knows, unless that was started again or hung a while ago."""
        broker = self.case.ledger.names.broker_of(record.broker_name)
        owner = self._owner.get((record.group, topic, broker, record.queue_id), client_id)
        began_us = self.case.ledger.processes.started_us.get(broker, 0)
        if owner != client_id and (began_us == 0 or record.ts_us - began_us > TRUSTED_US):
            hung_us = self.case.ledger.processes.frozen_us.get(record.node, -1)
            if hung_us < 0 or record.ts_us - hung_us > 4 * TRUSTED_US:
                at = f"{record.broker_name} {topic} queue {record.queue_id}"
                self.found(record.row, f"{record.node} calls its listener for {at}, which is locked for {owner}")
