"""The scenarios of pull: what a student should see in them."""

from __future__ import annotations

from collections import Counter

import pytest

from mqlab import scenarios


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_pull_schedule_every_order_is_pulled_and_some_twice_when_queues_move(seed: int) -> None:
    lab = scenarios.get("pull-schedule").play(seed)
    pulled = sum(record.messages for record in lab.history.find("PullFinished"))
    assert pulled >= 60
    reasons = Counter(record.reason for record in lab.history.find("PullTaskEnded"))
    assert reasons == {"it was cancelled": 2, "the service does not run": 2}
    assert list(lab.history.find("PullTaskFailed")) == []
    offsets = {record.queue_id: record.queue_offset for record in lab.history.find("OffsetUpdated", node="consumer-1")}
    assert sum(offsets.values()) == 60, "the member that stays stands at the end of every queue"


def test_in_pull_schedule_a_broadcasting_member_that_stays_gets_every_order() -> None:
    lab = scenarios.get("pull-schedule").play(1, parameters={"broadcasting": True})
    pulled = sum(record.messages for record in lab.history.find("PullFinished", node="consumer-1"))
    assert pulled == 60


def test_pull_schedule_is_the_same_world_with_the_same_seed() -> None:
    scenario = scenarios.get("pull-schedule")
    assert scenario.play(5).trace_hash() == scenario.play(5, wire="bytes").trace_hash()
    assert scenario.play(5).trace_hash() != scenario.play(6).trace_hash()
