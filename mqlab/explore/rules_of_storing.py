"""Rules of storing: what was acknowledged is kept, and nothing comes out that did not go in."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.places import Place
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_replication import SHORTER, SHORTER_TEXT
from mqlab.explore.rules_of_replies import PUSHED, PUSHED_TEXT, is_reply
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT, is_torn
from mqlab.protocol.message import MessageConst
from mqlab.protocol.topics import is_retry_topic, is_system_topic
from mqlab.trace.bus import Row
from mqlab.trace.record import Record

UNFLUSHED = "acknowledged before the flush"
UNFLUSHED_TEXT = (
    "With ASYNC_FLUSH a broker answers SEND_OK when the page cache has the message; what was not flushed when the "
    "machine lost power may be gone. Where recovery had cut off a record, that one may come back in its place. A "
    "broker takes all that it loads for flushed, also what the process before it, which was killed, had not flushed: "
    "that may be gone in the midst of the log, where recovery does not look, and the index ends in front of it."
)

OFFSET_ID_LETTERS = 32
"""The id of a message without a unique key: address and port of its broker, its place in the log, in hexadecimal."""

DELETED = "a file deleted for its age or its space"
DELETED_TEXT = (
    "At the hour of `delete_when` a broker deletes the files of its commit log that are older than "
    "`file_reserved_time`, and from 85 % of its disk on the oldest ones, whatever their age, until there is room; "
    "whoever has not consumed what is in them."
)

GAP = "an entry that was not flushed"
GAP_TEXT = (
    "Queues are flushed less often than the log, and the checkpoint tells when an entry was written, not when it was "
    "flushed. When the machine loses power and recovery begins at a later file, the entries that are gone are not "
    "written again: the messages are in the log and in no queue. What recovery goes on with, and what is stored next, "
    "takes their places: a group that had passed these does not ask for it. A file of the index, or a page of "
    "one, may be lost, too, and is not written again where a later one is there: its messages are not found by key."
)


class AcknowledgedSurvives(Rule):
    """A message that a producer was told is stored is in a store, and survives every restart of its broker.

    What a slave has by then survives on it.
    """

    kinds = ("MessageStored", "SendSucceeded", "StoreRecovered", "ReplicaDataAppended", "MasterConnected")
    EXCEPTIONS: ClassVar[dict[str, str]] = {UNFLUSHED: UNFLUSHED_TEXT, PUSHED: PUSHED_TEXT, SHORTER: SHORTER_TEXT}
    GOALS: ClassVar[dict[str, str]] = {
        "acknowledged-message-survives-a-power-cut": (
            "A machine that has lost power has a message again that a producer was told is stored."
        ),
        "acknowledged-message-is-lost": "A message that a producer was told is stored is in no store any more.",
        "slave-has-what-its-master-has-lost": "A message is gone where it was stored first, and its slave has it.",
    }
    SUBJECT = "stores"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._stored: dict[str, dict[tuple[str, int], int]] = {}
        """Unique key -> (broker, commit-log offset) of each copy, and how long it is there."""
        self._acknowledged: dict[str, None] = {}
        self._ends: dict[str, int] = {}
        """Slave -> the end of its log."""
        self._recovered_to: dict[str, int] = {}
        """Slave -> where its master's log ended when it was recovered; until the slave is connected again."""
        self._seams: dict[str, list[int]] = {}
        """Slave -> where its log goes on with what a master sent that had come back with less than the slave had."""

    def on_event(self, record: Record) -> None:
        """Note what is stored, and judge answers to producers and recoveries."""
        if record.kind == "MessageStored":
            self._stored.setdefault(record.unique_key, {})[record.node, record.commit_log_offset] = record.store_size
        elif record.kind == "MasterConnected":
            if record.commit_log_offset > self._recovered_to.pop(record.node, record.commit_log_offset):
                self._seams.setdefault(record.node, []).append(record.commit_log_offset)
        elif record.kind == "StoreRecovered":
            self._recovered(record)
        elif record.kind == "ReplicaDataAppended":
            self._ends[record.node] = record.commit_log_offset + record.body_bytes
        elif record.send_status == "SEND_OK":
            self._answered(record)

    def _answered(self, record: Record) -> None:
        ledger = self.case.ledger
        for msg_id in [record.msg_id] if record.msg_id in ledger.sends.acknowledged else []:
            self.judged += 1
            self._acknowledged[msg_id] = None
            if msg_id not in self._stored and is_reply(record.row):
                self.excuse(PUSHED)
            elif not self._stored.get(msg_id):
                self.found(record.row, f"message {msg_id} was acknowledged and is in no store")
        for place, row in ledger.sends.acknowledged_places.items():
            if row is record.row:
                self.judged += 1
                if place not in ledger.stores.stored and place not in ledger.stores.forgotten:
                    self.found(row, f"a batch was acknowledged, and nothing of it is at {place}")

    def _recovered(self, record: Record) -> None:
        end = record.commit_log_max_offset
        if record.node in self._ends:
            self._ends[record.node] = end
        names = self.case.ledger.names
        copies = [(slave, has) for slave, has in self._ends.items() if names.original_of(slave) == record.node]
        self._recovered_to.update({slave: end for slave, _ in copies})
        seam = min((seam for seam in self._seams.get(record.node, []) if seam >= end), default=None)
        lost_power = record.node in self.case.ledger.processes.power_lost_us
        for msg_id, places in self._stored.items():
            kept = {at: size for at, size in places.items() if at[0] != record.node or at[1] < end}
            for at in places.keys() - kept.keys() if copies else ():
                kept.update({(slave, at[1]): places[at] for slave, has in copies if at[1] < has})
            is_judged = bool(places) and msg_id in self._acknowledged
            self.judged += is_judged
            if is_judged:
                self._reach_goals(record, places, kept, lost_power=lost_power)
            if is_judged and not kept:
                if seam is not None and all(offset + size > seam for (_, offset), size in places.items()):
                    self.excuse(SHORTER)
                else:
                    self._lost(record, f"message {msg_id} was acknowledged and is lost")
            self._stored[msg_id] = kept
        if seam is not None:
            self._seams[record.node] = [min(each, end) for each in self._seams[record.node]]
        for place in self.case.ledger.sends.acknowledged_places:
            if place.broker == record.node:
                self.judged += 1
                if place in self.case.ledger.stores.lost:
                    self._lost(record, f"the message of a batch at {place} was acknowledged and is lost")

    def _reach_goals(
        self, record: Record, places: dict[tuple[str, int], int], kept: dict[tuple[str, int], int], *, lost_power: bool
    ) -> None:
        """Look what has become of a message that was in these places, and is kept in those."""
        if not kept:
            self.reach("acknowledged-message-is-lost", record)
        elif lost_power and any(node == record.node for node, _ in kept):
            self.reach("acknowledged-message-survives-a-power-cut", record)
        elif any(at not in places for at in kept):
            self.reach("slave-has-what-its-master-has-lost", record)

    def _lost(self, record: Record, reason: str) -> None:
        if may_lose_the_unflushed(self.case, record.node):
            self.excuse(UNFLUSHED)
        else:
            self.found(record.row, reason)


