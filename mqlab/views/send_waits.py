"""Send waits: how long each message waited before the send threads of a broker, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable

from mqlab.protocol.codes import RequestCode
from mqlab.trace.record import Record
from mqlab.views.colours import BLUE, ORANGE, VERMILION
from mqlab.views.time_chart import Limit, Point, Series, TimeChart

SEND_CODES = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)


class SendWaits:
    """For each send request of a broker: when it came (s), and after how many ms it was stored or answered "busy".

    A message that is stored waits for a thread and then for the thread's work; a refused one only waits. What was
    stored when its sender had given up already is `too_late`: work done for nobody.
    """

    def __init__(self, stored: list[Point], too_late: list[Point], refused: list[Point], limit_ms: int | None) -> None:
        self.stored = stored
        self.too_late = too_late
        self.refused = refused
        self.limit_ms = limit_ms

    @classmethod
    def of(cls, history: Iterable[Record], broker: str, *, limit_ms: int | None = 200) -> SendWaits:
        """Read off the events of a broker; `limit_ms` is its wait_time_mills_in_send_queue, None without a limit."""
        came: dict[tuple[str, int], int] = {}
        stored: list[tuple[Point, str]] = []
        refused: list[Point] = []
        told: set[str] = set()
        for record in history:
            if record.kind == "SendSucceeded":
                told.add(record.msg_id)
            if record.node != broker:
                continue
            kind = record.kind
            if kind == "RequestReceived" and record.request_code in SEND_CODES:
                came[record.remote, record.opaque] = record.ts_us
            elif kind in ("MessageSendReceived", "RequestTimedOutInQueue"):
                at_us = came.pop((record.remote, record.opaque), None)
                if at_us is None:
                    continue
                point = (at_us / 1e6, (record.ts_us - at_us) / 1_000)
                if kind == "MessageSendReceived":
                    stored.append((point, record.unique_key))
                else:
                    refused.append(point)
        in_time = [point for point, key in stored if key in told]
        too_late = [point for point, key in stored if key not in told]
        return cls(in_time, too_late, refused, limit_ms)

    @property
    def longest_ms(self) -> float:
        """The longest wait of all."""
        return max((wait for _, wait in [*self.stored, *self.too_late, *self.refused]), default=0)

    def chart(self, title: str = "How long messages wait before the send threads") -> TimeChart:
        """One mark for each message at the time when it came."""
        stored = Series("stored", self.stored, BLUE, "dot")
        refused = Series("answered: busy", self.refused, VERMILION, "cross")
        too_late = Series("stored, but its sender had given up", self.too_late, ORANGE, "dot")
        limits = [] if self.limit_ms is None else [Limit(f"limit {self.limit_ms} ms", self.limit_ms)]
        label = "ms from its arrival until it is stored or refused"
        return TimeChart(title, label, [stored, too_late, refused], limits, "time of arrival, s")
