"""Which messages each reader was handed, has consumed, or has given back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count as count_from
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from mqlab.explore.places import Kept, Place
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topics import is_retry_topic, retry_topic
from mqlab.trace.bus import Row
from mqlab.trace.record import FIRST_FIELD, NODE, TS_US

if TYPE_CHECKING:
    from mqlab.explore.ledger.names import Names
    from mqlab.explore.ledger.sends import SendBook
    from mqlab.explore.ledger.stores import StoreBook
    from mqlab.explore.readers import Reader

Delivery = tuple[str, str, int, int, str]
"""(reader, broker, queue id, queue offset, message id). The events of a consumer call a message of the retry topic by
its own topic, so the topic is not part of it; how often it was tried tells the two apart."""


SET_ANEW = "its offset was set anew"
"""Why a queue is dropped by a consumer that its broker has told to go on elsewhere."""
FROM_THE_BEGINNING = [0]


class GivenBack(NamedTuple):
    """A message that a listener did not want now, and the event that tells that it was given back."""

    delivery: Delivery
    row: Row


class ConsumptionBook:
    """Where each reader began, what it was told, and what became of the messages that it was handed."""

    def __init__(self, names: Names, sends: SendBook, stores: StoreBook) -> None:
        self._names = names
        self._sends = sends
        self._stores = stores
        self.pulled_from: dict[tuple[str, str, str, int], int] = {}
        """(group, broker, topic, queue id) -> the least offset that the group asked for since the broker's last start.
        """
        self.given_by_gapped_slaves: dict[tuple[str, str, str, int], None] = {}
        """(group, broker, topic, queue id) of which a slave that has lost entries of it gave messages to the group."""
        self.corrected: dict[tuple[str, str, str, int], int] = {}
        """(reader, broker, topic, queue id) -> the highest offset that a reader was told, since its own was illegal."""
        self._misled: dict[tuple[str, str, str, int], dict[range, None]] = {}
        """(reader, broker, topic, queue id) -> from an entry that a loss of power has left there, through which a
        reader got a message of another queue, up to the offset of that one, behind which the reader went on.
        """
        self.delivered: dict[Delivery, int] = {}
        self._delivered_us: dict[Delivery, int] = {}
        """When each was delivered last."""
        self._untried: set[Delivery] = set()
        """The deliveries of messages that were not given back before: they come from the topic, not from a retry topic.
        """
        self.done: dict[Delivery, int] = {}
        """The deliveries that count as consumed, with how often the message had been tried then."""
        self.given_back: list[GivenBack] = []
        self.began: dict[tuple[str, str, str, int], int] = {}
        """(reader, broker, topic, queue id) -> the offset at which a reader began that does not want the beginning: a
        member of a broadcasting group begins anew when its process ended before it had written how far it was.
        """
        self._written: dict[tuple[str, str, str, int], None] = {}
        """The queues of which a member of a broadcasting group has written how far it is."""
        self.moves: dict[tuple[str, str, str, int], list[int]] = {}
        """(reader, broker, topic, queue id) -> the offsets at which it was told to go on by a named act: a reset, a
        seek. What lies in front of the last one was passed over on purpose, unless it was consumed before.
        """
        self._tries_of: dict[Delivery, list[int]] = {}
        """(process, the rest of a delivery) -> how often what its listener is at was tried. It may be at two of a batch
        that have one id, one in the topic and one in the retry topic, and nobody can say which it has done first.
        """
        self._batches: dict[tuple[str, Delivery], list[Delivery]] = {}
        """(process, delivery) -> what a listener was called with beside that message, which is the first."""
        self._asked_from: dict[tuple[str, str, str, str, int], int] = {}
        """(process, group, topic, broker name, queue id) -> the offset of the last pull."""
        self.handlers = {
            "BrokerStarted": self._broker_started,
            "ConsumeStarted": self._consume_started,
            "ConsumeFinished": self._consume_finished,
            "MessageGivenBack": self._message_given_back,
            "QueueAllocated": self._queue_allocated,
            "OffsetPersisted": self._offset_persisted,
            "QueueDropped": self._queue_dropped,
            "QueueSought": self._queue_sought,
            "OffsetReset": self._offset_reset,
            "PullRequested": self._pull_requested,
            "PullAnswered": self._pull_answered,
            "PullFinished": self._pull_finished,
            "MessagesPolled": self._polled,
        }

    def wants(self, reader: Reader, place: Place) -> bool:
        """Does the reader's subscription let this message through?"""
        codes = reader.topics.get(place.topic)
        if codes is None:
            return False
        condition = reader.conditions.get(place.topic)
        if condition is not None:
            properties = self._stores.properties_at(place)
            return properties is not None and condition.is_true(properties)
        if not codes:
            return True
        return self._stores.tags.get(place, 0) in codes and self._stores.tag_at(place) in (
            "",
            *reader.tags[place.topic],
        )

    def is_done(self, reader: str, place: Place, kept: Kept) -> bool:
        """Did a listener of this reader consume the message at this place, or give it back?"""
        return self._at(self.done, reader, place, kept)

    def is_delivered(self, reader: str, place: Place, kept: Kept) -> bool:
        """Was a listener of this reader called with the message at this place?"""
        return self._at(self.delivered, reader, place, kept)

    def is_delivered_since(self, reader: str, place: Place, kept: Kept, since_us: int) -> bool:
        """Was a listener of this reader called with the message at this place at that time or later?"""
        delivery = (reader, place.broker, place.queue_id, place.queue_offset, kept.unique_key)
        return self._delivered_us.get(delivery, -1) >= since_us

    def is_delivered_untried(self, reader: str, place: Place, kept: Kept) -> bool:
        """Was it called with the message at this place of the topic itself?

        Messages of one batch have one id, so one of them in a retry topic may look like another one in the topic.
        """
        return (reader, place.broker, place.queue_id, place.queue_offset, kept.unique_key) in self._untried

    def last_of_batch(self, row: Row) -> int:
        """The queue offset of the last message that a listener is called with; `row` is its ConsumeStarted."""
        group, _, broker_name, queue_id, queue_offset, msg_id, _, _ = row[FIRST_FIELD:]
        reader, broker = self._names.reader_of(group, row[NODE]), self._names.broker_of(broker_name)
        first = (reader, broker, queue_id, queue_offset, self._whole_id(broker, row, msg_id))
        batch = self._batches.get((row[NODE], first))
        return batch[-1][3] if batch else queue_offset

    def is_misled(self, reader: str, place: Place) -> bool:
        """Did a message of another queue, which a stale entry pointed to, take this reader past this place?"""
        return any(place.queue_offset in passed for passed in self._misled.get((reader, *place[:3]), ()))

    def _at(self, table: dict[Delivery, int], reader: str, place: Place, kept: Kept) -> bool:
        delivery = (reader, place.broker, place.queue_id, place.queue_offset, kept.unique_key)
        least = self._stores.tries.get(place, 1) if is_retry_topic(place.topic) else 0
        return table.get(delivery, -1) >= least

    def _broker_started(self, row: Row) -> None:
        self.pulled_from = {key: offset for key, offset in self.pulled_from.items() if key[1] != row[NODE]}

    def _consume_started(self, row: Row) -> None:
        group, topic, broker_name, queue_id, queue_offset, msg_id, count, tries = row[FIRST_FIELD:]
        broker = self._names.broker_of(broker_name)
        msg_id = self._whole_id(broker, row, msg_id)
        delivery = (self._names.reader_of(group, row[NODE]), broker, queue_id, queue_offset, msg_id)
        batch: list[Delivery] = []
        if count > 1:
            batch = self._batches[row[NODE], delivery] = self._behind_the_first(delivery, group, topic, count, tries)
        for one in (delivery, *batch):
            self.delivered[one] = max(tries, self.delivered.get(one, 0))
            self._delivered_us[one] = row[TS_US]
            self._tries_of.setdefault((row[NODE], *one[1:]), []).append(tries)
            if not tries:
                self._untried.add(one)
        stale = self._stores.taken_through(Place(broker, topic, queue_id, queue_offset), msg_id)
        if stale is not None:
            passed = self._misled.setdefault((delivery[0], broker, topic, queue_id), {})
            passed[range(stale.queue_offset, queue_offset + 1)] = None

    def _consume_finished(self, row: Row) -> None:
        group, _, broker_name, queue_id, queue_offset, msg_id, status, _ = row[FIRST_FIELD:]
        reader, broker = self._names.reader_of(group, row[NODE]), self._names.broker_of(broker_name)
        broadcasting = reader != group
        msg_id = self._whole_id(broker, row, msg_id)
        first = (reader, broker, queue_id, queue_offset, msg_id)
        batch = self._batches.pop((row[NODE], first), ())
        succeeded = status in ("CONSUME_SUCCESS", "SUCCESS", "COMMIT") or broadcasting
        for delivery in (first, *batch):
            if succeeded:
                self._note_done(delivery, row[NODE])
            under_way = self._tries_of.get((row[NODE], *delivery[1:]), [])
            if under_way:
                under_way.remove(max(under_way) if succeeded else min(under_way))

    def _behind_the_first(
        self, first: Delivery, group: str, topic: str, count: int, tries: int
    ) -> list[Delivery]:
        """What a listener that was called with `count` messages got behind the first: what its group wants of that
        queue, up to the first offset at which nothing is known to be stored.
        """
        reader, broker, queue_id, queue_offset, msg_id = first
        # One that was delayed may lie in the topic twice after a loss of power, and once more in the retry topic.
        topics = (retry_topic(group), topic) if tries else (topic, retry_topic(group))
        places = ((each, Place(broker, each, queue_id, queue_offset)) for each in topics)
        stored = ((each, self._stores.stored.get(place) or self._stores.lost.get(place)) for each, place in places)
        queue_topic = next((each for each, kept in stored if kept and kept.unique_key == msg_id), topics[-1])
        begin = Place(broker, queue_topic, queue_id, queue_offset + 1)
        wanted = islice(self._wanted_from(group, begin), count - 1)
        return [(reader, broker, queue_id, place.queue_offset, kept.unique_key) for place, kept in wanted]

    def _wanted_from(self, group: str, begin: Place) -> Iterator[tuple[Place, Kept]]:
        """What is stored from a place on and wanted by a group, up to the first offset of which nothing is known."""
        known = self._names.known(group)
        for offset in count_from(begin.queue_offset):
            place = begin._replace(queue_offset=offset)
            kept = self._stores.stored.get(place) or self._stores.lost.get(place)
            if kept is None:
                return
            if known is None or is_retry_topic(place.topic) or self.wants(known, place):
                yield place, kept

    def wanted_between(self, reader: Reader, begin: Place, end: int) -> bool:
        """Does the reader want any message of this queue from `begin` up to the offset `end`?"""
        return any(self.wants(reader, begin._replace(queue_offset=at)) for at in range(begin.queue_offset, end))

    def _whole_id(self, broker: str, row: Row, msg_id: str) -> str:
        """The id with which a message was stored, which a torn record has no more."""
        if msg_id in self._sends.attempted:
            return msg_id
        group, topic, _, queue_id, queue_offset = row[FIRST_FIELD : FIRST_FIELD + 5]
        for each in (topic, retry_topic(group)):
            kept = self._stores.stored.get(Place(broker, each, queue_id, queue_offset))
            if kept is not None:
                return kept.unique_key
        return msg_id

    def _note_done(self, delivery: Delivery, process: str) -> None:
        tries = max(self._tries_of.get((process, *delivery[1:]), []), default=0)
        self.done[delivery] = max(tries, self.done.get(delivery, 0))

    def _message_given_back(self, row: Row) -> None:
        group, _, broker_name, queue_id, queue_offset, msg_id, _, tries = row[FIRST_FIELD:]
        reader, broker = self._names.reader_of(group, row[NODE]), self._names.broker_of(broker_name)
        delivery = (reader, broker, queue_id, queue_offset, self._whole_id(broker, row, msg_id))
        self.done[delivery] = max(tries, self.done.get(delivery, 0))
        self.given_back.append(GivenBack(delivery, row))

    def _queue_allocated(self, row: Row) -> None:
        _, group, topic, broker_name, queue_id, queue_offset = row[FIRST_FIELD:]
        known = self._names.known(group)
        if known is not None and not known.from_first_offset and not is_retry_topic(topic):
            queue = (self._names.reader_of(group, row[NODE]), self._names.broker_of(broker_name), topic, queue_id)
            if known.member is not None and queue not in self._written:
                self.began[queue] = queue_offset
            self.began.setdefault(queue, queue_offset)

    def _offset_persisted(self, row: Row) -> None:
        group, topic, broker_name, queue_id, _ = row[FIRST_FIELD:]
        reader = self._names.reader_of(group, row[NODE])
        if reader != group:
            self._written[reader, self._names.broker_of(broker_name), topic, queue_id] = None

    def _queue_dropped(self, row: Row) -> None:
        """Note where a member goes on that was told by its broker to go on elsewhere, and did as it was told."""
        _, group, topic, broker_name, queue_id, reason = row[FIRST_FIELD:]
        consumer = self._names.push_consumer(row[NODE], group) if reason == SET_ANEW else None
        if consumer is not None:
            offset = consumer.impl.offset_store.read_from_memory(MessageQueue(topic, broker_name, queue_id))
            self._member_moved(row, group, topic, broker_name, queue_id, offset)

    def _queue_sought(self, row: Row) -> None:
        self._member_moved(row, *row[FIRST_FIELD:])

    def _member_moved(
        self, row: Row, group: str, topic: str, broker_name: str, queue_id: int, offset: int
    ) -> None:
        queue = (self._names.reader_of(group, row[NODE]), self._names.broker_of(broker_name), topic, queue_id)
        self.moves.setdefault(queue, []).append(offset)

    def _offset_reset(self, row: Row) -> None:
        group, topic, queue_id, offset = row[FIRST_FIELD:]
        self.moves.setdefault((group, row[NODE], topic, queue_id), []).append(offset)

    def moved_to(self, reader: str, place: Place) -> int:
        """The offset of this place's queue at which a named act last let the reader go on; 0 if none did."""
        return self.moves.get((reader, *place[:3]), FROM_THE_BEGINNING)[-1]

    def _pull_requested(self, row: Row) -> None:
        group, topic, broker_name, queue_id, queue_offset = row[FIRST_FIELD : FIRST_FIELD + 5]
        self._asked_from[row[NODE], group, topic, broker_name, queue_id] = queue_offset

    def _pull_answered(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, _, messages = row[FIRST_FIELD : FIRST_FIELD + 6]
        queue = (group, self._names.original_of(row[NODE]), topic, queue_id)
        if messages and queue[1] != row[NODE] and queue[1:] in self._stores.gaps_at_slaves:
            self.given_by_gapped_slaves[queue] = None
        self.pulled_from[queue] = min(queue_offset, self.pulled_from.get(queue, queue_offset))

    def _pull_finished(self, row: Row) -> None:
        """Note a correction. An application that pulls has what the answer brought; a lite pull consumer hands it out
        later.
        """
        group, topic, broker_name, queue_id, status, messages, next_offset = row[FIRST_FIELD:]
        if status == "OFFSET_ILLEGAL":
            queue = (self._names.reader_of(group, row[NODE]), self._names.broker_of(broker_name), topic, queue_id)
            self.corrected[queue] = max(next_offset, self.corrected.get(queue, 0))
        known = self._names.known(group) if status == "FOUND" else None
        if known is not None and not known.pushed_to and not known.hands_out:
            asked = (row[NODE], group, topic, broker_name, queue_id)
            begin = self._asked_from.get(asked, next_offset - messages)
            self._handed_out(row, group, topic, broker_name, queue_id, range(begin, next_offset))

    def _polled(self, row: Row) -> None:
        group, topic, broker_name, queue_id, first, _, messages, _ = row[FIRST_FIELD:]
        begin = Place(self._names.broker_of(broker_name), topic, queue_id, first)
        wanted = [place.queue_offset for place, _ in islice(self._wanted_from(group, begin), messages)]
        # Where nothing is known to be stored, the messages are taken to lie side by side.
        offsets = wanted if len(wanted) == messages else range(first, first + messages)
        self._handed_out(row, group, topic, broker_name, queue_id, offsets)

    def _handed_out(
        self, row: Row, group: str, topic: str, broker_name: str, queue_id: int, offsets: Sequence[int]
    ) -> None:
        """Who asks for messages has consumed them when it has them."""
        reader, broker = self._names.reader_of(group, row[NODE]), self._names.broker_of(broker_name)
        for offset in offsets:
            place = Place(broker, topic, queue_id, offset)
            # What was pulled may be handed out when a loss of power has taken it from the store.
            kept = self._stores.stored.get(place) or self._stores.lost.get(place)
            if kept is not None:
                delivery = (reader, broker, queue_id, offset, kept.unique_key)
                if not is_retry_topic(topic):
                    self._untried.add(delivery)
                tries = self._stores.tries.get(place, 1) if is_retry_topic(topic) else 0
                self.delivered[delivery] = max(tries, self.delivered.get(delivery, 0))
                self.done[delivery] = max(tries, self.done.get(delivery, 0))
                self._delivered_us[delivery] = row[TS_US]
