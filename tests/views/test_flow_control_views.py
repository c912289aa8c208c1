"""The pictures of flow control: gauges, the meter over time, and the waits before the send threads of a broker."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab, scenarios
from mqlab.client import DefaultMQPushConsumer
from mqlab.errors import LearnerError
from mqlab.scenarios.flow_control import put_backlog, slow_consumer, taking
from mqlab.views import FlowGauges, FlowMeter, Limit, SendWaits, Series, TimeChart

NAME = "Orders, queue 0 on broker-a"


def build(lab: Lab, steps: Coroutine[Any, Any, None]) -> None:
    with pytest.raises(StopIteration):
        steps.send(None)


def backlog(messages: int = 150, size: int = 10) -> Lab:
    lab = Lab(seed=7)
    build(lab, put_backlog(lab, messages, size))
    return lab


def metered(lab: Lab, consumer: DefaultMQPushConsumer, seconds: float) -> FlowMeter:
    meter = FlowMeter(lab, consumer, "Orders")
    lab.run(consumer.start())
    lab.run_for(seconds=seconds)
    return meter


# -- gauges ---------------------------------------------------------------------------------------------------------


def test_the_gauge_that_refuses_the_next_pull_is_named() -> None:
    lab = backlog()
    consumer = slow_consumer(lab, taking(100), pull_threshold_for_queue=20)
    lab.run(consumer.start())
    lab.run_until_event("MessagesCached")
    gauges = FlowGauges.of(consumer)
    holding = gauges.holding(NAME)
    assert holding is not None
    assert (holding.name, holding.value, holding.limit) == ("count", 32, 20)
    assert "the next pull is refused by the count" in str(gauges)
    assert "refused by the count" in gauges.svg()


def test_at_the_limit_itself_the_pull_goes_out() -> None:
    lab = backlog()
    consumer = slow_consumer(lab, taking(100), pull_threshold_for_queue=20)
    lab.run(consumer.start())
    lab.run_until_event("MessagesCached")
    lab.run_until_event("PullRequested", topic="Orders")
    gauges = FlowGauges.of(consumer)
    assert gauges.queues[NAME][0].value == 20
    assert gauges.holding(NAME) is None
    assert "the next pull goes out" in str(gauges)


def test_the_size_is_compared_in_whole_mebibytes_and_the_picture_shows_the_parts() -> None:
    lab = backlog(60, 100 * 1024)
    consumer = slow_consumer(lab, taking(50), pull_threshold_size_for_queue=1)
    meter = metered(lab, consumer, 0)
    lab.run_until(lambda: len(meter.pulls) == 2)
    count, size, _ = FlowGauges.of(consumer).queues[NAME]
    assert (count.value, size.compared, size.is_over) == (20, 1, False)
    assert size.value == 20 * 100 / 1024
    assert meter.refused == {"size": len(meter.refusals)}
    lab.run_for(ms=1)


def test_a_consumer_without_queues_has_no_gauges() -> None:
    lab = backlog(1)
    gauges = FlowGauges.of(slow_consumer(lab, taking(1)))
    assert "owns no queue" in str(gauges)
    ET.fromstring(gauges.svg())


# -- over time ------------------------------------------------------------------------------------------------------


def test_a_limit_of_20_lets_52_be_held_and_writes_one_line_into_the_log() -> None:
    lab = backlog()
    meter = metered(lab, slow_consumer(lab, taking(100), pull_threshold_for_queue=20), 8)
    assert meter.highest("count") == 52
    assert meter.highest("span") == 51
    assert len(meter.pulls) == 3
    assert meter.refused["count"] > 100
    assert meter.warnings == 1


def test_after_a_thousand_refusals_there_is_a_second_line() -> None:
    lab = backlog(40)
    consumer = slow_consumer(lab, taking(60_000), pull_threshold_for_queue=20)
    meter = metered(lab, consumer, 0)
    lab.run_until(lambda: len(meter.refusals) == 1_000)
    assert meter.warnings == 1
    lab.run_until(lambda: len(meter.refusals) == 1_001)
    assert meter.warnings == 2


def test_a_stuck_message_lets_the_span_reach_all_that_is_in_the_queue() -> None:
    lab = backlog()
    listener = taking(20, first_ms=5_000)
    meter = metered(lab, slow_consumer(lab, listener, threads=2, consume_concurrently_max_span=10), 5)
    wide = [sample.span for sample in meter.samples if sample.span > 0]
    assert sorted(set(wide)) == [31, 63, 95, 127, 149]
    assert {pull.commit_offset for pull in meter.pulls} == {0}


def test_the_meter_changes_nothing() -> None:
    def played(watched: bool) -> str:
        lab = backlog()
        consumer = slow_consumer(lab, taking(100), pull_threshold_for_queue=20)
        if watched:
            FlowMeter(lab, consumer, "Orders")
        lab.run(consumer.start())
        return lab.run_for(seconds=4).trace_hash()

    assert played(True) == played(False)


def test_the_chart_of_a_meter_says_what_it_draws() -> None:
    lab = backlog()
    meter = metered(lab, slow_consumer(lab, taking(100), pull_threshold_for_queue=20), 4)
    chart = meter.chart("count")
    assert "highest 52 (messages)" in str(chart)
    assert "limit 20" in chart.svg()
    assert "time, s" in chart.svg()
    ET.fromstring(chart.svg())


def test_what_is_not_measured_and_what_is_not_subscribed_is_told() -> None:
    lab = backlog(1)
    consumer = slow_consumer(lab, taking(1))
    with pytest.raises(LearnerError, match="does not subscribe to 'Bills'"):
        FlowMeter(lab, consumer, "Bills")
    with pytest.raises(LearnerError, match="choose one of 'count', 'size', 'span'"):
        FlowMeter(lab, consumer, "Orders").highest("weight")


# -- the broker's side ----------------------------------------------------------------------------------------------


def test_no_order_waits_much_longer_than_200_ms_before_the_send_threads() -> None:
    lab = scenarios.get("busy-broker").play(7, parameters={"seconds": 2})
    waits = SendWaits.of(lab.history, "broker-a")
    assert min(wait for _, wait in waits.refused) >= 200
    assert max(wait for _, wait in waits.refused) <= 211
    assert waits.longest_ms <= 231
    assert not waits.too_late
    assert "answered: busy" in str(waits.chart())


def test_without_fast_failure_orders_are_stored_for_nobody() -> None:
    lab = scenarios.get("busy-broker").play(7, seconds=60, parameters={"seconds": 7, "fast_failure": False})
    waits = SendWaits.of(lab.history, "broker-a")
    assert not waits.refused
    assert max(wait for _, wait in waits.stored) <= 3_001
    assert waits.too_late
    failed = {event.msg_id for event in lab.history.find("SendFailed")}
    stored = {event.unique_key for event in lab.history.find("MessageStored", topic="Orders")}
    assert failed <= stored


# -- charts ---------------------------------------------------------------------------------------------------------


def test_a_chart_without_points_is_drawn_all_the_same() -> None:
    chart = TimeChart("nothing", "ms", [Series("none", [], "#000000", "dot")], [Limit("limit", 5)])
    ET.fromstring(chart.svg())
    assert "none: none" in str(chart)


def test_marks_that_fall_on_each_other_are_drawn_once() -> None:
    once = TimeChart("t", "ms", [Series("a", [(0, 0), (1, 1)], "#000000", "cross")])
    often = TimeChart("t", "ms", [Series("a", [(0, 0), (1, 1)] * 50, "#000000", "cross")])
    assert once.svg() == often.svg()
