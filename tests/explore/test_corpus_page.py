"""The page of a corpus says all that the text says, and needs nothing beside it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from mqlab.commands.cli import main
from mqlab.commands.corpus import listed, spans
from mqlab.commands.corpus_page import page
from mqlab.explore import RULES
from mqlab.explore.corpus import Corpus, Failure, Header, World
from mqlab.explore.seen import could_be_seen
from mqlab.explore.thoroughness import Thoroughness
from mqlab.scenarios import get
from mqlab.trace.catalogue import CATALOGUE

HEADER = Header("1.0", "abc", "drawn", {}, None, tuple(rule.__name__ for rule in RULES))


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.text = ""
        self._in_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_code = tag in ("script", "style")
        self.outside += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        self._in_code = False

    def handle_data(self, data: str) -> None:
        if not self._in_code:
            self.text += f" {data}"


def world(seed: int, new: tuple[str, ...], again: tuple[str, ...] = (), failure: Failure | None = None) -> World:
    judged = dict.fromkeys(HEADER.rules, 0) | {"SendsEnd": 2}
    return World("drawn", seed, new, again, judged, {"a torn record": 1}, True, failure)


def shown(*worlds: World) -> _Words:
    words = _Words()
    words.feed(page([HEADER], Thoroughness(worlds, could_be_seen(get("drawn")))))
    words.text = " ".join(words.text.split())
    return words


def test_a_page_has_what_was_seen_what_never_was_and_what_failed() -> None:
    failed = Failure("A rule.", "<b>reason</b>", "mqlab explore drawn --seed 7 --faults none")
    words = shown(
        world(6, ("event PullHeld", "pair PullHeld > PullWoken", "setting topic queues=2")),
        world(7, ("event PullWoken",), ("event PullHeld",), failed),
    )
    text = words.text
    assert "2 worlds of drawn (seeds 6 to 7): 1 passed, 1 failed" in text
    assert f"kinds of events 2 1 {len(CATALOGUE)} {len(CATALOGUE) - 2}" in text
    assert "100.0% (2 of 2 worlds have shown something that no other one has)" in text
    assert "50.0% (1 of 2 worlds" in text
    assert "drawn seed 7 A rule. <b>reason</b> mqlab explore drawn --seed 7 --faults none" in text
    assert "1 of 2 worlds broke a rule." in text
    assert f"Nothing was seen of {len(CATALOGUE) - 2} of {len(CATALOGUE)} kinds of events" in text
    assert "rules that were silent" in text
    assert "SendsEnd 4 2" in text
    assert "CallsEnd 0 0 silent" in text
    assert "a torn record 2 2" in text
    assert "PullWoken drawn seed 7 only there PullHeld drawn seed 6 " in text
    assert "PopHeld" in text
    assert words.outside == []


def test_a_page_of_many_worlds_puts_the_chance_to_the_test() -> None:
    words = shown(*(world(seed, (f"value PullHeld reason={seed}",) if seed % 2 else ()) for seed in range(200)))
    assert "by what the first 180 worlds showed the chance was 50.0%" in words.text
    assert "of the 20 behind them 10 showed something new (50.0%)" in words.text


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, target = tmp_path / "corpus", tmp_path / "page.html"
    arguments = ["explore", "one-way", "-p", "messages=3", "--seeds", "2", "--jobs", "1", "--corpus", str(place)]
    assert main(arguments) == 0
    assert main(["corpus", str(place), "--html", str(target)]) == 0
    assert capsys.readouterr().out.endswith(f"written to {target}\n")
    assert "one-way messages=3 (seeds 0 to 1)" in target.read_text(encoding="utf-8")


def test_a_directory_without_a_corpus_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", str(tmp_path)]) == 2
    assert "there is no corpus in" in capsys.readouterr().err


def test_a_page_without_bokeh_is_refused_with_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Corpus(tmp_path, HEADER):
        pass
    monkeypatch.setattr("mqlab.commands.corpus.find_spec", lambda package: None)
    assert main(["corpus", str(tmp_path), "--html", str(tmp_path / "page.html")]) == 2
    assert "needs the package 'bokeh'" in capsys.readouterr().err
    assert main(["corpus", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "0 worlds of drawn (no seeds yet): 0 passed, 0 failed\n"


def test_seeds_in_words() -> None:
    assert spans([]) == "no seeds yet"
    assert spans([3]) == "seed 3"
    assert spans([3, 1, 2, 9, 11, 10]) == "seeds 1 to 3, 9 to 11"


def test_of_many_names_the_first_are_named() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(n) for n in range(130)]).endswith(", 119, and 10 more (all of them: --html or --json)")
