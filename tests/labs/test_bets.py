"""A prediction is stored, shown again beside the truth, and never scored."""

from __future__ import annotations

import re

import pytest

from mqlab.check import NotebookBets
from mqlab.check.bets import AFTERWARDS, OPEN, REVEAL_MIME, REVEALED_MIME
from mqlab.errors import LearnerError


@pytest.fixture
def sheet() -> NotebookBets:
    return NotebookBets()


def test_three_dots_are_no_prediction_yet(sheet: NotebookBets) -> None:
    asked = sheet.predict("requests", "How many requests before the first message?", unit="requests", prediction=...)
    assert repr(asked) == (
        "Before you look: How many requests before the first message?\n  your prediction: no prediction yet"
    )


def test_a_prediction_stands_beside_the_truth_with_its_reason(sheet: NotebookBets) -> None:
    sheet.predict("requests", "How many requests?", 0, unit="requests")
    assert repr(sheet.reveal("requests", 1, why="the first send asks for the route")) == (
        "How many requests?\n"
        "  you said: 0 requests\n"
        "  it is:    1 request\n"
        "  why:      the first send asks for the route"
    )


def test_a_reveal_tells_programs_what_it_tells_people(sheet: NotebookBets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OPEN, raising=False)
    sheet.predict("first", "How many?", 0, unit="requests")
    sheet.predict("second", "How long?", unit="ms")
    first = sheet.reveal("first", 1, why="the route")._repr_mimebundle_()
    facts = {"bet": "first", "question": "How many?", "said": "0 requests", "truth": "1 request", "why": "the route"}
    assert first[REVEAL_MIME] == facts
    assert first["text/plain"].splitlines()[2] == "  it is:    1 request"
    second = sheet.reveal("second", 4321, why="4321 it is")
    assert "4321" not in str(second._repr_mimebundle_()), "it is kept back while there is no bet"
    everything = sheet.reveal()._repr_mimebundle_()
    assert everything[REVEALED_MIME]["bets"] == [facts, second._repr_mimebundle_()[REVEAL_MIME]]


@pytest.mark.parametrize(
    ("unit", "one"),
    [("requests", "1 request"), ("copies", "1 copy"), ("s", "1 s"), ("ms", "1 ms"), ("of 2", "1 of 2"), ("", "1")],
)
def test_one_of_a_unit_is_said_in_the_singular(sheet: NotebookBets, unit: str, one: str) -> None:
    assert sheet.predict("count", "How many?", 1, unit=unit).said == one
    assert sheet.predict("two", "How many?", 2, unit=unit).said == f"2 {unit}".strip()


def test_a_choice_is_named_by_its_letter_or_its_text(sheet: NotebookBets) -> None:
    choices = ["the oldest", "the newest"]
    by_letter = sheet.predict("out", "Which leaves first?", "b", choices=choices)
    by_text = sheet.predict("out", "Which leaves first?", "the newest", choices=choices)
    assert by_letter == by_text
    assert repr(by_text).splitlines()[1:] == [
        "  (a) the oldest",
        "  (b) the newest",
        "  your prediction: the newest",
    ]


def test_running_a_cell_again_replaces_its_answer_and_keeps_its_place(sheet: NotebookBets) -> None:
    sheet.predict("first", "First?", "x")
    sheet.predict("second", "Second?", "y")
    sheet.reveal("first", "z")
    sheet.predict("first", "First?", "other")
    assert repr(sheet.reveal()) == (
        "First?\n  you said: other (written after the truth was shown)\n  it is:    not revealed yet\n"
        "Second?\n  you said: y\n  it is:    not revealed yet"
    )


def test_without_a_bet_the_truth_is_kept_back(sheet: NotebookBets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OPEN, raising=False)
    sheet.predict("first", "How many?", unit="ms", prediction=...)
    told = repr(sheet.reveal("first", 4321, why="the limit is 4321"))
    assert "4321" not in told
    assert "bet first: write your answer in place of the dots" in told
    assert "4321" not in repr(sheet.reveal())
    sheet.predict("first", "How many?", 5, unit="ms")
    told = repr(sheet.reveal("first", 4321))
    assert "you said: 5 ms\n  it is:    4321 ms" in told
    monkeypatch.setenv(OPEN, "shown")
    sheet.predict("first", "How many?", unit="ms", prediction=...)
    assert "it is:    4321 ms" in repr(sheet.reveal("first", 4321))


def test_a_bet_that_is_written_after_its_truth_says_so_and_the_same_bet_again_does_not(sheet: NotebookBets) -> None:
    sheet.predict("first", "How many?", 5, unit="ms")
    sheet.reveal("first", 7)
    assert sheet.predict("first", "How many?", 5, unit="ms").said == "5 ms"
    assert sheet.predict("first", "How many?", 7, unit="ms").said == f"7 ms{AFTERWARDS}"
    assert f"you said: 7 ms{AFTERWARDS}\n  it is:    7 ms" in repr(sheet.reveal("first", 7))


def test_what_was_shown_does_not_change_when_the_answer_does(sheet: NotebookBets) -> None:
    sheet.predict("first", "First?", "x")
    shown = sheet.reveal("first", "z")
    sheet.predict("first", "First?", "other")
    assert "you said: x" in repr(shown)


@pytest.mark.parametrize(
    ("answer", "options", "hint"),
    [
        ("many", {"unit": "requests"}, "write a number (requests)"),
        (True, {"unit": "requests"}, "write a number"),
        ("c", {"choices": ["yes", "no"]}, "one of the letters a, b"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_what_to_write(
    sheet: NotebookBets, answer: str | bool, options: dict[str, list[str]], hint: str
) -> None:
    with pytest.raises(LearnerError) as refused:
        sheet.predict("requests", "How many?", answer, **options)  # type: ignore[arg-type]
    assert hint in refused.value.hint


def test_a_reveal_without_its_question_says_to_run_from_the_top(sheet: NotebookBets) -> None:
    sheet.predict("asked", "Asked?")
    with pytest.raises(LearnerError, match=r"'never' was not asked\n.*from its top \(asked so far: asked\)"):
        sheet.reveal("never", 1)


def test_html_says_the_same_and_escapes_what_it_is_given(sheet: NotebookBets) -> None:
    sheet.predict("tag", "Is <b> a tag?", "a < b")
    assert "Is &lt;b&gt; a tag?" in sheet.reveal("tag", "a & b")._repr_html_()
    assert re.search(r">a &lt; b</td><td [^>]*>a &amp; b<", sheet.reveal()._repr_html_())
