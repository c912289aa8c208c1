"""A bet, live: a widget with the histogram of what a class bets, and with the truth when the teacher shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets

from mqlab import material
from mqlab.errors import MqlabError
from mqlab.grading.bets import Bets, BetsReader, drawn, question
from mqlab.views.colours import BLUE, ORANGE

GREY = "#767676"
LOOK_S = 2.0
_SHOW, _HIDE = "Show the truth", "Hide the truth"


class BetHistogram(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets publishes no types
    """What students have bet, in a directory DIRECTORY/STUDENT/.../NN_lab.ipynb that fills while one looks.

        BetHistogram("shared/", "who-filters", truth="c")

    Only the notebooks' text is read. It looks again every `look_s` seconds until `stop()`. The truth (a letter, a
    number, a text) is seen once the button was pressed; without one there is no button. `root` is the directory
    with labs/, which need not be named in a clone or after `pip install`.
    `hide`: students whose bets are left out. What is no answer to the question is counted, and never shown.
    LearnerError when there is no such bet or directory.
    """

    def __init__(
        self,
        directory: str | Path,
        bet: str,
        *,
        lab: str = "",
        truth: str | float | None = None,
        root: str | Path | None = None,
        look_s: float = LOOK_S,
        hide: Sequence[str] = (),
    ) -> None:
        super().__init__()
        sources = Path(root or material.root()) / "labs" / "sources"
        self._reader = BetsReader(Path(directory), question(sources, bet, lab), sources, hide)
        self._look_s = look_s
        self._truth = truth
        self._is_shown = False
        self.bets = self._reader.read()
        """What was there when it was looked last."""
        self._picture = ipywidgets.HTML()
        self.button = ipywidgets.Button(description=_SHOW, icon="eye")
        self.button.on_click(self._pressed)
        self.children = (self._picture, *([self.button] if truth is not None else []))
        self._draw()
        self._following: asyncio.Task[None] | None = None
        try:
            self._following = asyncio.get_running_loop().create_task(self._follow())
        except RuntimeError:
            # Nobody runs a loop here, as in a script: then it is looked when somebody asks.
            return

    def look(self) -> None:
        """Read what has come since, and draw it."""
        self.bets = self._reader.read()
        self._draw()

    def stop(self) -> None:
        """Stop looking for notebooks."""
        if self._following is not None:
            self._following.cancel()

    def close(self) -> None:
        """Look no more, and take the widget away."""
        self.stop()
        super().close()

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._look_s)
            try:
                self.look()
            except MqlabError as problem:
                self._picture.value = f"<p>{escape(str(problem))}</p>"

    def _pressed(self, _: Any) -> None:
        self._is_shown = not self._is_shown
        self.button.description = _HIDE if self._is_shown else _SHOW
        self._draw()

    def _draw(self) -> None:
        truth = self.bets.question.answer(self._truth) if self._is_shown else None
        self._picture.value = page_of(self.bets, truth)

    def __repr__(self) -> str:
        return drawn(self.bets)

    def _repr_mimebundle_(self, **settings: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**settings)
        return {**bundle, "text/plain": repr(self)}


def page_of(bets: Bets, truth: str | None = None) -> str:
    """The histogram as HTML; the bar of the truth has another colour and says so."""
    bars = bets.bars()
    if truth is not None and truth not in dict(bars):
        bars.append((truth, 0))
    most = max([count for _, count in bars] + [1])
    handed = len(bets.said) + len(bets.not_made)
    title = escape(bets.question.title)
    rows = "".join(_bar(name, count, most, name == truth) for name, count in bars)
    left = "".join(f"<li>{escape(line)}</li>" for line in bets.left_out)
    told = f'<p style="color:{GREY};margin:.5em 0 0">Not counted:</p><ul style="color:{GREY};margin:0">{left}</ul>'
    table = f'<table style="border-collapse:collapse">{rows}</table>'
    count = f"<div>{len(bets.said)} of {handed} have bet</div>"
    return f'<div style="line-height:1.4"><b>{title}</b>{count}{table}{told if left else ""}</div>'


def _bar(name: str, count: int, most: int, is_true: bool) -> str:
    bar = f"width:{20 * count / most:.2f}em;height:1.1em;background:{ORANGE if is_true else BLUE}"
    said = f"{count}{' &nbsp;<b>it is so</b>' if is_true else ''}"
    return (
        f'<tr><td style="padding:.1em .6em .1em 0;max-width:28em">{escape(name)}</td>'
        f'<td><div style="display:inline-block;vertical-align:middle;{bar}"></div> {said}</td></tr>'
    )
