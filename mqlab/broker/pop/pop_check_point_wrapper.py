"""A check point in the merge buffer, with what was acknowledged of it and what of that lies in the store."""

from __future__ import annotations

from collections import deque

from mqlab.protocol.pop_check_point import PopCheckPoint

NOT_STORED = -1
STORING = 2**63 - 1


class PopCheckPointWrapper:
    """One batch in the buffer (PopBufferMergeService.PopCheckPointWrapper).

    Bit i of `bits` says that message i was acknowledged in memory, the same bit of `to_store_bits` that an ack of it
    was written. `revive_queue_offset` is -1 while the check point is not stored and the greatest long while it is
    being stored. With `just_offset` the check point was written when the messages were handed out, and is here for the
    group's progress: `next_begin_offset`, which is committed in the order of the pops. `number` counts what came into
    the buffer, which is the order in which a scan looks at it; `batch` is how events name it: group, topic, queue,
    start offset, pop time.
    """

    __slots__ = ("batch", "bits", "ck", "ck_stored", "just_offset", "lock_key", "merge_key", "next_begin_offset",
                 "number", "revive_queue_id", "revive_queue_offset", "to_store_bits")  # fmt: skip

    def __init__(
        self,
        ck: PopCheckPoint,
        revive_queue_id: int,
        revive_queue_offset: int,
        next_begin_offset: int,
        number: int,
        *,
        just_offset: bool = False,
    ) -> None:
        self.ck = ck
        self.revive_queue_id = revive_queue_id
        self.revive_queue_offset = revive_queue_offset
        self.next_begin_offset = next_begin_offset
        self.number = number
        self.batch = (f"{ck.group}", f"{ck.topic}", ck.queue_id, ck.start_offset, ck.pop_time)
        self.just_offset = just_offset
        self.ck_stored = False
        self.bits = 0
        self.to_store_bits = 0
        self.lock_key = f"{ck.topic}@{ck.group}@{ck.queue_id}"
        self.merge_key = ck.merge_key

    @property
    def is_done(self) -> bool:
        """Is every message acknowledged in memory? (isCkDone)"""
        every = (1 << self.ck.num) - 1
        return self.bits & every == every

    @property
    def is_done_for_finish(self) -> bool:
        """Does the store have every acknowledgement that the memory has? (isCkDoneForFinish)"""
        return (self.bits ^ self.to_store_bits) & ((1 << self.ck.num) - 1) == 0

    @property
    def is_settled(self) -> bool:
        """Is it of no more use in the buffer, so that the group's progress may go past it?"""
        if self.ck_stored and (self.just_offset or self.is_done_for_finish):
            return True
        return self.is_done

    def unstored_acks(self) -> list[int]:
        """The places of the acknowledgements that only the memory has."""
        return [place for place in range(self.ck.num) if (self.bits & ~self.to_store_bits) >> place & 1]

    def __repr__(self) -> str:
        return (
            f"CkWrap{{rq={self.revive_queue_id}, rqo={self.revive_queue_offset}, ck={self.ck}, bits={self.bits}, "
            f"sBits={self.to_store_bits}, nbo={self.next_begin_offset}, cks={self.ck_stored}, jo={self.just_offset}}}"
        )


class QueueWithTime:
    """The batches of one queue that a group was given, in the order of the pops; `time_ms` is when the last was popped.

    Java: PopBufferMergeService.QueueWithTime.
    """

    __slots__ = ("queue", "time_ms")

    def __init__(self) -> None:
        self.queue: deque[PopCheckPointWrapper] = deque()
        self.time_ms = 0

    def offer(self, wrapper: PopCheckPointWrapper) -> None:
        """Put a batch behind the others."""
        self.time_ms = wrapper.ck.pop_time
        self.queue.append(wrapper)
