"""Storyboards: a lab's main scene, from caption to caption."""

from __future__ import annotations

import re

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError
from mqlab.scenarios import get
from mqlab.scenarios.storyboards import STORYBOARDS
from mqlab_widgets import Stepper, storyboard
from mqlab_widgets.session import Session


def sentences(stepper: Stepper) -> list[str]:
    """What the captions say, from one to the next, until the story is told."""
    session = stepper.session
    session.page.seen(big=True)
    told: list[str] = []
    while True:
        caption = session.caption()
        assert caption is not None
        told.append(caption.words)
        session.do({"do": "next_caption"})
        if session.said:
            assert session.said.startswith("The story is told")
            return told


@pytest.mark.parametrize("lab", STORYBOARDS)
def test_a_storyboard_goes_from_caption_to_caption_to_the_end(lab: str) -> None:
    stepper = storyboard(lab)
    assert sentences(stepper) == [caption.words for caption in get(STORYBOARDS[lab][0]).captions]
    stepper.close()


WINDOWS = {"1280 x 720": (1248, 629), "1920 x 1080": (1888, 955)}
"""The stage in projector mode, px, in a window of this size."""
ROOMY = sorted({*STORYBOARDS} - {"04"})
"""In lab 04 four producers stand one under the other, so that there is one line for why a message could not be sent."""


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", [name for lab in ROOMY for name in STORYBOARDS[lab]])
def test_no_words_are_cut_on_the_stage_while_a_story_is_told_before_a_class(name: str, window: str) -> None:
    stepper = storyboard(name)
    session = stepper.session
    width, height = WINDOWS[window]
    session.page.seen(width, height)
    session.page.seen(big=True)
    cut: set[str] = set()
    while not session.said:
        cut |= {words for words in re.findall("<text[^>]*>([^<]*)", session.scene().svg()) if words.endswith("…")}
        session.do({"do": "next_caption"})
    assert session.said.startswith("The story is told")
    assert not cut
    stepper.close()


def test_back_from_caption_to_caption() -> None:
    session = storyboard("14").session
    session.page.seen(big=True)
    first = session.caption()
    session.do({"do": "next_caption"})
    second = session.caption()
    session.do({"do": "step_event"})
    session.do({"do": "previous_caption"})
    assert session.caption() == second
    session.do({"do": "previous_caption"})
    assert session.caption() == first
    session.do({"do": "previous_caption"})
    assert session.said == "This is where the story begins."
    assert session.caption() == first


def test_a_world_without_a_story_says_so() -> None:
    session = Session(Lab(seed=1), changed=lambda: None)
    session.do({"do": "next_caption"})
    assert "not in it" in session.said
    session.do({"do": "previous_caption"})
    assert "begins" in session.said


def test_a_story_that_does_not_go_on_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab_widgets.commands.STORY_MS", 2_000)
    lab = get("rivals").build(7, parameters={"rate_per_minute": 1})
    session = Session(lab, changed=lambda: None)
    session.do({"do": "now"})
    for _ in range(8):
        session.do({"do": "next_caption"})
    assert session.said.startswith("Not found in 2 s of the world: caption.")


def test_a_page_is_asked_for_projector_mode_once() -> None:
    stepper = storyboard("02")
    sent: list[dict[str, object]] = []
    stepper.send = lambda content, *_: sent.append(content)  # type: ignore[method-assign]
    for page in ("first", "second"):
        stepper._command({"do": "shown", "view": page, "width": 900})
    assert [message["project"] for message in sent if "project" in message] == ["first"]
    stepper.close()


def test_an_unknown_lab_says_which_there_are() -> None:
    with pytest.raises(LearnerError, match="there is no scenario 'x'"):
        storyboard("x")
