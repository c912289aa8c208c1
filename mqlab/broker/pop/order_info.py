"""What a queue's last ordered pop gave out, and until when that blocks the queue."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqlab.protocol.hashing import java_number_order
from mqlab.protocol.json_body import JsonBody, json_names

ILLEGAL = -1
NO_NEED_TO_COMMIT = -2


@json_names(
    invisible_time="i",
    offset_list="o",
    offset_next_visible_time="ot",
    offset_consumed_count="oc",
    last_consume_timestamp="l",
    commit_offset_bit="cm",
    attempt_id="a",
)
@dataclass
class OrderInfo(JsonBody):
    """The messages of one ordered pop (ConsumerOrderInfoManager.OrderInfo); all times in ms.

    `offset_list` has the first offset as it is and the others as distances from it, `commit_offset_bit` one bit for
    each message that was acknowledged. `offset_next_visible_time` holds the messages whose invisible time was changed,
    `offset_consumed_count` those that were given out before, and how often.
    """

    pop_time: int
    offset_list: list[int] = field(default_factory=list)
    last_consume_timestamp: int = 0
    commit_offset_bit: int = 0
    invisible_time: int | None = None
    attempt_id: str | None = None
    offset_next_visible_time: dict[int, int] | None = None
    offset_consumed_count: dict[int, int] | None = None

    @classmethod
    def of_pop(
        cls, attempt_id: str | None, pop_time: int, invisible_time: int, offsets: list[int], now_ms: int
    ) -> OrderInfo:
        """The info of messages that are given out now; `offsets` are where they lie in the queue."""
        first = offsets[0]
        relative = [first, *(offset - first for offset in offsets[1:])]
        return cls(pop_time, relative, now_ms, 0, invisible_time, attempt_id)

    def queue_offsets(self) -> list[int]:
        """Where the messages lie in the queue."""
        first = self.offset_list[0] if self.offset_list else 0
        return [offset + first if index else first for index, offset in enumerate(self.offset_list)]

    def not_acked(self) -> list[int]:
        """The offsets of the messages that were not acknowledged."""
        return [
            offset for index, offset in enumerate(self.queue_offsets()) if not self.commit_offset_bit & (1 << index)
        ]

    # -- blocking ---------------------------------------------------------------------------------------------------

    def need_block(self, attempt_id: str | None, current_invisible_time: int, now_ms: int) -> bool:
        """Does a message that nobody acknowledged keep the next pop from the queue?

        The attempt that got the messages is let through: its answer may have been lost on the way.
        """
        if not self.offset_list or (self.attempt_id is not None and self.attempt_id == attempt_id):
            return False
        if self.invisible_time is None or self.invisible_time <= 0:
            self.invisible_time = current_invisible_time
        return any(now_ms < self._visible_at(offset, self.invisible_time) for offset in self.not_acked())

    def lock_free_timestamp(self, now_ms: int) -> int | None:
        """When the block ends, as far as its first message says; now if nothing blocks; None if nobody can tell."""
        if not self.offset_list:
            return None
        for offset in self.not_acked():
            if self.invisible_time is None or self.invisible_time <= 0:
                return None
            visible_at = self._visible_at(offset, self.invisible_time)
            if now_ms < visible_at:
                return visible_at
        return now_ms

    def _visible_at(self, offset: int, invisible_time: int) -> int:
        changed = self.offset_next_visible_time
        at = changed.get(offset) if changed is not None else None
        return self.pop_time + invisible_time if at is None else at

    def update_offset_next_visible_time(self, offset: int, next_visible_time: int) -> None:
        """This message becomes visible at that time, whatever the pop said."""
        times = {**(self.offset_next_visible_time or {}), offset: next_visible_time}
        self.offset_next_visible_time = {each: times[each] for each in java_number_order(times)}

    # -- progress ---------------------------------------------------------------------------------------------------

    def commit_and_next(self, offset: int) -> int:
        """Note the acknowledgement of a message; returns the first offset that has none, ILLEGAL for a stranger."""
        offsets = self.queue_offsets()
        if offset not in offsets:
            return ILLEGAL
        self.commit_offset_bit |= 1 << offsets.index(offset)
        return next(iter(self.not_acked()), offsets[-1] + 1)

    def merge_offset_consumed_count(self, previous: OrderInfo) -> None:
        """Count how often each message was given out before; the same attempt again does not count."""
        counts = previous.offset_consumed_count or {}
        if previous.attempt_id is not None and previous.attempt_id == self.attempt_id:
            self.offset_consumed_count = counts
            return
        known = set(previous.queue_offsets())
        again = {offset: counts.get(offset, 0) + 1 for offset in self.queue_offsets() if offset in known}
        self.offset_consumed_count = {offset: again[offset] for offset in java_number_order(again)}
