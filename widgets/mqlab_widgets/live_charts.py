"""Charts that Bokeh draws and that follow a world or a stream: new numbers go to the figures' sources, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab_widgets.chart_bokeh import frame_of
from mqlab_widgets.live_chart import LiveChart
from mqlab_widgets.viewer import FramePump, answer_beside_cells
from mqlab_widgets.weak_sink import WeakSink

if TYPE_CHECKING:
    from mqlab_widgets.stream_charts import StreamCharts
    from mqlab_widgets.world_charts import Charts, WorldCharts

UPDATE_SECONDS = 0.5
EVENTS_PER_LOOK = 256
"""While a cell plays the world, the clock is looked at after so many events."""


class LiveCharts(LiveChart):
    """Charts that a front end draws with Bokeh; `frame` has the newest columns of each source, and its legend's text.

    At most two frames a second are made, and none while no front end shows them.
    """

    def __init__(self, charts: Charts, post: Callable[[Callable[[], None]], None]) -> None:
        super().__init__(charts)
        self._charts = charts
        self._looked_at = 0
        self._pump = FramePump(self._show, post, UPDATE_SECONDS)
        answer_beside_cells(self)

    def close(self) -> None:
        """Take the charts off the page, and off what they follow."""
        if self.comm is not None:
            self._pump.close()
            self._leave()
        super().close()

    def _leave(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _leave()")

    def _answer(self, _: Any, asked: dict[str, Any], __: Any) -> None:
        if asked.get("do") in ("shown", "hidden"):
            self._looked_at += 1 if asked["do"] == "shown" else -1
            self._pump.arm()
        else:
            super()._answer(_, asked, __)

    def _show(self) -> None:
        self.frame = frame_of(self._charts.charts())


class LiveWorldCharts(LiveCharts):
    """The charts of a world; they follow it while it plays."""

    def __init__(self, charts: WorldCharts) -> None:
        super().__init__(charts, charts.lab.world.door.post)
        self._lab = charts.lab
        self._rows = 0
        self._sink = WeakSink(charts.lab.world.hooks, self._on_row)
        charts.lab.watchers.add(self)

    def _leave(self) -> None:
        self._sink.detach()
        self._lab.watchers.discard(self)

    def _on_row(self, row: tuple[Any, ...]) -> None:
        if self._looked_at <= 0:
            return
        self._rows += 1
        if self._rows % EVENTS_PER_LOOK == 0:
            self._lab.world.door.post(self._pump.ask)
        elif not self._pump.waiting:
            self._pump.arm()

    def changed(self) -> None:
        """Another view has done something to the world."""
        if self._looked_at > 0:
            self._pump.arm()


class LiveStreamCharts(LiveCharts):
    """The charts of a stream.

    While a cell waits for the stream, each micro-batch asks for a frame; between cells the stream is looked at twice a
    second, as long as a page shows the charts and the query runs.
    """

    def __init__(self, charts: StreamCharts) -> None:
        super().__init__(charts, lambda function: function())
        self._stream = charts.stream
        self._stream.watchers.append(self._pump.ask)

    def _leave(self) -> None:
        self._stream.watchers.remove(self._pump.ask)

    def _show(self) -> None:
        if self._looked_at <= 0:
            return
        super()._show()
        if self._stream.running:
            self._pump.arm()
