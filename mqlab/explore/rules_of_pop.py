"""Rules of Pop: what is handed out comes again unless somebody says in time that it is done, and only then.

How it comes again is judged in `mqlab.explore.rules_of_reviving`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mqlab.explore.places import Kept, Place
from mqlab.explore.pop_ledger import MEMORY, STORE, Handed, Point, Queue
from mqlab.explore.readers import Reader, reader_5_of, subscriptions_5_of
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_delivery import USED_TWICE, USED_TWICE_TEXT
from mqlab.explore.rules_of_settling import BEGINS_AGAIN, BEGINS_AGAIN_TEXT, is_read
from mqlab.explore.rules_of_storing import DELETED, DELETED_TEXT, GAP, GAP_TEXT
from mqlab.explore.rules_of_timers import GIVEN_UP, GIVEN_UP_TEXT
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT, WHEEL_AHEAD, WHEEL_AHEAD_TEXT, standing
from mqlab.lab.processes import BrokerProcess, NameServerProcess
from mqlab.protocol.pop_check_point import (
    CK_TAG,
    REVIVE_GROUP,
    PopCheckPoint,
    revive_topic,
)
from mqlab.protocol.topics import is_retry_topic
from mqlab.trace.record import TS_US, Record

FORGOTTEN = "progress that a broker forgets"
FORGOTTEN_TEXT = (
    "How far a group has popped is written every 5 s, and what waits for its check points is in memory alone: a broker "
    "that was killed hands out again what it had handed out since, done or not."
)
TWO_CHECK_POINTS = "a message with two check points"
TWO_CHECK_POINTS_TEXT = (
    "Each time that a message is handed out it gets a check point, and an acknowledgement counts for one of them. "
    "After a message was handed out twice the other one brings it back."
)
ACK_IN_MEMORY = "an acknowledgement in memory"
ACK_IN_MEMORY_TEXT = (
    "The merge buffer notes acknowledgements in memory. When its broker is killed after the check point was stored "
    "and before the acknowledgement was, the message comes again."
)
ACK_NOT_FLUSHED = "an acknowledgement that was not flushed"
ACK_NOT_FLUSHED_TEXT = (
    "What the timer delivers to the revive queues is not waited for: an acknowledgement, or a check point, can be gone "
    "when the machine loses power."
)
ACK_ON_ITS_WAY = "an acknowledgement on its way"
ACK_ON_ITS_WAY_TEXT = (
    "A reviver that has found nothing for three seconds takes it that all acknowledgements have come, unless the timer "
    "says that it is behind; and that tells how late it was with its last message, not what waits. What a disk that "
    "hangs, or a process, has held back comes too late."
)
ACK_OVERTAKES = "an acknowledgement that overtakes its check point"
ACK_OVERTAKES_TEXT = (
    "What is due when the timer brings it onto the wheel comes out at once, in front of what is on the wheel. After a "
    "stop that can be an acknowledgement, and a reviver that reads it before its check point passes it over."
)
SAME_MILLISECOND = "another invisible time in the same millisecond"
SAME_MILLISECOND_TEXT = (
    "The check point of a changed invisible time is named by its moment. Made in the millisecond of the pop it has the "
    "name of the old one, and so the acknowledgement that is to settle the old one settles it, too."
)
NO_RECORD = "a record of the key-value engine that was not written"
NO_RECORD_TEXT = (
    "The key-value engine moves a group on before it writes down what it hands out. When the disk has no room for that "
    "nobody is answered, and the group gets the messages when its broker has started again."
)
BEGUN_AGAIN = "an ordered pop that begins again"
BEGUN_AGAIN_TEXT = (
    "A group that pops in order goes on at the first message that is not done: what was acknowledged behind it is "
    "handed out with it once more."
)
ORDER_FORGOTTEN = "a broker forgets what is out in order"
ORDER_FORGOTTEN_TEXT = (
    "What was popped in order is written every 10 s: a broker that was killed knows nothing of what was handed out "
    "since, and hands out what lies behind it. When something behind it is acknowledged, the group goes on behind "
    "that, and what was not done in front of it is passed over."
)
IN_ORDER_NO_MORE = "a group that is popped in order no more"
IN_ORDER_NO_MORE_TEXT = (
    "What is popped in order has no check point: the order of a queue is noted beside it, and who pops without order "
    "does not mind that. A group that was set up to be given its messages in order, and is deleted, is made again as "
    "any other by the next sign of life of a member. Proxies pop for it in order until they ask again what it is, and "
    "then without: what somebody still has is handed out once more, and what lies behind a message that is to be tried "
    "again. So they do while they cannot ask, since the broker is away, or no name server that they ask knows it; what "
    "comes again then, through the retry topic, nobody asks for who pops in order again."
)
REVIVER_AHEAD = "a reviver that is ahead of its queue"
REVIVER_AHEAD_TEXT = (
    "A reviver begins where its progress says. When its machine has lost power and the queue is shorter than that, it "
    "corrects what is committed, but not from where it reads on: what is stored next at these offsets it never reads."
)
NOBODY_POPS = "a group for which nobody pops any more"
NOBODY_POPS_TEXT = (
    "What a group has not done waits for somebody who pops. When nobody has asked for the group for two minutes, it "
    "stays where it is."
)
IN_TURNS = "retries of two forms that take turns"
IN_TURNS_TEXT = (
    "With enableRetryTopicV2 a pop looks into the retry topic of one form, the new or the old one, as a number says "
    "that is drawn (retrieveMessageFromPopRetryTopicV1 is on). A group that asks for one message at a time, and so "
    "only every minute once nothing new comes, needs long to get what was revived."
)
MANY_LOOKS = 20
"""Of so many pops one looks into the right topic."""
ANSWERED_US = 1_000_000
"""Whoever asks a broker has its answer within this time, where nothing is wrong."""
REVIVE_SLACK_MS = 60_000
"""So long after its invisible time a message must have come again: the reviver reads in rounds, with rests."""
NOBODY_POPS_US = 120_000_000
"""Who pops without end asks every 20 s at the latest."""


class PopRule(Rule):
    """A rule that asks the ledger of Pop."""

    def started_since(self, broker: str, us: int) -> bool:
        """Was the broker's process started after that moment?"""
        return self.case.ledger.processes.started_us.get(broker, -1) > us

    def is_popped_otherwise(self, broker: str, group: str) -> bool:
        """Was a group popped in order and without, since it was deleted, or a proxy could not ask what it is: a broker
        was away for a while, or a name server, which knows no brokers until they report to it again?
        """
        pops, servers = self.case.pops, (BrokerProcess, NameServerProcess)
        processes = self.case.lab.processes
        was_away = any(isinstance(processes.get(name), servers) for name in self.case.ledger.processes.started_again)
        may_be = was_away or (broker, group) in pops.deleted_groups
        return may_be and len(pops.orders.get((broker, group), ())) > 1

    def lost_power_since(self, broker: str, us: int) -> bool:
        """Did its machine lose power after that moment?"""
        return self.case.ledger.processes.power_lost_us.get(broker, -1) > us

    def revive_queues(self, broker: BrokerProcess) -> Iterator[tuple[Place, list[Place]]]:
        """The place that each reviver of a broker has come to, and all that lies behind it."""
        if not broker.is_up() or broker.running().made_pop is None:
            return
        controller = broker.running()
        topic = revive_topic(controller.broker_config.broker_cluster_name)
        for queue_id in range(controller.broker_config.revive_queue_num):
            offset = controller.consumer_offset_manager.query_offset(REVIVE_GROUP, topic, queue_id)
            end = controller.message_store.get_max_offset_in_queue(topic, queue_id)
            at = Place(broker.name, topic, queue_id, offset)
            yield at, [at._replace(queue_offset=behind) for behind in range(offset + 1, end)]

    def is_never_read(self, place: Place) -> bool:
        """Was this stored in the revive queue at an offset that its reviver had passed before a loss of power?"""
        return place in self.case.pops.behind_revivers

    def never_read(self) -> dict[Point, None]:
        """The check points that revivers never read."""
        contents = self.case.contents.found
        points: dict[Point, None] = {}
        for place in self.case.pops.behind_revivers:
            if place in contents and contents[place].tags == CK_TAG:
                made = PopCheckPoint.decode(contents[place].body)
                queue = Queue(place.broker, made.group or "", made.topic or "", made.queue_id)
                points[Point(queue, made.start_offset, made.pop_time)] = None
        return points

    def stands(self, broker: BrokerProcess, behind: list[Place]) -> str:
        """Why a reviver never gets to the end of what lies behind its offset, or never hears that this was the end; ""
        when it does.
        """
        contents = self.case.contents.found
        if any(place in contents and contents[place].is_torn for place in behind):
            return TORN
        stands = standing(self.case.ledger.stores, broker)
        if stands is not None:
            return stands.reason
        config = broker.running().message_store_config
        most = min(config.max_transfer_count_on_message_in_memory, config.max_transfer_count_on_message_in_disk)
        # A reviver that finds nothing that it can read does not go on.
        return STALE if most == 1 and behind and self.case.points_to_no_record(behind[0]) else ""


