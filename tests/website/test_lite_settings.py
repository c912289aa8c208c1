"""The teacher's settings of handing in, as a site is built with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.check.hand_in import SETTINGS, HandInSettings, read_settings
from mqlab.errors import LearnerError
from website.lite import hand_in_of, write_hand_in


def test_a_form_lies_beside_the_labs(tmp_path: Path) -> None:
    given, labs = tmp_path / "given.json", tmp_path / "labs"
    given.write_text('{"form": "https://forms.example"}')
    labs.mkdir()
    write_hand_in(hand_in_of(given), labs)
    assert read_settings(labs / SETTINGS) == HandInSettings(form="https://forms.example")


def test_without_a_file_there_is_nothing_beside_them(tmp_path: Path) -> None:
    write_hand_in(hand_in_of(None), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_browser_cannot_do_is_refused(tmp_path: Path) -> None:
    given = tmp_path / "given.json"
    with pytest.raises(LearnerError, match="there is no file"):
        hand_in_of(given)
    given.write_text('{"folder": "/shared"}')
    with pytest.raises(LearnerError, match="names a folder, which no browser reaches"):
        hand_in_of(given)
