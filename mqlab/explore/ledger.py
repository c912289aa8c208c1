"""The ledger: what the events of a world say about each message - sent, stored, delivered, consumed, given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mqlab.explore.places import Kept, Place
from mqlab.explore.readers import reader_name, readers_of
from mqlab.explore.stale_entries import is_passed_over
from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.topics import TIMER_TOPIC, is_retry_topic, retry_topic
from mqlab.trace.bus import Row
from mqlab.trace.record import FIRST_FIELD, KIND

if TYPE_CHECKING:
    from mqlab.explore.readers import Reader
    from mqlab.lab import Lab
    from mqlab.store import ReadableStore

TS_US, NODE = 2, 3

Delivery = tuple[str, str, int, int, str]
"""(reader, broker, queue id, queue offset, message id). The events of a consumer call a message of the retry topic by
its own topic, so the topic is not part of it; how often it was tried tells the two apart."""


class GivenBack(NamedTuple):
    """A message that a listener did not want now, and the event that tells that it was given back."""

    delivery: Delivery
    row: Row


class Ledger:
    """Reads the events of one world, from its beginning, and keeps what the rules ask for."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.attempted: dict[str, None] = {}
        """The ids of all messages that a producer handed to remoting."""
        self.acknowledged: dict[str, Row] = {}
        """The ids of all messages that were answered SEND_OK, with the answer; of batches see below."""
        self.acknowledged_places: dict[Place, Row] = {}
        """Where the messages of batches are that were answered SEND_OK. All of a batch are stored with one id."""
        self.stored: dict[Place, Kept] = {}
        self.tags: dict[Place, int] = {}
        self.tries: dict[Place, int] = {}
        """How often a message of a retry topic had been tried when it was stored there."""
        self.lost: dict[Place, Kept] = {}
        """What a broker's recovery did not find again."""
        self.lost_keys: dict[str, None] = {}
        """The unique keys of all messages of which a copy was lost so."""
        self.deleted: dict[Place, None] = {}
        """What lay in a file that a broker deleted because its disk was full."""
        self.remains: dict[Place, dict[int, None]] = {}
        """The commit-log offsets to which an entry of a lost message may still point."""
        self.gaps: dict[Place, None] = {}
        """Places whose entry was lost and not written again, though the log still has the message."""
        self.in_gaps: dict[str, None] = {}
        """The unique keys of these messages."""
        self.passed_over: dict[Place, None] = {}
        """Places whose message a recovery gave no entry, since the queue still had entries of lost messages then."""
        self.in_passed_over: dict[str, None] = {}
        """The unique keys of these messages."""
        self.holes: dict[str, tuple[int, int]] = {}
        """Broker -> from the first unreadable record in front of where its last recovery began, up to there."""
        self.moved_up: dict[Place, int] = {}
        """The offset at which the entry of a message stands now, where entries in front of it were lost."""
        self.pulled_from: dict[tuple[str, str, str, int], int] = {}
        """(group, broker, topic, queue id) -> the least offset that the group asked for since the broker's last start.
        """
        self.in_batches: dict[str, None] = {}
        """The unique keys that several messages of a batch have."""
        self.corrected: dict[tuple[str, str, str, int], int] = {}
        """(reader, broker, topic, queue id) -> the highest offset that a reader was told, since its own was illegal."""
        self.used_twice: dict[Place, None] = {}
        """Places that were filled again after what lay there was lost."""
        self.taken_over: dict[tuple[str, int], str] = {}
        """(broker, commit-log offset) at which a lost timer message began, and now another message, with its key."""
        self.delivered: dict[Delivery, int] = {}
        self.done: dict[Delivery, int] = {}
        """The deliveries that count as consumed, with how often the message had been tried then."""
        self.given_back: list[GivenBack] = []
        self.began: dict[tuple[str, str, str, int], int] = {}
        """(reader, broker, topic, queue id) -> the offset at which a reader began that does not want the beginning."""
        self.power_lost_us: dict[str, int] = {}
        self.started_us: dict[str, int] = {}
        self.frozen_us: dict[str, int] = {}
        """When each process was last frozen."""
        self.last: Row | None = None
        self.last_stored_us = 0
        self._lost_timers: dict[tuple[str, int], None] = {}
        self._last_stored = (-1, "")
        """(slice, unique key) of the newest message."""
        self._tries_of: dict[Delivery, int] = {}
        self._broker_of: dict[tuple[str, int], str] = {}
        self._of_group: dict[str, Reader] = {}
        self._asked_from: dict[tuple[str, str, str, str, int], int] = {}
        """(process, group, topic, broker name, queue id) -> the offset of the last pull."""
        self.handlers = self._handlers()

    def _handlers(self) -> dict[str, Callable[[Row], None]]:
        return {
            "SendAttempted": self._attempted,
            "SendSucceeded": self._succeeded,
            "MessageStored": self._stored,
            "MessageDispatched": self._dispatched,
            "ParkedMessageDelivered": self._parked_delivered,
            "StoreRecovered": self._recovered,
            "BrokerStarted": self._broker_started,
            "FileDeleted": self._file_deleted,
            "ConsumeStarted": self._consume_started,
            "ConsumeFinished": self._consume_finished,
            "MessageGivenBack": self._message_given_back,
            "QueueAllocated": self._queue_allocated,
            "PullRequested": self._pull_requested,
            "PullAnswered": self._pull_answered,
            "PullFinished": self._pull_finished,
            "MessagesPolled": self._polled,
            "PowerLost": self._power_lost,
            "NodeStarted": self._node_started,
            "NodeFrozen": self._node_frozen,
        }

    # -- names ------------------------------------------------------------------------------------------------------

    def broker_of(self, broker_name: str, broker_id: int = MASTER_ID) -> str:
        """The process of the broker that calls itself so; the master unless told, where messages are stored first."""
        if (broker_name, broker_id) not in self._broker_of:
            for broker in self._lab.brokers:
                if broker.controller is not None:
                    config = broker.controller.broker_config
                    self._broker_of[config.broker_name, config.broker_id] = broker.name
        return self._broker_of.get((broker_name, broker_id), broker_name)

    def reader_of(self, group: str, process: str) -> str:
        """The reader for whom a member of a group consumes."""
        known = self._known(group)
        return reader_name(group, process, known is not None and known.member is not None)

    def _known(self, group: str) -> Reader | None:
        """A reader of this group; all of them have the same settings."""
        if group not in self._of_group:
            self._of_group = {reader.group: reader for reader in readers_of(self._lab).values()}
        return self._of_group.get(group)

    def wants(self, reader: Reader, place: Place) -> bool:
        """Does the reader's subscription let this message through?"""
        codes = reader.topics.get(place.topic)
        if codes is None or not codes:
            return codes is not None
        return self.tags.get(place, 0) in codes and self._tag_at(place) in ("", *reader.tags[place.topic])

    def _tag_at(self, place: Place) -> str:
        """The tag of a message: two tags may have one code. Empty where its broker cannot be asked."""
        kept = self.stored.get(place)
        broker = next((broker for broker in self._lab.brokers if broker.name == place.broker), None)
        if kept is None or broker is None or not broker.is_up():
            return ""
        message = broker.store.look_message_by_offset(kept.commit_log_offset)
        return "" if message is None else message.tags or ""

    def is_done(self, reader: str, place: Place, kept: Kept) -> bool:
        """Did a listener of this reader consume the message at this place, or give it back?"""
        return self._at(self.done, reader, place, kept)

    def is_delivered(self, reader: str, place: Place, kept: Kept) -> bool:
        """Was a listener of this reader called with the message at this place?"""
        return self._at(self.delivered, reader, place, kept)

    def _at(self, table: dict[Delivery, int], reader: str, place: Place, kept: Kept) -> bool:
        delivery = (reader, place.broker, place.queue_id, place.queue_offset, kept.unique_key)
        least = self.tries.get(place, 1) if is_retry_topic(place.topic) else 0
        return table.get(delivery, -1) >= least

    # -- events -----------------------------------------------------------------------------------------------------

    def __call__(self, row: Row) -> None:
        self.last = row
        handler = self.handlers.get(row[KIND])
        if handler is not None:
            handler(row)

    def _attempted(self, row: Row) -> None:
        for msg_id in row[FIRST_FIELD + 3].split(","):
            self.attempted[msg_id] = None

    def _succeeded(self, row: Row) -> None:
        topic, broker_name, queue_id, queue_offset, msg_ids, status = row[FIRST_FIELD:]
        if status != "SEND_OK":
            return
        ids = msg_ids.split(",")
        if len(ids) == 1 and msg_ids in self.attempted:
            self.acknowledged[msg_ids] = row
            return
        broker = self.broker_of(broker_name)
        for offset in range(queue_offset, queue_offset + len(ids)):
            self.acknowledged_places[Place(broker, topic, queue_id, offset)] = row

    def _stored(self, row: Row) -> None:
        topic, queue_id, queue_offset, log_offset, size, unique_key = row[FIRST_FIELD:]
        place = Place(row[NODE], topic, queue_id, queue_offset)
        if self._last_stored == (row[0], unique_key):
            self.in_batches[unique_key] = None
        self._last_stored = (row[0], unique_key)
        if self.lost.pop(place, None) is not None or (place in self.stored and place.broker in self.power_lost_us):
            self.used_twice[place] = None
        if (place.broker, log_offset) in self._lost_timers:
            self.taken_over[place.broker, log_offset] = unique_key
        self.stored[place] = Kept(unique_key, log_offset, size, row)
        self.last_stored_us = row[TS_US]

    def _dispatched(self, row: Row) -> None:
        topic, queue_id, queue_offset, _, tags_code = row[FIRST_FIELD:]
        self.tags[Place(row[NODE], topic, queue_id, queue_offset)] = tags_code

    def _parked_delivered(self, row: Row) -> None:
        topic, queue_id, queue_offset, _, _, reconsume_times, _ = row[FIRST_FIELD:]
        self.tries[Place(row[NODE], topic, queue_id, queue_offset)] = reconsume_times

    def _recovered(self, row: Row) -> None:
        end = row[FIRST_FIELD + 4]
        for place in [p for p, kept in self.stored.items() if p.broker == row[NODE] and kept.commit_log_offset >= end]:
            self._is_lost(place)

    def _is_lost(self, place: Place) -> None:
        self.lost[place] = kept = self.stored.pop(place)
        self.lost_keys[kept.unique_key] = None
        self.remains.setdefault(place, {})[kept.commit_log_offset] = None
        if place.topic == TIMER_TOPIC:
            self._lost_timers[place.broker, kept.commit_log_offset] = None

    def _broker_started(self, row: Row) -> None:
        """Find the messages without an entry: recovery writes none in front of where it begins, nor in front of an
        entry that the queue has, though it cuts that one off afterwards. The entries that it writes follow the last
        one that is left.
        """
        self.pulled_from = {key: offset for key, offset in self.pulled_from.items() if key[1] != row[NODE]}
        self.moved_up = {place: offset for place, offset in self.moved_up.items() if place.broker != row[NODE]}
        broker = next((broker for broker in self._lab.brokers if broker.name == row[NODE]), None)
        if broker is None or row[NODE] not in self.power_lost_us or broker.controller is None:
            return
        store = broker.controller.message_store
        recovery = store.recovery
        assert recovery is not None
        for place in [p for p, kept in self.stored.items() if p.broker == row[NODE] and _is_another(store, kept)]:
            self._is_lost(place)
        self._find_holes(row[NODE], store, recovery.started_at)
        cut = [(piece["topic"], piece["queueId"]) for piece in recovery.cuts if piece["what"] == "consume queue"]
        for place, kept in self.stored.items():
            if place.broker != row[NODE]:
                continue
            queue = store.find_consume_queue(place.topic, place.queue_id)
            unit = queue.get(place.queue_offset) if queue is not None else None
            if unit is not None and unit.pos == kept.commit_log_offset:
                continue
            if kept.commit_log_offset < recovery.started_at:
                self.gaps[place] = self.in_gaps[kept.unique_key] = None
            elif place[1:3] in cut or is_passed_over(store, self, place):
                self.passed_over[place] = self.in_passed_over[kept.unique_key] = None
            elif queue is not None:
                found = (unit.queue_offset for unit in queue.units() if unit.pos == kept.commit_log_offset)
                moved_to = next(found, place.queue_offset)
                if moved_to < place.queue_offset:
                    self.moved_up[place] = moved_to

    def _find_holes(self, broker: str, store: ReadableStore, started_at: int) -> None:
        """Find the messages that cannot be read any more in front of where recovery began. It does not look there, and
        takes all that it finds in files for flushed, also what a process that was killed had not flushed.
        """
        holes = [
            (kept.commit_log_offset, place)
            for place, kept in self.stored.items()
            if place.broker == broker
            and store.commit_log.min_offset <= kept.commit_log_offset < started_at
            and store.look_message_by_offset(kept.commit_log_offset) is None
        ]
        for _, place in holes:
            self._is_lost(place)
        if holes:
            self.holes[broker] = min(holes)[0], started_at

    def _file_deleted(self, row: Row) -> None:
        path, reason = row[FIRST_FIELD:]
        *_, folder, name = path.split("/")
        if folder != "commitlog" or reason != "space":
            return
        broker = next(broker for broker in self._lab.brokers if broker.name == row[NODE])
        end = int(name) + broker.store.config.mapped_file_size_commit_log
        for place, kept in self.stored.items():
            if place.broker == row[NODE] and kept.commit_log_offset < end:
                self.deleted[place] = None

    def _consume_started(self, row: Row) -> None:
        group, _, broker_name, queue_id, queue_offset, msg_id, _, tries = row[FIRST_FIELD:]
        broker = self.broker_of(broker_name)
        msg_id = self._whole_id(broker, row, msg_id)
        delivery = (self.reader_of(group, row[NODE]), broker, queue_id, queue_offset, msg_id)
        self.delivered[delivery] = max(tries, self.delivered.get(delivery, 0))
        self._tries_of[(row[NODE], *delivery[1:])] = tries

    def _consume_finished(self, row: Row) -> None:
        group, _, broker_name, queue_id, queue_offset, msg_id, status, _ = row[FIRST_FIELD:]
        reader, broker = self.reader_of(group, row[NODE]), self.broker_of(broker_name)
        broadcasting = reader != group
        msg_id = self._whole_id(broker, row, msg_id)
        if status in ("CONSUME_SUCCESS", "SUCCESS", "COMMIT") or broadcasting:
            self._note_done((reader, broker, queue_id, queue_offset, msg_id), row[NODE])

    def _whole_id(self, broker: str, row: Row, msg_id: str) -> str:
        """The id with which a message was stored, which a torn record has no more."""
        if msg_id in self.attempted:
            return msg_id
        group, topic, _, queue_id, queue_offset = row[FIRST_FIELD : FIRST_FIELD + 5]
        for each in (topic, retry_topic(group)):
            kept = self.stored.get(Place(broker, each, queue_id, queue_offset))
            if kept is not None:
                return kept.unique_key
        return msg_id

    def _note_done(self, delivery: Delivery, process: str) -> None:
        tries = self._tries_of.get((process, *delivery[1:]), 0)
        self.done[delivery] = max(tries, self.done.get(delivery, 0))

    def _message_given_back(self, row: Row) -> None:
        group, _, broker_name, queue_id, queue_offset, msg_id, _, tries = row[FIRST_FIELD:]
        reader, broker = self.reader_of(group, row[NODE]), self.broker_of(broker_name)
        delivery = (reader, broker, queue_id, queue_offset, self._whole_id(broker, row, msg_id))
        self.done[delivery] = max(tries, self.done.get(delivery, 0))
        self.given_back.append(GivenBack(delivery, row))

    def _queue_allocated(self, row: Row) -> None:
        _, group, topic, broker_name, queue_id, queue_offset = row[FIRST_FIELD:]
        known = self._known(group)
        if known is not None and not known.from_first_offset and not is_retry_topic(topic):
            queue = (self.reader_of(group, row[NODE]), self.broker_of(broker_name), topic, queue_id)
            self.began.setdefault(queue, queue_offset)

    def _pull_requested(self, row: Row) -> None:
        group, topic, broker_name, queue_id, queue_offset = row[FIRST_FIELD : FIRST_FIELD + 5]
        self._asked_from[row[NODE], group, topic, broker_name, queue_id] = queue_offset

    def _pull_answered(self, row: Row) -> None:
        group, topic, queue_id, queue_offset = row[FIRST_FIELD : FIRST_FIELD + 4]
        queue = (group, row[NODE], topic, queue_id)
        self.pulled_from[queue] = min(queue_offset, self.pulled_from.get(queue, queue_offset))

    def _pull_finished(self, row: Row) -> None:
        """Note a correction. An application that pulls has what the answer brought; a lite pull consumer hands it out
        later.
        """
        group, topic, broker_name, queue_id, status, messages, next_offset = row[FIRST_FIELD:]
        known = self._known(group)
        if status == "OFFSET_ILLEGAL":
            queue = (self.reader_of(group, row[NODE]), self.broker_of(broker_name), topic, queue_id)
            self.corrected[queue] = max(next_offset, self.corrected.get(queue, 0))
        if status == "FOUND" and known is not None and not known.pushed_to and not known.hands_out:
            asked = (row[NODE], group, topic, broker_name, queue_id)
            begin = self._asked_from.get(asked, next_offset - messages)
            self._handed_out(row, group, topic, broker_name, queue_id, range(begin, next_offset))

    def _polled(self, row: Row) -> None:
        group, topic, broker_name, queue_id, first, _, messages, _ = row[FIRST_FIELD:]
        self._handed_out(row, group, topic, broker_name, queue_id, range(first, first + messages))

    def _handed_out(
        self, row: Row, group: str, topic: str, broker_name: str, queue_id: int, offsets: range
    ) -> None:
        """Who asks for messages has consumed them when it has them."""
        reader, broker = self.reader_of(group, row[NODE]), self.broker_of(broker_name)
        for offset in offsets:
            kept = self.stored.get(Place(broker, topic, queue_id, offset))
            if kept is not None:
                delivery = (reader, broker, queue_id, offset, kept.unique_key)
                self.delivered[delivery] = self.done[delivery] = 0

    def _power_lost(self, row: Row) -> None:
        self.power_lost_us[row[FIRST_FIELD]] = row[TS_US]

    def _node_started(self, row: Row) -> None:
        self.started_us[row[FIRST_FIELD]] = row[TS_US]

    def _node_frozen(self, row: Row) -> None:
        self.frozen_us[row[FIRST_FIELD]] = row[TS_US]


def _is_another(store: ReadableStore, kept: Kept) -> bool:
    """Does the log have another message there? What was cut off stays on the disk; when the page that was written over
    it is lost, the older one comes back.
    """
    message = store.look_message_by_offset(kept.commit_log_offset)
    unique_key = message.properties.get("UNIQ_KEY", "") if message is not None else ""
    return bool(unique_key) and "\0" not in unique_key and unique_key != kept.unique_key
