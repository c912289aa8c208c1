"""The timer of a broker: it holds messages back until the time that each of them asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.errors import RecordError
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.record import decode_record
from mqlab.protocol.topics import TIMER_TOPIC
from mqlab.sim.disk import DiskFull
from mqlab.store.message_store_config import SLAVE
from mqlab.store.timer.timer_checkpoint import TimerCheckpoint
from mqlab.store.timer.timer_delivery import HOLD_MS, TimerDelivery
from mqlab.store.timer.timer_log import MAGIC_DEFAULT, MAGIC_DELETE, MAGIC_ROLL, UNIT_SIZE, TimerLog, TimerRecord
from mqlab.store.timer.timer_message import NEVER_ENQUEUED, topic_hash
from mqlab.store.timer.timer_metrics import TimerMetrics
from mqlab.store.timer.timer_recovery import TIMER_BLANK_SLOTS, recover
from mqlab.store.timer.timer_services import TimerServices
from mqlab.store.timer.timer_wheel import NEVER, Slot, TimerWheel
from mqlab.trace.events.timer import (
    TimerFlushed,
    TimerLoaded,
    TimerMessageDropped,
    TimerMessageEnqueued,
    TimerSlotDequeued,
    TimerStalled,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mqlab.sim import Node
    from mqlab.store.consume_queue import CqUnit
    from mqlab.store.default_message_store import DefaultMessageStore
    from mqlab.store.dispatch_request import DispatchRequest

TIMER_WHEEL_TTL_DAY = 7
DAY_SECS = 86_400
_WRITE_PERIOD_US = 10_000
"""How often RocketMQ's thread that writes the wheel looks at the clock."""

_READ_AHEAD = 32
_BEHIND_MS = 2_000


