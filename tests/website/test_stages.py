"""Recorded stages, without a browser: where they begin."""

from __future__ import annotations

import pytest

from mqlab.scenarios import Storyboard, get
from website.stages import SCENES, before_the_story

TOLD = [name for names in SCENES.values() for name in names[:1] if get(name).captions]


@pytest.mark.parametrize("name", dict.fromkeys(TOLD))
def test_no_sentence_of_a_story_is_over_before_its_recording_begins(name: str) -> None:
    lab = before_the_story(name)
    board, place = Storyboard(lab), lab.history.cursor
    assert board.before(place) is None
    first = board.after(0)
    assert first is None or first - place in (0, 1)
    # What the scenario has spawned begins, so that no coroutine is left behind that never did.
    lab.run_for(ms=1)
