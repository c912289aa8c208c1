"""When has a world settled? What is stored and in no queue yet is not lost, and not yet settled either."""

from __future__ import annotations

import pytest

from mqlab.explore import Trial


@pytest.mark.parametrize(
    ("scenario", "seed", "plan"),
    [
        ("retry-and-dead-letters", 60004, ("at 10073ms: hang_disk broker-a for 51721ms",)),
        (
            "sync-send-two-brokers",
            60008,
            ("at 907ms: fill_disk broker-b by 4096", "at 20s: fill_disk broker-b by 100000000000"),
        ),
    ],
)
def test_messages_that_wait_for_the_disk_are_waited_for(scenario: str, seed: int, plan: tuple[str, ...]) -> None:
    trial = Trial(scenario, seed, plan=plan)
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    assert all(broker.store.dispatch_behind_bytes == 0 for broker in trial.lab.brokers)
