"""The charts of a world that Bokeh draws and that follow it: new numbers go to the figures' sources, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab_widgets.chart_bokeh import frame_of
from mqlab_widgets.live_chart import LiveChart
from mqlab_widgets.viewer import FramePump, answer_beside_cells
from mqlab_widgets.weak_sink import WeakSink

if TYPE_CHECKING:
    from mqlab_widgets.world_charts import WorldCharts

UPDATE_SECONDS = 0.5
EVENTS_PER_LOOK = 256
"""While a cell plays the world, the clock is looked at after so many events."""


class LiveWorldCharts(LiveChart):
    """Charts that a front end draws with Bokeh; `frame` has the newest columns of each source, and its legend's text.

    At most two frames a second are made, and none while no front end shows them.
    """

    def __init__(self, charts: WorldCharts) -> None:
        super().__init__(charts)
        self._charts = charts
        self._pump = FramePump(self._show, charts.lab.world.door.post, UPDATE_SECONDS)
        self._looked_at = 0
        self._rows = 0
        self._sink = WeakSink(charts.lab.world.hooks, self._on_row)
        charts.lab.watchers.add(self)
        answer_beside_cells(self)

    def close(self) -> None:
        """Take the charts off the page and off the world."""
        if self.comm is not None:
            self._pump.close()
            self._sink.detach()
            self._charts.lab.watchers.discard(self)
        super().close()

    def _answer(self, _: Any, asked: dict[str, Any], __: Any) -> None:
        if asked.get("do") in ("shown", "hidden"):
            self._looked_at += 1 if asked["do"] == "shown" else -1
            self._pump.arm()
        else:
            super()._answer(_, asked, __)

    def _on_row(self, row: tuple[Any, ...]) -> None:
        if self._looked_at <= 0:
            return
        self._rows += 1
        if self._rows % EVENTS_PER_LOOK == 0:
            self._charts.lab.world.door.post(self._pump.ask)
        elif not self._pump.waiting:
            self._pump.arm()

    def changed(self) -> None:
        """Another view has done something to the world."""
        if self._looked_at > 0:
            self._pump.arm()

    def _show(self) -> None:
        self.frame = frame_of(self._charts.charts())
