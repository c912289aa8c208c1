"""What each bug of the museum breaks, as a rule that `mqlab explore` could ask, too."""

from __future__ import annotations

from mqlab.client.consumer.hooks import ConsumeReturnType
from mqlab.client.trace.trace_context import TraceType
from mqlab.client.trace.trace_data_encoder import decode_contexts
from mqlab.client.trace.trace_hooks import RETURN_TYPES
from mqlab.explore.readers import push_consumer_of
from mqlab.explore.rule import Case, Rule
from mqlab.protocol.pop_check_point import REVIVE_GROUP, revive_topic
from mqlab.protocol.topics import RMQ_SYS_TRACE_TOPIC
from mqlab.trace.record import Record

Batch = tuple[str, str, int, int]
"""Group, topic, queue id and pop time: what one pop took from one queue."""
SETTLES_MS = 20_000
"""So long behind its invisible time a reviver has long dealt with a message."""
TRIED_AGAIN_S = 30
"""In so many seconds a message that has failed is tried again: after a delay of 10 s, the reviver's 2 s, and up to 15 s
for which a request waits that nobody tells of it.
"""
LIES_MS = 10_000
"""So long a message may lie in its queue while somebody waits who wants it; a request waits for 15 s."""


def batch_of(record: Record) -> Batch:
    """The batch that an event is about."""
    return record.group, record.topic, record.queue_id, record.pop_time


class MuseumRule(Rule):
    """A rule that knows the brokers' clocks, which run right in the museum, and what belongs to a breach's story."""

    def now_ms(self, record: Record) -> int:
        """The time of an event, ms since 1970."""
        return self.case.lab.world.epoch_ms + int(record.ts_us) // 1_000

    def tells(self, record: Record, breach: Record) -> bool:
        """Does an event belong to the story of a breach?"""
        return is_about(record, breach)


class AckedStaysAway(MuseumRule):
    """A message that was acknowledged in time is not brought back."""

    kinds = ("AckReceived", "MessageRevived")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._acked: dict[tuple[Batch, int], int] = {}

    def on_event(self, record: Record) -> None:
        """Note acks, and look for them."""
        place = batch_of(record), record.queue_offset
        now_ms = self.now_ms(record)
        if record.kind == "AckReceived":
            if now_ms < record.pop_time + record.invisible_ms:
                self._acked.setdefault(place, now_ms - record.pop_time)
        elif place in self._acked:
            self.found(
                record.row,
                f"offset {record.queue_offset} of queue {record.queue_id} was acknowledged {self._acked[place]} ms "
                "behind its pop, and comes again",
            )


class SettledWithItsAcks(MuseumRule):
    """Who settles a check point has read every acknowledgement of it that came in time."""

    kinds = ("MessagePopped", "AckStored", "CheckPointSettled")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._until_ms: dict[Batch, int] = {}
        self._stored: dict[Batch, dict[str, None]] = {}

    def on_event(self, record: Record) -> None:
        """Count the acks that were stored, and those that were read."""
        batch = batch_of(record)
        if record.kind == "MessagePopped":
            self._until_ms[batch] = record.pop_time + record.invisible_ms
        elif record.kind == "AckStored":
            if self.now_ms(record) < self._until_ms.get(batch, 0):
                self._stored.setdefault(batch, {}).update(dict.fromkeys(record.offsets.split(",")))
        elif len(self._stored.get(batch, ())) > record.acked:
            missing = len(self._stored[batch]) - record.acked
            stored = len(self._stored[batch])
            self.found(record.row, f"of {stored} acks that were stored in time, {missing} had not been read")


class NothingComesEarly(MuseumRule):
    """No message is brought back before its invisible time is over."""

    kinds = ("MessageRevived",)

    def on_event(self, record: Record) -> None:
        """Look at the time."""
        if record.late_ms < 0:
            self.found(record.row, f"it comes again {-record.late_ms} ms before its invisible time is over")


