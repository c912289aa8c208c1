"""A storyboard: the main scene of a lab in projector mode, caption by caption."""

from __future__ import annotations

from mqlab.scenarios import Storyboard
from mqlab.scenarios.storyboards import story_of
from mqlab_widgets.stepper import Stepper

PIECE_MS = 50


def storyboard(name: str, seed: int | str = 7) -> Stepper:
    """The scenario of a lab's main scene (`storyboard("06")`), or one by its name, at its first caption.

    As the last line of a cell it fills the page: Page Down and Page Up go from caption to caption (as a presenter's
    remote control does), space plays from there on, Escape leads back to the notebook.
    """
    lab = story_of(name).build(seed)
    told = Storyboard(lab)
    while (begins := told.after(0)) is None:
        lab.run_for(ms=PIECE_MS)
    lab.history.move_to(begins)
    return Stepper(lab, projector=True)
