"""A failed check as a card: the world is opened when it is asked for, where it went wrong, and closed again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqlab import Lab
from mqlab.check import VERDICT_MIME, Verdict, Wrong
from mqlab.check.registry import LabCheck
from mqlab.ipython import _verdict_bundle
from mqlab_widgets import check_card
from mqlab_widgets.check_card import CLOSE, OPEN, OPENING, CheckCard
from mqlab_widgets.stepper import Stepper

WIDGET = "application/vnd.jupyter.widget-view+json"


def stops_at(answer: Any, *, seed: int) -> Wrong | None:
    """A world is stopped where the answer says."""
    lab = Lab(seed=seed)
    lab.name_server()
    lab.broker("broker-a")
    lab.run_for(ms=answer(seed))
    return Wrong("it went wrong here", "step")


def without_a_world(answer: Any, *, seed: int) -> Wrong | None:
    """A number is a number."""
    return Wrong(f"<b>{answer(seed)}</b> is no number")


def verdict_of(judge: Any) -> Verdict:
    """What such a check says of a wrong answer."""
    return LabCheck("97/x", 1, judge).play(lambda seed: 1_000 + seed, seeds=[3])


def test_the_button_opens_the_world_at_the_failing_event_and_closes_it() -> None:
    card = CheckCard(verdict_of(stops_at))
    assert not [part for part in card.children if isinstance(part, Stepper)]
    assert "Stepper(_.open())" not in card.children[0].value
    card.button.click()
    (viewer,) = [part for part in card.children if isinstance(part, Stepper)]
    lab = viewer.session.lab
    assert lab.now_ms == pytest.approx(1_023.8, abs=0.01)
    assert lab.history.cursor == len(lab.history) > 0
    assert card.button.description == CLOSE
    assert card.children[2].value == "Seed 3 at 1,024 ms, as the judge has left it: step back from here."
    card.button.click()
    assert len(card.children) == 3
    assert (card.button.description, card.children[2].value) == (OPEN, "")


def test_a_double_click_opens_the_world_once_and_the_button_says_that_it_is_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check_card, "QUIET_SECONDS", 0)
    card = CheckCard(verdict_of(stops_at))
    told: list[str] = []
    card.button.observe(lambda change: told.append(change.new), "description")

    async def cell() -> None:
        card.button.click()
        card.button.click()
        assert card.button.disabled
        assert told == [OPENING, CLOSE]
        while card.button.disabled:
            await asyncio.sleep(0)
        card.button.click()

    asyncio.run(cell())
    assert told == [OPENING, CLOSE, OPEN]
    assert len(card.children) == 3


def test_a_world_whose_replay_is_interrupted_can_be_opened_again() -> None:
    interrupted = iter([False, True, False])

    def once(answer: Any, *, seed: int) -> Wrong | None:
        """A world, and in between the notebook's stop button."""
        if next(interrupted):
            raise KeyboardInterrupt
        return stops_at(answer, seed=seed)

    card = CheckCard(verdict_of(once))
    with pytest.raises(KeyboardInterrupt):
        card.button.click()
    assert (card.button.description, card.button.disabled) == (OPEN, False)
    card.button.click()
    assert card.button.description == CLOSE


def test_a_world_that_can_no_longer_be_played_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check may fail in a world in one play, and before there is a world in the next."""
    played = iter([True, False])

    def once(answer: Any, *, seed: int) -> Wrong | None:
        """A world, once."""
        return (stops_at if next(played) else without_a_world)(answer, seed=seed)

    card = CheckCard(verdict_of(once))
    card.button.click()
    assert len(card.children) == 3
    assert card.children[2].value.startswith("97/x plays no world")


def test_a_notebook_shows_the_card_and_keeps_text_and_facts_beside_it() -> None:
    data, _ = _verdict_bundle(verdict_of(stops_at))
    assert WIDGET in data
    assert data[VERDICT_MIME]["failed_seed"] == 3
    assert "Stepper(_.open())" in data["text/plain"]
    assert "Stepper(_.open())" in data["text/html"]


def test_without_a_world_the_verdict_is_shown_as_ever() -> None:
    verdict = verdict_of(without_a_world)
    assert _verdict_bundle(verdict) == verdict._repr_mimebundle_()
    assert "<b>1003</b>" not in verdict.card()
