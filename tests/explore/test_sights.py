"""Sights see what a fault brings about, and not what would have to be there without it."""

from __future__ import annotations

import pytest

from mqlab.explore import Trial, faults_of, plan_from_text

REACHED = [
    ("broadcasting", "at 15s: crash consumer-1 for 1s", "broadcasting-member-goes-on-from-its-file"),
    ("push-orderly", "at 8s: crash consumer-1 for 3s", "expired-lock-is-taken-over"),
    ("async-send", "at 5s: crash broker-a for 4s", "async-send-is-tried-again"),
    ("one-way", "at 5s: crash broker-a for 4s", "one-way-message-is-lost"),
    ("retry-and-dead-letters", "at 3s: crash broker-a for 2s", "parked-message-outlives-its-broker"),
    ("push-clustering", "at 14s: crash broker-a for 300ms", "offsets-are-forgotten"),
    ("pop-plain", "at 12s: crash broker-a for 500ms", "ack-comes-after-a-restart"),
    ("bank-transfers", "at 20s: crash broker-a for 500ms", "half-message-outlives-its-broker"),
    ("silence", "at 20s: cut broker-a > namesrv-1 for 140s", "name-servers-disagree"),
    ("silence", "at 20s: freeze consumer-1 for 140s", "silent-member-expires"),
    ("power-cuts", "at 8s: power_off broker-a for 1s", "acknowledged-message-survives-a-power-cut"),
    ("sync-replication", "at 80s: power_off broker-a for 5s", "slave-has-what-its-master-has-lost"),
    (
        "push-clustering", "at 8s: power_off broker-a for 1s; at 12s: power_off broker-a for 1s",
        "machine-loses-power-twice",
    ),
    ("silence", "at 20s: crash namesrv-1 for 100s", "client-asks-another-name-server"),
    ("slave-reads", "at 60s: crash broker-a for 60s", "slave-is-read-while-its-master-is-down"),
    ("through-a-proxy", "at 20s: crash broker-a for 60s", "handle-cannot-be-renewed"),
    ("through-a-proxy", "at 20s: freeze consumer-1 for 149s", "proxy-forgets-a-silent-client"),
    (
        "proxy-transactions", "at 20s: crash producer-1 for 60s; at 20s: crash producer-2 for 60s",
        "proxy-has-nobody-to-ask",
    ),
    ("sync-send-two-brokers", "at 6s: cut broker-a > producer-1 for 4s", "stored-message-counts-as-failed"),
]  # fmt: skip


@pytest.mark.parametrize(("scenario", "faults", "goal"), REACHED, ids=[goal for _, _, goal in REACHED])
def test_a_goal_is_reached_with_the_fault_and_not_without(scenario: str, faults: str, goal: str) -> None:
    plan = plan_from_text(faults)
    trial = Trial(scenario, 0, plan=plan)
    assert trial.outcome.goals[goal] > 0
    assert trial.first_reached[goal].ts_us >= faults_of(plan)[0].at_us
    assert goal not in Trial(scenario, 0, plan=()).outcome.goals
