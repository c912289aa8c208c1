"""The gallery: every view has its picture, and every picture is small."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = DOCS / "images" / "gallery"
MOST_BYTES = 150_000


def test_the_page_shows_every_picture_and_no_other() -> None:
    shown = re.findall(r"!\[[^]]+\]\(images/gallery/([a-z-]+\.png)\)", (DOCS / "gallery.md").read_text("utf-8"))
    assert sorted(shown) == sorted(file.name for file in PICTURES.iterdir())


def test_pictures_are_small() -> None:
    assert [file.name for file in PICTURES.iterdir() if file.stat().st_size >= MOST_BYTES] == []
