"""Pop, ack, change of the invisible time and long polls, with and without the merge buffer, as a real RocketMQ had it.

The recordings shared one broker with others, so their revivers were busy; here a case is alone. What was the same in
all their runs is the same here; of times the bounds are compared that the reviver's rules give.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.timelines import pop_cases
from tests.timelines.pop_player import Event, PopPlayer, found, keys

MERGE = pytest.mark.parametrize("merge", ["off", "on"])
REVIVED_MS = (2_000, 5_200)
"""How long behind the end of its invisible time a message is in the retry topic: two seconds for late acks, then the
rest of a rest of the reviver."""


@pytest.fixture
def play() -> Any:
    """Play a case: `play(pop_cases.ack_at_9500, "on")`."""

    def play(case: pop_cases.Case, merge: str, phase_ms: int = 0) -> list[Event]:
        return PopPlayer(phase_ms=phase_ms, enable_pop_buffer_merge=merge == "on").play(case)

    return play


def revived_after(events: list[Event], number: int = 1, invisible_ms: int = 10_000, since_ms: float = -1) -> float:
    """How long behind the end of pop `number`'s invisible time its messages were stored in the retry topic."""
    pops = found(events)
    ended_ms = (since_ms if since_ms >= 0 else pops[number - 1]["popTime"]) + invisible_ms
    return float(min(message["storeTime"] for message in pops[number]["messages"]) - ended_ms)


def assert_same_messages(ours: list[Event], real: Event) -> None:
    """The same messages in the same order, from the same kind of topic, as far as both were watched."""
    for run in real["runs"]:
        seen = keys(run)
        shortest = min(len(seen), len(keys(ours)))
        assert shortest >= 1
        assert keys(ours)[:shortest] == seen[:shortest]


@MERGE
def test_what_nobody_acknowledges_comes_again_and_again(recorded: Any, play: Any, merge: str) -> None:
    real = recorded(f"pop.no-ack-short-poll.buffer-merge-{merge}")
    ours = play(pop_cases.no_ack_short_poll, merge)
    assert_same_messages(ours, real)
    assert len(found(ours)) >= 4
    for number in range(1, len(found(ours))):
        assert REVIVED_MS[0] <= revived_after(ours, number) <= REVIVED_MS[1]
        assert all(message["firstPopTime"] == found(ours)[0]["popTime"] for message in found(ours)[number]["messages"])


@MERGE
def test_a_pop_that_waits_finds_the_copy_when_its_time_is_over(recorded: Any, play: Any, merge: str) -> None:
    real = recorded(f"pop.no-ack-long-poll.buffer-merge-{merge}")
    ours = play(pop_cases.no_ack_long_poll, merge)
    assert_same_messages(ours, real)
    pops, real_pops = found(ours), found(real["runs"][0])
    for run in (pops, real_pops[:4]):
        for before, later in itertools.pairwise(run):
            assert 14_950 <= later["t_ms"] - before["t_ms"] <= 17_000, "not woken by the copy in the retry topic"


@MERGE
@pytest.mark.parametrize("name", ["ack_at_9500", "ack_at_10500"])
def test_an_ack_up_to_2_s_late_counts(recorded: Any, play: Any, merge: str, name: str) -> None:
    real = recorded(f"pop.{name.replace('_', '-')}.buffer-merge-{merge}")
    ours = play(getattr(pop_cases, name), merge)
    assert_same_messages(ours, real)
    assert len(found(ours)) == 1
    assert all(len(found(run)) == 1 for run in real["runs"])


@MERGE
def test_an_ack_with_the_first_handle_changes_nothing_when_the_message_has_come_again(
    recorded: Any, play: Any, merge: str
) -> None:
    real = recorded(f"pop.ack-after-revive.buffer-merge-{merge}")
    ours = play(pop_cases.ack_after_revive, merge)
    assert_same_messages(ours, real)
    assert [event["status"] for event in ours if event["event"] == "ack_response"] == ["OK"]
    assert len(found(ours)) >= 3


@MERGE
def test_of_a_batch_only_what_is_not_acknowledged_comes_again(recorded: Any, play: Any, merge: str) -> None:
    real = recorded(f"pop.batch-of-5-ack-3.buffer-merge-{merge}")
    ours = play(pop_cases.batch_of_5_ack_3, merge)
    assert_same_messages(ours, real)
    assert [[key for key, _, _ in pop] for pop in keys(ours)][:2] == [["m0", "m1", "m2", "m3", "m4"], ["m1", "m4"]]
    assert REVIVED_MS[0] <= revived_after(ours) <= REVIVED_MS[1]


@MERGE
@pytest.mark.parametrize(
    ("name", "invisible_ms"), [("change_invisible_to_20s_at_5s", 20_000), ("change_invisible_after_expiry", 10_000)]
)
def test_a_changed_invisible_time_counts_from_the_change(
    recorded: Any, play: Any, merge: str, name: str, invisible_ms: int
) -> None:
    real = recorded(f"pop.{name.replace('_', '-')}.buffer-merge-{merge}")
    ours = play(getattr(pop_cases, name), merge)
    assert_same_messages(ours, real)
    (changed,) = (event for event in ours if event["event"] == "change_invisible_response")
    assert REVIVED_MS[0] <= revived_after(ours, 1, invisible_ms, changed["popTime"]) <= REVIVED_MS[1]


@MERGE
def test_30_s_are_waited_for_too(recorded: Any, play: Any, merge: str) -> None:
    real = recorded(f"pop.revive-wait-invisible-30s.buffer-merge-{merge}")
    ours = play(pop_cases.revive_wait_invisible_30s, merge)
    assert_same_messages(ours, real)
    assert REVIVED_MS[0] <= revived_after(ours, 1, 30_000) <= REVIVED_MS[1]


@MERGE
def test_a_pop_that_finds_nothing_is_held_for_its_time(recorded: Any, play: Any, merge: str, phase_ms: int) -> None:
    real = recorded(f"pop.long-poll-empty.buffer-merge-{merge}")
    held = [
        [
            answer["t_ms"] - asked["t_ms"]
            for asked, answer in itertools.pairwise(run)
            if asked["event"] == "pop_request" and answer["event"] == "pop_response"
        ]
        for run in (play(pop_cases.long_poll_empty, merge, phase_ms), *real["runs"])
    ]
    assert len(held[0]) == 2
    assert all(14_950 <= ms <= 14_975 for ms in held[0]), "taken out 50 ms early, looked at every 20 ms"
    assert all(ms >= 14_950 for run in held for ms in run)


@MERGE
def test_a_message_reaches_a_waiting_pop_at_once(recorded: Any, play: Any, merge: str) -> None:
    real = recorded(f"pop.long-poll-send-at-5s.buffer-merge-{merge}")
    ours = play(pop_cases.long_poll_send_at_5s, merge)
    assert_same_messages(ours, real)
    (pop,) = found(ours)
    assert pop["t_ms"] - pop["messages"][0]["storeTime"] <= 5
