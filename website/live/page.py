"""The Python side of a page that plays a world by itself: a stepper whose page is in the same browser, without Jupyter.

It lies beside mqlab in the page's Python as the module `mqlab_page`. The page (`worker.js`) calls `open_moment`, then
`take` with what its reader does; `say` is what it gives to be told.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from types import ModuleType
from typing import Any

import traitlets

_page: list[Callable[[str], None]] = []
"""Tells the page a message, as JSON."""


class AnyWidget(traitlets.HasTraits):
    """What a viewer needs of anywidget's class: messages to its one page and back."""

    def __init__(self) -> None:
        super().__init__()
        self.comm: AnyWidget | None = self
        self._takers: list[Callable[[Any, Any, Any], None]] = []

    def on_msg(self, taker: Callable[[Any, Any, Any], None]) -> None:
        """Have what the page sends taken."""
        self._takers.append(taker)

    def take(self, content: dict[str, Any]) -> None:
        """The page has sent this."""
        for taker in self._takers:
            taker(self, content, [])

    def send(self, content: dict[str, Any]) -> None:
        """Tell the page."""
        _page[0](json.dumps(content))

    def _should_send_property(self, key: str, value: object) -> bool:
        return True

    def get_state(self, key: object = None, drop_defaults: bool = False) -> dict[str, Any]:
        """A page in the same browser begins with what it is given."""
        return {}

    def close(self) -> None:
        """Nobody is to be told."""
        self.comm = None


_module = ModuleType("anywidget")
_module.AnyWidget = AnyWidget  # type: ignore[attr-defined]
sys.modules.setdefault("anywidget", _module)

from mqlab.errors import MqlabError  # noqa: E402  # mqlab's views look for anywidget
from mqlab.lab import Lab, noting_labs  # noqa: E402
from mqlab_widgets.links import open_link  # noqa: E402
from mqlab_widgets.stepper import Stepper  # noqa: E402

_shown: list[Stepper] = []


def open_moment(link: str, base: str, cells: str, say: Callable[[str], None]) -> str:
    """Open what a link (the part behind #) names, for the site at `base`; JSON: the first `frame`, or the `error`, and
    the `notes` that its reader must read. `cells` are those of the answer that it names, as JSON.
    """
    import os

    os.environ["MQLAB_SITE"] = base
    _page[:] = [say]
    try:
        lab, notes = _of_answer(json.loads(cells)) if cells else open_link(link)
    except MqlabError as error:
        return json.dumps({"error": str(error)})
    _shown[:] = [Stepper(lab)]
    return json.dumps({"frame": _shown[0].frame, "notes": notes})


def take(message: str) -> None:
    """What the reader did."""
    for stepper in _shown:
        stepper.take(json.loads(message))


def _of_answer(cells: list[str]) -> tuple[Lab, list[str]]:
    """Run the world of an answer; its reader is shown what it prints, and then the world."""
    printed = StringIO()
    names: dict[str, Any] = {"__name__": "__main__"}
    with noting_labs(keep_history=True) as made, redirect_stdout(printed):
        for cell in cells:
            exec(compile(cell, "<answer>", "exec"), names)  # noqa: S102  # the site's own page
    lab = made[-1]
    lab.history.move_to(len(lab.history))
    return lab, [printed.getvalue()]
