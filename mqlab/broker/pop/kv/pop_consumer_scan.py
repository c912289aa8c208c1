"""The scan that looks every half second which messages were not acknowledged in time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mqlab.broker.pop.kv.pop_consumer_record import PopConsumerRecord
from mqlab.sim import DiskFull, ServiceThread
from mqlab.trace.events.pop import CheckPointPutAgain, MessageNotRevived

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pop.kv.pop_consumer_lock_service import PopConsumerLockService
    from mqlab.broker.pop.kv.pop_consumer_records import PopConsumerRecords
    from mqlab.broker.pop.kv.pop_consumer_reviver import PopConsumerReviver

PERIOD_MS = 500
LOOK_BACK_MS = 3_000
"""How far before the end of the last scan the next one begins."""
NOT_YET_MS = 50
"""A record is taken only this long behind its time."""
REWRITE_INTERVALS_S = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
CLEAN_LOCKS_MS = 60_000


class PopConsumerScan(ServiceThread):
    """Takes the records whose time is over, and lets their messages be put into the retry topic.

    Java: org.apache.rocketmq.broker.pop.PopConsumerService.run and .revive. What cannot be put gets a new record, which
    comes due after 10 s, then 30 s and so on up to 2 h more, and is given up after 16 such attempts. A scan begins 3 s
    before the end of the last one, so when the clock is set back nothing is found until it has come there again.

    Differs from RocketMQ: without records the thread sleeps.
    """

    def __init__(
        self,
        broker: BrokerParts,
        records: PopConsumerRecords,
        locks: PopConsumerLockService,
        reviver: PopConsumerReviver,
    ) -> None:
        super().__init__(broker.node, "PopConsumerService", PERIOD_MS)
        self._config = broker.broker_config
        self._origin_of_broker_us = broker.start_us
        self._records = records
        self._locks = locks
        self._reviver = reviver
        self._scanned_ms = LOOK_BACK_MS
        self._cleaned_locks_ms = self.node.now_ms()
        self._slept = False

    def start(self) -> None:
        """Begin; the grid of turns is that of the broker's other threads."""
        super().start()
        self._origin_us = self._origin_of_broker_us

    def has_work(self) -> bool:
        """Is there any record?"""
        self._slept = not len(self._records.store)
        return not self._slept

    async def run(self) -> None:
        """One scan after the other at once while there is much to do, else one at each turn."""
        while not self.stopped:
            found = await self.revive_expired()
            self._clean_locks()
            if found < self._config.pop_revive_max_return_size_per_read:
                await self.wait_for_running()

    def _clean_locks(self) -> None:
        now_ms = self.node.now_ms()
        if self._cleaned_locks_ms + CLEAN_LOCKS_MS < now_ms:
            self._locks.remove_timeout()
            self._cleaned_locks_ms = now_ms

    async def revive_expired(self) -> int:
        """One scan; how many records it found. What a full disk forbids is done again at the next turn."""
        upper_ms = self.node.now_ms() - NOT_YET_MS
        if self._slept:
            # A thread that always turns would have looked half a second ago.
            self._scanned_ms, self._slept = upper_ms - PERIOD_MS, False
        most = self._config.pop_revive_max_return_size_per_read
        found = self._records.store.scan_expired_records(self._scanned_ms - LOOK_BACK_MS, upper_ms, most)
        if found:
            await self.node.preempt("pop-consumer.scanned")
        rewritten = []
        for record in found:
            revived = self._reviver.revive(record)
            if not (revived if isinstance(revived, bool) else await revived):
                again = self._again(record)
                rewritten += [again] if again is not None else []
        try:
            for safe in (self._records.write_to_store(rewritten), self._records.delete_all(found, "revived")):
                if safe is not None:
                    await safe
        except DiskFull:
            return 0
        self._scanned_ms = found[-1].visibility_timeout if found else upper_ms
        return len(found)

    def _again(self, record: PopConsumerRecord) -> PopConsumerRecord | None:
        """The record for the next attempt; None when that was the last one."""
        hooks = self.node.hooks
        attempts = record.attempt_times
        if attempts >= self._config.pop_revive_max_attempt_times:
            if hooks.on:
                place = (record.group, record.topic, record.queue_id, record.offset)
                hooks.emit(MessageNotRevived(*place, record.pop_time, f"given up after {attempts} attempts"))
            return None
        interval_s = REWRITE_INTERVALS_S[min(attempts, len(REWRITE_INTERVALS_S) - 1)]
        again = replace(
            record,
            pop_time=self.node.now_ms(),
            invisible_time=record.invisible_time + interval_s * 1_000,
            attempt_times=attempts + 1,
        )
        if hooks.on:
            hooks.emit(
                CheckPointPutAgain(
                    again.group,
                    again.topic,
                    again.queue_id,
                    again.offset,
                    again.pop_time,
                    again.invisible_time,
                    again.attempt_times,
                    "the store does not take it",
                )
            )
        return again
