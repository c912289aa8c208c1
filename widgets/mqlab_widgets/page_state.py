"""What a viewer has chosen, opened and sized on the page: it touches no world."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mqlab.errors import LearnerError

LEAST_PX, MOST_PX = 320, 4_000
"""Sides of a stage."""


@dataclass(slots=True)
class PageState:
    """What is chosen, opened and how large, as long as one viewer looks."""

    chosen: str = ""
    """The machine that the controls act on."""
    other: str = ""
    """The one that was chosen before: the other end of a link."""
    followed: str = ""
    """The message whose way is lit: its unique key."""
    kind: str = "MessageStored"
    """The event kind that the next and previous buttons look for."""
    width: float = 1000.0
    height: float = 0.0
    """px of the stage on the page; its height counts in projector mode."""
    big: bool = False
    """Projector mode: the stage alone, large."""
    captions: bool = False
    """Whether the captions of a scenario are shown on a page that is not in projector mode, too."""
    opened_kinds: set[str] = field(default_factory=set)
    """The kinds of machines of which all are drawn, however many there are."""
    opened: set[str] = field(default_factory=set)
    """Paths of the parts that are opened in the generic inspector."""
    queue: tuple[str, int, int] = ("", 0, -1)
    """(topic, queue id, offset) of the message whose bytes are shown; -1: the newest."""

    def choose(self, node: str) -> None:
        """Choose a machine; the one before it stays as the other end of a link."""
        if node != self.chosen:
            self.other, self.chosen = self.chosen, node

    def seen(
        self, width: float | str | None = None, height: float | str | None = None, big: bool | str | None = None
    ) -> None:
        """How large the stage is on the page, in px, and whether it is there alone, in letters for a hall (projector
        mode); what is not told stays as it is.
        """
        wide = self.width if width is None else _px(width, LEAST_PX)
        high = self.height if height is None else _px(height, 0)
        self.width, self.height = wide, high
        self.big = self.big if big is None else big in (True, 1, "true", "1", "on")


def _px(side: float | str, least: float) -> float:
    """A side of a stage, within its bounds."""
    if not math.isfinite(float(side)):
        raise LearnerError(f"a stage cannot be {side} px large", "give a number of px")
    return min(max(float(side), least), MOST_PX)
