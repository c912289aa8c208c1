"""Handing in, in the notebook: what the file holds, when none is made, and where it goes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab import __version__
from mqlab.check import HandIn, check, hand_in, notebook_bets, predict, reveal
from mqlab.check.hand_in import FORMAT, MOMENT, HandInSettings, read_settings, seal_of
from mqlab.check.progress import cell_of
from mqlab.check.registry import noted_checks
from mqlab.errors import LearnerError
from tests.labs.conftest import cell

RIGHT = "def pull(queue, limit):\n    return queue[:limit], queue[limit:]\n"
WRONG = "def pull(queue, limit):\n    return [], queue\n"


@pytest.fixture(autouse=True)
def a_notebook(example_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A notebook of lab 90, in a directory of its own, of which nothing has run yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    asked = notebook_bets.take_all()
    yield
    notebook_bets.put_back(asked)
    noted_checks.pop("90/pull", None)


def solved(text: str = RIGHT) -> Any:
    """The exercise, written and judged."""
    pull = cell(text, "pull")
    check("90/pull", pull)
    return pull


def handed_in(**more: Any) -> tuple[HandIn, dict[str, Any]]:
    """What was made, and what stands in the file."""
    made = hand_in("ada", "90", bets=2, done=True, **more)
    return made, json.loads(Path(made.name).read_text(encoding="utf-8"))


def test_nothing_is_handed_in_while_there_are_dots(tmp_path: Path) -> None:
    for made in (hand_in("", "90", bets=2, done=...), hand_in("ada", "90", bets=2, done=False)):
        assert repr(made) == "nothing is handed in yet: write done=True in place of the dots, and run this cell"
        assert repr(made) in made._repr_html_()
    assert list(tmp_path.iterdir()) == []


def test_the_file_holds_what_was_judged_and_what_was_bet() -> None:
    predict("one", "How many?", 3, unit="requests")
    predict("two", "How many?", 4, unit="requests")
    predict("three", "How many?", unit="requests")
    reveal("one", 7)
    solved()
    made, content = handed_in()
    assert (content["format"], content["lab"], content["student"]) == (FORMAT, "90_batches", "ada")
    assert content["mqlab"] == __version__
    assert content["answers"] == {"90/pull": [RIGHT]}
    assert [(bet["bet"], bet["answer"], bet["truth"]) for bet in content["bets"]] == [
        ("one", 3, "7 requests"),
        ("two", 4, ""),
    ]
    assert content["checks"]["90/pull"].startswith("90/pull: passed (2 points)")
    assert content["public_mark"] == "lab 90: 2 of 2 bets, 1 of 1 checks passed over 50 seeds, 2 of 2 points"
    assert content["certificate"].startswith("mqlab-certificate 1 lab=90 student=ada")
    assert notebook_bets.begun is not None
    assert content["times"]["begun"] == notebook_bets.begun.strftime(MOMENT) <= content["times"]["made"]
    assert content["seal"] == seal_of(content)
    assert made.name == f"90_batches-ada-{content['seal']['sha256'][:8]}.json"


def test_the_card_has_the_public_mark_its_reasons_and_the_file_itself() -> None:
    solved(WRONG)
    made, _ = handed_in()
    rows = repr(made).splitlines()
    assert rows[0] == f"made for your teacher: {made.name}"
    assert rows[1] == "  public mark: lab 90: 0 of 2 bets, 0 of 1 checks passed over 50 seeds, 0 of 2 points"
    assert rows[2].startswith("  90/pull: not right yet (0 of 3 seeds went well")
    assert noted_checks["90/pull"][0].explanation.splitlines()[0] in rows[3]
    assert rows[-1] == "  in the list of files: it is there, beside this notebook"
    assert f'<a download="{made.name}" href="data:application/json;base64,' in made._repr_html_()


def test_a_code_keys_the_seal_however_it_is_typed() -> None:
    solved()
    _, plain = handed_in()
    _, content = handed_in(code=" ABCD-efgh ")
    assert plain["seal"]["keyed"] == ""
    assert content["seal"] == seal_of(content, "abcdefgh")
    assert content["seal"]["keyed"] not in ("", seal_of(content, "abcdefgi")["keyed"])


@pytest.mark.parametrize(
    ("student", "lab", "done", "said"),
    [
        ("", "90", True, "nobody hands this in"),
        ("../eve", "90", True, "can't be the name of a directory"),
        ("ada", "89", True, "there is no lab '89' with checks"),
        ("ada", "90", "yes", "done='yes' says neither yes nor no"),
        ("ada", "90", True, "not run since the kernel was started: 90/pull"),
    ],
)
def test_what_cannot_be_handed_in_is_said(student: str, lab: str, done: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(LearnerError) as problem:
        hand_in(student, lab, bets=2, done=done)
    assert said in problem.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_solution_that_was_changed_since_its_check_is_not_handed_in() -> None:
    pull = solved(WRONG)
    pull.__globals__["pull"] = cell(RIGHT, "pull")
    with pytest.raises(LearnerError, match="pull was changed since 90/pull has judged it"):
        hand_in("ada", "90", bets=2, done=True)
    # Run once more without a change it is the same.
    pull.__globals__["pull"] = cell(WRONG, "pull")
    assert handed_in()[1]["answers"] == {"90/pull": [WRONG]}


def test_a_solution_whose_text_nobody_knows_is_not_handed_in() -> None:
    check("90/pull", eval("lambda queue, limit: (queue[:limit], queue[limit:])"))
    with pytest.raises(LearnerError, match="nobody knows the text of <lambda>"):
        hand_in("ada", "90", bets=2, done=True)


def test_an_exam_is_handed_in_as_its_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    solved()
    monkeypatch.setattr(notebook_bets, "sealed", True)
    with pytest.raises(LearnerError, match="an exam is handed in as its notebook"):
        hand_in("ada", "90", bets=2, done=True)


WRAPPED = "from functools import lru_cache\n@lru_cache\ndef of(n):\n    return n\n"
DATA = """\
from dataclasses import dataclass
@dataclass
class Of:
    n: int
    @property
    def it(self):
        return 1
