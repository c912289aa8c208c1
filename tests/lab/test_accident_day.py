"""The day of accidents: what follows from offsets is what is left on the disks, whatever happens to whom."""

from __future__ import annotations

from collections import Counter

import pytest

from mqlab.exercises.accident_day import (
    A_SLAVE,
    ANSWERS,
    LUCK,
    MASTER,
    NOBODY,
    POWER_OFF,
    THE_MASTER,
    AccidentDay,
    Copy,
    right_answer,
)

SEEDS = range(201, 221)


@pytest.fixture(scope="module")
def days() -> list[AccidentDay]:
    """Twenty days with seeds that no student's check plays."""
    return [AccidentDay(right_answer, seed).play() for seed in SEEDS]


def test_no_world_contradicts_what_follows_from_the_offsets(days: list[AccidentDay]) -> None:
    for day in days:
        for foretold in day.foretold:
            slaves = set(foretold.have) - {MASTER}
            held = {THE_MASTER: MASTER in foretold.have, A_SLAVE: bool(slaves), NOBODY: not foretold.have, LUCK: True}
            assert held[foretold.right], day.story(foretold)


def test_all_four_answers_are_asked_for_and_luck_goes_both_ways(days: list[AccidentDay]) -> None:
    foretold = [one for day in days for one in day.foretold]
    counts = Counter(one.right for one in foretold)
    assert set(counts) == set(ANSWERS)
    assert min(counts.values()) > 50
    assert {bool(one.have) for one in foretold if one.right == LUCK} == {True, False}


def test_slaves_come_late_and_disks_lag_behind(days: list[AccidentDay]) -> None:
    slaves = [copy for day in days for name, copy in day.copies.items() if name != MASTER]
    assert any(copy.begin > 0 for copy in slaves)
    assert any(copy.flushed < copy.end for copy in slaves)
    assert any(day.copies[MASTER].flushed < day.copies[MASTER].end for day in days)
    assert any(len(day.copies) == 3 for day in days)


def test_the_edges_of_a_copy() -> None:
    copies = {MASTER: Copy(0, 300, 200), "slave-a": Copy(100, 200, 200)}
    dark = {MASTER: POWER_OFF, "slave-a": "nothing"}
    assert right_answer((100, 200), copies, dark) == THE_MASTER
    assert right_answer((200, 300), copies, dark) == LUCK
    gone = {MASTER: "disk lost", "slave-a": "process killed"}
    assert right_answer((100, 200), copies, gone) == A_SLAVE
    assert right_answer((99, 150), copies, gone) == NOBODY
    assert right_answer((150, 201), copies, gone) == NOBODY
