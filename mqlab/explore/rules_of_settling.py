"""The rule of settling: when nothing goes wrong any more, everything is consumed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer
from mqlab.explore.places import Place
from mqlab.explore.readers import Reader, consumers_of, is_running, progress, readers_of
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_replication import SHORTER, SHORTER_TEXT
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT, WHEEL_AHEAD, WHEEL_AHEAD_TEXT, standing
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, is_dlq_topic, retry_topic

if TYPE_CHECKING:
    from mqlab.lab.processes import BrokerProcess

NO_MEMBER = "a group without members"
NOT_POLLED = "what a lite pull consumer leaves out"
TAKEN_AGAIN = "a topic that is taken again at once"
AGAIN_WITHOUT_END = "an orderly listener that always fails"
BEGINS_AGAIN = "a pop in order that begins where one without ended"
BEGINS_AGAIN_TEXT = (
    "The key-value engine goes on behind what it has handed out without order last, and pops in order do not move "
    "that: a group that proxies have popped without order for a while gets the same messages with each pop in order "
    "after that, done or not, and nothing behind them, until its broker starts again (getPopOffset asks "
    "queryPullOffset in 5.3.3, whatever the pop; later versions ask it for pops without order alone)."
)
LATE_MS = 1_000
"""A parked message is delivered within 100 ms of its time, or within a second of its broker's start."""
LEAST_TRIES = 10
"""A message that came so often by now comes for ever."""


