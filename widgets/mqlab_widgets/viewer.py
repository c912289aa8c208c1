"""The viewer: one widget for each world, built once and fed with frames and with the story between them.

A frame is a dict of texts, one for each part of the page; what has changed of it goes out. At most 20 are drawn in a
second and never more than a tenth of the time is spent on them; what comes in between is dropped and counted, and the
last one always arrives.

What goes out is numbered, because each message is only what has changed since the one before. A page that has missed
one, or has just come, says "shown" and takes nothing until a `whole` frame has come, which is all of it, drawn anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
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
SOURCES = ("story.js", "picture.js", "bar.js", "viewer.js")
"""The page's code, in this order one module: a page loads it from its kernel, and nothing from elsewhere."""
STYLES = ("viewer.css", "words.css")
TOLD = ("stage", "stations", "said", "caption", "_clock")
"""The parts that a story changes in the page, of which therefore nobody here knows how they look."""

Frame = dict[str, str]


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


class Viewer(AnyWidget):
    """Shows frames and stories, and hands what is clicked or typed in the page to `on_command`.

    `frame` is the newest frame: part -> HTML; a page that comes later begins with it. A click on an element with
    `data-do` sends {"do": ..., its other data}.
    """

    # As texts: anywidget follows files, and what follows a file is never freed.
    _esm = "\n".join(map(_read, SOURCES))
    _css = "\n".join(map(_read, STYLES))

    frame = traitlets.Dict().tag(sync=True)

    def __init__(self, on_command: Callable[[dict[str, Any]], None]) -> None:
        self._on_command = on_command
        self._known: Frame = {}
        """What the page is known to show."""
        self._number = 0
        """Of the newest message."""
        super().__init__()
        self.on_msg(self._take)

    def _take(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict) and isinstance(content.get("do"), str):
            self._on_command(content)

    def _should_send_property(self, key: str, value: Any) -> bool:
        """`frame` goes out by parts; the whole is for pages to come."""
        return key != "frame" and bool(super()._should_send_property(key, value))

    def say(self, message: dict[str, Any]) -> None:
        """Send a message to all pages; its number tells them whether they have missed one."""
        self._number += 1
        self.send({**message, "n": self._number})

    def show(self, frame: Frame) -> None:
        """Show these parts; those that are not named stay as they are."""
        changed = self._news(frame)
        if changed:
            self.say({"frame": changed})

    def show_whole(self, frame: Frame) -> None:
        """Show all of it, to pages of which nothing is known."""
        self._known.clear()
        self.say({"whole": True, "frame": self._news(frame)})

    def _news(self, frame: Frame) -> Frame:
        """What of a frame the page does not show yet; from now on it does."""
        changed = {part: html for part, html in frame.items() if self._known.get(part) != html}
        self._known |= changed
        if changed:
            self.frame = {**self.frame, **changed}
        return changed

    def told(self, frame: Frame) -> None:
        """A story has brought the page to show these parts: they are not sent again."""
        self._known |= frame
        self.frame = {**self.frame, **frame}

    def tell(self, beats: Sequence[dict[str, Any]], began: int, step: Frame | None = None) -> None:
        """Tell the next beats of a story; `began` numbers the plays. The beats of a step begin at once, in one message
        with what else a step shows.
        """
        for part in TOLD:
            self._known.pop(part, None)
        told = {"story": list(beats), "began": began}
        self.say(told if step is None else {**told, "frame": self._news(step)})

    def __repr__(self) -> str:
        return "<Viewer>"


def answer_beside_cells(widget: Any) -> None:
    """Take what the page sends to a widget where the page wants it: with subshells, beside a cell.

    Since 7.4 ipykernel sends a page's message to the shell that spoke last on the same comm, and that is the cell
    which made the widget: then each click would wait for the end of the cell that runs.
    """
    if hasattr(widget.comm, "_reply_subshell_for"):
        widget.comm._reply_subshell_for = lambda data, wanted: wanted


class FramePump:
    """Has frames drawn and shown when asked, not more often than the eye needs.

    `show` draws and shows the present frame; `seconds` lie between two of them at least. `post` carries out a function
    when nobody else is at the world: with subshells a click and a cell have a thread each, and both draw.
    """

    def __init__(
        self,
        show: Callable[[], None],
        post: Callable[[Callable[[], None]], None] = lambda function: function(),
        seconds: float = FRAME_SECONDS,
    ) -> None:
        self._seconds = seconds
        self._show = show
        self._post = post
        self._next_at = 0.0
        self.waiting = False
        """Whether a frame is to be drawn soon; who has many reasons to ask for one looks first."""
        self._closed = False
        self.dropped = 0
        self.sent = 0

    @property
    def about(self) -> str:
        """Whose frames they are, for the report of an error."""
        return f"of a {type(getattr(self._show, '__self__', None)).__name__}"

    def ask(self) -> None:
        """Something has changed: draw now if it is time, else soon."""
        if time.monotonic() >= self._next_at:
            self.send()
        else:
            self.dropped += 1
            self.arm()

    def arm(self) -> None:
        """Draw soon, from the kernel's loop: so the last frame arrives when a cell has ended."""
        if not self.waiting:
            self.waiting = call_later(max(self._seconds, self._next_at - time.monotonic()), self._late)

    def _late(self) -> None:
        if self.waiting:
            self.show()

    def show(self, *, soon: bool = False) -> None:
        """Draw and show the present frame, at once if nobody else is at the world; or `soon`, where there is a loop."""
        if soon:
            self.arm()
        if not soon or not self.waiting:
            self._post(self.send)

    def close(self) -> None:
        """Draw nothing any more, also what was already asked for."""
        self._closed = True

    def send(self) -> None:
        """Draw and show the present frame, whatever the time."""
        self.waiting = False
        if self._closed:
            return
        began = time.monotonic()
        self._show()
        ended = time.monotonic()
        self.sent += 1
        self._next_at = began + max(self._seconds, (ended - began) / MOST_BUSY)


def call_later(seconds: float, function: Callable[[], None]) -> bool:
    """Call a function from the loop of this thread; False if it has none (a plain script, a thread of one's own)."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return False
    loop.call_later(seconds, function)
    return True
