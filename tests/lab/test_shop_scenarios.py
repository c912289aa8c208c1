"""What lab 20 teaches holds in its worlds: how long pulls and orders wait, and that every kind of delivery occurs."""

from __future__ import annotations

from collections import Counter

import pytest

from mqlab import Lab, scenarios

PASS_US = 5_000_000
SEEDS = range(1, 11)


def in_vain(lab: Lab) -> list[int]:
    """How long the pulls were held that got nothing, in us."""
    return [event.held_us for event in lab.history.find("PullWoken", reason="timed out")]


def night(seed: int) -> Lab:
    return scenarios.get("shop-day").play(seed, seconds=180, parameters={"day_s": 0})


def causes(lab: Lab) -> list[tuple[tuple[str, str, str, int, int], str]]:
    """Each message with the group that it was given to, and the cause, in order; twice when it was given twice."""
    woken: dict[tuple[str, str, int], str] = {}
    found = []
    for event in lab.history.find(("PullWoken", "PullAnswered")):
        pull = (event.node, event.remote, event.opaque)
        if event.kind == "PullWoken":
            woken[pull] = event.reason
            continue
        for offset in range(event.queue_offset, event.queue_offset + event.messages):
            message = (event.node, event.group, event.topic, event.queue_id, offset)
            found.append((message, woken.get(pull, "first pull")))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hold_in_vain_lasts_fifteen_to_twenty_seconds_and_ends_at_a_pass(seed: int) -> None:
    lab = night(seed)
    assert len(in_vain(lab)) > 30
    assert all(15_000_000 <= held < 20_000_000 for held in in_vain(lab))
    assert {event.ts_us % PASS_US for event in lab.history.find("PullWoken", reason="timed out")} == {0}


def test_most_holds_in_vain_last_a_hair_less_than_twenty_seconds() -> None:
    held = [us for seed in SEEDS for us in in_vain(night(seed))]
    assert sum(us > 19_990_000 for us in held) > len(held) / 2
    assert max(held) < 20_000_000


def test_a_pass_that_comes_late_releases_pulls_five_seconds_sooner() -> None:
    lab = scenarios.get("shop-day").build(7)
    lab.faults("\n".join(f"at {late - 0.1:.1f}s: freeze broker-a for 200ms" for late in range(75, 300, 35)))
    lab.run_for(seconds=300)
    punctual = scenarios.get("shop-day").play(7, seconds=300)

    def sooner(held: list[int]) -> int:
        return sum(15_099_000 <= us <= 15_100_000 for us in held)

    assert sooner(in_vain(punctual)) == 0
    assert sooner(in_vain(lab)) >= 5


def test_without_long_polling_holds_last_one_to_two_seconds() -> None:
    lab = scenarios.get("shop-day").play(7, seconds=60, parameters={"day_s": 0, "long_polling": False})
    assert all(1_000_000 <= held < 2_000_000 for held in in_vain(lab))


def test_in_a_day_every_order_comes_by_a_wake_up_or_by_a_first_pull() -> None:
    lab = scenarios.get("shop-day").play(7)
    first = dict(reversed(causes(lab)))
    counts = Counter(first.values())
    assert len(first) == sum(1 for _ in lab.history.find("MessageStored"))
    assert counts["arrived"] > 1_000
    assert counts["first pull"] > 20
    assert counts["timed out"] == 0


def test_small_worlds_have_every_cause_and_deliver_some_messages_twice() -> None:
    counts: Counter[str] = Counter()
    twice = 0
    for seed in SEEDS:
        found = causes(scenarios.get("every-delivery").play(seed))
        counts.update(cause for _, cause in found)
        twice += len(found) - len({message for message, _ in found})
    assert min(counts[cause] for cause in ("arrived", "timed out", "first pull")) >= 10
    assert twice >= 5