class AcknowledgedIsReadable(Rule):
    """In the end every message that a producer was told is stored can be read from a broker."""

    EXCEPTIONS: ClassVar[dict[str, str]] = {
        UNFLUSHED: UNFLUSHED_TEXT, DELETED: DELETED_TEXT, GAP: GAP_TEXT, STALE: STALE_TEXT, PUSHED: PUSHED_TEXT
    }  # fmt: skip

    def at_end(self) -> None:
        """Read the stores."""
        ledger, found = self.case.ledger, self.case.contents.found
        unreadable = self.case.contents.unreadable
        self.judged += len(unreadable) + len(ledger.sends.acknowledged) + len(ledger.sends.acknowledged_places)
        for place in unreadable:
            text = f"the queue has an entry for {place}, but no message can be read there"
            self._judge(None, [place], False, text)
        copies = self.case.contents.copies
        # A torn record has lost the key under which the ledger knows it.
        kept = {
            ledger.stores.stored[place].unique_key
            if each.is_torn and place in ledger.stores.stored
            else each.unique_key
            for place, each in found.items()
        }
        kept |= {copy.unique_key for same in copies.values() for copy in same}
        places: dict[str, list[Place]] = {}
        for place, stored in (*ledger.stores.stored.items(), *ledger.stores.lost.items()):
            places.setdefault(stored.unique_key, []).append(place)
        for msg_id, row in ledger.sends.acknowledged.items():
            if msg_id not in kept and msg_id not in ledger.stores.forgotten_keys:
                if msg_id in ledger.stores.in_gaps or msg_id in ledger.stores.in_passed_over:
                    self.excuse(GAP if msg_id in ledger.stores.in_gaps else STALE)
                    continue
                if msg_id not in places and is_reply(row):
                    self.excuse(PUSHED)
                    continue
                text = f"message {msg_id} was acknowledged, and no broker has it"
                self._judge(row, places.get(msg_id, []), msg_id in ledger.stores.lost_keys, text)
        for place, row in ledger.sends.acknowledged_places.items():
            moved_to = ledger.stores.moved_up.get(place, place.queue_offset)
            is_there = place._replace(queue_offset=moved_to) in found or place in copies
            if not is_there and place not in ledger.stores.forgotten:
                is_lost = place in ledger.stores.lost or place in ledger.stores.used_twice
                text = f"the message of a batch at {place} was acknowledged, and is not there"
                self._judge(row, [place], is_lost, text)

    def _judge(self, row: Row | None, places: list[Place], is_lost: bool, reason: str) -> None:
        ledger = self.case.ledger
        if any(place in ledger.stores.deleted for place in places):
            self.excuse(DELETED)
        elif any(place in ledger.stores.gaps for place in places):
            self.excuse(GAP)
        elif is_lost and any(may_lose_the_unflushed(self.case, broker.name) for broker in self.case.lab.brokers):
            self.excuse(UNFLUSHED)
        elif any(self.case.is_stale(place) for place in places):
            self.excuse(STALE)
        else:
            self.found(row, reason)


