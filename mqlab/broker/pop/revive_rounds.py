"""When a reviver reads: the grid of a loop that always turns, and sleeping over the reads that find nothing new."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mqlab.protocol.pop_check_point import revive_topic
from mqlab.sim import ServiceThread
from mqlab.sim.traps import park

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pop.revive_scan import ReviveScan

EMPTY_READ_US = 100_000
MOST_EMPTY_READS = 41
"""A round ends when its reads have found nothing for more than 4 s; it looks at the count after each pause."""
MOVE_END_TIME_MS = 3_000
"""When the newest message is older than this, nothing more can come before now."""


class NextRead(NamedTuple):
    """When a loop that always turns reads next (us), after so many reads of the same round that found nothing, and how
    many intervals it rests when that round finds nothing.
    """

    at_us: int
    empty_reads: int
    slow: int


class ReviveRounds(ServiceThread):
    """The rhythm of one reviver (PopReviveService.run).

    A round waits `revive_interval`, reads every 100 ms until it ends, and is followed by a rest of 1, 2, then 3
    intervals if it found no check point.

    Java: org.apache.rocketmq.broker.processor.PopReviveService.run. Differs from RocketMQ: a thread whose queue holds
    nothing that it has not dealt with sleeps, and reads next when a loop that always turns would do so. Within a round
    it sleeps over the reads that would find nothing new.
    """

    def __init__(self, broker: BrokerParts, revive_qid: int) -> None:
        super().__init__(broker.node, f"PopReviveService_{revive_qid}")
        self._broker = broker
        self._config = broker.broker_config
        self.revive_qid = revive_qid
        self.topic = revive_topic(self._config.broker_cluster_name)
        self.should_run_pop_revive = self._config.broker_id == 0
        self.slow = 1
        self._looked_to = 0
        """Up to here the queue holds no check point that is not dealt with."""
        self._lone_acks_from_ms = 0
        """The queue ends with acks whose check points are gone, which every round reads again: when the oldest of them
        was due, ms since 1970; 0: there are none.
        """
        self._until_us: int | None = None
        self._when_arrived: Callable[[], int | None] | None = None

    def start(self) -> None:
        """Begin, on the grid of a thread that began with the broker."""
        super().start()
        self._origin_us = self._broker.start_us
        self.node.life.clock_listeners.append(self.arrived)

    def shutdown(self) -> None:
        """Stop at once, in the middle of a round if need be."""
        if self.arrived in self.node.life.clock_listeners:
            self.node.life.clock_listeners.remove(self.arrived)
        self._when_arrived = None
        super().shutdown()

    def has_work(self) -> bool:
        """Does the queue hold anything that no round has dealt with?"""
        if not self.should_run_pop_revive or not self._broker.message_store_config.timer_wheel_enable:
            return False
        return self._broker.message_store.get_max_offset_in_queue(self.topic, self.revive_qid) > self._looked_to

    async def run(self) -> None:
        """Play round after round until the broker is shut down."""
        begin_us = self._origin_us
        while not self.stopped:
            empty_reads = await self._until_next_read(begin_us)
            begin_us = await self.round(empty_reads)

    async def round(self, empty_reads: int) -> int:
        """One round, at its read after so many that found nothing; the time (us) from which the next waits."""
        raise NotImplementedError(f"{type(self).__name__} must define round()")

    @property
    def interval_us(self) -> int:
        """What a round waits before it reads."""
        return self._config.revive_interval * 1_000

    # -- between rounds ---------------------------------------------------------------------------------------------

    async def _until_next_read(self, begin_us: int) -> int:
        """Wait until the next round has something to read; how many reads of it found nothing before."""
        found = self.next_read(begin_us, self.node.now_us())
        if self.has_work():
            await self._park("its next round", found.at_us)
        else:

            def when_arrived() -> int | None:
                nonlocal found
                if not self.has_work():
                    return None
                found = self.next_read(begin_us, self.node.now_us())
                return found.at_us

            until_us = self._until_lone_acks_are_old()
            if until_us is not None:
                found = self.next_read(begin_us, until_us)
                until_us = found.at_us
            await self._park("check points or acks", until_us, when_arrived)
        self.slow = found.slow
        return found.empty_reads

    def next_read(self, begin_us: int, now_us: int) -> NextRead:
        """The first read after `now_us` of a loop whose round began to wait at `begin_us`, with nothing new to read."""
        interval_us, slow, most = self.interval_us, self.slow, self._config.revive_max_slow
        # With acks at the end of the queue a round does not wait: they are newer than anything that could be missing.
        reads = 1 if self._lone_acks_from_ms else MOST_EMPTY_READS
        reading_us = 0 if self._lone_acks_from_ms else MOST_EMPTY_READS * EMPTY_READ_US
        while True:
            first_us = begin_us + interval_us
            if first_us > now_us:
                return NextRead(first_us, 0, slow)
            passed = (now_us - first_us) // EMPTY_READ_US + 1
            if passed < reads:
                return NextRead(first_us + passed * EMPTY_READ_US, passed, slow)
            begin_us = first_us + reading_us + slow * interval_us
            if slow < most:
                slow += 1
            else:
                round_us = interval_us + reading_us + slow * interval_us
                begin_us += max(0, (now_us - begin_us) // round_us) * round_us

    def _until_lone_acks_are_old(self) -> int | None:
        """When (us) the first ack without a check point has waited too long; None if such acks may stay."""
        if not self._lone_acks_from_ms or not self._config.enable_skip_long_awaiting_ack:
            return None
        too_old_ms = self._lone_acks_from_ms + self._config.revive_ack_wait_ms + 1
        return self.node.now_us() + self.node.us_until(too_old_ms)

    # -- within a round ---------------------------------------------------------------------------------------------

    async def _until_next_look(self, scan: ReviveScan) -> None:
        """Behind a read that found nothing: wait until one finds something, or decides something."""
        node, from_us = self.node, self.node.now_us()
        pauses = MOST_EMPTY_READS + 1 - scan.empty_reads
        if scan.end_time:
            us = node.us_until(scan.end_time + MOVE_END_TIME_MS + 1)
            pauses = min(pauses, max(1, -(-us // EMPTY_READ_US)))

        def after_pause() -> int:
            return from_us + ((node.now_us() - from_us) // EMPTY_READ_US + 1) * EMPTY_READ_US

        await self._park("more check points or acks", from_us + pauses * EMPTY_READ_US, after_pause)
        scan.empty_reads += (node.now_us() - from_us) // EMPTY_READ_US - 1

    # -- sleeping ---------------------------------------------------------------------------------------------------

    async def _park(
        self, label: str, until_us: int | None, when_arrived: Callable[[], int | None] | None = None
    ) -> None:
        """Sleep until a time (us), or earlier, at the time that `when_arrived` says when something has come."""
        assert self._task is not None
        if until_us is not None:
            self._task.resume_at(until_us)
        self._until_us, self._when_arrived = until_us, when_arrived
        try:
            await park(label)
        finally:
            self._when_arrived = None

    def arrived(self) -> None:
        """The queue has one more message, or the clock was set."""
        at_us = self._when_arrived() if self._when_arrived is not None else None
        if at_us is None or (self._until_us is not None and self._until_us <= at_us):
            return
        assert self._task is not None
        if self._until_us is not None:
            self.node.world.entry_died()
        self._until_us = at_us
        self._task.resume_at(at_us)
