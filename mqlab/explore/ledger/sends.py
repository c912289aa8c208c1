"""What producers tried to send, and what they were told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.explore.places import Place
from mqlab.trace.bus import Row
from mqlab.trace.record import FIRST_FIELD, TS_US

if TYPE_CHECKING:
    from mqlab.explore.ledger.names import Names


class SendBook:
    """Which messages were handed to remoting, and which of them were acknowledged."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.attempted: dict[str, int] = {}
        """The ids of all messages that a producer handed to remoting, with the time of the first attempt in us."""
        self.acknowledged: dict[str, Row] = {}
        """The ids of all messages that were answered SEND_OK, with the answer; of batches see below."""
        self.acknowledged_places: dict[Place, Row] = {}
        """Where the messages of batches are that were answered SEND_OK. All of a batch are stored with one id."""
        self.handlers = {"SendAttempted": self._attempted, "SendSucceeded": self._succeeded}

    @property
    def newest_us(self) -> int:
        """When the newest message was first handed to remoting; 0 if none ever was."""
        return next(reversed(self.attempted.values()), 0)

    def _attempted(self, row: Row) -> None:
        for msg_id in row[FIRST_FIELD + 3].split(","):
            self.attempted.setdefault(msg_id, row[TS_US])

    def _succeeded(self, row: Row) -> None:
        topic, broker_name, queue_id, queue_offset, msg_ids, status = row[FIRST_FIELD:]
        if status != "SEND_OK":
            return
        ids = msg_ids.split(",")
        if len(ids) == 1 and msg_ids in self.attempted:
            self.acknowledged[msg_ids] = row
            return
        broker = self._names.broker_of(broker_name)
        for offset in range(queue_offset, queue_offset + len(ids)):
            self.acknowledged_places[Place(broker, topic, queue_id, offset)] = row
