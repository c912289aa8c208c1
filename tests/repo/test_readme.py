"""The first session of the README does what the README says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def test_the_first_session_prints_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    match = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    source, expected = match.groups()
    cell = eval(compile(source, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {})
    with pytest.raises(StopIteration):
        cell.send(None)
    assert capsys.readouterr().out == expected


def test_every_page_and_picture_that_the_readme_names_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert "://" in target or (README.parent / target).is_file(), target
