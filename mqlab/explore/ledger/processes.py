"""What became of the machines and processes of a world, and when."""

from __future__ import annotations

from mqlab.trace.bus import Row
from mqlab.trace.record import FIRST_FIELD, NODE, TS_US


class ProcessBook:
    """When each process was last started, frozen or stopped, and when its machine last lost its power, in us."""

    def __init__(self) -> None:
        self.power_lost_us: dict[str, int] = {}
        self.started_us: dict[str, int] = {}
        self.frozen_us: dict[str, int] = {}
        self.stopped_hard_us: dict[str, int] = {}
        """Without having written all that it knew, as a broker does that is shut down."""
        self._shut_down: dict[str, None] = {}
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
        self._shut_down[row[NODE]] = None

    def _stopped(self, row: Row) -> None:
        """A process that has shut down ends, too; that is no harm."""
        if row[FIRST_FIELD] not in self._shut_down:
            self.stopped_hard_us[row[FIRST_FIELD]] = row[TS_US]

    def _node_started(self, row: Row) -> None:
        self.started_us[row[FIRST_FIELD]] = row[TS_US]
        self._shut_down.pop(row[FIRST_FIELD], None)

    def _node_frozen(self, row: Row) -> None:
        self.frozen_us[row[FIRST_FIELD]] = row[TS_US]