class NothingUnsentIsDelivered(Rule):
    """No listener is given a message that no producer sent and no broker stored, or one with another body.

    It sees the topic to which the message was sent, also when it comes from a retry topic.
    """

    kinds = ("ConsumeStarted", "MessageStored", "MessagePopped", "SendAttempted")
    EXCEPTIONS: ClassVar[dict[str, str]] = {TORN: TORN_TEXT, STALE: STALE_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._stored: dict[str, None] = {}
        self._through_stale: dict[str, None] = {}
        """The keys of what was popped through an entry which a loss of power has left in its queue."""
        self._sent_to: dict[str, str] = {}
        """Message id -> the topic of its first attempt."""

    def on_event(self, record: Record) -> None:
        """Look whether the message was sent and stored before."""
        if record.kind == "MessageStored":
            self._stored[record.unique_key] = None
        elif record.kind == "SendAttempted":
            for msg_id in record.msg_id.split(","):
                self._sent_to.setdefault(msg_id, record.topic)
        elif record.kind == "MessagePopped":
            place = Place(record.node, record.topic, record.queue_id, record.queue_offset)
            if (
                record.unique_key not in self.case.ledger.sends.attempted
                and self.case.is_live
                and self.case.is_stale(place)
            ):
                self._through_stale[record.unique_key] = None
        else:
            self._given(record)

    def _given(self, record: Record) -> None:
        self.judged += 1
        if record.msg_id in self._through_stale:
            self.excuse(STALE)
        elif self._is_torn(record):
            self.excuse(TORN)
        elif record.msg_id not in self.case.ledger.sends.attempted:
            self.found(record.row, f"message {record.msg_id} was given to a listener, and nobody sent it")
        elif record.msg_id not in self._stored:
            self.found(record.row, f"message {record.msg_id} was given to a listener, and no broker had stored it")
        elif record.topic != (sent_to := self._sent_to[record.msg_id]) and not is_retry_topic(sent_to):
            self.found(record.row, f"message {record.msg_id} was sent to {sent_to}, and is one of {record.topic}")

    def _is_torn(self, record: Record) -> bool:
        """Has a loss of power taken the id of what a listener is given? Then zeros are in it, or it has none in its
        properties, and goes by its place in the log.
        """
        broker = self.case.ledger.names.broker_of(record.broker_name)
        if broker not in self.case.ledger.processes.power_lost_us:
            return False
        if "\0" in record.msg_id or record.msg_id in self.case.ledger.sends.attempted or not self.case.is_live:
            return "\0" in record.msg_id
        process = self.case.broker(broker)
        if not process.is_up() or len(record.msg_id) != OFFSET_ID_LETTERS:
            return False
        store, pos = process.running().message_store, int(record.msg_id[OFFSET_ID_LETTERS // 2 :], 16)
        return is_torn(store, pos, store.commit_log.record_size(pos))

    def at_end(self) -> None:
        """All copies of a message, in retry topics and elsewhere, must have one body."""
        bodies: dict[str, bytes] = {}
        for found in self.case.contents.found.values():
            topic = found.real_topic or found.place.topic
            if found.unique_key in self.case.ledger.stores.in_batches or is_system_topic(topic):
                # Check points of Pop are named by the moment of the pop, and two of one moment are not the same.
                continue
            if MessageConst.TIMER_DEL_UNIQKEY in found.properties:
                # A recall has the key of the message that it takes back, and a body of its own.
                continue
            if found.unique_key not in bodies:
                bodies[found.unique_key] = found.body
                continue
            self.judged += 1
            if bodies[found.unique_key] == found.body:
                continue
            if found.place.broker in self.case.ledger.processes.power_lost_us:
                self.excuse(TORN)
            else:
                self.found(None, f"message {found.unique_key} has another body at {found.place}")


def may_lose_the_unflushed(case: Case, broker: str) -> bool:
    """Has this broker lost power, with messages that were answered before they were flushed?"""
    return broker in case.ledger.processes.power_lost_us and broker in case.ledger.stores.answered_unflushed
