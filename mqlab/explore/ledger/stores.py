"""What brokers have stored, and what was taken from it: by a loss of power and recovery, or by a full disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.explore.fault_plan import flushes_before_the_answer
from mqlab.explore.places import Kept, Place
from mqlab.explore.stale_entries import is_passed_over
from mqlab.protocol.topics import TIMER_TOPIC, is_dlq_topic
from mqlab.trace.bus import Row
from mqlab.trace.record import FIRST_FIELD, NODE, TS_US

if TYPE_CHECKING:
    from mqlab.explore.ledger.names import Names
    from mqlab.explore.ledger.processes import ProcessBook
    from mqlab.store import ReadableStore


class StoreBook:
    """What lies where in each broker's store, what was lost there, and what that left behind."""

    def __init__(self, names: Names, processes: ProcessBook) -> None:
        self._names = names
        self.processes = processes
        self.stored: dict[Place, Kept] = {}
        self.tags: dict[Place, int] = {}
        self._properties: dict[Place, dict[str, str]] = {}
        """The properties of what somebody wants by a condition, to be known while no broker is up that has them."""
        self.tries: dict[Place, int] = {}
        """How often a message of a retry topic had been tried when it was stored there."""
        self.lost: dict[Place, Kept] = {}
        """What a broker's recovery did not find again."""
        self.lost_keys: dict[str, None] = {}
        """The unique keys of all messages of which a copy was lost so."""
        self.deleted: dict[Place, None] = {}
        """What lay in a file that a broker deleted because its disk was full, or it was old enough."""
        self.forgotten: dict[Place, dict[str, None]] = {}
        """The unique keys of what lay in a topic that was deleted: it is owed to nobody, and offsets begin anew."""
        self.deleted_topics: dict[tuple[str, str], None] = {}
        """(broker, topic) of the topics that were deleted."""
        self.forgotten_keys: dict[str, None] = {}
        """All of these keys."""
        self._stalled: dict[str, int] = {}
        """Broker -> the place of its log from which on nothing gets an entry, as its disk is full."""
        self.overtaken: dict[str, int] = {}
        """Broker -> the place of its log at which entries stood still when a file with what follows was deleted: the
        next ones stand too far ahead in their queues.
        """
        self._built_anew: dict[tuple[str, str, int], int] = {}
        """(broker, topic, queue id) of a queue that was deleted while a message of it waited for its entry -> where its
        entries end by now. Offsets begin at 0 again: a message with that one gets an entry behind them, one whose
        offset they have passed gets none (ConsumeQueue.putMessagePositionInfo; the comment of
        DefaultMessageStore.deleteTopics says so, too). Such messages are forgotten with the topic.
        """
        self._newest_entry: dict[str, int] = {}
        """Broker -> the place in its log of the newest message that has got its entry."""
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
        self.gaps_at_slaves: dict[tuple[str, str, int], None] = {}
        """(broker, topic, queue id) of which a slave has lost entries; what it then has moves up."""
        self.moved_up: dict[Place, int] = {}
        """The offset at which the entry of a message stands now, where entries in front of it were lost."""
        self.ever_moved_up: dict[tuple[str, int], None] = {}
        """(broker, commit-log offset) of all records whose entries have done so; what was stored later may have their
        offset in the queue by now.
        """
        self.in_batches: dict[str, None] = {}
        """The unique keys that several messages of a batch have."""
        self.used_twice: dict[Place, None] = {}
        """Places that were filled again after what lay there was lost."""
        self.taken_over: dict[tuple[str, int], str] = {}
        """(broker, commit-log offset) at which a lost timer message began, and now another message, with its key."""
        self.answered_unflushed: dict[str, None] = {}
        """Brokers of which a process has answered before it flushed (ASYNC_FLUSH)."""
        self.last_stored_us = 0
        self.last_alive_us = 0
        """The same without dead letters, which nobody gets."""
        self._lost_timers: dict[tuple[str, int], None] = {}
        self._last_stored = (-1, "")
        """(slice, unique key) of the newest message."""
        self.handlers = {
            "MessageStored": self._stored,
            "MessageDispatched": self._dispatched,
            "ParkedMessageDelivered": self._parked_delivered,
            "StoreRecovered": self._recovered,
            "BrokerStarted": self._broker_started,
            "FileDeleted": self._file_deleted,
            "DispatchStalled": self._stalled_at,
        }

    def _stored(self, row: Row) -> None:
        topic, queue_id, queue_offset, log_offset, size, unique_key = row[FIRST_FIELD:]
        place = Place(row[NODE], topic, queue_id, queue_offset)
        if self._last_stored == (row[0], unique_key):
            self.in_batches[unique_key] = None
        self._last_stored = (row[0], unique_key)
        if self.lost.pop(place, None) is not None or (
            place in self.stored and place.broker in self.processes.power_lost_us
        ):
            self.used_twice[place] = None
        if (place.broker, log_offset) in self._lost_timers:
            self.taken_over[place.broker, log_offset] = unique_key
        self.stored[place] = Kept(unique_key, log_offset, size, row)
        self.last_stored_us = row[TS_US]
        if not is_dlq_topic(place.topic):
            self.last_alive_us = row[TS_US]

    def _dispatched(self, row: Row) -> None:
        topic, queue_id, queue_offset, log_offset, tags_code = row[FIRST_FIELD:]
        place = Place(row[NODE], topic, queue_id, queue_offset)
        self.tags[place] = tags_code
        if log_offset > self._newest_entry.get(row[NODE], -1):
            self._newest_entry[row[NODE]] = log_offset
            if place[:3] in self._built_anew or place in self.forgotten:
                self._gets_an_entry(place, log_offset)
        if self._stalled:
            self._stalled.pop(row[NODE], None)
        if any(topic in reader.conditions for reader in self._names.readers.values()):
            properties = self.properties_at(place)
            if properties is not None:
                self._properties[place] = properties

    def _gets_an_entry(self, place: Place, log_offset: int) -> None:
        """Note the first entry of a message in a queue that was deleted while messages of it waited for theirs."""
        kept, end = self.stored.get(place), self._built_anew.get(place[:3], 0)
        is_of_now = kept is not None and kept.commit_log_offset == log_offset
        if is_of_now and end == 0:
            return
        if is_of_now and place.queue_offset < end:
            self._forget(place, self.stored.pop(place).unique_key)
        self._built_anew[place[:3]] = max(end, (place.queue_offset or end) + 1)

    def _parked_delivered(self, row: Row) -> None:
        topic, queue_id, queue_offset, _, _, reconsume_times, _ = row[FIRST_FIELD:]
        self.tries[Place(row[NODE], topic, queue_id, queue_offset)] = reconsume_times

    def _recovered(self, row: Row) -> None:
        end = row[FIRST_FIELD + 4]
        self._newest_entry[row[NODE]] = min(self._newest_entry.get(row[NODE], -1), end - 1)
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
        self.moved_up = {place: offset for place, offset in self.moved_up.items() if place.broker != row[NODE]}
        broker = self._names.broker(row[NODE])
        if broker is not None and broker.is_up() and not flushes_before_the_answer(broker):
            self.answered_unflushed[row[NODE]] = None
        if broker is None or row[NODE] not in self.processes.power_lost_us or broker.controller is None:
            return
        store = broker.controller.message_store
        recovery = store.recovery
        assert recovery is not None
        for place in [p for p, kept in self.stored.items() if p.broker == row[NODE] and _is_another(store, kept)]:
            self._is_lost(place)
        self._find_holes(row[NODE], store, recovery.started_at)
        if (master := self._names.original_of(row[NODE])) != row[NODE]:
            self._find_gaps_of_slave(master, store, recovery.end)
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
                    self.ever_moved_up[place.broker, kept.commit_log_offset] = None

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

    def _find_gaps_of_slave(self, master: str, store: ReadableStore, end: int) -> None:
        """Find what a slave has of its master in its log, but not at its place in a queue."""
        begin = store.commit_log.min_offset
        for place, kept in self.stored.items():
            if place.broker == master and begin <= kept.commit_log_offset < end:
                queue = store.find_consume_queue(place.topic, place.queue_id)
                unit = queue.get(place.queue_offset) if queue is not None else None
                if unit is None or unit.pos != kept.commit_log_offset:
                    self.gaps_at_slaves[place[:3]] = None

    def taken_through(self, place: Place, unique_key: str) -> Place | None:
        """Where an entry of a lost message was left in the queue of this place, if the log now has this message of
        another queue there, which was taken for the one at this place.
        """
        kept = self.stored.get(place)
        if place.broker not in self.processes.power_lost_us or (kept is not None and kept.unique_key == unique_key):
            return None
        log_offsets = {
            kept.commit_log_offset
            for at, kept in self.stored.items()
            if at.broker == place.broker and kept.unique_key == unique_key
        }
        entries = (at for at, left in self.remains.items() if at[:3] == place[:3] and not log_offsets.isdisjoint(left))
        return min(entries, default=None)

    def _file_deleted(self, row: Row) -> None:
        path, reason = row[FIRST_FIELD:]
        *_, folder, name = path.split("/")
        if reason == "topic deleted":
            self._topic_deleted(row[NODE], name)
            return
        if folder != "commitlog" or reason not in ("space", "expired"):
            return
        broker = self._names.broker(row[NODE])
        assert broker is not None
        end = int(name) + broker.store.config.mapped_file_size_commit_log
        if (stalled_at := self._stalled.get(row[NODE], end)) < end:
            self.overtaken[row[NODE]] = stalled_at
        for place, kept in self.stored.items():
            if place.broker == row[NODE] and kept.commit_log_offset < end:
                self.deleted[place] = None

    def _stalled_at(self, row: Row) -> None:
        self._stalled[row[NODE]] = row[FIRST_FIELD]

    def _topic_deleted(self, broker: str, topic: str) -> None:
        self.deleted_topics[broker, topic] = None
        for place in [p for p in self.stored if (p.broker, p.topic) == (broker, topic)]:
            self._forget(place, self.stored.pop(place).unique_key)
        self._built_anew = {key: at for key, at in self._built_anew.items() if key[:2] != (broker, topic)}

    def _forget(self, place: Place, unique_key: str) -> None:
        self.forgotten.setdefault(place, {})[unique_key] = self.forgotten_keys[unique_key] = None

    def tag_at(self, place: Place) -> str:
        """The tag of a message: two tags may have one code. Empty where its broker cannot be asked."""
        kept = self.stored.get(place)
        broker = self._names.broker(place.broker)
        if kept is None or broker is None or not broker.is_up():
            return ""
        message = broker.store.look_message_by_offset(kept.commit_log_offset)
        return "" if message is None else message.tags or ""

    def properties_at(self, place: Place) -> dict[str, str] | None:
        """The properties of a message, from its broker or from a slave that is up, or, if none is, as they were when
        it got its entry; None where they cannot be read.
        """
        kept = self.stored.get(place)
        if kept is None:
            return None
        up = [broker for broker in self._names.copies_of(place.broker) if broker.is_up()]
        for broker in up:
            message = broker.store.look_message_by_offset(kept.commit_log_offset)
            if message is not None and message.msg_id == kept.unique_key:
                return message.properties
        return None if up else self._properties.get(place)


def _is_another(store: ReadableStore, kept: Kept) -> bool:
    """Does the log have another message there? What was cut off stays on the disk; when the page that was written over
    it is lost, the older one comes back.
    """
    message = store.look_message_by_offset(kept.commit_log_offset)
    unique_key = message.properties.get("UNIQ_KEY", "") if message is not None else ""
    return bool(unique_key) and "\0" not in unique_key and unique_key != kept.unique_key
