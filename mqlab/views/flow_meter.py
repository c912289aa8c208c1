"""Flow meter: what a push consumer held of one queue over time, and which pulls its limits refused."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mqlab.errors import LearnerError
from mqlab.protocol.message import MEBIBYTE
from mqlab.trace.record import Record
from mqlab.views.colours import BLUE, GREEN, VERMILION
from mqlab.views.time_chart import Limit, Series, TimeChart

if TYPE_CHECKING:
    from mqlab.client import DefaultMQPushConsumer
    from mqlab.sim import World
    from mqlab.trace.bus import Row

LOG_EVERY = 1_000
"""Of so many refusals RocketMQ writes the first into its log (DefaultMQPushConsumerImpl.queueFlowControlTimes)."""
_UNITS = {"count": "messages", "size": "MiB of bodies", "span": "offsets from first to last"}


class Sample(NamedTuple):
    """What was held at one moment: messages, bytes of their bodies, and offsets from the first to the last."""

    at_us: int
    messages: int
    body_bytes: int
    span: int


class Played(Protocol):
    """A lab: it has a world, whose events can be followed."""

    world: World


class FlowMeter:
    """Reads count, size and span of one queue's cache at each event of its consumer's machine.

    Make it before the consumer starts: `meter = FlowMeter(lab, consumer, "Orders")`. It changes nothing in the world.
    """

    def __init__(self, lab: Played, consumer: DefaultMQPushConsumer, topic: str, queue_id: int = 0) -> None:
        if topic not in consumer.impl.rebalance_impl.subscription_inner:
            raise LearnerError(f"this consumer does not subscribe to {topic!r}", "subscribe first, then make the meter")
        self._consumer = consumer
        self._topic = topic
        self._queue_id = queue_id
        self.samples: list[Sample] = []
        self.refusals: list[Record] = []
        """The FlowControlled events of this queue."""
        self.pulls: list[Record] = []
        """The PullRequested events of this queue: what really went to the broker."""
        lab.world.hooks.attach(self)

    def __call__(self, row: Row) -> None:
        record = Record(row)
        if record.node != self._consumer.node.name:
            return
        owned = self._consumer.process_queues.items()
        held = next((held for queue, held in owned if self._is_mine(queue.topic, queue.queue_id)), None)
        if held is None:
            return
        sample = (held.msg_count, held.msg_size, held.max_span())
        if not self.samples or self.samples[-1][1:] != sample:
            self.samples.append(Sample(record.ts_us, *sample))
        if record.kind in ("FlowControlled", "PullRequested") and self._is_mine(record.topic, record.queue_id):
            (self.refusals if record.kind == "FlowControlled" else self.pulls).append(record)

    def _is_mine(self, topic: str, queue_id: int) -> bool:
        return topic == self._topic and queue_id == self._queue_id

    # -- what it saw ------------------------------------------------------------------------------------------------

    def highest(self, what: str) -> float:
        """The most that was held: "count" in messages, "size" in MiB, "span" in offsets."""
        return max((value for _, value in self._values(what)), default=0)

    @property
    def refused(self) -> Counter[str]:
        """How many pulls were refused, by the limit that did it."""
        return Counter(record.reason for record in self.refusals)

    @property
    def warnings(self) -> int:
        """How many lines RocketMQ writes into its log: of 1000 refusals one; count and size are counted together."""
        spans = self.refused["span"]
        return sum(-(-times // LOG_EVERY) for times in (len(self.refusals) - spans, spans))

    def chart(self, what: str = "count", title: str = "") -> TimeChart:
        """What was held over time, with its limit, the pulls that went out, and the refused ones."""
        consumer = self._consumer
        limits = {
            "count": consumer.pull_threshold_for_queue,
            "size": consumer.pull_threshold_size_for_queue,
            "span": consumer.consume_concurrently_max_span,
        }
        values = self._values(what)
        pulls = [(record.ts_us / 1e6, _last_before(values, record.ts_us / 1e6)) for record in self.pulls]
        refused = [(record.ts_us / 1e6, 0.0) for record in self.refusals]
        series = [
            Series(f"{what} held", values, BLUE),
            Series("a pull goes out", pulls, GREEN, "dot"),
            Series("a pull is refused", refused, VERMILION, "tick"),
        ]
        title = title or f"What is held of {self._topic}, queue {self._queue_id}"
        return TimeChart(title, _UNITS[what], series, [Limit(f"limit {limits[what]}", limits[what])])

    def _values(self, what: str) -> list[tuple[float, float]]:
        if what not in _UNITS:
            raise LearnerError(f"{what!r} is not measured", "choose one of 'count', 'size', 'span'")
        return [(sample.at_us / 1e6, _value(sample, what)) for sample in self.samples]


def _value(sample: Sample, what: str) -> float:
    if what == "size":
        return sample.body_bytes / MEBIBYTE
    return sample.messages if what == "count" else sample.span


def _last_before(values: list[tuple[float, float]], at: float) -> float:
    return next((value for time, value in reversed(values) if time <= at), 0.0)
