"""The viewer: one widget for each world, built once and fed with whole frames.

A frame is a dict of texts, one for each part of the page. At most 20 go out in a second and never more than a tenth of
the time is spent on them; what comes in between is dropped and counted, and the last one always arrives.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqlab.errors import MissingExtraError

try:
    import traitlets
    from anywidget import AnyWidget
except ImportError:
    raise MissingExtraError("anywidget", "widgets") from None

FRAME_SECONDS = 1 / 20
MOST_BUSY = 0.1
"""The share of real time that drawing may take while a world plays."""

Frame = dict[str, Any]


class Viewer(AnyWidget):
    """Shows frames, and hands what is clicked or typed in the page to `on_command`.

    `frame` is the newest frame: part -> HTML. A click on an element with `data-do` sends {"do": ..., its other data}.
    """

    # As texts: anywidget follows files, and what follows a file is never freed.
    _esm = Path(__file__).with_name("viewer.js").read_text(encoding="utf-8")
    _css = Path(__file__).with_name("viewer.css").read_text(encoding="utf-8")

    frame = traitlets.Dict().tag(sync=True)
    dropped = traitlets.Int(0).tag(sync=True)

    def __init__(self, on_command: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._on_command = on_command
        self.on_msg(self._take)

    def _take(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict) and isinstance(content.get("do"), str):
            self._on_command(content)

    def __repr__(self) -> str:
        return "<Viewer>"


def answer_beside_cells(widget: Any) -> None:
    """Take what the page sends to a widget and its children where the page wants it: with subshells, beside a cell.

    Since 7.4 ipykernel sends a page's message to the shell that spoke last on the same comm, and that is the cell
    which made the widget: then each click would wait for the end of the cell that runs.
    """
    if hasattr(widget.comm, "_reply_subshell_for"):
        widget.comm._reply_subshell_for = lambda data, wanted: wanted
    for child in getattr(widget, "children", ()):
        answer_beside_cells(child)


class FramePump:
    """Draws and sends frames when asked, not more often than the eye needs.

    The viewer is a widget with `frame` and `dropped`; `seconds` lie between two frames at least.
    `post` carries out a function when nobody else is at the world: with subshells a click and a cell have a thread
    each, and both draw.
    """

    def __init__(
        self,
        draw: Callable[[], Frame],
        viewer: Any,
        post: Callable[[Callable[[], None]], None] = lambda function: function(),
        seconds: float = FRAME_SECONDS,
    ) -> None:
        self._seconds = seconds
        self._draw = draw
        self._viewer = viewer
        self._post = post
        self._next_at = 0.0
        self.waiting = False
        """Whether a frame is to be drawn soon; who has many reasons to ask for one looks first."""
        self._closed = False
        self._dropped = 0
        self.sent = 0

    @property
    def about(self) -> str:
        """Whose frames they are, for the report of an error."""
        return f"of a {type(getattr(self._draw, '__self__', self._viewer)).__name__}"

    def ask(self) -> None:
        """Something has changed: draw now if it is time, else soon."""
        if time.monotonic() >= self._next_at:
            self.send()
        else:
            self._dropped += 1
            self.arm()

    def arm(self) -> None:
        """Draw soon, from the kernel's loop: so the last frame arrives when a cell has ended."""
        if not self.waiting:
            self.waiting = _call_later(max(self._seconds, self._next_at - time.monotonic()), self._late)

    def _late(self) -> None:
        if self.waiting:
            self.show()

    def show(self) -> None:
        """Draw and send the present frame, at once if nobody else is at the world."""
        self._post(self.send)

    def close(self) -> None:
        """Draw nothing any more, also what was already asked for."""
        self._closed = True

    def send(self) -> None:
        """Draw and send the present frame, whatever the time."""
        self.waiting = False
        if self._closed:
            return
        began = time.monotonic()
        self._viewer.frame = self._draw()
        self._viewer.dropped = self._dropped
        ended = time.monotonic()
        self.sent += 1
        self._next_at = began + max(self._seconds, (ended - began) / MOST_BUSY)


def _call_later(seconds: float, function: Callable[[], None]) -> bool:
    """Call a function from the loop of this thread; False if it has none (a plain script, a thread of one's own)."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return False
    loop.call_later(seconds, function)
    return True