class AckedStaysAway(PopRule):
    """A message that its consumer acknowledged in time does not come again, unless its group is reset.

    Who changes the invisible time acknowledges the check point that there was before, and has another one.
    """

    kinds = ("MessagePopped", "MessageRevived", "ReviveCheckPointRead", "TimerMessageDropped")
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        FORGOTTEN: FORGOTTEN_TEXT, TWO_CHECK_POINTS: TWO_CHECK_POINTS_TEXT, ACK_IN_MEMORY: ACK_IN_MEMORY_TEXT,
        ACK_NOT_FLUSHED: ACK_NOT_FLUSHED_TEXT, BEGUN_AGAIN: BEGUN_AGAIN_TEXT, GIVEN_UP: GIVEN_UP_TEXT,
        ACK_ON_ITS_WAY: ACK_ON_ITS_WAY_TEXT, ACK_OVERTAKES: ACK_OVERTAKES_TEXT, STALE: STALE_TEXT,
        TORN: TORN_TEXT,
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._given_up: dict[str, int] = {}
        """Broker -> when its timer last gave something up, us."""
        self._read_elsewhere: dict[Point, None] = {}
        """The check points that a reviver read through an entry which a loss of power has left in its queue."""

    def on_event(self, record: Record) -> None:
        """Look whether what comes again was acknowledged."""
        if record.kind == "TimerMessageDropped":
            self._given_up[record.node] = record.ts_us
            return
        if record.kind == "ReviveCheckPointRead":
            self._read(record)
            return
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        times = self.case.pops.handed.get((queue, record.queue_offset), [])
        acked = [handed for handed in times if handed.counts_as_acked]
        if record.kind == "MessagePopped":
            acked = [handed for handed in acked if not self.case.pops.is_before_a_reset(handed)]
        else:
            revived = self.case.pops.find(queue, record.queue_offset, record.pop_time)
            acked += [revived] if revived is not None and revived.changed and revived.acked_us >= 0 else []
        self.judged += bool(acked)
        if acked and not self._is_another(record, acked[-1]):
            exception = self._reason(record, acked, times)
            if exception:
                self.excuse(exception)
            else:
                verb = "revived" if record.kind == "MessageRevived" else "handed out"
                place = f"{queue} offset {record.queue_offset}"
                self.found(record.row, f"{queue.group} acknowledged the message at {place}, and it is {verb} again")

    def _read(self, record: Record) -> None:
        if not self.case.is_live or record.node not in self.case.ledger.processes.power_lost_us:
            return
        topic = revive_topic(self.case.broker(record.node).running().broker_config.broker_cluster_name)
        if self.case.is_stale(Place(record.node, topic, record.revive_qid, record.revive_offset)):
            queue = Queue(record.node, record.group, record.topic, record.queue_id)
            self._read_elsewhere[Point(queue, record.start_offset, record.pop_time)] = None

    @staticmethod
    def _is_another(record: Record, handed: Handed) -> bool:
        """Lies another message there now, since the first was lost?"""
        return bool(record.unique_key and handed.unique_key) and record.unique_key != handed.unique_key

    def _reason(self, record: Record, acked: list[Handed], times: list[Handed]) -> str:
        """Why RocketMQ lets it come again; "" when it must not."""
        last, broker = acked[-1], record.node
        if record.kind == "MessageRevived":
            of_point = [handed for handed in acked if handed.pop_time == record.pop_time]
            if not of_point:
                return TWO_CHECK_POINTS
            last = of_point[-1]
            if last.acked_by == MEMORY and self.started_since(broker, last.acked_us):
                return ACK_IN_MEMORY
            if self._given_up.get(broker, -1) > last.acked_us:
                return GIVEN_UP
            if last.point in self._read_elsewhere:
                return STALE
            if last.ack_read:
                return ""
            waits = self._waits_in_the_timer(broker) if last.acked_by == STORE else ""
            if waits or self.case.fault_times.none_between(last.acked_us, record.ts_us):
                return waits
            if last.point in self.case.pops.acks_alone:
                return ACK_OVERTAKES
            return ACK_NOT_FLUSHED if self.lost_power_since(broker, last.acked_us) else ACK_ON_ITS_WAY
        if self.started_since(broker, min(handed.popped_us for handed in times)):
            return FORGOTTEN
        return BEGUN_AGAIN if last.in_order else ""

    def _waits_in_the_timer(self, broker: str) -> str:
        """Why an acknowledgement never comes out of the timer, as its check point on the wheel does; "" if it does."""
        if not self.case.is_live or broker not in self.case.ledger.processes.power_lost_us:
            return ""
        stands = standing(self.case.ledger.stores, self.case.broker(broker))
        return stands.onto if stands is not None else ""


