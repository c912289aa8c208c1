"""The page of docs/fidelity.md fits the code and the tests, and says what is wrong where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fidelity import page as fidelity
from tests.fidelity.constants import missing_numbers


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of rows of our own."""
    file = tmp_path / "fidelity.toml"
    monkeypatch.setattr(fidelity, "SOURCE", file)
    return file


def test_the_page_is_up_to_date() -> None:
    assert fidelity.PAGE.read_text(encoding="utf-8") == fidelity.page(), "run: python -m tests.fidelity.page"


def test_every_mechanism_names_its_java_class_its_code_and_a_test() -> None:
    rows = fidelity.read()
    assert len(rows) > 80
    assert all(row.java and (row.status == "absent") == (not row.code) for row in rows)
    assert len({row.name for row in rows}) == len(rows)


@pytest.mark.parametrize("row", [row for row in fidelity.read() if row.code], ids=lambda row: row.name)
def test_a_number_in_the_name_of_a_mechanism_stands_in_its_tests(row: fidelity.Mechanism) -> None:
    assert missing_numbers(row.name, row.tests) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("held for 15 s", []),
        ("held for 16 s", ["16 s"]),
        ("asks for 32 messages, gives up after 30 s", []),
        ("two of 33", ["33"]),
        ("no number", []),
    ],
)
def test_a_number_that_no_test_has_is_missing(text: str, missing: list[str]) -> None:
    path = "tests/client/test_push_constants.py"
    name = "test_a_pull_asks_for_32_messages_may_be_held_for_15_s_and_is_given_up_after_30_s"
    assert missing_numbers(text, (f"{path}::{name}",)) == missing


def test_what_differs_is_read_from_the_docstring(source: Path) -> None:
    source.write_text(
        '[Client."What is asked about queues"]\n'
        'code = "mqlab.client.mq_admin_impl:MQAdminImpl"\n'
        'tests = "tests/client/test_rebalance.py::test_two_members_share_the_queues_in_blocks"\n'
    )
    (row,) = fidelity.read()
    assert row.status == "simplified"
    assert row.remark.startswith("topics are created and messages queried elsewhere")
    assert fidelity.java_path(row.java[0]) == "client: client/impl/MQAdminImpl.java"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[A."x"]\ncode = "mqlab.nowhere:X"\ntests = "tests/a.py::test_b"\n', "there is no mqlab.nowhere"),
        ('[A."x"]\ncode = "mqlab.errors:MqlabError"\ntests = "a"\n', "names no Java class"),
        (
            '[A."x"]\ncode = "mqlab.client.consumer.rebalance.rebalance_impl:RebalanceImpl"\n'
            'tests = "tests/a.py::test_b"\n',
            "there is no test tests/a.py::test_b",
        ),
        ('[A."x"]\njava = "org.apache.rocketmq.client.A"\n', "needs `code` and `tests`"),
        ('[A."x"]\nabsent = "no time"\n', "it has a `java` name"),
        ('[A."x"]\nwhy = "no time"\n', "has a key 'why'"),
    ],
)
def test_a_row_that_is_wrong_is_named(source: Path, text: str, complaint: str) -> None:
    source.write_text(text)
    with pytest.raises(fidelity.PageError, match=complaint):
        fidelity.read()
