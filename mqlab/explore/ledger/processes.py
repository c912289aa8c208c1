"""What became of the machines and processes of a world, and when."""

from __future__ import annotations

from mqlab.trace.bus import Row
from mqlab.trace.record import FIRST_FIELD, NODE, TS_US


class ProcessBook:
    """When each process was last started, frozen or stopped, and when its machine last lost its power, in us."""

    def __init__(self) -> None:
        self.power_lost_us: dict[str, int] = {}
        self.started_us: dict[str, int] = {}
        self.started_again: dict[str, None] = {}
        self.frozen_us: dict[str, int] = {}
        self.shut_down_us: dict[str, int] = {}
        """Of brokers, which then write all that they know."""
        self.stopped_hard_us: dict[str, int] = {}
        """When it ended without having been shut down."""
        self.handlers = {
            "BrokerShutDown": self._broker_shut_down,
            "NodeCrashed": self._stopped,
            "PowerLost": self._power_lost,
            "NodeStarted": self._node_started,
            "NodeFrozen": self._node_frozen,
        }

    def _power_lost(self, row: Row) -> None:
        self.power_lost_us[row[FIRST_FIELD]] = row[TS_US]
        self._stopped(row)

    def _broker_shut_down(self, row: Row) -> None:
        self.shut_down_us[row[NODE]] = row[TS_US]

    def _stopped(self, row: Row) -> None:
        """A process that was shut down in this life ends, too; that is no harm."""
        target = row[FIRST_FIELD]
        if self.shut_down_us.get(target, -1) < self.started_us.get(target, 0):
            self.stopped_hard_us[target] = row[TS_US]

    def _node_started(self, row: Row) -> None:
        target = row[FIRST_FIELD]
        if target in self.started_us:
            self.started_again[target] = None
        self.started_us[target] = row[TS_US]

    def _node_frozen(self, row: Row) -> None:
        self.frozen_us[row[FIRST_FIELD]] = row[TS_US]
