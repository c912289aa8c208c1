"""The same trouble with Pop, a share group and SQS: who gets an order again, when, and with which count."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, scenarios
from mqlab.cousins import CallRefused
from mqlab.cousins.share_state import FILE
from mqlab.scenarios.cousins import SYSTEMS, Counter, Hand, System, open_counter

LOCK_S = 20


def played(system: System, trouble: str, seconds: float = 60, **parameters: Any) -> Lab:
    return scenarios.get("cousins").play(
        7, parameters={"system": system, "trouble": trouble, **parameters}, seconds=seconds
    )


def taken(lab: Lab, order: str, worker: str = "worker-2") -> list[tuple[float, int]]:
    """When a worker got an order, in seconds from when it was handed out first, and the count that it was told."""
    events = [event for event in lab.history.find("WorkTaken") if event.order_name == order]
    begin_ms = events[0].ts_ms
    return [((event.ts_ms - begin_ms) / 1_000, event.told_count) for event in events if event.worker == worker]


def opened(system: System, seed: int = 7) -> tuple[Lab, Counter, Hand, Hand]:
    """A queue with one order, and two workers who do what they are told."""
    lab = Lab(seed)
    counter = open_counter(lab, system, orders=1)
    return lab, counter, counter.worker("worker-1"), counter.worker("worker-2")


def answers(lab: Lab, worker: str = "worker-1") -> list[str]:
    return [event.answer for event in lab.history.find("WorkAnswered") if event.worker == worker]


@pytest.mark.parametrize("system", SYSTEMS)
def test_without_trouble_each_order_is_taken_once(system: System) -> None:
    lab = played(system, "none")
    names = [event.order_name for event in lab.history.find("WorkTaken")]
    assert sorted(names) == [f"order {number}" for number in range(3)]
    assert {event.answer for event in lab.history.find("WorkAnswered")} == {"OK"}


def test_what_a_killed_worker_held_comes_again_at_once_at_the_end_of_its_time_or_some_seconds_behind() -> None:
    waited = {system: taken(played(system, "killed"), "order 0")[0] for system in SYSTEMS}
    assert waited["share-group"][0] < 2, "its connection was closed"
    assert LOCK_S <= waited["sqs"][0] < LOCK_S + 1
    assert LOCK_S + 2 <= waited["pop"][0] < LOCK_S + 5, "the reviver waits for late acknowledgements"
    assert {system: count for system, (_, count) in waited.items()} == {"pop": 1, "share-group": 2, "sqs": 2}


def test_what_a_worker_that_hangs_holds_comes_again_when_its_lock_ends() -> None:
    lab = played("share-group", "hung")
    (at_s, count), *_ = taken(lab, "order 0")
    assert LOCK_S <= at_s < LOCK_S + 1
    assert count == 2
    assert {event.reason for event in lab.history.find("RecordLetGo")} == {"time-out"}


def test_what_a_worker_is_told_who_is_done_too_late() -> None:
    assert answers(played("share-group", "late")) == ["INVALID_RECORD_STATE"] * 3
    assert answers(played("sqs", "late")) == ["OK"] * 3
    assert answers(played("pop", "late")) == ["OK"] * 3
    old = played("sqs", "late").history.find("SqsMessageDeleted")
    assert [event.deleted for event in old if event.receipt_handle.endswith("/1")] == [False] * 3


def test_a_late_word_counts_with_sqs_while_nobody_else_has_the_order_and_with_a_share_group_never() -> None:
    assert taken(played("sqs", "late", others=False), "order 0", "worker-1") == [(0.0, 1)]
    deleted = played("sqs", "late", others=False).history.find("SqsMessageDeleted")
    assert [event.deleted for event in deleted] == [True] * 3
    assert answers(played("share-group", "late", others=False)) == ["INVALID_RECORD_STATE"] * 3


def test_a_late_word_counts_with_pop_as_long_as_the_reviver_waits_for_it() -> None:
    for late_s, comes_again in ((1, False), (6, True)):
        lab = played("pop", "late", late_s=late_s, others=False)
        assert answers(lab) == ["OK"] * 3
        assert any(lab.history.find("MessageRevived")) is comes_again


def test_a_word_about_a_record_before_the_window_is_taken_in_silence() -> None:
    lab = played("share-group", "late", packing_s=0)
    assert answers(lab) == ["OK"] * 3, "somebody else has done it, and the window has moved on"


def test_a_killed_broker_of_a_share_group_forgets_deliveries_and_no_acknowledgement() -> None:
    lab = played("share-group", "broker-killed")
    assert not taken(lab, "order 0"), "it was acknowledged"
    assert [count for _, count in taken(lab, "order 1")] == [1], "the count of a delivery that was lost"
    assert answers(lab) == ["OK", "INVALID_RECORD_STATE"]
    first, second = lab.history.find("ShareStateRead")
    assert (first.leader_epoch, second.leader_epoch, second.start_offset) == (1, 2, 1)


def test_a_killed_broker_hands_out_again_what_was_popped_and_done_before_the_groups_offset_was_written() -> None:
    lab = played("pop", "broker-killed")
    assert taken(lab, "order 0")[0][1] == 0, "done, delivered again, and nobody has counted"
    assert [count for _, count in taken(lab, "order 2")] == [0, 1], "and its old check point brings it once more"


def test_a_service_that_has_all_of_it_on_its_disk_forgets_nothing() -> None:
    lab = played("sqs", "broker-killed")
    assert answers(lab) == ["OK", "OK"]
    assert not taken(lab, "order 1")
    assert [count for _, count in taken(lab, "order 2")] == [2]


def test_what_nobody_can_do_ends_in_the_archive_among_the_dead_letters_or_never() -> None:
    counts = {}
    for system in SYSTEMS:
        lab = played(system, "poison", seconds=200)
        both = taken(lab, "order 0", "worker-1") + taken(lab, "order 0")
        counts[system] = [count for _, count in both]
        assert any(lab.history.find("SqsMessageRedriven")) is (system == "sqs")
    assert counts["share-group"] == counts["sqs"] == [1, 2, 3, 4, 5]
    assert counts["pop"] == list(range(9)), "a broker sets no limit"


@pytest.mark.parametrize("system", SYSTEMS)
def test_more_time_begins_with_the_moment_at_which_it_is_asked_for(system: System) -> None:
    lab, _, first, second = opened(system)
    (held,) = lab.run(first.take(1, LOCK_S))
    lab.run_for(seconds=15)
    assert lab.run(first.longer(held, LOCK_S)) == "OK"
    lab.run_for(seconds=15)
    assert lab.run(second.take(1, LOCK_S)) == []
    assert lab.run(first.done(held)) == "OK"
    lab.run_for(seconds=30)
    assert lab.run(second.take(1, LOCK_S)) == []


def test_who_asks_for_more_time_too_late_is_refused() -> None:
    wanted = {"share-group": "INVALID_RECORD_STATE", "sqs": "MessageNotInflight"}
    for system, error in wanted.items():
        lab, _, first, _ = opened(system)
        (held,) = lab.run(first.take(1, LOCK_S))
        lab.run_for(seconds=LOCK_S + 1)
        assert lab.run(first.longer(held, LOCK_S)) == error


def test_what_a_share_broker_has_answered_is_safe_from_a_loss_of_power() -> None:
    lab, counter, first, _ = opened("share-group")
    (held,) = lab.run(first.take(1, LOCK_S))
    assert lab.run(first.done(held)) == "OK"
    lab.power_off("kafka-1")
    assert lab.run(first.done(held)) == "REQUEST_TIMED_OUT", "a machine without power says nothing"
    lab.restart("kafka-1")
    lab.run_for(ms=100)
    assert counter.server.node.disk.exists(FILE)
    assert lab.run(first.take(1, LOCK_S)) == []


def test_what_was_produced_is_safe_from_a_loss_of_power() -> None:
    for seed in range(6):
        lab, _, first, _ = opened("share-group", seed)
        lab.power_off("kafka-1")
        lab.restart("kafka-1")
        lab.run_for(ms=100)
        assert [one.order for one in lab.run(first.take(1, LOCK_S))] == ["order 0"]


def test_a_lock_that_was_renewed_ends_too() -> None:
    lab, _, first, second = opened("share-group")
    (held,) = lab.run(first.take(1, LOCK_S))
    lab.run_for(seconds=15)
    assert lab.run(first.longer(held, LOCK_S)) == "OK"
    lab.run_for(seconds=LOCK_S - 1)
    assert lab.run(second.take(1, LOCK_S)) == []
    lab.run_for(seconds=1)
    assert [one.told_count for one in lab.run(second.take(1, LOCK_S))] == [2]


def test_who_waits_for_an_answer_hears_that_the_server_has_died() -> None:
    lab, _, first, _ = opened("sqs")
    (held,) = lab.run(first.take(1, LOCK_S))
    lab.freeze("sqs")
    answer = first.done(held).start()
    lab.run_for(seconds=1)
    assert not answer.done
    lab.crash("sqs")
    lab.run_for(ms=100)
    assert lab.run(answer) == "NETWORK_EXCEPTION"


def test_a_server_that_does_not_answer_is_told_as_one() -> None:
    lab, _, first, _ = opened("sqs")
    lab.freeze("sqs")
    with pytest.raises(CallRefused, match="REQUEST_TIMED_OUT"):
        lab.run(first.take(1, LOCK_S))
