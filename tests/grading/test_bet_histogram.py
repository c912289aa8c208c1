"""A bet, live: the histogram follows a directory, and keeps the truth until the teacher shows it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from mqlab.errors import LearnerError
from mqlab.grading.bet_histogram import BetHistogram

ROOT = Path(__file__).parents[2]
LAB = "02_store"


def hand_in(place: Path, student: str, said: str) -> None:
    """A notebook with one cell: the bet."""
    source = f'predict("who-filters", "Who?", choices=["x", "y", "z"], prediction={said})'
    path = place / student / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "source": source}]}))


def test_the_truth_is_shown_when_the_button_is_pressed(tmp_path: Path) -> None:
    hand_in(tmp_path, "ada", '"a"')
    hand_in(tmp_path, "bob", '"<script>"')
    shown = BetHistogram(tmp_path, "who-filters", truth="c", root=ROOT)
    picture, button = shown.children
    assert "2 of 2 have bet" in picture.value
    assert "<script>" not in picture.value
    assert "it is so" not in picture.value
    button.click()
    (true,) = [row for row in picture.value.split("<tr>") if "it is so" in row]
    assert "c) " in true
    button.click()
    assert "it is so" not in picture.value
    assert "\n2 of 2 have bet" in shown._repr_mimebundle_()["text/plain"]


def test_without_a_truth_there_is_no_button(tmp_path: Path) -> None:
    assert len(BetHistogram(tmp_path, "who-filters", root=ROOT).children) == 1


def test_it_follows_the_directory_until_it_is_stopped(tmp_path: Path) -> None:
    async def follow() -> None:
        shown = BetHistogram(tmp_path, "who-filters", root=ROOT, look_s=0)
        assert shown.bets.said == {}
        hand_in(tmp_path, "ada", '"b"')
        async with asyncio.timeout(30):
            while not shown.bets.said:
                await asyncio.sleep(0)
        assert "1 of 1 have bet" in shown.children[0].value
        shown.close()
        hand_in(tmp_path, "bob", '"b"')
        for _ in range(5):
            await asyncio.sleep(0)
        assert set(shown.bets.said) == {"ada"}

    asyncio.run(follow())


def test_a_directory_that_goes_away_is_told(tmp_path: Path) -> None:
    async def follow() -> None:
        place = tmp_path / "shared"
        place.mkdir()
        shown = BetHistogram(place, "who-filters", root=ROOT, look_s=0)
        place.rmdir()
        async with asyncio.timeout(30):
            while "is no directory" not in shown.children[0].value:
                await asyncio.sleep(0)
        shown.stop()

    asyncio.run(follow())
    with pytest.raises(LearnerError, match="is no directory"):
        BetHistogram(tmp_path / "shared", "who-filters", root=ROOT)
