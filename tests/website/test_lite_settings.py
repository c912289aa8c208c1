"""The teacher's settings of handing in, as a site is built with them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

import mqlab
from mqlab.check.hand_in import INSTALLED, HandInSettings, read_settings
from mqlab.errors import LearnerError
from website.lite import hand_in_of, installed, site_of


def unpacked(given: Path | None, into: Path) -> Path:
    """Where the site's Python has its settings, once its files are unpacked."""
    with tarfile.open(fileobj=io.BytesIO(site_of([], installed(hand_in_of(given))))) as files:
        files.extractall(into, filter="data")
    return into / INSTALLED.relative_to(Path(mqlab.__file__).parents[1])


def test_the_site_s_python_has_the_form(tmp_path: Path) -> None:
    given = tmp_path / "given.json"
    given.write_text('{"form": "https://forms.example"}')
    assert read_settings(unpacked(given, tmp_path / "python")) == HandInSettings(form="https://forms.example")


def test_without_a_file_it_has_none(tmp_path: Path) -> None:
    assert not unpacked(None, tmp_path / "python").exists()


def test_what_a_browser_cannot_do_is_refused(tmp_path: Path) -> None:
    given = tmp_path / "given.json"
    with pytest.raises(LearnerError, match="there is no file"):
        hand_in_of(given)
    given.write_text('{"folder": "/shared"}')
    with pytest.raises(LearnerError, match="names a folder, which no browser reaches"):
        hand_in_of(given)
