"""The charts of a stream that Bokeh draws: each micro-batch sends new numbers to the figures' sources, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab_widgets.chart_bokeh import frame_of
from mqlab_widgets.live_chart import LiveChart
from mqlab_widgets.viewer import FramePump, answer_beside_cells

if TYPE_CHECKING:
    from mqlab_widgets.stream_charts import StreamCharts

UPDATE_SECONDS = 0.5


class LiveStreamCharts(LiveChart):
    """Charts that a front end draws with Bokeh; `frame` has the newest columns of each source.

    While a cell waits for the stream, each micro-batch asks for a frame; between cells the stream is looked at twice a
    second, as long as a page shows the charts and the query runs.
    """

    def __init__(self, charts: StreamCharts) -> None:
        super().__init__(charts)
        self._charts = charts
        self._looked_at = 0
        self._pump = FramePump(self._show, seconds=UPDATE_SECONDS)
        charts.stream.watchers.append(self._pump.ask)
        answer_beside_cells(self)

    def close(self) -> None:
        """Take the charts off the page and off the stream."""
        if self.comm is not None:
            self._pump.close()
            self._charts.stream.watchers.remove(self._pump.ask)
        super().close()

    def _answer(self, _: Any, asked: dict[str, Any], __: Any) -> None:
        if asked.get("do") in ("shown", "hidden"):
            self._looked_at += 1 if asked["do"] == "shown" else -1
            self._pump.arm()
        else:
            super()._answer(_, asked, __)

    def _show(self) -> None:
        if self._looked_at <= 0:
            return
        self.frame = frame_of(self._charts.charts())
        if self._charts.stream.running:
            self._pump.arm()
