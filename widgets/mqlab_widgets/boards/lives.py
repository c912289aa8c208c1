"""Lives: which stations each message has passed, and when, from its sender to the note that its group is done with it.

The stations of the message itself: sent, parked (a delayed message), answered, stored, dispatched; "given up" by its
sender, or "lost" with the power. Those of each group: woken, pulled, listener, failed, given back, parked, retried,
dead, done, committed; and of a group that pops: popped, put off, acked, revived. A message that comes back to its group
begins a new lap there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.topics import dlq_topic, is_retry_topic, is_system_topic, pop_retry_topic, retry_topic
from mqlab.trace.record import Record
from mqlab.views.journey import CONSUMED
from mqlab_widgets.boards.board import Board, Fold
from mqlab_widgets.labels import label_of

MOST_LIVES = 300
_DLQ, _RETRY = dlq_topic(""), retry_topic("")

Queue = tuple[str, str, int]
"""(broker, topic, queue id)"""
Place = tuple[Queue, int]
"""A queue, and the offset in it."""


@dataclass(slots=True)
class Lap:
    """What one group has done with a message since it came, or since it came back: station -> us."""

    at: dict[str, int] = field(default_factory=dict)
    place: Place | None = None
    """Where the retry copy is; None while it is the message itself."""
    tries: int = 0
    """How often the listener failed."""
    calls: int = 0
    pop_time: int = 0
    """Which pop handed it out last, ms since 1970; 0: it was not popped."""


@dataclass(slots=True)
class Life:
    """One message: station -> us, where it is stored, and its laps by group."""

    key: str
    at: dict[str, int] = field(default_factory=dict)
    place: Place | None = None
    log_offset: int = 0
    refused_us: int = 0
    """When an attempt to send it failed last; 0: none did."""
    laps: dict[str, Lap] = field(default_factory=dict)

    def lap(self, group: str) -> Lap:
        """What a group has done with it."""
        return self.laps.setdefault(group, Lap())


class Lives(Board):
    """The lives of the newest messages; `of(key)` also finds an older one, in the history.

    The messages of a batch have one key, and so have the copies of a message whose sender tried again: the first one
    stored stands for all.

    A call of the listener with several messages names the first, and the others lie behind it in the queue. A pull that
    left some out by their tags names none, so those that came have no station "pulled".
    """

    title: ClassVar[str] = "Messages"

    def __init__(self, lab: object, only: str = "") -> None:
        self._only = only
        self._older: tuple[Lives, Fold] | None = None
        super().__init__(lab)  # type: ignore[arg-type]

    def begin(self) -> None:
        """No message yet."""
        self.lives: dict[str, Life] = {}
        self.keys: dict[Queue, dict[int, str]] = {}
        self.masters: dict[str, str] = {}
        """The name of a broker in routes -> its process."""
        self.asked: dict[tuple[str, str, Queue], int] = {}
        """(consumer, group, queue) -> from which offset on it has asked last."""
        self.noted: dict[tuple[str, Queue], int] = {}
        self.calls: dict[tuple[str, str, int], list[str]] = {}
        """(consumer, first message, its offset) -> the messages in a listener's call."""

    # -- what is known ----------------------------------------------------------------------------------------------

    @property
    def newest(self) -> str:
        """The key of the message that was sent last; "" before the first."""
        return next(reversed(self.lives), "")

    def of(self, key: str) -> Life | None:
        """The life of a message up to here; that of one that is older than all these is read from the history."""
        if key in self.lives or not key or not self.lives:
            return self.lives.get(key)
        if self._older is None or self._older[0]._only != key:
            alone = Lives(self.lab, key)
            self._older = alone, Fold(self.lab.history, [alone])
        alone, fold = self._older
        fold.go_to(self.lab.history.index_of(self.here) + 1)
        return alone.lives.get(key)

    def _forget(self, life: Life) -> None:
        for place in (life.place, *(lap.place for lap in life.laps.values())):
            if place is not None:
                self.keys.get(place[0], {}).pop(place[1], None)

    def _queue(self, broker_name: str, topic: str, queue_id: int) -> Queue:
        return self.masters.get(broker_name, broker_name), topic, queue_id

    def _laps(self, group: str, queue: Queue, first: int, end: int) -> Iterator[tuple[Lap, Life]]:
        """What a group has done with the messages that are in these places of a queue now."""
        keys = self.keys.get(queue)
        for offset in range(max(first, end - MOST_LIVES), end) if keys else ():
            life = self.lives.get(keys.get(offset, "")) if keys else None
            if life is not None:
                lap = life.lap(group)
                if (lap.place or life.place) == (queue, offset):
                    yield lap, life

    # -- the sender and the store -----------------------------------------------------------------------------------

    def on_broker_started(self, record: Record) -> None:
        if record.broker_id == MASTER_ID:
            self.masters[record.broker_name] = record.node

    def on_send_attempted(self, record: Record) -> None:
        key = record.msg_id
        if key in self.lives or self._only not in ("", key) or is_system_topic(record.topic):
            return
        self.lives[key] = Life(key, {"sent": record.ts_us})
        if len(self.lives) > MOST_LIVES:
            self._forget(self.lives.pop(next(iter(self.lives))))

    def on_send_attempt_failed(self, record: Record) -> None:
        if record.msg_id in self.lives:
            self.lives[record.msg_id].refused_us = record.ts_us

    def on_send_failed(self, record: Record) -> None:
        if record.msg_id in self.lives:
            self.lives[record.msg_id].at["given up"] = record.ts_us

    def on_message_stored(self, record: Record) -> None:
        topic, queue_id, offset, log_offset, _, key = record.row[8:14]
        life = self.lives.get(key)
        if life is None or is_system_topic(topic):
            return
        place = ((record.node, topic, queue_id), offset)
        if topic.startswith(_DLQ):
            life.lap(topic[len(_DLQ) :]).at["dead"] = record.ts_us
        elif is_retry_topic(topic):
            lap = life.lap(_group_of(topic, life))
            lap.at["retried"] = record.ts_us
            lap.place = place
            self.keys.setdefault(place[0], {})[offset] = key
        elif life.place is None:
            life.at["stored"] = record.ts_us
            life.place, life.log_offset = place, log_offset
            self.keys.setdefault(place[0], {})[offset] = key

    def on_message_send_answered(self, record: Record) -> None:
        if record.code == 0 and record.unique_key in self.lives:
            self.lives[record.unique_key].at.setdefault("answered", record.ts_us)

    def on_message_dispatched(self, record: Record) -> None:
        topic, queue_id, offset = record.row[8:11]
        life = self.lives.get(self.keys.get((record.node, topic, queue_id), {}).get(offset, ""))
        if life is not None and not is_retry_topic(topic):
            life.at.setdefault("dispatched", record.ts_us)

    def on_message_parked(self, record: Record) -> None:
        life = self.lives.get(record.unique_key)
        if life is not None:
            topic = record.topic
            (life.lap(topic[len(_RETRY) :]) if is_retry_topic(topic) else life).at["parked"] = record.ts_us

    def on_send_back_stored(self, record: Record) -> None:
        life = self.lives.get(record.unique_key)
        if life is not None:
            lap = life.lap(record.group)
            lap.at = {"failed": lap.at.get("failed", record.ts_us), "given back": record.ts_us}

    def on_store_recovered(self, record: Record) -> None:
        """What lay behind the end of the recovered log is gone, and others get its places."""
        for life in self.lives.values():
            if life.place and life.place[0][0] == record.node and life.log_offset >= record.commit_log_max_offset:
                life.at["lost"] = record.ts_us
                self._forget(life)
                life.place = None

    # -- the consumer -----------------------------------------------------------------------------------------------

    def on_pull_woken(self, record: Record) -> None:
        if record.reason == "arrived":
            group, topic, queue_id, offset = record.row[8:12]
            for lap, _ in self._laps(group, (record.node, topic, queue_id), offset, offset + 1):
                lap.at.setdefault("woken", record.ts_us)

    def on_pull_requested(self, record: Record) -> None:
        group, topic, broker_name, queue_id, offset = record.row[8:13]
        self.asked[record.node, group, self._queue(broker_name, topic, queue_id)] = offset

    def on_pull_finished(self, record: Record) -> None:
        group, topic, broker_name, queue_id, _, messages, end = record.row[8:15]
        if messages:
            queue = self._queue(broker_name, topic, queue_id)
            first = self.asked.get((record.node, group, queue), end - messages)
            for lap, _ in self._laps(group, queue, first, end) if end - first == messages else ():
                lap.at.setdefault("pulled", record.ts_us)

    def on_queue_allocated(self, record: Record) -> None:
        """Who takes a queue begins at an offset: what had been pulled from there on is pulled again."""
        queue = self._queue(record.broker_name, record.topic, record.queue_id)
        end = max(self.keys.get(queue, {0: ""}), default=0) + 1
        for lap, _ in self._laps(record.group, queue, record.queue_offset, end):
            for station in ("woken", "pulled", "listener", "done"):
                lap.at.pop(station, None)

    def on_consume_started(self, record: Record) -> None:
        group, topic, broker_name, queue_id, offset, key, messages, reconsume_times = record.row[8:16]
        queue = self._queue(broker_name, topic, queue_id)
        # The events of a listener call a message of a retry topic by its own topic.
        for retry in _retry_topics(topic, group) if reconsume_times > 0 else ():
            again = self._queue(broker_name, retry, queue_id)
            if self.keys.get(again, {}).get(offset) == key:
                queue = again
        found = list(self._laps(group, queue, offset, offset + messages))
        for lap, _ in found:
            lap.calls += 1
            lap.at["listener"] = record.ts_us
            for station in ("done", "committed"):
                lap.at.pop(station, None)
        if found:
            self.calls[record.node, key, offset] = [life.key for _, life in found]

    def on_consume_finished(self, record: Record) -> None:
        consumed = record.status in CONSUMED
        for key in self.calls.pop((record.node, record.msg_id, record.queue_offset), ()):
            if key in self.lives:
                lap = self.lives[key].lap(record.group)
                if consumed:
                    lap.at["done"] = record.ts_us
                else:
                    lap.tries += 1
                    lap.at["failed"] = record.ts_us
                    lap.at.pop("listener", None)

    def on_messages_polled(self, record: Record) -> None:
        queue = self._queue(record.broker_name, record.topic, record.queue_id)
        for lap, _ in self._laps(record.group, queue, record.queue_offset, record.queue_offset + record.messages):
            lap.calls += 1
            lap.at["listener"] = lap.at["done"] = record.ts_us
            lap.at.pop("committed", None)

    # -- a group that pops ------------------------------------------------------------------------------------------

    def _popped(self, record: Record, offset: int) -> Iterator[Lap]:
        """What a group has done with the message at a place, if it is this pop that handed it out last."""
        queue = (record.node, record.topic, record.queue_id)
        for lap, _ in self._laps(record.group, queue, offset, offset + 1):
            if lap.pop_time in (0, record.pop_time):
                yield lap

    def on_message_popped(self, record: Record) -> None:
        queue, offset = (record.node, record.topic, record.queue_id), record.queue_offset
        for lap, _ in self._laps(record.group, queue, offset, offset + 1):
            lap.pop_time = record.pop_time
            lap.at["popped"] = record.ts_us
            for station in ("listener", "done", "put off", "acked"):
                lap.at.pop(station, None)

    def on_invisible_time_changed(self, record: Record) -> None:
        for lap in self._popped(record, record.queue_offset):
            lap.pop_time = record.new_pop_time
            lap.at["put off"] = record.ts_us
            # The check point of before was acknowledged for it, which is no acknowledgement of the message.
            lap.at.pop("acked", None)

    def on_ack_buffered(self, record: Record) -> None:
        for lap in self._popped(record, record.queue_offset):
            lap.at["acked"] = record.ts_us

    on_order_acked = on_ack_buffered

    def on_ack_stored(self, record: Record) -> None:
        for offset in map(int, record.offsets.split(",")):
            for lap in self._popped(record, offset):
                lap.at.setdefault("acked", record.ts_us)

    def on_message_revived(self, record: Record) -> None:
        """It is stored in the retry topic already, and begins a new lap there."""
        life = self.lives.get(record.unique_key)
        if life is not None:
            lap = life.lap(record.group)
            lap.at, lap.pop_time = {"revived": record.ts_us}, 0

    def on_offset_committed(self, record: Record) -> None:
        group, topic, queue_id, offset = record.row[8:12]
        queue = (record.node, topic, queue_id)
        for lap, _ in self._laps(group, queue, self.noted.get((group, queue), 0), offset):
            if "pulled" in lap.at or "done" in lap.at:
                lap.at.setdefault("committed", record.ts_us)
        self.noted[group, queue] = offset

    def on_process_ended(self, record: Record) -> None:
        self.calls = {call: keys for call, keys in self.calls.items() if call[0] != record.target}

    # -- as text ----------------------------------------------------------------------------------------------------

    def html(self) -> str:
        """The newest message's stations."""
        from mqlab_widgets.stations import stations_html

        return stations_html(self, self.newest)

    def text(self) -> list[str]:
        """A line for each of the newest messages."""
        from mqlab_widgets.stations import stations_text

        return [stations_text(self, key) for key in list(self.lives)[-8:] if label_of(key, self.lab)]


def _retry_topics(topic: str, group: str) -> tuple[str, ...]:
    """Where a message of a topic may come again for a group."""
    return retry_topic(group), pop_retry_topic(topic, group), pop_retry_topic(topic, group, version_2=True)


def _group_of(topic: str, life: Life) -> str:
    """The group that a retry topic belongs to; the name of one for popped messages has the topic in it, too."""
    own = life.place[0][1] if life.place is not None else ""
    return next((group for group in life.laps if topic in _retry_topics(own, group)), topic[len(_RETRY) :])
