"""What `make unreached` counts: lines that worlds have reached, by which seed first, and ranges that none has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .unreached import (
    PLACES,
    ROOT,
    Missing,
    curve,
    gaps,
    kept_part,
    listing,
    merged,
    missing_lines,
    play_apart,
    reasons,
    reasons_table,
    state_of_code,
    table,
)

SENDING = "mqlab/broker/send_message_processor.py"


def line_of(file: str, words: str) -> int:
    """The number of the first line with these words."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if words in line)


def test_lines_are_reached_by_the_first_seed_that_came_there() -> None:
    reached = play_apart(6, 2)
    assert {file.split("/")[1] for file in reached} <= set(PLACES)
    asked = line_of(SENDING, "if request.code == CONSUMER_SEND_MSG_BACK:")
    assert reached[SENDING][asked] == 6
    found = missing_lines(reached)
    assert asked in found.lines[SENDING]
    assert asked not in found.missing[SENDING]
    strange = [file for file in found.lines if file not in reached and found.lines[file]]
    assert strange
    assert all(found.missing[file] == found.lines[file] for file in strange)


def test_a_part_that_is_kept_is_not_played_again(tmp_path: Path) -> None:
    (tmp_path / "000050.json").write_text(json.dumps({SENDING: {"7": 53}}), encoding="utf-8")
    assert kept_part(tmp_path, 50) == {SENDING: {7: 53}}


def test_parts_are_merged_to_the_first_seed_of_each_line() -> None:
    parts = iter([{"a": {1: 4, 2: 9}}, {"a": {1: 55, 2: 3, 5: 60}, "b": {1: 61}}])
    assert merged(parts) == {"a": {1: 4, 2: 3, 5: 60}, "b": {1: 61}}


def test_ranges_end_where_a_line_was_reached_or_another_function_begins(tmp_path: Path) -> None:
    file = "tests/explore/unreached.py"
    first, last = line_of(file, 'yield "| directory'), line_of(file, "yield f\"| all |")
    lines = [*range(first, first + 5), last, last + 4]
    found = list(gaps(file, lines, [first, first + 1, first + 3, last, last + 4]))
    assert [(gap.first, gap.lines) for gap in found[:2]] == [(first, 2), (first + 3, 1)]
    assert [gap.function for gap in found[:3]] == ["table", "table", "table"]


def test_the_table_counts_each_directory() -> None:
    lines = {f"mqlab/{place}/one.py": [1, 2, 3, 4] for place in PLACES}
    missing: dict[str, list[int]] = {file: [] for file in lines} | {"mqlab/broker/one.py": [2]}
    told = list(table(Missing(lines, missing)))
    assert "| `mqlab/broker` | 4 | 1 | 25.0% |" in told
    assert told[-1] == "| all | 20 | 1 | 5.0% |"


def test_a_file_counts_for_the_first_reason_that_fits() -> None:
    missing = {"mqlab/broker/ha/stream.py": [1, 2], "mqlab/broker/new.py": [4], "mqlab/store/timer/one.py": [1, 2, 3]}
    told = list(reasons_table(Missing(missing, missing)))[2:]
    assert [line.split(" | ")[1:] for line in told] == [["3", "50% |"], ["2", "33% |"], ["1", "17% |"]]
    assert [line[2:8] for line in told] == ["timers", "slaves", "the br"]


def test_every_line_has_a_reason_and_is_listed() -> None:
    found = missing_lines({})
    counted = reasons(found)
    assert counted.total() == sum(map(len, found.lines.values())) > 20_000
    assert len(counted) > 10
    listed = list(listing(found))
    assert [line for line in listed if line and line[0] != " "] == [
        f"{why} ({lines:,} lines)" for why, lines in counted.most_common()
    ]
    assert {line[2:].partition(":")[0] for line in listed if line.startswith("  mqlab/")} == {
        file for file, lines in found.lines.items() if lines
    }
    first = line_of(SENDING, "if request.code == CONSUMER_SEND_MSG_BACK:")
    ranges = [line.split()[0] for line in listed if "SendMessageProcessor.process_request" in line]
    assert any(where.startswith(f"{first}-") for where in ranges)


def test_the_curve_is_the_share_of_what_all_worlds_reach() -> None:
    reached = {"a": {1: 0, 2: 0, 3: 5, 4: 40}}
    assert curve(reached, 50) == (
        "Of the lines that 50 worlds reach, the first worlds reached so many: 1: 50.0%, 10: 75.0%."
    )


def test_the_state_of_the_code_is_that_of_its_lines_and_of_what_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("broker", "scenarios/drawing", "sim"):
        (tmp_path / "mqlab" / place).mkdir(parents=True)
        (tmp_path / "mqlab" / place / "one.py").write_text("1\n", encoding="utf-8")
    monkeypatch.setattr("tests.explore.unreached.ROOT", tmp_path)
    before = state_of_code()
    (tmp_path / "mqlab" / "sim" / "one.py").write_text("2\n", encoding="utf-8")
    assert state_of_code() == before
    for place in ("broker", "scenarios/drawing"):
        (tmp_path / "mqlab" / place / "one.py").write_text("2\n", encoding="utf-8")
        assert state_of_code() != before
        before = state_of_code()
