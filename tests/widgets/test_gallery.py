"""The gallery: every view has its picture, and every picture is small."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from docs.images.make_gallery import VIEWS, View

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = DOCS / "images" / "gallery"
MOST_BYTES = 150_000


def test_the_page_shows_every_picture_and_no_other() -> None:
    shown = re.findall(r"!\[[^]]+\]\(images/gallery/([a-z-]+\.png)\)", (DOCS / "gallery.md").read_text("utf-8"))
    assert sorted(shown) == sorted(file.name for file in PICTURES.iterdir())


def test_pictures_are_small() -> None:
    assert [file.name for file in PICTURES.iterdir() if file.stat().st_size >= MOST_BYTES] == []


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_each_snippet_runs_as_it_stands(view: View) -> None:
    assert view.snippet.replace("\n", "\n    ").replace("    \n", "\n") in (DOCS / "gallery.md").read_text("utf-8")
    *lines, last = ast.parse(view.snippet).body
    names: dict[str, Any] = {}
    exec(compile(ast.Module(lines, []), view.name, "exec"), names)
    assert isinstance(last, ast.Expr)
    shown = eval(compile(ast.Expression(last.value), view.name, "eval"), names)
    assert getattr(getattr(shown, "session", None), "said", "") == ""
    shown.close()
