"""Rules of flushing: what a broker promises is on its disk, and a loss of power costs what was not."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar

from mqlab.explore.fault_plan import flushes_before_the_answer
from mqlab.explore.places import Place
from mqlab.explore.rule import Case, Rule, SettledRule
from mqlab.explore.rules_of_delivery import NOT_WAITED_FOR, NOT_WAITED_FOR_TEXT
from mqlab.explore.rules_of_storing import GAP, GAP_TEXT, UNFLUSHED, UNFLUSHED_TEXT, may_lose_the_unflushed
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.protocol import fastjson
from mqlab.protocol.errors import RecordError
from mqlab.protocol.hashing import index_key_hash
from mqlab.protocol.record import PHYSICAL_OFFSET_OFFSET
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, is_dlq_topic, is_retry_topic
from mqlab.sim.memory_file import MemoryFile
from mqlab.store.dispatch_request import read_request
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.lab.processes import BrokerProcess
    from mqlab.store import ReadableStore
    from mqlab.store.consume_queue import CqUnit
    from mqlab.store.index_file import IndexFile

MOST_ANSWERS = 64
FAR_AWAY_MS = 1 << 45
SECOND_MS = 1_000
"""The index keeps the seconds since the first key of its file: a time between two of them is taken for the earlier."""
CHECKPOINT_SPARE_MS = 3_000
WRITTEN_US = 2_000_000
"""Behind the turn at which a table is written it may take so long, on a slow disk."""
PAGE_BYTES = 4_096
MANY_PAGES = 12
"""Each page survives a loss of power or not, like a coin; that so many survive all does not happen."""
INDEX_HEADER_BYTES, INDEX_SLOT_BYTES, INDEX_ITEM_BYTES = 40, 4, 20
"""What an index file is made of (IndexFile)."""


class SafeIsFlushed(Rule):
    """A broker that flushes first neither answers PUT_OK nor shows a message before the disk has it.

    What a process before it has stored it takes for flushed.
    """

    kinds = ("MessageStored", "MessageSendAnswered", "MessageDispatched", "NodeStarted")
    EXCEPTIONS: ClassVar[dict[str, str]] = {NOT_WAITED_FOR: NOT_WAITED_FOR_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._at: dict[tuple[str, str, int], dict[tuple[str, int], int]] = {}
        """(broker, unique key, queue offset) -> (topic, queue id) -> where the record begins; a producer may have sent
        a message twice, and a copy of it, for another try, may have the same offset in another queue.
        """
        self._sizes: dict[tuple[str, int], int] = {}
        """(broker, commit-log offset) -> the bytes of a record that its present process has stored there."""

    def on_event(self, record: Record) -> None:
        """Compare the end of the record with what is flushed at this moment."""
        if record.kind == "MessageStored":
            queues = self._at.setdefault((record.node, record.unique_key, record.queue_offset), {})
            queues[record.topic, record.queue_id] = record.commit_log_offset
            self._sizes[record.node, record.commit_log_offset] = record.store_size
            return
        if record.kind == "NodeStarted":
            self._sizes = {at: size for at, size in self._sizes.items() if at[0] != record.target}
            return
        broker = self.case.broker(record.node)
        if not self.case.is_live or not broker.is_up() or not flushes_before_the_answer(broker):
            return
        self.judged += 1
        if record.kind == "MessageDispatched":
            if not self._is_safe(broker.store, record.node, record.commit_log_offset):
                self.found(record.row, f"the message at {record.commit_log_offset} can be pulled, and is not flushed")
            return
        queues = self._at.get((record.node, record.unique_key, record.queue_offset), {})
        # What waits, for its time or for the end of its transaction, is stored in a queue of another topic.
        at = queues.get((record.topic, record.queue_id), next(reversed(queues.values()), -1))
        if record.status == "PUT_OK" and not self._is_safe(broker.store, record.node, at):
            if is_retry_topic(record.topic) or is_dlq_topic(record.topic):
                self.excuse(NOT_WAITED_FOR)
                return
            self.found(record.row, f"message {record.unique_key} is called safe, and is not on the disk")

    def _is_safe(self, store: ReadableStore, broker: str, at: int) -> bool:
        """Is the record at this place on the disk, as the file itself knows it?"""
        file = store.commit_log.mapped_file_queue.find(at)
        inner = file.file if file is not None else None
        if file is None or not isinstance(inner, MemoryFile):
            return True
        end = at + self._sizes.get((broker, at), 0) - file.file_from_offset
        return (broker, at) not in self._sizes or inner.appended_from >= end


class RecoveredIsWhole(Rule):
    """After a start the log has whole records up to where recovery says, and no queue has an entry behind that."""

    kinds = ("StoreLoaded", "BrokerStarted")
    EXCEPTIONS: ClassVar[dict[str, str]] = {STALE: STALE_TEXT}
    GOALS: ClassVar[dict[str, str]] = {
        "recovery-begins-at-a-later-file": (
            "A store that was not stopped in good order is recovered from a later file of its log than the first."
        ),
        "queue-keeps-a-stale-entry": "A queue ends with an entry of a message that a loss of power has taken.",
    }
    SUBJECT = "stores"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._safe_ms: dict[str, int] = {}

    def on_event(self, record: Record) -> None:
        """Compare the store that was started with what its recovery said."""
        if record.kind == "StoreLoaded":
            self._safe_ms[record.node] = self._newest_safe_ms(record.node)
            return
        if not self.case.is_live:
            return
        self.judged += 1
        self._look_where_recovery_began(record)
        store = self.case.broker(record.node).running().message_store
        end, known_end = (store.recovery.end, store.recovery.known_end) if store.recovery is not None else (0, -1)
        if store.max_phy_offset != end:
            self.found(record.row, f"recovery ended the log at {end}, and it ends at {store.max_phy_offset}")
        for (topic, queue_id), queue in sorted(store.consume_queue_store.consume_queue_table.items()):
            last = queue.max_offset_in_queue - 1
            unit = queue.get(last) if last >= queue.min_offset_in_queue else None
            if unit is None:
                continue
            self.judged += 1
            if unit.pos + unit.size <= end:
                continue
            place = Place(record.node, topic, queue_id, last)
            # Recovery cuts off an entry whose message would begin behind the end, if it read any that ends there.
            if (unit.pos < end or known_end < end) and self.case.is_stale(place):
                self.reach("queue-keeps-a-stale-entry", record)
                self.excuse(STALE)
            else:
                self.found(record.row, f"{place} points to {unit.pos}, and the log ends at {end}")

    def _newest_safe_ms(self, broker: str) -> int:
        """Up to when all is safe, as the checkpoint file says at this moment: both its times, and 3 s to spare."""
        disk, path = self.case.lab.world.nodes[broker].disk, "store/checkpoint"
        if not self.case.is_live or not disk.exists(path):
            return 0
        physic_ms, logics_ms = struct.unpack(">qq", disk.read_bytes(path)[:16])
        return int(min(physic_ms, logics_ms)) - CHECKPOINT_SPARE_MS

    def _look_where_recovery_began(self, record: Record) -> None:
        store = self.case.broker(record.node).running().message_store
        recovery, log = store.recovery, store.commit_log
        if recovery is None or recovery.clean:
            return
        for request in log.read_requests(recovery.started_at, recovery.end)[0]:
            self.judged += 1
            data = log.get_message(request.commit_log_offset, request.msg_size) or b""
            try:
                read_request(data, 0, log.delays_ms, check_crc=True)
            except RecordError as damage:
                at = request.commit_log_offset
                self.found(record.row, f"recovery took the record at {at} for whole: {damage.reason}")
        if recovery.started_at <= log.min_offset:
            return
        self.reach("recovery-begins-at-a-later-file", record)
        self.judged += 1
        begun_ms = log.store_time(recovery.started_at, log.record_size(recovery.started_at))
        if begun_ms > self._safe_ms.get(record.node, 0):
            at, late_ms = recovery.started_at, begun_ms - self._safe_ms.get(record.node, 0)
            self.found(record.row, f"recovery began at {at}, {late_ms} ms later than the checkpoint says is safe")


class EveryKeyIsFound(Rule):
    """In the end every message that has a key is found by it, also within the second in which it was stored.

    A loss of power may take the head of an index file, with the time from which it counts seconds: then any time is
    good enough.
    """

    EXCEPTIONS: ClassVar[dict[str, str]] = {STALE: STALE_TEXT, UNFLUSHED: UNFLUSHED_TEXT, GAP: GAP_TEXT}

    def at_end(self) -> None:
        """Ask each broker for the keys of what it holds."""
        for place, found in self.case.contents.found.items():
            if found.is_torn or not found.keys or found.is_parked:
                continue
            keys = found.keys.split()
            self.judged += len(keys)
            if self.case.is_stale(place):
                self.excuse(STALE)
                continue
            store = self.case.broker(place.broker).store
            queue = store.find_consume_queue(place.topic, place.queue_id)
            unit = queue.get(place.queue_offset) if queue is not None else None
            at = unit.pos.to_bytes(8, "big") if unit is not None else b""
            begin, end = self.case.ledger.stores.holes.get(place.broker, (0, 0))
            if unit is not None and begin < unit.pos < end and may_lose_the_unflushed(self.case, place.broker):
                self.excuse(UNFLUSHED)
                continue
            has_lost_power = place.broker in self.case.ledger.processes.power_lost_us
            for key in keys:
                answer = store.query_message(place.topic, key, MOST_ANSWERS, 0, FAR_AWAY_MS)
                is_found = _may_have(answer.messages, at)
                if not is_found and has_lost_power and unit is not None and _is_lost(store, place.topic, key, unit):
                    self.excuse(GAP)
                elif not is_found:
                    self.found(None, f"asked for {key!r} of {place.topic}, {place.broker} does not find {place}")
                elif unit is not None and not has_lost_power:
                    self._ask_for_its_time(store, place, key, unit)

    def _ask_for_its_time(self, store: ReadableStore, place: Place, key: str, unit: CqUnit) -> None:
        """Ask for the second in which a message was stored, and for all that was stored after it."""
        stored_ms, at = store.commit_log.store_time(unit.pos, unit.size), unit.pos.to_bytes(8, "big")
        answer = store.query_message(place.topic, key, MOST_ANSWERS, stored_ms - SECOND_MS, stored_ms)
        if not _may_have(answer.messages, at):
            self.found(None, f"asked for {key!r} of {place.topic} at {stored_ms}, {place.broker} does not find {place}")
        if _has(store.query_message(place.topic, key, MOST_ANSWERS, stored_ms + 1, FAR_AWAY_MS).messages, at):
            self.found(None, f"asked for {key!r} of {place.topic} behind {stored_ms}, {place.broker} finds {place}")


def _is_lost(store: ReadableStore, topic: str, key: str, unit: CqUnit) -> bool:
    """Has a loss of power taken a key: with a whole file of the index that later ones follow, or with a page of it?"""
    files = store.index_service.files
    ours = [file for file in files if file.begin_phy_offset <= unit.pos <= file.end_phy_offset]
    if not ours:
        return any(unit.pos < file.begin_phy_offset for file in files)
    return any(_lacks_a_page(file, f"{topic}#{key}", unit.pos) for file in ours)


def _lacks_a_page(file: IndexFile, key: str, pos: int) -> bool:
    """Are items of an index file zeros, or is the slot of a key whose item is there?"""
    items_at = INDEX_HEADER_BYTES + file.hash_slot_num * INDEX_SLOT_BYTES
    read = file.file.read(items_at + INDEX_ITEM_BYTES, (file.index_count - 1) * INDEX_ITEM_BYTES)
    items = [read[at : at + INDEX_ITEM_BYTES] for at in range(0, len(read), INDEX_ITEM_BYTES)]
    if not all(any(item) for item in items):
        return True
    slot_at = INDEX_HEADER_BYTES + index_key_hash(key) % file.hash_slot_num * INDEX_SLOT_BYTES
    is_put = any(item[4:12] == pos.to_bytes(8, "big") for item in items)
    return is_put and not any(file.file.read(slot_at, INDEX_SLOT_BYTES))


def _may_have(records: list[bytes], at: bytes) -> bool:
    """Is that one among the newest that have a key, or are there so many that it may lie behind them?"""
    return len(records) >= MOST_ANSWERS or _has(records, at)


def _has(records: list[bytes], at: bytes) -> bool:
    """Is there a record of this commit-log offset?"""
    return any(record[PHYSICAL_OFFSET_OFFSET : PHYSICAL_OFFSET_OFFSET + 8] == at for record in records)


class PowerCutsBite(Rule):
    """A machine that loses power loses of many pages that were not flushed at least one."""

    kinds = ("MessageStored", "CommitLogFlushed", "StoreRecovered", "PowerLost")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._stored: dict[str, int] = {}
        self._flushed: dict[str, int] = {}

    def on_event(self, record: Record) -> None:
        """Compare what was dirty with what was lost."""
        if record.kind == "MessageStored":
            self._stored[record.node] = record.commit_log_offset + record.store_size
        elif record.kind == "CommitLogFlushed":
            self._flushed[record.node] = record.flushed_where
        elif record.kind == "StoreRecovered":
            self._stored[record.node] = self._flushed[record.node] = record.commit_log_max_offset
        else:
            dirty = self._stored.get(record.target, 0) - self._flushed.get(record.target, 0)
            is_judged = dirty > MANY_PAGES * PAGE_BYTES
            self.judged += is_judged
            if is_judged and not record.pages_lost:
                self.found(record.row, f"{record.target} lost power with {dirty} bytes not flushed, and lost nothing")


class TablesAreWritten(SettledRule):
    """In the end a master has written down how far its groups and its delay levels are.

    That follows the memory every 5 s and every 10 s, also where the disk was full meanwhile
    (ConsumerOffsetManager, ScheduleMessageService); and the memory names no message that a level has delivered, and of
    each group what was committed last.
    """

    kinds = (
        "OffsetCommitted", "ParkedMessageDelivered", "ParkedMessageDropped", "DelayOffsetCorrected",
        "SubscriptionGroupDeleted", "TopicDeleted", "BrokerStarted",
    )  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._offsets: dict[tuple[str, str, str, int], int] = {}
        """(broker, group, topic, queue id) -> the offset that was committed last."""
        self._delivered: dict[tuple[str, int, str], None] = {}
        """(broker, delay level, unique key) of what came out of its level."""
        self._passed_over: dict[tuple[str, int, int], int] = {}
        """(broker, delay level, offset) of what a level of the running process passed over -> where it went on."""

    def is_change(self, record: Record) -> bool:
        """Is it another offset than before? Consumers tell theirs every 5 s, whether they got on or not."""
        if record.kind == "ParkedMessageDelivered":
            self._delivered[record.node, record.delay_level, record.unique_key] = None
            return True
        if record.kind == "ParkedMessageDropped":
            self._passed_over[record.node, record.delay_level, record.queue_offset] = record.queue_offset + 1
            return False
        if record.kind == "DelayOffsetCorrected":
            if record.to_offset > record.from_offset:
                self._passed_over[record.node, record.delay_level, record.from_offset] = record.to_offset
            return False
        if record.kind != "OffsetCommitted":
            self._forget(record)
            return True
        key = (record.node, record.group, record.topic, record.queue_id)
        is_another = bool(self._offsets.get(key) != record.queue_offset)
        self._offsets[key] = record.queue_offset
        return is_another

    def at_end(self) -> None:
        """Compare the files with the tables."""
        for process in self.case.lab.masters:
            if not process.is_up():
                continue
            broker = process.running()
            interval_ms = broker.broker_config.flush_consumer_offset_interval
            self._look(process.name, broker.consumer_offset_manager, interval_ms)
            interval_ms = broker.message_store_config.flush_delay_offset_interval
            self._look(process.name, broker.schedule_message_service, interval_ms)
            self._look_at_levels(process)
            self._look_at_groups(process)

    def _look(self, name: str, manager: Any, interval_ms: int) -> None:
        """Compare what a ConfigManager knows with what its file says."""
        if self.same_us < interval_ms * 1_000 + WRITTEN_US:
            return
        self.judged += 1
        known = _offset_table(fastjson.dumps(manager.encode()))
        disk = self.case.broker(name).node.disk
        written = _offset_table(disk.read_bytes(manager.path).decode()) if disk.exists(manager.path) else {}
        if written != known:
            self.found(None, f"{name} has {written} in {manager.path}, and knows {known}")

    def _forget(self, record: Record) -> None:
        """Forget what was committed of what is gone, or has begun anew."""
        gone = [at for at in self._offsets if at[0] == record.node]
        if record.kind == "SubscriptionGroupDeleted":
            gone = [at for at in gone if at[1] == record.group]
        elif record.kind == "TopicDeleted":
            gone = [at for at in gone if at[2] == record.topic]
        else:
            self._passed_over = {at: to for at, to in self._passed_over.items() if at[0] != record.node}
        for at in gone:
            del self._offsets[at]

    def _look_at_groups(self, process: BrokerProcess) -> None:
        """Compare what the memory knows of each group with what was committed last."""
        manager = process.running().consumer_offset_manager
        for (name, group, topic, queue_id), offset in self._offsets.items():
            if name == process.name:
                self.judged += 1
                known = manager.query_offset(group, topic, queue_id)
                if known != offset:
                    at = f"{topic} queue {queue_id}"
                    self.found(None, f"{group} has committed {offset} of {at} last, and {name} knows {known}")

    def _look_at_levels(self, process: BrokerProcess) -> None:
        """Look whether a delay level goes on, after a restart, with a message that it has delivered.

        A level notes what it delivers, and not what it passes over since the log has it no more
        (DeliverDelayedMessageTimerTask): after a restart it passes that over again.
        """
        service = process.running().schedule_message_service
        for level, loop in service.loops.items():
            noted = service.offset_table.get(level, 0)
            while (process.name, level, noted) in self._passed_over:
                noted = self._passed_over[process.name, level, noted]
            place = Place(process.name, RMQ_SYS_SCHEDULE_TOPIC, level - 1, noted)
            kept = self.case.ledger.stores.stored.get(place)
            self.judged += kept is not None
            if kept and noted < loop.offset and (process.name, level, kept.unique_key) in self._delivered:
                self.found(kept.row, f"delay level {level} has delivered the message at {place}, and begins there")


def _offset_table(text: str) -> Any:
    return fastjson.loads(text)["offsetTable"]
