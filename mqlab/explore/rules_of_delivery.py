"""Rules of delivery: whatever was stored is consumed, or it can be said where it waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from mqlab.client import MessageModel
from mqlab.explore.conditions import condition_of
from mqlab.explore.places import Kept, Place
from mqlab.explore.readers import Reader, consumers_of, progress, reader_name, subscriptions_5_of
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_storing import DELETED, DELETED_TEXT, GAP, GAP_TEXT
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT
from mqlab.explore.store_contents import Found
from mqlab.protocol.heartbeat import ExpressionType, SubscriptionData
from mqlab.protocol.topics import is_dlq_topic, retry_topic
from mqlab.trace.record import Record

USED_TWICE = "an offset used twice"
USED_TWICE_TEXT = (
    "A message may be consumed before it is flushed. When the machine then loses power, the queue is shorter than the "
    "group's progress, and what is stored next gets offsets that the group believes to have consumed."
)
SKIPPED = "a correction that skips what is cached"
SKIPPED_TEXT = (
    "A consumer whose offset lies outside of the queue, as after a loss of power, goes on from the one that it is "
    "told, and gives up all that it had cached of the queue: what its listener had not finished is passed over."
)
LEVEL_AHEAD = "a delay level ahead of its queue"
LEVEL_AHEAD_TEXT = (
    "How far a delay level has come is written every 10 s. A broker whose machine has lost power corrects it when the "
    "level's queue is shorter, and loses the correction when the machine loses power again before it is written: by "
    "the next start the queue may have grown over the old offset, and what lies in front of that is never delivered."
)
OTHER_UNIT = "a unit of another message"
OTHER_UNIT_TEXT = (
    "With enableConsumeQueueExt the entry of a message names a unit, with its tag and the bits of the filters that it "
    "has passed. Entries may be on the disk before their units are. When the machine then loses power, nobody misses "
    "the units, and others are written in their places: a message is judged by what is known of another one, and who "
    "reads by a tag or a condition may never get it."
)
NOT_WAITED_FOR = "a copy that nobody waits for"
NOT_WAITED_FOR_TEXT = (
    "A broker stores the copies of messages that were given back or delayed without waiting for the flush, also with "
    "SYNC_FLUSH: such a copy may be gone when the machine loses power."
)


PASSED = {
    USED_TWICE: USED_TWICE_TEXT, DELETED: DELETED_TEXT, GAP: GAP_TEXT, STALE: STALE_TEXT, SKIPPED: SKIPPED_TEXT,
    TORN: TORN_TEXT, OTHER_UNIT: OTHER_UNIT_TEXT,
}  # fmt: skip
"""What lets a group pass a message that it was never given."""


def why_gone(case: Case, place: Place) -> str:
    """What explains that there is no message at this place any more, or another one; "" if nothing does."""
    stores = case.ledger.stores
    if place in stores.gaps:
        return GAP
    if place in stores.deleted:
        return DELETED
    return USED_TWICE if place in stores.used_twice else ""


def why_never_given(case: Case, reader: Reader, place: Place) -> str:
    """What explains that a reader was never given the message at this place, and has passed it; "" if nothing does."""
    consumption = case.ledger.consumption
    if place.queue_offset < consumption.corrected.get((reader.name, *place[:3]), 0):
        return SKIPPED
    if (reader.group, *place[:3]) in consumption.given_by_gapped_slaves:
        return GAP
    if consumption.is_misled(reader.name, place):
        return STALE
    if reader.is_choosy(place.topic) and case.is_torn(place):
        return TORN
    if reader.is_choosy(place.topic) and case.has_unit_of_another(place):
        return OTHER_UNIT
    return ""


class CommittedIsConsumed(Rule):
    """A committed offset never passes a message that no listener has consumed or given back.

    Nor does what a push consumer notes in its memory when its listener has ended. Giving back counts as consumed: the
    copy in the retry topic or among the dead letters goes on from there. In broadcasting nothing is given back, and
    every end of a listener counts. A group that does not want a topic from its beginning is judged from where it began,
    and after a reset or a seek from where that lets it go on.
    """

    kinds = ("OffsetCommitted", "OffsetPersisted", "OffsetUpdated")
    EXCEPTIONS: ClassVar[dict[str, str]] = PASSED

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._passed: dict[tuple[str, str, str, int], int] = {}
        """(reader, broker, topic, queue id) -> the offset up to which all is known to be consumed."""
        self._moves: dict[tuple[str, str, str, int], int] = {}
        """The same -> how many resets and seeks of it were minded."""

    def on_event(self, record: Record) -> None:
        """Look at what a new offset passes."""
        if record.kind == "OffsetCommitted":
            self._committed(record, record.group, self.case.ledger.names.original_of(record.node))
        elif record.kind == "OffsetPersisted" or record.task.startswith("ConsumeMessageThread"):
            name = self.case.ledger.names.reader_of(record.group, record.node)
            if name != record.group or record.kind == "OffsetUpdated":
                self._committed(record, name, self.case.ledger.names.broker_of(record.broker_name))

    def _committed(self, record: Record, reader_name: str, broker: str) -> None:
        reader = self.case.readers.get(reader_name)
        if reader is None or record.topic not in reader.topics:
            return
        if self.case.pops.is_popped(broker, reader.group, record.topic):
            # The offset of a group that pops says what was handed out; its own rules judge what becomes of that.
            return
        if record.kind == "OffsetCommitted" and record.origin == "reset":
            return
        key = (reader_name, broker, record.topic, record.queue_id)
        begin = self._judged_up_to(key)
        for offset in range(begin, record.queue_offset):
            self._passes(record, reader, Place(broker, record.topic, record.queue_id, offset))
        self._passed[key] = max(begin, record.queue_offset)

    def _judged_up_to(self, key: tuple[str, str, str, int]) -> int:
        consumption = self.case.ledger.consumption
        moves = consumption.moves.get(key)
        if moves is not None and len(moves) > self._moves.get(key, 0):
            self._moves[key] = len(moves)
            return moves[-1]
        return self._passed.get(key, consumption.began.get(key, 0))

    def _passes(self, record: Record, reader: Reader, place: Place) -> None:
        self.judged += 1
        ledger = self.case.ledger
        kept = ledger.stores.stored.get(place) or ledger.stores.lost.get(place)
        if gone := why_gone(self.case, place):
            self.excuse(gone)
        elif kept is not None and (
            not ledger.consumption.wants(reader, place) or ledger.consumption.is_done(reader.name, place, kept)
        ):
            return
        elif self._moved_behind_progress(reader, place):
            self.excuse(GAP)
        elif self.case.is_stale(place):
            self.excuse(STALE)
        elif reason := why_never_given(self.case, reader, place):
            self.excuse(reason)
        else:
            what = "where no message was stored" if kept is None else "which nobody has consumed"
            self.found(record.row, f"{reader.name} committed an offset behind {place}, {what}")

    def _moved_behind_progress(self, reader: Reader, place: Place) -> bool:
        """Has the entry of this message moved up, to an offset that the group had passed when it asked again?"""
        asked_from = self.case.ledger.consumption.pulled_from.get((reader.group, *place[:3]), 0)
        return self.case.ledger.stores.moved_up.get(place, asked_from) < asked_from


class StoredIsDelivered(Rule):
    """In the end every stored message was delivered, or waits: for a delay, among dead letters, behind the offset."""

    EXCEPTIONS: ClassVar[dict[str, str]] = {
        USED_TWICE: USED_TWICE_TEXT, NOT_WAITED_FOR: NOT_WAITED_FOR_TEXT, GAP: GAP_TEXT, STALE: STALE_TEXT,
        SKIPPED: SKIPPED_TEXT, TORN: TORN_TEXT, OTHER_UNIT: OTHER_UNIT_TEXT, LEVEL_AHEAD: LEVEL_AHEAD_TEXT,
    }  # fmt: skip

    def at_end(self) -> None:
        """Go through the stores."""
        readers = list(self.case.readers.values())
        targets = {(f.unique_key, f.place.topic, f.reconsume_times) for f in self.case.contents.found.values()}
        for found in self.case.contents.found.values():
            self.judged += found.is_parked or bool(readers)
            place = found.place
            if found.is_parked:
                due = self.case.contents.due_up_to.get((place.broker, place.queue_id), 0)
                target = (found.unique_key, found.real_topic, found.reconsume_times)
                if place.queue_offset < due and target not in targets:
                    self._parked_is_gone(found)
            elif not is_dlq_topic(place.topic):
                kept = self.case.ledger.stores.stored.get(place)
                if self.case.is_stale(place):
                    self.excuse(STALE)
                    continue
                # From its log a broker brings back what was in a deleted topic, when it starts again.
                said = place._replace(queue_offset=found.queue_offset)
                if self._has_moved(found) or found.unique_key in self.case.ledger.stores.forgotten.get(said, ()):
                    continue
                if kept is None:
                    self.found(None, f"{place} holds message {found.unique_key}, which no event told of")
                    continue
                for reader in readers:
                    self._look(reader, place, kept)

    def _has_moved(self, found: Found) -> bool:
        """Has the entry of a message moved up, after a loss of power, since one in front of it is gone? Then that is
        the excuse.
        """
        place, ledger = found.place, self.case.ledger
        if place.broker not in ledger.processes.power_lost_us or found.queue_offset <= place.queue_offset:
            return False
        in_front = any(gap[:3] == place[:3] and gap.queue_offset <= place.queue_offset for gap in ledger.stores.gaps)
        self.excuse(GAP if in_front else STALE)
        return True

    def _parked_is_gone(self, found: Found) -> None:
        ledger = self.case.ledger
        if found.unique_key in ledger.stores.forgotten_keys:
            return
        copies = [place for place, kept in ledger.stores.stored.items() if kept.unique_key == found.unique_key]
        if found.place in ledger.stores.gaps or found.unique_key in ledger.stores.in_gaps:
            self.excuse(GAP)
        elif any(self.case.is_stale(place) for place in (found.place, *copies)):
            self.excuse(STALE)
        elif self._has_moved(found):
            return
        elif found.unique_key in ledger.stores.lost_keys or found.is_torn:
            self.excuse(NOT_WAITED_FOR)
        elif found.place in ledger.stores.used_twice:
            self.excuse(LEVEL_AHEAD)
        else:
            self.found(None, f"the delayed message at {found.place} was passed over and never delivered to its topic")

    def _look(self, reader: Reader, place: Place, kept: Kept) -> None:
        ledger = self.case.ledger
        if not ledger.consumption.wants(reader, place) or ledger.consumption.is_delivered(reader.name, place, kept):
            return
        if self.case.pops.is_popped(place.broker, reader.group, place.topic):
            return
        began = ledger.consumption.began.get((reader.name, *place[:3]), 0)
        if place.queue_offset < max(began, ledger.consumption.moved_to(reader.name, place)):
            return
        if place.queue_offset >= progress(self.case.lab, reader, place.broker, place.topic, place.queue_id):
            return
        if place in ledger.stores.used_twice:
            self.excuse(USED_TWICE)
        elif place in ledger.stores.gaps:
            self.excuse(GAP)
        elif reason := why_never_given(self.case, reader, place):
            self.excuse(reason)
        else:
            self.found(kept.row, f"message {kept.unique_key} at {place} was never delivered to {reader.name}")


class OnlySubscribedIsDelivered(Rule):
    """A listener gets only what its group subscribes to, also when the hash codes of two tags are the same.

    What is wanted by a condition is asked of SQLite.
    """

    def at_end(self) -> None:
        """Compare the tags and the properties of what was delivered with the subscriptions."""
        ledger = self.case.ledger
        for name, topic, subscription in self._subscriptions():
            by_tags = ExpressionType.is_tag_type(subscription.expression_type)
            condition = None if by_tags else condition_of(subscription.sub_string)
            if not subscription.tags_set and condition is None:
                continue
            for found in self.case.contents.found.values():
                kept = ledger.stores.stored.get(found.place)
                if found.place.topic != topic:
                    continue
                self.judged += 1
                if condition is not None:
                    is_wanted = condition.is_true(found.properties)
                else:
                    is_wanted = found.tags in subscription.tags_set
                if (
                    not is_wanted
                    and not found.is_torn
                    and kept
                    # Where a loss of power has left an entry, it may be of another message.
                    and kept.unique_key == found.unique_key
                    and ledger.consumption.is_delivered_untried(name, found.place, kept)
                ):
                    got = repr(found.tags) if condition is None else f"{found.properties}"
                    self.found(kept.row, f"{name} wants {subscription.sub_string} and got {got}")

    def _subscriptions(self) -> Iterator[tuple[str, str, SubscriptionData]]:
        """Each reader with each topic that it reads, and what it wants of that."""
        for process, _, member in consumers_of(self.case.lab):
            broadcasting = member.message_model is MessageModel.BROADCASTING
            name = reader_name(member.group_name, process, broadcasting)
            for topic, subscription in member.rebalance_impl.subscription_inner.items():
                yield name, topic, subscription
        for group, subscriptions in subscriptions_5_of(self.case.lab).items():
            for topic, subscription in subscriptions.items():
                yield group, topic, subscription


class GivenBackComesAgain(Rule):
    """Whenever a message was given back, a copy of it was stored: for another try, or among the dead letters."""

    EXCEPTIONS: ClassVar[dict[str, str]] = {
        NOT_WAITED_FOR: NOT_WAITED_FOR_TEXT, TORN: TORN_TEXT, GAP: GAP_TEXT, DELETED: DELETED_TEXT
    }  # fmt: skip

    def at_end(self) -> None:
        """Count the copies. One that the client sent itself may have another id, so the keys count, too."""
        found = self.case.contents.found.values()
        keys = {message.unique_key: message.keys for message in found}
        copies = Counter(m.keys or m.unique_key for m in found if m.is_parked or is_dlq_topic(m.place.topic))
        for given_back in self.case.ledger.consumption.given_back:
            self.judged += 1
            msg_id = given_back.delivery[4]
            name = self._key_at(Record(given_back.row)) or keys.get(msg_id) or msg_id
            copies[name] -= 1
            if copies[name] >= 0:
                continue
            if msg_id in self.case.ledger.stores.lost_keys:
                self.excuse(NOT_WAITED_FOR)
            elif any(message.is_torn for message in found) or self._is_nobodys(Record(given_back.row)):
                self.excuse(TORN)
            elif msg_id in self.case.ledger.stores.in_gaps:
                self.excuse(GAP)
            elif self.case.ledger.stores.deleted:
                self.excuse(DELETED)
            else:
                self.found(given_back.row, f"message {msg_id} was given back, and no broker has a copy for that")

    def _key_at(self, record: Record) -> str:
        """The key of the very message that was given back: those of one batch have one id; "" where it is not known."""
        broker = self.case.ledger.names.broker_of(record.broker_name)
        topic = retry_topic(record.group) if record.reconsume_times else record.topic
        found = self.case.contents.found.get(Place(broker, topic, record.queue_id, record.queue_offset))
        return found.keys if found is not None and found.unique_key == record.msg_id else ""

    def _is_nobodys(self, record: Record) -> bool:
        """Has a loss of power put a message together that nobody sent, out of pieces of others?"""
        ledger = self.case.ledger
        return (
            record.msg_id not in ledger.sends.attempted
            and ledger.names.broker_of(record.broker_name) in ledger.processes.power_lost_us
        )
