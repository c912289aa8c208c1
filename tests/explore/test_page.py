"""docs/checks.md names every rule and every exception in the words of the code."""

from __future__ import annotations

from pathlib import Path

from mqlab.explore import RULES

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "checks.md").read_text(encoding="utf-8").split())


def test_the_page_names_every_rule() -> None:
    for rule in RULES:
        assert f"**{rule.__name__}**: {(rule.__doc__ or '').partition(chr(10))[0]}" in PAGE


def test_the_page_explains_every_exception() -> None:
    for rule in RULES:
        for name, text in rule.EXCEPTIONS.items():
            assert f"**{name}** (" in PAGE
            assert text in PAGE
