"""Rules: monitors that also look at the world itself, and that know by name what RocketMQ does not promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from mqlab.explore.fault_times import FaultTimes
from mqlab.explore.ledger import Ledger
from mqlab.explore.places import Place
from mqlab.explore.pop_ledger import PopLedger
from mqlab.explore.stale_entries import is_stale
from mqlab.explore.stopped_timer import is_torn
from mqlab.explore.store_contents import StoreContents
from mqlab.protocol.errors import RecordError
from mqlab.protocol.record import decode_record
from mqlab.protocol.topics import is_retry_topic
from mqlab.trace.bus import Row
from mqlab.trace.monitors import Monitor
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.explore.readers import Reader
    from mqlab.lab import Lab
    from mqlab.lab.processes import BrokerProcess
    from mqlab.store import ReadableStore


ONE_PULL = 32
"""A broker that has found so many messages answers, and looks no further."""


class Case:
    """One world under judgement: the lab, the ledger of its events, and in the end what its stores hold."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.ledger = Ledger(lab)
        self.fault_times = FaultTimes()
        self.pops = PopLedger(lab, lambda: self.is_live)
        self.is_live = False
        """Does the world stand at the event that is judged? Not while the events of its building are read."""

    @property
    def readers(self) -> dict[str, Reader]:
        """Who is to get messages, by name."""
        return self.ledger.names.readers

    @cached_property
    def contents(self) -> StoreContents:
        """What the stores hold; to be asked for when the world has settled."""
        return StoreContents(self.lab)

    def is_stale(self, place: Place) -> bool:
        """Is there an entry of another message at this place, which a loss of power has left?"""
        return is_stale(self.lab, self.ledger.stores, place)

    def pull_comes_to_no_record(self, reader: Reader, place: Place, end: int) -> bool:
        """Does a pull for a condition from this place on look at a stale entry that points to no record, so that the
        broker fails over it? `end` is the end of the queue.
        """
        wanted = 0
        for offset in range(place.queue_offset, end) if place.topic in reader.conditions else ():
            ahead = place._replace(queue_offset=offset)
            if self.points_to_no_record(ahead):
                return True
            wanted += self.ledger.consumption.wants(reader, ahead)
            if wanted == ONE_PULL:
                break
        return False

    def points_to_no_record(self, place: Place) -> bool:
        """Does a stale entry at this place point to no whole record, in which the broker could find properties?"""
        store = self.broker(place.broker).store
        queue = store.find_consume_queue(place.topic, place.queue_id)
        entry = queue.get(place.queue_offset) if queue is not None else None
        data = store.commit_log.get_message(entry.pos, entry.size) if entry is not None else None
        if data is None or not self.is_stale(place):
            return False
        try:
            decode_record(data, decompress=False, read_body=False)
        except RecordError:
            return True
        return False

    def is_torn(self, place: Place) -> bool:
        """Has a loss of power taken the properties of the message that was stored at this place, its tag with them?"""
        stores, store = self.ledger.stores, self._damaged_store(place.broker)
        kept = stores.stored.get(place) or stores.lost.get(place)
        return kept is not None and store is not None and is_torn(store, kept.commit_log_offset, kept.size)

    def has_unit_of_another(self, place: Place) -> bool:
        """Does the entry at this place name the unit of another message, since a loss of power has taken its own?"""
        store = self._damaged_store(place.broker)
        queue = store.find_consume_queue(place.topic, place.queue_id) if store is not None else None
        entry = queue.get(place.queue_offset) if queue is not None else None
        if store is None or entry is None or entry.ext is None:
            return False
        unit, message = entry.ext, store.look_message_by_offset(entry.pos)
        tags_code = self.ledger.stores.tags.get(place, unit.tags_code)
        return message is not None and (unit.msg_store_time, unit.tags_code) != (message.store_timestamp, tags_code)

    def sends_readers_back(self, slave: BrokerProcess) -> bool:
        """Does a slave get no further, since its master has lost what it has, and check offsets all the same?"""
        if not slave.is_up() or self.ledger.names.original_of(slave.name) not in self.ledger.processes.power_lost_us:
            return False
        if not slave.running().message_store_config.offset_check_in_slave:
            return False
        store = slave.store
        end, dispatched = store.max_phy_offset, store.dispatched_offset
        return dispatched < end and not store.commit_log.read_requests(dispatched, end)[0]

    def is_sent_back(self, place: Place) -> bool:
        """Is this behind all that such a slave has in its queue?"""
        for slave in self.lab.brokers:
            is_copy = slave.is_slave and self.ledger.names.original_of(slave.name) == place.broker
            if is_copy and self.sends_readers_back(slave):
                end = slave.store.get_max_offset_in_queue(place.topic, place.queue_id)
                if end <= place.queue_offset:
                    return True
        return False

    def begins_again_at(self, broker: str, group: str, topic: str, queue_id: int) -> int | None:
        """The offset at which each pop in order begins, since the last one without order has ended there; None where
        the group goes on. So it is with the key-value engine, until its broker starts again.
        """
        process, is_both = self.broker(broker), len(self.pops.orders.get((broker, group), ())) > 1
        if not is_both or not self.pops.in_order[broker, group] or not process.is_up() or is_retry_topic(topic):
            return None
        controller, end = process.running(), process.store.get_max_offset_in_queue(topic, queue_id)
        begin = controller.consumer_offset_manager.pull_offset_table.get(f"{topic}@{group}", {}).get(queue_id, end)
        return begin if controller.broker_config.pop_consumer_kv_service_enable and begin < end else None

    def _damaged_store(self, name: str) -> ReadableStore | None:
        """The store of a broker that has lost power and is up again; None for any other."""
        broker = self.ledger.names.broker(name)
        if broker is None or not broker.is_up() or name not in self.ledger.processes.power_lost_us:
            return None
        return broker.store

    def broker(self, name: str) -> BrokerProcess:
        """The broker whose process has this name."""
        broker = self.ledger.names.broker(name)
        assert broker is not None, name
        return broker

    @property
    def brokers_are_up(self) -> bool:
        """Can every store be read?"""
        return all(broker.is_up() for broker in self.lab.brokers)


