"""What became of the machines and processes of a world, and when."""

from __future__ import annotations

from mqlab.trace.bus import Row
from mqlab.trace.record import FIRST_FIELD, TS_US


class ProcessBook:
    """When each process was last started or frozen, and when its machine last lost its power, in us."""

    def __init__(self) -> None:
        self.power_lost_us: dict[str, int] = {}
        self.started_us: dict[str, int] = {}
        self.frozen_us: dict[str, int] = {}
        self.handlers = {
            "PowerLost": self._power_lost,
            "NodeStarted": self._node_started,
            "NodeFrozen": self._node_frozen,
        }

    def _power_lost(self, row: Row) -> None:
        self.power_lost_us[row[FIRST_FIELD]] = row[TS_US]

    def _node_started(self, row: Row) -> None:
        self.started_us[row[FIRST_FIELD]] = row[TS_US]

    def _node_frozen(self, row: Row) -> None:
        self.frozen_us[row[FIRST_FIELD]] = row[TS_US]