class TimerMessageStore:
    """Holds messages back on a wheel of slots (org.apache.rocketmq.store.timer.TimerMessageStore).

    A message lies in the timer's topic; `enqueue` gives it a record in the timer log and a slot of the wheel, `dequeue`
    reads the slots up to now and stores what lies in them again, where it belongs. `curr_read_time_ms` is the first
    slot that has not been read, `curr_write_time_ms` the first one that has not begun.

    Differs from RocketMQ: it is made with the first timer message of a broker, or with files of one on the disk; until
    then none of its files is there. Its loops sleep while they have nothing to do, and act when loops that always turn
    would; times that such loops move on while nothing happens are worked out when somebody asks.
    """

    def __init__(
        self, node: Node, message_store: DefaultMessageStore, origin_us: int, count_put: Callable[[str, int, int], None]
    ) -> None:
        self.node = node
        self.message_store = message_store
        self.config = config = message_store.config
        self.disk = message_store.disk
        self.origin_us = origin_us
        self.precision_ms = config.timer_precision_ms
        self.slots_total = TIMER_WHEEL_TTL_DAY * DAY_SECS
        self.timer_wheel = TimerWheel(self.disk, config.path("timerwheel"), self.slots_total, self.precision_ms)
        self.timer_log = TimerLog(self.disk, config.path("timerlog"), config.mapped_file_size_timer_log)
        self.timer_checkpoint = TimerCheckpoint(self.disk, config.path("config", "timercheck"))
        self.timer_metrics = TimerMetrics(self.disk, config.path("config", "timermetrics"))
        most = self.slots_total - TIMER_BLANK_SLOTS
        window = config.timer_roll_window_slot
        self.timer_roll_window_slots = window if 2 <= window <= most else most
        self.should_running_dequeue = config.broker_role is not SLAVE
        self.delivery = TimerDelivery(self, count_put)
        self.services: TimerServices | None = None
        self.curr_queue_offset = 0
        self.commit_queue_offset = 0
        self.curr_read_time_ms = 0
        self._write_time_ms = 0
        self._reading = False
        self._writing = False
        self._enqueued_at_ms = self._enqueued_stored_ms = 0
        self._committed = (0, 0)
        self._stalled_at = -1

    # -- life -------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Take in the files and mend what a stop left of them; StoreError for files that no timer has written."""
        self.timer_log.mapped_file_queue.load()
        self.timer_metrics.load()
        recover(self)
        self._prepare_checkpoint()
        if self.node.hooks.on:
            slots = len(self.timer_wheel.waiting_slots(self.curr_read_time_ms))
            end = self.timer_log.mapped_file_queue.max_offset
            self.node.hooks.emit(TimerLoaded(self.curr_read_time_ms, self.curr_queue_offset, end, slots))

    def start(self) -> None:
        """Let the threads run; the store is running already."""
        self._write_time_ms = self.format_time_ms(self.node.now_ms())
        self.services = TimerServices(self)
        self.services.start()
        self.message_store.dispatcher_list.append(self._dispatched)
        self.node.life.clock_listeners.append(self.services.dequeue.rearm)

    def shutdown(self) -> None:
        """Stop the threads, then write log and check file. As in RocketMQ the wheel is not written: the log has it."""
        if self.services is None:
            return
        self._move_read_time()
        services, self.services = self.services, None
        services.shutdown()
        self.node.life.clock_listeners.remove(services.dequeue.rearm)
        self.message_store.dispatcher_list.remove(self._dispatched)
        try:
            self._prepare_checkpoint()
            self.timer_log.mapped_file_queue.flush_all()
            self.timer_checkpoint.flush()
        except DiskFull:
            # Older files: the next start enqueues and delivers from there again.
            return

    def _dispatched(self, request: DispatchRequest) -> None:
        if self.services is not None and request.topic == TIMER_TOPIC and self.services.enqueue.idle:
            self.services.enqueue.wakeup_for_work()

    @property
    def is_running(self) -> bool:
        """Has it begun, and not ended?"""
        return self.services is not None

    @property
    def is_running_enqueue(self) -> bool:
        """May messages go onto the wheel? On a slave only those that the master has there.

        Java: org.apache.rocketmq.store.timer.TimerMessageStore.isRunningEnqueue.
        """
        if self.config.timer_stop_enqueue or not self.is_running:
            return False
        master = self.timer_checkpoint.master_timer_queue_offset
        return self.should_running_dequeue or self.curr_queue_offset < master

    @property
    def is_running_dequeue(self) -> bool:
        """May messages come off the wheel? Not on a slave."""
        return self.should_running_dequeue and not self.config.timer_stop_dequeue and self.is_running

    # -- times ------------------------------------------------------------------------------------------------------

    def format_time_ms(self, time_ms: int) -> int:
        """The moment of the slot that a time lies in."""
        return time_ms // self.precision_ms * self.precision_ms

    @property
    def curr_write_time_ms(self) -> int:
        """The slot of now, as of the last look at the clock; it never goes back.

        While a message is brought onto the wheel nobody looks: a slot that it gets is not passed before it is there.
        """
        if self._writing:
            return self._write_time_ms
        since_look_ms = (self.node.now_us() - self.origin_us) % _WRITE_PERIOD_US // 1_000
        self._write_time_ms = max(self._write_time_ms, self.format_time_ms(self.node.now_ms() - since_look_ms))
        return self._write_time_ms

    @property
    def next_slot_ms(self) -> int:
        """The first slot in use that has not been read; NEVER without one."""
        return self.timer_wheel.next_time(self.curr_read_time_ms)

    def _move_read_time(self) -> None:
        """Let reading pass the empty slots that a loop which always turns has passed by its last turn."""
        if not self.is_running_dequeue:
            return
        look_us = (self.node.now_us() - self.origin_us) % (100 * self.precision_ms)
        passed_ms = self.format_time_ms(self.node.now_ms() - look_us // 1_000)
        self._pass_empty_slots(min(passed_ms, self.curr_write_time_ms))

    def _pass_empty_slots(self, up_to_ms: int) -> None:
        if not self._reading:
            self.curr_read_time_ms = max(self.curr_read_time_ms, min(up_to_ms, self.next_slot_ms))

    # -- onto the wheel ---------------------------------------------------------------------------------------------

    async def enqueue(self) -> None:
        """Bring what is new in the timer's topic onto the wheel; what is due already is delivered at once."""
        queue = self.message_store.find_consume_queue(TIMER_TOPIC, 0)
        if queue is None or not self.is_running_enqueue:
            return
        self.curr_queue_offset = max(self.curr_queue_offset, queue.min_offset_in_queue)
        while (units := queue.iterate_from(self.curr_queue_offset, _READ_AHEAD)) is not None:
            for unit in units:
                if not self.is_running_enqueue or not await self._enqueue_unit(unit):
                    return
                self.curr_queue_offset = self.commit_queue_offset = unit.queue_offset + 1

    async def _enqueue_unit(self, unit: CqUnit) -> bool:
        """Bring one message onto the wheel; False when nothing behind it can go on now."""
        message = self.message_at(unit.pos, unit.size)
        if message is None:
            self._drop("", "", f"the commit log does not have the message at {unit.pos}")
            return True
        try:
            out_ms = int(message.properties.get(MessageConst.TIMER_OUT_MS, ""))
        except ValueError:
            if self.config.timer_skip_unknown_error:
                self._drop(message.topic, message.msg_id, "it does not say when it is due")
                return True
            if self.node.hooks.on and self._stalled_at != unit.queue_offset:
                self._stalled_at = unit.queue_offset
                self.node.hooks.emit(TimerStalled(unit.queue_offset, "the message does not say when it is due"))
            await self.node.sleep(HOLD_MS)
            return False
        self._enqueued_at_ms, self._enqueued_stored_ms = self.node.now_ms(), message.store_timestamp
        write_ms = self.curr_write_time_ms
        self._writing = True
        try:
            if self.should_running_dequeue and out_ms < write_ms:
                await self.delivery.deliver([(self._record(unit, NEVER_ENQUEUED, 0, MAGIC_DEFAULT, message), message)])
            else:
                while not self.do_enqueue(unit, out_ms, message):
                    await self.node.sleep(HOLD_MS)
        finally:
            self._writing = False
        return True

    def do_enqueue(self, unit: CqUnit, out_ms: int, message: MessageExt) -> bool:
        """Give a message its record and its place on the wheel; False when the disk has no room for the record.

        Java: org.apache.rocketmq.store.timer.TimerMessageStore.doEnqueue.
        """
        write_ms, window_ms = self.curr_write_time_ms, self.timer_roll_window_slots * self.precision_ms
        magic = MAGIC_DEFAULT
        beyond_ms = out_ms - write_ms - window_ms
        if beyond_ms >= 0:
            magic |= MAGIC_ROLL
            # Time enough is left for the next roll.
            near = beyond_ms < self.timer_roll_window_slots // 3 * self.precision_ms
            out_ms = write_ms + (self.timer_roll_window_slots // 2 * self.precision_ms if near else window_ms)
        recalls = MessageConst.TIMER_DEL_UNIQKEY in message.properties
        if recalls:
            magic |= MAGIC_DELETE
        slot = self.timer_wheel.get_slot(out_ms)
        record = self._record(unit, write_ms, out_ms - write_ms, magic, message, slot.last_pos)
        position = self.timer_log.append(record)
        if position < 0:
            return False
        num = slot.num - 1 if recalls else slot.num + 1
        first = position if slot.first_pos == -1 else slot.first_pos
        sooner = out_ms < self.next_slot_ms
        self.timer_wheel.put_slot(out_ms, first, position, num, slot.magic)
        self.count(message, -1 if recalls else 1)
        if self.node.hooks.on:
            self.node.hooks.emit(
                TimerMessageEnqueued(
                    message.properties.get(MessageConst.REAL_TOPIC, ""),
                    message.properties.get("UNIQ_KEY", ""),
                    self.format_time_ms(out_ms),
                    position,
                    slot.last_pos,
                    num,
                    record.rolls,
                    recalls,
                )
            )
        if self.services is not None:
            if sooner:
                self.services.dequeue.rearm()
            self.services.flush.wakeup_for_work()
            self.services.clean.wakeup_for_work()
        return True

    def _record(
        self, unit: CqUnit, write_ms: int, delay_ms: int, magic: int, message: MessageExt, previous: int = -1
    ) -> TimerRecord:
        return TimerRecord(
            -1, UNIT_SIZE, previous, magic, write_ms, delay_ms, unit.pos, unit.size, topic_hash(message)
        )

    # -- off the wheel ----------------------------------------------------------------------------------------------

    async def dequeue(self) -> None:
        """Read the wheel up to now, slot by slot: what recalls first, then the messages, the oldest first."""
        while self.is_running_dequeue:
            write_ms = self.curr_write_time_ms
            self._pass_empty_slots(write_ms)
            if self.curr_read_time_ms >= write_ms:
                return
            await self._dequeue_slot(self.timer_wheel.get_slot(self.curr_read_time_ms))

    async def _dequeue_slot(self, slot: Slot) -> None:
        records = self.chain(slot)
        recalling = [record for record in records if record.recalls and not record.rolls]
        normal = [record for record in reversed(records) if record.rolls or not record.recalls]
        self._reading = True
        try:
            recalled = self.delivery.recalled(recalling)
            due = self.delivery.messages_of(normal, recalled)
            await self.delivery.deliver(due)
            await self.node.preempt("timer-dequeue.delivered")
        finally:
            self._reading = False
        if not self.is_running_dequeue:
            return
        self.curr_read_time_ms += self.precision_ms
        if self.node.hooks.on:
            self.node.hooks.emit(TimerSlotDequeued(slot.time_ms, len(normal), len(recalling)))
        if self.services is not None:
            self.services.flush.wakeup_for_work()

    def chain(self, slot: Slot) -> list[TimerRecord]:
        """The records of a slot, the newest first.

        Differs from RocketMQ: a record that says that the one before it lies behind it ends the list; it can say so
        when the log was cut by a power loss, and RocketMQ would go round in a circle.
        """
        records: list[TimerRecord] = []
        position = slot.last_pos
        while position >= 0 and (record := self.timer_log.read(position)) is not None:
            records.append(record)
            position = record.previous if record.previous < position else -1
        return records

    # -- reading and counting ---------------------------------------------------------------------------------------

    def message_at(self, offset_py: int, size_py: int) -> MessageExt | None:
        """The message of that size at a commit-log offset, None when there is none."""
        data = self.message_store.commit_log.get_message(offset_py, size_py) if size_py > 0 else None
        if data is None:
            return None
        try:
            return decode_record(data, decompress=False)
        except RecordError:
            return None

    def count(self, message: MessageExt, value: int) -> None:
        """Note that so many more wait for a message's topic; those that never were on the wheel are not counted.

        Java: org.apache.rocketmq.store.timer.TimerMessageStore.addMetric.
        """
        topic = message.properties.get(MessageConst.REAL_TOPIC)
        if topic is not None:
            self.timer_metrics.add(topic, value, self.node.now_ms())

    def _drop(self, topic: str, unique_key: str, reason: str) -> None:
        if self.node.hooks.on:
            self.node.hooks.emit(TimerMessageDropped(topic, unique_key, reason))

    def follow(self, master: bytes) -> None:
        """Take over how far a master's timer is, as a slave does: up to there the wheel is read, and may be written.

        Java: org.apache.rocketmq.broker.slave.SlaveSynchronize.syncTimerCheckPoint.
        """
        self.timer_checkpoint.take_masters(master)
        self.curr_read_time_ms = max(self.curr_read_time_ms, self.timer_checkpoint.last_read_time_ms)
        if self.services is not None:
            self.services.enqueue.wakeup_for_work()
            if self.is_flush_behind:
                self.services.flush.wakeup_for_work()

    # -- files ------------------------------------------------------------------------------------------------------

    @property
    def is_flush_behind(self) -> bool:
        """Do the files lack anything? Reading that passes empty slots alone is no reason to write."""
        files, checkpoint = self.timer_log.mapped_file_queue, self.timer_checkpoint
        return (
            self.timer_wheel.is_changed
            or files.flushed_where < files.max_offset
            or checkpoint.last_timer_log_flush_pos != files.flushed_where
            or self._committed != (self.curr_read_time_ms, self.commit_queue_offset)
        )

    def flush(self) -> None:
        """Write what has changed; on a full disk the rest stays for the next turn."""
        self._move_read_time()
        self._prepare_checkpoint()
        try:
            self.timer_log.mapped_file_queue.flush(0)
            self.timer_wheel.flush()
            self.timer_checkpoint.flush()
            self.timer_metrics.persist()
        except DiskFull:
            return
        if self.node.hooks.on:
            where = self.timer_log.mapped_file_queue.flushed_where
            self.node.hooks.emit(TimerFlushed(self.curr_read_time_ms, self.commit_queue_offset, where))

    def _prepare_checkpoint(self) -> None:
        """Note in the check file how far everything is (TimerMessageStore.prepareTimerCheckPoint)."""
        checkpoint = self.timer_checkpoint
        checkpoint.last_timer_log_flush_pos = self.timer_log.mapped_file_queue.flushed_where
        checkpoint.last_read_time_ms = self.curr_read_time_ms
        committed = (self.curr_read_time_ms, self.commit_queue_offset)
        if self.should_running_dequeue:
            checkpoint.master_timer_queue_offset = self.commit_queue_offset
            if committed != self._committed:
                checkpoint.data_version.next_version(self.node.now_ms())
        self._committed = committed
        checkpoint.last_timer_queue_offset = min(self.commit_queue_offset, checkpoint.master_timer_queue_offset)

    # -- how far behind ---------------------------------------------------------------------------------------------

    def is_reject(self, deliver_ms: int) -> bool:
        """Is the slot of a moment so full that a message for it is refused? Between the limit and twice the limit a
        choice says so.

        Java: org.apache.rocketmq.store.timer.TimerMessageStore.isReject.
        """
        most = self.config.timer_congest_num_each_slot
        num = self.timer_wheel.get_num(deliver_ms)
        if num <= most:
            return False
        return num >= most * 2 or self.node.choose("timer-congested", 1_000) > 1_000 * (num - most) / (most + 0.1)

    @property
    def enqueue_behind_messages(self) -> int:
        """How many messages of the timer's topic are not on the wheel."""
        return self.message_store.get_max_offset_in_queue(TIMER_TOPIC, 0) - self.curr_queue_offset

    @property
    def enqueue_behind_s(self) -> int:
        """How old the message was that came onto the wheel last, in whole seconds; 0 if that is 2 s ago."""
        now_ms = self.node.now_ms()
        return (now_ms - self._enqueued_stored_ms) // 1_000 if now_ms - self._enqueued_at_ms < _BEHIND_MS else 0

    @property
    def dequeue_behind_s(self) -> int:
        """How far reading is behind the clock, in whole seconds."""
        self._move_read_time()
        return (self.node.now_ms() - self.curr_read_time_ms) // 1_000

    def is_behind(self) -> bool:
        """Is reading the wheel or writing it a second or more behind? Pop's reviver asks this.

        Java: TimerMessageStore.getDequeueBehind and getEnqueueBehind.
        """
        return self.dequeue_behind_s > 0 or self.enqueue_behind_s > 0

    @property
    def all_congest_num(self) -> int:
        """How many messages wait on the wheel."""
        return self.timer_wheel.get_all_num(self.curr_read_time_ms)

    def __repr__(self) -> str:
        next_ms = self.next_slot_ms
        due = f"next at {next_ms}" if next_ms != NEVER else "empty"
        return f"<TimerMessageStore {self.node.name}: {self.all_congest_num} on the wheel, {due}>"
