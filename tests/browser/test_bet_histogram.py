"""The histogram of a bet in a page: it grows while students hand in, and the button shows and hides the truth."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import expect

from .notebook_page import NotebookPage

ROOT = Path(__file__).parents[2]


def hand_in(place: Path, student: str, said: str) -> None:
    source = f'predict("who-filters", "Who?", choices=["x", "y", "z"], prediction={said})'
    path = place / student / "02_store.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "source": source}]}))


def test_a_bet_that_comes_in_is_drawn_and_the_truth_is_kept_until_the_button(
    notebooks: NotebookPage, tmp_path: Path
) -> None:
    hand_in(tmp_path, "ada", '"a"')
    shown = f'BetHistogram({str(tmp_path)!r}, "who-filters", truth="c", root={str(ROOT)!r}, look_s=0.1)'
    notebook = notebooks.open("bets.ipynb", [f"from mqlab.grading.bet_histogram import BetHistogram\n{shown}"])
    notebook.run()
    cell = notebook.cell(0)
    expect(cell.get_by_text("1 of 1 have bet")).to_be_visible()
    hand_in(tmp_path, "bob", '"b"')
    expect(cell.get_by_text("2 of 2 have bet")).to_be_visible()
    expect(cell.get_by_text("it is so")).to_have_count(0)
    cell.get_by_role("button", name="Show the truth").click()
    expect(cell.get_by_role("row").filter(has_text="it is so")).to_contain_text("c)")
    cell.get_by_role("button", name="Hide the truth").click()
    expect(cell.get_by_text("it is so")).to_have_count(0)
    notebook.close()
