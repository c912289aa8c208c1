"""The teachers' pages: made from the labs where figures stand, and naming nothing that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mqlab.cli import main
from mqlab.labs.project import Project
from mqlab.labs.source import read_source
from mqlab.labs.teaching import PAGE, page
from mqlab.scenarios.storyboards import story_of

PROJECT = Project(Path(__file__).parents[2])
TEACHING = PROJECT.root / "docs" / "teaching"
BY_HAND = {name: (TEACHING / name).read_text(encoding="utf-8") for name in ("guide.md", "plans.md")}
ALL_TEXT = "\n".join(BY_HAND.values())


def test_the_page_of_the_labs_says_what_the_labs_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(PROJECT), "write it anew: python -m mqlab.labs.teaching"


def test_every_bet_that_the_guide_names_is_one_of_that_lab() -> None:
    bets = {}
    for path in PROJECT.select():
        lab = read_source(path)
        bets[lab.number] = {line.partition(": ")[0] for line in lab.head.wrong_predictions}
    named = re.findall(r"\b(\d\d) `([a-z-]+)`", BY_HAND["guide.md"])
    assert len(named) > 15
    assert [(lab, bet) for lab, bet in named if bet not in bets[lab]] == []


def test_every_story_that_is_named_can_be_shown() -> None:
    # What stands in capitals (NN, SCENARIO) is for the reader to fill in.
    named = {name for name in re.findall(r"mqlab demo ([\w-]+)", ALL_TEXT) if not name.isupper()}
    assert len(named) > 8
    assert all(story_of(name).captions for name in named)


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (PROJECT.root / "Makefile").read_text(encoding="utf-8")))
    named = set(re.findall(r"`make ([a-z-]+)`", ALL_TEXT))
    assert len(named) > 5
    assert named <= targets


@pytest.mark.parametrize("command", sorted(set(re.findall(r"mqlab course ([a-z-]+)", ALL_TEXT))))
def test_every_command_for_a_course_that_is_named_exists(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["course", command, "--help"])
    assert ended.value.code == 0
    options = capsys.readouterr().out
    for line in re.findall(rf"mqlab course {command} [^`\n|]*", ALL_TEXT):
        assert all(option in options for option in re.findall(r"--[a-z]+", line)), line


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", ALL_TEXT)
    assert links
    assert [link for link in links if not (TEACHING / link).is_file()] == []