class Rule(Monitor):
    """What must hold in a world, whatever goes wrong in it; the rule is the first line of the docstring.

    It counts in `judged` what it had to judge, breaches and excuses among it. `EXCEPTIONS` names what real RocketMQ
    does not promise: a breach of that kind is counted in `excused` under its name and does not fail the seed. `GOALS`
    names what must have happened for a pass to mean anything, each in a sentence; `SUBJECT` is what they are about.
    A rule that looks at very many events says in `LOOKS` which method looks at which kind.
    """

    EXCEPTIONS: ClassVar[dict[str, str]] = {}
    GOALS: ClassVar[dict[str, str]] = {}
    SUBJECT: ClassVar[str] = ""
    LOOKS: ClassVar[dict[str, str]] = {}

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case
        self.judged = 0
        """How often the rule had something to judge: with none it did not hold, it had nothing to say."""
        self.excused: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()
        self.first_reached: dict[str, Record] = {}
        """The event at which each goal was reached first."""

    def on_event(self, record: Record) -> None:
        """Look at one event of the rule's kinds; a rule without kinds judges at the end alone.

        A rule that compares the event with the world itself asks `case.is_live` first.
        """
        if record.kind in self.LOOKS:
            getattr(self, self.LOOKS[record.kind])(record)

    def looks_at(self, kind: str) -> Sequence[Callable[[Record], None]]:
        """What is called with each event of one of the rule's kinds."""
        return (getattr(self, self.LOOKS.get(kind, "on_event")),)

    def at_end(self) -> None:
        """Judge what is left when the world has settled."""

    def excuse(self, exception: str) -> None:
        """Count something that the rule forbids and RocketMQ does not promise."""
        assert exception in self.EXCEPTIONS, exception
        self.excused[exception] += 1

    def reach(self, goal: str, record: Record | None = None) -> None:
        """Count that a goal was reached, at this event or at the last one that there was."""
        assert goal in self.GOALS, goal
        self.reached[goal] += 1
        if goal not in self.first_reached:
            last = self.case.ledger.last
            assert last is not None
            self.first_reached[goal] = record or Record(last)

    def found(self, row: Row | None, reason: str) -> None:
        """Note a breach, with the event that tells most about it."""
        row = row or self.case.ledger.last
        assert row is not None
        self.broken(Record(row), reason)


class SettledRule(Rule):
    """A rule of what is true in the end, some time after faults are over and anything that it depends on has changed.

    Each event of its kinds is such a change, unless `is_change` says otherwise.
    """

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._changed_us = 0

    def on_event(self, record: Record) -> None:
        """Note when anything changed last."""
        if self.is_change(record):
            self._changed_us = record.ts_us

    def is_change(self, record: Record) -> bool:
        """Does an event of the rule's kinds change what the rule looks at?"""
        return True

    @property
    def same_us(self) -> int:
        """For how long nothing has been wrong and nothing has changed; 0 while a fault holds."""
        over_us = self.case.fault_times.over_since_us()
        return 0 if over_us is None else self.case.lab.world.now_us - max(over_us, self._changed_us)
