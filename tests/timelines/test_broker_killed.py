"""What producers notice of a broker that is killed and comes back, compared with a real RocketMQ 5.3.3.

All steps of `summary` are compared. Of the order of queues that of "async_default" is not: a real producer starts
asynchronous sends on several threads, each with an index of its own, where one index serves all tasks here.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import median
from typing import Any

import pytest

from .recordings import step_of

PRODUCERS: dict[str, dict[str, Any]] = {
    "sync_default": {},
    "sync_latency_fault": {"send_latency_enable": True},
    "async_default": {},
    "oneway": {},
}
PERIOD_MS = 250
BEFORE_MS, RESTART_MS, END_MS = 12_000, 38_000, 80_000
ONE_CALL_MS = 60
POLL_MS = 30_000
"""pollNameServerInterval."""
ALL_QUEUES = 8


def play(senders: Any, phase_ms: int) -> Any:
    """Kill broker-b at t = 0, while four producers send, and start it again at 38 s."""
    scene = senders(PRODUCERS, PERIOD_MS, phase_ms)
    scene.lab.run_for(ms=BEFORE_MS)
    scene.start_us = scene.lab.world.now_us
    scene.lab.crash("broker-b")
    scene.at(RESTART_MS)
    scene.lab.restart("broker-b")
    scene.at(END_MS)
    return scene


@pytest.fixture
def scene(senders: Any, once: Any, phase_ms: int) -> Any:
    return once(play, senders, phase_ms)


@pytest.fixture
def timeline(recorded: Any) -> Any:
    return recorded("producer.broker-killed")


def route_changed_ms(scene: Any, kind: str) -> float:
    found = [e["t_ms"] for e in scene.events(kind, topic="T", broker_name="broker-b") if e["t_ms"] >= 0]
    return float(found[0])


def back_ms(scene: Any, who: str) -> float:
    """When the first message of a producer went to the new process of broker-b."""
    return float(min(at for at in scene.requests(who, "broker-b") if at >= RESTART_MS))


def refreshed_ms(scene: Any, who: str) -> float:
    """When a producer's route was first without broker-b."""
    found = [e["t_ms"] for e in scene.events("RouteUpdated", topic="T", broker_names="broker-a") if e["node"] == who]
    return float(min(at for at in found if at > 0))


def test_the_name_server_drops_a_killed_broker_at_once(scene: Any, timeline: Any, smallest: Any) -> None:
    step = "broker-b killed -> name server route without broker-b"
    assert step_of(timeline, step)["constant"].startswith("none: channel close event")
    # The recording asked for the route every 100 ms, under load: 141 ms at least.
    assert smallest(timeline, step) <= 200
    assert 0 <= route_changed_ms(scene, "TopicRouteRemoved") <= 1


def test_it_is_in_the_route_again_with_its_registration_at_the_start(scene: Any, timeline: Any, smallest: Any) -> None:
    step = "broker-b listens again -> name server route has it again"
    assert step_of(timeline, step)["constant"] == "registration at start"
    assert smallest(timeline, step) <= 1_500
    # A first connection of a Java process takes 20 ms and more.
    assert 0 <= route_changed_ms(scene, "TopicRouteChanged") - RESTART_MS <= 500


@pytest.mark.parametrize("who", list(PRODUCERS))
def test_producers_find_it_again_when_they_ask_for_the_route(scene: Any, timeline: Any, who: str) -> None:
    """Up to 30 s after it is in the route, and then up to one round through the queues."""
    step = step_of(timeline, f"{who}: broker-b listens again -> first request to it")
    assert step["constant"] == "pollNameServerInterval 30000 (0..30 s)"
    in_route = step_of(timeline, "broker-b listens again -> name server route has it again")["per_run_ms"]
    one_round = ALL_QUEUES * PERIOD_MS
    routed = route_changed_ms(scene, "TopicRouteChanged")
    assert 0 <= back_ms(scene, who) - routed <= POLL_MS + one_round
    # The observer saw the route up to 100 ms late and a first connection takes up to 500 ms.
    for real, real_routed in zip(step["per_run_ms"], in_route, strict=True):
        assert -100 <= real - real_routed <= POLL_MS + one_round + 500


@pytest.mark.parametrize("who", list(PRODUCERS))
def test_no_application_sees_an_error(scene: Any, timeline: Any, who: str) -> None:
    """Two real errors (async, one run) were TIMEOUT_CLEAN_QUEUE of a loaded broker, long after the kill."""
    step = step_of(timeline, f"{who}: errors shown to the application after the kill")
    assert min(step["per_run"]) == 0
    for run in timeline["runs"]:
        assert all("TIMEOUT_CLEAN_QUEUE" in e["error"] for e in run if e.get("error"))
    assert [call for call in scene.between(who, 0, END_MS) if call.error] == []
    assert len(scene.between(who, 0, 31_000)) >= 31_000 / PERIOD_MS - 1


