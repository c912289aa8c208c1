"""`mqlab why`, as somebody uses it who has a question."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.answers import answers, find, search
from mqlab.answers.page import phrasings
from mqlab.answers.search import words_of
from mqlab.commands.why import main


def test_the_best_answer_is_printed_and_others_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["offset", "moves", "RECONSUME_LATER"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Why does the offset move although my listener returns RECONSUME_LATER?\n\nA failed ")
    assert "mqlab why offset-moves --page" in said
    assert "Was it something else?" in said


def test_a_page_by_its_name_whole_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["offset-moves", "--page", "--run"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# Why does the offset move")
    assert said.endswith("Orders is read up to 1\ntries so far: 2\n")


def test_what_no_page_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zzzz"]) == 1
    assert "mqlab why --list" in capsys.readouterr().err
    assert main(["--list"]) == 0
    assert "offset-moves " in capsys.readouterr().out


def test_a_question_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    from mqlab.commands.cli import main as mqlab

    assert mqlab(["why"]) == 2
    assert "ask in your own words" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Why is my message consumed twice?", ["messag", "consum", "messag consum", "twic", "consum twic"]),
        ("maxReconsumeTimes", ["max", "retr", "max retr", "tim", "retr tim", "maxreconsumetimes"]),
        ("重复消费", ["twic", "consum", "重复", "复消", "消费"]),
    ],
)
def test_words_are_compared_without_endings_and_in_both_languages(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_what_has_nothing_in_common_is_not_found() -> None:
    assert find("the and of") == []


PHRASINGS = [
    tuple(line.split("\t"))
    for line in Path(__file__).with_name("phrasings.tsv").read_text(encoding="utf-8").splitlines()
    if "\t" in line and not line.startswith("#")
]


def test_questions_in_other_peoples_words_find_their_page_first() -> None:
    found = {(name, phrase): find(phrase)[0].name for name, phrase in PHRASINGS}
    assert {asked: first for asked, first in found.items() if first != asked[0]} == {}
    assert len(found) >= 200
    assert {name for name, _ in PHRASINGS} == {answer.name for answer in answers()}


def test_every_page_has_questions_to_learn_from_and_none_is_one_of_those_that_test_it() -> None:
    assert set(phrasings()) == {answer.name for answer in answers()}
    assert min(len(lines) for lines in phrasings().values()) >= 15
    learned = [phrase.lower() for lines in phrasings().values() for phrase in lines]
    assert len(set(learned)) == len(learned)
    assert set(learned).isdisjoint(phrase.lower() for _, phrase in PHRASINGS)


@pytest.mark.parametrize(
    ("phrase", "name"),
    [
        ("renew a message of a SimpleConsumer", "invisible-time-retry-topic"),
        ("restart of the consumer clears the lag", "progress-stands-still"),
        ("续约过的消息又来", "invisible-time-retry-topic"),
    ],
)
def test_what_the_words_of_the_pages_alone_get_wrong_is_learned(
    phrase: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find(phrase)[0].name == name
    monkeypatch.setattr(search, "_points", search._by_bm25)
    assert find(phrase)[0].name != name