class ReviverGetsThrough(MuseumRule):
    """In the end a reviver has left behind all that its queue holds."""

    def at_end(self) -> None:
        """Compare what it committed with the end of its queue."""
        for process in self.case.lab.brokers:
            broker = process.running()
            topic = revive_topic(broker.broker_config.broker_cluster_name)
            for queue_id in range(broker.broker_config.revive_queue_num):
                committed = broker.consumer_offset_manager.query_offset(REVIVE_GROUP, topic, queue_id)
                end = broker.message_store.get_max_offset_in_queue(topic, queue_id)
                if committed + 1 < end:
                    left = end - committed - 1
                    self.found(None, f"revive queue {queue_id} ends at {end}, and its last {left} are read for ever")
                    return


class RevivedWasPopped(MuseumRule):
    """What is brought back is what was popped, each message once."""

    kinds = ("MessagePopped", "MessageRevived")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._popped: dict[tuple[Batch, int], bool] = {}

    def on_event(self, record: Record) -> None:
        """Note what was popped, and look for what comes back."""
        place = batch_of(record), record.queue_offset
        if record.kind == "MessagePopped":
            self._popped[place] = False
        elif place not in self._popped:
            self.found(record.row, f"offset {record.queue_offset} comes back for a pop that never took it")
        elif self._popped[place]:
            self.found(record.row, f"offset {record.queue_offset} comes back twice for one pop")
        else:
            self._popped[place] = True


class UnackedComesAgain(MuseumRule):
    """A message that nobody acknowledged comes again."""

    kinds = ("MessagePopped", "AckReceived", "InvisibleTimeChanged", "MessageRevived")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._open: dict[tuple[Batch, int], Record] = {}

    def on_event(self, record: Record) -> None:
        """Note what is in somebody's hands."""
        place = batch_of(record), record.queue_offset
        if record.kind == "MessagePopped":
            self._open[place] = record
        else:
            self._open.pop(place, None)

    def at_end(self) -> None:
        """Whoever is still in somebody's hands long behind its time is lost."""
        world = self.case.lab.world
        now_ms = world.epoch_ms + world.now_us // 1_000
        for record in self._open.values():
            if record.pop_time + record.invisible_ms + SETTLES_MS < now_ms:
                self.found(record.row, f"offset {record.queue_offset} was popped, not acknowledged, and is lost")


class ReviveTerminates(MuseumRule):
    """A message that is not there is not looked for again and again."""

    kinds = ("CheckPointPutAgain",)

    def on_event(self, record: Record) -> None:
        """Look how often it was tried."""
        if record.times > 1:
            self.found(record.row, f"offset {record.queue_offset} is put off for the {record.times}nd time: it is gone")


class NobodyStarves(MuseumRule):
    """A message that somebody waits for does not lie in its queue for ten seconds."""

    kinds = ("MessageStored", "MessagePopped")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._stored_us: dict[str, int] = {}

    def on_event(self, record: Record) -> None:
        """Note when a message came, and look how long it lay there when it is popped for the first time."""
        if record.kind == "MessageStored":
            self._stored_us.setdefault(record.unique_key, record.ts_us)
        elif not record.reconsume_times:
            lay_ms = (record.ts_us - self._stored_us[record.unique_key]) / 1_000
            if lay_ms >= LIES_MS:
                self.found(record.row, f"offset {record.queue_offset} lay there for {lay_ms / 1_000:.1f} s")

    def tells(self, record: Record, breach: Record) -> bool:
        """The message, and the requests that waited and were woken while it lay there."""
        if record.kind in self.kinds:
            return bool(record.unique_key == breach.unique_key)
        if record.kind not in ("PopHeld", "PopWoken") or record.ts_us < self._stored_us[breach.unique_key]:
            return False
        return (record.group, record.topic) == (breach.group, breach.topic)


