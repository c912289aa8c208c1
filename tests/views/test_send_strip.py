"""The send strip and the fault table: what producers see while a broker is down, as picture, text and table."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab, Message, scenarios
from mqlab.errors import LearnerError
from mqlab.views import SendStrip
from tests.worlds import started_producer


def strip(lab: Lab, zero_ms: float, before_ms: float = 5_000, producers: list[str] | None = None) -> SendStrip:
    return SendStrip.of(
        lab.history,
        "Orders",
        "broker-b",
        zero_ms=zero_ms,
        start_ms=zero_ms - before_ms,
        end_ms=lab.now_ms,
        producers=producers,
    )


@pytest.fixture(scope="module")
def hanging() -> tuple[Lab, float]:
    lab = scenarios.get("broker-hangs").build(7)
    zero_ms = lab.now_ms
    return lab.run_for(seconds=40), zero_ms


@pytest.fixture(scope="module")
def killed() -> tuple[Lab, float]:
    lab = scenarios.get("broker-killed").build(7)
    zero_ms = lab.now_ms
    return lab.run_for(seconds=60), zero_ms


def test_a_killed_broker_costs_an_attempt_and_no_call(killed: tuple[Lab, float]) -> None:
    seen = strip(*killed)
    assert list(seen.calls) == ["plain", "latency", "limit", "both"]
    for calls in seen.calls.values():
        assert not any(call.failed or call.slow for call in calls)
        refused = [call for call in calls if len(call.attempts) == 2]
        assert refused
        assert all([a.broker for a in call.attempts] == ["broker-b", "broker-a"] for call in refused)
        assert all(call.ms < 5 for call in refused)


def test_a_hanging_broker_costs_calls_or_seconds(hanging: tuple[Lab, float]) -> None:
    seen = strip(*hanging)
    failed = {name: sum(call.failed for call in calls) for name, calls in seen.calls.items()}
    slow = {name: sum(call.slow for call in calls) for name, calls in seen.calls.items()}
    assert failed["plain"] > failed["latency"] > 0 == failed["limit"] == failed["both"]
    assert slow["limit"] > slow["both"]
    assert all(2_900 < call.ms < 3_010 for call in seen.calls["plain"] if call.failed)


def test_a_call_that_waits_has_one_attempt_although_a_second_queue_was_chosen(hanging: tuple[Lab, float]) -> None:
    failed = [call for call in strip(*hanging).calls["plain"] if call.failed]
    assert all([attempt.broker for attempt in call.attempts] == ["broker-b"] for call in failed)


def test_the_fault_table_lets_the_broker_rest_for_ten_seconds(hanging: tuple[Lab, float]) -> None:
    rests = strip(*hanging).rests
    assert set(rests) == {"latency", "both"}
    for span in rests["latency"][:-1]:
        assert span.end_us - span.begin_us == 10_000_000


def test_picture_and_text_say_the_same(hanging: tuple[Lab, float]) -> None:
    lab, zero_ms = hanging
    seen = strip(lab, zero_ms, producers=["plain"])
    failed = sum(call.failed for call in seen.calls["plain"])
    assert f"plain        {len(seen.calls['plain'])} calls, {failed} failed" in str(seen)
    assert str(seen).count("the application sees an error") == failed
    svg = seen.svg()
    assert ET.fromstring(svg).tag.endswith("svg")
    assert f"{len(seen.calls['plain'])} calls, {failed} failed" in svg
    assert "time in seconds" in svg
    assert "latency" not in svg
    assert seen._repr_mimebundle_()["image/svg+xml"] == svg


def test_the_summary_counts_calls(hanging: tuple[Lab, float]) -> None:
    rows = {row[0]: row[1:] for row in strip(*hanging).summary().rows}
    assert rows["limit"][1] == 0
    assert rows["plain"][4] >= 3_000


def test_an_answer_that_is_an_error_ends_the_call() -> None:
    lab = Lab(seed=7)
    lab.name_server()
    broker = lab.broker("broker-b", max_message_size=1_000)
    lab.create_topic("Orders", 1)
    producer = started_producer(lab)
    with pytest.raises(Exception, match="CODE: 13"):
        lab.run(producer.send(Message("Orders", b"." * 2_000)))
    (call,) = strip(lab, lab.now_ms).calls["producer-1"]
    assert call.failed
    assert [attempt.broker for attempt in call.attempts] == [broker.name]


def test_who_has_not_sent_is_named(hanging: tuple[Lab, float]) -> None:
    lab, zero_ms = hanging
    with pytest.raises(LearnerError, match="no send to 'Orders' of nobody-1"):
        strip(lab, zero_ms, producers=["nobody-1"])


def test_the_fault_table_of_a_producer(hanging: tuple[Lab, float]) -> None:
    lab, _ = hanging
    rows = {row[0]: row[1:] for row in lab.fault_table("latency").rows}
    assert rows["broker-a"][1:] == [0, True]
    assert rows["broker-b"][0] >= 2_900
    assert 0 <= rows["broker-b"][1] <= 10_000
    off = lab.fault_table("plain")
    assert not off.rows
    assert "switched off" in off.title


def test_with_the_detector_a_silent_broker_is_not_reachable(hanging: tuple[Lab, float]) -> None:
    lab, _ = hanging
    rows = {row[0]: row[1:] for row in lab.fault_table("both").rows}
    assert rows["broker-b"][2] is False


def test_the_fault_table_of_nobody(hanging: tuple[Lab, float]) -> None:
    lab, _ = hanging
    with pytest.raises(LearnerError, match="'broker-a' is not a producer"):
        lab.fault_table("broker-a")
