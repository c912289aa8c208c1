"""The charts of a stream, before there is anything to draw."""

from __future__ import annotations

from types import SimpleNamespace

from bokeh.models import Legend

from mqlab_widgets.stream_charts import StreamCharts


def test_the_legend_names_every_line_before_the_first_batch() -> None:
    drawn = StreamCharts(SimpleNamespace(watchers=[], numbers=[], running=True)).figure()
    legends = list(drawn.select({"type": Legend}))
    told = {item.label.value for legend in legends for item in legend.items if item.visible}
    assert told == {"open: sent, not consumed", "ended, not put out yet", "median", "longest"}
