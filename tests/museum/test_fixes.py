"""A fix to write for each bug: the decision as it was shows the bug, the right one passes, mistakes are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mqlab.commands.museum import BROKE, HELD, main
from mqlab.errors import LearnerError
from mqlab.museum import EXHIBITS, FIXES, Fix, fix_of
from mqlab.museum.fixes import OTHER_SEEDS, function_of, judge

from .wrong_fixes import RIGHT, WRONG

PAGE = Path(__file__).parents[2] / "docs" / "museum.md"
by_fix = pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.number)
wrong_ones = pytest.mark.parametrize(
    ("number", "answer"), [(number, answer) for number, answers in WRONG.items() for answer in answers],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)  # fmt: skip


def test_every_exhibit_has_a_fix_to_write_three_hints_and_two_mistakes() -> None:
    assert [fix.number for fix in FIXES] == [one.number for one in EXHIBITS]
    assert {*RIGHT} == {*WRONG} == {fix.number for fix in FIXES}
    for fix in FIXES:
        assert len({*fix.all_hints}) == 3
        assert len(WRONG[fix.number]) >= 2
    assert fix_of("3443") is fix_of("5408")


@by_fix
def test_the_decision_as_it_was_shows_the_bug_in_the_room(fix: Fix) -> None:
    silent = fix._replace(told=lambda answer, draw: "")
    start = function_of(fix, fix.start, "start.py")
    assert start.__name__ == fix.name
    found = [judge(silent, start, seed=seed) for seed in OTHER_SEEDS[:4]]
    rule = next(one for one in EXHIBITS if one.number == fix.number).invariant
    assert any(wrong is not None and wrong.explanation.startswith(rule) and wrong.trace for wrong in found)


@by_fix
def test_the_right_decision_passes(fix: Fix) -> None:
    verdict = fix.check.play(RIGHT[fix.number], seeds=OTHER_SEEDS[:3])
    assert verdict.passed, verdict


@wrong_ones
def test_a_mistake_is_refused(number: str, answer: Any) -> None:
    verdict = fix_of(number).check.play(answer, seeds=OTHER_SEEDS[:2], failures_wanted=1)
    assert verdict.state == "wrong"
    assert verdict.explanation


def test_seeds_of_a_check_were_not_shown() -> None:
    assert OTHER_SEEDS.start > 1_000


def test_a_decision_that_says_no_time_is_told() -> None:
    verdict = fix_of("3507").check.play(lambda deliver_ms, waited_ms: "soon", seeds=OTHER_SEEDS[:1])
    assert "'soon' is no time" in verdict.explanation


def test_a_decision_that_wakes_a_request_for_nothing_is_told() -> None:
    verdict = fix_of("8472").check.play(lambda found, left: True, seeds=OTHER_SEEDS[:1])
    assert "woken with nothing left" in verdict.explanation


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_makes_the_file_and_judges_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fix.py"
    assert main(["8479", "--fix", str(file)]) == HELD
    assert "what_now" in capsys.readouterr().out
    assert file.read_text(encoding="utf-8") == fix_of("8479").start
    assert main(["8479", "--fix", str(file), "--seeds", "2"]) == BROKE
    told = capsys.readouterr().out
    assert "not right yet" in told
    assert "it is gone" in told
    assert "CheckPointPutAgain" in told
    mended = file.read_text(encoding="utf-8").replace("asked >= queue_end or not reads", "not reads")
    file.write_text(mended, encoding="utf-8")
    assert main(["8479", "--fix", str(file), "--seeds", "2"]) == HELD
    assert "2 seeds played, all went well" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "words"),
    [("def f(:", "cannot be run: SyntaxError"), ("x = 1", "no function is_it"), ("1 / 0", "run: ZeroDivisionError")],
)
def test_a_file_that_is_no_fix_is_told(tmp_path: Path, source: str, words: str) -> None:
    file = tmp_path / "fix.py"
    file.write_text(source, encoding="utf-8")
    with pytest.raises(LearnerError, match=words):
        main(["7724", "--fix", str(file)])


def test_a_fix_needs_an_exhibit_and_a_place(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="a fix of which exhibit"):
        main(["--fix", "x.py"])
    with pytest.raises(LearnerError, match="cannot be written"):
        main(["7724", "--fix", str(tmp_path / "none" / "x.py")])
    with pytest.raises(LearnerError, match="cannot be read"):
        main(["7724", "--fix", str(tmp_path)])


def test_hints_are_given_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["5408", "--hint", "2"]) == HELD
    lines = capsys.readouterr().out.splitlines()
    assert [line[:3] for line in lines] == ["1. ", "2. "]
    assert lines[1].endswith(fix_of("5408").hints[0])


@by_fix
def test_the_page_says_what_is_to_be_written(fix: Fix) -> None:
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    title = next(one.title for one in EXHIBITS if one.number == fix.number)
    section = next(section for section in sections if section.startswith(title))
    assert f"mqlab museum {fix.number} --fix my_fix.py" in section
    assert f"`{fix.start.partition(':')[0].removeprefix('def ')}`" in section
