"""The merge buffer: check points meet their acknowledgements in memory, and progress is committed in order."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from mqlab.broker.pop.pop_buffer_to_store import PopBufferToStore
from mqlab.broker.pop.pop_check_point_wrapper import STORING, PopCheckPointWrapper
from mqlab.broker.pop.pop_commit_offsets import PopCommitOffsets
from mqlab.protocol.pop_check_point import AckMsg, BatchAckMsg, PopCheckPoint
from mqlab.sim import ServiceThread, WaitTimeout
from mqlab.store import BrokerRole
from mqlab.trace.events.pop import (
    AckBuffered,
    AckLost,
    CheckPointMade,
    CheckPointMerged,
    CheckPointNotMade,
    MergeBufferClosed,
    MergeBufferOpened,
)

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pop.queue_lock_manager import QueueLockManager

SCAN_INTERVAL_MS = 5
SLAVE_INTERVAL_MS = 5_000
RESERVE_MS = 1_500
SHUTDOWN_WAIT_MS = 2_000
JOIN_MS = 90_000


class PopBufferMergeService(ServiceThread):
    """Keeps the check points of the last seconds in memory, and commits how far groups were handed out messages.

    With enablePopBufferMerge a check point that is acknowledged in time is never written at all; what stays longer
    than 10 s, or has less than 3 s left, goes to the store with the acks that came until then. Without it every check
    point is written by the pop itself (`add_ck_just_offset`), and only the offset waits here. In both cases a queue's
    offset goes past a batch when the batch needs the memory no longer, and batches are committed in the order of their
    pops. A kill loses what is here: the messages are popped again from the committed offset, acknowledged ones, too.

    Java: org.apache.rocketmq.broker.processor.PopBufferMergeService. Differs from RocketMQ: the scan comes at the same
    instants, on a grid of 5 ms since the broker's start, but only when a rule can fire, and it looks only at the
    batches that a rule can be about. Each batch notes, from the settings at that time, when its stay ends; acks,
    answers of the store and new batches bring the scan forward; a queue whose lock is taken is tried again each tick.
    """

    def __init__(self, broker: BrokerParts, locks: QueueLockManager) -> None:
        super().__init__(broker.node, "PopBufferMergeService", SCAN_INTERVAL_MS)
        self._broker = broker
        self._config = broker.broker_config
        self.to_store = PopBufferToStore(broker, self._changed)
        self.buffer: dict[str, PopCheckPointWrapper] = {}
        self.commit_offsets = PopCommitOffsets(broker, locks)
        self.serving = True
        self._came = 0
        self._to_look_at: dict[str, PopCheckPointWrapper] = {}
        """What the next scan looks at, beside the batches whose stay ends."""
        self._stays: list[tuple[int, int, PopCheckPointWrapper]] = []
        """A heap: when the stay of a batch ends, ms since 1970."""
        self._armed_us = 0

    @property
    def is_slave(self) -> bool:
        """A slave hands nothing out for long: it forgets everything every 5 s."""
        return self._broker.message_store_config.broker_role is BrokerRole.SLAVE

    # -- what pops bring --------------------------------------------------------------------------------------------

    def add_ck(self, ck: PopCheckPoint, revive_qid: int, revive_queue_offset: int, next_begin_offset: int) -> bool:
        """Take a check point into memory, so that nothing is written; False when it has to be stored."""
        wrapper = PopCheckPointWrapper(ck, revive_qid, revive_queue_offset, next_begin_offset, self._came)
        if self._refusal(wrapper):
            return False
        self._take_in(wrapper)
        heappush(self._stays, (self._stay_ends_ms(ck), wrapper.number, wrapper))
        self._tell_made(wrapper, "buffer")
        self.wakeup_for_work()
        return True

    def _refusal(self, wrapper: PopCheckPointWrapper) -> str:
        """Why a check point cannot be kept in memory; "" when it can."""
        config = self._config
        if not config.enable_pop_buffer_merge:
            return "no buffer"
        if not self.serving:
            return "buffer closed"
        if wrapper.ck.revive_time - self.node.now_ms() < config.pop_ck_stay_buffer_time_out + RESERVE_MS:
            return "too short for the buffer"
        if len(self.buffer) > config.pop_ck_max_buffer_size:
            return "buffer full"
        if not self._is_queue_ok(wrapper.lock_key):
            return "queue of offsets full"
        return "same key" if wrapper.merge_key in self.buffer else ""

    def _is_queue_ok(self, lock_key: str) -> bool:
        return self.commit_offsets.waiting(lock_key) < self._config.pop_ck_offset_max_queue_size

    async def add_ck_just_offset(
        self, ck: PopCheckPoint, revive_qid: int, revive_queue_offset: int, next_begin_offset: int
    ) -> bool:
        """Store a check point now, and take in its offset; False when there is a check point of the same key.

        A store that waits (for a flush, for replicas) makes the pop wait, too, unless appendCkAsync is on. A check
        point that the store refuses is tried again by each scan: its messages are handed out all the same.
        """
        wrapper = PopCheckPointWrapper(
            ck, revive_qid, revive_queue_offset, next_begin_offset, self._came, just_offset=True
        )
        if wrapper.merge_key in self.buffer:
            if self.node.hooks.on:
                self.node.hooks.emit(CheckPointNotMade(*wrapper.batch, ck.num, "same key"))
            return False
        reason = self._refusal(wrapper)
        may_go_on = self._config.append_ck_async and self._is_queue_ok(wrapper.lock_key)
        pending = self.to_store.put_ck(wrapper, reason or "popped")
        if pending is not None and not may_go_on:
            await pending
        self._take_in(wrapper)
        self._tell_made(wrapper, "store")
        self._changed(wrapper)
        return True

    def add_ck_mock(
        self,
        group: str,
        topic: str,
        queue_id: int,
        start_offset: int,
        invisible_time: int,
        pop_time: int,
        revive_qid: int,
        next_begin_offset: int,
        broker_name: str,
    ) -> None:
        """Take in the offset of a pop that found no message of use, so that it is committed in its turn."""
        ck = PopCheckPoint(
            start_offset, pop_time, invisible_time, queue_id=queue_id, topic=topic, group=group, broker_name=broker_name
        )
        wrapper = PopCheckPointWrapper(ck, revive_qid, STORING, next_begin_offset, self._came, just_offset=True)
        wrapper.ck_stored = True
        self.commit_offsets.offer(wrapper)
        self._tell_made(wrapper, "offset only")
        self.commit_offsets.heads[wrapper.lock_key] = None
        self.wakeup_for_work()

    def _take_in(self, wrapper: PopCheckPointWrapper) -> None:
        self._came += 1
        self.commit_offsets.offer(wrapper)
        self.buffer[wrapper.merge_key] = wrapper

    def _tell_made(self, wrapper: PopCheckPointWrapper, held_in: str) -> None:
        if self.node.hooks.on:
            ck = wrapper.ck
            offsets = ",".join(map(str, ck.offsets()))
            self.node.hooks.emit(
                CheckPointMade(*wrapper.batch, ck.invisible_time, ck.num, offsets, wrapper.revive_queue_id, held_in)
            )

    # -- what acknowledgements bring --------------------------------------------------------------------------------

    def add_ak(self, revive_qid: int, ack: AckMsg | BatchAckMsg) -> bool:
        """Note an acknowledgement in memory; False when it has to be stored, since its check point is or soon will be.

        An offset that the check point does not have is passed over; nothing else becomes of it. Where the ack would be
        stored (`revive_qid`) does not matter here.
        """
        config = self._config
        if not config.enable_pop_buffer_merge or not self.serving:
            return False
        now_ms = self.node.now_ms()
        wrapper = self.buffer.get(ack.merge_key)
        if wrapper is None or wrapper.just_offset:
            return False
        ck = wrapper.ck
        if ck.revive_time - now_ms < config.pop_ck_stay_buffer_time_out + RESERVE_MS:
            return False
        if now_ms - ck.pop_time > config.pop_ck_stay_buffer_time - RESERVE_MS:
            return False
        for offset in ack.offsets():
            self._mark(wrapper, offset)
        if wrapper.is_done:
            self._changed(wrapper)
        return True

    def _mark(self, wrapper: PopCheckPointWrapper, offset: int) -> None:
        ck, hooks = wrapper.ck, self.node.hooks
        place = ck.index_of_ack(offset)
        if place >= 0:
            wrapper.bits |= 1 << place
        if hooks.on:
            delivery = (f"{ck.group}", f"{ck.topic}", ck.queue_id, offset, ck.start_offset, ck.pop_time)
            hooks.emit(AckBuffered(*delivery, place) if place >= 0 else AckLost(*delivery, "not in the check point"))

    # -- progress ---------------------------------------------------------------------------------------------------

    def get_latest_offset(self, lock_key: str) -> int:
        """Where the next pop of a queue begins, of which the committed offset does not know yet; -1 when it knows."""
        return self.commit_offsets.latest(lock_key)

    def clear_offset_queue(self, lock_key: str) -> None:
        """Forget the offsets that wait to be committed, since the group's progress was set anew."""
        self.commit_offsets.table.pop(lock_key, None)

    # -- when to turn -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread, whose ticks are those of one that began with the broker."""
        super().start()
        self.set_origin(self._broker.start_us)
        self.node.life.clock_listeners.append(self.wakeup_for_work)
        if self.is_slave:
            self.period_ms = SLAVE_INTERVAL_MS

    def _changed(self, wrapper: PopCheckPointWrapper) -> None:
        """Something became of a batch: the next tick looks at it, and whether its queue's offset can be committed."""
        self._to_look_at[wrapper.merge_key] = wrapper
        self.commit_offsets.heads[wrapper.lock_key] = None
        self.wakeup_for_work()

    def has_work(self) -> bool:
        """Will there be something to do at any tick?"""
        return self.work_us() is not None

    def work_us(self) -> int | None:
        """When the earliest rule can fire; None as long as nothing comes from outside."""
        now_us = self.node.now_us()
        if self.is_slave:
            return now_us if self.buffer or self.commit_offsets.table else None
        if self._to_look_at or self.commit_offsets.heads or not self.serving:
            return now_us
        while self._stays and self._stays[0][2].merge_key not in self.buffer:
            heappop(self._stays)
        times = [now_us + self.node.us_until(self._stays[0][0])] if self._stays else []
        if self.commit_offsets.table:
            times.append(self.commit_offsets.garbage_us)
        return min(times, default=None)

    def next_tick_us(self) -> int:
        """The first tick at which there is something to do."""
        tick_us, work_us = super().next_tick_us(), self.work_us()
        self._armed_us = tick_us if work_us is None else max(tick_us, self.tick_at(work_us))
        return self._armed_us

    def wakeup_for_work(self) -> None:
        """Something has changed: bring the next tick forward if it has to come earlier."""
        if not self._waiting or self._notified or self._task is None or not self.has_work():
            return
        armed_us = self._armed_us
        tick_us = self.next_tick_us()
        if self.idle:
            self.idle = False
        elif tick_us < armed_us:
            self.node.world.entry_died()
        else:
            self._armed_us = armed_us
            return
        self._task.resume_at(tick_us)

    # -- the thread -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """The loop of the thread; a slave has nothing to store and forgets."""
        while True:
            await self.wait_for_running()
            if self.stopped:
                break
            if self.is_slave:
                self._clear()
                continue
            if not self.serving and self._is_empty():
                self._serve(True)
            await self.scan()
            self.commit_offsets.scan_garbage()
        await self._drain()

    async def drain(self) -> None:
        """End the thread in good order: take nothing in any more, and store everything; at most 90 s."""
        task = self._task
        if task is None:
            return
        self.stopped = True
        self.wakeup()
        self.node.life.clock_listeners.remove(self.wakeup_for_work)
        try:
            await self.node.wait(task.join(), JOIN_MS)
        except WaitTimeout:
            task.cancel()
        self._task = None

    async def _drain(self) -> None:
        self._serve(False)
        await self.node.sleep(SHUTDOWN_WAIT_MS)
        while not self.is_slave and not self._is_empty():
            await self.scan()
            if not self._is_empty():
                await self.node.sleep(SCAN_INTERVAL_MS)

    def _is_empty(self) -> bool:
        return not self.buffer and not self.commit_offsets.total_size()

    def _clear(self) -> None:
        self.buffer.clear()
        self.commit_offsets.table.clear()
        self.commit_offsets.heads.clear()
        self._to_look_at.clear()
        self._stays.clear()

    def _serve(self, serving: bool, scan_ms: int = 0) -> None:
        """Open or close the buffer; a closed one takes nothing in and drains."""
        if self.serving == serving:
            return
        self.serving = serving
        if serving:
            if self.node.hooks.on:
                self.node.hooks.emit(MergeBufferOpened())
            return
        self._to_look_at.update(self.buffer)
        if self.node.hooks.on:
            self.node.hooks.emit(MergeBufferClosed(len(self.buffer), scan_ms))

    # -- a scan -----------------------------------------------------------------------------------------------------

    def _stay_ends_ms(self, ck: PopCheckPoint) -> int:
        """From when on a check point must not stay in memory: it gets old, or its messages will soon be visible."""
        config = self._config
        return 1 + min(
            ck.revive_time - config.pop_ck_stay_buffer_time_out, ck.pop_time + config.pop_ck_stay_buffer_time
        )

    async def scan(self) -> None:
        """One pass over the batches that a rule can be about, then over the offsets that can be committed."""
        began_ms = self.node.now_ms()
        while self._stays and self._stays[0][0] <= began_ms:
            wrapper = heappop(self._stays)[2]
            self._to_look_at[wrapper.merge_key] = wrapper
        looked_at = sorted(self._to_look_at.values(), key=lambda wrapper: wrapper.number)
        self._to_look_at.clear()
        for wrapper in looked_at:
            if self.buffer.get(wrapper.merge_key) is wrapper:
                await self.look_at(wrapper)
        self.commit_offsets.commit()
        scan_ms = self.node.now_ms() - began_ms
        if scan_ms > self._config.pop_ck_stay_buffer_time_out - 1_000:
            self._serve(False, scan_ms)

    async def look_at(self, wrapper: PopCheckPointWrapper) -> None:
        """Let a batch go if it is settled; else write what memory shall not keep any longer."""
        if wrapper.is_settled:
            self.let_go(wrapper)
            return
        reason = self._reason_to_store(wrapper)
        if not reason:
            # Somebody has set a longer stay since.
            heappush(self._stays, (self._stay_ends_ms(wrapper.ck), wrapper.number, wrapper))
            return
        pending = self.to_store.put_ck(wrapper, reason)
        if pending is not None and not self._config.append_ck_async:
            await pending
        if wrapper.ck_stored and not wrapper.just_offset:
            await self.to_store.put_acks(wrapper)
            if wrapper.is_settled:
                self.let_go(wrapper)

    def _reason_to_store(self, wrapper: PopCheckPointWrapper) -> str:
        if wrapper.just_offset:
            return "tried again"
        if not self.serving:
            return "buffer closed"
        now_ms = self.node.now_ms()
        if now_ms >= wrapper.ck.revive_time - self._config.pop_ck_stay_buffer_time_out + 1:
            return "visible soon"
        return "stayed long" if now_ms > wrapper.ck.pop_time + self._config.pop_ck_stay_buffer_time else ""

    def let_go(self, wrapper: PopCheckPointWrapper) -> None:
        """Forget a batch, whose check point is stored or settled."""
        del self.buffer[wrapper.merge_key]
        self._to_look_at.pop(wrapper.merge_key, None)
        self.commit_offsets.heads[wrapper.lock_key] = None
        if not wrapper.just_offset and self.node.hooks.on:
            acked = wrapper.bits.bit_count()
            self.node.hooks.emit(CheckPointMerged(*wrapper.batch, wrapper.ck.num, acked, wrapper.ck_stored))
