"""Push, pull, lite pull and Pop side by side on one topic: each group gets each message once."""

from __future__ import annotations

import pytest

from mqlab import Lab, scenarios
from mqlab.scenarios.four_ways import POLLED, POPPED, PULLED, PUSHED
from mqlab.scenarios.numbered import TOPIC

MESSAGES = 20


@pytest.fixture(scope="module", params=[False, True], ids=["buffer off", "buffer on"])
def played(request: pytest.FixtureRequest) -> Lab:
    """The scenario, played until every check point is long over."""
    return scenarios.get("four-ways").play(seed=4, seconds=100, parameters={"buffer": request.param})


def delivered(lab: Lab) -> dict[str, list[str] | int]:
    """What each group was given: the messages where the trace names each, else how many."""
    find = lab.history.find
    return {
        PUSHED: sorted(event.msg_id for event in find("ConsumeFinished") if event.group == PUSHED),
        POPPED: sorted(event.msg_id for event in find("ConsumeFinished") if event.group == POPPED),
        PULLED: sum(event.messages for event in find("PullFinished") if (event.group, event.topic) == (PULLED, TOPIC)),
        POLLED: sum(event.messages for event in find("MessagesPolled") if event.group == POLLED),
    }


def test_each_group_gets_each_message_once(played: Lab) -> None:
    sent = sorted(event.msg_id for event in played.history.find("SendSucceeded"))
    assert len(set(sent)) == MESSAGES
    assert delivered(played) == {PUSHED: sent, POPPED: sent, PULLED: MESSAGES, POLLED: MESSAGES}
    assert not list(played.history.find("MessageRevived"))


def test_each_group_has_come_to_the_end_of_each_queue_in_its_own_way(played: Lab) -> None:
    broker = played.brokers[0].running()
    ends = [broker.message_store.get_max_offset_in_queue(TOPIC, queue_id) for queue_id in range(2)]
    assert sum(ends) == MESSAGES
    for group in (PUSHED, PULLED, POLLED, POPPED):
        assert [broker.consumer_offset_manager.query_offset(group, TOPIC, queue_id) for queue_id in range(2)] == ends


def test_pulls_and_pops_wait_in_their_own_tables(played: Lab) -> None:
    assert {row[1] for row in played.held_pulls().rows if row[2] == TOPIC} == {PUSHED, POLLED}
    assert [tuple(row[1:5]) for row in played.held_pops().rows] == [("pop", POPPED, TOPIC, -1)]


def test_one_message_wakes_the_pulls_at_its_queue_and_one_pop(played: Lab) -> None:
    """In the order of the broker's listeners: first those who hold pulls, then Pop."""
    stored = next(event for event in played.history.find("MessageStored") if event.topic == TOPIC)
    woken = [
        (event.kind, event.group)
        for event in played.history
        if event.kind in ("PullWoken", "PopWoken") and 0 <= event.ts_us - stored.ts_us < 2_000
    ]
    assert [kind for kind, _ in woken][-1] == "PopWoken"
    assert ("PullWoken", PUSHED) in woken


def test_the_same_world_travels_as_bytes() -> None:
    play = scenarios.get("four-ways").play
    assert play(seed=4, seconds=8).trace_hash() == play(seed=4, seconds=8, wire="bytes").trace_hash()