class NothingUnackedIsLost(PopRule):
    """A message that was handed out and not acknowledged comes again, and in the end nothing waits to be handed out."""

    EXCEPTIONS: ClassVar[dict[str, str]] = {
        USED_TWICE: USED_TWICE_TEXT, GAP: GAP_TEXT, STALE: STALE_TEXT, TORN: TORN_TEXT, DELETED: DELETED_TEXT,
        ACK_NOT_FLUSHED: ACK_NOT_FLUSHED_TEXT, GIVEN_UP: GIVEN_UP_TEXT, SAME_MILLISECOND: SAME_MILLISECOND_TEXT,
        NO_RECORD: NO_RECORD_TEXT, WHEEL_AHEAD: WHEEL_AHEAD_TEXT, ORDER_FORGOTTEN: ORDER_FORGOTTEN_TEXT,
        REVIVER_AHEAD: REVIVER_AHEAD_TEXT, NOBODY_POPS: NOBODY_POPS_TEXT, IN_TURNS: IN_TURNS_TEXT,
        IN_ORDER_NO_MORE: IN_ORDER_NO_MORE_TEXT, BEGINS_AGAIN: BEGINS_AGAIN_TEXT,
    }  # fmt: skip
    kinds = ("TimerMessageDropped", "PopRecordsNotWritten", "PopReceived", "PopWoken", "MessagePopped")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._given_up: dict[str, int] = {}
        self._not_written: dict[str, int] = {}
        self._asked_us: dict[str, int] = {}
        """Group -> when somebody last popped for it."""
        self._wanting: dict[str, Reader] = {}
        """What the groups want of each topic."""
        self._looks: dict[tuple[str, str], int] = {}
        """(broker, group) -> how often it was popped for the group since that was given a message of a retry topic."""
        self._stands: dict[tuple[str, int], str] = {}
        """(broker, revive queue) of the revivers that get no further -> why."""
        self._never_read: dict[Point, None] = {}
        self._now_at: dict[tuple[str, str, int, str], int] = {}
        """(broker, topic, queue id, unique key) -> the offset at which a message is now that a queue has moved up."""

    def on_event(self, record: Record) -> None:
        """Note who pops, what was not written, and when a timer gave something up: it may have been a check point."""
        if record.kind in ("PopReceived", "PopWoken", "MessagePopped"):
            at = (record.node, record.group)
            if record.kind != "MessagePopped":
                self._looks[at] = self._looks.get(at, 0) + 1
            elif is_retry_topic(record.topic):
                self._looks[at] = 0
            if record.kind == "PopReceived":
                self._asked_us[record.group] = record.ts_us
            return
        noted = self._not_written if record.kind == "PopRecordsNotWritten" else self._given_up
        noted[record.node] = record.ts_us

    def at_end(self) -> None:
        """Look at everything that is stored where a group pops."""
        for broker_process in self.case.lab.masters:
            for at, behind in self.revive_queues(broker_process):
                reason = self.stands(broker_process, behind)
                if reason:
                    self._stands[at.broker, at.queue_id] = reason
        for found in self.case.contents.found.values():
            if (
                found.place.broker in self.case.ledger.processes.power_lost_us
                and found.queue_offset > found.place.queue_offset
            ):
                self._now_at[(*found.place[:3], found.unique_key)] = found.place.queue_offset
        self._never_read = self.never_read()
        wanting = {group: reader_5_of(group, each) for group, each in subscriptions_5_of(self.case.lab).items()}
        self._wanting = {**wanting, **self.case.readers}
        by_topic: dict[tuple[str, str], list[tuple[Place, Kept]]] = {}
        for place, kept in self.case.ledger.stores.stored.items():
            by_topic.setdefault((place.broker, place.topic), []).append((place, kept))
        for (broker, group), topics in self.case.pops.groups.items():
            for topic in topics:
                for place, kept in by_topic.get((broker, topic), []):
                    self._judge(group, place, kept)

    def _judge(self, group: str, place: Place, kept: Kept) -> None:
        self.judged += 1
        queue = Queue(place.broker, group, place.topic, place.queue_id)
        now_at = self._now_at.get((*place[:3], kept.unique_key), place.queue_offset)
        times = [
            handed
            for offset in dict.fromkeys((place.queue_offset, now_at))
            for handed in self.case.pops.handed.get((queue, offset), [])
            if handed.unique_key in ("", kept.unique_key)
        ]
        problem = self._problem(place, times)
        if not problem or self._is_passed_on_purpose(queue, place, times):
            return
        exception = self._reason(place, kept, times) or self._reason_in_order(group, place, times)
        if not exception and self.case.lab.world.now_us - self._asked_us.get(group, 0) > NOBODY_POPS_US:
            exception = NOBODY_POPS
        if not exception and not times and self._waits_for_its_turn(group, place):
            exception = IN_TURNS
        if exception:
            self.excuse(exception)
        else:
            self.found(kept.row, f"message {kept.unique_key} at {place} {problem} {group}")

    def _waits_for_its_turn(self, group: str, place: Place) -> bool:
        """Has nobody popped often enough to have looked into this retry topic, where there are two forms of it?"""
        config = self.case.broker(place.broker).running().broker_config
        two_forms = config.enable_retry_topic_v2 and config.retrieve_message_from_pop_retry_topic_v1
        by_turns = two_forms and not config.pop_consumer_kv_service_enable and is_retry_topic(place.topic)
        return by_turns and self._looks.get((place.broker, group), 0) < MANY_LOOKS

    def _is_passed_on_purpose(self, queue: Queue, place: Place, times: list[Handed]) -> bool:
        """Does the group not want a message, did it begin behind it, as it wanted, or did a reset take it past one that
        it had not been given, or been given in order; or is the queue read no more? Who comes through a proxy begins at
        the end.
        """
        wanting = self._wanting.get(queue.group)
        is_choosy = wanting is not None and wanting.is_choosy(place.topic)
        if not times and wanting is not None and is_choosy and not self.case.ledger.consumption.wants(wanting, place):
            return True
        reader = self.case.readers.get(queue.group)
        begins_later = reader is None or not reader.from_first_offset
        if not times and begins_later and place.queue_offset < self._began(queue):
            return True
        comes_from_there = not times or times[-1].in_order
        if comes_from_there and not is_read(self.case.broker(place.broker), place.topic, place.queue_id):
            return True
        if place.queue_offset >= self.case.ledger.consumption.moved_to(queue.group, place):
            return False
        return not times or (times[-1].in_order and self.case.pops.is_before_a_reset(times[-1]))

    def _began(self, queue: Queue) -> int:
        """Where a group began, or began again, since its broker had not written yet how far it was."""
        pops = self.case.pops
        is_anew = queue.broker in self.case.ledger.processes.stopped_hard_us
        return max(pops.began.get(queue, 0), pops.began_again.get(queue, 0) if is_anew else 0)

    def _problem(self, place: Place, times: list[Handed]) -> str:
        """What is wrong with a message, up to the name of its group; "" for nothing."""
        if not times:
            return "was never handed out to"
        pops = self.case.pops
        if any(handed.said_done or handed.counts_as_acked or pops.is_dealt_with(handed) for handed in times):
            return ""
        now_ms = self.case.broker(place.broker).node.now_ms()
        if max(handed.until_ms for handed in times) + REVIVE_SLACK_MS > now_ms:
            return ""
        return "was handed out and not acknowledged, and did not come again for"

    def _reason(self, place: Place, kept: Kept, times: list[Handed]) -> str:
        ledger = self.case.ledger
        if place in ledger.stores.used_twice:
            return USED_TWICE
        if kept.unique_key in ledger.stores.in_gaps or place in ledger.stores.moved_up:
            return GAP
        if kept.unique_key in ledger.stores.in_passed_over or self.case.is_stale(place):
            return STALE
        if place in ledger.stores.deleted:
            return DELETED
        if not times and self._not_written.get(place.broker, -1) >= kept.row[TS_US]:
            return NO_RECORD
        if times and (place.broker, times[-1].revive_qid) in self._stands:
            return self._stands[place.broker, times[-1].revive_qid]
        if times and times[-1].point in self._never_read:
            return REVIVER_AHEAD
        if len({handed.pop_time for handed in times}) < len(times):
            return SAME_MILLISECOND
        if times and self.lost_power_since(place.broker, times[-1].popped_us):
            return ACK_NOT_FLUSHED
        if times and self._given_up.get(place.broker, -1) > times[-1].popped_us:
            return GIVEN_UP
        found = self.case.contents.found.get(place)
        return TORN if found is not None and found.is_torn else ""

    def _reason_in_order(self, group: str, place: Place, times: list[Handed]) -> str:
        """Why a group that pops in order is past a message that it has not done, or never gets to it."""
        offsets = self.case.broker(place.broker).running().consumer_offset_manager
        at = place._replace(queue_offset=offsets.query_offset(group, place.topic, place.queue_id))
        if times:
            last = times[-1]
            is_past = at.queue_offset > place.queue_offset
            killed = last.in_order and is_past and self.started_since(place.broker, last.popped_us)
            return ORDER_FORGOTTEN if killed else ""
        if is_retry_topic(place.topic) and self.is_popped_otherwise(place.broker, group):
            return IN_ORDER_NO_MORE
        if self.case.begins_again_at(place.broker, group, place.topic, place.queue_id) is not None:
            return BEGINS_AGAIN
        in_front = self.case.pops.handed.get((Queue(place.broker, group, *place[1:3]), at.queue_offset), [])
        stands = at.queue_offset < place.queue_offset and any(handed.in_order for handed in in_front)
        return STALE if stands and self.case.is_stale(at) else ""
