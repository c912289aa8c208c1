"""What a notebook says of itself is compared with what the marker finds out: hints, certificate, whose it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.check import PUBLIC_SEEDS
from mqlab.check.progress import Played, certificate
from mqlab.commands.cli import main
from mqlab.grading.claims import read_claims
from mqlab.grading.release import make_key
from mqlab.grading.report import report
from tests.grading.conftest import EXERCISE, HONEST, MarkIt, Notebook, example, example_text

__all__ = ["example", "example_text"]

ALL_WELL = {"pull": Played(len(PUBLIC_SEEDS), len(PUBLIC_SEEDS))}


@pytest.fixture(autouse=True)
def nobody_is_at_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """The id in the notebook counts."""
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)


def show(notebook: Notebook, line: str) -> None:
    """Let the notebook's last cell have shown that line."""
    data = {"text/plain": ["lab 90: ...\n", line]}
    notebook["cells"][-1]["outputs"] = [{"output_type": "execute_result", "data": data}]


def claim(text: str = HONEST, **changed: Any) -> str:
    """The certificate that an honest notebook of Ada's shows, or one in which something is said otherwise."""
    said = {"lab": "90", "student": "ada", "made": 0, "bets": 2, "checks": ALL_WELL, "texts": [text], **changed}
    return str(certificate(**said))


def test_an_honest_certificate_holds(mark_it: MarkIt, handed_out: Notebook) -> None:
    show(handed_out, claim())
    told = mark_it(HONEST)["certificate"]
    assert told == {"line": claim(), "holds": True, "why": "it says what was found when it was made again"}


@pytest.mark.parametrize(
    ("solution", "line", "why"),
    [
        (HONEST, claim(student="bob"), "it is of 'bob', and the notebook was handed in by 'ada'"),
        (HONEST, claim(lab="05"), "it is of lab 05"),
        (HONEST.replace("limit]", "limit ]"), claim(), "it was made of another text"),
        (HONEST, claim().replace("bets=0/2", "bets=2/2"), "it was made of another text"),
        (
            "def pull(queue, limit):\n    return [], queue\n",
            claim(),
            "it says that 50 of 50 seeds of 90/pull went well",
        ),
    ],
)
def test_a_certificate_that_says_something_else_does_not_hold(
    solution: str, line: str, why: str, mark_it: MarkIt, handed_out: Notebook
) -> None:
    show(handed_out, line)
    result = mark_it(solution)
    assert result["certificate"]["holds"] is False
    assert result["certificate"]["why"].startswith(why)
    assert "does not hold" in report(result)


def test_without_a_certificate_nothing_is_missing(mark_it: MarkIt) -> None:
    result = mark_it(HONEST)
    assert result["certificate"]["holds"] is None
    assert result["points"] == result["most"]
    assert "Certificate" not in report(result)


def test_opened_hints_stand_in_the_report(mark_it: MarkIt, handed_out: Notebook) -> None:
    (hints,) = [cell for cell in handed_out["cells"] if "hints" in cell["metadata"].get("tags", ())]
    assert hints["metadata"]["mqlab"] == {"hints_for": EXERCISE}
    assert mark_it(HONEST)["hints"] == {EXERCISE: []}
    hints["metadata"]["mqlab"]["hints_opened"] = [2, 1]
    result = mark_it(HONEST)
    assert result["hints"] == {EXERCISE: [1, 2]}
    assert f"<td>{EXERCISE}</td><td>1, 2</td>" in report(result)


@pytest.mark.parametrize(
    "metadata",
    [
        7,
        {"mqlab": 7},
        {"mqlab": {"hints_for": ["90-pull"], "hints_opened": [1]}},
        {"mqlab": {"hints_for": "another", "hints_opened": [1]}},
        {"mqlab": {"hints_for": EXERCISE, "hints_opened": {"1": 1}}},
        {"mqlab": {"hints_for": EXERCISE, "hints_opened": [True, 4, 0, "1", 1.5, [1]]}},
    ],
)
def test_whatever_stands_in_the_metadata_is_read_as_nothing(metadata: Any) -> None:
    cells = [7, {"cell_type": "markdown", "metadata": metadata}, {"cell_type": "code", "outputs": 7}]
    for of_the_notebook in (metadata, {"mqlab": {"student": 7, "exam": [1]}}):
        claims = read_claims({"cells": cells, "metadata": of_the_notebook}, [EXERCISE])
        assert not any(claims.hints.values())
        assert (claims.certificate, claims.made_for, claims.exam) == (None, "", {})


def test_a_copied_notebook_with_another_id_is_told(mark_it: MarkIt, handed_out: Notebook) -> None:
    """Bob's notebook, handed in by Ada with her id in it: what was forgotten gives it away."""
    handed_out["metadata"]["mqlab"]["student"] = "bob"
    show(handed_out, claim(student="bob"))
    (parameters,) = [cell for cell in handed_out["cells"] if "parameters" in cell["metadata"].get("tags", ())]
    parameters["source"] = parameters["source"].replace('student_id = ""', 'student_id = "ada"')
    result = mark_it(HONEST)
    assert result["remarks"] == ["the notebook says that it was handed out to 'bob', and it was handed in by 'ada'"]
    assert result["certificate"]["why"] == "it is of 'bob', and the notebook was handed in by 'ada'"


def test_a_signed_line_is_verified_and_a_changed_one_is_not(
    mark_it: MarkIt, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = mark_it(HONEST)
    line, key = result["signed"], str(tmp_path / "key")
    page = tmp_path / "report.html"
    page.write_text(report(result), encoding="utf-8")
    for given in (line, f"  {line}\n", str(page)):
        assert main(["course", "verify", given, "--key", key]) == 0
        assert capsys.readouterr().out == "signed: ada has 2 of 2 points in 90_batches\n"
    forged = line.replace("student=ada", "student=bob")
    page.write_text(report({**result, "remarks": [f"what a student has written: {forged}"]}), encoding="utf-8")
    assert page.read_text(encoding="utf-8").count("mqlab-mark 1") == 2
    assert main(["course", "verify", str(page), "--key", key]) == 0
    assert capsys.readouterr().out == "signed: ada has 2 of 2 points in 90_batches\n"
    for changed in (line.replace("student=ada", "student=bob"), line.replace("2/2", "3/3"), line[:-1], f"{line}0"):
        assert main(["course", "verify", changed, "--key", key]) == 1
        assert capsys.readouterr().out == "not signed with this key, or changed since\n"
    assert main(["course", "verify", str(tmp_path / "lost.html"), "--key", key]) == 2
    (tmp_path / "other.html").write_text("a page of something else")
    assert main(["course", "verify", str(tmp_path / "other.html"), "--key", key]) == 2
    assert "no line that begins with mqlab-mark, and no file" in capsys.readouterr().err
    make_key(tmp_path / "another")
    assert main(["course", "verify", line, "--key", str(tmp_path / "another")]) == 1
