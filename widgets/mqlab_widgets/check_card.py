"""The card of a check that failed: the verdict, and a button that opens its world where it went wrong."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets

from mqlab.check import Verdict
from mqlab.errors import MqlabError
from mqlab_widgets.stepper import Stepper
from mqlab_widgets.viewer import answer_beside_cells

OPEN = "Open this world"
CLOSE = "Close it"


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
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None
            self._show(OPEN, "")
            return
        try:
            lab = self._verdict.open()
        except MqlabError as problem:
            self._show(OPEN, str(problem))
            return
        self._viewer = Stepper(lab)
        at = f"Seed {self._verdict.failed_seed} at {lab.now_ms:,.0f} ms"
        self._show(CLOSE, f"{at}, as the judge has left it: step back from here.")

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