@pytest.mark.parametrize("who", list(PRODUCERS))
def test_a_call_costs_no_waiting_although_half_of_the_queues_are_dead(
    scene: Any, timeline: Any, smallest: Any, who: str
) -> None:
    """A refused connection is told at once, and the second attempt goes to the other broker: no constant."""
    costs = [call.cost_ms for call in scene.between(who, 0, 31_000)]
    step = f"{who}: cost of one call, 0..31 s after the kill"
    assert median(costs) <= 1
    assert smallest(timeline, f"{step}, median") <= ONE_CALL_MS
    assert max(costs) <= 5
    assert smallest(timeline, f"{step}, maximum") <= 500


@pytest.mark.parametrize("who", ["sync_default", "sync_latency_fault", "async_default"])
def test_all_messages_go_to_the_four_queues_of_the_other_broker(scene: Any, timeline: Any, who: str) -> None:
    """Each attempt on a dead queue is followed by one on broker-a, so that its queues get the same number."""
    window = scene.between(who, 0, 30_000)
    assert {call.broker for call in window} == {"broker-a"}
    times = Counter(call.queue_id for call in window)
    assert max(times.values()) - min(times.values()) <= 2
    for run in timeline["runs"]:
        real = [e for e in run if e["event"] in ("send_returned", "callback_ok") and e["who"] == who]
        assert {e["broker"] for e in real if 0 <= e["t_ms"] <= 30_000} == {"broker-a"}


def test_a_synchronous_producer_goes_through_the_other_queues_in_turn(scene: Any, timeline: Any) -> None:
    ours = [call.queue_id for call in scene.between("sync_default", 0, 3_300)]
    assert _in_turn(ours)
    for run in timeline["runs"]:
        real = [e for e in run if e["event"] == "send_returned" and e["who"] == "sync_default"]
        assert _in_turn([e["queueId"] for e in real if 0 < e["t_ms"] < 3_300])


def _in_turn(queue_ids: list[int]) -> bool:
    return len(queue_ids) >= 10 and all(b == (a + 1) % 4 for a, b in pairwise(queue_ids))


def lost_oneway(scene: Any) -> tuple[int, float]:
    """How many one-way calls wrote no request, and when the last of them was."""
    calls = [call.begin_ms for call in scene.between("oneway", 0, 35_000)]
    written = [at for broker in ("broker-a", "broker-b") for at in scene.requests("oneway", broker) if at >= 0]
    lost = [at for at in calls if not any(0 <= sent - at < PERIOD_MS / 2 for sent in written)]
    return len(lost), max(lost)


def test_one_way_messages_for_it_are_lost_in_silence_until_the_route_is_refreshed(scene: Any, timeline: Any) -> None:
    """Half of the queues are those of the dead broker: of each eight calls four write nothing and raise nothing."""
    lost = step_of(timeline, "oneway: calls that returned without error but wrote no request (lost)")
    assert lost["constant"] == "connect refused, no retry, nothing raised"
    last = step_of(timeline, "oneway: kill -> last lost call")
    assert last["constant"] == "until the route refresh: pollNameServerInterval 30000"
    for count, until in [lost_oneway(scene), *zip(lost["per_run"], last["per_run_ms"], strict=True)]:
        assert 0 <= until <= POLL_MS
        assert abs(count - until / PERIOD_MS / 2) <= 4
    assert lost_oneway(scene)[1] <= refreshed_ms(scene, "oneway")


def test_as_long_as_the_route_is_old_half_of_the_attempts_are_in_vain(scene: Any) -> None:
    """A synchronous producer without latency faults tries the dead broker in its turn, again and again."""
    until = refreshed_ms(scene, "sync_default")
    failed = [e for e in scene.events("SendAttemptFailed", topic="T") if e["node"] == "sync_default"]
    assert all(0 <= e["t_ms"] <= until for e in failed)
    assert {e["broker_name"] for e in failed} == {"broker-b"}
    calls = len(scene.between("sync_default", 0, until))
    # One failed attempt moves the turn on: of eight queues the walk meets broker-b once before four of broker-a.
    assert len(failed) == pytest.approx(calls / 4, abs=2)


def test_with_latency_faults_it_is_tried_only_now_and_then(scene: Any) -> None:
    """An attempt that fails counts as 10 s of latency, and the broker rests for 10 s."""
    until = refreshed_ms(scene, "sync_latency_fault")
    failed = [e["t_ms"] for e in scene.events("SendAttemptFailed", topic="T") if e["node"] == "sync_latency_fault"]
    assert len(failed) == pytest.approx(until / 10_000, abs=1.2)
    assert all(later - earlier >= 10_000 for earlier, later in pairwise(failed))
