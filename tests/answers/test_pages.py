"""Each page shows what it says: its world prints what stands there."""

from __future__ import annotations

import contextlib
import io
import re

import pytest

from mqlab.answers import answers, read_page
from mqlab.commands.why import run
from mqlab.errors import LearnerError
from mqlab.material import root

ANSWERS = {answer.name: answer for answer in answers()}
each = pytest.mark.parametrize("name", ANSWERS)

CHINESE = re.compile("[\u4e00-\u9fff]")
MOST_LINES = 24
"""A world is about ten lines; what mends it may follow."""


@each
def test_the_world_prints_what_the_page_says(name: str) -> None:
    answer, printed = ANSWERS[name], io.StringIO()
    with contextlib.redirect_stdout(printed):
        run(answer)
    assert printed.getvalue() == "".join(cell.prints for cell in answer.cells)


@each
def test_a_page_can_be_found_and_read(name: str) -> None:
    answer = ANSWERS[name]
    english = [words for words in answer.asked if not CHINESE.search(words)]
    chinese = [words for words in answer.asked if CHINESE.search(words)]
    assert len(english) >= 3, "how else do people ask?"
    assert chinese, "how is it asked in Chinese?"
    assert all(len(cell.code.splitlines()) <= MOST_LINES for cell in answer.cells)
    assert re.search(r"org\.apache\.rocketmq|apache/rocketmq|PIP|RIP-", answer.sections["Where it stands"])


@pytest.mark.parametrize(
    "text",
    ["", "# Why?\n", "# Why?\n\n*Also asked as:* so\n\n**In short:** so.\n\n## Why\n\nSo.\n"],
)
def test_what_is_no_page_is_refused(text: str) -> None:
    with pytest.raises(LearnerError, match="is no answer"):
        read_page("wrong", text)


def test_a_world_that_prints_nothing_is_refused() -> None:
    text = next(iter(ANSWERS.values())).text
    with pytest.raises(LearnerError, match="shows nothing"):
        read_page("wrong", text.replace("```text", "```"))


def test_two_pages_answer_two_questions() -> None:
    said = [words for answer in ANSWERS.values() for words in (answer.question, *answer.asked)]
    assert len(said) == len(set(said))




def test_the_list_names_each_page_once_by_its_question() -> None:
    page = (root() / "docs" / "answers" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(.*)\]\((.*)\.md\)$", page, re.MULTILINE)
    assert sorted(listed) == sorted((answer.question, answer.name) for answer in ANSWERS.values())


def test_the_readme_counts_them() -> None:
    assert f"[{len(ANSWERS)} pages](docs/answers/README.md)" in (root() / "README.md").read_text(encoding="utf-8")
