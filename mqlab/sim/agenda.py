"""The agenda: what a world will play, and when.

It has two parts: a heap of what is due later, and a queue of what is due now. When the queue is empty, the clock moves
and all that is due at the new instant goes from the heap to the queue; what is added during the instant comes behind.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush

from mqlab.sim.target import Target
from mqlab.sim.timer import Lane
from mqlab.trace.bus import NO_CAUSE, Cause, Moment

Ready = tuple[Target, int, Cause]
"""What is due now: (target, token, cause)."""

Entry = tuple[int, int, Target, int, Cause]
"""What is due later: (due_us, seq, target, token, cause); a lane stands for its first time-out."""


class Agenda(Moment):
    """The clock of a world, and what is due now and later.

    `now_us` is the time in integer microseconds since the world began.
    """

    def __init__(self) -> None:
        self.now_us = 0
        self.cause = NO_CAUSE
        self.ready: deque[Ready] = deque()
        self.heap: list[Entry] = []
        self.seq = 0
        self._dead_entries = 0
        self.lanes: dict[int, Lane] = {}

    def push(self, due_us: int, target: Target, token: int) -> None:
        """Put `target` on the agenda; a time that is not in the future means now."""
        self.push_caused(due_us, target, token, self.cause)

    def push_caused(self, due_us: int, target: Target, token: int, cause: Cause) -> None:
        """The same for what an earlier event has caused, and not the present one."""
        if due_us <= self.now_us:
            self.ready.append((target, token, cause))
        else:
            self.seq = seq = self.seq + 1
            heappush(self.heap, (due_us, seq, target, token, cause))

    def push_in_order(self, due_us: int, seq: int, lane: Lane) -> None:
        """Put a lane on the agenda at the place in the order of arrival that its first time-out got earlier."""
        heappush(self.heap, (due_us, seq, lane, lane.token, self.cause))

    def entry_died(self) -> None:
        """Count an entry that was cancelled; when half of the heap is dead, it is thrown out."""
        self._dead_entries += 1
        if self._dead_entries > 1_000 and self._dead_entries * 2 > len(self.heap):
            self.heap[:] = [entry for entry in self.heap if entry[3] == entry[2].token]
            heapify(self.heap)
            self._dead_entries = 0

    def lane(self, duration_us: int) -> Lane:
        """The lane of all time-outs of this duration."""
        lane = self.lanes.get(duration_us)
        if lane is None:
            lane = self.lanes[duration_us] = Lane(self, duration_us)
        return lane

    def later(self) -> list[tuple[int, int, Target, int, Cause]]:
        """What is due later, with each time-out that still waits, in no particular order."""
        timers = [timer for lane in self.lanes.values() for timer in lane.waiting()]
        heap = self.heap
        own = [(due, seq, t, token, cause) for due, seq, t, token, cause in heap if not isinstance(t, Lane)]
        return [*own, *((timer.due_us, timer.seq, timer, timer.token, timer.cause) for timer in timers)]

    def next_due_us(self) -> int | None:
        """When something is due next: until then nothing will happen by itself. None if nothing is due at all."""
        if self.ready:
            return self.now_us
        heap = self.heap
        while heap:
            due, seq, target, token, _ = entry = heap[0]
            if token == target.token:
                if not isinstance(target, Lane):
                    return due
                heappop(heap)
                if target.settle(seq):
                    heappush(heap, entry)
                    return due
            else:
                heappop(heap)
        return None

    def make_ready(self) -> None:
        """Put all that is due by now into `ready`, in the order in which it came."""
        heap = self.heap
        while heap and heap[0][0] <= self.now_us:
            _, seq, target, token, cause = heappop(heap)
            if token != target.token:
                continue
            if type(target) is Lane:
                if not target.settle(seq):
                    continue
                target = target.take()
                token, cause = target.token, target.cause
            self.ready.append((target, token, cause))
