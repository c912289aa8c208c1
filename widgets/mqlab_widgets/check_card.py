"""The card of a check that failed: the verdict, and a button that opens its world where it went wrong."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets

from mqlab.check import Verdict
from mqlab.errors import MqlabError
from mqlab_widgets.stepper import Stepper
from mqlab_widgets.viewer import answer_beside_cells, call_later

OPEN = "Open this world"
OPENING = "Playing it again ..."
CLOSE = "Close it"
QUIET_SECONDS = 0.3
"""So long after a world was opened the button is deaf: a double click, made while it was played, must not close it."""


class CheckCard(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets publishes no types
    """A failed verdict with its viewer. The world is played again when the button is pressed, not before."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict
        self._viewer: Stepper | None = None
        self.button = ipywidgets.Button(
            description=OPEN, icon="search", tooltip=f"Play seed {verdict.failed_seed} again, up to where it went wrong"
        )
        self.button.on_click(self._pressed)
        self._said = ipywidgets.HTML()
        self._always = (ipywidgets.HTML(verdict.card(offer=False)), self.button, self._said)
        super().__init__(self._always)
        answer_beside_cells(self.button)

    def _pressed(self, _: Any) -> None:
        if self.button.disabled:
            return
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None
            self._show(OPEN, "")
            return
        self.button.disabled = True
        self._show(OPENING, "")
        said = ""
        try:
            said = self._opened()
        finally:
            self._show(OPEN if self._viewer is None else CLOSE, said)
            if not call_later(QUIET_SECONDS, self._enable):
                self._enable()

    def _opened(self) -> str:
        """Open the world; what there is to say of it, or why it is not opened."""
        try:
            lab = self._verdict.open()
        except MqlabError as problem:
            return str(problem)
        self._viewer = Stepper(lab)
        at = f"Seed {self._verdict.failed_seed} at {lab.now_ms:,.0f} ms"
        return f"{at}, as the judge has left it: step back from here."

    def _enable(self) -> None:
        self.button.disabled = False

    def _show(self, button: str, said: str) -> None:
        self.button.description = button
        self._said.value = escape(said)
        viewer = [] if self._viewer is None else [self._viewer]
        self.children = (*self._always, *viewer)


def bundle_of(verdict: Verdict) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a notebook shows of a failed verdict: the card, and beside it the same as text, HTML and facts."""
    bundle: Any = CheckCard(verdict)._repr_mimebundle_()
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
    return {**data, **verdict._repr_mimebundle_()}, metadata
