"""Live charts: a widget that shows a chart's static picture, and Bokeh's in its place once a front end can draw it.

BokehJS comes from the installed package over the kernel's own connection, only when a front end asks and has none, so
nothing is loaded from the internet and no notebook grows by it. jupyter_bokeh, which shows a figure as a widget, brings
no BokehJS: it needs a cell before it whose output has all of it (8 MB in each notebook), or the internet.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Protocol

from mqlab.errors import MissingExtraError

try:
    import traitlets
    from anywidget import AnyWidget
except ImportError:
    raise MissingExtraError("anywidget", "widgets") from None


class Drawn(Protocol):
    """What can be drawn live: it has a static picture, a text and a Bokeh figure."""

    def svg(self) -> str:
        """The picture as SVG text."""

    def figure(self) -> Any:
        """The figure that Bokeh draws in the page."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]: ...


class LiveChart(AnyWidget):
    """A chart that a front end draws with Bokeh.

    The front end asks {"ask": "library"} and gets {"library": source of BokehJS}; it asks {"ask": "figure"} and gets
    {"figure": what Bokeh.embed takes}. `ready` is True once it has drawn; until then it shows the static picture.
    """

    # As a text: anywidget follows files, and what follows a file is never freed.
    _esm = Path(__file__).with_name("live_chart.js").read_text(encoding="utf-8")

    svg = traitlets.Unicode().tag(sync=True)
    frame = traitlets.Dict().tag(sync=True)
    """Name of a source -> {"name": its series, "data": its columns}: what has changed since the figure was sent."""
    bokeh_version = traitlets.Unicode().tag(sync=True)
    ready = traitlets.Bool(False).tag(sync=True)

    def __init__(self, chart: Drawn) -> None:
        super().__init__(svg=chart.svg(), bokeh_version=_bokeh().__version__)
        self._chart = chart
        self.on_msg(self._answer)

    def _answer(self, _: Any, asked: dict[str, Any], __: Any) -> None:
        match asked:
            case {"ask": "library"}:
                self.send({"library": bokeh_js()})
            case {"ask": "figure"}:
                from bokeh.embed import json_item

                self.send({"figure": json_item(self._chart.figure())})

    def __repr__(self) -> str:
        return f"live: {self._chart}"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and beside it the static picture and the text, which are what is kept of it."""
        bundle: Any = super()._repr_mimebundle_()
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, **self._chart._repr_mimebundle_(), "text/plain": repr(self)}, metadata


@cache
def bokeh_js() -> str:
    """The source of BokehJS, as the installed package has it (1.3 MB)."""
    place = Path(_bokeh().__file__).parent / "server" / "static" / "js" / "bokeh.min.js"
    return place.read_text(encoding="utf-8")


def _bokeh() -> Any:
    try:
        import bokeh
    except ImportError:
        raise MissingExtraError("bokeh", "widgets") from None
    return bokeh
