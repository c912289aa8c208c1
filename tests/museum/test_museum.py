"""The museum: each bug shows, its fix holds in the same seeds, and the command says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mqlab.commands.museum import BROKE, HELD, main
from mqlab.errors import LearnerError
from mqlab.explore import Trial
from mqlab.museum import EXHIBITS, Exhibit, Visit, exhibit, first_broken, shortest, visit
from mqlab.museum.rules import FailedComesSoon
from mqlab.museum.search import watch
from mqlab.scenarios import get
from mqlab.scenarios.museum import FIXED

SEEDS = range(8)
PAGE = Path(__file__).parents[2] / "docs" / "museum.md"
by_number = pytest.mark.parametrize("one", EXHIBITS, ids=lambda one: one.number)


@by_number
def test_the_bug_shows_within_eight_seeds(one: Exhibit) -> None:
    seen = first_broken(one, SEEDS)
    assert seen is not None
    assert seen.reason
    assert seen.story


@by_number
def test_the_fixed_code_keeps_the_rule_in_the_same_seeds(one: Exhibit) -> None:
    broken = first_broken(one, SEEDS)
    assert broken is not None
    for seed in {0, broken.seed}:
        seen = visit(one, seed, FIXED)
        assert seen.holds, seen.reason
        assert seen.now_ms >= get(one.scenario).seconds * 1_000


def test_a_visit_is_the_same_each_time() -> None:
    assert visit(exhibit("3787"), 5) == visit(exhibit("3787"), 5)


def kinds_of(seen: Visit) -> list[str]:
    """What happened in a story, event by event."""
    return [re.split(r"\s{2,}", line.strip())[3].split()[0] for line in seen.story]


def test_the_ack_that_overtakes_its_check_point_came_while_that_waited_in_memory() -> None:
    seen = visit(exhibit("3787"), 0)
    kinds = kinds_of(seen)
    stored = [kind for kind in kinds if kind in ("AckStored", "CheckPointStored")]
    assert stored[:2] == ["AckStored", "CheckPointStored"]
    assert kinds.index("ReviveAckRead") < kinds.index("ReviveCheckPointRead")
    assert kinds[-1] == "MessageRevived"


def test_a_request_looks_at_some_of_what_lies_there_and_then_sleeps_beside_it() -> None:
    seen = visit(exhibit("8472"), 0, messages=20)
    assert kinds_of(seen) == ["MessageStored", "PopWoken", "PopHeld", "PopWoken", "MessagePopped"]
    assert "reason=arrived" in seen.story[1]
    assert "reason='timed out'" in seen.story[3]


def test_the_story_of_a_message_that_is_tried_too_often_has_each_try() -> None:
    kinds = kinds_of(visit(exhibit("8332"), 0))
    assert (kinds.count("ConsumeStarted"), kinds.count("PopGivenUp"), kinds.count("MessageRevived")) == (3, 2, 2)
    kinds = kinds_of(visit(exhibit("8332"), 0, most=0))
    assert (kinds.count("ConsumeStarted"), kinds.count("PopGivenUp"), kinds.count("MessageRevived")) == (2, 1, 1)


def test_what_failed_and_is_not_tried_again_in_the_end_counts_too() -> None:
    lab = get("museum-4815").build(0, parameters={"code": "broken"})
    found = watch(lab, (FailedComesSoon,), 100)
    assert found is not None
    assert "it is to come again in 120000 ms" in found.reason
    assert "InvisibleTimeRequested" in found.story[-1]


def test_the_shortest_load_of_a_slow_consumer_still_breaks_the_rule() -> None:
    seen = shortest(exhibit("4153"), 0)
    assert seen is not None
    assert dict(seen.parameters)["messages"] < 12
    assert not seen.holds


def test_an_issue_s_number_finds_its_exhibit() -> None:
    assert exhibit("3443") is exhibit("5408")
    with pytest.raises(LearnerError, match="no exhibit"):
        exhibit("1")


def test_a_room_has_two_codes() -> None:
    with pytest.raises(LearnerError, match="choose among broken, fixed"):
        get("museum-3787").build(0, parameters={"code": "mended"})


def test_a_report_of_a_room_can_be_explored() -> None:
    outcome = Trial("museum-3507", 0, {"code": FIXED, "messages": 3}, plan=()).outcome
    assert outcome.now_ms > 60_000


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_lists_plays_and_mends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == HELD
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[::2]] == [one.number for one in EXHIBITS]
    assert main(["3507"]) == BROKE
    told = capsys.readouterr().out
    assert "BROKEN in seed 0: it comes again" in told
    assert "MessageRevived" in told
    assert main(["3507", "--fixed", "--seeds", "2"]) == HELD
    assert "It holds with the fixed code in 2 seeds." in capsys.readouterr().out


def test_the_table_has_a_row_for_each_bug(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    few = (exhibit("3507"), exhibit("8479"))
    monkeypatch.setattr("mqlab.commands.museum.EXHIBITS", few)
    assert main(["--table", "--seeds", "2", "--jobs", "1"]) == HELD
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| #3507", "| #8479"]
    assert all(row.endswith("| 0 of 2 |") for row in rows[2:])


def test_a_bug_that_does_not_show_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab.commands.museum.EXHIBITS", (exhibit("3507"),))
    monkeypatch.setattr("mqlab.scenarios.museum_parts.CountsTheWaitTwice.due_ms", lambda self, message: 0)
    assert main(["--table", "--seeds", "1", "--jobs", "1"]) == BROKE
    assert "does not show" in capsys.readouterr().err


def test_the_page_s_table_says_the_first_seed() -> None:
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| #")]
    assert len(rows) == len(EXHIBITS)
    for one, (issues, invariant, first, _, messages, fixed) in zip(EXHIBITS, rows, strict=True):
        assert one.number in issues
        assert invariant == one.invariant
        seen = first_broken(one, range(int(first) + 1))
        assert seen is not None
        assert seen.seed == int(first)
        assert fixed == "0 of 1000 |"
        assert not visit(one, int(first), messages=int(messages)).holds


@by_number
def test_the_page_tells_each_story_with_its_rule(one: Exhibit) -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert one.title in page
    assert one.invariant in page
    for issue in one.issues:
        assert f"https://github.com/apache/rocketmq/issues/{issue}" in page


