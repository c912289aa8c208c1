"""Delays of messages by group, and the world in which owning and taking stand side by side."""

from __future__ import annotations

import pytest

from mqlab import scenarios
from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.views import Delays


@pytest.fixture(scope="module")
def hung() -> Lab:
    """Two groups of three, of which one member each has hung for ten seconds."""
    lab = scenarios.get("take-or-own").build(7, parameters={"faults": "", "every_ms": 100})
    lab.run_for(seconds=2)
    lab.freeze("push-1")
    lab.freeze("pop-1")
    lab.run_for(seconds=10)
    return lab


def delays(lab: Lab, since_ms: float) -> Delays:
    return Delays.of(lab.history, "Orders", "owners", "takers", since_ms=since_ms)


def test_a_member_that_hangs_starves_a_third_of_the_queues_with_push_and_one_order_with_pop(hung: Lab) -> None:
    seen = delays(hung, hung.now_ms - 10_000)
    assert seen.still_waiting("owners") == pytest.approx(33, abs=3)
    assert seen.still_waiting("takers") == 1
    assert seen.longer_than("takers", 1_000) == 1
    assert seen.longest_ms("owners") > 9_000


def test_what_each_member_got_adds_up_to_all(hung: Lab) -> None:
    seen = delays(hung, 0)
    for group in ("owners", "takers"):
        assert sum(seen.by_member(group).values()) + seen.still_waiting(group) == len(seen.by_group[group])
    assert set(seen.by_member("takers")) == {"pop-1", "pop-2", "pop-3"}


def test_the_picture_has_a_mark_for_each_order_and_group(hung: Lab) -> None:
    chart = delays(hung, 0).chart("Delays")
    assert [len(series.points) for series in chart.series] == [len(delays(hung, 0).by_group["owners"])] * 2
    assert "owners" in str(chart)
    assert chart.svg().startswith("<svg")


def test_a_group_that_was_not_asked_for_is_named(hung: Lab) -> None:
    with pytest.raises(LearnerError, match="it has owners, takers"):
        delays(hung, 0).longest_ms("packers")


def test_what_a_popping_consumer_may_take_stands_beside_what_it_owns(hung: Lab) -> None:
    rows = hung.process_queues(hung.processes["pop-2"].clients[0][0]).rows  # type: ignore[attr-defined]
    assert [list(row)[:3] for row in rows if row[0] == "Orders"] == [["Orders", "broker-a", "any"]]
