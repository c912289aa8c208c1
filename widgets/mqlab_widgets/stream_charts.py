"""The charts of a stream that follows a live world: `StreamCharts(stream)`, and `StreamCharts(stream).live()`.

Static, they are one SVG and a text with the same numbers. Live, Bokeh draws them, and each micro-batch adds its points:
at once while a cell plays the world, and twice a second between cells, until the query stops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from mqlab.errors import LearnerError
from mqlab_widgets.charts import LineChart
from mqlab_widgets.world_charts import TIME, Charts, Points

if TYPE_CHECKING:
    from mqlab_widgets.live_charts import LiveStreamCharts


class Batch(Protocol):
    """The numbers of a micro-batch that are drawn; times in us."""

    @property
    def newest_us(self) -> int: ...
    @property
    def open(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def latencies_us(self) -> tuple[int, ...]: ...


class Stream(Protocol):
    """What `mqlab_spark.streaming.follow` returns, as far as its charts know it."""

    watchers: list[Callable[[], None]]

    @property
    def numbers(self) -> Sequence[Batch]: ...
    @property
    def running(self) -> bool: ...


class StreamCharts(Charts):
    """What is in the state after each micro-batch, and how long the lives took that it put out."""

    title: ClassVar[str] = "A stream in numbers"
    slots: ClassVar[int] = 2

    def __init__(self, stream: Stream) -> None:
        if not hasattr(stream, "numbers"):
            raise LearnerError(f"{stream!r} is not a stream", "write StreamCharts(stream), with what follow(...) gave")
        self.stream = stream

    def charts(self) -> list[LineChart]:
        """The two charts as they are now."""
        batches = self.stream.numbers
        ended = [(n.newest_us / 1e6, n.latencies_us) for n in batches if n.latencies_us]
        state: dict[str, Points] = {
            "open: sent, not consumed": tuple((n.newest_us / 1e6, n.open) for n in batches),
            "ended, not put out yet": tuple((n.newest_us / 1e6, n.waiting) for n in batches),
        }
        latency: dict[str, Points] = {
            "median": tuple((at, _ms(took[(len(took) - 1) // 2])) for at, took in ended),
            "longest": tuple((at, _ms(took[-1])) for at, took in ended),
        }
        until = (0.0, max([n.newest_us / 1e6 for n in batches], default=0.1))
        return [
            LineChart("Lives in the state", TIME, "messages", state, False, until, legend=True),
            LineChart("Latency of the lives put out", TIME, "sent to consumed, ms", latency, True, until, legend=True),
        ]

    def live(self) -> LiveStreamCharts:
        """The charts drawn by Bokeh, which follow the stream. MissingExtraError without anywidget.

        A front end that cannot run it keeps showing the static picture, and so does a notebook without a kernel.
        """
        from mqlab_widgets.live_charts import LiveStreamCharts

        return LiveStreamCharts(self)

def _ms(us: int) -> float:
    return us / 1_000
