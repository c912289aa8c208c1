"""The pictures of sending: who waits where, and what the attempts of a send make of its budget; and their tables."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab, Message
from mqlab.errors import LearnerError, RemotingTooMuchRequestException
from mqlab.views import BudgetBars, Waits
from tests import worlds
from tests.worlds import send, started_producer


def shop(brokers: int = 1, queues: int = 4, **settings: Any) -> tuple[Lab, Any]:
    lab = worlds.shop(brokers=brokers, topic="Orders", queues=queues)
    producer = started_producer(lab, **settings)
    send(producer, b"first", topic="Orders")
    return lab.run_for(seconds=2), producer


def leave_it(result: object, error: object) -> None:
    """A callback that has nothing to do."""


def three_ways() -> tuple[Lab, Any, float]:
    """One message in each way, 5 ms under way over a link that takes 20 ms longer in each direction."""
    lab, producer = shop()
    lab.act("delay", source="producer-1", target="broker-a", ms=20)
    lab.act("delay", source="broker-a", target="producer-1", ms=20)
    start_ms = lab.now_ms
    producer.send(Message("Orders", b"sync")).start()
    lab.run(producer.send_async(Message("Orders", b"async"), leave_it))
    lab.run(producer.send_oneway(Message("Orders", b"one-way")))
    return lab.run_for(ms=5), producer, start_ms


def test_the_response_table_has_what_waits_for_an_answer() -> None:
    lab, producer, _ = three_ways()
    rows = lab.response_table(producer).rows
    assert [row[3] for row in rows] == ["sync", "async"]
    assert [(row[4], row[5], row[6]) for row in rows] == [(5.0, 3000, 3995.0)] * 2
    lab.run_for(ms=40)
    assert len(lab.response_table(producer)) == 0


def test_the_permits_say_what_is_taken_and_who_waits() -> None:
    lab, producer, _ = three_ways()
    assert [row[:3] for row in lab.permits(producer).rows[:2]] == [
        ["semaphoreAsync", 65_535, 2],
        ["semaphoreOneway", 65_535, 0],
    ]
    lab, producer = shop(client_async_semaphore_value=2)
    lab.freeze("broker-a")
    for _ in range(5):
        lab.run(producer.send_async(Message("Orders", b"x"), leave_it))
    lab.run_for(ms=1)
    assert lab.permits(producer).rows[0] == ["semaphoreAsync", 2, 2, 3]


def test_back_pressure_has_permits_of_its_own() -> None:
    lab, producer = shop(enable_backpressure_for_async_mode=True, back_pressure_for_async_send_num=10)
    lab.freeze("broker-a")
    for _ in range(10):
        lab.run(producer.send_async(Message("Orders", b"x"), leave_it))
    producer.send_async(Message("Orders", b"x"), leave_it).start()
    lab.run_for(ms=1)
    assert lab.permits(producer).rows[3] == ["semaphoreAsyncSendNum", 10, 10, 1]


def test_only_clients_have_these_tables() -> None:
    lab, _ = shop()
    with pytest.raises(LearnerError, match="is not a client"):
        lab.permits("producer-1")  # type: ignore[arg-type]


def test_only_the_synchronous_caller_waits_and_only_answered_requests_are_in_the_table() -> None:
    lab, _, start_ms = three_ways()
    lab.run_for(ms=60)
    waits = Waits.of(lab.history, start_ms, lab.now_ms)
    by_way = {sent.way: sent for sent in waits.sends}
    assert by_way["sync"].caller_until_us == by_way["sync"].told_us
    for way in ("async", "one-way"):
        assert by_way[way].caller_until_us == by_way[way].begin_us
    assert {way: [entry.removed_by for entry in sent.entries] for way, sent in by_way.items()} == {
        "sync": ["its answer"],
        "async": ["its answer"],
        "one-way": [],
    }
    assert {len(sent.stored_us) for sent in waits.sends} == {1}
    assert "one-way\n    caller: goes on at 0.0 ms\n    table:  never in it" in str(waits)
    assert ET.fromstring(waits.svg()).tag.endswith("svg")


def test_the_scan_finds_an_asynchronous_request_a_second_after_its_time_out() -> None:
    lab, producer = shop()
    lab.freeze("broker-a")
    start_ms = lab.now_ms
    lab.run(producer.send_async(Message("Orders", b"x"), leave_it))
    lab.run_for(seconds=6)
    (sent,) = Waits.of(lab.history, start_ms, lab.now_ms).sends
    (entry,) = sent.entries
    assert entry.removed_by == "the scan"
    assert entry.end_us is not None
    assert 4_000_000 <= entry.end_us - entry.begin_us <= 5_100_000


def test_a_time_out_of_one_ends_what_others_have_on_the_same_connection() -> None:
    lab, producer = shop()
    lab.freeze("broker-a")
    start_ms = lab.now_ms
    producer.send(Message("Orders", b"x")).start()
    lab.run_for(seconds=2)
    lab.run(producer.send_async(Message("Orders", b"x"), leave_it))
    lab.run_for(seconds=7)
    _, other = Waits.of(lab.history, start_ms, lab.now_ms).sends
    first = other.entries[0]
    assert first.removed_by == "the end of its connection"
    assert first.end_us is not None
    assert first.end_us - first.begin_us == 1_000_000


def test_names_are_given_for_all_sends_or_for_none() -> None:
    lab, _, start_ms = three_ways()
    with pytest.raises(LearnerError, match="1 names for 3 sends"):
        Waits.of(lab.history, start_ms, lab.now_ms, names=["one"])


def meant_for_broker_b(**settings: Any) -> tuple[Lab, Any]:
    """Two brokers with a queue each; the next message's turn is broker-b's."""
    lab, producer = shop(brokers=2, queues=1, **settings)
    while lab.run(producer.send(Message("Orders", b"x"))).message_queue.broker_name != "broker-a":
        pass
    return lab, producer


def test_a_hung_broker_takes_the_whole_budget_unless_an_attempt_has_a_limit() -> None:
    lab, producer = meant_for_broker_b()
    lab.freeze("broker-b")
    start_ms = lab.now_ms
    with pytest.raises(RemotingTooMuchRequestException):
        lab.run(producer.send(Message("Orders", b"x")))
    bars = BudgetBars.of(lab.history, {"hung": (start_ms, lab.now_ms)})
    assert [attempt.budget_ms for attempt in bars.groups[0][1].attempts] == [3_000]

    lab, producer = meant_for_broker_b(send_msg_max_timeout_per_request=1_000)
    lab.freeze("broker-b")
    start_ms = lab.now_ms
    lab.run(producer.send(Message("Orders", b"x")))
    bars = BudgetBars.of(lab.history, {"limit": (start_ms, lab.now_ms)})
    told = [(attempt.broker_name, attempt.budget_ms, attempt.ok) for attempt in bars.groups[0][1].attempts]
    assert told == [("broker-b", 1_000, False), ("broker-a", 1_000, True)]
    assert "attempt 2 at broker-a  begins  1000.0" in str(bars)
    assert ET.fromstring(bars.svg()).tag.endswith("svg")


def test_what_happens_at_the_very_first_microsecond_of_a_stretch_is_in_it() -> None:
    for extra_us in range(200):
        lab = Lab(seed=7)
        lab.node("clock")
        lab.run_for(ms=2_047 + extra_us / 1_000)
        lab.act("freeze", node="clock")
        assert [record.kind for record in lab.history.between(lab.now_ms, lab.now_ms)] == ["ActionTaken", "NodeFrozen"]


def test_a_batch_ends_although_its_answer_names_its_messages() -> None:
    lab, producer = shop()
    start_ms = lab.now_ms
    lab.run(producer.send([Message("Orders", b"one"), Message("Orders", b"two")]))
    (sent,) = Waits.of(lab.history, start_ms, lab.now_ms).sends
    assert sent.outcome == "SEND_OK"
    assert sent.caller_until_us is not None
