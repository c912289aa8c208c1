"""docs/seeds.md names modules, tests and labs that exist, and docs/glossary.md is a table without doubles."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.fidelity.constants import missing_numbers

from .tree import ROOT, read

MARKS = ("same", "changed", "wrong", "history")
COLUMNS = 6
NOT_BUILT = NO_LAB = "—"


def rows(page: str, columns: int) -> list[list[str]]:
    """The rows of all tables with so many columns, without their heads."""
    tables = re.findall(r"(?m)^\|.*\n\|[-|]+\|\n((?:\|.*\n)+)", read(page))
    lines = [line for table in tables for line in table.splitlines()]
    split = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [cells for cells in split if len(cells) == columns]


CLAIMS = rows("docs/seeds.md", COLUMNS)


@cache
def names_of_tests(path: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?m)^def (test_\w+)\(", read(path)))


def test_the_page_has_a_row_for_each_claim() -> None:
    assert len(CLAIMS) > 100
    assert {cells[2] for cells in CLAIMS} == set(MARKS)


def test_no_table_of_claims_has_a_row_of_another_length() -> None:
    for line in read("docs/seeds.md").split("## The push consumer article", 1)[1].splitlines():
        if line.startswith("|"):
            assert len(re.split(r"(?<!\\)\|", line)) == COLUMNS + 2, line


def test_every_path_on_the_page_exists() -> None:
    paths = re.findall(r"`((?:mqlab|tests|labs|docs|widgets|spark)/[^`:]+)", read("docs/seeds.md"))
    assert len(paths) > 100
    for path in paths:
        assert (ROOT / path).is_file(), path


def test_every_test_on_the_page_exists() -> None:
    for path, name in re.findall(r"`(tests/[^`:]+)::(\w+)`", read("docs/seeds.md")):
        assert name in names_of_tests(path), f"{path}::{name}"


def test_what_is_built_has_a_test_and_what_is_not_has_none() -> None:
    for claim, _, _, where, test, _ in CLAIMS:
        assert (where == NOT_BUILT) == (test == NOT_BUILT), claim


def test_every_lab_on_the_page_exists() -> None:
    sources = {path.name[:2] for path in (ROOT / "labs" / "sources").glob("[0-9][0-9]_*.py")}
    (listed,) = re.findall(r"(?s)\*\*Labs\.\*\* (.*?); a dash is no lab", read("docs/seeds.md"))
    assert set(re.findall(r"\b\d\d\b", listed)) == sources
    assert set(re.findall(r"(?m)^\| (\d\d) [\w ]+ \|", read("README.md"))) == sources
    for claim, *_, lab in CLAIMS:
        assert lab in sources or lab == NO_LAB, claim


@pytest.mark.parametrize("cells", [cells for cells in CLAIMS if cells[2] == "same" and cells[4] != NOT_BUILT])
def test_what_is_the_same_has_its_numbers_in_a_test(cells: list[str]) -> None:
    claim, today, _, _, test, _ = cells
    tests = tuple(re.findall(r"`(tests/[^`:]+::\w+)`", test))
    said = re.sub(r"^Steps? \d+", "", claim) + f" {today}"
    assert missing_numbers(said.replace("`", ""), tests) == []


def test_no_claim_stands_twice() -> None:
    claims = [cells[0] for cells in CLAIMS]
    assert [claim for claim in claims if claims.count(claim) > 1] == []


@pytest.mark.parametrize("column", [0, 1])
def test_no_term_of_the_glossary_comes_twice(column: int) -> None:
    terms = [cells[column] for cells in rows("docs/glossary.md", 4)]
    assert 40 <= len(terms) <= 80
    assert len(terms) == len(set(terms))


def test_each_word_of_our_own_stands_once_and_its_module_exists() -> None:
    words = rows("docs/glossary.md", 3)
    assert len({word for word, _, _ in words}) == len(words) > 30
    for word, module, _ in words:
        assert (ROOT / module.strip("`")).exists(), word
