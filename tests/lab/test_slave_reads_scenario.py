"""The scenario of reading from a slave: who goes there, who may not, and what is left of it."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, scenarios
from mqlab.client.consumer.process_queue import REBALANCE_LOCK_MAX_LIVE_MS
from mqlab.scenarios.numbered import TOPIC

AWAY_MS = 60_000
"""From the kill of the master to its next start."""
DISTANCE_MS = 5


@pytest.fixture(scope="module")
def lab() -> Lab:
    return scenarios.get("slave-reads").play(7)


def times(lab: Lab, kind: str, **fields: Any) -> list[float]:
    """The times of these events in ms behind the kill of the master."""
    (killed,) = lab.history.find("NodeCrashed")
    return [(record.ts_us - killed.ts_us) / 1_000 for record in lab.history.find(kind, **fields)]


def while_away(lab: Lab, kind: str, **fields: Any) -> list[float]:
    return [ms for ms in times(lab, kind, **fields) if 0 <= ms <= AWAY_MS]


def test_who_is_far_behind_goes_to_and_fro(lab: Lab) -> None:
    asked = [record.node for record in lab.history.find("PullReceived", group="readers") if record.topic == TOPIC][:20]
    assert {"broker-a", "slave-a"} == set(asked)


def test_while_the_master_is_away_readers_ask_the_slave_and_write_there_how_far_they_are(lab: Lab) -> None:
    asked = while_away(lab, "PullReceived", group="readers")
    assert {record.node for record in lab.history.find("PullReceived", group="readers")} == {"broker-a", "slave-a"}
    assert 0 < asked[0] <= 30_500
    committed = [record for record in lab.history.find("OffsetCommitted", group="readers") if record.node == "slave-a"]
    assert committed
    assert not while_away(lab, "SendSucceeded")


def test_nobody_pops_or_locks_at_the_slave_and_the_orderly_reader_stands_still(lab: Lab) -> None:
    assert while_away(lab, "MessagePopped") == []
    assert {record.node for record in lab.history.find("QueueLocked")} == {"broker-a"}
    consumed = while_away(lab, "ConsumeStarted", group="in-order")
    renewed = max(ms for ms in times(lab, "QueueLocked", group="in-order") if ms < 0)
    assert consumed[0] > 0
    trusted_until = renewed + 2 * DISTANCE_MS + REBALANCE_LOCK_MAX_LIVE_MS
    assert consumed[-1] <= trusted_until
    again = min(ms for ms in times(lab, "QueueLocked", group="in-order") if ms > 0)
    assert min(ms for ms in times(lab, "ConsumeStarted", group="in-order") if ms > consumed[-1]) >= again


def test_in_the_end_everybody_has_everything(lab: Lab) -> None:
    lab.run_for(seconds=60)
    stored = {record.unique_key for record in lab.history.find("MessageStored") if record.topic == TOPIC}
    for group in ("readers", "popped-to", "in-order"):
        assert {record.msg_id for record in lab.history.find("ConsumeStarted", group=group)} == stored
