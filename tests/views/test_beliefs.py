"""The picture of beliefs: a broker dies or hangs, and those who still have it in their route are wrong."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from mqlab import Lab
from mqlab.views import Beliefs
from tests.worlds import send, shop, started_producer


def two_brokers() -> Lab:
    lab = shop(brokers=2, topic="Orders", queues=4)
    send(started_producer(lab), b"first", topic="Orders")
    return lab.run_for(seconds=12)


def beliefs(lab: Lab, zero_ms: float) -> Beliefs:
    return Beliefs.of(lab.history, "Orders", "broker-b", zero_ms=zero_ms, start_ms=zero_ms - 1_000, end_ms=lab.now_ms)


def test_after_a_kill_the_name_server_is_right_at_once_and_the_producer_at_its_next_refresh() -> None:
    lab = two_brokers()
    killed_ms = lab.now_ms
    lab.crash("broker-b")
    lab.run_for(seconds=40)
    seen = beliefs(lab, killed_ms)
    assert seen.stale_ms("namesrv-1") < 1
    assert 0 < seen.stale_ms("producer-1") <= 30_010
    assert [span.state for span in seen.rows["producer-1"]] == ["in the route", "not in the route"]


def test_after_a_hang_the_name_server_is_wrong_for_90_to_125_seconds() -> None:
    lab = two_brokers()
    hung_ms = lab.now_ms
    lab.freeze("broker-b")
    lab.run_for(seconds=160)
    seen = beliefs(lab, hung_ms)
    assert 90_000 <= seen.stale_ms("namesrv-1") <= 125_000
    assert seen.stale_ms("namesrv-1") < seen.stale_ms("producer-1")


def test_the_text_says_what_the_picture_draws() -> None:
    lab = two_brokers()
    lab.crash("broker-b")
    lab.run_for(seconds=40)
    seen = beliefs(lab, lab.now_ms - 40_000)
    assert "broker-b        -1.000 to     0.000  runs" in str(seen)
    assert "of that stale: 17.9" in str(seen)
    svg = seen.svg()
    assert ET.fromstring(svg).tag.endswith("svg")
    assert "wrong for 18.0 s" in svg


def test_a_restarted_broker_is_in_the_route_before_the_producer_knows() -> None:
    lab = two_brokers()
    killed_ms = lab.now_ms
    lab.crash("broker-b")
    lab.run_for(seconds=20)
    lab.restart("broker-b")
    lab.run_for(seconds=5)
    seen = beliefs(lab, killed_ms)
    assert seen.rows["namesrv-1"][-1].state == "in the route"
    assert seen.rows["producer-1"][-1].state == "not in the route"
