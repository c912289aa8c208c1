"""Space and time: the newest events before the cursor, with the machines as lanes and the frames as arrows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar

from mqlab.trace.bus import Row
from mqlab.trace.record import Record
from mqlab.views.diagram import SpaceTimeDiagram
from mqlab.views.diagram_reading import RECEIVED, SENT, SHOWN_AS_DOTS, Asked, Reading, asked_by
from mqlab_widgets.boards.board import Board


class SpaceTimeBoard(Board):
    """What led to this moment: the last `rows` events that a diagram shows. For more, inherit and set `rows`."""

    title: ClassVar[str] = "Space and time"
    rows: ClassVar[int] = 24

    def begin(self) -> None:
        """Nothing has happened."""
        self.recent: deque[tuple[Row, str]] = deque(maxlen=self.rows)
        """Events, and beside an answer the name of what was asked."""
        self.asked: dict[Asked, str] = {}
        self.roles: dict[str, str] = {}

    def handlers(self) -> dict[str, Callable[[Record], None]]:
        """Everything that a diagram draws."""
        dots = dict.fromkeys(SHOWN_AS_DOTS, self._note)
        return {**dots, **dict.fromkeys(sorted(SENT | RECEIVED), self._frame), **super().handlers()}

    def _note(self, record: Record) -> None:
        self.recent.append((record.row, ""))
        if record.kind == "ConnectionBroken":
            self.asked = {key: name for key, name in self.asked.items() if key[1] != record.connection}

    def _frame(self, record: Record) -> None:
        key = asked_by(record)
        if record.kind == "RequestSent" and not record.oneway:
            self.asked[key] = record.request_name
        name = self.asked.pop(key, "") if record.kind == "ResponseReceived" else self.asked.get(key, "")
        self.recent.append((record.row, name))

    def on_client_started(self, record: Record) -> None:
        """Consumers stand right, producers left."""
        if self.roles.get(record.node) != "consumer":
            self.roles[record.node] = record.role

    def on_broker_started(self, record: Record) -> None:
        """Brokers stand between them."""
        self.roles[record.node] = "broker"

    def diagram(self) -> SpaceTimeDiagram:
        """The diagram, which can also be saved."""
        records = [(Record(row), name) for row, name in self.recent]
        names = {asked_by(record): name for record, name in records if name}
        return SpaceTimeDiagram.of_records((record for record, _ in records), Reading(names=names, roles=self.roles))

    def html(self) -> str:
        """The diagram as SVG, over the whole width."""
        return f'<div class="mq-wide">{self.diagram().svg()}</div>'

    def text(self) -> list[str]:
        """One line for each event."""
        return str(self.diagram()).splitlines()
