"""Flow gauges: what a push consumer holds of each queue, beside the three limits that may stop it from pulling."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.protocol.message import MEBIBYTE
from mqlab.protocol.topics import RETRY_GROUP_TOPIC_PREFIX
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.svg import FAINT, INK, Drawing, box, line, picture, text

if TYPE_CHECKING:
    from mqlab.client import DefaultMQPushConsumer
    from mqlab.client.consumer.process_queue import ProcessQueue

FREE, HOLDS, TROUGH = PALETTE[0], PALETTE[5], "#e8e8e8"
_LEFT, _GAUGE, _GAP, _BAR, _ROW, _TOP = 12, 250, 30, 18, 84, 44


class Gauge(NamedTuple):
    """One of the three: the value that is compared with the limit; over the limit it refuses."""

    name: str
    unit: str
    value: float
    compared: int
    limit: int

    @property
    def told(self) -> str:
        """The value with its unit."""
        return f"{_shown(self.value)} {self.unit.removesuffix('s') if self.value == 1 else self.unit}"

    @property
    def is_over(self) -> bool:
        """Would this one alone refuse the next pull?"""
        return self.compared > self.limit


class FlowGauges(Drawing):
    """Three gauges for each queue that a consumer owns (its retry topic left out): count, size and span.

    The consumer asks them in this order before each pull; the first one over its limit holds the pull back for 50 ms.
    The size is compared in whole MiB.
    """

    def __init__(self, queues: dict[str, list[Gauge]]) -> None:
        self.queues = queues

    @classmethod
    def of(cls, consumer: DefaultMQPushConsumer) -> FlowGauges:
        """The gauges as they stand now."""
        queues = {
            f"{queue.topic}, queue {queue.queue_id} on {queue.broker_name}": _gauges(consumer, process_queue)
            for queue, process_queue in sorted(consumer.process_queues.items())
            if not queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        }
        return cls(queues)

    def holding(self, name: str) -> Gauge | None:
        """The gauge that refuses the next pull of a queue, or None."""
        return next((gauge for gauge in self.queues[name] if gauge.is_over), None)

    def __str__(self) -> str:
        lines = ["flow control: what is held, and the limits"]
        for name, gauges in self.queues.items():
            lines.append(f"  {name}: {self._verdict(name)}")
            lines += [f"    {g.name:<6}{_shown(g.value):>10} {g.unit}, limit {g.limit}" for g in gauges]
        if not self.queues:
            lines.append("  (this consumer owns no queue)")
        return "\n".join(lines)

    def _verdict(self, name: str) -> str:
        holding = self.holding(name)
        return "the next pull goes out" if holding is None else f"the next pull is refused by the {holding.name}"

    def svg(self) -> str:
        """The picture as SVG text."""
        body: list[str] = []
        for number, (name, gauges) in enumerate(self.queues.items()):
            y = _TOP + number * _ROW
            holding = self.holding(name)
            body.append(text(_LEFT, y + 10, f"{name}: {self._verdict(name)}", colour=HOLDS if holding else INK))
            for place, gauge in enumerate(gauges):
                body += _drawn(gauge, _LEFT + place * (_GAUGE + _GAP), y + 22, gauge is holding)
        width = _LEFT * 2 + 3 * _GAUGE + 2 * _GAP
        height = _TOP + max(1, len(self.queues)) * _ROW
        return picture("Flow control: what is held (bar), and the limit (line)", width, height, body)


def _gauges(consumer: DefaultMQPushConsumer, held: ProcessQueue) -> list[Gauge]:
    mebibytes = held.msg_size / MEBIBYTE
    span = held.max_span()
    gauges = [
        Gauge("count", "messages", held.msg_count, held.msg_count, consumer.pull_threshold_for_queue),
        Gauge("size", "MiB", mebibytes, int(mebibytes), consumer.pull_threshold_size_for_queue),
    ]
    if not consumer.impl.consume_orderly:
        gauges.append(Gauge("span", "offsets", span, span, consumer.consume_concurrently_max_span))
    return gauges


def _drawn(gauge: Gauge, x: float, y: float, holds: bool) -> list[str]:
    """One gauge: its bar, its limit, and both as numbers below; a limit far away stands at the right end."""
    full = 1.25 * max(gauge.value, gauge.limit)
    limit_x = x + gauge.limit / full * _GAUGE
    colour = HOLDS if holds else FREE
    tip = f"{gauge.name}: {gauge.told}, limit {gauge.limit}"
    body = [box(x, y, _GAUGE, _BAR, TROUGH), box(x, y, gauge.value / full * _GAUGE, _BAR, colour, tip=tip)]
    body.append(line(limit_x, y - 4, limit_x, y + _BAR + 4, INK, width=2))
    body.append(text(x, y + _BAR + 18, f"{gauge.name} {gauge.told}", bold=holds))
    body.append(text(x + _GAUGE, y + _BAR + 18, f"limit {gauge.limit}", colour=FAINT, anchor="end"))
    return body


def _shown(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if value >= 0.005 or value == 0 else f"{value:.4f}"
