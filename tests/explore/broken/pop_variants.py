"""Broken variants of Pop and of the timer, which its check points and acknowledgements wait in."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from mqlab.broker.pop import pop_revive_service
from mqlab.broker.pop.consumer_order_info_manager import ConsumerOrderInfoManager
from mqlab.broker.pop.kv.pop_consumer_reviver import PopConsumerReviver
from mqlab.broker.pop.pop_buffer_merge_service import PopBufferMergeService
from mqlab.broker.pop.pop_revive_service import PopReviveService
from mqlab.broker.pop.queue_lock_manager import QueueLockManager
from mqlab.broker.pop.revive_message import ReviveMessage
from mqlab.broker.pop.revive_rounds import ReviveRounds
from mqlab.broker.pop.revive_scan import ReviveScan
from mqlab.protocol.hashing import java_string_hash
from mqlab.protocol.pop_check_point import CK_TAG, PopCheckPoint
from mqlab.store.timer.timer_message_store import TimerMessageStore


def reviver_overlooks_acks(patch: pytest.MonkeyPatch) -> None:
    """The reviver overlooks one acknowledgement in three."""
    take, number = ReviveScan._take_ack, count(1)

    def take_most(self: ReviveScan, ack: Any, message: Any) -> None:
        if next(number) % 3:
            take(self, ack, message)

    patch.setattr(ReviveScan, "_take_ack", take_most)


def buffer_overlooks_acks(patch: pytest.MonkeyPatch) -> None:
    """The merge buffer says that it has noted an acknowledgement, and does not set its bit, one time in three."""
    mark, number = PopBufferMergeService._mark, count(1)

    def mark_most(self: PopBufferMergeService, wrapper: Any, offset: int) -> None:
        bits = wrapper.bits
        mark(self, wrapper, offset)
        if next(number) % 3 == 0:
            wrapper.bits = bits

    patch.setattr(PopBufferMergeService, "_mark", mark_most)


def reviver_loses_messages(patch: pytest.MonkeyPatch) -> None:
    """The reviver is done with a message without having brought it back, one time in two."""
    revive, number = ReviveMessage.revive, count(1)

    async def revive_some(self: ReviveMessage, ck: PopCheckPoint, offset: int) -> str:
        return await revive(self, ck, offset) if next(number) % 2 else ""

    patch.setattr(ReviveMessage, "revive", revive_some)


def records_are_lost(patch: pytest.MonkeyPatch) -> None:
    """The key-value engine forgets a message whose time is over instead of bringing it back."""
    patch.setattr(PopConsumerReviver, "revive", lambda self, record: True)


def times_are_five_seconds_short(patch: pytest.MonkeyPatch) -> None:
    """Check points are due five seconds too early."""
    early = property(lambda self: self.pop_time + self.invisible_time - 5_000)
    patch.setattr(PopCheckPoint, "revive_time", early)


def another_message_comes_back(patch: pytest.MonkeyPatch) -> None:
    """The reviver brings back the message in front of the one that the check point names."""
    get = ReviveMessage.get_biz_message

    def get_another(self: ReviveMessage, ck: PopCheckPoint, offset: int) -> Any:
        return get(self, ck, max(0, offset - 1))

    patch.setattr(ReviveMessage, "get_biz_message", get_another)


def revive_offset_stands_still(patch: pytest.MonkeyPatch) -> None:
    """A reviver never notes how far it is."""
    patch.setattr(PopReviveService, "_commit", lambda self, offset: None)


def reviver_sleeps_over_acks(patch: pytest.MonkeyPatch) -> None:
    """A reviver that has nothing but acknowledgements to read lets them lie."""
    has_work, ck_code = ReviveRounds.has_work, java_string_hash(CK_TAG)

    def has_check_points(self: ReviveRounds) -> bool:
        queue = self._broker.message_store.find_consume_queue(self.topic, self.revive_qid)
        units = queue.iterate_from(self._looked_to, 10_000) if queue is not None else None
        return has_work(self) and any(unit.tags_code == ck_code for unit in units or ())

    patch.setattr(ReviveRounds, "has_work", has_check_points)


def noted_acks_are_stored_too(patch: pytest.MonkeyPatch) -> None:
    """The merge buffer notes acknowledgements and says that it did not, so that the store gets them as well."""
    add_ak = PopBufferMergeService.add_ak

    def add_and_deny(self: PopBufferMergeService, revive_qid: int, ack: Any) -> bool:
        add_ak(self, revive_qid, ack)
        return False

    patch.setattr(PopBufferMergeService, "add_ak", add_and_deny)


def reviver_does_not_wait_for_acks(patch: pytest.MonkeyPatch) -> None:
    """A check point is dealt with as soon as it is read."""
    patch.setattr(pop_revive_service, "ACKS_ARE_READ_MS", -10_000)


def nothing_blocks(patch: pytest.MonkeyPatch) -> None:
    """A queue from which was popped in order is free at once."""
    patch.setattr(ConsumerOrderInfoManager, "check_block", lambda self, *arguments: False)


def anybody_gets_the_lock(patch: pytest.MonkeyPatch) -> None:
    """Two pops of a group may be at one queue together."""
    patch.setattr(QueueLockManager, "try_lock_key", lambda self, key: True)


def timer_is_two_seconds_early(patch: pytest.MonkeyPatch) -> None:
    """The timer takes it to be two seconds later than it is."""
    right = TimerMessageStore.curr_write_time_ms.fget
    assert right is not None
    patch.setattr(TimerMessageStore, "curr_write_time_ms", property(lambda self: right(self) + 2_000))


def slots_lose_their_oldest(patch: pytest.MonkeyPatch) -> None:
    """Of each slot the oldest record is not found."""
    chain = TimerMessageStore.chain
    patch.setattr(TimerMessageStore, "chain", lambda self, slot: chain(self, slot)[:-1])


def slots_are_read_twice(patch: pytest.MonkeyPatch) -> None:
    """One slot in five is read once more."""
    dequeue, number = TimerMessageStore._dequeue_slot, count(1)

    async def dequeue_again(self: TimerMessageStore, slot: Any) -> None:
        await dequeue(self, slot)
        if next(number) % 5 == 0:
            self.curr_read_time_ms -= self.precision_ms

    patch.setattr(TimerMessageStore, "_dequeue_slot", dequeue_again)