"""


@pytest.mark.parametrize(("text", "name"), [(WRAPPED, "of"), (DATA, "Of")])
def test_the_text_of_what_is_decorated_is_known(text: str, name: str) -> None:
    assert cell_of(cell(text, name)) == text


def test_a_bet_that_is_no_number_is_left_out() -> None:
    predict("one", "How many?", float("nan"), unit="requests")
    predict("two", "How many?", 10**400, unit="requests")
    solved()
    assert handed_in()[1]["bets"] == []


# -- where the teacher wants it ------------------------------------------------------------------------------------


def settings(**said: Any) -> None:
    Path("hand_in.json").write_text(json.dumps(said), encoding="utf-8")


def test_a_folder_gets_each_hand_in_once_and_nothing_of_another_is_touched(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    (folder / "bob").mkdir(parents=True)
    (folder / "bob" / "his.json").write_text("his")
    settings(folder=str(folder))
    solved()
    made, _ = handed_in()
    assert repr(made).splitlines()[0] == f"handed in: {made.name}"
    solved(WRONG)
    again, _ = handed_in()
    assert sorted(path.name for path in (folder / "ada").iterdir()) == sorted([made.name, again.name])
    assert (folder / "ada" / made.name).read_bytes() == made.data
    assert (folder / "bob" / "his.json").read_text() == "his"


def test_a_folder_that_is_away_loses_nothing(tmp_path: Path) -> None:
    settings(folder=str(tmp_path / "away"))
    solved()
    made, _ = handed_in()
    assert f"made for your teacher: {made.name}" in repr(made)
    assert "your teacher's folder: it could not be put there (No such file or directory)" in repr(made)
    assert not (tmp_path / "away").exists()


def test_a_form_is_a_link_behind_the_download() -> None:
    settings(form='https://forms.example/1?a=1&b="2"')
    solved()
    made, _ = handed_in()
    assert repr(made).splitlines()[-1] == '  then give it in here: https://forms.example/1?a=1&b="2"'
    assert 'href="https://forms.example/1?a=1&amp;b=&quot;2&quot;"' in made._repr_html_()


def test_a_hub_names_its_settings_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc.json").write_text('{"form": "https://forms.example"}')
    monkeypatch.setenv("MQLAB_HAND_IN", str(tmp_path / "etc.json"))
    solved()
    assert handed_in()[0].form == "https://forms.example"


def test_what_is_installed_counts_where_nothing_lies_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "installed.json").write_text('{"form": "https://all.example"}')
    monkeypatch.setattr(sys.modules[read_settings.__module__], "INSTALLED", tmp_path / "installed.json")
    solved()
    assert handed_in()[0].form == "https://all.example"
    settings(form="https://one.example")
    assert handed_in()[0].form == "https://one.example"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "can't be read"),
        ("[]", "is no list of settings"),
        ('{"folder": 7}', "is no list of settings"),
        ('{"from": "https://x"}', "has a setting 'from', which is none"),
        ('{"form": "javascript:alert(1)"}', "has a form that is no address"),
    ],
)
def test_settings_that_cannot_be_used_are_said_and_a_file_is_made_all_the_same(text: str, said: str) -> None:
    Path("hand_in.json").write_text(text)
    with pytest.raises(LearnerError) as problem:
        read_settings(Path("hand_in.json"))
    assert said in problem.value.message
    solved()
    made, _ = handed_in()
    assert said in repr(made)
    assert "tell your teacher" in repr(made)


def test_no_settings_are_fine(tmp_path: Path) -> None:
    assert read_settings(tmp_path / "none.json") == HandInSettings()
