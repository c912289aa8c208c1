"""The timing wheel: for each second of two weeks, where the records of the messages that are due then lie.

    0  time      i64, in ticks: the moment that the slot stands for, divided by the precision
    8  firstPos  i64: the oldest record of the slot in the timer log
   16  lastPos   i64: the newest one; each record knows the one before it
   24  num       i32: messages in the slot, those that recall one counted down
   28  magic     i32: unused

A slot is used again two weeks later, so it counts only if the time in it is the one that was asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from mqlab.sim.disk import Disk
from mqlab.store.errors import StoreError

SLOT_SIZE = 32
IGNORE = -2
"""Given to `revise_slot` for a position that shall stay as it is."""

NEVER = 1 << 62
"""A time that no slot stands for."""

_SLOT = struct.Struct(">qqqii")
_STRETCH_BYTES = 1 << 16


class Slot(NamedTuple):
    """One slot of the wheel (org.apache.rocketmq.store.timer.Slot); `time_ms` -1 for one that nothing is in."""

    time_ms: int
    first_pos: int
    last_pos: int
    num: int = 0
    magic: int = 0


NO_SLOT = Slot(-1, -1, -1)


class TimerWheel:
    """The slots, in memory, and the file that they are copied to (org.apache.rocketmq.store.timer.TimerWheel).

    Differs from RocketMQ: what was never used takes no memory, and a flush writes the slots that have changed without
    looking at the 38,707,200 bytes of the others. The times of the slots are kept in order, so that nobody has to walk
    from one empty slot to the next.
    """

    def __init__(self, disk: Disk, path: str, slots_total: int, precision_ms: int) -> None:
        self.slots_total = slots_total
        self.precision_ms = precision_ms
        self.length = slots_total * 2 * SLOT_SIZE
        self._disk = disk
        self._file = disk.open(path, self.length)
        if self._file.size == 0:
            self._file.truncate(self.length)
        if self._file.size != self.length:
            raise StoreError(
                path,
                f"the timer wheel has {self._file.size} bytes, it must have {self.length}",
                "restore the file, or remove it: the wheel is made again from the timer log",
            )
        self._slots: dict[int, tuple[int, int, int, int, int]] = {}
        self._changed: set[int] = set()
        self._load()
        self._times = [slot[0] for slot in self._slots.values()]
        heapify(self._times)
        self._passed = -1

    def _load(self) -> None:
        for start in range(0, self._file.data_end(), _STRETCH_BYTES):
            data = self._file.read(start, _STRETCH_BYTES)
            if data.count(0) == len(data):
                continue
            for index, slot in enumerate(_SLOT.iter_unpack(data), start // SLOT_SIZE):
                if any(slot):
                    self._slots[index] = slot

    # -- slots ------------------------------------------------------------------------------------------------------

    def index_of(self, time_ms: int) -> int:
        """The place of a moment's slot in the file."""
        return time_ms // self.precision_ms % (self.slots_total * 2)

    def get_slot(self, time_ms: int) -> Slot:
        """What lies in the slot of a moment; NO_SLOT when nothing does."""
        slot = self._slots.get(self.index_of(time_ms))
        if slot is None or slot[0] != time_ms // self.precision_ms:
            return NO_SLOT
        return Slot(slot[0] * self.precision_ms, *slot[1:])

    def put_slot(self, time_ms: int, first_pos: int, last_pos: int, num: int, magic: int) -> None:
        """Set all fields of a moment's slot."""
        index, ticks = self.index_of(time_ms), time_ms // self.precision_ms
        known = self._slots.get(index)
        self._slots[index] = (ticks, first_pos, last_pos, num, magic)
        self._changed.add(index)
        if known is None or known[0] != ticks or ticks <= self._passed:
            heappush(self._times, ticks)
            self._passed = min(self._passed, ticks - 1)

    def revise_slot(self, time_ms: int, first_pos: int, last_pos: int) -> None:
        """Set the positions of a moment's slot as recovery finds them; IGNORE leaves one as it is, or takes the last
        for the first. The number of messages is not known then and stays what the bytes say.
        """
        known = self._slots.get(self.index_of(time_ms))
        num, magic = (known[3], known[4]) if known is not None else (0, 0)
        if known is None or known[0] != time_ms // self.precision_ms:
            self.put_slot(time_ms, last_pos if first_pos == IGNORE else first_pos, last_pos, num, magic)
            return
        first = known[1] if first_pos == IGNORE else first_pos
        last = known[2] if last_pos == IGNORE else last_pos
        self.put_slot(time_ms, first, last, num, magic)

    # -- looking over all of them -----------------------------------------------------------------------------------

    def next_time(self, from_ms: int) -> int:
        """The moment of the first slot at or behind `from_ms` that is in use; NEVER without one."""
        start = from_ms // self.precision_ms
        if start <= self._passed:
            # The wheel is read again from an earlier moment.
            self._times = [slot[0] for slot in self._slots.values()]
            heapify(self._times)
        times = self._times
        while times and times[0] < start:
            heappop(times)
        self._passed = start - 1
        return times[0] * self.precision_ms if times else NEVER

    def waiting_slots(self, from_ms: int) -> list[Slot]:
        """The slots in use that have not been read when reading stands at `from_ms`, by their moment."""
        return sorted(Slot(slot[0] * self.precision_ms, *slot[1:]) for slot in self._waiting(from_ms))

    def _waiting(self, from_ms: int) -> Iterator[tuple[int, int, int, int, int]]:
        """The same in no order, with the moment in ticks."""
        start = from_ms // self.precision_ms
        end = start + self.slots_total * 2
        return (slot for slot in self._slots.values() if start <= slot[0] < end)

    def get_num(self, time_ms: int) -> int:
        """How many messages wait in the slot of a moment."""
        slot = self._slots.get(self.index_of(time_ms))
        return slot[3] if slot is not None and slot[0] == time_ms // self.precision_ms else 0

    def get_all_num(self, from_ms: int) -> int:
        """How many messages wait in all slots from a moment on."""
        return sum(slot[3] for slot in self._waiting(from_ms))

    def check_phy_pos(self, from_ms: int, max_offset: int) -> int:
        """Where the oldest record lies of those slots that know a record behind `max_offset`; NEVER when none does."""
        beyond = [first_pos for _, first_pos, last_pos, _, _ in self._waiting(from_ms) if last_pos > max_offset]
        return min(beyond, default=NEVER)

    # -- the file ---------------------------------------------------------------------------------------------------

    @property
    def is_changed(self) -> bool:
        """Does the file lack anything?"""
        return bool(self._changed)

    def flush(self) -> None:
        """Copy the changed slots into the file and make it safe; DiskFull when it has no room for them."""
        for index in sorted(self._changed):
            self._file.write(index * SLOT_SIZE, _SLOT.pack(*self._slots[index]))
            self._changed.discard(index)
        self._file.flush()

    def __repr__(self) -> str:
        return f"<TimerWheel of {self.slots_total * 2} slots: {len(self._slots)} were ever used>"
