"""Slides of labs: what stands on which, what the speaker is told, and a page that needs nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.labs import slides_page
from mqlab.labs.notebook import read_notebook
from mqlab.labs.project import Project
from mqlab.labs.slides import HTML, MOST_CODE, MOST_LINES, MOST_TEXT, Slide, deck
from mqlab.labs.slides_page import captions_of, needs_spark, reveal_files
from mqlab.labs.slides_page import slides_page as page_of
from mqlab.labs.source import LabSource, read_source, text_argument

PROJECT = Project(Path(__file__).parents[2])
LABS = [path.stem for path in PROJECT.select() if not needs_spark(path)]


def slides_of(name: str) -> tuple[LabSource, list[Slide]]:
    """The slides of a lab, made of its notebook as it is committed."""
    lab = read_source(PROJECT.source(name))
    committed = read_notebook(PROJECT.student(name).read_text(encoding="utf-8"))
    return lab, deck(lab, committed, captions_of(lab.number))


def fields_in(html: str) -> list[str]:
    """The names in the first column of a record's table."""
    return re.findall(r'nowrap">(\w+)</td>', html)


@pytest.mark.parametrize("name", LABS)
def test_each_bet_has_a_slide_and_its_reveal_is_on_the_next_one(name: str) -> None:
    lab, slides = slides_of(name)
    bets = [text_argument(call) for cell in lab.cells for call in cell.calls("predict")]
    kinds = [slide.kind for slide in slides]
    assert kinds.count("bet") == kinds.count("reveal") == len(bets)
    for at in (at for at, kind in enumerate(kinds) if kind == "bet"):
        assert kinds[at + 1] == "reveal"
        question = re.search(r'class="question">(.*?)</p>', slides[at].body)
        assert question is not None
        assert question[1] in slides[at + 1].body
        assert 'class="truth"' in slides[at + 1].body
        assert 'class="truth"' not in slides[at].body


@pytest.mark.parametrize("name", LABS)
def test_a_slide_holds_one_idea(name: str) -> None:
    _, slides = slides_of(name)
    for slide in slides:
        assert slide.code.count("\n") < MOST_CODE, slide
        if slide.kind == "text" and not slide.body.startswith("|"):
            assert len(slide.body) <= 1.6 * MOST_TEXT, slide.body
            assert slide.body.count("`") % 2 == 0, slide.body


def test_a_long_table_and_a_long_dump_go_on_on_the_next_slide() -> None:
    _, slides = slides_of("09_retry")
    shown = [str(output.get("data", {}).get(HTML, "")) for slide in slides for output in slide.outputs]
    record = [html for html in shown if "message in the commit log" in html]
    dumps, tables = [html for html in record if "<pre" in html], [html for html in record if "<table" in html]
    assert len(dumps) == len(tables) == 4
    assert all(html.count("\n") <= MOST_LINES and html.count("<tr") <= MOST_LINES + 1 for html in record)
    assert all("<th></th>" in html for html in tables)
    notebook = read_notebook(PROJECT.student("09_retry").read_text(encoding="utf-8"))
    outputs = [output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", ())]
    whole = [str(data[HTML]) for data in outputs if "message in the commit log" in str(data.get(HTML))]
    assert fields_in("".join(tables)) == fields_in("".join(whole))


@pytest.mark.parametrize("name", LABS)
def test_the_speaker_is_told_what_is_guessed_wrongly_and_every_hint(name: str) -> None:
    lab, slides = slides_of(name)
    told = "\n".join(note for slide in slides for note in slide.notes)
    assert all(line in told for line in lab.head.wrong_predictions)
    assert told.count("Hints, one by one:") == len(lab.tagged("hints"))
    assert all(cell.source in told for cell in lab.tagged("teacher"))
    assert all(words in slides[0].notes[-1] for words in captions_of(lab.number))


@pytest.mark.parametrize("name", LABS)
def test_no_solution_is_on_a_slide_or_in_its_notes(name: str) -> None:
    lab, slides = slides_of(name)
    everything = "\n".join([slide.code + "\n".join(slide.notes) for slide in slides])
    for cell in lab.tagged("exercise"):
        (solution, *_) = re.findall(r"(?s)### BEGIN SOLUTION\n(.*?)\n *### END SOLUTION", cell.source)
        assert solution not in everything
    assert "BEGIN SOLUTION" not in everything


def test_a_wrong_prediction_stands_with_its_bet() -> None:
    _, slides = slides_of("06_flow_control")
    (bet,) = [slide for slide in slides if "What is the most that the consumer ever holds?" in slide.body][:1]
    assert bet.kind == "bet"
    assert any("Often said:" in note for note in bet.notes)


def test_a_page_asks_for_nothing_and_has_a_section_for_each_slide() -> None:
    lab, slides = slides_of("11_pop")
    page = page_of(lab.head.title, slides, reveal_files())
    assert len(re.findall(r'<section[^>]* data-kind="', page)) == 2 * len(slides), "a stack of one for each"
    without_scripts = re.sub(r"(?s)<script>.*?</script>", "", page)
    assert re.findall(r'<(?:script|link|img|iframe)[^>]* (?:src|href)="(?!data:)[^"]*"', without_scripts) == []
    assert page.count('<aside class="notes">') == sum(bool(slide.notes) for slide in slides)


def test_the_command_runs_the_lab_and_draws_its_live_views(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["course", "slides", "11", "--out", str(tmp_path), "--root", str(PROJECT.root)]) == 0
    path = tmp_path / "11_pop.slides.html"
    assert capsys.readouterr().out.split() == [str(path)]
    page = path.read_text(encoding="utf-8")
    views = read_source(PROJECT.source("11_pop"))
    steppers = sum(len(cell.calls("Stepper")) + 3 * len(cell.calls("SideBySide")) for cell in views.cells)
    assert page.count('alt="The world: machines, queues and frames in flight"') == steppers


def test_without_reveal_js_the_command_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(slides_page, "CARRIER", "no_such_package")
    with pytest.raises(LearnerError, match="make slides"):
        slides_page.write_slides(PROJECT, PROJECT.source("00_tour"), tmp_path)


def test_a_lab_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["course", "slides", "77", "--out", str(tmp_path), "--root", str(PROJECT.root)]) != 0
    assert "there is no lab '77'" in capsys.readouterr().err