class ListenerRule(MuseumRule):
    """A rule about what a listener gets; the story of a breach is that of its message, wherever it lies."""

    def tells(self, record: Record, breach: Record) -> bool:
        """Is the event about the same message?"""
        told = record.fields
        return breach.msg_id in (told.get("msg_id"), told.get("unique_key"))


class TriesEnd(ListenerRule):
    """No listener gets a message more often than its consumer allows."""

    kinds = ("ConsumeStarted",)

    def on_event(self, record: Record) -> None:
        """Look how often the message was delivered again."""
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        most = consumer.impl.max_reconsume_times if consumer is not None else record.reconsume_times
        if record.reconsume_times > most:
            self.found(record.row, f"it comes again for try {record.reconsume_times + 1}, and {most + 1} are allowed")


class FailedComesSoon(ListenerRule):
    """A message that failed for the first time is tried again within half a minute."""

    kinds = ("InvisibleTimeRequested", "ConsumeStarted")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._failed: dict[str, Record] = {}

    def on_event(self, record: Record) -> None:
        """Note what failed for the first time, and look for how long it was away when it is tried again."""
        if record.kind == "InvisibleTimeRequested":
            if not record.reconsume_times:
                self._failed[record.msg_id] = record
        elif record.msg_id in self._failed:
            self._judge(record, self._failed.pop(record.msg_id), record.ts_us)

    def at_end(self) -> None:
        """Judge what has not been tried again."""
        for failed in self._failed.values():
            self._judge(failed, failed, self.case.lab.world.now_us)

    def _judge(self, breach: Record, failed: Record, now_us: int) -> None:
        away_s = (now_us - failed.ts_us) / 1_000_000
        if away_s > TRIED_AGAIN_S:
            self.found(breach.row, f"it is to come again in {failed.invisible_ms} ms, and was away for {away_s:.1f} s")


class TraceTellsSlowCalls(ListenerRule):
    """The message trace says of a call that it timed out if it took longer than the invisible time, and only then."""

    kinds = ("MessagePopped", "ConsumeFinished")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._invisible_ms: dict[str, int] = {}
        self._finished: dict[tuple[str, int], Record] = {}
        """(message, how long its listener took in ms) -> the end of that call."""

    def on_event(self, record: Record) -> None:
        """Note the invisible time of each message, and the ends of calls."""
        if record.kind == "MessagePopped":
            self._invisible_ms[record.unique_key] = record.invisible_ms
        else:
            self._finished[record.msg_id, record.cost_us // 1_000] = record

    def at_end(self) -> None:
        """Read the message trace as it lies in the brokers, and compare."""
        for place, found in self.case.contents.found.items():
            for call in decode_contexts(found.body.decode()) if place.topic == RMQ_SYS_TRACE_TOPIC else ():
                finished = self._finished.get((call.trace_beans[0].msg_id, call.cost_time))
                if call.trace_type is TraceType.SUB_AFTER and finished is not None:
                    self._judge(finished, RETURN_TYPES[call.context_code])

    def _judge(self, finished: Record, told: ConsumeReturnType) -> None:
        cost_ms, invisible_ms = finished.cost_us // 1_000, self._invisible_ms[finished.msg_id]
        if (told is ConsumeReturnType.TIME_OUT) != (cost_ms >= invisible_ms):
            reason = f"the call took {cost_ms} ms of {invisible_ms} ms, and the trace says {told.value}"
            self.found(finished.row, reason)


def is_about(record: Record, breach: Record) -> bool:
    """Is an event about the message, or else the batch, that a breach is about?"""
    told, known = record.fields, breach.fields
    if "pop_time" not in told or told["pop_time"] != known.get("pop_time"):
        return False
    offset = known.get("queue_offset")
    if offset is None:
        return True
    if "queue_offset" in told:
        return bool(told["queue_offset"] == offset)
    if told.get("offsets"):
        return str(offset) in str(told["offsets"]).split(",")
    place = str(offset - int(told.get("start_offset", 0)))
    return not told.get("bits") or place in str(told["bits"]).split(",")