class EverythingSettles(Rule):
    """When the faults are over, groups with a running member consume all, and nothing is parked beyond its time."""

    EXCEPTIONS: ClassVar[dict[str, str]] = {
        NO_MEMBER: (
            "A group in which nobody runs any more leaves what it has not consumed where it is; so does a lite pull "
            "consumer that was started again without the application that polls it."
        ),
        AGAIN_WITHOUT_END: (
            "An orderly listener that fails gets the same message again and again, without end unless "
            "maxReconsumeTimes is set, and all that lies behind it in the queue waits."
        ),
        NOT_POLLED: (
            "A lite pull consumer notes the offset behind the last message that it handed out. What its tags leave out "
            "behind that, or a reset that its broker told it of passes over, is read again after a rebalance, and "
            "never passed."
        ),
        TAKEN_AGAIN: (
            "A lite pull consumer that gives a topic up ends its pulls, and gives up the queues with its next "
            "rebalance. Where it subscribes again before that, it has the queues still, and pulls none of them."
        ),
        TORN: TORN_TEXT,
        STALE: STALE_TEXT,
        WHEEL_AHEAD: WHEEL_AHEAD_TEXT,
        SHORTER: SHORTER_TEXT,
        BEGINS_AGAIN: BEGINS_AGAIN_TEXT,
    }

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._standing: dict[tuple[str, Place], str] = {}
        """Where readers stand for ever, and why."""

    def at_end(self) -> None:
        """Say what is left."""
        running = readers_of(self.case.lab, running=True)
        self.judged += len(self.case.readers) + len(self.case.lab.brokers)
        if len(self.case.readers) > len(running):
            self.excuse(NO_MEMBER)
        self._standing.clear()
        for text in self.left_over(overdue=True):
            self.found(None, f"in the end, with nothing going wrong any more, {text}")
        for reason in self._standing.values():
            self.excuse(reason)
        for broker in self.case.lab.masters:
            for _ in self._popped_again(broker):
                self.excuse(BEGINS_AGAIN)
            stands = standing(self.case.ledger.stores, broker)
            if stands is not None:
                self.excuse(stands.reason)

    def has_settled(self, quiet_us: int) -> bool:
        """Is all consumed, and was nothing stored for so long?"""
        case, stores = self.case, self.case.ledger.stores
        if not case.brokers_are_up:
            return False
        # What is given out again and again becomes a dead letter each time, once that was too often.
        is_endless = any(True for broker in case.lab.masters for _ in self._popped_again(broker))
        stored_us = stores.last_alive_us if is_endless else stores.last_stored_us
        if case.lab.world.now_us - stored_us < quiet_us:
            return False
        return next(self.left_over(), None) is None

    def left_over(self, *, overdue: bool = False) -> Iterator[str]:
        """What waits, a sentence for each queue; of parked messages all of them, or those that are `overdue`."""
        lab = self.case.lab
        readers = readers_of(lab, running=True)
        yield from (f"{broker.name} is not up" for broker in lab.brokers if not broker.is_up())
        for broker in lab.masters:
            if not broker.is_up():
                continue
            store = broker.store
            # The blank that ends a file may be all that there is, when the next file found no room.
            behind = store.dispatch_behind_bytes
            if behind and store.commit_log.read_requests(store.dispatched_offset, store.max_phy_offset)[0]:
                yield f"{broker.name} has stored {behind} bytes that are in no queue yet"
            yield from self._on_the_wheel(broker, overdue=overdue)
            if not overdue:
                yield from self._not_popped(broker)
            # What was dropped, because its record is torn, is behind the loop and not yet noted in the table.
            due = {level: loop.offset for level, loop in broker.running().schedule_message_service.loops.items()}
            for topic, queue_id in sorted(store.consume_queue_store.consume_queue_table):
                end = store.get_max_offset_in_queue(topic, queue_id)
                if topic == RMQ_SYS_SCHEDULE_TOPIC:
                    # What was deleted with its file waits no more.
                    least = store.get_min_offset_in_queue(topic, queue_id)
                    first = Place(broker.name, topic, queue_id, max(due.get(queue_id + 1, 0), least))
                    if first.queue_offset < end and not (overdue and self._is_early(broker, first)):
                        yield f"{broker.name} still has messages parked for delay level {queue_id + 1}"
                elif not is_dlq_topic(topic) and is_read(broker, topic, queue_id):
                    yield from self._behind(readers, broker.name, topic, queue_id, end)

    def _on_the_wheel(self, broker: BrokerProcess, *, overdue: bool) -> Iterator[str]:
        """What the broker's timer still has."""
        timer = broker.running().timer
        if timer is None:
            return
        stands = standing(self.case.ledger.stores, broker)
        if timer.is_running_enqueue and timer.enqueue_behind_messages > 0 and not (stands and stands.onto):
            yield f"{broker.name} has {timer.enqueue_behind_messages} timer messages that are not on its wheel"
        slots = timer.timer_wheel.waiting_slots(timer.curr_read_time_ms)
        due_ms = broker.node.now_ms() - LATE_MS - timer.precision_ms if overdue else 1 << 62
        if any(slot.time_ms < due_ms for slot in slots) and not (stands and stands.off):
            yield f"{broker.name} still has timer messages on its wheel"

    def _not_popped(self, broker: BrokerProcess) -> Iterator[str]:
        """What a group that pops has still to be given; nobody is woken for a retry topic, so that can take minutes."""
        store, offsets = broker.store, broker.running().consumer_offset_manager
        groups = [group for name, group in self.case.pops.groups if name == broker.name]
        for topic, queue_id in sorted(store.consume_queue_store.consume_queue_table):
            end = store.get_max_offset_in_queue(topic, queue_id)
            for group in groups:
                is_popped = self.case.pops.is_popped(broker.name, group, topic) and is_read(broker, topic, queue_id)
                if self.case.begins_again_at(broker.name, group, topic, queue_id) is not None:
                    continue
                if is_popped and offsets.query_offset(group, topic, queue_id) < end:
                    yield f"{group} has not popped all of {broker.name} {topic} queue {queue_id}"

    def _popped_again(self, broker: BrokerProcess) -> Iterator[str]:
        """The groups to which a broker gives the same messages of a queue again and again."""
        for topic, queue_id in broker.store.consume_queue_store.consume_queue_table if broker.is_up() else ():
            for name, group in self.case.pops.in_order:
                if name == broker.name and self.case.begins_again_at(name, group, topic, queue_id) is not None:
                    yield group

    def _behind(
        self, readers: dict[str, Reader], broker: str, topic: str, queue_id: int, end: int
    ) -> Iterator[str]:
        for reader in readers.values():
            if topic in reader.topics or topic == retry_topic(reader.group):
                at = progress(self.case.lab, reader, broker, topic, queue_id)
                place = Place(broker, topic, queue_id, at)
                reason = self._stands_for_good(reader, place, end) if at < end else ""
                if reason:
                    self._standing[reader.name, place] = reason
                elif at < end:
                    yield f"{reader.name} stands at offset {at} of {end} in {broker} {topic} queue {queue_id}"

    def _is_early(self, broker: BrokerProcess, place: Place) -> bool:
        """Is this parked message not due yet? The entry of its queue holds its time, in ms, as its tags code."""
        return self.case.ledger.stores.tags.get(place, 0) > broker.node.now_ms() - LATE_MS

    def _stands_for_good(self, reader: Reader, place: Place, end: int) -> str:
        """Why a reader gets no further in a queue, as far as RocketMQ's does not either; "" where it does."""
        if self._comes_without_end(reader, place):
            return AGAIN_WITHOUT_END
        if reader.hands_out and self._passes_the_rest(reader, place, end):
            return NOT_POLLED
        if reader.hands_out and self._is_not_pulled(reader, place):
            return TAKEN_AGAIN
        if self.case.is_sent_back(place):
            return SHORTER
        return STALE if self.case.pull_comes_to_no_record(reader, place, end) else ""

    def _passes_the_rest(self, reader: Reader, place: Place, end: int) -> bool:
        """Is all from here to the end not wanted, or in front of the offset that its members were told to go on at?"""
        consumption = self.case.ledger.consumption
        told = max(place.queue_offset, consumption.corrected.get((reader.name, *place[:3]), 0))
        if told == place.queue_offset and not reader.is_choosy(place.topic):
            return False
        return not consumption.wanted_between(reader, place._replace(queue_offset=told), end)

    def _is_not_pulled(self, reader: Reader, place: Place) -> bool:
        """Has a member this queue, and does not know that it has it?"""
        names = self.case.ledger.names
        for process, client, member in consumers_of(self.case.lab):
            if isinstance(client, DefaultLitePullConsumer) and member.group_name == reader.group:
                for queue in client.impl.rebalance_impl.process_queue_table:
                    is_here = (names.broker_of(queue.broker_name), queue.topic, queue.queue_id) == place[:3]
                    if is_here and is_running(self.case.lab, process, member) and queue not in client.assignment():
                        return True
        return False

    def _comes_without_end(self, reader: Reader, place: Place) -> bool:
        ledger = self.case.ledger
        kept = ledger.stores.stored.get(place)
        if kept is None or not (reader.in_order and reader.without_end):
            return False
        delivery = (reader.name, place.broker, place.queue_id, place.queue_offset, kept.unique_key)
        return ledger.consumption.delivered.get(delivery, 0) >= LEAST_TRIES


def is_read(broker: BrokerProcess, topic: str, queue_id: int) -> bool:
    """Does anybody read this queue? Not one of a topic that was given fewer queues since."""
    config = broker.running().topic_config_manager.topic_config_table.get(topic)
    return config is None or queue_id < config.read_queue_nums
