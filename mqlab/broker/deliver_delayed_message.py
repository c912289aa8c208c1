"""The delivery loop of one delay level: what is due leaves the schedule topic for the topic that it was sent to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mqlab.broker.parked_message import message_time_up
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, RMQ_SYS_TRANS_HALF_TOPIC
from mqlab.sim import Future
from mqlab.store import MessageExtBrokerInner, PutMessageResult
from mqlab.trace.events.broker import DelayOffsetCorrected, ParkedMessageDelivered, ParkedMessageDropped

if TYPE_CHECKING:
    from mqlab.broker.broker_stats import BrokerStats
    from mqlab.sim import Node
    from mqlab.sim.timer import Timer
    from mqlab.store import DefaultMessageStore
    from mqlab.store.consume_queue import ConsumeQueue, CqUnit

DELAY_FOR_A_WHILE_MS = 100
PERIOD_US = DELAY_FOR_A_WHILE_MS * 1_000
_READ_AHEAD = 32


class DelayLevels(Protocol):
    """Whoever has a loop for each delay level, as ScheduleMessageService does."""

    node: Node
    message_store: DefaultMessageStore
    stats: BrokerStats

    def turn_at(self, earliest_us: int) -> int:
        """The time of the first turn behind now that is not before `earliest_us`."""
        ...

    def turns_before(self, now_us: int) -> int:
        """How many turns a loop that always turns has made before `now_us`."""
        ...

    def update_offset(self, level: int, offset: int, times: int = 1) -> None:
        """Note how far a level has come."""
        ...


class DeliverDelayedMessage:
    """Looks every 100 ms whether the first message of a level's queue is due (DeliverDelayedMessageTimerTask).

    All messages of a level wait equally long, so they are due in the order in which they came, and the first one that
    is not due ends a turn. `offset` is the place of that one in the level's queue.

    Java: org.apache.rocketmq.broker.schedule.ScheduleMessageService.DeliverDelayedMessageTimerTask. Differs from
    RocketMQ: a turn that would find nothing due is left out, and only counted; what is due is delivered at the turn at
    which a loop that always turns delivers it.
    """

    def __init__(self, service: DelayLevels, level: int, delay_ms: int, offset: int) -> None:
        self.level = level
        self.delay_ms = delay_ms
        self.offset = offset
        self._service = service
        self._node = service.node
        self._store = service.message_store
        self._timer: Timer | None = None
        self._is_putting = False
        """Does a put wait for the lock of a slow disk's log? Its thread looks at nothing else meanwhile."""
        self._waits_since_us = self._node.now_us()

    # -- when to turn -----------------------------------------------------------------------------------------------

    def arrived(self) -> None:
        """The level's queue has one more message: a loop without work has some now."""
        if self._timer is None:
            self._waits_since_us = self._node.now_us() + 1
            self.arm()

    def arm(self) -> None:
        """Set the timer to the turn at which the first message is due; an empty queue needs none."""
        self.cancel()
        queue = self._queue()
        if self._is_putting or queue is None or queue.max_offset_in_queue == self.offset:
            return
        unit = queue.get(self.offset)
        wait_us = self._node.us_until(self._deliver_ms(unit)) if unit is not None else 0
        turn_us = self._service.turn_at(self._node.now_us() + wait_us)
        self._timer = self._node.call_later(
            (turn_us - self._node.now_us()) / 1_000, self._turn, name=f"ScheduleMessageTimerThread_{self.level}"
        )

    def cancel(self) -> None:
        """Take no more turns: what is due stays where it is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def count_turns(self) -> None:
        """Note the progress as often as a loop that always turns did while the first message was waiting."""
        now_us = self._node.now_us()
        if self._timer is None:
            return
        turns = self._service.turns_before(now_us) - self._service.turns_before(self._waits_since_us)
        self._waits_since_us = now_us
        if turns > 0:
            self._service.update_offset(self.level, self.offset, turns)

    def _deliver_ms(self, unit: CqUnit) -> int:
        """When a message is due, ms; now if that lies further ahead than its level's delay: somebody set the clock
        back, or gave the level another delay.
        """
        now_ms = self._node.now_ms()
        return now_ms if unit.tags_code > now_ms + self.delay_ms else unit.tags_code

    # -- a turn -----------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        self.count_turns()
        self._timer = None
        queue = self._queue()
        if queue is not None:
            self._deliver_what_is_due(queue)
        self._waits_since_us = self._node.now_us() + 1
        self.arm()

    def _deliver_what_is_due(self, queue: ConsumeQueue) -> None:
        """Deliver up to the first message that is not due or that the store refuses, or to the end of the file."""
        if not queue.min_offset_in_queue <= self.offset < queue.max_offset_in_queue:
            self._correct_offset(queue)
            return
        end = queue.roll_next_file(self.offset)
        while self.offset < end and (units := queue.iterate_from(self.offset, _READ_AHEAD)) is not None:
            for unit in units:
                if self._deliver_ms(unit) > self._node.now_ms():
                    self._service.update_offset(self.level, self.offset)
                    return
                if not self._deliver(unit):
                    return
                self.offset = unit.queue_offset + 1

    def _correct_offset(self, queue: ConsumeQueue) -> None:
        corrected = max(queue.min_offset_in_queue, min(self.offset, queue.max_offset_in_queue))
        if corrected != self.offset and self._node.hooks.on:
            self._node.hooks.emit(DelayOffsetCorrected(self.level, self.offset, corrected))
        self.offset = corrected

    def _deliver(self, unit: CqUnit) -> bool:
        """Store a message that is due in its own topic; False if the store does not take it now, or not yet."""
        parked = self._store.look_message_by_offset(unit.pos, decompress=False)
        if parked is None:
            return self._drop(unit, "the commit log does not have it")
        try:
            message = message_time_up(parked)
        except ValueError as error:
            return self._drop(unit, str(error))
        if message.topic == RMQ_SYS_TRANS_HALF_TOPIC:
            return self._drop(unit, "half messages cannot be delayed")
        result = self._store.put_message(message)
        if isinstance(result, Future):
            # With WAIT=false no put waits for a flush: it waits for the lock.
            self._is_putting = True
            result.add_done_callback(lambda put: self._was_put(unit, message, put.result()))
            return False
        return self._delivered(unit, message, result)

    def _was_put(self, unit: CqUnit, message: MessageExtBrokerInner, result: PutMessageResult) -> None:
        """Go on with the turn in which a message had to wait."""
        self._is_putting = False
        if self._store.is_shutdown:
            return
        if self._delivered(unit, message, result):
            self.offset = unit.queue_offset + 1
            self._turn()
        else:
            self.arm()

    def _delivered(self, unit: CqUnit, message: MessageExtBrokerInner, result: PutMessageResult) -> bool:
        if not result.is_ok:
            return False
        self._service.update_offset(self.level, unit.queue_offset + 1)
        self._service.stats.put(message.topic, result.msg_num, result.wrote_bytes)
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                ParkedMessageDelivered(
                    message.topic,
                    message.queue_id,
                    result.logics_offset,
                    message.properties.get("UNIQ_KEY", ""),
                    self.level,
                    message.reconsume_times,
                    self._node.now_ms() - unit.tags_code,
                )
            )
        return True

    def _drop(self, unit: CqUnit, reason: str) -> bool:
        if self._node.hooks.on:
            self._node.hooks.emit(ParkedMessageDropped(self.level, unit.queue_offset, reason))
        return True

    def _queue(self) -> ConsumeQueue | None:
        return self._store.find_consume_queue(RMQ_SYS_SCHEDULE_TOPIC, self.level - 1)
