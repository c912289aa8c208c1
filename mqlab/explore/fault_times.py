"""When which fault was at work in a world: where none was, what takes long has no excuse."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable

from mqlab.sim import ROOM_BYTES
from mqlab.trace.bus import Row
from mqlab.trace.record import FIRST_FIELD, KIND, NODE, TS_US


class FaultTimes:
    """Reads the events of a world and knows in which stretches of time no fault held, nor began or ended."""

    def __init__(self) -> None:
        self._changes_us: list[int] = []
        self._holding: list[int] = []
        """How many faults held after each change."""
        self._held: dict[tuple[str, ...], None] = {}
        self.handlers: dict[str, Callable[[Row], None]] = {
            "NodeCrashed": self._ended,
            "PowerLost": self._ended,
            "BrokerShutDown": lambda row: self._begin("down", row[NODE], row),
            "NodeStarted": lambda row: self._end("down", row[FIRST_FIELD], row),
            "NodeFrozen": lambda row: self._begin("frozen", row[FIRST_FIELD], row),
            "NodeThawed": lambda row: self._end("frozen", row[FIRST_FIELD], row),
            "LinkCut": lambda row: self._begin("cut", f"{row[FIRST_FIELD]}>{row[FIRST_FIELD + 1]}", row),
            "LinkHealed": lambda row: self._end("cut", f"{row[FIRST_FIELD]}>{row[FIRST_FIELD + 1]}", row),
            "LinkDelayed": self._delayed,
            "DiskHung": lambda row: self._begin("hung", row[FIRST_FIELD], row),
            "DiskUnhung": lambda row: self._end("hung", row[FIRST_FIELD], row),
            "DiskSlowed": lambda row: self._begin("slow", row[FIRST_FIELD], row),
            "DiskQuick": lambda row: self._end("slow", row[FIRST_FIELD], row),
            "ClockDrifted": self._drifted,
            "ActionTaken": self._acted,
        }

    def __call__(self, row: Row) -> None:
        handler = self.handlers.get(row[KIND])
        if handler is not None:
            handler(row)

    def none_between(self, begin_us: int, end_us: int) -> bool:
        """Was nothing wrong in this stretch of time, both ends included?"""
        after_begin = bisect_right(self._changes_us, begin_us - 1)
        if after_begin < len(self._changes_us) and self._changes_us[after_begin] <= end_us:
            return False
        return after_begin == 0 or self._holding[after_begin - 1] == 0

    def over_since_us(self) -> int | None:
        """Since when nothing is wrong any more; None while a fault holds."""
        if self._held:
            return None
        return self._changes_us[-1] if self._changes_us else 0

    def _begin(self, what: str, where: str, row: Row) -> None:
        self._held[what, where] = None
        self._note(row)

    def _end(self, what: str, where: str, row: Row) -> None:
        known = self._held.pop((what, where), 0)
        # The first start of a process is no fault that ends.
        if known is None or what != "down":
            self._note(row)

    def _ended(self, row: Row) -> None:
        # What hung when it ended will never be told to go on: the next life does not hang.
        self._held.pop(("frozen", row[FIRST_FIELD]), None)
        self._begin("down", row[FIRST_FIELD], row)

    def _note(self, row: Row) -> None:
        self._changes_us.append(row[TS_US])
        self._holding.append(len(self._held))

    def _delayed(self, row: Row) -> None:
        source, target, extra_us = row[FIRST_FIELD:]
        (self._begin if extra_us else self._end)("delayed", f"{source}>{target}", row)

    def _drifted(self, row: Row) -> None:
        target, ppm, _ = row[FIRST_FIELD:]
        (self._begin if ppm else self._end)("drifting", target, row)

    def _acted(self, row: Row) -> None:
        verb, text = row[FIRST_FIELD:]
        if verb == "fill_disk":
            arguments = json.loads(text)
            is_full = arguments.get("free_bytes", 0) < ROOM_BYTES
            (self._begin if is_full else self._end)("full", arguments["node"], row)
        elif verb == "disconnect":
            self._note(row)
