"""Rules of entries: what a log has is found through its queue, which begins where the log does, and by its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from mqlab.explore.places import Place
from mqlab.explore.rule import Rule
from mqlab.explore.rules_of_storing import GAP, GAP_TEXT
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT
from mqlab.protocol.message import MessageConst
from mqlab.store.batch_consume_queue import BatchConsumeQueue
from mqlab.store.consume_queue import ENTRY, PRE_BLANK_SIZE
from mqlab.store.message_store_config import CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from mqlab.lab.processes import BrokerProcess
    from mqlab.store import ReadableStore
    from mqlab.store.consume_queue import ConsumeQueue


class _EntryRule(Rule):
    """A rule that looks at the queues of a broker, as their files hold them."""

    def queues(self, broker: BrokerProcess) -> Iterator[tuple[str, int, ConsumeQueue]]:
        """The queues of a broker, without those of batches, whose entries are others."""
        for (topic, queue_id), queue in sorted(broker.store.consume_queue_store.consume_queue_table.items()):
            if not isinstance(queue, BatchConsumeQueue):
                yield topic, queue_id, queue

    def has_lost_power(self, broker: BrokerProcess) -> bool:
        """Has the machine of this broker, or that of its master, lost power? Then its queues may be anything."""
        names, lost = self.case.ledger.names, self.case.ledger.processes.power_lost_us
        return broker.name in lost or names.original_of(broker.name) in lost


KEPT_BY_SLAVE = "queues that only a slave has still"
KEPT_BY_SLAVE_TEXT = (
    "A topic is deleted at its master. A slave hears of it when it asks for the topics, and forgets the topic, but "
    "keeps its queues (SlaveSynchronize.syncTopicConfig). When the topic is made again its offsets begin at 0, and "
    "messages get no entry at the slave, where entries of before stand in their places."
)


OVERTAKEN = "a file deleted before its messages had entries"
OVERTAKEN_TEXT = (
    "On a full disk queues cannot be written, and files of the log are deleted to make room, also such as hold "
    "messages that have no entry yet. What follows them gets entries at the ends of its queues, which are not at its "
    "offsets then (ReputMessageService goes on at the smallest offset of the log)."
)


class EachHasAnEntry(_EntryRule):
    """In the end each record of a log has an entry of its own in its queue, at a slave as at its master.

    The records of a topic that was deleted stay in the log without entries.
    """

    EXCEPTIONS: ClassVar[dict[str, str]] = {
        GAP: GAP_TEXT, STALE: STALE_TEXT, KEPT_BY_SLAVE: KEPT_BY_SLAVE_TEXT, OVERTAKEN: OVERTAKEN_TEXT, TORN: TORN_TEXT,
    }  # fmt: skip

    def at_end(self) -> None:
        """Read each log from its first file on, and look for every record in its queue."""
        for broker in self.case.lab.brokers:
            if not broker.is_slave or not self.has_lost_power(broker):
                self._read(broker)

    def _read(self, broker: BrokerProcess) -> None:
        store = broker.store
        log, topics = store.commit_log, broker.running().topic_config_manager.topic_config_table
        forgotten = self.case.ledger.stores.forgotten_keys
        for request in log.read_requests(log.min_offset, log.max_offset)[0]:
            if not request.has_queue_entry or request.batch_size or request.topic not in topics:
                continue
            if request.properties.get(MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX) in forgotten:
                continue
            self.judged += 1
            queue = store.find_consume_queue(request.topic, request.queue_id)
            unit = queue.get(request.consume_queue_offset) if queue is not None else None
            if unit is not None and unit.pos == request.commit_log_offset and unit.size == request.msg_size:
                continue
            place = Place(broker.name, request.topic, request.queue_id, request.consume_queue_offset)
            exception = self._reason(broker, place, is_taken=unit is not None)
            if not exception and unit is not None and self._is_made_of_two(place, request.commit_log_offset, unit.pos):
                exception = TORN
            if not exception and queue is not None:
                exception = self._reason_ahead(place, queue, request.commit_log_offset)
            if exception:
                self.excuse(exception)
            else:
                at = request.commit_log_offset
                self.found(None, f"the log of {broker.name} has a record at {at}, and its queue no entry at {place}")

    def _reason(self, broker: BrokerProcess, place: Place, *, is_taken: bool) -> str:
        """Why a record has no entry, after a loss of power or at a slave; "" where it must have one."""
        master = self.case.ledger.names.original_of(broker.name)
        if broker.is_slave and is_taken and (master, place.topic) in self.case.ledger.stores.deleted_topics:
            return KEPT_BY_SLAVE
        if not self.has_lost_power(broker):
            return ""
        stores = self.case.ledger.stores
        if place in stores.gaps:
            return GAP
        return STALE if place in stores.passed_over or place in stores.moved_up or self.case.is_stale(place) else ""

    def _is_made_of_two(self, place: Place, commit_log_offset: int, taken_at: int) -> bool:
        """Is the beginning of this record that of a message which a loss of power took, and has the place in a queue
        which it names the entry of what was stored for it since?
        """
        stores = self.case.ledger.stores
        kept = stores.stored.get(place)
        was_lost = commit_log_offset in stores.remains.get(place, ())
        return was_lost and kept is not None and kept.commit_log_offset == taken_at

    def _reason_ahead(self, place: Place, queue: ConsumeQueue, commit_log_offset: int) -> str:
        """Why a record has its entry further ahead: a file with records in front of it was deleted too soon, or a loss
        of power took as many entries in front of it. What is stored next may have its offset again.
        """
        stands_at = next((unit.queue_offset for unit in queue.units() if unit.pos == commit_log_offset), None)
        if stands_at is None:
            return ""
        stores = self.case.ledger.stores
        stalled_at = stores.overtaken.get(place.broker)
        if stalled_at is not None and commit_log_offset >= stalled_at:
            return OVERTAKEN
        lost = sum(gap[:3] == place[:3] and gap.queue_offset < place.queue_offset for gap in stores.gaps)
        if 0 < place.queue_offset - stands_at <= lost:
            return GAP
        has_moved_up = (place.broker, commit_log_offset) in stores.ever_moved_up
        return STALE if has_moved_up and stands_at < place.queue_offset else ""


class QueuesBeginRight(_EntryRule):
    """In the end a queue begins at its first message that the log still has, or at its end when it has none."""

    def at_end(self) -> None:
        """Look for the first entry that points into the log."""
        for broker in self.case.lab.brokers:
            if self.has_lost_power(broker):
                continue
            begin = self._log_begins_at(broker)
            for topic, queue_id, queue in self.queues(broker):
                if not queue.mapped_file_queue.mapped_files:
                    continue
                self.judged += 1
                first = _first_from(queue, begin)
                if queue.min_offset_in_queue != first:
                    at = f"{broker.name} {topic} queue {queue_id}"
                    text = f"begins at {queue.min_offset_in_queue}, and the log, from {begin} on, has {first} first"
                    self.found(None, f"{at} {text}")

    def _log_begins_at(self, broker: BrokerProcess) -> int:
        """Where the first file of the log begins, as its name says."""
        names = [path.rpartition("/")[2] for path in broker.node.disk.list("store/commitlog")]
        return min((int(name) for name in names if name.isdigit()), default=0)


def _first_from(queue: ConsumeQueue, begin: int) -> int:
    """The offset of the first entry of a queue that points to a place of the log from `begin` on; else its end."""
    files = queue.mapped_file_queue
    for at in range(files.mapped_files[0].file_from_offset, files.max_offset, CQ_STORE_UNIT_SIZE):
        pos, size, _ = ENTRY.unpack(files.read(at, CQ_STORE_UNIT_SIZE))
        if pos >= begin and size != PRE_BLANK_SIZE:
            return at // CQ_STORE_UNIT_SIZE
    return queue.max_offset_in_queue


class TimesAreFound(_EntryRule):
    """In the end a search by time finds the first message of a queue that was stored at that time or later."""

    def at_end(self) -> None:
        """Search for each moment at which something was stored, and for the one behind it."""
        for broker in self.case.lab.masters:
            if self.has_lost_power(broker):
                continue
            store = broker.store
            for topic, queue_id, queue in self.queues(broker):
                times = _times_of(store, queue)
                # A clock that was set back, or a message that is not there, leaves no order to search in.
                if times != sorted(times) or -1 in times:
                    continue
                for moment in dict.fromkeys(each for time in times for each in (time, time + 1)):
                    self._search(broker, topic, queue_id, times, moment)

    def _search(self, broker: BrokerProcess, topic: str, queue_id: int, times: list[int], moment: int) -> None:
        self.judged += 1
        begin = broker.store.get_min_offset_in_queue(topic, queue_id)
        behind = next((at for at, time in enumerate(times) if time >= moment), len(times))
        found = broker.store.get_offset_in_queue_by_time(topic, queue_id, moment)
        if found != begin + behind:
            at = f"{broker.name} {topic} queue {queue_id}"
            self.found(None, f"of {at} the first from {moment} on is {begin + behind}, and a search finds {found}")


def _times_of(store: ReadableStore, queue: ConsumeQueue) -> list[int]:
    """When each message of a queue was stored, ms since 1970, in the order of the queue; -1 for one that is gone."""
    return [store.commit_log.store_time(unit.pos, unit.size) for unit in queue.units()]
