"""The threads of the timer: they sleep while nothing is to be done, and keep the grid of loops that always turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.sim.service import ServiceThread
from mqlab.store.timer.timer_wheel import NEVER
from mqlab.trace.events.store import FileDeleted

if TYPE_CHECKING:
    from mqlab.store.timer.timer_message_store import TimerMessageStore

_CLEAN_PERIOD_MS = 30_000


class _TimerService(ServiceThread):
    """A thread of the timer; the grid of its turns began when the timer's `origin_us` says."""

    def __init__(self, timer: TimerMessageStore, period_ms: int) -> None:
        super().__init__(timer.node, period_ms=period_ms)
        self.timer = timer

    def start(self) -> None:
        """Start the thread, on the grid that it would have had if it had turned since the broker's start."""
        super().start()
        self.set_origin(self.timer.origin_us)


class TimerEnqueueService(_TimerService):
    """Brings new messages of the timer's topic onto the wheel, every 100 ms.

    Java: org.apache.rocketmq.store.timer.TimerMessageStore.TimerEnqueueGetService and TimerEnqueuePutService. Differs
    from RocketMQ: one thread in place of two with a queue between them; the second does not collect requests for 3 ms.
    """

    def has_work(self) -> bool:
        """Is there a message in the timer's topic that is not on the wheel?"""
        return self.timer.is_running_enqueue and self.timer.enqueue_behind_messages > 0

    async def run(self) -> None:
        """One look at each turn."""
        while not self.stopped:
            await self.wait_for_running()
            await self.timer.enqueue()


class TimerDequeueService(_TimerService):
    """Delivers what is due, every 100 ms.

    Java: org.apache.rocketmq.store.timer.TimerMessageStore.TimerDequeueGetService, with the threads behind it. Differs
    from RocketMQ: it sleeps until the turn at which a loop that always turns would find the next slot due.
    """

    def has_work(self) -> bool:
        """Is any slot in use that has not been read?"""
        return self.timer.is_running_dequeue and self.timer.next_slot_ms != NEVER

    def next_tick_us(self) -> int:
        """The first turn at which the wheel is written beyond the next slot."""
        now_us = self.node.now_us()
        due_us = now_us + self.node.us_until(self.timer.next_slot_ms + self.timer.precision_ms)
        return self.tick_at(max(due_us, now_us + 1))

    async def run(self) -> None:
        """Deliver at each turn."""
        while not self.stopped:
            await self.wait_for_running()
            await self.timer.dequeue()


class TimerFlushService(_TimerService):
    """Makes log, wheel and check file safe, every second; the check file first says what was flushed before.

    Java: org.apache.rocketmq.store.timer.TimerMessageStore.TimerFlushService.
    """

    def has_work(self) -> bool:
        """Does any of the files lack something?"""
        return self.timer.is_flush_behind

    async def run(self) -> None:
        """One flush at each turn."""
        while not self.stopped:
            await self.wait_for_running()
            if self.timer.disk.is_slow:
                await self.timer.disk.settle()
            # What ends the timer writes its files itself.
            if self.timer.is_running:
                self.timer.flush()


class TimerCleanService(_TimerService):
    """Deletes files of the timer log whose messages the commit log has lost, every 30 s.

    Java: org.apache.rocketmq.store.timer.TimerMessageStore.start.
    """

    def __init__(self, timer: TimerMessageStore) -> None:
        super().__init__(timer, _CLEAN_PERIOD_MS)

    def has_work(self) -> bool:
        """Is there a file that could go?"""
        return len(self.timer.timer_log.mapped_file_queue.mapped_files) > 1

    def tick(self) -> None:
        """Delete what can go."""
        if not self.timer.is_running:
            return
        for path in self.timer.timer_log.delete_expired_files(self.timer.message_store.min_phy_offset):
            if self.node.hooks.on:
                self.node.hooks.emit(FileDeleted(path, "below the commit log"))


class TimerServices:
    """All threads of one timer."""

    def __init__(self, timer: TimerMessageStore) -> None:
        look_ms = max(1, 100 * timer.precision_ms // 1_000)
        self.enqueue = TimerEnqueueService(timer, look_ms)
        self.dequeue = TimerDequeueService(timer, look_ms)
        self.flush = TimerFlushService(timer, timer.config.timer_flush_interval_ms)
        self.clean = TimerCleanService(timer)

    def all(self) -> list[ServiceThread]:
        """The threads that run."""
        return [self.enqueue, self.dequeue, self.flush, self.clean]

    def start(self) -> None:
        """Start the threads of the timer."""
        for service in self.all():
            service.start()

    def shutdown(self) -> None:
        """Stop the threads of the timer."""
        for service in self.all():
            service.shutdown()


